"""Young work: what its priority class promises it, whoever would have it stopped."""

from __future__ import annotations

import pytest
from priority_clusters import PriorityCluster, cores

from fairlead.core.model.events import AddApplication, AddAsks, SetPriorityClass
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import ApplicationSpec, AskSpec, PriorityClassSpec, QueueSpec
from fairlead.scheduler import Scheduler

MINUTE_MS = 60_000
SETUP = PriorityClassSpec(name="setup", value=1, min_runtime_ms=10 * MINUTE_MS)


def cluster(rule: str, queue_minutes: int = 0) -> PriorityCluster:
    least = {"preemption.min.runtime": f"{queue_minutes}m"} if queue_minutes else {}
    c = PriorityCluster(
        QueueSpec(name="a", guaranteed=cores(4), properties={"preemption.delay": "1s"}),
        QueueSpec(name="b", properties=least),
        rule=rule,
    )
    c.handle(SetPriorityClass(SETUP))
    return c


def stopped_after_ms(c: PriorityCluster, most_ms: int = 40 * MINUTE_MS) -> int | None:
    """How long from now until something is told to stop, looking only when the scheduler wants to be called."""
    begin = c.now_ms
    while c.now_ms - begin < most_ms and not c.evictions():
        due = c.s.next_wakeup_ms()
        if due is None:
            return None
        c.run(max(due - c.now_ms, 1))
    return c.now_ms - begin if c.evictions() else None


@pytest.mark.parametrize("rule", ["priority", "guarantee"])
def test_the_work_of_a_class_is_spared_until_it_has_run_its_time(rule: str) -> None:
    """By either rule, and nobody has to ask again (by guarantee one looks every 15 seconds)."""
    c = cluster(rule)
    c.fill("low", 4, queue="root.b", priority_class="setup")
    c.submit("urgent", 4, 9, "root.a")
    assert c.run() == ([], [])
    after = stopped_after_ms(c)
    assert after is not None
    assert 0 <= after - (10 * MINUTE_MS - 1) <= 15_000
    assert [e.key for e in c.evictions()] == ["low"]


@pytest.mark.parametrize("rule", ["priority", "guarantee"])
@pytest.mark.parametrize(("queue_minutes", "least"), [(5, 10), (20, 20)])
def test_the_longer_of_class_and_queue_counts(rule: str, queue_minutes: int, least: int) -> None:
    """Neither shortens what the other promises."""
    c = cluster(rule, queue_minutes)
    c.fill("low", 4, queue="root.b", priority_class="setup")
    c.submit("urgent", 4, 9, "root.a")
    c.run()
    after = stopped_after_ms(c)
    assert after is not None
    assert 0 <= after - (least * MINUTE_MS - 1) <= 15_000


def test_a_class_that_changes_later_protects_new_work_only() -> None:
    """What was promised when it was admitted stays; also over a restart."""
    c = cluster("priority")
    c.fill("low", 4, queue="root.b", priority_class="setup")
    c.handle(SetPriorityClass(PriorityClassSpec(name="setup", value=1)))
    c.s = Scheduler.load(c.s.dump())
    c.submit("urgent", 4, 9, "root.a")
    assert c.run(9 * MINUTE_MS) == ([], [])
    assert c.run(MINUTE_MS) == ([], ["low"])


def test_work_that_is_reported_as_running_is_protected_by_its_class() -> None:
    """From the time of the report on: for how long is said nowhere but in the class."""
    c = cluster("priority")
    c.handle(AddApplication(ApplicationSpec(id="low", queue="root.b")))
    four = Resources({"vcore": 4000})
    c.handle(
        AddAsks((AskSpec(application="low", key="low", resources=four, priority=1, priority_class="setup", node="n1"),))
    )
    c.submit("urgent", 4, 9, "root.a")
    assert c.run(9 * MINUTE_MS) == ([], [])
    assert c.run(MINUTE_MS) == ([], ["low"])
