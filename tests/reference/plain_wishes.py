"""What a task would rather have, and what others would rather have of it: which of several nodes it gets.

Written from the rules in the plainest way, as a base for the simulator of `plain_simulator`. Each kind of wish gives
every one of those nodes from 0 to 100 points; all that runs is gone through for each.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reference.plain_beside import Stands
    from reference.plain_line import Task


@dataclass(frozen=True)
class Wishes:
    """What a task would rather have; each with a weight."""

    nodes: tuple[tuple[int, str], ...] = ()
    """Nodes of these zones."""
    works: tuple[tuple[int, str, bool], ...] = ()
    """To be where work of a kind runs; below 0 not to. True: nodes of one zone count as one place."""
    spread: tuple[bool, ...] = ()
    """To be where fewest of its kind are; true: by zone."""


NO_WISHES = Wishes()


class Liking:
    """How well these nodes would do for a task."""

    def __init__(self, task: Task, runs: Stands, zones: Mapping[str, str], all_nodes: Sequence[str]) -> None:
        self.task, self.runs, self.zones, self.all_nodes = task, runs, zones, all_nodes

    def best_of(self, nodes: Sequence[str], disliked: Collection[str]) -> list[str]:
        """Those with the most points: what is disliked counts three times, all else twice."""
        if len(nodes) < 2:
            return list(nodes)
        named = [sum(weight for weight, zone in self.task.wishes.nodes if self._zone(n) == zone) for n in nodes]
        kinds = [
            (3, [100 - 100 * (node in disliked) for node in nodes]),
            (2, [100 * each // max(*named, 1) for each in named]),
            (2, _scaled([self._company(node) for node in nodes])),
            (2, _scaled([-self._crowd(node) for node in nodes]) if self.task.wishes.spread else [0] * len(nodes)),
        ]
        points = [sum(weight * each[i] for weight, each in kinds) for i in range(len(nodes))]
        return [node for node, each in zip(nodes, points, strict=True) if each == max(points)]

    def _zone(self, node: str) -> str:
        return self.zones.get(node, "")

    def _is_near(self, one: str, other: str, *, is_by_zone: bool) -> bool:
        return self._zone(one) == self._zone(other) != "" if is_by_zone else one == other

    def _company(self, node: str) -> int:
        """What it would have of work that runs there, and that of it; what must be with its kind likes it by 1."""
        total = 0
        for weight, kind, is_by_zone in self.task.wishes.works:
            near = (other for other, its in self.runs if self._is_near(node, its, is_by_zone=is_by_zone))
            total += weight * sum(other.kind == kind for other in near)
        for other, its in self.runs:
            wishes = list(other.wishes.works)
            if other.company.beside:
                wishes.append((1, other.company.beside, other.company.is_by_zone))
            for weight, kind, is_by_zone in wishes:
                if kind == self.task.kind and self._is_near(node, its, is_by_zone=is_by_zone):
                    total += weight
        return total

    def _crowd(self, node: str) -> int:
        """How many of its kind are there, by all of these wishes; of a node that is in no zone more than of any."""
        if True in self.task.wishes.spread and not self._zone(node):
            return max((self._crowd(each) for each in self.all_nodes if self._zone(each)), default=0) + 1
        total = 0
        for is_by_zone in self.task.wishes.spread:
            near = (other for other, its in self.runs if self._is_near(node, its, is_by_zone=is_by_zone))
            total += sum(other.kind == self.task.kind for other in near)
        return total


def _scaled(amounts: list[int]) -> list[int]:
    """From 0 for the least to 100 for the most."""
    least, most = min(amounts), max(amounts)
    return [(each - least) * 100 // (most - least) if most > least else 0 for each in amounts]
