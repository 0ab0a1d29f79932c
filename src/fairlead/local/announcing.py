"""Messages about jobs, from the book to their way out and back into the book.

Decides what a message says, and what is noted of it. Never sends it (`deliveries` does). Invariant: what is due in the
book is on its way, or will be at the next start.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from fairlead.local import accounts
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

    def send(self, job: Job) -> None:
        """What is due of this job, as far as it is not on its way."""
        for each in job.due:
            name = each.name(job.key)
            if name not in self._on_its_way:
                self._on_its_way[name] = (job.key, each)
                self._deliveries.send(self._delivery(job, each, name))

    def close(self) -> None:
        """Send nothing more."""
        self._deliveries.close()

    def _delivery(self, job: Job, due: DueNotice, name: str) -> Delivery:
        to, account = job.spec.notify[due.number].to, accounts.by_uid(job.spec.uid)
        return Delivery(
            run=name,
            to=to,
            kind=kind_of(to),
            sentence=sentence(job, due),
            facts=facts(job, due),
            uid=account.uid,
            gids=account.gids or (account.gid,),
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
