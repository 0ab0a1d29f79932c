"""Backfill past a kept turn: what is held back starts where it cannot delay what it waits for.

Written from the rules in the plainest way, as a base for the simulator of `plain_simulator`.
"""

from __future__ import annotations

from reference.plain_line import Gang, Queue, Work
from reference.plain_starts import Start, Starts


class Backfill(Starts):
    """What passes a turn, in queues that let it."""

    def _placed(self, work: Work, node: str, *, passes: bool = False) -> None:
        raise NotImplementedError

    def _lets_pass(self) -> bool:
        """The first in order that is held back, and delays nothing by starting now, does."""
        for leaf in self.leaves:
            holder = next((w for w in self._turns_in(leaf) if not self.turns[w]), None)
            if not self._said(leaf, "is_easy") or holder is None:
                continue
            weaker = [w for w in self.waiting if w.kept_on and self._is_stronger(holder, w)]
            if (start := self._start_of(holder, weaker)) is None:
                continue
            held = [w for w in self.waiting if w.gang.job.queue == leaf and self._is_held_back_by(holder, w)]
            for work in sorted(held, key=lambda w: (*self._in_line(w)[:2], w.gang.job.at_ms, w.gang.number, *_age(w))):
                if node := self._where_it_passes(work, holder, start):
                    self._placed(work, node, passes=True)
                    return True
        return False

    def _is_held_back_by(self, holder: Work, work: Work) -> bool:
        if work.task.idle or work.gang.waits_for is not None or not self._is_behind(holder, work):
            return False
        return not self._is_behind_holders(work) and not self._is_behind_limited(work)

    def _is_behind_holders(self, work: Work) -> bool:
        raise NotImplementedError

    def _where_it_passes(self, work: Work, holder: Work, start: Start) -> str:
        """The first node in order where it fits now, and either is over when the other one starts, or leaves room for
        that on its node, in queues, and under limits.
        """
        kept = [holder] if holder.gathers else []
        lineage = list(self._lineage(work.gang.job.queue))
        if any(self._is_full(path, work) or self._lacks(path, work, kept) for path in lineage):
            return ""
        if not all(self._is_allowed_in(path, work) for path in lineage) or not self._is_allowed(work, kept):
            return ""
        if not self._may_begin(work) or not all(self._leaves_places_in(path, work.gang, holder) for path in lineage):
            return ""
        limit_ms = self._lasts_ms(work)
        is_over = limit_ms is not None and self.now_ms + limit_ms <= start.at_ms
        if not is_over and not all(self._leaves_enough_in(path, work, holder, start) for path in lineage):
            return ""
        fits = [node for node in self.nodes if self._may_pass_on(node, work, holder, start, is_over=is_over)]
        return self._first_of(work, fits)

    def _leaves_places_in(self, path: str, gang: Gang, holder: Work) -> bool:
        """Whether the job of the holder still has a place to run beside this one."""
        said = self.queues[path] if path in self.queues else Queue()
        if self._runs_already(gang) or holder.gang is gang or self._runs_already(holder.gang):
            return True
        begun = [g for g in {w.gang for w in (*self.running, *self.waiting)} if self._within(path, g)]
        begun = [g for g in begun if self._runs_already(g) or any(w.kept_on and w.gang is g for w in self.waiting)]
        begun = [g for g in begun if g is not gang and g is not holder.gang]
        if said.jobs and len(begun) + 2 > said.jobs:
            return False
        if not said.user_jobs or gang.job.user != holder.gang.job.user:
            return True
        own = [g for g in begun if g.job.user == gang.job.user and (g.is_counted or not self._runs_already(g))]
        return len(own) + 2 <= said.user_jobs

    def _leaves_enough_in(self, path: str, work: Work, holder: Work, start: Start) -> bool:
        """Whether both have room there when the other one starts. Under a limit what is in use now counts."""
        limits = (path in self.queues and self.queues[path].users) or {}
        is_shared = work.gang.job.user == holder.gang.job.user
        for name, value in work.task.amount:
            both = value + dict(holder.task.amount).get(name, 0)
            then = self._used(path, name) - self._given(path, name, start.gone)
            if name in self._most(path) and then + both > self._most(path)[name]:
                return False
            if is_shared and name in limits and self._used(path, name, work.gang.job.user) + both > limits[name]:
                return False
        return True

    def _may_pass_on(self, node: str, work: Work, holder: Work, start: Start, *, is_over: bool) -> bool:
        # Room that gathers may be used until then.
        free = self._free(node, lambda w: not (w is holder and w.gathers and is_over))
        if not self._fits(work, node, free) or not self._fits(work, node, self._free(node, lambda w: False)):
            return False
        if self._is_kept_off(work, node, lambda w: w is not work):
            return False
        if is_over:
            return True
        left = {name: amount - dict(holder.task.amount).get(name, 0) for name, amount in start.free.items()}
        if node == start.node and not self._fits(work, node, left):
            return False
        work.node = node
        self.running.append(work)
        is_kept_off = self._is_kept_off(
            holder, start.node, lambda w: w is not holder and w not in start.yielding, start.gone
        )
        self.running.remove(work)
        work.node = ""
        return not is_kept_off


def _age(work: Work) -> tuple[int, int]:
    return (work.made_ms, work.number)
