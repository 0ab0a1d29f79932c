"""Forecasts put to the test: a workload is replayed, starts are forecast on the way, and held against what happens.

Decides when a forecast is made (when work begins to wait, but for at most so many moments) and what is reported. The
forecast knows what a service would know then: the state, and the run times of what ended before. Never looks ahead.
Invariant: the same workload gives the same report.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TextIO

import msgspec

from fairlead.config import ConfigurationError
from fairlead.core.specs import DEFAULT_PARTITION, ClusterSpec
from fairlead.insight.forecast import Forecast, forecast
from fairlead.insight.runtimes import Kind, Runtimes
from fairlead.insight.scorecard import Scorecard
from fairlead.insight.trial import Name
from fairlead.sim.playback import Replay, TaskRun
from fairlead.sim.replay import INTERRUPTED, progress_bar, read_queues, stopped_by_ctrl_c
from fairlead.sim.trace import TraceError, TraceNode, TraceTask, read_nodes, read_tasks

DRAWS = 12
MOMENTS = 400


@dataclass(slots=True)
class Plan:
    """How much to spend."""

    moments: int = MOMENTS
    draws: int = DRAWS
    every_ms: int = 0
    """Between two forecasts at least."""


class ForecastReplay(Replay):
    """A replay that forecasts on the way and keeps score."""

    def __init__(
        self, nodes: list[TraceNode], tasks: list[TraceTask], spec: ClusterSpec | None = None, plan: Plan | None = None
    ) -> None:
        self.plan = plan or Plan()
        self.card, self.raw = Scorecard(), Scorecard()
        """With intervals stretched by what was learned, and as the futures have them."""
        self.runtimes = Runtimes()
        self.widths: list[float] = []
        self.made = 0
        self._not_before_ms = 0
        self._kinds = {task.name: Kind("trace", "", f"root.{task.qos.lower()}") for task in tasks}
        super().__init__(nodes, tasks, spec)

    def _turn(self, at_ms: int) -> None:
        super()._turn(at_ms)
        if self.made >= self.plan.moments or at_ms < self._not_before_ms:
            return
        fresh = [self._name(run) for run in self.waiting.values() if not self.card.is_promised(self._name(run))]
        if fresh:
            self._forecast(fresh)

    def _forecast(self, names: list[Name]) -> None:
        self.made += 1
        self._not_before_ms = self.now_ms + self.plan.every_ms
        told = forecast(self.scheduler, self.runtimes, draws=self.plan.draws, seed=self.made, wanted=names)
        stretch = self.card.stretch(self.now_ms)
        for name in names:
            self._promise(told, name, stretch)

    def _promise(self, told: Forecast, name: Name, stretch: tuple[float, float] | None) -> None:
        expected = told.expected(name, stretch=stretch)
        self.card.promise(told.made_ms, expected)
        self.raw.promise(told.made_ms, told.expected(name))
        if expected.earliest_ms is not None and expected.latest_ms is not None and expected.median_ms is not None:
            wait = max(expected.median_ms - told.made_ms, 1_000)
            self.widths.append((expected.latest_ms - expected.earliest_ms) / wait)

    def _name(self, run: TaskRun) -> Name:
        return (DEFAULT_PARTITION, run.task.name, run.key)

    def _started(self, name: str) -> None:
        full = self._name(self.waiting[name])
        super()._started(name)
        for card in (self.card, self.raw):
            card.started(full, self.now_ms)

    def _end_due(self) -> None:
        before = {name: run.since_ms for name, run in self.running.items()} if self._ends else {}
        super()._end_due()
        for name, since_ms in before.items():
            if name not in self.running:
                self.runtimes.learn(self._kinds[name], self.now_ms - since_ms)


def run(
    nodes_csv: str,
    tasks_csv: str,
    out: TextIO | None = None,
    err: TextIO | None = None,
    *,
    config: str = "",
    every_node: int = 1,
    plan: Plan | None = None,
    as_json: bool = False,
    progress: bool | None = None,
) -> int:
    """Replay a trace with forecasts and print how they did.

    `every_node` takes each so many-th node of the file only (most traces leave so much free that nothing waits).
    Returns 0, 130 after Ctrl-C, or 2 after a sentence on `err` when a file cannot be read.
    """
    out, err = out or sys.stdout, err or sys.stderr
    try:
        nodes, tasks = read_nodes(nodes_csv)[::every_node], read_tasks(tasks_csv)
        spec = read_queues(config) if config else None
    except (OSError, TraceError, ConfigurationError) as e:
        print(f"cannot replay the trace: {e}", file=err)
        return 2
    began = time.process_time()
    course = ForecastReplay(nodes, tasks, spec, plan)
    with stopped_by_ctrl_c(course), progress_bar(err, 2 * len(tasks), progress) as tick:
        course.run(None, tick)
    report = report_of(course, len(nodes), time.process_time() - began)
    print(msgspec.json.encode(report).decode() if as_json else text_of(report), file=out)
    return INTERRUPTED if course.stopped else 0


def report_of(course: ForecastReplay, nodes: int, cpu_s: float) -> dict[str, Any]:
    """How the forecasts did, as plain values."""
    widths = sorted(course.widths)
    return {
        "nodes": nodes,
        "tasks": course.submitted,
        "moments": course.made,
        "draws": course.plan.draws,
        "calibrated": course.card.as_dict(),
        "raw": course.raw.as_dict(),
        "width_p50": round(widths[len(widths) // 2], 3) if widths else None,
        "cpu_s": round(cpu_s, 1),
        "interrupted": course.stopped,
    }


def text_of(report: Mapping[str, Any]) -> str:
    """The report for people."""
    show: Callable[[Any], str] = lambda part: "nothing scored" if part is None else f"{100 * part:.1f} %"  # noqa: E731
    told, raw = report["calibrated"], report["raw"]
    lines = [
        f"{report['tasks']} tasks on {report['nodes']} nodes; forecasts at {report['moments']} moments, "
        f"{report['draws']} futures each",
        f"promised {show(told['promised'])}, came true {show(told['observed'])} of {told['scored']} starts "
        f"({told['early']} earlier, {told['late']} later, {told['open']} still wait)",
        f"without what was learned on the way: {show(raw['observed'])}",
    ]
    if report["width_p50"] is not None:
        lines.append(f"half of the intervals are narrower than {report['width_p50']} times the expected wait")
    return "\n".join(lines)
