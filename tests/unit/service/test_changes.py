"""When those who wait for news are told of them: at once, but for notes of what jobs wait for."""

from __future__ import annotations

import asyncio

import pytest

from fairlead.local.history_records import JobWaits
from fairlead.runtime import Entry
from fairlead.service import changes
from fairlead.service.changes import Changes

WAITS = JobWaits(key="1", code="no-node-has-room", subject="", sentence="no node has room")


def note(seq: int) -> Entry:
    return Entry(seq, 0, "note", WAITS)


def event(seq: int) -> Entry:
    return Entry(seq, 0, "event", object())


def test_an_event_is_told_at_once_with_the_notes_beside_it() -> None:
    async def play() -> None:
        told = Changes()
        waits = asyncio.create_task(told.after(0, 60))
        await asyncio.sleep(0)
        told.offer([note(1), event(2), note(3)])
        assert await asyncio.wait_for(waits, 1) == 3

    asyncio.run(play())


def test_notes_alone_are_told_later_and_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "NOTES_S", 0.3)

    async def play() -> None:
        told = Changes()
        waits = asyncio.create_task(told.after(0, 60))
        await asyncio.sleep(0)
        for seq in range(1, 6):
            told.offer([note(seq)])
            await asyncio.sleep(0.01)
        assert not waits.done()
        assert await asyncio.wait_for(waits, 5) == 5
        again = asyncio.create_task(told.after(5, 60))
        await asyncio.sleep(0)
        told.offer([note(6)])
        told.offer([event(7)])
        assert await asyncio.wait_for(again, 0.2) == 7
        assert await told.after(7, 0.5) == 7, "what was told is not told again"

    asyncio.run(play())
