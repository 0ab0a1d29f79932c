"""Times and durations as people read them: `1h 5m`, `2026-03-01 14:05:00`. Amounts are in `core.quantities`.

Decides the words for every sentence and table outside the core, which has no time zone. Never reads a clock.
Invariant: what `duration_exactly` says can be typed where a duration is asked for.
"""

from __future__ import annotations

from datetime import UTC, datetime

_UNITS = (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000))


def duration(ms: int) -> str:
    """In the two largest units: `0.4s`, `12s`, `3m 5s`, `1h 2m`, `2d 3h`; less than nothing is `0.0s`."""
    if ms < 10_000:
        return f"{max(ms, 0) / 1000:.1f}s"
    first = next(i for i, (_, size) in enumerate(_UNITS) if ms >= size)
    parts, _ = _taken(ms, first, first + 2)
    return " ".join(parts)


def duration_exactly(ms: int) -> str:
    """In all units that it needs: `1h 30m`, `90d`, `1m 0.5s`, `500ms`."""
    parts, rest = _taken(ms, 0, 3)
    if not parts and 0 < rest < 1_000:
        return f"{rest}ms"
    if rest or not parts:
        parts.append(f"{rest / 1000:g}s")
    return " ".join(parts)


def _taken(ms: int, first: int, end: int) -> tuple[list[str], int]:
    """How often each of these units is in it, and what is left."""
    parts = []
    for unit, size in _UNITS[first:end]:
        number, ms = divmod(ms, size)
        if number:
            parts.append(f"{number}{unit}")
    return parts, ms


def moment(at_ms: int) -> str:
    """Local date and time of day."""
    return f"{_local(at_ms):%Y-%m-%d %H:%M:%S}"


def clock_time(at_ms: int) -> str:
    """Local time of day."""
    return f"{_local(at_ms):%H:%M:%S}"


def _local(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms // 1000, UTC).astimezone()
