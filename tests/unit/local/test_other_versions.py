"""State directories of other versions: what cannot be taken over is refused with what to do."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest

from fairlead.journal.format import connect, set_meta
from fairlead.journal.store import Journal
from fairlead.journal.verify import verify
from fairlead.local.place import LocalPlace
from fairlead.runtime import RecoveryError, Runtime
from fairlead.scheduler import Scheduler

WORK = {"$": "WorkSubmitted", "work": {"key": "1", "user": "ann", "uid": 1, "command": ["true"], "queue": "root.a"}}
"""A submission as version 0.1 wrote it."""


def opened(directory: Path) -> str:
    """What a start on this directory is refused with."""
    place: LocalPlace = LocalPlace(lambda _: object(), directory / "runs", as_submitter=False)  # type: ignore
    with pytest.raises(RecoveryError) as refused:
        Runtime(directory / "journal.db", place)
    return str(refused.value)


def test_a_record_of_version_0_1_is_refused_with_what_to_do(tmp_path: Path) -> None:
    """It was killed: the journal has records behind its newest snapshot."""
    with Journal(tmp_path / "journal.db") as journal:
        seq = journal.append(1, "note", json.dumps(WORK, sort_keys=True, separators=(",", ":")).encode())
    said = opened(tmp_path)
    assert said.startswith(f"record {seq} of {tmp_path}/journal.db")
    assert "WorkSubmitted" in said
    assert "another version" in said
    assert "--state" in said


def test_a_snapshot_of_version_0_1_is_refused_with_what_to_do(tmp_path: Path) -> None:
    """It was stopped in an orderly way: the snapshot is all that is read."""
    place = {"next_number": 2, "memory_short": None, "works": [], "requests": []}
    state = {"scheduler": Scheduler().dump(), "place": place, "at_ms": 1}
    with Journal(tmp_path / "journal.db") as journal:
        seq = journal.append(1, "schedule", b'{"limit":null}', b"[]")
        journal.commit()
        journal.save_snapshot(seq, 1, json.dumps(state).encode())
    said = opened(tmp_path)
    assert said.startswith(f"the snapshot after record {seq} of {tmp_path}/journal.db")
    assert "no list of jobs" in said
    assert "another version" in said
    assert "--state" in said


def test_a_refused_directory_is_left_as_it_was(tmp_path: Path) -> None:
    """The version that wrote it can go on with it: nothing is added, it is not locked, its format is the old one."""
    path = tmp_path / "journal.db"
    with Journal(path) as journal:
        journal.append(1, "note", json.dumps(WORK).encode())
    with closing(connect(str(path))) as connection:
        set_meta(connection, "format", 1)
    opened(tmp_path)
    with Journal(path) as journal:
        assert journal.last_seq == 1
        assert journal.opening.migrated == 1


def test_a_refused_journal_can_be_looked_at(tmp_path: Path) -> None:
    """What it has can be verified and listed by this version too: only going on from it is impossible."""
    path = tmp_path / "journal.db"
    with Journal(path) as journal:
        journal.append(1, "note", json.dumps(WORK).encode())
    assert verify(path).ok
    with Journal.read(path) as reader:
        assert [r.kind for r in reader.records()] == ["note"]
