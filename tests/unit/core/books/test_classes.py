"""Priority classes and quotas by class as books: what may be declared, what the file owns, what is written down."""

from __future__ import annotations

import json
from typing import Any

import pytest
from invariants.admission import check_classes

from fairlead.core.books.class_quotas import quota_problem
from fairlead.core.books.classes import BUILT_IN, PriorityClasses, class_problem
from fairlead.core.model.constraints import Requirement
from fairlead.core.model.resources import Limits
from fairlead.core.model.specs import PriorityClassSpec, QuotaSpec


def cls(name: str, value: int = 1, **more: Any) -> PriorityClassSpec:
    return PriorityClassSpec(name=name, value=value, **more)


def said(reason: Any) -> str:
    return "" if reason is None else reason.sentence()


@pytest.mark.parametrize("name", ["a", "high-priority", "a.b", "9", "x" * 63, ".".join(["x" * 50] * 4)])
def test_a_class_is_called_like_a_dns_subdomain(name: str) -> None:
    """Lower-case letters, digits, hyphens and dots."""
    assert class_problem(cls(name)) is None


@pytest.mark.parametrize(
    "name", ["", "A", "a_b", "-a", "a-", "a..b", ".a", "a b", "ä", "x" * 64, "x." * 127 + "x", "a\n"]
)
def test_other_names_are_refused(name: str) -> None:
    """With the field and the rule."""
    field, message = class_problem(cls(name)) or ("", "")
    assert field == "name"
    assert "DNS subdomain" in message


@pytest.mark.parametrize(
    ("value", "good"), [(-(2**31), True), (-(2**31) - 1, False), (10**9, True), (10**9 + 1, False)]
)
def test_values_have_bounds(value: int, good: bool) -> None:
    """What is above is for the built-in classes."""
    assert (class_problem(cls("a", value)) is None) == good


def test_the_built_in_classes_are_always_there() -> None:
    """Highest first, and nobody changes or removes them."""
    classes = PriorityClasses()
    assert [(c.name, c.value) for c in classes] == [
        ("system-node-critical", 2_000_001_000),
        ("system-cluster-critical", 2_000_000_000),
    ]
    for spec in BUILT_IN:
        assert "system-" in said(classes.why_not_set(spec))
        assert "built in" in said(classes.why_not_remove(spec.name))


def test_setting_says_what_changed() -> None:
    """The same again changes nothing."""
    classes = PriorityClasses()
    assert [classes.set(cls("a", 1)), classes.set(cls("a", 1)), classes.set(cls("a", 2))] == ["added", "", "changed"]
    check_classes(classes)


def test_the_default_moves_with_its_class() -> None:
    """There is one, then another, then none."""
    classes = PriorityClasses()
    classes.set(cls("a", global_default=True))
    assert classes.default == cls("a", global_default=True)
    assert "a is the global default already" in said(classes.why_not_set(cls("b", global_default=True)))
    assert classes.why_not_set(cls("a", 5, global_default=True)) is None
    classes.remove("a")
    assert classes.default is None
    check_classes(classes)


def test_the_queue_file_owns_its_classes() -> None:
    """They come, change and go with it; those made otherwise stay."""
    classes = PriorityClasses()
    classes.set(cls("own"))
    assert classes.configure([cls("a"), cls("b")]) == [("a", "added"), ("b", "added")]
    assert "queue file" in said(classes.why_not_set(cls("a", 5)))
    assert "queue file" in said(classes.why_not_remove("a"))
    assert classes.configure([cls("b", 2), cls("own", 3)]) == [("a", "removed"), ("b", "changed"), ("own", "changed")]
    assert classes.is_of_file("own")
    assert classes.configure([]) == [("b", "removed"), ("own", "removed")]
    check_classes(classes)


def test_a_file_cannot_bring_a_second_default() -> None:
    """Unless it also declares the first one, or the first is that of the file before."""
    classes = PriorityClasses()
    classes.set(cls("own", global_default=True))
    assert "own" in classes.file_problems([cls("a", global_default=True)])[0]
    assert classes.file_problems([cls("a", global_default=True), cls("own")]) == []
    classes.configure([cls("a", global_default=True), cls("own")])
    assert classes.file_problems([cls("b", global_default=True)]) == []


def test_what_is_written_down_comes_back() -> None:
    """With who owns what."""
    classes, again = PriorityClasses(), PriorityClasses()
    classes.set(cls("own", 5, global_default=True, preemption_policy="Never", limited=True, description="d"))
    classes.configure([cls("a")])
    again.load(json.loads(json.dumps(classes.dump())))
    assert list(again) == list(classes)
    assert (again.default, again.is_of_file("a"), again.is_of_file("own")) == (classes.default, True, False)
    check_classes(again)


@pytest.mark.parametrize(
    ("field", "spec"),
    [
        ("name", QuotaSpec(name="Q", queue="root.a", resources=Limits({"vcore": 1}))),
        ("queue", QuotaSpec(name="q", queue="a", resources=Limits({"vcore": 1}))),
        ("queue", QuotaSpec(name="q", queue="root..a", resources=Limits({"vcore": 1}))),
        ("resources", QuotaSpec(name="q", queue="root.a", resources=Limits({}))),
        ("resources", QuotaSpec(name="q", queue="root.a", resources=Limits({"vcore": -1}))),
        (
            "scopes[0]",
            QuotaSpec(name="q", queue="root", resources=Limits({}), scopes=(Requirement("Other", "Exists"),)),
        ),
        (
            "scopes[1]",
            QuotaSpec(
                name="q",
                queue="root",
                resources=Limits({}),
                scopes=(Requirement("PriorityClass", "Exists"), Requirement("PriorityClass", "Gt", ("1",))),
            ),
        ),
    ],
)
def test_a_quota_that_makes_no_sense_is_refused(field: str, spec: QuotaSpec) -> None:
    """At the field that is wrong."""
    assert (quota_problem(spec) or ("",))[0] == field
