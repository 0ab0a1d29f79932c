"""A signal some time before a job's time limit, as Slurm's `--signal` writes it: `USR1@60`, `B:USR1@300`.

Decides what such a text means. Never sends one. Invariant: what `checked` gives is written in one way, the name of the
signal and the seconds said.
"""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple

from fairlead.wire.statuses import signal_name, signal_number

DEFAULT_S: Final = 60
MOST_S: Final = 10 * 365 * 24 * 3600
EXAMPLES: Final = "write for example USR1@60, or B:USR1@300 for its first process alone"
_FORM = re.compile(r"(?:([AB]):)?(\w{1,20})(?:@(\d{1,16}))?", re.ASCII)
_WHOM: Final = {
    "A": "to all its processes",
    "B": "to its first process alone",
    "": "to its processes, of a script to what that has started",
}

Whom = Literal["", "A", "B"]
"""All processes, the first one alone, or (empty) all of a command and of a script what that has started."""


class LimitSignal(NamedTuple):
    """Which signal, how long before the end of the time limit, and to whom."""

    number: int
    before_s: int
    whom: Whom


def parse(text: str) -> LimitSignal:
    """What a text means; the time is in seconds. Raises `ValueError`."""
    found = _FORM.fullmatch(text)
    number = signal_number(found[2]) if found else 0
    if found is None or not number:
        raise ValueError(f"{text[:60]!r} names no signal before a time limit; {EXAMPLES}")
    before_s = DEFAULT_S if found[3] is None else int(found[3])
    if not 1 <= before_s <= MOST_S:
        raise ValueError(f"{text[:60]!r}: its time is at least one second, and no longer than a time limit; {EXAMPLES}")
    whom: Whom = "A" if found[1] == "A" else "B" if found[1] == "B" else ""
    return LimitSignal(number, before_s, whom)


def checked(text: str) -> str:
    """The same in the one way in which it is kept; empty: none. Raises `ValueError`."""
    if not text:
        return text
    number, before_s, whom = parse(text)
    name = signal_name(number)
    return f"{whom}{':' if whom else ''}{name if name.startswith('SIG') else number}@{before_s}"


def to_whom(text: str) -> str:
    """`to all its processes` and the like."""
    return _WHOM[parse(text).whom]
