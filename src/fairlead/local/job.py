"""One job: what is remembered of it, and how its end is named.

Decides what each record changes of it. Never looks at other jobs. Invariant: a job is in one state
(`local.job_states`).
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from fairlead.core.model.conditions import IN_WORDS, Awaited, Conditions
from fairlead.core.model.decisions import (
    ApplicationMoved,
    ConditionsChanged,
    PriorityChanged,
    ReservationSwitched,
    Reserved,
)
from fairlead.core.model.events import Cause
from fairlead.core.model.quantities import format_exactly
from fairlead.core.model.resources import Resources
from fairlead.local import notices
from fairlead.local.history_records import (
    JobChanged,
    JobNotified,
    JobRequeued,
    JobSignalled,
    JobSpec,
    JobSuspended,
    Observed,
)
from fairlead.local.job_states import ENDED, ON_THE_MACHINE, State
from fairlead.local.notices import DueNotice
from fairlead.local.streams import NONE, Streams
from fairlead.times import duration_exactly, moment
from fairlead.wire import patterns
from fairlead.wire.notices import shown
from fairlead.wire.statuses import signal_name

KEEP_HISTORY = 64
"""So many entries of a job's history: the first half and the newest."""


class JobsError(RuntimeError):
    """A record or decision that makes no sense for the state the job is in: a fault in the program."""


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One thing that happened to a job."""

    at_ms: int
    what: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt that is over: when and where it ran, and how it ended."""

    number: int
    state: State
    node: str
    started_at_ms: int | None
    ended_at_ms: int
    exit_code: int | None
    signal: int | None
    cpu_ms: int
    peak_memory_bytes: int
    how: str
    """Its end as part of a sentence."""
    evicted_for: str = ""
    """The job it had to make room for."""
    evict_rule: str = ""
    """By which rule of the scheduler."""
    suspended_ms: int = 0
    """For how long of that it stood still."""


@dataclass(slots=True)
class Job:
    """The running record of one job."""

    spec: JobSpec
    submitted_at_ms: int
    priority: int
    queue: str = ""
    """Where it was placed; until then, what was asked for."""
    state: State = State.WAITING
    node: str = ""
    attempt: int = 0
    """How often it got a place; also the number of its newest run."""
    allocated_at_ms: int | None = None
    started_at_ms: int | None = None
    ended_at_ms: int | None = None
    pid: int | None = None
    exit_code: int | None = None
    signal: int | None = None
    cpu_ms: int = 0
    peak_memory_bytes: int = 0
    gpus: tuple[int, ...] = ()
    error: str = ""
    """Why it could not be started or taken in, as a sentence."""
    note: str = ""
    """What else there is to say about its end, as a sentence."""
    cancelled_by: str = ""
    evict_cause: str = ""
    """The cause of the scheduler's order to stop it, or empty."""
    evicted_for: str = ""
    """The job it had to make room for."""
    evict_rule: str = ""
    """The rule of the scheduler that chose it, or empty."""
    request: str = ""
    """The submitter's own name for the submission, so that a repeated one is known."""
    rule: str = ""
    """What chose its queue."""
    refusal_code: str = ""
    """Why it was not taken in, as a fixed word."""
    waits_for: str = ""
    """What was in its way when that was last noted, as code and subject; empty: nothing noted since it waits."""
    waits_noted_ms: int = 0
    released: bool = False
    """The scheduler has already given its place away: nothing is left to give back."""
    history: list[HistoryEntry] = field(default_factory=list)
    past: list[Attempt] = field(default_factory=list)
    """The attempts before the one that waits or runs, or that was the last."""
    ask: str = ""
    """What the scheduler calls its newest attempt; empty: as the job."""
    retry_due_ms: int | None = None
    """When the newest attempt enters, or entered; None: it is the first."""
    placed_ahead: str = ""
    """The node that its next attempt got before this one was gone from the machine."""
    checkpoint_at_ms: int | None = None
    """When it last said that what it did is saved."""
    stop_grace_ms: int | None = None
    """Between being asked to stop and being killed, where that is not its own grace."""
    reserved: bool = False
    """The next room is kept for it: an administrator switched that on, or it waited as long as its queue allows."""
    suspended_by: str = ""
    """Who wants it to stand still; empty: nobody does."""
    suspended_at_ms: int = 0
    """Since when."""
    suspended_ms: int = 0
    """For how long its newest attempt stood still before; that does not count for its time limit."""
    hold_next: str = ""
    """Who wants it on hold as soon as it waits again; empty: nobody does."""
    course_changed: bool = False
    """Its time limit is another one than when its newest attempt got its place."""
    no_retry: str = ""
    """Why it was not tried (or not tried again), as part of a sentence."""
    streams: Streams = NONE
    """Files of its user that its newest attempt reads from and writes to, as whole paths."""
    due: list[DueNotice] = field(default_factory=list)
    """Messages about it that are still to be sent."""

    @property
    def key(self) -> str:
        """The name of the job for ever."""
        return self.spec.key

    @property
    def application(self) -> str:
        """What the scheduler calls it with all that it is a part of: its array, else itself."""
        return self.spec.application

    @property
    def ask_key(self) -> str:
        """What the scheduler calls its newest attempt."""
        return self.ask or self.spec.key

    @property
    def runs(self) -> range:
        """The numbers of all attempts that got a place."""
        return range(1, self.attempt + 1)

    def begin_attempt(self) -> None:
        """It has a place. From now on its files are what their names say now."""
        self.attempt += 1
        self.streams = self.files()

    def announce(self, what: str, whole: bool | None) -> None:
        """It has started, or ended, and so has (`whole`: well or not) or has not (None) all that it came with.

        Who submitted what is refused was told so at once. What a quota refuses when its time has come has ended badly.
        """
        if self.state is not State.REJECTED or self.ended_at_ms != self.submitted_at_ms:
            well = self.state is State.SUCCEEDED
            self.due += notices.due(self.spec.notify, what, self.attempt, well=well, whole=whole)

    def notified(self, record: JobNotified, at_ms: int) -> None:
        """A message was sent, or given up."""
        sent = DueNotice(number=record.number, what=record.what, attempt=record.attempt)
        self.due = [each for each in self.due if each != sent]
        to = shown(self.spec.notify[record.number].to)
        self.remember(at_ms, "message", f"to {to}, given up: {record.wrong}" if record.wrong else f"sent to {to}")

    def forget_values(self) -> None:
        """It has ended: its values may be secrets, and nobody needs them or its script any more."""
        self.spec = replace(self.spec, env=dict.fromkeys(self.spec.env, ""), script="")

    def files(self) -> Streams:
        """Its files as whole paths, as they would be now. Without one of its own, standard error goes with output."""
        spec = self.spec
        if (given := spec.streams) is None:
            return NONE
        words = patterns.words_of(spec.key, spec.name, spec.user, self.node)
        stdin, stdout, stderr = (
            patterns.path_of(each, spec.cwd, words) for each in (given.stdin, given.stdout, given.stderr)
        )
        return replace(given, stdin=stdin, stdout=stdout, stderr=stderr or stdout)

    def start_over(self, over: Attempt) -> None:
        """The attempt is over; what is said of one attempt alone is void."""
        if len(self.past) >= KEEP_HISTORY:
            del self.past[KEEP_HISTORY // 2]
        still_ms = self.suspended_ms + (max(over.ended_at_ms - self.suspended_at_ms, 0) if self.suspended_by else 0)
        self.past.append(replace(over, suspended_ms=still_ms))
        self.node, self.evict_cause, self.evicted_for, self.error, self.note, self.waits_for = "", "", "", "", "", ""
        self.allocated_at_ms = self.started_at_ms = self.pid = self.exit_code = self.signal = None
        self.cpu_ms = self.peak_memory_bytes = 0
        self.gpus, self.released, self.checkpoint_at_ms, self.stop_grace_ms = (), False, None, None
        self.course_changed, self.hold_next, self.evict_rule = False, "", ""
        self.suspended_by, self.suspended_at_ms, self.suspended_ms = "", 0, 0

    @property
    def ended(self) -> bool:
        """Whether its life is over."""
        return self.state in ENDED

    def remember(self, at_ms: int, what: str, detail: str = "") -> None:
        """Add to its history; the middle of a very long one is dropped."""
        if len(self.history) >= KEEP_HISTORY:
            del self.history[KEEP_HISTORY // 2]
        self.history.append(HistoryEntry(at_ms, what, detail))

    def requeued(self, record: JobRequeued, at_ms: int) -> None:
        """It was told to stop, to wait again."""
        self.evict_cause = str(Cause.REQUEUED)
        self.hold_next = record.who if record.hold else ""
        why = f": {record.why}" if record.why else ""
        self.note = f"requeued by {record.who}{why}"
        self.remember(at_ms, "evicting", self.note)

    def placed(self, queue: str, at_ms: int) -> None:
        """It is in this queue."""
        self.queue = queue
        self.remember(at_ms, "placed", f"in {queue}" + (f" by {self.rule}" if self.rule else ""))

    def moved(self, decision: ApplicationMoved, at_ms: int) -> None:
        """It is in another queue."""
        self.queue = decision.new
        if not self.ended:
            self.remember(at_ms, "moved", f"from {decision.old} to {decision.new} by {decision.who or 'nobody'}")

    def signalled(self, record: JobSignalled, at_ms: int) -> None:
        """Somebody sends its processes a signal."""
        whom = "its first process" if record.first else "its processes"
        self.remember(at_ms, "signal", f"{signal_name(record.number)} to {whom}, by {record.who}")

    def checkpointed(self, at_ms: int) -> None:
        """It has saved what it did so far."""
        self.checkpoint_at_ms = at_ms
        if self.history and self.history[-1].what == "checkpoint":
            self.history.pop()  # It is said over and over, and stands once, with its newest time.
        self.remember(at_ms, "checkpoint", "what it did so far is saved")

    def stand_still(self, record: JobSuspended, at_ms: int) -> None:
        """It stands still from now on, or goes on."""
        self.course_changed = True
        if record.on:
            self.suspended_by, self.suspended_at_ms = record.who, at_ms
        else:
            self.suspended_by, self.suspended_ms = "", self.suspended_ms + at_ms - self.suspended_at_ms
        why = f": {record.why}" if record.why else ""
        self.remember(at_ms, "suspended" if record.on else "resumed", f"by {record.who}{why}")

    @property
    def limit_ms(self) -> int | None:
        """When it is over by its time limit, from its start on; None: nobody knows, or never."""
        limit_ms = self.spec.time_limit_ms
        return None if limit_ms is None or self.state is State.SUSPENDED else limit_ms + self.suspended_ms

    def change(self, record: JobChanged, at_ms: int) -> None:
        """Somebody wants it otherwise."""
        spec = self.spec
        self.course_changed |= self.state in ON_THE_MACHINE and record.time_limit_ms != spec.time_limit_ms
        self.spec = replace(spec, **{name: getattr(record, name) for name in CHANGEABLE})
        said = [
            f"{name.replace('_ms', '').replace('_', ' ')} from {_amount(name, old)} to {_amount(name, new)}"
            for name in CHANGEABLE
            if (old := getattr(spec, name)) != (new := getattr(self.spec, name))
        ]
        why = f": {record.why}" if record.why else ""
        self.remember(at_ms, "changed", f"{', '.join(said)} by {record.who}{why}")

    def while_it_waits(
        self, decision: ReservationSwitched | PriorityChanged | Reserved | ConditionsChanged, at_ms: int
    ) -> None:
        """What was decided about it before it has a place becomes part of its history."""
        if isinstance(decision, Reserved):
            self.remember(at_ms, "reserved", f"space on {decision.node} is held for it")
            return
        if isinstance(decision, ConditionsChanged):
            what, said = "conditions", conditions_changed(decision.old, decision.new, decision.who)
        elif isinstance(decision, PriorityChanged):
            self.priority = decision.new
            what, said = "priority", f"{decision.old} to {decision.new} by {decision.who or 'nobody'}"
        else:
            self.reserved = decision.on
            by = f" by {decision.who}" if decision.who else ""
            what, said = "reservation", f"switched {'on' if decision.on else 'off'}{by}"
        self.remember(at_ms, what, f"{said}: {decision.why}" if decision.why else said)


def conditions_changed(old: Conditions, new: Conditions, who: str) -> str:
    """What is otherwise in what a job waits for before it is in line, in words."""
    by = f" by {who}" if who else ""
    said = []
    if old.held_by != new.held_by:
        said.append(f"put on hold by {new.held_by}" if new.held_by else f"released{by}")
    if old.begin_ms != new.begin_ms:
        said.append(f"to begin at {moment(new.begin_ms)}{by}" if new.begin_ms else f"to begin at once{by}")
    before = {(each.application, each.awaited): each for each in old.after}
    now = {(each.application, each.awaited): each for each in new.after}
    for name in [*before, *(name for name in now if name not in before)]:
        awaited = f"{name[0]} {IN_WORDS[Awaited(name[1])]}"
        if name not in now:
            said.append(f"waits no longer for {awaited}{by}")
        elif name not in before:
            said.append(f"waits for {awaited}{by}")
        elif now[name].never and not before[name].never:
            said.append(f"waits in vain for {awaited}: it {now[name].never}")
    return "; ".join(said)


CHANGEABLE = ("name", "resources", "time_limit_ms", "cancel_never", "command", "cwd", "env", "tags")
"""The fields of a job that may be changed after it was submitted, beside those that the scheduler keeps."""


def _amount(name: str, value: object) -> str:
    if isinstance(value, Resources):
        return format_exactly(value.as_dict())
    if name.endswith("_ms"):
        return duration_exactly(value) if isinstance(value, int) else "nothing"
    if isinstance(value, tuple):
        return shlex.join(value)
    if isinstance(value, Mapping):  # Of an environment the values are nobody's business.
        return ", ".join(value if name == "env" else (f"{key}={text}" for key, text in value.items())) or "nothing"
    return str(value).lower() if isinstance(value, bool) else str(value) or "nothing"


def ending(record: Observed) -> str:
    """How a run ended, for the history."""
    if record.error:
        return record.error
    if record.lost:
        return "how it ended could not be observed"
    if record.started_at_ms is None and record.exit_code is None:
        return "before it had begun"
    how = f"by signal {record.signal}" if record.signal is not None else f"exit status {record.exit_code}"
    return f"{how}; {record.note}" if record.note else how


def to_plain(job: Job) -> Any:
    """A job as plain values, JSON-ready."""
    return msgspec.to_builtins(job, enc_hook=_plain)


def from_plain(plain: Any) -> Job:
    """What `to_plain` described."""
    return msgspec.convert(plain, Job, dec_hook=_unplain)


def _plain(value: Any) -> Any:
    if isinstance(value, Resources):
        return value.as_dict()
    raise NotImplementedError(f"no plain form for {type(value).__name__}")


def _unplain(kind: type, value: Any) -> Any:
    if kind is Resources:
        return Resources(value)
    raise NotImplementedError(f"no plain form for {kind.__name__}")
