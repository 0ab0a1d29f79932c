"""`python -m fairlead.cli.attached ...`: the `fairlead` command, ended when the process that started it is gone.

Decides nothing else. Never used by people: the demo runs its service like this, so that nothing stays behind even
if the demo is killed. Invariant: once the parent is dead, this process has been sent SIGTERM.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def attach(parent: int) -> None:
    """Ask the kernel for SIGTERM when the parent dies; leave at once if it is dead already."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:
        raise SystemExit(128 + signal.SIGTERM)


if __name__ == "__main__":
    attach(int(sys.argv.pop(1)))
    from fairlead.cli.main import run

    run()
