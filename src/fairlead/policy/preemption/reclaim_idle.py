"""Reclaim: what is not idle and waits takes back what idle work of its resource group uses.

Decides which waiting ask does so next, in the order of the walk, and which are known to find nothing. Never decides
which idle work goes (`idle_plan`). Invariant: nothing that comes later is looked at before what comes first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import islice, takewhile

from fairlead.core.books.asks import Ask, Batch
from fairlead.core.books.demand import Demand
from fairlead.core.books.partition import Partition
from fairlead.core.books.queues import Queue
from fairlead.policy.eligibility.headroom import is_held_back
from fairlead.policy.eligibility.max_wait import waits_for_turn
from fairlead.policy.order.keys import application_key, batch_key, queue_key
from fairlead.policy.order.pick import Lines
from fairlead.policy.preemption.idle_plan import carry_out, find_plan, has_room_made, may_claim, no_node_helps
from fairlead.policy.preemption.termination_timeouts import may_stop_ms
from fairlead.policy.preemption.victims import with_own_node

Place = tuple[object, ...]


def reclaim_before(
    partition: Partition, lines: Lines, next_ask: Ask | None, *, itself: bool = False, but: Collection[Queue] = ()
) -> bool:
    """Make room for the first waiting ask in order for which idle work can, if it comes before this one (None: the
    end), or is it `itself`; none of the leaves `but`. Asks with a reservation come first. True when some was told to
    stop. So it is in YuniKorn's walk; where rank decides, every ask does it in its turn (`by_priority`).
    """
    # What has its turn kept goes first wherever it stands; else nothing counts that is behind the next ask.
    turns_are_kept = bool(partition.reserving.of)
    last = next_ask.app.queue if next_ask is not None and not turns_are_kept else None
    ways: dict[Queue, Place] = {}
    before = _place_of(next_ask, ways) if next_ask is not None else None
    own = with_own_node(partition, partition.idle.running)
    own = {batch: asks for batch, asks in own.items() if batch.stamp and not is_tried(partition, batch.demand)}
    have_own = dict.fromkeys([batch.demand for batch in own])
    until = [leaf for leaf in _leaves_until(partition, last) if leaf not in but]
    demands = {leaf: _untried(partition, leaf, have_own) for leaf in until}
    stuck = [n.ask for n in partition.nominations.of.values() if n.is_stuck]
    stuck = [ask for ask in stuck if may_stop_ms(partition, ask) <= partition.now_ms]
    apart = stuck + [ask for batch in own if lines.is_eligible(batch) for ask in own[batch] if batch.demand.live]
    apart = [ask for ask in apart if ask in stuck or ask.app.queue in demands]
    leaves = dict.fromkeys([*(leaf for leaf in demands if demands[leaf]), *(ask.app.queue for ask in apart)])
    in_order = sorted(leaves, key=lambda leaf: _way_to(leaf, ways))
    for together in [in_order] if turns_are_kept else [[leaf] for leaf in in_order]:
        waiting = dict.fromkeys([ask for ask in apart if ask.app.queue in together])
        for leaf in together:
            end = before[1:] if before is not None and leaf is last else None
            for batch in [batch for demand in demands.get(leaf, ()) for batch in _until(lines, demand, end)]:
                waiting |= dict.fromkeys(_first_of_each(partition, batch))
        for ask in sorted(waiting, key=lambda ask: (partition.reserving.get(ask) is None, _place_of(ask, ways))):
            if before is not None and not (_place_of(ask, ways) < before or (itself and ask is next_ask)):
                if partition.reserving.get(ask) is None:
                    return False
                if _has_room(partition, ask):
                    continue
            if may_claim(partition, ask) and (plan := find_plan(partition, ask)) is not None:
                carry_out(partition, plan)
                return True
        note_tried(partition, [demand for leaf in together if leaf is not last for demand in demands.get(leaf, ())])
    return False


def _untried(partition: Partition, leaf: Queue, have_own: Collection[Demand]) -> list[Demand]:
    """The demands of a leaf for which idle work may make room, as far as is known; asks with nodes of their own apart.
    All of a demand are alike for nodes, queues and limits, but for one with a kept turn, for which room may gather.
    """
    found = []
    for demand in leaf.every_demand():
        if demand.live and not is_tried(partition, demand) and (first := demand.first()) is not None:
            if partition.reserving.of or not no_node_helps(partition, first[2].head):
                found.append(demand)
            elif demand not in have_own:
                note_tried(partition, [demand])
    return found


def _leaves_until(partition: Partition, last: Queue | None) -> Iterator[Queue]:
    """The leaves to which the walk comes before this one, and itself; all for None."""
    if last is None:
        yield from partition.root.walk()
        return
    for queue in last.lineage[:-1]:
        assert queue.parent is not None
        place = queue_key(queue)
        for other in queue.parent.children.values():
            if other is not queue and queue_key(other) < place:
                yield from other.walk()
    yield last


def _until(lines: Lines, demand: Demand, end: Place | None) -> list[Batch]:
    """The batches of a demand that may start, up to a place in the line of their leaf (None: all)."""
    if end is None:
        return [entry[2] for entry in demand.entries() if lines.is_eligible(entry[2])]
    if demand.improved:
        lines.bring_up(demand)
    first = demand.first()
    if first is None or end < first[0]:
        return []
    near = [entry[2] for entry in takewhile(lambda entry: not end < entry[0], demand.entries())]
    return [batch for batch in near if not end < batch_key(batch) and lines.is_eligible(batch)]


def _first_of_each(partition: Partition, batch: Batch) -> list[Ask]:
    """The first for which nothing was stopped yet; with windows of each time limit, of those that wait for no turn of
    another: what is over earlier may not reach into a window when something has left.
    """
    asks = (ask for ask in batch.asks if not has_room_made(ask))
    firsts = list(islice(asks, None if partition.admission.windows else 1))
    return [a for a in {a.limit_ms: a for a in reversed(firsts)}.values() if not waits_for_turn(partition, a)]


def _has_room(partition: Partition, ask: Ask) -> bool:
    """Whether it can start as things are, in its own turn: a claim would be in the way of what comes before it."""
    shape, batch = ask.shape, ask.batch
    if shape is None or batch is None or shape.unfit or shape.required_node:
        return False
    return not is_held_back(partition, batch.demand, ask) and partition.nodes.first_for(shape, ask) is not None


def is_tried(partition: Partition, demand: Demand) -> bool:
    """Whether it is known that nothing can be stopped for what waits with this demand."""
    return demand.tried == _stamp(partition, demand)


def note_tried(partition: Partition, demands: list[Demand]) -> None:
    """Nothing can be stopped for what waits with these demands, as things are."""
    for demand in demands:
        demand.tried = _stamp(partition, demand)


def _stamp(partition: Partition, demand: Demand) -> int:
    """What stays the same as long as nothing changes that matters: where any work may be in the way, or may help, that
    starts too; or where a queue may have more than its guarantee by it, so that work there may be stopped. Numbers of
    the two kinds are never equal.
    """
    is_plain = partition.nodes.only_room_counts(demand.shape)
    return -2 - partition.room_stamp if is_plain and not partition.root.owes else partition.books_version


def _place_of(ask: Ask, ways: dict[Queue, Place]) -> Place:
    """Where the walk comes to an ask; `ways`: where it comes to each leaf, as far as known."""
    return (_way_to(ask.app.queue, ways), ask.app.order_key or application_key(ask.app), ask.line_key)


def _way_to(leaf: Queue, ways: dict[Queue, Place]) -> Place:
    """Where it comes to a leaf."""
    if leaf not in ways:
        ways[leaf] = tuple(queue_key(queue) for queue in reversed(leaf.lineage[:-1]))
    return ways[leaf]
