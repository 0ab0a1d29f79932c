from __future__ import annotations

from io import StringIO
from pathlib import Path
from random import Random

from fairlead.cli.forecast_trial import ForecastReplay, Plan, report_of, run, text_of
from fairlead.sim.trace import TraceNode, TraceTask

NODES = [TraceNode("n0", 8000, 1024, 0, ""), TraceNode("n1", 8000, 1024, 0, "")]


def tasks(count: int, apart_s: float, run_s: float) -> list[TraceTask]:
    """They come and run by chance; each takes a quarter of a node."""
    chance, at, made = Random(5), 0.0, []
    for number in range(count):
        at += chance.expovariate(1 / apart_s)
        run_ms = max(int(chance.expovariate(1 / run_s) * 1000), 1)
        made.append(TraceTask(f"t{number}", 2000, 64, 0, (), "LS", int(at * 1000), run_ms))
    return made


def test_every_forecast_is_scored_and_the_replay_is_what_it_is_without_them() -> None:
    """Forecasts change nothing."""
    from fairlead.sim.playback import Replay

    work = tasks(120, 60, 480)
    course, plain = ForecastReplay(NODES, work, plan=Plan(draws=3)), Replay(NODES, work)
    course.run()
    plain.run()
    assert course.digest == plain.digest
    report = report_of(course, 2, 0.0)
    told = report["calibrated"]
    assert told["scored"] > 40
    assert told["open"] == 0
    assert told["scored"] == told["inside"] + told["early"] + told["late"]
    assert f"of {told['scored']} starts" in text_of(report)


def test_the_same_workload_gives_the_same_report() -> None:
    """Seeds come from the moments."""
    reports = []
    for _ in range(2):
        course = ForecastReplay(NODES, tasks(60, 60, 480), plan=Plan(draws=2, every_ms=120_000))
        course.run()
        reports.append(report_of(course, 2, 0.0))
    assert reports[0] == reports[1]


def test_moments_are_bounded_and_apart() -> None:
    """No more than asked for."""
    course = ForecastReplay(NODES, tasks(60, 60, 480), plan=Plan(moments=2, draws=2))
    course.run()
    assert course.made == 2


def test_a_missing_file_is_named() -> None:
    """Status 2."""
    err = StringIO()
    assert run("none.csv", "none.csv", StringIO(), err) == 2
    assert "none.csv" in err.getvalue()


def test_a_report_is_printed(tmp_path: Path) -> None:
    """For people, and as JSON."""
    (tmp_path / "n.csv").write_text("sn,cpu_milli,memory_mib,gpu,model\nn0,2000,64,0,\n")
    head = (
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time"
    )
    rows = [f"t{i},2000,64,0,0,,LS,Succeeded,{i},{i + 60},{i}" for i in range(5)]
    (tmp_path / "t.csv").write_text("\n".join([head, *rows]) + "\n")
    out = StringIO()
    assert run(str(tmp_path / "n.csv"), str(tmp_path / "t.csv"), out, StringIO(), progress=False) == 0
    assert "promised 80.0 %, came true" in out.getvalue()
