"""Declared things as plain values: every kind that occurs, also those that are not exactly a common class."""

from __future__ import annotations

from collections import UserDict
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pytest

from fairlead.core.model.constraints import Constraints, Requirement
from fairlead.core.model.plain import from_plain, to_brief, to_plain
from fairlead.core.model.reasons import Refused
from fairlead.core.model.resources import Limits, Resources
from fairlead.core.model.specs import AskSpec, RetrySpec


class Colour(StrEnum):
    RED = "red"


class Pair(NamedTuple):
    one: int
    other: str


class Longer(str):
    """A kind of text."""

    __slots__ = ()


def is_plain(value: Any) -> bool:
    if type(value) is dict:
        return all(type(key) is str and is_plain(part) for key, part in value.items())
    return all(map(is_plain, value)) if type(value) is list else type(value) in (type(None), bool, int, float, str)


def ask() -> AskSpec:
    return AskSpec(
        application="a",
        key="k",
        resources=Resources({"vcore": 5}),
        tags={"name": "value"},
        labels=MappingProxyType({"app": "db"}),
        where=Constraints(selector=(Requirement("zone", "In", ("x", "y")),), ports=("TCP/0.0.0.0/80",)),
        retry=RetrySpec(limit=2, never_on=(1, 2)),
    )


@pytest.mark.parametrize(
    "value",
    [ask(), Resources({"a": 1}), Limits({"a": 0}), Refused("no"), (), (1, ("x", None)), {"a": (1.5, True)}, None, "x"],
)
def test_what_is_written_is_plain_and_is_read_as_it_was(value: Any) -> None:
    """Text of a state, and back."""
    plain = to_plain(value)
    assert is_plain(plain)
    assert from_plain(plain) == value


def test_in_brief_only_what_is_not_so_anyway_is_written() -> None:
    """And it is read as it was; a field that happens to be given its default is not written either."""
    whole = AskSpec(application="a", key="k", resources=Resources({"vcore": 5}), priority=0, tags={}, placeholder=True)
    brief = to_brief(whole)
    assert set(brief) == {"$", "application", "key", "resources", "placeholder"}
    assert from_plain(brief) == whole == from_plain(to_plain(whole))
    assert from_plain(to_brief(ask())) == ask()


def test_kinds_of_the_common_classes_are_written_as_these() -> None:
    """An enumeration as its text, a named tuple as a list, any mapping as a map."""
    assert type(to_plain(Colour.RED)) is str
    assert to_plain(Colour.RED) == "red"
    assert to_plain(Pair(1, "x")) == [1, "x"]
    assert to_plain([Pair(1, "x")]) == [[1, "x"]]
    assert to_plain(Longer("text")) == "text"
    assert [type(to_plain(number)) for number in (np.int64(3), np.bool_(True))] == [int, bool]
    assert to_plain(UserDict({"a": 1})) == {"$": "map", "of": {"a": 1}} == to_plain({"a": 1})


@pytest.mark.parametrize("value", [object(), {1, 2}, b"x", [{"a": {1}}]])
def test_what_is_not_declared_is_refused(value: object) -> None:
    """Nothing is written that could not be read."""
    with pytest.raises(TypeError, match="has no plain form"):
        to_plain(value)


def test_an_unknown_tag_is_refused() -> None:
    """A state of another version."""
    with pytest.raises(ValueError, match="unknown tag 'Novelty'"):
        from_plain([{"$": "Novelty"}])


def test_no_two_plain_values_share_a_part() -> None:
    """Whoever changes one does not change the other."""
    one, other = to_plain(ask()), to_plain(ask())
    one["tags"]["of"]["new"] = "x"
    one["where"]["affinity"].append("x")
    assert to_plain(ask()) == other != one
