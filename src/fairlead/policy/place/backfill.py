"""Backfill past a kept turn: work that is held back starts where it cannot delay the one that it waits for.

Decides for queues with `backfill: easy`, and only when the start of the ask with the reservation is known from time
limits (`expected`): work may pass that ends before then, or that leaves enough for it then, on its node and in its
queues. Never delays that start. Invariant: whatever is placed here would not have been in the way at the expected
start, as long as limits are honoured.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fairlead.core.acts import allocations
from fairlead.core.books.asks import Ask
from fairlead.core.books.node import Node
from fairlead.core.books.nominations import limit_short_of_kept, queue_short_of_kept
from fairlead.core.books.partition import Partition
from fairlead.core.books.queues import Queue
from fairlead.core.books.user_limits import Ceiling
from fairlead.core.model.constraints import ANYWHERE
from fairlead.core.model.resources import Book, Items, add_to, fits_in, lacks, take_from
from fairlead.policy.eligibility.limits import full_ceiling, leaves_places, may_run
from fairlead.policy.eligibility.start_estimates import Expected, expected_start, next_end_ms
from fairlead.policy.order.effective_priority import is_owed, weaker_than
from fairlead.policy.order.keys import application_key, ask_key


@dataclass(frozen=True, slots=True, eq=False)
class _Start:
    """An expected start of an ask that has its turn kept."""

    holder: Ask
    expected: Expected
    total: Book
    """What it needs together with the others whose turns are kept that start by then and have room beside it."""
    left: Book
    """What they leave on its node."""
    by_then: list[Ask]
    """It and those others, whether they have room or not."""


def backfill_one(partition: Partition) -> Ask | None:
    """Place the first ask in order that is held back and delays none by starting now; None when there is none: then it
    is looked for again when more of what runs should have ended.
    """
    easy = [(leaf, own) for leaf, own in partition.reserving.of.items() if leaf.properties.easy_backfill]
    for leaf, own in easy:
        holders = [holder for holder, reservation in own.items() if reservation.limit is None]
        starts = [(holder, expected_start(partition, holder, weaker_than(partition, holder))) for holder in holders]
        known = [(holder, start) for holder, start in starts if start is not None]
        if len(known) < len(starts):
            continue
        placed = _from_leaf(partition, leaf, [_beside_others(holder, start, known) for holder, start in known])
        if placed is not None:
            return placed
    if easy and (next_ms := next_end_ms(partition)) is not None:
        partition.timers.look(next_ms, partition.name)
    return None


def _from_leaf(partition: Partition, leaf: Queue, starts: list[_Start]) -> Ask | None:
    for ask in sorted(_held_back(partition, leaf), key=lambda ask: ask_key(ask, application_key(ask.app))):
        node = _node_for(partition, ask, starts)
        if node is not None:
            ask.attempted = True
            ask.started_owed = leaf.by_rank and is_owed(leaf, ask.items)
            allocations.place(partition, ask, node)
            return ask
    return None


def _held_back(partition: Partition, leaf: Queue) -> Iterator[Ask]:
    """What of the leaf waits for a kept turn that no limit of a user or group is in the way of (when that has room
    nobody knows), and for nothing else that its application says.
    """
    turns = partition.reserving
    for app in leaf.applications.values():
        if not app.batches or not may_run(app) or app.rests(partition.now_ms):
            continue
        for batch in app.line:
            if not app.stands_in(batch.task_group):
                # In nothing else that counts here do those of a batch differ.
                first_of_each_limit = {ask.spec.time_limit_ms: ask for ask in reversed(batch.asks)}.values()
                held = (ask for ask in first_of_each_limit if turns.holder(ask) is not None)
                yield from (ask for ask in held if not turns.holds_back_under_limit(ask))


def _node_for(partition: Partition, ask: Ask, starts: list[_Start]) -> Node | None:
    """Of the nodes where the ask fits now and delays none of the expected starts: the first that it likes best.

    What is kept under a maximum or limit stays so, but for those whose starts are expected. Room for which work was
    stopped is wanted as soon as that has gone, which time limits do not say.
    """
    leaf, holders = ask.app.queue, tuple(s.holder for s in starts if not _is_promised(s.holder))
    if queue_short_of_kept(partition, leaf, ask.items, holders) or limit_short_of_kept(partition, ask, holders):
        return None
    if full_ceiling(ask.app, ask.items) is not None or leaf.short_of_room(ask.items) is not None:
        return None
    if not partition.nodes.sum_has_room(ask.items):
        return None
    if not leaves_places(ask.app, [start.holder.app for start in starts]):
        return None  # Its application may stay when the ask has ended.
    limit_ms = ask.limit_ms
    before = [s for s in starts if limit_ms is None or partition.now_ms + limit_ms > s.expected.start_ms]
    if not all(_leaves_enough(ask, start) for start in before):
        return None
    after = [start.holder for start in starts if start not in before and start.holder in holders]
    found = [
        node
        for node in partition.nodes.nodes.values()
        if not node.reservations
        and node.takes(ask)
        and _has_room(ask, node, before, after)
        and partition.nodes.suits(ask, node)
        and not any(_keeps_off(partition, ask, node, start) for start in before)
    ]
    return partition.nodes.first_of(found, ask)


def _is_promised(holder: Ask) -> bool:
    """Whether room is kept for it for which work was stopped."""
    return holder.nomination is not None and not holder.nomination.gathers


def _has_room(ask: Ask, node: Node, before: list[_Start], after: list[Ask]) -> bool:
    """Whether it fits there now and, of those that start `before` it would end, beside these. Room that gathers for
    those that start `after` that may be used until then.
    """
    free = dict(node.free)
    for holder in after:
        add_to(free, node.held.get(holder, ()))
    if not fits_in(ask.items, free) or not fits_in(ask.items, node.available):
        return False
    return all(fits_in(ask.items, start.left) for start in before if start.expected.node is node)


def _keeps_off(partition: Partition, ask: Ask, node: Node, start: _Start) -> bool:
    """Whether anything but room would keep the holder off at the expected start, if the ask ran on this node."""
    if ask.spec.where is ANYWHERE and start.holder.spec.where is ANYWHERE:
        return False
    terrain, expected = partition.nodes.terrain, start.expected
    terrain.suppose(ask.spec, node)
    suits = partition.nodes.suits(start.holder, expected.node, [*expected.gone, *expected.yielding])
    terrain.suppose_no_more()
    return not suits


# -- all that start together --------------------------------------------------------------------------------------


def _beside_others(holder: Ask, expected: Expected, starts: list[tuple[Ask, Expected]]) -> _Start:
    total, left = dict(holder.items), dict(expected.free)
    take_from(left, holder.items)
    for other, start in starts:
        if other is holder or start.start_ms > expected.start_ms or _is_full(expected, total, other):
            continue
        # What is held there is not free, but where it does not keep the holder off.
        if start.node is expected.node and (other.held_on is not expected.node or other in expected.yielding):
            if not fits_in(other.items, left):
                continue
            take_from(left, other.items)
        add_to(total, other.items)
    by_then = [other for other, start in starts if other is holder or start.start_ms <= expected.start_ms]
    return _Start(holder, expected, total, left, by_then)


def _leaves_enough(ask: Ask, start: _Start) -> bool:
    """Whether all have room at the expected start under every maximum and limit. Under a limit what is in use now
    counts: the start is known only where that leaves room for the holder.
    """
    if _is_full(start.expected, start.total, ask):
        return False
    shared = [ceiling for ceiling in ask.app.ceilings if ceiling in start.holder.app.ceilings]
    return not any(_is_used_up(ceiling, start, ask) for ceiling in shared)


def _is_full(expected: Expected, total: Book, other: Ask) -> bool:
    """Whether some queue has no room for one more at the expected start, beside so much that starts by then."""
    return any(lacks(queue.max, used, _sum(total, other)) for queue, used in expected.used.items())


def _is_used_up(ceiling: Ceiling, start: _Start, ask: Ask) -> bool:
    """Whether a limit has no room for it beside the holder and those that start by then and have room beside this."""
    total = dict(start.holder.items)
    for other in start.by_then:
        if other is not start.holder and ceiling in other.app.ceilings and not ceiling.lacks(_sum(total, other)):
            add_to(total, other.items)
    return ceiling.lacks(_sum(total, ask))


def _sum(total: Book, other: Ask) -> Items:
    items = dict(total)
    add_to(items, other.items)
    return tuple(items.items())
