"""An event loop whose time passes only when nobody has anything to do: hours in milliseconds, the same every time.

Decides what time it is. Whatever would wait, waits no longer than it takes to turn the loop.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Stuck(RuntimeError):
    """Everybody waits, and no timer will ever wake anybody."""


class _Selector(selectors.DefaultSelector):  # type: ignore[misc, valid-type]
    """Never waits: it moves the clock instead."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        found = super().select(0)
        if found:
            return list(found)
        if timeout is None:
            raise Stuck("all tasks wait for something that will never happen")
        self.now += max(timeout, 0.0)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop on virtual time, which begins at 0 seconds."""

    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        return self._virtual.now


def run_virtually(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end on virtual time."""
    loop = VirtualLoop()
    try:
        return loop.run_until_complete(main)
    finally:
        for task in asyncio.all_tasks(loop):
            task.cancel()
        pending = asyncio.all_tasks(loop)
        if pending:
            loop.run_until_complete(asyncio.gather(*pending, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
