"""What the journal keeps about jobs on this machine, beside the scheduler's own events.

Decides the words: what a user asked for, and what became of it, each a frozen value that the codec can write. Never
says what follows from them (`jobs` does). Invariant: the book of jobs is these records and the scheduler's
decisions, in journal order, and nothing else; so it can be rebuilt from them at any time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, get_args

from fairlead.core.model.conditions import Dependency
from fairlead.core.model.constraints import ANYWHERE, IN, AffinityTerm, Constraints, Requirement
from fairlead.core.model.resources import NOTHING, Resources
from fairlead.core.model.specs import RetrySpec
from fairlead.journal import codec
from fairlead.local.gpus import Gpu
from fairlead.local.notices import Notice
from fairlead.local.runs import Course, RunReport
from fairlead.local.streams import Streams
from fairlead.wire import arrays

DEFAULT_GRACE_MS = 30_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ArraySpec:
    """The parts that an array was submitted with."""

    indices: str
    """Such as `1-200` or `1,3,5-7`."""
    at_once: int = 0
    """So many of them in line or running at a time; 0: all. The scheduler knows what it is by now."""
    whole: str = ""
    """All indices of the array of which it repeats some; empty: they are its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec:
    """One command that somebody wants to have run. `key` names it for ever, also as ask and, unless it is a part of an
    array (`12.7`), as application.
    """

    key: str
    user: str
    uid: int
    command: tuple[str, ...]
    """The program and its arguments."""
    queue: str
    groups: tuple[str, ...] = ()
    """The names of the user's groups when it was submitted."""
    resources: Resources = NOTHING
    """`vcore` in thousandths, `memory` in bytes, all others in units."""
    priority: int = 0
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str = "/"
    grace_ms: int = DEFAULT_GRACE_MS
    """Between being asked to stop and being killed."""
    time_limit_ms: int | None = None
    limit_signal: str = ""
    """A signal some time before that (`wire.limit_signals`); empty: none."""
    name: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    """What disruption budgets, affinity and spread select by."""
    retry: RetrySpec | None = None
    """Whether it is tried again when it is broken off or fails."""
    idle: bool = False
    """It runs on what others leave over, and gives it back."""
    priority_class: str = ""
    where: Constraints = ANYWHERE
    """Where it may run (`where_of`)."""
    hold: bool = False
    """It waits until it is released."""
    begin_ms: int = 0
    """It does not begin before this time."""
    after: tuple[Dependency, ...] = ()
    """What has to become of other jobs before."""
    rerun_of: str = ""
    """The job that it repeats; empty: none."""
    cancel_never: bool = False
    """It is cancelled when what it waits for can never come about any more; otherwise it waits on and says so."""
    array: ArraySpec | None = None
    """The array that it is a part of, or is to become; None: it is a job of its own."""

    @property
    def application(self) -> str:
        """What the scheduler calls it with all that it is a part of."""
        return self.key.partition(".")[0]

    @property
    def index(self) -> int | None:
        """Which part of its array it is; None: none."""
        index = self.key.partition(".")[2]
        return int(index) if index else None

    @property
    def count(self) -> int:
        """How many jobs come of it when it is submitted."""
        return arrays.count(self.array.indices) if self.array is not None else 1

    streams: Streams | None = None
    """Files of its user that it reads from and writes to, as patterns; None: none."""
    is_script: bool = False
    """The first word of its command is the name of a script."""
    script: str = ""
    """The text of that, as long as the job has not ended."""
    notify: tuple[Notice, ...] = ()
    """Messages that its user wants about it."""
    terminal: bool = False
    """It runs at a terminal of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSubmitted:
    """It was taken in. `request` is the submitter's own name for the submission, so that a repeated one is known."""

    job: JobSpec
    request: str = ""
    digest: str = ""
    """Of the submission's content: the same `request` with another content is a mistake."""
    rule: str = ""
    """What chooses its queue: a placement rule, or `the request`, `the default`."""
    indices: tuple[int, ...] = ()
    """These parts of it, where it is an array; none: it is a job of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayBrokenOff:
    """The service ended, or could not go on, while the parts of an array came in: those that did are all of it, unless
    it is submitted again under the same request.
    """

    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRefused:
    """Why the scheduler did not take a job in, in words that say what to do."""

    key: str
    code: str
    sentence: str
    queue: str = ""
    """The queue that would have to let him in; empty where it is not about access."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobWaits:
    """A waiting job waits for something else than before."""

    key: str
    code: str
    subject: str
    """Which queue, node, user or group is in the way."""
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobChanged:
    """What its owner, or who administers its queue, wants of it is this from now on."""

    key: str
    name: str
    resources: Resources
    time_limit_ms: int | None
    cancel_never: bool
    command: tuple[str, ...]
    cwd: str
    env: Mapping[str, str]
    tags: Mapping[str, str]
    who: str
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSignalled:
    """Its processes are sent a signal."""

    key: str
    who: str
    number: int
    first: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStarted:
    """The machine executes it."""

    key: str
    attempt: int
    pid: int | None = None
    started_at_ms: int | None = None
    gpus: tuple[int, ...] = ()
    gpu_uuids: tuple[str, ...] = ()
    """Of those of these whose UUIDs are known: numbers may mean other devices after a change of the machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCancelRequested:
    """Somebody who may do so wants it to end; `why`: what can never come about, where that is the service itself."""

    key: str
    who: str
    why: str = ""
    now: bool = False
    """It is killed at once, without its grace."""
    waited: bool = False
    """It is over with that; what runs ends when it has stopped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRequeued:
    """Somebody who may do so wants a running job to stop and to wait again (`hold`: on hold)."""

    key: str
    who: str
    hold: bool = False
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSuspended:
    """Somebody who may do so wants a running job to stand still, or (not `on`) to go on."""

    key: str
    who: str
    on: bool = True
    why: str = ""

    @property
    def step(self) -> str:
        """The step of the life of the job that it is."""
        return "suspend" if self.on else "resume"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPressed:
    """The machine runs short of memory, and this job is told to stop for it."""

    key: str
    grace_ms: int
    """Between being asked to stop and being killed."""
    sentence: str
    """Why this one, with the figures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryShort:
    """The machine began to run short of memory (`short`), or has enough again."""

    short: bool
    closed_node: str = ""
    """The node that takes no new work for it; empty: it was closed already, or stays as it is."""
    sentence: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCheckpointed:
    """A running job has saved what it did."""

    key: str
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JobNotified:
    """A message about a job was sent, or given up."""

    key: str
    number: int
    """Which of those that its user wants."""
    what: str
    attempt: int
    wrong: str = ""
    """Why it was given up; empty: it was sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobsCleaned:
    """Jobs that ended long ago have left the book, with all that they wrote."""

    before_ms: int
    """All that had ended before this time."""
    uid: int | None = None
    """Only those of this user, who is `who`."""
    most: int = 2**31
    """And of all that are left, so many stay: those that ended last."""
    who: str = ""
    """Who wanted it; empty: the service itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed(Course):
    """What the machine observed of an attempt that runs no more, and the `state` that follows from it."""

    key: str
    attempt: int
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEnded(Observed):
    """It runs no more, and its life is over."""

    no_retry: str = ""
    """Why there is no further attempt, as part of a sentence; empty where none was wanted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptEnded(Observed):
    """It runs no more, and is tried again."""


JobRecord = (
    JobSubmitted
    | ArrayBrokenOff
    | JobRefused
    | JobWaits
    | JobChanged
    | JobSignalled
    | JobStarted
    | JobCancelRequested
    | JobRequeued
    | JobSuspended
    | JobCheckpointed
    | JobPressed
    | JobNotified
    | MemoryShort
    | JobsCleaned
    | AttemptEnded
    | JobEnded
)
for _record in get_args(JobRecord):
    codec.register(_record)


def started(report: RunReport, key: str, attempt: int, owned: Sequence[Gpu] = ()) -> JobStarted:
    """The record that a run has begun. `owned`: the devices of the machine."""
    uuids = tuple(each.uuid for each in owned if each.number in report.gpus and each.uuid)
    return JobStarted(
        key=key, attempt=attempt, pid=report.pid, started_at_ms=report.started_at_ms, gpus=report.gpus, gpu_uuids=uuids
    )


def ended(report: RunReport, key: str, attempt: int, state: str) -> JobEnded:
    """The record that a run is over and its job with it."""
    return JobEnded(key=key, attempt=attempt, state=state, **_observed(report))


def attempt_ended(report: RunReport, key: str, attempt: int, state: str) -> AttemptEnded:
    """The record that a run is over and its job is tried again."""
    return AttemptEnded(key=key, attempt=attempt, state=state, **_observed(report))


def _observed(report: RunReport) -> dict[str, Any]:
    return {each.name: getattr(report, each.name) for each in fields(Course)}


def exit_status(observed: Observed) -> int | None:
    """How it ended by itself: its exit status, 128 + N for signal N; None: it did not, or nobody knows."""
    if observed.lost or observed.timed_out:
        return None
    if observed.exit_code is None and observed.signal is not None:
        return 128 + observed.signal
    return observed.exit_code


def where_of(
    node_selector: Mapping[str, str],
    ports: Sequence[str],
    beside: Mapping[str, str],
    apart_from: Mapping[str, str],
) -> Constraints:
    """The constraints of a job. Each label of `beside` and of `apart_from` counts by itself, on the same node."""
    if not (node_selector or ports or beside or apart_from):
        return ANYWHERE
    return Constraints(
        selector=_conditions(node_selector),
        ports=tuple(ports),
        affinity=tuple(AffinityTerm((each,)) for each in _conditions(beside)),
        anti_affinity=tuple(AffinityTerm((each,)) for each in _conditions(apart_from)),
    )


def fields_of(where: Constraints) -> dict[str, Any]:
    """The fields that say this."""
    return {
        "node_selector": {each.key: each.values[0] for each in where.selector},
        "ports": list(where.ports),
        "beside": {term.selector[0].key: term.selector[0].values[0] for term in where.affinity},
        "apart_from": {term.selector[0].key: term.selector[0].values[0] for term in where.anti_affinity},
    }


def _conditions(wanted: Mapping[str, str]) -> tuple[Requirement, ...]:
    return tuple(Requirement(key, IN, (value,)) for key, value in sorted(wanted.items()))
