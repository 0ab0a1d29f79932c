"""This machine as the runtime's place: the book of jobs, and the orders to the machine that follow from it.

Decides what a submission, a cancellation or the end of a run enters into the books, and what is started or stopped
after that is durable. Never decides who runs. Invariant: for every job that the book says is on the machine there is
a run, or an order for one; a run that the book does not know is left alone, shown, and its room is not given out.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairlead.core.model.decisions import Allocated, AskRejected, Decision, Evict, NodeRejected, Released
from fairlead.core.model.events import AddNode, UpdateNode
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import DEFAULT_PARTITION, NodeSpec
from fairlead.local import announcing, arrays, attempt_ends, dependencies, job_bounds, job_names, limit_signals, orders
from fairlead.local import history_records as records
from fairlead.local.gpus import PART, WHOLE
from fairlead.local.job import Job
from fairlead.local.job_states import NOT_TOLD_TO_STOP, ON_THE_MACHINE, State
from fairlead.local.jobs import Jobs
from fairlead.local.notices import is_notice
from fairlead.local.runs import RunReport, RunSpec, is_forgotten, removed, spec_of
from fairlead.local.unknown_runs import UnknownRuns
from fairlead.runtime import Entry, InternalFault, Runtime, Turn
from fairlead.wire.streams import PIPED

if TYPE_CHECKING:
    from fairlead.local.machine import Machine

log = logging.getLogger("fairlead.local")

DEVICES = WHOLE


class LocalPlace:
    """The place: implements `fairlead.runtime.Place` for processes of this machine."""

    def __init__(
        self,
        make_machine: Callable[[Callable[[RunReport], None]], Machine],
        runs_dir: Path,
        *,
        as_submitter: bool,
        socket: Path | None = None,
        output_bytes: int = 0,
        make_orders: Callable[[Machine, Callable[[RunReport], None]], orders.Orders] = orders.Orders,
    ) -> None:
        """`make_machine(tell)` gives the machine, which tells of each run that begins or ends.

        `as_submitter`: run work as its user (needs root's rights). `socket`: where work finds the service.
        `output_bytes`: so much of each output of a run is kept where its queue does not say it; 0: all. `make_orders`:
        what carries out orders to the machine; a thread.
        """
        self.jobs = Jobs()
        self.node = ""
        """The name of this machine as a node; set by `register_node`."""
        self.unknown = UnknownRuns()
        """Runs that were found at the start, go on, and are not in the journal."""
        self._capacity = Resources()
        self._as_submitter = as_submitter
        self._address = {"FAIRLEAD_SOCKET": str(socket)} if socket is not None else {}
        self._output_bytes = output_bytes
        self._runtime: Runtime | None = None
        self._least_number = 1
        """Of jobs to come: behind all whose runs were found on the machine."""
        self._known: set[str] = set()
        """Runs whose start was ordered, or that were found on the machine."""
        self._told_to_stop: dict[str, int] = {}
        """The grace, in milliseconds, with which a run was told to stop last."""
        self._review: list[str] | None = None
        """Jobs to look at once the start is durable; None: nothing special."""
        self._early: list[RunReport] = []
        self._opening = threading.Lock()
        self._runs_dir = runs_dir
        self.machine = make_machine(self._told)
        self._orders = make_orders(self.machine, self._order_done)
        self._announcing = announcing.Announcing(self.machine, self._do, as_user=as_submitter)

    # --- the runtime's side ------------------------------------------------------------------------------------------

    def load(self, state: Mapping[str, Any] | None) -> None:
        """Become what `dump` described; None: empty."""
        self.jobs = Jobs.load(dict(state)) if state else Jobs()
        self.jobs.numbers.skip_to(self._least_number)  # No record says it.

    def dump(self) -> Mapping[str, Any]:
        """The book as plain values."""
        return self.jobs.dump()

    def apply(self, record: Any, at_ms: int) -> None:
        """Enter a record of ours."""
        self.jobs.apply(record, at_ms)

    def follow(self, decisions: Sequence[Decision], at_ms: int) -> None:
        """Enter the scheduler's decisions."""
        self.jobs.follow(decisions, at_ms)

    def settle(self, turn: Turn) -> None:
        """Tell those that wait for others what became of them."""
        dependencies.settle(self.jobs, turn)

    def act(self, entries: Sequence[Entry]) -> None:
        """Give the orders that follow from durable entries."""
        touched = [key for entry in entries for key in _touched(entry)]
        if self._review is not None:
            touched += self._review
            self._review = None
        faults: list[Exception] = []
        for job in [job for key in dict.fromkeys(touched) for job in self.jobs.of(key)]:
            try:
                self._order(job)
                self._announcing.send(job, self.jobs.arrays.get(job.application))
            except Exception as fault:  # What is wrong with one job keeps no other from its orders.
                faults.append(fault)
        for run in self.jobs.dropped:
            self._orders.purge(run)
        self.jobs.dropped.clear()
        if faults:
            raise faults[0]

    @property
    def not_started(self) -> dict[str, str]:
        """Runs that have their place and whose start the machine refused for now, and why; as they are now."""
        return dict(self._orders.retrying)

    def close(self) -> None:
        """Give no more orders and stop watching; what runs goes on."""
        self._announcing.close()
        self._orders.close()
        self.machine.close()

    def _order(self, job: Job) -> None:
        run = job_names.run_key(job.key, job.attempt)
        if job.state in NOT_TOLD_TO_STOP:
            if run not in self._known:
                self._known.add(run)
                self._orders.start(self._run_spec(job, run))
            if job.course_changed:
                self._orders.go_on(run, job.spec.time_limit_ms, suspended=job.state is State.SUSPENDED)
        elif job.state is State.STOPPING:
            grace_ms = job.spec.grace_ms if job.stop_grace_ms is None else job.stop_grace_ms
            if grace_ms < self._told_to_stop.get(run, grace_ms + 1):
                self._told_to_stop[run] = grace_ms
                self._known.add(run)
                self._orders.stop(run, grace_ms)
        elif job.ended or job.state is State.WAITING:
            self._let_go(run)
        if job.state is State.RUNNING and job.attempt > 1:
            self._let_go(job_names.run_key(job.key, job.attempt - 1))

    def _let_go(self, run: str) -> None:
        """The run is over, and that is in the journal: what was only needed to watch it may go."""
        if run in self._known:
            self._known.discard(run)
            self._told_to_stop.pop(run, None)
            self._orders.forget(run)

    def _run_spec(self, job: Job, run: str) -> RunSpec:
        spec = job.spec
        amounts = spec.resources
        env = {
            **self._address,
            **spec.env,
            "FAIRLEAD_KEY": job.key,
            "FAIRLEAD_NAME": spec.name,
            "FAIRLEAD_QUEUE": job.queue,
            "FAIRLEAD_ATTEMPT": str(job.attempt),
            **_room(amounts),
            **arrays.environment(job),
        }
        return RunSpec(
            key=run,
            command=spec.command,
            env=env,
            cwd=spec.cwd,
            uid=spec.uid if self._as_submitter else None,
            user=spec.user,
            groups=None if self._as_submitter else (),
            vcore=amounts["vcore"],
            memory=amounts["memory"],
            gpus=amounts[DEVICES],
            gpu_parts={name: count for name, count in amounts.items if name.startswith(PART)},
            grace_ms=spec.grace_ms,
            time_limit_ms=spec.time_limit_ms,
            limit_signal=limit_signals.of(spec),
            output_bytes=self._output_bound(job.queue),
            streams=job.streams,
            piped=PIPED in job.streams.stdin,
            script=spec.script,
            terminal=spec.terminal,
        )

    def _output_bound(self, queue: str) -> int:
        """Called by the writer, so the books stand still."""
        assert self._runtime is not None
        partition = self._runtime.books.scheduler.cluster.partitions[DEFAULT_PARTITION]
        said = job_bounds.properties_of(partition, queue).job_output_max
        return self._output_bytes if said is None else said

    # --- reports of the machine --------------------------------------------------------------------------------------

    def _told(self, report: RunReport) -> None:
        """Called by the machine's threads."""
        with self._opening:
            if self._runtime is None:
                self._early.append(report)
                return
        self._order_done(report)

    def _order_done(self, report: RunReport) -> None:
        if is_notice(report.key):
            return
        if report.not_now:
            self._orders.start_again(report.key, OSError(report.not_now, report.error))
        else:
            if report.is_over or report.pid is not None:
                self._orders.has_begun(report.key)
            entering = self._do(lambda turn, _: self.enter_report(turn, report))
            if entering is not None:
                entering.add_done_callback(lambda future: self._entered(report, future))

    def _entered(self, report: RunReport, future: Future[Any]) -> None:
        """The machine tells of an end once: what a fault in the program kept out of the books is told again, later."""
        if isinstance(future.exception(), InternalFault):
            self._orders.tell_again(report)

    def _do(self, act: Callable[[Turn, Jobs], None]) -> Future[Any] | None:
        if (runtime := self._runtime) is None:
            return None
        return runtime.do(lambda turn: act(turn, self.jobs), must=True)

    def enter_report(self, turn: Turn, report: RunReport) -> None:
        """Enter what the machine says about a run, unless it is known already or about something that is over."""
        parsed = job_names.parse_run_key(report.key)
        job = self.jobs.get(parsed[0]) if parsed else None
        known = parsed is not None and job is not None and job.state in ON_THE_MACHINE and job.attempt == parsed[1]
        if self.unknown.were_found and self.node and (known or report.is_over):
            self.unknown.discard(report.key)
            # By what the node has: where the turn before this one was taken back the run is unknown no longer.
            self.register_node(turn, self.node, self._capacity)
        if job is None or not known:
            return
        if report.is_over:
            attempt_ends.enter_end(turn, job, report)
        elif job.pid is None and report.pid is not None:
            turn.note(records.started(report, job.key, job.attempt, self.machine.gpus))

    # --- the start ---------------------------------------------------------------------------------------------------

    def open(self, runtime: Runtime, prepare: Callable[[Turn], Any]) -> Future[Any]:
        """Take over what runs on the machine. `prepare` then enters what the service brings (configuration, node).

        Called once, before `runtime.start()`; the result of `prepare` is in the future that it returns.
        """
        reports = list(self.machine.adopt())
        with self._opening:
            self._runtime = runtime
            reports += self._early

        def begin(turn: Turn) -> Any:
            self._set_unknown_apart(reports)
            # What ended meanwhile ended under the queues and on the node that there were.
            self._reconcile(turn, reports)
            return prepare(turn)

        return runtime.do(begin, must=True)

    def _reconcile(self, turn: Turn, reports: Sequence[RunReport]) -> None:
        """Compare the book with what was found: adopt, account for, stop, or start; what is unknown is left alone."""
        self._number_and_remove([each.name for each in self._runs_dir.iterdir()])
        for array in list(self.jobs.arrays.values()):
            if not array.is_whole:
                turn.note(records.ArrayBrokenOff(key=array.key))
        review = [job.key for job in self.jobs if not job.ended or job.due]
        messages = announcing.due_names(self.jobs)
        for report in reports:
            if is_notice(report.key):
                if report.key not in messages:
                    self._orders.purge(report.key) if report.is_over else self._orders.stop(report.key, 0)
                continue
            parsed = job_names.parse_run_key(report.key)
            job = self.jobs.get(parsed[0]) if parsed else None
            if job is None or parsed is None or parsed[1] > job.attempt:
                continue
            if job.ended or parsed[1] != job.attempt:
                self._leave_over(job, report)
            elif job.state in ON_THE_MACHINE and not report.never_executed:
                self._known.add(report.key)
                self.enter_report(turn, report)
        self._lose_what_was_removed(turn, review)
        self._review = review

    def _lose_what_was_removed(self, turn: Turn, keys: Sequence[str]) -> None:
        """What the journal knows to have begun does not begin once more because somebody removed its directory."""
        for key in keys:
            job = self.jobs.get(key)
            if job is None or job.pid is None or job.state not in ON_THE_MACHINE:
                continue
            run = job_names.run_key(key, job.attempt)
            if run not in self._known and self.machine.report(run) is None:
                self.enter_report(turn, removed(run, self._runs_dir / run, job.started_at_ms))

    def _number_and_remove(self, found: Sequence[str]) -> None:
        """What is left of jobs that left the book before the last stop goes; no run has its name from a later job."""
        for run in found:
            if self._left_the_book(run):
                self._orders.purge(run)
        self._least_number = 1 + max(map(_number, found), default=0)
        self.jobs.numbers.skip_to(self._least_number)

    def _left_the_book(self, run: str) -> bool:
        """Its job was in the book, with its end. What is in no journal any more is for a person to look at."""
        number, directory = _number(run), self._runs_dir / run
        if not self.jobs.numbers.was_given(number) or str(number) in self.jobs or not directory.is_dir():
            return False
        return is_forgotten(directory) or not any(directory.iterdir())  # Empty: it was being removed.

    def _set_unknown_apart(self, reports: Sequence[RunReport]) -> None:
        """What runs and is not in the journal, because that was damaged or is an older copy, a person has to stop."""
        for report in reports:
            parsed = job_names.parse_run_key(report.key)
            job = self.jobs.get(parsed[0]) if parsed else None
            known = is_notice(report.key) or (parsed is not None and job is not None and parsed[1] <= job.attempt)
            if not known and not report.is_over and not report.never_executed:
                self.unknown.add(report, spec_of(self._runs_dir / report.key))
                log.warning("run %s is not in the journal; it is left alone: see `fairlead unknown`", report.key)

    def stop_unknown(self, run: str, grace_ms: int) -> None:
        """End a run that is not in the journal. Nothing happens to one that is over, or is known."""
        if run in self.unknown:
            self._orders.stop(run, grace_ms)

    def _leave_over(self, job: Job, report: RunReport) -> None:
        """What is found of an attempt that is over in the journal goes, once nothing of it runs."""
        if report.never_executed:
            # A supervisor of an earlier service may still be about to begin: make sure that it does not.
            self._orders.stop(report.key, 0)
        elif not report.is_over:
            log.warning(
                "run %s is over in the journal, but its processes were still there; they are stopped", report.key
            )
            self._orders.stop(report.key, job.spec.grace_ms)
        self._orders.forget(report.key)

    def register_node(self, turn: Turn, hostname: str, capacity: Resources) -> str:
        """Make this machine a node, or bring its capacity up to date; why the scheduler refused it, or nothing.

        A node that is known already keeps its name, whatever the machine is called now: work runs on it. What unknown
        runs hold is not given out.
        """
        self._capacity, capacity = capacity, self.unknown.leave(capacity)
        partition = turn.scheduler.cluster.partitions[DEFAULT_PARTITION]
        known = next(iter(partition.nodes.nodes.values()), None)
        decided: list[Decision] = []
        if known is None:
            decided = turn.event(AddNode(NodeSpec(id=hostname, capacity=capacity, attributes={"hostname": hostname})))
        elif Resources(known.total) != capacity:
            decided = turn.event(UpdateNode(known.id, capacity))
        self.node = known.id if known is not None else hostname
        return next((d.reason.sentence() for d in decided if isinstance(d, NodeRejected)), "")


def _touched(entry: Entry) -> list[str]:
    """The jobs that may need an order because of this entry."""
    told = (d for d in entry.decisions if isinstance(d, Allocated | AskRejected | Evict | Released))
    keys = [job_names.job_of(d.key) for d in told]
    if isinstance(
        entry.what,
        records.ArrayBrokenOff
        | records.JobCancelRequested
        | records.AttemptEnded
        | records.JobEnded
        | records.JobStarted
        | records.JobPressed
        | records.JobRequeued
        | records.JobSuspended
        | records.JobChanged,
    ):
        keys.append(entry.what.key)
    return keys


def _room(amounts: Resources) -> dict[str, str]:
    """What a command finds of what it may use, to start so many threads: whole cores, at least one, and bytes."""
    said = {"FAIRLEAD_CPU": -(-amounts["vcore"] // 1000), "FAIRLEAD_MEMORY": amounts["memory"]}
    return {name: str(amount) for name, amount in said.items() if amount}


def _number(run: str) -> int:
    parsed = job_names.parse_run_key(run)
    return int(parsed[0].partition(".")[0]) if parsed else 0
