"""Waiting: the one reason why an ask does not run now, with its numbers.

Decides nothing that changes anything: it asks the same questions as `allocate`, in the same order, of the state as it
is. Never reads what the kept orders remember.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fairlead.core.books import nominations
from fairlead.core.books.applications import Application
from fairlead.core.books.asks import Ask
from fairlead.core.books.idle_work import payer
from fairlead.core.books.kept_constraints import filter_on
from fairlead.core.books.node import Node
from fairlead.core.books.partition import Partition
from fairlead.core.books.user_limits import Ceiling
from fairlead.core.books.windows import covers
from fairlead.core.model import reasons
from fairlead.core.model.lifecycle import State
from fairlead.core.model.matching import SELECTOR, TAINT, TOO_SMALL, is_selected
from fairlead.core.model.reasons import Reason
from fairlead.core.model.resources import Book, add_to, fits_in
from fairlead.policy.eligibility.gang_size import beyond_all_nodes, keeps_apart, members_beyond_nodes
from fairlead.policy.eligibility.limits import (
    applications_at_max,
    closed_gate,
    full_ceiling,
    limit_reached,
    queue_full,
    queue_promised,
    under,
)

LookUp = Callable[[Hashable, Callable[[], Any]], Any]


def why_waiting(partition: Partition, ask: Ask, look_up: LookUp = lambda _, look: look()) -> Reason:
    """The first thing in the way, from the general to the particular. `look_up`: what all nodes look like to a shape,
    and a gang that is too large, is the same for every ask that has it, as long as nothing changes.
    """
    if not partition.nodes.nodes:
        return reasons.NoNodes(partition.name)
    nomination = ask.nomination
    if nomination is not None and nomination.is_coming:
        leaving = tuple(v.key for v in nomination.victims if v.evict_cause is not None)
        late = tuple(v.key for v in nomination.victims if v.overdue)
        return reasons.WaitingForVictims(nomination.node.id, leaving, late)
    found = _gangs_hold_each_other(ask) or _behind_placeholders(partition, ask, look_up) or _may_not_run(ask)
    found = found or _too_big(partition, ask) or _window_ahead(partition, ask) or _waits_for_turn(partition, ask)
    found = found or _above_nodes(partition, ask, look_up)
    return found or _no_node(partition, ask, look_up) or reasons.NextInLine(ask.app.queue.path)


def _gangs_hold_each_other(ask: Ask) -> Reason | None:
    """Its gang gave way to another one; or another one gives way to it, and has not left yet."""
    app, gives_way = ask.app, ask.app.gives_way_to is not None
    other = app.gives_way_to or next((younger for younger in app.awaited_by if younger.allocations), None)
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
    closed = closed_gate(ask.app)
    return applications_at_max(closed, ask.app) if closed is not None else None


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
    nodes = [n for n in partition.nodes.nodes.values() if n.takes(ask)]
    nodes = [n for n in nodes if is_selected(ask.spec.where, n.labels) and n.fits_total(ask.items)]
    if not nodes or any(is_selected(ask.where, n.labels) for n in nodes):
        return None
    now_ms = partition.now_ms
    ahead = [each for each in partition.admission.windows.ahead_of(ask, now_ms) if covers(each[0], nodes[0])]
    spec, starts_ms, ends_ms = min(ahead, key=lambda each: each[1])
    return reasons.WindowAhead(spec.name, starts_ms, ends_ms, ask.limit_ms, spec.why, starts_ms <= now_ms)


def _above_nodes(partition: Partition, ask: Ask, look_up: LookUp) -> Reason | None:
    """A limit, the rest of its application, a full queue, or the sum of all nodes."""
    app, needed = ask.app, dict(ask.items)
    if (ceiling := full_ceiling(app, ask.items)) is not None:
        return limit_reached(ceiling, ask.items)
    rests_until_ms = app.rest_ends_ms(partition.now_ms)
    if rests_until_ms is not None and not (ask.reserved_on or ask.spec.idle):
        return reasons.BackedOff(rests_until_ms, app.unschedulable)
    full = payer(ask).short_of_room(ask.items)
    if full is not None:
        return queue_full(full, ask.items)
    full = nominations.queue_short_of_kept(partition, payer(ask), ask.items, (ask,))
    if full is not None:
        return queue_promised(partition, full, ask.items, ask)
    if (ceiling := nominations.limit_short_of_kept(partition, ask)) is not None:
        return _limit_promised(partition, ceiling, ask)
    if partition.nodes.sum_has_room(ask.items):
        return None
    # Not each node is looked at: of a full cluster this is asked for all that waits.
    if (too_large := _gang_too_large(partition, ask, look_up)) is not None:
        return too_large
    total, used, theirs = partition.nodes.total, partition.root.allocated, partition.nodes.occupied
    free = {r: total.get(r, 0) - used.get(r, 0) - theirs.get(r, 0) for r in needed}
    return reasons.ClusterFull(needed, free, {r: total.get(r, 0) for r in needed})


def _gang_too_large(partition: Partition, ask: Ask, look_up: LookUp) -> Reason | None:
    """All nodes together could not hold its gang; a maximum or limit that could not is named as what is full."""
    if not ask.spec.placeholder or ask.app.state is not State.ACCEPTED:
        return None
    if beyond := beyond_all_nodes(partition, ask.app):
        return reasons.GangTooLarge(beyond, {r: partition.nodes.total.get(r, 0) for r in beyond})
    like = ("members", ask.app, ask.spec.task_group, ask.items, ask.spec.where, ask.required_node)
    found: Reason | None = look_up(like, lambda: _task_group_too_large(partition, ask))
    return found


def _task_group_too_large(partition: Partition, ask: Ask) -> Reason | None:
    """Which nodes do not suit it counts as much as how large the others are."""
    too_many = members_beyond_nodes(partition, ask)
    if too_many is None:
        return None
    ground, nodes = partition.nodes.terrain.ground(ask.spec.where), len(partition.nodes.nodes)
    named, both = (int(np.count_nonzero(mask)) for mask in (ground.named, ground.named & ground.tolerated))
    excluded = {name: count for name, count in ((SELECTOR, nodes - named), (TAINT, named - both)) if count}
    needed = dict(ask.items)
    if not both:
        return reasons.NoNodeSuits(needed, excluded, nodes)
    return reasons.TaskGroupTooLarge(ask.spec.task_group, *too_many, needed, excluded, keeps_apart(ask.spec))


def _waits_for_turn(partition: Partition, ask: Ask) -> Reason | None:
    """Another ask of its queue, or of its resource group when it is idle, has a reservation that holds it back."""
    where = payer(ask)
    holder = partition.reserving.within(where, ask) if ask.spec.idle else partition.reserving.holder(ask)
    kept = partition.reserving.get(holder) if holder is not None else None
    if holder is None or kept is None:
        return None
    name = f"{holder.app.id}/{holder.key}"
    return reasons.HeldForReservation(where.path, name, holder.priority, kept.since_ms, kept.who, kept.why)


def _behind_placeholders(partition: Partition, ask: Ask, look_up: LookUp) -> Reason | None:
    """A real ask of a task group waits while some placeholder of the group may still be replaced; in vain, where the
    gang cannot be whole.
    """
    app = ask.app
    group = None if ask.spec.placeholder else app.groups.get(ask.spec.task_group)
    if group is None or not group.stands_in:
        return None
    if app.state is State.ACCEPTED:
        first: Ask | None = look_up(("place", app, group.name), lambda: _waiting_placeholder(app, group.name))
        # What keeps a single placeholder from every node is said of the placeholder: the ask may be smaller.
        if first is not None and _too_big(partition, first) is None:
            too_large = _gang_too_large(partition, first, look_up)
            if isinstance(too_large, (reasons.GangTooLarge, reasons.TaskGroupTooLarge)):
                return too_large
    return reasons.WaitingForPlaceholder(group.name, group.members, len(group.standing))


def _waiting_placeholder(app: Application, group: str) -> Ask | None:
    """The first of a task group."""
    return next((a for a in app.asks.values() if a.pending and a.spec.placeholder and a.spec.task_group == group), None)


def _limit_promised(partition: Partition, ceiling: Ceiling, ask: Ask) -> Reason:
    kept = partition.nominations.of.values()
    holders = tuple(f"{n.ask.app.id}/{n.ask.key}" for n in kept if ceiling in n.places)
    needed, free = under(ceiling.max, ceiling.allocated, ask.items)
    return reasons.LimitPromised(ceiling.kind, ceiling.name, ceiling.queue, needed, free, holders)


def _no_node(partition: Partition, ask: Ask, look_up: LookUp) -> Reason | None:
    nodes = partition.nodes
    if ask.required_node and ask.required_node not in nodes.nodes:
        return reasons.RequiredNodeUnknown(ask.required_node)
    shape = ask.shape
    if shape is not None and nodes.only_room_counts(shape) and not (ask.required_node or ask.held_on):
        seen = look_up(("seen", shape), lambda: look_at_all(partition, ask))
    else:
        seen = look_at_each(partition, ask)
    seen = _with_own(partition, ask, seen)
    if seen.has_room:
        return None
    if (set_aside := _set_aside(partition, ask)) is not None:
        return set_aside
    if (too_large := _gang_too_large(partition, ask, look_up)) is not None:
        return too_large
    if seen.kept_off and not seen.suitable:
        return reasons.NoNodeSuits(dict(ask.items), seen.kept_off, len(nodes.nodes))
    if seen.suitable and seen.closest is None:
        return reasons.NoNodeSuits(dict(ask.items), seen.kept_off | {TOO_SMALL: seen.suitable}, len(nodes.nodes))
    closest = seen.closest
    free = {r: closest.available.get(r, 0) for r, _ in ask.items} if closest else {}
    # What is kept beyond what is free has yet to become free.
    held = {r: min(v - closest.free.get(r, 0), v) for r, v in free.items()} if closest else {}
    held = {r: v for r, v in held.items() if v > 0}
    holders = [a for a, items in closest.held.items() if a is not ask and dict(items).keys() & held] if closest else []
    return reasons.NoNodeHasRoom(
        needed=dict(ask.items),
        free=free,
        node=closest.id if closest else "",
        open_nodes=seen.suitable,
        nodes=len(nodes.nodes),
        held=held,
        excluded=seen.kept_off,
        held_for=tuple(f"{a.app.id}/{a.key}" for a in holders),
    )


@dataclass(frozen=True, slots=True)
class Seen:
    """What the nodes that an ask could use look like to it."""

    kept_off: dict[str, int]
    """How many of them do not suit it, by the first filter that keeps it off."""
    suitable: int
    has_room: bool
    """Some suitable one has room."""
    closest: Node | None
    """Where none has, of the suitable ones that are large enough the one that lacks least of what it needs, in parts of
    that; then the smallest id.
    """


def look_at_each(partition: Partition, ask: Ask) -> Seen:
    """Node by node, whatever the ask wants of them."""
    nodes = partition.nodes
    candidates = [nodes.nodes[ask.required_node]] if ask.required_node else [n for n in nodes.every() if n.is_open]
    filters = {node: filter_on(nodes, ask, node) for node in candidates}
    kept_off = Counter(filtered for filtered in filters.values() if filtered is not None)
    suitable = [node for node, filtered in filters.items() if filtered is None]
    has_room = any(fits_in(ask.items, n.free) or (n is ask.held_on and n.room_for(ask)) for n in suitable)
    large = [] if has_room else [n for n in suitable if n.fits_total(ask.items)]
    closest = min(large, key=lambda n: (n.shortage(ask.items), n.id), default=None)
    return Seen(dict(kept_off), len(suitable), has_room, closest)


def look_at_all(partition: Partition, ask: Ask) -> Seen:
    """The same for an ask that only taints keep off nodes: all at once."""
    columns = partition.nodes.columns
    columns.sync()
    suitable, lack = columns.common, np.zeros(len(columns.rows))
    tainted = int(np.count_nonzero(columns.open)) - int(np.count_nonzero(suitable))
    for name, amount in ask.items:
        free = columns.amounts.get(name)
        lack += np.maximum(amount - free, 0) / amount if free is not None else 1.0
    large = columns.could_hold(suitable, ask.items)
    lack[~large] = np.inf
    least = int(np.argmin(lack)) if large.any() else -1
    has_room = least >= 0 and lack[least] == 0
    closest = columns.rows[least] if least >= 0 and not has_room else None
    return Seen({TAINT: tainted} if tainted else {}, int(np.count_nonzero(suitable)), bool(has_room), closest)


def _with_own(partition: Partition, ask: Ask, seen: Seen) -> Seen:
    """What was seen, with the node that is set aside for the ask: that is open to it alone."""
    own = ask.reserved_on
    if own is None or ask.required_node:
        return seen
    filtered = filter_on(partition.nodes, ask, own)
    if filtered is not None:
        return replace(seen, kept_off=seen.kept_off | {filtered: seen.kept_off.get(filtered, 0) + 1})
    return replace(seen, suitable=seen.suitable + 1, has_room=seen.has_room or fits_in(ask.items, own.free))


def _set_aside(partition: Partition, ask: Ask) -> Reason | None:
    """The node that is reserved for the ask and too full, or the first with room that is reserved for others."""
    own = ask.reserved_on
    if own is not None:
        if filter_on(partition.nodes, ask, own) is not None:
            return None  # It stays set aside, and room is not what the ask lacks there.
        needed = dict(ask.items)
        return reasons.ReservedNodeTooFull(own.id, needed, {r: own.free.get(r, 0) for r in needed})
    if ask.required_node:
        return None
    others = reserved_with_room(partition, ask)
    first = next((node for node in others if partition.nodes.suits(ask, node)), None)
    if first is None:
        return None
    return reasons.NodeReserved(first.id, tuple(f"{a.app.id}/{a.key}" for a in first.reservations))


def reserved_with_room(partition: Partition, ask: Ask) -> Iterator[Node]:
    """The nodes that are reserved for others and have room for the ask, by (score, id)."""
    columns = partition.nodes.columns
    columns.sync()
    rows = np.flatnonzero(columns.has_room(~columns.open, ask.items))
    rows = rows[np.argsort(columns.scores[rows], kind="stable")]  # Rows are in order of id.
    return (node for row in rows if (node := columns.rows[row]).reservations and node.schedulable)
