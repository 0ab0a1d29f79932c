"""Columns: what happened to every task, kept compactly, and as lines over time.

Decides what is remembered of a simulation (one row for each task, one for each run of it, one for each change of
capacity), and how rows become lines: changes are added up exactly and shown as means over equal stretches. Never judges
(`sim.figures` does). Invariant: about 70 bytes for a task and 30 for a run, whatever else happened; -1 stands for "not
yet"; the mean of a line, weighted by time, is the exact mean, however few stretches it is shown in.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Hashable, Iterator
from enum import IntEnum
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

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
        self.submit_ms, self.start_ms = array("q"), array("q")
        """When it came, and when its first run began."""
        self.done_ms = array("q")
        """When it completed or was given up."""
        self.fate = array("b")
        # Runs.
        self.run_task, self.run_node = array("i"), array("i")
        self.run_start_ms, self.run_end_ms = array("q"), array("q")
        self.run_how = array("b")
        self.capacity: list[tuple[int, str, Items, int]] = []
        """When which node came (1) or went (-1), with how much."""

    def add_task(self, name: str, queue: int, user: int, items: Items, priority: int, at_ms: int) -> int:
        """A task comes; returns its row. `queue` and `user` are numbers of `queues` and `users`."""
        row = len(self.submit_ms)
        self.names.append(name)
        self.queue.append(queue)
        self.user.append(user)
        self.shape.append(self.shapes.of(items))
        self.priority.append(priority)
        self.submit_ms.append(at_ms)
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


Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
STRETCHES = 480


class Rows:
    """The columns as arrays; what waits or runs ended at the end of the simulation.

    They are the memory of the columns themselves, so that a million rows need no second one: while there are rows, no
    column can grow.
    """

    def __init__(self, columns: Columns) -> None:
        def ints(*arrays: array[int]) -> Iterator[Ints]:
            return (np.frombuffer(a, dtype=a.typecode) if a else np.zeros(0, dtype=np.int64) for a in arrays)

        c = columns
        self.end_ms = c.end_ms
        self.queue, self.user, self.shape, self.priority, self.fate = ints(c.queue, c.user, c.shape, c.priority, c.fate)
        self.submit, self.start, self.done = ints(c.submit_ms, c.start_ms, c.done_ms)
        held = (self.start == NOT_YET) & (self.submit > c.end_ms)
        if held.any():
            # What is still held at the end has not waited.
            self.submit = np.where(held, c.end_ms, self.submit)
        # Of each run: its task, from when to when, and how it ended.
        self.task, self.begin, self.until, self.how = ints(c.run_task, c.run_start_ms, c.run_end_ms, c.run_how)
        self.until = np.where(self.until == NOT_YET, c.end_ms, self.until)
        self.ran = np.zeros(len(self.submit), dtype=np.int64)
        """How long the last run of each task lasted: of several of one task the later ones overwrite the others."""
        self.ran[self.task] = self.until - self.begin
        names = sorted({name for items in c.shapes.values for name, _ in items})
        offered = {name for _, _, items, _ in c.capacity for name, _ in items}
        sizes = [dict(items) for items in c.shapes.values]
        self.amounts = {n: np.array([size.get(n, 0) for size in sizes], dtype=float) for n in names if n in offered}
        """By resource, how much each shape asks for."""

    @property
    def runs_on(self) -> Floats:
        """How long each run lasted."""
        return (self.until - self.begin).astype(np.float64)


class Grid:
    """Equal stretches of time between begin and end (milliseconds)."""

    def __init__(self, begin_ms: int, end_ms: int, stretches: int = STRETCHES) -> None:
        self.begin_ms, self.end_ms = begin_ms, max(end_ms, begin_ms + 1)
        lasts_ms = self.end_ms - begin_ms
        # From the begin on: among milliseconds since 1970 short stretches would be none.
        self._since_begin: Floats = np.linspace(0.0, float(lasts_ms), stretches + 1)
        self.width_ms = lasts_ms / stretches
        """How long one stretch is."""

    @property
    def edges(self) -> Floats:
        """Where the stretches begin and end."""
        return self._since_begin + self.begin_ms

    def mean(self, begin: Ints, until: Ints, weight: Floats) -> Floats:
        """The mean of the sum of `weight` over all spans [begin, until), in each stretch.

        The integral of a sum of steps is piecewise linear: at an edge it is the sum over all begins before it of weight
        times the time since, less the same over the ends. Summed by stretch, so that nothing has to be put in order.
        """
        return np.diff(self._integral(begin, weight) - self._integral(until, weight)) / self.width_ms

    def _integral(self, at: Ints, weight: Floats) -> Floats:
        edges, times = self._since_begin, (at - self.begin_ms).astype(np.float64)
        first_edge = np.searchsorted(edges, times)
        sums, moments = (
            np.cumsum(np.bincount(first_edge, weights=summed, minlength=len(edges)))[: len(edges)]
            for summed in (weight, weight * times)
        )
        return np.asarray(sums * edges - moments, dtype=np.float64)


def wanted_spans(rows: Rows) -> tuple[Ints, Ints]:
    """From when to when each task was there: waiting or running."""
    until = np.where(rows.done == NOT_YET, rows.end_ms, rows.done)
    until = np.where(rows.fate == Fate.REFUSED, rows.submit, until)
    return rows.submit, until


def capacity_course(columns: Columns, grid: Grid, name: str) -> Floats:
    """How much of a resource the nodes offered."""
    at = np.array([c[0] for c in columns.capacity], dtype=np.int64)
    weight = np.array([c[3] * dict(c[2]).get(name, 0) for c in columns.capacity], dtype=float)
    return grid.mean(at, np.full_like(at, grid.end_ms), weight)


def used_course(rows: Rows, grid: Grid, name: str, chosen: NDArray[np.bool_] | None = None) -> Floats:
    """How much of a resource was in use, by all tasks or the `chosen` ones (a mask over tasks)."""
    task, begin, until = rows.task, rows.begin, rows.until
    if chosen is not None:
        runs = chosen[task]
        task, begin, until = task[runs], begin[runs], until[runs]
    return grid.mean(begin, until, _amounts(rows, name, rows.shape[task]))


def peak_share(columns: Columns, rows: Rows, name: str) -> float:
    """The largest part of what the nodes offered of a resource that was in use at one moment."""
    came = np.array([c[0] for c in columns.capacity], dtype=np.int64)
    offer = np.array([c[3] * dict(c[2]).get(name, 0) for c in columns.capacity], dtype=float)
    amount = _amounts(rows, name, rows.shape[rows.task])
    # What ends and begins, comes and goes at one moment counts as one step.
    moments, step = np.unique(np.concatenate([came, rows.begin, rows.until]), return_inverse=True)
    offered = np.cumsum(np.bincount(step[: len(came)], weights=offer, minlength=len(moments)))
    changes = np.concatenate([amount, -amount])
    used = np.cumsum(np.bincount(step[len(came) :], weights=changes, minlength=len(moments)))
    return float(np.max(used / np.where(offered > 0, offered, math.inf), initial=0.0))


def wanted_course(rows: Rows, grid: Grid, name: str, chosen: NDArray[np.bool_] | None = None) -> Floats:
    """How much of a resource was in use or waited for."""
    begin, until = wanted_spans(rows)
    shape = rows.shape
    if chosen is not None:
        begin, until, shape = begin[chosen], until[chosen], shape[chosen]
    return grid.mean(begin, until, _amounts(rows, name, shape))


def _amounts(rows: Rows, name: str, shapes: Ints) -> Floats:
    return rows.amounts[name][shapes] if len(shapes) else np.zeros(0)


def count_courses(rows: Rows, grid: Grid) -> tuple[Floats, Floats]:
    """How many tasks waited, and how many ran."""
    begin, until = wanted_spans(rows)
    there = grid.mean(begin, until, np.ones(len(begin)))
    running = grid.mean(rows.begin, rows.until, np.ones(len(rows.begin)))
    return np.maximum(there - running, 0.0), running


def largest_node(columns: Columns) -> dict[str, int]:
    """The most of each resource that one node offers."""
    most: dict[str, int] = {}
    for _, _, items, _ in columns.capacity:
        for name, amount in items:
            most[name] = max(amount, most.get(name, 0))
    return most


def share_of(items: Items, most: dict[str, int]) -> float:
    """The largest part of any resource that an amount is."""
    return max((amount / most[name] for name, amount in items if most.get(name)), default=0.0)
