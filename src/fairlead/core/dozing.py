"""Dozing: who waits for room on a node, and is woken only when its turn comes.

Decides how a demand is found again when its shape may fit: at once, or, where many wait with the same shape, one leaf
after the other in the order of the walk, so that a room that the first one takes does not wake all the others. Never
decides the order (`policy.line`). Invariant: while a shape may fit, its demands that are still asleep are found from
the root: the shape is `fresh`, and each queue above them says in `dozing` how many of them are below.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairlead.core.demand import Shape
    from fairlead.core.queues import Queue

FEW = 8
"""So few demands are woken at once: looking for them in their turn would cost more."""


class Dozing:
    """What is fresh in one partition."""

    __slots__ = ("fresh", "version")

    def __init__(self) -> None:
        self.fresh: dict[Shape, None] = {}
        """Shapes that may fit again, with demands that nobody has woken yet."""
        self.version = 0
        """Grows with every shape that becomes fresh: a queue looked through since has nothing more to offer."""

    def stir(self, shape: Shape) -> None:
        """The shape may fit again: wake its demands, or see to it that they are woken in their turn."""
        waiting = shape.waiting
        if not waiting:
            return
        root = next(iter(waiting)).leaf.lineage[-1]
        if shape.wakes_at_once or _are_few(shape, root):
            self.rouse(shape)
            return
        self.fresh[shape] = None
        self.version += 1
        root.asleep = False

    def rouse(self, shape: Shape) -> None:
        """Wake all demands of the shape that still wait."""
        self.fresh.pop(shape, None)
        for demand in list(shape.waiting):
            demand.wait_no_longer()
            demand.wake()

    def rouse_all(self) -> None:
        """Wake whoever may fit and was not found on the walk."""
        for shape in list(self.fresh):
            self.rouse(shape)

    def rouse_in(self, leaf: Queue) -> None:
        """It is this leaf's turn: wake those of its demands that may fit."""
        fresh = self.fresh
        if not leaf.dozing:
            return
        for demand in list(leaf.demands.values()):
            shape = demand.shape
            if shape in fresh and demand in shape.waiting:
                demand.wait_no_longer()
                demand.wake()
                if not shape.waiting:
                    del fresh[shape]

    def concerns(self, queue: Queue) -> bool:
        """Whether some demand below a queue that is asleep may fit."""
        dozing = queue.dozing
        return queue.dozed_at != self.version and any(shape in dozing for shape in self.fresh)


def _are_few(shape: Shape, root: Queue) -> bool:
    """Whether so few wait with the shape, or so many different ones wait, that looking for them would cost more."""
    return len(shape.waiting) < max(FEW, len(root.dozing))


def let_reserve(shape: Shape) -> None:
    """A node could be set aside for `shape` now: whoever seeks one is looked at."""
    shape.may_reserve = True
    for demand in shape.waiting:
        if demand.seekers:
            demand.leaf.open_demands[demand] = None
            demand.leaf.wake()
