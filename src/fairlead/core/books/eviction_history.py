"""Disruption: what is remembered of work that was stopped for other work, so that it is not done in vain again.

Decides what was stopped for what since the last change, on which nodes it was fruitless, and how much a queue has lost
within the last hour. Never chooses a victim. Invariant: nothing here grows without bound.

Two counters say what may have changed the outcome: `news` grows with every arrival and every change of capacity,
`capacity` with the latter alone. What comes back after it was stopped is no arrival.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from fairlead.core.model.events import Cause

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairlead.core.books import Application, Ask, Node, Queue

HOUR_MS = 3_600_000
FRUITLESS_MAX = 2
"""So often an ask may stop work on one node without getting the room, and a gang give way to another one; then it is
barred there.
"""
REMEMBERED_MAX = 10_000


def work_name(ask: Ask) -> str:
    """What all attempts of one piece of work have in common."""
    return f"{ask.app.id}/{ask.spec.first_key or ask.key}"


class Disruption:
    """The memory of one partition."""

    def __init__(self) -> None:
        self.news = 0
        self.capacity = 0
        self.spared_at = -1
        """The last news at which work was spared because it was stopped for the same ask before."""
        self.leave_by: dict[Ask, int] = {}
        """What was told to stop for others, in order, and when it should have left at the latest."""
        self.overdue: dict[Ask, None] = {}
        """What has not left in its time."""
        self.going: dict[Ask, None] = {}
        """What was told to go for another reason than to make room: its room is not counted on, but it does go. What
        takes the place of a placeholder has that room.
        """
        self._pairs: dict[str, dict[str, tuple[int, bool]]] = {}
        """By preemptor and victim the news when the one was stopped for the other, and whether a loop was reported."""
        self._fruitless: dict[str, dict[str, tuple[int, int, int]]] = {}
        """By preemptor and node (nothing: any): how often in vain, at which capacity, and when last."""
        self._times: dict[str, deque[int]] = {}
        """By queue with a budget of evictions, the times of the evictions of the last hour; what lost last is last."""

    def capacity_changed(self) -> None:
        """A node came, went or changed, or the configuration did."""
        self.news += 1
        self.capacity += 1

    # -- what was stopped for what --------------------------------------------------------------------------------

    def note(self, preemptor: Ask, victim: Ask, now_ms: int) -> None:
        """`victim` was told to stop for `preemptor`."""
        self._pairs.setdefault(work_name(preemptor), {})[work_name(victim)] = (self.news, False)
        if len(self._pairs) > REMEMBERED_MAX:
            self._forget_old_pairs()
        for queue in victim.app.queue.lineage:
            if queue.properties.preemption_evictions_max is not None:
                self._note_time(queue.path, now_ms)

    def _note_time(self, path: str, now_ms: int) -> None:
        """One more is lost to a queue. Queues that lost nothing for an hour, and may not be there any more, go."""
        times = self._times.pop(path, None) or deque()
        while times and times[0] + HOUR_MS <= now_ms:
            times.popleft()
        times.append(now_ms)
        self._times[path] = times  # In order of the last time.
        while self._times[oldest := next(iter(self._times))][-1] + HOUR_MS <= now_ms:
            del self._times[oldest]

    def _forget_old_pairs(self) -> None:
        """Forget what does not count any more; if all of it counts, the oldest preemptor."""
        self._pairs = {
            name: current
            for name, own in self._pairs.items()
            if (current := {victim: last for victim, last in own.items() if last[0] == self.news})
        }
        if len(self._pairs) > REMEMBERED_MAX:
            del self._pairs[next(iter(self._pairs))]

    def has_history(self, preemptor: Ask) -> bool:
        """Whether work was stopped for it before, or in vain: then it is not like its equals."""
        name = work_name(preemptor)
        return name in self._pairs or name in self._fruitless

    def was_stopped_for(self, preemptor: Ask, victim: Ask) -> bool:
        """Whether the one was stopped for the other, and nothing new has come since."""
        own = self._pairs.get(work_name(preemptor)) if self._pairs else None
        return own is not None and own.get(work_name(victim), (-1, False))[0] == self.news

    def report_pair(self, preemptor: Ask, victim: Ask) -> bool:
        """Whether this loop is still to be reported; only once."""
        own, name = self._pairs[work_name(preemptor)], work_name(victim)
        stamp, was_reported = own[name]
        own[name] = (stamp, True)
        return not was_reported

    # -- in vain --------------------------------------------------------------------------------------------------

    def note_fruitless(self, preemptor: Ask, node: Node | None, now_ms: int) -> bool:
        """Work stopped on `node` for `preemptor`, and it has no room there; True when it is barred there now.

        None stands for room anywhere that was given up because something did not leave in its time.
        """
        return self._note_fruitless(work_name(preemptor), node.id if node is not None else "", now_ms)

    def _note_fruitless(self, name: str, where: str, now_ms: int) -> bool:
        own = self._fruitless.pop(name, {})
        self._fruitless[name] = own  # In order of the last time.
        times, capacity, _ = own.get(where, (0, self.capacity, now_ms))
        times = times + 1 if capacity == self.capacity else 1
        own[where] = (times, self.capacity, now_ms)
        if len(self._fruitless) > REMEMBERED_MAX:
            del self._fruitless[next(iter(self._fruitless))]
        return times == FRUITLESS_MAX

    def barred_until(self, preemptor: Ask, node: Node | None, now_ms: int) -> int | None:
        """Until when the ask may stop nothing on this node, as far as no capacity changes; None: it may."""
        return self._barred_until(work_name(preemptor), node.id if node is not None else "", now_ms)

    def _barred_until(self, name: str, where: str, now_ms: int) -> int | None:
        own = self._fruitless.get(name, {})
        times, capacity, last_ms = own.get(where, (0, 0, 0))
        until_ms = last_ms + HOUR_MS
        if times < FRUITLESS_MAX or capacity != self.capacity:
            return None
        if until_ms > now_ms:
            return until_ms
        del own[where]
        if not own:
            del self._fruitless[name]
        return None

    def note_gave_way(self, later: Application, first: Application, now_ms: int) -> None:
        """A gang gives its placeholders back for another one. Should they meet again, that was in vain. (A key is not
        empty, so that no ask has such a name.)
        """
        self._note_fruitless(f"{first.id}/", f"{later.id}/", now_ms)

    def stays_until(self, later: Application, first: Application, now_ms: int) -> int | None:
        """Until when it does so no more, as far as no capacity changes; None: it may."""
        return self._barred_until(f"{first.id}/", f"{later.id}/", now_ms)

    # -- evictions by the hour ------------------------------------------------------------------------------------

    def evictions_left(self, queue: Queue, now_ms: int) -> tuple[int, int | None]:
        """How many more works of a queue with a budget may be stopped now, and when there will be one more; None: it
        has lost nothing.
        """
        most = queue.properties.preemption_evictions_max
        assert most is not None
        times = [at_ms for at_ms in self._times.get(queue.path, ()) if at_ms + HOUR_MS > now_ms]
        return max(most - len(times), 0), min(times) + HOUR_MS if times else None

    # -- written down ---------------------------------------------------------------------------------------------

    def dump(self) -> dict[str, Any]:
        """All that is not made again from the holds, as plain values."""
        return {
            "news": self.news,
            "capacity": self.capacity,
            "spared_at": self.spared_at,
            "pairs": [[a, b, *last] for a, own in self._pairs.items() for b, last in own.items()],
            "fruitless": [[a, b, *last] for a, own in self._fruitless.items() for b, last in own.items()],
            "times": [[path, list(times)] for path, times in self._times.items()],
            "leave_by": [[a.app.id, a.key, due_ms] for a, due_ms in self.leave_by.items()],
            "overdue": [[a.app.id, a.key] for a in self.overdue],
        }

    @classmethod
    def load(cls, plain: dict[str, Any], asks: Mapping[tuple[str, str], Ask]) -> Disruption:
        """What `dump` wrote down; `asks`: all there are, by application and key."""
        memory = cls()
        memory.news, memory.capacity, memory.spared_at = plain["news"], plain["capacity"], plain.get("spared_at", -1)
        for preemptor, victim, news, told in plain["pairs"]:
            memory._pairs.setdefault(preemptor, {})[victim] = (news, told)
        for preemptor, node, times, capacity, last_ms in plain["fruitless"]:
            memory._fruitless.setdefault(preemptor, {})[node] = (times, capacity, last_ms)
        memory._times = {path: deque(times) for path, times in plain["times"]}
        memory.leave_by = {asks[app, key]: due_ms for app, key, due_ms in plain["leave_by"]}
        memory.overdue = {asks[app, key]: None for app, key in plain["overdue"]}
        others = (None, Cause.PREEMPTED_BY_SCHEDULER)
        memory.going = {a: None for a in asks.values() if a.evict_cause not in others and a.replaces is None}
        return memory
