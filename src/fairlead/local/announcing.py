"""Messages about jobs, from the book to their way out and back into the book.

Decides what a message says, and what is noted of it. Never sends it (`deliveries` does). Invariant: what is due in the
book is on its way, or will be at the next start.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from fairlead.local import accounts
from fairlead.local.arrays import Array, state_of
from fairlead.local.deliveries import Deliveries, Delivery
from fairlead.local.history_records import JobNotified
from fairlead.local.job import Job
from fairlead.local.job_states import State
from fairlead.local.jobs import Jobs
from fairlead.local.notices import DueNotice
from fairlead.runtime import Refusal
from fairlead.wire.notices import kind_of

if TYPE_CHECKING:
    from fairlead.local.machine import Machine
    from fairlead.runtime import Turn

Do = Callable[[Callable[["Turn", Jobs], None]], "Future[Any] | None"]


class Announcing:
    """The messages of one machine."""

    def __init__(self, machine: Machine, do: Do, *, as_user: bool) -> None:
        """`do` has something done in turn; `as_user`: the service is root and becomes the user of each message."""
        self._do, self._as_user = do, as_user
        self._on_its_way: dict[str, tuple[str, DueNotice]] = {}
        self._deliveries = Deliveries(machine, self._sent)

    def send(self, job: Job, array: Array | None = None) -> None:
        """What is due of this job, or of the array that it is a part of, as far as it is not on its way."""
        for each in job.due:
            name = each.name(job.key)
            if name not in self._on_its_way:
                about = array if array is not None and "parts" not in job.spec.notify[each.number].on else None
                delivery = self._delivery(job, about, each, name)
                self._on_its_way[name] = (job.key, each)
                self._deliveries.send(delivery)

    def close(self) -> None:
        """Send nothing more."""
        self._deliveries.close()

    def _delivery(self, job: Job, array: Array | None, due: DueNotice, name: str) -> Delivery:
        to, account = job.spec.notify[due.number].to, accounts.by_uid(job.spec.uid)
        return Delivery(
            run=name,
            to=to,
            kind=kind_of(to),
            sentence=sentence(job, due) if array is None else array_sentence(array, due),
            facts=facts(job, due) if array is None else facts(job, due) | array_facts(array, due),
            uid=account.uid,
            gids=account.gids if account.name == job.spec.user else (),
            as_user=self._as_user,
            cwd=job.spec.cwd,
        )

    def _sent(self, delivery: Delivery, wrong: str) -> None:
        """Called by a thread that sends."""
        key, due = self._on_its_way[delivery.run]

        def note(turn: Turn, jobs: Jobs) -> None:
            job = jobs.get(key)
            if job is not None and due in job.due:
                turn.note(JobNotified(key=key, number=due.number, what=due.what, attempt=due.attempt, wrong=wrong))

        with contextlib.suppress(Refusal):  # The service is stopping: it is sent again.
            if (noted := self._do(note)) is not None:
                noted.result()
        self._on_its_way.pop(delivery.run, None)
        self._deliveries.settled(delivery.run)


def due_names(jobs: Iterable[Job]) -> set[str]:
    """The names of the runs that send what is due."""
    return {each.name(job.key) for job in jobs for each in job.due}


def sentence(job: Job, due: DueNotice) -> str:
    """What happened."""
    named = f"job {job.key} {job.spec.name}".rstrip()
    if due.what == "start":
        return f"{named} has started"
    how = {State.SUCCEEDED: "has succeeded", State.LOST: "is lost", State.TIMED_OUT: "was out of time"}
    status = f" (exit status {job.exit_code})" if job.exit_code else f" (signal {job.signal})" if job.signal else ""
    return (
        f"{named} {how.get(job.state, f'was {job.state}' if job.state is not State.FAILED else 'has failed')}{status}"
    )


def facts(job: Job, due: DueNotice) -> dict[str, Any]:
    """What a message says of a job."""
    return {
        "event": due.what,
        "key": job.key,
        "name": job.spec.name,
        "user": job.spec.user,
        "queue": job.queue,
        "state": "running" if due.what == "start" else job.state.value,
        "exit_code": job.exit_code,
        "signal": job.signal,
        "attempt": due.attempt,
        "started_at_ms": job.started_at_ms,
        "ended_at_ms": job.ended_at_ms,
        "error": job.error or job.note or None,
    }


def array_sentence(array: Array, due: DueNotice) -> str:
    """What happened to an array as a whole."""
    named = f"array {array.key} {array.first.spec.name}".rstrip()
    return f"{named} has started" if due.what == "start" else f"{named} has ended: {_counted(array)}"


def array_facts(array: Array, due: DueNotice) -> dict[str, Any]:
    """What a message says of an array where it says something else of a single job."""
    starts = [part.started_at_ms for part in array.parts.values() if part.started_at_ms is not None]
    return {
        "key": array.key,
        "state": "running" if due.what == "start" else state_of(array.parts.values()).value,
        "exit_code": None,
        "signal": None,
        "attempt": 1,
        "started_at_ms": min(starts, default=None),
        "ended_at_ms": None if due.what == "start" else array.ended_at_ms,
        "error": None,
        "parts": _counted(array),
    }


def _counted(array: Array) -> str:
    """How many of its parts are how: `succeeded 198, failed 2`."""
    states = Counter(part.state.value for part in array.parts.values())
    return ", ".join(f"{state} {count}" for state, count in states.most_common())
