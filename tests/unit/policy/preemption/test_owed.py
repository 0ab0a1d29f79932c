"""What preemption does not do yet, and should: each fails for the reason that is given, and passes once it does."""

from __future__ import annotations

import pytest
from priority_clusters import PriorityCluster
from small_clusters import RULES, cluster, over_time, stopped, submit

from fairlead.core.model.constraints import Constraints
from fairlead.core.model.events import AddApplication, AddAsks, AddNode, RemoveNode, SetWindow
from fairlead.core.model.resources import Limits, Resources
from fairlead.core.model.specs import ApplicationSpec, AskSpec, NodeSpec, QueueSpec, WindowSpec

PORT = Constraints(ports=("TCP/0.0.0.0/8080",))
HOUR = 3_600_000


@pytest.mark.xfail(reason="of idle work the cheapest is chosen by amounts alone")
@pytest.mark.parametrize("rule", RULES)
def test_idle_work_that_has_the_port_goes_though_other_work_is_cheaper(rule: str) -> None:
    """Where the cheapest leaves the port in use, what has it goes."""
    s = cluster(rule=rule, nodes={"n1": 4})
    for at, (key, where) in enumerate((("web", PORT), ("plain", Constraints()))):
        submit(s, key, 2, at, idle=True, where=where)
        s.schedule(at)
    submit(s, "mine", 2, 3, queue="root.b", where=PORT)
    assert stopped(over_time(s, 3, 600_000)) == ["web"]


@pytest.mark.xfail(reason="what a guarantee keeps after lower work goes is tried alone, not with some of that")
def test_work_above_what_a_guarantee_lets_go_is_stopped_with_some_of_it() -> None:
    """Of 6 cores 4 may go: `p` has the memory, and together with one of the low ones it makes room."""

    def size(count: int, memory: int) -> Resources:
        return Resources({"vcore": count * 1000, "memory": memory})

    def work(key: str, needs: Resources, priority: int, queue: str) -> None:
        c.handle(AddApplication(ApplicationSpec(id=key, queue=queue)))
        c.handle(AddAsks((AskSpec(application=key, key=key, resources=needs, priority=priority),)))

    queues = QueueSpec(name="a", guaranteed=Limits({"vcore": 2000})), QueueSpec(name="b")
    c = PriorityCluster(*queues, nodes={"x": 1}, rule="both")
    c.handle(RemoveNode("x"))
    c.handle(AddNode(NodeSpec(id="n1", capacity=size(8, 14))))
    work("p", size(2, 10), 2, "root.a")
    c.run()
    for i in range(4):
        work(f"low{i}", size(1, 1), 0, "root.a")
        c.run()
    work("hi", size(1, 11), 9, "root.b")
    assert "p" in c.run()[1]


@pytest.mark.xfail(reason="whether a window is ahead is asked of now, not of when the victims will be gone")
@pytest.mark.parametrize("rule", ["priority", "both"])
def test_nothing_is_stopped_for_what_would_reach_into_a_window_when_its_victims_are_gone(rule: str) -> None:
    """It would be over in time if it started within 30 s; the victim has 60."""
    c = PriorityCluster(nodes={"n1": 4}, rule=rule)
    c.fill("low", 4, 0, grace_ms=60_000)
    c.handle(SetWindow(WindowSpec(name="w", starts_ms=HOUR + 30_000, length_ms=HOUR)))
    c.submit("hi", 4, 9, time_limit_ms=HOUR)
    assert c.run() == ([], [])
