"""What can happen to the scheduler: facts from outside, frozen. `Scheduler.handle` takes one and a time.

Decides the words of the way in. Every event can be journalled (see `fairlead.journal.codec`), carries no time of its
own (the caller says when) and never refers to an object, only to ids.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from fairlead.core.model.conditions import Conditions
from fairlead.core.model.constraints import ANYWHERE, Constraints, Taint
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import (
    DEFAULT_PARTITION,
    ApplicationSpec,
    AskSpec,
    BudgetSpec,
    ClusterSpec,
    NodeSpec,
    PriorityClassSpec,
    QuotaSpec,
    WindowSpec,
)


class Cause(StrEnum):
    """Why an allocation ended. The first four are YuniKorn's termination types; the rest come from our own places."""

    STOPPED_BY_RM = "STOPPED_BY_RM"
    TIMEOUT = "TIMEOUT"
    PREEMPTED_BY_SCHEDULER = "PREEMPTED_BY_SCHEDULER"
    PLACEHOLDER_REPLACED = "PLACEHOLDER_REPLACED"
    FINISHED = "FINISHED"
    """It ended by itself, well or not; the resource manager knows the exit status."""
    INTERRUPTED = "INTERRUPTED"
    """It was broken off from outside (killed, machine lost) and may be tried again."""
    REQUEUED = "REQUEUED"
    """It was stopped to wait again, as somebody wished: it comes back, and that counts for no retry."""


class Event:
    """What can happen to the scheduler."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class _OfAsk(Event):
    """What happens to an ask or allocation of an application. Where an empty `key` may be: to all of them."""

    application: str
    key: str


@dataclass(frozen=True, slots=True)
class _OfOne(Event):
    """What happens to a node or an application."""

    id: str
    partition: str = DEFAULT_PARTITION


@dataclass(frozen=True, slots=True)
class _Removal(Event):
    """An administrator takes back what was declared under this name."""

    name: str
    who: str = ""


@dataclass(frozen=True, slots=True)
class Configure(Event):
    """The queue file is (re)placed as one step."""

    spec: ClusterSpec
    who: str = ""
    source: str = ""
    """Where the text came from, such as `file /etc/fairlead/queues.yaml`."""
    restores: int = 0
    """The number of the earlier version whose text this is; 0: none, it is new."""


@dataclass(frozen=True, slots=True)
class AddNode(Event):
    """A node registers."""

    node: NodeSpec


@dataclass(frozen=True, slots=True)
class UpdateNode(Event):
    """A node's capacity is replaced."""

    id: str
    capacity: Resources
    partition: str = DEFAULT_PARTITION


@dataclass(frozen=True, slots=True)
class LabelNode(Event):
    """A node's attributes and taints are replaced, all of them."""

    id: str
    attributes: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    partition: str = DEFAULT_PARTITION


@dataclass(frozen=True, slots=True)
class ReportImages(Event):
    """A node has these images now, by name and size in bytes, and no others (`core.books.images`)."""

    id: str
    images: Mapping[str, int] = field(default_factory=dict)
    partition: str = DEFAULT_PARTITION


@dataclass(frozen=True, slots=True)
class DrainNode(_OfOne):
    """No new work for this node; what runs goes on."""


@dataclass(frozen=True, slots=True)
class UndrainNode(_OfOne):
    """The node takes new work again."""


@dataclass(frozen=True, slots=True)
class RemoveNode(_OfOne):
    """The node is gone; its allocations are lost."""


@dataclass(frozen=True, slots=True)
class AddApplication(Event):
    """A user submits an application."""

    application: ApplicationSpec


@dataclass(frozen=True, slots=True)
class RemoveApplication(_OfOne):
    """An application is taken out with all it has."""


@dataclass(frozen=True, slots=True)
class AddAsks(Event):
    """Asks arrive (or known ones change, or allocations that exist already are reported with their node)."""

    asks: tuple[AskSpec, ...]
    partition: str = DEFAULT_PARTITION


@dataclass(frozen=True, slots=True)
class Release(_OfAsk):
    """An allocation or ask is no more: the resource manager stopped it, or confirms what it was told to stop.

    An empty `key` means everything of the application.
    """

    cause: Cause = Cause.STOPPED_BY_RM
    partition: str = DEFAULT_PARTITION
    exit_code: int | None = None
    """How it ended by itself, 128 + N after signal N; None: not known. It decides whether it is tried again."""
    ended_ms: int | None = None
    """When it ended, Unix milliseconds, where that was observed and may be long before it is told; None: now. Nothing
    is decided by it: its room is free from now on. Who learns run times from a record goes by it."""


@dataclass(frozen=True, slots=True)
class Checkpoint(_OfAsk):
    """A running allocation has saved its work: what it did before would not be lost if it were stopped now."""

    partition: str = DEFAULT_PARTITION


@dataclass(frozen=True, slots=True)
class SetPriority(_OfAsk):
    """An administrator or the owner changes the priority of a waiting ask. An empty `key`: all of the application."""

    priority: int
    who: str = ""
    partition: str = DEFAULT_PARTITION
    why: str = ""


@dataclass(frozen=True, slots=True)
class ChangeAsk(_OfAsk):
    """An ask that waits asks for something else, or is to end at another time; of what runs only the latter changes."""

    resources: Resources
    time_limit_ms: int | None = None
    """None: it has none any more, or nobody knows how it goes on."""
    who: str = ""
    why: str = ""
    partition: str = DEFAULT_PARTITION


@dataclass(frozen=True, slots=True)
class LabelAsk(_OfAsk):
    """The labels and constraints of an ask that waits or runs are replaced, all of them."""

    labels: Mapping[str, str] = field(default_factory=dict)
    where: Constraints = ANYWHERE
    partition: str = DEFAULT_PARTITION
    images: tuple[str, ...] = ()
    """These as well."""
    allow_preempt_self: bool | None = None
    """And this; None: it stays."""
    min_runtime_ms: int | None = None
    """And this; None: it stays."""


@dataclass(frozen=True, slots=True)
class SetConditions(_OfAsk):
    """What has to come about before a waiting ask is in line is this from now on: it is held, released, or
    what it waited for came about.
    """

    conditions: Conditions
    who: str = ""
    """Empty: it follows from what became of others."""
    why: str = ""
    partition: str = DEFAULT_PARTITION


@dataclass(frozen=True, slots=True)
class SetAtOnce(Event):
    """So many asks of an application are in line or run at a time from now on; 0: all. What runs is left alone."""

    application: str
    at_once: int
    who: str = ""
    why: str = ""
    partition: str = DEFAULT_PARTITION


@dataclass(frozen=True, slots=True)
class MoveApplication(Event):
    """An administrator puts an application, with all it has, into another queue. `queue` is a whole path."""

    id: str
    queue: str
    who: str = ""
    partition: str = DEFAULT_PARTITION


@dataclass(frozen=True, slots=True)
class ReserveAsk(_OfAsk):
    """An administrator has room kept for a waiting ask (`on`), or no longer."""

    on: bool
    who: str = ""
    why: str = ""
    partition: str = DEFAULT_PARTITION


@dataclass(frozen=True, slots=True)
class SetPriorityClass(Event):
    """A priority class is made or changed; work that was admitted before keeps what it has."""

    spec: PriorityClassSpec
    who: str = ""


@dataclass(frozen=True, slots=True)
class RemovePriorityClass(_Removal):
    """New work cannot use this priority class any more; work that has it keeps its priority."""


@dataclass(frozen=True, slots=True)
class SetQuota(Event):
    """A quota by priority class is made or changed; what was admitted before stays, even above it."""

    spec: QuotaSpec
    who: str = ""


@dataclass(frozen=True, slots=True)
class RemoveQuota(_Removal):
    """The quota holds no longer."""


@dataclass(frozen=True, slots=True)
class SetBudget(Event):
    """A disruption budget is made or changed."""

    spec: BudgetSpec
    who: str = ""


@dataclass(frozen=True, slots=True)
class RemoveBudget(_Removal):
    """The disruption budget protects nothing any more."""


@dataclass(frozen=True, slots=True)
class SetWindow(Event):
    """A time in which nodes are kept free is declared or changed."""

    spec: WindowSpec
    who: str = ""


@dataclass(frozen=True, slots=True)
class RemoveWindow(_Removal):
    """That time is over, or does not come."""


@dataclass(frozen=True, slots=True)
class Leaving(_OfAsk):
    """An allocation was told to stop by another program, or before a restart that we know nothing of; it will end soon.

    `cause` is `PREEMPTED_BY_SCHEDULER` when it makes room for other work.
    """

    cause: Cause = Cause.STOPPED_BY_RM
    partition: str = DEFAULT_PARTITION


@dataclass(frozen=True, slots=True)
class Nominated(_OfAsk):
    """Before a restart, space on this node was held for a waiting ask; it is held again if it still makes sense."""

    node: str
    partition: str = DEFAULT_PARTITION


_kinds = [kind for kind in globals().values() if isinstance(kind, type) and issubclass(kind, Event)]
EVENTS: tuple[type[Event], ...] = tuple(kind for kind in _kinds if kind not in (Event, _OfAsk, _OfOne, _Removal))
"""Every kind of them."""
