"""Preemption by guarantee: attempts to make room for an ask of a queue that is below its guarantee.

Decides how an attempt goes and how its plan is carried out; when one may be made is `attempt_times`' business, the
search `guarantee`'s. Attempts belong to the walk of the queues: an ask in turn that cannot be placed tries before those
behind it are placed. What no node, or no queue above it, could hold even when empty makes no attempt until one can.
Invariant: a search that found nothing is not repeated for its like while the books stay as they are, but for an ask
with a node of its own.
"""

from __future__ import annotations

from fairlead.core.acts import reserve_node
from fairlead.core.acts.infeasible import ATTEMPT_EVERY_MS, rest_if_too_large
from fairlead.core.books.asks import NEVER_MS, Ask, Batch
from fairlead.core.books.demand import Demand
from fairlead.core.books.partition import Partition
from fairlead.core.books.queues import Queue
from fairlead.policy.eligibility.attempt_times import due_ms, may_try, note_attempt
from fairlead.policy.eligibility.gang_size import GangSizes
from fairlead.policy.eligibility.limits import is_at_closed_gate, is_over_limit
from fairlead.policy.eligibility.max_wait import waits_for_turn
from fairlead.policy.preemption.guarantee import Plan, find_plan
from fairlead.policy.preemption.termination_timeouts import may_stop_ms, moves_on
from fairlead.policy.preemption.victims import Survey, stop_for

ATTEMPTS_MAX = 10
"""Searches in one visit to a leaf; what comes later has its turn in the next run."""
LONG_BATCH = 100
LONG_BATCH_EVERY_MS = 1_000
"""A batch of more than `LONG_BATCH` asks is gone through at most this often."""


class Attempts:
    """What one walk may still spend on making room by guarantee, leaf by leaf."""

    __slots__ = ("_survey", "left", "put_off")

    def __init__(self) -> None:
        self.left: dict[Queue, int] = {}
        """How many searches each leaf that made some may still make."""
        self.put_off = False
        """Some attempt was put off to the next run."""
        self._survey: Survey | None = None

    def begin(self) -> None:
        """The next walk: every leaf may try again."""
        self.left.clear()
        self.put_off = False

    def may_go_on(self, leaf: Queue) -> bool:
        """Whether something of this leaf may try now."""
        if self.left.get(leaf, ATTEMPTS_MAX) > 0:
            return True
        self.put_off = True
        return False

    def make_room(self, partition: Partition, batch: Batch) -> bool:
        """Stop work for the first ask of the batch that may cause it; True when it was done.

        When the search finds nothing for one ask, it finds nothing for those that are alike, of no higher priority, and
        over no earlier.
        """
        now, demand = partition.now_ms, batch.demand
        demand.leaf.drop_due(batch)
        if not may_try(partition, batch):
            return False
        if _is_limited(demand, batch):
            demand.deferred[batch] = None
            return False
        next_ms, gangs = NEVER_MS, GangSizes(partition)
        for ask in batch.asks:
            due = due_ms(ask)
            if due > now:
                next_ms = min(next_ms, due)
                continue
            if waits_for_turn(partition, ask):
                break
            may_ms = may_stop_ms(partition, ask)
            if may_ms > now:
                next_ms = min(next_ms, may_ms)
                continue
            ask.preempt_checked_ms = now
            next_ms = min(next_ms, now + ATTEMPT_EVERY_MS)
            if _is_futile(partition, batch, ask) or gangs.are_too_large(ask):
                continue
            self.left[demand.leaf] = self.left.get(demand.leaf, ATTEMPTS_MAX) - 1
            if rest_if_too_large(partition.nodes, batch):
                return False
            plan = find_plan(self._survey_of(partition), ask)
            if plan is not None:
                carry_out(partition, plan)
                demand.leaf.note_due(batch)
                return True
            batch.futile = (ask.priority, partition.books_version, _lasts_ms(ask))
        if len(batch) > LONG_BATCH:
            next_ms = max(next_ms, now + LONG_BATCH_EVERY_MS)
        batch.attempt_ms = next_ms
        note_attempt(partition, batch)
        return False

    def _survey_of(self, partition: Partition) -> Survey:
        if self._survey is None or self._survey.version != partition.books_version:
            self._survey = Survey(partition)
        return self._survey


def _is_futile(partition: Partition, batch: Batch, ask: Ask) -> bool:
    known = batch.futile
    if ask.reserved_on is not None or ask.nomination is not None:
        return False  # What is kept for it was in the way of the others alone.
    if known is None or known[1] != partition.books_version or ask.priority > known[0]:
        return False
    # What is over earlier may not reach into a window by the time that something has left.
    return not partition.admission.windows or _lasts_ms(ask) >= known[2]


def _lasts_ms(ask: Ask) -> int:
    return NEVER_MS if ask.limit_ms is None else ask.limit_ms


def _is_limited(demand: Demand, batch: Batch) -> bool:
    """Whether a limit or a closed gate is in the way: nothing is stopped for what that would hold back anyway."""
    if demand.enters and (demand.obstacle is not None or is_at_closed_gate(demand, batch.app)):
        return demand.obstacle is not demand.leaf or demand in demand.leaf.gated
    return is_over_limit(demand)


def carry_out(partition: Partition, plan: Plan) -> None:
    """Tell the victims to stop and reserve the node for the ask, beside others for which room is made there."""
    ask, node = plan.ask, plan.node
    if ask.nomination is not None and ask.nomination.is_stuck:
        moves_on(partition, ask, ask.nomination.node)
    for holder in [each for each in node.reservations if each is not ask and not each.preempt_triggered]:
        reserve_node.unreserve(partition, holder)
    message = f"preempted by {ask.key} from application {ask.app.id} in {ask.app.queue.path}"
    for victim in plan.victims:
        stop_for(partition, ask, victim, "guarantee", message)
    if ask.reserved_on is not node:
        reserve_node.unreserve(partition, ask)
        reserve_node.reserve(partition, ask, node)
    ask.preempt_triggered = True
    for victim in plan.victims:
        victim.evicted_for = ask
