"""What every long-lived process of ours has alike: where its log goes, its event loop, and its clock.

Decides what time it is, in milliseconds since 1970. Never goes back, whatever is done to the system. Invariant: each
reading is at least as late as the one before, and as the time the clock was told to begin with.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable


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
