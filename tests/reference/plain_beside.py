"""Work that wants to be with other work, or spread among it: where it may start beside what runs.

Written from the rules in the plainest way, as a base for the simulator of `plain_simulator`. All that runs is gone
through for every node.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reference.plain_line import Task


@dataclass(frozen=True)
class Company:
    """What a task wants of the work around it."""

    beside: str = ""
    """It runs where work of this kind runs, or as the first of that kind if it is of it."""
    skew: int = 0
    """Where it runs there are at most so many more of its kind than where there are fewest; 0: any number."""
    is_by_zone: bool = False
    """Nodes of one zone count as one place."""


ALONE = Company()
Stands = Sequence[tuple["Task", str]]
"""What stands on which node."""


@dataclass(frozen=True)
class Kept:
    """Room is kept for a task on a node until this has left."""

    task: Task
    node: str
    awaits: Stands = ()


def is_shut_out(task: Task, node: str, runs: Stands, kept: Sequence[Kept], places: Places) -> bool:
    """Whether it may not start there beside what runs and what room is kept for: by what it wants itself, or since one
    of those for which room is kept could not start any more then.
    """
    if not places.suits(task, node, runs, [(each.task, each.node) for each in kept]):
        return True
    for each in kept:
        rest = [(other.task, other.node) for other in kept if other is not each]
        then = [stand for stand in runs if stand not in each.awaits]
        if places.shuts_out(each.task, each.node, (task, node), then, rest):
            return True
    return False


class Places:
    """The nodes that there are, and what each counts as."""

    def __init__(self, nodes: Sequence[str], zones: Mapping[str, str], is_named: Callable[[Task, str], bool]) -> None:
        self.nodes, self.zones, self.is_named = nodes, zones, is_named

    def _place(self, node: str, company: Company) -> str:
        """The node or its zone; nothing where it is in none."""
        return self.zones.get(node, "") if company.is_by_zone else node

    def suits(self, task: Task, node: str, runs: Stands, kept: Stands) -> bool:
        """By what the task wants. What room is kept for is no company before it runs, nor is the task then the first of
        its kind elsewhere; it may count for the spread or not.
        """
        wanted = task.company
        here = self._place(node, wanted)
        if (wanted.beside or wanted.skew) and not here:
            return False
        is_first = not self._found(task, runs) and self._found(task, kept) - {here}
        is_even = self._is_even(task, node, runs) and self._is_even(task, node, [*runs, *kept])
        return self.is_beside(task, node, runs) and not is_first and is_even

    def shuts_out(self, task: Task, node: str, newcomer: tuple[Task, str], runs: Stands, kept: Stands) -> bool:
        """Whether the task could not start there with the newcomer, which it wants to be with or is spread among."""
        wanted, (other, its) = task.company, newcomer
        if self.is_beside(task, node, runs) and not self.is_beside(task, node, [*runs, newcomer]):
            return True
        is_near = self._place(its, wanted) == self._place(node, wanted)
        counts = other.kind == task.kind and self.is_named(task, its)
        if not is_near or not counts:
            return False
        return not all(self._is_even(task, node, [*runs, *others, newcomer]) for others in ([], kept))

    def _found(self, task: Task, runs: Stands) -> set[str]:
        """Where what it wants to be with is."""
        wanted = task.company
        return {self._place(its, wanted) for other, its in runs if other.kind == wanted.beside and wanted.beside} - {""}

    def is_beside(self, task: Task, node: str, runs: Stands) -> bool:
        """Whether what it wants to be with is there, or it is the first of them."""
        wanted, found = task.company, self._found(task, runs)
        is_first = not found and task.kind == wanted.beside
        return not wanted.beside or is_first or self._place(node, wanted) in found

    def _is_even(self, task: Task, node: str, stands: Stands) -> bool:
        wanted = task.company
        counting = [each for each in self.nodes if self.is_named(task, each) and self._place(each, wanted)]
        crowd = {self._place(each, wanted): 0 for each in counting}
        for other, its in stands:
            if its in counting and other.kind == task.kind:
                crowd[self._place(its, wanted)] += 1
        here = crowd.get(self._place(node, wanted), 0)
        return not wanted.skew or here + 1 - min(crowd.values(), default=0) <= wanted.skew
