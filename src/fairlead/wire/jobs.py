"""Jobs: what is asked for, and how they are shown. On a cluster a job is a pod.

Decides the fields. Never what may be seen of them by whom. Invariant: times are milliseconds since 1970, durations end
in `_ms`; amounts are `fields.Amounts`: cpu in cores, memory in bytes.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta

from fairlead.wire import arrays, fields, limit_signals
from fairlead.wire.fields import Amounts, AmountsDraft, Labels, Line, Page, Priority, Request, Shape, said
from fairlead.wire.notices import Notice, Notices
from fairlead.wire.streams import OpenMode, Output, StreamsDraft

MOST_JOBS = 10_000
MOST_RETRIES = 1000
BACKOFF_MAX_MS = 3_600_000
LONGEST_MS = 10 * 365 * 24 * 3600 * 1000
GRACE_MS = 30_000

JobState = Literal[
    "waiting",
    "running",
    "suspended",
    "stopping",
    "succeeded",
    "failed",
    "cancelled",
    "evicted",
    "lost",
    "timed_out",
    "rejected",
    "deleted",
]
"""Where a job is in its life; on a cluster a pod that somebody took away is `deleted`."""
Stoppable = Literal["waiting", "running", "suspended", "stopping"]

# -- requests -------------------------------------------------------------------------------------------------------


class RetryDraft(Request, frozen=True, kw_only=True):
    """Whether and how a job is tried again when it is broken off (evicted, killed, lost) or fails."""

    limit: Annotated[
        int, Meta(ge=0, le=MOST_RETRIES, description="Further attempts at most; 0: none, whatever its queue says.")
    ]
    backoff_ms: Annotated[
        int,
        Meta(
            ge=0,
            le=BACKOFF_MAX_MS,
            description="A further attempt enters so long after an end; doubled each time, at most an hour.",
        ),
    ] = 0
    never_on: Annotated[
        list[Annotated[int, Meta(ge=1, le=255)]],
        Meta(max_length=255, description="Exit statuses after which it is not tried again; signal N is 128 + N."),
    ] = []


class Dependency(Request, frozen=True, kw_only=True):
    """Another job, and what is waited for of it."""

    key: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=64,
            description="The other job; `12.5-9`: parts of an array; `#0`: the first job of the same request.",
        ),
    ]
    awaited: Annotated[
        Literal["started", "ok", "any", "not-ok"],
        said("That it starts (or ends without), ends well, ends however, or ends otherwise than well."),
    ] = "ok"


Dependencies = Annotated[list[Dependency], Meta(max_length=1000)]
BEGIN_MAX_MS = 253_000_000_000_000
"""In the year 9987: later ones cannot be written as dates."""


class JobDraft(StreamsDraft, frozen=True, kw_only=True):
    """One command to run."""

    CHECKS: ClassVar = {
        **StreamsDraft.CHECKS,
        "command": fields.command,
        "name": fields.one_line,
        "queue": fields.one_line,
        "resources": fields.amounts,
        "env": fields.environment,
        "cwd": fields.absolute,
        "tags": fields.tags,
        "labels": fields.labels,
        "node_selector": fields.labels,
        "ports": fields.each(fields.full_port),
        "beside": fields.labels,
        "apart_from": fields.labels,
        "priority_class": fields.one_line,
        "array": arrays.checked,
        "limit_signal": limit_signals.checked,
    }

    command: Annotated[
        list[str],
        Meta(min_length=1, max_length=65_536, description="The program and its arguments; no shell is involved."),
    ]
    name: Annotated[Line, said("What people call it.")] = ""
    queue: Annotated[Line, said("A leaf queue; empty: the placement rules choose, else root.default.")] = ""
    priority: Priority = 0
    resources: Annotated[
        AmountsDraft | None,
        said("cpu in cores, such as 2 or 0.5, memory in bytes, others in units. Default: the queue's, else one core."),
    ] = None
    env: Annotated[dict[str, str], Meta(max_length=4096)] = {}
    cwd: Annotated[
        Annotated[str, Meta(max_length=4096)] | None, said("Where it runs; default: the user's home directory.")
    ] = None
    grace_ms: Annotated[
        int, Meta(ge=0, le=86_400_000, description="Between being asked to stop (SIGTERM) and being killed (SIGKILL).")
    ] = GRACE_MS
    time_limit_ms: Annotated[Annotated[int, Meta(ge=1, le=LONGEST_MS)] | None, said("It is stopped after so long.")] = (
        None
    )
    limit_signal: Annotated[
        Line,
        said(
            "A signal so many seconds (60 if not said) before that, once in each attempt: USR1@60. Of a script it "
            "goes to what that has started; B:USR1@60: to its first process alone, A:USR1@60: to all its processes."
        ),
    ] = ""
    tags: Annotated[dict[Line, Annotated[str, Meta(max_length=4096)]], Meta(max_length=64)] = {}
    labels: Annotated[Labels, said("What disruption budgets, affinity and spread select by.")] = {}
    node_selector: Annotated[Labels, said("Attributes that its node must have.")] = {}
    ports: Annotated[
        list[Line],
        Meta(max_length=64, description="Host ports that it uses: no other job with one of them runs meanwhile."),
    ] = []
    beside: Annotated[Labels, said("It runs only while a job with each of these labels runs.")] = {}
    apart_from: Annotated[Labels, said("It never runs together with a job with such a label.")] = {}
    retry: Annotated[RetryDraft | None, said("Without it, its queue says whether the job is tried again.")] = None
    idle: Annotated[bool, said("It runs on what others leave over, beyond its queue's maximum.")] = False
    priority_class: Annotated[Line, said("Its value takes the place of `priority`.")] = ""
    hold: Annotated[bool, said("It waits until it is released.")] = False
    begin_at_ms: Annotated[
        int, Meta(ge=0, le=BEGIN_MAX_MS, description="It does not begin before this moment; 0: at once.")
    ] = 0
    after: Annotated[Dependencies, said("It waits for all of these.")] = []
    notify: Annotated[Notices, said("Messages about it.")] = []
    on_never: Annotated[
        Literal["wait", "cancel"],
        said("What becomes of it when what it waits for can never come about any more: it waits on and says so."),
    ] = "wait"
    array: Annotated[Line, said("The indices of its parts, such as 0-15, 1,3,5-7, 1-7:2; 1-200%8: 8 at a time.")] = ""


class Submission(Request, frozen=True, kw_only=True):
    """Jobs to take in, all or none."""

    jobs: Annotated[list[JobDraft], Meta(min_length=1, max_length=MOST_JOBS)]


# -- answers --------------------------------------------------------------------------------------------------------


class Reason(Shape, frozen=True, kw_only=True):
    """Why something is as it is: a fixed code, a sentence, and the numbers and names that the sentence is made of."""

    code: str
    sentence: str
    values: dict[str, Any] = {}


def reason(said: dict[str, Any] | None) -> Reason | None:
    """A reason that the books gave as one flat object."""
    if said is None:
        return None
    rest = {name: value for name, value in said.items() if name not in ("code", "sentence")}
    return Reason(code=said["code"], sentence=said["sentence"], values=fields.with_cpu(rest))


class Job(Shape, frozen=True, kw_only=True):
    """A job, in short; an array as one."""

    key: Annotated[str, Meta(min_length=1, description="As it was asked for: parts of an array may be a long list.")]
    name: str
    queue: str
    user: str
    priority: int
    state: JobState
    node: str
    exit_code: int | None
    reason: Reason | None
    submitted_at_ms: int
    started_at_ms: int | None
    ended_at_ms: int | None
    resources: Amounts
    parts: Annotated[arrays.Parts | None, said("Of an array; its state is that of its liveliest part.")] = None
    suspended_at_ms: Annotated[int | None, said("Since when it stands still, or did when it was told to stop.")] = None
    suspended_ms: Annotated[int, said("For how long it stood still before, since it started.")] = 0
    time_limit_ms: Annotated[int | None, said("It is stopped after so long; null: it has no limit.")] = None
    cpu_ms: Annotated[int, said("Processor time that its newest attempt used, known at its end.")] = 0
    peak_memory_bytes: Annotated[int, said("The most memory that its newest attempt used, known at its end.")] = 0
    signal: Annotated[int | None, said("The one that ended it; null: none did.")] = None


class SubmittedJob(Job, frozen=True, kw_only=True):
    """A job that was taken in, or changed."""

    never: Annotated[
        Reason | None,
        said(
            "Why it can never run as it is, and what would have to be otherwise; absent where its size does not say so."
        ),
    ] = None


class JobList(Shape, frozen=True, kw_only=True):
    """Jobs that were taken in."""

    jobs: list[SubmittedJob]


class JobPage(Page, frozen=True, kw_only=True):
    """One page of a list."""

    jobs: list[Job]


class HistoryItem(Shape, frozen=True, kw_only=True):
    """Something that happened to a job."""

    at_ms: int
    what: str
    detail: str


class Capability(Shape, frozen=True, kw_only=True):
    """Something that a machine can or cannot enforce."""

    name: str
    enforced: bool
    how: str


class PastAttempt(Shape, frozen=True, kw_only=True):
    """An attempt that is over."""

    attempt: int
    state: JobState
    node: str
    started_at_ms: int | None
    ended_at_ms: int
    exit_code: int | None
    signal: int | None
    cpu_ms: int
    peak_memory_bytes: int
    how: Annotated[str, said("Its end as part of a sentence.")]
    on_behalf_of: Annotated[str, said("The job it had to make room for, or empty.")]
    rule: Annotated[str, said("The rule by which it was told to stop, such as `priority`; or empty.")]
    suspended_ms: Annotated[int, said("For how long it stood still, between its start and its end.")] = 0


class Retry(Shape, frozen=True, kw_only=True):
    """Whether and how a job is tried again."""

    limit: int
    backoff_ms: int
    never_on: list[int]


class JobDetails(Job, frozen=True, kw_only=True):
    """Everything about a job. Of its environment only the names are shown; what a place does not know is absent."""

    labels: dict[str, str]
    idle: bool
    grace_ms: int | None
    limit_signal: Annotated[str, said("The signal before its time limit, such as B:SIGUSR1@60; or empty.")] = ""
    command: list[str] = []
    env: list[str] = []
    cwd: str = ""
    tags: dict[str, str] = {}
    node_selector: dict[str, str] = {}
    ports: list[str] = []
    beside: dict[str, str] = {}
    apart_from: dict[str, str] = {}
    priority_class: str = ""
    retry: Retry | None = None
    retry_due_ms: Annotated[int | None, said("When the attempt that waits enters, or entered; null: none waits.")] = (
        None
    )
    reserved: Annotated[bool, said("The next room is kept for it; those behind it in its queue wait.")] = False
    held_by: Annotated[str, said("Who put it on hold; empty: it is not.")] = ""
    begin_at_ms: Annotated[int, said("It waits for this moment; 0: for none.")] = 0
    after: Annotated[list[Dependency], said("What it still waits for of other jobs.")] = []
    rerun_of: Annotated[str, said("The job that it repeats, or empty.")] = ""
    on_never: Annotated[str, said("`cancel`: it ends when what it waits for can never come about any more.")] = "wait"
    checkpoint_at_ms: Annotated[int | None, said("When it last said that what it did is saved.")] = None
    past: Annotated[list[PastAttempt], said("The attempts before the newest one, in order.")] = []
    pid: int | None = None
    attempts: int = 0
    error: str = ""
    memory_bytes: Annotated[int | None, said("What it uses now; null: it does not run.")] = None
    gpus: list[int] = []
    stdin: Annotated[str, said("The file that it reads from; empty: /dev/null.")] = ""
    stdout: Annotated[str | None, said("The file with what it writes.")] = None
    stderr: str | None = None
    terminal: bool = False
    notify: list[Notice] = []
    own_files: Annotated[list[Output], said("Which outputs go to files of its own; the service keeps the others.")] = []
    open_mode: Annotated[OpenMode, said("Of its own files, at each attempt.")] = "truncate"
    umask: Annotated[str, said("Permissions that files which it makes do not have, in octal digits.")] = ""
    enforcement: list[Capability] = []
    history: list[HistoryItem] = []
    uid: Annotated[str, said("Of the pod, on a cluster.")] = ""
    application: Annotated[str, said("The application of the pod, on a cluster.")] = ""
    task_group: str = ""
    placeholder: bool = False
    nominated: Annotated[str, said("The node that is being made free for the pod, or empty.")] = ""
    bound: Annotated[bool, said("Whether the pod was given to its node.")] = False


class ScriptText(Shape, frozen=True, kw_only=True):
    """The script of a job."""

    script: str


class Cleaned(Shape, frozen=True, kw_only=True):
    """What went, or would go."""

    jobs: int
    bytes: Annotated[int, said("Of their output.")]
    records: Annotated[int, said("Of the journal; for administrators.")]


class Done(Shape, frozen=True, kw_only=True):
    """It is done."""

    ok: bool
