"""Reclaim: who is not idle and waits takes back what idle work of its resource group uses.

Decides which idle work is stopped so that one waiting ask, which fits its own queue's quota, fits on one node and under
the maxima of its group and above; the space is held for that ask alone. Never stops work that is not idle, never more
than needed, and nothing where that would not be enough. Invariant: no eviction without the placement it pays for.

Which work: 1. the fewest, 2. of the lowest priority, 3. with the shortest run time lost (the latest start).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING

from fairlead.core import claims
from fairlead.core.applications import line_group
from fairlead.core.events import Cause
from fairlead.core.idle import group_of
from fairlead.core.resources import Book, add_to, fits_in
from fairlead.policy.limits import full_ceiling, may_run
from fairlead.policy.ordering import application_key, queue_key
from fairlead.policy.turns import waits_for_turn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.core.applications import Ask
    from fairlead.core.nodes import Node
    from fairlead.core.partition import Partition
    from fairlead.core.queues import Queue

RULE = "reclaim"
COMBINATIONS_MAX = 2_000
"""So many sets of victims are compared at most for one node; beyond, the largest contributions are taken first."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Idle work to stop, and the ask and node it makes room for."""

    ask: Ask
    node: Node
    victims: tuple[Ask, ...]

    @property
    def harm(self) -> tuple[int, int, int, int]:
        """Order of plans: 1. fewest, 2. lowest highest priority, 3. lower sum, 4. shortest longest run lost."""
        return _harm(self.victims)


def _harm(victims: tuple[Ask, ...]) -> tuple[int, int, int, int]:
    standing = [v.priority for v in victims]
    return (len(victims), max(standing), sum(standing), -min(v.allocated_ms or 0 for v in victims))


def reclaim_one(partition: Partition) -> bool:
    """Make room for the first waiting ask in order for which idle work can; True when some was told to stop."""
    stamp = (*partition.change_stamp(), partition.root.running, len(partition.applications))
    if partition.idle.tried == stamp:
        return False
    looked_at: dict[object, None] = {}
    for ask in claimants(partition):
        equals = (ask.app.queue, ask.shape, ask.app.allowance)
        if equals in looked_at:
            continue
        looked_at[equals] = None
        plan = find_plan(partition, ask)
        if plan is not None:
            carry_out(partition, plan)
            return True
    partition.idle.tried = stamp
    return False


def claimants(partition: Partition) -> Iterator[Ask]:
    """Waiting asks that are not idle and may run, those with a reservation first, else in scheduling order."""
    reserved = [ask for ask, _ in partition.reserving.every()]
    for ask in reserved:
        if _may_claim(partition, ask):
            yield ask
    for leaf in _leaves_in_order(partition.root):
        for app in sorted((a for a in leaf.applications.values() if a.batches), key=application_key):
            for batch in app.batches:
                if _may_claim(partition, batch.asks[0]):
                    yield batch.asks[0]


def _leaves_in_order(queue: Queue) -> Iterator[Queue]:
    if queue.is_leaf:
        yield queue
        return
    for child in sorted((c for c in queue.children.values() if c.has_pending), key=queue_key):
        yield from _leaves_in_order(child)


def _may_claim(partition: Partition, ask: Ask) -> bool:
    """Whether nothing but room in its group or on nodes is in the way: its own queue's quota must have it."""
    app = ask.app
    if any(victim.evict_cause is not None for victim in ask.victims) or app.stands_in(line_group(ask)):
        return False
    if app.backoff_until_ms is not None and app.backoff_until_ms > partition.now_ms:
        return False
    if not may_run(app) or waits_for_turn(partition, ask) or full_ceiling(app, ask.items) is not None:
        return False
    above = group_of(app.queue).lineage
    for full in (
        app.queue.short_of_room(ask.items),
        claims.short_of_promised_room(partition, app.queue, ask.items, ask) if partition.holds else None,
    ):
        if full is not None and full not in above:
            return False
    return True


# -- the plan -----------------------------------------------------------------------------------------------------


def find_plan(partition: Partition, ask: Ask) -> Plan | None:
    """The plan with the least harm over all nodes, or None when stopping idle work does not help."""
    group = group_of(ask.app.queue)
    found = [a for a in partition.idle.every() if a.evict_cause is None and group in a.app.queue.lineage[1:]]
    if not found:
        return None
    missing_above = _missing_above(partition, group, ask)
    by_node: dict[Node, list[Ask]] = {}
    for victim in found:
        assert victim.node is not None
        by_node.setdefault(victim.node, []).append(victim)
    plans = []
    for node in _nodes_worth_a_look(partition, ask, by_node, bool(missing_above)):
        here = by_node.get(node, [])
        victims = cheapest(_missing_on(node, ask), missing_above, here, found if missing_above else here)
        if victims and partition.nodes.suits(ask, node, victims):
            plans.append(Plan(ask, node, victims))
    return min(plans, key=lambda p: (p.harm, partition.nodes.score(p.node), p.node.id), default=None)


def _nodes_worth_a_look(partition: Partition, ask: Ask, by_node: dict[Node, list[Ask]], above: bool) -> Iterator[Node]:
    """Nodes with idle work; where a queue above is short, also those with room already."""
    for node in partition.nodes.nodes.values():
        if not node.schedulable or any(holder is not ask for holder in node.reservations):
            continue
        if not node.fits_total(ask.items) or ask.required_node not in ("", node.id):
            continue
        if node in by_node or (above and fits_in(ask.items, node.free)):
            yield node


def _missing_on(node: Node, ask: Ask) -> Book:
    """What the node is short of beside what is held there for others."""
    mine = dict(node.held.get(ask, ()))
    missing = {}
    for name, amount in ask.items:
        lack = amount - node.free.get(name, 0) - mine.get(name, 0)
        if amount > 0 and lack > 0:
            missing[name] = lack
    return missing


def _missing_above(partition: Partition, group: Queue, ask: Ask) -> Book:
    """The most that the group or a queue above it is over its maximum with the ask, beside what is promised there."""
    missing: Book = {}
    for queue in group.lineage:
        others = claims.promised(partition, queue, ask) if partition.holds else {}
        for name, amount in ask.items:
            if queue.max is None or name not in queue.max or amount <= 0:
                continue
            used = queue.allocated.get(name, 0) - queue.preempting.get(name, 0) + others.get(name, 0)
            lack = used + amount - queue.max[name]
            if lack > missing.get(name, 0):
                missing[name] = lack
    return missing


def cheapest(on_node: Book, above: Book, here: list[Ask], candidates: list[Ask]) -> tuple[Ask, ...]:
    """The victims with the least harm that free this much on the node (only those `here` do) and this much in all.

    Exact while there are few sets to compare; beyond, whoever frees most of what is missing goes first, and whoever is
    not needed in the end is spared. Nothing when all together are not enough, or when nothing is missing.
    """
    if not on_node and not above:
        return ()
    local = dict.fromkeys(here)
    useful = [v for v in candidates if _contribution(v, v in local, on_node, above)]
    useful.sort(key=lambda v: (v.priority, -(v.allocated_ms or 0), -v.seq))
    if not _covers(useful, local, on_node, above):
        return ()
    looked_at = 0
    for size in range(_fewest(useful, local, on_node, above), len(useful)):
        looked_at += comb(len(useful), size)
        if looked_at > COMBINATIONS_MAX:
            return _greedy(useful, local, on_node, above)
        fitting = [s for s in combinations(useful, size) if _covers(s, local, on_node, above)]
        if fitting:
            return min(fitting, key=_harm)
    return tuple(useful)


def _fewest(useful: list[Ask], local: dict[Ask, None], on_node: Book, above: Book) -> int:
    """No fewer than this many can be enough: of each resource, so many of the largest."""
    fewest = 1
    for missing, pool in ((on_node, [v for v in useful if v in local]), (above, useful)):
        for name, lack in missing.items():
            amounts = sorted((dict(v.items).get(name, 0) for v in pool), reverse=True)
            count, freed = 0, 0
            while freed < lack and count < len(amounts):
                freed += amounts[count]
                count += 1
            fewest = max(fewest, count)
    return fewest


def _greedy(useful: list[Ask], local: dict[Ask, None], on_node: Book, above: Book) -> tuple[Ask, ...]:
    order = sorted(
        useful,
        key=lambda v: (-_contribution(v, v in local, on_node, above), v.priority, -(v.allocated_ms or 0), -v.seq),
    )
    chosen: list[Ask] = []
    for victim in order:
        chosen.append(victim)
        if _covers(chosen, local, on_node, above):
            break
    for spared in sorted(chosen, key=lambda v: (-v.priority, v.allocated_ms or 0, v.seq)):
        without = [v for v in chosen if v is not spared]
        if _covers(without, local, on_node, above):
            chosen = without
    return tuple(sorted(chosen, key=lambda v: (v.priority, -(v.allocated_ms or 0), -v.seq)))


def _contribution(victim: Ask, is_here: bool, on_node: Book, above: Book) -> float:
    """How much of what is missing its end frees, in parts of that, summed up."""
    part = 0.0
    for name, amount in victim.items:
        if is_here and name in on_node:
            part += min(amount / on_node[name], 1.0)
        if name in above:
            part += min(amount / above[name], 1.0)
    return part


def _covers(victims: tuple[Ask, ...] | list[Ask], local: dict[Ask, None], on_node: Book, above: Book) -> bool:
    freed: Book = {}
    freed_here: Book = {}
    for victim in victims:
        add_to(freed, victim.items)
        if victim in local:
            add_to(freed_here, victim.items)
    return all(freed_here.get(n, 0) >= lack for n, lack in on_node.items()) and all(
        freed.get(n, 0) >= lack for n, lack in above.items()
    )


def carry_out(partition: Partition, plan: Plan) -> None:
    """Tell the victims to stop, and hold the space that they leave for the ask."""
    ask, node = plan.ask, plan.node
    name = f"{ask.app.id}/{ask.key}" if ask.key != ask.app.id else ask.key
    for victim in plan.victims:
        text = f"idle work makes room on {node.id} for {ask.key} of queue {ask.app.queue.path}"
        partition.evict(victim, Cause.PREEMPTED_BY_SCHEDULER, on_behalf_of=name, rule=RULE, message=text)
    claims.hold(partition, ask, node, plan.victims)
