"""What `sim forecast` prints: how often forecasts came true, for whom, and whether something simpler does as well.

Decides the order of the figures and the words. Never scores. Invariant: what cannot be told from so few answers is said
so, and is no pass.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import median
from typing import Any, TextIO

import msgspec

from fairlead.collector import rare_collections
from fairlead.sim.forecast_scores import METHODS, Judge, Scores
from fairlead.sim.forecasting import ForecastTrial, Plan
from fairlead.sim.rows import sentence
from fairlead.sim.simulate import INTERRUPTED, progress_bars
from fairlead.sim.sources import Source
from fairlead.sim.trials import Trial, on_ctrl_c, spec_of
from fairlead.sim.verdicts import counted
from fairlead.times import span

PROMISED = 0.8
MAY_COVER, MAY_COVER_GROUP = (0.75, 0.85), (0.7, 0.9)
ENOUGH = 100
"""Answers that tell something about a group."""
SIMPLE = ("queue", "limits", "limits-errors")
AT_MOST = 0.9
"""The service's loss is to be so much of that of the best simple method at most."""
_SAID = {
    "service": "`when` as the service says it",
    "futures": "the futures alone, without experience",
    "queue": "(a) the last 50 waits of the queue",
    "limits": "(b) one run with the declared limits",
    "limits-errors": "(c) that times its last 200 errors",
    "known": "(d) one run that knows all run times",
}


@dataclass(frozen=True, slots=True)
class Wanted:
    """One workload to try forecasts on."""

    source: Source
    queues: str = ""
    every_node: int = 1
    """Each so many-th node of the workload only: most traces leave so much free that nothing waits."""


def run(
    wanted: Sequence[Wanted],
    plan: Plan,
    out: TextIO | None = None,
    err: TextIO | None = None,
    *,
    as_json: bool = False,
    progress: bool | None = None,
) -> int:
    """Simulate each workload with forecasts and print how they did.

    Returns 0, 130 after Ctrl-C, or 2 after a sentence on `err` when something cannot be read.
    """
    out, err = out or sys.stdout, err or sys.stderr
    reports = []
    for each in wanted:
        try:
            report = _tried(each, plan, err, progress)
        except (OSError, ValueError) as e:
            print(f"cannot try forecasts: {sentence(e)}", file=err)
            return 2
        reports.append(report)
        if not as_json:
            print("\n".join(lines_of(report)), file=out, flush=True)
        if report["interrupted"]:
            break
    if as_json:
        print(msgspec.json.encode(reports).decode(), file=out)
    return INTERRUPTED if reports and reports[-1]["interrupted"] else 0


def _tried(wanted: Wanted, plan: Plan, err: TextIO, progress: bool | None) -> dict[str, Any]:
    began = time.process_time()
    workload = wanted.source.open()
    workload = replace(workload, nodes=tuple(workload.nodes)[:: wanted.every_node])
    trial = Trial(name=workload.name, source=wanted.source, queues=wanted.queues)
    course = ForecastTrial(spec_of(trial, workload), workload, plan)

    def stop() -> None:
        course.stopped = True

    with rare_collections(), on_ctrl_c(stop), progress_bars(err, [trial], progress) as tick:
        course.run(None, None if tick is None else partial(tick, 0))
    return report_of(course, workload.name, len(workload.nodes), time.process_time() - began)


def report_of(course: ForecastTrial, name: str, nodes: int, cpu_s: float) -> dict[str, Any]:
    """How the forecasts did, as plain values."""
    scores = Judge().of(course.record)
    return {
        "workload": name,
        "nodes": nodes,
        "tasks": course.tasks,
        "refused": dict(course.refused),
        "moments": course.made,
        "draws": course.plan.draws,
        "seed": course.plan.seed,
        "answers": scores.answers,
        "open": scores.open,
        "compared": scores.compared,
        "promised": PROMISED,
        "loss_s": {method: _each(scores.loss_s[method], scores, 1) for method in METHODS},
        "inside": {method: _each(scores.inside[method], scores, 3) for method in METHODS},
        "coverage": {
            name: {"answers": group.answers, "inside": round(group.inside / group.answers, 3)}
            for name, group in scores.groups.items()
        },
        "against_simple": _against(scores),
        "width_p50": round(median(scores.widths), 2) if scores.widths else None,
        "weights": {
            queue: {way: round(float(part), 2) for way, part in ways.items()} for queue, ways in scores.weights.items()
        },
        "holds": _holds(scores),
        "cpu_s": round(cpu_s, 1),
        "interrupted": course.stopped,
    }


def _each(total: float, scores: Scores, digits: int) -> float | None:
    """The mean over the answers that are compared; None: there are none."""
    return round(total / scores.compared, digits) if scores.compared else None


def _against(scores: Scores) -> float | None:
    """The service's loss relative to that of the best simple method; None: too few answers to tell."""
    if scores.compared < ENOUGH:
        return None
    best = min(scores.loss_s[method] for method in SIMPLE)
    return round(scores.loss_s["service"] / best, 3) if best else None


def _holds(scores: Scores) -> bool | None:
    """Whether as many answers came true as was promised, in all and in each group; None: too few to tell."""
    whole = scores.groups.get("all")
    if whole is None or whole.answers < ENOUGH:
        return None
    return not list(_outside(scores))


def _outside(scores: Scores) -> list[str]:
    """Groups in which too many or too few came true."""
    found = []
    for name, group in scores.groups.items():
        least, most = MAY_COVER if name == "all" else MAY_COVER_GROUP
        if group.answers >= ENOUGH and not least <= group.inside / group.answers <= most:
            found.append(name)
    return found


def lines_of(report: Mapping[str, Any]) -> list[str]:
    """The report for people."""
    lines = [
        f"{report['workload']}: {counted(report['tasks'], 'task')} on {counted(report['nodes'], 'node')}; "
        f"{counted(report['answers'], 'answer')} at {counted(report['moments'], 'moment')}, "
        f"{counted(report['draws'], 'future')} each; {report['open']:,} still wait"
    ]
    lines += [f"  refused {count:,}: {why}" for why, count in report["refused"].items()]
    whole = report["coverage"].get("all")
    if whole is None:
        return [*lines, "  nothing was scored: nothing waited, or nothing that waited started"]
    lines.append(
        f"  promised {100 * report['promised']:.1f} %, came true {100 * whole['inside']:.1f} % of {whole['answers']:,}"
    )
    lines.append("  " + _verdict(report["holds"]))
    lines += _compared_lines(report)
    if report["against_simple"] is not None:
        better = "at most" if report["against_simple"] <= AT_MOST else "more than"
        lines.append(
            f"  {report['against_simple']:.2f} of the best of (a), (b), (c): {better} the {AT_MOST} that it should be"
        )
    for name, group in sorted(report["coverage"].items()):
        few = "" if group["answers"] >= ENOUGH else " (few)"
        if name != "all":
            lines.append(f"    {name:<24} {100 * group['inside']:5.1f} % of {group['answers']:,}{few}")
    lines.append(f"  half of the intervals are narrower than {report['width_p50']} times the wait that came")
    for queue, ways in report["weights"].items():
        told = ", ".join(f"{way} {part:.2f}" for way, part in ways.items() if part >= 0.01)
        lines.append(f"  {queue} is told by: {told}")
    if report["interrupted"]:
        lines.append("  INTERRUPTED: only what happened so far")
    return lines


def _compared_lines(report: Mapping[str, Any]) -> Iterator[str]:
    """How far off each method was."""
    if not report["compared"]:
        yield "  there is no answer that all methods have: they cannot be compared"
        return
    yield f"  mean loss of {counted(report['compared'], 'answer')} that all methods have, and how many were inside:"
    for method in METHODS:
        inside = f"{100 * report['inside'][method]:.0f} %" if method not in ("limits", "known") else "a point"
        yield f"    {_SAID[method]:<40} {span(report['loss_s'][method]):>8}  {inside:>8}"


def _verdict(holds: bool | None) -> str:
    (least, most), (low, high) = ([100 * part for part in pair] for pair in (MAY_COVER, MAY_COVER_GROUP))
    if holds is None:
        return f"fewer than {ENOUGH} answers do not tell whether that holds"
    said = "holds" if holds else "does NOT hold"
    return f"that {said} ({least:.0f} to {most:.0f} % in all, {low:.0f} to {high:.0f} % in each group of {ENOUGH})"
