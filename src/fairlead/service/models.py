"""The bodies of requests and answers, and what is taken in.

Decides which values a request may have; everything else is refused with its place. Never knows about queues or users.
Invariant: what these models let through can be written to the journal, given to a process, and read back.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from fairlead.core.retries import BACKOFF_MAX_MS
from fairlead.local.history_records import DEFAULT_GRACE_MS
from fairlead.local.whereabouts import full_port
from fairlead.service import fields
from fairlead.service.fields import Amount, Labels, Line, Priority, Text, clean_text

MOST_JOBS = 10_000
MOST_RETRIES = 1000
MOST_BYTES = 8 * 2**20
LONGEST_MS = 10 * 365 * 24 * 3600 * 1000


class Strict(BaseModel):
    """A body of a request: no other fields, no converted types."""

    model_config = ConfigDict(strict=True, extra="forbid")


class RetryDraft(Strict):
    """Whether and how work is tried again when it is broken off (evicted, killed, lost) or fails."""

    limit: Annotated[int, Field(ge=1, le=MOST_RETRIES)] = Field(description="Further attempts at most.")
    backoff_ms: Annotated[int, Field(ge=0, le=BACKOFF_MAX_MS)] = Field(
        0, description="A further attempt enters so long after an end; doubled each time, at most an hour."
    )
    never_on: Annotated[list[Annotated[int, Field(ge=1, le=255)]], Field(max_length=255)] = Field(
        default_factory=list, description="Exit statuses after which it is not tried again; signal N is 128 + N."
    )


class JobDraft(Strict):
    """One command to run."""

    command: Annotated[list[Text], Field(min_length=1, max_length=65_536), AfterValidator(fields.command)] = Field(
        description="The program and its arguments; no shell is involved."
    )
    name: Line = Field("", description="What people call it.")
    queue: Line = Field("", description="A leaf queue; empty: the placement rules choose, else root.default.")
    priority: Priority = 0
    resources: Annotated[dict[Text, Amount], Field(max_length=64), AfterValidator(fields.amounts)] = Field(
        default_factory=lambda: {"vcore": 1000},
        description="vcore in thousandths of a core, memory in bytes, others in units. Default: one core.",
    )
    env: Annotated[dict[Text, Text], Field(max_length=4096), AfterValidator(fields.environment)] = Field(
        default_factory=dict
    )
    cwd: Annotated[str, Field(max_length=4096), AfterValidator(fields.absolute)] | None = Field(
        None, description="Where it runs; default: the user's home directory."
    )
    grace_ms: Annotated[int, Field(ge=0, le=86_400_000)] = Field(
        DEFAULT_GRACE_MS, description="Between being asked to stop (SIGTERM) and being killed (SIGKILL)."
    )
    time_limit_ms: Annotated[int, Field(ge=1, le=LONGEST_MS)] | None = Field(
        None, description="It is stopped after so long."
    )
    tags: Annotated[
        dict[Line, Annotated[Text, Field(max_length=4096)]], Field(max_length=64), AfterValidator(fields.tags)
    ] = Field(default_factory=dict)
    labels: Labels = Field(default_factory=dict, description="What disruption budgets, affinity and spread select by.")
    node_selector: Labels = Field(default_factory=dict, description="Attributes that its node must have.")
    ports: Annotated[list[Annotated[Line, AfterValidator(full_port)]], Field(max_length=64)] = Field(
        default_factory=list, description="Host ports that it uses: no other work with one of them runs meanwhile."
    )
    beside: Labels = Field(default_factory=dict, description="It runs only while work with each of these labels runs.")
    apart_from: Labels = Field(default_factory=dict, description="It never runs together with work with such a label.")
    retry: RetryDraft | None = Field(None, description="Without it, work is not tried again.")
    idle: bool = Field(False, description="It runs on what others leave over, beyond its queue's maximum.")
    priority_class: Line = Field("", description="Its value takes the place of `priority`.")


class Checkpoint(Strict):
    """What a job did so far is saved."""

    attempt: Annotated[int, Field(ge=1)] | None = Field(None, description="Which attempt says so (FAIRLEAD_ATTEMPT).")


class ReservationOrder(Strict):
    """The next room is kept for a job, or no longer."""

    on: bool = True
    why: Line = Field("", description="For the record.")


class Submission(Strict):
    """Jobs to take in, all or none."""

    jobs: Annotated[list[JobDraft], Field(min_length=1, max_length=MOST_JOBS)]


class Nothing(Strict):
    """An empty object."""


class Cancellation(Strict):
    """What is meant to end."""

    state: Literal["waiting", "running", "stopping"] | None = Field(None, description="Only while it is in this state.")


class JobChange(Strict):
    """A new priority for a job that waits, or another queue for one that waits or runs."""

    priority: Priority | None = None
    queue: Annotated[str, Field(min_length=1, max_length=1024), AfterValidator(fields.one_line)] | None = Field(
        None, description="The full path of a leaf queue."
    )

    why: Line = Field("", description="Why the priority changes, for the record.")

    @model_validator(mode="after")
    def says_something(self) -> Self:  # noqa: N804 - a model that is there, no class
        """An empty change is a mistake."""
        if self.priority is None and self.queue is None:
            raise ValueError("says nothing; give a priority, a queue, or both")
        return self


class ConfigText(Strict):
    """A queue file."""

    text: Annotated[str, Field(max_length=4 * 2**20), AfterValidator(clean_text)]


class TokenRequest(Strict):
    """A token to make."""

    name: Line = Field("", description="What it is for.")
    user: Line = Field("", description="Whose it shall be (administrators only); empty: the caller's.")


class Reason(BaseModel):
    """Why something is as it is: a fixed code, a sentence, and the numbers."""

    model_config = ConfigDict(extra="allow")
    code: str
    sentence: str


class JobRow(BaseModel):
    """A job, in short."""

    key: str
    name: str
    queue: str
    user: str
    priority: int
    state: str
    node: str
    exit_code: int | None
    reason: Reason | None
    submitted_at_ms: int
    started_at_ms: int | None
    ended_at_ms: int | None
    resources: dict[str, int]


class JobRows(BaseModel):
    """Jobs that were taken in."""

    jobs: list[JobRow]


class JobPage(BaseModel):
    """One page of a list."""

    jobs: list[JobRow]
    next: str | None = Field(description="Ask for `after` this key to get the next page; null on the last.")
    total: int = Field(description="How many pass the filters.")


class HistoryItem(BaseModel):
    """Something that happened to a job."""

    at_ms: int
    what: str
    detail: str


class Limit(BaseModel):
    """Something that this machine can or cannot enforce."""

    name: str
    enforced: bool
    how: str


class PastAttempt(BaseModel):
    """An attempt that is over."""

    attempt: int
    state: str
    node: str
    started_at_ms: int | None
    ended_at_ms: int
    exit_code: int | None
    signal: int | None
    cpu_ms: int
    peak_memory_bytes: int
    how: str = Field(description="Its end as part of a sentence.")
    on_behalf_of: str = Field(description="The job it had to make room for, or empty.")
    rule: str = Field(description="The rule by which it was told to stop, such as `priority`; or empty.")


class RetryView(BaseModel):
    """Whether and how work is tried again."""

    limit: int
    backoff_ms: int
    never_on: list[int]


class JobFull(JobRow):
    """Everything about a job. Of its environment only the names are shown."""

    command: list[str]
    env: list[str]
    cwd: str
    tags: dict[str, str]
    labels: dict[str, str]
    node_selector: dict[str, str]
    ports: list[str]
    beside: dict[str, str]
    apart_from: dict[str, str]
    idle: bool
    priority_class: str
    retry: RetryView | None
    retry_due_ms: int | None = Field(description="When the attempt that waits enters, or entered; null: none waits.")
    reserved: bool = Field(description="The next room is kept for it; those behind it in its queue wait.")
    checkpoint_at_ms: int | None = Field(description="When it last said that what it did is saved.")
    past: list[PastAttempt] = Field(description="The attempts before the newest one, in order.")
    grace_ms: int
    time_limit_ms: int | None
    pid: int | None
    attempts: int
    signal: int | None
    error: str
    cpu_ms: int
    peak_memory_bytes: int
    gpus: list[int]
    stdout: str | None
    stderr: str | None
    enforcement: list[Limit]
    history: list[HistoryItem]


class Why(BaseModel):
    """Why a job is in its state."""

    key: str
    state: str
    reason: Reason | None
    sentence: str
    queue_position: int | None
    verdict: dict[str, Any] | None = Field(
        description="What it needs, who holds it, every limit on its way, the nodes, and changes that would start it."
    )


class QueueView(BaseModel):
    """A queue with those below it. Amounts that are not limited are left out."""

    path: str
    leaf: bool
    state: str
    max: dict[str, int] | None
    guaranteed: dict[str, int] | None
    allocated: dict[str, int]
    idle: dict[str, int] = Field(
        description="What idle work of this queue and below uses beside `allocated`. "
        "It is part of `allocated` in its resource group and above."
    )
    pending: dict[str, int]
    headroom: dict[str, int] | None
    priority: int | None = Field(description="Of what waits below, with offsets and fences; null: nothing waits.")
    running_apps: int
    max_apps: int = Field(description="0: unlimited.")
    waiting: int
    children: list[QueueView]


class Queues(BaseModel):
    """The queue trees, one a partition."""

    queues: list[QueueView]


class TaintShown(Strict):
    """A node keeps away whatever does not tolerate this."""

    key: Annotated[Line, Field(min_length=1)]
    value: Line = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] = "NoSchedule"


class NodeLabels(Strict):
    """What a node says about itself, all of it."""

    attributes: Labels = Field(default_factory=dict)
    taints: Annotated[list[TaintShown], Field(max_length=64)] = Field(default_factory=list)


class NodeView(BaseModel):
    """A node."""

    id: str
    capacity: dict[str, int]
    allocated: dict[str, int]
    free: dict[str, int]
    schedulable: bool
    attributes: dict[str, str]
    taints: list[TaintShown]
    running: int


class Nodes(BaseModel):
    """All nodes."""

    nodes: list[NodeView]


class ConfigVersion(BaseModel):
    """A queue file that was put in force."""

    version: int
    at_ms: int
    who: str
    source: str = Field(description="`file PATH`, `api`, `rollback` or `built-in`.")
    checksum: str
    origin: int = Field(description="The version whose text it is: itself, or the one that was put back.")
    in_force: bool


class ConfigAnswer(ConfigVersion):
    """A queue file with its text."""

    text: str


class ConfigHistory(BaseModel):
    """All versions that are kept, the newest first."""

    versions: list[ConfigVersion]


class ConfigProblem(BaseModel):
    """Something wrong with a queue file."""

    line: int
    column: int
    path: str
    value: str
    message: str
    severity: str


class ConfigFileStatus(BaseModel):
    """How the watched file stands to what is in force."""

    path: str
    state: str = Field(description="`in-force`, `differs` (something else was applied since), `refused` or `missing`.")
    checksum: str | None
    checked_at_ms: int
    refused: str = Field(description="Why the scheduler refused it, or empty.")
    problems: list[ConfigProblem]


class ConfigStatus(ConfigVersion):
    """What is in force, and the file."""

    file: ConfigFileStatus | None


class ConfigVerdict(BaseModel):
    """Whether a queue file could be used."""

    ok: bool
    errors: list[ConfigProblem]
    warnings: list[ConfigProblem]


class TokenView(BaseModel):
    """A token, without what is secret about it."""

    id: str
    name: str
    user: str
    created_at_ms: int
    used_at_ms: int | None


class NewToken(TokenView):
    """A token that was just made; its text is shown this once."""

    token: str


class Tokens(BaseModel):
    """The caller's tokens (all of them, for administrators)."""

    tokens: list[TokenView]


class Done(BaseModel):
    """It is done."""

    ok: bool


class ServiceView(BaseModel):
    """What this service is and can do."""

    version: str
    pid: int
    user: str
    is_admin: bool
    serves: str
    runs_as: str
    state_dir: str
    started_at_ms: int
    node: str
    capabilities: dict[str, dict[str, Any]]
    journal: dict[str, Any]
    recovery: dict[str, Any]
    partition_total: dict[str, int]
    config: ConfigStatus
    problems: list[str] = Field(description="What is wrong at the moment, as sentences; empty when all is well.")


class Health(BaseModel):
    """Whether all is well."""

    status: str = Field(description="`ok` or `failing`.")
    problems: list[str] = Field(description="What is wrong, as sentences.")
