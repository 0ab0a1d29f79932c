"""Which asks wait for the same reason. That nothing else is taken for alike, random courses see (`properties.laws`)."""

from __future__ import annotations

from typing import Any

from priority_clusters import PriorityCluster, cores

from fairlead.core.model.events import ReserveAsk
from fairlead.core.model.reasons import ClusterFull
from fairlead.core.model.specs import QueueSpec
from fairlead.policy.why.alike import alike


def like(c: PriorityCluster, key: str) -> Any:
    partition = c.s.cluster.partitions["default"]
    return alike(partition, partition.applications[key].asks[key])


def full(*queues: QueueSpec) -> PriorityCluster:
    """A node of four cores with all of them in use."""
    c = PriorityCluster(*queues)
    c.submit("r", 4, priority=9)
    c.run()
    return c


def test_what_asks_for_the_same_in_one_queue_is_alike_whatever_its_priority() -> None:
    c = full()
    for key, size, priority, queue in (("u", 2, 0, "a"), ("v", 2, 5, "a"), ("w", 1, 0, "a"), ("x", 2, 0, "b")):
        c.submit(key, size, priority, f"root.{queue}")
    c.run()
    assert like(c, "u") == like(c, "v") is not None
    assert len({like(c, key) for key in "uwx"}) == 3
    assert c.s.why("u", "u") is c.s.why("v", "v"), "it is found once"


def test_a_reason_is_found_anew_once_anything_happened() -> None:
    c = full()
    c.submit("u", 3)
    c.submit("v", 3)
    c.run()
    before = c.s.why("u", "u")
    c.finished("r")
    c.submit("s", 2, priority=9)
    c.run()
    after = c.s.why("v", "v")
    assert before != after
    assert isinstance(after, ClusterFull)
    assert after.free == {"vcore": 2000}


def test_limits_on_applications_are_of_the_queue_and_count_for_all_alike() -> None:
    c = full(QueueSpec(name="a", max_applications=1, max=cores(8)))
    c.submit("u", 1)
    c.submit("v", 1)
    c.run()
    assert like(c, "u") == like(c, "v") is not None
    assert c.s.why("u", "u").code == "applications-at-max"  # type: ignore[union-attr]


def test_while_something_has_its_turn_kept_nothing_is_alike() -> None:
    """What is held back by it says for whom, and it is not held back itself."""
    c = full()
    c.submit("u", 2)
    c.submit("v", 2)
    c.run()
    assert like(c, "u") is not None
    c.handle(ReserveAsk("u", "u", on=True))
    assert like(c, "u") is None
    assert like(c, "v") is None


def test_what_has_room_kept_for_it_is_like_no_other() -> None:
    c = PriorityCluster()
    c.submit("r", 4)
    c.run()
    c.submit("u", 2, priority=5)
    c.submit("v", 2, priority=5)
    _, stopped = c.run()
    assert stopped == ["r"]
    asks = c.s.cluster.partitions["default"]
    assert any(app.asks[app.id].nomination is not None for app in asks.applications.values())
    for key in "uv":
        nominated = asks.applications[key].asks[key].nomination is not None
        assert (like(c, key) is None) == nominated
