"""Ctrl-C at a command that waits for jobs, also while their output is passed on.

Decides what becomes of the jobs: nothing, unless the person there says so. Never looks at a job or its output.
Invariant: each Ctrl-C while output is passed on is answered once, also one that comes before all of it has begun.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any

from fairlead.client.errors import Refused
from fairlead.client.sync import Client

_AWAKE_S = 0.1
_SETTLES_S = 0.05


class Interrupt:
    """What Ctrl-C does to who waits for jobs: it asks, and a second one cancels them."""

    def __init__(self, keys: Sequence[str]) -> None:
        self._keys = keys
        self._cancelled = False

    def ask(self, client: Client) -> None:
        """Return to wait on; raises `KeyboardInterrupt` to leave them as they are, as where there is nobody to ask."""
        if self._cancelled or not self._keys or not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise KeyboardInterrupt
        shown = ", ".join(self._keys[:3]) + (" and more" if len(self._keys) > 3 else "")
        text = f"\n{shown}: Enter to wait on, l to leave it running, c (or Ctrl-C) to cancel it: "
        try:
            time.sleep(_SETTLES_S)  # A terminal throws away what is written while it deals with Ctrl-C.
            print(text, end="", file=sys.stderr, flush=True)
            answer = sys.stdin.readline()
        except KeyboardInterrupt:
            answer = "c"
            print(file=sys.stderr)
        if answer.strip().lower().startswith("c"):
            self._cancelled = True
            for key in self._keys:
                with suppress(Refused):  # It has ended meanwhile.
                    client.cancel(key)
        elif not answer or answer.strip():
            raise KeyboardInterrupt


def all_at_once(
    client: Client,
    calls: Sequence[Callable[[], object]],
    asked: Interrupt,
    *,
    is_read: Callable[[], bool] | None = None,
) -> None:
    """Make the calls, each in its own thread, while this one waits and asks; what one of them raises is raised here.

    In the main thread alone: only there signals are heard. `is_read`: whether anybody still reads what they write;
    raises BrokenPipeError when nobody does, however long they write nothing.
    """
    happened: SimpleQueue[BaseException | None] = SimpleQueue()
    """One of the calls ended (None), or raised this, or this thread was interrupted."""
    interrupted = KeyboardInterrupt()

    def make(call: Callable[[], object]) -> None:
        try:
            call()
        except BaseException as problem:
            happened.put(problem)
        else:
            happened.put(None)

    def hear() -> Any:
        # Raised wherever this thread just is, it could come in the middle of a start, or of the end of a wait.
        return signal.signal(signal.SIGINT, lambda _number, _frame: happened.put(interrupted))

    before = hear()
    try:
        for call in calls:
            threading.Thread(target=make, args=(call,), daemon=True).start()
        left = len(calls)
        while left or not happened.empty():
            try:
                # A signal that comes just before this thread sleeps does not wake it.
                what = happened.get(timeout=_AWAKE_S)
            except Empty:
                if is_read is not None and not is_read():
                    raise BrokenPipeError from None
                continue
            if what is None:
                left -= 1
            elif what is not interrupted:
                raise what
            else:
                signal.signal(signal.SIGINT, before)
                asked.ask(client)
                hear()
    finally:
        signal.signal(signal.SIGINT, before)
