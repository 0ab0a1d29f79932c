"""Putting queue files in force: one step each, with a note of what changed, kept over restarts and pruning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fairlead.config import load_text
from fairlead.core.model.events import AddApplication
from fairlead.core.model.specs import ApplicationSpec, ClusterSpec
from fairlead.journal.format import EVENT, NOTE
from fairlead.journal.store import Journal
from fairlead.runtime import Entry, Runtime, Turn
from fairlead.runtime.configurations import Applied, QueuesReconfigured, configure
from fairlead.runtime.snapshots import Snapshots

WAIT_S = 10.0


class Bare:
    """A place without anything of its own, that remembers what it was told."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def load(self, state: Mapping[str, Any] | None) -> None:
        self.told = []

    def dump(self) -> Mapping[str, Any]:
        return {}

    def apply(self, record: Any, at_ms: int) -> None:
        self.told.append(record)

    def follow(self, decisions: Sequence[Any], at_ms: int) -> None:
        pass

    def settle(self, turn: Turn) -> None: ...

    def act(self, entries: Sequence[Entry]) -> None:
        pass

    def close(self) -> None:
        pass


def spec(*queues: str) -> ClusterSpec:
    return load_text(f"partitions: [{{name: default, queues: [{{name: root, queues: [{', '.join(queues)}]}}]}}]")


@contextmanager
def runtime(path: Path) -> Iterator[tuple[Runtime, Bare]]:
    place = Bare()
    found = Runtime(path, place)
    found.start()
    try:
        yield found, place
    finally:
        found.close()


def put(running: Runtime, wanted: ClusterSpec, who: str = "ann", restores: int = 0) -> Applied:
    applied: Applied = running.do(
        lambda turn: configure(turn, wanted, who=who, source="api", restores=restores)
    ).result(WAIT_S)
    return applied


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


def test_a_change_is_one_event_and_a_note_of_what_changed(path: Path) -> None:
    """The note names queue, setting, old and new; new and removed queues are no changes of a queue."""
    with runtime(path) as (running, place):
        assert put(running, spec("{name: a, resources: {max: {vcore: 4}}}", "{name: b}")) == Applied(1, changed=True)
        changed = spec("{name: a, resources: {max: {vcore: 2}}, properties: {priority.offset: '5'}}", "{name: c}")
        entries: list[Entry] = []

        def act(turn: Turn) -> Applied:
            applied = configure(turn, changed, who="bob", source="api")
            entries.extend(turn.entries)
            return applied

        assert running.do(act).result(WAIT_S) == Applied(2, changed=True)
        assert [entry.kind for entry in entries] == [EVENT, NOTE]
        note = [each for each in place.told if isinstance(each, QueuesReconfigured)][-1]
    assert (note.version, note.who, note.source) == (2, "bob", "api")
    found = {(d.queue, d.what): (d.old, d.new) for d in note.differences}
    assert found["root.a", "max"] == ({"vcore": 4000}, {"vcore": 2000})
    assert found["root.a", "properties.priority.offset"] == (None, "5")
    assert not [place for place in found if place[0] == "root.c"]


def test_what_is_in_force_already_is_no_change(path: Path) -> None:
    """No entry, no version."""
    with runtime(path) as (running, _):
        put(running, spec("{name: a}"))
        assert put(running, spec("{name: a}")) == Applied(1)
        assert len(running.books.configurations) == 1


def test_what_the_scheduler_refuses_changes_nothing(path: Path) -> None:
    """Work is in the way: the reason comes back, the version in force stays."""
    with runtime(path) as (running, _):
        put(running, spec("{name: a, submitacl: '*'}"))
        work = AddApplication(ApplicationSpec(id="x", queue="root.a", user="u"))
        running.do(lambda turn: turn.event(work)).result(WAIT_S)
        refused = put(running, spec("{name: a, queues: [{name: deep}]}"))
        assert (refused.version, refused.changed) == (1, False)
        assert "root.a" in refused.refused
        assert len(running.books.configurations) == 1


def versions(running: Runtime) -> list[tuple[int, str, int]]:
    found: list[tuple[int, str, int]] = running.read(
        lambda _: [(v.number, v.who, v.origin) for v in running.books.configurations]
    ).result(WAIT_S)
    return found


def test_the_history_is_there_after_a_stop(path: Path) -> None:
    """From the snapshot that a stop writes."""
    with runtime(path) as (running, _):
        put(running, spec("{name: a}"))
        put(running, spec("{name: b}"), "bob")
        put(running, spec("{name: a}"), "bob", restores=1)
    with runtime(path) as (again, _):
        assert again.recovered.from_snapshot
        assert versions(again) == [(1, "ann", 1), (2, "bob", 2), (3, "bob", 1)]


def test_the_history_is_there_without_a_snapshot(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The records alone give it."""
    monkeypatch.setattr(Snapshots, "write", lambda *_: None)
    with runtime(path) as (running, _):
        put(running, spec("{name: a}"))
        put(running, spec("{name: b}"), "bob")
    with runtime(path) as (again, _):
        assert not again.recovered.from_snapshot
        assert versions(again) == [(1, "ann", 1), (2, "bob", 2)]


def test_the_history_outlives_the_records_that_made_it(path: Path) -> None:
    """The journal is pruned; numbers go on, and the way back is still open."""
    with runtime(path) as (running, _):
        put(running, spec("{name: a}"))
        put(running, spec("{name: b}"), "bob")
    with Journal(path) as journal:
        assert journal.prune(journal.last_seq) > 0
    with runtime(path) as (again, _):
        assert versions(again) == [(1, "ann", 1), (2, "bob", 2)]
        before = again.books.configurations.before()
        assert before is not None
        assert "name: a" in before.text
        assert put(again, spec("{name: c}")).version == 3
