"""By how much queues are above their guarantees: counted once, and anew when anything changes."""

from __future__ import annotations

import math

import pytest
from priority_clusters import PriorityCluster, cores

from fairlead.core.books.above_guarantee import AboveGuarantee
from fairlead.core.books.partition import Partition
from fairlead.core.books.queues import Queue
from fairlead.core.model.decisions import Cause
from fairlead.core.model.events import Release
from fairlead.core.model.specs import QueueSpec

LEAF = QueueSpec(name="a", guaranteed=cores(1))
PARENT = QueueSpec(name="p", parent=True, guaranteed=cores(3), queues=(LEAF, QueueSpec(name="b")))


def world() -> tuple[PriorityCluster, Partition, Queue, Queue]:
    """Three in `root.p.a`, one in `root.p.b`, each of a core."""
    c = PriorityCluster(PARENT, nodes={"n1": 8}, rule="both")
    for n in range(3):
        c.fill(f"a{n}", 1, queue="root.p.a")
    c.fill("b", 1, queue="root.p.b")
    part = c.s.cluster.partitions["default"]
    a, p = part.root.find("root.p.a"), part.root.find("root.p")
    assert a is not None
    assert p is not None
    return c, part, a, p


def test_a_leaf_gives_what_the_tightest_guarantee_on_its_way_leaves() -> None:
    c, part, a, p = world()
    least = part.above_guarantee.least
    for _ in range(2):  # Counted, and known.
        assert least(part, a, "vcore") == 1000
        assert least(part, a, "vcore", (p,)) == 2000
        assert least(part, a, "vcore", (a, p)) == math.inf
        assert least(part, a, "gpu") == math.inf
    c.finished("b")
    c.finished("a0")
    assert least(part, a, "vcore") == 0


def test_work_that_was_told_to_stop_counts_as_gone_and_idle_work_for_nothing() -> None:
    c, part, a, p = world()
    assert part.above_guarantee.of(part, p) == {"vcore": 1000}
    c.fill("i", 1, queue="root.p.a", idle=True)
    assert (part.above_guarantee.of(part, p), part.above_guarantee.of(part, a)) == ({"vcore": 1000}, {"vcore": 2000})
    c.submit("high", 5, 9, queue="root.p.b")
    stopped = c.run()[1]
    gone = sum(1 for key in stopped if key != "i")
    assert gone
    assert part.above_guarantee.of(part, p) == {"vcore": 1000 - 1000 * gone}


@pytest.mark.parametrize("counted_before", [False, True])
def test_what_is_known_is_what_is_counted_anew(counted_before: bool) -> None:
    c, part, a, p = world()
    for step in range(3):
        if counted_before:
            part.above_guarantee.of(part, p)
        c.handle(Release(f"a{step}", f"a{step}", Cause.FINISHED))
        for queue in (a, p):
            assert part.above_guarantee.of(part, queue) == AboveGuarantee().of(part, queue)
