"""The demo's way out."""

from __future__ import annotations

import os
import signal
import time

import pytest

from fairlead.cli.demo import _interruptible


def interrupted(second: signal.Signals, done: list[str]) -> None:
    """What a demo does when it is told to end, and told again while it cleans up."""
    with _interruptible():
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(5)
        finally:
            os.kill(os.getpid(), second)
            time.sleep(0.05)
            done.append("cleaned up")


@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_does_not_break_in_on_the_way_out(second: signal.Signals) -> None:
    """The first one ends what runs; a terminal that tells the whole group sends more."""
    done: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        interrupted(second, done)
    assert done == ["cleaned up"]
    assert signal.getsignal(signal.SIGTERM) is not signal.SIG_IGN
