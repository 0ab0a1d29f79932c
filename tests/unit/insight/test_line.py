"""What waits in each queue is added up once for the whole tree: counted in calls, whoever asks for it."""

from __future__ import annotations

import cProfile
from collections.abc import Callable

import pytest

from fairlead.core.model.events import AddApplication, AddAsks
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import ApplicationSpec, AskSpec, ClusterSpec, PartitionSpec, QueueSpec
from fairlead.insight import line
from fairlead.runtime.measures import Measures
from fairlead.scheduler import Scheduler
from fairlead.service.yunikorn import figures, shapes
from fairlead.service.yunikorn.history import HistoryRecords
from fairlead.sim.outcome import final_state

APPLICATIONS = 400
FEW, MANY = 2, 16


def deep(levels: int) -> Scheduler:
    """So many queues below one another, and in the last of them what waits."""
    queue = QueueSpec(name=f"q{levels}", submit_acl="*")
    for level in reversed(range(1, levels)):
        queue = QueueSpec(name=f"q{level}", parent=True, queues=(queue,))
    root = QueueSpec(name="root", parent=True, queues=(queue,))
    scheduler = Scheduler(ClusterSpec(partitions=(PartitionSpec(root=root),)))
    path = ".".join(["root", *(f"q{level}" for level in range(1, levels + 1))])
    for n in range(APPLICATIONS):
        scheduler.handle(AddApplication(ApplicationSpec(id=f"a{n}", queue=path)), 0)
        scheduler.handle(AddAsks((AskSpec(application=f"a{n}", key="k", resources=Resources({"vcore": 1})),)), 0)
    return scheduler


def calls(read: Callable[[Scheduler], object], scheduler: Scheduler) -> int:
    profile = cProfile.Profile()
    profile.runcall(read, scheduler)
    return sum(entry.callcount for entry in profile.getstats())


READS: dict[str, Callable[[Scheduler], object]] = {
    "the tree of /ws/v1": lambda s: shapes.queue(s.cluster.partitions["default"].root, subtree=True),
    "the figures of /ws/v1": lambda s: list(figures.families(s, HistoryRecords(lambda: s), Measures())),
    "the end of a scenario": final_state,
}


@pytest.mark.parametrize("name", READS)
def test_an_application_is_looked_at_as_often_however_deep_it_is(name: str) -> None:
    """It was once more for each queue above it."""
    few, many = deep(FEW), deep(MANY)
    calls(READS[name], few)  # Fills what is kept.
    more = calls(READS[name], many) - calls(READS[name], few)
    assert more < APPLICATIONS * (MANY - FEW) / 2


def test_what_waits_below_waits_in_each_queue_above() -> None:
    """Parents first."""
    root = deep(3).cluster.partitions["default"].root
    found = line.pending(root)
    assert [queue.path for queue in found] == ["root", "root.q1", "root.q1.q2", "root.q1.q2.q3"]
    assert list(found.values()) == [({"vcore": APPLICATIONS}, APPLICATIONS)] * 4
