"""Builders for the journal's tests: a journal with some records, and a scheduler small enough to see through."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fairlead.core.model.decisions import Allocated, Decision, NodeAccepted, Released
from fairlead.core.model.events import AddAsks, AddNode, Cause, Event, Release
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import AskSpec, NodeSpec
from fairlead.journal.codec import decode_plain, encode, encode_all, encode_plain
from fairlead.journal.format import EVENT, SCHEDULE
from fairlead.journal.store import Journal


class FirstComeFirstServed:
    """A scheduler in twenty lines: one node, one ask at a time by arrival. Real enough to be replayed."""

    def __init__(self, state: Mapping[str, Any] | None = None) -> None:
        held: Mapping[str, Any] = state or {"node": "", "waiting": [], "running": []}
        self.node: str = held["node"]
        self.waiting: list[str] = list(held["waiting"])
        self.running: list[str] = list(held["running"])

    def handle(self, event: Event, now_ms: int, /) -> Sequence[Decision]:
        if isinstance(event, AddNode):
            self.node = event.node.id
            return [NodeAccepted(event.node.id)]
        if isinstance(event, AddAsks):
            self.waiting += [a.key for a in event.asks]
        if isinstance(event, Release) and event.key in self.running:
            self.running.remove(event.key)
            return [Released("app", event.key, self.node, event.cause)]
        return []

    def schedule(self, now_ms: int, limit: int | None = None, /) -> Sequence[Decision]:
        if not self.waiting or self.running:
            return []
        self.running.append(self.waiting.pop(0))
        return [Allocated("app", self.running[-1], self.node)]

    def dump(self) -> Mapping[str, object]:
        return {"node": self.node, "waiting": list(self.waiting), "running": list(self.running)}


class LastComeFirstServed(FirstComeFirstServed):
    """The same with another policy: what a changed scheduler looks like to replay."""

    def schedule(self, now_ms: int, limit: int | None = None, /) -> Sequence[Decision]:
        self.waiting.reverse()
        made = super().schedule(now_ms, limit)
        self.waiting.reverse()
        return made


class Newer(FirstComeFirstServed):
    """The next version: it writes down more, and what an older one did not write it takes for nothing."""

    extra = "0"

    def dump(self) -> Mapping[str, object]:
        return {**super().dump(), "promised": [], "extra": self.extra}


def node(name: str = "n1") -> AddNode:
    return AddNode(NodeSpec(id=name, capacity=Resources({"vcore": 1000})))


def asks(*keys: str) -> AddAsks:
    return AddAsks(tuple(AskSpec(application="app", key=k, resources=Resources({"vcore": 1000})) for k in keys))


class Session:
    """A journal being written by a scheduler, as the runtime does it."""

    def __init__(self, journal: Journal, scheduler: FirstComeFirstServed | None = None) -> None:
        self.journal, self.scheduler = journal, scheduler or FirstComeFirstServed()

    def event(self, at_ms: int, event: Event) -> int:
        outcome = encode_all(self.scheduler.handle(event, at_ms))
        return self.journal.append(at_ms, EVENT, encode(event), outcome)

    def schedule(self, at_ms: int, limit: int | None = None) -> int:
        outcome = encode_all(self.scheduler.schedule(at_ms, limit))
        return self.journal.append(at_ms, SCHEDULE, encode_plain({"limit": limit}), outcome)

    def snapshot(self) -> None:
        state = encode_plain({"scheduler": self.scheduler.dump(), "works": [1, 2]})
        self.journal.save_snapshot(self.journal.last_seq, self.journal.last_at_ms, state)

    def rounds(self, first: int, count: int) -> None:
        """Four records a round: a task arrives, one arrives after it, the next in line starts, and it ends."""
        for n in range(first, first + count):
            at = n * 1000
            self.event(at, asks(f"t{n}", f"u{n}"))
            self.schedule(at + 10)
            self.event(at + 500, Release("app", self.scheduler.running[0], Cause.FINISHED))
            self.journal.append(at + 600, "note", b'{"said":"round"}')
        self.journal.commit()


def filled(path: Path, count: int = 10) -> list[int]:
    """A closed journal with `count` records of the kind `note`; their seqs."""
    with Journal(path) as journal:
        return [journal.append(n * 10, "note", b"payload %d" % n, b"outcome %d" % n) for n in range(1, count + 1)]


@contextmanager
def raw(path: Path) -> Iterator[sqlite3.Connection]:
    """The file behind the journal's back."""
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        yield connection
    finally:
        connection.close()


def flip(path: Path, table: str, column: str, seq: int, at: int = 0) -> None:
    """Turn one bit of a stored value."""
    with raw(path) as c:
        value = bytearray(c.execute(f"SELECT {column} FROM {table} WHERE seq = ?", (seq,)).fetchone()[0])
        value[at] ^= 1
        c.execute(f"UPDATE {table} SET {column} = ? WHERE seq = ?", (bytes(value), seq))


def states(data: bytes) -> Any:
    return decode_plain(data)["scheduler"]
