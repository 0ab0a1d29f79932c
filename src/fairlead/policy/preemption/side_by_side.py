"""Side by side: whether asks of several sizes have room on some nodes at once, each on one of them.

Decides it for the members of a gang: large ones first on the fullest nodes, and, where that fails and there are few,
by trying all ways. Never says which goes where. Invariant: it says no only where it is sure, so that whoever stops
nothing because of it would have stopped work in vain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fairlead.core.model.resources import Items
from fairlead.policy.order.victim_levels import ROUNDING, Numbers

STEPS_MAX = 2_000
"""So often a node is looked at for a member at most; beyond, there may be a way."""
MEMBERS_MAX = 64
"""Of more all ways are not tried."""


@dataclass(frozen=True, slots=True)
class Members:
    """Some asks of one size."""

    items: Items
    count: int
    usable: npt.NDArray[np.bool_]
    """The nodes that suit them."""
    apart: tuple[object, ...] = ()
    """No two with the same of these are on one node; nothing: any number are."""


def have_room(members: Sequence[Members], room: dict[str, Numbers]) -> bool:
    """Whether all of them have room beside each other; `room`: what each node has."""
    largest = {name: max(float(column.max(initial=0.0)), 1.0) for name, column in room.items()}
    in_order = sorted(members, key=lambda each: -max((v / largest[n] for n, v in each.items), default=0.0))
    return _fit_in_order(in_order, room) or _Tries(in_order, room).may_fit()


def _fit_in_order(members: Sequence[Members], room: dict[str, Numbers]) -> bool:
    left = {name: column.copy() for name, column in room.items()}
    shut: dict[tuple[object, ...], npt.NDArray[np.bool_]] = {}
    for each in members:
        times = np.where(each.usable, 1.0 if each.apart else float(each.count), 0.0)
        for name, amount in each.items:
            times = np.minimum(times, np.floor(left[name] / amount + ROUNDING))
        if each.apart in shut:
            times[shut[each.apart]] = 0.0
        order = np.argsort(np.where(times > 0, times, np.inf), kind="stable")
        before = np.cumsum(times[order]) - times[order]
        taken = np.zeros_like(times)
        taken[order] = np.clip(each.count - before, 0.0, times[order])
        if taken.sum() < each.count:
            return False
        for name, amount in each.items:
            left[name] -= taken * amount
        if each.apart:
            shut[each.apart] = shut.get(each.apart, False) | (taken > 0)
    return True


class _Tries:
    """Every way, one member after the other."""

    def __init__(self, members: Sequence[Members], room: dict[str, Numbers]) -> None:
        self._members = [each for each in members for _ in range(each.count)]
        self._room = room
        self._steps = 0
        self._taken: list[int] = []
        """The nodes of those that have one."""

    def may_fit(self) -> bool:
        """Whether one of them may lead to the end."""
        are_many = len(self._members) > MEMBERS_MAX
        return are_many or self._from(0, {name: column.copy() for name, column in self._room.items()})

    def _from(self, at: int, left: dict[str, Numbers]) -> bool:
        if at == len(self._members):
            return True
        each = self._members[at]
        fits = each.usable.copy()
        for name, amount in each.items:
            fits &= left[name] >= amount * (1 - ROUNDING)
        if at and self._members[at - 1] is each:
            fits[: self._taken[-1]] = False  # Which of them is where makes no difference.
        if each.apart:
            fits[
                [node for other, node in zip(self._members, self._taken, strict=False) if other.apart == each.apart]
            ] = False
        tried: set[tuple[object, ...]] = set()
        for node in map(int, np.flatnonzero(fits)):
            self._steps += 1
            if self._steps > STEPS_MAX:
                return True
            alike = self._alike(at, node, left)
            if alike in tried:
                continue
            tried.add(alike)
            for name, amount in each.items:
                left[name][node] -= amount
            self._taken.append(node)
            if self._from(at + 1, left):
                return True
            self._taken.pop()
            for name, amount in each.items:
                left[name][node] += amount
        return False

    def _alike(self, at: int, node: int, left: dict[str, Numbers]) -> tuple[object, ...]:
        """What is the same of nodes that are alike for the members from there on."""
        stand = {other.apart for other, there in zip(self._members, self._taken, strict=False) if there == node}
        later = ((bool(m.usable[node]), bool(m.apart) and m.apart in stand) for m in self._members[at:])
        return (*(float(column[node]) for column in left.values()), *later)
