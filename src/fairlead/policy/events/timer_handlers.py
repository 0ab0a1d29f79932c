"""Due timers: what a kind of timer means for the thing it was set for.

Decides nothing itself: a table from the kind of a timer to the rule that acts on it. The books handle the timers of an
application's life themselves. Invariant: a rule checks that its timer still counts; one that is late or doubled does
nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from fairlead.core.acts import reserve_node, reserve_turn, terminating
from fairlead.core.acts.quota_clocks import TIMER as QUOTA
from fairlead.core.books.partition import Partition
from fairlead.policy.eligibility import attempt_times, backoff
from fairlead.policy.events import retry
from fairlead.policy.place import reserved
from fairlead.policy.preemption import protection, quota, termination_timeouts

ON_DUE: dict[str, Callable[[Partition, str], None]] = {
    attempt_times.TIMER: attempt_times.on_timer,
    QUOTA: quota.on_timer,
    reserve_node.TIMER: reserved.on_expiry,
    backoff.TIMER: backoff.on_timer,
    protection.TIMER: protection.on_timer,
    retry.TIMER: retry.on_timer,
    terminating.TIMER: termination_timeouts.on_timer,
    reserve_turn.TIMER: reserve_turn.on_timer,
}
"""Each rule gets the partition and the subject of the timer."""
