"""Queues, nodes, events, the service itself, and its errors.

Decides the fields. Never who may see them. Invariant: amounts are `fields.Amounts`: cpu in cores, memory in bytes.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta

from fairlead.wire import fields
from fairlead.wire.configuration import ConfigStatus
from fairlead.wire.course import Course
from fairlead.wire.fields import Amounts, Labels, Line, Name, Page, Request, Shape, said
from fairlead.wire.jobs import Capability

# -- queues ---------------------------------------------------------------------------------------------------------


class Queue(Shape, frozen=True, kw_only=True):
    """A queue with those below it. Amounts that are not limited are left out."""

    partition: str
    path: str
    leaf: bool
    state: str
    max: Amounts | None
    guaranteed: Amounts | None
    allocated: Amounts
    idle: Annotated[
        Amounts,
        said(
            "What idle jobs of this queue and below use beside `allocated`. "
            "It is part of `allocated` in its resource group and above."
        ),
    ]
    pending: Amounts
    headroom: Amounts | None
    priority: Annotated[int | None, said("Of what waits below, with offsets and fences; null: nothing waits.")]
    running_applications: int
    max_applications: Annotated[int, said("0: unlimited.")]
    waiting: int
    children: list[Queue]


class QueuePage(Page, frozen=True, kw_only=True):
    """Queue trees, one a partition."""

    queues: list[Queue]


# -- nodes ----------------------------------------------------------------------------------------------------------


class Taint(Request, frozen=True, kw_only=True):
    """A node keeps away whatever does not tolerate this."""

    CHECKS: ClassVar = {"key": fields.one_line, "value": fields.one_line}

    key: Name
    value: Line = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] = "NoSchedule"


class NodeLabels(Request, frozen=True, kw_only=True):
    """What a node says about itself, all of it."""

    CHECKS: ClassVar = {"attributes": fields.labels}

    attributes: Labels = {}
    taints: Annotated[list[Taint], Meta(max_length=64)] = []


class NodeTaint(Shape, frozen=True, kw_only=True):
    """What a node keeps away."""

    key: str
    value: str
    effect: str


class Node(Shape, frozen=True, kw_only=True):
    """A node."""

    id: str
    capacity: Amounts
    allocated: Amounts
    free: Amounts
    schedulable: bool
    attributes: dict[str, str]
    taints: list[NodeTaint]
    running: int


class NodePage(Page, frozen=True, kw_only=True):
    """Nodes."""

    nodes: list[Node]


# -- events and errors ----------------------------------------------------------------------------------------------


class Event(Shape, frozen=True, kw_only=True):
    """Something that happened, as the stream tells it. `key`: the job it is about, or empty."""

    seq: int
    at_ms: int
    type: str
    key: str = ""
    values: dict[str, Any] = {}


class EventPage(Page, frozen=True, kw_only=True):
    """What happened, the newest first."""

    events: list[Event]


class Problem(Shape, frozen=True, kw_only=True):
    """What was wrong with a request (RFC 9457, application/problem+json)."""

    type: Annotated[str, said("A URI that names the kind of problem; documented under this name.")]
    title: Annotated[str, said("The kind of problem in words.")]
    status: int
    detail: Annotated[str, said("One sentence that says what to do.")]
    code: Annotated[str, said("The last part of `type`: a fixed word for programs.")]
    field: Annotated[str | None, said("The path of the offending value in the request, or null.")] = None
    details: Annotated[list[dict[str, Any]], said("Every problem, when there are several.")] = []


# -- the service ----------------------------------------------------------------------------------------------------


class Nothing(Request, frozen=True, kw_only=True):
    """An empty object."""


class Journal(Shape, frozen=True, kw_only=True):
    """What is durable."""

    events: int
    last_seq: int
    size_bytes: int


class Recovery(Shape, frozen=True, kw_only=True):
    """How the service came back when it started."""

    from_snapshot: bool
    records: int
    milliseconds: float
    notes: list[str]


class Machine(Shape, frozen=True, kw_only=True):
    """What the service of a machine can do."""

    pid: int
    serves: str
    runs_as: str
    state_dir: str
    node: str
    capabilities: list[Capability]
    journal: Journal
    recovery: Recovery
    config: Annotated[ConfigStatus | None, said("null for guests: the queue file is for those who are known.")]


class Start(Shape, frozen=True, kw_only=True):
    """How long the parts of a scheduler's start took, in milliseconds; 0: not yet."""

    listed: dict[str, float]
    rebuilt: float
    first_decided: float
    first_bound: float


class Cluster(Shape, frozen=True, kw_only=True):
    """What the scheduler of a cluster is."""

    scheduler_name: str
    identity: str
    server: Annotated[str, said("The address of the API server.")]
    leads: bool
    start_ms: Start
    pods: int
    nodes: int


class Service(Shape, frozen=True, kw_only=True):
    """What this service is, and whether all is well."""

    version: str
    user: str
    is_admin: bool
    started_at_ms: int
    partition_total: Amounts
    problems: Annotated[list[str], said("What is wrong at the moment; empty when all is well.")]
    machine: Machine | None = None
    cluster: Cluster | None = None
    course: Annotated[Course | None, said("What is shown is no service but a recorded course (`sim view`).")] = None


class Health(Shape, frozen=True, kw_only=True):
    """Whether all is well."""

    status: Annotated[str, said("`ok`, `starting` or `failing`.")]
    problems: Annotated[list[str], said("What is wrong, as sentences.")]
