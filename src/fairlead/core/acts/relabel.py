"""Relabelling: an ask or an allocation gets other labels, constraints or images in place.

Decides what follows for what runs beside it, what waits, and the budgets that it counts for. Never stops what may not
be where it is any more: constraints are for the start. Invariant: what waits keeps its place in line.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fairlead.core.acts import shapes, waiting_asks

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairlead.core.books.asks import Ask
    from fairlead.core.books.partition import Partition
    from fairlead.core.model.constraints import Constraints


def relabel(
    partition: Partition, ask: Ask, labels: Mapping[str, str], where: Constraints, images: tuple[str, ...]
) -> None:
    """`ask` has these labels and constraints from now on, and runs these images."""
    old, spec = ask.spec, replace(ask.spec, labels=labels, where=where, images=images)
    shapes.meet(partition, spec.where)
    partition.admission.leave(ask)
    if ask.node is not None:
        partition.nodes.terrain.count(old, ask.node, -1)
        ask.spec = spec
        partition.nodes.terrain.count(spec, ask.node, 1)
        partition.nodes.gained(ask.node)  # A host port, or a place for a volume, may be free now.
    else:
        waiting_asks.describe(partition, ask, spec)
    partition.admission.enter(ask)
    shapes.part(partition, old.where)
    partition.books_version += 1
