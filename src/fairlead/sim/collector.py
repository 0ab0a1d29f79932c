"""The cycle collector: off while very much is made of which nothing is garbage.

Decides nothing. What it saves: a third to a half of the time in which a large state is built or written down.
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
