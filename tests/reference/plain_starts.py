"""When what waits can start at the latest, by the time limits of what runs: room gathers where that is first.

Written from the rules in the plainest way, as a base for the simulator of `plain_simulator`. For each time at which
something should have ended all that runs is gone through anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reference.plain_beside import ALONE
from reference.plain_line import NEVER, Amount, Work
from reference.plain_windows import Windowed

MARGIN_MS = 60_000
"""What was told to stop should have done so when its grace is over, and that."""


@dataclass
class Start:
    """When and where something can start."""

    at_ms: int
    node: str
    free: Amount
    """What is free there by then."""
    gone: list[Work]
    """What has ended by then."""
    yielding: list[Work]
    """For these room is kept now that is not in its way."""


class Starts(Windowed):
    """Starts that are known from time limits."""

    def _ends_by(self, work: Work) -> int:
        """When it has ended at the latest; never, if nobody knows."""
        limit_ms = self._lasts_ms(work)
        if limit_ms is None:
            return NEVER
        by_limit_ms = max(work.start_ms + limit_ms, self.now_ms)
        return min(by_limit_ms, work.told_ms + work.task.grace_ms + MARGIN_MS) if work.leaving else by_limit_ms

    def _start_of(self, work: Work, weaker: Sequence[Work] = ()) -> Start | None:
        """When it can, if nothing else starts before; None if that is not known. What is kept for weaker ones is not in
        its way, but for smaller ones, which may start first.
        """
        lineage = list(self._lineage(work.gang.job.queue))
        if (
            work.gang.waits_for is not None
            or not self._may_begin(work)
            or not all(self._is_allowed_in(path, work) for path in lineage)
        ):
            return None
        yielding = [w for w in weaker if all(value <= dict(w.task.amount).get(n, 0) for n, value in work.task.amount)]
        times = sorted({at_ms for w in self.running if (at_ms := self._ends_by(w)) < NEVER})
        for at_ms in [self.now_ms - 1, *times]:
            gone = [w for w in self.running if self._ends_by(w) <= at_ms]
            if any(self._is_full_then(path, work, gone) for path in lineage):
                continue
            fits = [node for node in self._open_to(work) if self._has_room_then(work, node, gone, yielding)]
            if not fits:
                continue
            node, start_ms = self._first_of(work, fits), max(at_ms, self.now_ms)
            if self._runs_into(work, node, start_ms - self.now_ms):
                return None
            return Start(start_ms, node, self._free_then(work, node, gone, yielding), gone, yielding)
        return None

    def _is_full_then(self, path: str, work: Work, gone: list[Work]) -> bool:
        for name, value in work.task.amount:
            if self._used(path, name) - self._given(path, name, gone) + value > self._most(path).get(name, NEVER):
                return True
        return False

    def _free_then(self, work: Work, node: str, gone: list[Work], yielding: list[Work]) -> Amount:
        free = self._free(node, lambda w: w is not work and w not in yielding)
        for each in gone:
            for name, value in each.task.amount if each.node == node else ():
                free[name] += value
        return free

    def _has_room_then(self, work: Work, node: str, gone: list[Work], yielding: list[Work]) -> bool:
        def counts(other: Work) -> bool:
            return other is not work and other not in yielding

        if not self._has_room(work, node, counts, gone):
            return False
        told = [w for w in self.running if w.leaving and w not in gone] if gone and work.task.company != ALONE else []
        return not told or not self._is_kept_off(work, node, counts, [*gone, *told])

    def _node_for(self, work: Work) -> str:
        """Where it can start first, else where it lacks least; nowhere if more room there would not help it."""
        found = self._start_of(work)
        return found.node if found is not None else super()._node_for(work)
