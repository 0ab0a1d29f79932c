"""Courses: what was in use, waited and was guaranteed at every moment, from the rows of a simulation.

Decides how rows become lines over time: changes are added up exactly and shown as means over equal stretches. Never
judges. Invariant: the mean of a course, weighted by time, is the exact mean, however few stretches it is shown in.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairlead.core.model.resources import Items
from fairlead.sim.columns import NOT_YET, Columns, Fate

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
STRETCHES = 480


@dataclass(frozen=True, slots=True)
class Rows:
    """The columns as arrays, with what waits or runs ended at the end of the simulation."""

    begin_ms: int
    end_ms: int
    queue: Ints
    user: Ints
    shape: Ints
    priority: Ints
    submit: Ints
    run_ms: Ints
    start: Ints
    done: Ints
    fate: Ints
    task: Ints
    node: Ints
    begin: Ints
    until: Ints
    how: Ints
    amounts: dict[str, Floats]
    """By resource, how much each shape asks for."""

    @property
    def runs_on(self) -> Floats:
        """How long each run lasted."""
        return (self.until - self.begin).astype(np.float64)


def rows_of(columns: Columns) -> Rows:
    """The rows as arrays; cheap, and the columns stay as they are."""

    def ints(values: object) -> Ints:
        return np.array(values, dtype=np.int64)

    until = ints(columns.run_end_ms)
    until[until == NOT_YET] = columns.end_ms
    names = sorted({name for items in columns.shapes.values for name, _ in items})
    offered = {name for _, _, items, _ in columns.capacity for name, _ in items}
    return Rows(
        columns.begin_ms,
        columns.end_ms,
        ints(columns.queue),
        ints(columns.user),
        ints(columns.shape),
        ints(columns.priority),
        ints(columns.submit_ms),
        ints(columns.run_ms),
        ints(columns.start_ms),
        ints(columns.done_ms),
        ints(columns.fate),
        ints(columns.run_task),
        ints(columns.run_node),
        ints(columns.run_start_ms),
        until,
        ints(columns.run_how),
        {n: np.array([dict(i).get(n, 0) for i in columns.shapes.values], dtype=float) for n in names if n in offered},
    )


class Grid:
    """Equal stretches of time between begin and end (milliseconds)."""

    def __init__(self, begin_ms: int, end_ms: int, stretches: int = STRETCHES) -> None:
        self.begin_ms, self.end_ms = begin_ms, max(end_ms, begin_ms + 1)
        self.edges: Floats = np.linspace(float(begin_ms), float(self.end_ms), stretches + 1)

    @property
    def width_ms(self) -> float:
        """How long one stretch is."""
        return float(self.edges[1] - self.edges[0])

    def mean(self, begin: Ints, until: Ints, weight: Floats) -> Floats:
        """The mean of the sum of `weight` over all spans [begin, until), in each stretch.

        The integral of a sum of steps is piecewise linear: at an edge it is the sum over all begins before it of weight
        times the time since, less the same over the ends.
        """
        return np.diff(self._integral(begin, weight) - self._integral(until, weight)) / self.width_ms

    def _integral(self, at: Ints, weight: Floats) -> Floats:
        order = np.argsort(at, kind="stable")
        times, weights = at[order].astype(np.float64) - self.begin_ms, weight[order]
        sums = np.concatenate(([0.0], np.cumsum(weights)))
        moments = np.concatenate(([0.0], np.cumsum(weights * times)))
        edges = self.edges - self.begin_ms
        before = np.searchsorted(times, edges, side="right")
        return np.asarray(sums[before] * edges - moments[before], dtype=np.float64)


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
