"""Timers that are due.

Decides which act a due timer of the life of queues and applications calls; every other kind has a rule, which the front
door names in `Cluster.on_due`. Never schedules. Invariant: each timer fires at its own time, in order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.core.acts import application_steps, gangs
from fairlead.core.acts.reconfigure import clean_queues

if TYPE_CHECKING:
    from fairlead.core.books.cluster import Cluster
    from fairlead.core.books.partition import Partition
    from fairlead.core.books.timers import Timer


def fire_due(cluster: Cluster, now_ms: int) -> None:
    """Fire every timer that is due by `now_ms`, each at its own time, in order."""
    for name in cluster.timers.looks_due(now_ms):
        if name in cluster.partitions:
            cluster.partitions[name].rested_at = None
    while (timer := cluster.timers.pop_due(now_ms)) is not None:
        cluster.set_time(max(timer.due_ms, cluster.now_ms))
        partition = cluster.partitions.get(timer.partition)
        if partition is None:
            continue
        partition.news += 1
        rule = cluster.on_due.get(timer.kind)
        if rule is not None:
            rule(partition, timer.subject)
        else:
            _fire(partition, timer)


def _fire(partition: Partition, timer: Timer) -> None:
    """The timers of the life of queues and applications, which no rule decides about."""
    if timer.kind == "queues":
        clean_queues(partition)
    elif timer.kind == application_steps.ENDED_TIMER:
        application_steps.drop_old(partition)
    elif (app := partition.applications.get(timer.subject)) is not None:
        if timer.kind == gangs.TIMER:
            gangs.time_out(partition, app)
        else:
            application_steps.on_timer(partition, app)
