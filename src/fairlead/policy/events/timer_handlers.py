"""Due timers: what a kind of timer means for the thing it was set for.

Decides nothing itself: a table from the kind of a timer to the act or rule that it calls. Never schedules. Invariant:
each timer fires at its own time, in order; a rule checks that its timer still counts, and one that is late or doubled
does nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fairlead.core.acts import application_steps, gangs, quota_clocks, reserve_turn, terminating, windows
from fairlead.core.acts.reconfigure import clean_queues
from fairlead.core.books.cluster import Cluster
from fairlead.core.books.partition import Partition
from fairlead.core.books.timers import (
    APPLICATION,
    ATTEMPT,
    BACKOFF,
    HELD,
    OF_APPLICATIONS,
    PLACEHOLDERS,
    RESERVATION,
)
from fairlead.core.books.windows import TIMER as WINDOW_TIMER
from fairlead.policy.eligibility import attempt_times, backoff
from fairlead.policy.events import held
from fairlead.policy.place import reserved
from fairlead.policy.preemption import protection, quota, termination_timeouts

ON_DUE: dict[str, Callable[[Partition, Any], None]] = {
    "queues": lambda partition, _: clean_queues(partition),
    application_steps.ENDED_TIMER: lambda partition, _: application_steps.drop_old(partition),
    APPLICATION: application_steps.on_timer,
    PLACEHOLDERS: gangs.time_out,
    BACKOFF: backoff.on_timer,
    HELD: held.enter_due,
    ATTEMPT: attempt_times.on_timer,
    quota_clocks.TIMER: quota.on_timer,
    RESERVATION: reserved.on_expiry,
    protection.TIMER: termination_timeouts.on_look_again,
    terminating.TIMER: termination_timeouts.on_timer,
    reserve_turn.TIMER: reserve_turn.on_timer,
    WINDOW_TIMER: lambda partition, _: windows.look(partition),
}
"""What each kind calls, with the subject of the timer, which of `OF_APPLICATIONS` is the application."""


def fire_due(cluster: Cluster, now_ms: int) -> None:
    """Fire every timer that is due by `now_ms`, each at its own time, in order."""
    for name in cluster.timers.looks_due(now_ms):
        if name in cluster.partitions:
            cluster.partitions[name].rested_at = None
    while (timer := cluster.timers.pop_due(now_ms)) is not None:
        cluster.set_time(max(timer.due_ms, cluster.now_ms))
        partition = cluster.partitions.get(timer.partition)
        if partition is not None:
            before = partition.books_version
            subject = partition.applications.get(timer.subject) if timer.kind in OF_APPLICATIONS else timer.subject
            if subject is not None and (rule := ON_DUE.get(timer.kind)):
                rule(partition, subject)
            held.enter_freed(partition)
            partition.note_event(before)
