"""Times and durations as people write and read them: `1h 5m`, `2026-03-01 14:05:00`. Amounts: `core.model.quantities`.

Decides the words for every sentence and table outside the core, which has no time zone, and what a duration that is
typed means. Never reads a clock. Invariant: what `duration_exactly` says can be typed where a duration is asked for.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, time, timedelta

from fairlead.core.model.quantities import duration_exactly as duration_exactly
from fairlead.core.model.resources import INT64_MAX

_UNITS = (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1))
_NUMBER = r"\d+(?:\.\d+)?"
_DURATION = re.compile(" ?".join(rf"(?:({_NUMBER}){unit}(?![a-z]))?" for unit, _ in _UNITS))
_LONGEST = 100
"""Characters of a duration or a moment: far more than any has that means something."""


def parse_duration(text: str) -> int:
    """Milliseconds: `90` and `90s` are seconds; `500ms`, `10m`, `1.5h`, `1d` and `1h 30m` are understood.

    Raises ValueError with a sentence for anything else, negative numbers included.
    """
    from fractions import Fraction  # Slow to import, and few commands read durations.

    # One blank for many: where there may be any number between any two parts, the ways to share them out are tried.
    stripped = " ".join(text.split())
    if len(stripped) > _LONGEST:
        raise ValueError(f"{stripped[:20] + '...'!r} is too long")
    written = f"{stripped}s" if re.fullmatch(_NUMBER, stripped) else stripped
    match = _DURATION.fullmatch(written)
    if not match or not stripped:
        raise ValueError(f"{text!r} is not a duration; write seconds (90) or add units, such as 30s, 10m, 2h or 1h30m")
    given = zip(match.groups(), _UNITS, strict=True)
    value = sum((Fraction(number) * size for number, (_, size) in given if number), Fraction(0))
    if value.denominator != 1:
        raise ValueError(f"{text!r} is finer than a millisecond")
    if value > INT64_MAX:
        raise ValueError(f"{text!r} is too long")
    return int(value)


_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?")
_CLOCK_NAMES = {"midnight": (0, 0), "noon": (12, 0), "teatime": (16, 0), "elevenses": (11, 0), "fika": (15, 0)}
_DAYS = {
    name[:3]: (number, name) for number, name in enumerate(("mon", "tues", "wednes", "thurs", "fri", "satur", "sun"))
}
"""The number of each day of the week, and how its name begins."""
_BEGIN_EXAMPLES = "write now+1h, 16:00, tomorrow, Sat 08:00, 2026-03-01 or 2026-03-01T08:00"


def parse_begin(text: str, now_ms: int) -> int:
    """The moment that a text means, by the clock of this machine, in milliseconds since 1970.

    `now`, `now+1h`, `today`, `tomorrow`, `16:00` (the next time that it is), `noon`, `tomorrow 8:00`, `Sat 08:00` (the
    next one), `2026-03-01`, `2026-03-01T08:00`; a date or day alone begins at midnight, `tomorrow` alone at this time
    of day. Raises ValueError with a sentence for anything else, and for what is in the past.
    """
    words = text.strip().lower()
    if len(words) > _LONGEST:
        raise ValueError(f"{words[:20] + '...'!r} is no moment: it is too long; {_BEGIN_EXAMPLES}")
    if words == "now":
        return now_ms
    if words.startswith("now+"):
        return _sayable(now_ms + _later(words.removeprefix("now+")), text)
    found = _begin_of(words, text.strip(), _local(now_ms))
    at_ms = int(found.timestamp()) * 1000
    if at_ms < now_ms // 1000 * 1000:
        raise ValueError(f"{text!r} is {moment(at_ms)}, which is past")
    # In whole seconds: this very one has begun already, and is meant by `today`.
    return _sayable(max(at_ms, now_ms), text)


def _sayable(at_ms: int, text: str) -> int:
    """The moment, unless it is so far away that no clock shows it."""
    if at_ms > LAST_MS:
        raise ValueError(f"{text!r} is after the year {LAST_YEAR}; {_BEGIN_EXAMPLES}")
    return at_ms


def _later(text: str) -> int:
    """A duration also in the long words of Slurm: `60` (seconds), `2hours`."""
    long = re.fullmatch(r"(\d+)\s*(second|minute|hour|day|week)s?", text)
    if long is None:
        return parse_duration(text)
    return int(long[1]) * {"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800}[long[2]] * 1000


def _begin_of(words: str, written: str, now: datetime) -> datetime:
    day, _, clock = words.partition(" ")
    if day in ("today", "tomorrow"):
        date = now + timedelta(days=day == "tomorrow")
        # By the clock: a day in which it is set differently has not 24 hours.
        return _at(date, clock, written, now) if clock else _shown(datetime.combine(date.date(), now.time()), now)
    if day[:3] in _DAYS and day in (day[:3], f"{_DAYS[day[:3]][1]}day"):
        date = now + timedelta(days=(_DAYS[day[:3]][0] - now.weekday()) % 7)
        found = _at(date, clock or "midnight", written, now)
        return found if found > now else _at(date + timedelta(days=7), clock or "midnight", written, now)
    if words in _CLOCK_NAMES or _CLOCK.fullmatch(words):
        found = _at(now, words, written, now)
        return found if found > now else _at(now + timedelta(days=1), words, written, now)
    try:
        found = datetime.fromisoformat(written)
        return found.astimezone() if found.tzinfo else _shown(found, now)
    except (ValueError, OverflowError):
        raise ValueError(f"{written!r} is no moment; {_BEGIN_EXAMPLES}") from None


def _shown(written: datetime, now: datetime) -> datetime:
    """When clocks show this: of two times the one to come; where they are set past it, as much later."""
    # Not `astimezone` of what has no zone: for a time that is left out it gives one before it.
    first = datetime.fromtimestamp(written.timestamp(), UTC).astimezone()
    return _shown(written.replace(fold=1), now) if first < now and not written.fold else first


def _at(day: datetime, clock: str, written: str, now: datetime) -> datetime:
    """This time of day on that day."""
    match = _CLOCK.fullmatch(clock)
    if match is None and clock not in _CLOCK_NAMES:
        raise ValueError(f"{written!r} is no moment: {clock!r} is no time of day; {_BEGIN_EXAMPLES}")
    hour, minute, second = map(int, match.groups("0")) if match else (*_CLOCK_NAMES[clock], 0)
    try:
        return _shown(datetime.combine(day.date(), time(hour, minute, second)), now)
    except ValueError as error:
        raise ValueError(f"{written!r} is no moment: {error}; {_BEGIN_EXAMPLES}") from None


def clock_shift_ms(from_ms: int, to_ms: int) -> int:
    """By how much the clock of this machine is set differently at the second moment: minus an hour in summer."""
    offsets = [_local(at_ms).utcoffset() or timedelta() for at_ms in (from_ms, to_ms)]
    return (offsets[0] - offsets[1]) // timedelta(milliseconds=1)


def duration_ms(text: str) -> int | None:
    """`7d`, `90s`, `1h30m` in milliseconds; None if it is none, or a number without a unit."""
    try:
        return parse_duration(text) if text[-1:].isalpha() else None
    except ValueError:
        return None


def duration(ms: int) -> str:
    """In the two largest units: `0.4s`, `12s`, `3m 5s`, `1h 2m`, `2d 3h`; less than nothing is `0.0s`."""
    if ms < 10_000:
        return f"{max(ms, 0) / 1000:.1f}s"
    first = next(i for i, (_, size) in enumerate(_UNITS) if ms >= size)
    parts = []
    for unit, size in _UNITS[first : min(first + 2, 4)]:
        number, ms = divmod(ms, size)
        if number:
            parts.append(f"{number}{unit}")
    return " ".join(parts)


def span(seconds: float) -> str:
    """For figures that are compared, in the one unit that suits it: `0.4 s`, `12 min`, `3.5 h`, `2.1 d`."""
    size = abs(seconds)
    for unit, length, to in (("s", 1.0, 120.0), ("min", 60.0, 6000.0), ("h", 3600.0, 172_800.0)):
        if size < to:
            return f"{seconds / length:.1f} {unit}" if size < 10 * length and size else f"{seconds / length:.0f} {unit}"
    return f"{seconds / 86400:,.1f} d"


LAST_MS, LAST_YEAR = 253_000_000_000_000, 9986
"""What is later cannot be said as a date in all zones; the year that is over by then."""
_FIRST_MS = -62_000_000_000_000


def moment(at_ms: int) -> str:
    """Local date and time of day."""
    return f"{_local(at_ms):%Y-%m-%d %H:%M:%S}" if at_ms <= LAST_MS else f"after the year {LAST_YEAR}"


def clock_time(at_ms: int) -> str:
    """Local time of day."""
    return f"{_local(at_ms):%H:%M:%S}"


def _local(at_ms: int) -> datetime:
    return datetime.fromtimestamp(min(max(at_ms, _FIRST_MS), LAST_MS) // 1000, UTC).astimezone()
