"""What counts as a difference at each level."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.sim.compare import ABSENT, differences, viewed

NO_ALLOCATIONS: tuple[list[str] | None, ...] = (None, [])


def rows(*keys: str, step: int = 1, app: str = "a") -> list[dict[str, Any]]:
    """Allocations of one application on one node."""
    return [{"key": k, "app": app, "node": "n", "step": step} for k in keys]


def outcome(**changes: Any) -> dict[str, Any]:
    """A small outcome, with some sections changed."""
    app = {
        "state": "Running",
        "allocated": {"vcore": 2},
        "pending": {},
        "placeholder": {},
        "allocations": ["x@n", "y@n"],
    }
    queue = {"currentPriority": -(2**31), "isLeaf": True, "headroom": {"vcore": 0}, "allocatedResource": {"vcore": 2}}
    base: dict[str, Any] = {
        "allocated": rows("x", "y"),
        "released": [{"key": "x", "app": "a", "by": "STOPPED_BY_RM", "step": 2}],
        "apps_accepted": ["a"],
        "apps_rejected": {},
        "asks_rejected": {"z": "too big"},
        "nodes_rejected": {},
        "apps": {"a": app},
        "queues": {"root": queue},
    }
    return base | changes


def paths(expect: dict[str, Any], got: dict[str, Any], level: str = "exact") -> list[str]:
    """Where the two differ."""
    return [d.path for d in differences(expect, got, level)]


@pytest.mark.parametrize("level", ["exact", "set", "coarse"])
def test_an_outcome_does_not_differ_from_itself(level: str) -> None:
    """At no level."""
    assert paths(outcome(), outcome(), level) == []


def test_order_of_allocations_matters_only_when_exact() -> None:
    """`set` and `coarse` take them in any order."""
    other = outcome(allocated=rows("y", "x"))
    assert paths(outcome(), other) == ["allocated[0]", "allocated[1]"]
    assert paths(outcome(), other, "set") == []
    assert paths(outcome(), other, "coarse") == []


def test_another_node_matters_unless_coarse() -> None:
    """`coarse` counts allocations of an application in a step."""
    moved = outcome(allocated=[*rows("x"), {"key": "y", "app": "a", "node": "m", "step": 1}])
    assert paths(outcome(), moved, "set") == ["allocated[1]"]
    assert paths(outcome(), moved, "coarse") == []


def test_coarse_compares_numbers_by_step_and_application() -> None:
    """One allocation fewer is a difference, and so is another step; recorded rows carry their count."""
    recorded = outcome(allocated=[{"step": 1, "app": "a", "count": 2}])
    assert paths(recorded, outcome(), "coarse") == []
    assert paths(recorded, outcome(allocated=rows("x")), "coarse") == ["allocated['step 1, app a']"]
    assert paths(recorded, outcome(allocated=rows("x", "y", step=2)), "coarse") == [
        "allocated['step 1, app a']",
        "allocated['step 2, app a']",
    ]


def test_coarse_leaves_out_which_allocations_an_application_has() -> None:
    """But not its amounts."""
    app = outcome()["apps"]["a"]
    assert paths(outcome(), outcome(apps={"a": app | {"allocations": ["q@m"]}}), "coarse") == []
    assert paths(outcome(), outcome(apps={"a": app | {"allocated": {"vcore": 1}}}), "coarse") == [
        "apps['a']['allocated']['vcore']"
    ]


def test_wording_of_a_refusal_is_not_compared_but_the_refusal_is() -> None:
    """Another sentence is the same refusal; another key is not."""
    assert paths(outcome(), outcome(asks_rejected={"z": "other words"})) == []
    assert paths(outcome(), outcome(asks_rejected={})) == ["asks_rejected[0]"]


def test_zero_amounts_are_absent_but_zero_headroom_is_not() -> None:
    """In an amount 0 is nothing; in a limit it means none."""
    app = outcome()["apps"]["a"]
    assert paths(outcome(), outcome(apps={"a": app | {"pending": {"vcore": 0}}})) == []
    queue = outcome()["queues"]["root"]
    assert paths(outcome(), outcome(queues={"root": queue | {"pendingResource": {"memory": 0}}})) == []
    assert paths(outcome(), outcome(queues={"root": queue | {"headroom": {}}})) == [
        "queues['root']['headroom']['vcore']"
    ]


def test_no_allocations_may_be_null_or_empty() -> None:
    """A recorded `null` is an empty list."""
    app = outcome()["apps"]["a"]
    left, right = (outcome(apps={"a": app | {"allocations": value}}) for value in NO_ALLOCATIONS)
    assert paths(left, right) == []


def test_missing_and_additional_parts_are_both_differences() -> None:
    """A queue or application on one side only is shown with what is absent."""
    (extra,) = differences(outcome(), outcome(apps=outcome()["apps"] | {"b": {"state": "New"}}), "exact")
    assert (extra.path, extra.expected) == ("apps['b']", ABSENT)
    (missing,) = differences(outcome(), outcome(queues={}), "exact")
    assert (missing.path, missing.got) == ("queues['root']", ABSENT)
    assert str(missing).startswith("queues['root']: expected {")
    assert str(missing).endswith("got nothing")


def test_a_refused_configuration_is_compared_by_the_fact_alone() -> None:
    """Both refused: equal. One refused: one difference, whatever else there is."""
    assert differences({"rejected": "one way"}, {"rejected": "another"}, "exact") == []
    (d,) = differences({"rejected": "why"}, outcome(), "exact")
    assert str(d) == "configuration: expected refused: why, got accepted"
    (d,) = differences(outcome(), {"rejected": "why"}, "coarse")
    assert str(d) == "configuration: expected accepted, got refused: why"


def test_a_view_does_not_change_what_it_looks_at() -> None:
    """Comparing twice compares the same."""
    before = outcome()
    viewed(before, "coarse")
    assert before == outcome()
