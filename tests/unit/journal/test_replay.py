"""The same events through the same scheduler give the same decisions; a changed one is caught at once."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from journals import FirstComeFirstServed, LastComeFirstServed, Newer, Session, asks, flip, node, raw

from fairlead.core.model.events import Cause, Release
from fairlead.journal.codec import encode, encode_all, encode_plain
from fairlead.journal.format import JournalDamaged, JournalError, record_checksum
from fairlead.journal.replay import Replayable, apply, replay, scheduler_state, state_at
from fairlead.journal.store import Journal


def make(state: Mapping[str, Any] | None) -> Replayable:
    return FirstComeFirstServed(state)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Forty-one records: a node, then ten rounds with a snapshot after the fourth and the eighth."""
    path = tmp_path / "journal.db"
    with Journal(path) as journal:
        session = Session(journal)
        session.event(0, node())
        for first in (1, 5, 9):
            session.rounds(first, 4 if first < 9 else 2)
            if first < 9:
                session.snapshot()
    return path


def reseal(path: Path, seq: int, outcome: bytes) -> None:
    """Change what a record says happened, with checksums that hold: a history that another program wrote."""
    with raw(path) as c:
        before = c.execute("SELECT checksum FROM records WHERE seq = ?", (seq - 1,)).fetchone()[0]
        rows = c.execute("SELECT seq, at_ms, kind, payload, outcome FROM records WHERE seq >= ?", (seq,)).fetchall()
        for row in rows:
            made = outcome if row[0] == seq else row[4]
            before = record_checksum(before, *row[:4], made)
            c.execute("UPDATE records SET outcome = ?, checksum = ? WHERE seq = ?", (made, before, row[0]))
        c.execute("DELETE FROM snapshots")


def test_the_same_scheduler_decides_the_same(path: Path) -> None:
    """Every decision and every stored state is equal, from the start."""
    seen: list[int] = []
    with Journal.read(path) as reader:
        result = replay(reader, make, progress=seen.append)
    assert result.ok
    assert (result.first_seq, result.last_seq, result.events, result.schedules) == (1, 41, 21, 10)
    assert (result.skipped, result.uncompared, result.decisions) == ({"note": 10}, 0, 21)
    assert result.snapshots_equal == (17, 33)
    assert seen == list(range(1, 42))


def test_snapshots_of_an_older_version_may_say_less(path: Path) -> None:
    """What this version writes down besides does not make them differ, if it leads to the same state."""
    with Journal.read(path) as reader:
        result = replay(reader, lambda state: Newer(state))
    assert (result.ok, result.snapshots_equal) == (True, (17, 33))


def test_snapshots_of_an_older_version_may_say_more(tmp_path: Path) -> None:
    """And have its number: what this version writes down no more is no difference, if it leads to the same state."""

    class Older(FirstComeFirstServed):
        def dump(self) -> Mapping[str, object]:
            return {**super().dump(), "version": 1, "started": 7}

    class Present(FirstComeFirstServed):
        def dump(self) -> Mapping[str, object]:
            return {**super().dump(), "version": 2}

    path = tmp_path / "journal.db"
    with Journal(path) as journal:
        session = Session(journal, Older())
        session.event(0, node())
        session.rounds(1, 4)
        session.snapshot()
    with Journal.read(path) as reader:
        result = replay(reader, Present)
    assert (result.ok, result.snapshots_equal) == (True, (17,))


def test_what_an_older_snapshot_does_not_lead_to_is_a_difference(path: Path) -> None:
    """A scheduler that starts from it would not be where the replayed one is."""

    def other(state: Mapping[str, Any] | None) -> Newer:
        made = Newer(state)
        if state is None:
            made.extra = "1"
        return made

    with Journal.read(path) as reader:
        difference = replay(reader, other).difference
    assert difference is not None
    assert (difference.seq, difference.kind) == (17, "snapshot")
    assert "extra = absent" in difference.expected
    assert 'extra = "1"' in difference.got


def test_replay_from_a_snapshot_arrives_at_the_same_state(path: Path) -> None:
    """Shorter, with the same end."""
    with Journal.read(path) as reader:
        whole, short = replay(reader, make), replay(reader, make, from_snapshot=True)
    assert (short.ok, short.first_seq, short.last_seq) == (True, 34, 41)
    assert short.state_digest == whole.state_digest


def test_replay_can_end_early(path: Path) -> None:
    """Up to a record, from the newest snapshot that is not after it."""
    with Journal.read(path) as reader:
        assert replay(reader, make, to_seq=20).last_seq == 20
        result = replay(reader, make, to_seq=20, from_snapshot=True)
    assert (result.first_seq, result.last_seq) == (18, 20)


def test_a_changed_policy_is_caught_at_its_first_difference(path: Path) -> None:
    """With the record, what it said, what is decided now, and nothing after it."""
    with Journal.read(path) as reader:
        result = replay(reader, LastComeFirstServed)
    difference = result.difference
    assert difference is not None
    assert (difference.seq, difference.at_ms, difference.kind, difference.payload) == (
        3,
        1010,
        "schedule",
        '{"limit":null}',
    )
    line = '{"$":"Allocated","application":"app","key":"%s","node":"n1","partition":"default"}'
    assert difference.expected == (line % "t1",)
    assert difference.got == (line % "u1",)
    assert difference.sentence().startswith('record 3 (schedule at 1010 ms): decision 1 was {"$":"Allocated"')
    assert result.last_seq == 3


def test_a_decision_too_few_is_named(path: Path) -> None:
    """The sentence says that nothing more came."""
    reseal(path, 3, encode_all([]))
    with Journal.read(path) as reader:
        difference = replay(reader, make).difference
    assert difference is not None
    assert "decision 1 was nothing more, replay gives {" in difference.sentence()


def test_an_older_spelling_of_the_same_decision_is_no_difference(path: Path) -> None:
    """A field that did not exist then has its default now."""
    reseal(path, 4, b'[{"$":"Released","application":"app","cause":"FINISHED","key":"t1","node":"n1"}]')
    with Journal.read(path) as reader:
        assert replay(reader, make).ok


def test_a_state_that_differs_is_named_by_its_part(path: Path) -> None:
    """Equal decisions with another state behind them are a difference at the snapshot."""

    class Forgetful(FirstComeFirstServed):
        def dump(self) -> Mapping[str, object]:
            return {**super().dump(), "waiting": self.waiting[1:], "extra": {}}

    with Journal.read(path) as reader:
        difference = replay(reader, Forgetful).difference
    assert difference is not None
    assert (difference.seq, difference.kind) == (17, "snapshot")
    assert "waiting[3] = absent" in difference.got
    assert "extra = absent" in difference.expected


def test_a_record_without_an_outcome_is_applied_but_not_compared(tmp_path: Path) -> None:
    """It counts as uncompared."""
    with Journal(tmp_path / "j.db") as journal:
        journal.append(1, "event", encode(asks("a")))
        Session(journal, FirstComeFirstServed({"node": "", "waiting": ["a"], "running": []})).schedule(2)
    with Journal.read(tmp_path / "j.db") as reader:
        result = replay(reader, make)
    assert (result.ok, result.uncompared, result.events) == (True, 1, 1)


def test_replay_of_an_empty_journal_is_nothing(tmp_path: Path) -> None:
    """No records, no difference."""
    Journal(tmp_path / "j.db").close()
    with Journal.read(tmp_path / "j.db") as reader:
        result = replay(reader, make)
    assert (result.ok, result.first_seq, result.last_seq) == (True, 0, 0)


def test_a_damaged_record_ends_replay(path: Path) -> None:
    """Damage is not taken for a difference."""
    flip(path, "records", "payload", 9)
    with Journal.read(path) as reader, pytest.raises(JournalDamaged, match="record 9 is damaged"):
        replay(reader, make)


@pytest.mark.parametrize(
    ("kind", "payload", "complaint"),
    [
        ("event", b'{"$":"Launch"}', "record 1 cannot be read: unknown type 'Launch'"),
        (
            "event",
            b'{"$":"Allocated","application":"a","key":"k","node":"n"}',
            "record 1 cannot be read: Allocated has",
        ),
        ("schedule", b'{"limit":"many"}', "record 1 cannot be read: .limit: expected `int | null`, got `str`"),
        ("schedule", b'{"limits":3}', "record 1 cannot be read: object contains unknown field `limits`"),
    ],
)
def test_a_record_that_means_nothing_is_named(tmp_path: Path, kind: str, payload: bytes, complaint: str) -> None:
    """What is whole but cannot be understood is an error with its seq."""
    with Journal(tmp_path / "j.db") as journal:
        journal.append(1, kind, payload)
    with Journal.read(tmp_path / "j.db") as reader, pytest.raises(JournalError, match=complaint):
        replay(reader, make)


@pytest.mark.parametrize("state", [b"\x00", b"[]", b"{}", b'{"scheduler":3}'])
def test_a_snapshot_without_a_scheduler_is_named(path: Path, state: bytes) -> None:
    """A state that something else wrote cannot be replayed from."""
    with Journal(path) as journal:
        journal.save_snapshot(41, journal.last_at_ms, state)
    with Journal.read(path) as reader, pytest.raises(JournalError, match="the snapshot after record 41"):
        replay(reader, make, from_snapshot=True)


def test_a_pruned_history_is_replayed_from_its_oldest_snapshot(path: Path) -> None:
    """The snapshot stands for what is gone."""
    with Journal(path) as journal:
        journal.prune(10)
    with Journal.read(path) as reader:
        result = replay(reader, make)
    assert (result.ok, result.first_seq, result.snapshots_equal) == (True, 18, (33,))


# --- Recovery and time travel ---


def test_recovery_arrives_at_the_state_of_the_writer(path: Path) -> None:
    """Snapshot and the events after it are the same state, byte for byte, as never having stopped."""
    with Journal(path) as journal:
        session = Session(journal, FirstComeFirstServed())
        with journal.reader() as reader:
            for record in reader.records():
                apply(record, session.scheduler)
        session.rounds(11, 3)
        recovery = journal.load_for_recovery()
        assert recovery.snapshot is not None
        again = make(scheduler_state(recovery.snapshot))
        for record in recovery.records:
            apply(record, again)
        assert encode_plain(again.dump()) == encode_plain(session.scheduler.dump())


def test_the_state_of_a_moment(path: Path) -> None:
    """After the last record not later than that time, with or without a snapshot before it."""
    for seq, at_ms in ((3, 1010), (3, 1499), (19, 5010), (41, 10**9)):
        by_time = state_at(path, make, at_ms=at_ms)
        by_seq = state_at(path, make, seq=seq)
        with Journal.read(path) as reader:
            fresh = FirstComeFirstServed()
            for record in reader.records(1, seq):
                apply(record, fresh)
        assert by_time.seq == by_seq.seq == seq
        assert by_time.scheduler.dump() == by_seq.scheduler.dump() == fresh.dump()
    assert state_at(path, make).seq == 41


def test_the_moment_of_a_snapshot_and_the_one_before_the_start(path: Path) -> None:
    """No record needs to be read for the one, none had happened for the other."""
    moment = state_at(path, make, seq=17)
    assert (moment.seq, moment.at_ms) == (17, 4600)
    before = state_at(path, make, at_ms=-1)
    assert (before.seq, before.at_ms, before.scheduler.dump()) == (0, 0, FirstComeFirstServed().dump())


def test_a_moment_outside_history_is_refused(path: Path) -> None:
    """Beyond the end, before what was pruned, or two moments at once."""
    with pytest.raises(JournalError, match="there is no record 42; history has 1 to 41"):
        state_at(path, make, seq=42)
    with pytest.raises(ValueError, match="give at_ms or seq, not both"):
        state_at(path, make, seq=1, at_ms=1)
    with Journal(path) as journal:
        journal.prune(18)
    assert state_at(path, make, seq=17).seq == 17
    with pytest.raises(JournalError, match="history begins with record 18"):
        state_at(path, make, seq=16)


@settings(max_examples=15)
@given(st.lists(st.sampled_from(["asks", "schedule", "release", "snapshot", "commit", "note"]), max_size=40))
def test_any_session_is_replayed_equal(tmp_path_factory: pytest.TempPathFactory, acts: list[str]) -> None:
    """Whatever is done in whatever order: replay from the start, from a snapshot, and recovery agree."""
    path = tmp_path_factory.mktemp("any") / "journal.db"
    with Journal(path) as journal:
        session = Session(journal)
        for at, act in enumerate(acts):
            if act == "asks":
                session.event(at, asks(f"t{at}"))
            elif act == "schedule":
                session.schedule(at)
            elif act == "release" and session.scheduler.running:
                session.event(at, Release("app", session.scheduler.running[0], Cause.FINISHED))
            elif act == "snapshot":
                session.snapshot()
            elif act == "commit":
                journal.commit()
            else:
                journal.append(at, "note", b"{}")
        live = encode_plain(session.scheduler.dump())
    with Journal.read(path) as reader:
        whole, short = replay(reader, make), replay(reader, make, from_snapshot=True)
        assert whole.ok
        assert short.ok
        assert whole.state_digest == short.state_digest
        assert set(whole.snapshots_equal) == set(reader.snapshot_seqs()) - {0}
    assert encode_plain(state_at(path, make).scheduler.dump()) == live


def test_hash_seed_does_not_reach_replay(path: Path) -> None:
    """Two processes with different hash seeds agree with the record and with each other."""
    program = (
        "import sys; from journals import FirstComeFirstServed; from fairlead.journal.replay import replay;"
        "from fairlead.journal.store import Journal\n"
        "with Journal.read(sys.argv[1]) as r: result = replay(r, FirstComeFirstServed); print(result)"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", program, str(path)],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("0", "1")
    }
    assert len(said) == 1
    assert "difference=None" in said.pop()
