"""Every "no" as a typed value with its numbers.

Decides what can be said when something waits in line; what is said of what is not in line yet is in
`core.model.conditions`, of what is not taken in in `core.model.reason`, and both can be had from here too. Never builds
log text that has to be parsed: `sentence()` is for people, the fields are for programs, `code` names the type for good.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fairlead.core.model.conditions import AttemptHeldBack as AttemptHeldBack
from fairlead.core.model.conditions import BeginsAt as BeginsAt
from fairlead.core.model.conditions import EnoughAtOnce as EnoughAtOnce
from fairlead.core.model.conditions import NeverRuns as NeverRuns
from fairlead.core.model.conditions import OnHold as OnHold
from fairlead.core.model.conditions import WaitsForOthers as WaitsForOthers
from fairlead.core.model.matching import TOO_SMALL, filters_in_words
from fairlead.core.model.quantities import format_amounts
from fairlead.core.model.reason import ClassNotAllowed as ClassNotAllowed
from fairlead.core.model.reason import PriorityMismatch as PriorityMismatch
from fairlead.core.model.reason import QuotaExceeded as QuotaExceeded
from fairlead.core.model.reason import Reason as Reason
from fairlead.core.model.reason import Refused as Refused
from fairlead.core.model.reason import SubmitDenied as SubmitDenied
from fairlead.core.model.reason import UnknownPriorityClass as UnknownPriorityClass
from fairlead.core.model.reason import amounts_of, first_few, short, short_of, some


@dataclass(frozen=True, slots=True)
class NoNodes(Reason):
    """The partition has no node at all."""

    template = "there is no node in partition {partition}"
    partition: str


@dataclass(frozen=True, slots=True)
class TooBigForEveryNode(Reason):
    """No node is large enough, even when empty."""

    needed: Mapping[str, int]
    largest: Mapping[str, int]
    """The most of each needed resource that any single node has in total."""
    nodes: int

    def _sentence(self) -> str:
        names = short_of(self.needed, self.largest)
        largest = "the only node has" if self.nodes == 1 else f"the largest of {self.nodes} nodes have"
        return (
            f"needs {amounts_of(self.needed, names, up=True)} on one node; {largest} {amounts_of(self.largest, names)}"
        )


@dataclass(frozen=True, slots=True)
class NoNodeHasRoom(Reason):
    """Nodes are large enough, but none has enough free at the moment."""

    needed: Mapping[str, int]
    free: Mapping[str, int]
    """What is free on the node that comes closest."""
    node: str
    """The node that comes closest, of those that are large enough."""
    open_nodes: int
    """Nodes that take new work and are not reserved for others."""
    nodes: int
    held: Mapping[str, int] = field(default_factory=dict)
    """What is free on that node but kept for other work."""
    excluded: Mapping[str, int] = field(default_factory=dict)
    """Open nodes that do not suit it, by the first filter that keeps it off; not among `open_nodes`."""
    held_for: tuple[str, ...] = ()
    """`application/key` of each ask for which room is kept there, where some is free."""

    def _sentence(self) -> str:
        if not self.node:
            takers = "the only node takes no" if self.nodes == 1 else f"none of {self.nodes} nodes takes"
            return f"needs {format_amounts(self.needed, up=True)}; {takers} new work"
        left = {r: self.free.get(r, 0) - self.held.get(r, 0) for r in self.needed}
        names = short_of(self.needed, left)
        held = f", {format_amounts(self.held)} kept for {some(self.held_for)}" if self.held else ""
        closest = "" if self.open_nodes == 1 else f" (closest of {self.open_nodes} open nodes)"
        free = f"{self.node} has {amounts_of(self.free, names)} free{held}{closest}"
        others = f"; others do not suit it: {filters_in_words(self.excluded)}" if self.excluded else ""
        return f"needs {amounts_of(self.needed, names, up=True)} on one node; {free}{others}"


@dataclass(frozen=True, slots=True)
class NoNodeSuits(Reason):
    """Whatever is free: every open node is one that it may not run on."""

    needed: Mapping[str, int]
    excluded: Mapping[str, int]
    """How many open nodes each filter (of `core.model.matching`) keeps it off; the first filter counts, and size is the
    last one.
    """
    nodes: int

    def _sentence(self) -> str:
        of = f"none of {self.nodes} nodes suits" if self.nodes != 1 else "the only node does not suit"
        of = f"needs {format_amounts(self.needed, up=True)}; {of}" if TOO_SMALL in self.excluded else of
        # Such as drained ones; of work that requires one node all others.
        closed = self.nodes - sum(self.excluded.values())
        return f"{of} it: {filters_in_words(self.excluded)}{f', {closed} not open to it' if closed > 0 else ''}"


@dataclass(frozen=True, slots=True)
class RequiredNodeUnknown(Reason):
    """The only node it may run on is not there."""

    template = "may run on node {node} only, and there is no such node"
    node: str


@dataclass(frozen=True, slots=True)
class QueueFull(Reason):
    """A queue on the way to the root is at its maximum."""

    template = "needs {needed}; queue {queue} has {free} left of its maximum {max}"
    queue: str
    needed: Mapping[str, int]
    free: Mapping[str, int]
    """What is left under the queue's maximum, for the resources that are short."""
    max: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class QueuePromised(Reason):
    """A queue has room under its maximum, but that is promised to asks for which others were told to stop."""

    template = "needs {needed}; what queue {queue} has left of its maximum, {free}, is promised to {promised_to}"
    queue: str
    needed: Mapping[str, int]
    free: Mapping[str, int]
    """What is left under the queue's maximum, promised or not."""
    promised_to: tuple[str, ...]
    """`application/key` of each ask for which space is held."""


@dataclass(frozen=True, slots=True)
class ClusterFull(Reason):
    """All nodes together have not enough free."""

    needed: Mapping[str, int]
    free: Mapping[str, int]
    total: Mapping[str, int]

    def _sentence(self) -> str:
        names = short_of(self.needed, self.free)
        free, total = amounts_of(self.free, names), amounts_of(self.total, names)
        return f"needs {amounts_of(self.needed, names, up=True)}; all nodes together have {free} free of {total}"


@dataclass(frozen=True, slots=True)
class ApplicationsAtMax(Reason):
    """A queue runs as many applications as it may."""

    template = "queue {queue} runs {running} of at most {max} applications"
    queue: str
    running: int
    max: int


@dataclass(frozen=True, slots=True)
class LimitReached(Reason):
    """A user or group is at its limit in some queue."""

    template = "needs {needed}; {kind} {name} has {free} left of {max} in {queue}"
    kind: str
    """`user` or `group`."""
    name: str
    queue: str
    needed: Mapping[str, int]
    free: Mapping[str, int]
    max: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class LimitApplications(Reason):
    """A user or group runs as many applications as it may in some queue."""

    template = "{kind} {name} runs {running} of at most {max} applications in {queue}"
    kind: str
    name: str
    queue: str
    running: int
    max: int


@dataclass(frozen=True, slots=True)
class WaitingForPlaceholder(Reason):
    """It takes the place of a placeholder of its task group, and none can be taken yet."""

    template = "takes the place of a placeholder of task group {task_group}; {standing} of {expected} have a node"
    task_group: str
    expected: int
    """Placeholders of the group that were neither replaced nor lost."""
    standing: int
    """Those of them that have a node."""


@dataclass(frozen=True, slots=True)
class ReservedNodeTooFull(Reason):
    """A node is set aside for it and fills up for no other; too much still runs there."""

    template = "node {node} is set aside for it and has {free} free so far; needs {needed}"
    node: str
    needed: Mapping[str, int]
    free: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class NodeReserved(Reason):
    """A node has room for it but is set aside for work that came before it."""

    node: str
    reserved_for: tuple[str, ...]
    """`application/key` of each ask that the node is set aside for."""

    def _sentence(self) -> str:
        return f"the room on node {self.node} is set aside for {some(self.reserved_for)}"


@dataclass(frozen=True, slots=True)
class BackedOff(Reason):
    """Too many asks of its application fitted on no node; the application rests."""

    template = "the application rests because {misses} of its asks fitted on no node"
    until_ms: int
    misses: int
    """Asks that fitted nowhere when it was last looked at."""


@dataclass(frozen=True, slots=True)
class HeldForReservation(Reason):
    """Another ask has a reservation in its queue (idle work: in its resource group), and it waits until that runs."""

    queue: str
    reserved_for: str
    """`application/key` of the ask with the reservation."""
    priority: int
    """That ask's."""
    since_ms: int
    who: str
    """Who switched it on; empty: nobody, it has waited as long as its queue allows."""
    why: str

    def _sentence(self) -> str:
        by = f"switched on by {self.who}" if self.who else "given by itself"
        why = f": {self.why}" if self.why else ""
        return f"waits until {short(self.reserved_for)} runs, which has a reservation in {self.queue} ({by}{why})"


@dataclass(frozen=True, slots=True)
class WindowAhead(Reason):
    """A window keeps nodes free, and it would still run there when that begins; or the window is open."""

    window: str
    starts_ms: int
    ends_ms: int
    time_limit_ms: int | None
    """Its own; None: it has none."""
    why: str
    is_open: bool

    def _sentence(self) -> str:
        for_what = f" ({self.why})" if self.why else ""
        if self.is_open:
            return f"window {self.window} is open{for_what}, and is not for it"
        how = "it has no time limit" if self.time_limit_ms is None else "its time limit reaches into it"
        return f"would run into window {self.window}{for_what}: {how}"


@dataclass(frozen=True, slots=True)
class NextInLine(Reason):
    """It fits; the scheduler has not come to it yet."""

    template = "fits and is next in line in {queue}; it starts with the next scheduling run"
    queue: str


@dataclass(frozen=True, slots=True)
class LimitPromised(Reason):
    """A user or group has room under its limit, but that is promised to asks for which others were told to stop."""

    template = (
        "needs {needed}; what {kind} {name} has left of the limit in {queue}, {free}, is promised to {promised_to}"
    )
    kind: str
    name: str
    queue: str
    needed: Mapping[str, int]
    free: Mapping[str, int]
    promised_to: tuple[str, ...]
    """`application/key` of each ask for which space is held."""


@dataclass(frozen=True, slots=True)
class ApplicationsPromised(Reason):
    """One application more could run, but the last places are promised to work for which others were told to stop."""

    kind: str
    """`queue`, `user` or `group`: whose number of applications it is."""
    name: str
    """Of the user or group; nothing for a queue."""
    queue: str
    running: int
    max: int
    promised_to: tuple[str, ...]
    """The applications that are to start."""

    def _sentence(self) -> str:
        where = f"queue {self.queue}" if self.kind == "queue" else f"{self.kind} {self.name} in {self.queue}"
        return (
            f"{where} runs {self.running} of at most {self.max} applications; "
            f"the rest is promised to {first_few(self.promised_to)}"
        )


@dataclass(frozen=True, slots=True)
class WaitingForVictims(Reason):
    """Others were told to stop for it; the space is held until they are gone."""

    node: str
    victims: tuple[str, ...]
    overdue: tuple[str, ...] = ()
    """Those of them that have not left in their time."""

    def _sentence(self) -> str:
        late = f"; {first_few(self.overdue)} should have stopped by now" if self.overdue else ""
        return f"space on {self.node} is held for it; waiting for {first_few(self.victims)} to stop{late}"


@dataclass(frozen=True, slots=True)
class GangTooLarge(Reason):
    """All nodes together have less than its gang needs to be whole."""

    needed: Mapping[str, int]
    """What its gang needs of what there is too little of."""
    total: Mapping[str, int]
    """What all nodes have of that."""

    def _sentence(self) -> str:
        needed, total = format_amounts(self.needed, up=True), format_amounts(self.total)
        return f"its gang needs {needed} together; all nodes together have {total}"


@dataclass(frozen=True, slots=True)
class TaskGroupTooLarge(Reason):
    """Fewer members of its task group than it has could stand on all nodes at once, whatever ends."""

    group: str
    members: int
    room: int
    """So many could stand at once."""
    needed: Mapping[str, int]
    """What each of them needs."""
    excluded: Mapping[str, int] = field(default_factory=dict)
    """Nodes that do not suit them, by the first filter that keeps them off."""
    apart: bool = False
    """No two of them may be on one node."""

    def _sentence(self) -> str:
        each = format_amounts(self.needed, up=True)
        others = f"; some do not suit it: {filters_in_words(self.excluded)}" if self.excluded else ""
        if self.members == 1:
            return f"task group {self.group} has 1 member of {each}; no node could hold it{others}"
        most = f"at most {self.room} of them" if self.room else "none of them"
        each = f"{each} each{', no two of them on one node' if self.apart else ''}"
        holds = f"all nodes together could hold {most}{others}"
        return f"task group {self.group} has {self.members} members of {each}; {holds}"


@dataclass(frozen=True, slots=True)
class GangsHoldEachOther(Reason):
    """Its gang and another one each held a part of what the other lacks; one of them gives its placeholders back."""

    other: str
    """The application of the other gang."""
    holds: Mapping[str, int]
    """What the placeholders of its own gang hold."""
    needs: Mapping[str, int]
    """What its own gang still needs to be whole."""
    other_holds: Mapping[str, int]
    other_needs: Mapping[str, int]
    gives_way: bool
    """Whether it is its own gang that gives way."""

    def _sentence(self) -> str:
        holds, other_holds = format_amounts(self.holds), format_amounts(self.other_holds)
        needs, other_needs = format_amounts(self.needs, up=True), format_amounts(self.other_needs, up=True)
        theirs = f"gang {self.other} holds {other_holds} and still needs {other_needs}"
        both = f"its gang holds {holds} and still needs {needs}, {theirs}"
        if self.gives_way:
            return f"{both}; its placeholders are given back until gang {self.other} is whole or gone"
        return f"{both}; gang {self.other} gives its placeholders back"
