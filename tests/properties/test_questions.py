"""Answers to why and what if, held against what the scheduler then does, over random states.

The states are those of random courses. What was answered is tried again on a state that was read back from its dump, by
the events alone: by another way than the one that found the answer.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from properties.course import Course
from properties.worlds import LEAVES, WORLDS, world

from fairlead.core.decisions import Allocated, Decision, Evict
from fairlead.core.events import Event, Release
from fairlead.core.specs import ApplicationSpec, AskSpec
from fairlead.insight.changes import events_of
from fairlead.insight.copying import copied
from fairlead.insight.trial import Name
from fairlead.insight.unblock import ways
from fairlead.insight.whatif import (
    Supposition,
    cancelled,
    configured,
    drained,
    moved,
    nodes_added,
    prioritised,
    submitted,
    suppose,
)
from fairlead.scheduler import Scheduler

SOUND_STATES, EQUAL_STATES = 5_000, 1_000
PART = "default"
Key = tuple[str, str]


def course_of(number: int) -> Course:
    course = Course(number)
    course.run(random.Random(number).randint(3, 30))
    return course


@dataclass
class Aftermath:
    """What came of some events."""

    placed: set[Key] = field(default_factory=set)
    """Everything that got a node on the way."""
    started: dict[Key, str] = field(default_factory=dict)
    """What has a node at the end and had none."""
    evicted: set[Key] = field(default_factory=set)
    gone: set[Key] = field(default_factory=set)
    """What had a node and has none."""


def running(scheduler: Scheduler) -> dict[Key, str]:
    nodes = scheduler.cluster.partitions[PART].nodes.nodes.values()
    return {(ask.app.id, ask.key): node.id for node in nodes for ask in node.allocations}


def happens(state: dict[str, object], events: Sequence[Event]) -> Aftermath:
    """Let the events happen to the state; whoever is told to stop stops; until nothing more follows."""
    scheduler = Scheduler.load(state)
    now, before, found = scheduler.cluster.now_ms, running(scheduler), Aftermath()
    nodes = scheduler.cluster.partitions[PART].nodes.nodes.values()
    told = [
        Release(ask.app.id, ask.key, ask.evict_cause)
        for node in nodes
        for ask in node.allocations
        if ask.evict_cause is not None
    ]

    def note(decisions: list[Decision]) -> None:
        for each in decisions:
            if isinstance(each, Allocated):
                found.placed.add((each.application, each.key))
            elif isinstance(each, Evict):
                found.evicted.add((each.application, each.key))
                told.append(Release(each.application, each.key, each.cause))

    for event in events:
        note(scheduler.handle(event, now))
    for _ in range(1_000):
        note(scheduler.schedule(now))
        if not told:
            break
        leaving, told[:] = list(told), []
        for event in leaving:
            note(scheduler.handle(event, now))
    after = running(scheduler)
    found.started = {name: node for name, node in after.items() if name not in before}
    found.gone = {name for name in before if name not in after}
    return found


def waiting(scheduler: Scheduler) -> list[Name]:
    apps = scheduler.cluster.partitions[PART].applications.values()
    return [(PART, app.id, ask.key) for app in apps for ask in app.asks.values() if ask.pending]


def each_stated_change_holds(numbers: range) -> int:
    """Check the changes that are stated for two asks of each state; how many there were."""
    stated = 0
    for number in numbers:
        scheduler = course_of(number).scheduler
        state, names = scheduler.dump(), waiting(scheduler)
        random.Random(number).shuffle(names)
        for name in names[:2]:
            found = ways(scheduler, name, fork=False)
            starts = name[1:] in happens(state, ()).placed
            assert starts == (found.by_itself is not None), (number, name)
            for change in found.changes:
                stated += 1
                said = (number, name, change.sentence())
                assert name[1:] in happens(state, events_of(scheduler, name, change.parts)).placed, said
                for at, part in enumerate(change.parts):
                    if part.is_counted:
                        less = (*change.parts[:at], part.less(), *change.parts[at + 1 :])
                        assert name[1:] not in happens(state, events_of(scheduler, name, less)).placed, said
        assert scheduler.dump() == state, f"{number}: asking changed the state"
    return stated


def suppositions(course: Course, chance: random.Random) -> list[Supposition]:
    scheduler = course.scheduler
    partition = scheduler.cluster.partitions[PART]
    spec = ApplicationSpec(id="new", queue=chance.choice(LEAVES), user="u1")
    ask = AskSpec(application="new", key="new", resources=course.amount(1, 3), priority=chance.randint(-3, 9))
    found = [submitted(spec, [ask]), configured(world(chance.randrange(WORLDS)))]
    if partition.nodes.nodes:
        node = chance.choice(list(partition.nodes.nodes))
        found += [drained([node]), nodes_added(scheduler, node, chance.randint(1, 3))]
    asks = [ask for app in partition.applications.values() for ask in app.asks.values()]
    if asks:
        picked = chance.choice(asks)
        name = (PART, picked.app.id, picked.key)
        found += [cancelled([name]), prioritised(name, chance.randint(-5, 10)), moved(name, chance.choice(LEAVES))]
    return chance.sample(found, min(3, len(found)))


def what_if_equals_what_happens(numbers: range) -> int:
    """Check three suppositions on each state; in how many something would be otherwise."""
    otherwise = 0
    for number in numbers:
        course, chance = course_of(number), random.Random(number)
        state = course.scheduler.dump()
        without = happens(state, ())
        for supposed in suppositions(course, chance):
            said = suppose(course.scheduler, supposed, fork=False)
            got, told = happens(state, supposed.events), f"{number}: {supposed.sentence}"
            otherwise += not said.is_empty
            new = {name: node for name, node in got.started.items() if name not in without.started}
            other = {n: node for n, node in got.started.items() if without.started.get(n, node) != node}
            assert {fate.name[1:]: fate.node for fate in said.starts} == new, told
            assert {fate.name[1:] for fate in said.starts_not} == without.started.keys() - got.started.keys(), told
            assert {fate.name[1:]: fate.node for fate in said.elsewhere} == other, told
            assert {fate.name[1:] for fate in said.evicted} == got.evicted - without.evicted, told
            assert {fate.name[1:] for fate in said.spared} == without.evicted - got.evicted, told
            assert {fate.name[1:] for fate in said.ends} == got.gone - without.gone - got.evicted, told
        assert course.scheduler.dump() == state, f"{number}: asking changed the state"
    return otherwise


@pytest.mark.timeout(600)
def test_a_stated_change_starts_the_ask_and_one_unit_less_does_not(steps: int) -> None:
    """On some random states; on all of them in the slow tests."""
    states = max(steps // 400, 10)
    assert each_stated_change_holds(range(states)) > states // 2


@pytest.mark.timeout(600)
def test_what_if_is_what_then_happens(steps: int) -> None:
    """On some random states; on all of them in the slow tests."""
    states = max(steps // 400, 10)
    assert what_if_equals_what_happens(range(states)) > states // 2


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("tenth", range(10))
def test_stated_changes_hold_on_many_states(tenth: int) -> None:
    """A tenth of 5,000 random states."""
    size = SOUND_STATES // 10
    assert each_stated_change_holds(range(tenth * size, (tenth + 1) * size)) > size


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("tenth", range(10))
def test_what_if_holds_on_many_states(tenth: int) -> None:
    """A tenth of 1,000 random states."""
    size = EQUAL_STATES // 10
    assert what_if_equals_what_happens(range(10_000 + tenth * size, 10_000 + (tenth + 1) * size)) > size


@pytest.mark.parametrize("number", range(0, 40, 4))
def test_a_copy_goes_on_like_the_original(number: int) -> None:
    """The same state, the same later decisions, and neither moves the other."""
    course = course_of(number)
    copy = copied(course.scheduler)
    state = course.scheduler.dump()
    assert copy.dump() == state
    copy.check()
    later = course.now_ms + 1_000
    for name in waiting(course.scheduler)[:3]:
        event = Release(name[1], name[2])
        assert copy.handle(event, later) == Scheduler.load(state).handle(event, later)
        copy = copied(course.scheduler)
    first = copy.schedule(later)
    assert course.scheduler.dump() == state, "the copy shares something with the original"
    assert course.scheduler.schedule(later) == first
    assert course.scheduler.dump() == copy.dump()
