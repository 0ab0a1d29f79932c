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
    (State.NEW, Step.RUN): State.ACCEPTED,
    (State.RESUMING, Step.RUN): State.ACCEPTED,
    (State.ACCEPTED, Step.RUN): State.RUNNING,
    (State.ACCEPTED, Step.START): State.STARTING,
    (State.STARTING, Step.RUN): State.RUNNING,
    (State.RUNNING, Step.RUN): State.RUNNING,
    (State.COMPLETING, Step.RUN): State.RUNNING,
    (State.ACCEPTED, Step.COMPLETE): State.COMPLETING,
    (State.STARTING, Step.COMPLETE): State.COMPLETING,
    (State.RUNNING, Step.COMPLETE): State.COMPLETING,
    (State.COMPLETING, Step.COMPLETE): State.COMPLETED,
    (State.NEW, Step.FAIL): State.FAILING,
    (State.ACCEPTED, Step.FAIL): State.FAILING,
    (State.STARTING, Step.FAIL): State.FAILING,
    (State.RUNNING, Step.FAIL): State.FAILING,
    (State.FAILING, Step.FAIL): State.FAILED,
    (State.NEW, Step.REJECT): State.REJECTED,
    (State.NEW, Step.RESUME): State.RESUMING,
    (State.ACCEPTED, Step.RESUME): State.RESUMING,
    (State.STARTING, Step.REQUEUE): State.ACCEPTED,
    (State.RUNNING, Step.REQUEUE): State.ACCEPTED,
    (State.COMPLETED, Step.EXPIRE): State.EXPIRED,
    (State.FAILED, Step.EXPIRE): State.EXPIRED,
    (State.REJECTED, Step.EXPIRE): State.EXPIRED,
}

LIVE = frozenset({State.STARTING, State.RUNNING})
"""States that count as running against `maxapplications`."""

ENDED = frozenset({State.COMPLETED, State.FAILED, State.REJECTED, State.EXPIRED})
"""States that an application does not come back from."""


class IllegalTransition(ValueError):
    """An event that this state does not know; nothing was changed."""

    def __init__(self, application: str, state: State, step: Step) -> None:
        super().__init__(f"application {application} is {state}: {step} is not possible")
        self.application, self.state, self.step = application, state, step


def next_state(application: str, state: State, step: Step) -> State:
    """The state that follows, or `IllegalTransition`."""
    try:
        return TRANSITIONS[state, step]
    except KeyError:
        raise IllegalTransition(application, state, step) from None
