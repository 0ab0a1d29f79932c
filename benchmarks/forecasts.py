"""Forecasts put to the test: a workload is simulated, starts are forecast on the way, and held against what happens.

Decides when a forecast is made (when work begins to wait, but for at most so many moments) and what is reported. The
forecast knows what a service would know then: the state, and the run times of what ended before. Never looks ahead.
Invariant: the same workload gives the same report, and the same decisions as without forecasts.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import median
from typing import Any, TextIO

import click
import msgspec

from fairlead.cli.values import parse_duration
from fairlead.collector import rare_collections
from fairlead.core.books.asks import Ask
from fairlead.core.model.decisions import Allocated, Decision
from fairlead.core.model.specs import DEFAULT_PARTITION, ClusterSpec
from fairlead.insight.forecast import Forecast, forecast, kind_of
from fairlead.insight.runtimes import Runtimes
from fairlead.insight.scorecard import Scorecard
from fairlead.insight.trial import Name
from fairlead.sim.attempts import Attempt, Gang, Settings
from fairlead.sim.columns import End
from fairlead.sim.engine import Engine, Id
from fairlead.sim.jobs import Workload
from fairlead.sim.rows import sentence
from fairlead.sim.simulate import INTERRUPTED, progress_bars
from fairlead.sim.sources import Source
from fairlead.sim.trials import Trial, on_ctrl_c, spec_of

MADE_UP = (
    ("poisson", "4", 2500, None, 0.97, "6m"),
    ("heavy-tails", "10", 5000, None, 0.9, "3m"),
    ("diurnal", "12", None, "7d", 0.8, "10m"),
    ("gangs", "6", 2500, None, 0.8, "10m"),
    ("tenants", "6", None, "3d", None, "5m"),
)
"""Workload, nodes, tasks, how long, load, and the time between two forecasts."""
DRAWS = 12
MOMENTS = 400
MAY_COVER = (0.75, 0.85)
"""What 80 % may be: in one workload starts are few and depend on one another."""
ENOUGH = 100
"""Starts that tell something: of so few, eight in a hundred more or less are chance."""


@dataclass(slots=True)
class Plan:
    """How much to spend."""

    moments: int = MOMENTS
    draws: int = DRAWS
    every_ms: int = 0
    """Between two forecasts at least."""


class ForecastTrial(Engine):
    """A simulation that forecasts on the way and keeps score."""

    def __init__(
        self, spec: ClusterSpec, workload: Workload, plan: Plan | None = None, *, digest: bool = False
    ) -> None:
        self.plan = plan or Plan()
        self.card, self.raw = Scorecard(), Scorecard(learns=False)
        """With intervals as wide as was learned, and as the futures have them."""
        self.runtimes = Runtimes()
        self.widths: list[float] = []
        self.made = 0
        self._not_before_ms = 0
        super().__init__(spec, workload.nodes, workload.jobs, settings=Settings(digest=digest))

    def _turn(self, at_ms: int) -> None:
        super()._turn(at_ms)
        if self.made >= self.plan.moments or at_ms < self._not_before_ms:
            return
        fresh = self._in_line()
        if fresh:
            self._forecast(fresh)

    def _in_line(self) -> dict[Name, Name]:
        """What waits: how it is scored, and how it is forecast (a gang by a placeholder that waits)."""
        applications = self.scheduler.cluster.partitions[DEFAULT_PARTITION].applications
        found: dict[Name, Name] = {}
        for app, key in self.waiting:
            scored = _gang(app) if app in self._gangs else (DEFAULT_PARTITION, app, key)
            if scored not in found and not self.card.is_promised(scored) and app in applications:
                asks = applications[app].asks
                pending = _first_pending(asks.values()) if app in self._gangs else asks.get(key)
                if pending is not None and pending.pending:
                    found[scored] = (DEFAULT_PARTITION, app, pending.key)
        return found

    def _forecast(self, names: Mapping[Name, Name]) -> None:
        self.made += 1
        self._not_before_ms = self.now_ms + self.plan.every_ms
        told = forecast(
            self.scheduler, self.runtimes, draws=self.plan.draws, seed=self.made, wanted=list(names.values())
        )
        for scored, name in names.items():
            self._promise(told, scored, name)

    def _promise(self, told: Forecast, scored: Name, name: Name) -> None:
        plain = msgspec.structs.replace(told.expected(name), name=scored)
        expected = self.card.promise(told.made_ms, plain)
        self.raw.promise(told.made_ms, plain)
        if expected.earliest_ms is not None and expected.latest_ms is not None and expected.median_ms is not None:
            wait = max(expected.median_ms - told.made_ms, 1_000)
            self.widths.append((expected.latest_ms - expected.earliest_ms) / wait)

    def _came(self, scored: Name) -> None:
        for card in (self.card, self.raw):
            card.started(scored, self.now_ms)

    def take(self, decisions: list[Decision]) -> None:
        """As the simulation does; starts are held against what was said."""
        for d in decisions:
            if isinstance(d, Allocated) and (d.application, d.key) in self.waiting:
                self._came((DEFAULT_PARTITION, d.application, d.key))
        super().take(decisions)

    def _open(self, gang: Gang) -> None:
        self._came(_gang(gang.application))
        super()._open(gang)

    def _leave(self, attempt: Attempt, how: End) -> Id:
        if how is not End.EVICTED and how is not End.LOST:
            app = self.scheduler.cluster.partitions[DEFAULT_PARTITION].applications[attempt.ask.application]
            self.runtimes.learn(kind_of(app.asks[attempt.ask.key]), self.now_ms - attempt.start_ms)
        return super()._leave(attempt, how)


def _gang(application: str) -> Name:
    return (DEFAULT_PARTITION, application, "")


def _first_pending(asks: Iterable[Ask]) -> Ask | None:
    return next((ask for ask in asks if ask.pending), None)


@dataclass(frozen=True, slots=True)
class Wanted:
    """One workload to try forecasts on."""

    source: Source
    queues: str = ""
    every_node: int = 1
    """Each so many-th node of the workload only: most traces leave so much free that nothing waits."""


def run(
    wanted: Sequence[tuple[Wanted, Plan]],
    out: TextIO | None = None,
    err: TextIO | None = None,
    *,
    as_json: bool = False,
    progress: bool | None = None,
) -> int:
    """Simulate each workload with forecasts and print how they did, a line for each.

    Returns 0, 130 after Ctrl-C, or 2 after a sentence on `err` when something cannot be read.
    """
    out, err = out or sys.stdout, err or sys.stderr
    reports = []
    for each, plan in wanted:
        try:
            report = _tried(each, plan, err, progress)
        except (OSError, ValueError) as e:
            print(f"cannot try forecasts: {sentence(e)}", file=err)
            return 2
        reports.append(report)
        if not as_json:
            print(text_of(report), file=out, flush=True)
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
    return report_of(course, workload, time.process_time() - began)


def report_of(course: ForecastTrial, workload: Workload, cpu_s: float) -> dict[str, Any]:
    """How the forecasts did, as plain values."""
    return {
        "workload": workload.name,
        "nodes": len(workload.nodes),
        "tasks": course.tasks,
        "moments": course.made,
        "draws": course.plan.draws,
        "calibrated": msgspec.to_builtins(course.card.score()),
        "raw": msgspec.to_builtins(course.raw.score()),
        "holds": _holds(course.card),
        "width_p50": round(median(course.widths), 3) if course.widths else None,
        "cpu_s": round(cpu_s, 1),
        "interrupted": course.stopped,
    }


def _holds(card: Scorecard) -> bool | None:
    """Whether as many starts came inside as was promised; None: too few started to tell."""
    observed = card.score().observed
    if observed is None or card.scored < ENOUGH:
        return None
    least, most = MAY_COVER
    return least <= observed <= most


def _verdict(holds: bool | None) -> str:
    least, most = (f"{100 * part:.0f}" for part in MAY_COVER)
    if holds is None:
        return f"fewer than {ENOUGH} starts do not tell whether that holds"
    return f"that {'holds' if holds else 'does NOT hold'} ({least} to {most} %)"


def text_of(report: Mapping[str, Any]) -> str:
    """The report for people."""
    show: Callable[[Any], str] = lambda part: "nothing scored" if part is None else f"{100 * part:.1f} %"  # noqa: E731
    told, raw = report["calibrated"], report["raw"]
    lines = [
        f"{report['workload']}: {report['tasks']:,} tasks on {report['nodes']:,} nodes; forecasts at "
        f"{report['moments']:,} moments, {report['draws']} futures each",
        f"  promised {show(told['promised'])}, came true {show(told['observed'])} of {told['scored']:,} starts "
        f"({told['early']} earlier, {told['late']} later, {told['open']} still wait)",
        f"  {_verdict(report['holds'])}; without what was learned on the way: {show(raw['observed'])}",
    ]
    if report["width_p50"] is not None:
        lines.append(f"  half of the intervals are narrower than {report['width_p50']} times the expected wait")
    if report["interrupted"]:
        lines.append("  INTERRUPTED: only what happened so far")
    return "\n".join(lines)


@click.command()
@click.option(
    "--workload",
    "-w",
    "--tasks",
    default="",
    metavar="WORKLOAD",
    help="A workload as for `sim run` (no journal); several made-up ones if left out.",
)
@click.option("--nodes", default="", metavar="NODES", help="As for `sim run`.")
@click.option("--config", default="", metavar="FILE", help="A queue file; one that suits the workload if not given.")
@click.option(
    "--every-node",
    type=click.IntRange(1),
    default=1,
    metavar="N",
    help="Each Nth node only, so that work has to wait.",
)
@click.option("--seed", type=int, default=1, metavar="N", help="For made-up workloads.")
@click.option(
    "--moments", type=click.IntRange(1), default=1000, metavar="N", help="Moments at which forecasts are made, at most."
)
@click.option("--draws", type=click.IntRange(2), default=10, metavar="N", help="Futures played at each of them.")
@click.option("--every", default="", metavar="TIME", help="Between two of these moments at least, such as 30m.")
@click.option("--json", is_flag=True, help="Print JSON instead of text.")
def main(
    workload: str, nodes: str, config: str, every_node: int, seed: int, moments: int, draws: int, every: str, json: bool
) -> None:
    """Try how often forecasts of starts come true.

    Each workload is simulated; whenever work begins to wait its start is forecast from what a service would know then,
    and scored when it starts. Four of five starts should be inside their interval.
    """

    def plan(default: str) -> Plan:
        return Plan(moments=moments, draws=draws, every_ms=parse_duration(every or default, "--every"))

    if workload:
        source = Source(workload=workload, nodes=nodes, seed=seed)
        sys.exit(run([(Wanted(source, config, every_node), plan("1h"))], sys.stdout, sys.stderr, as_json=json))
    if nodes or config or every_node > 1:
        raise click.UsageError("--nodes, --config and --every-node go with --workload: say which")
    tried = [
        (Wanted(Source(workload=name, nodes=count, tasks=tasks, lasts=lasts, load=load, seed=seed)), plan(apart))
        for name, count, tasks, lasts, load, apart in MADE_UP
    ]
    sys.exit(run(tried, sys.stdout, sys.stderr, as_json=json))


if __name__ == "__main__":
    main()
