"""What every long-lived process of ours does alike: where its log goes, which event loop it has.

Decides nothing about what the process is for.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
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
