"""Task groups: how many members there are, and whether real asks wait for their places."""

from __future__ import annotations

from loose_books import application, ask, tree

from fairlead.core.books.task_groups import TaskGroup


def group_of(*sizes: int) -> TaskGroup:
    """A group whose placeholders have so many cores."""
    app = application(tree("root.a")["root.a"])
    group = TaskGroup("g")
    for at, size in enumerate(sizes):
        group.count_in(ask(app, f"p{at}", {"vcore": size}, placeholder=True))
    return group


def test_a_group_without_placeholders_keeps_nothing_waiting() -> None:
    assert not group_of().stands_in


def test_it_stands_in_until_each_was_replaced_or_lost() -> None:
    group = group_of(1, 1)
    group.replaced = 1
    assert group.stands_in
    group.timed_out = 1
    assert not group.stands_in


def test_a_placeholder_that_is_asked_for_later_is_waited_for_again() -> None:
    group = group_of(1)
    group.replaced = 1
    group.count_in(ask(application(tree("root.a")["root.a"]), "p"))
    assert group.stands_in


def test_its_size_is_that_of_the_first() -> None:
    assert group_of(3, 1).smallest == (("vcore", 3),)


def test_its_members_are_those_that_were_neither_replaced_nor_lost() -> None:
    group = group_of(1, 1, 1)
    assert group.members == 3
    group.replaced, group.timed_out = 1, 1
    assert group.members == 1
