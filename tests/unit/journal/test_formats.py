"""Journals of each format there ever was can be read: a sample of each is kept, and what it says beside it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from journals import FirstComeFirstServed
from samples import contents, covers, described, sample

from fairlead.journal.codec import decode, decode_decisions, decode_event
from fairlead.journal.format import EVENT, FORMAT, NOTE, Record
from fairlead.journal.replay import replay
from fairlead.journal.store import Journal
from fairlead.journal.verify import verify

VERSIONS = tuple(range(1, FORMAT + 1))
ROUNDS = 9
"""How many records stand before the notes that are compared with what is kept beside the sample."""
NEVER_GIVEN = frozenset({"NeverPreempts", "PreemptionDoesNotHelp"})
"""Reasons that were declared once and that nothing gave: no journal of a user has them, and they are gone."""


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> int:
    number: int = request.param
    return number


@pytest.fixture
def path(version: int, tmp_path: Path) -> Path:
    """A copy of the sample: reading a journal makes files beside it."""
    return Path(shutil.copy(sample(version), tmp_path / "journal.db"))


def notes(records: list[Record]) -> list[Record]:
    return [r for r in records if r.kind == NOTE and r.seq > ROUNDS]


def test_every_value_is_what_was_written(path: Path, version: int) -> None:
    """Each event, decision and reason, with all its fields and with the least."""
    then = contents(version)
    with Journal.read(path) as reader:
        now = notes(list(reader.records()))
    assert len(now) == len(then) > 100
    pairs = [(r, t) for r, t in zip(now, then, strict=True) if t["$"] not in NEVER_GIVEN]
    wrong = [r.seq for r, t in pairs if not covers(described(decode(r.payload, object)), t)]
    assert not wrong


def test_every_event_and_every_outcome_is_read(path: Path) -> None:
    """Also by the readers that take one kind of value alone."""
    with Journal.read(path) as reader:
        records = list(reader.records())
    assert [type(decode_event(r.payload)).__name__ for r in records if r.kind == EVENT][:2] == ["AddNode", "AddAsks"]
    outcomes = [type(d).__name__ for r in records if r.outcome for d in decode_decisions(r.outcome)]
    assert outcomes == ["NodeAccepted", "Allocated", "Released", "Allocated", "Released"]


def test_it_is_replayed_with_equal_decisions(path: Path) -> None:
    """However they were spelled then, and with the state that was stored on the way."""
    with Journal.read(path) as reader:
        result = replay(reader, FirstComeFirstServed)
    assert (result.ok, result.decisions, result.snapshots_equal) == (True, 5, (5,))


def test_a_writer_brings_it_to_the_newest_format_and_goes_on(path: Path, version: int) -> None:
    """What was there stays as it is; what comes after it follows from it."""
    with Journal(path) as journal:
        assert journal.opening.migrated == FORMAT - version
        told = journal.opening.sentences()
        assert told == ((f"the journal is brought to format {FORMAT}",) if version < FORMAT else ())
        last = journal.append(journal.last_at_ms, NOTE, b"{}")
    result = verify(path)
    assert (result.ok, result.format, result.sizes and result.sizes.last_seq) == (True, FORMAT, last)


def test_who_only_opens_it_leaves_its_format(path: Path, version: int) -> None:
    """A version that cannot go on from it must not keep the one that wrote it from doing so."""
    with Journal(path) as journal:
        assert journal.load_for_recovery().count >= 0
    assert verify(path).format == version


def test_what_is_read_differently_is_noticed() -> None:
    """The comparison itself: a new field may come, a changed, lost or otherwise typed one may not."""
    then = {"$": "A", "x": 1, "inner": [{"$": "B", "labels": {"k": "v"}}]}
    assert covers({**then, "new": 2}, then)
    for change in ({"x": 2}, {"x": 1.0}, {"inner": []}, {"inner": [{"$": "B", "labels": {"k": "v", "more": ""}}]}):
        assert not covers({**then, **change}, then)
    assert not covers({"$": "A", "x": 1}, then)
