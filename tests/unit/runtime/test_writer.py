"""The single writer: durable before told, faults isolated, everything back after a crash."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fairlead.core.model.decisions import Allocated, Decision
from fairlead.core.model.events import AddApplication, AddAsks, AddNode, Release
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import ApplicationSpec, AskSpec, ClusterSpec, NodeSpec, PartitionSpec, QueueSpec
from fairlead.journal import codec
from fairlead.journal.format import JournalError, JournalFull
from fairlead.journal.reader import Reader
from fairlead.journal.store import Journal
from fairlead.runtime import (
    Entry,
    InternalFault,
    RecoveryError,
    Refusal,
    Runtime,
    Turn,
    Unavailable,
)
from fairlead.runtime.process import Clock
from fairlead.runtime.writer import TURN_MS
from fairlead.scheduler import Scheduler

WAIT_S = 10.0


@codec.register
@dataclass(frozen=True, slots=True)
class Line:
    """A record of the notebook."""

    text: str


class Notebook:
    """A small place: it keeps lines, counts what was placed, and notes what it is asked to do."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.placed: list[str] = []
        self.acted: list[int] = []
        self.durable_when_acting: list[int] = []
        self.journal: Path | None = None
        self.closed = False

    def load(self, state: Mapping[str, Any] | None) -> None:
        self.lines = list(state["lines"]) if state else []
        self.placed = list(state["placed"]) if state else []

    def dump(self) -> Mapping[str, Any]:
        return {"lines": list(self.lines), "placed": list(self.placed)}

    def apply(self, record: Line, at_ms: int) -> None:
        if record.text == "burn":
            self.lines.append("half done")
            raise RuntimeError("the pen is on fire")
        self.lines.append(record.text)

    def follow(self, decisions: Sequence[Decision], at_ms: int) -> None:
        self.placed += [d.key for d in decisions if isinstance(d, Allocated)]

    def settle(self, turn: Turn) -> None: ...

    def act(self, entries: Sequence[Entry]) -> None:
        self.acted += [entry.seq for entry in entries]
        if self.journal is not None:
            with Reader(self.journal) as reading:
                self.durable_when_acting.append(reading.last_seq)

    def close(self) -> None:
        self.closed = True


@contextmanager
def open_runtime(path: Path, place: Notebook | None = None) -> Iterator[tuple[Runtime, Notebook]]:
    place = place or Notebook()
    runtime = Runtime(path, place, version="1", pid=1)
    runtime.start()
    try:
        yield runtime, place
    finally:
        runtime.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


def write(text: str) -> Callable[[Turn], None]:
    return lambda turn: turn.note(Line(text))


def lines(runtime: Runtime, place: Notebook) -> list[str]:
    found: list[str] = runtime.read(lambda _: list(place.lines)).result(WAIT_S)
    return found


def one_node(turn: Turn) -> None:
    turn.event(AddNode(NodeSpec(id="n1", capacity=Resources({"vcore": 2000}))))


def submit(key: str, vcore: int = 1000) -> Callable[[Turn], list[Decision]]:
    def act(turn: Turn) -> list[Decision]:
        decided = turn.event(AddApplication(ApplicationSpec(id=key, queue="root.default", user="ada")))
        ask = AskSpec(application=key, key=key, resources=Resources({"vcore": vcore}))
        return [*decided, *turn.event(AddAsks((ask,)))]

    return act


def with_queues(turn: Turn) -> None:
    from fairlead.core.model.events import Configure

    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=(QueueSpec(name="default"),))
    turn.event(Configure(ClusterSpec(partitions=(PartitionSpec(root=root),), checksum="c")))


def journal_lines(path: Path) -> list[str]:
    with Reader(path) as reading:
        notes = [codec.decode(r.payload, object) for r in reading.records(kinds=("note",))]
    return [note.text for note in notes if isinstance(note, Line)]


# --- told only when durable ---------------------------------------------------------------------------------------


def test_what_is_answered_is_durable(path: Path) -> None:
    """When the future is done, any other process can read the record."""
    with open_runtime(path) as (runtime, _):
        runtime.do(write("hello")).result(WAIT_S)
        assert journal_lines(path) == ["hello"]


def test_acts_follow_the_commit(path: Path) -> None:
    """The place is asked to act when the entries can be read from the journal, and for each once, in order."""
    place = Notebook()
    place.journal = path
    with open_runtime(path, place) as (runtime, _):
        for number in range(5):
            runtime.do(write(str(number))).result(WAIT_S)
    assert place.acted == sorted(set(place.acted))
    assert place.durable_when_acting
    for acts, durable in enumerate(place.durable_when_acting, 1):
        assert durable >= acts


def test_subscribers_get_every_entry_once_in_order(path: Path) -> None:
    """From the time on when they came."""
    got: list[int] = []

    class Listener:
        def offer(self, entries: Sequence[Entry]) -> None:
            got.extend(entry.seq for entry in entries)

    with open_runtime(path) as (runtime, _):
        runtime.do(write("before")).result(WAIT_S)
        listener = Listener()
        runtime.subscribe(listener)
        futures = [runtime.do(write(str(n))) for n in range(50)]
        for future in futures:
            future.result(WAIT_S)
        runtime.read(lambda _: None).result(WAIT_S)
    assert got == list(range(got[0], got[-1] + 1))
    assert len(got) >= 50


def test_many_commands_share_a_commit(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Group commit: what waits together is committed together, as far as the time of a turn goes."""
    monkeypatch.setattr("fairlead.runtime.writer.TURN_MS", WAIT_S * 1000)
    with open_runtime(path) as (runtime, _):
        hold = threading.Event()
        runtime.read(lambda _: hold.wait(WAIT_S))
        futures = [runtime.do(write(str(n))) for n in range(100)]
        commits = runtime.measures.commits.count
        hold.set()
        for future in futures:
            future.result(WAIT_S)
        assert runtime.measures.commits.count - commits <= 2


def test_an_idle_runtime_writes_nothing(path: Path) -> None:
    """No events, no records, no turns."""
    with open_runtime(path) as (runtime, _):
        runtime.do(with_queues).result(WAIT_S)
        runtime.do(one_node).result(WAIT_S)
        runtime.do(submit("1", vcore=9000)).result(WAIT_S)
        before = runtime.read(lambda _: runtime.journal.last_seq).result(WAIT_S)
        time.sleep(0.35)
        assert runtime.read(lambda _: runtime.journal.last_seq).result(WAIT_S) == before


def test_what_arrives_is_scheduled_in_the_same_turn(path: Path) -> None:
    """A submission that fits is placed when its answer comes."""
    with open_runtime(path) as (runtime, place):
        runtime.do(with_queues).result(WAIT_S)
        runtime.do(one_node).result(WAIT_S)
        runtime.do(submit("1")).result(WAIT_S)
        assert runtime.read(lambda _: list(place.placed)).result(WAIT_S) == ["1"]


def test_what_is_only_noted_is_not_scheduled(path: Path) -> None:
    """It tells the scheduler nothing; with much that waits each run would cost."""
    with open_runtime(path) as (runtime, _):
        runtime.do(with_queues).result(WAIT_S)
        before = runtime.read(lambda _: runtime.journal.last_seq).result(WAIT_S)
        runtime.do(write("a")).result(WAIT_S)
        runtime.do(write("b")).result(WAIT_S)
        assert runtime.read(lambda _: runtime.journal.last_seq).result(WAIT_S) == before + 2


# --- refusals and faults ------------------------------------------------------------------------------------------


def test_a_refusal_reaches_its_caller_and_nobody_else(path: Path) -> None:
    """Others of the same turn go on; nothing of it is in the journal."""

    def refuse(turn: Turn) -> None:
        raise Refusal("not-found", "there is no such thing")

    with open_runtime(path) as (runtime, place):
        good, bad, other = runtime.do(write("a")), runtime.do(refuse), runtime.do(write("b"))
        good.result(WAIT_S)
        with pytest.raises(Refusal, match="no such thing"):
            bad.result(WAIT_S)
        other.result(WAIT_S)
        assert lines(runtime, place) == ["a", "b"]


def test_a_fault_in_one_command_undoes_that_command_alone(path: Path) -> None:
    """It had entered something before it failed: the books are put back, and the others are done."""

    def half(turn: Turn) -> None:
        turn.note(Line("half"))
        raise ZeroDivisionError("oops")

    with open_runtime(path) as (runtime, place):
        runtime.do(write("a")).result(WAIT_S)
        hold = threading.Event()
        runtime.read(lambda _: hold.wait(WAIT_S))
        futures = [runtime.do(write("b")), runtime.do(half), runtime.do(write("c"))]
        hold.set()
        futures[0].result(WAIT_S)
        with pytest.raises(InternalFault, match="oops"):
            futures[1].result(WAIT_S)
        futures[2].result(WAIT_S)
        assert lines(runtime, place) == ["a", "b", "c"] == journal_lines(path)
        assert runtime.measures.faults == 2


def test_a_fault_in_the_place_leaves_no_trace(path: Path) -> None:
    """The place had changed half of its book before it failed."""
    with open_runtime(path) as (runtime, place):
        runtime.do(write("a")).result(WAIT_S)
        with pytest.raises(InternalFault, match="pen is on fire"):
            runtime.do(write("burn")).result(WAIT_S)
        assert lines(runtime, place) == ["a"] == journal_lines(path)


def test_a_refusal_after_something_was_entered_counts_as_a_fault(path: Path) -> None:
    """A half done request must not become durable."""

    def half(turn: Turn) -> None:
        turn.note(Line("half"))
        raise Refusal("invalid", "changed my mind")

    with open_runtime(path) as (runtime, place):
        with pytest.raises(InternalFault, match="changed my mind"):
            runtime.do(half).result(WAIT_S)
        assert lines(runtime, place) == []


def test_a_failing_read_harms_nobody(path: Path) -> None:
    """Its error goes to who asked."""
    with open_runtime(path) as (runtime, place):
        with pytest.raises(KeyError):
            runtime.read(lambda _: {}["x"]).result(WAIT_S)
        assert lines(runtime, place) == []


def test_a_command_whose_caller_left_before_its_turn_is_not_done(path: Path) -> None:
    """Nobody waits for it."""
    with open_runtime(path) as (runtime, place):
        hold = threading.Event()
        runtime.read(lambda _: hold.wait(WAIT_S))
        future = runtime.do(write("late"))
        assert future.cancel()
        hold.set()
        assert lines(runtime, place) == []


# --- a journal that cannot be written ---------------------------------------------------------------------------------


@contextmanager
def full_disk(runtime: Runtime) -> Iterator[None]:
    """SQLite is not allowed another page."""
    connection = runtime.journal._connection
    runtime.read(lambda _: connection.execute("PRAGMA max_page_count = 1")).result(WAIT_S)
    try:
        yield
    finally:
        runtime.read(lambda _: connection.execute("PRAGMA max_page_count = 1073741823")).result(WAIT_S)


BIG = "x" * 50_000


def test_with_a_full_disk_nothing_is_acknowledged(path: Path) -> None:
    """The caller is told so, the books stay what the journal has, and it goes on by itself when there is room."""
    with open_runtime(path) as (runtime, place):
        runtime.do(write("a")).result(WAIT_S)
        with full_disk(runtime):
            with pytest.raises(Unavailable, match="cannot be written"):
                runtime.do(write(BIG)).result(WAIT_S)
            assert runtime.sick
            with pytest.raises(Unavailable, match="free space"):
                runtime.do(write("b")).result(WAIT_S)
            assert lines(runtime, place) == ["a"]
        wait_until(lambda: not runtime.sick)
        runtime.do(write("c")).result(WAIT_S)
        assert lines(runtime, place) == ["a", "c"] == journal_lines(path)


def test_what_the_machine_reports_waits_for_the_disk(path: Path) -> None:
    """It is not refused: it is entered as soon as it can be."""
    with open_runtime(path) as (runtime, place):
        with full_disk(runtime):
            report = runtime.do(write(BIG), must=True)
            wait_until(lambda: bool(runtime.sick))
            later = runtime.do(write("later"), must=True)
            time.sleep(0.1)
            assert not report.done()
        report.result(WAIT_S)
        later.result(WAIT_S)
        assert lines(runtime, place) == [BIG, "later"]


def test_a_journal_that_cannot_be_opened_again_ends_it_with_a_sentence(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What is in memory is not durable then: nobody is shown it. That is the disk's doing: no traceback."""

    def refused(_: Journal) -> int:
        raise JournalError("disk I/O error")

    def dropped(journal: Journal) -> None:
        monkeypatch.undo()
        journal.rollback()
        raise JournalError("cannot read the journal: disk I/O error")

    with open_runtime(path) as (runtime, _):
        runtime.do(write("a")).result(WAIT_S)
        monkeypatch.setattr(Journal, "commit", refused)
        monkeypatch.setattr(Journal, "rollback", dropped)
        with pytest.raises(Unavailable, match="cannot be written"):
            runtime.do(write("b")).result(WAIT_S)
        assert runtime.ended.wait(WAIT_S)
        assert isinstance(runtime.failure, JournalError)
    said = [(record.getMessage(), record.exc_info) for record in caplog.records if record.levelname == "CRITICAL"]
    assert said == [("the service cannot go on: cannot read the journal: disk I/O error", None)]
    assert journal_lines(path) == ["a"]


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)


# --- recovery -----------------------------------------------------------------------------------------------------


def abandon(path: Path, acts: Sequence[Callable[[Turn], Any]]) -> bytes:
    """Do something and stop without a snapshot, as a crash does; the books as they were."""
    runtime = Runtime(path, Notebook(), version="1", pid=1, may_copy=False)
    runtime._leave = lambda: None  # type: ignore[method-assign]
    runtime.start()
    for act in acts:
        runtime.do(act).result(WAIT_S)
    state: bytes = runtime.read(lambda _: runtime.books.dump()).result(WAIT_S)
    runtime.close()
    return state


def test_after_a_crash_the_books_are_the_same(path: Path) -> None:
    """Byte for byte, from the records alone."""

    def end(turn: Turn) -> None:
        turn.event(Release("1", "1"))

    state = abandon(path, [with_queues, one_node, submit("1"), submit("2"), write("a"), submit("3"), end])
    runtime = Runtime(path, Notebook())
    try:
        assert not runtime.recovered.from_snapshot
        assert runtime.recovered.records > 0
        assert runtime.books.dump() == state
    finally:
        runtime.journal.close()


def test_after_an_orderly_stop_nothing_is_replayed(path: Path) -> None:
    """The snapshot has it all."""
    with open_runtime(path) as (runtime, _):
        for act in (with_queues, one_node, submit("1"), write("a")):
            runtime.do(act).result(WAIT_S)
    again = Runtime(path, Notebook())
    try:
        assert again.recovered.from_snapshot
        assert again.recovered.records == 0
        assert again.books.dump() == runtime.books.dump()
    finally:
        again.journal.close()


def test_time_goes_on_from_the_newest_record(path: Path) -> None:
    """Also when the machine's clock is wrong now."""
    ahead = time.time_ns() // 1_000_000 + 3_600_000
    with Journal(path) as journal:
        journal.append(ahead, "note", codec.encode(Line("from the future")))
    with open_runtime(path) as (runtime, place):
        runtime.do(write("now")).result(WAIT_S)
        assert lines(runtime, place) == ["from the future", "now"]
        assert runtime.journal.last_at_ms >= ahead


def test_decisions_that_differ_from_the_recorded_ones_stop_the_start(path: Path) -> None:
    """They were acted upon: going on with others would run work twice or not at all."""
    abandon(path, [with_queues, one_node])
    with Journal(path) as journal:
        event = AddApplication(ApplicationSpec(id="1", queue="root.default", user="ada"))
        seq = journal.append(journal.last_at_ms, "event", codec.encode(event), codec.encode_all([]))
    with pytest.raises(RecoveryError, match=f"record {seq} gives other decisions"):
        Runtime(path, Notebook())
    with Journal(path):
        pass


def test_a_record_that_cannot_be_read_stops_recovery_with_its_seq(path: Path) -> None:
    """One of a newer version, say: the sentence names the record, what is wrong with it, and what to do."""
    with Journal(path) as journal:
        seq = journal.append(0, "note", b'{"$":"FromTheFuture"}')
    with pytest.raises(
        RecoveryError, match=f"record {seq} of .*cannot be read .unknown type 'FromTheFuture'.*another version"
    ):
        Runtime(path, Notebook())
    with Journal(path):
        pass


def test_decisions_in_the_spelling_of_an_older_version_are_the_same(path: Path) -> None:
    """Format 1 wrote the fields in another order; what counts is what they say."""
    event = AddAsks((AskSpec(application="nope", key="k", resources=Resources({"vcore": 1})),))
    decided = Scheduler().handle(event, 0)
    older = json.dumps(json.loads(codec.encode_all(decided)), sort_keys=True, separators=(",", ":")).encode()
    assert older != codec.encode_all(decided)
    with Journal(path) as journal:
        journal.append(0, "event", codec.encode(event), older)
    runtime = Runtime(path, Notebook())
    try:
        assert runtime.recovered.records == 1
    finally:
        runtime.journal.close()


@pytest.mark.parametrize(("small", "most"), [(2**20, 10), (0, 20)])
def test_a_snapshot_is_taken_after_many_records(
    path: Path, monkeypatch: pytest.MonkeyPatch, small: int, most: int
) -> None:
    """So that a start never has to replay more than that; sooner where one is written in a moment."""
    monkeypatch.setattr("fairlead.runtime.snapshots.FEWER_RECORDS", 10)
    monkeypatch.setattr("fairlead.runtime.snapshots.RECORDS", 20)
    monkeypatch.setattr("fairlead.runtime.snapshots.SMALL", small)
    abandon(path, [write(str(n)) for n in range(most + most // 2)])
    runtime = Runtime(path, Notebook())
    try:
        assert runtime.recovered.from_snapshot
        assert 0 < runtime.recovered.records <= most
    finally:
        runtime.journal.close()


@pytest.mark.parametrize(("failure", "is_ours"), [(JournalFull("no room"), False), (KeyError("x"), True)])
def test_a_snapshot_that_finds_no_room_is_a_sentence(
    path: Path, caplog: pytest.LogCaptureFixture, failure: Exception, is_ours: bool
) -> None:
    """A fault of the program has its trace; either way the service stops in order, and nothing is lost."""

    def refuse(*_: object) -> None:
        raise failure

    with open_runtime(path) as (runtime, _):
        runtime.do(write("x")).result(WAIT_S)
        runtime.journal.save_packed = refuse  # type: ignore[method-assign]
    [said] = [record for record in caplog.records if "no snapshot could be written" in record.getMessage()]
    assert bool(said.exc_info) is is_ours
    with open_runtime(path) as (_, place):
        assert "x" in place.lines


def test_after_the_end_everybody_is_told(path: Path) -> None:
    """Nobody waits for a writer that is gone."""
    with open_runtime(path) as (runtime, place):
        pass
    assert place.closed
    with pytest.raises(Unavailable):
        runtime.do(write("x")).result(WAIT_S)
    with pytest.raises(Unavailable):
        runtime.read(lambda _: None).result(WAIT_S)


# --- in turns by user ----------------------------------------------------------------------------------------------


class Watch(Clock):
    """A clock on which each command takes as long as it says, and nothing else takes any time."""

    ms = 0

    def now(self) -> int:
        return self.ms


ANN, BOB, A_FLOOD = 1, 2, 500


@pytest.fixture
def flooded(path: Path) -> Iterator[tuple[Runtime, Watch, list[str]]]:
    """A writer that has not begun, with a line of 500 commands and as many questions of ann, a turn's time each."""
    watch, done = Watch(), list[str]()
    runtime = Runtime(path, Notebook(), make_clock=lambda _: watch)

    def take(what: str, _: Any) -> None:
        watch.ms += TURN_MS
        done.append(what)

    for number in range(A_FLOOD):
        runtime.do(partial(take, f"ann {number}"), user=ANN)
        runtime.read(partial(take, f"ann asks {number}"), user=ANN)
    yield runtime, watch, done
    runtime.close()
    runtime.journal.close()


def test_a_flood_costs_others_one_turn(flooded: tuple[Runtime, Watch, list[str]]) -> None:
    """What bob wants is done in the second turn, what he asks is answered in the next; ann's keep their order."""
    runtime, _, done = flooded
    bobs = runtime.do(lambda turn: turn.note(Line("bob")), user=BOB)
    asks = runtime.read(lambda _: "bob", user=BOB)
    turns = 0
    while not (bobs.done() and asks.done()):
        runtime.step(0)
        turns += 1
    assert turns == 2
    assert done == ["ann 0", "ann asks 0", "ann 1", "ann asks 1"]


def test_what_the_machine_reports_waits_for_no_user(flooded: tuple[Runtime, Watch, list[str]]) -> None:
    """It has happened already."""
    runtime, _, done = flooded
    told = [runtime.do(lambda turn: turn.note(Line("ended")), must=True) for _ in range(30)]
    runtime.step(0)
    assert all(each.done() for each in told)
    assert done == ["ann 0", "ann asks 0"]


def test_what_takes_no_time_is_written_together(path: Path) -> None:
    """One commit for many commands, of whomever."""
    runtime = Runtime(path, Notebook(), make_clock=lambda _: Watch())
    futures = [runtime.do(write(f"{n}"), user=n % 7) for n in range(300)]
    runtime.step(0)
    assert all(each.done() for each in futures)
    assert runtime.measures.commits.count == 1
    runtime.close()
    runtime.journal.close()


def test_who_comes_too_late_is_told_so(path: Path) -> None:
    """Questions too, and what was waiting is still answered."""
    with open_runtime(path) as (runtime, _):
        early = runtime.read(lambda _: "early")
    assert early.result(WAIT_S) == "early"
    for late in (runtime.read(lambda _: "late"), runtime.do(write("late")), runtime.do(write("late"), must=True)):
        with pytest.raises(Unavailable, match="the service is stopping"):
            late.result(WAIT_S)
