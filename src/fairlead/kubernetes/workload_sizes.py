"""Workload sizes: whether all nodes together, if nothing else ran, could hold the pods with which a workload starts.

Decides only that; `workloads` keeps what is too large waiting. Work of other schedulers counts as if it could end.
Invariant: it depends on the capacity, labels and taints of nodes alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt

from fairlead.core.books.partition import Partition
from fairlead.core.model.quantities import format_amounts
from fairlead.core.model.specs import AskSpec
from fairlead.policy.eligibility.gang_size import apart_by, keeps_apart
from fairlead.policy.preemption.side_by_side import Members, have_room

Parts = tuple[tuple[AskSpec, int], ...]
"""One pod of each kind, and how many are like it."""


def parts_of(asks: Iterable[AskSpec]) -> Parts:
    """Asks that nodes cannot tell apart, counted together."""
    counts: Counter[object] = Counter()
    first: dict[object, AskSpec] = {}
    for ask in asks:
        key = _seen_by_nodes(ask)
        counts[key] += 1
        first.setdefault(key, ask)
    return tuple((first[key], count) for key, count in counts.items())


def _seen_by_nodes(ask: AskSpec) -> object:
    own = tuple(sorted(ask.labels.items())) if ask.where.anti_affinity else ()
    return ask.resources.items, ask.where, own


def asked_once(why: Callable[[Parts], str]) -> Callable[[Parts], str]:
    """`why_too_large`, asked once for all that nodes cannot tell apart: as long as nodes stay as they are."""
    said: dict[object, str] = {}

    def answer(parts: Parts) -> str:
        key = tuple((_seen_by_nodes(ask), count) for ask, count in parts)
        if (found := said.get(key)) is None:
            found = said[key] = why(parts)
        return found

    return answer


def why_too_large(partition: Partition, parts: Parts) -> str:
    """Why all nodes together could not hold so many of each at once, as a sentence; empty: they could, or nobody knows
    (of many different ones not all ways are tried).
    """
    count, total = sum(count for _, count in parts), partition.nodes.total
    needed: Counter[str] = Counter()
    for ask, times in parts:
        needed.update({name: amount * times for name, amount in ask.resources.items})
    if beyond := {name: amount for name, amount in needed.items() if amount > total.get(name, 0)}:
        there = format_amounts({name: total.get(name, 0) for name in beyond})
        return f"its {count} pods need {format_amounts(beyond, up=True)} together; all nodes together have {there}"
    for ask, times in parts:
        if (room := _room_for(partition, ask, times)) < times:
            each = format_amounts(dict(ask.resources.items), up=True)
            most = f"at most {room} of them" if room else "none of them"
            return f"of its {count} pods {times} need {each} each; all nodes together could hold {most}"
    if len(parts) > 1 and not _fit_side_by_side(partition, parts, dict(needed)):
        return f"its {count} pods have no room side by side: the nodes are too small, or too few suit them"
    return ""


def _room_for(partition: Partition, ask: AskSpec, most: int) -> int:
    """How many like this ask, at most, could stand on all nodes that it may use."""
    columns = partition.nodes.columns
    columns.sync()
    return columns.copies(_usable(partition, ask), ask.resources.items, 1 if keeps_apart(ask) else most)


def _usable(partition: Partition, ask: AskSpec) -> npt.NDArray[np.bool_]:
    ground = partition.nodes.terrain.ground(ask.where)
    return ground.named & ground.tolerated


def _fit_side_by_side(partition: Partition, parts: Parts, needed: dict[str, int]) -> bool:
    """Whether all of them could stand on the nodes at once, or it is not known that they could not."""
    rows = partition.nodes.columns.rows
    room = {name: np.array([node.total.get(name, 0) for node in rows], dtype=np.float64) for name in needed}
    each = (Members(ask.resources.items, n, _usable(partition, ask), apart_by(ask)) for ask, n in parts)
    return have_room(tuple(each), room)
