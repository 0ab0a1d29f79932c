"""Protection: running work that outranked others may not stop now, though they stand above it.

Decides what is spared because it has not run for long (`preemption.min.runtime` of its queue, `minRuntime` of its
class), because its queue has lost enough within the hour (`preemption.evictions.max`), because it was stopped for the
same ask before and nothing new has come since, or because that ask would reach into a window when it has left. Never
chooses among the rest. Invariant: what is spared for a time is looked at again when that time is over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

from fairlead.core.acts.terminating import grace_left
from fairlead.core.books.asks import Ask
from fairlead.core.books.eviction_history import work_name
from fairlead.core.books.idle_work import payer
from fairlead.core.books.node import Node
from fairlead.core.books.partition import Partition
from fairlead.core.books.queues import Queue
from fairlead.core.model.decisions import LoopBroken
from fairlead.core.model.resources import lacks, take_from
from fairlead.policy.eligibility.gang_size import is_of_gang_too_large
from fairlead.policy.preemption.bound import Bound, all_let

TIMER = "preempt-again"


def may_stop_others(partition: Partition, ask: Ask) -> bool:
    """Whether anything may be stopped for the ask, idle work that borrows beside it apart."""
    is_on = partition.spec.preemption.enabled and ask.spec.allow_preempt_other
    return is_on and not is_of_gang_too_large(partition, ask)


def spared_until_ms(partition: Partition, victim: Ask) -> int | None:
    """Until when it has not run for as long as it may at least, by its queue or its priority class, whichever is
    longer; None: it has.
    """
    least_ms = max(victim.app.queue.properties.preemption_min_runtime_ms, victim.spec.min_runtime_ms)
    until_ms = (victim.allocated_ms or 0) + least_ms
    return until_ms if least_ms and until_ms > partition.now_ms else None


def is_spared(partition: Partition, preemptor: Ask, victim: Ask) -> bool:
    """Whether `victim` may not be stopped for `preemptor` now; a loop that this breaks is reported once."""
    if (until_ms := spared_until_ms(partition, victim)) is not None:
        look_again(partition, until_ms)
        return True
    if not partition.disruption.was_stopped_for(preemptor, victim):
        return False
    partition.disruption.spared_at = partition.disruption.news
    if partition.disruption.report_pair(preemptor, victim) and victim.node is not None:
        named = (preemptor.app.id, preemptor.key, victim.node.id)
        partition.out.append(LoopBroken(*named, work_name(victim), 1, partition.name))
    return True


def in_time(partition: Partition, preemptor: Ask, work: list[Ask], node: Node | None = None) -> list[Ask]:
    """Those of some work after whose grace the preemptor may still start on the node (None: on theirs): if it reached
    into a window by then, they would be stopped in vain. What does not run yet leaves at once, and what was told to
    stop before has what is left of its grace.
    """
    windows, now_ms = partition.admission.windows, partition.now_ms
    if not windows:
        return work
    return [
        a for a in work if a.node is None or windows.let(preemptor, node or a.node, now_ms, grace_left(partition, a))
    ]


def reaches_later(partition: Partition, preemptor: Ask, work: Iterable[Ask]) -> bool:
    """Whether it would reach into a window after the grace of some of this work, and does not yet: what is over earlier
    may be helped where this one is not.
    """
    windows, now_ms = partition.admission.windows, partition.now_ms
    if not windows:
        return False
    longest_ms = max((grace_left(partition, each) for each in work), default=0)
    ahead = [len(list(windows.ahead_of(preemptor, now_ms, within_ms))) for within_ms in (0, longest_ms)]
    return ahead[0] < ahead[1]


def is_full_too_long(partition: Partition, preemptor: Ask, node: Node, victims: Iterable[Ask]) -> bool:
    """Whether some queue above has room for the preemptor, without these victims, only with what was told to stop
    before and leaves too late for it (`in_time`).
    """
    told = list(partition.disruption.leave_by) if partition.admission.windows else []
    if len(soon := dict.fromkeys(in_time(partition, preemptor, told, node))) == len(told):
        return False
    for queue in payer(preemptor).lineage:
        used = dict(queue.allocated)
        for gone in (*soon, *victims):
            if queue in payer(gone).lineage:
                take_from(used, gone.items)
        if lacks(queue.max, used, preemptor.items):
            return True
    return False


def overdrawn(partition: Partition, victims: Iterable[Ask]) -> dict[Queue, int]:
    """The queues that would lose more than they may within the hour if all of these were stopped, each with what it may
    lose; when that will be more they are looked at again.
    """
    hit = (queue for victim in victims for queue in victim.app.queue.lineage)
    counts = Counter(queue for queue in hit if queue.properties.preemption_evictions_max is not None)
    over: dict[Queue, int] = {}
    for queue, count in counts.items():
        left, again_ms = partition.disruption.evictions_left(queue, partition.now_ms)
        if count > left:
            over[queue] = left
            if again_ms is not None:
                look_again(partition, again_ms)
    return over


def within(most: dict[Queue, int], victims: Iterable[Ask]) -> list[Ask]:
    """As many of the first of these as their queues may lose."""
    if not most:
        return list(victims)
    left = dict(most)
    kept: list[Ask] = []
    for victim in victims:
        capped = [queue for queue in victim.app.queue.lineage if queue in left]
        if all(left[queue] > 0 for queue in capped):
            for queue in capped:
                left[queue] -= 1
            kept.append(victim)
    return kept


def within_guarantees(partition: Partition, victims: Iterable[Ask], unguarded: Collection[Queue]) -> list[Ask]:
    """As many of the first of these as may go without leaving a queue, but the `unguarded`, below its guarantee.

    What was told to stop counts as gone; idle work is within no guarantee.
    """
    bounds: dict[Queue, Bound] = {}
    held: dict[Queue, list[Bound]] = {}
    kept: list[Ask] = []
    for victim in victims:
        if victim.spec.idle:
            kept.append(victim)
            continue
        leaf = victim.app.queue
        if leaf not in held:
            guarded = [queue for queue in leaf.lineage if queue.guaranteed and queue not in unguarded]
            rooms = ((queue, dict(partition.above_guarantee.of(partition, queue))) for queue in guarded)
            held[leaf] = [bounds.setdefault(queue, Bound(queue, room)) for queue, room in rooms]
        if all_let(held[leaf], victim):
            for bound in held[leaf]:
                bound.add(victim, -1)
            kept.append(victim)
    return kept


def look_again(partition: Partition, due_ms: int) -> None:
    """Search again at `due_ms`: work that is spared now will not be then."""
    partition.timers.set_earlier(due_ms, partition.name, "", TIMER)
