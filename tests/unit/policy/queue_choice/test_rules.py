from __future__ import annotations

import pytest

from fairlead.core.model.specs import FilterSpec
from fairlead.policy.queue_choice.rules import RuleError, build_filter


def passes(user: str = "alice", **filter_: object) -> bool:
    return build_filter(FilterSpec(**filter_)).lets_pass(user, (user,))  # type: ignore[arg-type]


def test_no_filter_is_for_everybody() -> None:
    """A rule without one looks at every application."""
    assert build_filter(None).lets_pass("anybody", ())


@pytest.mark.parametrize(("kind", "expected"), [("", True), ("allow", True), ("deny", False), ("DENY", False)])
def test_a_filter_without_names_says_its_type(kind: str, expected: bool) -> None:
    """`DENY` is meant as it is written."""
    assert passes(type=kind) is expected


def test_listed_users_pass_and_others_do_not() -> None:
    """`deny` is the opposite."""
    assert passes(users=("alice", "bob"))
    assert not passes("carol", users=("alice", "bob"))
    assert not passes(type="deny", users=("alice",))
    assert passes("carol", type="deny", users=("alice",))


def test_any_group_counts() -> None:
    """Not only the first."""
    devs = build_filter(FilterSpec(groups=("devs",)))
    assert devs.lets_pass("x", ("ops", "devs"))
    assert not devs.lets_pass("devs", ("ops",))


def test_a_single_entry_with_a_sign_is_an_expression() -> None:
    """It matches anywhere; in a list of several it would be no name."""
    assert passes("team-alice", users=("ali+",))
    assert not passes("bob", users=("ali+",))
    assert not passes("team-alice", users=("ali+", "bob"))
    assert passes("svc$", users=("svc$",)) is False
    assert passes("svc", users=("svc$",))


@pytest.mark.parametrize("names", [("a b",), ("a b", "9x")])
def test_names_that_nobody_can_have_match_nobody(names: tuple[str, ...]) -> None:
    """The filter is not empty for that."""
    assert not passes("a b", users=names)
    assert passes("a b", type="deny", users=names)


def test_a_broken_expression_is_refused() -> None:
    """With the text it has."""
    with pytest.raises(RuleError, match=r"\[bad"):
        build_filter(FilterSpec(users=("[bad",)))


def test_an_unknown_type_is_refused() -> None:
    """Neither allow nor deny."""
    with pytest.raises(RuleError, match="perhaps"):
        build_filter(FilterSpec(type="perhaps"))
