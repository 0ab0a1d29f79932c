"""What every long-lived process of ours has alike: its log, event loop, search for garbage, clock, and manager.

Decides what time it is, in milliseconds since 1970. Never goes back, nor slower than time does, whatever is done to the
system. Invariant: each reading is later than the one before by at least the time between, and at least as late as the
time the clock was told to begin with.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import signal
import socket
import time
from collections.abc import Callable, Mapping

log = logging.getLogger("fairlead.runtime")

JUMP_MS = 24 * 3_600_000
"""So far the machine's clock goes at once only if it was wrong before, or is now, or the machine slept."""
SEARCH_EACH_S = 3600.0
NEVER = 2**30
"""So many searches of what is not quite young go before one of everything."""


def log_to_stderr(level: str) -> None:
    """Our log lines go to the standard error from now on, from `level` up; a handler that is there stays.

    What cannot be written there is lost: there is nowhere else to say so.
    """
    logging.raiseExceptions = False
    root = logging.getLogger("fairlead")
    if not root.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        root.addHandler(handler)
        root.propagate = False
    for other in ("uvicorn", "asyncio"):  # What these say of themselves comes in the same form.
        logging.getLogger(other).handlers, logging.getLogger(other).propagate = root.handlers, False
    root.setLevel(level.upper())


def on_signals(stop: Callable[[], None]) -> None:
    """The first SIGTERM or SIGINT stops in order, the second at once: what runs goes on in any case.

    So does SIGHUP where it is the end of a terminal. Elsewhere it asks to read files anew, which are watched anyway.
    """
    loop, told = asyncio.get_running_loop(), False

    def act(number: int) -> None:
        nonlocal told
        if told:
            os._exit(128 + number)
        told = True
        stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, act, number)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # As with nohup.
        return
    if any(os.isatty(number) for number in (0, 1, 2)):
        loop.add_signal_handler(signal.SIGHUP, act, signal.SIGHUP)
    else:
        loop.add_signal_handler(signal.SIGHUP, log.info, "SIGHUP: nothing to do, files that may change are watched")


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
    """The machine's clock, as long as that goes forward; where it was set back, stands or is slow, its rate is kept.

    So a timer takes as long as it should whatever is done to the machine's clock, and what was written down stays in
    order. How far it is ahead then is known (`ahead_ms`); a jump forward is followed at once, and known (`jumped`).
    """

    def __init__(
        self, not_before_ms: int = 0, *, wall: Callable[[], int] = _wall_ms, steady: Callable[[], int] = _steady_ms
    ) -> None:
        self._wall, self._steady = wall, steady
        self._last = max(not_before_ms, wall())
        self._last_steady = steady()
        self._jumped_at: int | None = None
        """The steady time of the last great jump forward."""

    def now(self) -> int:
        """The time in milliseconds."""
        steady, wall = self._steady(), self._wall()
        least = self._last + max(steady - self._last_steady, 0)
        if wall - least >= JUMP_MS:
            self._jumped_at = steady
            log.warning("the machine's clock went forward by %.1f days at once", (wall - least) / JUMP_MS)
        self._last, self._last_steady = max(wall, least), steady
        return self._last

    @property
    def ahead_ms(self) -> int:
        """How far it is ahead of the machine's clock."""
        return max(0, self._last + self._steady() - self._last_steady - self._wall())

    @property
    def jumped(self) -> bool:
        """Whether the machine's clock went forward by a day or more at once, less than a day ago."""
        return self._jumped_at is not None and self._steady() - self._jumped_at < JUMP_MS


def tell_manager(state: str, environ: Mapping[str, str] = os.environ) -> None:
    """Tell the service manager that started this process, if one wants to know (systemd's protocol): `READY=1`."""
    address = environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as there:
        there.connect(f"\0{address[1:]}" if address.startswith("@") else address)
        there.send(state.encode())
