"""Nothing is stopped for what would reach into a window by the time its victims are gone."""

from __future__ import annotations

from typing import Any

import pytest
from priority_clusters import PriorityCluster, cores, on, only_on

from fairlead.core.model.decisions import WindowOpened
from fairlead.core.model.events import AddApplication, AddAsks, Cause, Release, RemoveWindow, SetWindow
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import ApplicationSpec, AskSpec, QueueSpec, WindowSpec

HOUR = 3_600_000
WAYS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "priority": ("priority", {}, {"priority": 9}),
    "both": ("both", {}, {"priority": 9}),
    "its guarantee is taken back": ("both", {}, {}),
    "guarantee": ("guarantee", {}, {}),
    "required node": ("guarantee", {}, {"tags": on("n1"), "queue": "root.c"}),
    "idle, by guarantee": ("guarantee", {"idle": True}, {"queue": "root.c"}),
    "idle, by priority": ("priority", {"idle": True}, {"queue": "root.c"}),
}
EACH_WAY = pytest.mark.parametrize("way", WAYS)


class Course(PriorityCluster):
    """`hi` has an hour, and would have one of the nodes, in which there is work with a grace."""

    def __init__(self, way: str, *queues: QueueSpec, **nodes: int) -> None:
        rule, self.victim, self.preemptor = WAYS[way]
        b = QueueSpec(name="b", guaranteed=cores(8), properties={"preemption.delay": "1s"})
        leaves = queues or (QueueSpec(name="a"), b, QueueSpec(name="c"))
        super().__init__(*leaves, nodes=nodes or {"n1": 4}, rule=rule)
        if "tags" in self.preemptor:
            self.node("n2", 4)  # The cluster as a whole has room for it.

    def low(self, key: str, size: int, grace_ms: int | None = None, **more: Any) -> None:
        self.fill(key, size, grace_ms=grace_ms, **self.victim, **more)

    def hi(self, key: str = "hi", time_limit_ms: int = HOUR, **more: Any) -> list[str]:
        """It comes, and waits for as long as it has to; what is stopped for it."""
        self.submit(key, 4, time_limit_ms=time_limit_ms, **{"queue": "root.b"} | self.preemptor | more)
        return self.run()[1] or self.run(1_000)[1]

    def window(self, in_ms: int, *nodes: str) -> None:
        """A window that `hi` would reach into if it came so much later."""
        self.handle(SetWindow(WindowSpec(name="w", starts_ms=self.now_ms + HOUR + in_ms, length_ms=HOUR, nodes=nodes)))


@EACH_WAY
@pytest.mark.parametrize(("grace_ms", "in_ms"), [(60_000, 40_000), (None, 20_000)])
def test_what_has_more_grace_than_there_is_time_stays(way: str, grace_ms: int | None, in_ms: int) -> None:
    """Nor is it stopped when the window begins, or before."""
    c = Course(way)
    c.low("low", 4, grace_ms)
    c.window(in_ms)
    assert c.hi() == []
    while not any(isinstance(d, WindowOpened) for d in c.decided):
        assert (due_ms := c.s.next_wakeup_ms()) is not None
        assert c.run(due_ms - c.now_ms) == ([], [])


@EACH_WAY
@pytest.mark.parametrize(("grace_ms", "in_ms"), [(60_000, 70_000), (None, 40_000), (0, 5_000)])
def test_what_leaves_in_time_goes(way: str, grace_ms: int | None, in_ms: int) -> None:
    c = Course(way)
    c.low("low", 4, grace_ms)
    c.window(in_ms)
    assert c.hi() == ["low"]


@EACH_WAY
def test_other_work_that_leaves_in_time_goes_instead(way: str) -> None:
    """Though it would be spared else: it started first."""
    c = Course(way, n1=8)
    c.low("quick", 4, 0, where=only_on("n1"))
    c.low("slow", 4, 60_000, where=only_on("n1"))
    c.window(40_000)
    assert c.hi() == ["quick"]


@EACH_WAY
def test_a_window_that_keeps_another_node_free_is_none(way: str) -> None:
    c = Course(way)
    c.low("low", 4, 60_000)
    c.window(40_000, "n2")
    assert c.hi() == ["low"]


@EACH_WAY
def test_once_the_window_is_called_off_it_goes(way: str) -> None:
    c = Course(way)
    c.low("low", 4, 60_000)
    c.window(40_000)
    assert c.hi() == []
    c.handle(RemoveWindow("w"))
    assert (c.run()[1] or c.run(15_000)[1]) == ["low"]


@EACH_WAY
def test_it_goes_for_one_that_is_over_earlier(way: str) -> None:
    """The two are alike but for their time."""
    c = Course(way)
    c.low("low", 4, 60_000)
    c.window(40_000)
    assert c.hi() == []
    assert c.hi("short", time_limit_ms=HOUR // 2) == ["low"]


@pytest.mark.parametrize("way", [way for way, (_, _, more) in WAYS.items() if "tags" not in more])
def test_what_runs_on_another_node_has_to_leave_before_the_window_of_this_one(way: str) -> None:
    """The maximum is in the way: there is room on `n2`, the only node for it, which is to be kept free."""
    properties = {"resource.group": "true", "preemption.delay": "1s"}
    leaves = tuple(QueueSpec(name=name, properties={"preemption.delay": "1s"}, guaranteed=cores(4)) for name in "bc")
    p = QueueSpec(name="p", max=cores(4), queues=(QueueSpec(name="a"), *leaves), parent=True, properties=properties)
    for in_ms, expected in ((40_000, []), (70_000, ["low"])):
        c = Course(way, p, n1=4, n2=4)
        c.low("low", 4, 60_000, queue="root.p.a")
        c.window(in_ms, "n2")
        queue = c.preemptor.get("queue", "root.b").replace("root", "root.p")
        assert c.hi(queue=queue, where=only_on("n2")) == expected


def leaves_already(c: Course, queue: str) -> None:
    """`old` was told to stop, and has 40 seconds left; that for which it was has been withdrawn."""
    c.low("old", 4, 60_000, where=only_on("n1"), queue=queue)
    c.submit("first", 4, **{"queue": "root.b"} | c.preemptor, where=only_on("n1"))
    assert (c.run()[1] or c.run(1_000)[1]) == ["old"]
    c.handle(Release("first", "first", Cause.STOPPED_BY_RM))
    c.run(20_000)


@pytest.mark.parametrize("way", [way for way in WAYS if way != "guarantee"])
@pytest.mark.parametrize(("in_ms", "expected"), [(20_000, []), (50_000, ["quick"])])
def test_what_leaves_already_counts_if_it_leaves_in_time(way: str, in_ms: int, expected: list[str]) -> None:
    """Nothing is stopped that makes room only together with what leaves too late. (By guarantee no room on a node that
    others leave is counted on at all.)
    """
    c = Course(way, n1=8, n3=8)
    c.low("quick", 4, 0, where=only_on("n1"))
    leaves_already(c, "root.a")
    c.window(in_ms)
    c.submit("large", 8, time_limit_ms=HOUR, where=only_on("n1"), **{"queue": "root.b"} | c.preemptor)
    assert (c.run()[1] or c.run(1_000)[1]) == expected


@pytest.mark.parametrize("way", [way for way, (_, _, more) in WAYS.items() if "tags" not in more])
@pytest.mark.parametrize(("in_ms", "expected"), [(20_000, []), (50_000, ["quick"])])
def test_what_leaves_already_counts_under_a_maximum_too(way: str, in_ms: int, expected: list[str]) -> None:
    """It leaves another node, and the queue above has room for both no earlier."""
    properties = {"resource.group": "true", "preemption.delay": "1s"}
    leaves = tuple(QueueSpec(name=name, properties={"preemption.delay": "1s"}, guaranteed=cores(8)) for name in "bc")
    p = QueueSpec(name="p", max=cores(8), queues=(QueueSpec(name="a"), *leaves), parent=True, properties=properties)
    c = Course(way, p, QueueSpec(name="b", properties=properties, guaranteed=cores(8)), n1=4, n2=8)
    c.preemptor = c.preemptor | {"queue": "root.b"}
    c.low("quick", 4, 0, where=only_on("n2"), queue="root.p.a")
    leaves_already(c, "root.p.a")
    c.window(in_ms, "n2")
    c.submit("large", 8, time_limit_ms=HOUR, where=only_on("n2"), **c.preemptor | {"queue": "root.p.b"})
    assert (c.run()[1] or c.run(1_000)[1]) == expected


@EACH_WAY
def test_it_goes_for_one_behind_it_that_is_over_earlier(way: str) -> None:
    """The two are of one application, and alike but for their time: the first does not stand for the other."""
    c = Course(way)
    c.low("low", 4, 60_000)
    c.window(40_000)
    more = {"queue": "root.b"} | c.preemptor
    c.handle(AddApplication(ApplicationSpec(id="app", queue=more.pop("queue"))))
    limits = {"long": HOUR, "short": HOUR // 2}
    four = Resources({"vcore": 4_000})
    asks = (AskSpec(application="app", key=k, resources=four, time_limit_ms=ms, **more) for k, ms in limits.items())
    c.handle(AddAsks(tuple(asks)))
    assert (c.run()[1] or c.run(1_000)[1]) == ["low"]


@pytest.mark.parametrize("way", [way for way, (_, _, more) in WAYS.items() if "tags" not in more])
def test_it_goes_for_one_that_is_over_earlier_where_a_maximum_is_in_the_way(way: str) -> None:
    """What has to leave in time runs on a node that no window keeps free."""
    properties = {"resource.group": "true", "preemption.delay": "1s"}
    leaves = tuple(QueueSpec(name=name, properties={"preemption.delay": "1s"}, guaranteed=cores(4)) for name in "bc")
    p = QueueSpec(name="p", max=cores(4), queues=(QueueSpec(name="a"), *leaves), parent=True, properties=properties)
    c = Course(way, p, n1=4, n2=4)
    c.low("low", 4, 60_000, queue="root.p.a", where=only_on("n1"))
    c.window(40_000, "n2")
    queue = c.preemptor.get("queue", "root.b").replace("root", "root.p")
    assert c.hi(queue=queue, where=only_on("n2")) == []
    assert c.hi("short", time_limit_ms=HOUR // 2, queue=queue, where=only_on("n2")) == ["low"]


@pytest.mark.parametrize("way", [way for way, (_, _, more) in WAYS.items() if "tags" not in more])
def test_other_work_that_leaves_in_time_goes_instead_where_a_maximum_is_in_the_way(way: str) -> None:
    """Each runs on a node that no window keeps free."""
    properties = {"resource.group": "true", "preemption.delay": "1s"}
    leaves = tuple(QueueSpec(name=name, properties={"preemption.delay": "1s"}, guaranteed=cores(4)) for name in "bc")
    p = QueueSpec(name="p", max=cores(8), queues=(QueueSpec(name="a"), *leaves), parent=True, properties=properties)
    c = Course(way, p, n1=4, n2=4, n3=4)
    c.low("quick", 4, 0, queue="root.p.a", where=only_on("n3"))
    c.low("slow", 4, 60_000, queue="root.p.a", where=only_on("n1"))
    c.window(40_000, "n2")
    queue = c.preemptor.get("queue", "root.b").replace("root", "root.p")
    assert c.hi(queue=queue, where=only_on("n2")) == ["quick"]
