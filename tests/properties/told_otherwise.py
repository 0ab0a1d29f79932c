"""Courses told otherwise: what should not matter changes no decision.

A course is recorded, and its events are given to another scheduler with a difference that means nothing: every amount
seven times as large, all of it a million seconds later, a selector that every node meets, a limit that nothing reaches,
or between them events that change nothing (`without_effect`).
Every decision has to be the same, but for the amounts and times in it. Much of that takes another path through the
scheduler, since work with any constraint is looked for in another way. `python told_otherwise.py RULE FIRST LAST`.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from properties import rank_courses
from properties.course_numbers import asked_for
from properties.deep_courses import DeepCourse
from properties.rank_courses import RankCourse, rules_of_configuration
from properties.without_effect import WITHOUT_EFFECT, Besides, told_besides

from fairlead.core.model.conditions import Conditions
from fairlead.core.model.constraints import (
    AffinityTerm,
    Constraints,
    PreferredNodes,
    PreferredWork,
    Requirement,
    Taint,
    Toleration,
)
from fairlead.core.model.decisions import Decision, DeclarationChanged, QueueChanged, QuotaEnforced
from fairlead.core.model.events import Event, LabelNode, SetPriority, UpdateNode
from fairlead.core.model.resources import Limits, Resources
from fairlead.core.model.specs import (
    TAG_FOREIGN,
    AskSpec,
    BudgetSpec,
    ClusterSpec,
    LimitSpec,
    NodeSpec,
    PartitionSpec,
    PriorityClassSpec,
    QueueSpec,
    QuotaSpec,
)
from fairlead.scheduler import Scheduler

LATER_MS = 10**9
VAST = 10**9
ODD = Taint("odd", "1")
SOMETHING = Requirement("no-such-label", "Exists")

Call = tuple[Event | int | None, int, list[Decision]]
"""An event, or the limit of a call that schedules; when; and what was decided."""


class Recorder:
    """A scheduler that keeps what it was told and what it decided. (What is compiled has no subclasses.)"""

    load = staticmethod(Scheduler.load)

    def __init__(self, spec: ClusterSpec, now_ms: int = 0) -> None:
        self.scheduler = Scheduler(spec, now_ms)
        self.spec, self.calls = spec, list[Call]()

    def handle(self, event: Event, now_ms: int) -> list[Decision]:
        decided = self.scheduler.handle(event, now_ms)
        self.calls.append((event, now_ms, decided))
        return decided

    def schedule(self, now_ms: int, limit: int | None = None) -> list[Decision]:
        decided = self.scheduler.schedule(now_ms, limit)
        self.calls.append((limit, now_ms, decided))
        return decided

    def __getattr__(self, name: str) -> Any:
        return getattr(self.scheduler, name)


def recorded(kind: type[RankCourse], rule: str, number: int) -> Recorder:
    """All of a course, as its scheduler was told it."""
    usual = rank_courses.Scheduler
    rank_courses.Scheduler = Recorder
    try:
        course = kind(rule, number)
        course.take()
    finally:
        rank_courses.Scheduler = usual
    assert isinstance(course.scheduler, Recorder)
    return course.scheduler


# -- other words -------------------------------------------------------------------------------------------------

Change = Callable[[Any], Any]


def nothing_else(told: Any) -> Any:
    return told


@dataclass(frozen=True)
class Otherwise:
    """How a course is told otherwise: what each part of what is told becomes, and how much later all of it is."""

    change: Change = nothing_else
    later_ms: int = 0
    until: type[Decision] | None = None
    """From the first decision of this kind on it may be otherwise: whole numbers are rounded for it."""
    besides: Besides | None = None
    """What is told between, as it changes nothing."""

    def told(self, told: Any) -> Any:
        """The same in other words."""
        if isinstance(told, tuple):
            return tuple(map(self.told, told))
        if is_dataclass(told) and not isinstance(told, type):
            parts = {field.name: getattr(told, field.name) for field in fields(told)}
            told = replace(told, **{name: self.told(part) for name, part in parts.items()})
        return self.change(told)


def every_amount(told: Any) -> Any:
    if isinstance(told, Resources | Limits):
        return type(told)({name: 7 * amount for name, amount in told})
    return told


def a_resource_that_nothing_asks_for(told: Any) -> Any:
    if isinstance(told, NodeSpec | UpdateNode):
        return replace(told, capacity=Resources({**told.capacity.as_dict(), "unused": 5}))
    return told


def later(told: Any) -> Any:
    if isinstance(told, Conditions) and told.begin_ms:
        return replace(told, begin_ms=told.begin_ms + LATER_MS)
    return told


def priorities_further_apart(told: Any) -> Any:
    if isinstance(told, AskSpec | SetPriority):
        return replace(told, priority=3 * told.priority)
    if isinstance(told, PriorityClassSpec):
        return replace(told, value=3 * told.value)
    if isinstance(told, QueueSpec) and "priority.offset" in told.properties:
        offset = str(3 * int(told.properties["priority.offset"]))
        return replace(told, properties={**told.properties, "priority.offset": offset})
    return told


def of_every_ask(**more: tuple[Any, ...]) -> Change:
    """All work has these constraints too."""

    def change(told: Any) -> Any:
        if not isinstance(told, AskSpec) or TAG_FOREIGN in told.tags:
            return told
        parts: dict[str, Any] = {name: getattr(told.where, name) + values for name, values in more.items()}
        return replace(told, where=replace(told.where, **parts))

    return change


def any_node_term(told: Any) -> Any:
    if isinstance(told, Constraints) and not told.node_terms:
        return replace(told, node_terms=((Requirement("any", "NotIn", ("2",)),),))
    return told


def a_taint_on_all_that_all_tolerate(told: Any) -> Any:
    if isinstance(told, NodeSpec | LabelNode):
        return replace(told, taints=(*told.taints, ODD))
    return of_every_ask(tolerations=(Toleration("odd", "Exists"),))(told)


def labels_of_its_own(told: Any) -> Any:
    if isinstance(told, AskSpec):
        return replace(told, labels={**told.labels, "own": told.application})
    return told


def a_queue_without_work(told: Any) -> Any:
    if isinstance(told, PartitionSpec):
        return replace(told, root=replace(told.root, queues=(*told.root.queues, QueueSpec(name="zzz"))))
    return told


def a_limit_that_nothing_reaches(told: Any) -> Any:
    if isinstance(told, QueueSpec) and told.name != "root" and not told.limits:
        return replace(told, limits=(LimitSpec(users=("*",), max_resources=Limits({"vcore": VAST})),))
    return told


def more_in_the_file(**more: tuple[Any, ...]) -> Change:
    """The queue file declares this too."""

    def change(told: Any) -> Any:
        if isinstance(told, ClusterSpec):
            return replace(told, **{name: getattr(told, name) + values for name, values in more.items()})
        return told

    return change


WAYS = {
    "every amount seven times": Otherwise(every_amount, until=QuotaEnforced),
    "a resource that nothing asks for": Otherwise(a_resource_that_nothing_asks_for),
    "later": Otherwise(later, LATER_MS),
    "priorities further apart": Otherwise(priorities_further_apart),
    "a selector that all nodes meet": Otherwise(of_every_ask(selector=(Requirement("any", "NotIn", ("2",)),))),
    "a node term that all nodes meet": Otherwise(any_node_term),
    "a toleration of nothing": Otherwise(of_every_ask(tolerations=(Toleration("nothing", "Exists"),))),
    "a taint on all that all tolerate": Otherwise(a_taint_on_all_that_all_tolerate),
    "a node that no other is like": Otherwise(of_every_ask(preferred_nodes=(PreferredNodes(5, (SOMETHING,)),))),
    "company that never runs": Otherwise(of_every_ask(preferred_work=(PreferredWork(5, AffinityTerm((SOMETHING,))),))),
    "labels of its own": Otherwise(labels_of_its_own),
    "a queue without work": Otherwise(a_queue_without_work),
    "a limit that nothing reaches": Otherwise(a_limit_that_nothing_reaches),
    "a budget that spares nothing": Otherwise(more_in_the_file(budgets=(BudgetSpec(name="loose", min_available=0),))),
    "a quota that nothing reaches": Otherwise(
        more_in_the_file(quotas=(QuotaSpec(name="wide", queue="root", resources=Limits({"vcore": VAST})),))
    ),
    **{f"besides, {name}": Otherwise(besides=besides) for name, besides in WITHOUT_EFFECT.items()},
}


def decided(decisions: Sequence[Decision]) -> list[tuple[Any, ...]]:
    """What counts of decisions: not what they say of the file itself, nor amounts, times and sentences."""
    ignored = ("message", "why", "reason", "excess", "resources", "due_ms", "old", "new", "checksum", "violates")
    return [
        (type(each).__name__, *(getattr(each, f.name) for f in fields(each) if f.name not in ignored))
        for each in decisions
        if not isinstance(each, DeclarationChanged | QueueChanged)
    ]


def difference(course: Recorder, way: Otherwise) -> str:
    """The first decision that is another one when the course is told this way; nothing: none is."""
    scheduler, chance = Scheduler(way.told(course.spec), way.later_ms), random.Random(0)
    for step, (told, now_ms, before) in enumerate(course.calls):
        at_ms = now_ms + way.later_ms
        if way.besides is not None and (more := told_besides(scheduler, way.besides, at_ms, chance)):
            return f"before call {step} at {now_ms}: {decided(more)} follows from what changes nothing"
        if isinstance(told, Event):
            after = scheduler.handle(way.told(told), at_ms)
        else:
            after = scheduler.schedule(at_ms, told)
        if way.until is not None and any(isinstance(each, way.until) for each in before):
            return ""
        if decided(before) != decided(after):
            return f"call {step} at {now_ms}: {decided(before)}, and not {decided(after)}"
    return ""


def main(texts: Sequence[str] | None = None) -> int:
    """RULE FIRST LAST; returns the status."""
    said = "Tell random courses otherwise, by number."
    given = asked_for(texts, said, "told-otherwise", rules_of_configuration())
    different = 0
    for number in range(given.first, given.last):
        for kind in (RankCourse, DeepCourse):
            course = recorded(kind, given.rule, number)
            for name, way in WAYS.items():
                if found := difference(course, way):
                    different += 1
                    print(f"{given.rule} {kind.__name__} {number}, {name}: {found}", flush=True)
    print(f"{given.last - given.first} courses of each kind under {given.rule}, {different} times something differed")
    return int(different > 0)


if __name__ == "__main__":
    sys.exit(main())
