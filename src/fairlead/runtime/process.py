"""What every long-lived process of ours has alike: its log, event loop, search for garbage, clock, and manager.

Decides what time it is, in milliseconds since 1970. Never goes back, whatever is done to the system. Invariant: each
reading is at least as late as the one before, and as the time the clock was told to begin with.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import socket
import time
from collections.abc import Callable, Mapping

SEARCH_EACH_S = 3600.0
NEVER = 2**30
"""So many searches of what is not quite young go before one of everything."""


def log_to_stderr(level: str) -> None:
    """Our log lines go to the standard error from now on, from `level` up; a handler that is there stays."""
    root = logging.getLogger("fairlead")
    if not root.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        root.addHandler(handler)
        root.propagate = False
    root.setLevel(level.upper())


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    """The quick event loop where it is installed, else Python's own."""
    with contextlib.suppress(ImportError):
        import uvloop

        return uvloop.new_event_loop
    return asyncio.new_event_loop


async def search_seldom(each_s: float = SEARCH_EACH_S) -> None:
    """What is there now is never searched for circles again, what comes later once, each `each_s` seconds.

    In between only what is young is searched, in a millisecond: a search of everything takes 100 ms where thousands of
    jobs are known, and all callers wait for it. There is no hurry: the million objects of 5,000 submissions hold some
    500 that only a search finds. Runs until it is cancelled, and leaves the thresholds as they were.
    """
    before = gc.get_threshold()
    young, middle, _ = before
    gc.set_threshold(young, middle, NEVER)
    try:
        gc.freeze()
        while True:
            await asyncio.sleep(each_s)
            gc.collect()
            gc.freeze()
    finally:
        gc.set_threshold(*before)


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000


def _steady_ms() -> int:
    return time.monotonic_ns() // 1_000_000


class Clock:
    """Follows the machine's clock forwards at once; when that was set back, runs at half speed until it is right."""

    def __init__(
        self, not_before_ms: int = 0, *, wall: Callable[[], int] = _wall_ms, steady: Callable[[], int] = _steady_ms
    ) -> None:
        self._wall, self._steady = wall, steady
        self._last = max(not_before_ms, wall())
        self._last_steady = steady()

    def now(self) -> int:
        """The time in milliseconds."""
        steady, wall = self._steady(), self._wall()
        passed = max(steady - self._last_steady, 0)
        if wall >= self._last:
            self._last, self._last_steady = wall, steady
        elif passed >= 2:
            self._last += passed // 2
            self._last_steady = steady
        return self._last


def tell_manager(state: str, environ: Mapping[str, str] = os.environ) -> None:
    """Tell the service manager that started this process, if one wants to know (systemd's protocol): `READY=1`."""
    address = environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as there:
        there.connect(f"\0{address[1:]}" if address.startswith("@") else address)
        there.send(state.encode())
