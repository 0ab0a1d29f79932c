"""Preemption: which rule makes room for a waiting ask, when it may try, and how its plan is carried out.

Decides when an ask may cause others to be stopped: at the earliest its queue's `preemption.delay` after it was made,
then every 15 seconds until it succeeded once; the search itself is the rule's business (`guarantee`,
`priority_preempt`). Attempts by guarantee belong to the walk of the queues: an ask in turn that cannot be placed tries
before those behind it are placed. What no node, or no queue above it, could hold even when empty makes no attempt until
one can. Invariant: every application that is parked and may try later has a timer for it, so that nobody has to look in
vain; a search that found nothing is not repeated while the books stay as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.core import claims
from fairlead.core.events import Cause
from fairlead.core.oversize import ATTEMPT_EVERY_MS, rest_if_too_large
from fairlead.core.queues import Queue
from fairlead.policy.guarantee import Plan, find_plan
from fairlead.policy.overdue import is_stuck, may_move_on, moves_on
from fairlead.policy.priority_preempt import preempt_by_priority
from fairlead.policy.reclaim import reclaim_for
from fairlead.policy.turns import waits_for_turn
from fairlead.policy.victims import on_behalf_of

if TYPE_CHECKING:
    from fairlead.core.applications import Application, Ask, Batch
    from fairlead.core.partition import Partition
    from fairlead.policy.line import Lines

ATTEMPTS_MAX = 10
"""Searches in one visit to a leaf; who comes later has its turn in the next run."""
NEVER_MS = 2**62
LONG_BATCH = 100
LONG_BATCH_EVERY_MS = 1_000
"""A batch of more than `LONG_BATCH` asks is gone through at most this often."""
TIMER = "preempt"


def preempt_one(partition: Partition, lines: Lines) -> bool:
    """The last step of a run: preemption by priority, where that is the rule. True when something was done."""
    return partition.spec.preemption.rule == "priority" and preempt_by_priority(partition, lines.stoppable)


class Attempts:
    """What one visit to a leaf may still spend on making room by guarantee."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = ATTEMPTS_MAX

    def make_room(self, partition: Partition, batch: Batch) -> bool:
        """Stop work for the first ask of the batch that may cause it; True when it was done.

        Equal asks stand for each other: when the search finds nothing for one, it is over for all that are due.
        """
        now = partition.now_ms
        if now < batch.attempt_ms or not self.left or not _can_help(partition, batch):
            return False
        futile = batch.futile_at == partition.books_version
        delay, next_ms = batch.demand.leaf.properties.preemption_delay_ms, NEVER_MS
        for ask in batch.asks:
            due = due_ms(ask, delay)
            if due > now:
                next_ms = min(next_ms, due)
                continue
            if waits_for_turn(partition, ask):
                break
            ask.preempt_checked_ms = now
            next_ms = min(next_ms, now + ATTEMPT_EVERY_MS)
            if futile or _gets_room(partition, ask):
                continue
            self.left -= 1
            if rest_if_too_large(partition.nodes, batch):
                futile = True
                continue
            if partition.idle.running and reclaim_for(partition, ask):
                return True
            plan = find_plan(partition, ask, nodes_tried=_has_headroom(partition, batch))
            if plan is not None:
                carry_out(partition, plan)
                return True
            futile = True
            batch.futile_at = partition.books_version
        if len(batch.asks) > LONG_BATCH:
            next_ms = max(next_ms, now + LONG_BATCH_EVERY_MS)
        batch.attempt_ms = next_ms
        return False


def _gets_room(partition: Partition, ask: Ask) -> bool:
    """Whether idle work makes room for it already, and is not overdue."""
    return any(victim.evict_cause is not None for victim in ask.victims) and not may_move_on(partition, ask)


def due_ms(ask: Ask, delay_ms: int) -> int:
    """When the ask may try to preempt next; `NEVER_MS` when it may not at all."""
    if not ask.pending or ask.preempt_triggered or not ask.spec.allow_preempt_other or ask.required_node:
        return NEVER_MS
    due = ask.created_ms + delay_ms
    checked = ask.preempt_checked_ms
    return due if checked is None else max(due, checked + ATTEMPT_EVERY_MS)


def _can_help(partition: Partition, batch: Batch) -> bool:
    """Whether preemption by guarantee is on, some guarantee is on the way to the root, no limit is in the way, and
    the work does not rest because no node, or no queue above it, could hold it.
    """
    rules = partition.spec.preemption
    if rules.rule != "guarantee" or not rules.enabled:
        return False
    demand = batch.demand
    if batch in batch.key[1].resting or batch in demand.leaf.resting:
        return False
    if not any(queue.guaranteed for queue in demand.leaf.lineage):
        batch.attempt_ms = NEVER_MS
        return False
    if demand.obstacle is not None and not isinstance(demand.obstacle, Queue):
        # A timer would be in vain: who waits here is looked at again when the limit moves.
        demand.untimed = True
        return False
    return True


def _has_headroom(partition: Partition, batch: Batch) -> bool:
    """Whether the ask fits under every maximum, so that only the single nodes were in its way."""
    shape = batch.demand.shape
    assert shape is not None
    if batch.demand.leaf.short_of_room(shape.items) is not None:
        return False
    return partition.nodes.sum_has_room(shape.items)


def carry_out(partition: Partition, plan: Plan) -> None:
    """Tell the victims to stop and reserve the node for the ask."""
    ask, node = plan.ask, plan.node
    if ask.held_on is not None and is_stuck(ask):
        moves_on(partition, ask, ask.held_on)
    for holder in plan.cancelled:
        claims.unreserve(partition, holder)
    queue = ask.app.queue.path
    for victim in plan.victims:
        partition.evict(
            victim,
            Cause.PREEMPTED_BY_SCHEDULER,
            on_behalf_of=on_behalf_of(ask),
            rule="guarantee",
            message=f"preempted by {ask.key} from application {ask.app.id} in {queue}",
        )
        victim.evicted_for = ask
        partition.disruption.note(ask, victim, partition.now_ms)
    if ask.reserved_on is not node:
        claims.unreserve(partition, ask)
        claims.reserve(partition, ask, node)
    ask.preempt_triggered = True


# -- when to look again -------------------------------------------------------------------------------------------


def is_due(partition: Partition, app: Application) -> bool:
    """Whether some ask of the application may cause others to be stopped now."""
    now_ms = partition.now_ms
    return any(batch.attempt_ms <= now_ms and _can_help(partition, batch) for batch in app.batches)


def wake_when_due(partition: Partition, app: Application) -> None:
    """Set the timer for the next attempt of an application that is about to be parked."""
    due = min((b.attempt_ms for b in app.batches if _waits_for_time(partition, app, b)), default=NEVER_MS)
    if due < NEVER_MS and (app.attempt_timer_ms is None or due < app.attempt_timer_ms):
        app.attempt_timer_ms = due
        partition.timers.set(due, partition.name, app.id, 0, TIMER)


def _waits_for_time(partition: Partition, app: Application, batch: Batch) -> bool:
    """Whether the batch tries again at some time. One that waits for placeholders does not: nobody looks at it."""
    if batch.attempt_ms >= NEVER_MS or app.stands_in(batch.task_group) or waits_for_turn(partition, batch.asks[0]):
        return False
    return _can_help(partition, batch)


def on_timer(partition: Partition, app_id: str) -> None:
    """An application may try again: put it back in line."""
    app = partition.applications.get(app_id)
    if app is not None and app.attempt_timer_ms is not None and app.attempt_timer_ms <= partition.now_ms:
        app.attempt_timer_ms = None
        if app.pending_count:
            app.queue.touch_app(app)
