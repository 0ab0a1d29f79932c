"""Fills: the colour of each queue, the same in every plot of every outcome.

Decides which queue has which colour. Never draws.
"""

from __future__ import annotations

from collections.abc import Sequence

from fairlead.sim.plots import FILLS
from fairlead.sim.verdicts import Outcome

LAYERS_MAX = 11
"""So many queues have a layer of their own; the others are summed up."""


def largest_queues(outcomes: Sequence[Outcome]) -> list[str]:
    """The queues that had most, by name."""
    every = sorted({path for o in outcomes for path in o["courses"]["shares"]})
    weight = {path: sum(sum(o["courses"]["shares"].get(path, [0.0])) for o in outcomes) for path in every}
    return sorted(sorted(every, key=lambda path: (-weight[path], path))[:LAYERS_MAX])


def queue_fills(outcomes: Sequence[Outcome]) -> dict[str, str]:
    """A colour for each queue: no two of the largest have the same."""
    first = largest_queues(outcomes)
    every = {path for o in outcomes for path in (*o["courses"]["shares"], *o["gantt"]["queues"])}
    return {path: FILLS[i % len(FILLS)] for i, path in enumerate([*first, *sorted(every.difference(first))])}
