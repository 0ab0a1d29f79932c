"""Periods: what came out of one simulation, week by week or day by day.

Decides which week a task belongs to (that of its submission) and a run (that in which it began), counted from the first
job. Never simulates: all weeks are of one simulation, so that each begins with the queue that the one before left.
Invariant: a period has the figures of an outcome that are compared over draws (`spread`); what is less than half a
period at the end is left out.
"""

from __future__ import annotations

from typing import Any

from fairlead.sim.columns import Columns, End, Grid, Rows, capacity_course, used_course
from fairlead.sim.figures import grouped, lost_run_s, slowdown, waits

LENGTHS = {"week": 7 * 86_400_000, "day": 86_400_000, "hour": 3_600_000}


def by_period(columns: Columns, length_ms: int) -> list[dict[str, Any]]:
    """The figures of each period."""
    rows = Rows(columns)
    if not len(rows.submit):
        return []
    period = (rows.submit - columns.begin_ms) // length_ms
    began = (rows.begin - columns.begin_ms) // length_ms
    lasted = int(rows.submit.max()) - columns.begin_ms
    found = []
    for number in range((lasted + length_ms // 2) // length_ms):
        chosen, ran = period == number, began == number
        begin_ms = columns.begin_ms + number * length_ms
        found.append(
            {
                "waits": waits(rows, chosen),
                "waits_by": {"queue": grouped(rows, rows.queue, columns.queues.values, chosen)},
                "slowdown": slowdown(rows, chosen),
                "stops": {"lost_run_s": lost_run_s(rows, ran), "evicted": int((rows.how[ran] == End.EVICTED).sum())},
                "use": _use(columns, rows, Grid(begin_ms, begin_ms + length_ms, 1)),
            }
        )
    return found


def _use(columns: Columns, rows: Rows, grid: Grid) -> dict[str, dict[str, float]]:
    """The part of each resource that was in use in one stretch."""
    offered = {name: float(capacity_course(columns, grid, name)[0]) for name in rows.amounts}
    used = {name: float(used_course(rows, grid, name)[0]) for name in rows.amounts}
    return {name: {"while_coming": used[name] / most} for name, most in offered.items() if most}
