"""Reserve: a node set aside for an ask that has waited long enough, so that it fills up for nobody else.

Decides which ask in turn gets a node set aside and which node, and places those who have one before anybody else. An
ordinary ask reserves once it is older than `DELAY_MS`, on the node that it would fill most; an ask with a required node
reserves that node at once and takes it from ordinary asks. Never evicts by itself. Invariant: a node is set aside for
one ordinary ask or for any number of asks that require it, and each ask has at most one node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.core.acts import allocations, reserve_node
from fairlead.core.acts.reserve_node import RESERVATION_MS
from fairlead.core.acts.reserve_node import TIMER as EXPIRY_TIMER
from fairlead.core.books.nominations import limit_short_of_kept, queue_short_of_kept
from fairlead.core.model.resources import fits_in
from fairlead.policy.eligibility.attempt_times import NEVER_MS, RESERVE_AFTER_MS
from fairlead.policy.eligibility.headroom import is_full_above, is_held_back
from fairlead.policy.eligibility.limits import full_ceiling, may_run
from fairlead.policy.eligibility.max_wait import waits_for_turn
from fairlead.policy.eligibility.start_estimates import never_suits
from fairlead.policy.order.keys import batch_key, walk_key
from fairlead.policy.preemption.required_node import preempt_on_required_node

if TYPE_CHECKING:
    from fairlead.core.books.applications import Application
    from fairlead.core.books.asks import Ask, Batch
    from fairlead.core.books.demand import Demand, Shape
    from fairlead.core.books.node import Node
    from fairlead.core.books.partition import Partition
    from fairlead.core.model.resources import Items
    from fairlead.policy.order.pick import Lines

DELAY_MS = RESERVE_AFTER_MS
Key = tuple[object, ...]


def is_on(partition: Partition) -> bool:
    """Whether nodes are set aside at all: where preemption goes by priority, space is held only for preemptors."""
    return partition.spec.preemption.rule == "guarantee"


# -- setting a node aside -----------------------------------------------------------------------------------------


def first_seeker(partition: Partition, lines: Lines, demand: Demand) -> tuple[Key, Batch, Ask] | None:
    """The first ask of a demand without room that is due to have a node set aside, with its place in line.

    None when there is none; then the demand is left alone until one has waited long enough.
    """
    if demand.obstacle is not None or not demand.live or demand.seek_ms > partition.now_ms or is_full_above(demand):
        return None
    latest = partition.now_ms if demand.shape.required_node else partition.now_ms - DELAY_MS
    next_ms = NEVER_MS
    lines.bring_up(demand)
    for entry in demand.entries():
        batch = entry[2]
        if not lines.is_eligible(batch):
            continue
        ask, waits_ms = _first_due(partition, batch, latest)
        if ask is not None:
            return (*batch_key(batch)[:-1], ask.line_key), batch, ask
        next_ms = min(next_ms, waits_ms + DELAY_MS)
    demand.seek_ms = next_ms
    return None


def look_later(partition: Partition) -> None:
    """No ask seeks a node now: for each shape it is worked out when one will, and there is a timer for the first."""
    seekable = partition.nodes.seekable
    latest = partition.now_ms - DELAY_MS
    for shape, since_ms in list(seekable.items()):
        if since_ms <= latest:
            seekable[shape] = min((d.seek_ms for d in partition.demands_of(shape)), default=NEVER_MS) - DELAY_MS
    partition.nodes.seekable_ms = min(seekable.values(), default=NEVER_MS)
    next_ms = partition.nodes.seekable_ms + DELAY_MS
    if partition.now_ms < next_ms < NEVER_MS:
        partition.timers.look(next_ms, partition.name)


def _first_due(partition: Partition, batch: Batch, latest: int) -> tuple[Ask | None, int]:
    """The first ask of the batch that was created by then and has nothing kept for it; else when the oldest of the
    others was created.
    """
    next_ms = NEVER_MS
    for ask in batch.asks if batch.oldest_ms <= latest else ():
        if ask.created_ms > latest:
            next_ms = min(next_ms, ask.created_ms)
        elif ask.reserved_on is None and ask.nomination is None:
            return (ask, next_ms) if not waits_for_turn(partition, ask) else (None, next_ms)
    return None, next_ms if batch.oldest_ms <= latest else batch.oldest_ms


def reserve_for(partition: Partition, ask: Ask, demand: Demand) -> bool:
    """Set a node aside for an ask that found none just now; True when it was done.

    What is above the nodes (a full queue, a limit) must not be in the way: an ask that could not use the node does not
    get it.
    """
    shape = demand.shape
    if is_held_back(partition, demand, ask):
        return False
    if shape.required_node:
        node = partition.nodes.nodes.get(shape.required_node)
        if node is not None and (
            not node.fits_total(shape.items) or any(not a.required_node for a in node.reservations)
        ):
            node = None
    else:
        node = tightest(partition, ask)
    if node is None:
        partition.nodes.cannot_reserve(shape)
        return False
    ask.attempted = True
    reserve_node.reserve(partition, ask, node)
    return True


def tightest(partition: Partition, ask: Ask) -> Node | None:
    """Of the open nodes that suit the ask when empty the one that it would fill most: smallest `slack`, then order."""
    nodes, items = partition.nodes, ask.items
    best: tuple[float, float, str] | None = None
    found = None
    for node in nodes.nodes.values():
        if node.reservations or not node.schedulable or not node.fits_total(items):
            continue
        left = slack(items, node)
        if best is not None and left > best[0]:
            continue
        key = (left, nodes.score(node), node.id)
        if (best is None or key < best) and nodes.suits(ask, node):
            best, found = key, node
    return found


def slack(items: Items, node: Node) -> float:
    """How much of what is free on a node an amount would leave, summed over its resources as parts of the free.

    0 for a resource that is asked for to the last bit or more, 1 for one that is not asked for.
    """
    wanted, left = dict(items), 0.0
    for name, free in node.free.items():
        if name not in wanted:
            left += 1.0
        elif wanted[name] < free:
            left += (free - wanted[name]) / free
    return left


def clear_for(partition: Partition, node: Node) -> None:
    """An ask that requires this node has its turn: ordinary asks for which it was set aside lose it."""
    for ask in [a for a in node.reservations if not a.required_node]:
        reserve_node.unreserve(partition, ask)
        ask.app.queue.touch_app(ask.app)


# -- when to look again -------------------------------------------------------------------------------------------


def on_expiry(partition: Partition, app_id: str) -> None:
    """Some reservation of the application is old: try it again, which gives it up if it still cannot be used."""
    app = partition.applications.get(app_id)
    own = [a for a in app.asks.values() if a.reserved_on is not None] if app is not None else []
    partition.nodes.reserved_again |= dict.fromkeys(own)
    since = (a.reserved_on.reservations[a] for a in own if a.reserved_on is not None)
    later = [ms + RESERVATION_MS for ms in since if ms + RESERVATION_MS > partition.now_ms]
    if later:
        partition.timers.set_earlier(min(later), partition.name, app_id, EXPIRY_TIMER)


# -- using it -----------------------------------------------------------------------------------------------------


def place_reserved(partition: Partition) -> Ask | None:
    """Place the first ask in walk order with a reserved node that fits there, or elsewhere; None when none does.

    Of one application, first all asks are tried on their own nodes, then on others. Only those are tried for which
    something changed since the last time.
    """
    again = partition.nodes.reserved_again
    if not again:
        return None
    by_app: dict[Application, list[Ask]] = {}
    for ask in list(again):
        if ask.reserved_on is None or not ask.pending:
            del again[ask]
        else:
            by_app.setdefault(ask.app, []).append(ask)
    for app in sorted(by_app, key=walk_key) if len(by_app) > 1 else by_app:
        asks = sorted(by_app[app], key=lambda a: a.line_key)
        placed = _place_one_of(partition, asks)
        if placed is not None:
            return placed
        for ask in asks:
            again.pop(ask, None)
    return None


def _place_one_of(partition: Partition, asks: list[Ask]) -> Ask | None:
    free_to_go = []
    for ask in asks:
        node, batch, shape = ask.reserved_on, ask.batch, ask.shape
        assert node is not None
        assert batch is not None
        assert shape is not None
        _watch(partition, ask, batch.demand)
        if waits_for_turn(partition, ask):
            reserve_node.unreserve(partition, ask)
            continue
        if is_in_the_way(partition, ask):
            _give_up_if_old(partition, ask)
            continue
        suits = partition.nodes.suits(ask, node)
        if suits and fits_in(ask.items, node.free):
            ask.attempted = True
            allocations.place(partition, ask, node)
            return ask
        if ask.required_node:
            preempt_on_required_node(partition, ask, node)
            if not suits:
                _wait_until_it_suits(partition, shape)
        else:
            free_to_go.append((ask, shape))
    for ask, shape in free_to_go:
        node = None if shape.unfit else partition.nodes.first_for(shape)
        if node is not None:
            ask.attempted = True
            allocations.place(partition, ask, node)
            return ask
        if ask.reserved_on is not None and never_suits(partition, ask, ask.reserved_on):
            reserve_node.unreserve(partition, ask)
            continue
        _wait_until_it_suits(partition, shape)
    return None


def is_in_the_way(partition: Partition, ask: Ask) -> bool:
    """Whether a gate, a limit, a queue or the sum of all nodes has no room for a reserved ask."""
    app, items = ask.app, ask.items
    if not may_run(app) or full_ceiling(app, items) is not None or app.queue.short_of_room(items) is not None:
        return True
    if partition.nominations and (
        queue_short_of_kept(partition, app.queue, items, ask) is not None
        or limit_short_of_kept(partition, ask) is not None
    ):
        return True
    return not partition.nodes.sum_has_room(items)


def _watch(partition: Partition, ask: Ask, demand: Demand) -> None:
    """Have it tried again whenever something moves that may be in its way."""
    if ask.watches:
        return
    reserve_node.watch(partition, ask, demand.shape.reserved)
    for queue in demand.leaf.lineage:
        reserve_node.watch(partition, ask, queue.reserved)
    for ceiling in demand.allowance.ceilings if demand.allowance is not None else ():
        reserve_node.watch(partition, ask, ceiling.reserved)


def _wait_until_it_suits(partition: Partition, shape: Shape) -> None:
    """No node takes the ask: it is tried again when one may."""
    if not shape.unfit:
        partition.nodes.mark_unfit(shape)


def _give_up_if_old(partition: Partition, ask: Ask) -> None:
    """A node that was set aside an hour ago and cannot be used because of what is above it goes back."""
    node = ask.reserved_on
    if node is not None and node.reservations[ask] + RESERVATION_MS <= partition.now_ms:
        reserve_node.unreserve(partition, ask)
