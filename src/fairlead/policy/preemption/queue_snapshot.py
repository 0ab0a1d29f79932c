"""Queue snapshots: what queues would use if some work were gone and other work had come.

Decides how much of its guarantee a queue has left, counting what was told to stop as gone already, and idle work not at
all, after any number of tentative changes. Never touches the books and never chooses a victim. Invariant: `undo` to a
mark restores exactly what was there at that mark.
"""

from __future__ import annotations

from collections.abc import Mapping

from fairlead.core.books.queues import Queue
from fairlead.core.model.resources import Book, Items, add_to, negative


class QueueSnapshot:
    """One queue as seen by one search for victims."""

    __slots__ = ("guaranteed", "is_above_ask", "is_ask_queue", "parent", "used")

    def __init__(self, queue: Queue, parent: QueueSnapshot | None, ask_queue: Queue) -> None:
        self.parent = parent
        self.guaranteed: Mapping[str, int] = queue.guaranteed or {}
        gone, idle = queue.preempting, queue.idle
        self.used: Book = {n: v - gone.get(n, 0) - idle.get(n, 0) for n, v in queue.allocated.items()}
        self.is_ask_queue = queue is ask_queue
        self.is_above_ask = bool(ask_queue.guaranteed) and queue in ask_queue.lineage[1:]
        """A queue above an ask queue that has a guarantee of its own; it does not restrict what happens below it."""

    def add(self, items: Items) -> None:
        """This much more (or less, where it is negative) is used, here and up to the root."""
        snapshot: QueueSnapshot | None = self
        while snapshot is not None:
            add_to(snapshot.used, items)
            snapshot = snapshot.parent

    def remaining(self) -> Book:
        """What is left of the guarantees from the root down to here by resource, negative when the queue is over them;
        nothing: there is no guarantee to speak of.

        Going down, the smaller value of each resource counts. In the ask's own queue its own values win over those
        above; a queue above an ask queue that has a guarantee says nothing, so that the ask may take from its siblings
        what their common parent uses below its own guarantee.
        """
        above = self.parent.remaining() if self.parent is not None else {}
        if not self.guaranteed:
            return above
        if self.is_above_ask:
            return {}
        own = {n: v - self.used.get(n, 0) for n, v in self.guaranteed.items()}
        if self.is_ask_queue:
            return above | own
        for name, left in above.items():
            own[name] = min(left, own.get(name, left))
        return own


class QueueSnapshots:
    """The snapshots of one search, made when first looked at, with the tentative changes made to them."""

    def __init__(self, ask_queue: Queue) -> None:
        self._of: dict[Queue, QueueSnapshot] = {}
        self._changes: list[tuple[QueueSnapshot, Items]] = []
        self._ask_queue = ask_queue
        self.ask_queue = self.of(ask_queue)

    def of(self, queue: Queue) -> QueueSnapshot:
        """The snapshot of a queue."""
        found = self._of.get(queue)
        if found is None:
            above = self.of(queue.parent) if queue.parent is not None else None
            found = self._of[queue] = QueueSnapshot(queue, above, self._ask_queue)
        return found

    def add(self, snapshot: QueueSnapshot, items: Items) -> None:
        """Suppose that this much more is used there."""
        snapshot.add(items)
        self._changes.append((snapshot, items))

    def remove(self, snapshot: QueueSnapshot, items: Items) -> None:
        """Suppose that this much less is used there."""
        self.add(snapshot, negative(items))

    def mark(self) -> int:
        """A point to go back to."""
        return len(self._changes)

    def undo(self, mark: int = 0) -> None:
        """Take back every change made since the mark."""
        while len(self._changes) > mark:
            snapshot, items = self._changes.pop()
            snapshot.add(negative(items))
