"""What was told to stop and has not stopped yet, in a scenario.

Decides when evicted work is gone: at once, after its grace, or when the scenario says so. Never tells anybody. The
scheduler's own affairs (placeholders that are replaced or out of time) are always settled at once. Invariant: work is
here from its eviction until it is gone, however it went.
"""

from __future__ import annotations

from dataclasses import dataclass

from fairlead.core.decisions import Evict
from fairlead.core.events import Cause

Name = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Stop:
    """One eviction under way; `due_ms` None: only the scenario knows when it is gone."""

    order: Evict
    due_ms: int | None


class Stops:
    """The evictions under way, in the order in which they were told."""

    def __init__(self) -> None:
        self.manual = False
        self._of: dict[Name, Stop] = {}

    def __contains__(self, name: object) -> bool:
        return name in self._of

    def add(self, order: Evict, grace_ms: int, now_ms: int) -> bool:
        """Take in an eviction; False: it is gone already, and that is to be confirmed."""
        preempted = order.cause is Cause.PREEMPTED_BY_SCHEDULER
        if not preempted or (not self.manual and not grace_ms):
            return False
        due_ms = None if self.manual else now_ms + grace_ms
        self._of[order.application, order.key] = Stop(order, due_ms)
        return True

    def next_due_ms(self) -> int | None:
        """When the next of them is gone."""
        return min((s.due_ms for s in self._of.values() if s.due_ms is not None), default=None)

    def take_due(self, now_ms: int) -> list[Evict]:
        """Those that are gone by now, taken out: by time, then in the order of their evictions."""
        due = [s for s in self._of.values() if s.due_ms is not None and s.due_ms <= now_ms]
        for stop in due:
            self.take(stop.order.application, stop.order.key)
        return [s.order for s in sorted(due, key=lambda s: s.due_ms or 0)]

    def take(self, application: str, key: str) -> Evict | None:
        """This one is gone: what had told it to stop, or None when nothing had."""
        stop = self._of.pop((application, key), None)
        return stop.order if stop is not None else None
