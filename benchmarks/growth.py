"""What does a turn cost where more waits, on more nodes, in more queues?

    python -m benchmarks.growth

A turn on a full cluster: one ends, and the next one in line starts. Prints for each kind of growth the microseconds of
a turn at its small end, between, and at its large end, and how many times more the large end costs (1.5 is the most).
The status is 1 if it costs more than that. It takes about a minute and 2 GB.
"""

from __future__ import annotations

import gc
import random
import sys
import time
from dataclasses import dataclass
from functools import partial

from fairlead.collector import collector_off
from fairlead.core.model.decisions import Allocated
from fairlead.core.model.events import AddApplication, AddAsks, AddNode, Cause, Release
from fairlead.core.model.resources import Limits, Resources
from fairlead.core.model.specs import (
    ApplicationSpec,
    AskSpec,
    ClusterSpec,
    NodeSpec,
    PartitionSpec,
    PreemptionSpec,
    QueueSpec,
)
from fairlead.scheduler import Scheduler

MOST = 1.5
TURNS = 2_000
ROUNDS = 3
CORES = 4
MANY = 10_000
"""Applications, one for each queue where there are most queues."""


@dataclass(frozen=True, slots=True)
class Size:
    """How large a cluster is; `waiting`: at least so many asks wait once it is full."""

    nodes: int = 500
    queues: int = 10
    applications: int = 100
    waiting: int = 10_000
    rule: str = "guarantee"
    guaranteed: int = 0
    """So many cores for each queue."""
    sort: str = "fifo"
    """The order of applications in a queue."""


COUNTS = (10, 100, 10_000)
_in_queues = partial(Size, applications=MANY, waiting=100_000, sort="fair")
"""Nothing but queues grows: as many applications in few queues, of which none ends, and of which another one is next
each time, as where each has a queue of its own.
"""
GROWTH = {
    "waiting": (Size(), Size(waiting=100_000), Size(waiting=1_000_000)),
    "nodes": (Size(), Size(nodes=5_000), Size(nodes=50_000)),
    "applications": tuple(Size(applications=count, waiting=100_000) for count in (100, 1_000, MANY)),
    "queues": tuple(_in_queues(queues=count) for count in COUNTS),
    "queues, by priority": tuple(_in_queues(queues=count, rule="priority") for count in COUNTS),
    "queues, by both": tuple(_in_queues(queues=count, nodes=2_500, rule="both", guaranteed=1) for count in COUNTS),
}


def filled(size: Size) -> tuple[Scheduler, list[tuple[str, str]]]:
    """A full cluster of this size, and what runs on it."""
    guaranteed = Limits({"vcore": size.guaranteed}) if size.guaranteed else None
    properties = {"application.sort.policy": size.sort}
    leaves = tuple(QueueSpec(name=f"q{n}", guaranteed=guaranteed, properties=properties) for n in range(size.queues))
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=leaves)
    partition = PartitionSpec(root=root, preemption=PreemptionSpec(rule=size.rule))
    scheduler = Scheduler(ClusterSpec(partitions=(partition,)))
    for n in range(size.nodes):
        scheduler.handle(AddNode(NodeSpec(id=f"n{n:05d}", capacity=Resources({"vcore": CORES}))), 0)
    each = -(-(size.nodes * CORES + size.waiting) // size.applications)
    for n in range(size.applications):
        scheduler.handle(AddApplication(ApplicationSpec(id=f"a{n}", queue=f"root.q{n % size.queues}")), 0)
        asks = (AskSpec(application=f"a{n}", key=f"{n}-{k}", resources=Resources({"vcore": 1})) for k in range(each))
        scheduler.handle(AddAsks(tuple(asks)), 0)
    return scheduler, [(d.application, d.key) for d in scheduler.schedule(0) if isinstance(d, Allocated)]


def cost(size: Size) -> float:
    """Microseconds of a turn, in the best of some rounds."""
    chance, best = random.Random(1), float("inf")
    with collector_off():
        scheduler, running = filled(size)
        for _ in range(ROUNDS):
            began = time.perf_counter()
            for _ in range(TURNS):
                at = chance.randrange(len(running))
                running[at], running[-1] = running[-1], running[at]
                application, key = running.pop()
                scheduler.handle(Release(application, key, Cause.FINISHED), 0)
                running += [(d.application, d.key) for d in scheduler.schedule(0) if isinstance(d, Allocated)]
            best = min(best, time.perf_counter() - began)
    gc.collect()
    return best / TURNS * 1e6


def main() -> int:
    """Measure all and print them; the status."""
    worst = 0.0
    for name, sizes in GROWTH.items():
        costs = [cost(size) for size in sizes]
        times = costs[-1] / costs[0]
        worst = max(worst, times)
        ends = [getattr(size, name.partition(",")[0]) for size in sizes]
        said = ", ".join(f"{end:,}: {each:.0f} us" for end, each in zip(ends, costs, strict=True))
        print(f"{name:20} {said}; {times:.2f} times (at most {MOST})", flush=True)
    return int(worst > MOST)


if __name__ == "__main__":
    sys.exit(main())
