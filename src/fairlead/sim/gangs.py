"""Gangs in a simulation: the placeholders that stand for a job's tasks until all of them have room.

Decides which placeholders a gang has, and when all of them stand. Never places anything. Invariant: one placeholder for
each task, of the task's size; tasks of one size are one task group.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fairlead.core.resources import NOTHING
from fairlead.core.specs import ApplicationSpec, AskSpec
from fairlead.sim.jobs import Job

if TYPE_CHECKING:
    from fairlead.core.reason import Reason
    from fairlead.scheduler import Scheduler


def placeholders(job: Job) -> ApplicationSpec:
    """The application of a gang: it says how much the whole gang is."""
    total = NOTHING
    for task in job.tasks:
        total += task.ask.resources
    return replace(job.application, placeholder_ask=total)


class Gang:
    """A gang whose placeholders are on their way."""

    __slots__ = ("_awaited", "_made", "application", "asks", "placeholders")

    def __init__(self, job: Job, asks: tuple[AskSpec, ...]) -> None:
        groups: dict[object, str] = {}
        for ask in asks:
            groups.setdefault(ask.resources, f"size-{len(groups) + 1}")
        self.application = job.application.id
        self.asks = tuple(replace(ask, task_group=groups[ask.resources]) for ask in asks)
        """The real asks, each with its task group."""
        self.placeholders = tuple(
            replace(ask, key=f"{ask.key}~", placeholder=True, retry=None, time_limit_ms=None) for ask in self.asks
        )
        self._awaited = {p.key: p for p in self.placeholders}
        self._made = dict(self._awaited)

    def stands(self, key: str) -> bool:
        """A placeholder has a node; whether all have one now."""
        self._awaited.pop(key, None)
        return not self._awaited

    def another(self, key: str) -> AskSpec:
        """The placeholder that comes in the place of this one, which was stopped or lost."""
        old = self._made.pop(key)
        fresh = replace(old, key=f"{key}~")
        self._made[fresh.key] = self._awaited[fresh.key] = fresh
        return fresh

    def comes_back(self, key: str, again: str) -> None:
        """This placeholder was given back, and waits under another key."""
        self._made[again] = self._awaited[again] = replace(self._made.pop(key), key=again)

    def why(self, scheduler: Scheduler) -> Reason | None:
        """Why it is not whole: the reason of the first placeholder that waits."""
        found = (scheduler.why(self.application, key) for key in self._awaited)
        return next((reason for reason in found if reason is not None), None)
