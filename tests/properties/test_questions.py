"""Answers to why and what if, held against what the scheduler then does, over random states.

The states are those of random courses. What was answered is tried again on a state that was read back from its dump, by
the events alone: by another way than the one that found the answer.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from invariants.books import check_books
from portions import where_compiled
from properties.course import Course
from properties.mixed import Mixed, mixed, wider
from properties.policies import world as policy_world
from properties.worlds import LEAVES, WORLDS, world

from fairlead.config import errors_of
from fairlead.core.model.conditions import Conditions
from fairlead.core.model.decisions import Allocated, Decision, Evict
from fairlead.core.model.events import Event, Release, SetAtOnce, SetConditions
from fairlead.core.model.specs import ApplicationSpec, AskSpec
from fairlead.insight.changes import current_spec, edited, events_of, renamed, until_ms
from fairlead.insight.explain import explain
from fairlead.insight.parts import Part, What
from fairlead.insight.suppositions import Place, Supposition, kind_of, submitted
from fairlead.insight.trial import Name, copy_of
from fairlead.insight.unblock import ways
from fairlead.insight.whatif import suppose
from fairlead.scheduler import Scheduler
from fairlead.wire.fields import with_vcore
from fairlead.wire.questions import Fates, MoreNodes, NewPriority, NewQueue, Supposed
from fairlead.wire.verdicts import Part as AnsweredPart

SOUND_STATES, EQUAL_STATES = 5_000, 1_000
KINDS = ("plain", "mixed", "wider")
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


def happens(state: dict[str, object], events: Sequence[Event], until_ms: int | None = None) -> Aftermath:
    """Let the events happen to the state; whoever is told to stop stops; until nothing more follows.

    With `until_ms` the clock goes on until then, from one time that something is due to the next.
    """
    return happen_to(Scheduler.load(state), events, until_ms)


def happen_to(scheduler: Scheduler, events: Sequence[Event], until_ms: int | None = None) -> Aftermath:
    """The same to this very scheduler."""
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

    def settle(at_ms: int) -> None:
        for _ in range(1_000):
            note(scheduler.schedule(at_ms))
            if not told:
                return
            leaving, told[:] = list(told), []
            for event in leaving:
                note(scheduler.handle(event, at_ms))

    for event in events:
        note(scheduler.handle(event, now))
    settle(now)
    while until_ms is not None and now < until_ms:
        due_ms = scheduler.next_wakeup_ms()
        now = until_ms if due_ms is None else min(max(due_ms, now + 1), until_ms)
        settle(now)
    after = running(scheduler)
    found.started = {name: node for name, node in after.items() if name not in before}
    found.gone = {name for name in before if name not in after}
    return found


def waiting(scheduler: Scheduler) -> list[Name]:
    apps = scheduler.cluster.partitions[PART].applications.values()
    return [(PART, app.id, ask.key) for app in apps for ask in app.asks.values() if ask.pending]


@dataclass
class Tally:
    """What was checked."""

    states: int = 0
    asks: int = 0
    incomplete: int = 0
    by_itself: int = 0
    changes: Counter[str] = field(default_factory=Counter)
    """By dimension."""
    smallest: int = 0
    less: int = 0
    """Trials of one unit less, or without one of several parts: each had to fail."""
    reasons: Counter[str] = field(default_factory=Counter)

    def lines(self) -> list[str]:
        head = f"{self.states} states, {self.asks} asks ({self.by_itself} start by themselves, {self.incomplete} cut "
        head += f"short), {self.changes.total()} changes ({self.smallest} said to be the smallest of all), tried with "
        head += f"one unit or one part less: {self.less}"
        rows = [f"{count:7} {what}" for what, count in sorted(self.changes.items())]
        return [head, *rows, "reasons: " + ", ".join(f"{code} {n}" for code, n in sorted(self.reasons.items()))]


def each_stated_change_holds(courses: Iterable[Course | Mixed], tally: Tally, most: int) -> Tally:
    """Check the changes that are stated for some asks (at most so many) of each state."""
    for course in courses:
        scheduler = course.scheduler
        state, names = scheduler.dump(), waiting(scheduler)
        random.Random(course.number).shuffle(names)
        # What came last is what the course is about.
        names.sort(key=lambda name: not name[1].startswith("late") and course.number % 3 > 0)
        tally.states += 1
        for name in names[:most]:
            check_one(scheduler, state, name, tally)
        assert scheduler.dump() == state, f"{course.number}: asking changed the state"
    return tally


def check_one(scheduler: Scheduler, state: dict[str, object], name: Name, tally: Tally) -> None:
    """One verdict and every change that it states."""
    verdict = explain(scheduler, name[1], name[2])
    assert verdict.reason is not None
    assert verdict.reason.sentence in verdict.paragraph
    tally.reasons[verdict.reason.code] += 1
    tally.asks += 1
    found = ways(scheduler, name, fork=False)
    tally.by_itself += found.by_itself is not None
    tally.incomplete += not found.is_complete
    assert (name[1:] in happens(state, ()).placed) == (found.by_itself is not None), name
    # Some are about a state in which nothing else runs or waits.
    alone = Scheduler.load(state)
    happen_to(alone, others(alone, name))
    now, empty = (scheduler, state), (alone, alone.dump())
    for change in found.changes:
        assert change.at_once or found.never is not None
        scheduler, state = now if change.at_once else empty
        tally.changes[change.dimension] += 1
        tally.smallest += change.smallest
        said = (name, change.sentence)
        parts = tuple(map(counted, change.parts))
        assert starts_with(scheduler, state, name, parts), said
        for at, part in enumerate(parts):
            tally.less += part.is_counted or len(parts) > 1
            if part.is_counted:
                less = (*parts[:at], part.less(), *parts[at + 1 :])
                assert not starts_with(scheduler, state, name, less), said
            if len(parts) > 1:
                without = (*parts[:at], *parts[at + 1 :])
                assert not starts_with(scheduler, state, name, without), said


def each_change_of_what_is_held_holds(courses: Iterable[Course | Mixed]) -> int:
    """The same for one ask of each state that is put on hold; how many changes also make room for it."""
    also = 0
    for course in courses:
        scheduler, chance = course.scheduler, random.Random(course.number)
        names = waiting(scheduler)
        if not names:
            continue
        name = chance.choice(names)
        hold = Conditions(held_by="ann")
        scheduler.handle(SetConditions(name[1], name[2], hold), scheduler.cluster.now_ms)
        if chance.random() < 0.3:
            scheduler.handle(SetAtOnce(name[1], 1), scheduler.cluster.now_ms)
        state = scheduler.dump()
        found = ways(scheduler, name, fork=False)
        assert scheduler.dump() == state
        for change in found.changes if found.never is None else ():
            parts = tuple(map(counted, change.parts))
            also += any(part.what not in (What.CONDITION, What.AT_ONCE) for part in parts)
            assert starts_once_in_line(state, name, parts), (course.number, change.sentence)
            for at, part in enumerate(parts):
                rest, less = [*parts[:at], *parts[at + 1 :]], [part.less()] if part.is_counted else []
                assert not starts_once_in_line(state, name, [*less, *rest]), (course.number, change.sentence, part)
                assert not starts_once_in_line(state, name, rest), (course.number, change.sentence, part)
    return also


def starts_once_in_line(state: dict[str, object], name: Name, parts: Sequence[Part]) -> bool:
    """What brings it into line happens first."""
    scheduler = Scheduler.load(state)
    enters = [part for part in parts if part.what in (What.CONDITION, What.AT_ONCE)]
    for event in events_of(scheduler, name, enters):
        scheduler.handle(event, scheduler.cluster.now_ms)
    rest = tuple(part for part in parts if part not in enters)
    is_in_line = name[2] in scheduler.cluster.partitions[PART].applications[name[1]].asks
    return is_in_line and starts_with(scheduler, scheduler.dump(), name, rest)


def others(scheduler: Scheduler, name: Name) -> list[Event]:
    """The end of all but this ask and what waits or keeps room of its gangs: also of what is held, or of others."""
    part = scheduler.cluster.partitions[PART]
    found: list[Event] = [Release("", key) for node in part.nodes.nodes.values() for key in node.foreign]
    for app, held in part.held_asks:
        if (app, held.spec.key) != name[1:] and not (app == name[1] and held.spec.task_group):
            found.append(Release(app, held.spec.key))
    for ask in [ask for app in part.applications.values() for ask in app.asks.values()]:
        is_of_gang = ask.app.id == name[1] and ask.spec.task_group and (ask.pending or ask.spec.placeholder)
        if (ask.app.id, ask.key) != name[1:] and not is_of_gang:
            found.append(Release(ask.app.id, ask.key))
    return found


def not_refused(scheduler: Scheduler, parts: tuple[Part, ...]) -> bool:
    """Whether the checks of queue files find no fault that the file in force has not got."""
    now = current_spec(scheduler)
    known = {problem.path for problem in errors_of(now)}
    return {problem.path for problem in errors_of(edited(now, PART, parts))} <= known


def counted(told: AnsweredPart) -> Part:
    """The part of an answer as the books count: what is promised can be tried by anybody who reads it."""
    ((resource, value),) = with_vcore({told.resource: told.value}).items()
    now = with_vcore({told.resource: told.now})[resource]
    part = Part(What(told.what), told.subject, now, value, resource, told.who, told.text)
    assert part.shown() == told
    return part


def starts_with(scheduler: Scheduler, state: dict[str, object], name: Name, parts: tuple[Part, ...]) -> bool:
    """Whether it starts with these parts, where the checks take the queue file that is part of them; where several
    have to end, also when they do so one by one.
    """
    if not not_refused(scheduler, parts):
        return False
    events, key = events_of(scheduler, name, parts), renamed(name, parts)[1:]
    if key not in happens(state, events, until_ms(parts)).placed:
        return False
    ends = sum(part.what is What.CANCEL for part in parts)
    if ends < 2:
        return True
    one_by_one, first = Scheduler.load(state), len(events) - ends + 1
    groups = [events[:first], *([each] for each in events[first:-1])]
    return any(key in happen_to(one_by_one, group).placed for group in groups) or (
        key in happen_to(one_by_one, events[-1:], until_ms(parts)).placed
    )


def suppositions(course: Course | Mixed, chance: random.Random) -> list[Supposition]:
    scheduler = course.scheduler
    partition = scheduler.cluster.partitions[PART]
    leaves = [queue.path for queue in partition.root.walk() if queue.is_leaf] or list(LEAVES)
    spec = ApplicationSpec(id="new", queue=chance.choice(leaves), user="u1")
    ask = AskSpec(application="new", key="new", resources=course.amount(1, 3), priority=chance.randint(-3, 9))
    is_mixed = isinstance(course, Mixed)
    if isinstance(course, Mixed):
        ask = course.ask("new", course.amount(1, 3), idle=chance.random() < 0.2)
    file = policy_world(chance) if is_mixed else world(chance.randrange(WORLDS))
    asks = {ask.key: (PART, app.id, ask.key) for app in partition.applications.values() for ask in app.asks.values()}
    here = Place(scheduler, asks.__getitem__, lambda _: PART, lambda _: file)

    def supposed(**said: Any) -> Supposition:
        kind, what = kind_of(Supposed(**said))
        return kind.supposed(what, here)

    found = [submitted(spec, [ask]), supposed(config="")]
    if partition.nodes.nodes:
        node = chance.choice(list(partition.nodes.nodes))
        found += [supposed(drain=[node]), supposed(add_nodes=MoreNodes(like=node, count=chance.randint(1, 3)))]
    if asks:
        key = chance.choice(list(asks))
        found.append(supposed(cancel=[key]))
        found.append(supposed(priority=NewPriority(key=key, priority=chance.randint(-5, 10))))
        found.append(supposed(move=NewQueue(key=key, queue=chance.choice(leaves))))
    return chance.sample(found, min(3, len(found)))


def nodes_of(fates: Fates) -> dict[Key, str]:
    """Everybody is named: the states are small."""
    found = {(fate.application, fate.key): fate.node for fate in fates.jobs}
    assert (len(found), fates.hidden) == (fates.count, 0)
    return found


def what_if_equals_what_happens(courses: Iterable[Course | Mixed]) -> int:
    """Check three suppositions on each state; how many of them would change something."""
    otherwise = 0
    for at, course in enumerate(courses):
        chance = random.Random(at)
        state = course.scheduler.dump()
        without = happens(state, ())
        for supposed in suppositions(course, chance):
            said = suppose(course.scheduler, supposed, fork=False)
            got, told = happens(state, supposed.events), f"{course.number}: {supposed.sentence}"
            otherwise += not said.empty
            new = {name: node for name, node in got.started.items() if name not in without.started}
            other = {n: node for n, node in got.started.items() if without.started.get(n, node) != node}
            assert nodes_of(said.starts) == new, told
            assert nodes_of(said.starts_not).keys() == without.started.keys() - got.started.keys(), told
            assert nodes_of(said.elsewhere) == other, told
            assert nodes_of(said.evicted).keys() == got.evicted - without.evicted, told
            assert nodes_of(said.spared).keys() == without.evicted - got.evicted, told
            assert nodes_of(said.ends).keys() == got.gone - without.gone - got.evicted, told
        assert course.scheduler.dump() == state, f"{course.number}: asking changed the state"
    return otherwise


def states(kind: str, numbers: range) -> Iterator[Course | Mixed]:
    """Those of YuniKorn's rules alone, those with every policy, or those with windows and `both` too."""
    of: dict[str, Callable[[int], Course | Mixed]] = {"plain": course_of, "mixed": mixed, "wider": wider}
    return map(of[kind], numbers)


@where_compiled
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", KINDS)
def test_a_stated_change_starts_the_ask_and_one_unit_less_does_not(steps: int, kind: str) -> None:
    """On some random states; on all of them in the slow tests. With -s it prints what was checked."""
    many = max(steps // 1_250, 10)
    tally = each_stated_change_holds(states(kind, range(many)), Tally(), 2)
    print(f"\n{kind}: " + "\n".join(tally.lines()))
    assert tally.changes.total() > many // 2


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", KINDS[:2])
def test_a_stated_change_starts_what_is_held_and_one_unit_less_does_not(steps: int, kind: str) -> None:
    """On some random states, one held ask of each."""
    many = max(steps // 1_250, 10)
    assert each_change_of_what_is_held_holds(states(kind, range(20_000, 20_000 + many))) > 0


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", KINDS)
def test_what_if_is_what_then_happens(steps: int, kind: str) -> None:
    """On some random states; on all of them in the slow tests."""
    many = max(steps // 1_250, 10)
    assert what_if_equals_what_happens(states(kind, range(many))) > many // 2


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("tenth", range(10))
def test_stated_changes_hold_on_many_states(kind: str, tenth: int) -> None:
    """A tenth of 5,000 random states of each kind; -s prints how often each kind of change was stated."""
    size = SOUND_STATES // 10
    tally = each_stated_change_holds(states(kind, range(tenth * size, (tenth + 1) * size)), Tally(), 2)
    print(f"\n{kind}, {tenth}: " + "\n".join(tally.lines()))
    assert tally.changes.total() > size


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("tenth", range(10))
def test_what_if_holds_on_many_states(kind: str, tenth: int) -> None:
    """A tenth of 1,000 random states of each kind."""
    size = EQUAL_STATES // 10
    numbers = range(10_000 + tenth * size, 10_000 + (tenth + 1) * size)
    assert what_if_equals_what_happens(states(kind, numbers)) > size


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("number", range(0, 40, 8))
def test_a_copy_goes_on_like_the_original(kind: str, number: int) -> None:
    """The same state, the same later decisions, and neither moves the other."""
    course = next(states(kind, range(number, number + 1)))
    copy = copy_of(course.scheduler)
    state = course.scheduler.dump()
    assert copy.dump() == state
    check_books(copy)
    later = course.now_ms + 1_000
    for name in waiting(course.scheduler)[:3]:
        event = Release(name[1], name[2])
        assert copy.handle(event, later) == Scheduler.load(state).handle(event, later)
        copy = copy_of(course.scheduler)
    first = copy.schedule(later)
    assert course.scheduler.dump() == state, "the copy shares something with the original"
    assert course.scheduler.schedule(later) == first
    assert course.scheduler.dump() == copy.dump()
