"""How much work something is, counted: the same on every machine, however busy it is.

Decides nothing. Never counts what happens inside functions of C. Invariant: what runs the same counts the same.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def steps(act: Callable[[], object]) -> int:
    """Instructions of Python that run in this thread until `act` is done: a loop within one line counts, too."""
    count = 0

    def follow(frame: FrameType, what: str, about: Any) -> Any:
        nonlocal count
        del about
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        count += what == "opcode"
        return follow

    before = sys.gettrace()
    sys.settrace(follow)
    try:
        act()
    finally:
        sys.settrace(before)
    return count
