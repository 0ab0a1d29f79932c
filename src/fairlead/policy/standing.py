"""Standing: who is above whom once queues have their say, with their offsets and fences.

Decides whether a waiting ask stands strictly above running (or nominated) work, and how work is ranked against other
work. Never decides who is stopped. Invariant: standing above is a strict order: nobody stands above himself by any
chain of others, so that no two pieces of work can preempt each other in turn.

Priorities are compared in the lowest queue that both are in, after the offsets and fences on both ways there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.core.nominations import kept_under
from fairlead.policy.ordering import queue_key

if TYPE_CHECKING:
    from fairlead.core.asks import Ask
    from fairlead.core.partition import Partition
    from fairlead.core.queues import Queue
    from fairlead.core.resources import Items

NOBODY = -(2**62)
EVERYBODY = 2**62
Rank = tuple[int, int]


Level = tuple[object, ...]
Path = tuple[Level, ...]
"""Keys from the root down: of each queue on the way, as this ask lets it stand among its siblings, and in its leaf."""
STRENGTH = 2
"""So many parts of the key of a queue are the rank of the ask; the others only decide between equals."""


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


Strength = tuple[bool, int]
"""What makes an ask strong, smaller first: it is not within the guarantees on its way, minus its priority as seen."""


def strengths(partition: Partition, ask: Ask) -> list[Strength]:
    """The strength of a waiting ask against others in its leaf, in the queue above, …, in the root.

    Inside its leaf, and where guarantees do not count, only priorities do.
    """
    found = [(True, -ask.priority)]
    leaf = ask.app.queue
    seen, owed = ask.priority, is_within(partition, leaf, ask.items, ask)
    for queue in leaf.lineage[:-1]:
        seen = queue.adjust(seen)
        found.append((owed is not True, -seen))
        above = queue.parent
        if above is not None and above.owes:
            owed = both_owed(owed, is_within(partition, above, ask.items, ask))
    return found


def is_stronger(partition: Partition, ask: Ask, other: Ask) -> bool:
    """Whether a waiting ask stands strictly above another one, where their queues meet."""
    mine = dict(zip(ask.app.queue.lineage, strengths(partition, ask), strict=True))
    for queue, theirs in zip(other.app.queue.lineage, strengths(partition, other), strict=True):
        if queue in mine:
            return mine[queue] < theirs
    raise AssertionError("two queues of a partition meet in the root at the latest")


def path_of(partition: Partition, ask: Ask) -> Path:
    """The keys of an ask from the root down, as `Turns` works them out on its way."""
    leaf = ask.app.queue
    path: Path = ((ask.line_key[0], ask.app.order_key, ask.line_key),)
    for queue, strength in zip(leaf.lineage[:-1], strengths(partition, ask)[1:], strict=True):
        path = ((*strength, *queue_key(queue)[STRENGTH:]), *path)
    return path


def stands_above(path: Path, other: Path) -> bool:
    """Whether an ask is strictly stronger than another, where their queues meet."""
    for mine, theirs in zip(path[:-1], other[:-1], strict=False):
        if mine[:STRENGTH] != theirs[:STRENGTH]:
            return mine[:STRENGTH] < theirs[:STRENGTH]
        if mine != theirs:
            return False
    return _priority(path[-1]) < _priority(other[-1])


def _priority(level: Level) -> int:
    """Minus the priority of an ask, from its key in its leaf (which counts twice, and one for retried)."""
    first = level[0]
    assert isinstance(first, int)
    return (first + 1) // 2


def is_within(partition: Partition, queue: Queue, items: Items, ask: Ask | None = None) -> bool | None:
    """Whether the guarantee of this queue has room for the amount, beside what runs and what is kept there for others
    than `ask`; None: it guarantees nothing of the kind, or guarantees do not count.
    """
    guaranteed = queue.guaranteed
    if not queue.owes or guaranteed is None:
        return None
    known = None
    kept = kept_under(partition, queue, ask) if partition.nominations else {}
    for name, amount in items:
        if name in guaranteed:
            known = True
            used = queue.allocated.get(name, 0) - queue.preempting.get(name, 0) + kept.get(name, 0)
            if used + amount > guaranteed[name]:
                return False
    return known


def both_owed(left: bool | None, right: bool | None) -> bool | None:
    """Whether an ask is within two guarantees, where there are such."""
    if left is None or right is None:
        return right if left is None else left
    return left and right


def rank(leaf: Queue, priority: int) -> Rank:
    """The place of work among all work: 1. its priority as seen at the root, 2. its own."""
    at_root = priority
    for queue in leaf.lineage[:-1]:
        rules = queue.properties
        at_root = rules.priority_offset if rules.priority_fence else at_root + rules.priority_offset
    return at_root, priority


class Reach:
    """How far an ask reaches: what it may stop at all, guarantees of others apart (`protection.within_guarantees`)."""

    __slots__ = ("_below", "_owed", "fence", "seen")

    def __init__(self, partition: Partition, ask: Ask) -> None:
        leaf = ask.app.queue
        self.seen = standing_by_queue(leaf, ask.priority)
        self.fence = search_root(leaf)
        self._below: dict[Queue, int] = {}
        self._owed: list[Queue] = []
        """Queues in which it takes back what others have above their guarantee, whatever their priority."""
        if leaf.owes or any(queue.owes for queue in leaf.lineage):
            ways = zip(leaf.lineage, strengths(partition, ask), strict=True)
            self._owed = [queue for queue, strength in ways if not strength[0]]

    def below(self, leaf: Queue) -> int:
        """Work of `leaf` of a lower priority than this may be stopped; `NOBODY` where none may."""
        found = self._below.get(leaf)
        if found is None:
            open_to_it = leaf.properties.preemption_policy != "disabled" and self.fence in leaf.lineage
            found = self._below[leaf] = self._most(leaf) if open_to_it else NOBODY
        return found

    def _most(self, leaf: Queue) -> int:
        if self._owed:
            meeting = next(queue for queue in leaf.lineage if queue in self.seen)
            if meeting in self._owed:
                return EVERYBODY
        return below(self.seen, leaf)


def search_root(leaf: Queue) -> Queue:
    """The highest queue below which victims may be taken: the first with `preemption.policy: fence`, else the root."""
    for queue in leaf.lineage:
        if queue.parent is None or queue.properties.preemption_policy == "fence":
            return queue
    raise AssertionError("a lineage ends with the root")
