"""Quantities as other systems write them: numbers, durations, moments, amounts of cores and memory.

Decides what one text means when its unit is known (`units` finds that out for a whole column). Never guesses: what does
not fit raises `Unreadable` with a hint that is the same for all texts of its kind, so that many can be counted as one.
Invariant: times are milliseconds, cores thousandths, memory bytes, all whole; G, GB and GiB are the same (1024 MiB), as
most schedulers mean it.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from math import ceil, isfinite

from fairlead.core.model.resources import INT64_MAX

DURATIONS = {"ns": 1e-6, "us": 1e-3, "ms": 1.0, "s": 1e3, "min": 6e4, "h": 3.6e6, "d": 8.64e7}
"""Milliseconds in each unit of time."""
MEMORY = {"B": 1, "KB": 2**10, "MB": 2**20, "GB": 2**30, "TB": 2**40}
CORES = {"cores": 1000, "milli": 1}
CLOCKS = ("h:mm", "m:ss")
"""What `12:30` is, where nothing else tells."""
EXCEL = "days since 1900"
ISO = "date"
LONGEST_MS = 10**15
MOMENTS_MAX_MS = 4_102_444_800_000
"""The year 2100: what is later is in another unit."""
_WORDS = {
    **dict.fromkeys(("d", "day", "days"), "d"),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours", "std"), "h"),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), "min"),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), "s"),
    **dict.fromkeys(("ms", "msec", "millis", "milliseconds"), "ms"),
}
_CLOCK = re.compile(r"(?:(\d+)(?:-| days?,? ))?(\d+):(\d\d)(?::(\d\d)(\.\d+)?)?")
_ISO_SPAN = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?")
_WORDED = re.compile(r"(\d+(?:[.,]\d+)?) *([a-z]+)[ ,]*")
_BYTES = re.compile(r"(\d+(?:[.,]\d+)?) *([kmgtp]?)i?(?:b|byte|bytes)?([nc]?)")
_EXPONENT = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_THOUSANDS = re.compile(r"\d{1,3}(,\d{3})+(\.\d+)?")


class Unreadable(ValueError):
    """A text that is not what its column holds."""


def _counted(value: float) -> int:
    """The next whole number that is no smaller. Raises `Unreadable` for what nothing counts."""
    if value > INT64_MAX:
        raise Unreadable("is more than can be counted")
    return ceil(value)


def _lasting(ms: float) -> int:
    """A duration that a table may have. Raises `Unreadable` for what no clock lives to see."""
    if ms >= LONGEST_MS:
        raise Unreadable("is longer than 30,000 years")
    return round(ms)


def number_of(text: str) -> float:
    """A number; with a comma between thousands, or before the decimals."""
    plain = text.replace(",", "") if _THOUSANDS.fullmatch(text) else text.replace(",", ".")
    try:
        value = float(plain.replace("_", "x"))
    except ValueError:
        raise Unreadable("is no number") from None
    if not isfinite(value):
        raise Unreadable("is no number")
    return value


def whole_of(text: str) -> int:
    """A whole number; `4.0` is one."""
    value = number_of(text)
    if value != int(value):
        raise Unreadable("is no whole number")
    return int(value)


def duration_of(text: str, unit: str) -> int:
    """A duration in milliseconds: a number in this unit, `1-02:03:04`, `02:03:04`, `1h 30m`, `9 second(s)`, `PT1H`."""
    low = text.lower().replace("(s)", "s")
    if match := _CLOCK.fullmatch(low):
        return _by_clock(match, unit)
    if (match := _ISO_SPAN.fullmatch(text)) and any(match.groups()):
        parts = zip(match.groups("0"), ("d", "h", "min", "s"), strict=True)
        return _lasting(sum(float(number) * DURATIONS[each] for number, each in parts))
    if low and low[0].isdigit() and low[-1].isalpha():
        return _by_words(low)
    if unit not in DURATIONS:
        raise Unreadable("is no duration")
    try:
        value = number_of(text)
    except Unreadable:
        raise Unreadable("is no duration") from None
    if value < 0:
        raise Unreadable("is less than nothing")
    return _lasting(value * DURATIONS[unit])


def _by_clock(match: re.Match[str], unit: str) -> int:
    days, first, second, third, rest = match.groups()
    if third is None and days is None and unit == "m:ss":
        first, second, third = "0", first, second
    seconds = float(days or 0) * 86_400 + float(first) * 3600 + float(second) * 60 + float(third or 0)
    return _lasting(seconds * 1000 + round(float(rest or 0) * 1000))


def _by_words(low: str) -> int:
    ms, end = 0.0, 0
    while match := _WORDED.match(low, end):
        unit = _WORDS.get(match[2])
        if unit is None:
            break
        ms += float(match[1].replace(",", ".")) * DURATIONS[unit]
        end = match.end()
    if end != len(low):
        raise Unreadable("is no duration")
    return _lasting(ms)


_BEGIN = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_1900 = 25_569
"""Days from the first day of a spreadsheet to 1970."""


def moment_of(text: str, unit: str, zone: tzinfo) -> int:
    """A moment in milliseconds, since 1970 or whatever the numbers count from.

    `unit` is one of `DURATIONS` for numbers, `EXCEL`, `ISO`, or a format as `strptime` takes it. `zone` is that of
    dates that name none.
    """
    if unit in DURATIONS or unit == EXCEL:
        value = number_of(text)
        ms = (value - _DAY_1900) * DURATIONS["d"] if unit == EXCEL else value * DURATIONS[unit]
        if not 0 <= ms <= MOMENTS_MAX_MS:
            raise Unreadable("is not between 1970 and 2100")
        return round(ms)
    return _date_ms(text, unit, zone)


@lru_cache(maxsize=4096)
def _date_ms(text: str, unit: str, zone: tzinfo) -> int:
    plain = re.sub(r" *(?:UTC|GMT|Z)$", "+00:00" if unit == ISO else " +0000", text)
    try:
        at = datetime.fromisoformat(plain) if unit == ISO else _parsed(plain, unit)
    except ValueError:
        raise Unreadable("is no date" if unit == ISO else f"is no date of the form {unit}") from None
    ms = ((at if at.tzinfo else at.replace(tzinfo=zone)) - _BEGIN) // timedelta(milliseconds=1)
    if not 0 <= ms <= MOMENTS_MAX_MS:
        raise Unreadable("is not between 1970 and 2100")
    return ms


def _parsed(text: str, form: str) -> datetime:
    try:
        return datetime.strptime(text, form)  # noqa: DTZ007 - the zone is said beside it
    except ValueError:
        return datetime.strptime(text, f"{form} %z")


def bytes_of(text: str, unit: str) -> tuple[int, str]:
    """Memory in bytes, and what it is for where the text says so as Slurm does: `c` each core, `n` each node."""
    low = text.lower()
    match = _BYTES.fullmatch(low)
    if match is None:
        raise Unreadable("is no amount of memory")
    number, suffix, each = match.groups()
    plain = low[-1:].isdigit() or (not suffix and each)
    factor = MEMORY[unit] if plain else 2 ** (10 * _EXPONENT[suffix])
    return _counted(number_of(number) * factor), each


def cores_of(text: str, unit: str) -> int:
    """Cores in thousandths; `500m` is half of one."""
    is_milli = text.endswith("m") and text[:-1].isdecimal()
    value = number_of(text[:-1] if is_milli else text)
    if value < 0:
        raise Unreadable("is less than nothing")
    # A float is not quite what is written: what lies so near a thousandth is that.
    return _counted(value if is_milli else round(value * CORES[unit], 6))


_KUBERNETES = re.compile(r"(\d+(?:\.\d+)?(?:[eE]\d+)?)(m|[kMGTPE]|[KMGTPE]i)?")
_SUFFIX = {"k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18} | {
    f"{sign}i": 2 ** (10 * power) for power, sign in enumerate("KMGTPE", 1)
}


def amount_of(name: str, text: str) -> int:
    """A quantity of Kubernetes: `cpu` in thousandths, all else in units."""
    match = _KUBERNETES.fullmatch(text)
    if match is None:
        raise Unreadable(f"is no quantity of {name}")
    number, suffix = match.groups()
    value = float(number) * (1000 if name == "cpu" else 1)
    return _counted(value / 1000 if suffix == "m" else value * _SUFFIX.get(suffix, 1))


def part_of(text: str, key: str) -> str:
    """One amount of several in a cell: `gres/gpu` of `cpu=4,mem=16G,gres/gpu=1`; empty where it is not there."""
    match = re.search(rf"(?:^|[,:;\s]){re.escape(key)}(?::[^=,]+)?=([^,:;\s]+)", text)
    return match[1] if match else ""
