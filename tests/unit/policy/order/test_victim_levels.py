"""The rows of what may be stopped are in order by rank, however many ranks there are."""

from __future__ import annotations

import numpy as np
import pytest
from loose_books import tree

from fairlead.policy.order import victim_levels
from fairlead.policy.order.victim_levels import Rooms, Sorted


@pytest.mark.parametrize("many", [2**15 - 1, 2**15 + 1])
def test_many_ranks_are_in_order(many: int) -> None:
    """Also where there are more than small numbers can say."""
    leaf = tree("root.a")["root.a"]
    groups, ranks = [(leaf, priority) for priority in range(many)], [(priority, priority) for priority in range(many)]
    rows = Sorted(groups, ranks, [1] * many, np.arange(many)[::-1]).within(None)
    assert [place for place, _ in rows] == ranks
    assert [each.tolist() for _, each in rows[:2]] == [[many - 1], [many - 2]]
    assert rows[-1][1].tolist() == [0]


def test_what_is_free_at_a_rank_is_kept_of_so_many_and_worked_out_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(victim_levels, "LEVELS_KEPT", 2)
    leaf = tree("root.a")["root.a"]
    groups, ranks = [(leaf, priority) for priority in range(4)], [(priority, priority) for priority in range(4)]
    rows = Sorted(groups, ranks, [1] * 4, np.array([3, 1, 0, 2]))
    room, amounts = {"cpu": np.array([1.0, 0.0])}, {"cpu": np.array([40.0, 2.0, 1.0, 3.0])}
    rooms = Rooms(rows, room, amounts, np.array([1, 0, 0, 1]), np.array([True, True]))
    expected = {1: (), 2: (0, 0), 4: (1, 1), 5: (3, 3), 43: (3, 3), 44: None}
    for _ in range(2):
        assert {cores: rooms.lowest_for((("cpu", cores),), 10) for cores in expected} == expected
    assert rooms.lowest_for((("cpu", 44),), 2) == (2, 2)
    assert rooms.lowest_for((("gpu", 1),), 10) is None
    assert len(rooms._kept) == 3
    assert room["cpu"].tolist() == [1, 0]
    closed = Rooms(rows, room, amounts, np.array([1, 0, 0, 1]), np.array([True, False]))
    assert closed.lowest_for((("cpu", 5),), 10) is None
