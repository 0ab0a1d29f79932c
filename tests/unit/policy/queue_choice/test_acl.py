from __future__ import annotations

import pytest

from fairlead.core.books.queues import Queue
from fairlead.policy.queue_choice.acl import access_list_problem, may_submit, read_access_list


def tree(root: str = "", leaf: str = "", root_admin: str = "", leaf_admin: str = "") -> Queue:
    above = Queue("root", None, 1, leaf=False, managed=True)
    above.submit_acl, above.admin_acl = root, root_admin
    below = Queue("team", above, 2, leaf=True, managed=True)
    below.submit_acl, below.admin_acl = leaf, leaf_admin
    return below


@pytest.mark.parametrize(
    ("text", "allowed", "denied"),
    [
        ("", [], [("alice", ("devs",)), ("", ())]),
        (" ", [], [("alice", ("devs",))]),
        ("*", [("alice", ()), ("1 !", ())], []),
        (" * ", [("alice", ())], []),
        ("* devs", [("alice", ("ops",))], []),
        ("bob *", [("alice", ("ops",))], []),
        ("alice", [("alice", ("ops",))], [("bob", ("alice",)), ("Alice", ())]),
        (" devs", [("bob", ("ops", "devs"))], [("devs", ("ops",))]),
        ("alice,bob ops,devs", [("bob", ()), ("carol", ("devs",))], [("carol", ("qa",))]),
        ("alice,*", [("alice", ())], [("bob", ())]),
        ("a.b,svc$,x@y", [("a.b", ()), ("svc$", ()), ("x@y", ())], []),
        ("a:b,9x a.b", [], [("a:b", ()), ("9x", ()), ("c", ("a.b",))]),
        ("a  b", [], [("a", ()), ("c", ("b",))]),
    ],
)
def test_who_is_on_a_list(
    text: str, allowed: list[tuple[str, tuple[str, ...]]], denied: list[tuple[str, tuple[str, ...]]]
) -> None:
    """Users, one blank, groups; what cannot be read allows nobody."""
    acl = read_access_list(text)
    assert [who for who in allowed if not acl.allows(*who)] == []
    assert [who for who in denied if acl.allows(*who)] == []


@pytest.mark.parametrize(
    ("text", "bad"), [("a b c", True), ("a  b", True), ("a b", False), ("   ", False), ("*", False)]
)
def test_more_than_one_blank_is_a_problem(text: str, bad: bool) -> None:
    """Only blanks are nobody."""
    assert bool(access_list_problem(text)) is bad


def test_submitters_of_a_queue_above_may_submit() -> None:
    """The list of any queue up to the root will do."""
    assert may_submit(tree(root="alice"), "alice")
    assert may_submit(tree(leaf="alice"), "alice")
    assert not may_submit(tree(root="bob", leaf="carol"), "alice")


def test_administrators_may_submit() -> None:
    """Of the queue or of one above."""
    assert may_submit(tree(root_admin=" devs"), "alice", ("devs",))
    assert may_submit(tree(leaf_admin="alice"), "alice")


def test_without_groups_a_user_is_a_group_of_his_own() -> None:
    """Given groups replace it."""
    assert may_submit(tree(root=" alice"), "alice")
    assert not may_submit(tree(root=" alice"), "alice", ("devs",))


def test_nobody_submits_to_the_recovery_queue() -> None:
    """Whatever the root's list says."""
    root = Queue("root", None, 1, leaf=False, managed=True)
    root.submit_acl = root.admin_acl = "*"
    assert not may_submit(Queue("@recovery@", root, 2, leaf=True, managed=False), "alice")
