"""The rows of the table of what may be stopped, by the rank of their work.

Decides which rows are in reach of an ask, and what is free on each node once all up to a rank is gone. Never decides
what an ask needs (`victim_index`). Invariant: one order of rows serves all that look before the table changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from fairlead.core.books.queues import Queue
from fairlead.core.model.resources import Items
from fairlead.policy.order.effective_priority import EVERYBODY, Rank, Reach

Numbers = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Group = tuple["Queue", int]
"""A leaf and a priority."""
Room = dict[str, Numbers]
"""What is free on each node, by resource."""
ROUNDING = 1e-9
"""Sums of floating-point numbers may be wrong by such a part: a node is rather looked at in vain."""
LEVELS_KEPT = 32
"""Of no more ranks it is kept what is free then: each takes as much memory as the nodes."""


class Sorted:
    """The rows by the rank of their groups: the same for all that look before the table changes."""

    def __init__(self, groups: list[Group], ranks: list[Rank], counts: list[int], entry_group: Rows) -> None:
        there = [i for i, count in enumerate(counts) if count]
        places = [ranks[i] for i in there]
        self._places = sorted(dict.fromkeys(places))
        number = {place: i for i, place in enumerate(self._places)}
        # NumPy puts numbers of 16 bits in order by counting, not by comparing: six times as fast.
        level_of = np.full(len(groups) + 1, -1, dtype=np.int16 if len(number) < 2**15 else np.int64)
        level_of[there] = [number[place] for place in places]
        level = level_of[entry_group]
        order = np.argsort(level, kind="stable")
        self._rows = order[np.searchsorted(level[order], 0) :]
        self._level_of_row = level[self._rows]
        self._group_of_row = entry_group[self._rows]
        leaves: dict[Queue, int] = {}
        self._leaf_of = np.array([leaves.setdefault(groups[i][0], len(leaves)) for i in there], dtype=np.int64)
        self._priorities = np.array([groups[i][1] for i in there], dtype=np.int64)
        self._leaves = list(leaves)
        self._groups = np.array(there, dtype=np.int64)
        self._is_allowed = np.zeros(len(groups), dtype=np.bool_)
        self._within: dict[object, list[tuple[Rank, Rows]]] = {}

    def within(self, reach: Reach | None) -> list[tuple[Rank, Rows]]:
        """By rank, in order, the rows of what may be stopped: asks that reach equally far share them."""
        key = reach.key if reach is not None else None
        found = self._within.get(key)
        if found is None:
            found = self._within[key] = list(self._find_within(reach))
        return found

    def _find_within(self, reach: Reach | None) -> Iterator[tuple[Rank, Rows]]:
        below = (reach.below(leaf) if reach is not None else EVERYBODY for leaf in self._leaves)
        limits = np.fromiter(below, dtype=np.int64)
        allowed = self._priorities < limits[self._leaf_of]
        if not allowed.any():
            return
        self._is_allowed[self._groups] = allowed
        chosen = self._is_allowed[self._group_of_row]
        rows, levels = self._rows[chosen], self._level_of_row[chosen]
        starts = np.flatnonzero(np.diff(levels, prepend=-1))
        for start, end in pairwise([*starts, len(rows)]):
            yield self._places[levels[start]], rows[start:end]


class Rooms:
    """What is free on each node once all work up to a rank is gone: the same for all amounts, as things are."""

    def __init__(
        self, rows: Sorted, room: Room, amounts: Mapping[str, Numbers], entry_row: Rows, is_open: Flags
    ) -> None:
        self._levels, self._amounts, self._entry_row, self._open = rows.within(None), amounts, entry_row, is_open
        self._kept = [room]

    def lowest_for(self, items: Items, upto: int) -> tuple[int, ...] | None:
        """The rank of the highest work that has to go, with all below it, so that some open node has room for this much
        (nothing: none has to); the first that is as high as `upto`, as seen at the root, if nothing below is enough;
        None: all of it is not.
        """
        least = [(name, amount * (1 - ROUNDING)) for name, amount in items if amount > 0]
        if self._some_has(self._kept[0], least):
            return ()
        room = self._kept[0]
        for number, (place, rows) in enumerate(self._levels, 1):
            room = self._kept[number] if number < len(self._kept) else self._without(room, rows)
            if place[0] >= upto or self._some_has(room, least):
                return place
        return None

    def _without(self, room: Room, rows: Rows) -> Room:
        """What is free once the work of these rows is gone, too; of the first ranks that is kept."""
        found = {name: column.copy() for name, column in room.items()}
        for name, column in self._amounts.items():
            np.add.at(found[name], self._entry_row[rows], column[rows])
        if len(self._kept) <= LEVELS_KEPT:
            self._kept.append(found)
        return found

    def _some_has(self, room: Room, least: list[tuple[str, float]]) -> bool:
        met = self._open
        for name, amount in least:
            column = room.get(name)
            if column is None:
                return False
            met = met & (column >= amount)
        return bool(met.any())
