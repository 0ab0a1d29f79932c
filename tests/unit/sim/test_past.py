"""Another queue file on past work: as `sim compare` finds it, and in a process of its own."""

from __future__ import annotations

import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace as replace_struct

from fairlead.config import load_text
from fairlead.core.model.events import AddApplication, AddAsks, AddNode, Configure, Event
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import ApplicationSpec, AskSpec, NodeSpec
from fairlead.journal import codec
from fairlead.journal.format import EVENT, SCHEDULE
from fairlead.journal.store import Journal
from fairlead.scheduler import Scheduler
from fairlead.sim.past import IN_THE_WAY, answered
from fairlead.sim.simulate import Files, run
from fairlead.sim.sources import Source
from fairlead.sim.trials import Trial, run_trials
from fairlead.sim.verdicts import in_words
from fairlead.sim.workloads.journalled import journal_workload
from fairlead.wire.configuration import ConfigPast, PastQuestion

DAY_S = 86_400
IN_FORCE = """
partitions:
  - name: default
    preemption: {enabled: false}
    queues:
      - name: root
        submitacl: "*"
        queues:
          - {name: a}
          - {name: b, properties: {priority.offset: "0"}}
"""
OTHER = IN_FORCE.replace('"0"', '"10"')


def recorded(folder: Path, days: int = 1, nodes: str = "1x vcore=1") -> str:
    """A state directory whose journal has three tasks for one core each day; those of `b` wait the longest."""
    rows = [
        f"{day * DAY_S + at},{run_s},1,root.{queue},{user}"
        for day in range(days)
        for at, run_s, queue, user in ((0, 100, "a", "ann"), (1, 100, "a", "ann"), (2, 10, "b", "bob"))
    ]
    (folder / "tasks.csv").write_text("time,run,resources.vcore,queue,user\n" + "\n".join(rows) + "\n")
    (folder / "state").mkdir()
    (folder / "one.yaml").write_text(IN_FORCE)
    source = Source(workload=str(folder / "tasks.csv"), nodes=nodes)
    course = Files(course=str(folder / "state" / "journal.db"))
    with (folder / "out").open("w") as out:
        assert run(Trial(name="one", queues=str(folder / "one.yaml"), source=source), out, out, files=course) == 0
    return str(folder / "state")


def test_it_finds_what_sim_compare_finds_of_the_same_journal(tmp_path: Path) -> None:
    state = recorded(tmp_path)
    found = answered(PastQuestion(state=state, since_ms=0, in_force=IN_FORCE, other=OTHER))
    source = Source(workload=state, since=0, journal=journal_workload)
    pair = [
        Trial(name=name, text=text, source=source)
        for name, text in (("the file in force", IN_FORCE), ("this file", OTHER))
    ]
    assert found.sentences == in_words(run_trials(pair))
    assert found.tasks == 3
    means = {each.name: (each.now_ms, each.then_ms) for each in found.queues}
    assert means == {"root.a": (49_500, 54_500), "root.b": (198_000, 98_000)}
    assert {each.name for each in found.users} == {"ann", "bob"}


def test_what_runs_has_run_until_it_is_asked(tmp_path: Path) -> None:
    """Where nothing else happened since it began, the record ends then: it had not run at all, and nobody waited."""
    state = tmp_path / "state"
    state.mkdir()
    with Journal(state / "journal.db") as journal:
        scheduler = Scheduler()
        events: list[Event] = [Configure(replace(load_text(IN_FORCE), text=IN_FORCE))]
        events.append(AddNode(NodeSpec(id="n", capacity=Resources({"vcore": 1000}))))
        for name in ("runs", "waits"):
            events.append(AddApplication(ApplicationSpec(id=name, queue="root.a", user="ann")))
            events.append(AddAsks((AskSpec(application=name, key=name, resources=Resources({"vcore": 1000})),)))
        for event in events:
            journal.append(1000, EVENT, codec.encode(event), codec.encode_all(scheduler.handle(event, 1000)))
        decisions = scheduler.schedule(1000)
        journal.append(1000, SCHEDULE, codec.encode_plain({"limit": None}), codec.encode_all(decisions))
        journal.commit()
    asked = PastQuestion(state=str(state), since_ms=500_000, now_ms=3_601_000, in_force=IN_FORCE, other=OTHER)
    assert answered(asked).tasks == 2
    [row] = answered(replace_struct(asked, since_ms=0)).queues
    assert row.now_ms == 1_800_000


def test_over_some_days_it_says_in_how_many_it_is_better(tmp_path: Path) -> None:
    """With fewer than five that would mean little, and is not said."""
    for days, is_said in ((2, False), (6, True)):
        folder = tmp_path / f"{days}"
        folder.mkdir()
        state = recorded(folder, days)
        found = answered(PastQuestion(state=state, since_ms=0, in_force=IN_FORCE, other=OTHER))
        surely = [each for each in found.sentences if "beats the file in force in 5 of 5 days" in each]
        assert bool(surely) is is_said, found.sentences


def test_it_says_since_when_the_work_is_that_is_recorded(tmp_path: Path) -> None:
    """A journal may be shorter than the days that were asked for."""
    state = recorded(tmp_path)
    for since_ms, told_ms in ((-DAY_S * 1000, 0), (1_500, 1_500)):
        found = answered(PastQuestion(state=state, since_ms=since_ms, in_force=IN_FORCE, other=OTHER))
        assert found.since_ms == told_ms


@pytest.mark.parametrize(
    ("since_ms", "other", "said"),
    [(2**50, OTHER, "nothing was submitted in that stretch of time"), (0, "partitions: 7", "partitions")],
)
def test_as_a_process_it_answers_or_says_what_is_in_the_way(
    tmp_path: Path, since_ms: int, other: str, said: str
) -> None:
    state = recorded(tmp_path)

    def ask(**question: object) -> subprocess.CompletedProcess[bytes]:
        asked = PastQuestion(**{"state": state, "since_ms": 0, "in_force": IN_FORCE, "other": OTHER} | question)  # type: ignore[arg-type]
        command = [sys.executable, "-m", "fairlead.sim.past"]
        return subprocess.run(command, input=msgspec.json.encode(asked), capture_output=True, timeout=50, check=False)

    done = ask()
    assert (done.returncode, done.stderr) == (0, b"")
    assert msgspec.json.decode(done.stdout, type=ConfigPast).tasks == 3
    assert ask(patience_s=0.001).returncode == -signal.SIGALRM, "it ends itself, whoever asked is gone or not"
    done = ask(since_ms=since_ms, other=other)
    assert (done.returncode, done.stdout) == (IN_THE_WAY, b"")
    assert said in done.stderr.decode()


def test_what_a_journal_holds_is_in_no_doubtful_unit(tmp_path: Path) -> None:
    """A machine that was hardly used is no table in a wrong unit."""
    state = recorded(tmp_path, nodes="1x vcore=5000")
    found = answered(PastQuestion(state=state, since_ms=0, in_force=IN_FORCE, other=OTHER))
    assert not [note for note in found.notes if "unit" in note]
