"""The plan of a reclaim: which idle work is stopped for one ask, and where.

Decides whether idle work makes room for a waiting ask, which fits its own queue's quota, on one node, under the maxima
of its group and above, and under the limits of its user and group; the space is held for that ask alone. Never stops
work that is not idle, never more than needed, and nothing where that would not be enough. Invariant: no eviction
without the placement it pays for.

Which work: 1. the fewest, 2. of the lowest priority, 3. with the shortest run time lost (the latest start).

Where that of its own group is not enough, an ask within the guarantee of its queue takes idle work of other groups too:
by guarantee, so that fences and all that spares work from preemption count there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from fairlead.core.acts import nominate, reserve_node
from fairlead.core.books import nominations
from fairlead.core.books.asks import Ask
from fairlead.core.books.idle_work import group_of, payer
from fairlead.core.books.node import Node
from fairlead.core.books.partition import Partition
from fairlead.core.books.queues import Queue
from fairlead.core.books.user_limits import Ceiling
from fairlead.core.model.resources import add_to, take_from
from fairlead.policy.eligibility.gang_size import is_of_gang_too_large
from fairlead.policy.eligibility.limits import full_ceiling
from fairlead.policy.eligibility.max_wait import is_free_to_start
from fairlead.policy.order.effective_priority import search_root
from fairlead.policy.order.victim_index import leaves_for_others
from fairlead.policy.preemption.cheapest_set import Need, cheapest, covers, harm, standing
from fairlead.policy.preemption.guarantee import is_guaranteed
from fairlead.policy.preemption.protection import (
    in_time,
    is_full_too_long,
    is_spared,
    may_stop_others,
    overdrawn,
    within,
)
from fairlead.policy.preemption.termination_timeouts import may_stop_ms, moves_on
from fairlead.policy.preemption.victims import by_node, missing_on, preference, stop_for


@dataclass(frozen=True, slots=True)
class Plan:
    """Idle work to stop (none where enough leaves already), and the ask and node it makes room for."""

    ask: Ask
    node: Node
    victims: tuple[Ask, ...]
    leaving: tuple[Ask, ...]
    """Idle work on the node, or under a limit, that was told to stop before; what it leaves is counted on too."""


def may_claim(partition: Partition, ask: Ask) -> bool:
    """Whether nothing but room in its group, on nodes or under limits is in the way: its own queue's quota must have
    it.
    """
    if not is_free_to_start(partition, ask) or may_stop_ms(partition, ask) > partition.now_ms:
        return False
    if is_of_gang_too_large(partition, ask) or has_room_made(ask):
        return False
    if (full := full_ceiling(ask.app, ask.items)) is not None and not gives_back_under(partition, full):
        return False
    leaf = ask.app.queue
    short = leaf.short_of_room(ask.items)
    beside_kept = nominations.queue_short_of_kept(partition, leaf, ask.items, (ask,))
    above = group_of(leaf).lineage
    return all(full is None or full in above for full in (short, beside_kept))


def has_room_made(ask: Ask) -> bool:
    """Whether others were told to stop for it already, by guarantee."""
    return ask.preempt_triggered and ask.reserved_on is not None


def find_plan(partition: Partition, ask: Ask) -> Plan | None:
    """The plan with the least harm over all nodes for an ask that may claim it; None: none helps."""
    if ask.held_on is None and ask.reserved_on is None and no_node_helps(partition, ask):
        return None
    group = group_of(ask.app.queue)
    running = [a for a in partition.idle.by_arrival() if a.evict_cause is None and not partition.is_young(a, ask)]
    own = [a for a in running if group in a.app.queue.lineage[1:]]
    plan = _best(partition, ask, own, [])
    may_look_further = plan is None and len(own) < len(running) and may_stop_others(partition, ask)
    if may_look_further and is_guaranteed(partition, ask):
        # Idle work of other groups has to give way too.
        fence = search_root(ask.app.queue)
        others = [a for a in running if group not in a.app.queue.lineage[1:] and _is_open(a, fence)]
        plan = _best(partition, ask, own, [a for a in others if not is_spared(partition, ask, a)])
    return plan


def no_node_helps(partition: Partition, ask: Ask) -> bool:
    """Whether it lacks nothing but room on a node, and no node would have that without idle work either, but for one
    that is set aside.
    """
    if partition.idle.may_make_room(ask.items, partition.books_version):
        return False
    if any(ceiling.lacks(ask.items) for ceiling in ask.app.ceilings) or _needs_of_limits(partition, ask, [], []):
        return False
    return not nominations.gets_room_above(partition, ask) and not _needs_above(partition, ask, [])


def _is_open(running: Ask, fence: Queue) -> bool:
    leaf = running.app.queue
    return fence in leaf.lineage and leaf.properties.preemption_policy != "disabled" and not running.required_node


def _best(partition: Partition, ask: Ask, own: list[Ask], others: list[Ask]) -> Plan | None:
    found, of_others = own + others, dict.fromkeys(others)
    told = [a for a in partition.idle.by_arrival() if leaves_for_others(a)]
    leaving, limited = by_node(told), [a for a in told if any(c in a.app.ceilings for c in ask.app.ceilings)]
    under_limits = {a: None for a in limited if _is_in_the_way(a, ask)}
    above, limits = _needs_above(partition, ask, found), _needs_of_limits(partition, ask, found, limited)
    waits_above = nominations.gets_room_above(partition, ask)
    if not covers(found, above + limits):
        return None
    anywhere = bool(above or limits or under_limits or waits_above)
    may_go = by_node(found)
    plans = []
    for node in _nodes_worth_a_look(partition, ask, {**may_go, **leaving}, anywhere):
        on_node = tuple(in_time(partition, ask, leaving.get(node, [])))
        soon = in_time(partition, ask, limited, node)
        gone = [a for a in soon if a in under_limits]
        full = above + (limits if len(soon) == len(limited) else _needs_of_limits(partition, ask, found, soon))
        stoppable = in_time(partition, ask, may_go.get(node, []))
        on_it: Need = (missing_on(node, ask, on_node), dict.fromkeys(stoppable))
        if not covers(stoppable, [on_it]):
            continue
        candidates = in_time(partition, ask, found, node) if full else stoppable
        needs = [on_it, *full]
        victims = _cheapest_of(partition, needs, candidates, of_others)
        if covers(victims, needs) and not partition.nodes.suits(ask, node, (*victims, *on_node)):
            needs += [
                (dict(each.items), {each: None}) for each in _in_the_way(partition, ask, node, stoppable, on_node)
            ]
            victims = _cheapest_of(partition, needs, candidates, of_others)
        is_enough = (victims or on_node or gone or waits_above) and covers(victims, needs)
        is_enough = is_enough and not is_full_too_long(partition, ask, node, victims)
        if is_enough and partition.nodes.suits(ask, node, (*victims, *on_node)):
            plans.append(Plan(ask, node, victims, tuple(dict.fromkeys((*on_node, *gone)))))
    avoided = {a.node: None for a in partition.disruption.overdue}
    return min(plans, key=lambda p: (p.node in avoided, harm(p.victims), p.node.score(), p.node.id), default=None)


def _nodes_worth_a_look(partition: Partition, ask: Ask, idle: Collection[Node], above: bool) -> Iterator[Node]:
    """Nodes with idle work; where a queue above is full, also those with room already."""
    for node in partition.nodes.nodes.values() if above else idle:
        is_worth_it = not above or node in idle or node.room_for(ask)
        is_usable = is_worth_it and node.takes(ask) and all(holder is ask for holder in node.reservations)
        if is_usable and node.fits_total(ask.items):
            yield node


def _needs_above(partition: Partition, ask: Ask, found: list[Ask]) -> list[Need]:
    """What the group and the queues above it are over their maximum with the ask, beside what is promised there.

    Where the same work helps several of these queues, the most of what they miss.
    """
    needs: list[Need] = []
    for queue in group_of(ask.app.queue).lineage:
        others = nominations.kept_under(partition, queue, (ask,))
        most, missing = queue.max or {}, dict[str, int]()
        for name, amount in ask.items:
            used = queue.allocated.get(name, 0) - queue.preempting.get(name, 0) + others.get(name, 0)
            if name in most and used + amount > most[name]:
                missing[name] = used + amount - most[name]
        if not missing:
            continue
        pool = {a: None for a in found if queue in payer(a).lineage}
        if needs and len(needs[-1][1]) == len(pool):
            known = needs[-1][0]
            known |= {name: max(lack, known.get(name, 0)) for name, lack in missing.items()}
        else:
            needs.append((missing, pool))
    return needs


def gives_back_under(partition: Partition, ceiling: Ceiling) -> bool:
    """Whether idle work uses some of this limit."""
    return any(ceiling in running.app.ceilings for running in partition.idle.running)


def _is_in_the_way(running: Ask, ask: Ask) -> bool:
    """Whether it uses some of a limit that has no room for the ask."""
    return any(ceiling in running.app.ceilings and ceiling.lacks(ask.items) for ceiling in ask.app.ceilings)


def _needs_of_limits(partition: Partition, ask: Ask, found: list[Ask], told: list[Ask]) -> list[Need]:
    """What the limits of its user and group lack for the ask, beside what is promised there; what was `told` to stop
    counts as gone.
    """
    needs: list[Need] = []
    for ceiling in ask.app.ceilings:
        if ceiling.max is None:
            continue
        used, most = dict(ceiling.allocated), ceiling.max
        add_to(used, tuple(nominations.kept_under(partition, ceiling, (ask,)).items()))
        for gone in told:
            if ceiling in gone.app.ceilings:
                take_from(used, gone.items)
        missing = {n: used.get(n, 0) + v - most[n] for n, v in ask.items if n in most and used.get(n, 0) + v > most[n]}
        if missing:
            needs.append((missing, {a: None for a in found if ceiling in a.app.ceilings}))
    return needs


def _in_the_way(partition: Partition, ask: Ask, node: Node, work: list[Ask], gone: tuple[Ask, ...]) -> list[Ask]:
    """Of this work on the node what has to go so that all suits but room (a port, a volume, distance), the highest
    given back first; none where that does not help.
    """
    suits, going = partition.nodes.suits, dict.fromkeys(work)
    if not suits(ask, node, (*going, *gone)):
        return []
    for spared in sorted(work, key=standing, reverse=True):
        del going[spared]
        if not suits(ask, node, (*going, *gone)):
            going[spared] = None
    return list(going)


def _cheapest_of(
    partition: Partition, needs: list[Need], candidates: list[Ask], others: dict[Ask, None]
) -> tuple[Ask, ...]:
    """The cheapest of these, but of the `others` no more than their queues may lose within the hour: where that would
    be more, only so many, the preferred, are candidates at all.
    """
    victims = cheapest(needs, candidates)
    most: dict[Queue, int] = {}
    while over := overdrawn(partition, (victim for victim in victims if victim in others)):
        most |= over
        kept = set(within(most, sorted((c for c in candidates if c in others), key=preference)))
        candidates = [c for c in candidates if c in kept or c not in others]
        victims = cheapest(needs, candidates)
    return victims


def carry_out(partition: Partition, plan: Plan) -> None:
    """Tell the victims to stop, and hold the space that they leave for the ask."""
    ask, node = plan.ask, plan.node
    group = group_of(ask.app.queue)
    if ask.nomination is not None and ask.nomination.is_stuck:
        moves_on(partition, ask, ask.nomination.node)
    reserve_node.unreserve(partition, ask)
    for victim in plan.victims:
        rule, text = "reclaim", f"idle work makes room on {node.id} for {ask.key} of queue {ask.app.queue.path}"
        if group not in victim.app.queue.lineage:
            rule, text = "guarantee", f"{text}, which is within its guarantee"
        stop_for(partition, ask, victim, rule, text)
    nominate.nominate(partition, ask, node, (*plan.victims, *plan.leaving))
