"""A process of its own: a copy of everything as it is now that answers one question, and ends.

Decides how it is made, how long it may take, and how the answer comes back: as values, through a pipe. Never knows what
is asked. Invariant: whatever the copy changes is gone with it; none outlives its question by more than the time that it
was given; it runs nothing but the question: no threads, no event loop, no files, no clean-up of what is the parent's.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
import traceback
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

T = TypeVar("T")

NICENESS = 10
"""A child leaves the processor to those that it was made by, and to whoever waits for those: a tenth against one of
them, and all of it where there is nobody else."""
PATIENCE_S = 60.0
"""After so long a child is ended by its own alarm."""
PIECE = 2**20
"""So many bytes of an answer are read at once."""

CAN_FORK = hasattr(os, "fork")


class NoAnswer(RuntimeError):
    """The question could not be answered; the text says why."""


@dataclass(slots=True)
class Asked:
    """A question under way: the child and the end of the pipe that its answer comes through."""

    pid: int
    pipe: int
    cpu_s: float = 0.0
    """Time on a processor that it took, with processes of its own; known once it was answered."""
    _came: bytearray = field(default_factory=bytearray)

    def has_come(self) -> bool:
        """Take what there is of the answer, without waiting for more; whether that is all of it."""
        os.set_blocking(self.pipe, False)
        with suppress(BlockingIOError):
            return self._read()
        return False

    def _read(self) -> bool:
        while piece := os.read(self.pipe, PIECE):
            self._came += piece
        return True

    def answer(self) -> Any:
        """Wait for it. Raises `NoAnswer` when the time is over or the child failed."""
        try:
            os.set_blocking(self.pipe, True)
            self._read()
        finally:
            status = self._end()
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM:
            raise NoAnswer("it took too long and was given up")
        if status or not self._came:
            # Half an answer of one that was killed is none.
            raise NoAnswer("its process ended without an answer")
        done, value = pickle.loads(self._came)
        if not done:
            raise NoAnswer(value)
        return value

    def give_up(self) -> None:
        """Nobody wants to know any more. Instead of `answer`."""
        os.kill(self.pid, signal.SIGKILL)
        self._end()

    def _end(self) -> int:
        os.close(self.pipe)
        _, status, used = os.wait4(self.pid, 0)
        self.cpu_s = used.ru_utime + used.ru_stime
        return status


def ask_apart(question: Callable[[], T], patience_s: float = PATIENCE_S) -> Asked:
    """Have `question()` answered by a child with a copy of everything as it is now; takes milliseconds.

    Call it where the state stands still (the writer's thread). Get the value with `answer()`, once, from any thread.
    Raises `OSError` if there is no room for a further process.
    """
    reader, writer = os.pipe()
    try:
        with warnings.catch_warnings():
            # The child touches no lock that another thread could hold: that is what the warning is about.
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if pid == 0:
            _live_as_child(question, writer, patience_s)
    except OSError:
        os.close(reader)
        raise
    finally:
        os.close(writer)
    return Asked(pid, reader)


def answered_apart(question: Callable[[], T], patience_s: float = PATIENCE_S) -> T:
    """`question()` with nothing of what it changes left behind. Raises `NoAnswer`."""
    return cast(T, ask_apart(question, patience_s).answer())


def all_answers(asked: Sequence[Asked]) -> list[Any]:
    """The answers of questions that are under way side by side. Raises `NoAnswer` when one has none."""
    answers: list[Any] = []
    failed: NoAnswer | None = None
    for each in asked:
        # Each is waited for, whatever became of those before it.
        try:
            answers.append(each.answer())
        except NoAnswer as problem:
            failed = failed or problem
    if failed is not None:
        raise failed
    return answers


def _live_as_child(question: Callable[[], Any], writer: int, patience_s: float) -> None:
    """Answer and end; never returns."""
    try:
        # Nothing of the service is held on to: if that is killed, its lock and its sockets are free at once.
        os.closerange(3, writer)
        os.closerange(writer + 1, os.sysconf("SC_OPEN_MAX"))
        gc.disable()
        os.setpriority(os.PRIO_PROCESS, 0, max(NICENESS, os.getpriority(os.PRIO_PROCESS, 0)))
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM):
            signal.signal(number, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, patience_s)
        try:
            answer = pickle.dumps((True, question()))
        except BaseException as fault:
            last = traceback.extract_tb(fault.__traceback__)[-1]
            answer = pickle.dumps((False, f"{type(fault).__name__}: {fault} ({last.filename}:{last.lineno})"))
        left = memoryview(answer)
        while left:
            left = left[os.write(writer, left) :]
    finally:
        os._exit(0)
