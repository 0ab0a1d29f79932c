"""Levers: where one could try to move something so that a waiting ask starts.

Decides from the books which changes are worth a trial, and between which values; each is a guess that `unblock`
confirms or drops. Never tries anything itself. Invariant: every part says truly what is so now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from math import gcd
from typing import TYPE_CHECKING

from msgspec.structs import replace

from fairlead.core.books.application_limits import begun, is_closed
from fairlead.core.books.idle_work import group_of, payer
from fairlead.core.books.queues import QueueState
from fairlead.core.model.lifecycle import State
from fairlead.core.model.resources import fits_in
from fairlead.core.model.specs import PRIORITY_MAX
from fairlead.insight.changes import names, spec_of_queue
from fairlead.insight.line import pending
from fairlead.insight.parts import Part, What
from fairlead.insight.places import Place, places

if TYPE_CHECKING:
    from fairlead.core.books.applications import Application
    from fairlead.core.books.asks import Ask
    from fairlead.core.books.partition import Partition
    from fairlead.core.books.queue_reservations import Reservation
    from fairlead.core.books.queues import Queue
    from fairlead.core.books.user_limits import Ceiling
    from fairlead.core.model.resources import Book

OWN_TRIED = 12
MORE_NODES = 64


@dataclass(frozen=True, slots=True)
class Lever:
    """Parts to move together, from the least that could do. With each: what would do if anything does, and by multiples
    of what at least its values differ in their effect (a guess).
    """

    rows: tuple[tuple[Part, int, int], ...]

    @property
    def parts(self) -> tuple[Part, ...]:
        """Each with the least that could do."""
        return tuple(part for part, _, _ in self.rows)

    def __add__(self, other: Lever) -> Lever:
        """Both together."""
        return Lever(self.rows + other.rows)


def together(*parts: Part) -> Lever:
    """Parts that are or are not, or whose value is the only one to be tried."""
    return Lever(tuple((part, part.value, 1) for part in parts))


def limits_in_the_way(partition: Partition, ask: Ask) -> Lever | None:
    """Every maximum and limit above the nodes that has no room for the ask; None: there is none.

    Also None when one of them is not in the queue file, so that nobody can change it there.
    """
    app, waits = ask.app, pending(partition)
    levels: list[tuple[Part, int]] = []
    for queue in payer(ask).lineage:
        levels += _queue_parts(queue, ask, waits[queue][0])
    for ceiling in app.ceilings:
        levels += _ceiling_parts(partition, ceiling, ask, waits[partition.root][0])
    if app.state is State.ACCEPTED:
        levels += _gates(partition, app)
    if not levels or any(spec_of_queue(partition.spec.root, part.subject) is None for part, _ in levels):
        return None
    return _lever(partition, levels)


def limits(partition: Partition, ask: Ask) -> list[list[Lever]]:
    """The limits that are in the way; and as another try all that it counts against, as wide as all that waits."""
    found = limits_in_the_way(partition, ask)
    wide = _all_limits(partition, ask)
    return [[lever for lever in (found, wide) if lever is not None]]


def _all_limits(partition: Partition, ask: Ask) -> Lever | None:
    """Every maximum and limit above the nodes, wide enough for what waits: others before it may need the room."""
    waits = pending(partition)[partition.root][0]
    levels: list[tuple[Part, int]] = []

    def widened(part: Part, used: int) -> None:
        least = max(part.now + 1, used + dict(ask.items).get(part.resource, 1))
        levels.append((replace(part, value=least), least + waits.get(part.resource, len(partition.applications))))

    for queue in ask.app.queue.lineage[:-1]:
        for name, most in (queue.max or {}).items():
            widened(Part(What.QUEUE_MAX, queue.path, most, 0, name), queue.allocated.get(name, 0))
        if queue.max_applications:
            widened(Part(What.QUEUE_APPLICATIONS, queue.path, queue.max_applications, 0), begun(queue, ask.app))
    for ceiling in ask.app.ceilings:
        who = _entry(partition, ceiling)
        for name, most in (ceiling.max or {}).items():
            widened(Part(What.LIMIT, ceiling.queue, most, 0, name, who), ceiling.allocated.get(name, 0))
        if ceiling.max_applications:
            part = Part(What.LIMIT_APPLICATIONS, ceiling.queue, ceiling.max_applications, 0, who=who)
            widened(part, begun(ceiling, ask.app))
    levels = [row for row in levels if spec_of_queue(partition.spec.root, row[0].subject) is not None]
    return _lever(partition, levels) if levels else None


def _lever(partition: Partition, levels: list[tuple[Part, int]]) -> Lever:
    return Lever(tuple((part, high, grain(partition, part.resource) if part.resource else 1) for part, high in levels))


def _queue_parts(queue: Queue, ask: Ask, waits: Book) -> Iterator[tuple[Part, int]]:
    most = queue.max
    if most is None or queue.parent is None:
        return
    for name, amount in ask.items:
        used = queue.allocated.get(name, 0)
        if name in most and amount > 0 and used + amount > most[name]:
            value = used + amount
            yield Part(What.QUEUE_MAX, queue.path, most[name], value, name), value + waits.get(name, 0)


def _ceiling_parts(partition: Partition, ceiling: Ceiling, ask: Ask, waits: Book) -> Iterator[tuple[Part, int]]:
    most = ceiling.max or {}
    who = _entry(partition, ceiling)
    for name, amount in ask.items:
        used = ceiling.allocated.get(name, 0)
        if name in most and amount > 0 and used + amount > most[name]:
            value = used + amount
            high = value + waits.get(name, 0)
            yield Part(What.LIMIT, ceiling.queue, most[name], value, name, who), high


def _gates(partition: Partition, app: Application) -> Iterator[tuple[Part, int]]:
    for queue in app.queue.lineage:
        if is_closed(queue, app):
            value = begun(queue, app) + 1
            waiting = sum(len(below.applications) for below in queue.walk())
            yield Part(What.QUEUE_APPLICATIONS, queue.path, queue.max_applications, value), value + waiting
    for ceiling in app.ceilings:
        if is_closed(ceiling, app):
            value = begun(ceiling, app) + 1
            who = _entry(partition, ceiling)
            part = Part(What.LIMIT_APPLICATIONS, ceiling.queue, ceiling.max_applications, value, who=who)
            yield part, value + len(app.queue.applications)


def _entry(partition: Partition, ceiling: Ceiling) -> str:
    """The entry of the file that a ceiling comes from: the user's own, or that for everybody."""
    spec = spec_of_queue(partition.spec.root, ceiling.queue)
    if spec is not None and not any(names(limit, ceiling.kind, ceiling.name) for limit in spec.limits):
        return f"{ceiling.kind} *"
    return f"{ceiling.kind} {ceiling.name}"


def grain(partition: Partition, resource: str) -> int:
    """What all amounts of a resource that wait or run are multiples of."""
    found = 0
    for app in partition.applications.values():
        for ask in app.asks.values():
            for name, amount in ask.items:
                if name == resource:
                    found = gcd(found, amount)
    return found or 1


# -- priority -----------------------------------------------------------------------------------------------------


def priorities_above(partition: Partition, ask: Ask) -> list[int]:
    """The priorities at which the ask could come to stand differently against some other work, ascending.

    Seen from a queue on its way up, an ask of priority p counts as p plus the offsets passed; it passes another where
    the two sums meet.
    """
    mine = _offsets(ask.app.queue)
    others: set[tuple[int, int]] = set()
    for leaf in partition.root.walk():
        if leaf.is_leaf and leaf.applications:
            known = {other.priority for app in leaf.applications.values() for other in app.asks.values()}
            others |= {(offset, priority) for offset in _offsets(leaf) for priority in known}
    meeting = {priority + theirs - own for theirs, priority in others for own in mine}
    wanted = {value for meets in meeting for value in (meets, meets + 1)}
    return sorted(value for value in wanted if ask.priority < value <= PRIORITY_MAX)


def first_in_line(partition: Partition, ask: Ask) -> Lever | None:
    """A priority with which it would stand above everything that it can stand above."""
    values = priorities_above(partition, ask)
    if not values:
        return None
    return together(Part(What.PRIORITY, ask.key, ask.priority, values[-1]))


def _offsets(leaf: Queue) -> set[int]:
    """The sums of offsets on the way up."""
    total, sums = 0, {0}
    for queue in leaf.lineage:
        total += queue.properties.priority_offset
        sums.add(total)
    return sums


# -- nodes --------------------------------------------------------------------------------------------------------


def room_on_nodes(partition: Partition, ask: Ask) -> Iterator[Lever]:
    """More room on one node, for the nodes that lack least. What is free there is said with what is kept for others,
    which get their room first.
    """
    nodes, waits = partition.nodes.nodes.values(), pending(partition)[partition.root][0]
    largest = {name: max((node.total.get(name, 0) for node in nodes), default=0) for name, _ in ask.items}
    for place in [p for p in places(partition, ask) if p.is_open and p.missing]:
        rows = []
        for name, missing in place.missing.items():
            free = place.node.available.get(name, 0)
            part = Part(What.NODE_ROOM, place.node.id, free, free + missing, name)
            # More than the largest node has would be no sensible thing to say.
            rows.append((part, min(part.value + waits.get(name, 0), max(largest[name], part.value))))
        yield _lever(partition, rows)


def more_nodes(partition: Partition, ask: Ask) -> Iterator[Lever]:
    """Nodes like one that is there and that would take the ask if it were empty: one of each kind, the smallest first.

    What a filter rules out here because of what runs here (anti-affinity, spread, ports) a new node may allow.
    """
    if ask.required_node:
        return
    kinds: dict[tuple[object, ...], Place] = {}
    for place in sorted(places(partition, ask), key=lambda p: (sorted(p.node.total.items()), p.node.id)):
        node = place.node
        if place.would_suit_anew and node.fits_total(ask.items):
            labels = tuple(sorted((k, v) for k, v in node.labels.items() if v != node.id))
            kinds.setdefault((tuple(sorted(node.total.items())), labels, node.spec.taints), place)
    for place in kinds.values():
        yield Lever(((Part(What.NODES, place.node.id, 0, 1), MORE_NODES, 1),))


# -- others -------------------------------------------------------------------------------------------------------


def cancels(partition: Partition, ask: Ask, may_act: Callable[[str], bool]) -> Iterator[Iterator[Lever]]:
    """Single allocations whose end could let the ask start: the asker's own, then those of others.

    Of each the likeliest first: what has enough of what is short, then least important, smallest, youngest.
    """
    enough = set(_likely(partition, ask))
    running = [
        other
        for node in partition.nodes.nodes.values()
        for other in node.allocations
        if other.evict_cause is None and other.app.id != ask.app.id
    ]

    def key(other: Ask) -> tuple[bool, int, float, int, int]:
        return other not in enough, other.priority, _size(partition, other), -(other.allocated_ms or 0), other.seq

    running.sort(key=key)
    for own in (True, False):
        yield (_end_of(other) for other in running if may_act(other.app.id) is own)


def _end_of(other: Ask) -> Lever:
    return together(Part(What.CANCEL, f"{other.app.id}/{other.key}", 0, 1))


def all_own_work(partition: Partition, ask: Ask, may_act: Callable[[str], bool]) -> Lever | None:
    """The end of everything that runs and is the asker's, the least important first; None: nothing is, or too much."""
    own = [
        other
        for node in partition.nodes.nodes.values()
        for other in node.allocations
        if other.evict_cause is None and other.app.id != ask.app.id and may_act(other.app.id)
    ]
    if not 0 < len(own) <= OWN_TRIED:
        return None
    own.sort(key=lambda other: (-other.priority, -_size(partition, other), other.seq))
    return Lever(tuple(row for other in own for row in _end_of(other).rows))


def _likely(partition: Partition, ask: Ask) -> list[Ask]:
    found = limits_in_the_way(partition, ask)
    if found is not None:
        return _holders_of(partition, ask, found.parts)
    return [a for p in places(partition, ask) if p.is_open for a in _enough_on(p)]


def _enough_on(place: Place) -> Iterator[Ask]:
    for other in place.node.allocations:
        back = dict(other.items)
        if all(lack <= back.get(name, 0) for name, lack in place.missing.items()):
            yield other


def _holders_of(partition: Partition, ask: Ask, parts: Iterable[Part]) -> list[Ask]:
    """Running allocations that count under the first of these limits, and give back what it lacks."""
    part = next(iter(parts))
    queue = partition.root.find(part.subject)
    kind, _, who = part.who.partition(" ")
    found = []
    for app in [a for q in (queue.walk() if queue is not None else ()) for a in q.applications.values()]:
        if not app.allocations or (kind == "user" and (who not in ("*", app.user) or app.user != ask.app.user)):
            continue
        if kind == "group" and app.limit_group != who:
            continue
        lacks = part.value - part.now
        for other in app.allocated_asks():
            alone = not part.resource and app.allocations == 1 and not app.pending_count
            if alone or (part.resource and dict(other.items).get(part.resource, 0) >= lacks):
                found.append(other)
    return found


def held_back_by(partition: Partition, ask: Ask) -> list[tuple[Ask, Reservation]]:
    """The reservations that this ask has to wait for: in its queue, or in its resource group when it is idle."""
    if ask.spec.idle:
        group = group_of(ask.app.queue)
        every = [(holder, r) for holder, r in partition.reserving.every() if group in holder.app.queue.lineage]
        return [(holder, r) for holder, r in every if r.concerns(ask)]
    own = partition.reserving.of.get(ask.app.queue, {})
    return [(holder, r) for holder, r in own.items() if holder is not ask and r.holds_back(holder, ask)]


def _size(partition: Partition, ask: Ask) -> float:
    total = partition.nodes.total
    return sum(amount / total[name] for name, amount in ask.items if total.get(name))


def other_queues(partition: Partition, ask: Ask) -> list[Lever]:
    """Other leaves: those that have room for the ask under their maxima first, and of these where most waits."""
    here = ask.app.queue
    leaves = [
        queue
        for queue in partition.root.walk()
        if queue.is_leaf and queue.managed and queue is not here and queue.state is QueueState.ACTIVE
    ]
    leaves.sort(key=lambda queue: (queue.short_of_room(ask.items) is not None, -queue.reported, queue.path))
    return [together(Part(What.QUEUE, queue.path, 0, 1)) for queue in leaves]


def smaller_requests(partition: Partition, ask: Ask) -> Iterator[Lever]:
    """What the ask could have now, where that is less than it wants; else less of one resource, or of all. A place that
    is kept is as large as the work that it is kept for.
    """
    if ask.spec.placeholder:
        return
    room = ask.app.queue.headroom() or {}
    for ceiling in ask.app.ceilings:
        for name, most in (ceiling.max or {}).items():
            room[name] = min(room.get(name, most), most - ceiling.allocated.get(name, 0))
    seen: set[tuple[tuple[str, int], ...]] = set()
    for place in [p for p in places(partition, ask) if p.is_open]:
        fits = {name: min(amount, place.node.free.get(name, 0), room.get(name, amount)) for name, amount in ask.items}
        if all(fits[name] > 0 for name, amount in ask.items if amount > 0) and not fits_in(ask.items, fits):
            smaller = tuple((name, fits[name]) for name, amount in ask.items if fits[name] < amount)
            if smaller not in seen:
                seen.add(smaller)
                yield together(*(Part(What.SMALLER, ask.key, dict(ask.items)[n], value, n) for n, value in smaller))
    for name, amount in ask.items:
        if amount > 1:
            yield _less_of(partition, ask, [name])
    least = least_request(ask)
    if least is not None:
        yield _less_of(partition, ask, [part.resource for part in least.parts])


def _less_of(partition: Partition, ask: Ask, names: Iterable[str]) -> Lever:
    """Less of these, from one step less down to one unit."""
    amounts, rows = dict(ask.items), []
    for name in names:
        step = min(grain(partition, name), amounts[name] - 1)
        rows.append((Part(What.SMALLER, ask.key, amounts[name], amounts[name] - step, name), 1, step))
    return Lever(tuple(rows))


def least_request(ask: Ask) -> Lever | None:
    """One unit of everything; None: it asks for no more, or its size is not its own."""
    if ask.spec.placeholder:
        return None
    parts = [Part(What.SMALLER, ask.key, amount, 1, name) for name, amount in ask.items if amount > 1]
    return together(*parts) if parts else None
