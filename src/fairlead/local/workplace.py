"""This machine as the runtime's place: the book of works, and the orders to the machine that follow from it.

Decides what a submission, a cancellation or the end of a run enters into the books, and what is started or stopped
after that is durable. Never decides who runs. Invariant: for every work that the book says is on the machine there is
a run, or an order for one; a run that the book does not know is stopped and reported.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from fairlead.core.decisions import (
    Allocated,
    ApplicationRejected,
    Decision,
    Evict,
    MoveRejected,
    NodeRejected,
    Released,
)
from fairlead.core.events import (
    AddApplication,
    AddAsks,
    AddNode,
    Cause,
    MoveApplication,
    Release,
    SetPriority,
    UpdateNode,
)
from fairlead.core.resources import Resources
from fairlead.core.specs import DEFAULT_PARTITION, AskSpec, NodeSpec
from fairlead.local import accounts, orders, placing
from fairlead.local.access import Rights
from fairlead.local.callers import Caller
from fairlead.local.placing import Placing
from fairlead.local.records import (
    WorkCancelRequested,
    WorkEnded,
    WorkRefused,
    WorkSpec,
    WorkStarted,
    WorkSubmitted,
    ended,
    parse_run_key,
    run_key,
    started,
)
from fairlead.local.runs import RunReport, RunSpec
from fairlead.local.works import ON_THE_MACHINE, State, Work, Works, state_after
from fairlead.runtime import Entry, Refusal, Runtime, Turn

log = logging.getLogger("fairlead.local")

MOST_LIVE = 200_000
"""Works that wait or run, at most."""

DEVICES = "gpu"


class Machine(orders.Machine, Protocol):
    """What the workplace needs of the machine (see `fairlead.local.machine`)."""

    def adopt(self) -> Sequence[RunReport]:
        """Every run there is: still running (watched again), ended, or never executed."""

    def close(self) -> None:
        """Stop watching."""


M = TypeVar("M", bound=Machine)


class Workplace(Generic[M]):
    """The place: implements `fairlead.runtime.Place` for processes of this machine."""

    def __init__(
        self, make_machine: Callable[[Callable[[RunReport], None]], M], runs_dir: Path, *, as_submitter: bool
    ) -> None:
        """`make_machine(tell)` gives the machine, which tells of each run that begins or ends.

        `as_submitter`: run work as its user (needs root's rights).
        """
        self.works = Works()
        self.node = ""
        """The name of this machine as a node; set by `register_node`."""
        self.strange: tuple[str, ...] = ()
        """Runs that were found at the start and that the journal does not know."""
        self._as_submitter = as_submitter
        self._runtime: Runtime | None = None
        self._known: set[str] = set()
        """Runs whose start was ordered, or that were found on the machine."""
        self._told_to_stop: set[str] = set()
        self._review: list[str] | None = None
        """Works to look at once the start is durable; None: nothing special."""
        self._early: list[RunReport] = []
        self._opening = threading.Lock()
        self._runs_dir = runs_dir
        self.machine = make_machine(self._told)
        self._orders = orders.Orders(self.machine, self._order_done)

    # --- the runtime's side ------------------------------------------------------------------------------------------

    def load(self, state: Mapping[str, Any] | None) -> None:
        """Become what `dump` described; None: empty."""
        self.works = Works.load(dict(state)) if state else Works()

    def dump(self) -> Mapping[str, Any]:
        """The book as plain values."""
        return self.works.dump()

    def apply(self, record: Any, at_ms: int) -> None:
        """Enter a record of ours."""
        self.works.apply(record, at_ms)

    def follow(self, decisions: Sequence[Decision], at_ms: int) -> None:
        """Enter the scheduler's decisions."""
        self.works.follow(decisions, at_ms)

    def act(self, entries: Sequence[Entry]) -> None:
        """Give the orders that follow from durable entries."""
        touched = [key for entry in entries for key in _touched(entry)]
        if self._review is not None:
            touched += self._review
            self._review = None
        for key in dict.fromkeys(touched):
            if (work := self.works.get(key)) is not None:
                self._order(work)
        for key in self.works.dropped:
            # Only the newest run of a dropped work is left: a retry removes what was before it.
            self._orders.purge(run_key(key, 1))
        self.works.dropped.clear()

    def close(self) -> None:
        """Give no more orders and stop watching; what runs goes on."""
        self._orders.close()
        self.machine.close()

    def _order(self, work: Work) -> None:
        run = run_key(work.key, work.attempt)
        if work.state is State.RUNNING and run not in self._known:
            self._known.add(run)
            self._orders.start(self._run_spec(work, run))
        elif work.state is State.STOPPING and run not in self._told_to_stop:
            self._told_to_stop.add(run)
            self._known.add(run)
            self._orders.stop(run, work.spec.grace_ms)
        elif work.ended and run in self._known:
            self._known.discard(run)
            self._told_to_stop.discard(run)
            self._orders.forget(run)

    def _run_spec(self, work: Work, run: str) -> RunSpec:
        spec = work.spec
        amounts = spec.resources
        env = {
            **spec.env,
            "FAIRLEAD_KEY": work.key,
            "FAIRLEAD_NAME": spec.name,
            "FAIRLEAD_QUEUE": work.queue,
            "FAIRLEAD_ATTEMPT": str(work.attempt),
        }
        who = accounts.by_uid(spec.uid) if self._as_submitter else None
        return RunSpec(
            key=run,
            command=spec.command,
            env=env,
            cwd=spec.cwd,
            uid=who.uid if who else None,
            gid=who.gid if who else None,
            groups=who.gids if who else (),
            vcore=amounts["vcore"],
            memory=amounts["memory"],
            gpus=amounts[DEVICES],
            grace_ms=spec.grace_ms,
            time_limit_ms=spec.time_limit_ms,
        )

    # --- reports of the machine --------------------------------------------------------------------------------------

    def _told(self, report: RunReport) -> None:
        """Called by the machine's threads."""
        with self._opening:
            if self._runtime is None:
                self._early.append(report)
                return
        self._order_done(report)

    def _order_done(self, report: RunReport) -> None:
        if (runtime := self._runtime) is not None:
            runtime.do(lambda turn: self.enter_report(turn, report), must=True)

    def enter_report(self, turn: Turn, report: RunReport) -> None:
        """Enter what the machine says about a run, unless it is known already or about something that is over."""
        parsed = parse_run_key(report.key)
        work = self.works.get(parsed[0]) if parsed else None
        if parsed is None or work is None or work.state not in ON_THE_MACHINE or work.attempt != parsed[1]:
            return
        if _is_over(report):
            self._enter_end(turn, work, ended(report, work.key, work.attempt, state_after(work, report).value))
        elif work.pid is None and report.pid is not None:
            turn.note(started(report, work.key, work.attempt))

    def _enter_end(self, turn: Turn, work: Work, record: WorkEnded) -> None:
        cause = _release_cause(work, record)
        returned = work.released
        turn.note(record)
        if not returned:
            turn.event(Release(application=work.key, key=work.key, cause=cause))

    # --- the start ---------------------------------------------------------------------------------------------------

    def open(self, runtime: Runtime, prepare: Callable[[Turn], Any]) -> Future[Any]:
        """Take over what runs on the machine. `prepare` first enters what the service brings (configuration, node).

        Called once, before `runtime.start()`; the result of `prepare` is in the future that it returns.
        """
        reports = list(self.machine.adopt())
        with self._opening:
            self._runtime = runtime
            reports += self._early

        def begin(turn: Turn) -> Any:
            result = prepare(turn)
            self._reconcile(turn, reports)
            return result

        return runtime.do(begin, must=True)

    def _reconcile(self, turn: Turn, reports: Sequence[RunReport]) -> None:
        """Compare the book with what was found: adopt, account for, stop, or start."""
        self.works.skip_to(1 + max((_number(each.name) for each in self._runs_dir.iterdir()), default=0))
        strange = []
        review = [work.key for work in self.works.live()]
        for report in reports:
            parsed = parse_run_key(report.key)
            work = self.works.get(parsed[0]) if parsed else None
            if work is None or parsed is None or parsed[1] > work.attempt:
                strange.append(report)
                continue
            if work.ended or parsed[1] != work.attempt:
                self._leave_over(report)
            elif _never_executed(report):
                continue
            else:
                self._known.add(report.key)
                self.enter_report(turn, report)
        self.strange = tuple(report.key for report in strange)
        for report in strange:
            log.warning("run %s is not in the journal%s", report.key, "" if _is_over(report) else "; it is stopped")
            if not _is_over(report):
                self._orders.stop(report.key, 0)
        self._review = review

    def _leave_over(self, report: RunReport) -> None:
        if _is_over(report):
            self._orders.forget(report.key)
        elif _never_executed(report):
            # A supervisor of an earlier service may still be about to begin: make sure that it does not.
            self._orders.stop(report.key, 0)
            self._orders.forget(report.key)
        else:
            log.warning(
                "run %s is over in the journal, but its processes were still there; they are stopped", report.key
            )
            self.machine.stop(report.key)

    def register_node(self, turn: Turn, hostname: str, capacity: Resources) -> str:
        """Make this machine a node, or bring its capacity up to date; why the scheduler refused it, or nothing.

        A node that is known already keeps its name, whatever the machine is called now: work runs on it.
        """
        partition = turn.scheduler.cluster.partitions[DEFAULT_PARTITION]
        known = next(iter(partition.nodes.nodes.values()), None)
        decided: list[Decision] = []
        if known is None:
            decided = turn.event(AddNode(NodeSpec(id=hostname, capacity=capacity, attributes={"hostname": hostname})))
        elif Resources(known.total) != capacity:
            decided = turn.event(UpdateNode(known.id, capacity))
        self.node = known.id if known is not None else hostname
        return next((d.reason.sentence() for d in decided if isinstance(d, NodeRejected)), "")

    # --- commands ----------------------------------------------------------------------------------------------------

    def submit(
        self, turn: Turn, caller: Caller, specs: Sequence[WorkSpec], *, request: str = "", digest: str = ""
    ) -> Submitted:
        """Take works in, all or none. `specs` come without keys. A repeated `request` gives the same answer.

        If the queues do not take some of them, these are entered as rejected, with the reason, and nothing else is.
        """
        if request and (known := self.works.request(caller.uid, request)) is not None:
            if known[0] != digest:
                raise Refusal(
                    "conflict", f"the idempotency key {request!r} was used for another submission; use a new one"
                )
            return self._repeated(known[1])
        if self.works.live_count + len(specs) > MOST_LIVE:
            raise Refusal("too-many", f"more than {MOST_LIVE} works would wait; wait until some have run")
        placings = placing.plan(turn.scheduler, specs)
        denied = [i for i, each in enumerate(placings) if each.denial is not None]
        keys, refused = [], []
        for index in denied or range(len(placings)):
            keyed = replace(placings[index].spec, key=str(self.works.next_number))
            keys.append(keyed.key)
            record = WorkSubmitted(work=keyed, request=request, digest=digest, rule=placings[index].rule)
            self._enter_submission(turn, record, placings[index])
            if (denial := placings[index].denial) is not None:
                refused.append(RefusedWork(keyed.key, denial.code, denial.sentence, denial.queue, index))
        return Submitted(tuple(keys), tuple(refused))

    def _repeated(self, keys: Sequence[str]) -> Submitted:
        """What was answered the first time."""
        found = [work for key in keys if (work := self.works.get(key)) is not None]
        refused = [
            RefusedWork(work.key, work.refusal_code, work.error, "", None)
            for work in found
            if work.state is State.REJECTED and work.refusal_code
        ]
        return Submitted(tuple(keys), tuple(refused))

    @staticmethod
    def _enter_submission(turn: Turn, record: WorkSubmitted, placed: Placing) -> None:
        spec, denial = record.work, placed.denial
        turn.note(record)
        decided: list[Decision] = []
        if denial is None or denial.by_scheduler:
            decided = turn.event(AddApplication(placing.application_of(spec)))
        if denial is not None:
            turn.note(WorkRefused(key=spec.key, code=denial.code, sentence=denial.sentence, queue=denial.queue))
        if denial is not None or any(isinstance(each, ApplicationRejected) for each in decided):
            return
        ask = AskSpec(
            application=spec.key,
            key=spec.key,
            resources=spec.resources,
            priority=spec.priority,
            grace_ms=spec.grace_ms,
            time_limit_ms=spec.time_limit_ms,
        )
        turn.event(AddAsks((ask,)))

    def visible(self, rights: Rights, key: str) -> Work:
        """The work, if it exists for the caller; otherwise a `Refusal`. Who may see it may act on it."""
        work = self.works.get(key)
        if work is None or not rights.may_act(work):
            raise Refusal("not-found", f"there is no work {key!r}; `fairlead ls --all` shows yours")
        return work

    def cancel(self, turn: Turn, caller: Caller, key: str) -> None:
        """Let a work end: at once while it waits, otherwise it is told to stop."""
        work = self.visible(Rights(caller, turn.scheduler), key)
        if work.ended:
            raise Refusal("conflict", f"work {key} has ended already ({work.state}); there is nothing to cancel")
        if work.cancelled_by:
            return
        waited = work.state is State.WAITING
        turn.note(WorkCancelRequested(key=key, who=caller.user))
        if waited:
            turn.event(Release(application=key, key=key, cause=Cause.STOPPED_BY_RM))

    def change(
        self, turn: Turn, caller: Caller, key: str, *, priority: int | None = None, queue: str | None = None
    ) -> str:
        """Change the priority of a work that waits, its queue, or both; why it cannot be moved, or nothing.

        The queue first: where that is refused, the priority stays as it is.
        """
        rights = Rights(caller, turn.scheduler)
        work = self.visible(rights, key)
        if priority is not None and work.state is not State.WAITING:
            raise Refusal("conflict", f"work {key} is {work.state}; only the priority of waiting work can be changed")
        if queue is not None and (refused := self._move(turn, rights, work, queue)):
            return refused
        if priority is not None and work.priority != priority:
            turn.event(SetPriority(application=key, key=key, priority=priority, who=caller.user))
        return ""

    @staticmethod
    def _move(turn: Turn, rights: Rights, work: Work, queue: str) -> str:
        """Put a work into another queue; why the scheduler leaves it where it is, or nothing."""
        if work.state not in (State.WAITING, State.RUNNING):
            raise Refusal("conflict", f"work {work.key} is {work.state}; only waiting and running work can be moved")
        partition = turn.scheduler.cluster.partitions[DEFAULT_PARTITION]
        path = placing.full_path(partition, queue)
        target = partition.root.find(path)
        if target is None:
            said = f"there is no queue {queue}{placing.suggestions(partition, path)}"
            raise Refusal("invalid", said, field="queue")
        if target.path == work.queue:
            return ""
        if not rights.may_move_to(work, target):
            raise Refusal(
                "forbidden",
                f"{work.spec.user} may not submit to {target.path}, and {rights.caller.user} does not administer it; "
                f"ask an administrator of that queue to move work {work.key}",
                field="queue",
            )
        for decision in turn.event(MoveApplication(work.key, target.path, rights.caller.user)):
            if isinstance(decision, MoveRejected):
                return f"work {work.key} stays in {work.queue}: {decision.reason.sentence()}"
        return ""


@dataclass(frozen=True, slots=True)
class RefusedWork:
    """A work that was not taken in, and is in the book as rejected. `index`: its place in the submission, if known."""

    key: str
    code: str
    sentence: str
    queue: str
    index: int | None


@dataclass(frozen=True, slots=True)
class Submitted:
    """What came of a submission: all works, or those for which none of it was taken in."""

    keys: tuple[str, ...]
    refused: tuple[RefusedWork, ...] = ()


def _touched(entry: Entry) -> list[str]:
    """The works that may need an order because of this entry."""
    keys = [d.key for d in entry.decisions if isinstance(d, Allocated | Evict | Released)]
    if isinstance(entry.what, WorkCancelRequested | WorkEnded | WorkStarted):
        keys.append(entry.what.key)
    return keys


def _number(run: str) -> int:
    parsed = parse_run_key(run)
    return int(parsed[0]) if parsed else 0


def _is_over(report: RunReport) -> bool:
    return report.ended_at_ms is not None or report.lost or (report.stopped and report.started_at_ms is None)


def _never_executed(report: RunReport) -> bool:
    return report.started_at_ms is None and not _is_over(report)


def _release_cause(work: Work, record: WorkEnded) -> Cause:
    if work.evict_cause:
        return Cause(work.evict_cause)
    if record.lost:
        return Cause.INTERRUPTED
    return Cause.STOPPED_BY_RM if record.stopped and work.cancelled_by else Cause.FINISHED
