"""Figures: how good a simulated policy was, from the rows of a simulation.

Decides how waiting, slowdown, use, fairness and loss are measured (each function says how). Never simulates. Invariant:
percentiles are by nearest rank (values that really occurred); a task that has not started is counted as such and never
given a made-up wait.

The wait of a task is the time from its submission to its first start. Its slowdown is the time from submission to
completion over the time it ran (its last run, which its time limit may have cut off), both at least `SHORT_MS` (bounded
slowdown): 1 is perfect.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairlead.core.model.specs import DEFAULT_PARTITION, ClusterSpec, QueueSpec
from fairlead.sim.columns import (
    NOT_YET,
    Columns,
    End,
    Fate,
    Floats,
    Grid,
    Ints,
    Rows,
    capacity_course,
    count_courses,
    largest_node,
    peak_share,
    share_of,
    used_course,
    wanted_course,
    wanted_spans,
)

SHORT_MS = 10_000
PERCENTILES = (50, 95, 99)
GROUPS_MAX = 50
SIZES = (("small", 1 / 8), ("medium", 1 / 2), ("large", math.inf))
"""Sizes of tasks by the largest part of a node's resources that they ask for: to 1/8, to 1/2, above."""
Mask = NDArray[np.bool_]
Chosen = Mask | NDArray[np.intp] | slice
"""Which tasks: a mask, or their rows."""
ALL = slice(None)


def figures_of(columns: Columns, spec: ClusterSpec) -> dict[str, Any]:
    """Everything that is measured, as plain values; times in seconds, shares from 0 to 1."""
    rows = Rows(columns)
    grid = Grid(columns.begin_ms, columns.end_ms)
    most = largest_node(columns)
    sizes = np.array([_size(share_of(items, most)) for items in columns.shapes.values], dtype=np.int64)
    return {
        "tasks": totals(rows),
        "begin_s": columns.begin_ms / 1000,
        "end_s": columns.end_ms / 1000,
        "last_completed_s": _last_completed_s(rows, columns.begin_ms),
        "waits": waits(rows),
        "slowdown": slowdown(rows),
        "waits_by": {
            "queue": grouped(rows, rows.queue, columns.queues.values),
            "user": grouped(rows, rows.user, columns.users.values, most=GROUPS_MAX),
            "priority": by_priority(rows),
            "size": grouped(rows, sizes[rows.shape] if len(rows.shape) else rows.shape, [n for n, _ in SIZES]),
        },
        "use": use(columns, rows, grid),
        "stops": stops(rows),
        "fairness": fairness(columns, rows, grid, spec),
    }


def _size(share: float) -> int:
    return next(i for i, (_, most) in enumerate(SIZES) if share <= most)


def totals(rows: Rows) -> dict[str, int]:
    """How many tasks were submitted, and what became of them; the parts add up to `submitted`."""
    count = np.bincount(rows.fate, minlength=len(Fate))
    return {"submitted": len(rows.fate)} | {fate.name.lower(): int(count[fate]) for fate in Fate}


def _last_completed_s(rows: Rows, begin_ms: int) -> float | None:
    """How long after the begin the last task completed; None where none did."""
    done = rows.done[rows.fate == Fate.COMPLETED]
    return (int(done.max()) - begin_ms) / 1000 if len(done) else None


def summary(values: Floats) -> dict[str, float] | None:
    """`count`, `mean`, `p50`, `p95`, `p99` and `max`; None without values."""
    if not len(values):
        return None
    ordered = np.sort(values)
    found: dict[str, float] = {"count": len(ordered), "mean": round(float(ordered.mean()), 3)}
    for percent in PERCENTILES:
        rank = max(math.ceil(len(ordered) * percent / 100), 1) - 1
        found[f"p{percent}"] = round(float(ordered[rank]), 3)
    return found | {"max": round(float(ordered[-1]), 3)}


def wait_seconds(rows: Rows, chosen: Chosen = ALL) -> Floats:
    """The waits of all tasks (or the chosen ones) that started."""
    start, submit = rows.start[chosen], rows.submit[chosen]
    started = start != NOT_YET
    return np.asarray((start[started] - submit[started]) / 1000, dtype=np.float64)


def waits(rows: Rows, chosen: Chosen = ALL) -> dict[str, Any]:
    """Waits of what started; `not_started` counts what never did, `longest_unstarted` is how long that has waited."""
    submit = rows.submit[chosen]
    open_ = (rows.start[chosen] == NOT_YET) & (rows.fate[chosen] == Fate.WAITING)
    longest = float(rows.end_ms - submit[open_].min()) / 1000 if open_.any() else 0.0
    started = summary(wait_seconds(rows, chosen))
    return {"started": started, "not_started": int(open_.sum()), "longest_unstarted": longest}


def slowdown(rows: Rows, chosen: Chosen = ALL) -> dict[str, float] | None:
    """Bounded slowdown of the completed tasks."""
    done = rows.fate[chosen] == Fate.COMPLETED
    took = np.maximum(rows.done[chosen][done] - rows.submit[chosen][done], SHORT_MS)
    ran = np.maximum(rows.ran[chosen][done], SHORT_MS)
    return summary(np.maximum(took / ran, 1.0))


def grouped(
    rows: Rows, key: Ints, names: list[str], within: Mask | None = None, most: int | None = None
) -> dict[str, Any]:
    """Waits and mean slowdown by group of all tasks or those `within`, of the `most` largest groups (None: of all); by
    name.
    """
    tasks = np.arange(len(key)) if within is None else np.flatnonzero(within)
    count = np.bincount(key[tasks], minlength=len(names)) if len(tasks) else np.zeros(len(names), dtype=np.int64)
    by_group = tasks[np.argsort(key[tasks], kind="stable")]
    ends = np.cumsum(count)
    chosen = sorted(range(len(names)), key=lambda i: (-int(count[i]), names[i]))[:most]
    found = {}
    for number in sorted(chosen, key=lambda i: names[i]):
        if count[number]:
            group = by_group[ends[number] - count[number] : ends[number]]
            slow = slowdown(rows, group)
            found[names[number]] = {"tasks": int(count[number])} | waits(rows, group) | {"slowdown": slow}
    return found


def by_priority(rows: Rows) -> dict[str, Any]:
    """Waits by priority, highest first."""
    values, key = np.unique(rows.priority, return_inverse=True)
    found = grouped(rows, key.astype(np.int64), [str(int(v)) for v in values], most=GROUPS_MAX)
    return {name: found[name] for name in sorted(found, key=lambda n: -int(n))}


def use(columns: Columns, rows: Rows, grid: Grid) -> dict[str, Any]:
    """Use of each resource weighted by time: `mean` share of what was offered, `peak` the largest of any moment, `lost`
    the share that went into runs which were stopped or lost (part of `mean`).

    `while_coming` is the mean up to the last submission: after it the cluster only runs empty, at whatever speed the
    longest task has. None where all came at one moment: there is no time in which work came.
    """
    found = {}
    last_ms = int(rows.submit.max()) if len(rows.submit) else 0
    wasted = _wasted(rows)
    for name in rows.amounts:
        offered = capacity_course(columns, grid, name)
        total = float(offered.sum()) * grid.width_ms
        if not total:
            continue
        amount = rows.amounts[name][rows.shape[rows.task]] if len(rows.task) else np.zeros(0)
        spent = amount * rows.runs_on
        found[name] = {
            "capacity": max(_steps(columns, name)),
            "mean": round(float(spent.sum()) / total, 6),
            "peak": round(peak_share(columns, rows, name), 6),
            "while_coming": _part_used(columns, rows, grid.begin_ms, last_ms, name),
            "lost": round(float(spent[wasted].sum()) / total, 6),
        }
    return found


def _part_used(columns: Columns, rows: Rows, begin_ms: int, until_ms: int, name: str) -> float | None:
    """The mean part in use between two moments; None where that is no time, or nothing was offered in it."""
    stretch = Grid(begin_ms, until_ms, 1)
    offered = float(capacity_course(columns, stretch, name)[0])
    return round(float(used_course(rows, stretch, name)[0]) / offered, 6) if until_ms > begin_ms and offered else None


def _steps(columns: Columns, name: str) -> list[int]:
    offered, seen = 0, [0]
    for _, _, items, sign in columns.capacity:
        offered += sign * dict(items).get(name, 0)
        seen.append(offered)
    return seen


def _wasted(rows: Rows) -> Mask:
    return np.asarray(np.isin(rows.how, [End.EVICTED, End.LOST, End.FAILED]), dtype=np.bool_)


def lost_run_s(rows: Rows, chosen: Mask) -> float:
    """The run time of the chosen runs that came to nothing."""
    return round(float(rows.runs_on[_wasted(rows) & chosen].sum()) / 1000, 3)


def stops(rows: Rows) -> dict[str, float]:
    """Runs that were evicted, lost with their node, failed or cut off, and the run time that was lost by them."""
    count = np.bincount(rows.how, minlength=len(End))
    lasted = rows.runs_on / 1000
    return {
        "evicted": int(count[End.EVICTED]),
        "lost_with_node": int(count[End.LOST]),
        "failed": int(count[End.FAILED]),
        "cut_off": int(count[End.CUT_OFF]),
        "tasks_evicted": len(np.unique(rows.task[rows.how == End.EVICTED])),
        "evicted_run_s": round(float(lasted[rows.how == End.EVICTED].sum()), 3),
        "lost_run_s": lost_run_s(rows, np.ones(len(rows.how), dtype=np.bool_)),
    }


# -- fairness -----------------------------------------------------------------------------------------------------


def guarantees(spec: ClusterSpec) -> dict[str, dict[str, int]]:
    """The guarantee of each leaf that has one, by its path in lower case."""
    found: dict[str, dict[str, int]] = {}

    def visit(queue: QueueSpec, path: str) -> None:
        if not queue.queues and queue.guaranteed is not None and queue.guaranteed.is_set:
            found[path] = queue.guaranteed.as_dict()
        for child in queue.queues:
            visit(child, f"{path}.{child.name.lower()}")

    for partition in spec.partitions:
        # Simulated is one; others may have queues of the same names.
        if partition.name == DEFAULT_PARTITION:
            visit(partition.root, "root")
    return found


def fair_shares(wanted: Floats) -> Floats:
    """The whole (1) divided fairly, stretch by stretch (the columns): nobody gets more than it wants, and what is over
    goes to the others in equal parts.
    """
    ordered = np.sort(wanted, axis=0)
    # What each gets if all who want less have all that they want: the first who wants more is the first to be short.
    equal = (1 - (np.cumsum(ordered, axis=0) - ordered)) / np.arange(len(wanted), 0, -1)[:, np.newaxis]
    is_short = ordered > equal
    first = is_short.argmax(axis=0)[np.newaxis]
    most = np.where(is_short.any(axis=0), np.take_along_axis(equal, first, axis=0)[0], math.inf)
    return np.asarray(np.minimum(wanted, most), dtype=np.float64)


def jain(values: Floats) -> Floats:
    """Jain's index of each column: 1 when all are equal, 1/n when one has everything; what is nan does not count."""
    squares, count = np.nansum(values**2, axis=0), (~np.isnan(values)).sum(axis=0)
    index = np.nansum(values, axis=0) ** 2 / np.where(squares > 0, count * squares, 1)
    return np.where(squares > 0, index, 1.0)


def fairness(columns: Columns, rows: Rows, grid: Grid, spec: ClusterSpec) -> dict[str, Any]:
    """Share against what is due, queue by queue.

    By queue: `share`, the mean part of the cluster that it had (its dominant resource); `wanted`, the mean part that
    it used or waited for; for a guaranteed one the part `guaranteed`, `met`, the part of the time with work there in
    which it had what it was guaranteed or all that it wanted (to 1 %), and `short`, the mean part of the guarantee that
    was missing. `jain`: Jain's index over the users of what each had relative to its fair share of the cluster (each
    gets what it wants, what is scarce is divided equally), mean over the time in which at least two wanted something.
    """
    given = guarantees(spec)
    queues: dict[str, Any] = {}
    for number, path in enumerate(columns.queues.values):
        chosen = np.asarray(rows.queue == number, dtype=np.bool_)
        used, wanted = _dominant(columns, rows, grid, chosen)
        queues[path] = {"share": round(float(used.mean()), 6), "wanted": round(float(wanted.mean()), 6)}
        if path.lower() in given:
            queues[path] |= _against(rows, chosen, given[path.lower()])
            queues[path]["guaranteed"] = round(_part(columns, given[path.lower()]), 6)
    return {"queues": {path: queues[path] for path in sorted(queues)}, "jain": _jain_of_users(columns, rows)}


def _dominant(columns: Columns, rows: Rows, grid: Grid, chosen: Mask) -> tuple[Floats, Floats]:
    """The courses of used and wanted, as the largest part of any resource that the cluster offers."""
    used = wanted = np.zeros(len(grid.edges) - 1)
    for name in rows.amounts:
        offered = capacity_course(columns, grid, name)
        some = np.where(offered > 0, offered, math.inf)
        used = np.maximum(used, used_course(rows, grid, name, chosen) / some)
        wanted = np.maximum(wanted, wanted_course(rows, grid, name, chosen) / some)
    return used, wanted


def _against(rows: Rows, chosen: Mask, guaranteed: dict[str, int]) -> dict[str, float]:
    """Between each two moments at which anything changes: a stretch of hours has both, and would say neither."""
    runs = chosen[rows.task]
    spans = (*(at[chosen] for at in wanted_spans(rows)), rows.begin[runs], rows.until[runs])
    moments, step = np.unique(np.concatenate(spans), return_inverse=True)
    came, gone, begun, ended = np.split(step, np.cumsum([len(at) for at in spans])[:-1])
    lasted = np.diff(moments).astype(np.float64)
    missing, there = np.zeros(len(lasted)), np.zeros(len(lasted), dtype=np.bool_)

    def course(up: Ints, down: Ints, amounts: Floats) -> Ints:
        changes = np.zeros(len(moments), dtype=np.int64)
        np.add.at(changes, up, amounts.astype(np.int64))
        np.subtract.at(changes, down, amounts.astype(np.int64))
        return np.cumsum(changes)[:-1]

    for name, amount in sorted(guaranteed.items()):
        if amount <= 0 or name not in rows.amounts:
            continue
        wanted = course(came, gone, rows.amounts[name][rows.shape[chosen]])
        used = course(begun, ended, rows.amounts[name][rows.shape[rows.task[runs]]])
        there |= wanted > 0
        missing = np.maximum(missing, (np.minimum(wanted, amount) - used) / amount)
    time = float(lasted[there].sum())
    if not time:
        return {"met": 1.0, "short": 0.0}
    met = float(lasted[there & (missing <= 0.01)].sum()) / time
    return {"met": round(met, 6), "short": round(float((missing * lasted)[there].sum()) / time, 6)}


def _part(columns: Columns, guaranteed: dict[str, int]) -> float:
    """The largest part of any resource of the cluster, at its largest, that is guaranteed."""
    offered = ((amount, max(_steps(columns, name))) for name, amount in guaranteed.items())
    return max((amount / whole for amount, whole in offered if whole), default=0.0)


FINE = 20_000
"""Stretches in which is looked who has what: in few of them those who take turns by the hour are alike."""


def _jain_of_users(columns: Columns, rows: Rows) -> float | None:
    count = np.bincount(rows.user, minlength=len(columns.users)) if len(rows.user) else np.zeros(0)
    busiest = sorted(range(len(count)), key=lambda i: (-int(count[i]), i))[:GROUPS_MAX]
    grid = Grid(columns.begin_ms, columns.end_ms, FINE)
    courses = [_dominant(columns, rows, grid, np.asarray(rows.user == user, dtype=np.bool_)) for user in busiest]
    if not courses:
        return None
    used, wanted = (np.array(each) for each in zip(*courses, strict=True))
    several = (wanted > 1e-9).sum(axis=0) > 1
    if not several.any():
        return None
    shares = fair_shares(wanted[:, several])
    found = jain(used[:, several] / np.where(shares > 1e-9, shares, math.nan))
    return round(float(found.mean()), 6)


# -- courses for plots --------------------------------------------------------------------------------------------


def courses_of(columns: Columns, stretches: int = 240) -> dict[str, Any]:
    """Lines over time for plots: `at_s` (the middle of each stretch), use by resource, waiting, running, share by
    queue.
    """
    rows = Rows(columns)
    grid = Grid(columns.begin_ms, columns.end_ms, stretches)
    middle = (grid.edges[:-1] + grid.edges[1:]) / 2
    waiting, running = count_courses(rows, grid)
    use_: dict[str, Any] = {}
    for name in rows.amounts:
        offered = capacity_course(columns, grid, name)
        if offered.any():
            some = np.where(offered > 0, offered, math.inf)
            use_[name] = _rounded(used_course(rows, grid, name) / some)
    shares = {}
    for number, path in enumerate(columns.queues.values):
        shares[path] = _rounded(_dominant(columns, rows, grid, np.asarray(rows.queue == number, dtype=np.bool_))[0])
    return {
        "at_s": _rounded((middle - columns.begin_ms) / 1000, 3),
        "use": use_,
        "waiting": _rounded(waiting, 3),
        "running": _rounded(running, 3),
        "shares": {path: shares[path] for path in sorted(shares)},
    }


def _rounded(values: Floats, digits: int = 5) -> list[float]:
    return [round(float(v), digits) for v in values]


def wait_curve(columns: Columns, points: int = 200) -> list[tuple[float, float]]:
    """The distribution of waits as (seconds, part of all submitted tasks that had started within that)."""
    rows = Rows(columns)
    ordered = np.sort(wait_seconds(rows))
    if not len(ordered):
        return []
    ranks = np.unique(np.linspace(0, len(ordered) - 1, min(points, len(ordered))).round().astype(np.int64))
    accepted = max(int((rows.fate != Fate.REFUSED).sum()), 1)
    return [(round(float(ordered[r]), 3), round((int(r) + 1) / accepted, 6)) for r in ranks]


__all__ = ["courses_of", "fair_shares", "figures_of", "jain", "wait_curve", "wanted_spans"]
