"""Quotas by priority class: what comes under which, what is admitted, and what is counted."""

from __future__ import annotations

import pytest
from loose_books import application, ask, tree

from fairlead.core.books.asks import Ask
from fairlead.core.books.class_quotas import ClassQuotas, matches, quota_problem
from fairlead.core.model.constraints import Requirement
from fairlead.core.model.reasons import ClassNotAllowed, QuotaExceeded
from fairlead.core.model.resources import Limits
from fairlead.core.model.specs import QuotaSpec

ONE, THREE = (("vcore", 1),), (("vcore", 3),)


def scope(operator: str, *values: str) -> Requirement:
    """On the name of the class."""
    return Requirement("PriorityClass", operator, values)


def quota(name: str = "q", queue: str = "root.a", vcore: int | None = 2, *scopes: Requirement) -> QuotaSpec:
    """Of so many cores."""
    return QuotaSpec(name=name, queue=queue, resources=Limits({} if vcore is None else {"vcore": vcore}), scopes=scopes)


def quotas(*specs: QuotaSpec, there: tuple[Ask, ...] = ()) -> ClassQuotas:
    """These in force, with what is there already."""
    made = ClassQuotas(lambda: iter(there))
    made.configure(specs)
    return made


def obstacle(held: ClassQuotas, path: str, name: str = "", items: tuple[tuple[str, int], ...] = ONE) -> object:
    """Why an ask of this class is not admitted."""
    return held.obstacle(path, name, items, limited=False)


@pytest.mark.parametrize(
    ("given", "names"),
    [
        (scope("In", "high"), ["high"]),
        (scope("NotIn", "high"), ["", "low"]),
        (scope("Exists"), ["high", "low"]),
        (scope("DoesNotExist"), [""]),
    ],
)
def test_a_scope_selects_by_the_name_of_the_class(given: Requirement, names: list[str]) -> None:
    """No class is the empty name."""
    spec = quota("q", "root", 1, given)
    assert [name for name in ("", "high", "low") if matches(spec, name)] == names


def test_all_scopes_must_hold() -> None:
    both = quota("q", "root", 1, scope("Exists"), scope("NotIn", "low"))
    assert [name for name in ("", "high", "low") if matches(both, name)] == ["high"]


def test_what_is_beyond_a_quota_is_told_with_its_numbers() -> None:
    held = quotas(quota())
    held.add("root.a", "", ONE, 1)
    told = obstacle(held, "root.a", items=(("vcore", 2),))
    assert isinstance(told, QuotaExceeded)
    assert obstacle(held, "root.a") is None
    assert (told.queue, told.needed, told.used, told.max) == ("root.a", {"vcore": 2}, {"vcore": 1}, {"vcore": 2})


def test_a_quota_holds_for_its_queue_and_below() -> None:
    """Of names that begin alike only for its own; whatever the letters' case."""
    held = quotas(quota(queue="root.A"))
    assert obstacle(held, "root.a.x", items=THREE) is not None
    assert obstacle(held, "root.ab", items=THREE) is None


def test_a_limited_class_needs_a_quota_that_names_it() -> None:
    """One without scopes is for everybody and allows nothing in particular."""
    plain, named = quotas(quota()), quotas(quota("q", "root.a", None, scope("In", "gold")))
    assert plain.obstacle("root.a", "gold", ONE, limited=True) == ClassNotAllowed("gold", "root.a")
    assert named.obstacle("root.a.x", "gold", ONE, limited=True) is None


def test_a_new_quota_counts_what_is_there() -> None:
    """And takes nothing away that is beyond it."""
    app = application(tree("root.a")["root.a"])
    there = (ask(app, "one"), ask(app, "two", {"vcore": 3}))
    held = quotas(quota(), there=there)
    [counted] = held.by_name()
    assert (counted.used, counted.works) == ({"vcore": 4}, 2)
    held.count(there[1], -1)
    assert (counted.used, counted.works) == ({"vcore": 1}, 1)


def test_to_try_something_changes_nothing() -> None:
    held = quotas(quota())
    tried = held.copied()
    tried.add("root.a", "", ONE, 1)
    assert [q.used for q in held.by_name()] == [{}]
    assert [q.used for q in tried.by_name()] == [{"vcore": 1}]


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        (quota(name="Q!"), "name"),
        (quota(queue="a"), "queue"),
        (quota(queue="root..a"), "queue"),
        (quota(vcore=None), "resources"),
        (quota(vcore=-1), "resources"),
        (quota("q", "root", 1, Requirement("team", "In", ("x",))), "scopes[0]"),
        (quota("q", "root", 1, scope("Gt", "1")), "scopes[0]"),
        (quota("q", "root", 1, scope("In")), "scopes[0]"),
        (quota("q", "root", 1, scope("Exists", "x")), "scopes[0]"),
    ],
)
def test_a_quota_that_makes_no_sense_is_refused_by_field(bad: QuotaSpec, field: str) -> None:
    """With what to do about it."""
    problem = quota_problem(bad)
    assert problem is not None
    assert problem[0] == field
    assert len(problem[1]) > 20


def test_a_quota_that_makes_sense_is_taken() -> None:
    assert quota_problem(quota()) is None
    assert quota_problem(quota("q", "root", None, scope("In", "gold"))) is None
