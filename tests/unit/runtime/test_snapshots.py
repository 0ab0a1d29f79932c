"""Snapshots that a copy of the process writes down while everything goes on."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fairlead.journal import codec
from fairlead.runtime import Runtime, Turn
from fairlead.runtime.snapshots import LOOK_MS
from fairlead.runtime.writer import RETRY_MS

WAIT_S = 20.0
MOST = 10
"""Records after which there is a snapshot."""


@codec.register
@dataclass(frozen=True, slots=True)
class Entered:
    """A record of the shelf."""

    text: str


class Shelf:
    """A place whose book another process cannot write down until it is told, or never."""

    def __init__(self, told: Path, fault: str = "") -> None:
        self.told, self.fault = told, fault
        self.lines: list[str] = []
        self._mine = os.getpid()

    def load(self, state: Mapping[str, Any] | None) -> None:
        self.lines = list(state["lines"]) if state else []

    def dump(self) -> Mapping[str, Any]:
        if os.getpid() != self._mine:
            if self.fault:
                raise OSError(self.fault)
            while not self.told.exists():
                time.sleep(0.01)
        return {"lines": list(self.lines)}

    def apply(self, record: Entered, at_ms: int) -> None:
        self.lines.append(record.text)

    def follow(self, decisions: Any, at_ms: int) -> None: ...

    def settle(self, turn: Turn) -> None: ...

    def act(self, entries: Any) -> None: ...

    def close(self) -> None: ...


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairlead.runtime.snapshots.FEWER_RECORDS", MOST)


@contextmanager
def running(directory: Path, fault: str = "", *, orderly: bool = True) -> Iterator[Runtime]:
    """A service on the shelf; it ends in order, or as in a crash."""
    runtime = Runtime(directory / "journal.db", Shelf(directory / "told", fault), version="1", pid=1)
    if not orderly:
        runtime._leave = lambda: None  # type: ignore[method-assign]
    runtime.start()
    try:
        yield runtime
    finally:
        runtime.close()


def write(runtime: Runtime, *texts: str) -> None:
    for text in texts:
        runtime.do(lambda turn, text=text: turn.note(Entered(text))).result(WAIT_S)  # type: ignore[misc]


def until(done: Callable[[], Any]) -> None:
    end = time.monotonic() + WAIT_S
    while not done():
        assert time.monotonic() < end
        time.sleep(0.01)


def copies(runtime: Runtime) -> int | None:
    one = runtime._snapshots._under_way
    return one.asked.pid if one is not None else None


def test_work_goes_on_while_one_is_written_down(tmp_path: Path) -> None:
    """It is of the moment at which it was begun: what came after is replayed. It all waited for it before."""
    early, late = [f"early {n}" for n in range(MOST)], [f"late {n}" for n in range(3 * MOST)]
    with running(tmp_path, orderly=False) as runtime:
        write(runtime, *early)
        until(lambda: copies(runtime))
        write(runtime, *late)
        assert runtime.measures.snapshots.count == 0
        (tmp_path / "told").touch()
        until(lambda: runtime.measures.snapshots.count)
        until(lambda: copies(runtime) is None or runtime.measures.snapshots.count > 1)
        whole = runtime.read(lambda _: runtime.books.dump()).result(WAIT_S)
    again = Runtime(tmp_path / "journal.db", Shelf(tmp_path / "told"))
    try:
        assert again.recovered.from_snapshot
        assert again.books.dump() == whole
    finally:
        again.journal.close()


def test_what_came_after_it_began_is_no_part_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or it would be replayed twice."""
    with running(tmp_path, orderly=False) as runtime:
        write(runtime, *map(str, range(MOST)))
        until(lambda: copies(runtime))
        one = runtime._snapshots._under_way
        assert one is not None
        write(runtime, "late")
        monkeypatch.setattr("fairlead.runtime.snapshots.FEWER_RECORDS", 1_000)
        (tmp_path / "told").touch()
        until(lambda: runtime.measures.snapshots.count)
    again = Runtime(tmp_path / "journal.db", shelf := Shelf(tmp_path / "told"))
    try:
        assert again.recovered.from_snapshot
        assert again.recovered.records == again.journal.last_seq - one.seq
        assert shelf.lines == [*map(str, range(MOST)), "late"]
    finally:
        again.journal.close()


def test_a_stop_does_not_wait_for_it(tmp_path: Path) -> None:
    """It is given up: the last one has everything."""
    with running(tmp_path) as runtime:
        write(runtime, *map(str, range(MOST)))
        until(lambda: copies(runtime))
        pid = copies(runtime)
        assert pid is not None
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    again = Runtime(tmp_path / "journal.db", Shelf(tmp_path / "told"))
    try:
        assert (again.recovered.from_snapshot, again.recovered.records) == (True, 0)
    finally:
        again.journal.close()


def test_one_that_fails_is_a_sentence(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Nothing is lost, and the next one is tried later."""
    with running(tmp_path, "no room") as runtime:
        write(runtime, *map(str, range(MOST)))
        until(lambda: caplog.records)
        write(runtime, *map(str, range(MOST)))
    [said] = [record for record in caplog.records if "no snapshot could be written" in record.getMessage()]
    assert "OSError: no room" in said.getMessage()
    assert said.exc_info is None


def test_one_that_cannot_begin_is_a_sentence(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There may be no room for a further process."""

    def refuse() -> int:
        raise BlockingIOError("Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", refuse)
    with running(tmp_path) as runtime:
        descriptors = len(list(Path("/proc/self/fd").iterdir()))
        write(runtime, *map(str, range(MOST)))
        until(lambda: caplog.records)
        assert len(list(Path("/proc/self/fd").iterdir())) == descriptors
    [said] = [record for record in caplog.records if "no snapshot could be written" in record.getMessage()]
    assert said.exc_info is None


def test_a_journal_that_refuses_is_not_tried_more_often_meanwhile(tmp_path: Path) -> None:
    """Twenty times a second it was: as often as somebody looks whether the copy is done."""
    with running(tmp_path) as runtime:
        write(runtime, *map(str, range(MOST)))
        until(lambda: copies(runtime))
        assert runtime.wait_ms() == LOOK_MS
        runtime.sick = "no room"
        assert runtime.wait_ms() == RETRY_MS
        runtime.sick = ""
