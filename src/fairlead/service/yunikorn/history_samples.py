"""A day of samples, one a minute: how many applications and containers there were.

Decides how long samples are kept. Never reads a clock; who samples says when. Invariant: at most 1,440 samples, oldest
first.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fairlead.core.model.lifecycle import LIVE

if TYPE_CHECKING:
    from fairlead.scheduler import Scheduler

SAMPLES = 1440
EVERY_S = 60.0


@dataclass(frozen=True, slots=True)
class Sample:
    """One minute."""

    at_ns: int
    applications: int
    containers: int


@dataclass(slots=True)
class HistorySamples:
    """The samples."""

    samples: deque[Sample] = field(default_factory=lambda: deque(maxlen=SAMPLES))

    def applications(self) -> list[dict[str, Any]]:
        """Running applications."""
        return [{"timestamp": s.at_ns, "totalApplications": str(s.applications)} for s in self.samples]

    def containers(self) -> list[dict[str, Any]]:
        """Allocations."""
        return [{"timestamp": s.at_ns, "totalContainers": str(s.containers)} for s in self.samples]


def count(scheduler: Scheduler, at_ns: int) -> Sample:
    """The sample of this moment."""
    partitions = list(scheduler.cluster.partitions.values())
    running = sum(1 for part in partitions for app in part.applications.values() if app.state in LIVE)
    containers = sum(len(node.allocations) for part in partitions for node in part.nodes.nodes.values())
    return Sample(at_ns, running, containers)


async def keep(history: HistorySamples, take: Callable[[], Awaitable[Sample]], every_s: float = EVERY_S) -> None:
    """Take a sample now and then one every minute, until cancelled."""
    while True:
        history.samples.append(await take())
        await asyncio.sleep(every_s)
