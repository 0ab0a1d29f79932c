"""Expected starts: known from declared time limits alone, never later than what then happens."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from priority_clusters import PriorityCluster, cores, on

from fairlead.core.acts.gangs import DEFAULT_TIMEOUT_MS
from fairlead.core.books.asks import Ask
from fairlead.core.books.partition import Partition
from fairlead.core.model.constraints import AffinityTerm, Constraints, PreferredNodes, Requirement
from fairlead.core.model.events import AddApplication, AddAsks, DrainNode, SetWindow
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import ApplicationSpec, AskSpec, QueueSpec, WindowSpec
from fairlead.policy.eligibility.start_estimates import end_ms, expected_start, never_suits

WEB = (Requirement("app", "In", ("web",)),)


def world(**more: Any) -> tuple[PriorityCluster, Partition]:
    """Two nodes of four cores, where nothing is stopped for anything."""
    c = PriorityCluster(*more.pop("queues", ()), nodes={"n1": 4, "n2": 4}, enabled=False, **more)
    return c, c.s.cluster.partitions["default"]


def waiting(c: PriorityCluster, count: int, **more: Any) -> Ask:
    """An ask for so many cores that no run has come to."""
    c.submit("w", count, **more)
    return c.s.cluster.partitions["default"].applications["w"].asks["w"]


def when(part: Partition, ask: Ask) -> tuple[int, str] | None:
    found = expected_start(part, ask)
    return (found.start_ms, found.node.id) if found is not None else None


def test_what_has_room_starts_now() -> None:
    c, part = world()
    assert when(part, waiting(c, 4)) == (0, "n1")


def test_it_starts_when_the_first_node_has_enough() -> None:
    """Two that end at one time count together; what is left then is said."""
    c, part = world()
    for name, limit in (("one", 100), ("two", 99)):
        assert c.fill(name, 2, time_limit_ms=limit, tags=on("n1")) == "n1"
    c.fill("other", 3, time_limit_ms=5_000)
    found = expected_start(part, waiting(c, 3))
    assert found is not None
    assert (found.start_ms, found.node.id) == (101, "n1")
    assert found.free == {"vcore": 4000}
    assert found.used[part.root] == {"vcore": 3000}


def test_without_a_time_limit_it_is_not_known() -> None:
    c, part = world()
    for name in ("one", "two"):
        c.fill(name, 4)
    assert when(part, waiting(c, 1)) is None


def test_the_maximum_of_its_queue_holds() -> None:
    """However much room the nodes have."""
    c, part = world(queues=(QueueSpec(name="a", max=cores(4)),))
    c.fill("one", 3, time_limit_ms=1_000)
    ask = waiting(c, 2)
    assert when(part, ask) == (1_001, "n2")


@pytest.mark.parametrize("by", ["drained", "required"])
def test_a_node_that_is_not_for_it_does_not_count(by: str) -> None:
    c, part = world()
    c.fill("one", 4, time_limit_ms=1_000, tags=on("n1"))
    c.fill("two", 4, time_limit_ms=9_000, tags=on("n2"))
    if by == "drained":
        c.handle(DrainNode("n1"))
        ask = waiting(c, 2)
    else:
        ask = waiting(c, 2, tags=on("n2"))
    assert when(part, ask) == (9_002, "n2")


def test_what_it_keeps_away_from_has_gone_then() -> None:
    c, part = world()
    c.fill("one", 1, time_limit_ms=1_000, labels={"app": "web"}, tags=on("n1"))
    c.fill("two", 1, time_limit_ms=2_000, labels={"app": "web"}, tags=on("n2"))
    away = Constraints(anti_affinity=(AffinityTerm(WEB),))
    assert when(part, waiting(c, 1, where=away)) == (1_001, "n1")


def test_it_is_over_before_a_window() -> None:
    """Else nothing is known: what comes after the window is not looked at."""
    c, part = world()
    c.handle(SetWindow(WindowSpec(name="night", starts_ms=10_000, length_ms=1_000)))
    for name in ("one", "two"):
        c.fill(name, 4, time_limit_ms=2_000)
    fits = waiting(c, 1, time_limit_ms=7_000)
    assert when(part, fits) == (2_001, "n1")
    c.submit("long", 1, time_limit_ms=9_000)
    assert when(part, part.applications["long"].asks["long"]) is None


def test_what_runs_waits_no_longer() -> None:
    c, part = world()
    c.fill("one", 1)
    assert when(part, part.applications["one"].asks["one"]) is None


def test_the_end_of_running_work_is_not_in_the_past() -> None:
    c, part = world()
    c.fill("one", 1, time_limit_ms=500)
    c.fill("two", 1)
    one, two = (part.applications[name].asks[name] for name in ("one", "two"))
    assert (end_ms(one, 100), end_ms(one, 9_000), end_ms(two, 0)) == (501, 9_000, None)


def test_a_node_never_suits_that_selectors_rule_out() -> None:
    """But one that only lacks room may, and the first of a group needs nothing beside it."""
    c, part = world()
    c.node("n3", 4, disk="ssd")
    n1, n3 = part.nodes.nodes["n1"], part.nodes.nodes["n3"]
    ask = waiting(c, 1, where=Constraints(selector=(Requirement("disk", "In", ("ssd",)),)))
    assert (never_suits(part, ask, n1), never_suits(part, ask, n3)) == (True, False)
    beside = Constraints(affinity=(AffinityTerm(WEB),))
    for name, labels, is_never in (("lonely", {}, True), ("first", {"app": "web"}, False)):
        c.submit(name, 1, where=beside, labels=labels)
        assert never_suits(part, part.applications[name].asks[name], n1) is is_never


@pytest.mark.parametrize("small", [1, 3])
def test_beside_others_for_which_the_node_is_set_aside_it_starts_when_room_for_all_has_come(small: int) -> None:
    """By guarantee `v1` was stopped for the first, and the second shares its node (the third has `v2` stopped)."""
    a = QueueSpec(name="a", guaranteed=cores(12), properties={"preemption.delay": "1s"})
    c = PriorityCluster(a, QueueSpec(name="b"), nodes={"n1": 4, "n2": 4}, rule="guarantee")
    for i, limit_ms in ((1, 20_000), (2, 50_000)):
        c.fill(f"v{i}", 4, 0, "root.b", time_limit_ms=limit_ms)
    c.submit("first", 1, 0, "root.a")
    c.submit("second", small, 0, "root.a")
    c.submit("third", 4, 0, "root.a")
    c.run(2_000)
    part = c.s.cluster.partitions["default"]
    starts = [when(part, part.applications[name].asks[name]) for name in ("first", "second", "third")]
    assert starts == [(20_001, "n1"), (20_001, "n1"), (50_002, "n2")]


def test_what_takes_the_place_of_a_placeholder_begins_now() -> None:
    """Before, that was known to last as long as a gang may be waited for."""
    c, part = world()
    c.fill("other", 4, tags=on("n2"))
    whole = Resources({"vcore": 3000})
    c.handle(AddApplication(ApplicationSpec(id="g", queue="root.a", placeholder_ask=whole)))
    member = AskSpec(application="g", key="g", resources=whole, task_group="t", time_limit_ms=500)
    c.handle(AddAsks((replace(member, key="g~", placeholder=True),)))
    assert c.run()[0] == ["g~@n1"]
    ask = waiting(c, 4)
    assert when(part, ask) == (2 + DEFAULT_TIMEOUT_MS + 500, "n1")
    c.handle(AddAsks((member,)))
    assert c.run() == ([], ["g~"])
    assert when(part, ask) == (3 + 500, "n1")


def test_of_nodes_that_have_room_at_once_it_starts_on_the_one_that_it_prefers() -> None:
    """What has its turn kept starts where room gathers for it: it got the first in order before."""
    c = PriorityCluster(QueueSpec(name="a", properties={"wait.max": "2s"}), nodes={"n1": 4}, enabled=False)
    c.node("n2", 4, disk="ssd")
    for name in ("n1", "n2"):
        c.fill(name, 4, tags=on(name))
    wish = PreferredNodes(1, (Requirement("disk", "In", ("ssd",)),))
    c.submit("late", 4, where=Constraints(preferred_nodes=(wish,)))
    for name in ("n1", "n2"):
        c.finished(name)
    assert c.run(3_000)[0] == ["late@n2"]


def test_what_was_told_to_stop_and_ends_by_its_limit_is_gone_once() -> None:
    """Then the ask is the first of its group. It was taken off twice, and nobody knew when the ask can start."""
    c = PriorityCluster(nodes={"n1": 4, "n2": 8})
    c.fill("long", 8, 9, time_limit_ms=20_000)
    c.fill("old", 4, labels={"app": "web"}, time_limit_ms=9_000, grace_ms=60_000)
    c.submit("high", 1, 5)
    assert c.run() == ([], ["old"])
    ask = waiting(c, 5, labels={"app": "web"}, where=Constraints(affinity=(AffinityTerm(WEB),)))
    assert when(c.s.cluster.partitions["default"], ask) == (20_001, "n2")
