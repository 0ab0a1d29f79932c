"""The ring of event records: numbers, pages, and history joined with what comes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from fairlead.insight.history_records import Record
from fairlead.scheduler import Scheduler
from fairlead.service.yunikorn.history import HistoryRecords, Page, Ring, Streams, Timed, lines


def records(first: int, count: int) -> list[Record]:
    return [Record(i, 2, 0, 0, str(i)) for i in range(first, first + count)]


def names(page: Page) -> list[str] | None:
    return None if page.records is None else [r.object for r in page.records]


async def test_a_reader_who_has_gone_before_the_answer_begins_keeps_no_place() -> None:
    """A hundred of them, and nobody could have had a stream until the next start."""
    records_of = HistoryRecords(Scheduler)
    streams, scope = Streams(), {"type": "http", "method": "GET", "path": "/", "headers": []}
    one = streams.enter("host", 0)

    async def everything(found: Sequence[Record]) -> list[Record]:
        return list(found)

    async def gone() -> Any:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        await asyncio.sleep(0)

    pieces = lines(records_of, streams, one, 0, everything)
    await Timed(pieces, lambda: streams.leave(one), {})(scope, gone, send)
    assert streams.open == []


def test_an_empty_ring() -> None:
    """Numbers are 0 and 0, and there are no records rather than an empty list."""
    assert Ring(4).page(0, 10) == Page(0, 0, None)


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 11])
def test_the_newest_records_keep_their_numbers(chunk: int) -> None:
    """Whatever the size of the pieces in which they come."""
    ring = Ring(5)
    for first in range(0, 11, chunk):
        ring.add(records(first, min(chunk, 11 - first)))
    page = ring.page(6, 100)
    assert (page.lowest, page.highest) == (6, 10)
    assert names(page) == ["6", "7", "8", "9", "10"]
    assert names(ring.page(8, 2)) == ["8", "9"]
    assert names(ring.page(10, 1)) == ["10"]
    assert (ring.told, ring.kept) == (11, 5)


@pytest.mark.parametrize("start", [5, 11, 10**12])
def test_a_start_that_is_not_there(start: int) -> None:
    """The numbers that are there, and no records."""
    ring = Ring(5)
    ring.add(records(0, 11))
    assert ring.page(start, 3) == Page(6, 10, None)


def test_a_listener_gets_history_and_what_comes_without_doubles() -> None:
    """While another thread adds records all the time."""
    ring = Ring(50)
    stop = threading.Event()

    def fill() -> None:
        at = 0
        while not stop.is_set():
            ring.add(records(at, 7))
            at += 7

    thread = threading.Thread(target=fill)
    thread.start()
    try:
        while ring.told < 100:
            pass
        for _ in range(20):
            came: list[Record] = []

            def listener(new: object, into: list[Record] = came) -> None:
                into.extend(new)  # type: ignore[arg-type]

            past = ring.listen(listener, 30)
            while len(came) < 20:
                pass
            ring.forget(listener)
            got = [r.at_ms for r in [*past, *came]]
            assert got == list(range(got[0], got[0] + len(got)))
            assert len(past) == 30
    finally:
        stop.set()
        thread.join()


def test_who_no_longer_listens_gets_nothing() -> None:
    """And history is never longer than what is there."""
    ring = Ring(5)
    ring.add(records(0, 2))
    came: list[Record] = []
    assert len(ring.listen(came.extend, 10)) == 2
    ring.forget(came.extend)
    ring.add(records(2, 1))
    assert came == []
