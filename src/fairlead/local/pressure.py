"""Short of memory: how much is left on this machine, which job has to go, and when.

Decides which of the kernel's figures counts (what can still be used without swapping, and not more than the control
groups above this service leave; with a budget only what the jobs themselves use), and who goes by measured figures
alone. Never stops anything. The order: 1. a job that uses more than it asked for before one that does not; 2. lower
priority first; 3. the more it uses above its request, relative to the request, the sooner; 4. the younger first. A job
within its request is taken as a last resort alone: when none is above its request and memory has all but run out.
Invariants: one victim at a time; none is told to stop before the one that was told before it is gone and memory was
measured again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from pathlib import Path

from fairlead.core.model.quantities import QuantityError, format_bytes, parse_quantity
from fairlead.local.devices import Hierarchies

LOOKS = 2
"""So many measurements in a row must say the same before anything is done about it."""
LAST_RESORT = 4
"""What is left is a quarter of the threshold: the kernel is about to choose by itself."""
ENOUGH = Fraction(5, 4)
"""It is over when so much of the threshold is free again: no back and forth around one value."""
PER_MILLE = 1000


@dataclass(frozen=True, slots=True)
class Threshold:
    """How much must stay free: bytes, or a part of what there is in thousandths. Both 0: nobody looks."""

    amount: int = 0
    per_mille: int = 0

    def of(self, total: int) -> int:
        """In bytes, of a machine with so many."""
        return max(self.amount, total * self.per_mille // PER_MILLE)

    def __bool__(self) -> bool:
        return bool(self.amount or self.per_mille)


def parse_threshold(text: str) -> Threshold:
    """`5%`, `0.5%`, `512Mi` or `off`. Raises ValueError with a sentence for anything else."""
    word = text.strip().lower()
    if word == "off":
        return Threshold()
    part = re.fullmatch(r"(\d{1,2})(?:\.(\d))?\s*%", word)
    if part:
        threshold = Threshold(per_mille=int(part[1]) * 10 + int(part[2] or 0))
    else:
        try:
            threshold = Threshold(amount=parse_quantity("memory", text.strip()))
        except QuantityError:
            threshold = Threshold()
    if not threshold:
        raise ValueError(f"{text!r} is no threshold; write a part such as 5%, an amount such as 512Mi, or off")
    return threshold


@dataclass(frozen=True, slots=True)
class Memory:
    """What there is and what of it can still be used, in bytes."""

    total: int
    available: int
    stalled: float | None = None
    """The part of the last ten seconds in which some process waited for memory, in percent; None: not measured."""


@dataclass(frozen=True, slots=True)
class Use:
    """What one running job uses, in bytes."""

    key: str
    priority: int
    request: int
    """0: it asked for none, so that all it uses is above its request."""
    used: int
    started_ms: int

    @property
    def above(self) -> int:
        """How much more than its request it uses; 0 or less: it is within it."""
        return self.used - self.request

    @property
    def part_above(self) -> Fraction:
        """That, relative to its request; to one byte where it asked for none."""
        return Fraction(self.above, max(self.request, 1))


@dataclass(frozen=True, slots=True)
class Victim:
    """The job that is told to stop, and why it."""

    use: Use
    last_resort: bool
    sentence: str


def order(uses: Sequence[Use]) -> list[Use]:
    """Who would have to go, the first one first; those that use nothing never."""
    return sorted(
        (use for use in uses if use.used > 0),
        key=lambda use: (
            use.above <= 0,
            use.priority,
            -use.part_above if use.above > 0 else Fraction(-use.used),
            -use.started_ms,
            use.key,
        ),
    )


def choose(uses: Sequence[Use], memory: Memory, least: int) -> Victim | None:
    """The job that has to go now, with `least` bytes to be kept free; None: none (what is short is used by others).

    One within its request goes only if none is above its own and a quarter of `least` is all that is left.
    """
    found = order(uses)
    if not found:
        return None
    first = found[0]
    if first.above <= 0 and memory.available * LAST_RESORT > least:
        return None
    return Victim(first, first.above <= 0, _sentence(first, memory, least))


def hurry(leaving: Sequence[Use], memory: Memory, least: int) -> Victim | None:
    """Of those that were told to stop already the one that has no time for that any more; None: none uses anything."""
    found = order(leaving)
    if not found:
        return None
    what = f"told to stop before, and has less time for that now, because it uses {format_bytes(found[0].used)}"
    return Victim(found[0], False, f"{what}; {_short(memory, least)}")


def _sentence(use: Use, memory: Memory, least: int) -> str:
    used, request = format_bytes(use.used), format_bytes(use.request)
    if use.above <= 0:
        what = (
            f"told to stop as a last resort, though it is within its request ({used} of {request}): "
            "no other uses more than it asked for, and next the kernel would kill something"
        )
    elif use.request:
        what = f"told to stop because it uses {used}, more than its request of {request}"
    else:
        what = f"told to stop because it uses {used} and asked for none"
    return f"{what}; {_short(memory, least)}"


def _short(memory: Memory, least: int) -> str:
    free = format_bytes(memory.available)
    total, shall = format_bytes(memory.total), format_bytes(least)
    short = f"the machine is short of memory: {free} of {total} are left, {shall} shall be"
    if memory.stalled:
        short += f"; in the last ten seconds processes had to wait for memory for {memory.stalled:g} % of the time"
    return short


class Step(Enum):
    """What there is to do after a measurement."""

    NOTHING = "nothing"
    BEGIN = "begin"
    """Memory is short from now on: nothing new shall start."""
    CHOOSE = "choose"
    """Somebody has to go."""
    END = "end"
    """There is enough again."""


class Watch:
    """What the measurements so far come to."""

    def __init__(self, threshold: Threshold, short: bool = False) -> None:
        """`short`: memory was short when somebody last looked, before a restart."""
        self.threshold, self.short = threshold, short
        self._below = self._above = 0
        self._leaving: str | None = None

    def told_to_stop(self, run: str) -> None:
        """This run was told to stop; until it is gone nobody else is."""
        self._leaving, self._below = run, 0

    def take_back(self, step: Step) -> None:
        """A step that was given could not be taken: the measurements begin anew."""
        if step is not Step.CHOOSE:
            self.short = step is Step.END
        self._below = self._above = 0

    def look(self, memory: Memory, running: Sequence[str]) -> Step:
        """Take one measurement; `running` are the runs that are still on the machine."""
        least = self.threshold.of(memory.total)
        below, enough = memory.available < least, memory.available >= least * ENOUGH
        self._below, self._above = (self._below + 1 if below else 0), (self._above + 1 if enough else 0)
        if self._leaving is not None:
            if self._leaving in running:
                self._below = 0
                return Step.NOTHING
            # What it gave back shows only now: look afresh.
            self._leaving, self._below = None, int(below)
        if self._below >= LOOKS:
            if self.short:
                return Step.CHOOSE
            self.short = True
            return Step.BEGIN
        if self.short and self._above >= LOOKS:
            self.short = False
            return Step.END
        return Step.NOTHING


NO_LIMIT = 1 << 62
LIMITS = (
    ("memory.max", "memory.current", "inactive_file"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)
"""Versions 2 and 1 of the control groups: the bound, what is used of it, and the part of that which is given back."""


def of_budget(budget: int, used: Iterable[int]) -> Memory:
    """What jobs have left of a budget of so many bytes that is theirs."""
    return Memory(budget, max(0, budget - sum(used)))


def of_machine(hierarchies: Hierarchies, proc: Path = Path("/proc")) -> Memory | None:
    """What the machine has left, or the tightest control group above this service; None if nobody can tell."""
    figures = _meminfo(proc)
    total, available = figures.get("MemTotal"), figures.get("MemAvailable")
    if total is None or available is None:
        return None
    memory = Memory(total, available, _stalled(proc))
    for directory in hierarchies.upwards("memory"):
        group = _of_group(directory)
        if group is not None and group.total < total and group.available < memory.available:
            memory = Memory(group.total, group.available, memory.stalled)
    return memory


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []


def _meminfo(proc: Path) -> dict[str, int]:
    found = {}
    for line in _lines(proc / "meminfo"):
        name, _, rest = line.partition(":")
        words = rest.split()
        if len(words) == 2 and words[1] == "kB" and words[0].isdecimal():
            found[name] = int(words[0]) * 1024
    return found


def _of_group(directory: Path) -> Memory | None:
    for bound, usage, cache in LIMITS:
        most, used = (_number(_lines(directory / name)) for name in (bound, usage))
        if most is not None and used is not None and most < NO_LIMIT:
            given_back = _number(
                line.removeprefix(f"{cache} ")
                for line in _lines(directory / "memory.stat")
                if line.startswith(f"{cache} ")
            )
            # File pages that nobody used lately are given back before anything else happens.
            return Memory(most, max(0, most - used + (given_back or 0)))
    return None


def _number(lines: Iterable[str]) -> int | None:
    """The number in the first line, if it is one."""
    text = next(iter(lines), "").strip()
    return int(text) if text.isdecimal() else None


def _stalled(proc: Path) -> float | None:
    """`some avg10` of the kernel's own account of processes that wait for memory."""
    some = next((line for line in _lines(proc / "pressure" / "memory") if line.startswith("some ")), "")
    values = (word.removeprefix("avg10=") for word in some.split() if word.startswith("avg10="))
    return next((float(value) for value in values), None)
