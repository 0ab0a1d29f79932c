"""Columns: what happened to every task, kept compactly.

Decides what is remembered of a simulation: one row for each task, one for each run of it (an attempt that started), one
for each change of capacity. Never computes a figure (`sim.figures` does). Invariant: about 70 bytes for a task and 30
for a run, whatever else happened; -1 stands for "not yet".
"""

from __future__ import annotations

from array import array
from collections.abc import Hashable
from enum import IntEnum
from typing import Generic, TypeVar

from fairlead.core.model.resources import Items

K = TypeVar("K", bound=Hashable)
NOT_YET = -1


class Fate(IntEnum):
    """What became of a task so far."""

    WAITING = 0
    RUNNING = 1
    COMPLETED = 2
    REFUSED = 3
    GIVEN_UP = 4
    """It was stopped or lost, and is not tried again."""


class End(IntEnum):
    """How a run ended."""

    RUNNING = 0
    FINISHED = 1
    EVICTED = 2
    LOST = 3
    """Its node was lost."""
    FAILED = 4
    """It ended by itself with an exit code other than 0."""
    CUT_OFF = 5
    """It reached its time limit."""


class Index(Generic[K]):
    """Each value once, by number, in order of first sight."""

    __slots__ = ("_of", "values")

    def __init__(self) -> None:
        self.values: list[K] = []
        self._of: dict[K, int] = {}

    def of(self, value: K) -> int:
        """The number of this value."""
        found = self._of.get(value)
        if found is None:
            found = self._of[value] = len(self.values)
            self.values.append(value)
        return found

    def __len__(self) -> int:
        return len(self.values)


class Names:
    """Many short texts in one piece of memory."""

    __slots__ = ("_ends", "_text")

    def __init__(self) -> None:
        self._text = bytearray()
        self._ends = array("q")

    def append(self, name: str) -> None:
        """One more."""
        self._text += name.encode()
        self._ends.append(len(self._text))

    def __getitem__(self, row: int) -> str:
        begin = self._ends[row - 1] if row else 0
        return self._text[begin : self._ends[row]].decode()

    def __len__(self) -> int:
        return len(self._ends)


class Columns:
    """The rows of one simulation."""

    def __init__(self) -> None:
        self.queues: Index[str] = Index()
        self.users: Index[str] = Index()
        self.nodes: Index[str] = Index()
        self.shapes: Index[Items] = Index()
        self.begin_ms = self.end_ms = 0
        # Tasks.
        self.names = Names()
        """Application and key, with a slash between them where they differ."""
        self.queue, self.user, self.shape, self.priority = array("i"), array("i"), array("i"), array("i")
        self.submit_ms, self.run_ms = array("q"), array("q")
        self.start_ms = array("q")
        """Of its first run."""
        self.done_ms = array("q")
        """When it completed or was given up."""
        self.fate = array("b")
        # Runs.
        self.run_task, self.run_node = array("i"), array("i")
        self.run_start_ms, self.run_end_ms = array("q"), array("q")
        self.run_how = array("b")
        self.capacity: list[tuple[int, str, Items, int]] = []
        """When which node came (1) or went (-1), with how much."""

    def add_task(self, name: str, queue: int, user: int, items: Items, priority: int, at_ms: int, run_ms: int) -> int:
        """A task comes; returns its row. `queue` and `user` are numbers of `queues` and `users`."""
        row = len(self.submit_ms)
        self.names.append(name)
        self.queue.append(queue)
        self.user.append(user)
        self.shape.append(self.shapes.of(items))
        self.priority.append(priority)
        self.submit_ms.append(at_ms)
        self.run_ms.append(run_ms)
        self.start_ms.append(NOT_YET)
        self.done_ms.append(NOT_YET)
        self.fate.append(Fate.WAITING)
        return row

    def add_run(self, task: int, node: str, at_ms: int) -> int:
        """A task starts on a node; returns the row of the run."""
        row = len(self.run_task)
        self.run_task.append(task)
        self.run_node.append(self.nodes.of(node))
        self.run_start_ms.append(at_ms)
        self.run_end_ms.append(NOT_YET)
        self.run_how.append(End.RUNNING)
        if self.start_ms[task] == NOT_YET:
            self.start_ms[task] = at_ms
        self.fate[task] = Fate.RUNNING
        return row

    def end_run(self, run: int, at_ms: int, how: End) -> None:
        """A run is over."""
        self.run_end_ms[run] = at_ms
        self.run_how[run] = how

    def __len__(self) -> int:
        return len(self.submit_ms)
