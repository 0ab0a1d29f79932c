"""Turns that are kept for what waited too long (`wait.max`): which, what waits for them, and where room gathers.

Written from the rules in the plainest way, as a base for the simulator of `plain_simulator`. Only for queues without
limits of users or bounds on jobs that run.
"""

from __future__ import annotations

from reference.plain_idle import Idle
from reference.plain_line import NEVER, Work


class Turns(Idle):
    """What waited too long, and what waits for it."""

    def __init__(self, *given: object, **more: object) -> None:
        super().__init__(*given, **more)  # type: ignore[arg-type]
        self.turns: dict[str, Work] = {}
        """By leaf what has its turn kept there."""
        self.late_ms: dict[str, int] = {}
        """By leaf when it is looked at next."""
        self.to_look: set[str] = set()
        """Leaves that are looked at in the next turn."""

    def _wait_ms(self, work: Work) -> int:
        return self.queues[work.gang.job.queue].wait_ms

    def _watch(self, work: Work) -> None:
        """It begins to wait."""
        if self._wait_ms(work) and not work.task.idle:
            path, due_ms = work.gang.job.queue, work.made_ms + self._wait_ms(work)
            self.late_ms[path] = min(self.late_ms.get(path, NEVER), max(due_ms, self.now_ms))

    def _watch_all(self) -> None:
        """Queues may have another `wait.max`, or none."""
        for path in [path for path in self.late_ms if not self.queues[path].wait_ms]:
            del self.late_ms[path]
        for work in [w for w in self.turns.values() if not self._wait_ms(w)]:
            self._ends_turn(work)
        for work in self.waiting:
            self._watch(work)

    def _waits_for_turn(self, work: Work) -> bool:
        """Whether it is behind one whose turn is kept: all idle work is."""
        if work.task.idle:
            return bool(self.turns)
        first = self.turns.get(work.gang.job.queue)
        if first is None or first is work:
            return False
        if work.gang is first.gang and self._in_line(work) < self._in_line(first):
            return False
        if work.task.priority != first.task.priority:
            return work.task.priority < first.task.priority
        return self._in_line(work) > self._in_line(first)

    def _in_line(self, work: Work) -> tuple[int, bool, int, int]:
        return (-work.task.priority, not work.is_retried, work.made_ms, work.number)

    def _keep_turns(self) -> None:
        """Before each start: give turns that are due, and gather room for those that have one."""
        while self.to_look:
            path = next(each for each in self.queues if each in self.to_look)
            self.to_look.remove(path)
            self._give_turn(path)
        for work in list(self.turns.values()):
            self._gather(work)

    def _give_turn(self, path: str) -> None:
        first = self.turns.get(path)
        if first is not None:
            if not self._could_ever_run(first):
                self._ends_turn(first)
            return
        wait_ms = self.queues[path].wait_ms
        if not wait_ms:
            return
        waiting = [w for w in self.waiting if w.gang.job.queue == path and not w.task.idle]
        for later in [w for w in waiting if w.made_ms + wait_ms > self.now_ms]:
            self._watch(later)
        late = [w for w in waiting if w.made_ms + wait_ms <= self.now_ms and self._could_ever_run(w)]
        if late:
            self.turns[path] = min(late, key=lambda w: (w.made_ms, w.number))

    def _ends_turn(self, work: Work) -> None:
        """It starts, or could not any more."""
        path = work.gang.job.queue
        if self.turns.get(path) is work:
            del self.turns[path]
            self.to_look.add(path)
            if work.gathers:
                work.kept_on, work.gathers = "", False

    def _could_ever_run(self, work: Work) -> bool:
        maxima = [self._most(path) for path in self._lineage(work.gang.job.queue) if path != "root"]
        if any(value > most.get(name, value) for most in maxima for name, value in work.task.amount):
            return False
        return any(self._fits(work, node, amount) for node, amount in self.nodes.items())

    # -- room that gathers --------------------------------------------------------------------------------------------

    def _gather(self, work: Work) -> None:
        if work.kept_on and not work.gathers and self._something_awaited(work):
            return
        if work.kept_on and not (work.gathers or not self._something_awaited(work)):
            return
        wanted = self._is_worth_it(work)
        if work.kept_on:
            if not wanted or not self._fits(work, work.kept_on, self.nodes[work.kept_on]):
                work.kept_on, work.gathers = "", False
        elif wanted and (node := self._node_for(work)):
            self._gathers_on(work, node)

    def _gathers_on(self, work: Work, node: str) -> None:
        work.kept_on, work.gathers, work.kept_since, work.awaits = node, True, next(self.numbers), ()

    def _something_awaited(self, work: Work) -> bool:
        return any(each in self.running for each in work.awaits) or self._waits_above(work)

    def _is_worth_it(self, work: Work) -> bool:
        """Nothing in its queue is above it, and that queue has room."""
        if work.gang.waits_for is not None:
            return False
        leaf = work.gang.job.queue
        in_leaf = [w for w in self.waiting if w.gang.job.queue == leaf and not w.task.idle]
        if any(w.task.priority > work.task.priority for w in in_leaf):
            return False
        full = next((path for path in self._lineage(leaf) if path != "root" and self._is_full(path, work)), None)
        return full != leaf

    def _node_for(self, work: Work) -> str:
        """Where there is room now, else where it lacks least."""
        if not any(self._is_full(path, work) for path in self._lineage(work.gang.job.queue)):
            fits = [n for n in self.nodes if self._has_room(work, n, lambda w: w is not work)]
            if fits:
                return min(fits, key=lambda n: (self._fullness(n), n))
        could_be = [n for n in self.nodes if self._fits(work, n, self.nodes[n])]
        suitable = [n for n in could_be if not self._is_kept_off(work, n, lambda w: w is not work)]
        return min(suitable, key=lambda n: (self._shortage(work, n), self._fullness(n), n), default="")

    def _shortage(self, work: Work, node: str) -> float:
        free = self._free(node, lambda w: w is not work)
        return sum(max(value - free.get(name, 0), 0) / value for name, value in sorted(work.task.amount))
