"""The inbox: what waits for the writer, and how it is answered.

Decides what is next: reports of the machine first, for what they tell has happened; then what users want done, and
apart from it what they ask, each in turns by user. Never does any of it. Invariant: whatever was put in gets one
answer, also when the writer is gone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeVar

from fairlead.runtime.books import Turn
from fairlead.runtime.lines import SERVICE, Lines
from fairlead.scheduler import Scheduler


@dataclass(slots=True, kw_only=True)
class Waiting:
    """What somebody waits for: in the line of that user."""

    user: int | None = SERVICE
    future: Future[Any] = field(default_factory=Future)


@dataclass(slots=True)
class Command(Waiting):
    """Something to do with the books. `must` ones come from the machine and are tried again until they are durable."""

    act: Callable[[Turn], Any]
    must: bool = False


@dataclass(slots=True)
class Read(Waiting):
    """A question that is answered between two turns."""

    ask: Callable[[Scheduler], Any]


W = TypeVar("W", bound=Waiting)


class Inbox:
    """Commands and questions; from any thread."""

    def __init__(self) -> None:
        self._reports: Lines[Command] = Lines()
        self._wanted: Lines[Command] = Lines()
        self._asked: Lines[Read] = Lines()
        self._news = threading.Condition()
        self.is_closed = False

    def put(self, item: Command | Read) -> bool:
        """One more; False: it is closed."""
        with self._news:
            if self.is_closed:
                return False
            if isinstance(item, Read):
                self._asked.add(item.user, item)
            else:
                (self._reports if item.must else self._wanted).add(item.user, item)
            self._news.notify()
        return True

    def close(self) -> None:
        """From now on nothing comes in; what waits is still to be taken."""
        with self._news:
            self.is_closed = True
            self._news.notify()

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits."""
        return not (self._reports or self._wanted or self._asked)

    def wait(self, wait_ms: int) -> None:
        """Until there is something, or it is closed, but not for longer than that."""
        with self._news:
            self._news.wait_for(lambda: self.is_closed or not self.is_empty, wait_ms / 1000)

    def commands(self) -> Iterator[Command]:
        """What is to be done, taken one by one; what is not asked for waits on."""
        while (command := self._next(self._reports, self._wanted)) is not None:
            yield command

    def reads(self) -> Iterator[Read]:
        """What is asked, likewise."""
        while (read := self._next(self._asked)) is not None:
            yield read

    def _next(self, *all_lines: Lines[W]) -> W | None:
        with self._news:
            for lines in all_lines:
                while (item := lines.next()) is not None:
                    if item.future.set_running_or_notify_cancel():
                        return item
        return None


def give(future: Future[Any], result: Any) -> None:
    """Answer, unless it is answered already."""
    if not future.done():
        future.set_result(result)


def fail(future: Future[Any], why: BaseException) -> None:
    """Refuse, unless it is answered already."""
    if not future.done():
        future.set_exception(why)
