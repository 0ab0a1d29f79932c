"""Candidates by priority: which running work may be stopped for an ask, and what is given back first."""

from __future__ import annotations

import pytest
from priority_clusters import PriorityCluster, cores

from fairlead.core.model.events import AddApplication, AddAsks, Checkpoint
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import ApplicationSpec, AskSpec, QueueSpec


def test_what_started_since_the_last_event_is_nobodys_victim() -> None:
    """With the next event it is one."""
    c = PriorityCluster()
    c.submit("low", 4)
    c.submit("high", 5, 9)
    c.run()
    c.handle(Checkpoint("low", "low"))
    c.submit("urgent", 4, 9)
    assert c.run()[1] == ["low"]


def test_the_important_is_given_back_before_the_lower() -> None:
    """Two would be enough: the two lowest go."""
    c = PriorityCluster(nodes={"n1": 4})
    for key, priority in (("p3", 3), ("p1", 1), ("p4", 4), ("p2", 2)):
        c.fill(key, 1, priority)
    c.submit("urgent", 2, 9)
    assert sorted(c.run()[1]) == ["p1", "p2"]


@pytest.mark.parametrize("unwilling", [{"allow_preempt_self": False}, {"originator": True}])
def test_of_equals_what_would_rather_not_is_given_back_first(unwilling: dict[str, bool]) -> None:
    c = PriorityCluster(nodes={"n1": 2})
    c.fill("unwilling", 1, 1, **unwilling)
    c.fill("willing", 1, 1)
    c.submit("urgent", 1, 9)
    assert c.run()[1] == ["willing"]


def test_of_equals_that_with_less_run_time_to_lose_goes() -> None:
    """What said that its work is saved loses what came after."""
    c = PriorityCluster(nodes={"n1": 2})
    c.fill("older", 1, 1)
    c.now_ms += 60_000
    c.fill("younger", 1, 1)
    c.now_ms += 60_000
    c.submit("one", 1, 9)
    assert c.run()[1] == ["younger"]
    c.handle(Checkpoint("older", "older"))
    c.submit("two", 1, 9)
    assert c.run()[1] == ["older"]


def test_under_a_full_maximum_work_on_any_node_makes_room() -> None:
    """No more than is needed, and on the node itself nothing has to go."""
    c = PriorityCluster(QueueSpec(name="a", max=cores(3)), nodes={"n1": 3, "n2": 3})
    c.fill("one", 2, 1)
    c.fill("two", 1, 2)
    c.submit("urgent", 1, 9)
    assert c.run()[1] == ["one"]


@pytest.mark.parametrize("rule", ["priority", "both"])
def test_work_within_a_guarantee_of_another_queue_stays_where_guarantees_count(rule: str) -> None:
    queues = QueueSpec(name="a"), QueueSpec(name="b", guaranteed=cores(4))
    c = PriorityCluster(*queues, rule=rule)
    c.fill("low", 4, 0, "root.b")
    c.submit("urgent", 4, 9)
    assert c.run()[1] == ([] if rule == "both" else ["low"])


def test_what_started_within_a_guarantee_stays_for_what_waited_then() -> None:
    """Others take its queue above the guarantee later: that is no reason to stop it."""
    queues = QueueSpec(name="a", guaranteed=cores(2)), QueueSpec(name="b", guaranteed=cores(2))
    c = PriorityCluster(*queues, rule="both", nodes={"n1": 2})
    c.submit("first", 2, 5, "root.b")
    c.submit("waits", 2, 0, "root.a")
    assert c.run()[0] == ["first@n1"]
    c.node("n2", 1)
    c.fill("more", 1, 0, "root.b")
    assert c.run() == ([], [])


def test_the_guarantee_of_its_own_queue_is_in_no_asks_way() -> None:
    """It is within it then: others of its queue give it their place."""
    c = PriorityCluster(QueueSpec(name="a", guaranteed=cores(4)), rule="both")
    c.fill("low", 2, 0)
    c.fill("lower", 2, -1)
    c.submit("urgent", 2, 9)
    assert c.run() == ([], ["lower"])


def test_idle_work_is_within_no_guarantee() -> None:
    """Not even that of its own queue: with other low work it makes room."""
    c = PriorityCluster(QueueSpec(name="a"), QueueSpec(name="b", guaranteed=cores(4)), rule="both")
    c.fill("low", 2, 0)
    c.fill("idle", 2, 0, "root.b", idle=True)
    c.submit("urgent", 4, 9)
    assert sorted(c.run()[1]) == ["idle", "low"]


def gang(c: PriorityCluster, name: str, *priorities: int) -> None:
    """Placeholders of one core each."""
    whole = Resources({"vcore": 1_000 * len(priorities)})
    c.handle(AddApplication(ApplicationSpec(id=name, queue="root.a", placeholder_ask=whole)))
    for i, priority in enumerate(priorities):
        placeholder(c, name, f"{name}{i}", priority)


def placeholder(c: PriorityCluster, name: str, key: str, priority: int) -> None:
    one = Resources({"vcore": 1_000})
    ask = AskSpec(application=name, key=key, resources=one, priority=priority, placeholder=True, task_group="workers")
    c.handle(AddAsks((ask,)))


@pytest.mark.parametrize("rule", ["priority", "both"])
def test_a_placeholder_has_none_of_its_own_gang_stopped(rule: str) -> None:
    """Each needs the other; that of another gang may have them stopped, though the first is higher."""
    c = PriorityCluster(nodes={"n1": 2}, rule=rule)
    gang(c, "low", 0, 0)
    c.run()
    placeholder(c, "low", "late", 7)
    assert c.run() == ([], [])
    gang(c, "high", 5)
    assert sorted(c.run()[1]) == ["low0", "low1"], "the late one is above it, and takes what is left first"
