from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import pytest

from fairlead.core.books.timers import Timer
from fairlead.core.model.resources import Resources
from fairlead.insight.copying import copied


def test_what_is_shared_inside_is_shared_inside_the_copy() -> None:
    """One object stays one object, in circles too."""
    book: dict[str, Any] = {"vcore": 1}
    circle: list[Any] = [book, {"again": book}]
    circle.append(circle)
    copy = copied(circle)
    assert copy[0] is copy[1]["again"]
    assert copy[2] is copy
    assert copy[0] is not book


def test_values_are_the_same_objects() -> None:
    """What nobody can change need not be copied."""
    amount, items = Resources({"vcore": 1}), (("vcore", 1),)
    copy = copied([amount, items, "text", None])
    assert copy[0] is amount
    assert copy[1] is items


def test_tuples_with_something_inside_that_changes_are_copied() -> None:
    """Entries of heaps are of this kind."""
    inner = [1]
    copy = copied({"plain": (inner, 2), "named": Timer(1, 2, "p", "s", "k")})
    inner.append(2)
    assert copy["plain"] == ([1], 2)
    assert copy["named"] == Timer(1, 2, "p", "s", "k")


def test_containers_keep_their_kind_and_order() -> None:
    """Of sets the members, of columns the numbers."""
    column = np.array([3, 1])
    old = {"deque": deque([2, 1]), "set": {1}, "frozen": frozenset({2}), "column": column, "b": 1, "a": 2}
    copy = copied(old)
    column[0] = 9
    assert list(copy) == list(old)
    assert copy["deque"] == deque([2, 1])
    assert copy["set"] == {1}
    assert copy["frozen"] == frozenset({2})
    assert copy["column"].tolist() == [3, 1]


def test_a_bound_method_belongs_to_the_copy() -> None:
    """Not to the original."""
    numbers = deque([1])
    copy = copied({"numbers": numbers, "append": Counter(numbers).count})
    copy["append"]()
    assert (list(numbers), list(copy["numbers"])) == ([1], [1, 0])


class Counter:
    __slots__ = ("numbers",)
    __module__ = "fairlead.tests"

    def __init__(self, numbers: deque[int]) -> None:
        self.numbers = numbers

    def count(self) -> None:
        self.numbers.append(0)


def test_a_stranger_is_refused() -> None:
    """Better than to share what should not be shared."""
    with pytest.raises(TypeError, match="cannot copy a"):
        copied([memoryview(b"x")])
