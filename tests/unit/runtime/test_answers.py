"""Nobody who put something in is left without an answer, whatever fails while it is taken up."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fairlead.core.model.decisions import Decision
from fairlead.journal import codec
from fairlead.journal.format import JournalError
from fairlead.journal.reader import Reader
from fairlead.journal.store import Journal
from fairlead.runtime import Entry, InternalFault, Runtime, Turn, Unavailable

WAIT_S = 10.0
BIG = "x" * 50_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


@codec.register
@dataclass(frozen=True, slots=True)
class Jotted:
    """A record of the notebook."""

    text: str


class Notebook:
    """A small place that keeps lines."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def load(self, state: Mapping[str, Any] | None) -> None:
        self.lines = list(state["lines"]) if state else []

    def dump(self) -> Mapping[str, Any]:
        return {"lines": list(self.lines)}

    def apply(self, record: Jotted, at_ms: int) -> None:
        if record.text == "burn":
            raise RuntimeError("the pen is on fire")
        self.lines.append(record.text)

    def follow(self, decisions: Sequence[Decision], at_ms: int) -> None: ...

    def settle(self, turn: Turn) -> None: ...

    def act(self, entries: Sequence[Entry]) -> None: ...

    def close(self) -> None: ...


@contextmanager
def open_runtime(path: Path, place: Notebook | None = None) -> Iterator[tuple[Runtime, Notebook]]:
    place = place or Notebook()
    runtime = Runtime(path, place, version="1", pid=1)
    runtime.start()
    try:
        yield runtime, place
    finally:
        runtime.close()


def write(text: str) -> Callable[[Turn], None]:
    return lambda turn: turn.note(Jotted(text))


def lines(runtime: Runtime, place: Notebook) -> list[str]:
    found: list[str] = runtime.read(lambda _: list(place.lines)).result(WAIT_S)
    return found


def journal_lines(path: Path) -> list[str]:
    with Reader(path) as reading:
        notes = [codec.decode(r.payload, object) for r in reading.records(kinds=("note",))]
    return [note.text for note in notes if isinstance(note, Jotted)]


@contextmanager
def full_disk(runtime: Runtime) -> Iterator[None]:
    """SQLite is not allowed another page."""
    connection = runtime.journal._connection
    runtime.read(lambda _: connection.execute("PRAGMA max_page_count = 1")).result(WAIT_S)
    try:
        yield
    finally:
        runtime.read(lambda _: connection.execute("PRAGMA max_page_count = 1073741823")).result(WAIT_S)


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)


def test_a_fault_in_what_waited_for_the_disk_loses_nothing_behind_it(path: Path) -> None:
    """All that waited is taken up at once; what stands behind the one with the fault is entered, and in its order."""
    with open_runtime(path) as (runtime, place):
        with full_disk(runtime):
            waiting = [runtime.do(write(BIG), must=True)]
            wait_until(lambda: bool(runtime.sick))
            waiting += [runtime.do(write(text), must=True) for text in ("a", "burn", "b", "c")]
            time.sleep(0.1)
        for future in (waiting[0], waiting[1], *waiting[3:]):
            future.result(WAIT_S)
        with pytest.raises(InternalFault, match="the pen is on fire"):
            waiting[2].result(WAIT_S)
        assert lines(runtime, place) == [BIG, "a", "b", "c"] == journal_lines(path)


def test_who_was_being_served_when_it_ended_is_told(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those whose turn hit a fault, after which the journal could not be opened again."""

    def dropped(journal: Journal) -> None:
        monkeypatch.undo()
        raise JournalError("cannot read the journal: disk I/O error")

    with open_runtime(path) as (runtime, _):
        hold = threading.Event()
        runtime.read(lambda _: hold.wait(WAIT_S))
        futures = [runtime.do(write(text)) for text in ("a", "burn")]
        monkeypatch.setattr(Journal, "rollback", dropped)
        hold.set()
        for future in futures:
            with pytest.raises(Unavailable, match="has stopped"):
                future.result(WAIT_S)
        assert runtime.ended.wait(WAIT_S)
