"""Options of Slurm's `sbatch`, in the words of `fairlead submit`.

Decides which of them mean the same here, and what is said of the others. Never guesses: what would only nearly mean the
same is named, with what to write instead. Invariant: an option is translated, passed over because it changes nothing
here, or named.
"""

from __future__ import annotations

import getpass
import re
from collections.abc import Callable, Iterator
from typing import ClassVar, Final

from fairlead.cli.app import wrong_usage
from fairlead.wire.patterns import checked
from fairlead.wire.statuses import signal_number

Words = list[str]
_ONE_LETTER: Final = {
    "-A": "account", "-a": "array", "-B": "extra-node-info", "-b": "begin", "-C": "constraint", "-c": "cpus-per-task",
    "-D": "chdir", "-d": "dependency", "-e": "error", "-F": "nodefile", "-G": "gpus", "-H": "hold", "-i": "input",
    "-J": "job-name", "-k": "no-kill", "-L": "licenses", "-M": "clusters", "-m": "distribution", "-N": "nodes",
    "-n": "ntasks", "-O": "overcommit", "-o": "output", "-p": "partition", "-Q": "quiet", "-q": "qos",
    "-S": "core-spec", "-s": "oversubscribe", "-t": "time", "-v": "verbose", "-W": "wait", "-w": "nodelist",
    "-x": "exclude",
}  # fmt: skip
_UNDOCUMENTED: Final = {"tasks-per-node": "ntasks-per-node"}
"""Other words that `sbatch` takes, and many scripts have (`--tasks` for short)."""
_FLAGS: Final = frozenset({
    "contiguous", "exclusive", "get-user-env", "hold", "kill-on-invalid-dep", "no-kill", "no-requeue", "overcommit",
    "oversubscribe", "parsable", "quiet", "requeue", "spread-job", "test-only", "use-min-nodes", "verbose", "wait",
})  # fmt: skip
"""Options without a value; some may have one after `=`."""
_MORE: Final = frozenset({"mem-per-cpu", "mem-per-gpu", "gpus-per-task"})
"""Those that count with others."""
_PASSED_OVER: Final = frozenset({
    "contiguous", "delay-boot", "get-user-env", "no-kill", "overcommit", "oversubscribe", "parsable",
    "quiet", "spread-job", "switches", "use-min-nodes", "verbose", "wait-all-nodes",
})  # fmt: skip
"""They change nothing here: it is so anyway, or there is one node."""
_TYPED: Final = frozenset({"gpus", "gpus-per-node", "gpus-per-task", "gres"})
"""What may name a type of devices."""
_OF_EACH_NODE: Final = ("mincpus", "mem", "gpus-per-node", "gres")
"""What a job has on each of its nodes, beside tasks."""
_NUMBER: Final = r"\d{1,15}"
"""More digits mean nothing, and Python refuses to read thousands of them."""
_TIME = re.compile(rf"(?:({_NUMBER})-)?({_NUMBER})(?::({_NUMBER}))?(?::({_NUMBER}))?")
_MEMORY = re.compile(rf"({_NUMBER})([KMGTkmgt]?)[bB]?")
_ADVICE: Final = {
    "constraint": "say --node-selector NAME=VALUE, of what `fairlead nodes` shows",
    "exclude": "say --node-selector with what the right node has",
    "exclusive": "say --cpu and --memory of the whole node (`fairlead nodes`)",
    "reservation": "leave it out: a window (`fairlead maintenance ls`) says itself whose jobs it is for",
    "export-file": "say --env-file with NAME=VALUE lines",
    "clusters": "say --context on the command line",
    "uid": "a job runs as who submits it",
    "gid": "a job runs as who submits it",
}


def full_name(option: str) -> str:
    """The long name of an option, which may be cut short as Slurm allows; empty: there is none, or several."""
    if not option.startswith("--"):
        return _ONE_LETTER.get(option, "")
    known = {*_ONE_LETTER.values(), *_FLAGS, *_SAME, *_OTHERWISE, *_ADVICE, *_CORES, *_MAIL_OPTIONS, *_MORE}
    known |= _UNDOCUMENTED.keys()
    name = option.removeprefix("--")
    found = [name] if name in known else [each for each in known if each.startswith(name)]
    return _UNDOCUMENTED.get(found[0], found[0]) if len(found) == 1 else ""


def takes_value(name: str) -> bool:
    """Whether an option has one behind it."""
    return name not in _FLAGS


class Options:
    """The options of one script."""

    named: ClassVar = "#SBATCH"
    """How the lines begin."""
    anywhere: ClassVar = False
    """Whether they count after the first command too."""

    def __init__(self) -> None:
        self.unknown: list[str] = []
        """Those that mean nothing here: where, what, and what to do."""
        self.unlike_dependency = ""
        """That of them without which the job would not wait."""
        self._given: list[tuple[str, str, str, str]] = []
        self._texts: dict[str, str] = {}

    def add(self, words: Words, where: str) -> None:
        """Take the words of one line. Raises `Failure` (usage) where one of them is no option."""
        rest = list(words)
        while rest:
            word = rest.pop(0)
            if word in ("hetjob", "packjob"):
                raise wrong_usage(
                    f"{where}: {word}: a job has one part here; submit each as a job, or ask for all of it"
                )
            if not word.startswith("-") or word in ("-", "--"):
                raise wrong_usage(f"{where}: {word!r} is no option of sbatch")
            if word.startswith("--"):
                name, equals, value = word.removeprefix("--").partition("=")
                name = full_name(f"--{name}") or name
            else:
                name, value = _ONE_LETTER.get(word[:2], word[1:2]), word[2:].removeprefix("=")
                equals = value
            if not equals and name not in _FLAGS and rest and not rest[0].startswith("-"):
                value = rest.pop(0)
            self.take(name, value, where, f"--{name}={value}" if value else f"--{name}")

    def take(self, name: str, value: str, where: str, shown: str) -> None:
        """Take one option by its long name; `shown`: how it was written."""
        self._given.append((name, value, where, shown))
        self._texts[name] = value

    def translated(self, flags: frozenset[str]) -> Iterator[tuple[str, Words]]:
        """The place and the words of each option that means something here; `flags`: what `submit` knows."""
        for name, value, where, shown in self._given:
            if name == "mail-type" and (others := set(value.upper().split(",")) - _MAIL_TYPES):
                said = "a message comes at BEGIN, END and FAIL (ALL), and of parts with ARRAY_TASKS"
                self.unknown.append(f"{where}: --mail-type={','.join(sorted(others))}: {said}")
            advice = _ADVICE.get(name, "leave it out")
            try:
                words = self._words(name, value)
            except Unlike as unlike:
                words, advice = None, str(unlike)
            if words is None or any(each not in flags for each in words[::2]):
                self.unknown.append(f"{where}: {shown}: {advice}")
                if name == "dependency":
                    self.unlike_dependency = self.unknown[-1]
            elif words:
                if name in _TYPED and (kind := _type_of(name, value)):
                    said = f"devices are chosen by number alone, so {kind} is passed over"
                    self.unknown.append(f"{where}: {shown}: {said}")
                yield where, words

    def _words(self, name: str, value: str) -> Words | None:
        """In our words; empty: it changes nothing here; None: it means nothing here."""
        if name in _PASSED_OVER:
            return []
        if name in _SAME:
            return [_SAME[name], value]
        if name in _CORES:
            return ["--cpu", str(self._cores())] if self._is_first(name, _CORES) else []
        if name == "nodes":
            if value not in ("1", "1-1"):
                raise Unlike(f"a job runs on one node, {self._of_several_nodes()}")
            return []
        if name in ("mail-type", "mail-user"):
            return self._mail(name)
        if name == "gpus-per-task":
            return ["--gpu", str(self._devices())]
        if name in ("mem-per-cpu", "mem-per-gpu"):
            times = self._cores() if name == "mem-per-cpu" else self._devices()
            return ["--memory", f"{_mebibytes(value) * times}Mi"]
        translate = _OTHERWISE.get(name)
        return translate(value) if translate else None

    def _is_first(self, name: str, names: frozenset[str]) -> bool:
        """Whether this one of several options that mean one thing together was given first."""
        return next(each for each, *_ in self._given if each in names) == name

    def _tasks(self) -> int:
        return _number(self._texts.get("ntasks") or self._texts.get("ntasks-per-node") or "1")

    def _cores(self) -> int:
        """Of all tasks together, as Slurm counts them on one node."""
        cores = self._tasks() * _number(self._texts.get("cpus-per-task") or "1")
        if "cpus-per-gpu" in self._texts:
            cores = self._devices() * _number(self._texts["cpus-per-gpu"])
        return max(cores, _number(self._texts.get("mincpus") or "1"))

    def _of_several_nodes(self) -> str:
        """What becomes of that which Slurm gives on each of several nodes."""
        tasks = (
            [] if "ntasks" in self._texts else ["--ntasks-per-node" if "ntasks-per-node" in self._texts else "one task"]
        )
        once = [*tasks, *(f"--{name}" for name in _OF_EACH_NODE if name in self._texts)]
        said = f"so what each of several would have counts once ({', '.join(once)}): ask for all of it"
        return said if once else "with all its tasks"

    def _devices(self) -> int:
        """GPUs of all tasks together. Raises `Unlike` where it is not said how many."""
        if "gpus-per-task" in self._texts:
            return self._tasks() * int(_gpus(self._texts["gpus-per-task"])[1])
        said = self._texts.get("gpus") or self._texts.get("gpus-per-node")
        said = said or self._texts.get("gres", "").partition("gpu:")[2].partition(",")[0]
        if not said:
            raise Unlike("say --gpus as well")
        return int(_gpus(said)[1])

    def _mail(self, name: str) -> Words:
        """Both options together, once."""
        types = self._texts.get("mail-type", "").upper().split(",")
        events = [ours for theirs, ours in _MAIL.items() if {theirs, "ALL"} & set(types)]
        events += ["parts"] if events and "ARRAY_TASKS" in types else []
        if not events or not self._is_first(name, _MAIL_OPTIONS):
            return []
        return [
            "--notify",
            f"mail:{self._texts.get('mail-user') or getpass.getuser()}",
            "--notify-on",
            ",".join(events),
        ]


class Unlike(Exception):
    """A value that means nothing here; its text says what to do."""


def _number(text: str) -> int:
    if not re.fullmatch(_NUMBER, text, re.ASCII):
        raise Unlike("write a whole number")
    return int(text)


def _mebibytes(text: str) -> int:
    found = _MEMORY.fullmatch(text)
    if not found or not int(found[1]):
        raise Unlike("say --memory SIZE, such as 4Gi")
    return max(1, int(found[1]) * {"k": 1, "": 1024, "m": 1024, "g": 1024**2, "t": 1024**3}[found[2].lower()] // 1024)


def time_limit(text: str) -> Words:
    """`--time-limit` and its value, or nothing where there is no limit. Raises `Unlike`."""
    if text.lower() in ("unlimited", "infinite", "0"):
        return []
    found = _TIME.fullmatch(text)
    if not found:
        raise Unlike("say --time-limit TIME, such as 2h")
    days, first, second, third = (int(part) if part else 0 for part in found.groups())
    if found[1] is not None:  # days-hours[:minutes[:seconds]]
        seconds = ((days * 24 + first) * 60 + second) * 60 + third
    elif found[4] is not None:
        seconds = (first * 60 + second) * 60 + third
    else:
        seconds = first * 60 + second
    return ["--time-limit", f"{seconds}s"] if seconds else []


def _signal(text: str) -> Words:
    """`B:USR1@300`; `R:` is about reservations. `A:` is of ours, for other systems."""
    found = re.fullmatch(rf"(?:R?([AB]?)R?:)?(\w+)(@{_NUMBER})?", text, re.ASCII)
    if not found or not signal_number(found[2]):
        raise Unlike(
            "say --signal SIG@TIME, such as USR1@60, with a time limit; or let the script trap SIGTERM, which comes "
            "when its time is over, --grace before SIGKILL"
        )
    return ["--signal", f"{found[1] or ''}{':' if found[1] else ''}{found[2]}{found[3] or ''}"]


def _begin(text: str) -> Words:
    found = re.fullmatch(rf"now\+({_NUMBER})([a-z]*)", text)
    if not found:
        return ["--begin", text]
    if found[2][:1] not in ("", "s", "m", "h", "d", "w"):
        raise Unlike("say --begin TIME, such as now+1h")
    return [
        "--begin",
        f"now+{int(found[1]) * {'s': 1, '': 1, 'm': 60, 'h': 3600, 'd': 86400, 'w': 604800}[found[2][:1]]}s",
    ]


_CORES: Final = frozenset({"ntasks", "ntasks-per-node", "cpus-per-task", "cpus-per-gpu", "mincpus"})
_MAIL_OPTIONS: Final = frozenset({"mail-type", "mail-user"})
_MAIL: Final = {"BEGIN": "start", "END": "end", "FAIL": "fail"}
_MAIL_TYPES: Final = frozenset({*_MAIL, "ALL", "ARRAY_TASKS", "NONE"})
_AFTER: Final = {"after": "--after", "afterok": "--after-ok", "afterany": "--after-any", "afternotok": "--after-not-ok"}


def _dependency(text: str) -> Words:
    found: Words = []
    parts = text.split(",")
    for part in parts:
        kind, _, keys = part.partition(":")
        if part == "singleton":
            continue
        if kind == "aftercorr" and re.fullmatch(r"\w+", keys):
            found += ["--after-ok", f"{keys}.%a"]
            continue
        if kind not in _AFTER or not re.fullmatch(r"[\w.]+(:[\w.]+)*(\.%a)?", keys):
            raise Unlike("say --after, --after-ok, --after-any or --after-not-ok KEY; all that is given has to be so")
        # A part of an array is `12_7` in Slurm.
        found += [_AFTER[kind], re.sub(r"\b(\d+)_(\d+)\b", r"\1.\2", keys).replace(":", ",")]
    return [*found, "--singleton"] if "singleton" in parts else found


def _partition(text: str) -> Words:
    if "," in text:
        raise Unlike("a job is in one queue: say --queue QUEUE")
    return ["--queue", text]


def _nodelist(text: str) -> Words:
    if not re.fullmatch(r"[\w.-]+", text):
        raise Unlike("a job runs on one node: say --node-selector hostname=NODE")
    return ["--node-selector", f"hostname={text}"]


def _gpus(text: str) -> Words:
    """So many, of whatever type they are to be: `2`, `a100:2`, `a100`, several with commas."""
    counts = ["1" if part[:1].isalpha() and ":" not in part else part.rpartition(":")[2] for part in text.split(",")]
    return ["--gpu", str(sum(map(_number, counts)))]


def _type_of(name: str, text: str) -> str:
    """The first type of GPUs that the value of this option names; empty: none is."""
    parts = text.split(",")
    if name == "gres":
        parts = [part.removeprefix("gpu:") for part in parts if part.startswith("gpu:")]
    return next((part.partition(":")[0] for part in parts if part[:1].isalpha()), "")


def _file(option: str) -> Callable[[str], Words]:
    """The name of a file. What Slurm alone knows in it becomes what it would be: a job has one step, and one task."""

    def word(found: re.Match[str]) -> str:
        return {"J": f"%{found[1]}j", "s": "batch", "t": "0", "n": "0"}.get(found[2], found[0])

    def translate(text: str) -> Words:
        name = re.sub(r"%(\d*)(.)", word, text)
        try:
            return [option, checked(name)]
        except ValueError as problem:
            raise Unlike(str(problem)) from None

    return translate


def _gres(text: str) -> Words:
    found: Words = []
    for part in text.split(",") if text.lower() != "none" else ():
        name, _, rest = part.partition(":")
        found += _gpus(rest or "1") if name == "gpu" else ["--resource", f"{name}={_number(rest or '1')}"]
    return found


def _licences(text: str) -> Words:
    found: Words = []
    for part in text.split(","):
        name, _, count = part.partition(":")
        found += ["--resource", f"{name}={_number(count or '1')}"]
    return found


def _nice(text: str) -> Words:
    if not re.fullmatch(f"-?{_NUMBER}", text or "100"):
        raise Unlike("say --priority N")
    return ["--priority", str(-int(text or "100"))]


_SAME: Final = {
    "chdir": "--cwd",
    "export": "--export",
    "job-name": "--name",
    "open-mode": "--open-mode",
    "priority": "--priority",
    "qos": "--priority-class",
    "array": "--array",
}
_OTHERWISE: Final[dict[str, Callable[[str], Words]]] = {
    "account": lambda text: ["--tag", f"account={text}"],
    "begin": _begin,
    "comment": lambda text: ["--tag", f"comment={text}"],
    "dependency": _dependency,
    "error": _file("--error"),
    "gpus": _gpus,
    "gpus-per-node": _gpus,
    "gres": _gres,
    "input": _file("--stdin"),
    "output": _file("--output"),
    "extra": lambda text: ["--tag", f"extra={text}"],
    "hold": lambda _: ["--hold"],
    "kill-on-invalid-dep": lambda text: ["--on-never", "wait" if text == "no" else "cancel"],
    "licenses": _licences,
    "mem": lambda text: ["--memory", f"{_mebibytes(text)}Mi"],
    "nice": _nice,
    "nodelist": _nodelist,
    "no-requeue": lambda _: ["--retry", "0"],
    "partition": _partition,
    "requeue": lambda _: ["--retry", "100", "--no-retry-on", "any"],  # As many as the built-in queue file lets.
    "signal": _signal,
    "time": time_limit,
    "wait": lambda _: ["--wait"],
    "wckey": lambda text: ["--tag", f"wckey={text}"],
}
