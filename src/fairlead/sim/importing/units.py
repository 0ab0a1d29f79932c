"""Units of a column: what its numbers count, from its name, from how they are written, and from how large they are.

Decides the unit and whether that is known or guessed. Never changes a value. Invariant: what is only told by size is
never called known; a column of which two in five texts cannot be read in any way is none of this kind.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC
from enum import StrEnum
from itertools import pairwise
from math import log2
from statistics import median
from typing import Any

from fairlead.sim.importing.quantities import (
    CLOCKS,
    CORES,
    DURATIONS,
    EXCEL,
    ISO,
    MEMORY,
    Unreadable,
    bytes_of,
    cores_of,
    duration_of,
    moment_of,
    number_of,
    whole_of,
)

NOTHING = ("", "-", "--", "none", "null")
"""Texts that say that there is none."""
NONE = (
    *NOTHING,
    "unknown",
    "undefined",
    "none assigned",
    "n/a",
    "na",
    "nan",
    "unlimited",
    "partition_limit",
    "nat",
    "invalid",
)
"""Texts that say that nothing is known, in lower case."""
ENOUGH = 0.6
"""The part of the texts that must be of a kind: files are messy, and errors are said later, with their lines."""


class Kind(StrEnum):
    """What a field of a task is."""

    MOMENT = "a moment"
    DURATION = "a duration"
    CORES = "cores"
    MEMORY = "memory"
    WHOLE = "a whole number"
    TEXT = "a text"


@dataclass(frozen=True, slots=True)
class Unit:
    """What the numbers of a column count."""

    name: str
    known: bool = True
    """False: guessed."""


AS_IT_IS = Unit("")
NUMBERS = "whole numbers"
"""Of texts that a spreadsheet took for numbers: all end in `.0`, which is left out."""
_WITH_A_DOT = re.compile(r"\d+\.0")
UNITS: dict[Kind, tuple[str, ...]] = {
    Kind.MOMENT: (*DURATIONS, EXCEL, ISO),
    Kind.DURATION: (*DURATIONS, *CLOCKS),
    Kind.CORES: tuple(CORES),
    Kind.MEMORY: tuple(MEMORY),
}
_IN_NAMES: dict[str, str] = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), "s"),
    **dict.fromkeys(("min", "mins", "minute", "minutes"), "min"),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), "h"),
    **dict.fromkeys(("d", "day", "days"), "d"),
    **dict.fromkeys(("ms", "msec", "millis", "milliseconds"), "ms"),
    **dict.fromkeys(("us", "usec", "micros", "microseconds"), "us"),
    **dict.fromkeys(("ns", "nsec", "nanos", "nanoseconds"), "ns"),
    **dict.fromkeys(("b", "byte", "bytes"), "B"),
    **dict.fromkeys(("k", "kb", "kib", "kilobytes"), "KB"),
    **dict.fromkeys(("m", "mb", "mib", "megabytes"), "MB"),
    **dict.fromkeys(("g", "gb", "gib", "gigabytes"), "GB"),
    **dict.fromkeys(("t", "tb", "tib", "terabytes"), "TB"),
}
_OF_CORES = dict.fromkeys(("milli", "millis", "millicores", "millicpu", "mcpu"), "milli")
"""Words of cores alone: `millis` are milliseconds everywhere else."""
_RAW = {
    "elapsedraw": "s",
    "timelimitraw": "min",
    "cputimeraw": "s",
    "requestedmemory": "KB",
    "usedmemory": "KB",
    **dict.fromkeys(("alloccpus", "reqcpus", "ncpus", "alloctres", "reqtres", "requestcpus", "slots"), "cores"),
    **dict.fromkeys(("allocatedprocessors", "requestedprocessors", "resourcelistncpus"), "cores"),
    **dict.fromkeys(("cores", "ncores", "numcores", "corecount"), "cores"),
}
"""Columns of batch systems whose names do not say it, or whose numbers could be thousandths, such as 80 and 160."""


_USUAL = {Kind.DURATION: "s", Kind.CORES: "cores", Kind.MEMORY: "MB"}
"""The units of columns of which no text was seen."""


def words_of(name: str) -> list[str]:
    """The words of a column's name: `memory_MiB`, `MemoryMiB` and `Memory (MiB)` have two."""
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    return [word for word in re.split(r"[^a-z0-9]+", parted.lower()) if word]


def unit_of(kind: Kind, name: str, texts: Sequence[str]) -> Unit | None:
    """The unit of a column by its name and some of its texts; None: it holds nothing of this kind."""
    texts = [text for text in texts if text.lower() not in NONE]
    if kind is Kind.TEXT and len(texts) > 1 and all(map(_WITH_A_DOT.fullmatch, texts)):
        return Unit(NUMBERS)
    if kind is Kind.TEXT or not texts:
        # Further on there may be some.
        return Unit(_said(kind, name) or _USUAL.get(kind, ""), known=kind not in _USUAL)
    found = _FINDERS[kind](_said(kind, name), texts)
    return found if found is not None and are_read(kind, found.name, texts) else None


def _said(kind: Kind, name: str) -> str:
    """The unit that the name says; empty: none."""
    if said := _RAW.get("".join(words_of(name))):
        return said if said in UNITS.get(kind, ()) else ""
    words = _IN_NAMES | _OF_CORES if kind is Kind.CORES else _IN_NAMES
    said = next((u for word in reversed(words_of(name)) if (u := words.get(word))), "")
    return said if said in UNITS.get(kind, ()) else ""


def reader(kind: Kind, unit: str) -> Callable[[str], Any]:
    """What reads one text of such a column; dates without a zone as UTC."""
    readers: dict[Kind, Callable[[str], Any]] = {
        Kind.MOMENT: lambda text: moment_of(text, unit, UTC),
        Kind.DURATION: lambda text: duration_of(text, unit),
        Kind.CORES: lambda text: cores_of(text, unit),
        Kind.MEMORY: lambda text: bytes_of(text, unit),
        Kind.WHOLE: whole_of,
        Kind.TEXT: lambda text: text.removesuffix(".0") if unit == NUMBERS else text,
    }
    return readers[kind]


def are_read(kind: Kind, unit: str, texts: Sequence[str]) -> bool:
    """Whether most of the texts can be read in this unit."""
    return _read_of(kind, unit, texts) >= ENOUGH * len(texts)


def _read_of(kind: Kind, unit: str, texts: Sequence[str]) -> int:
    """How many of the texts can be read."""
    read, good = reader(kind, unit), 0
    for text in texts:
        try:
            read(text)
        except Unreadable:
            continue
        good += 1
    return good


def _numbers(texts: Sequence[str]) -> list[float]:
    found = []
    for text in texts:
        try:
            found.append(number_of(text))
        except Unreadable:
            continue
    return found


# -- durations, cores, memory --------------------------------------------------------------------------------------


_SHORT_CLOCK = re.compile(r"\d{1,9}:\d\d")


def _duration(said: str, texts: Sequence[str]) -> Unit:
    numbers = _numbers(texts)
    short = [text for text in texts if _SHORT_CLOCK.fullmatch(text)]
    # Sixty and more before the colon are minutes, and so are those of columns that also have hours.
    has_hours = any(":" in text and not _SHORT_CLOCK.fullmatch(text) for text in texts)
    if len(short) > len(texts) / 2 or (short and has_hours and not numbers):
        longer = has_hours or any(int(text.partition(":")[0]) > 23 for text in short)
        return Unit("m:ss" if longer else "h:mm", known=False)
    if not numbers:
        return Unit(said or "s")
    return Unit(said or "s", known=bool(said) or len(numbers) < len(texts) / 2)


def _cores(said: str, texts: Sequence[str]) -> Unit:
    numbers = [number for number in _numbers(texts) if number]
    if said or not numbers:
        return Unit(said or "cores")
    is_milli = min(numbers) >= 50 and all(number % 10 == 0 for number in numbers)
    return Unit("milli" if is_milli else "cores", known=not is_milli)


USUAL_BYTES = 4 * 2**30
"""What a task asks for, more or less: of the units the one that comes nearest is taken."""


def _memory(said: str, texts: Sequence[str]) -> Unit:
    numbers = [number for number in _numbers(texts) if number > 0]
    if said or not numbers:
        return Unit(said or "MB")
    middle = median(numbers)
    return Unit(min(MEMORY, key=lambda unit: abs(log2(middle * MEMORY[unit] / USUAL_BYTES))), known=False)


# -- moments -------------------------------------------------------------------------------------------------------

_EPOCHS = (("ns", 1e17), ("us", 1e14), ("ms", 1e11), ("s", 1e8))
"""What counts from 1970 is at least so large."""
_DAYS = (
    *("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%Y.%m.%d", "%d.%m.%y", "%d/%m/%y"),
    *("%m/%d/%y", "%d %b %Y", "%d-%b-%Y", "%b %d %Y", "%b %d, %Y", "%d %B %Y", "%B %d, %Y", "%d/%b/%Y", "%d-%b-%y"),
)
_CLOCK_FORMS = ("%H:%M:%S", "%H:%M", "%H:%M:%S.%f", "%I:%M %p", "%I:%M:%S %p")
_WHOLE_FORMS = ("%a %b %d %H:%M:%S %Y", "%a, %d %b %Y %H:%M:%S", "%d/%b/%Y:%H:%M:%S", "%Y%m%d%H%M%S")


def _moment(said: str, texts: Sequence[str]) -> Unit | None:
    numbers = _numbers(texts)
    # Fourteen digits in a row may be a date, which is told by its being one.
    if len(numbers) >= ENOUGH * len(texts) and not are_read(Kind.MOMENT, "%Y%m%d%H%M%S", texts):
        # The name counts more than the size: a few days in milliseconds are as large as an epoch in seconds.
        return Unit(said) if said and are_read(Kind.MOMENT, said, texts) else _by_size(median(numbers), said, numbers)
    forms = _forms(texts)
    if not forms:
        return None
    if len(forms) > 1:
        # By the day first or the month first: rows mostly stand in the order of time; where they do so in both ways,
        # they are taken to be of days that follow each other, not of the same day in each month.
        moments = {form: _moments(form, texts) for form in forms}
        rises = {form: _rises(found) for form, found in moments.items()}
        best = max(forms, key=lambda form: (rises[form], min(moments[form]) - max(moments[form])))
        return Unit(best, known=rises[best] > 1.2 * min(rises.values()))
    return Unit(forms[0])


def _by_size(middle: float, said: str, numbers: Sequence[float]) -> Unit:
    """What moments count that their name does not tell, or tells wrongly: in `said` they would be after 2100."""
    epoch = next((unit for unit, least in _EPOCHS if middle >= least), "")
    if epoch:
        return Unit(epoch, known=not said)
    if not said and 30_000 < middle < 60_000 and any(number % 1 for number in numbers):
        return Unit(EXCEL, known=False)
    return Unit(said or "s", known=bool(said))


def _forms(texts: Sequence[str]) -> list[str]:
    """The forms that fit most texts."""
    if are_read(Kind.MOMENT, ISO, texts):
        return [ISO]
    clocks = [f"{between}{clock}" for clock in _CLOCK_FORMS for between in (" ", ", ", "T")]
    every = (*_WHOLE_FORMS, *(day + clock for day in _DAYS for clock in (*clocks, "")))
    few = texts[:: max(len(texts) // FEW, 1)]
    good = {form: _read_of(Kind.MOMENT, form, texts) for form in every if _read_of(Kind.MOMENT, form, few)}
    most = max(good.values(), default=0)
    return [form for form, count in good.items() if count == most >= ENOUGH * len(texts)]


FEW = 10
"""Texts on which a form is tried before it is tried on all."""


def _moments(form: str, texts: Sequence[str]) -> list[int]:
    found = []
    for text in texts:
        try:
            found.append(moment_of(text, form, UTC))
        except Unreadable:
            continue
    return found


def _rises(found: Sequence[int]) -> int:
    return max(sum(a <= b for a, b in pairwise(found)), sum(a >= b for a, b in pairwise(found)))


def _whole(said: str, texts: Sequence[str]) -> Unit:
    del said, texts
    return Unit("")


_FINDERS: dict[Kind, Callable[[str, Sequence[str]], Unit | None]] = {
    Kind.MOMENT: _moment,
    Kind.DURATION: _duration,
    Kind.CORES: _cores,
    Kind.MEMORY: _memory,
    Kind.WHOLE: _whole,
}
