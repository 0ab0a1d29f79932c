"""Side by side: the same as trying every way, and never a no that is not sure."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest

from fairlead.policy.order.victim_index import Numbers
from fairlead.policy.preemption import side_by_side
from fairlead.policy.preemption.side_by_side import Members, have_room


def column(*amounts: int) -> dict[str, Numbers]:
    return {"vcore": np.array(amounts, dtype=np.float64)}


def some(size: int, count: int, nodes: int, *but: int, apart: str = "") -> Members:
    usable = np.ones(nodes, dtype=np.bool_)
    usable[list(but)] = False
    return Members((("vcore", size),), count, usable, (apart,) if apart else ())


def by_every_way(members: Sequence[Members], room: dict[str, Numbers]) -> bool:
    """All assignments of all members to nodes."""
    each = [one for one in members for _ in range(one.count)]
    nodes = range(len(next(iter(room.values()))))
    for places in product(nodes, repeat=len(each)):
        left = {name: list(values) for name, values in room.items()}
        shut = [(one.apart, node) for one, node in zip(each, places, strict=True) if one.apart]
        for one, node in zip(each, places, strict=True):
            for name, amount in one.items:
                left[name][node] -= amount
        fits = all(value >= 0 for values in left.values() for value in values)
        suits = all(one.usable[node] for one, node in zip(each, places, strict=True))
        if fits and suits and len(set(shut)) == len(shut):
            return True
    return False


def test_by_themselves_and_in_sum_is_not_side_by_side() -> None:
    room = column(4, 4)
    assert not have_room([some(3, 2, 2), some(2, 1, 2)], room)
    assert have_room([some(3, 1, 2), some(2, 2, 2)], room)


def test_large_ones_first_on_the_fullest_node_may_be_the_wrong_way() -> None:
    """The small one suits that node alone."""
    assert have_room([some(3, 1, 2), some(2, 1, 2, 1)], column(3, 4))
    assert not have_room([some(3, 1, 2), some(2, 1, 2, 1)], column(3, 2))


def test_those_that_keep_apart_share_no_node_whatever_their_size() -> None:
    room = column(9, 9)
    assert have_room([some(2, 1, 2, apart="p"), some(1, 1, 2, apart="p"), some(1, 9, 2)], room)
    assert not have_room([some(2, 2, 2, apart="p"), some(1, 1, 2, apart="p")], room)


@pytest.mark.parametrize("number", range(40))
def test_it_says_what_every_way_says(number: int) -> None:
    chance = random.Random(number)
    for _ in range(25):
        nodes = chance.randint(1, 4)
        names = ["vcore", "memory"][: chance.randint(1, 2)]
        room = {name: np.array([float(chance.randint(0, 9)) for _ in range(nodes)]) for name in names}
        members = []
        for _ in range(chance.randint(1, 3)):
            items = tuple((name, chance.randint(1, 5)) for name in names)
            usable = np.array([chance.random() < 0.8 for _ in range(nodes)], dtype=np.bool_)
            apart = (chance.choice("pq"),) if chance.random() < 0.3 else ()
            members.append(Members(items, chance.randint(1, 2), usable, apart))
        assert have_room(members, room) is by_every_way(members, room)


@pytest.mark.plain
def test_what_takes_too_many_tries_may_have_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """It says no only where it is sure."""
    members, room = [some(3, 6, 8), some(2, 7, 8)], column(*[4] * 8)
    assert not have_room(members, room)
    monkeypatch.setattr(side_by_side, "STEPS_MAX", 3)
    assert have_room(members, room)


def test_of_many_it_is_sure_only_where_their_sizes_say_so() -> None:
    """Thousands are not tried in every way; placed large ones first they have room on thousands of nodes at once."""
    room = column(*[8] * 2_000)
    assert have_room([some(5, 2_000, 2_000), some(3, 2_000, 2_000)], room)
    assert have_room([some(5, 2_000, 2_000), some(3, 2_001, 2_000)], room), "not known"


@pytest.mark.plain
def test_on_thousands_of_nodes_no_more_of_them_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes that are alike are told from others one by one: that is a part of what is bounded."""
    looked_at, alike = [0], side_by_side._Tries._alike

    def counted(*given: Any) -> tuple[object, ...]:
        looked_at[0] += 1
        return alike(*given)

    monkeypatch.setattr(side_by_side._Tries, "_alike", counted)
    room = column(*[3 + at % 50 for at in range(5_000)])
    assert have_room([some(3, 40, 5_000), some(2, 1, 5_000, *range(1, 5_000))], room), "not known"
    assert 0 < looked_at[0] <= side_by_side.STEPS_MAX
