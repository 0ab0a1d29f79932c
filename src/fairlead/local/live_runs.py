"""Runs that were launched or adopted and have not ended, as the machine keeps them.

Decides how the supervisor of one is told something, and how loaded each core is. Never writes anything.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable
from dataclasses import dataclass

from fairlead.local.supervisor import kernel
from fairlead.local.supervisor.run import WAKE


@dataclass(slots=True)
class LiveRun:
    """A run that was launched or adopted and has not ended."""

    supervisor: int
    supervisor_ticks: int
    """0: it could not be asked; it is our child, and keeps its pid."""
    launched_at_ms: int
    gpus: tuple[int, ...] = ()
    cpus: tuple[int, ...] = ()
    vcore: int = 0

    def wake(self) -> None:
        """Have its supervisor look at what was written for it. Raises OSError."""
        self._tell(WAKE)

    def end(self) -> None:
        """Have its supervisor end it, with the grace that it began with; nothing has to be written. Raises OSError."""
        self._tell(signal.SIGTERM)

    def _tell(self, number: int) -> None:
        if self.supervisor_ticks:
            kernel.send(self.supervisor, self.supervisor_ticks, number)
        else:
            os.kill(self.supervisor, number)


def load_by_core(runs: Iterable[LiveRun]) -> dict[int, int]:
    """Thousandths of a core on each core that runs are bound to."""
    load: dict[int, int] = {}
    for run in runs:
        for core in run.cpus:
            load[core] = load.get(core, 0) + max(1, run.vcore // len(run.cpus))
    return load
