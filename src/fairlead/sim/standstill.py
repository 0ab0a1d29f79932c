"""Standstill: when nothing will happen any more although something is still due.

Decides that what waits can never start: nothing runs and nothing comes, and all that was due since the last decision
came due in vain. Work that no node can hold is looked at again and again (attempts to preempt, rests of its
application), so that waiting for the last timer would never end. Never looks at a queue or an ask.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairlead.scheduler import Scheduler


class Standstill:
    """The quiet time of a simulation in which nothing runs and nothing comes."""

    def __init__(self) -> None:
        self._decisions = -1
        self._quiet_ms = self._horizon_ms = 0

    def is_over(self, scheduler: Scheduler, now_ms: int, decisions: int) -> bool:
        """Whether nothing can follow; asked after each moment at which nothing runs or comes."""
        if decisions != self._decisions:
            self._decisions, self._quiet_ms = decisions, now_ms
            self._horizon_ms = scheduler.last_timer_ms()
        return now_ms >= self._horizon_ms

    def began_ms(self, now_ms: int, decisions: int) -> int:
        """When a simulation that ends now came to its end: when it was quiet, what was due in vain does not count."""
        return self._quiet_ms if decisions == self._decisions else now_ms
