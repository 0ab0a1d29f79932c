"""Apart: a question answered in a process of its own, on a copy of everything that costs next to nothing.

Decides how a copy of the whole state is had without copying it: the process is forked, the child answers and ends, and
whatever it changed is gone with it. Never returns objects, only values. Invariant: the caller's state is as it was,
and no child outlives its question by more than the time that it was given.

The child runs nothing but the question: no threads, no event loop, no files, no clean-up of what belongs to the parent.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
import struct
import traceback
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

T = TypeVar("T")

PATIENCE_S = 60.0
"""After so long a child is ended by its own alarm."""
_LENGTH = struct.Struct(">Q")
_open: list[int] = []
"""Ends of pipes that this process writes to: a child of it has no business with them."""

CAN_FORK = hasattr(os, "fork")


class NoAnswer(RuntimeError):
    """The question could not be answered; the text says why."""


@dataclass(slots=True)
class Asked:
    """A question under way: the child and the end of the pipe that its answer comes through."""

    pid: int
    pipe: int

    def answer(self) -> Any:
        """Wait for it. Raises `NoAnswer` when the time is over or the child failed."""
        try:
            with os.fdopen(self.pipe, "rb") as pipe:
                head = pipe.read(_LENGTH.size)
                length = _LENGTH.unpack(head)[0] if len(head) == _LENGTH.size else 0
                raw = pipe.read(length)
        finally:
            _, status = os.waitpid(self.pid, 0)
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM:
            raise NoAnswer("it took too long and was given up")
        if not raw or len(raw) < length:
            raise NoAnswer("its process ended without an answer")
        done, value = pickle.loads(raw)
        if not done:
            raise NoAnswer(value)
        return value


def ask_apart(question: Callable[[], T], patience_s: float = PATIENCE_S) -> Asked:
    """Have `question()` answered by a child with a copy of everything as it is now; takes milliseconds.

    Call it where the state stands still (the writer's thread). Get the value with `answer()`, once, from any thread.
    """
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        # The child touches no lock that another thread could hold: that is what the warning is about.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        _live_as_child(question, reader, writer, patience_s)
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


def _live_as_child(question: Callable[[], Any], reader: int, writer: int, patience_s: float) -> None:
    """Answer and end; never returns."""
    try:
        gc.disable()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM):
            signal.signal(number, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, patience_s)
        os.close(reader)
        for inherited in _open:
            os.close(inherited)
        _open[:] = [writer]
        try:
            raw = pickle.dumps((True, question()), pickle.HIGHEST_PROTOCOL)
        except BaseException as fault:
            last = traceback.extract_tb(fault.__traceback__)[-1]
            raw = pickle.dumps((False, f"{type(fault).__name__}: {fault} ({last.filename}:{last.lineno})"))
        with os.fdopen(writer, "wb") as pipe:
            pipe.write(_LENGTH.pack(len(raw)))
            pipe.write(raw)
    finally:
        os._exit(0)
