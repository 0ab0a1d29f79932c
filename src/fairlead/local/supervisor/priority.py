"""Who goes first on the processor: the service, then the jobs, then those that watch over them.

Decides by how much a supervisor stands back, and that its job does not. Never touches another process. Invariant: a job
has the niceness of the service that took it in; where a supervisor could not take its own back, it keeps it.
"""

from __future__ import annotations

import contextlib
import os

NICER = 10


def stand_back() -> None:
    """Leave the processor to others: everybody waits for the service, and nobody for this."""
    with contextlib.suppress(PermissionError):
        os.nice(-NICER)
        os.nice(2 * NICER)


def come_forward() -> None:
    """Take it back, in the process that becomes the job."""
    with contextlib.suppress(PermissionError):
        os.nice(-NICER)
