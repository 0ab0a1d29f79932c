"""Queues that leave go when they are empty, at whole multiples of ten seconds."""

from __future__ import annotations

from dataclasses import replace

from priority_clusters import PriorityCluster

from fairlead.core.acts.queue_removal import CLEAN_QUEUES_MS, clean_later
from fairlead.core.books.partition import Partition
from fairlead.core.model.decisions import QueueChanged
from fairlead.core.model.events import Cause, Configure, Release
from fairlead.core.model.specs import QueueSpec


def without_b(c: PriorityCluster) -> Partition:
    """The file has no queue `b` any more."""
    part = c.spec.partitions[0]
    root = replace(part.root, queues=(QueueSpec(name="a"),))
    c.handle(Configure(replace(c.spec, partitions=(replace(part, root=root),), checksum="other")))
    return c.s.cluster.partitions["default"]


def removed(c: PriorityCluster) -> list[str]:
    return [d.queue for d in c.decided if isinstance(d, QueueChanged) and d.change == "removed"]


def test_an_empty_queue_is_removed_at_the_next_whole_ten_seconds() -> None:
    c = PriorityCluster()
    c.now_ms = 12_345
    part = without_b(c)
    assert part.timers.due_ms("default", "", "queues") == 20_000
    c.run(20_000 - 12_345 - 1)
    assert (part.root.find("root.b") is None, removed(c)) == (False, [])
    c.run(1)
    assert (part.root.find("root.b") is None, removed(c)) == (True, ["root.b"])


def test_one_with_work_is_removed_when_that_is_over() -> None:
    c = PriorityCluster()
    c.fill("runs", 1, 0, "root.b")
    part = without_b(c)
    c.run(CLEAN_QUEUES_MS)
    assert part.root.find("root.b") is not None
    c.handle(Release("runs", "runs", Cause.FINISHED))
    c.run(60_000)
    c.run(CLEAN_QUEUES_MS)
    assert removed(c) == ["root.b"]


def test_one_timer_serves_all_that_leave() -> None:
    """As long as the time has not come it is not set anew."""
    c = PriorityCluster()
    part = without_b(c)
    set_at = part.timers.last_seq
    part.now_ms = CLEAN_QUEUES_MS - 1
    clean_later(part)
    assert part.timers.last_seq == set_at
    c.run(CLEAN_QUEUES_MS)
    clean_later(part)
    assert part.timers.due_ms("default", "", "queues") == 2 * CLEAN_QUEUES_MS
