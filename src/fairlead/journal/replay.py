"""The past again: the same events through the same scheduler, and whether it decides the same.

Decides where recorded and replayed decisions part. Never writes. Invariant: from any good snapshot or from the start, a
scheduler that is unchanged gives the recorded decisions byte for byte and arrives at the same state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Protocol

from fairlead.core.model.decisions import Decision
from fairlead.core.model.events import Event
from fairlead.journal import codec
from fairlead.journal.format import EVENT, SCHEDULE, JournalError, Record, Snapshot
from fairlead.journal.reader import Reader


class Replayable(Protocol):
    """What replay needs of a scheduler; `fairlead.scheduler.Scheduler` is one."""

    def handle(self, event: Event, now_ms: int, /) -> Sequence[Decision]:
        """Apply an event."""

    def schedule(self, now_ms: int, limit: int | None = None, /) -> Sequence[Decision]:
        """Run scheduling."""

    def dump(self) -> Mapping[str, object]:
        """The whole state as plain values."""


Make = Callable[[Mapping[str, object] | None], Replayable]
"""Makes a scheduler: a fresh one for None, otherwise the one that `dump` described."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Where replay parted from the record. `expected` and `got` are lines of canonical JSON, one per decision."""

    seq: int
    at_ms: int
    kind: str
    payload: str
    expected: tuple[str, ...]
    got: tuple[str, ...]

    def sentence(self) -> str:
        """The first line that differs, for people."""
        pairs = zip((*self.expected, "nothing more"), (*self.got, "nothing more"), strict=False)
        number, (expected, got) = next((i, p) for i, p in enumerate(pairs, 1) if p[0] != p[1])
        return (
            f"record {self.seq} ({self.kind} at {self.at_ms} ms): decision {number} was {expected}, replay gives "
            f"{got}. The record says {self.payload:.500}"
        )


@dataclass(slots=True)
class ReplayResult:
    """How far replay came, and whether it came out the same."""

    first_seq: int = 0
    """The first record that was looked at; 0 if there was none."""
    last_seq: int = 0
    events: int = 0
    schedules: int = 0
    uncompared: int = 0
    """Records that have no outcome to compare with."""
    skipped: dict[str, int] = field(default_factory=dict)
    """Records of other kinds, which are not for the scheduler."""
    decisions: int = 0
    snapshots_equal: tuple[int, ...] = ()
    """After which records the replayed state was equal to the stored one, byte for byte."""
    difference: Difference | None = None
    state_digest: str = ""
    """Of the state at the end: equal digests are equal states."""

    @property
    def ok(self) -> bool:
        """Nothing differed."""
        return self.difference is None


def scheduler_state(snapshot: Snapshot) -> Mapping[str, object]:
    """The scheduler's part of a snapshot. Raises `JournalError` if it has none."""
    try:
        state = codec.decode_plain(snapshot.state)
    except codec.CodecError as e:
        raise JournalError(f"the snapshot after record {snapshot.seq} is not a state: {e}") from e
    part = state.get("scheduler") if isinstance(state, dict) else None
    if not isinstance(part, dict):
        raise JournalError(f"the snapshot after record {snapshot.seq} holds no state of a scheduler")
    return part


def apply(record: Record, scheduler: Replayable) -> Sequence[Decision] | None:
    """Give one record to the scheduler; what it decides, or None if the record is not for it.

    Raises `JournalError`, with the seq, if the record cannot be read as what it should be.
    """
    try:
        if record.kind == EVENT:
            return scheduler.handle(codec.decode_event(record.payload), record.at_ms)
        if record.kind == SCHEDULE:
            return scheduler.schedule(record.at_ms, codec.decode_limit(record.payload))
    except codec.CodecError as e:
        raise JournalError(f"record {record.seq} cannot be read: {e}") from e
    return None


def replay(
    reader: Reader,
    make_scheduler: Make,
    *,
    from_snapshot: bool = False,
    to_seq: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> ReplayResult:
    """Decide everything again, from the start or from the newest snapshot (`from_snapshot`), up to `to_seq`.

    Where the start was pruned, the oldest snapshot stands for it. Stops at the first difference. On the way the state
    is compared with every stored snapshot that it passes. `progress` is called with each seq. Raises `JournalError` if
    there is nothing to start from, or for a damaged record.
    """
    if from_snapshot:
        start = reader.snapshot(to_seq)
    else:
        start = reader.first_snapshot() if reader.first_seq > 1 else None
    scheduler, after = _start(reader, make_scheduler, start)
    snapshots = {s for s in reader.snapshot_seqs() if s > after}
    result = ReplayResult(last_seq=after)
    for record in reader.records(after + 1, to_seq):
        result.first_seq = result.first_seq or record.seq
        result.last_seq = record.seq
        result.difference = _step(record, scheduler, result)
        if result.difference is None and record.seq in snapshots:
            result.difference = _compare_state(reader, record, scheduler, make_scheduler, result)
        if progress is not None:
            progress(record.seq)
        if result.difference is not None:
            break
    result.state_digest = blake2b(codec.encode_plain(scheduler.dump()), digest_size=16).hexdigest()
    return result


def _start(reader: Reader, make_scheduler: Make, snapshot: Snapshot | None) -> tuple[Replayable, int]:
    """A scheduler as it was in `snapshot` (None: at the very start), and the seq of the last record it knows."""
    if snapshot is not None:
        return make_scheduler(scheduler_state(snapshot)), snapshot.seq
    if reader.first_seq > 1:
        raise JournalError(
            f"history begins with record {reader.first_seq}, and there is no good snapshot to begin from"
        )
    return make_scheduler(None), 0


def _step(record: Record, scheduler: Replayable, result: ReplayResult) -> Difference | None:
    decided = apply(record, scheduler)
    if decided is None:
        result.skipped[record.kind] = result.skipped.get(record.kind, 0) + 1
        return None
    if record.kind == EVENT:
        result.events += 1
    else:
        result.schedules += 1
    result.decisions += len(decided)
    if not record.outcome:
        result.uncompared += 1
        return None
    try:
        if codec.same_decisions(record.outcome, decided):
            return None
        expected = _lines(codec.decode_decisions(record.outcome))
    except codec.CodecError as e:
        raise JournalError(f"the outcome of record {record.seq} cannot be read: {e}") from e
    payload = record.payload.decode("utf-8", "backslashreplace")
    return Difference(record.seq, record.at_ms, record.kind, payload, expected, _lines(decided))


def _lines(decisions: Iterable[object]) -> tuple[str, ...]:
    return tuple(codec.encode(d).decode() for d in decisions)


def _compare_state(
    reader: Reader, record: Record, scheduler: Replayable, make_scheduler: Make, result: ReplayResult
) -> Difference | None:
    """The difference between the replayed state and the one stored after this record, key by key.

    An older version may have written less, or more: what counts is whether a scheduler that starts from it is here.
    """
    snapshot = reader.snapshot(record.seq)
    if snapshot is None or snapshot.seq != record.seq:
        return None  # it does not hold; `verify` says so
    stored, here = scheduler_state(snapshot), scheduler.dump()
    if codec.encode_plain(stored) == codec.encode_plain(here) or _becomes(stored, here, make_scheduler):
        result.snapshots_equal = (*result.snapshots_equal, record.seq)
        return None
    expected, got = dict(_leaves(stored)), dict(_leaves(here))
    differing = [k for k in sorted(expected.keys() | got.keys()) if expected.get(k) != got.get(k)][:20]
    return Difference(
        record.seq,
        record.at_ms,
        "snapshot",
        "the state of the scheduler after this record",
        tuple(f"{k} = {expected.get(k, 'absent')}" for k in differing),
        tuple(f"{k} = {got.get(k, 'absent')}" for k in differing),
    )


def _becomes(stored: Mapping[str, object], here: Mapping[str, object], make_scheduler: Make) -> bool:
    """Whether nothing that both say differs, but the version, and a scheduler that starts from it is here."""
    now = dict(_leaves(here))
    if any(now.get(path, leaf) != leaf for path, leaf in _leaves(stored) if path != "version"):
        return False
    try:
        again = make_scheduler(stored).dump()
    except (ValueError, KeyError, TypeError):
        return False
    return codec.encode_plain(again) == codec.encode_plain(here)


def _leaves(value: object, path: str = "") -> Iterator[tuple[str, str]]:
    """Every scalar of a state with its path, so that a difference can be named."""
    if isinstance(value, Mapping) and value:
        for key in value:
            yield from _leaves(value[key], f"{path}.{key}" if path else str(key))
    elif isinstance(value, list | tuple) and value:
        for number, part in enumerate(value):
            yield from _leaves(part, f"{path}[{number}]")
    else:
        yield path, codec.encode_plain(value).decode()


@dataclass(frozen=True, slots=True)
class Moment:
    """The scheduler as it was: a copy to ask questions of, not the living one."""

    seq: int
    """The last record that had happened; 0 before the first."""
    at_ms: int
    """When that was."""
    scheduler: Replayable


def state_at(path: str | Path, make_scheduler: Make, *, at_ms: int | None = None, seq: int | None = None) -> Moment:
    """The scheduler after the last record not later than `at_ms`, or after record `seq`; the newest without either.

    Begins at the nearest snapshot before. Raises `ValueError` if both are given, `JournalError` if that moment is
    before history begins or after its end.
    """
    if at_ms is not None and seq is not None:
        raise ValueError("give at_ms or seq, not both")
    with Reader(path) as reader:
        wanted = reader.last_seq if seq is None else seq
        if at_ms is not None:
            wanted = reader.seq_at(at_ms)
        if not 0 <= wanted <= reader.last_seq:
            raise JournalError(f"there is no record {wanted}; history has {reader.first_seq} to {reader.last_seq}")
        snapshot = reader.snapshot(wanted)
        scheduler, after = _start(reader, make_scheduler, snapshot)
        happened = snapshot.at_ms if snapshot else 0
        for record in reader.records(after + 1, wanted):
            apply(record, scheduler)
            happened = record.at_ms
        return Moment(wanted, happened, scheduler)
