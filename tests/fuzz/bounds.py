"""How long one input may take: in time on a processor, so that a busy machine makes no hang of what is none.

Decides when an input has had too long. What spends no time on a processor, and does not end, is a hang as well; the
clock is asked about that, and it is patient. Invariant: after an input nothing goes off any more.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

INPUT_S = 10
"""Of processor time that one input may take."""
STANDSTILL_S = 20 * INPUT_S
"""By the clock: it waits for something, or is in one call that never comes back to Python."""
Read = Callable[[bytes], None]


class TooLong(BaseException):
    """An input is not done in its time. No reader's `except Exception` takes it for an error of its own."""


def bounded(read: Read, processor_s: float = INPUT_S, standstill_s: float = 0) -> Read:
    """The same, but raises `TooLong` once an input has kept this process for so long on a processor, or by the clock.

    `standstill_s`: 0 where somebody else looks at the clock. Takes the signals of both for good.
    """

    def over(number: int, _frame: Any) -> None:
        by = f"{processor_s} s on a processor" if number == signal.SIGPROF else f"{standstill_s} s by the clock"
        raise TooLong(f"one input took more than {by}")

    def within(data: bytes) -> None:
        try:
            for timer, seconds in timers:
                signal.setitimer(timer, seconds)
            read(data)
        finally:
            for timer, _ in timers:
                signal.setitimer(timer, 0)

    timers = [(signal.ITIMER_PROF, processor_s)]
    signal.signal(signal.SIGPROF, over)
    if standstill_s:
        timers.append((signal.ITIMER_REAL, standstill_s))
        signal.signal(signal.SIGALRM, over)
    return within
