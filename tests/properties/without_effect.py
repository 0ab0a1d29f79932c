"""Events without effect: what is reported as it was, ordered as it is, or refused.

Decides which such events there are in the state of a scheduler; `told_otherwise` puts them between those of a course.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace

from fairlead.core.books.asks import Ask
from fairlead.core.books.partition import Partition
from fairlead.core.model import decisions
from fairlead.core.model.conditions import MET
from fairlead.core.model.decisions import Decision
from fairlead.core.model.events import (
    AddApplication,
    AddAsks,
    AddNode,
    ChangeAsk,
    Checkpoint,
    Configure,
    DrainNode,
    Event,
    LabelAsk,
    LabelNode,
    Leaving,
    MoveApplication,
    Nominated,
    Release,
    RemoveApplication,
    RemoveBudget,
    RemoveNode,
    RemovePriorityClass,
    RemoveQuota,
    RemoveWindow,
    ReportImages,
    ReserveAsk,
    SetAtOnce,
    SetBudget,
    SetConditions,
    SetPriority,
    SetPriorityClass,
    SetQuota,
    UndrainNode,
    UpdateNode,
)
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import TAG_FOREIGN, ApplicationSpec, AskSpec, QueueSpec
from fairlead.insight.changes import current_spec
from fairlead.scheduler import Scheduler

NOBODY = "nobody"
ANSWERS = (
    decisions.ApplicationRejected,
    decisions.AskChanged,
    decisions.AskRejected,
    decisions.AtOnceChanged,
    decisions.ConditionsChanged,
    decisions.ConfigurationRejected,
    decisions.Configured,
    decisions.DeclarationRejected,
    decisions.MoveRejected,
    decisions.NodeRejected,
    decisions.PriorityChanged,
)


class State:
    """What a scheduler knows at a moment."""

    def __init__(self, scheduler: Scheduler, chance: random.Random) -> None:
        self.part: Partition = scheduler.cluster.partitions["default"]
        self.admission = scheduler.cluster.admission
        self.spec, self.chance = current_spec(scheduler), chance
        asks = [ask for app in self.part.applications.values() for ask in app.asks.values()]
        self.waiting = [ask for ask in asks if ask.pending]
        self.running = [ask for ask in asks if ask.node is not None]
        self.nodes = list(self.part.nodes.nodes.values())

    def any_of(self, asks: list[Ask]) -> list[Ask]:
        """One of them, if there are any."""
        return [self.chance.choice(asks)] if asks else []


Besides = Callable[[State], Iterator[Event]]


def told_besides(scheduler: Scheduler, besides: Besides, now_ms: int, chance: random.Random) -> list[Decision]:
    """Tell now and then what has no effect; what follows from it but an answer. (Not when something is due: that would
    follow from the next thing that is told.)
    """
    due_ms = scheduler.next_wakeup_ms()
    if chance.random() > 0.3 or (due_ms is not None and due_ms <= now_ms):
        return []
    scheduler.cluster.set_time(now_ms)
    followed = [each for event in besides(State(scheduler, chance)) for each in scheduler.handle(event, now_ms)]
    return [each for each in followed if not isinstance(each, ANSWERS)]


def the_same_file(state: State) -> Iterator[Event]:
    yield Configure(state.spec)


def the_same_file_with_a_comment(state: State) -> Iterator[Event]:
    yield Configure(replace(state.spec, checksum="another", text="# more"))


def a_file_that_is_refused(state: State) -> Iterator[Event]:
    part = state.spec.partitions[0]
    root = replace(part.root, queues=(*part.root.queues, QueueSpec(name="no good name")))
    yield Configure(replace(state.spec, partitions=(replace(part, root=root),)))


def nodes_as_they_are(state: State) -> Iterator[Event]:
    for node in state.nodes:
        yield UpdateNode(node.id, Resources(node.total))
        yield LabelNode(node.id, dict(node.spec.attributes), node.spec.taints)
        yield ReportImages(node.id, {})
        yield UndrainNode(node.id) if node.schedulable else DrainNode(node.id)
        yield AddNode(node.spec)
        for spec, _ in list(node.foreign.values()):
            yield AddAsks((spec,))


def nodes_refused(state: State) -> Iterator[Event]:
    yield RemoveNode(NOBODY)
    yield DrainNode(NOBODY)
    for node in state.nodes:
        yield UpdateNode(node.id, Resources({"vcore": -1}))
        yield ReportImages(node.id, {"image": -1})
        foreign = AskSpec(application="", key=NOBODY, resources=Resources({"vcore": -1}), tags={TAG_FOREIGN: "Default"})
        yield AddAsks((replace(foreign, node=node.id),))
    yield AddAsks((replace(foreign, node=NOBODY),)) if state.nodes else RemoveNode(NOBODY)


def work_as_it_is(state: State) -> Iterator[Event]:
    for ask in state.any_of(state.waiting):
        yield SetPriority(ask.app.id, ask.key, ask.priority)
        yield SetConditions(ask.app.id, ask.key, MET)
    for ask in state.any_of(state.waiting + state.running):
        spec = ask.spec
        yield AddAsks((spec,))
        yield ChangeAsk(ask.app.id, ask.key, spec.resources, spec.time_limit_ms)
        yield LabelAsk(ask.app.id, ask.key, spec.labels, spec.where, images=spec.images)
        yield SetAtOnce(ask.app.id, ask.app.spec.at_once)
    for ask in state.any_of(state.running):
        yield AddAsks((replace(ask.spec, node=ask.node.id if ask.node else ""),))
        if ask.evict_cause is not None:
            yield Leaving(ask.app.id, ask.key)
        if ask.checkpoint_ms == state.part.now_ms:
            yield Checkpoint(ask.app.id, ask.key)
    for ask in state.any_of([ask for ask in state.waiting if ask.held_on is not None]):
        yield Nominated(ask.app.id, ask.key, ask.held_on.id if ask.held_on else "")
    for name in list(state.part.applications)[:3]:
        for held in state.part.held_asks.of(name)[:2]:
            yield SetConditions(name, held.spec.key, held.conditions)
            yield ChangeAsk(name, held.spec.key, held.spec.resources, held.spec.time_limit_ms)


def work_refused(state: State) -> Iterator[Event]:
    for event in (Release, Checkpoint, Leaving, LabelAsk):
        yield event(NOBODY, NOBODY)
    yield RemoveApplication(NOBODY)
    yield Release("", NOBODY)
    yield SetPriority(NOBODY, NOBODY, 3)
    yield MoveApplication(NOBODY, "root.c")
    yield SetAtOnce(NOBODY, 1)
    yield Nominated(NOBODY, NOBODY, NOBODY)
    for ask in state.any_of(state.waiting):
        yield MoveApplication(ask.app.id, ask.app.queue.path)
        yield Checkpoint(ask.app.id, ask.key)
        yield SetPriority(ask.app.id, ask.key, 2**40)
        yield ReserveAsk(ask.app.id, ask.key, state.part.reserving.get(ask) is not None)
        yield AddAsks((replace(ask.spec, resources=Resources({"vcore": -1})),))
        yield AddApplication(ask.app.spec)
    for ask in state.any_of(state.running):
        yield ReserveAsk(ask.app.id, ask.key, on=True)
        yield ChangeAsk(ask.app.id, ask.key, Resources({"vcore": 17}), ask.spec.time_limit_ms)
        yield SetConditions(ask.app.id, ask.key, MET)


def declared_as_it_is(state: State) -> Iterator[Event]:
    admission = state.admission
    yield from [SetPriorityClass(each) for each in admission.classes]
    yield from [SetQuota(each) for each in admission.quotas]
    yield from [SetBudget(each) for each in admission.budgets]
    for event in (RemovePriorityClass, RemoveQuota, RemoveBudget, RemoveWindow):
        yield event(NOBODY)


def an_application_refused(state: State) -> Iterator[Event]:
    spec = ApplicationSpec(id=NOBODY, queue="root.no.such.queue", user=NOBODY)
    yield AddApplication(replace(spec, placeholder_ask=Resources({"vcore": -1})))


WITHOUT_EFFECT: dict[str, Besides] = {
    each.__name__.replace("_", " "): each
    for each in (
        the_same_file,
        the_same_file_with_a_comment,
        a_file_that_is_refused,
        nodes_as_they_are,
        nodes_refused,
        work_as_it_is,
        work_refused,
        declared_as_it_is,
        an_application_refused,
    )
}
