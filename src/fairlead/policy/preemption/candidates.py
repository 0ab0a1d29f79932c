"""Candidates: the running work that may be stopped for one ask by priority, in the order in which it is given back.

Decides for each piece of work whether it may go, on the node that is tried or anywhere where a maximum lacks room.
Never chooses among them (`plan`). Invariant: without all of them no queue is left below its guarantee, but
those of the ask's own queues within which the ask is then.

Given back first: 1. whose budget would be violated, 2. higher priority, 3. what would rather not, 4. what would lose
more run time, 5. started earlier, 6. arrived earlier.
"""

from __future__ import annotations

from collections.abc import Iterable

from fairlead.core.books.asks import Ask
from fairlead.core.books.budgets import violated
from fairlead.core.books.node import Node
from fairlead.core.books.partition import Partition
from fairlead.core.books.queues import Queue
from fairlead.core.model.resources import Book, Items
from fairlead.policy.order.effective_priority import Reach, rank
from fairlead.policy.order.victim_index import Guards, leaves_for_others
from fairlead.policy.preemption.bound import Bound
from fairlead.policy.preemption.protection import (
    in_time,
    is_spared,
    overdrawn,
    reaches_later,
    within,
    within_guarantees,
)

NONE_LATER = 2**62


class Candidates:
    """What may be stopped for one ask."""

    def __init__(self, partition: Partition, ask: Ask, above: list[Bound]) -> None:
        self.partition, self.ask, self.reach = partition, ask, Reach(partition, ask)
        self.above = above
        """Maxima of queues that have no room for the ask: work on any node may make it."""
        budgets = partition.admission.budgets
        self.budgets_left = budgets.left(partition) if budgets else {}
        self.later_seq = NONE_LATER
        """When the first of the work started that was passed over because the ask waited then: of asks that came after
        that, some may have it stopped.
        """
        self.is_late = False
        """Some was passed over because the ask would reach into a window when it has left: one that is over earlier may
        have it stopped, or wait for it.
        """
        self.is_of_gang = False
        """Some was passed over because it is of the same gang: one of another gang may have it stopped."""
        self.has_history = partition.disruption.has_history(ask)
        guaranteed = [queue for queue in ask.app.queue.lineage if queue.owes and queue.guaranteed]
        rooms = {queue: room_within(queue, ask.items) for queue in guaranteed}
        self._own = {q: room for q, room in rooms.items() if not room or min(room.values()) < 0}
        """Queues of its own whose guarantee has no room for it, each with what it leaves; below 0: missing."""
        self._far: dict[tuple[bool, bool], list[Ask]] = {}
        self._own_without: dict[Node | None, bool] = {}

    def own_guarantees(self) -> list[Bound]:
        """What the ask has to be within so that work within guarantees of its own queues may go; empty: none may."""
        return [Bound(queue, room, but_idle=True) for queue, room in self._own.items() if room]

    def guards(self) -> Guards | None:
        """The guarantees of queues that are not the ask's own bound what work of a leaf gives at most; None: they are
        no bound. Idle work is within no guarantee.
        """
        lineage = self.ask.app.queue.lineage
        if not lineage[-1].owes or self.partition.idle.running:
            return None
        return Guards(self.partition, lineage)

    def on(self, node: Node, among_own: bool) -> tuple[list[Ask], list[Ask]]:
        """Work on the node that may be stopped, what is to be given back first coming first; and what guarantees let go
        no more of beside that: lower work uses up what its queue may lose.
        """
        found = [a for a in node.allocations if self._may_go(a)]
        if self.above:
            far = self._elsewhere(among_own)
            if len(in_time(self.partition, self.ask, far, node)) < len(far):
                self.is_late, far = True, self._elsewhere(among_own, soon=True)
            found += [a for a in far if a.node is not node]
        count, found = len(found), sorted(in_time(self.partition, self.ask, found, node), key=self._importance)
        self.is_late = self.is_late or len(found) < count
        kept = dict.fromkeys(self._within_guarantees(found[::-1], among_own)[::-1])
        passed_over = [a for a in found if a not in kept]
        found = list(kept)
        if self.budgets_left:
            broken = self.violates(reversed(found))  # What a budget lets go are the lowest.
            found.sort(key=lambda a: not broken[a])
        return found, passed_over

    def leaving(self, node: Node) -> tuple[Ask, ...]:
        """Work on the node that was told to stop before, and leaves in time for the ask."""
        told = [a for a in node.allocations if leaves_for_others(a)]
        found = tuple(in_time(self.partition, self.ask, told, node))
        self.is_late = self.is_late or len(found) < len(told)
        return found

    def lowest_first(self, work: Iterable[Ask]) -> list[Ask]:
        """These in the order in which they go: what is given back first comes last."""
        return sorted(work, key=lambda a: (not self.violates([a]).get(a), self._importance(a)), reverse=True)

    def violates(self, victims: Iterable[Ask]) -> dict[Ask, tuple[str, ...]]:
        """For each victim, taken in this order, the budgets that have nothing left for it; nothing without budgets."""
        budgets, left = self.partition.admission.budgets, self.budgets_left
        return violated(left, ((victim, budgets.protecting(victim)) for victim in victims)) if left else {}

    def beside(self, victim: Ask, work: list[Ask], among_own: bool) -> list[Ask]:
        """The victim, and as many of the first of this work as may go beside it; nothing where it may not go itself."""
        found = self._within_guarantees([victim, *work], among_own)
        found = within(overdrawn(self.partition, found), found)
        return found if found[:1] == [victim] else []

    def is_young(self, running: Ask) -> bool:
        """Whether it started in its turn while the ask waited; within a guarantee it was before it in order."""
        is_before = running.started_owed and running.started_seq > self.ask.seq
        return is_before or self.partition.is_young(running, self.ask)

    def lets_go(self, running: Ask) -> bool:
        """Whether guarantees may let this work go: by itself, or within one of the ask's own queues beside all that
        could go with it, if the ask is within that guarantee then.
        """
        if self._within_guarantees([running], among_own=False):
            return True
        return bool(self._within_guarantees([running], among_own=True)) and self._would_be_within(running.node)

    def _would_be_within(self, node: Node | None) -> bool:
        """Whether the ask would be within the guarantees of its own queues without all that it outranks on the node,
        and anywhere if a maximum lacks room.
        """
        node = None if self.above else node
        if node not in self._own_without:
            nodes = self.partition.nodes.nodes.values() if node is None else (node,)
            work = (a for each in nodes for a in each.allocations if a.evict_cause is None)
            gone = [a for a in work if a.priority < self.reach.below(a.app.queue)]
            self._own_without[node] = all(own.copy(gone).is_kept for own in self.own_guarantees())
        return self._own_without[node]

    def _may_go(self, running: Ask) -> bool:
        """Whether running work may be stopped for the ask, as far as it alone is concerned."""
        if running.evict_cause is not None or running.priority >= self.reach.below(running.app.queue):
            return False
        if running.app is self.ask.app and self.ask.spec.placeholder:
            self.is_of_gang = True  # They start together or not at all.
            return False
        if self.is_young(running):
            self.later_seq = min(self.later_seq, running.started_seq)
            return False
        return not is_spared(self.partition, self.ask, running)

    def _within_guarantees(self, work: list[Ask], among_own: bool) -> list[Ask]:
        """As many of the first of these as guarantees let go."""
        lineage = self.ask.app.queue.lineage
        if not lineage[-1].owes:
            return work
        unguarded = [q for q in lineage if q not in self._own or (among_own and self._own[q])]
        return within_guarantees(self.partition, work, unguarded)

    def _elsewhere(self, among_own: bool, soon: bool = False) -> list[Ask]:
        """Work on any node that would make room under the maxima that lack it: no more than that takes, the least
        important first. `soon`: only such as leaves before the ask would reach into one more window.
        """
        if (among_own, soon) in self._far:
            return self._far[among_own, soon]
        everywhere = (a for node in self.partition.nodes.nodes.values() for a in node.allocations)
        found = [a for a in everywhere if any(bound.holds(a) for bound in self.above) and self._may_go(a)]
        found = [a for a in found if not (soon and reaches_later(self.partition, self.ask, [a]))]
        found.sort(key=self._importance, reverse=True)
        found = self._within_guarantees(within(overdrawn(self.partition, found), found), among_own)
        far = self._far[among_own, soon] = []
        bounds = [bound.copy() for bound in self.above]
        for victim in found:
            if all(bound.is_kept for bound in bounds):
                break
            held = [bound for bound in bounds if bound.holds(victim)]
            if not all(bound.is_kept for bound in held):
                far.append(victim)
                for bound in held:
                    bound.add(victim, 1)
        return far

    def _importance(self, ask: Ask) -> tuple[object, ...]:
        at_root, own = rank(ask.app.queue, ask.priority)
        unwilling = ask.spec.originator or not ask.spec.allow_preempt_self
        return (-at_root, -own, not unwilling, -lost_ms(ask, self.partition.now_ms), ask.allocated_ms or 0, ask.seq)


def room_within(queue: Queue, items: Items) -> Book:
    """What the guarantee of a queue leaves beside what runs there and an ask of this amount, of what that needs; less
    than 0: the ask is not within it (`effective_priority.is_owed`).
    """
    used, gone, idle, most = queue.allocated, queue.preempting, queue.idle, queue.guaranteed or {}
    return {
        name: most[name] - used.get(name, 0) + gone.get(name, 0) + idle.get(name, 0) - amount
        for name, amount in items
        if name in most and amount > 0
    }


def lost_ms(ask: Ask, now_ms: int) -> int:
    """The run time that is lost when the work is stopped now: since it started, or last said that all is saved."""
    return now_ms - max(ask.allocated_ms or 0, ask.checkpoint_ms or 0)
