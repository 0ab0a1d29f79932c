"""The demo's way out."""

from __future__ import annotations

import os
import signal
import time

import pytest

from fairlead.cli.demo import _interruptible


@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_does_not_break_in_on_the_way_out(second: signal.Signals) -> None:
    """The first one ends what runs; a terminal that tells the whole group sends more."""
    cleaned_up = False
    with pytest.raises(KeyboardInterrupt), _interruptible():
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(5)
        finally:
            os.kill(os.getpid(), second)
            time.sleep(0.05)
            cleaned_up = True
    assert cleaned_up
    assert signal.getsignal(signal.SIGTERM) is not signal.SIG_IGN
