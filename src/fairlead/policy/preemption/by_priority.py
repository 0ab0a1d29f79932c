"""Preempt by priority: make room for a waiting ask in its own turn by stopping strictly less important work.

Decides which waiting asks look for room, and carries out what `plan` found: victims are told to stop, and the space is
kept for the ask until they are gone. Never takes work of equal or higher standing, and never stops work without the
placement it pays for. For partitions with `preemption.rule: priority` or `both`.

Asks stand for each other where a search finds the same for them (`search_class`); of those the
strongest is looked at, and when nothing can be stopped for it, nothing can for the others, but for those that came
after work that is spared because the one waited when it started. That is remembered until room is made somewhere, so
that many asks that cannot be helped cost little. Where all fits nothing is looked at, and what is not worth a search
says `floors`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from heapq import merge
from itertools import chain
from operator import itemgetter

from fairlead.core.acts import nominate, reserve_node
from fairlead.core.books.asks import Ask, Batch
from fairlead.core.books.demand import Demand
from fairlead.core.books.node import Node
from fairlead.core.books.partition import Partition
from fairlead.core.books.user_limits import Ceiling
from fairlead.policy.eligibility.headroom import is_full_above
from fairlead.policy.eligibility.limits import is_at_closed_gate, may_run
from fairlead.policy.eligibility.max_wait import waits_for_turn
from fairlead.policy.order.effective_priority import Path, below, path_of, standing_by_queue, strength, weaker_than
from fairlead.policy.order.pick import Lines
from fairlead.policy.preemption import idle_plan
from fairlead.policy.preemption.candidates import NONE_LATER
from fairlead.policy.preemption.floors import Floors
from fairlead.policy.preemption.gang_room import GangRoom
from fairlead.policy.preemption.idle_plan import gives_back_under, may_claim
from fairlead.policy.preemption.plan import Plan, Search
from fairlead.policy.preemption.protection import may_stop_others, reaches_later
from fairlead.policy.preemption.reclaim_idle import is_tried, note_tried
from fairlead.policy.preemption.search_class import class_of
from fairlead.policy.preemption.termination_timeouts import may_stop_ms, moves_on
from fairlead.policy.preemption.victims import stop_for

Found = tuple[Path, Plan | idle_plan.Plan]
"""The place of an ask among all, and how room is made for it."""


class Tried:
    """Of the asks of one class, for which it is known that a search finds nothing."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: list[tuple[int, int]] = []

    def note(self, ask: Ask, before_seq: int) -> None:
        """Nothing was found for it, nor would be for those that are no stronger and came before that (0: for none)."""
        if before_seq:
            self._known = [each for each in self._known if each[0] > ask.priority or each[1] > before_seq]
            self._known.append((ask.priority, before_seq))

    def covers(self, ask: Ask) -> bool:
        """Whether it is one of them. What is kept for it is in the way of all others, not in its own."""
        if ask.nomination is not None:
            return False
        for upto, before_seq in self._known:
            if ask.priority <= upto and ask.seq < before_seq:
                return True
        return False


def make_room_before(partition: Partition, lines: Lines, next_ask: Ask | None) -> bool:
    """Make room for the first ask in order for which that can be done, if it comes before this one (None: the end);
    True when it was done.
    """
    nodes = partition.nodes
    if not any(shape.demands for shape in nodes.unfit) and not any(shape.held_up for shape in nodes.fitting):
        return False  # All fits somewhere.
    path = path_of(next_ask) if next_ask is not None else None
    best: Found | None = None
    gangs = GangRoom(partition, lines.stoppable)
    nominated = {ask.batch.demand for ask in partition.nominations if ask.batch is not None}
    # By the first of each in order: once room can be made for one, those after it need no search.
    in_order = sorted(((_first_place(alike), alike) for alike in _untried(partition, lines)), key=itemgetter(0))
    for place, batches in in_order:
        before = path if best is None else best[0]
        if before is not None and place >= before and not any(batch.demand in nominated for batch in batches):
            continue
        best = _of_class(partition, lines, batches, gangs, before) or best
    if best is None:
        return False
    if isinstance(best[1], idle_plan.Plan):
        idle_plan.carry_out(partition, best[1])
    else:
        _carry_out(partition, best[1])
    return True


def _untried(partition: Partition, lines: Lines) -> Collection[list[Batch]]:
    """The first batches of demands for which it is not known that nothing can be stopped; each list stands for each
    other.

    They are in the order of their age, since a search may report a loop: how they came into the lines is forgotten
    with a restart.
    """
    found: list[Batch] = []
    hopeless: list[Demand] = []
    floors = Floors(partition, lines.stoppable)
    for demand in floors.those_above(lines):
        if is_tried(partition, demand) or not _may_look(partition, lines, demand):
            continue
        first = lines.first(demand)
        if first is not None and floors.is_below(first[2].head, demand.shape):
            hopeless.append(demand)
        elif first is not None:
            found.append(first[2])
    note_tried(partition, hopeless)
    classes: dict[tuple[object, ...], list[Batch]] = {}
    for batch in sorted(found, key=lambda batch: batch.head.seq):
        classes.setdefault(class_of(partition, batch.demand, lines.stoppable), []).append(batch)
    return classes.values()


def _first_place(batches: list[Batch]) -> Path:
    """Nothing of a class that is in line comes before this."""
    return min(path_of(batch.head) for batch in batches)


def _may_look(partition: Partition, lines: Lines, demand: Demand) -> bool:
    """Whether it cannot be placed as things are, and room may be made where it is lacking: on nodes, in queues, or
    where it is kept for weaker asks.
    """
    obstacle = demand.obstacle
    if obstacle is not None:
        is_own_maximum = obstacle is demand.leaf and demand in demand.leaf.waiting
        is_limit = isinstance(obstacle, Ceiling) and gives_back_under(partition, obstacle)
        return is_own_maximum or is_limit or bool(partition.nominations)
    if not (demand.shape.unfit or is_full_above(demand)):
        return False
    first = lines.first(demand) if demand.enters and not partition.nominations else None
    return first is None or not is_at_closed_gate(demand, first[2].app)


def _of_class(
    partition: Partition, lines: Lines, batches: list[Batch], gangs: GangRoom, path: Path | None
) -> Found | None:
    """The plan for the first ask in order of demands that stand for each other, by their first batches, and where."""
    demands, firsts = [batch.demand for batch in batches], [batch.head for batch in batches]
    top = max(ask.priority for ask in firsts)
    strongest = [ask for ask in firsts if ask.priority == top]
    if path is not None and strength(strongest[0]) > path[0]:
        return None
    one = next((ask for ask in strongest if ask.nomination is None), strongest[0])
    tried = Tried()
    plan, of_one = _plan(partition, lines, one, gangs)
    if plan is None:
        if not _came_since(demands, of_one):
            return _of_nominees(partition, lines, demands, gangs, path)
        tried.note(one, of_one)
    for place, ask in _in_order(lines, demands, gangs, tried):
        if path is not None and not place < path:
            return None
        if gangs.are_too_large(ask) or tried.covers(ask):
            continue
        found, before_seq = (plan, of_one) if ask is one else _plan(partition, lines, ask, gangs)
        if found is None:
            tried.note(ask, before_seq)
            if ask.priority == top and not _came_since(demands, before_seq):
                break
        elif not (_costs(found) and gangs.is_in_vain(ask, before_seq)):
            return place, found
    if not any(demand.enters for demand in demands):
        note_tried(partition, demands)
    return None


def _of_nominees(
    partition: Partition, lines: Lines, demands: list[Demand], gangs: GangRoom, path: Path | None
) -> Found | None:
    """The same where nothing helps others: what is kept for an ask is in the way of all others, not in its own."""
    of_class = dict.fromkeys(demands)
    nominees = (ask for ask in partition.nominations if ask.batch is not None and ask.batch.demand in of_class)
    for place, ask in sorted((path_of(ask), ask) for ask in nominees):
        if path is not None and not place < path:
            return None
        plan, _ = _plan(partition, lines, ask, gangs)
        if plan is not None and not (_costs(plan) and gangs.is_in_vain(ask, 0)):
            return place, plan
    note_tried(partition, demands)
    return None


def _came_since(demands: list[Demand], before_seq: int) -> bool:
    """Whether something that waits in line with these demands did not come before that."""
    if before_seq == NONE_LATER:
        return False
    entries = chain.from_iterable(demand.line for demand in demands)
    return any(batch.stamp == stamp and batch.newest_seq >= before_seq for _, stamp, batch in entries)


def _in_order(lines: Lines, demands: list[Demand], gangs: GangRoom, tried: Tried) -> Iterator[tuple[Path, Ask]]:
    """All asks of some demands that may start as far as their applications are concerned, with their places: mostly
    the first one is enough, so that only those of the first of each batch are worked out before.
    """
    batches = [entry[2] for demand in demands for entry in demand.entries() if lines.is_eligible(entry[2])]
    return merge(*(_places_in(lines.partition, batch, gangs, tried) for batch in batches))


def _places_in(partition: Partition, batch: Batch, gangs: GangRoom, tried: Tried) -> Iterator[tuple[Path, Ask]]:
    """The asks of a batch in order, with their places, up to one whose turn is kept; but those that were tried, and
    placeholders that would have work stopped in vain.
    """
    for ask in batch.asks:
        if waits_for_turn(partition, ask):
            return
        is_in_vain = ask.spec.placeholder and batch in gangs.in_vain
        if not is_in_vain and not tried.covers(ask):
            yield path_of(ask), ask


def _costs(plan: Plan | idle_plan.Plan) -> bool:
    """Whether work is stopped by it, or was for a weaker ask that would lose the room."""
    cleared = plan.cleared if isinstance(plan, Plan) else ()
    return bool(plan.victims) or any(a.nomination is not None and not a.nomination.gathers for a in cleared)


def _plan(partition: Partition, lines: Lines, ask: Ask, gangs: GangRoom) -> tuple[Plan | idle_plan.Plan | None, int]:
    """The plan with the least harm for an ask, idle work first (where that is in vain for its gang, there may be one
    that stops nothing); and before what those of its class have to have come that would find the same (0: none
    would).
    """
    weaker = weaker_than(partition, ask)
    if not may_run(ask.app, Counter(other.app for other in weaker)) or may_stop_ms(partition, ask) > partition.now_ms:
        return None, 0
    taken_back = idle_plan.find_plan(partition, ask) if partition.idle.running and may_claim(partition, ask) else None
    if taken_back is not None and not (taken_back.victims and gangs.is_in_vain(ask, 0)):
        return taken_back, NONE_LATER
    idle = list(partition.idle.running)
    young_idle = (a.started_seq for a in idle if partition.is_young(a, ask))
    later_seq = min(young_idle, default=NONE_LATER)
    may_stop = may_stop_others(partition, ask)
    is_common = may_stop and not reaches_later(partition, ask, chain(idle, partition.disruption.leave_by))
    plan = None
    if weaker or may_stop:
        search = Search(partition, ask, weaker)
        plan = search.best(lines.stoppable)
        candidates = search.candidates
        is_common = is_common and not (candidates.has_history or candidates.is_late or candidates.is_of_gang)
        later_seq = min(later_seq, candidates.later_seq)
    if plan is None and taken_back is not None:
        return taken_back, NONE_LATER  # In vain for its gang, but not for others of its class.
    return plan, later_seq if is_common else 0


def _carry_out(partition: Partition, plan: Plan) -> None:
    """Tell the victims to stop and keep the space they leave; what loses a nomination may preempt again."""
    ask = plan.ask
    if ask.nomination is not None and ask.nomination.is_stuck:
        moves_on(partition, ask, ask.nomination.node)
    for nominee in plan.cleared:
        nominate.lose(partition, nominee)
    tell(partition, plan)
    ask.preempt_triggered = bool(plan.victims) or ask.preempt_triggered
    reserve_node.unreserve(partition, ask)
    nominate.nominate(partition, ask, plan.node, (*plan.victims, *plan.leaving))


def tell(partition: Partition, plan: Plan) -> None:
    """Tell the victims of a plan to stop: those of a lower priority for that, others (`both`) by the guarantee that the
    ask is within.
    """
    ask = plan.ask
    seen = standing_by_queue(ask.app.queue, ask.priority)
    for victim in plan.victims:
        rule, why = "priority", f"(priority {ask.priority} over {victim.priority})"
        if victim.priority >= below(seen, victim.app.queue):
            rule, why = "guarantee", f"of queue {ask.app.queue.path}, which is within its guarantee"
        message = f"makes room on {plan.node.id} for {ask.key} {why}"
        stop_for(partition, ask, victim, rule, message, plan.violates.get(victim, ()))


def plan_on(partition: Partition, ask: Ask, node: Node) -> Plan | None:
    """The plan for a waiting ask on this one node; None when there is none, or another rule holds."""
    if partition.spec.preemption.rule == "guarantee" or ask.spec.idle or not may_stop_others(partition, ask):
        return None
    return Search(partition, ask, []).on_node(node)
