"""The book of jobs: what everybody asked to have run on this machine, and what became of it.

Decides the state of each job, by one table, from the records of `history_records` and the scheduler's decisions.
Never starts or stops anything, reads no clock and no file. Invariant: the same records and decisions in the same
order give the same book (`dump` is equal), so the book is rebuilt from the journal after a crash.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from fairlead.core.model.decisions import (
    Allocated,
    ApplicationAccepted,
    ApplicationMoved,
    ApplicationRejected,
    AskRejected,
    ConditionsChanged,
    Decision,
    Evict,
    PriorityChanged,
    Released,
    ReservationSwitched,
    Reserved,
    Retried,
)
from fairlead.core.model.events import Cause
from fairlead.local import arrays, job_names, reconfigured
from fairlead.local import history_records as records
from fairlead.local.arrays import Arrays, ended_well
from fairlead.local.callers import is_of
from fairlead.local.ended_jobs import EndedJobs
from fairlead.local.job import Attempt, HistoryEntry, Job, JobsError, ending, from_plain, to_plain
from fairlead.local.job_numbers import JobNumbers
from fairlead.local.job_states import ON_THE_MACHINE, TRANSITIONS, State
from fairlead.local.live_jobs import LiveJobs
from fairlead.local.notices import due
from fairlead.local.owned_jobs import OwnedJobs
from fairlead.local.submissions import Submissions
from fairlead.runtime.configurations import QueuesReconfigured
from fairlead.times import duration_exactly
from fairlead.wire.stopped import in_brackets

KEEP_ENDED = 100_000
"""So many ended jobs stay in the book; older ones are found in the journal alone."""


class Jobs:
    """All jobs by key, in the order of submission."""

    def __init__(self, keep_ended: int = KEEP_ENDED) -> None:
        self.keep_ended = keep_ended
        self.numbers = JobNumbers()
        self.dropped: list[str] = []
        """Runs of jobs that left the book since somebody last looked (and emptied this)."""
        self.memory_short: records.MemoryShort | None = None
        """The machine runs short of memory since this was noted; None: it has enough."""
        self.news: list[str] = []
        """Jobs that started or ended since somebody last looked (and emptied this)."""
        self._jobs = OwnedJobs()
        self._live = LiveJobs()
        self.arrays = Arrays()
        """The parts of each array."""
        self.taken = self._live.taken
        """What the live jobs of a user take."""
        self.get: Callable[[str], Job | None] = self._jobs.get
        self.of_user, self.live_of_user = self._jobs.of, self._live.of
        """The jobs of a user in the order of submission: all of them, and those that wait or run."""
        self.ended = EndedJobs()
        self.submissions = Submissions()

    # --- reading -----------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._jobs)

    def __iter__(self) -> Iterator[Job]:
        return iter(self._jobs.values())

    def __contains__(self, key: object) -> bool:
        return key in self._jobs or key in self.arrays

    def of(self, key: str) -> list[Job]:
        """The parts of an array; of what is none (or a part), the job itself; nothing of what is not in the book."""
        array, job = self.arrays.get(key), self._jobs.get(key)
        return list(array.parts.values()) if array is not None else [job] if job is not None else []

    def live(self) -> Iterable[Job]:
        """Those that wait or run, in the order of submission."""
        return self._live.values()

    @property
    def live_count(self) -> int:
        """How many wait or run."""
        return len(self._live)

    # --- records and decisions -----------------------------------------------------------------------------------

    def apply(self, record: records.JobRecord | QueuesReconfigured, at_ms: int) -> None:
        """Enter one record. Raises `JobsError` if it cannot be."""
        if isinstance(record, records.MemoryShort | records.JobsCleaned | records.ArrayBrokenOff):
            self._about_no_single_job(record)
            return
        entering: dict[type, Callable[[Any, int], None]] = {
            QueuesReconfigured: lambda each, at: reconfigured.remember(self._live.values(), each, at),
            records.JobSubmitted: self._submitted,
            records.JobRefused: self._explained,
            records.JobWaits: self._waits,
            records.JobChanged: lambda each, at: self._live.change(self._known(each.key), each, at),
            records.JobSignalled: lambda each, at: self._known(each.key).signalled(each, at),
            records.JobStarted: self._started,
            records.JobCancelRequested: self._cancel,
            records.JobNotified: lambda each, at: self._known(each.key).notified(each, at),
            records.JobCheckpointed: lambda each, at: self._known(each.key).checkpointed(at),
            records.JobRequeued: lambda each, at: self._move(each.key, "evict").requeued(each, at),
            records.JobSuspended: lambda each, at: self._move(each.key, each.step).stand_still(each, at),
            records.JobPressed: self._pressed,
            records.AttemptEnded: self._again,
            records.JobEnded: self._over,
        }
        entering[type(record)](record, at_ms)

    def follow(self, decisions: Iterable[Decision], at_ms: int) -> None:
        """Enter what the scheduler decided, in its order; what concerns no job here is passed over."""
        for decision in decisions:
            match decision:
                case Allocated():
                    self._allocated(decision, at_ms)
                case Evict():
                    self._evict(decision, at_ms)
                case Released():
                    self._released(decision, at_ms)
                case ApplicationAccepted() | ApplicationMoved() | ApplicationRejected():
                    self._all_of_it(decision, at_ms)
                case Retried():
                    self._retried(decision, at_ms)
                case ReservationSwitched() | PriorityChanged() | Reserved() | ConditionsChanged():
                    if job := self._live.get(job_names.job_of(decision.key)):
                        job.while_it_waits(decision, at_ms)
                case AskRejected() if job_names.job_of(decision.key) in self._live:
                    self._refused(job_names.job_of(decision.key), decision.reason.sentence(), at_ms)

    def _all_of_it(self, decision: ApplicationAccepted | ApplicationMoved | ApplicationRejected, at_ms: int) -> None:
        """What is decided about a job, or about all parts of an array at once."""
        for job in self.of(decision.id):
            if isinstance(decision, ApplicationMoved):  # What has ended of an array goes along: it is in one queue.
                job.moved(decision, at_ms)
            elif job.ended:
                continue
            elif isinstance(decision, ApplicationRejected):
                self._refused(job.key, decision.reason.sentence(), at_ms)
            else:
                job.placed(decision.queue, at_ms)

    def _submitted(self, record: records.JobSubmitted, at_ms: int) -> None:
        spec, known = record.job, self.arrays.get(record.job.key)
        if record.request and known is None:
            self.submissions.add(spec.uid, record.request, record.digest, spec.key)
        if known is not None and known.broken_off:
            known.broken_off = False
            self.ended.remove([job.key for job in known.parts.values()])
        for job in arrays.submitted(record, known, at_ms):
            if job.key in self._jobs:
                raise JobsError(f"job {job.key} was submitted before")
            self._jobs[job.key] = self._live[job.key] = job
            self.arrays.add(job)
        self.numbers.give(int(spec.application))

    def _allocated(self, decision: Allocated, at_ms: int) -> None:
        job = self._live.get(job_names.job_of(decision.key))
        if job is None:
            return
        if job.released:
            job.placed_ahead = decision.node
            job.remember(at_ms, "allocated", f"on {decision.node}, for its next attempt")
            return
        self._move(job.key, "allocated")
        job.node, job.allocated_at_ms = decision.node, at_ms
        job.begin_attempt()
        job.waits_for = ""
        job.remember(at_ms, "allocated", f"on {decision.node}")

    def _started(self, record: records.JobStarted, at_ms: int) -> None:
        job = self._move(record.key, "started")
        job.pid, job.gpus = record.pid, record.gpus
        job.started_at_ms = record.started_at_ms if record.started_at_ms is not None else at_ms
        job.remember(at_ms, "started", f"process {record.pid}" if record.pid else "")
        job.announce("start", True if self.arrays.start(job) else None)
        self.news.append(job.key)

    def _cancel(self, record: records.JobCancelRequested, at_ms: int) -> None:
        waited = self._known(record.key).state is State.WAITING
        job = self._move(record.key, "cancel")
        job.cancelled_by = record.who
        if waited:
            job.note = record.why
            why = f": {record.why}" if record.why else ""
            self._close(job, at_ms, "cancelled", f"by {record.who}, while it waited{why}")
        else:
            if record.now:
                job.stop_grace_ms = 0
            job.remember(at_ms, "stopping", f"{'killed' if record.now else 'cancelled'} by {record.who}")

    def _evict(self, decision: Evict, at_ms: int) -> None:
        job = self._live.get(job_names.job_of(decision.key))
        if job is None or job.state not in ON_THE_MACHINE:  # Its end is entered, and what was due comes before it.
            return
        self._move(job.key, "evict")
        if job.evict_cause != Cause.REQUEUED:
            job.evict_cause = str(decision.cause)
        job.evicted_for = job_names.job_of(decision.on_behalf_of)
        job.evict_rule = decision.rule
        makes_room = f" to make room for {self._named(job.evicted_for)}" if job.evicted_for else ""
        budgets = " and ".join(decision.violates)
        against = f", against the disruption budget {budgets}: there was no other choice" if budgets else ""
        job.remember(at_ms, "evicting", f"told to stop{makes_room}{in_brackets(decision.rule)}{against}")
        if (other := self._live.get(job.evicted_for)) is not None:
            why = in_brackets(decision.rule, winner="this one")
            other.remember(at_ms, "makes stop", f"{self._named(job.key)}, on {decision.node}{why}{against}")

    def _released(self, decision: Released, at_ms: int) -> None:
        """The scheduler gave a place back that nobody here had returned: the job must go."""
        job = self._live.get(job_names.job_of(decision.key))
        if job is None or job.state not in ON_THE_MACHINE:
            return
        self._move(job.key, "evict")
        job.released, job.evict_cause = True, str(decision.cause)
        job.remember(at_ms, "evicting", decision.message or f"its place on {decision.node} is gone")

    def _pressed(self, record: records.JobPressed, at_ms: int) -> None:
        stops = self._known(record.key).state is State.STOPPING
        job = self._move(record.key, "evict")
        job.stop_grace_ms = record.grace_ms
        job.remember(at_ms, "stopping" if stops else "evicting", record.sentence)
        if not stops:  # Else it is for that reason that it goes, and is or is not tried again.
            # Idle work goes back to its queue whoever had it stopped; what has a retry says itself when it is tried.
            goes_back = job.spec.idle and job.spec.retry is None
            job.evict_cause = str(Cause.PREEMPTED_BY_SCHEDULER if goes_back else Cause.INTERRUPTED)
            job.note = record.sentence

    def _about_no_single_job(self, record: records.MemoryShort | records.JobsCleaned | records.ArrayBrokenOff) -> None:
        if isinstance(record, records.MemoryShort):
            self.memory_short = record if record.short else None
        elif isinstance(record, records.ArrayBrokenOff):
            over = self.arrays.break_off(record.key)
            for job in over:
                self.ended.add(self.arrays[record.key].ended_at_ms, job.key)
                self.news.append(job.key)
            for job in over[-1:]:
                job.due += due(job.spec.notify, "end", job.attempt, well=None, whole=ended_well(over))
        else:
            self._drop(self.cleanable(record.before_ms, record.uid, record.who))
            self._drop(self.ended.beyond(record.most))

    def _again(self, record: records.AttemptEnded, at_ms: int) -> None:
        """An attempt is over and the next one waits, or has a place already."""
        job = self._move(record.key, "again")
        ended_at_ms = record.ended_at_ms if record.ended_at_ms is not None else at_ms
        begun = record.started_at_ms if record.started_at_ms is not None else job.started_at_ms
        how = f"evicted, {job.note or ending(record)}" if record.state == State.EVICTED else ending(record)
        amounts = (record.exit_code, record.signal, record.cpu_ms, record.peak_memory_bytes)
        why_stopped = (job.evicted_for, job.evict_rule)
        over = Attempt(job.attempt, State(record.state), job.node, begun, ended_at_ms, *amounts, how, *why_stopped)
        job.start_over(over)
        self.arrays.ran(job)
        self.news.append(job.key)  # Of its start nobody may have heard before.
        job.remember(ended_at_ms, record.state, f"attempt {over.number}: {how}")
        if job.placed_ahead:
            self._move(job.key, "allocated")
            job.node, job.allocated_at_ms, job.placed_ahead = job.placed_ahead, at_ms, ""
            job.begin_attempt()

    def _retried(self, decision: Retried, at_ms: int) -> None:
        """The scheduler tries it again, at once or after a back-off."""
        job = self._live.get(job_names.job_of(decision.new_key))
        if job is None:
            return
        job.ask, job.retry_due_ms = decision.new_key, decision.due_ms
        wait_ms = decision.due_ms - at_ms
        when = f"after a back-off of {duration_exactly(wait_ms)}" if wait_ms > 0 else "at once"
        job.remember(at_ms, "retry", f"attempt {decision.attempt} enters {when}")

    def _named(self, key: str) -> str:
        """A job as others may know it: its key, and whose it is; its queue may add to its own priority."""
        job = self._jobs.get(key)
        return f"{key} of {job.spec.user} in {job.queue}, own priority {job.priority}" if job is not None else key

    def _explained(self, record: records.JobRefused, at_ms: int) -> None:
        """It is not taken in; or it was not, and this is why in words that say what to do."""
        job = self._known(record.key)
        job.refusal_code = record.code
        if job.state is not State.REJECTED:
            self._refused(record.key, record.sentence, at_ms)
            return
        job.error = record.sentence
        last = job.history[-1]
        job.history[-1] = HistoryEntry(last.at_ms, last.what, record.sentence)

    def _waits(self, record: records.JobWaits, at_ms: int) -> None:
        job = self._known(record.key)
        if job.state is not State.WAITING:
            raise JobsError(f"job {record.key} is {job.state}: it does not wait")
        job.waits_for, job.waits_noted_ms = f"{record.code} {record.subject}", at_ms
        job.remember(at_ms, "waits", record.sentence)

    def _refused(self, key: str, text: str, at_ms: int) -> None:
        job = self._move(key, "refused")
        job.error = text
        self._close(job, at_ms, "rejected", text)

    def _over(self, record: records.JobEnded, at_ms: int) -> None:
        job = self._move(record.key, f"ended:{record.state}")
        for name in ("exit_code", "signal", "cpu_ms", "peak_memory_bytes", "gpus", "error", "no_retry"):
            setattr(job, name, getattr(record, name))
        job.note = record.note or job.note
        if record.started_at_ms is not None:
            job.started_at_ms = record.started_at_ms
        how = f"{ending(record)}; not tried again: {record.no_retry}" if record.no_retry else ending(record)
        self._close(job, record.ended_at_ms if record.ended_at_ms is not None else at_ms, record.state, how)

    # --- small parts -----------------------------------------------------------------------------------------------

    def _known(self, key: str) -> Job:
        job = self._jobs.get(key)
        if job is None:
            raise JobsError(f"there is no job {key}")
        return job

    def _move(self, key: str, what: str) -> Job:
        job = self._known(key)
        state = TRANSITIONS.get((job.state, what))
        if state is None:
            raise JobsError(f"job {key} is {job.state}: {what!r} cannot happen to it")
        job.state = state
        return job

    def _close(self, job: Job, ended_at_ms: int, what: str, detail: str) -> None:
        job.ended_at_ms = ended_at_ms
        job.remember(ended_at_ms, what, detail)
        del self._live[job.key]
        self.news.append(job.key)
        job.forget_values()
        over = self.arrays.end(job)
        job.announce("end", ended_well(over))
        for each in over:
            self.ended.add(self.arrays.over_at_ms(each) or 0, each.key)
        if len(self.ended) > self.keep_ended:
            self._drop(self.ended.beyond(self.keep_ended))

    def cleanable(self, before_ms: int, uid: int | None, user: str = "") -> list[str]:
        """The keys of jobs, of this user (or number) or of all, that had ended before this time; oldest end first."""
        return self.ended.before(before_ms, lambda key: uid is None or is_of(self._jobs[key].spec, uid, user))

    def _drop(self, gone: list[str]) -> None:
        gone = self.arrays.whole(gone)
        for key in gone:
            job = self._jobs[key]
            del self._jobs[key]
            self.dropped += [job_names.run_key(key, number) for number in job.runs]
            if job.request and self.arrays.is_last(job):
                self.submissions.remove(job.spec.uid, job.request)
            self.arrays.drop(job)
        self.ended.remove(gone)

    # --- the whole of it ---------------------------------------------------------------------------------------------

    def dump(self) -> dict[str, Any]:
        """The whole book as plain values, JSON-ready."""
        return {
            **self.numbers.dump(),
            "memory_short": msgspec.to_builtins(self.memory_short),
            "broken_off": [array.key for array in self.arrays.values() if array.broken_off],
            "jobs": [to_plain(job) for job in self._jobs.values()],
            "requests": self.submissions.dump(),
        }

    @classmethod
    def load(cls, state: dict[str, Any], keep_ended: int = KEEP_ENDED) -> Jobs:
        """The book that `dump` described. Raises `JobsError` if it is none, as that of version 0.1."""
        if "jobs" not in state:
            raise JobsError("there is no list of jobs in it")
        book = cls(keep_ended)
        book.numbers = JobNumbers.load(state)
        book.memory_short = msgspec.convert(state.get("memory_short"), records.MemoryShort | None)
        for job in book.arrays.read(map(from_plain, state["jobs"])):
            book._jobs[job.key] = job
            if not job.ended:
                book._live[job.key] = job
        for key in state.get("broken_off", ()):
            book.arrays[key].broken_off = True
        for job in book:
            if job.ended and (ended_at_ms := book.arrays.over_at_ms(job)) is not None:
                book.ended.add(ended_at_ms, job.key)
        book.submissions = Submissions.load(state["requests"], book)
        return book
