from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest
from benchmarks.forecasts import MADE_UP, ForecastTrial, Plan, Wanted, report_of, run, text_of

from fairlead.cli.values import parse_duration
from fairlead.insight.scorecard import Scorecard, State
from fairlead.sim.engine import Engine
from fairlead.sim.jobs import Workload
from fairlead.sim.sources import Source
from fairlead.sim.trials import Trial, spec_of


def opened(name: str, nodes: str, tasks: int) -> tuple[Source, Workload]:
    source = Source(workload=name, nodes=nodes, tasks=tasks, load=0.97)
    return source, source.open()


def trial(name: str, nodes: str, tasks: int, plan: Plan) -> ForecastTrial:
    source, workload = opened(name, nodes, tasks)
    course = ForecastTrial(spec_of(Trial(name=name, source=source), workload), workload, plan, digest=True)
    course.run()
    return course


def test_every_forecast_is_scored_and_the_course_is_what_it_is_without_them() -> None:
    """Forecasts change nothing."""
    course = trial("poisson", "1", 250, Plan(draws=3))
    source, workload = opened("poisson", "1", 250)
    plain = Engine(spec_of(Trial(name="poisson", source=source), workload), workload.nodes, workload.jobs)
    plain.run()
    assert course.account.digest == plain.account.digest != ""
    told = report_of(course, workload, 0.0)["calibrated"]
    assert told["scored"] > 40
    assert told["open"] == 0
    assert told["scored"] == told["inside"] + told["early"] + told["late"]
    assert f"of {told['scored']} starts" in text_of(report_of(course, workload, 0.0))


def test_a_gang_is_scored_once_when_all_of_it_stands() -> None:
    """Not once for each of its tasks."""
    source, workload = opened("gangs", "4", 200)
    course = ForecastTrial(spec_of(Trial(name="gangs", source=source), workload), workload, Plan(draws=2))
    seen: list[str] = []
    came = course._came
    course._came = lambda name: (seen.append(name[2]), came(name))[1]  # type: ignore[method-assign, func-returns-value]
    course.run()
    assert course.card.score().open == 0
    assert "" in seen
    assert course.card.scored > 0


def test_the_same_workload_gives_the_same_report() -> None:
    """Seeds come from the moments."""
    reports = []
    for _ in range(2):
        course = trial("poisson", "1", 100, Plan(draws=2, every_ms=120_000))
        reports.append((course.card.score(), course.widths))
    assert reports[0] == reports[1]


@pytest.mark.parametrize(
    ("inside", "late", "holds", "words"),
    [
        (80, 20, True, "that holds (75 to 85 %)"),
        (74, 26, False, "that does NOT hold (75 to 85 %)"),
        (86, 14, False, "that does NOT hold (75 to 85 %)"),
        (79, 20, None, "fewer than 100 starts do not tell whether that holds"),
        (0, 0, None, "fewer than 100 starts do not tell whether that holds"),
    ],
)
def test_the_report_says_whether_the_promise_holds(inside: int, late: int, holds: bool | None, words: str) -> None:
    """Of 100 starts; fewer tell nothing."""
    source, workload = opened("poisson", "1", 20)
    course = ForecastTrial(spec_of(Trial(name="poisson", source=source), workload), workload)
    course.card = Scorecard.restored(State(scored=inside + late, inside=inside, late=late))
    report = report_of(course, workload, 0.0)
    assert report["holds"] is holds
    assert words in text_of(report)


def test_moments_are_bounded() -> None:
    """No more than asked for."""
    assert trial("poisson", "1", 100, Plan(moments=2, draws=2)).made == 2


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", [name for name, *_ in MADE_UP])
def test_of_the_workloads_that_the_command_tries_four_of_five_starts_come_inside(name: str) -> None:
    """75 to 85 %, as `docs/decide.md` says; about two minutes of CPU for all of them."""
    _, nodes, tasks, lasts, load, apart = next(row for row in MADE_UP if row[0] == name)
    source = Source(workload=name, nodes=nodes, tasks=tasks, lasts=lasts, load=load, seed=1)
    plan = Plan(moments=1_000, draws=10, every_ms=parse_duration(apart, "--every"))
    out = StringIO()
    assert run([(Wanted(source), plan)], out, StringIO(), as_json=True) == 0
    (report,) = json.loads(out.getvalue())
    assert report["calibrated"]["scored"] >= 300
    assert 0.75 <= report["calibrated"]["observed"] <= 0.85
    assert report["holds"] is True


def test_a_missing_file_is_named() -> None:
    """Status 2."""
    err = StringIO()
    assert run([(Wanted(Source(workload="none.csv", nodes="1x vcore=1")), Plan())], StringIO(), err) == 2
    assert "none.csv" in err.getvalue()


def test_a_report_is_printed_for_an_openb_trace(tmp_path: Path) -> None:
    """For people, on each second node."""
    (tmp_path / "n.csv").write_text("sn,cpu_milli,memory_mib,gpu,model\nn0,2000,64,0,\nn1,2000,64,0,\n")
    head = (
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time"
    )
    rows = [f"t{i},2000,64,0,0,,LS,Succeeded,{i},{i + 60},{i}" for i in range(5)]
    (tmp_path / "t.csv").write_text("\n".join([head, *rows]) + "\n")
    out = StringIO()
    source = Source(workload=str(tmp_path / "t.csv"), nodes=str(tmp_path / "n.csv"))
    assert run([(Wanted(source, every_node=2), Plan(draws=2))], out, StringIO(), progress=False) == 0
    assert "5 tasks on 1 nodes" in out.getvalue()
    assert "promised 80.0 %, came true" in out.getvalue()
