"""Preempt by guarantee: an ask of a queue below its guarantee takes back what other queues use above theirs.

Decides, for one ask, on which node it could run if some work were stopped, and which work: the fewest and least
protected victims whose queues are above their guarantee. Never stops work without the placement it pays for, never in
the ask's own queue, never when the ask would lift its own queue above its guarantee. Idle work goes before all others,
whatever its priority and its queue. Invariant: searching changes nothing; what is tried on the snapshots is taken back.

In words: see whether the ask fits beside others for which room is made already; collect the candidates; make sure that
the guarantee leaves room for the ask once they are gone; on every node find the victims that make the ask fit there;
choose the node; where the queue is still short, add victims elsewhere; keep only as many as the ask is large.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from operator import or_

from fairlead.core.acts.reserve_node import RESERVATION_MS
from fairlead.core.books.asks import Ask
from fairlead.core.books.idle_work import payer
from fairlead.core.books.node import Node
from fairlead.core.books.nominations import kept_under, queue_short_of_kept
from fairlead.core.books.partition import Partition
from fairlead.core.books.queues import Queue
from fairlead.core.books.user_limits import Ceiling
from fairlead.core.model.resources import Book, add_to, fits_in, lacks, take_from
from fairlead.policy.order.victim_index import leaves_for_others
from fairlead.policy.preemption.protection import in_time, is_full_too_long, is_spared, overdrawn, within
from fairlead.policy.preemption.queue_snapshot import QueueSnapshots
from fairlead.policy.preemption.victims import (
    Survey,
    by_node,
    candidates,
    fewest,
    idle_candidates,
    missing_on,
    preference,
    taint,
)


@dataclass(frozen=True, slots=True)
class Plan:
    """Stop `victims` so that `ask` can run on `node`."""

    ask: Ask
    node: Node
    victims: tuple[Ask, ...]

    @property
    def rank(self) -> tuple[int, int, str]:
        """Order of plans for different nodes: 1. the least protected victims, 2. the fewest, 3. the node's id."""
        return (reduce(or_, map(taint, self.victims), 0), len(self.victims), self.node.id)


def find_plan(survey: Survey, ask: Ask) -> Plan | None:
    """What to stop so that `ask` can run, or None."""
    partition, snapshots = survey.partition, seen_ahead(survey, ask)
    own = snapshots.ask_queue
    if lacks(own.guaranteed, own.used, ask.items):
        return None  # No victim elsewhere changes that.
    if (beside := _beside_others(survey, ask, snapshots)) is not None:
        return Plan(ask, beside, ())
    known = (*idle_candidates(partition, ask), *candidates(survey, ask, snapshots))
    found = [victim for victim in known if not is_spared(partition, ask, victim)]
    if not found or not guarantee_leaves_room(snapshots, ask, found):
        return None
    most = overdrawn(partition, found)
    choice = _choose_node(partition, ask, found, most, snapshots)
    if choice is None:
        return None
    chosen = list(choice.victims)
    victims = _as_many_as_needed(partition, ask, choice.node, chosen)
    if not victims:
        more = _more_victims(snapshots, ask, in_time(partition, ask, found, choice.node), chosen, most)
        victims = _as_many_as_needed(partition, ask, choice.node, chosen + more)
        if not victims:
            return None
    return Plan(ask, choice.node, _without_needless(partition, ask, choice.node, victims))


def is_guaranteed(partition: Partition, ask: Ask) -> bool:
    """Whether the ask is within the guarantee of its queue beside what is nominated or runs there, idle work apart."""
    snapshots = QueueSnapshots(ask.app.queue)
    for queue in ask.app.queue.lineage:
        add_to(snapshots.of(queue).used, tuple(kept_under(partition, queue, (ask,)).items()))
    left = snapshots.ask_queue.remaining()
    return any(name in left for name, _ in ask.items) and not lacks(left, {}, ask.items)


def seen_ahead(survey: Survey, ask: Ask) -> QueueSnapshots:
    """The queues without what was told to go, whoever told it to and be it late: it does not stay for those that could
    lose work; and with others of the ask's queues for which work was stopped: those use the guarantee when that left.
    """
    snapshots, own, disruption = QueueSnapshots(ask.app.queue), ask.app.queue.lineage, survey.partition.disruption
    for going in (*disruption.going, *disruption.overdue):
        for queue in going.app.queue.lineage if not going.spec.idle else ():
            if queue not in own:
                take_from(snapshots.of(queue).used, going.items)
    for other in survey.to_come:
        for queue in other.app.queue.lineage if other is not ask else ():
            if queue in own:
                add_to(snapshots.of(queue).used, other.items)
    return snapshots


# -- room that is made for others ---------------------------------------------------------------------------------


def _beside_others(survey: Survey, ask: Ask, snapshots: QueueSnapshots) -> Node | None:
    """The first node where the ask fits beside those for which work was stopped there, once that has left: nothing more
    has to go for it. Only as far as the guarantee reaches beside them, and where nothing of them but room counts.
    """
    left = snapshots.ask_queue.remaining()
    if not survey.to_come or not left or lacks(left, {}, ask.items):
        return None
    if ask.where.minds_work:
        return None
    places: tuple[Queue | Ceiling, ...] = (*ask.app.queue.lineage, *ask.app.ceilings)
    if any(_is_full_with(survey, ask, place) for place in places):
        return None
    found = dict.fromkeys(other.reserved_on for other in survey.to_come if other.reserved_on is not None)
    return min((node for node in found if _has_room_beside(survey, ask, node)), key=lambda node: node.id, default=None)


def _has_room_beside(survey: Survey, ask: Ask, node: Node) -> bool:
    """Whether it fits there beside all for which the node is set aside, once what was told to stop there has left."""
    if not node.schedulable or not all(_has_room_made(each) for each in node.reservations):
        return False
    told = [running for running in node.allocations if leaves_for_others(running)]
    leaving = in_time(survey.partition, ask, told, node)
    free = node.free_for(ask, leaving)
    for holder in node.reservations:
        take_from(free, holder.items)
    return fits_in(ask.items, free) and survey.partition.nodes.suits(ask, node, leaving)


def _has_room_made(ask: Ask) -> bool:
    """Whether work was stopped for an ask on the node that it has reserved, and nothing of others but room counts."""
    return ask.preempt_triggered and not ask.required_node and not ask.where.minds_work


def _is_full_with(survey: Survey, ask: Ask, place: Queue | Ceiling) -> bool:
    """Whether the ask is too much there beside what is to come, once what was told to stop has left."""
    used = dict(place.allocated)
    if isinstance(place, Queue):
        take_from(used, tuple(place.preempting.items()))
    for other in survey.to_come:
        if place in other.app.queue.lineage or place in other.app.ceilings:
            add_to(used, other.items)
    return lacks(place.max, used, ask.items)


# -- the guarantee ------------------------------------------------------------------------------------------------


def _is_short(left: Book, ask: Ask) -> bool:
    """Whether something that the ask needs is below zero."""
    return any(left.get(name, 0) < 0 for name, _ in ask.items)


def entitled_at_most(snapshots: QueueSnapshots, found: Iterable[Ask]) -> Book:
    """What the guarantee leaves to the ask's queue once every candidate is gone: no larger victim goes for it."""
    mark = snapshots.mark()
    for victim in found:
        if not victim.spec.idle:
            snapshots.remove(snapshots.of(victim.app.queue), victim.items)
    left = snapshots.ask_queue.remaining()
    snapshots.undo(mark)
    return left


def guarantee_leaves_room(snapshots: QueueSnapshots, ask: Ask, found: Iterable[Ask]) -> bool:
    """Whether the ask would be within the guarantee if every candidate were gone. Without a guarantee: no."""
    mine = snapshots.ask_queue
    left = mine.remaining()
    if not left:
        return False  # Whether a guarantee is known depends on the configuration alone.
    if not lacks(left, {}, ask.items):
        return True
    snapshots.add(mine, ask.items)
    is_short = _is_short(entitled_at_most(snapshots, found), ask)
    snapshots.undo()
    return not is_short


def lets_go(snapshots: QueueSnapshots, ask: Ask, victim: Ask) -> bool:
    """Whether the queue of a candidate lets it go, from which it is then taken tentatively.

    The queue must be above its guarantee in something that the ask needs, or have none, and must not fall below it.
    """
    theirs = snapshots.of(victim.app.queue)
    left = theirs.remaining()
    if left and not _is_short(left, ask):
        return False
    snapshots.remove(theirs, victim.items)
    left = theirs.remaining()
    return not any(left.get(n, 0) > 0 for n, _ in victim.items)


def _taken(snapshots: QueueSnapshots, ask: Ask, work: Iterable[Ask]) -> Iterator[Ask]:
    """Those of some candidates that the queues let go (`lets_go`), each taken tentatively.

    What is taken must itself fit into what the ask's queue has left of its guarantee, and is charged to it; where it
    does not, there is no use in looking further. Idle work is in no guarantee: it goes and charges none.
    """
    mine = snapshots.ask_queue
    for victim in work:
        if not victim.spec.idle:
            mark = snapshots.mark()
            if not lets_go(snapshots, ask, victim):
                snapshots.undo(mark)
                continue
            entitled = mine.remaining()
            if not entitled or lacks(entitled, {}, victim.items):
                snapshots.undo(mark)
                return
            snapshots.add(mine, victim.items)
        yield victim


# -- nodes --------------------------------------------------------------------------------------------------------


def _choose_node(
    partition: Partition, ask: Ask, found: list[Ask], most: dict[Queue, int], snapshots: QueueSnapshots
) -> Plan | None:
    """`most`: so much may be stopped of these queues and below."""
    if _is_full_above(partition, ask):
        # A maximum was in its way, so that no node was looked at.
        nodes = partition.nodes.nodes.values()
        usable = (n for n in nodes if n.room_for(ask) and _is_usable(partition, n, ask))
        with_room = [n for n in usable if partition.nodes.suits(ask, n)]
        if with_room:
            return Plan(ask, min(with_room, key=lambda n: n.id), ())
    avoided = {a.node: None for a in partition.disruption.overdue}  # What is stopped there may not leave either.
    may_go = by_node(in_time(partition, ask, found))
    worth_a_look = [
        (node in avoided, count, node.id, node)
        for node, on_node in may_go.items()
        if _is_usable(partition, node, ask) and (count := fewest(missing_on(node, ask), on_node))
    ]
    best: Plan | None = None
    for is_avoided, count, node_id, node in sorted(worth_a_look):
        if best is not None and (is_avoided or best.rank < (0, count, node_id)):
            break
        on_node = within(most, sorted(may_go[node], key=preference))
        choice = _victims_on(partition, node, ask, on_node, snapshots)
        for one in may_go[node] if choice is None and len(on_node) < len(may_go[node]) else ():
            # Those that are preferred use up what its queue may lose, and are not enough.
            alone = _victims_on(partition, node, ask, within(most, [one]), snapshots)
            if alone is not None and (choice is None or preference(one) < preference(choice.victims[0])):
                choice = alone
        if choice is not None and (best is None or choice.rank < best.rank):
            best = choice
    return best


def _is_full_above(partition: Partition, ask: Ask) -> bool:
    """Whether a maximum has no room for it, or none beside what is kept there for others."""
    if ask.app.queue.short_of_room(ask.items) is not None or not partition.nodes.sum_has_room(ask.items):
        return True
    return queue_short_of_kept(partition, ask.app.queue, ask.items, (ask,)) is not None


def _is_usable(partition: Partition, node: Node, ask: Ask) -> bool:
    """Whether the ask could ever run there: open, large enough, and not reserved for another that keeps it.

    An ask of lower priority that has had the node for an hour and did not cause anything to stop for it does not.
    """
    if not node.schedulable or not node.fits_total(ask.items):
        return False
    return all(
        holder is ask
        or (
            not holder.required_node
            and not holder.preempt_triggered
            and holder.priority < ask.priority
            and since_ms + RESERVATION_MS <= partition.now_ms
        )
        for holder, since_ms in node.reservations.items()
    )


def _victims_on(
    partition: Partition, node: Node, ask: Ask, on_node: list[Ask], snapshots: QueueSnapshots
) -> Plan | None:
    """The victims that make the ask fit on a node where it does not fit yet, or None.

    Twice over the candidates: first those that lessen what is missing are told from the others, then they are taken in
    that order as far as the queues allow, until the ask fits.
    """
    helpful: list[Ask] = []
    others: list[Ask] = []
    asked, free = dict(ask.items), node.free_for(ask)
    mark = snapshots.mark()
    for victim in _taken(snapshots, ask, on_node):
        if any(asked.get(name, 0) > free.get(name, 0) for name, _ in victim.items):
            helpful.append(victim)
            add_to(free, victim.items)
            mark = snapshots.mark()
        else:
            snapshots.undo(mark)
            others.append(victim)
    snapshots.undo()
    taken: list[Ask] = []
    free, fits = node.free_for(ask), False
    for victim in _taken(snapshots, ask, helpful + others):
        taken.append(victim)
        add_to(free, victim.items)
        if fits := fits_in(ask.items, free) and partition.nodes.suits(ask, node, taken):
            break
    snapshots.undo()
    return Plan(ask, node, tuple(taken)) if fits else None


# -- the queue ----------------------------------------------------------------------------------------------------


def _more_victims(
    snapshots: QueueSnapshots, ask: Ask, found: Iterable[Ask], chosen: list[Ask], most: dict[Queue, int]
) -> list[Ask]:
    """Victims anywhere else, for a queue whose maximum still has no room."""
    mine = snapshots.ask_queue
    for victim in chosen:
        if not victim.spec.idle:
            snapshots.remove(snapshots.of(victim.app.queue), victim.items)
    have = set(chosen)
    more: list[Ask] = []
    others = sorted((v for v in found if v not in have), key=preference)
    before = mine.remaining()
    for victim in _taken(snapshots, ask, within(most, [*chosen, *others])[len(chosen) :]):
        after = mine.remaining()
        if _empties(victim, ask) if victim.spec.idle else after != before:
            more.append(victim)
        before = after
    snapshots.undo()
    return more


def _empties(victim: Ask, ask: Ask) -> bool:
    """Whether the end of idle work makes room under a maximum that holds for the ask."""
    return any(queue.max is not None and queue in payer(victim).lineage for queue in ask.app.queue.lineage[:-1])


def _without_needless(partition: Partition, ask: Ask, node: Node, victims: tuple[Ask, ...]) -> tuple[Ask, ...]:
    """The victims without idle work that is not needed beside the others, the highest of it given back first."""
    kept = list(victims)
    for spared in sorted((v for v in victims if v.spec.idle), key=lambda v: (-v.priority, v.allocated_ms or 0, v.seq)):
        rest = [v for v in kept if v is not spared]
        if _can_be_placed_without(partition, ask, node, rest):
            kept = rest
    return tuple(kept)


def _as_many_as_needed(partition: Partition, ask: Ask, node: Node, victims: list[Ask]) -> tuple[Ask, ...]:
    """The first victims after which the ask can be placed; nothing when it cannot be after all of them."""
    taken: list[Ask] = []
    for victim in victims:
        on_node = (each for each in taken if each.node is node)
        if victim.node is node or fits_in(ask.items, node.free_for(ask, on_node)):
            taken.append(victim)
            if _can_be_placed_without(partition, ask, node, taken):
                return tuple(taken)
    return ()


def _can_be_placed_without(partition: Partition, ask: Ask, node: Node, gone: list[Ask]) -> bool:
    """Whether the ask fits on the node and under every maximum, beside what is kept there for others; what leaves or is
    about to counts as gone.
    """
    free = node.free_for(ask, (victim for victim in gone if victim.node is node))
    if not fits_in(ask.items, free) or not partition.nodes.suits(ask, node, gone):
        return False
    for queue in ask.app.queue.lineage:
        if queue.max is None:
            continue
        used = {n: v - queue.preempting.get(n, 0) for n, v in queue.allocated.items()}
        add_to(used, tuple(kept_under(partition, queue, (ask,)).items()))
        for victim in gone:
            if queue in payer(victim).lineage:
                take_from(used, victim.items)
        if lacks(queue.max, used, ask.items):
            return False
    return not is_full_too_long(partition, ask, node, gone)
