"""When those who wait for news are told of them: at once, but for notes of what jobs wait for."""

from __future__ import annotations

import asyncio

import pytest

from fairlead.core.model.decisions import Allocated, ApplicationChanged
from fairlead.core.model.lifecycle import State
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


def test_scheduling_is_told_at_once_if_it_moved_anything() -> None:
    """An application that is over for good half a minute after its last job is no news."""
    over = ApplicationChanged(id="1", state=State.COMPLETED, cause="completeApplication")
    assert not _told_at_once(Entry(1, 0, "schedule", {"limit": 512}))
    assert not _told_at_once(Entry(1, 0, "schedule", {"limit": 512}, [over]))
    assert _told_at_once(Entry(1, 0, "schedule", {"limit": 512}, [over, Allocated("1", "1", "n1")]))


def _told_at_once(entry: Entry) -> bool:
    told = Changes()
    told.offer([entry])
    return told.seq == entry.seq


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
