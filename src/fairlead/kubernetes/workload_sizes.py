"""Workload sizes: whether all nodes together, if nothing else ran, could hold the pods with which a workload starts.

Decides only that; `workloads` keeps what is too large waiting. Work of other schedulers counts as if it could end.
Invariant: it depends on the capacity, labels and taints of nodes alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from fairlead.core.books.partition import Partition
from fairlead.core.model.quantities import format_amounts
from fairlead.core.model.specs import AskSpec
from fairlead.policy.eligibility.gang_size import keeps_apart

Parts = tuple[tuple[AskSpec, int], ...]
"""One pod of each kind, and how many are like it."""


def parts_of(asks: Iterable[AskSpec]) -> Parts:
    """Asks that nodes cannot tell apart, counted together."""
    counts: Counter[object] = Counter()
    first: dict[object, AskSpec] = {}
    for ask in asks:
        own = tuple(sorted(ask.labels.items())) if ask.where.anti_affinity else ()
        key = ask.resources.items, ask.where, own
        counts[key] += 1
        first.setdefault(key, ask)
    return tuple((first[key], count) for key, count in counts.items())


def why_too_large(partition: Partition, parts: Parts) -> str:
    """Why all nodes together could not hold so many of each at once, as a sentence; empty: they could, or it is only
    that different ones do not fit side by side.
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
    return ""


def _room_for(partition: Partition, ask: AskSpec, most: int) -> int:
    """How many like this ask, at most, could stand on all nodes that it may use."""
    nodes = partition.nodes
    nodes.columns.sync()
    ground = nodes.terrain.ground(ask.where)
    among = ground.named & ground.tolerated
    return nodes.columns.copies(among, ask.resources.items, 1 if keeps_apart(ask) else most)
