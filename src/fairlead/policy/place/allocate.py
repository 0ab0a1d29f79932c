"""Allocate: give the next ask in line the first node that has room.

Decides one placement at a time, in YuniKorn's walk: the queue by priority and fair share, in it the application, in it
the ask, for it the node; the first that can be placed is. On its way an ask that cannot be placed may have a node set
aside (`reserve`) or room made for it (`preempt`), which ends the run where the next may begin otherwise. What meets an
obstacle is left alone until that moves, which changes nothing about what is placed, only how often one looks.
"""

from __future__ import annotations

from enum import Enum
from heapq import heapify, heappop, heappush

from fairlead.core.acts import allocations
from fairlead.core.books.asks import Ask, Batch
from fairlead.core.books.node import Node
from fairlead.core.books.partition import Partition
from fairlead.core.books.queues import Queue
from fairlead.policy.eligibility.attempt_times import RESERVE_AFTER_MS, first_to_try
from fairlead.policy.eligibility.backoff import rests_before
from fairlead.policy.order.keys import ask_key, batch_key
from fairlead.policy.order.pick import Lines
from fairlead.policy.place.fitting import may_fit_still, node_for
from fairlead.policy.place.gang_turns import GangTurns
from fairlead.policy.place.reserved import (
    clear_for,
    first_seeker,
    look_later,
    node_to_reserve,
    set_aside,
    waits_there,
)
from fairlead.policy.preemption.reclaim_idle import reclaim_before
from fairlead.policy.preemption.when import Attempts


class Moved(Enum):
    """Nothing was placed, but something moved: a node was set aside or given back, or work was told to stop. The next
    run may find more to do.
    """

    MOVED = "moved"


MOVED = Moved.MOVED
Outcome = Ask | Moved | None
"""Of a run: the ask that was placed, or that began to replace a placeholder; None: nothing can be done until something
happens.
"""
Due = tuple[tuple[object, ...], "Batch"]
"""Place in line, and the batch."""
Act = tuple[tuple[object, ...], bool, Ask]
"""Place in line, whether others are stopped (or a node is set aside), and for what."""


class Walk:
    """The walks down the tree of one partition, one for each placement."""

    __slots__ = ("_gangs", "_held_up", "_let_go_on", "attempts", "is_step", "lines", "partition")

    def __init__(self, partition: Partition, lines: Lines) -> None:
        self.partition, self.lines = partition, lines
        self.attempts = Attempts()
        """What this walk did to make room by guarantee."""
        self.is_step = False
        """A node that is set aside ends the walk in any case."""
        self._gangs = GangTurns(partition, lines)
        self._let_go_on: tuple[Ask, Node] | None = None
        """The first placeholder of this run that let another gang go on, and where it would have started."""
        self._held_up: dict[Queue, None] = {}
        """Leaves with such a placeholder: what is behind that has its turn once the other gang has gone on."""

    def allocate_one(self) -> Outcome:
        """Place the next ask that can be placed, or make room for it (`MOVED`); None when neither can be done."""
        partition = self.partition
        if self.attempts.left or self.attempts.put_off:
            self.attempts.begin()
        if self._let_go_on is not None:
            self._forget_gangs()
        if partition.nodes.fitting or self.lines.may_offer(partition.root):
            outcome = self.below(partition.root)
            if outcome is None and self._let_go_on is not None:
                return self._place(*self._let_go_on)
            if outcome is not None:
                return outcome
        if partition.nodes.seekable:
            look_later(partition)
        if partition.idle.running and reclaim_before(partition, self.lines, None):
            return MOVED
        return MOVED if self.attempts.put_off else None

    def _forget_gangs(self) -> None:
        self._gangs, self._let_go_on = GangTurns(self.partition, self.lines), None
        self._held_up.clear()

    def below(self, queue: Queue) -> Outcome:
        """Down to the leaf that is next; to the one after it when nothing there can be placed."""
        lines, unfit = self.lines, self.partition.nodes.unfit
        heap = lines.children(queue)
        aside = []
        outcome: Outcome = None
        while heap:
            top = heap[0]
            child = top[5]
            if child.stamp != top[4]:
                heappop(heap)
                continue
            if not unfit or lines.may_offer(child):
                outcome = self._in_leaf(child) if child.is_leaf else self.below(child)
                if outcome is not None:
                    break
                if not lines.may_offer(queue):
                    break
                if heap[0][4] != top[4]:
                    continue
            aside.append(heappop(heap))
        for top in aside:
            heappush(heap, top)
        return outcome

    def _in_leaf(self, leaf: Queue) -> Outcome:
        partition = self.partition
        while True:
            first = self.lines.first_that_may_fit(leaf)
            if leaf.due or partition.nodes.seekable_ms <= partition.now_ms - RESERVE_AFTER_MS:
                if self._act_before(leaf, first):
                    return MOVED
                if first is not None and not may_fit_still(first):
                    continue
            if first is None:
                return None
            if self._gangs.is_known_to_wait(first.head):
                return self._lets_go_on(first.head)
            node = node_for(partition, first)
            if node is None or (leaf.properties.backoff_threshold and rests_before(partition, first)):
                self.lines.settle()
                if node is None and first.key[0].required_node and self._reserve_for_next(first):
                    return MOVED
                continue
            # What comes before it has its turn before this one takes its node from what that is set aside for.
            if self._idle_makes_room(first.head, itself=False):
                return MOVED
            if self._gangs.lets_another_go_on(first.head):
                self._let_go_on = self._let_go_on or (first.head, node)
                self._held_up[leaf] = None
                return None
            return self._place(first.head, node)

    def _lets_go_on(self, ask: Ask) -> Outcome:
        """Another gang goes on before this ask, but what stands before that has its turn."""
        if self._idle_makes_room(ask, itself=False):
            return MOVED
        self._held_up[ask.app.queue] = None
        return None

    def _place(self, ask: Ask, node: Node) -> Ask:
        ask.attempted = True
        if node.reservations:
            clear_for(self.partition, node)
        allocations.place(self.partition, ask, node)
        return ask

    # -- asks that cannot be placed -------------------------------------------------------------------------------

    def _reserve_for_next(self, batch: Batch) -> bool:
        """What requires its node has it set aside in its turn, before those that it is taken from ask for it again."""
        seeker = first_seeker(self.partition, self.lines, batch.demand)
        return seeker is not None and self._reserve_for(seeker[1])

    def _reserve_for(self, ask: Ask) -> bool:
        """Set a node aside for an ask, if there is one for it; True when something may start by it, or was told to
        stop. First idle work makes room for it, or for what comes before it: a node that is set aside gives no room
        back to those.
        """
        partition = self.partition
        node = node_to_reserve(partition, ask)
        if node is None:
            return False
        if self._idle_makes_room(ask):
            return True
        set_aside(partition, ask, node)
        return self._next_differs() or not waits_there(partition, ask)

    def _next_differs(self) -> bool:
        """Whether the next walk would begin otherwise than this one goes on, were a node set aside in between."""
        reserving, attempts = self.partition.reserving, self.attempts
        goes_on_otherwise = reserving.of or reserving.overdue or self._let_go_on or attempts.left or attempts.put_off
        return self.is_step or bool(goes_on_otherwise)

    def _make_room_for(self, ask: Ask) -> bool:
        """Have work stopped for an ask by guarantee, unless idle work makes room; True when something was done."""
        assert ask.batch is not None
        return self._idle_makes_room(ask) or self.attempts.make_room(self.partition, ask.batch)

    def _idle_makes_room(self, ask: Ask, *, itself: bool = True) -> bool:
        """Whether idle work was told to stop for an ask, unless not for `itself`, or for what comes before it."""
        if not self.partition.idle.running:
            return False
        return reclaim_before(self.partition, self.lines, ask, itself=itself, but=self._held_up)

    def _act_before(self, leaf: Queue, first: Batch | None) -> bool:
        """Set a node aside, or make room, for what stands before this batch: True when the walk begins anew by it. What
        is done else finds more that is in the way of asks, and takes nothing out of it: `first` stays the first, or may
        not fit.
        """
        now_ms = self.partition.now_ms
        due = [(ask_key(first_to_try(batch, now_ms), batch.app.order_key), batch) for batch in leaf.due]
        heapify(due)
        while (act := self._first_act(leaf, due)) is not None and (first is None or act[0] < batch_key(first)):
            _, stops_others, ask = act
            if self._make_room_for(ask) if stops_others else self._reserve_for(ask):
                return True
            if first is not None and not may_fit_still(first):
                return False
        return False

    def _first_act(self, leaf: Queue, due: list[Due]) -> Act | None:
        """The first ask in order that may have a node set aside, or have others stopped; `due`: a heap of the batches
        that may (those that may no longer leave it here).
        """
        partition = self.partition
        found: Act | None = None
        latest = partition.now_ms - RESERVE_AFTER_MS
        if partition.nodes.seekable_ms <= latest:
            shapes = [s for s, since_ms in partition.nodes.seekable.items() if since_ms <= latest and s in leaf.ready]
            for shape in shapes:
                for demand in leaf.demands[shape].values():
                    seeker = first_seeker(partition, self.lines, demand, found[0] if found is not None else None)
                    if seeker is not None and (found is None or seeker[0] < found[0]):
                        found = (seeker[0], False, seeker[1])
        while due and self.attempts.may_go_on(leaf):
            key, batch = due[0]
            if batch.stamp and not self.lines.is_eligible(batch):
                self.lines.put_aside(batch)
            if batch not in leaf.due:
                heappop(due)
                continue
            if found is None or key < found[0]:
                found = (key, True, batch.head)
            break
        return found
