"""Attempts: a task under way in a simulation, and how a simulation runs.

Decides what the engine remembers of a task that waits or runs. Never acts. Invariant: an attempt is one stay of a task
in the scheduler under one key; what comes back is a new one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TextIO

from fairlead.core.events import Cause
from fairlead.core.specs import AskSpec
from fairlead.sim.jobs import Task

ENDED = frozenset({"Completed", "Failing", "Failed", "Expired", "Removed", "Rejected"})
"""States in which an application takes no further asks."""
FAILED = frozenset({"Failing", "Failed"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a simulation runs, beside what is simulated."""

    resubmit: bool = True
    """Work without retries that was stopped or lost is submitted again by its owner."""
    digest: bool = True
    """Compute the digest of all decisions."""
    lines: TextIO | None = None
    """Where to write every decision, a line each."""


class Attempt:
    """A task that waits or runs."""

    __slots__ = ("ask", "node", "over", "row", "run", "start_ms", "stopping", "task", "tries")

    def __init__(self, task: Task, row: int) -> None:
        self.task = task
        self.ask: AskSpec = task.ask
        self.row = row
        self.tries = 1
        self.run = -1
        self.node = ""
        self.start_ms = 0
        self.stopping: Cause | None = None
        """It was told to stop and does so when its grace is over."""
        self.over = False
        """This run has ended: whatever was to come of it does not."""
