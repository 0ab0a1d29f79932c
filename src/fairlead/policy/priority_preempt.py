"""Preempt by priority: make room for waiting asks by stopping strictly less important work.

Decides who looks for room, in which order, and carries out what `priority_plan` found: victims are told to stop, and
the space is held for the ask until they are gone. Never takes work of equal or higher standing, and never stops work
without the placement it pays for. For partitions with `preemption.rule: priority`.

Equal asks of one leaf stand for each other, and nobody searches who stands above nothing that runs: so many asks that
cannot be helped cost little and keep nobody else from being looked at.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING

from fairlead.core import claims, reasons
from fairlead.core.events import Cause
from fairlead.policy.limits import may_run
from fairlead.policy.ordering import application_key, queue_key
from fairlead.policy.overdue import is_stuck, may_move_on, moves_on
from fairlead.policy.priority_plan import Search
from fairlead.policy.protection import spared_until
from fairlead.policy.standing import EVERYBODY, NOBODY, Reach, outranks, standing_by_queue
from fairlead.policy.stoppable import rank_of
from fairlead.policy.turns import gathers_room, waits_for_turn
from fairlead.policy.victims import on_behalf_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.core.applications import Application, Ask, Batch
    from fairlead.core.nodes import Node
    from fairlead.core.partition import Partition
    from fairlead.core.queues import Queue
    from fairlead.core.reasons import Reason
    from fairlead.policy.priority_plan import Plan
    from fairlead.policy.standing import Rank
    from fairlead.policy.stoppable import Group, Stoppable

RULE = "priority"
Class = tuple[object, ...]
"""What asks have in common that stand for each other."""


def preempt_by_priority(partition: Partition, table: Stoppable) -> bool:
    """Make room for every waiting ask for which that can be done; True when something was done.

    It ends early when an ask could be placed at once, or somebody lost a nomination: the next run may find more to do.
    """
    rules = partition.spec.preemption
    if rules.rule != "priority" or not rules.enabled or not partition.allocation_count:
        return False
    if partition.preempt_tried == partition.change_stamp():
        return False
    table.keep_up(partition)
    turn = Turn(partition, table)
    done = False
    for ask in turn.preemptors():
        plan = turn.plan_for(ask)
        if plan is None:
            continue
        gathered = ask.held_on is not None
        turn.carry_out(plan)
        done = True
        if plan.cleared or gathered or not plan.victims:
            return True
    if not (done and turn.some_never):
        partition.preempt_tried = partition.change_stamp()
    return done


class Turn:
    """One look at all waiting asks."""

    def __init__(self, partition: Partition, table: Stoppable) -> None:
        self.partition = partition
        self.table = table
        self.budgets_left: dict[str, int] = {}
        self._counted = False
        self.some_never = False
        """Somebody waits who stops nobody but may take the space that others hold."""
        self._hopeless: dict[Class, None] = {}
        self._known: dict[Class, dict[Node, Plan | None]] = {}
        self._reach: dict[Group, Reach] = {}
        self._weaker: dict[Group, tuple[int, list[Ask]]] = {}
        self._ranks: dict[Group, Rank] = {}
        self._floors = Floors(partition, table)

    def preemptors(self) -> Iterator[Ask]:
        """Waiting asks that stand above something; of equal ones none after one without a plan.

        Order: 1. higher rank, so that nobody loses again what he just got, 2. the scheduling order.
        """
        waiting: list[tuple[Rank, Batch, Application]] = []
        for leaf in leaves_in_order(self.partition.root) if self._floors.lowest else ():
            floor = self._floors.of(leaf)
            apps = [a for a in leaf.applications.values() if a.priority > floor]
            apps.sort(key=application_key)
            for app in apps:
                waiting += [(rank_of(self._ranks, (leaf, b.key[0])), b, app) for b in app.batches if b.key[0] > floor]
        waiting.sort(key=itemgetter(0), reverse=True)
        for _, batch, app in waiting:
            yield from self._asks(app, batch)

    def _asks(self, app: Application, batch: Batch) -> Iterator[Ask]:
        partition = self.partition
        if batch.task_group and app.stands_in(batch.task_group):
            return
        if self._both_hopeless(app, batch.asks[0]) or not self._may_run(app, batch.key[0]):
            return
        if app.backoff_until_ms is not None and app.backoff_until_ms > partition.now_ms:
            return
        reserving = app.queue in partition.reserving.of
        for ask in list(batch.asks):
            if not ask.pending or class_of(ask) in self._hopeless:
                continue
            if ask.held_on is not None and not (_only_gathers(partition, ask) or may_move_on(partition, ask)):
                continue
            if reserving and waits_for_turn(partition, ask):
                continue
            self.some_never |= not ask.spec.allow_preempt_other
            if ask.spec.allow_preempt_other or partition.holds:
                yield ask

    def _may_run(self, app: Application, priority: int) -> bool:
        """Whether the application may run, if need be in the place of one that is promised it for a weaker ask."""
        if may_run(app) or not self.partition.holds:
            return may_run(app)
        group = (app.queue, priority)
        return may_run(app, Counter(nominee.app for nominee in self._weaker_than(group)))

    def _both_hopeless(self, app: Application, ask: Ask) -> bool:
        """Whether no ask of the batch is worth a look, be it one that may stop others or one that may not."""
        common = _common(app, ask)
        return (*common, True) in self._hopeless and ((*common, False) in self._hopeless or not self.partition.holds)

    def plan_for(self, ask: Ask) -> Plan | None:
        """The plan with the least harm for the ask; without one, its equals are not looked at in this turn."""
        self._count_budgets()
        group = (ask.app.queue, ask.priority)
        reach, weaker = self._reach_of(group), self._weaker_than(group)
        search = Search(self.partition, ask, reach, weaker, self.budgets_left, self._ranks)
        equals = class_of(ask)
        plan = search.best(self.table, self._known.setdefault(equals, {}))
        if plan is None and not search.has_history:
            self._hopeless[equals] = None
        return plan if plan is None or plan.ask is ask else replace(plan, ask=ask)

    def _reach_of(self, group: Group) -> Reach:
        found = self._reach.get(group)
        if found is None:
            found = self._reach[group] = Reach(*group)
        return found

    def _weaker_than(self, group: Group) -> list[Ask]:
        """The nominated asks that stand below an ask; those that an administrator has room kept for are not touched.

        Nominations only come in the course of a turn (the first that goes ends it), so only new ones are looked at.
        """
        holds, reserving = self.partition.holds, self.partition.reserving
        reach = self._reach_of(group)
        known, weaker = self._weaker.get(group, (0, []))
        new = islice(holds, known, None)
        weaker += [a for a in new if reserving.get(a) is None and not a.took_back and outranks(reach.seen, a)]
        self._weaker[group] = (len(holds), weaker)
        return weaker

    def _count_budgets(self) -> None:
        budgets = self.partition.admission.budgets
        if budgets and not self._counted:
            self.budgets_left = budgets.left(self.partition)
            self._counted = True

    def carry_out(self, plan: Plan) -> None:
        """Tell the victims to stop and hold the space they leave; who loses a nomination may preempt again."""
        partition, ask = self.partition, plan.ask
        if ask.held_on is not None and is_stuck(ask):
            moves_on(partition, ask, ask.held_on)
        for nominee in plan.cleared:
            claims.unhold(partition, nominee)
            nominee.app.may_preempt_again(nominee)
        budgets = partition.admission.budgets
        for victim in plan.victims:
            partition.evict(
                victim,
                Cause.PREEMPTED_BY_SCHEDULER,
                on_behalf_of=on_behalf_of(ask),
                rule=RULE,
                message=f"makes room on {plan.node.id} for {ask.key} (priority {ask.priority} over {victim.priority})",
                violates=plan.violates.get(victim, ()),
            )
            partition.disruption.note(ask, victim, partition.now_ms)
            for name in budgets.protecting(victim) if self._counted else ():
                self.budgets_left[name] = max(self.budgets_left[name] - 1, 0)
        for known in self._known.values():
            known.pop(plan.node, None)
        ask.preempt_triggered = bool(plan.victims) or ask.preempt_triggered
        claims.unhold(partition, ask)
        claims.hold(partition, ask, plan.node, (*plan.victims, *plan.leaving))


def plan_on(partition: Partition, ask: Ask, node: Node) -> Plan | None:
    """The plan for a waiting ask on this one node; None when there is none, or another rule holds."""
    rules = partition.spec.preemption
    if rules.rule != "priority" or not rules.enabled or not ask.spec.allow_preempt_other or ask.spec.idle:
        return None
    budgets = partition.admission.budgets
    left = budgets.left(partition) if budgets else {}
    return Search(partition, ask, Reach(ask.app.queue, ask.priority), [], left, {}).on_node(node)


def why_not(partition: Partition, ask: Ask) -> Reason | None:
    """Why nothing is stopped for this waiting ask; None when that is not the rule here, or when space is held for it.

    It searches as the rule itself does, on the state as it is, and changes nothing.
    """
    rules = partition.spec.preemption
    if rules.rule != "priority" or not rules.enabled or not ask.pending or ask.held_on is not None:
        return None
    if not ask.spec.allow_preempt_other or ask.spec.idle:
        return reasons.NeverPreempts()
    reach = Reach(ask.app.queue, ask.priority)
    running = [a for node in partition.nodes.nodes.values() for a in node.allocations if a.evict_cause is None]
    below = [a for a in running if a.priority < reach.below(a.app.queue)]
    spared = sum(spared_until(partition, ask, a) is not None for a in below)
    return reasons.PreemptionDoesNotHelp(ask.priority, len(below), spared)


def _only_gathers(partition: Partition, ask: Ask) -> bool:
    """Whether the ask holds space because it waited too long, and nothing was stopped for it yet."""
    return gathers_room(partition, ask) and not any(victim.evict_cause for victim in ask.victims)


class Floors:
    """Below which priority nobody of a leaf stands above anything: those need not be looked at."""

    __slots__ = ("_of", "lowest")

    def __init__(self, partition: Partition, table: Stoppable) -> None:
        self.lowest: dict[Queue, int] = {}
        """By queue the lowest standing, as seen there, of what could be taken from below it."""
        self._of: dict[Queue, int] = {}
        nominated = [(a.app.queue, a.priority) for a in partition.holds]
        running = (g for g in table.running_groups() if g[0].properties.preemption_policy != "disabled")
        for leaf, priority in (*running, *nominated):
            for queue, standing in standing_by_queue(leaf, priority).items():
                if standing < self.lowest.get(queue, EVERYBODY):
                    self.lowest[queue] = standing

    def of(self, leaf: Queue) -> int:
        """Only a priority above this stands above anything."""
        found = self._of.get(leaf)
        if found is None:
            found = self._of[leaf] = min(self._floors(leaf), default=EVERYBODY)
        return found

    def _floors(self, leaf: Queue) -> Iterator[int]:
        offset, fenced = 0, False
        for queue in leaf.lineage:
            lowest = self.lowest.get(queue)
            if lowest is not None:
                if not fenced:
                    yield lowest - offset
                elif offset > lowest:
                    yield NOBODY
            rules = queue.properties
            if rules.priority_fence:
                offset, fenced = rules.priority_offset, True
            else:
                offset += rules.priority_offset


def class_of(ask: Ask) -> Class:
    """What the outcome of a search depends on, apart from what it was stopped for before."""
    return (*_common(ask.app, ask), ask.spec.allow_preempt_other)


def _common(app: Application, ask: Ask) -> Class:
    return (app.queue, ask.priority, ask.shape, app.allowance)


def leaves_in_order(queue: Queue) -> Iterator[Queue]:
    """Leaves with waiting work in scheduling order."""
    if queue.is_leaf:
        yield queue
        return
    for child in sorted((c for c in queue.children.values() if c.has_pending), key=queue_key):
        yield from leaves_in_order(child)
