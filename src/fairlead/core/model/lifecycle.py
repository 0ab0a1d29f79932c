"""The life of an application, as a table.

Decides which state follows from which event, and nothing else: no timers, no counters, no books. Invariant: a pair that
is not in the table is an error and changes nothing. `Starting` is the older step between the first and the second
allocation; only applications that ask for it pass through it. `requeueApplication` is an addition to YuniKorn's steps:
what runs nothing and only waits to be tried again, or is idle, is accepted once more.
"""

from __future__ import annotations

from enum import StrEnum


class State(StrEnum):
    """Where an application is in its life."""

    NEW = "New"
    ACCEPTED = "Accepted"
    STARTING = "Starting"
    RUNNING = "Running"
    COMPLETING = "Completing"
    COMPLETED = "Completed"
    FAILING = "Failing"
    FAILED = "Failed"
    REJECTED = "Rejected"
    EXPIRED = "Expired"
    RESUMING = "Resuming"


class Step(StrEnum):
    """What moves an application on."""

    RUN = "runApplication"
    START = "startApplication"
    COMPLETE = "completeApplication"
    FAIL = "failApplication"
    REJECT = "rejectApplication"
    RESUME = "resumeApplication"
    REQUEUE = "requeueApplication"
    EXPIRE = "expireApplication"


TRANSITIONS: dict[tuple[State, Step], State] = {
    (before, step): after
    for step, after, befores in (
        (Step.RUN, State.ACCEPTED, (State.NEW, State.RESUMING)),
        (Step.RUN, State.RUNNING, (State.ACCEPTED, State.STARTING, State.RUNNING, State.COMPLETING)),
        (Step.START, State.STARTING, (State.ACCEPTED,)),
        (Step.COMPLETE, State.COMPLETING, (State.ACCEPTED, State.STARTING, State.RUNNING)),
        (Step.COMPLETE, State.COMPLETED, (State.COMPLETING,)),
        (Step.FAIL, State.FAILING, (State.NEW, State.ACCEPTED, State.STARTING, State.RUNNING)),
        (Step.FAIL, State.FAILED, (State.FAILING,)),
        (Step.REJECT, State.REJECTED, (State.NEW,)),
        (Step.RESUME, State.RESUMING, (State.NEW, State.ACCEPTED)),
        (Step.REQUEUE, State.ACCEPTED, (State.STARTING, State.RUNNING)),
        (Step.EXPIRE, State.EXPIRED, (State.COMPLETED, State.FAILED, State.REJECTED)),
    )
    for before in befores
}
"""What a step leads to, and from which states it is taken."""

LIVE = frozenset({State.STARTING, State.RUNNING})
"""States that count as running against `maxapplications`."""

ENDED = frozenset({State.COMPLETED, State.FAILED, State.REJECTED, State.EXPIRED})
"""States that an application does not come back from."""


def next_state(application: str, state: State, step: Step) -> State:
    """The state that follows. Raises ValueError for a step that this state does not know."""
    after = TRANSITIONS.get((state, step))
    if after is None:
        raise ValueError(f"application {application} is {state}: {step} is not possible")
    return after
