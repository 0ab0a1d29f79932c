"""Options of `bsub` in scripts for LSF (`#BSUB`), in the words of `sbatch`.

Decides which word of `sbatch` each is. Never says what that means here: `sbatch` does. Invariant: an option becomes a
word of `sbatch`, is passed over because it changes nothing here, or is named with what to write instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import ClassVar, Final

from fairlead.cli import qsub, sbatch
from fairlead.cli.app import wrong_usage
from fairlead.cli.qsub import Pairs
from fairlead.cli.sbatch import Unlike

_SECTION = re.compile(r"(\w+)\[([^]]*)\]")
_CONDITION = re.compile(r"(done|ended|exit|started)\((\d+(?:\[\d+\])?)\)")
_AFTER: Final = {"done": "afterok", "ended": "afterany", "exit": "afternotok", "started": "after"}
_MEMORY: Final = "say #FAIRLEAD --memory SIZE of the whole job: its unit, and whether it is for each core, differ"
_WORDS: Final = {
    "-q": "partition", "-P": "account", "-m": "nodelist", "-u": "mail-user", "-sp": "priority", "-cwd": "chdir",
    "-Jd": "comment", "-n": "ntasks", "-nnodes": "nodes", "-G": "gid", "-U": "reservation",
}  # fmt: skip
_FLAGS: Final = {
    "-x": ("exclusive", ""), "-r": ("requeue", ""), "-rn": ("no-requeue", ""), "-H": ("hold", ""), "-K": ("wait", ""),
    "-B": ("mail-type", "BEGIN"), "-N": ("mail-type", "END"), "-Ne": ("mail-type", "FAIL"),
}  # fmt: skip
_FILES: Final = {"-o": "output", "-oo": "output", "-e": "error", "-eo": "error", "-i": "input", "-is": "input"}
_INTERACTIVE: Final = frozenset({"-I", "-Ip", "-Is", "-IS", "-XF"})


class Options(sbatch.Options):
    """The options of one script for LSF."""

    named: ClassVar = "#BSUB"

    def __init__(self) -> None:
        super().__init__()
        self._last: dict[str, tuple[str, str, str]] = {}
        """What several options settle: memory (the largest), and of what there are messages."""

    def add(self, words: list[str], where: str) -> None:
        """Take the words of one line. Raises `Failure` (usage) where one of them is no option."""
        rest = list(words)
        while rest:
            option, value = rest.pop(0), ""
            if not re.match("-[A-Za-z]", option):
                raise wrong_usage(f"{where}: {option!r} is no option of bsub")
            if attached := re.fullmatch(r"(-[nWM])(\d.*)", option):
                option, value = attached[1], attached[2]
            elif rest and not re.match("-[A-Za-z]", rest[0]) and option not in _FLAGS:
                value = rest.pop(0)
            shown = f"{option} {value}".rstrip()
            try:
                for name, text in _meant(option, value):
                    if name:
                        self.take(name, text, where, shown)
                    else:
                        self.unknown.append(f"{where}: {shown}: {text}")
            except Unlike as unlike:
                self.unknown.append(f"{where}: {shown}: {unlike}")

    def take(self, name: str, value: str, where: str, shown: str) -> None:
        """As of `sbatch`."""
        said = self._last.get(name, ("",))[0]
        if name == "signal":  # Which comes from one option, and how long before from another.
            self._last[name] = ("".join(sorted((said, value), key=lambda part: part[:1] == "@")), where, shown)
        elif name == "mail-type":
            self._last[name] = (f"{said},{value}".lstrip(","), where, shown)
        elif name != "mem":
            super().take(name, value, where, shown)
        elif int(value[:-1]) > int(said[:-1] or "0"):
            self._last[name] = (value, where, shown)

    def translated(self, flags: frozenset[str]) -> Iterator[tuple[str, list[str]]]:
        """As of `sbatch`, once all lines were taken."""
        for name, (value, where, shown) in self._last.items():
            if name == "mem" and self._texts.get("ntasks", "1") != "1":  # Of each slot, or of all of them.
                self.unknown.append(f"{where}: {shown}: {_MEMORY}")
            else:
                super().take(name, f"A:{value}" if name == "signal" else value, where, shown)
        return super().translated(flags)


def _meant(option: str, value: str) -> Pairs:
    if option in _FLAGS:
        yield _FLAGS[option]
    elif option in _INTERACTIVE:
        raise Unlike("say: fairlead run --pty -- bash")
    elif not value:
        raise Unlike("leave it out")
    elif option in _WORDS:
        yield _WORDS[option], value
    elif option in _FILES:
        # Here `%J` is the key of the array, and of a job that is in none its own.
        name = re.sub("%([JI])", lambda found: {"J": "%A", "I": "%a"}[found[1]], value)
        yield _FILES[option], f"{name}%j.{option[1:4]}" if name.endswith("/") else name
        if option in ("-o", "-e"):
            yield "open-mode", "append"
    elif option in _OTHERWISE:
        yield from _OTHERWISE[option](value)
    elif option != "-L":  # The first line of the script says it.
        raise Unlike("leave it out")


def _name(value: str) -> Pairs:
    """`train[1-10]%2`."""
    name, bracket, rest = value.partition("[")
    if name:
        yield "job-name", name
    if bracket:
        yield "array", rest.replace("]", "")


def _limit(value: str) -> Pairs:
    yield "time", f"0:0:{_seconds(value, '--time-limit TIME, such as 2h')}"


def _warning_time(value: str) -> Pairs:
    yield "signal", f"@{_seconds(value, '--signal SIG@TIME, such as USR2@5m')}"


def _seconds(value: str, ours: str) -> int:
    """Of hours and minutes, or of minutes alone."""
    found = re.fullmatch(r"(?:(\d{1,9}):)?(\d{1,9})(?:/.*)?", value, re.ASCII)
    if not found:
        raise Unlike(f"say #FAIRLEAD {ours}")
    return (int(found[1] or 0) * 60 + int(found[2])) * 60


def _memory(value: str) -> Pairs:
    if not re.search("[A-Za-z]", value):
        raise Unlike(_MEMORY)
    yield "mem", qsub.kibibytes(value)


def _needs(value: str) -> Pairs:
    """`rusage[mem=4GB] span[hosts=1]`."""
    if value and not _SECTION.search(value):
        yield "constraint", value
    for section, text in _SECTION.findall(value):
        if section == "rusage":
            for item in re.split("[,:]", text):
                name, _, amount = item.strip().partition("=")
                try:
                    yield from _memory(amount) if name == "mem" else iter([("", f"{name}: {qsub.DECLARED}")])
                except Unlike as unlike:
                    yield "", str(unlike)
        elif section == "select" and not re.fullmatch(r"\s*mem\s*>=?[^&|]*", text):
            yield "constraint", text
        elif section in ("affinity", "cu"):
            yield "", "leave it out; #FAIRLEAD --cpu N says how many cores the job needs in all"


def _devices(value: str) -> Pairs:
    found = re.search(r"\bnum=(\d+)", value)
    yield "gpus", found[1] if found else "1"
    if "gmodel" in value:
        yield "", "devices are chosen by number alone, so gmodel is passed over"


def _conditions(value: str) -> Pairs:
    parts = [_CONDITION.fullmatch(part.strip()) for part in value.split("&&")]
    said = [f"{_AFTER[part[1]]}:{part[2].replace('[', '.').rstrip(']')}" for part in parts if part]
    yield "dependency", ",".join(said) if len(said) == len(parts) else value


def _environment(value: str) -> Pairs:
    if "~" in value:
        raise Unlike("say #FAIRLEAD --export with the names that are to go along")
    yield "export", re.sub(r"\s*,\s*", ",", value)


def _begin(value: str) -> Pairs:
    if not re.fullmatch(r"\d{1,2}:\d\d", value, re.ASCII):
        raise Unlike("say #FAIRLEAD --begin TIME, such as 16:00 or 2026-03-01T08:00")
    yield "begin", value.zfill(5)


_OTHERWISE: Final = {
    "-J": _name, "-W": _limit, "-M": _memory, "-R": _needs, "-gpu": _devices, "-w": _conditions, "-env": _environment,
    "-b": _begin, "-wa": lambda value: iter([("signal", value)]), "-wt": _warning_time,
}  # fmt: skip
