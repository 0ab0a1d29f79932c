"""Due timers: what a kind of timer means for the thing it was set for.

Decides nothing itself: a table from the kind of a timer to the act or rule that it calls. Never schedules. Invariant:
each timer fires at its own time, in order; a rule checks that its timer still counts, and one that is late or doubled
does nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from fairlead.core.acts import application_steps, gangs, quota_clocks, reserve_node, reserve_turn, terminating, windows
from fairlead.core.acts.reconfigure import clean_queues
from fairlead.core.books.applications import Application
from fairlead.core.books.cluster import Cluster
from fairlead.core.books.partition import Partition
from fairlead.core.books.windows import TIMER as WINDOW_TIMER
from fairlead.policy.eligibility import attempt_times, backoff
from fairlead.policy.events import held
from fairlead.policy.place import reserved
from fairlead.policy.preemption import protection, quota, termination_timeouts

Rule = Callable[[Partition, str], None]
"""Gets the partition and the subject of the timer."""


def _for_application(rule: Callable[[Partition, Application], None]) -> Rule:
    """A rule about an application, whose id is the subject; nothing happens if it is gone."""

    def act(partition: Partition, name: str) -> None:
        app = partition.applications.get(name)
        if app is not None:
            rule(partition, app)

    return act


ON_DUE: dict[str, Rule] = {
    "queues": lambda partition, _: clean_queues(partition),
    application_steps.ENDED_TIMER: lambda partition, _: application_steps.drop_old(partition),
    application_steps.TIMER: _for_application(application_steps.on_timer),
    gangs.TIMER: _for_application(gangs.time_out),
    backoff.TIMER: _for_application(backoff.on_timer),
    held.TIMER: _for_application(held.enter_due),
    attempt_times.TIMER: _for_application(attempt_times.on_timer),
    quota_clocks.TIMER: quota.on_timer,
    reserve_node.TIMER: _for_application(reserved.on_expiry),
    protection.TIMER: termination_timeouts.on_look_again,
    terminating.TIMER: termination_timeouts.on_timer,
    reserve_turn.TIMER: reserve_turn.on_timer,
    WINDOW_TIMER: lambda partition, _: windows.look(partition),
}


def fire_due(cluster: Cluster, now_ms: int) -> None:
    """Fire every timer that is due by `now_ms`, each at its own time, in order."""
    for name in cluster.timers.looks_due(now_ms):
        if name in cluster.partitions:
            cluster.partitions[name].rested_at = None
    while (timer := cluster.timers.pop_due(now_ms)) is not None:
        cluster.set_time(max(timer.due_ms, cluster.now_ms))
        partition = cluster.partitions.get(timer.partition)
        if partition is not None:
            partition.note_change()
            if rule := ON_DUE.get(timer.kind):
                rule(partition, timer.subject)
            held.enter_freed(partition)
