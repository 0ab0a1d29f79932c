"""What `fairlead sim run` and `fairlead sim compare` do: run trials, print, write reports.

Decides what is printed where. Never measures anything. Invariant: what was done so far is reported even when a run is
interrupted, and marked as such.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TextIO

import msgspec
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from fairlead.core.model.quantities import format_amount, people_call
from fairlead.journal.format import JournalError
from fairlead.sim import spread
from fairlead.sim.periods import LENGTHS
from fairlead.sim.recording import recording
from fairlead.sim.report import html_report, write_images
from fairlead.sim.rows import sentence
from fairlead.sim.trials import Trial, TrialFailed, run_alone, run_trials
from fairlead.sim.verdicts import BREAKDOWNS, Row, breakdown, counted, in_words, rows, write_csv
from fairlead.times import span

INTERRUPTED = 130
BARS = " ▁▂▃▄▅▆▇█"
WIDTH = 60
WIDEST = 100_000
"""Columns that no table has."""
REASONS_SHOWN = 10
"""Reasons of what still waits that get a line of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """What is written beside what is printed; empty: not wanted."""

    report: str = ""
    """The HTML report."""
    images: str = ""
    """A folder for the plots."""
    csv: str = ""
    decisions: str = ""
    """Of one trial: every decision, a line each."""
    course: str = ""
    """Of one trial: a new journal with all that the scheduler was told and decided."""

    def write(self, outcomes: list[dict[str, Any]]) -> None:
        """Write what is wanted. Raises OSError."""
        if self.report:
            Path(self.report).write_text(html_report(outcomes), encoding="utf-8")
        if self.images:
            write_images(outcomes, self.images)
        if self.csv:
            with Path(self.csv).open("w", encoding="utf-8", newline="") as file:
                write_csv(outcomes, file)


def run(
    trial: Trial,
    out: TextIO | None = None,
    err: TextIO | None = None,
    *,
    files: Files | None = None,
    as_json: bool = False,
    progress: bool | None = None,
) -> int:
    """Simulate one queue file and print its report.

    `progress` shows a bar on `err` (None: when it is a terminal). Returns 0, 130 after Ctrl-C (the report shows what
    there is), or 2 after a sentence on `err`.
    """
    out, err, files = out or sys.stdout, err or sys.stderr, files or Files()
    try:
        with ExitStack() as stack:
            course = stack.enter_context(recording(Path(files.course))) if files.course else None
            lines = stack.enter_context(Path(files.decisions).open("w", encoding="utf-8")) if files.decisions else None
            tick = stack.enter_context(progress_bars(err, [trial], progress))
            outcome = run_alone(trial, lines, partial(tick, 0) if tick is not None else None, course)
    except (OSError, ValueError, JournalError) as e:
        print(f"cannot simulate: {sentence(e)}", file=err)
        return 2
    print(_json(_plain(outcome)) if as_json else run_text(outcome), file=out)
    return _written(files, [outcome], err) or (INTERRUPTED if outcome["interrupted"] else 0)


def _written(files: Files, outcomes: list[dict[str, Any]], err: TextIO) -> int:
    """Write what is wanted, once the figures were printed: they are not lost with a file. 0, or 2 after a sentence."""
    try:
        files.write(outcomes)
    except OSError as e:
        print(f"cannot write it down: {sentence(e)}", file=err)
        return 2
    return 0


def compare(
    trials: Sequence[Trial],
    out: TextIO | None = None,
    err: TextIO | None = None,
    *,
    files: Files | None = None,
    as_json: bool = False,
    processes: int = 2,
    progress: bool | None = None,
    by: str = "",
) -> int:
    """Simulate several queue files on the same workload and print how they compare. Status as in `run`.

    `by` (`week` or `day`): also in how many of these which file is better, and how sure that is.
    """
    out, err = out or sys.stdout, err or sys.stderr
    trials = [replace(trial, period_ms=LENGTHS[by]) for trial in trials] if by else trials
    try:
        with progress_bars(err, trials, progress) as tick:
            outcomes = run_trials(trials, processes, tick)
        if not outcomes:
            print("interrupted before anything was simulated", file=err)
            return INTERRUPTED
    except (OSError, ValueError, TrialFailed) as e:
        print(f"cannot simulate: {sentence(e)}", file=err)
        return 2
    missing = [t.name for t in trials[len(outcomes) :]]
    found = _by_period(outcomes) if by and not any(o["interrupted"] for o in outcomes) else []
    if as_json:
        said = {"in_words": in_words(outcomes), "outcomes": [_plain(o) for o in outcomes]}
        print(_json(said | ({f"by_{by}": found} if by else {})), file=out)
    else:
        compare_text(outcomes, out)
        if by:
            print("\n".join(how_sure(outcomes, found, by)), file=out)
    if missing:
        print(f"interrupted: not simulated: {', '.join(missing)}", file=err)
    if status := _written(files or Files(), outcomes, err):
        return status
    return INTERRUPTED if missing or any(o["interrupted"] for o in outcomes) else 0


def how_sure(outcomes: Sequence[dict[str, Any]], found: Sequence[dict[str, Any]], by: str) -> Iterator[str]:
    """What `found` says of the weeks (or days), or why there is nothing."""
    for comparison in found:
        yield from spread.in_words(comparison, by)
    if not found:
        is_partial = any(o["interrupted"] for o in outcomes)
        why = "it was interrupted" if is_partial else f"the work lasts less than two {by}s"
        yield f"whether that is sure cannot be told: {why}"


def _by_period(outcomes: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """How each differs from the first over the periods that all have; nothing of fewer than two."""
    periods = zip(*(o["periods"] for o in outcomes), strict=False)
    draws = [[{"name": o["name"], "figures": f} for o, f in zip(outcomes, each, strict=True)] for each in periods]
    return spread.compared(draws) if len(draws) > 1 else []


def compare_draws(
    trials: Sequence[Trial],
    seeds: Sequence[int],
    out: TextIO | None = None,
    err: TextIO | None = None,
    *,
    as_json: bool = False,
    processes: int = 2,
    progress: bool | None = None,
) -> int:
    """Simulate several queue files on several draws of the same work and print which is surely better.

    `seeds` are for the work and for faults that are drawn. Status as in `run`; after Ctrl-C the draws that are whole
    are compared.
    """
    out, err = out or sys.stdout, err or sys.stderr
    drawn = [replace(t, source=replace(t.source, seed=seed), digest=False) for seed in seeds for t in trials]
    try:
        with progress_bars(err, drawn, progress) as tick:
            outcomes = run_trials(drawn, processes, tick)
    except (OSError, ValueError, TrialFailed) as e:
        print(f"cannot simulate: {sentence(e)}", file=err)
        return 2
    whole = list(whole_draws(outcomes, len(trials)))
    found = spread.compared([draw for _, draw in whole]) if whole else []
    if as_json:
        print(_json({"seeds": [seeds[number] for number, _ in whole], "comparisons": found}), file=out)
    for comparison in () if as_json else found:
        print("\n".join(spread.in_words(comparison)), file=out)
    if len(whole) < len(seeds):
        print(f"interrupted: {len(whole)} of {counted(len(seeds), 'draw')} were simulated", file=err)
        return INTERRUPTED
    return 0


def whole_draws(outcomes: Sequence[dict[str, Any]], files: int) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    """The draws of which no outcome is missing or was interrupted, with their numbers; those of a draw follow each
    other.
    """
    for number in range(len(outcomes) // files):
        draw = list(outcomes[number * files : (number + 1) * files])
        if not any(outcome["interrupted"] for outcome in draw):
            yield number, draw


def _plain(outcome: dict[str, Any]) -> dict[str, Any]:
    """An outcome without what is for plots only, its totals in front."""
    kept = {name: value for name, value in outcome.items() if name not in ("gantt", "wait_curve", "figures", "periods")}
    return (
        {"name": outcome["name"], "totals": outcome["figures"]["tasks"], "adds_up": adds_up(outcome)}
        | kept
        | {"figures": outcome["figures"]}
    )


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def adds_up(outcome: dict[str, Any]) -> bool:
    """Whether every submitted task has one fate."""
    totals = outcome["figures"]["tasks"]
    return bool(totals["submitted"] == sum(totals.values()) - totals["submitted"])


@contextmanager
def progress_bars(
    err: TextIO, trials: Sequence[Trial], wanted: bool | None
) -> Iterator[Callable[[int, int], None] | None]:
    """A bar for each trial on `err` for as long as it lasts; None where there is none.

    Where lines cannot be drawn over, only their end is printed. How much there is to do is known where the workload
    says so; else the bar only shows that it moves.
    """
    if not (err.isatty() if wanted is None else wanted):
        yield None
        return
    console = Console(file=err)
    moving = console.is_terminal and not console.is_dumb_terminal
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("tasks came or ended"))
    # Counting the tasks of a journal would mean to read it twice.
    total = None if trials[0].source.is_journal else trials[0].source.open().tasks
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=moving) as bars:
        tasks = [bars.add_task(escape(trial.name), total=None if total is None else 2 * total) for trial in trials]
        yield lambda number, done: bars.update(tasks[number], completed=done)


# -- texts ---------------------------------------------------------------------------------------------------------


def run_text(outcome: dict[str, Any]) -> str:
    """One outcome for people."""
    figures = outcome["figures"]
    t = figures["tasks"]
    lasted = figures["end_s"] - figures["begin_s"]
    parts = " + ".join(f"{name.replace('_', ' ')} {t[name]:,}" for name in t if name != "submitted")
    lines = [
        f"{outcome['workload']}: {counted(outcome['nodes'], 'node')}, {counted(t['submitted'], 'task')}, "
        f"{span(lasted)} of virtual time, {outcome['cpu_s']:.2f} s of CPU",
        *(["INTERRUPTED: only what happened so far"] if outcome["interrupted"] else []),
        "",
        f"submitted {t['submitted']:,} = {parts}" + ("" if adds_up(outcome) else "   DOES NOT ADD UP"),
        "",
        "use over time (weighted by time; course from first to last)",
    ]
    lines += [_use_line(name, use, outcome["courses"]["use"][name]) for name, use in figures["use"].items()]
    lines += ["", *_wait_lines(outcome)]
    stops = figures["stops"]
    if stops["evicted"] or stops["lost_with_node"] or stops["failed"] or stops["cut_off"]:
        lines.append(
            f"stopped: {stops['evicted']:,} evicted, {stops['lost_with_node']:,} lost with a node, "
            f"{stops['failed']:,} failed, {stops['cut_off']:,} at their time limit; run time lost: "
            f"{span(stops['lost_run_s'])}"
        )
    lines += [f"refused {count:,}: {why}" for why, count in outcome["refused"].items()]
    lines += ["", *outcome["notes"]] if outcome["notes"] else []
    lines += ["", f"decisions: {outcome['decisions']:,}, sha256 {outcome['digest']}"]
    return "\n".join(lines)


def bars_of(course: Sequence[float], width: int = WIDTH) -> str:
    """A course of shares as one line of bars, empty to full."""
    step = len(course) / width
    means = []
    for i in range(width):
        part = course[int(i * step) : max(int((i + 1) * step), int(i * step) + 1)]
        means.append(sum(part) / len(part) if part else 0.0)
    top = len(BARS) - 1
    return "".join(BARS[min(-int(-mean * top // 1), top)] if mean > 0.0005 else " " for mean in means)


def _use_line(name: str, use: dict[str, Any], course: Sequence[float]) -> str:
    capacity = format_amount(name, int(use["capacity"]))
    coming = "-" if use["while_coming"] is None else f"{use['while_coming']:.1%}"
    shown = f"{use['mean']:7.1%} mean {use['peak']:7.1%} peak {coming:>7} while work came"
    return f"  {people_call(name):16} {shown}, of {capacity:>8}  |{bars_of(course)}|"


def _wait_lines(outcome: dict[str, Any]) -> list[str]:
    waits = outcome["figures"]["waits"]
    lines = ["waiting times: nothing has started"]
    if (w := waits["started"]) is not None:
        shown = ", ".join(f"{name} {span(w[name])}" for name in ("mean", "p50", "p95", "p99", "max"))
        lines = [f"waiting times of {w['count']:,} that started: {shown}"]
    if (s := outcome["figures"]["slowdown"]) is not None:
        lines.append(f"bounded slowdown: mean {s['mean']:,.2f}, p95 {s['p95']:,.2f}, p99 {s['p99']:,.2f}")
    if waiting := outcome["figures"]["tasks"]["waiting"]:
        lines.append(f"still waiting: {waiting:,}, the longest unstarted for {span(waits['longest_unstarted'])}")
        lines += _still_waiting_lines(outcome["still_waiting"])
    return lines


def _still_waiting_lines(groups: list[dict[str, Any]]) -> list[str]:
    """A line for each reason, with the names of the first that it keeps; of very many reasons the last only counted."""
    lines = []
    for group in (g for g in groups[:REASONS_SHOWN] if g["why"] is not None):
        more = group["tasks"] - len(group["first"])
        names = ", ".join(group["first"]) + (f" and {more:,} more" if more else "")
        lines.append(f"  {names}: {group['why'] or 'no reason is known yet'}")
    unasked = sum(g["tasks"] for g in groups if g["why"] is None)
    others = [g for g in groups[REASONS_SHOWN:] if g["why"] is not None]
    if others:
        lines.append(f"  and {sum(g['tasks'] for g in others):,} for {len(others):,} other reasons")
    if unasked:
        lines.append(f"  and {unasked:,} that came later and were not asked for their reasons")
    return lines


def compare_text(outcomes: Sequence[dict[str, Any]], out: TextIO) -> None:
    """The outcomes side by side: a table of figures, one of waits by queue, user, priority and size, then words."""
    first = outcomes[0]
    waits = [(f"mean waiting time by {by}", breakdown(outcomes, by)) for by in BREAKDOWNS]
    tables = [_table("", rows(outcomes), outcomes)]
    tables += [_table(title, found, outcomes) for title, found in waits if len(found) > 1]
    # As wide as they need it: of figures that are cut off nobody knows.
    widest = max(Console(width=WIDEST).measure(table).maximum for table in tables)
    console = Console(file=out, width=max(Console(file=out).width if out.isatty() else 140, widest), highlight=False)
    console.print(
        f"{first['workload']}: {counted(first['nodes'], 'node')}, "
        f"{counted(first['figures']['tasks']['submitted'], 'task')}; the best of each row is marked *",
        markup=False,
    )
    for table in tables:
        console.print(table)
    for note in dict.fromkeys(note for o in outcomes for note in o["notes"]):
        console.print(f"note: {note}", markup=False)
    for said in in_words(outcomes):
        console.print(said, markup=False, soft_wrap=True)


def _table(title: str, found: Sequence[Row], outcomes: Sequence[dict[str, Any]]) -> Table:
    table = Table(title=title or None, title_justify="left", box=None, pad_edge=False, show_header=True)
    table.add_column("", min_width=34)
    for outcome in outcomes:
        name = escape(outcome["name"])  # Brackets in a name are no markup.
        table.add_column(name + (" (interrupted)" if outcome["interrupted"] else ""), justify="right")
    group = None
    for row in found:
        if not title and row.group != group:
            group = row.group
            table.add_row(f"[bold]{group}[/bold]")
        cells = [
            f"[bold green]{row.text(i)} *[/bold green]" if i in row.best else f"{row.text(i)}  "
            for i in range(len(outcomes))
        ]
        table.add_row(escape(row.name if title else f"  {row.name}"), *cells)
    return table
