"""Protection by guarantee: what runs, or is kept, for a queue within its guarantee (`preemption.rule: both`)."""

from __future__ import annotations

import pytest
from priority_clusters import PriorityCluster, cores

from fairlead.core.model.decisions import Reserved
from fairlead.core.model.events import AddApplication, AddAsks, AddNode, Cause, Release, RemoveNode
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import ApplicationSpec, AskSpec, NodeSpec, QueueSpec, RetrySpec


def leaf(name: str, guaranteed: int = 0) -> QueueSpec:
    """A leaf with these cores for sure; 0: none."""
    return QueueSpec(name=name, guaranteed=cores(guaranteed) if guaranteed else None)


def test_three_asks_do_not_take_room_from_each_other_for_ever() -> None:
    """`small` is within the guarantee and goes before all; `other` has a higher priority than `large`, and this than
    `small`.
    """
    c = PriorityCluster(leaf("y", 4), leaf("c"), nodes={"n1": 3, "n2": 2}, rule="both")
    c.fill("used", 3, 9, "root.y")
    c.fill("v", 2, 0, "root.c")
    c.submit("small", 1, -1, "root.y")
    c.submit("large", 2, 3, "root.y")
    c.submit("other", 2, 4, "root.c")
    assert c.run() == ([], ["v"])
    assert c.nominated() == {"small": "n2"}
    assert sum(isinstance(d, Reserved) for d in c.decided) <= 3
    assert c.run() == ([], [])


def test_what_starts_may_make_other_work_of_its_queue_easier_to_stop() -> None:
    """While the queue is within its guarantee nothing is taken from it; in the same call it gets above it."""
    c = PriorityCluster(leaf("c", 3), leaf("x"), nodes={"n2": 3}, rule="both")
    c.handle(AddNode(NodeSpec(id="n1", capacity=Resources({"vcore": 1000, "memory": 1}))))

    def submit(key: str, priority: int, queue: str) -> None:
        c.handle(AddApplication(ApplicationSpec(id=key, queue=queue)))
        needs = Resources({"vcore": 1000, "memory": 1})
        c.handle(AddAsks((AskSpec(application=key, key=key, resources=needs, priority=priority),)))

    submit("v", 0, "root.c")
    assert c.run()[0] == ["v@n1"]
    submit("strong", 5, "root.x")
    submit("next", 4, "root.c")
    c.submit("many", 3, 0, "root.c")
    assert c.run() == (["many@n2"], ["v"])
    assert c.nominated() == {"strong": "n1"}


def test_late_work_counts_as_gone_for_a_guarantee() -> None:
    """It was told to stop: the queue must not lose more when it does in the end."""
    c = PriorityCluster(leaf("b", 2), leaf("c"), nodes={"n1": 2, "n2": 2}, rule="both")
    c.fill("late", 2, 0, "root.b")
    c.fill("stays", 2, 0, "root.b")
    c.submit("first", 2, 5, "root.c")
    stopped = c.run()[1]
    assert len(stopped) == 1
    c.run(200_000)
    c.submit("second", 2, 5, "root.c")
    assert c.run() == ([], [])


def test_a_placeholder_whose_time_is_over_counts_as_gone_for_a_guarantee() -> None:
    """It goes, though nobody counts on its room: what else the queue has is then within its guarantee."""
    c = PriorityCluster(leaf("b", 2), leaf("c"), nodes={"n1": 4}, rule="both")
    c.fill("stays", 2, 0, "root.b")
    whole, half = Resources({"vcore": 4000}), Resources({"vcore": 2000})
    gang = ApplicationSpec(id="gang", queue="root.b", placeholder_ask=whole, placeholder_timeout_ms=9)
    c.handle(AddApplication(gang))
    c.handle(AddAsks((AskSpec(application="gang", key="p", resources=half, placeholder=True, task_group="t"),)))
    assert c.run()[0] == ["p@n1"]
    assert c.run(10)[1] == ["p"]
    c.submit("strong", 2, 5, "root.c")
    assert c.run() == ([], [])
    c.gone("p", "gang", Cause.TIMEOUT)
    assert c.run() == (["strong@n1"], [])


def test_room_that_may_not_be_made_is_not_counted_twice() -> None:
    """Both other queues may lose nothing: it does not follow that half of the room is there already."""
    keeps = {"preemption.evictions.max": "0"}
    others = [QueueSpec(name=name, properties=keeps) for name in "ab"]
    c = PriorityCluster(leaf("o", 2), *others, nodes={"n1": 5}, rule="both")
    c.fill("own", 1, 0, "root.o")
    c.fill("first", 2, 0, "root.a")
    c.fill("second", 2, 1, "root.b")
    c.submit("urgent", 2, 5, "root.o")
    assert c.run() == ([], [])


def test_what_was_stopped_for_the_same_ask_before_may_be_stopped_again_once_something_new_comes() -> None:
    """Also where that changes nothing else: nobody looked in the meantime, because nothing had been found."""
    c = PriorityCluster(nodes={"n1": 3})
    c.fill("low", 3, 0, retry=RetrySpec(limit=3))
    c.submit("high", 3, 9, retry=RetrySpec(limit=3, backoff_ms=100))
    assert c.run() == ([], ["low"])
    c.gone("low")
    assert c.run() == (["high@n1"], [])
    c.handle(Release("high", "high", Cause.FINISHED, exit_code=1))
    assert c.run() == (["low#2@n1"], []), "while the other one is in its back-off"
    assert c.run(1_000) == ([], [])
    assert [d.key for d in c.loops()] == ["high#2"]
    c.submit("vast", 1_000, -9)
    assert c.run() == ([], ["low#2"])


@pytest.mark.parametrize(
    ("least", "needs", "expected"),
    [
        pytest.param(2, (1, 11), ["low3", "p"], id="with one of the low ones"),
        pytest.param(2, (2, 9), ["p"], id="alone where that is enough"),
        pytest.param(4, (1, 11), [], id="not below the guarantee"),
        pytest.param(2, (4, 1), ["low1", "low2", "low3"], id="not where lower work is enough"),
    ],
)
def test_work_above_what_a_guarantee_lets_go_is_stopped_with_some_of_it(
    least: int, needs: tuple[int, int], expected: list[str]
) -> None:
    """All of the low ones that may go leave no part of the guarantee to lose; `p` has the memory."""

    def size(count: int, memory: int) -> Resources:
        return Resources({"vcore": count * 1000, "memory": memory})

    def work(key: str, amount: Resources, priority: int, queue: str) -> None:
        c.handle(AddApplication(ApplicationSpec(id=key, queue=queue)))
        c.handle(AddAsks((AskSpec(application=key, key=key, resources=amount, priority=priority),)))
        c.run()

    c = PriorityCluster(leaf("a", least), leaf("b"), nodes={"x": 1}, rule="both")
    c.handle(RemoveNode("x"))
    c.handle(AddNode(NodeSpec(id="n1", capacity=size(7, 14))))
    work("p", size(2, 10), 2, "root.a")
    for i in range(4):
        work(f"low{i}", size(1, 1), 0, "root.a")
    work("hi", size(*needs), 9, "root.b")
    assert sorted(e.key for e in c.evictions()) == expected
