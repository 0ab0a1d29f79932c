"""Standing: who is above whom once queues have their say, with their offsets and fences.

Decides whether a waiting ask stands strictly above running (or nominated) work, and how work is ranked against other
work. Never decides who is stopped. Invariant: standing above is a strict order: nobody stands above himself by any
chain of others, so that no two pieces of work can preempt each other in turn.

Priorities are compared in the lowest queue that both are in, after the offsets and fences on both ways there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairlead.core.applications import Ask
    from fairlead.core.queues import Queue

NOBODY = -(2**62)
EVERYBODY = 2**62
Rank = tuple[int, int]


def standing_by_queue(leaf: Queue, priority: int) -> dict[Queue, int]:
    """For each queue from the leaf to the root, the priority as seen there (before that queue's own offset)."""
    seen: dict[Queue, int] = {}
    for queue in leaf.lineage:
        seen[queue] = priority
        rules = queue.properties
        priority = rules.priority_offset if rules.priority_fence else priority + rules.priority_offset
    return seen


def outranks(seen: dict[Queue, int], other: Ask) -> bool:
    """Whether who is seen so stands strictly above `other` where their queues meet."""
    return other.priority < below(seen, other.app.queue)


def below(seen: dict[Queue, int], leaf: Queue) -> int:
    """Work of `leaf` with a lower priority than this stands below who is seen so."""
    offset, fenced = 0, False
    for queue in leaf.lineage:
        if queue in seen:
            if fenced:
                return EVERYBODY if seen[queue] > offset else NOBODY
            return seen[queue] - offset
        rules = queue.properties
        if rules.priority_fence:
            offset, fenced = rules.priority_offset, True
        else:
            offset += rules.priority_offset
    raise AssertionError("two queues of a partition meet in the root at the latest")


def rank(leaf: Queue, priority: int) -> Rank:
    """The place of work among all work: 1. its priority as seen at the root, 2. its own."""
    at_root = priority
    for queue in leaf.lineage[:-1]:
        rules = queue.properties
        at_root = rules.priority_offset if rules.priority_fence else at_root + rules.priority_offset
    return at_root, priority


class Reach:
    """How far an ask of this leaf and priority reaches: whom it may stop at all."""

    __slots__ = ("_below", "fence", "seen")

    def __init__(self, leaf: Queue, priority: int) -> None:
        self.seen = standing_by_queue(leaf, priority)
        self.fence = search_root(leaf)
        self._below: dict[Queue, int] = {}

    def below(self, leaf: Queue) -> int:
        """Work of `leaf` of a lower priority than this may be stopped; `NOBODY` where none may."""
        found = self._below.get(leaf)
        if found is None:
            open_to_it = leaf.properties.preemption_policy != "disabled" and self.fence in leaf.lineage
            found = self._below[leaf] = below(self.seen, leaf) if open_to_it else NOBODY
        return found


def search_root(leaf: Queue) -> Queue:
    """The highest queue below which victims may be taken: the first with `preemption.policy: fence`, else the root."""
    for queue in leaf.lineage:
        if queue.parent is None or queue.properties.preemption_policy == "fence":
            return queue
    raise AssertionError("a lineage ends with the root")
