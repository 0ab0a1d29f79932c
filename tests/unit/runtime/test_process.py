"""`fairlead.runtime.process`: when a service searches for garbage, and what signals do to it."""

import asyncio
import gc
import os
import pty
import signal
import subprocess
import sys
from contextlib import suppress

import pytest

from fairlead.runtime.process import NEVER, search_seldom

SERVICE = """
import asyncio
import signal
from fairlead.runtime.process import on_signals

signal.signal(signal.SIGHUP, signal.SIG_DFL)  # Whatever these tests are run by, as nohup.

async def main():
    told = asyncio.Event()
    on_signals(told.set)
    print("ready", flush=True)
    await told.wait()
    print("in order", flush=True)

asyncio.run(main())
"""


@pytest.mark.parametrize("at_terminal", [True, False])
def test_a_hangup_ends_what_has_a_terminal_and_nothing_else(at_terminal: bool) -> None:
    """Others read their files anew at it: this one was over, and systemd takes that for an orderly end."""
    ours, theirs = pty.openpty()
    stdin = theirs if at_terminal else subprocess.DEVNULL
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", SERVICE], stdin=stdin, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGHUP)
        if not at_terminal:
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(0.3)
            process.send_signal(signal.SIGTERM)
        assert process.stdout.readline() == "in order\n"
        assert process.wait(50) == 0
    os.close(ours)
    os.close(theirs)


class Circle:
    """Something that only a search finds."""

    def __init__(self) -> None:
        self.itself = self


async def test_a_service_searches_what_came_since_the_last_time() -> None:
    before = gc.get_threshold()
    old = Circle()
    searching = asyncio.create_task(search_seldom(0.05))
    await asyncio.sleep(0)
    assert gc.get_threshold()[2] == NEVER
    assert not any(thing is old for thing in gc.get_objects()), "what was there is not searched"
    new = Circle()
    gone = id(new)
    del new
    while any(id(thing) == gone and isinstance(thing, Circle) for thing in gc.get_objects()):
        await asyncio.sleep(0.01)
    searching.cancel()
    with suppress(asyncio.CancelledError):
        await searching
    assert gc.get_threshold() == before
