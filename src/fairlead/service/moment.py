"""The books of a machine between two turns, as one caller sees them.

Decides which jobs the caller may see, and which rows, details and names they have for it. Never changes anything and
keeps nothing. Invariant: what is no business of the caller is left out, or is not there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from fairlead.core.books.asks import Ask
from fairlead.core.model.specs import DEFAULT_PARTITION
from fairlead.insight.arrivals import Arrivals
from fairlead.insight.runtimes import Kind, Runtimes
from fairlead.insight.suppositions import Supposition, submitted
from fairlead.insight.trial import Name
from fairlead.local import arrays, changes, dependencies, placing, requests, selection
from fairlead.local.arrays import all_of
from fairlead.local.callers import Caller, Rights
from fairlead.local.job import Job
from fairlead.local.job_names import job_of
from fairlead.local.job_states import LIVE, State
from fairlead.local.jobs import Jobs
from fairlead.runtime import Refusal
from fairlead.scheduler import Scheduler
from fairlead.service import array_views, views
from fairlead.service.forecaster import came, kinds, learned
from fairlead.service.place import JobFilter, ask_of
from fairlead.wire.arrays import order
from fairlead.wire.jobs import Job as JobRow
from fairlead.wire.jobs import JobDetails, JobDraft, Reason
from fairlead.wire.questions import DRAFT
from fairlead.wire.verdicts import Why


class _Listed(NamedTuple):
    """What a row of a list shows: one job, or parts of an array."""

    order: int | tuple[int, int, str]
    key: str
    jobs: Sequence[Job]


class MachineMoment:
    """The books of a machine between two turns, as one caller sees them (`place.Moment`)."""

    partition = DEFAULT_PARTITION

    def __init__(self, scheduler: Scheduler, jobs: Jobs, caller: Caller, *, runs_as: str, private_names: bool) -> None:
        """`runs_as`: whom jobs run as where it is not their submitter; `private_names`: see `up --private-names`."""
        self.scheduler, self.caller = scheduler, caller
        self._jobs, self._rights = jobs, Rights(caller, scheduler)
        self._runs_as, self._private_names = runs_as, private_names

    def found(self, wanted: JobFilter) -> Iterable[_Listed]:
        """The jobs that pass a filter, each array as one unless its parts are asked for."""
        if wanted.namespace is not None:
            raise Refusal("invalid", "jobs of a machine are in no namespace; leave it out", field="namespace")
        if wanted.array is not None:
            source: Iterable[Job] = selection.meant(self._jobs, self._rights, wanted.array)
        else:
            source = self._source(live=bool(wanted.states) and wanted.states <= LIVE)
        whole: dict[str, list[Job]] = {}
        for job in source:
            spec = job.spec
            passes = wanted.passes(job.state, job.queue, spec.user, spec.name, tags=spec.tags)
            if passes and self._rights.may_act(job):
                if wanted.parts or wanted.array is not None:
                    yield _Listed(order(job.key), job.key, (job,))
                else:
                    whole.setdefault(job.application, []).append(job)
        for key, jobs in whole.items():
            yield _Listed(int(key), key, jobs)

    def _source(self, *, live: bool) -> Iterable[Job]:
        """All jobs among which those are that the caller may see; `live`: that wait or run."""
        if not self._rights.may_act_on_others():
            return (self._jobs.live_of_user if live else self._jobs.of_user)(self.caller.uid)
        return self._jobs.live() if live else self._jobs

    def order(self, job: _Listed) -> int | tuple[int, int, str]:
        """What lists are sorted by."""
        return job.order

    def row(self, job: _Listed) -> JobRow:
        """Its row of a list."""
        return array_views.row(self._jobs, self.scheduler, job.key, job.jobs)

    def details(self, key: str) -> JobDetails:
        """All of it that the books know."""
        meant = self._meant(key)
        if meant[0].key == key:
            return views.job_full(meant[0], self.scheduler)
        return array_views.full(self._jobs, self.scheduler, key, meant)

    def why(self, key: str) -> Why:
        """What it waits for."""
        meant = self._meant(key)
        if meant[0].key == key:
            return views.job_why(meant[0], self.scheduler)
        return array_views.why(self._jobs, self.scheduler, key, meant)

    def last_waiting(self, key: str) -> str:
        """The last part of an array that waits; the key itself where none does."""
        waiting = [job.key for job in self._meant(key) if job.state is State.WAITING]
        return waiting[-1] if waiting else key

    def name(self, key: str) -> Name:
        """Its name in the scheduler; an array's stands for all of it. Refused once it has ended."""
        meant = self._meant(key)
        if all(job.ended for job in meant):
            state = arrays.state_of(meant)
            raise Refusal("conflict", f"job {key} has ended already ({state}); nothing follows from it now")
        if meant[0].application == key and meant[0].spec.index is not None:
            return self.partition, key, ""  # All of an array.
        job = self._visible(key)
        return self.partition, job.application, job.ask_key

    def sees(self, application: str) -> bool:
        """Administrators see what is no job, too."""
        found = self._jobs.of(application)
        return self._rights.may_act(found[0]) if found else self.caller.is_admin

    def in_line(self, ask: Ask) -> tuple[str, str, Reason | None, bool]:
        """Key, name, reason, and whether it may be acted on, of what waits; of others' jobs no reason."""
        key, name, visible = self.called(ask)
        job = self._jobs.get(key)
        return key, name, views.job_reason(job, self.scheduler) if visible and job is not None else None, visible

    def called(self, ask: Ask) -> tuple[str, str, bool]:
        """Key, name, and whether it may be acted on; of others' jobs no name where these are private."""
        key = job_of(ask.key)
        job = self._jobs.get(key)
        if job is None:
            return key, "", False
        visible = self._rights.may_act(job)
        return key, "" if self._private_names and not visible else job.spec.name, visible

    def submission(self, draft: JobDraft) -> Supposition:
        """A job that is not submitted yet, as a change that can be supposed."""
        from fairlead.service.jobs import spec_of

        self.caller.require_submit(self._runs_as)
        spec = spec_of(draft, self.caller, "/")
        placed = placing.plan(self.scheduler, [spec], self._rights)[0]
        if (denial := placed.denial) is not None:
            raise Refusal("forbidden" if denial.code == placing.SUBMIT_DENIED else "invalid", denial.sentence)
        if wrong := dependencies.wrong_after(self._jobs, self._rights, [spec], 0):
            raise wrong.refusal("submit.after")
        requests.require_count(self._jobs, self.scheduler.cluster.partitions[self.partition], self.caller.uid, [placed])
        job = placed.job(DRAFT)
        asks = [requests.ask_of(each, dependencies.conditions_of(self._jobs, each)) for each in all_of(job)]
        return submitted(placing.application_of(job), asks)

    def target(self, key: str, queue: str) -> str:
        """The whole path of a queue that the job may be moved to."""
        job, partition = self._meant(key)[0], self.scheduler.cluster.partitions[self.partition]
        path = placing.full_path(partition, queue)
        found = partition.root.find(path)
        if found is None:
            said = placing.no_queue(partition, queue, job.spec.user, job.spec.groups)
            raise Refusal("not-found", said, field="move")
        if not self._rights.may_move_to(job, found):
            raise Refusal("forbidden", f"{job.spec.user} may not submit to {found.path}", field="move")
        try:
            changes.require_taken(self._jobs, partition, self._rights, job, found.path)
        except Refusal as refused:
            raise Refusal(refused.code, refused.message, field="move") from None
        return found.path

    def future(self) -> tuple[Runtimes, Callable[[Ask], Kind]]:
        """Learned from the jobs in the book."""
        return learned(self._jobs), kinds(self._jobs)

    def arrivals(self) -> Arrivals:
        """As the book of jobs has them."""
        return came(self._jobs)

    def knows(self, key: str) -> bool:
        """Also of one that waits for its back-off to be over."""
        meant = self._meant(key)
        if meant[0].key != key:
            return False
        job = meant[0]
        partition = self.scheduler.cluster.partitions.get(self.partition)
        if partition is not None and partition.held_asks.get(job.application, job.ask_key) is not None:
            return True
        ask = ask_of(self, (self.partition, job.application, job.ask_key))
        return job.state in LIVE and ask is not None and (ask.pending or ask.node is not None)

    def _meant(self, key: str) -> Sequence[Job]:
        return selection.meant(self._jobs, self._rights, key)

    def _visible(self, key: str) -> Job:
        return selection.visible(self._jobs, self._rights, key)
