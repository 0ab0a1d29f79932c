"""Rank: which waiting ask has its turn next, where rank decides (`preemption.rule` is `priority` or `both`).

Decides the order of turns and what an ask does in its own: it takes room that is kept for it, free room, what idle work
gives back, room that is kept for weaker asks, and, last, the room of weaker work that is stopped for it. Nothing weaker
is looked at before. Never chooses nodes or victims (`policy.preemption` does). Invariant: what is placed is the first
in order of all that can be placed, and nothing before it could have room made.

An ask within the guarantees on its way goes first (`both` only), of two such asks that with the nearer guarantee. Else
two are compared where their queues meet: 1. the higher priority, as seen there after offsets and fences; then, as in
YuniKorn's walk, 2. the smaller share of the queue, 3. more that waits, 4. the older queue; in one leaf: priority,
retried, the order of applications, age.
"""

from __future__ import annotations

from heapq import heappop, heappush
from operator import itemgetter

from fairlead.core.acts import allocations
from fairlead.core.books.applications import Application
from fairlead.core.books.asks import Ask, Batch
from fairlead.core.books.node import Node
from fairlead.core.books.nominations import something_leaves
from fairlead.core.books.partition import Partition
from fairlead.core.books.queues import Queue
from fairlead.core.model.resources import Items
from fairlead.policy.eligibility.backoff import rests_before
from fairlead.policy.eligibility.max_wait import gathers_room
from fairlead.policy.order.effective_priority import NOT_OWED, Level, is_owed, is_stronger, owed_by, path_of
from fairlead.policy.order.keys import child_entry
from fairlead.policy.order.pick import Lines
from fairlead.policy.place.allocate import MOVED, Outcome
from fairlead.policy.place.fitting import node_for
from fairlead.policy.place.gang_turns import GangTurns, place_of
from fairlead.policy.place.nominated import Places, start_over, yield_room
from fairlead.policy.place.reserved import clear_for
from fairlead.policy.preemption.by_priority import make_room_before

FEW = 8
"""Where no more than one child in so many may be owed something, those are looked at by themselves."""
Found = tuple[int, Level, int, "Batch"]
"""The first batch of a part of the tree: how near the guarantee is that its first ask is within (`owed_by`), the place
of that part among its siblings, the priority of the ask as it counts there, and the batch.
"""


class Turns:
    """The turns of one run."""

    __slots__ = ("_gangs", "_let_go_on", "lines", "partition")

    def __init__(self, partition: Partition, lines: Lines) -> None:
        self.partition, self.lines = partition, lines
        self._gangs = GangTurns(partition, lines)
        self._let_go_on: dict[Queue, tuple[Ask, Node]] = {}
        """By leaf a placeholder that let another gang go on, and where it would have started."""

    def take_next(self) -> Outcome:
        """What the first ask in order that can do anything does; None when none can.

        An ask that finds no node is passed over at first: whether room is made for it is looked at for all such asks at
        once, when it is known what would be placed after them.
        """
        partition = self.partition
        while True:
            known = self._drop_futile()
            batch = self._first()
            nominee = self._first_nominee(batch, known)
            turn = nominee
            if nominee is None and batch is not None:
                if (node := node_for(partition, batch)) is None:
                    self.lines.settle()
                    continue
                if self._lets_go_on(batch.head, node):
                    continue
                turn = self._stronger_that_let_go_on(batch.head) or (batch.head, node)
            if make_room_before(partition, self.lines, turn[0] if turn is not None else None):
                return MOVED
            if nominee is not None:
                self._place(*nominee)
                yield_room(partition, nominee[1])
                return nominee[0]
            turn = turn or self._first_that_let_go_on()  # Nothing else was placed after all.
            if turn is None:
                return None
            if batch is not None and turn[0] is batch.head and self._rests_before(batch):
                self.lines.settle()
                continue
            turn[0].attempted = True
            clear_for(partition, turn[1])
            self._place(*turn)
            return turn[0]

    def _lets_go_on(self, ask: Ask, node: Node) -> bool:
        """Whether a placeholder lets another gang go on; its leaf has no other turn before that."""
        if not self._gangs.lets_another_go_on(ask):
            return False
        self._let_go_on[ask.app.queue] = ask, node
        return True

    def _stronger_that_let_go_on(self, ask: Ask) -> tuple[Ask, Node] | None:
        """What let another gang go on is not passed by what is weaker: that other one may have let go on itself."""
        stronger = (each for each in self._let_go_on.values() if is_stronger(each[0], ask))
        return min(stronger, key=lambda each: place_of(each[0]), default=None)

    def _first_that_let_go_on(self) -> tuple[Ask, Node] | None:
        return min(self._let_go_on.values(), key=lambda each: place_of(each[0]), default=None)

    def _rests_before(self, batch: Batch) -> bool:
        if not batch.app.queue.properties.backoff_threshold:
            return False
        return rests_before(self.partition, batch, lambda items: owed_by(batch.app.queue, items))

    def _place(self, ask: Ask, node: Node) -> None:
        ask.started_owed = is_owed(ask.app.queue, ask.items)
        allocations.place(self.partition, ask, node)

    def _first(self) -> Batch | None:
        """The first batch in order that may fit on some node and under every maximum: those within guarantees first."""
        root = self.partition.root
        if not self.lines.may_offer(root):
            return None
        owed = self._first_below(root, owed=True) if root.owed_below else None
        found = owed or self._first_below(root, owed=False)
        return found[3] if found is not None else None

    def _first_below(self, queue: Queue, owed: bool) -> Found | None:
        """The first of one queue and below; of those within guarantees only if `owed`, first that with the nearest.

        The key of a child says the best that can be hoped for below it; once what was found is at least as good, the
        rest need not be looked at.
        """
        lines = self.lines
        if queue in self._let_go_on:
            return None
        if queue.is_leaf:
            batch = lines.first_owed(queue) if owed else lines.first_that_may_fit(queue)
            if batch is None or self._gangs.is_known_to_wait(batch.head):
                return None
            return owed_by(queue, batch.head.items) if owed else NOT_OWED, (), batch.head.priority, batch
        if owed and FEW * len(queue.owed_below) < len(queue.children):
            heap = sorted(child_entry(child, child.stamp) for child in queue.owed_below)
        else:
            heap = lines.children(queue)
        hoped = 0 if owed else NOT_OWED
        aside = []
        best: Found | None = None
        while heap:
            top = heap[0]
            child = top[5]
            if child.stamp != top[4]:
                heappop(heap)
                continue
            if best is not None and best[:2] <= (hoped, top[:4]):
                break
            is_worth_a_look = lines.may_offer(child) and (not owed or child in queue.owed_below)
            found = self._first_below(child, owed) if is_worth_a_look else None
            if found is not None:
                seen = child.adjust(found[2])
                found = (found[0], (-seen, *top[1:4]), seen, found[3])
                if best is None or found[:2] < best[:2]:
                    best = found
            aside.append(heappop(heap))
        for top in aside:
            heappush(heap, top)
        return best

    def _first_nominee(self, batch: Batch | None, known: dict[Ask, Node | None]) -> tuple[Ask, Node] | None:
        """The nominated ask that can start now and comes before all others that can, and where. `known`: of some where
        they can. Of those that are alike to their queue and application only one is looked at that can.
        """
        partition, places = self.partition, Places(self.partition)
        firsts: dict[tuple[Application, int, Items], tuple[Ask, Node]] = {}
        for ask in partition.nominations:
            alike = (ask.app, ask.line_key[0], ask.items)
            if alike in firsts and firsts[alike][0].line_key < ask.line_key:
                continue
            node = known[ask] if ask in known else places.of(ask)
            if node is not None:
                firsts[alike] = (ask, node)
        best = min(((path_of(ask), ask, node) for ask, node in firsts.values()), default=None, key=itemgetter(0))
        if best is None or (batch is not None and path_of(batch.head) < best[0]):
            return None
        return best[1:]

    def _drop_futile(self) -> dict[Ask, Node | None]:
        """A nominated ask whose room has gone for good waits in line again. When there was none: where those can start
        for which nothing is to come.
        """
        partition = self.partition
        found: dict[Ask, Node | None] = {}
        places, dropped = Places(partition), False
        for ask, nomination in list(partition.nominations.of.items()):
            if nomination.is_coming or gathers_room(partition, ask):
                continue
            found[ask] = places.of(ask)
            if found[ask] is None and not something_leaves(partition, ask):
                start_over(partition, ask)
                places, dropped = Places(partition), True
        self.lines.settle()
        return found if not dropped else {}
