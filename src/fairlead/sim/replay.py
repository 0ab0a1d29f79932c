"""Replay a trace from its files and report what became of it.

Decides what is printed: totals that add up, use of resources over time, waiting times, a digest of all decisions.
Never decides anything about a task. Invariant: what was done so far is reported even when the run is interrupted.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, TextIO

import msgspec
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from fairlead.config import ConfigurationError, load_file
from fairlead.config.unsupported import not_yet
from fairlead.core.quantities import format_quantity
from fairlead.core.specs import ClusterSpec
from fairlead.sim.engine import Engine
from fairlead.sim.playback import GPU, Replay
from fairlead.sim.trace import TraceError, TraceNode, TraceTask, read_nodes, read_tasks

INTERRUPTED = 130


def run(  # noqa: PLR0913 - they are the options of a command
    nodes_csv: str,
    tasks_csv: str,
    out: TextIO | None = None,
    err: TextIO | None = None,
    *,
    config: str = "",
    decisions: str = "",
    skip_bad: bool = False,
    until_s: int | None = None,
    as_json: bool = False,
    progress: bool | None = None,
) -> int:
    """Replay a trace and print the report.

    `config` is a queue file instead of the built-in one; `decisions` a file to write every decision to, a line each;
    `skip_bad` leaves bad rows out and counts them; `until_s` stops at that second of the trace; `progress` shows a bar
    on `err` (None: when it is a terminal). Returns 0, 130 after Ctrl-C (the report shows what there is), or 2 after a
    sentence on `err` when a file cannot be read or written.
    """
    out, err = out or sys.stdout, err or sys.stderr
    bad: list[TraceError] = []
    try:
        nodes = read_nodes(nodes_csv, bad if skip_bad else None)
        tasks = read_tasks(tasks_csv, bad if skip_bad else None)
        spec = read_queues(config) if config else None
        with ExitStack() as files:
            lines = files.enter_context(Path(decisions).open("w", encoding="utf-8")) if decisions else None
            report = replay(nodes, tasks, spec, lines, err, until_s, progress)
    except (OSError, TraceError, ConfigurationError) as e:
        print(f"cannot replay the trace: {e}", file=err)
        return 2
    report["skipped_rows"] = [str(e) for e in bad]
    print(msgspec.json.encode(report).decode() if as_json else report_text(report), file=out)
    return INTERRUPTED if report["interrupted"] else 0


def replay(
    nodes: list[TraceNode],
    tasks: list[TraceTask],
    spec: ClusterSpec | None,
    lines: TextIO | None,
    err: TextIO,
    until_s: int | None = None,
    progress: bool | None = None,
) -> dict[str, Any]:
    """Run it to the end, to `until_s` or to Ctrl-C, and report."""
    began = time.process_time()
    course = Replay(nodes, tasks, spec, lines)
    with stopped_by_ctrl_c(course), progress_bar(err, 2 * len(tasks), progress) as tick:
        course.run(None if until_s is None else until_s * 1000, tick)
    return report_of(course, nodes, time.process_time() - began)


def read_queues(path: str) -> ClusterSpec:
    """A queue file; raises `ConfigurationError` for what is wrong with it, and for what would be ignored."""
    spec = load_file(path)
    if missing := not_yet(spec, path):
        raise ConfigurationError(missing)
    return spec


@contextmanager
def stopped_by_ctrl_c(course: Replay | Engine) -> Iterator[None]:
    """The first Ctrl-C stops between two moments, so that the books are whole; the second one breaks off at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)

    def stop(_number: int, _frame: FrameType | None) -> None:
        course.stopped = True
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def progress_bar(err: TextIO, total: int, wanted: bool | None) -> Iterator[Callable[[int], None] | None]:
    """A bar on `err` for as long as it lasts, fed by the function that is handed out; None where there is none.

    Where lines cannot be drawn over, only its end is printed.
    """
    if not (err.isatty() if wanted is None else wanted):
        yield None
        return
    console = Console(file=err)
    moving = console.is_terminal and not console.is_dumb_terminal
    columns = (TextColumn("replaying"), BarColumn(), MofNCompleteColumn(), TextColumn("events"), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=moving) as bar:
        task = bar.add_task("replay", total=total)
        yield lambda done: bar.update(task, completed=done)


def report_of(course: Replay, nodes: list[TraceNode], cpu_s: float) -> dict[str, Any]:
    """Everything that the report says, as plain values; times in seconds."""
    tasks = course.tasks
    totals = {
        "submitted": course.submitted,
        "completed": course.completed,
        "running": len(course.running),
        "waiting": len(course.waiting),
        "refused": len(course.refused),
    }
    oldest = min((r.since_ms for r in course.waiting.values()), default=course.now_ms)
    return {
        "nodes": len(nodes),
        "tasks": len(tasks),
        "not_submitted": len(tasks) - course.submitted,
        "totals": totals,
        "adds_up": totals["submitted"] == sum(totals.values()) - totals["submitted"],
        "interrupted": course.stopped,
        "begin_s": course.use.start_ms / 1000,
        "end_s": course.use.now_ms / 1000,
        "use": course.use.figures(),
        "course": {name: [round(x, 4) for x in course.use.course(name)] for name in course.use.capacity},
        "bars": {name: course.use.bars(name) for name in course.use.capacity},
        "waits": course.waits.figures(),
        "longest_still_waiting_s": (course.now_ms - oldest) / 1000,
        "still_waiting": {name: _why(course, name) for name in list(course.waiting)[:10]},
        "evictions": course.evictions,
        "lost_s": course.lost_ms / 1000,
        "with_models": sum(bool(t.models) for t in tasks),
        "refused": dict(list(course.refused.items())[:10]),
        "decisions": course.decisions,
        "digest": course.digest,
        "cpu_s": round(cpu_s, 2),
    }


def _why(course: Replay, name: str) -> str:
    reason = course.scheduler.why(name, course.waiting[name].key)
    return reason.sentence() if reason else ""


def report_text(report: dict[str, Any]) -> str:
    """The report for people."""
    t = report["totals"]
    days = (report["end_s"] - report["begin_s"]) / 86400
    lines = [
        f"{report['nodes']:,} nodes, {report['tasks']:,} tasks, {days:.1f} days of virtual time, "
        f"{report['cpu_s']:.2f} s of CPU" + (", interrupted" if report["interrupted"] else ""),
        "",
        f"submitted {t['submitted']:,} = completed {t['completed']:,} + running {t['running']:,} + "
        f"waiting {t['waiting']:,} + refused {t['refused']:,}" + ("" if report["adds_up"] else "   DOES NOT ADD UP"),
    ]
    if report["not_submitted"]:
        lines.append(f"not submitted yet: {report['not_submitted']:,}")
    if report["skipped_rows"]:
        lines.append(f"bad rows left out: {len(report['skipped_rows']):,}; the first: {report['skipped_rows'][0]}")
    lines += ["", "use over time (mean weighted by time, peak, course from first to last)"]
    lines += [_use_line(name, use, report["bars"][name]) for name, use in report["use"].items()]
    lines += ["", *_wait_lines(report)]
    if report["evictions"]:
        lines.append(f"evictions: {report['evictions']:,}; work lost: {report['lost_s']:,.0f} s")
    lines += [f"refused {name}: {why}" for name, why in report["refused"].items()]
    lines += ["", *_notes(report), "", f"decisions: {report['decisions']:,}, sha256 {report['digest']}"]
    return "\n".join(lines)


def _use_line(name: str, use: dict[str, float], bars: str) -> str:
    capacity = format_quantity(name, int(use["capacity"]))
    return f"  {name:10} {use['mean']:7.1%} mean {use['peak']:7.1%} peak of {capacity:>10}  |{bars}|"


def _wait_lines(report: dict[str, Any]) -> list[str]:
    lines = ["waiting times: nothing has started"]
    if (w := report["waits"]) is not None:
        shown = ", ".join(f"{name} {w[name]:,.1f} s" for name in ("mean", "p50", "p95", "p99", "max"))
        lines = [f"waiting times of {w['count']:,} that started: {shown}"]
    if waiting := report["totals"]["waiting"]:
        lines.append(f"still waiting: {waiting:,}, the longest for {report['longest_still_waiting_s']:,.1f} s")
        lines += [f"  {name}: {why}" for name, why in report["still_waiting"].items()]
    return lines


def _notes(report: dict[str, Any]) -> list[str]:
    notes = [f"GPU shares count as one pool per node ({GPU}, thousandths); single devices are not modelled."]
    if report["with_models"]:
        notes.append(f"{report['with_models']:,} tasks name GPU models; they ran on nodes that have one of these.")
    return notes
