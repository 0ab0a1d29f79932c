"""Pieces of work on an event loop: the longest is found, and named; and the service has no long one with 1,000 jobs."""

from __future__ import annotations

import asyncio
import time
from asyncio.events import Handle

import pytest
from benchmarks.loop import Pieces, measure


def busy(milliseconds: int) -> None:
    end = time.thread_time() + milliseconds / 1000
    while time.thread_time() < end:
        pass


async def in_two_pieces() -> None:
    busy(15)
    await asyncio.sleep(0)
    busy(40)


def test_the_longest_piece_is_found_and_named() -> None:
    """A task that waits in between works in two pieces."""
    pieces = Pieces()

    async def course() -> tuple[float, str]:
        pieces.watch()
        await asyncio.gather(in_two_pieces())
        return pieces.taken()

    try:
        took, what = asyncio.run(course())
    finally:
        Handle._run = pieces.run  # type: ignore[method-assign]
    assert 40 <= took < 55
    assert what == "in_two_pieces"
    assert pieces.taken()[0] < 15, "what was taken counts no more"


@pytest.mark.thorough
@pytest.mark.real
def test_records_are_written_beside_the_loop(capsys: pytest.CaptureFixture[str]) -> None:
    """A long list of them kept it."""
    assert measure("records", jobs=1000)
    assert "ok" in capsys.readouterr().out
