"""The inbox: what waits for the writer, and how it is answered.

Decides how much is taken at once. Never does any of it. Invariant: whatever was put in gets one answer, also when the
writer is gone.
"""

from __future__ import annotations

import queue
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from fairlead.runtime.books import Turn
from fairlead.scheduler import Scheduler

BATCH = 512
"""Commands taken at once at most: bounds how long the first of them waits for its answer."""


@dataclass(slots=True)
class Command:
    """Something to do with the books. `must` ones come from the machine and are tried again until they are durable."""

    act: Callable[[Turn], Any]
    future: Future[Any] = field(default_factory=Future)
    must: bool = False


@dataclass(slots=True)
class Read:
    """A question that is answered between two turns."""

    ask: Callable[[Scheduler], Any]
    future: Future[Any] = field(default_factory=Future)


class Inbox:
    """Commands and questions, in the order in which they came; from any thread."""

    def __init__(self) -> None:
        self._waiting: queue.SimpleQueue[Command | Read | None] = queue.SimpleQueue()

    def put(self, item: Command | Read) -> None:
        """One more."""
        self._waiting.put(item)

    def close(self) -> None:
        """What comes after this is not taken any more."""
        self._waiting.put(None)

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits."""
        return self._waiting.empty()

    def take(self, wait_ms: int) -> tuple[list[Command], list[Read], bool]:
        """Wait until there is something, but not for longer than that; take it. The last says that it was closed."""
        commands: list[Command] = []
        reads: list[Read] = []
        while len(commands) < BATCH:
            try:
                item = self._waiting.get(timeout=wait_ms / 1000) if wait_ms > 0 else self._waiting.get_nowait()
            except queue.Empty:
                break
            wait_ms = 0
            if item is None:
                return commands, reads, True
            if not item.future.set_running_or_notify_cancel():
                continue
            if isinstance(item, Read):
                reads.append(item)
            else:
                commands.append(item)
        return commands, reads, False

    def refuse_the_rest(self, why: BaseException) -> None:
        """Answer all that still waits with this."""
        while not self._waiting.empty():
            item = self._waiting.get_nowait()
            if item is not None:
                fail(item.future, why)


def give(future: Future[Any], result: Any) -> None:
    """Answer, unless it is answered already."""
    if not future.done():
        future.set_result(result)


def fail(future: Future[Any], why: BaseException) -> None:
    """Refuse, unless it is answered already."""
    if not future.done():
        future.set_exception(why)
