"""Quota clocks: when a queue that is above a lowered maximum starts to give work back.

Decides from which time on each queue may be made to fit under its maximum, after a change of the configuration or a use
that was forced on it. Never stops work (`fairlead.policy.preemption.quota` does, when the time has come). Invariant: a
queue that is within its maximum, has none, has no `quota.preemption.delay`, or is of a partition that does not enforce
quotas has no clock running after a change of configuration.
"""

from __future__ import annotations

from collections.abc import Mapping

from fairlead.core.books.partition import Partition
from fairlead.core.books.queues import Queue

TIMER = "quota"
Terms = tuple["Mapping[str, int] | None", int]
"""A queue's maximum and its delay in milliseconds; 0: it is made to give nothing back."""


def terms(partition: Partition) -> dict[Queue, Terms]:
    """What every queue below the root is held to before a change."""
    return {q: (q.max, _delay_ms(partition, q)) for q in partition.root.walk() if q.parent is not None}


def _delay_ms(partition: Partition, queue: Queue) -> int:
    return queue.properties.quota_preemption_delay_ms if partition.spec.preemption.quota_enabled else 0


def rearm(partition: Partition, before: Mapping[Queue, Terms]) -> None:
    """The configuration changed: start, shift or stop the clocks, by what each queue was held to before."""
    for queue, (old_max, old_delay) in before.items():
        delay = _delay_ms(partition, queue)
        if not delay or not queue.managed or not is_over(queue):
            queue.quota_due_ms = None
        elif queue.quota_due_ms is not None and old_delay:
            queue.quota_due_ms += delay - old_delay
        elif _is_lower(queue.max or {}, old_max) or not old_delay:
            queue.quota_due_ms = partition.now_ms + delay
    set_timer(partition)


def _is_lower(new: Mapping[str, int], old: Mapping[str, int] | None) -> bool:
    """Whether some resource may be used less than before; one without a maximum was unlimited."""
    return any(old is None or n not in old or v < old[n] for n, v in new.items())


def is_over(queue: Queue) -> bool:
    """Whether the queue uses more than its maximum of something."""
    return queue.max is not None and any(queue.allocated.get(n, 0) > v for n, v in queue.max.items())


def forced(partition: Partition, leaf: Queue) -> None:
    """Use was forced on a leaf (taken over, or grown in place): queues that it puts above their maximum get a clock."""
    started = False
    for queue in leaf.lineage:
        delay = _delay_ms(partition, queue)
        if delay and queue.parent is not None and queue.managed and queue.quota_due_ms is None and is_over(queue):
            queue.quota_due_ms = partition.now_ms + delay
            started = True
    if started:
        set_timer(partition)


def set_timer(partition: Partition, not_before_ms: int = 0) -> None:
    """Wake the partition when the first clock is due."""
    if not partition.spec.preemption.quota_enabled:
        return
    due = min((q.quota_due_ms for q in partition.root.walk() if q.quota_due_ms is not None), default=None)
    if due is not None:
        partition.timers.set(max(due, partition.now_ms, not_before_ms), partition.name, "", TIMER)
