"""One screenful: who runs, who waits and why, and how full the queues are.

Decides what is shown when there is not room for all: of what waits the highest priority, of what happened the newest,
with a count of the rest. Never
asks the service. Invariant: a frame is never higher or wider than the terminal.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

from fairlead.cli.cluster import fullest, in_use
from fairlead.cli.completion import with_depth
from fairlead.cli.jobfields import elapsed_ms
from fairlead.cli.render import NONE, Column, Screen, amount, amounts, bar, cut, duration, plain, table
from fairlead.cli.watch import View
from fairlead.times import clock_time

if TYPE_CHECKING:
    from fairlead.wire.cluster import Queue
    from fairlead.wire.jobs import Job

_Cells = tuple[tuple[Column, Callable[["Job", int], str]], ...]
_RUNNING: _Cells = (
    (Column("RUNS"), lambda row, _: row.key),
    (Column("NAME", least=10), lambda row, _: f"{row.name} (stopping)" if row.state == "stopping" else row.name),
    (Column("QUEUE", least=12, keep_end=True), lambda row, _: row.queue),
    (Column("USER", least=6, drop=1), lambda row, _: row.user),
    (Column("PRIORITY", right=True, drop=3), lambda row, _: str(row.priority)),
    (Column("FOR", right=True), lambda row, now_ms: duration(elapsed_ms(row, now_ms))),
    (Column("WITH", least=12), lambda row, _: amounts(row.resources)),
    (Column("NODE", least=8, drop=2), lambda row, _: row.node),
)
_WAITING: _Cells = (
    (Column("WAITS"), lambda row, _: row.key),
    (Column("NAME", least=10), lambda row, _: row.name),
    (Column("QUEUE", least=12, keep_end=True), lambda row, _: row.queue),
    (Column("PRIORITY", right=True, drop=2), lambda row, _: str(row.priority)),
    (Column("FOR", right=True), lambda row, now_ms: duration(elapsed_ms(row, now_ms))),
    (Column("WHY", least=20), lambda row, _: (row.reason.sentence if row.reason else "") or "not looked at yet"),
)
_QUEUES = (
    Column("QUEUE", least=16),
    Column("PRIORITY", right=True, drop=1),
    Column("RUNNING", right=True),
    Column("WAITING", right=True),
    Column("FULL", drop=3),
    Column("USES", least=14),
    Column("AT MOST", least=14, drop=2),
)
_BAR = 20
_ROOMY = 36
"""Lines of a terminal that has room for the whole footer; a smaller one shows the last line of it."""
_SMALL = 30
"""With fewer lines all use stands in one, and of what happened only the two newest lines are shown."""
QUEUES, RUNNING, WAITING, LATEST = range(4)
"""The parts of a frame, from top to bottom."""


def frame(
    view: View,
    width: int,
    height: int,
    *,
    colour: bool = False,
    title: str = "",
    recent: Sequence[str] = (),
    footer: Sequence[str] = (),
    only: int | None = None,
) -> list[str]:
    """The lines of one screenful of `width` by `height`: use, queues, what runs, what waits, what happened, footer.

    `only`: this part alone, for which then all the room is.
    """
    running = sorted((r for r in view.live if r.state != "waiting"), key=lambda r: (r.started_at_ms or 0, r.key))
    waiting = sorted((r for r in view.live if r.state == "waiting"), key=lambda r: (-r.priority, r.submitted_at_ms))
    # Also those that were not fetched count.
    counts = (len(running), max(len(waiting), sum(root.waiting for root in view.queues)))
    small = height < _SMALL
    head = [*_head(view, width, colour, title, counts, in_one_line=small), ""]
    if small and only is None:
        recent = recent[-2:]
    foot = [cut(plain(line), width) for line in (footer if height >= _ROOMY else footer[-1:])]
    room = max(0, height - len(head) - len(foot))
    parts = [
        _part(_QUEUES, _queue_rows(view), width, colour),
        _jobs(_RUNNING, running, view.at_ms, width, colour),
        _jobs(_WAITING, waiting, view.at_ms, width, colour),
        [_dim("LATEST", colour, "bold"), *(cut(line, width) for line in recent)] if recent else [],
    ]
    if only is not None:
        parts = [part if i == only else [] for i, part in enumerate(parts)]
    totals = (None, counts[0], counts[1], None)
    busy = {i for i, row in enumerate(_queue_rows(view)) if row[2:4] != ("0", "0")}
    body = _stacked(parts, totals, room, newest_last=LATEST, busy=busy)
    return [*head, *body, *([""] if foot else []), *foot][:height]


def _head(view: View, width: int, colour: bool, title: str, counts: tuple[int, int], *, in_one_line: bool) -> list[str]:
    ends = f"{counts[0]} running, {counts[1]} waiting"
    lines = [cut(f"{_dim(plain(title), False)}  {clock_time(view.at_ms)}  {ends}", width)]
    gauges = list[tuple[str, float, str]]()
    capacity, used = dict[str, float](), dict[str, float]()
    for node in view.nodes:
        for total, part in ((capacity, node.capacity), (used, node.allocated)):
            for name, value in part.items():
                total[name] = total.get(name, 0) + value
    usual = ("cpu", "memory", "gpu")
    for name in [*usual, *sorted(set(capacity) - set(usual))]:
        if capacity.get(name) and (name in usual or used.get(name)):
            share = used.get(name, 0) / capacity[name]
            of = f"{amount(name, used.get(name, 0))} of {amount(name, capacity[name])}"
            gauges.append((plain(name), share, of))
    if in_one_line and gauges:
        lines.append(cut("  ".join(f"{name} {bar(share, _BAR // 4)} {of}" for name, share, of in gauges), width))
    else:
        lines += [cut(f"{name:<7} {bar(share, _BAR)}  {of}", width) for name, share, of in gauges]
    return [_dim(lines[0], colour, "bold"), *lines[1:]]


def _dim(text: str, colour: bool, style: str = "dim") -> str:
    return Screen(io.StringIO(), colour=colour).styled(text, style)


def _jobs(cells: _Cells, rows: Sequence[Job], now_ms: int, width: int, colour: bool) -> list[str]:
    shown = [[text(row, now_ms) for _, text in cells] for row in rows]
    return _part([column for column, _ in cells], shown, width, colour)


def _part(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int, colour: bool) -> list[str]:
    if not rows:
        return []
    out = io.StringIO()
    table(Screen(out, width, colour), columns, rows)
    return out.getvalue().splitlines()


def _stacked(
    parts: Sequence[list[str]], totals: Sequence[int | None], room: int, newest_last: int, busy: Collection[int]
) -> list[str]:
    """The parts below each other with a blank line between, each cut so that all together fit.

    Every part gets its fair share of the lines; what one does not need goes to the others. `busy`: the rows of the
    first part that are kept before its others.
    """
    wanted = {i: len(part) + 1 for i, part in enumerate(parts) if part}
    given: dict[int, int] = {}
    left = room
    for position, i in enumerate(sorted(wanted, key=lambda i: wanted[i])):
        given[i] = min(wanted[i], left // (len(wanted) - position))
        left -= given[i]
    lines: list[str] = []
    for i in wanted:
        first = busy if i == 0 else ()
        lines += _shortened(parts[i], given[i] - 1, totals[i], keep_last=i == newest_last, first=first)
        lines.append("")
    return lines[:-1]


def _shortened(
    part: list[str], room: int, total: int | None, keep_last: bool, first: Collection[int] = ()
) -> list[str]:
    """A title and as many rows as fit, those in `first` before others; the last line says how many are missing."""
    rows = len(part) - 1
    missing = max(0, (total or rows) - rows)
    if room >= len(part) and not missing:
        return part
    if room < 2:
        return part[: max(0, room)]
    if keep_last:
        return [part[0], *part[len(part) - room + 1 :]]
    kept = min(rows, room - 2)
    chosen = sorted(sorted(range(rows), key=lambda row: row not in first)[:kept])
    return [part[0], *(part[1 + row] for row in chosen), f"  … and {rows - kept + missing} more"]


def _queue_rows(view: View) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for queue, depth in (pair for root in view.queues for pair in with_depth(root)):
        share, name = fullest(queue)
        if not name:
            share, name = _of_all(queue, view)
        priority = queue.priority
        rows.append(
            (
                "  " * depth + queue.path.rsplit(".", 1)[-1],
                NONE if priority is None else str(priority),
                str(queue.running_applications),
                str(queue.waiting),
                f"{bar(share, 10)} {name}",
                in_use(queue),
                amounts(queue.max),
            )
        )
    return rows


def _of_all(queue: Queue, view: View) -> tuple[float, str]:
    """The part of all nodes that a queue without a maximum uses."""
    used, total = queue.allocated, dict[str, float]()
    for node in view.nodes:
        for name, value in node.capacity.items():
            total[name] = total.get(name, 0) + value
    return max(((used.get(n, 0) / t, n) for n, t in total.items() if t), default=(0.0, ""))
