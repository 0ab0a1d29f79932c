"""Waiting: the one reason why an ask does not run now, with its numbers.

Decides nothing that changes anything: it asks the same questions as `allocate`, in the same order, of the state as it
is. Never reads what the kept orders remember.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from fairlead.core.books import nominations
from fairlead.core.books.application_limits import awaited, closed_queue
from fairlead.core.books.idle_work import group_of, payer
from fairlead.core.books.kept_constraints import filter_on
from fairlead.core.books.windows import covers
from fairlead.core.model import reasons
from fairlead.core.model.lifecycle import State
from fairlead.core.model.matching import is_selected
from fairlead.core.model.resources import Book, add_to, fits_in
from fairlead.policy.eligibility.limits import closing_ceiling, full_ceiling, limit_applications, limit_reached

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from fairlead.core.books import Application, Ask, Ceiling, Node, Partition, Queue
    from fairlead.core.model.reasons import Reason


def why_waiting(partition: Partition, ask: Ask) -> Reason:
    """The first thing in the way, from the general to the particular."""
    if not partition.nodes.nodes:
        return reasons.NoNodes(partition.name)
    nomination = ask.nomination
    if nomination is not None and nomination.is_coming:
        leaving = tuple(v.key for v in nomination.victims if v.evict_cause is not None)
        late = tuple(v.key for v in nomination.victims if v.overdue)
        return reasons.WaitingForVictims(nomination.node.id, leaving, late)
    found = _gangs_hold_each_other(ask) or _behind_placeholders(ask) or _may_not_run(ask) or _too_big(partition, ask)
    found = found or _window_ahead(partition, ask) or _waits_for_turn(partition, ask) or _above_nodes(partition, ask)
    return found or _no_node(partition, ask) or reasons.NextInLine(ask.app.queue.path)


def _gangs_hold_each_other(ask: Ask) -> Reason | None:
    """Its gang gave way to another one; or another one gives way to it, and has not left yet."""
    app, other = ask.app, ask.app.gives_way_to
    gives_way = other is not None
    if other is None:
        other = next((younger for younger in app.awaited_by if younger.allocations), None)
    if other is None:
        return None
    holds, other_holds = ({n: v for n, v in a.placeholders.items() if v} for a in (app, other))
    return reasons.GangsHoldEachOther(other.id, holds, _lacking(app), other_holds, _lacking(other), gives_way)


def _lacking(app: Application) -> Book:
    """What the placeholders of an application still need."""
    book: Book = {}
    for ask in app.asks.values():
        if ask.pending and ask.spec.placeholder:
            add_to(book, ask.items)
    return book


def _may_not_run(ask: Ask) -> Reason | None:
    """Its application is accepted only, and a queue, its user or its group runs as many as it may."""
    app = ask.app
    if app.state is not State.ACCEPTED:
        return None
    closed = closed_queue(app)
    if closed is not None:
        most, count = closed.max_applications, closed.running + len(closed.allocating_accepted)
        if count < most:
            to = awaited(closed.promised, closed.allocating_accepted, app)
            return reasons.ApplicationsPromised("queue", "", closed.path, count, most, tuple(a.id for a in to))
        return reasons.ApplicationsAtMax(closed.path, closed.running, most)
    ceiling = closing_ceiling(app)
    return limit_applications(ceiling, app) if ceiling is not None else None


def _too_big(partition: Partition, ask: Ask) -> Reason | None:
    nodes = partition.nodes.nodes.values()
    if any(n.fits_total(ask.items) for n in nodes):
        return None
    needed = dict(ask.items)
    largest = {r: max(n.total.get(r, 0) for n in nodes) for r in needed}
    return reasons.TooBigForEveryNode(needed, largest, len(nodes))


def _window_ahead(partition: Partition, ask: Ask) -> Reason | None:
    """A window keeps it from every node that it could run on without."""
    if ask.where is ask.spec.where:
        return None
    nodes = [n for n in partition.nodes.nodes.values() if n.schedulable and ask.required_node in ("", n.id)]
    nodes = [n for n in nodes if is_selected(ask.spec.where, n.labels) and n.fits_total(ask.items)]
    if not nodes or any(is_selected(ask.where, n.labels) for n in nodes):
        return None
    now_ms = partition.now_ms
    ahead = [each for each in partition.admission.windows.ahead_of(ask, now_ms) if covers(each[0], nodes[0])]
    spec, starts_ms, ends_ms = min(ahead, key=lambda each: each[1])
    limit_ms = ask.spec.time_limit_ms
    return reasons.WindowAhead(spec.name, starts_ms, ends_ms, limit_ms, spec.why, starts_ms <= now_ms)


def _above_nodes(partition: Partition, ask: Ask) -> Reason | None:
    """A limit, the rest of its application, a full queue, or the sum of all nodes."""
    app, needed = ask.app, dict(ask.items)
    if (ceiling := full_ceiling(app, ask.items)) is not None:
        return limit_reached(ceiling, ask.items)
    if app.backoff_until_ms is not None and app.backoff_until_ms > partition.now_ms and ask.reserved_on is None:
        return reasons.BackedOff(app.backoff_until_ms, app.unschedulable)
    full = payer(ask).short_of_room(ask.items)
    if full is not None:
        return _queue_full(full, ask)
    if partition.nominations:
        full = nominations.queue_short_of_kept(partition, payer(ask), ask.items, ask)
        if full is not None:
            return _queue_promised(partition, full, ask)
        if (ceiling := nominations.limit_short_of_kept(partition, ask)) is not None:
            return _limit_promised(partition, ceiling, ask)
    root = partition.root
    assert root.max is not None
    free = {r: root.max.get(r, 0) - root.allocated.get(r, 0) for r in needed}
    if any(amount > free[r] for r, amount in needed.items()):
        return reasons.ClusterFull(needed, free, {r: root.max.get(r, 0) for r in needed})
    return None


def _waits_for_turn(partition: Partition, ask: Ask) -> Reason | None:
    """Another ask of its queue, or of its resource group when it is idle, has a reservation that holds it back."""
    where = group_of(ask.app.queue) if ask.spec.idle else ask.app.queue
    holder = partition.reserving.within(where) if ask.spec.idle else partition.reserving.holder(ask)
    reservation = partition.reserving.get(holder) if holder is not None else None
    if holder is None or reservation is None:
        return None
    name, r = f"{holder.app.id}/{holder.key}", reservation
    return reasons.HeldForReservation(where.path, name, holder.priority, r.since_ms, r.who, r.why)


def _behind_placeholders(ask: Ask) -> Reason | None:
    """A real ask of a task group waits while some placeholder of the group may still be replaced."""
    group = None if ask.spec.placeholder else ask.app.groups.get(ask.spec.task_group)
    if group is None or not group.stands_in:
        return None
    expected = group.count - group.replaced - group.timed_out
    return reasons.WaitingForPlaceholder(group.name, expected, len(group.standing))


def _limit_promised(partition: Partition, ceiling: Ceiling, ask: Ask) -> Reason:
    kept = partition.nominations.of.values()
    holders = tuple(f"{n.ask.app.id}/{n.ask.key}" for n in kept if ceiling in n.places)
    needed, free = _under(ceiling.max, ceiling.used, ask)
    return reasons.LimitPromised(ceiling.kind, ceiling.name, ceiling.queue, needed, free, holders)


def _queue_promised(partition: Partition, queue: Queue, ask: Ask) -> Reason:
    others = (a for a in partition.nominations if a is not ask and queue in a.app.queue.lineage)
    needed, free = _under(queue.max, queue.allocated, ask)
    return reasons.QueuePromised(queue.path, needed, free, tuple(f"{a.app.id}/{a.key}" for a in others))


def _queue_full(queue: Queue, ask: Ask) -> Reason:
    needed, free = _under(queue.max, queue.allocated, ask)
    short = {r: left for r, left in free.items() if needed[r] > left}
    most = queue.max or {}
    return reasons.QueueFull(queue.path, {r: needed[r] for r in short}, short, {r: most[r] for r in short})


def _under(most: Mapping[str, int] | None, used: Mapping[str, int], ask: Ask) -> tuple[Book, Book]:
    """What an ask needs and what is left of a maximum, for the resources that this names."""
    free = {name: most[name] - used.get(name, 0) for name, _ in ask.items if most is not None and name in most}
    return {name: amount for name, amount in ask.items if name in free}, free


def _no_node(partition: Partition, ask: Ask) -> Reason | None:
    if ask.required_node:
        named = partition.nodes.nodes.get(ask.required_node)
        if named is None:
            return reasons.RequiredNodeUnknown(ask.required_node)
        candidates = [named]
    else:
        candidates = [n for n in partition.nodes.every() if n.is_open]
    kept_off = Counter(_misfits(partition, ask, candidates))
    if kept_off:
        candidates = [n for n in candidates if filter_on(partition.nodes, ask, n) is None]
        if not candidates:
            set_aside = _set_aside(partition, ask) if ask.reserved_on is None else None
            return set_aside or reasons.NoNodeSuits(dict(ask.items), dict(kept_off), len(partition.nodes.nodes))
    if any(fits_in(ask.items, n.free) or (n is ask.held_on and n.room_for(ask)) for n in candidates):
        return None
    set_aside = _set_aside(partition, ask)
    if set_aside is not None:
        return set_aside
    closest = min(candidates, key=lambda n: (_shortage(n, ask), n.id), default=None)
    free = {r: closest.available.get(r, 0) for r, _ in ask.items} if closest else {}
    held = {r: closest.available.get(r, 0) - closest.free.get(r, 0) for r, _ in ask.items} if closest else {}
    return reasons.NoNodeHasRoom(
        needed=dict(ask.items),
        free=free,
        node=closest.id if closest else "",
        open_nodes=len(candidates),
        nodes=len(partition.nodes.nodes),
        held={r: v for r, v in held.items() if v},
        excluded=dict(kept_off),
    )


def _misfits(partition: Partition, ask: Ask, nodes: Iterable[Node]) -> Iterator[str]:
    """For each of the nodes that do not suit the ask, room apart, the first filter that keeps it off."""
    for node in nodes:
        filtered = filter_on(partition.nodes, ask, node)
        if filtered is not None:
            yield filtered


def _set_aside(partition: Partition, ask: Ask) -> Reason | None:
    """The node that is reserved for the ask and too full, or the first with room that is reserved for others."""
    own = ask.reserved_on
    if own is not None:
        needed = dict(ask.items)
        return reasons.ReservedNodeTooFull(own.id, needed, {r: own.free.get(r, 0) for r in needed})
    for node in partition.nodes.every():
        if (
            node.reservations
            and node.schedulable
            and not ask.required_node
            and fits_in(ask.items, node.free)
            and partition.nodes.suits(ask, node)
        ):
            return reasons.NodeReserved(node.id, tuple(f"{a.app.id}/{a.key}" for a in node.reservations))
    return None


def _shortage(node: Node, ask: Ask) -> float:
    """How much of what the ask needs is missing on the node, summed over the resources as parts of the need."""
    return sum(max(amount - node.free.get(r, 0), 0) / amount for r, amount in ask.items)
