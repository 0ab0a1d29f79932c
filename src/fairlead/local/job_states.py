"""The states of a job's life, and which may follow which.

Decides that by one table. Never looks at a job. Invariant: no way leads out of an ended state.
"""

from __future__ import annotations

from enum import StrEnum


class State(StrEnum):
    """Where a job is in its life."""

    WAITING = "waiting"
    RUNNING = "running"
    SUSPENDED = "suspended"
    STOPPING = "stopping"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EVICTED = "evicted"
    LOST = "lost"
    TIMED_OUT = "timed_out"
    REJECTED = "rejected"


LIVE = frozenset({State.WAITING, State.RUNNING, State.SUSPENDED, State.STOPPING})
ENDED = frozenset(State) - LIVE
ON_THE_MACHINE = frozenset({State.RUNNING, State.SUSPENDED, State.STOPPING})
NOT_TOLD_TO_STOP = frozenset({State.RUNNING, State.SUSPENDED})

TRANSITIONS: dict[tuple[State, str], State] = {
    (State.WAITING, "allocated"): State.RUNNING,
    (State.WAITING, "cancel"): State.CANCELLED,
    (State.WAITING, "refused"): State.REJECTED,
    (State.RUNNING, "started"): State.RUNNING,
    (State.RUNNING, "cancel"): State.STOPPING,
    (State.RUNNING, "evict"): State.STOPPING,
    (State.RUNNING, "suspend"): State.SUSPENDED,
    (State.SUSPENDED, "started"): State.SUSPENDED,
    (State.SUSPENDED, "resume"): State.RUNNING,
    (State.SUSPENDED, "cancel"): State.STOPPING,
    (State.SUSPENDED, "evict"): State.STOPPING,
    (State.STOPPING, "started"): State.STOPPING,
    (State.STOPPING, "cancel"): State.STOPPING,
    (State.STOPPING, "evict"): State.STOPPING,
    (State.RUNNING, "again"): State.WAITING,
    (State.SUSPENDED, "again"): State.WAITING,
    (State.STOPPING, "again"): State.WAITING,
} | {(state, f"ended:{end}"): end for state in ON_THE_MACHINE for end in ENDED - {State.REJECTED}}
