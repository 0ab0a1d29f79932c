"""Reserve: a node set aside for an ask that has waited long enough, so that it fills up for no other.

Decides which ask in turn gets a node set aside and which node, and places those that have one before all others. An
ordinary ask reserves once it is older than `RESERVE_AFTER_MS`, on the node that it would fill most; an ask with a
required node reserves that node at once and takes it from ordinary asks. Never evicts by itself. Invariant: a node is
set aside for one ordinary ask, for several for which room is made there, or for any number of asks that require it, and
each ask has at most one node.

So it is in YuniKorn's walk. Where rank decides, room is kept for single asks only, and no node is set aside anew.
"""

from __future__ import annotations

from collections.abc import Iterator

from fairlead.core.acts import allocations, reserve_node
from fairlead.core.acts.reserve_node import RESERVATION_MS
from fairlead.core.books.applications import Application
from fairlead.core.books.asks import NEVER_MS, Ask, Batch
from fairlead.core.books.demand import Demand, Shape
from fairlead.core.books.node import Node
from fairlead.core.books.partition import Partition
from fairlead.core.books.queues import Queue
from fairlead.core.books.timers import RESERVATION
from fairlead.core.model.resources import fits_in
from fairlead.policy.eligibility.attempt_times import RESERVE_AFTER_MS
from fairlead.policy.eligibility.headroom import is_full_above, is_held_back, obstacle_above
from fairlead.policy.eligibility.max_wait import waits_for_turn
from fairlead.policy.eligibility.start_estimates import never_suits
from fairlead.policy.order.keys import application_key, batch_key, first_leaf_in_walk
from fairlead.policy.order.pick import Lines
from fairlead.policy.preemption.required_node import preempt_on_required_node, take_kept_room, would_stop

Key = tuple[object, ...]


# -- setting a node aside -----------------------------------------------------------------------------------------


def first_seeker(
    partition: Partition, lines: Lines, demand: Demand, before: Key | None = None
) -> tuple[Key, Ask] | None:
    """The first ask of a demand without room that is due to have a node set aside, with its place in line.

    None when there is none, and where it is known that none stands before the place `before`.
    """
    if demand.obstacle is not None or not demand.live or demand.seek_ms > partition.now_ms:
        return None
    if demand.improved:
        lines.bring_up(demand)
    known = demand.seeker
    if known is not None and partition.now_ms >= known[2]:
        known = None  # What has become old enough since may stand before it.
    if (known is not None and before is not None and before < known[0]) or is_full_above(demand):
        return None
    if known is not None and _seeks_still(partition, lines, demand, *known[:2]):
        return known[:2]
    return _find_seeker(partition, lines, demand)


def _find_seeker(partition: Partition, lines: Lines, demand: Demand) -> tuple[Key, Ask] | None:
    """The same, of all that are in line. It is remembered; so is, where there is none, when one will have waited long
    enough.
    """
    latest = partition.now_ms if demand.shape.required_node else partition.now_ms - RESERVE_AFTER_MS
    next_ms = NEVER_MS
    found: tuple[Key, Ask] | None = None
    is_lasting = True
    for entry_key, _, batch in demand.entries():
        if found is not None and found[0] < entry_key:
            break  # It comes behind its entry, if anything, and so does what follows.
        if not lines.is_eligible(batch):
            is_lasting = is_lasting and waits_for_turn(partition, batch.head)  # When that ends all is put in line anew.
            continue
        ask, waits_ms = _first_due(partition, batch, latest)
        next_ms = min(next_ms, waits_ms + RESERVE_AFTER_MS)
        if ask is not None:
            key = (*batch_key(batch)[:-1], ask.line_key)
            if found is None or key < found[0]:
                found = key, ask
    if found is None:
        demand.seek_ms = next_ms
    elif is_lasting:
        demand.seeker = (*found, next_ms)
    return found


def _seeks_still(partition: Partition, lines: Lines, demand: Demand, key: Key, ask: Ask) -> bool:
    """Whether the ask that was found to be the first is as it was then, in its place."""
    batch = ask.batch
    if waits_for_turn(partition, ask) or batch is None or batch.demand is not demand or not batch.stamp:
        return False
    if ask.reserved_on is not None or ask.nomination is not None:
        return False
    return (*batch_key(batch)[:-1], ask.line_key) == key and lines.is_eligible(batch)


def look_later(partition: Partition) -> None:
    """No ask seeks a node now: for each shape it is worked out when one will, and the first time of those is noted.

    Where one might already, but for a queue or limit in the way, that wakes it.
    """
    nodes, now_ms = partition.nodes, partition.now_ms
    seekable = nodes.seekable
    nodes.seekable_ms = min(seekable.values())
    next_ms = nodes.seekable_ms + RESERVE_AFTER_MS
    if next_ms <= now_ms:
        next_ms = NEVER_MS
        for shape, since_ms in seekable.items():
            due = [since_ms + RESERVE_AFTER_MS]
            if due[0] <= now_ms:
                due = [demand.seek_ms for demand in shape.demands_in_line()]
                seekable[shape] = min(due, default=NEVER_MS) - RESERVE_AFTER_MS
            next_ms = min([next_ms, *(due_ms for due_ms in due if due_ms > now_ms)])
        nodes.seekable_ms = min(seekable.values())
    if next_ms < NEVER_MS:
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


def node_to_reserve(partition: Partition, ask: Ask) -> Node | None:
    """The node that may be set aside for an ask that found none just now. Where there is none that is remembered.

    What is above the nodes (a full queue, a limit) must not be in the way: an ask that could not use the node does not
    get it.
    """
    assert ask.batch is not None
    demand = ask.batch.demand
    shape = demand.shape
    if is_held_back(partition, demand, ask):
        return None
    if shape.required_node:
        node = partition.nodes.nodes.get(shape.required_node)
        if node is not None and not _may_have(partition, ask, shape, node):
            node = None
    else:
        node = tightest(partition, ask)
        if node is None and not partition.nodes.columns.open.any():
            for other in [each for each in partition.nodes.seekable if not each.required_node]:
                partition.nodes.seekable.pop(other)
    if node is None:
        partition.nodes.seekable.pop(shape, None)
    return node


def set_aside(partition: Partition, ask: Ask, node: Node) -> None:
    """This node is set aside for an ask; where the ask requires it, no longer for others that do not."""
    if ask.required_node:
        clear_for(partition, node)
    ask.attempted = True
    reserve_node.reserve(partition, ask, node)


def waits_there(partition: Partition, ask: Ask) -> bool:
    """Whether nothing can start by the node that was just set aside for an ordinary ask, and nothing else with a node
    of its own is to be tried again: it is tried there when something changes.
    """
    nodes, node = partition.nodes, ask.reserved_on
    if ask.required_node or node is None or nodes.reserved_shapes or len(nodes.reserved_again) > 1:
        return False
    if _can_start_on(partition, ask, node):
        return False
    nodes.reserved_again.pop(ask, None)
    return True


def _may_have(partition: Partition, ask: Ask, shape: Shape, node: Node) -> bool:
    """Whether the node that an ask requires could ever take it: where ordinary asks have it, as things are."""
    if not node.fits_total(ask.items) or never_suits(partition, ask, node):
        return False
    return all(holder.required_node for holder in node.reservations) or partition.nodes.lets(shape, node)


def tightest(partition: Partition, ask: Ask) -> Node | None:
    """Of the open nodes that suit the ask when empty the one that it would fill most, then the first in order."""
    nodes, columns = partition.nodes, partition.nodes.columns
    columns.sync()
    for node in columns.tightest_first(columns.could_hold(columns.open, ask.items), ask.items):
        if nodes.suits(ask, node):
            return node
    return None


def clear_for(partition: Partition, node: Node) -> None:
    """An ask that requires this node takes it: ordinary asks for which it was set aside lose it."""
    for ask in [a for a in node.reservations if not a.required_node]:
        reserve_node.unreserve(partition, ask)


# -- when to look again -------------------------------------------------------------------------------------------


def on_expiry(partition: Partition, app: Application) -> None:
    """Each hour after it was set aside, a node goes back if the ask has no use for it because of what is above.

    A full queue is looked for then alone: it may fill up without anything that has the ask tried again.
    """
    now_ms = partition.now_ms
    for ask in [a for a in app.asks.values() if a.reserved_on is not None]:
        assert ask.reserved_on is not None
        hours, since_ms = divmod(now_ms - ask.reserved_on.reservations[ask], RESERVATION_MS)
        if hours:
            partition.books_version += 1  # What goes before it may take the node by now.
        if hours and obstacle_above(partition, ask) is not None:
            reserve_node.unreserve(partition, ask)
        else:
            partition.timers.set_earlier(now_ms - since_ms + RESERVATION_MS, partition.name, app.id, RESERVATION)


# -- using it -----------------------------------------------------------------------------------------------------


def place_reserved(partition: Partition, lines: Lines) -> Ask | None:
    """Place the first ask in walk order with a reserved node that fits there, or elsewhere; None when none does.

    Of one application, first all asks are tried on their own nodes, then on others. Only those are tried for which
    something changed since the last time. When none can be placed, work may be stopped on the nodes that asks require.
    None starts where one that requires the node would stop it in this call: that takes the node in its own turn.
    """
    nodes, again = partition.nodes, partition.nodes.reserved_again
    found: dict[Ask, Node] = {}
    stuck: dict[Ask, Node] = {}
    for ask in sorted(again, key=lambda a: a.seq):
        node = ask.reserved_on
        assert node is not None  # Who gives it back is not tried again (`reserve_node.unreserve`).
        if _can_start_on(partition, ask, node):
            found[ask] = node
        elif ask.required_node and ask.reserved_on is not None:
            stuck[ask] = node
        else:
            again.pop(ask, None)
    elsewhere: dict[Shape, Node] = {}
    for shape in list(nodes.reserved_shapes):
        free = nodes.first_for(shape) if not shape.unfit else None
        if free is not None:
            elsewhere[shape] = free
        else:
            _wait_for_node(partition, shape)
    leaves = dict.fromkeys([ask.app.queue for ask in found])
    for shape in elsewhere:
        leaves |= dict.fromkeys(shape.reserved)
    while leaves:
        leaf = first_leaf_in_walk(leaves)
        del leaves[leaf]
        if (placed := _place_in(partition, lines, leaf, found, elsewhere)) is not None:
            return placed
    return _place_by_force(partition, stuck)


def _place_in(
    partition: Partition, lines: Lines, leaf: Queue, own: dict[Ask, Node], elsewhere: dict[Shape, Node]
) -> Ask | None:
    """The same in one leaf: of those that may start on their `own` nodes, or whose shape has room `elsewhere`."""
    left: dict[Ask, Node] = {}
    for shape, free in elsewhere.items():
        left |= dict.fromkeys(shape.reserved.get(leaf, ()), free) | _liked_by(partition, shape, leaf)
    left |= {ask: its for ask, its in own.items() if ask.app.queue is leaf}
    while left:
        ask = _first(left)
        wanted = left.pop(ask)
        # What is tried again since one of these gave its node back was not looked at.
        is_free = ask in own or _may_start(partition, ask)
        node = where_it_stays(partition, lines, ask, wanted) if is_free else None
        if node is not None:
            ask.attempted = True
            allocations.place(partition, ask, node)
            return ask
    return None


def where_it_stays(partition: Partition, lines: Lines, ask: Ask, node: Node, *, or_else: bool = True) -> Node | None:
    """This node; where one that requires it would stop the ask there in this call, `or_else` the next one with room
    where none would. None where there is none.
    """
    if not would_be_stopped(partition, lines, ask, node):
        return node
    if not or_else:
        return None
    free = [n for n in partition.nodes.with_room(ask) if not would_be_stopped(partition, lines, ask, n)]
    return partition.nodes.first_of(free, ask)


def _place_by_force(partition: Partition, stuck: dict[Ask, Node]) -> Ask | None:
    """Place the first ask in walk order that requires its node, in room that is kept there for others; None when that
    helps none: then work is stopped there for each, unless a queue or limit is in its way.
    """
    while stuck:
        leaf = first_leaf_in_walk({ask.app.queue: None for ask in stuck})
        ask = _first({ask: node for ask, node in stuck.items() if ask.app.queue is leaf})
        node = stuck.pop(ask)
        if obstacle_above(partition, ask) is None:
            if take_kept_room(partition, ask, node):
                ask.attempted = True
                allocations.place(partition, ask, node)
                return ask
            preempt_on_required_node(partition, ask, node)
        # What starts or ends elsewhere may change what suits it, and what may be stopped for it.
        assert ask.shape is not None
        _wait_for_node(partition, ask.shape)
        partition.nodes.reserved_again.pop(ask, None)
    return None


def would_be_stopped(partition: Partition, lines: Lines, ask: Ask, node: Node) -> bool:
    """Whether an ask that requires the node waits, and stops this one there once it has its turn in this call."""
    if ask.required_node or node.id not in partition.nodes.requiring:
        return False
    for other in _next_to_require(partition, lines, node):
        if would_stop(partition, other, node, ask):
            # Whatever becomes of this ask, the other one has its turn.
            partition.nodes.reserved_again |= dict.fromkeys([other] if other.reserved_on is node else ())
            return True
    return False


def _next_to_require(partition: Partition, lines: Lines, node: Node) -> Iterator[Ask]:
    """Asks that may run on this node only, and that nothing above it keeps from having their turn."""
    for ask in node.reservations:
        if ask.required_node and not waits_for_turn(partition, ask) and obstacle_above(partition, ask) is None:
            yield ask
    for shape in partition.nodes.requiring[node.id]:
        for demand in shape.demands_in_line():
            seeker = first_seeker(partition, lines, demand)
            if seeker is not None and not is_held_back(partition, demand, seeker[1]):
                yield seeker[1]


def _liked_by(partition: Partition, shape: Shape, leaf: Queue) -> dict[Ask, Node]:
    """Of the asks of a shape that are tried elsewhere those that others of it are not like: which node each has."""
    nodes = partition.nodes
    liked = [ask for ask in shape.reserved.get(leaf, ()) if nodes.has_wish(ask)] if nodes.know_wishes() else []
    return {ask: node for ask in liked if (node := nodes.first_for(shape, ask)) is not None}


def _first(asks: dict[Ask, Node]) -> Ask:
    """The first of these of one leaf; of one application those on their own nodes before the others."""
    app = min({ask.app: None for ask in asks}, key=application_key)
    return min([a for a in asks if a.app is app], key=lambda a: (asks[a] is not a.reserved_on, a.line_key))


def _can_start_on(partition: Partition, ask: Ask, node: Node) -> bool:
    """Whether the ask can start on the node that is reserved for it; if not, what is in its way has it tried again."""
    if waits_for_turn(partition, ask) or not node.fits_total(ask.items):
        reserve_node.unreserve(partition, ask)
        return False
    if not _may_start(partition, ask):
        return False
    if fits_in(ask.items, node.free) and partition.nodes.suits(ask, node):
        return True
    if never_suits(partition, ask, node):
        reserve_node.unreserve(partition, ask)
    elif ask.shape is not None and ask.shape.unfit and not ask.shape.blocked_by_root:
        # What keeps it off may have come since no node was found for it.
        partition.nodes.terrain.unwatch(ask.shape)
        partition.nodes.terrain.watch(ask.shape)
    return False


def _may_start(partition: Partition, ask: Ask) -> bool:
    """Whether nothing above the nodes is in the way of an ask with a reserved node; from now on it is tried again when
    that moves, or else when some node may take it.
    """
    shape = ask.shape
    assert shape is not None
    above = obstacle_above(partition, ask)
    reserve_node.unwatch(ask)
    reserve_node.watch(partition, ask, above or shape)
    if above is None and not (shape.unfit or shape.required_node):
        partition.nodes.reserved_shapes[shape] = None
    return above is None


def _wait_for_node(partition: Partition, shape: Shape) -> None:
    """No node takes the shape: asks of it with a reserved node are tried again when one may."""
    partition.nodes.reserved_shapes.pop(shape, None)
    if not shape.unfit:
        partition.nodes.mark_unfit(shape)
