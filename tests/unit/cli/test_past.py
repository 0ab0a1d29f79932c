"""journal at: questions to a moment in the past, from the journal file alone."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairlead.config import load_text
from fairlead.core.model.conditions import Conditions
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
        queues:
          - name: a
            resources: {max: {gpu: 1}}
          - name: b
"""
START_MS = 1_700_000_000_000


def write(file: Path, events: list[Event | None]) -> None:
    """A journal of these events, one a minute; None: a scheduling run."""
    scheduler = Scheduler()
    with Journal(file) as journal:
        for number, event in enumerate(events):
            at_ms = START_MS + number * 60_000
            if event is None:
                outcome = encode_all(scheduler.schedule(at_ms))
                journal.append(at_ms, SCHEDULE, encode_plain({"limit": None}), outcome)
            else:
                journal.append(at_ms, EVENT, encode(event), encode_all(scheduler.handle(event, at_ms)))
        journal.commit()


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Record 7: 1 runs and 2 waits behind it. Record 9: 1 has ended and 2 runs. Record 11: 3 is on hold. Record
    14: three of the five parts of 4 run.
    """
    one = Resources({"gpu": 1})
    parts = tuple(AskSpec(application="4", key=f"4.{index}", resources=one) for index in range(5))
    events: list[Event | None] = [
        Configure(load_text(QUEUES)),
        AddNode(NodeSpec(id="n1", capacity=Resources({"gpu": 4}))),
        AddApplication(ApplicationSpec(id="1", queue="root.a", user="ann")),
        AddAsks((AskSpec(application="1", key="1", resources=one),)),
        AddApplication(ApplicationSpec(id="2", queue="root.a", user="bob")),
        AddAsks((AskSpec(application="2", key="2", resources=one),)),
        None,
        Release("1", "1"),
        None,
        AddApplication(ApplicationSpec(id="3", queue="root.a", user="ann")),
        AddAsks((AskSpec(application="3", key="3", resources=one, conditions=Conditions(held_by="ann")),)),
        AddApplication(ApplicationSpec(id="4", queue="root.b", user="bob")),
        AddAsks(parts),
        None,
    ]
    write(tmp_path / "journal.db", events)
    return tmp_path


def test_why_then_is_not_why_now(run: Callable[..., Any], state: Path) -> None:
    """It waited at record 7, and runs at the end."""
    then = run("journal", "at", "@7", "why", "2", "--path", str(state)).stdout.splitlines()
    assert then[0].startswith("As it was after record 7, ")
    assert then[1] == "2: waiting: needs gpu 1; queue root.a has gpu 0 left of its maximum gpu 1"
    assert "Held by 1 of ann (gpu 1)." in "".join(then)
    assert run("journal", "at", "@9", "why", "2", "--path", str(state)).stdout.splitlines()[1] == (
        "2: running: runs on n1"
    )


def test_what_was_on_hold_was_there(run: Callable[..., Any], state: Path) -> None:
    def asked(*question: str) -> list[str]:
        return list(run("journal", "at", "@11", *question, "--path", str(state)).stdout.splitlines()[1:])

    said = "was put on hold by ann and waits until it is released"
    assert asked("why", "3")[0] == f"3: waiting: {said}"
    assert asked("why") == [f"3 in root.a: {said}"]
    assert asked("whatif", "cancel", "3")[0].startswith("If 3 is cancelled")
    assert asked() == ["2 applications, 1 running, 1 waiting, 1 node"]


def test_an_array_is_all_its_parts(run: Callable[..., Any], state: Path) -> None:
    """What is supposed of it is supposed of each, and why is asked for a part that waits."""

    def asked(*question: str) -> list[str]:
        return list(run("journal", "at", "@14", *question, "--path", str(state)).stdout.splitlines()[1:])

    ends = ["If 4 is cancelled:", "  would be gone: 4.0 (bob, on n1), 4.1 (bob, on n1), 4.2 (bob, on n1)"]
    assert asked("whatif", "cancel", "4")[:2] == ends
    assert asked("whatif", "cancel", "4.1")[:2] == ["If 4.1 is cancelled:", "  would start: 4.3 (bob, on n1)"]
    assert asked("why", "4")[0] == "4.3: waiting: needs gpu 1; all nodes together have gpu 0 free of gpu 4"


def test_what_would_have_started_it(run: Callable[..., Any], state: Path) -> None:
    """Smallest changes, and what if."""
    answer = json.loads(run("journal", "at", "@7", "why", "2", "--all", "--json", "--path", str(state)).stdout)
    assert {change["dimension"] for change in answer["answer"]["changes"]} >= {"queue-max", "cancel", "queue"}
    lines = run("journal", "at", "@7", "whatif", "cancel", "1", "--path", str(state)).stdout.splitlines()
    assert lines[1:4] == ["If 1 is cancelled:", "  would start: 2 (bob, on n1)", "  would be gone: 1 (ann, on n1)"]


def test_a_moment_is_a_record_or_a_time(run: Callable[..., Any], state: Path) -> None:
    """By the clock of this machine; between two records the earlier one counts."""
    text = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime((START_MS + 6 * 60_000 + 5_000) / 1000))
    shown = json.loads(run("journal", "at", text, "--json", "--path", str(state)).stdout)
    assert (shown["seq"], shown["answer"]["waiting"], shown["answer"]["running"]) == (7, 1, 1)
    later = json.loads(run("journal", "at", "@9", "--json", "--path", str(state)).stdout)["answer"]
    assert (later["waiting"], later["running"]) == (0, 1), "what has ended does not run"
    assert "2 in root.a: needs gpu 1" in run("journal", "at", "@7", "why", "--path", str(state)).stdout
    ago = int(time.time() - (START_MS + 6 * 60_000 + 30_000) / 1000)
    for words in ((f"{ago}s ago", "--json", "--path", str(state)), ("--json", "--path", str(state), "--", f"-{ago}s")):
        assert json.loads(run("journal", "at", *words).stdout)["seq"] == 7


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("at", "tomorrow-ish"), "is no time"),
        (("at", "soon ago"), "journal at: 'soon' is not a duration"),
        (("at", "@7", "who", "2"), "is no question"),
        (("at", "@7", "why", "77"), "there was no job '77'"),
        (("at", "@7", "whatif", "drain", "n9"), "there was no node 'n9'"),
        (("at", "@99"), "there is no record 99"),
        (("at", "@99999999999999999999999"), "there is no record 99999999999999999999999"),
        (("at", f"@{'1' * 5_000}"), "is no time"),
        (("at", "0001-01-01"), "the journal begins at"),
    ],
)
def test_what_cannot_be_answered_is_said(run: Callable[..., Any], state: Path, words: Any, said: str) -> None:
    """In a sentence, with a status."""
    result = run("journal", *words, "--path", str(state))
    assert result.exit_code != 0
    assert said in result.stderr


def test_asking_the_past_leaves_the_journal_as_it_is(run: Callable[..., Any], state: Path) -> None:
    """Read only."""
    before = (state / "journal.db").read_bytes()
    run("journal", "at", "@7", "whatif", "priority", "2", "9", "--path", str(state))
    assert (state / "journal.db").read_bytes() == before


@pytest.mark.parametrize("question", [(), ("why",), ("why", "1"), ("whatif", "cancel", "1")])
def test_before_the_first_record_there_is_nothing_to_ask(
    run: Callable[..., Any], state: Path, question: tuple[str, ...]
) -> None:
    """When it begins is said, instead of an empty state of the year 1970."""
    done = run("journal", "at", "2020-01-01T00:00", *question, "--path", str(state))
    assert (done.exit_code, done.stdout) == (1, "")
    assert "nothing was there at that moment: the journal begins at 2023-11-1" in done.stderr


def test_a_journal_without_records_has_no_past(run: Callable[..., Any], tmp_path: Path) -> None:
    """A service that was only started."""
    with Journal(tmp_path / "journal.db"):
        pass
    done = run("journal", "at", "14:05", "why", "--path", str(tmp_path))
    assert (done.exit_code, done.stdout) == (1, "")
    assert "nothing has been recorded yet" in done.stderr


def test_attempts_are_called_as_their_jobs(run: Callable[..., Any], tmp_path: Path) -> None:
    """As `why` of the service calls them: nobody knows a job 5#2."""
    one = Resources({"gpu": 1})
    file = tmp_path / "journal.db"
    asks = [AskSpec(application=number, key=f"{number}#2", resources=one) for number in ("5", "6")]
    events: list[Event | None] = [
        Configure(load_text(QUEUES)),
        AddNode(NodeSpec(id="n1", capacity=Resources({"gpu": 4}))),
        *(AddApplication(ApplicationSpec(id=ask.application, queue="root.a", user="ann")) for ask in asks),
        AddAsks(tuple(asks)),
        None,
    ]
    write(file, events)
    for question in (["why"], ["why", "6"], ["whatif", "cancel", "5"]):
        for form in ("text", "json"):
            said = run("journal", "at", "@6", *question, "--path", str(file), "-o", form).stdout
            assert "#" not in said
            assert "6" in said
