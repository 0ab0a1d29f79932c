"""Every "no" as a typed value with its numbers.

Decides what can be said when something waits or is refused. Never builds log text that somebody would have to parse:
`sentence()` is for people, the fields are for programs, `code` names the type for good.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from fairlead.core.model.gang_reasons import GangsHoldEachOther as GangsHoldEachOther
from fairlead.core.model.matching import filters_in_words
from fairlead.core.model.preemption_reasons import ApplicationsPromised as ApplicationsPromised
from fairlead.core.model.preemption_reasons import LimitPromised as LimitPromised
from fairlead.core.model.preemption_reasons import NeverPreempts as NeverPreempts
from fairlead.core.model.preemption_reasons import PreemptionDoesNotHelp as PreemptionDoesNotHelp
from fairlead.core.model.preemption_reasons import WaitingForVictims as WaitingForVictims
from fairlead.core.model.quantities import format_amounts
from fairlead.core.model.reason import Reason as Reason
from fairlead.core.model.reason import short


def _only(amounts: Mapping[str, int], names: list[str], *, up: bool = False) -> str:
    """The amounts of these resources alone: a sentence names what is short and nothing else."""
    return format_amounts({name: amounts.get(name, 0) for name in names}, up=up)


@dataclass(frozen=True, slots=True)
class NoNodes(Reason):
    """The partition has no node at all."""

    code: ClassVar[str] = "no-nodes"
    partition: str

    def sentence(self) -> str:
        """One plain sentence."""
        return f"there is no node in partition {self.partition}"


@dataclass(frozen=True, slots=True)
class TooBigForEveryNode(Reason):
    """No node is large enough, even when empty."""

    code: ClassVar[str] = "too-big-for-every-node"
    needed: Mapping[str, int]
    largest: Mapping[str, int]
    """The most of each needed resource that any single node has in total."""
    nodes: int

    def sentence(self) -> str:
        """One plain sentence."""
        short = [r for r in self.needed if self.needed[r] > self.largest.get(r, 0)] or list(self.needed)
        largest = "the only node has" if self.nodes == 1 else f"the largest of {self.nodes} nodes have"
        return f"needs {_only(self.needed, short, up=True)} on one node; {largest} {_only(self.largest, short)}"


@dataclass(frozen=True, slots=True)
class NoNodeHasRoom(Reason):
    """Nodes are large enough, but none has enough free at the moment."""

    code: ClassVar[str] = "no-node-has-room"
    needed: Mapping[str, int]
    free: Mapping[str, int]
    """What is free on the node that comes closest."""
    node: str
    """The node that comes closest."""
    open_nodes: int
    """Nodes that take new work and are not reserved for others."""
    nodes: int
    held: Mapping[str, int] = field(default_factory=dict)
    """What is free on that node but held for a preemptor."""
    excluded: Mapping[str, int] = field(default_factory=dict)
    """Open nodes that do not suit it, by the first filter that keeps it off; not among `open_nodes`."""

    def sentence(self) -> str:
        """One plain sentence."""
        if not self.node:
            return f"needs {format_amounts(dict(self.needed), up=True)}; none of {self.nodes} nodes takes new work"
        left = {r: self.free.get(r, 0) - self.held.get(r, 0) for r in self.needed}
        short = [r for r in self.needed if self.needed[r] > left[r]] or list(self.needed)
        held = f", {format_amounts(dict(self.held))} held for a preemptor" if self.held else ""
        closest = "" if self.open_nodes == 1 else f" (closest of {self.open_nodes} open nodes)"
        free = f"{self.node} has {_only(self.free, short)} free{held}{closest}"
        others = f"; others do not suit it: {filters_in_words(self.excluded)}" if self.excluded else ""
        return f"needs {_only(self.needed, short, up=True)} on one node; {free}{others}"


@dataclass(frozen=True, slots=True)
class NoNodeSuits(Reason):
    """Whatever is free: every open node is one that it may not run on."""

    code: ClassVar[str] = "no-node-suits"
    needed: Mapping[str, int]
    excluded: Mapping[str, int]
    """How many open nodes each filter keeps it off, the first filter counts: `selector`, `taint`, `ports`, `affinity`,
    `anti-affinity`, `repelled` (by the anti-affinity of running work), `spread`, `promised` (a port, or the distance of
    either, is kept for work that is to start there)."""
    nodes: int

    def sentence(self) -> str:
        """One plain sentence."""
        of = f"none of {self.nodes} nodes suits" if self.nodes != 1 else "the only node does not suit"
        return f"{of} it: {filters_in_words(self.excluded)}"


@dataclass(frozen=True, slots=True)
class RequiredNodeUnknown(Reason):
    """The only node it may run on is not there."""

    code: ClassVar[str] = "required-node-unknown"
    node: str

    def sentence(self) -> str:
        """One plain sentence."""
        return f"may run on node {self.node} only, and there is no such node"


@dataclass(frozen=True, slots=True)
class QueueFull(Reason):
    """A queue on the way to the root is at its maximum."""

    code: ClassVar[str] = "queue-full"
    queue: str
    needed: Mapping[str, int]
    free: Mapping[str, int]
    """What is left under the queue's maximum, for the resources that are short."""
    max: Mapping[str, int]

    def sentence(self) -> str:
        """One plain sentence."""
        needed = format_amounts(dict(self.needed), up=True)
        return (
            f"needs {needed}; queue {self.queue} has {format_amounts(dict(self.free))} left "
            f"of its maximum {format_amounts(dict(self.max))}"
        )


@dataclass(frozen=True, slots=True)
class QueuePromised(Reason):
    """A queue has room under its maximum, but that is promised to asks for which others were told to stop."""

    code: ClassVar[str] = "queue-promised"
    queue: str
    needed: Mapping[str, int]
    free: Mapping[str, int]
    """What is left under the queue's maximum, promised or not."""
    promised_to: tuple[str, ...]
    """`application/key` of each ask for which space is held."""

    def sentence(self) -> str:
        """One plain sentence."""
        needed = format_amounts(dict(self.needed), up=True)
        return (
            f"needs {needed}; what queue {self.queue} has left of its maximum, "
            f"{format_amounts(dict(self.free))}, is promised to {', '.join(self.promised_to)}"
        )


@dataclass(frozen=True, slots=True)
class ClusterFull(Reason):
    """All nodes together have not enough free."""

    code: ClassVar[str] = "cluster-full"
    needed: Mapping[str, int]
    free: Mapping[str, int]
    total: Mapping[str, int]

    def sentence(self) -> str:
        """One plain sentence."""
        short = [r for r in self.needed if self.needed[r] > self.free.get(r, 0)] or list(self.needed)
        return (
            f"needs {_only(self.needed, short, up=True)}; all nodes together have {_only(self.free, short)} free "
            f"of {_only(self.total, short)}"
        )


@dataclass(frozen=True, slots=True)
class ApplicationsAtMax(Reason):
    """A queue runs as many applications as it may."""

    code: ClassVar[str] = "applications-at-max"
    queue: str
    running: int
    max: int

    def sentence(self) -> str:
        """One plain sentence."""
        return f"queue {self.queue} runs {self.running} of at most {self.max} applications"


@dataclass(frozen=True, slots=True)
class LimitReached(Reason):
    """A user or group is at its limit in some queue."""

    code: ClassVar[str] = "limit-reached"
    kind: str
    """`user` or `group`."""
    name: str
    queue: str
    needed: Mapping[str, int]
    free: Mapping[str, int]
    max: Mapping[str, int]

    def sentence(self) -> str:
        """One plain sentence."""
        needed = format_amounts(dict(self.needed), up=True)
        return (
            f"needs {needed}; {self.kind} {self.name} has {format_amounts(dict(self.free))} "
            f"left of {format_amounts(dict(self.max))} in {self.queue}"
        )


@dataclass(frozen=True, slots=True)
class LimitApplications(Reason):
    """A user or group runs as many applications as it may in some queue."""

    code: ClassVar[str] = "limit-applications"
    kind: str
    name: str
    queue: str
    running: int
    max: int

    def sentence(self) -> str:
        """One plain sentence."""
        return f"{self.kind} {self.name} runs {self.running} of at most {self.max} applications in {self.queue}"


@dataclass(frozen=True, slots=True)
class WaitingForPlaceholder(Reason):
    """It takes the place of a placeholder of its task group, and none can be taken yet."""

    code: ClassVar[str] = "waiting-for-placeholder"
    task_group: str
    expected: int
    """Placeholders of the group that were neither replaced nor lost."""
    standing: int
    """Those of them that have a node."""

    def sentence(self) -> str:
        """One plain sentence."""
        return (
            f"takes the place of a placeholder of task group {self.task_group}; {self.standing} of {self.expected} "
            "have a node"
        )


@dataclass(frozen=True, slots=True)
class ReservedNodeTooFull(Reason):
    """A node is set aside for it and fills up for nobody else; too much still runs there."""

    code: ClassVar[str] = "reserved-node-too-full"
    node: str
    needed: Mapping[str, int]
    free: Mapping[str, int]

    def sentence(self) -> str:
        """One plain sentence."""
        return (
            f"node {self.node} is set aside for it and has {format_amounts(dict(self.free))} free so far; needs "
            f"{format_amounts(dict(self.needed), up=True)}"
        )


@dataclass(frozen=True, slots=True)
class NodeReserved(Reason):
    """A node has room for it but is set aside for work that came before it."""

    code: ClassVar[str] = "node-reserved"
    node: str
    reserved_for: tuple[str, ...]
    """`application/key` of each ask that the node is set aside for."""

    def sentence(self) -> str:
        """One plain sentence."""
        return f"the room on node {self.node} is set aside for {', '.join(map(short, self.reserved_for))}"


@dataclass(frozen=True, slots=True)
class BackedOff(Reason):
    """Too many asks of its application fitted on no node; the application rests."""

    code: ClassVar[str] = "backed-off"
    until_ms: int
    misses: int
    """Asks that fitted nowhere when it was last looked at."""

    def sentence(self) -> str:
        """One plain sentence."""
        return f"the application rests because {self.misses} of its asks fitted on no node"


@dataclass(frozen=True, slots=True)
class AttemptHeldBack(Reason):
    """The attempt before it was broken off or failed; it enters when its back-off is over."""

    code: ClassVar[str] = "attempt-held-back"
    key: str
    attempt: int
    most: int
    """Attempts at most, the first one included."""
    due_ms: int

    def sentence(self) -> str:
        """One plain sentence."""
        return f"attempt {self.attempt} of at most {self.most} enters after its back-off"


@dataclass(frozen=True, slots=True)
class HeldForReservation(Reason):
    """Another ask has a reservation in its queue (idle work: in its resource group), and it waits until that runs."""

    code: ClassVar[str] = "held-for-reservation"
    queue: str
    reserved_for: str
    """`application/key` of the ask with the reservation."""
    priority: int
    """That ask's."""
    since_ms: int
    who: str
    """Who switched it on; empty: nobody, it has waited as long as its queue allows."""
    why: str

    def sentence(self) -> str:
        """One plain sentence."""
        by = f"switched on by {self.who}" if self.who else "given by itself"
        why = f": {self.why}" if self.why else ""
        return f"waits until {short(self.reserved_for)} runs, which has a reservation in {self.queue} ({by}{why})"


@dataclass(frozen=True, slots=True)
class NextInLine(Reason):
    """It fits; the scheduler has not come to it yet."""

    code: ClassVar[str] = "next-in-line"
    queue: str

    def sentence(self) -> str:
        """One plain sentence."""
        return f"fits and is next in line in {self.queue}; it starts with the next scheduling run"


@dataclass(frozen=True, slots=True)
class SubmitDenied(Reason):
    """No access list lets the user submit to a queue."""

    code: ClassVar[str] = "submit-denied"
    queue: str
    user: str
    groups: tuple[str, ...]

    def sentence(self) -> str:
        """One plain sentence."""
        groups = ", ".join(self.groups[:8]) + (", ..." if len(self.groups) > 8 else "")
        return (
            f"{self.user} may not submit to {self.queue}: no access list there or above it names {self.user} or one of "
            f"the groups {groups or '(none)'}"
        )


@dataclass(frozen=True, slots=True)
class UnknownPriorityClass(Reason):
    """There is no priority class of that name."""

    code: ClassVar[str] = "unknown-priority-class"
    name: str
    known: tuple[str, ...]
    """The names of all classes, highest value first."""

    def sentence(self) -> str:
        """One plain sentence."""
        more = ", ..." if len(self.known) > 8 else ""
        return f"there is no priority class {self.name}; there are {', '.join(self.known[:8])}{more}"


@dataclass(frozen=True, slots=True)
class PriorityMismatch(Reason):
    """A priority was given beside a class that has another value."""

    code: ClassVar[str] = "priority-mismatch"
    name: str
    """The priority class."""
    value: int
    priority: int

    def sentence(self) -> str:
        """One plain sentence."""
        return (
            f"priority class {self.name} stands for {self.value}, and the priority {self.priority} was given too; "
            "leave one of the two out"
        )


@dataclass(frozen=True, slots=True)
class QuotaExceeded(Reason):
    """A quota by priority class has no room for it; this is known when it is submitted, and it does not wait."""

    code: ClassVar[str] = "quota-exceeded"
    quota: str
    queue: str
    """The queue whose quota it is."""
    needed: Mapping[str, int]
    used: Mapping[str, int]
    """What has been admitted under the quota, whether it waits or runs."""
    max: Mapping[str, int]

    def sentence(self) -> str:
        """One plain sentence."""
        needed = format_amounts(dict(self.needed), up=True)
        return (
            f"needs {needed}; quota {self.quota} of queue {self.queue} has "
            f"{format_amounts(dict(self.used))} in use of {format_amounts(dict(self.max))}"
        )


@dataclass(frozen=True, slots=True)
class ClassNotAllowed(Reason):
    """Its priority class is limited, and no quota by class selects it in that queue."""

    code: ClassVar[str] = "class-not-allowed"
    name: str
    """The priority class."""
    queue: str

    def sentence(self) -> str:
        """One plain sentence."""
        return (
            f"priority class {self.name} is limited: it may be used only where a quota selects it, and none of "
            f"{self.queue} or above does"
        )


@dataclass(frozen=True, slots=True)
class Refused(Reason):
    """A request that can never be done as it stands; `text` says why in the field's own words."""

    code: ClassVar[str] = "refused"
    text: str

    def sentence(self) -> str:
        """One plain sentence."""
        return self.text
