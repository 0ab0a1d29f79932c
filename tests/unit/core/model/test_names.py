"""Names: which texts are names of queues, users, groups and declared things."""

from __future__ import annotations

import pytest

from fairlead.core.model.names import ACL_GROUP, ACL_USER, GROUP_NAME, QUEUE_NAME, SUBDOMAIN, USER_NAME


@pytest.mark.parametrize("text", ["a", "Team-1", "a_b:c#d/e@f", "x" * 64, "@recovery@"])
def test_a_level_of_a_path(text: str) -> None:
    """Letters, digits and a few signs, up to 64."""
    assert QUEUE_NAME.fullmatch(text)


@pytest.mark.parametrize("text", ["", "x" * 65, "a.b", "a b", "ä", "a\n"])
def test_no_level_of_a_path(text: str) -> None:
    """A dot parts levels; a line's end is no part of a name."""
    assert not QUEUE_NAME.fullmatch(text)


@pytest.mark.parametrize("text", ["a", "high-priority", "a.b-c.9", "x" * 63, ".".join(["a" * 63] * 3)])
def test_a_dns_subdomain(text: str) -> None:
    """Labels of at most 63 signs, 253 in all."""
    assert SUBDOMAIN.fullmatch(text)


@pytest.mark.parametrize(
    "text", ["", "A", "-a", "a-", "a..b", ".a", "a_b", "x" * 64, ".".join(["a" * 63] * 4) + ".a", "a\n"]
)
def test_no_dns_subdomain(text: str) -> None:
    """Lower case only; a label begins and ends with a letter or digit."""
    assert not SUBDOMAIN.fullmatch(text)


def test_access_lists_take_fewer_users_than_limits() -> None:
    """A user such as `a:b` can have a limit, and be on no list."""
    assert USER_NAME.fullmatch("a:b")
    assert not ACL_USER.fullmatch("a:b")
    assert USER_NAME.fullmatch("svc$")
    assert ACL_USER.fullmatch("svc$")
    assert not USER_NAME.fullmatch("9a")


def test_access_lists_take_fewer_groups_than_limits() -> None:
    """Dots and colons are for limits and filters."""
    assert GROUP_NAME.fullmatch("a.b:c")
    assert not ACL_GROUP.fullmatch("a.b")
    assert not GROUP_NAME.fullmatch("a$")
