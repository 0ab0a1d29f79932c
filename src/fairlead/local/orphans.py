"""What a killed supervisor leaves behind, where it comes back to this process: found, and ended to the last process.

Decides which children of this process are nobody's any more: those in another session that it did not start. Never
touches a child that it started, nor what other processes have. Invariant: where the kernel gives orphans to this
process (`take_in`), a job that kills its own supervisor leaves nothing behind, whatever it did to its environment and
session; but for jobs that a process before this one has started, whose orphans come to the machine's first process.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Collection

from fairlead.local.supervisor import kernel, tree

PATIENCE_S = 10.0
PAUSE_S = 0.01


def take_in() -> bool:
    """Have orphans below this process come back to it from now on. False: this machine cannot do that."""
    return kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)


def end(known: Collection[int], *, patience_s: float = PATIENCE_S) -> bool:
    """Kill all orphans that have come back, with all below them; `known`: the supervisors that this process started.

    False: something of them is still alive after that time.
    """
    if not kernel.takes_in_orphans():
        return True
    deadline = time.monotonic() + patience_s
    while found := _orphans(known):
        for each in found:
            tree.send([each.pid], signal.SIGSTOP)
            tree.kill(each.pid, ())
            tree.send([each.pid], signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(each.pid, os.WNOHANG)
        if time.monotonic() > deadline:
            return False
        time.sleep(PAUSE_S)
    return True


def _orphans(known: Collection[int]) -> list[kernel.Process]:
    """A job is in sessions of its own, and cannot enter that of the service, where all that it runs itself is."""
    me, session = os.getpid(), os.getsid(0)
    children = (found for pid in kernel.pids() if (found := kernel.process(pid)) is not None and found.parent == me)
    return [each for each in children if each.session != session and each.pid not in known]
