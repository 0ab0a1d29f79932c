"""Suppositions: every kind of change that can be asked "what if" about, in one table.

Decides the events that each kind stands for, and how a command line says it. Never finds anything by itself: what a
key, a node or a text means, and who may ask, is for the place to say. Invariant: every place takes the same kinds, in
the same words (`wire.questions.Supposed`).

A new kind is a field of `Supposed`, a function here with a line in `KINDS`, and a command (`fairlead.cli.questions`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from msgspec import convert

from fairlead.core.model.conditions import Outcome
from fairlead.core.model.events import (
    AddApplication,
    AddAsks,
    AddNode,
    Configure,
    DrainNode,
    Event,
    MoveApplication,
    Release,
    SetConditions,
    SetPriority,
)
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import ApplicationSpec, AskSpec, ClusterSpec
from fairlead.wire.questions import MoreNodes, NewPriority, NewQueue, Supposed

if TYPE_CHECKING:
    from fairlead.core.books.partition import Partition
    from fairlead.insight.trial import Name
    from fairlead.scheduler import Scheduler


@dataclass(frozen=True, slots=True)
class Supposition:
    """A change to suppose: the events that bring it about, and the asks that it is about."""

    events: tuple[Event, ...]
    subjects: tuple[Name, ...] = ()
    sentence: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a question is asked: what its words mean there. Each raises what the place says to a word that means
    nothing, or something that is not for the asker.
    """

    scheduler: Scheduler
    """Whose state it is about."""
    ask: Callable[[str], Name]
    """The ask of the work with this key."""
    node: Callable[[str], str]
    """The partition of a node."""
    file: Callable[[str], ClusterSpec]
    """The queue file that is meant."""
    queue: Callable[[Name, str], str] = lambda _, queue: queue
    """The full path of a queue that this ask could go to."""
    asker: str = ""
    """The user who asks; empty: it does not matter who."""


def _cancelled(keys: list[str], at: Place) -> Supposition:
    """Of work that could be tried again, too, nothing is left; who waits for its end waits no longer, or in vain."""
    names = [at.ask(key) for key in keys]
    events = [Release(application, key, partition=partition) for partition, application, key in names]
    told = [event for each in dict.fromkeys(partition for partition, _, _ in names) for event in _told(names, each, at)]
    return Supposition((*events, *told), (), _are([key or application for _, application, key in names], "cancelled"))


def _told(names: Sequence[Name], partition: str, at: Place) -> list[SetConditions]:
    """What follows for those that wait for the end of what is cancelled; each may wait for several of them."""
    found = at.scheduler.cluster.partitions[partition]
    goes: dict[str, set[str]] = {}
    for _, application, key in (name for name in names if name[0] == partition):
        goes.setdefault(application, set()).update([key] if key else _asks(found, application))
    ends = [name for application, keys in goes.items() for name in _ended(found, application, keys)]
    waiting = {(app, each.spec.key): each.conditions for name in ends for app, each in found.held_asks.awaiting(name)}
    told = []
    for (application, key), conditions in waiting.items():
        if key in goes.get(application, ()):
            continue
        for name in ends:
            conditions = conditions.when(name, Outcome.NOT_OK, "was cancelled")
        told.append(SetConditions(application, key, conditions, partition=partition))
    return told


def _ended(partition: Partition, application: str, keys: set[str]) -> list[str]:
    """What others that wait for it call what ends with these: each by its first attempt, and all of an application."""
    whole = [application] if keys >= _asks(partition, application) else []
    return [*sorted({key.partition("#")[0] for key in keys}), *whole]


def _asks(partition: Partition, application: str) -> set[str]:
    """The keys of all that waits or runs of an application."""
    app = partition.applications.get(application)
    return {*(app.asks if app is not None else ()), *(each.spec.key for each in partition.held_asks.of(application))}


def _are(names: list[str], what: str) -> str:
    return f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} {what}"


def _prioritised(new: NewPriority, at: Place) -> Supposition:
    name = partition, application, key = at.ask(new.key)
    event = SetPriority(application, key, new.priority, at.asker, partition=partition)
    return Supposition((event,), (name,), f"{key or application} gets priority {new.priority}")


def _moved(new: NewQueue, at: Place) -> Supposition:
    name = partition, application, key = at.ask(new.key)
    queue = at.queue(name, new.queue)
    sentence, found = f"{key or application} is moved to {queue}", at.scheduler.cluster.partitions[partition]
    app = found.applications.get(application)
    if app is not None and app.queue is found.root.find(queue):
        # An order to move it there is obeyed, and changes nothing; the scheduler itself would refuse.
        return Supposition((), (name,), f"{sentence}, where it is already")
    return Supposition((MoveApplication(application, queue, at.asker, partition),), (name,), sentence)


def _configured(text: str, at: Place) -> Supposition:
    return Supposition((Configure(at.file(text)),), (), "the queue file takes effect")


def _drained(nodes: list[str], at: Place) -> Supposition:
    return Supposition(tuple(DrainNode(node, at.node(node)) for node in nodes), (), _are(nodes, "drained"))


def _nodes_added(more: MoreNodes, at: Place) -> Supposition:
    events = more_nodes(at.scheduler, at.node(more.like), more.like, more.count)
    text = f"there {'is 1 more node' if more.count == 1 else f'are {more.count} more nodes'} like {more.like}"
    return Supposition(tuple(events), (), text)


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of change."""

    words: str
    """What follows its name on a command line."""
    supposed: Callable[[Any, Place], Supposition]
    """What it stands for, from the field of `Supposed`."""
    for_administrators: bool = False
    """It is about the work of everybody."""


KINDS = {
    "cancel": Kind("KEY...", _cancelled),
    "priority": Kind("KEY PRIORITY", _prioritised),
    "move": Kind("KEY QUEUE", _moved),
    "config": Kind("FILE", _configured, for_administrators=True),
    "drain": Kind("NODE...", _drained, for_administrators=True),
    "add_nodes": Kind("LIKE COUNT", _nodes_added, for_administrators=True),
}
"""Every kind by its name in a request; a command writes `-` for `_`. What is submitted is for each place to read."""


def kind_of(asked: Supposed) -> tuple[Kind, Any]:
    """The kind of change that is asked about, and what is said of it."""
    return next((kind, said) for name, kind in KINDS.items() if (said := getattr(asked, name)) is not None)


def read_words(name: str, words: Sequence[str]) -> Supposed:
    """The change that a command line says. Raises ValueError and KeyError."""
    kind = KINDS[name.replace("-", "_")]
    fields = kind.words.lower().split()
    said: Any = dict(zip(fields, words, strict=False))
    if kind.words.endswith("..."):
        said = words
    elif len(words) != len(fields):
        raise ValueError(f"write {kind.words}")
    elif len(fields) == 1:
        said = words[0]
    return convert({name.replace("-", "_"): said}, Supposed, strict=False)


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
