"""Options of `qsub` in scripts for PBS, TORQUE (`#PBS`) and Grid Engine (`#$`), in the words of `sbatch`.

Decides which word of `sbatch` each is. Never says what that means here: `sbatch` does. Invariant: an option becomes a
word of `sbatch`, is passed over because it changes nothing here, or is named with what to write instead.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ClassVar, Final

from fairlead.cli import sbatch
from fairlead.cli.app import wrong_usage
from fairlead.cli.sbatch import Unlike

Pairs = Iterator[tuple[str, str]]
"""Options of `sbatch`, with their values; one without a name is what to say of a part that means nothing here."""
_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,6})?)([kKmMgGtT]?)([bBwW]?)")
_UNITS: Final = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_MAIL: Final = {"b": "BEGIN", "e": "END", "a": "FAIL", "s": "suspended", "n": "NONE", "p": "NONE", "f": "FAIL"}
_NODE_SELECTOR: Final = "say --node-selector NAME=VALUE (`fairlead nodes`), or leave it out"
DECLARED: Final = "say --resource NAME=N (`fairlead nodes`), or leave it out"


class Pbs(sbatch.Options):
    """The options of one script for PBS or TORQUE."""

    named: ClassVar = "#PBS"
    _parts: ClassVar = {"JOBID": "%j", "JOBNAME": "%x", "ARRAYID": "%a", "ARRAY_INDEX": "%a"}
    """Variables in the names of files: `$PBS_JOBID`."""
    _variable: ClassVar = re.compile(r"\$\{?PBS_([A-Z_]+)\}?|\^array_index\^()")
    _alone: ClassVar = frozenset({"-V", "-I", "-X", "-x", "-z", "-f", "-h"})
    """Options without a value."""

    def __init__(self) -> None:
        super().__init__()
        self._files: dict[str, tuple[str, str, str]] = {}
        self._joined = ""

    def add(self, words: list[str], where: str) -> None:
        """Take the words of one line. Raises `Failure` (usage) where one of them is no option."""
        for option, value in self._split(list(words), where):
            shown = f"{option} {value}".rstrip()
            try:
                if not value and option not in self._alone:
                    raise Unlike("it has no value; leave it out")
                for name, text in self._meant(option, value):
                    if not name:
                        self.unknown.append(f"{where}: {shown}: {text}")
                    elif name in ("output", "error"):
                        self._files[name] = (self._file(text, f"%x.{name[0]}%j"), where, shown)
                    else:
                        self.take(name, text, where, shown)
            except Unlike as unlike:
                self.unknown.append(f"{where}: {shown}: {unlike}")

    def translated(self, flags: frozenset[str]) -> Iterator[tuple[str, list[str]]]:
        """As of `sbatch`, once all lines were taken."""
        if self._joined == "eo":
            self._files = {"output": self._files["error"]} if "error" in self._files else {}
        elif self._joined:
            self._files.pop("error", None)
        for name, (text, where, shown) in self._files.items():
            self.take(name, text, where, shown)
        return super().translated(flags)

    def _split(self, rest: list[str], where: str) -> Iterator[tuple[str, str]]:
        """Each option with its value, which may stand in the same word."""
        while rest:
            word = rest.pop(0)
            if not re.match("-[A-Za-z]", word):
                raise wrong_usage(f"{where}: {word!r} is no option of qsub")
            option, value = word[:2], word[2:]
            if option not in self._alone and not value and rest:
                value = rest.pop(0)
            if option == "-l":
                yield from ((option, item) for item in value.split(","))
            else:
                yield option, value

    def _meant(self, option: str, value: str) -> Pairs:
        if option == "-l":
            name, _, amount = value.partition("=")
            yield from self._resource(name, amount)
        elif option == "-W":
            yield from _attribute(value)
        elif option == "-j":
            self._joined = "" if value == "n" else "eo" if value.startswith("e") else "oe"
        else:
            found = _PBS.get(option) or _BOTH.get(option)
            if found is None:
                raise Unlike("leave it out")
            yield from found(value)

    def _file(self, text: str, usual: str) -> str:
        """The name of a file as `sbatch` writes it; in a directory the usual one."""

        def word(found: re.Match[str]) -> str:
            name = found[1] or ("ARRAY_INDEX" if found[2] == "" else "")
            return self._parts.get(name, found[0])

        name = re.sub(r"^[\w.-]*:", "", text).replace("%", "%%")
        name = self._variable.sub(word, name)
        name = re.sub(r"\$(?:HOME\b|\{HOME\})", str(Path.home()), name)
        name = re.sub(r"\$(?:USER\b|\{USER\})", "%u", name)
        if "$" in name:
            raise Unlike("variables in it are not looked up; write the name, with %j for the key and %x for the name")
        return f"{name.rstrip('/')}/{usual}" if name.endswith("/") or Path(name).is_dir() else name

    def _resource(self, name: str, amount: str) -> Pairs:
        if name == "walltime":
            yield "time", seconds(amount)
        elif name == "select":
            yield from _select(amount)
        elif name == "nodes":
            yield from _nodes(amount)
        elif name == "place":
            if "excl" in amount:
                yield "exclusive", ""
        elif name in ("mem", "pmem"):
            yield {"mem": "mem", "pmem": "mem-per-cpu"}[name], kibibytes(amount)
        elif name in ("ncpus", "procs"):
            yield "ntasks", amount
        elif name in _GPUS:
            yield "gpus", amount or "1"
        elif name in ("qos", "nice"):
            yield name, amount
        elif name in ("host", "vnode"):
            yield "nodelist", amount
        elif name in ("vmem", "pvmem", "file", "cput", "pcput"):
            raise Unlike("say walltime and mem, or leave it out")
        else:
            raise Unlike(DECLARED if amount.isdecimal() else _NODE_SELECTOR)


_GPUS: Final = frozenset({"ngpus", "gpus", "gpu", "ngpu", "gpu_card"})


def seconds(text: str) -> str:
    """`hours:minutes:seconds`, or seconds alone, as `sbatch` writes it. Raises `Unlike`."""
    parts = text.split(":")
    if len(parts) > 3 or not all(re.fullmatch(r"\d{0,15}", part, re.ASCII) for part in parts) or text.strip(":") == "":
        raise Unlike("say --time-limit TIME, such as 2h")
    return ":".join([*["0"] * (3 - len(parts)), *(part or "0" for part in parts)])


def kibibytes(text: str) -> str:
    """A size as `sbatch` writes it; a number alone is bytes. Raises `Unlike`."""
    found = _SIZE.fullmatch(text)
    if not found:
        raise Unlike("say --memory SIZE, such as 4Gi")
    size = float(found[1]) * _UNITS[found[2].lower()] * (8 if found[3] in ("w", "W") else 1)
    return f"{max(1, int(size) >> 10)}K"


def _select(text: str) -> Pairs:
    """One chunk of PBS: `1:ncpus=8:mem=16gb:ngpus=1`."""
    count, *items = text.split(":")
    if "+" in text or not count.isdecimal():
        raise Unlike("a job runs on one node: say select=1, with all that it needs")
    if count != "1":
        yield "nodes", count
    cores = "1"
    for name, _, amount in (item.partition("=") for item in items):
        if name == "ncpus":
            cores = amount
        elif name == "mem":
            yield "mem", kibibytes(amount)
        elif name in _GPUS:
            yield "gpus", amount
        elif name in ("host", "vnode"):
            yield "nodelist", amount
        elif name not in ("mpiprocs", "ompthreads"):
            yield "", f"{name}: {_NODE_SELECTOR}"
    yield "ntasks", cores


def _nodes(text: str) -> Pairs:
    """Nodes of TORQUE: `1:ppn=4:gpus=1`."""
    count, *items = text.split(":")
    if "+" in text:
        raise Unlike("a job runs on one node: say nodes=1:ppn=N")
    if count.isdecimal():
        yield "nodes", count
    else:
        yield "nodelist", count
    for name, _, amount in (item.partition("=") for item in items):
        if name in ("ppn", "ncpus"):
            yield "ntasks-per-node", amount
        elif name in _GPUS:
            yield "gpus", amount
        else:
            yield "", f"{name}: {_NODE_SELECTOR}"


def _attribute(text: str) -> Pairs:
    """`-W` of PBS: `depend=afterok:12`."""
    name, _, value = text.partition("=")
    if name == "depend":
        # A key may have the name of a server behind it: `12.host`.
        yield "dependency", re.sub(r":(\d+)(?:\[\])?\.[A-Za-z][\w.-]*", r":\1", value)
    elif name == "block":
        yield from [("wait", "")] if value == "true" else []
    elif name == "umask":
        raise Unlike(f"say #FAIRLEAD --umask {value}")
    elif name == "group_list":
        raise Unlike("a job runs as who submits it")
    else:
        raise Unlike("leave it out")


def _only(pattern: str, name: str, advice: str) -> Callable[[str], Pairs]:
    """An option of one word, where its value is of this form."""

    def meant(value: str) -> Pairs:
        if not re.fullmatch(pattern, value):
            raise Unlike(advice)
        yield name, value

    return meant


def _mail(value: str) -> Pairs:
    if unknown := set(value.lower()) - {*_MAIL, ","}:
        raise Unlike(f"there is no {''.join(sorted(unknown))!r}; say --notify and --notify-on in a #FAIRLEAD line")
    yield "mail-type", ",".join(dict.fromkeys(_MAIL[letter] for letter in value.lower() if letter != ","))


def _begin(value: str) -> Pairs:
    if not (found := re.fullmatch(r"(\d\d)(\d\d)(?:\.(\d\d))?", value)):
        raise Unlike("say #FAIRLEAD --begin TIME, such as 16:00 or 2026-03-01T08:00")
    yield "begin", f"{found[1]}:{found[2]}"


def _said(advice: str) -> Callable[[str], Pairs]:
    def refuse(_: str) -> Pairs:
        raise Unlike(advice)

    return refuse


def _word(name: str) -> Callable[[str], Pairs]:
    return lambda value: iter([(name, value)])


def _nothing(_: str) -> Pairs:
    return iter(())


_BOTH: Final[dict[str, Callable[[str], Pairs]]] = {
    "-A": _word("account"),
    "-P": _word("account"),
    "-N": _word("job-name"),
    "-M": _word("mail-user"),
    "-m": _mail,
    "-V": lambda _: iter([("export", "all")]),
    "-v": _word("export"),
    "-h": _word("hold"),
    "-p": _word("priority"),
    "-r": lambda value: iter([("requeue" if value.startswith("y") else "no-requeue", "")]),
    "-a": _begin,
    "-q": _only(r"[\w.-]+", "partition", "a job is in one queue: say #FAIRLEAD --queue QUEUE"),
    "-o": _word("output"),
    "-e": _word("error"),
    "-S": _nothing,  # The first line of the script says it.
}
_PBS: Final[dict[str, Callable[[str], Pairs]]] = {
    "-d": _word("chdir"),
    "-w": _word("chdir"),
    "-J": _word("array"),
    "-t": _word("array"),
    "-k": _nothing,
    "-z": _word("quiet"),
    "-I": _said("say: fairlead run --pty -- bash"),
    "-u": _said("a job runs as who submits it"),
    "-C": _said("lines begin with #PBS here"),
}


class GridEngine(Pbs):
    """The options of one script for Grid Engine."""

    named: ClassVar = "#$"
    anywhere: ClassVar = True
    _parts: ClassVar = {"JOB_ID": "%j", "JOB_NAME": "%x", "TASK_ID": "%a", "HOSTNAME": "%N"}
    _variable: ClassVar = re.compile(r"\$\{?(JOB_ID|JOB_NAME|TASK_ID|HOSTNAME)\b\}?")

    _alone: ClassVar = frozenset({"-cwd", "-V", "-terse", "-notify", "-hard", "-soft", "-clear"})

    def __init__(self) -> None:
        super().__init__()
        self._last: dict[str, tuple[str, ...]] = {}
        """What is settled by several options: memory for each slot (the largest), the tasks and how many at once."""

    def take(self, name: str, value: str, where: str, shown: str) -> None:
        """As of `sbatch`."""
        if name == "mem-per-cpu" and int(value[:-1]) <= int(self._last.get(name, ("0K",))[0][:-1]):
            return
        if name in ("mem-per-cpu", "array", _AT_ONCE):
            self._last[name] = (value, where, shown)
        else:
            super().take(name, value, where, shown)

    def translated(self, flags: frozenset[str]) -> Iterator[tuple[str, list[str]]]:
        """As of `sbatch`, once all lines were taken."""
        at_once = self._last.pop(_AT_ONCE, ("",))[0]
        for name, (value, where, shown) in self._last.items():
            super().take(name, f"{value}%{at_once}" if name == "array" and at_once else value, where, shown)
        return super().translated(flags)

    def _split(self, rest: list[str], where: str) -> Iterator[tuple[str, str]]:
        while rest:
            option, values = rest.pop(0), []
            if not re.match("-[A-Za-z]", option):
                raise wrong_usage(f"{where}: {option!r} is no option of qsub")
            while option not in self._alone and rest and re.match(r"[^-]|-\d", rest[0]):
                values.append(rest.pop(0))
            yield from (
                ((option, item) for item in ",".join(values).split(","))
                if option == "-l"
                else ((option, " ".join(values)),)
            )

    def _meant(self, option: str, value: str) -> Pairs:
        if option in _GRID_ENGINE:
            return _GRID_ENGINE[option](value)
        if option in ("-J", "-W", "-w", "-d", "-k", "-I", "-u", "-C", "-z"):
            raise Unlike("leave it out")
        return super()._meant(option, value)

    def _resource(self, name: str, amount: str) -> Pairs:
        if name in ("h_rt", "time"):
            yield "time", seconds(amount)
        elif name in _FOR_EACH_SLOT:
            yield "mem-per-cpu", kibibytes(amount)
        elif name in _GPUS:
            yield "gpus", amount or "1"
        elif name in ("h", "hostname", "q", "qname"):
            yield "nodelist" if name.startswith("h") else "partition", amount
        elif name == "s_rt":
            raise Unlike("say h_rt, and #FAIRLEAD --grace for how long it may go on after SIGTERM")
        else:
            raise Unlike(DECLARED if amount.isdecimal() else _NODE_SELECTOR)


_AT_ONCE: Final = "tc"
_FOR_EACH_SLOT: Final = frozenset({
    "h_vmem", "mem_free", "m_mem_free", "h_data", "h_rss", "mem", "memory", "mem_per_core", "mem_requested", "vf",
    "virtual_free", "s_vmem", "tmem",
})  # fmt: skip


def _slots(value: str) -> Pairs:
    """`-pe smp 4`."""
    count = value.rpartition(" ")[2]
    if not count.isdecimal():
        raise Unlike("say #FAIRLEAD --cpu N")
    yield "ntasks", count


def _yes(name: str) -> Callable[[str], Pairs]:
    return lambda value: iter([(name, "")] if value.startswith("y") else [])


_GRID_ENGINE: Final[dict[str, Callable[[str], Pairs]]] = {
    **dict.fromkeys(("-cwd", "-b", "-terse", "-R", "-w", "-now", "-shell", "-clear", "-hard"), _nothing),
    "-wd": _word("chdir"),
    "-i": _word("input"),
    "-pe": _slots,
    "-t": _word("array"),
    "-tc": _word(_AT_ONCE),
    "-hold_jid": lambda value: iter([("dependency", f"afterany:{value.replace(',', ':')}")]),
    "-hold_jid_ad": lambda value: iter([("dependency", f"afterany:{value}.%a")]),
    "-sync": _yes("wait"),
    "-notify": _word("signal"),
}
