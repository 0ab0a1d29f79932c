"""What a service does by itself goes on, whatever goes wrong in it."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fairlead.local.pressure import Threshold
from fairlead.runtime import Unavailable
from fairlead.service import account_checks, duties
from fairlead.service.serve import Listening, ServeOptions, answer, bring_up


async def test_a_duty_that_ends_on_a_fault_begins_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """No memory for a thread ended the guard of the memory for good, and nobody was told."""
    looks, looked = 0, asyncio.Event()

    def measure(*_: object) -> Any:
        nonlocal looks
        looks += 1
        if looks == 1:
            raise RuntimeError("can't start new thread")
        looked.set()
        return None, []

    async def look(_: object) -> list[object]:
        return [object()]

    monkeypatch.setattr(duties, "MEMORY_LOOK_S", 0.0)
    monkeypatch.setattr(duties, "AGAIN_S", 0.0)
    guard: Any = SimpleNamespace(
        threshold=Threshold(per_mille=50),
        idle=lambda _: False,
        measure=measure,
        decide=lambda *_: (duties.Step.NOTHING, None),
    )
    place: Any = SimpleNamespace(look=look, machine=None)
    guarding = asyncio.create_task(duties.again("memory", lambda: duties.guard_memory(place, guard)))
    async with asyncio.timeout(10):
        await looked.wait()
    guarding.cancel()
    assert "a fault in what the service does by itself (memory); it begins again" in caplog.text


async def test_that_nothing_can_be_recorded_now_is_no_fault_of_a_duty(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It begins again; where the disk is full or the service ends, its log has no traceback for that."""
    begun = 0

    async def duty() -> None:
        nonlocal begun
        begun += 1
        if begun == 1:
            raise Unavailable("the service is stopping; try again when it is back")

    monkeypatch.setattr(duties, "AGAIN_S", 0.0)
    await duties.again("memory", duty)
    assert (begun, caplog.records) == (2, [])


async def test_a_duty_that_is_done_is_not_begun_again() -> None:
    begun = 0

    async def done() -> None:
        nonlocal begun
        begun += 1

    await duties.again("nothing", done)
    assert begun == 1


@pytest.mark.timeout(120)
def test_the_duties_of_a_machine_begin_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """One of them stands for all."""
    looks, listening = 0, list[Listening]()

    def look(_: str) -> list[str]:
        nonlocal looks
        looks += 1
        if looks == 1:
            raise RuntimeError("can't start new thread")
        while not listening:  # It may look before the service says that it serves.
            time.sleep(0.01)
        listening[0].stop()
        return []

    monkeypatch.setattr(account_checks, "_unknown", look)
    monkeypatch.setattr(account_checks, "LOOK_S", 0.2)
    monkeypatch.setattr(duties, "AGAIN_S", 0.0)
    options = ServeOptions(
        state_dir=tmp_path / "state", port=None, socket=tmp_path / "s", handle_signals=False, on_ready=listening.append
    )
    with caplog.at_level(logging.ERROR), ExitStack() as stack:
        place, sockets = bring_up(options, stack)
        assert asyncio.run(answer(options, place, sockets)) == 0
    assert looks == 2
    assert "(accounts); it begins again" in caplog.text
