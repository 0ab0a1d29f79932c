"""The price of a placement: what is stopped for an ask is enough for it, and nothing of it could have stayed.

Worked out from the books right after a run that did nothing but stop work; later the room may have other uses. Decides
nothing else about evictions: who may be stopped at all is for other laws.

Enough: with all gone that was told to go, the ask fits on the node where its claim is, under every maximum above, and
under the limits of its user and group (idle work alone counts as gone there).
Needed: had any single one of the victims stayed, it would not. That is not asked where a filter (a port, a distance to
other work) may be the reason, nor of work that is stopped by YuniKorn's rule: that takes the first in order of
preference after which the ask fits, and gives none of them back (recorded in conformance: `preemption_tree-100`). It is
asked there of idle work, which YuniKorn does not know.

What happens later in the same run is none of the plan's business. Room that begins to gather behind the ask, for one
that waited too long (`wait.max`), is not in its way: who was promised room first is placed first, and the other goes on
gathering. And where an ask that requires the very node takes it over, the claim is elsewhere by now, where nothing was
stopped (YuniKorn's rule, see `promises`).
"""

from __future__ import annotations

from properties.standing import stands_above

from fairlead.core.books.asks import Ask
from fairlead.core.books.idle_work import payer
from fairlead.core.books.node import Node
from fairlead.core.books.partition import Partition
from fairlead.core.books.queues import Queue
from fairlead.core.books.user_limits import Ceiling
from fairlead.core.model.decisions import Allocated, Decision, Evict, Reserved, Unreserved
from fairlead.core.model.events import Cause
from fairlead.core.model.resources import Items

RULES = ("priority", "guarantee", "reclaim")


def is_paid(partition: Partition, decisions: list[Decision]) -> int:
    """Watch both laws for what these decisions stop; returns how many victims were found to be needed."""
    orders = [d for d in decisions if isinstance(d, Evict) and d.rule in RULES]
    if not orders or any(isinstance(d, Allocated) for d in decisions):
        return 0
    alone = len({order.on_behalf_of for order in orders}) == 1 and not any(isinstance(d, Unreserved) for d in decisions)
    plan = [partition.applications[order.application].asks[order.key] for order in orders]
    needed = 0
    for order, victim in zip(orders, plan, strict=True):
        app, _, key = order.on_behalf_of.rpartition("/")
        ask = partition.applications[app or key].asks[key]
        node = ask.held_on or ask.reserved_on
        if node is None or _is_driven_off(partition, ask, decisions[decisions.index(order) :]):
            continue  # Somebody else was given its room in the same run.
        assert _fits(partition, ask, node, None), f"{order}: {ask} does not fit on {node} even so"
        # Where guarantees count for the rank it may have to be within its own first: then more is stopped.
        may_tell = alone and not ask.app.queue.lineage[-1].owes and not (_is_choosy(ask) or _is_choosy(victim))
        if may_tell and (ask.held_on is not None or victim.spec.idle):
            counted = None if ask.held_on is not None else plan
            assert not _fits(partition, ask, node, victim, counted), f"{order}: {ask} would fit on {node} without that"
            needed += 1
    return needed


def _is_driven_off(partition: Partition, ask: Ask, later: list[Decision]) -> bool:
    """Whether its claim on some node has gone to another one in the same run.

    Where rank decides that is a stronger one, which may stop nothing itself (else its turn had been before); by
    guarantee one that requires that node.
    """
    lost = {d.node for d in later if isinstance(d, Unreserved) and (d.application, d.key) == (ask.app.id, ask.key)}
    if ask.app.queue.by_rank:
        claims = [d for d in later if isinstance(d, Reserved) and d.node in lost]
        takers = [partition.applications[d.application].asks[d.key] for d in claims]
        return any(t is not ask and stands_above(t, ask) for t in takers)
    nodes = [partition.nodes.nodes[name] for name in lost if ask.reserved_on is not partition.nodes.nodes[name]]
    return ask.reserved_on is not None and any(a.required_node == n.id for n in nodes for a in n.reservations)


def _gathers_behind(partition: Partition, ask: Ask) -> list[Ask]:
    """Those for whom room began to gather, with nothing being stopped, after room was held for the ask."""
    holders = list(partition.nominations)
    behind = holders[holders.index(ask) + 1 :] if ask in partition.nominations.of else []
    turns = partition.reserving
    return [a for a in behind if not a.victims and (turn := turns.get(a)) is not None and turn.by_itself]


def _fits(partition: Partition, ask: Ask, node: Node, staying: Ask | None, plan: list[Ask] | None = None) -> bool:
    """Whether the ask fits there and in its queues once all is gone that was told to go, but for one that stays.

    Where room is held for it the promises to others count too. Idle work is reclaimed as if nothing else would leave.
    With a `plan`, of the node's work only that counts as gone: a node that is set aside is not empty before its time.
    """
    room = dict(node.free)
    for holder in (ask, *_gathers_behind(partition, ask)):
        _add(room, node.held.get(holder, ()))
    for gone in node.allocations:
        counts = gone in plan if plan is not None else staying is None or gone.spec.idle or not staying.spec.idle
        if gone is not staying and _leaves(gone) and counts:
            _add(room, gone.items)
    if any(amount > room.get(name, 0) for name, amount in ask.items if amount > 0):
        return False
    has_room = all(_has_room(partition, queue, ask, staying) for queue in ask.app.queue.lineage)
    return has_room and all(_is_allowed(partition, ceiling, ask, staying) for ceiling in ask.app.ceilings)


def _is_allowed(partition: Partition, ceiling: Ceiling, ask: Ask, staying: Ask | None) -> bool:
    """Whether a limit has room for the ask once the idle work is gone that was told to go."""
    used = dict(ceiling.allocated)
    for app in partition.applications.values():
        for other in app.asks.values() if ceiling in app.ceilings else ():
            if other.node is not None and other.spec.idle and other is not staying and _leaves(other):
                _add(used, other.items, -1)
    behind = _gathers_behind(partition, ask)
    for other in partition.nominations if staying is not None else ():
        if other is not ask and other not in behind and ceiling in other.app.ceilings:
            _add(used, other.items)
    most = ceiling.max or {}
    return all(used.get(name, 0) + amount <= most[name] for name, amount in ask.items if name in most and amount > 0)


def _has_room(partition: Partition, queue: Queue, ask: Ask, staying: Ask | None) -> bool:
    if queue.max is None:
        return True
    used = dict(queue.allocated)
    for app in partition.applications.values():
        for other in app.asks.values():
            if other.node is not None and other is not staying and _leaves(other) and queue in payer(other).lineage:
                _add(used, other.items, -1)
    if staying is not None and (queue.parent is not None or _is_overdrawn(partition)):
        behind = _gathers_behind(partition, ask)
        for other in partition.nominations:
            if other is not ask and other not in behind and queue in other.app.queue.lineage:
                _add(used, other.items)
    return all(used.get(n, 0) + v <= queue.max[n] for n, v in ask.items if n in queue.max and v > 0)


def _is_overdrawn(partition: Partition) -> bool:
    """Whether more runs on some node than it has: then the nodes one by one say too much, and their sum counts too."""
    nodes = partition.nodes.nodes.values()
    return any(amount > node.total.get(name, 0) for node in nodes for name, amount in node.allocated.items())


def _leaves(ask: Ask) -> bool:
    return ask.evict_cause is Cause.PREEMPTED_BY_SCHEDULER and not ask.overdue and ask.replaces is None


def _is_choosy(ask: Ask) -> bool:
    where = ask.spec.where
    return bool(where.ports or where.affinity or where.anti_affinity or where.spread)


def _add(book: dict[str, int], items: Items, sign: int = 1) -> None:
    for name, amount in items:
        book[name] = book.get(name, 0) + sign * amount
