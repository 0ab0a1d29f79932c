"""Suppositions: every kind of change that can be asked "what if" about, in one table.

Decides of each kind what has to be said (its fields), what may be said there, and the events that it stands for. Never
finds anything by itself: what a key, a node or a text means, and who may ask, is for the place to say. Invariant: every
place takes the same kinds, in the same words.

A new kind is a class here with a line in `KINDS`, and a command that asks for it (`fairlead.cli.questions`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Protocol

import msgspec
from msgspec import Meta

from fairlead.core.model.events import (
    AddApplication,
    AddAsks,
    AddNode,
    Configure,
    DrainNode,
    Event,
    MoveApplication,
    Release,
    SetPriority,
)
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import PRIORITY_MAX, PRIORITY_MIN, ApplicationSpec, AskSpec, ClusterSpec

if TYPE_CHECKING:
    from fairlead.insight.trial import Name
    from fairlead.scheduler import Scheduler

Key = Annotated[str, Meta(max_length=400)]
Line = Annotated[str, Meta(max_length=256)]


@dataclass(frozen=True, slots=True)
class Supposition:
    """A change to suppose: the events that bring it about, and the asks that it is about."""

    events: tuple[Event, ...]
    subjects: tuple[Name, ...] = ()
    sentence: str = ""


class Place(Protocol):
    """Where a question is asked: what its words mean there. Each raises what the place says to a word that means
    nothing, or something that is not for the asker.
    """

    @property
    def scheduler(self) -> Scheduler:
        """Whose state it is about."""

    @property
    def asker(self) -> str:
        """The user who asks; empty: it does not matter who."""

    def ask(self, key: str) -> Name:
        """The ask of the work with this key."""

    def queue(self, name: Name, queue: str) -> str:
        """The full path of a queue that this ask could go to."""

    def node(self, node: str) -> str:
        """The partition of a node."""

    def file(self, text: str) -> ClusterSpec:
        """The queue file that is meant."""


class Change(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One kind of change. Of a kind with one field, the value of that field is all that is said."""

    words: ClassVar[str]
    """What follows its name on a command line."""
    for_administrators: ClassVar[bool] = False
    """It is about the work of everybody."""

    def __post_init__(self) -> None:
        """Raises ValueError for texts of several lines, and for what cannot be written down."""
        for said in msgspec.structs.astuple(self):
            for text in said if isinstance(said, list) else [said]:
                if isinstance(text, str) and not text.isprintable():
                    raise ValueError(f"{text!r} must not contain control characters")

    def supposed(self, at: Place) -> Supposition:
        """What it stands for."""
        raise NotImplementedError


class Cancelled(Change, frozen=True):
    """This work is gone, at once and without grace."""

    words = "KEY..."
    keys: Annotated[list[Key], Meta(min_length=1, max_length=1000)]

    def supposed(self, at: Place) -> Supposition:
        """Of a job that could be tried again, too, nothing is left."""
        names = [at.ask(key) for key in self.keys]
        events = tuple(Release(application, key, partition=partition) for partition, application, key in names)
        return Supposition(events, (), f"{', '.join(key for _, _, key in names)} is cancelled")


class Prioritised(Change, frozen=True):
    """Work that waits gets another priority."""

    words = "KEY N"
    key: Key
    priority: Annotated[int, Meta(ge=PRIORITY_MIN, le=PRIORITY_MAX)]

    def supposed(self, at: Place) -> Supposition:
        """It is asked about."""
        name = partition, application, key = at.ask(self.key)
        event = SetPriority(application, key, self.priority, at.asker, partition=partition)
        return Supposition((event,), (name,), f"{key} gets priority {self.priority}")


class Moved(Change, frozen=True):
    """An application goes to another queue."""

    words = "KEY QUEUE"
    key: Key
    queue: Line

    def supposed(self, at: Place) -> Supposition:
        """It is asked about."""
        name = partition, application, key = at.ask(self.key)
        queue = at.queue(name, self.queue)
        event = MoveApplication(application, queue, at.asker, partition)
        return Supposition((event,), (name,), f"{key} is moved to {queue}")


class Configured(Change, frozen=True):
    """A queue file takes effect (administrators)."""

    words = "FILE"
    for_administrators = True
    text: Annotated[str, Meta(max_length=4 * 2**20)]

    def __post_init__(self) -> None:
        """A file has many lines; who reads it says what is wrong with them."""

    def supposed(self, at: Place) -> Supposition:
        """About nothing in particular."""
        return Supposition((Configure(at.file(self.text)),), (), "the queue file takes effect")


class Drained(Change, frozen=True):
    """These nodes take no new work (administrators)."""

    words = "NODE..."
    for_administrators = True
    nodes: Annotated[list[Line], Meta(min_length=1, max_length=10_000)]

    def supposed(self, at: Place) -> Supposition:
        """About nothing in particular."""
        events = tuple(DrainNode(node, at.node(node)) for node in self.nodes)
        return Supposition(events, (), f"{', '.join(self.nodes)} is drained")


class NodesAdded(Change, frozen=True):
    """So many nodes like one that is there join (administrators)."""

    words = "NODE N"
    for_administrators = True
    like: Line
    count: Annotated[int, Meta(ge=1, le=10_000)]

    def supposed(self, at: Place) -> Supposition:
        """About nothing in particular."""
        events = more_nodes(at.scheduler, at.node(self.like), self.like, self.count)
        text = f"{self.count} more {'node' if self.count == 1 else 'nodes'} like {self.like}"
        return Supposition(tuple(events), (), text)


KINDS: dict[str, type[Change]] = {
    "cancel": Cancelled,
    "priority": Prioritised,
    "move": Moved,
    "config": Configured,
    "drain": Drained,
    "add_nodes": NodesAdded,
}
"""Every kind by its name in a request; a command writes `-` for `_`."""


def read(kind: str, said: Any) -> Change:
    """The change that plain values say. Raises ValueError with what is wrong, and where."""
    made = KINDS[kind]
    fields = msgspec.structs.fields(made)
    if len(fields) > 1:
        return msgspec.convert(said, made)
    return made(msgspec.convert(said, fields[0].type))


def schema(kind: str) -> dict[str, Any]:
    """What `read` takes, as JSON schema."""
    made = KINDS[kind]
    _, parts = msgspec.json.schema_components((made,))
    found: dict[str, Any] = parts[made.__name__]
    if len(msgspec.structs.fields(made)) == 1:
        (found,) = found["properties"].values()
    return found


def read_words(kind: str, words: Sequence[str]) -> Change:
    """The change that a command line says; the last field may be a list. Raises ValueError, as `read`."""
    made = KINDS[kind.replace("-", "_")]
    names = [field.name for field in msgspec.structs.fields(made)]
    said: dict[str, Any] = dict(zip(names, words, strict=False))
    if made.words.endswith("..."):
        said[names[-1]] = list(words[len(names) - 1 :])
    elif len(words) != len(names):
        raise ValueError(f"write {made.words}")
    return msgspec.convert(said, made, strict=False)


def usage() -> str:
    """Every kind as a command line says it."""
    return ", ".join(f"whatif {name.replace('_', '-')} {kind.words}" for name, kind in KINDS.items())


def submitted(application: ApplicationSpec, asks: Sequence[AskSpec]) -> Supposition:
    """Somebody submits this. What a draft of it looks like is for each place to say, so it is no kind of the table."""
    names = tuple((application.partition, ask.application, ask.key) for ask in asks)
    events: tuple[Event, ...] = (AddApplication(application), AddAsks(tuple(asks), application.partition))
    where = f" to {application.queue}" if application.queue else ""
    return Supposition(events, names, f"{application.user} submits {application.id}{where}")


def more_nodes(scheduler: Scheduler, partition: str, like: str, count: int) -> list[AddNode]:
    """So many nodes like one that is there join, all of it free. Raises KeyError when there is no such node."""
    nodes = scheduler.cluster.partitions[partition].nodes.nodes
    spec = replace(nodes[like].spec, capacity=Resources(nodes[like].total), schedulable=True)
    names = (f"{like}-more-{number}" for number in range(1, len(nodes) + count + 1))
    free = [name for name in names if name not in nodes][:count]
    return [AddNode(replace(spec, id=name)) for name in free]
