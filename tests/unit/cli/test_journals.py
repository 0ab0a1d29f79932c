"""journal verify, events, cut."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairlead.core.model.events import DrainNode
from fairlead.journal import codec
from fairlead.journal.format import EVENT, SCHEDULE
from fairlead.journal.store import Journal


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A state directory with a journal of three records."""
    with Journal(tmp_path / "journal.db") as journal:
        journal.append(1_000, EVENT, codec.encode(DrainNode("n1")), b"[]")
        journal.append(2_000, SCHEDULE, b'{"limit":null}', b"[]")
        journal.append(3_000, EVENT, codec.encode(DrainNode("n2")), b"[]")
        journal.commit()
    return tmp_path


def damage(state: Path, seq: int) -> None:
    with sqlite3.connect(state / "journal.db") as connection:
        connection.execute("UPDATE records SET payload = ? WHERE seq = ?", (b"{}", seq))
    connection.close()


def test_a_good_journal_is_described(run: Callable[..., Any], state: Path) -> None:
    """By directory or by file."""
    for path in (state, state / "journal.db"):
        result = run("journal", "verify", str(path))
        assert result.exit_code == 0
        assert "3 (1 to 3), all good" in result.stdout
    assert json.loads(run("journal", "verify", str(state), "--json").stdout)["ok"] is True


def test_a_damaged_record_is_named(run: Callable[..., Any], state: Path) -> None:
    """Status 1."""
    damage(state, 2)
    result = run("journal", "verify", str(state))
    assert result.exit_code == 1
    assert "record 2 is damaged" in result.stdout
    assert "is damaged: 1 problem" in result.stderr


def test_records_are_printed_a_line_each(run: Callable[..., Any], state: Path) -> None:
    """Chosen by seq and by kind."""
    lines = run("journal", "events", str(state)).stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["1", "2", "3"]
    assert lines[0].split()[3:] == ["event", "DrainNode", "id=n1", "partition=default"]
    assert len(run("journal", "events", str(state), "--from", "2", "--to", "2").stdout.splitlines()) == 1
    assert len(run("journal", "events", str(state), "--kind", "event").stdout.splitlines()) == 2
    assert run("journal", "events", str(state), "--kind", "evnt").exit_code == 2


def test_records_as_json_are_an_object_a_line(run: Callable[..., Any], state: Path) -> None:
    """With what followed from each."""
    first = json.loads(run("journal", "events", str(state), "--json").stdout.splitlines()[0])
    assert first == {
        "seq": 1,
        "at_ms": 1000,
        "kind": "event",
        "payload": {"$": "DrainNode", "id": "n1", "partition": "default"},
        "outcome": [],
    }


def test_reading_stops_at_a_damaged_record_with_its_place(run: Callable[..., Any], state: Path) -> None:
    """Status 1."""
    damage(state, 3)
    result = run("journal", "events", str(state))
    assert result.exit_code == 1
    assert "record 3" in result.stderr


def test_cutting_asks_first_and_keeps_the_records_aside(run: Callable[..., Any], state: Path) -> None:
    """A no changes nothing."""
    damage(state, 2)
    assert run("journal", "cut", str(state), "--from", "2", stdin="n\n").exit_code == 1
    assert run("journal", "verify", str(state)).exit_code == 1
    assert run("journal", "cut", str(state), "--from", "2", "--yes").stdout.startswith("2 records put aside")
    assert run("journal", "verify", str(state)).exit_code == 0


@pytest.mark.parametrize("what", ["verify", "replay", "events"])
def test_a_journal_that_is_not_there_is_named(run: Callable[..., Any], tmp_path: Path, what: str) -> None:
    """Status 1."""
    result = run("journal", what, str(tmp_path))
    assert result.exit_code == 1
    assert str(tmp_path / "journal.db") in result.stderr


FAR = "99999999999999999999999"


@pytest.mark.parametrize(
    "words",
    [
        ("events", "--from", FAR),
        ("events", "--to", FAR),
        ("replay", "--to", FAR),
        ("cut", "--yes", "--from", FAR),
    ],
)
def test_a_record_beyond_what_a_journal_can_count_is_refused(
    run: Callable[..., Any], state: Path, words: tuple[str, ...]
) -> None:
    """In words, and before anything is read."""
    result = run("journal", *words, str(state))
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"{FAR} is not in the range 1<=x<={2**63 - 1}" in result.stderr
