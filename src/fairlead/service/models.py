"""The bodies of requests and answers, and what is taken in.

Decides which values a request may have; everything else is refused with its place. Never knows about queues or users.
Invariant: what these models let through can be written to the journal, given to a process, and read back.
"""

from __future__ import annotations

import posixpath
import re
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from fairlead.core.resources import INT64_MAX
from fairlead.core.specs import PRIORITY_MAX, PRIORITY_MIN, TAG_APP_CREATION_TIME, TAG_CREATION_TIME, TAG_FORCE_CREATE
from fairlead.local.records import DEFAULT_GRACE_MS

MOST_WORKS = 10_000
MOST_BYTES = 8 * 2**20
LONGEST_MS = 10 * 365 * 24 * 3600 * 1000
_OWN_NAMES = frozenset({"FAIRLEAD_KEY", "FAIRLEAD_NAME", "FAIRLEAD_QUEUE", "FAIRLEAD_ATTEMPT"})
_RESERVED_TAGS = frozenset({TAG_FORCE_CREATE, TAG_CREATION_TIME, TAG_APP_CREATION_TIME})
_RESOURCE = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_./]*[A-Za-z0-9])?")
_HINTS = {
    "cpu": "the resource is called vcore, in thousandths of a core (2 cores: 2000)",
    "cpus": "the resource is called vcore, in thousandths of a core (2 cores: 2000)",
    "mem": "the resource is called memory, in bytes",
    "ram": "the resource is called memory, in bytes",
    "gpus": "the resource is called gpu",
}


def clean_text(text: str) -> str:
    """A text that can be written down and read back. Raises `ValueError`."""
    if "\0" in text:
        raise ValueError("must not contain a NUL character")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("must be valid Unicode, without half of a surrogate pair") from None
    return text


def _one_line(text: str) -> str:
    if any(ord(c) < 32 or ord(c) == 127 for c in text):
        raise ValueError("must not contain control characters")
    return clean_text(text)


def _absolute(path: str) -> str:
    if not posixpath.isabs(path):
        raise ValueError("must be an absolute path, such as /home/ada/project")
    return clean_text(path)


def _environment(env: dict[str, str]) -> dict[str, str]:
    for name in env:
        if not name or "=" in name:
            raise ValueError(f"{name!r} is no name of an environment variable")
        if name in _OWN_NAMES:
            raise ValueError(f"{name} is set by the service; leave it out")
    if sum(len(n) + len(v) for n, v in env.items()) > 131_072:
        raise ValueError("is larger than 128 KiB in total; put large values into a file")
    return env


def _amounts(resources: dict[str, int]) -> dict[str, int]:
    for name in resources:
        if name in _HINTS:
            raise ValueError(f"there is no resource {name!r}: {_HINTS[name]}")
        if not _RESOURCE.fullmatch(name) or len(name) > 253:
            raise ValueError(f"{name!r} is no name of a resource; use letters, digits and - _ . /")
    if not any(resources.values()):
        raise ValueError("asks for nothing; ask for some vcore (1000 is one core), or leave resources out")
    return resources


def _tags(tags: dict[str, str]) -> dict[str, str]:
    for name in tags:
        if name in _RESERVED_TAGS:
            raise ValueError(f"the tag {name!r} is reserved for the service; choose another name")
    return tags


def _command(command: list[str]) -> list[str]:
    if not command[0]:
        raise ValueError("the program is an empty text; name one, such as /bin/sh")
    if sum(len(part) for part in command) > 1_048_576:
        raise ValueError("is longer than 1 MiB in total; put the data into a file")
    return command


Text = Annotated[str, AfterValidator(clean_text)]
Line = Annotated[str, Field(max_length=256), AfterValidator(_one_line)]
Amount = Annotated[int, Field(ge=0, le=INT64_MAX)]
Priority = Annotated[int, Field(ge=PRIORITY_MIN, le=PRIORITY_MAX, description="Any 32-bit integer; higher wins.")]


class Strict(BaseModel):
    """A body of a request: no other fields, no converted types."""

    model_config = ConfigDict(strict=True, extra="forbid")


class WorkDraft(Strict):
    """One command to run."""

    command: Annotated[list[Text], Field(min_length=1, max_length=65_536), AfterValidator(_command)] = Field(
        description="The program and its arguments; no shell is involved."
    )
    name: Line = Field("", description="What people call it.")
    queue: Line = Field("", description="A leaf queue; empty: the placement rules choose, else root.default.")
    priority: Priority = 0
    resources: Annotated[dict[Text, Amount], Field(max_length=64), AfterValidator(_amounts)] = Field(
        default_factory=lambda: {"vcore": 1000},
        description="vcore in thousandths of a core, memory in bytes, others in units. Default: one core.",
    )
    env: Annotated[dict[Text, Text], Field(max_length=4096), AfterValidator(_environment)] = Field(default_factory=dict)
    cwd: Annotated[str, Field(max_length=4096), AfterValidator(_absolute)] | None = Field(
        None, description="Where it runs; default: the user's home directory."
    )
    grace_ms: Annotated[int, Field(ge=0, le=86_400_000)] = Field(
        DEFAULT_GRACE_MS, description="Between being asked to stop (SIGTERM) and being killed (SIGKILL)."
    )
    time_limit_ms: Annotated[int, Field(ge=1, le=LONGEST_MS)] | None = Field(
        None, description="It is stopped after so long."
    )
    tags: Annotated[
        dict[Line, Annotated[Text, Field(max_length=4096)]], Field(max_length=64), AfterValidator(_tags)
    ] = Field(default_factory=dict)


class Submission(Strict):
    """Works to take in, all or none."""

    works: Annotated[list[WorkDraft], Field(min_length=1, max_length=MOST_WORKS)]


class Nothing(Strict):
    """An empty object."""


class WorkChange(Strict):
    """A new priority for a work that waits, or another queue for one that waits or runs."""

    priority: Priority | None = None
    queue: Annotated[str, Field(min_length=1, max_length=1024), AfterValidator(_one_line)] | None = Field(
        None, description="The full path of a leaf queue."
    )

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


class WorkRow(BaseModel):
    """A piece of work, in short."""

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


class WorkRows(BaseModel):
    """Works that were taken in."""

    works: list[WorkRow]


class WorkPage(BaseModel):
    """One page of a list."""

    works: list[WorkRow]
    next: str | None = Field(description="Ask for `after` this key to get the next page; null on the last.")
    total: int = Field(description="How many pass the filters.")


class HistoryItem(BaseModel):
    """Something that happened to a piece of work."""

    at_ms: int
    what: str
    detail: str


class Limit(BaseModel):
    """Something that this machine can or cannot enforce."""

    name: str
    enforced: bool
    how: str


class WorkFull(WorkRow):
    """Everything about a piece of work. Of its environment only the names are shown."""

    command: list[str]
    env: list[str]
    cwd: str
    tags: dict[str, str]
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
    """Why a piece of work is in its state."""

    key: str
    state: str
    reason: Reason | None
    sentence: str
    queue_position: int | None


class QueueView(BaseModel):
    """A queue with those below it. Amounts that are not limited are left out."""

    path: str
    leaf: bool
    state: str
    max: dict[str, int] | None
    guaranteed: dict[str, int] | None
    allocated: dict[str, int]
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


class NodeView(BaseModel):
    """A node."""

    id: str
    capacity: dict[str, int]
    allocated: dict[str, int]
    free: dict[str, int]
    schedulable: bool
    attributes: dict[str, str]
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
