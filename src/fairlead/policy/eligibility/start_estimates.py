"""Expected starts: when a waiting ask will have room, by the time limits that running work declared.

Decides from the books alone: work with a limit is gone when it is over (told to stop: when its grace is), work without
one may stay for ever, and nothing else starts meanwhile. Never guesses run times and never changes anything.
Invariant: while limits are honoured and nothing else takes the room, the ask can start at that time or earlier.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fairlead.core.books.asks import Ask, line_group
from fairlead.core.books.idle_work import payer
from fairlead.core.books.node import Node
from fairlead.core.books.nominations import limit_short_of_kept, queue_short_of_kept
from fairlead.core.books.partition import Partition
from fairlead.core.books.queues import Queue
from fairlead.core.books.volume_limits import is_beyond
from fairlead.core.model.constraints import ANYWHERE
from fairlead.core.model.matching import AFFINITY, NO_DEVICES, SELECTOR, TAINT, VOLUMES, all_of, looked_at, matches
from fairlead.core.model.resources import Book, add_to, fits_in, lacks, take_from
from fairlead.policy.eligibility.limits import full_ceiling, may_run


@dataclass(frozen=True, slots=True)
class Expected:
    """When and where an ask can start, and what is left by then."""

    start_ms: int
    node: Node
    free: Book
    """What is free on that node then, the ask itself not counted."""
    used: dict[Queue, Book]
    """What is in use then, in the ask's queue (of idle work: its resource group) and those above it."""
    gone: list[Ask]
    """What has ended by then."""
    yielding: list[Ask]
    """Nominated asks whose room it takes, if need be."""


def start_to_tell(
    partition: Partition, ask: Ask, yielding: Sequence[Ask], *, overdue_ends: bool = True
) -> Expected | None:
    """The same as `expected_start`, for whoever waits; None also where something is in the way of which nobody can know
    when it ends: the kept turn of another, placeholders that stand in for it, what is promised to others.
    """
    where, turns = payer(ask), partition.reserving
    if ask.app.stands_in(line_group(ask)) or (turns.within(where, ask) if ask.spec.idle else turns.holder(ask)):
        return None
    if queue_short_of_kept(partition, where, ask.items, (ask, *yielding)):
        return None
    if limit_short_of_kept(partition, ask, tuple(yielding)):
        return None
    return expected_start(partition, ask, yielding, overdue_ends=overdue_ends)


def expected_start(
    partition: Partition, ask: Ask, yielding: Sequence[Ask] = (), *, overdue_ends: bool = True
) -> Expected | None:
    """When the ask can start, not before its application has rested; None where that is not known: a user's limit, a
    gate, or work without a time limit. What is kept for those that are `yielding` does not keep it off, but for smaller
    ones, which may start first. `overdue_ends`: what should have ended by its limit does so now; else it stays.
    """
    if not ask.pending or not may_run(ask.app) or full_ceiling(ask.app, ask.items) is not None:
        return None
    not_before = [other for other in yielding if fits_in(ask.items, dict(other.items))]
    future, now_ms = _Future(partition, ask, not_before), partition.now_ms
    is_in_line = ask.batch is not None and ask.reserved_on is None
    earliest_ms = (ask.app.rest_ends_ms(now_ms) if is_in_line else None) or now_ms
    node = future.first_node(partition.nodes.every())
    if node is not None:
        is_free = earliest_ms == now_ms or (future.suits_later(node) and future.is_before_windows(earliest_ms, node))
        return future.at(earliest_ms, node) if is_free else None
    for end_ms, leaving in _ends(partition):
        if end_ms <= now_ms and not overdue_ends:
            continue
        touched = future.let_go(leaving)
        node = future.first_node(touched)
        if node is not None:
            start_ms = max(end_ms, earliest_ms)
            return future.at(start_ms, node) if future.is_before_windows(start_ms, node) else None
    return None


def next_end_ms(partition: Partition) -> int | None:
    """When more should have ended than now: an ask may start first on another node then, though nothing happened."""
    return next((at_ms for at_ms, _ in _ends(partition) if at_ms > partition.now_ms), None)


def never_suits(partition: Partition, ask: Ask, node: Node) -> bool:
    """Whether it cannot start on the node whatever ends: the node is not for it, or what it wants to be with has gone.
    Devices that the node has not left are not known to come back with what ends.

    To keep the node for it is in vain. (The first of a group that it belongs to itself needs nothing there.)
    """
    where, labels = ask.where, ask.spec.labels
    found = partition.nodes.terrain.misfit(where, labels, node)
    if found == AFFINITY:
        is_known = all(term.topology_key in node.labels for term in where.affinity)
        return not is_known or not matches(all_of(where.affinity), labels)
    if found == VOLUMES:
        return is_beyond(where, node)
    return found in (SELECTOR, TAINT, NO_DEVICES)


def end_ms(ask: Ask, now_ms: int, leave_by_ms: int | None = None) -> int | None:
    """When running work is gone at the latest by its time limit, not before now; None: it is not known. What was told
    to stop has no longer than its grace.
    """
    limit_ms, since_ms = ask.limit_ms, ask.allocated_ms
    if ask.spec.placeholder and ask.replaces is not None and ask.replaces.bound_for is None:
        limit_ms, since_ms = ask.replaces.limit_ms, now_ms  # What takes its place begins now.
    if limit_ms is None or since_ms is None:
        return None
    by_limit_ms = max(since_ms + limit_ms, now_ms)
    return by_limit_ms if leave_by_ms is None else min(by_limit_ms, leave_by_ms)


def _ends(partition: Partition) -> list[tuple[int, list[Ask]]]:
    """What ends when, in order of time; work that ends at one time together."""
    by_time: dict[int, list[Ask]] = {}
    leave_by = partition.disruption.leave_by
    for node in partition.nodes.nodes.values():
        for ask in node.allocations:
            at_ms = end_ms(ask, partition.now_ms, leave_by.get(ask))
            if at_ms is not None:
                by_time.setdefault(at_ms, []).append(ask)
    return sorted(by_time.items())


class _Future:
    """The books as they will be when work has gone, as far as one ask is concerned."""

    def __init__(self, partition: Partition, ask: Ask, yielding: list[Ask]) -> None:
        self._partition = partition
        self._ask = ask
        self._yielding = yielding
        self._free: dict[Node, Book] = {}
        self._used = {queue: dict(queue.allocated) for queue in payer(ask).lineage}
        self._gone: list[Ask] = []
        self._away: list[Ask] = list(yielding)
        """What has gone, and those that yield."""
        self._leaving: list[Ask] = []
        """What was told to stop, once time goes on: nobody knows when it has gone, so it is no company."""
        self._all = False
        """Its queues had room when nodes were last looked at: from then on only nodes that gain matter."""
        self._kept_off: dict[Node, None] = {}
        """And those with room from which work on other nodes may have kept it."""

    def let_go(self, leaving: list[Ask]) -> list[Node]:
        """This work is gone; the nodes to look at."""
        if not self._gone:
            self._leaving = self._told_to_stop()
        touched = dict(self._kept_off) if self._kept_off and any(map(self._may_keep_it_off, leaving)) else {}
        for ask in leaving:
            assert ask.node is not None
            add_to(self._free_on(ask.node), ask.items)
            touched[ask.node] = None
            for queue in payer(ask).lineage:
                if queue in self._used:
                    take_from(self._used[queue], ask.items)
        self._gone += leaving
        self._away += leaving
        return self._partition.nodes.every() if not self._all else list(touched)

    def first_node(self, nodes: list[Node]) -> Node | None:
        """Of these nodes with room for the ask the first that it likes best, if its queues have room."""
        if any(lacks(queue.max, self._used[queue], self._ask.items) for queue in self._used):
            return None
        self._all = True
        return self._partition.nodes.first_of([n for n in nodes if self._takes(n)], self._ask)

    def _takes(self, node: Node) -> bool:
        ask = self._ask
        if not node.takes(ask):
            return False
        if (node.reservations and ask not in node.reservations) or not fits_in(ask.items, self._free_on(node)):
            return False
        nodes = self._partition.nodes
        if nodes.suits(ask, node, self._away):
            return not self._leaving or nodes.suits(ask, node, list(dict.fromkeys([*self._away, *self._leaving])))
        if nodes.terrain.misfit_here(ask.where, node, self._away) is None:
            self._kept_off[node] = None
        return False

    def suits_later(self, node: Node) -> bool:
        """Whether it can start there also when what was told to stop has gone."""
        return self._partition.nodes.suits(self._ask, node, [*self._away, *self._told_to_stop()])

    def _told_to_stop(self) -> list[Ask]:
        told, where = self._partition.disruption, self._ask.where
        if not (where.affinity or where.spread):
            return []
        return [*told.leave_by, *told.going, *told.overdue]

    def _may_keep_it_off(self, other: Ask) -> bool:
        """Whether it may matter for more nodes than its own that this work is there."""
        ask = self._ask
        if ask.where is ANYWHERE and other.spec.where is ANYWHERE:
            return False
        if any(matches(selector, other.spec.labels) for selector in looked_at(ask.where)):
            return True
        return any(matches(term.selector, ask.spec.labels) for term in other.spec.where.anti_affinity)

    def is_before_windows(self, start_ms: int, node: Node) -> bool:
        """Whether it would be over before a window that keeps the node free."""
        return self._partition.admission.windows.let(self._ask, node, start_ms)

    def _free_on(self, node: Node) -> Book:
        if node not in self._free:
            kept = [other for other in self._yielding if other.held_on is node]
            free = self._free[node] = node.free_for(self._ask, kept)
            for holder in node.reservations:
                if holder is not self._ask:
                    take_from(free, holder.items)
        return self._free[node]

    def at(self, start_ms: int, node: Node) -> Expected:
        """The answer."""
        return Expected(start_ms, node, dict(self._free_on(node)), self._used, self._gone, self._yielding)
