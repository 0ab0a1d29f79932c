"""Python's search for garbage in circles: off, or seldom, while very much is made of which hardly anything is garbage.

Decides nothing. What it saves: a third to a half of the time in which a large state is built or written down. How a
service does it is in `runtime.process`.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_off() -> Iterator[None]:
    """The cycle collector is off inside and as before outside."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@contextmanager
def rare_collections() -> Iterator[None]:
    """Look for garbage less often: a simulation makes many objects and little garbage that needs looking for."""
    before = gc.get_threshold()
    gc.collect()
    gc.set_threshold(1_000_000, 50, 100)
    try:
        yield
    finally:
        gc.set_threshold(*before)
