"""What should not matter changes no decision (`told_otherwise`)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from portions import share
from properties.deep_courses import DeepCourse
from properties.rank_courses import RankCourse, rules_of_configuration
from properties.told_otherwise import WAYS, Otherwise, difference, recorded
from properties.without_effect import State

from fairlead.core.model.constraints import Requirement
from fairlead.core.model.decisions import Allocated
from fairlead.core.model.events import Event, SetPriority
from fairlead.core.model.resources import Limits, Resources

QUICK = share(3)
ONCE_DIFFERENT: list[tuple[type[RankCourse], str, int]] = [
    (RankCourse, "both", 118),
    (RankCourse, "guarantee", 137),
    (DeepCourse, "priority", 5144),
]


@pytest.mark.timeout(14_400)
@pytest.mark.parametrize("rule", rules_of_configuration())
@pytest.mark.parametrize("kind", [RankCourse, DeepCourse])
def test_what_should_not_matter_changes_no_decision(kind: type[RankCourse], rule: str) -> None:
    for number in range(QUICK):
        course = recorded(kind, rule, number)
        assert sum(isinstance(each, Allocated) for _, _, decisions in course.calls for each in decisions) > 10
        different = {name: found for name, way in WAYS.items() if (found := difference(course, way))}
        assert not different, f"course {number}: {different}"


@pytest.mark.parametrize("name", WAYS)
def test_each_way_says_something_else(name: str) -> None:
    """Else it would say nothing that the same is decided."""
    course, way = recorded(RankCourse, "both", 0), WAYS[name]
    told = [course.spec, *(each for each, _, _ in course.calls)]
    if way.besides is None:
        assert way.later_ms or any(way.told(each) != each for each in told)
        return
    besides: list[Event] = []

    def counted(state: State) -> Iterator[Event]:
        for event in way.besides(state) if way.besides is not None else ():
            besides.append(event)
            yield event

    assert not difference(course, Otherwise(besides=counted))
    assert len(besides) > 20


@pytest.mark.parametrize(("kind", "rule", "number"), ONCE_DIFFERENT)
def test_what_changed_something_once_does_so_no_more(kind: type[RankCourse], rule: str, number: int) -> None:
    course = recorded(kind, rule, number)
    assert not difference(course, WAYS["a node that no other is like"])


def test_an_event_with_an_effect_is_seen() -> None:
    """The check of what is told besides can fail."""

    def a_higher_priority(state: State) -> Iterator[Event]:
        for ask in state.any_of(state.waiting):
            yield SetPriority(ask.app.id, ask.key, ask.priority + 5)

    assert difference(recorded(RankCourse, "both", 0), Otherwise(besides=a_higher_priority))


def test_a_difference_that_matters_is_seen() -> None:
    """The check can fail: each of these says something else."""
    course = recorded(RankCourse, "both", 0)
    way = WAYS["every amount seven times"]

    def requirement(told: object) -> object:
        return Resources({"vcore": 1}) if isinstance(told, Resources) and told.as_dict().get("vcore") == 2 else told

    assert difference(course, type(way)(requirement))
    assert way.told((Resources({"a": 2}), Limits({"b": 0}), Requirement("c"))) == (
        Resources({"a": 14}),
        Limits({"b": 0}),
        Requirement("c"),
    )
