"""Due timers: what a kind of timer means for the thing it was set for.

Decides nothing itself: a table from the kind of a timer to the rule that acts on it. The books handle the timers of an
application's life themselves. Invariant: a rule checks that its timer still counts; one that is late or doubled does
nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from fairlead.core import leaving, node_reservations, reserve_turn
from fairlead.core.partition import Partition
from fairlead.core.quotas import TIMER as QUOTA
from fairlead.policy import attempt_times, backoff, overdue, protection, quota, reserve, retry

ON_DUE: dict[str, Callable[[Partition, str], None]] = {
    attempt_times.TIMER: attempt_times.on_timer,
    QUOTA: quota.on_timer,
    node_reservations.TIMER: reserve.on_expiry,
    backoff.TIMER: backoff.on_timer,
    protection.TIMER: protection.on_timer,
    retry.TIMER: retry.on_timer,
    leaving.TIMER: overdue.on_timer,
    reserve_turn.TIMER: reserve_turn.on_timer,
}
"""Each rule gets the partition and the subject of the timer."""
