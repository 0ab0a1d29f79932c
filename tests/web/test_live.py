"""However many pages are open, the service spends no more on them than its share."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from fairlead.web import live as module
from fairlead.web.live import BURST_S, FRESH_S, SHARE, Budget, Live


async def test_what_is_spent_has_to_be_earned_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a quiet time nobody waits; then as long as the share takes to pay for what was too much."""
    now, slept = 100.0, 0.0

    async def sleep(seconds: float) -> None:
        nonlocal now, slept
        now, slept = now + seconds, slept + seconds

    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now))
    monkeypatch.setattr(module, "asyncio", SimpleNamespace(sleep=sleep))
    budget = Budget()
    await budget.allowed()
    assert slept == 0
    budget.spent(BURST_S + 0.4)
    await budget.allowed()
    assert 0.4 / SHARE <= slept < 1.1 * 0.4 / SHARE


async def test_pages_that_ask_the_same_share_one_answer_until_something_changes() -> None:
    live, asked = Live(), 0

    async def ask() -> int:
        nonlocal asked
        asked += 1
        await asyncio.sleep(0.01)
        return asked

    assert await asyncio.gather(*(live.shared(("x",), ask) for _ in range(20))) == [1] * 20
    assert await live.shared(("y",), ask) == 2
    await asyncio.sleep(FRESH_S)
    assert await live.shared(("y",), ask) == 3, "nobody hears of changes, so it may be old"
    live.seq += 1
    assert await live.shared(("x",), ask) == 4


async def test_an_answer_that_failed_is_asked_for_again() -> None:
    live, asked = Live(), 0

    async def ask() -> int:
        nonlocal asked
        asked += 1
        if asked == 1:
            raise ValueError("not now")
        return asked

    for _ in range(2):
        try:
            found = await live.shared(("x",), ask)
        except ValueError:
            found = 0
    assert found == 2


async def test_the_service_is_asked_for_news_while_a_page_is_open_and_not_after() -> None:
    live, asked = Live(), 0

    class Client:
        async def changes(self, *, after: int, wait: float) -> Any:
            nonlocal asked
            asked += 1
            await asyncio.sleep(0.01)
            return SimpleNamespace(seq=after + 1)

    live.join("page", Client())  # type: ignore[arg-type]
    assert await live.after(0, 5) >= 1
    live.leave("page")
    await asyncio.sleep(0.05)
    before = asked
    await asyncio.sleep(0.05)
    assert asked == before
