"""sim run, sim compare: options reach the simulator, and a journal becomes a workload."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fairlead.cli.trial_options import trial_of
from fairlead.config import load_text
from fairlead.core.model.events import AddApplication, AddAsks, AddNode, Configure, Event, Release
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import ApplicationSpec, AskSpec, NodeSpec
from fairlead.journal.codec import encode, encode_all, encode_plain
from fairlead.journal.format import EVENT, SCHEDULE
from fairlead.journal.store import Journal
from fairlead.scheduler import Scheduler

QUEUES = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues: [{name: a}]
"""


def test_what_is_wrong_with_the_options_is_said(run: Callable[..., Any], tmp_path: Path) -> None:
    """Status 2 and a sentence."""
    for words, says in (
        (("--until", "soon"), "--until: 'soon' is not a duration"),
        (("--mtbf", "1h", "--faults", "f.csv"), "give one of them"),
        (("--mttr", "1h"), "--mttr goes with --mtbf"),
        (("--load", "nan"), "'nan' is no number"),
        (("--load", "inf"), "'inf' is no number"),
        (("--since", "yesterday"), "--since: 'yesterday' is no time"),
        (("--since", "0001-01-01"), "--since: '0001-01-01' is no time"),
        (("--before", "9999-12-31T23:59-14:00"), "--before: '9999-12-31T23:59-14:00' is no time"),
    ):
        result = run("sim", "run", "--workload", "poisson", *words)
        assert (result.exit_code, says in result.stderr) == (2, True), result.stderr
    file = tmp_path / "q.yaml"
    file.write_text(QUEUES)
    result = run("sim", "compare", str(file), str(file), "--workload", "poisson")
    assert (result.exit_code, "given twice" in result.stderr) == (2, True)
    result = run("sim", "compare", str(file), "--workload", "poisson")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "sim compare needs two queue files or more" in result.stderr
    result = run("sim", "tune", str(file), "--workload", "poisson", "--no-worse", "nan")
    assert (result.exit_code, "'nan' is no number" in result.stderr) == (2, True), result.stderr


def test_a_search_offers_no_report(run: Callable[..., Any]) -> None:
    """Pictures are of what was simulated: `sim run` and `sim compare` have them."""
    offered = {name: run("sim", name, "--help").stdout for name in ("run", "compare", "tune")}
    assert {name: ("--report" in text, "--images" in text) for name, text in offered.items()} == {
        "run": (True, True),
        "compare": (True, True),
        "tune": (False, False),
    }


def test_files_of_the_same_name_are_told_apart(run: Callable[..., Any], tmp_path: Path) -> None:
    """By as much of their paths as that needs."""
    files = []
    for folder in ("old", "new"):
        (tmp_path / folder).mkdir()
        files.append(str(tmp_path / folder / "queues.yaml"))
        Path(files[-1]).write_text(QUEUES.replace("name: a", "name: default"))
    (tmp_path / "t.csv").write_text("time,run,resources.vcore\n0,9,1\n")
    words = ("--workload", str(tmp_path / "t.csv"), "--nodes", "1x vcore=2", "--processes", "1", "--json")
    result = run("sim", "compare", *files, *words)
    assert result.exit_code == 0, result.stderr
    assert [o["name"] for o in json.loads(result.stdout)["outcomes"]] == ["old/queues.yaml", "new/queues.yaml"]


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A state directory whose journal knows one node and two jobs of which one waited."""
    scheduler, folder = Scheduler(), tmp_path / "state"
    folder.mkdir()
    one = Resources({"vcore": 1000})
    happened: list[tuple[int, Event]] = [
        (0, Configure(replace(load_text(QUEUES), text=QUEUES))),
        (0, AddNode(NodeSpec(id="n", capacity=one))),
    ]
    for at_s, name in ((10, "x"), (20, "y")):
        happened.append((at_s, AddApplication(ApplicationSpec(id=name, queue="root.a", user="ann"))))
        happened.append((at_s, AddAsks((AskSpec(application=name, key=name, resources=one),))))
    happened += [(70, Release("x", "x", exit_code=0)), (100, Release("y", "y", exit_code=0))]
    with Journal(folder / "journal.db") as journal:
        for at_s, event in happened:
            record(journal, at_s * 1000, event, scheduler)
    return folder


def record(journal: Journal, at_ms: int, event: Event, scheduler: Scheduler) -> None:
    """An event and the run after it, as the runtime writes them down."""
    journal.append(at_ms, EVENT, encode(event), encode_all(scheduler.handle(event, at_ms)))
    journal.append(at_ms, SCHEDULE, encode_plain({"limit": None}), encode_all(scheduler.schedule(at_ms)))
    journal.commit()


def test_a_journal_is_a_workload(run: Callable[..., Any], state: Path) -> None:
    """What was submitted comes again, runs as long as it did, on the recorded node and queues."""
    result = run("sim", "run", "--workload", str(state), "--json")
    assert result.exit_code == 0, result.stderr
    plain = json.loads(result.stdout)
    assert plain["totals"]["completed"] == 2
    assert plain["figures"]["waits"]["started"]["max"] == 50
    assert plain["figures"]["end_s"] - plain["figures"]["begin_s"] == 90


def test_what_runs_by_the_journal_of_a_running_service_runs_until_now(run: Callable[..., Any], tmp_path: Path) -> None:
    """Nothing may have been written since. Of a journal that nobody writes nothing is known behind its last record."""
    (state := tmp_path / "state").mkdir()
    begin_ms = int(time.time() * 1000) - 3_600_000
    with Journal(state / "journal.db") as journal:
        scheduler = Scheduler(now_ms=begin_ms)
        for event in (
            Configure(replace(load_text(QUEUES), text=QUEUES)),
            AddNode(NodeSpec(id="n", capacity=Resources({"vcore": 1000}))),
            AddApplication(ApplicationSpec(id="x", queue="root.a", user="ann")),
            AddAsks((AskSpec(application="x", key="x", resources=Resources({"vcore": 1000})),)),
        ):
            record(journal, begin_ms, event, scheduler)
        live = run("sim", "run", "--workload", str(state), "--json")
    ended = run("sim", "run", "--workload", str(state), "--json")
    assert (live.exit_code, ended.exit_code) == (0, 0), (live.stderr, ended.stderr)
    lasted = [json.loads(result.stdout)["figures"]["end_s"] for result in (live, ended)]
    assert (3600 <= lasted[0] - begin_ms / 1000 < 4200, lasted[1] - begin_ms / 1000) == (True, 0)


def test_all_trials_are_of_the_same_work_of_a_running_service(state: Path) -> None:
    """It goes on while they are simulated, one after the other: what comes later is in none of them."""
    given: dict[str, Any] = {"workload": str(state), "tasks_max": None, "since": "", "before": ""}
    more: dict[str, Any] = {"faults": "", "mtbf": "", "mttr": "", "until": "", "no_resubmit": False}
    trial = trial_of("one", "", **given, **more)
    with Journal(state / "journal.db") as journal:
        record(journal, 110_000, AddApplication(ApplicationSpec(id="z", queue="root.a", user="ann")), Scheduler())
        ask = AskSpec(application="z", key="z", resources=Resources({"vcore": 1000}))
        record(journal, 110_000, AddAsks((ask,)), Scheduler())
    assert (trial.source.open().tasks, trial_of("other", "", **given, **more).source.open().tasks) == (2, 3)


def test_a_stretch_of_a_journal_can_be_chosen(run: Callable[..., Any], state: Path) -> None:
    """What ran already at its beginning runs for the rest of its time; what came later comes later."""
    result = run("sim", "run", "--workload", str(state), "--since", "1970-01-01T00:00:15+00:00", "--json")
    assert result.exit_code == 0, result.stderr
    plain = json.loads(result.stdout)
    assert plain["totals"]["submitted"] == 2
    assert plain["figures"]["end_s"] - plain["figures"]["begin_s"] == 85
    result = run("sim", "run", "--workload", str(state), "--since", "1970-01-02T00:00:15+00:00")
    assert (result.exit_code, "nothing was submitted in that stretch of time" in result.stderr) == (1, True)


def test_a_folder_without_a_journal_is_said(run: Callable[..., Any], tmp_path: Path) -> None:
    """Status 1 and a sentence."""
    result = run("sim", "run", "--workload", str(tmp_path))
    assert (result.exit_code, "journal.db" in result.stderr) == (1, True)


def test_an_openb_trace_is_known_by_its_columns(run: Callable[..., Any], tmp_path: Path) -> None:
    """It needs the file of its nodes."""
    (tmp_path / "n.csv").write_text("sn,cpu_milli,memory_mib,gpu,model\nn1,4000,8192,1,T4\nn2,4000,8192,0,\n")
    (tmp_path / "t.csv").write_text(
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
        "t1,1000,1024,0,0,,LS,Succeeded,0,60,0\nt2,1000,1024,1,500,T4,BE,Succeeded,5,60,5\n"
    )
    decisions = tmp_path / "decisions"
    words = ("--workload", str(tmp_path / "t.csv"), "--decisions", str(decisions))
    result = run("sim", "run", *words, "--nodes", str(tmp_path / "n.csv"))
    assert result.exit_code == 0, result.stderr
    assert "Tasks that name GPU models" in result.stdout
    assert '5000 allocated {"application":"t2","key":"t2","node":"n1"}' in decisions.read_text()
    result = run("sim", "run", *words)
    assert (result.exit_code, "openb trace" in result.stderr) == (1, True)


def test_seeds_are_for_what_is_drawn(run: Callable[..., Any], tmp_path: Path) -> None:
    """A table is the same in each draw; files and plots are of one."""
    files = []
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).write_text(QUEUES)
        files.append(str(tmp_path / name))
    recorded = run("sim", "compare", *files, "-w", "tasks.csv", "--seeds", "3")
    assert recorded.exit_code == 2
    assert "--seeds is for made-up work" in recorded.stderr
    plotted = run("sim", "compare", *files, "-w", "poisson", "--seeds", "3", "--csv", "x.csv")
    assert plotted.exit_code == 2
    assert "--seeds goes without --report" in plotted.stderr


def test_forecast_says_which_options_go_with_a_workload(run: Callable[..., Any]) -> None:
    """Nodes of one's own need work of one's own."""
    result = run("sim", "forecast", "--nodes", "4")
    assert result.exit_code == 2
    assert "go with --workload" in result.stderr
