"""The plan of a preemption by priority, by Kubernetes' rules: what is stopped, where, and in which order."""

from __future__ import annotations

import pytest
from preempting_course import preempting
from priority_clusters import PriorityCluster, cores, labelled, only_on

from fairlead.core.books.eviction_history import FRUITLESS_MAX, HOUR_MS
from fairlead.core.model.constraints import AffinityTerm, Constraints, Requirement
from fairlead.core.model.decisions import Evict, Reserved
from fairlead.core.model.events import Checkpoint, SetBudget
from fairlead.core.model.specs import BudgetSpec, QueueSpec
from fairlead.policy.preemption.plan import Search

# -- whom, and whether at all -------------------------------------------------------------------------------------


def test_never_goes_ahead_but_stops_nobody_and_can_be_stopped_itself() -> None:
    """Rule 5: `allow_preempt_other` false is `preemptionPolicy: Never`."""
    c = PriorityCluster()
    c.fill("low", 4, 1)
    c.submit("never", 4, 9, allow_preempt_other=False)
    c.submit("plain", 4, 5)
    assert c.run()[1] == ["low"]
    assert [e.on_behalf_of for e in c.evictions()] == ["plain"]
    assert c.nominated() == {"never": "n1"}, "the higher one takes the space that the other made"
    c.gone("low")
    assert c.run()[0] == ["never@n1"]
    c.submit("above", 4, 10)
    assert c.run()[1] == ["never"]


def test_nobody_is_stopped_while_some_node_has_room() -> None:
    """Rule 7."""
    c = PriorityCluster(nodes={"n1": 4, "n2": 2})
    c.fill("low", 4, 1)
    c.submit("urgent", 2, 9)
    assert c.run() == (["urgent@n2"], [])


def test_lower_work_goes_on_while_a_higher_one_cannot_be_placed() -> None:
    """Rule 6: no blocking by the head of the line."""
    c = PriorityCluster(nodes={"n1": 4})
    c.fill("mid", 3, 8)
    c.submit("large", 4, 8)
    c.submit("small", 1, 0)
    assert c.run() == (["small@n1"], [])


def test_a_node_on_which_another_filter_is_in_the_way_is_no_candidate() -> None:
    """Rule 8: not resources alone. The fuller node has the attribute that the ask needs."""
    c = PriorityCluster(nodes={})
    c.node("plain", 4)
    c.node("fast", 4, disk="ssd")
    c.submit("low1", 4, 1)
    c.submit("low2", 4, 2)
    c.run()
    where = Constraints(selector=(Requirement("disk", "In", ("ssd",)),))
    c.submit("urgent", 1, 9, where=where)
    _, stopped = c.run()
    assert len(stopped) == 1
    assert c.nominated() == {"urgent": "fast"}


def test_work_that_keeps_the_ask_away_goes_although_there_is_room() -> None:
    """Rule 8 the other way: anti-affinity to lower work on the only node."""
    c = PriorityCluster()
    c.fill("other", 1, 1)
    c.fill("loud", 1, 1, labels={"app": "loud"})
    where = Constraints(anti_affinity=(AffinityTerm(labelled("loud")),))
    c.submit("shy", 1, 9, where=where)
    assert c.run()[1] == ["loud"]
    c.gone("loud")
    assert c.run()[0] == ["shy@n1"]


def test_a_node_is_no_candidate_when_the_ask_needs_whom_it_would_stop() -> None:
    """Rule 13: affinity to the only work that could go."""
    c = PriorityCluster()
    c.fill("friend", 4, 1, labels={"app": "friend"})
    c.submit("urgent", 2, 9, where=Constraints(affinity=(AffinityTerm(labelled("friend")),)))
    assert c.run() == ([], [])


def test_quality_of_service_does_not_count() -> None:
    """Rule 14: what a victim asked for, little or much, is nothing to choose by: of equal ones the youngest goes."""
    c = PriorityCluster()
    c.fill("small", 1, 1)
    c.fill("large", 3, 1)
    c.submit("urgent", 1, 9)
    assert c.run()[1] == ["large"]


# -- which node ---------------------------------------------------------------------------------------------------


def _two_nodes(left: list[tuple[int, int]], right: list[tuple[int, int]]) -> PriorityCluster:
    """Two nodes of four cores with works of (cores, priority) on them, the left ones on n1."""
    c = PriorityCluster(nodes={"n1": 4})
    for i, (size, priority) in enumerate(left):
        assert c.fill(f"left{i}", size, priority) == "n1"
    c.node("n2", 4)
    for i, (size, priority) in enumerate(right):
        assert c.fill(f"right{i}", size, priority) == "n2"
    return c


@pytest.mark.parametrize(
    ("left", "right", "side"),
    [
        ([(4, 3)], [(1, 1), (1, 1), (2, 2)], "right"),
        ([(2, 4), (2, 3)], [(2, 4), (2, 1)], "right"),
        ([(2, 0), (2, 0)], [(4, 0)], "right"),
        ([(4, -5)], [(2, -5), (2, -5)], "left"),
        ([(4, 2)], [(4, 2)], "right"),
    ],
    ids=["lowest highest", "smallest sum", "fewest", "more victims below zero are not less", "latest start"],
)
def test_the_node_with_the_least_harm(left: list[tuple[int, int]], right: list[tuple[int, int]], side: str) -> None:
    """Rule 9, criterion by criterion."""
    c = _two_nodes(left, right)
    c.submit("urgent", 4, 9)
    _, stopped = c.run()
    assert {key.rstrip("0123456789") for key in stopped} == {side}


def test_the_node_id_decides_last() -> None:
    """Rule 9: everything else being equal."""
    c = PriorityCluster(nodes={"n2": 4, "n1": 4})
    c.submit("x", 4, 1)
    c.submit("y", 4, 1)
    c.run()
    c.submit("urgent", 4, 9)
    c.run()
    assert c.nominated() == {"urgent": "n1"}


def test_less_run_time_is_lost_where_work_was_saved() -> None:
    """The longer running one said that its work is saved: stopping it loses less."""
    c = _two_nodes([(4, 1)], [(4, 1)])
    c.now_ms = 10_000
    c.handle(Checkpoint("left0", "left0"))
    c.submit("urgent", 4, 9)
    assert c.run()[1] == ["left0"]


def test_many_nodes_give_the_same_answer_as_few() -> None:
    """Among 300 nodes the one whose victim is the lowest is found."""
    c = PriorityCluster(nodes={f"n{i:03}": 1 for i in range(300)})
    for i in range(300):
        c.submit(f"w{i}", 1, 1 if i == 217 else 2 + i % 3)
    c.run()
    c.submit("urgent", 1, 9)
    assert c.run()[1] == ["w217"]


# -- budgets ------------------------------------------------------------------------------------------------------


def test_a_budget_turns_the_choice_to_another_node() -> None:
    """Rule 12: respected where another choice exists, although a higher one goes for it."""
    c = _two_nodes([(4, 1)], [(4, 3)])
    c.handle(SetBudget(BudgetSpec(name="keep", selector=labelled("web"), min_available=1)))
    c.finished("left0")
    assert c.fill("web", 4, 1, labels={"app": "web"}) == "n1"
    c.submit("urgent", 4, 9)
    assert c.run()[1] == ["right0"]
    assert c.evictions()[0].violates == ()


def test_a_budget_is_violated_as_a_last_resort_and_that_is_said() -> None:
    """Rule 12: and recorded."""
    c = PriorityCluster(budgets=(BudgetSpec(name="keep", selector=labelled("web"), max_unavailable=0),))
    c.fill("web", 4, 1, labels={"app": "web"})
    c.submit("urgent", 4, 9)
    assert c.run()[1] == ["web"]
    assert c.evictions()[0].violates == ("keep",)


def test_on_one_node_those_within_the_budget_go_first() -> None:
    """Rule 12 with rule 8: whose budget would be violated is given back before a higher one is."""
    c = PriorityCluster(budgets=(BudgetSpec(name="keep", selector=labelled("web"), min_available=1),))
    c.fill("web", 2, 1, labels={"app": "web"})
    c.fill("batch", 2, 5)
    c.submit("urgent", 2, 9)
    assert c.run()[1] == ["batch"]


def test_what_a_budget_lets_go_are_the_lowest() -> None:
    """Not the highest, which would leave nothing of the budget for those below it."""
    c = PriorityCluster(budgets=(BudgetSpec(name="keep", selector=labelled("web"), max_unavailable=1),))
    c.fill("high", 2, 5, labels={"app": "web"})
    c.fill("low", 2, 1, labels={"app": "web"})
    c.submit("urgent", 2, 9)
    assert c.run()[1] == ["low"]
    assert c.evictions()[0].violates == ()


def test_what_leaves_already_counts_against_a_budget() -> None:
    """Two of three may go one after the other only: the second preemptor takes another one."""
    c = PriorityCluster(nodes={"n1": 1, "n2": 1, "n3": 1, "n4": 1})
    c.handle(SetBudget(BudgetSpec(name="keep", selector=labelled("web"), max_unavailable=1)))
    for i in range(3):
        c.fill(f"web{i}", 1, 1, labels={"app": "web"})
    c.fill("batch", 1, 5)
    c.submit("first", 1, 9)
    assert c.run()[1] == ["web2"]
    c.submit("second", 1, 9)
    assert c.run()[1] == ["batch"]


# -- what is said -------------------------------------------------------------------------------------------------


def test_each_preemption_says_who_for_whom_by_which_rule_and_where() -> None:
    """Rule 17: on both sides."""
    c = PriorityCluster()
    c.fill("low", 4, 1)
    c.submit("urgent", 4, 9)
    c.run()
    evicted = next(d for d in c.decided if isinstance(d, Evict))
    assert (evicted.key, evicted.on_behalf_of, evicted.rule, evicted.node) == ("low", "urgent", "priority", "n1")
    assert evicted.message == "makes room on n1 for urgent (priority 9 over 1)"
    assert [(d.key, d.node) for d in c.decided if isinstance(d, Reserved)] == [("urgent", "n1")]
    why = c.s.why("urgent", "urgent")
    assert why is not None
    assert why.sentence() == "space on n1 is held for it; waiting for low to stop"


# -- who is spared ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["priority", "guarantee"])
def test_young_work_is_spared_until_it_has_run_its_time(rule: str) -> None:
    """`preemption.min.runtime`: nobody has to ask again, it happens when the time has come."""
    queues = (
        QueueSpec(name="a", guaranteed=cores(4), properties={"preemption.delay": "1s"}),
        QueueSpec(name="b", properties={"preemption.min.runtime": "60s"}),
    )
    c = PriorityCluster(*queues, rule=rule)
    c.fill("low", 4, 1, "root.b")
    c.submit("urgent", 4, 9, "root.a")
    assert c.run(30_000) == ([], [])
    due = c.s.next_wakeup_ms()
    assert due is not None
    for _ in range(20):
        due = c.s.next_wakeup_ms()
        assert due is not None
        c.run(max(due - c.now_ms, 1))
        if c.evictions():
            break
    assert [e.key for e in c.evictions()] == ["low"]
    assert 60_000 <= c.now_ms <= 76_000


@pytest.mark.parametrize("rule", ["priority", "guarantee"])
def test_a_queue_loses_no_more_within_an_hour_than_it_may(rule: str) -> None:
    """`preemption.evictions.max`: rolling, counted at every queue that says so."""
    queues = (
        QueueSpec(name="a", guaranteed=cores(4), properties={"preemption.delay": "1s"}),
        QueueSpec(name="b", properties={"preemption.evictions.max": "2"}),
    )
    c = PriorityCluster(*queues, rule=rule)
    for i in range(4):
        c.fill(f"low{i}", 1, 1, "root.b")
    for i in range(4):
        c.submit(f"urgent{i}", 1, 9, "root.a")
    for _ in range(10):
        for key in c.run(20_000)[1]:
            c.gone(key)
    assert len(c.evictions()) == 2
    for _ in range(200):
        for key in c.run(20_000)[1]:
            c.gone(key)
    assert len(c.evictions()) == 4


def test_a_plan_that_needs_more_victims_than_a_queue_may_lose_is_none() -> None:
    """Two are needed and one may go: nobody does."""
    c = PriorityCluster(QueueSpec(name="a", properties={"preemption.evictions.max": "1"}), QueueSpec(name="b"))
    c.fill("low1", 2, 1)
    c.fill("low2", 2, 1)
    c.submit("urgent", 4, 9, "root.b")
    assert c.run() == ([], [])


@pytest.mark.parametrize("rule", ["priority", "both"])
def test_it_is_looked_at_again_when_the_queue_may_lose_as_many_as_it_takes(rule: str) -> None:
    """One is left within the hour and two are needed: by a timer, since nothing else happens."""
    a = QueueSpec(name="a", properties={"preemption.evictions.max": "2"})
    c = PriorityCluster(a, QueueSpec(name="b"), nodes={"n1": 4, "n2": 3}, rule=rule)
    c.fill("low0", 3, 1, where=only_on("n2"))
    c.fill("low1", 2, 1, where=only_on("n1"))
    c.fill("low2", 2, 1, where=only_on("n1"))
    c.submit("first", 3, 9, "root.b", where=only_on("n2"))
    assert c.run() == ([], ["low0"])
    again_ms = c.now_ms + HOUR_MS
    c.gone("low0")
    assert c.run() == (["first@n2"], [])
    c.submit("urgent", 4, 9, "root.b")
    assert c.run(20_000) == ([], [])
    while (due_ms := c.s.next_wakeup_ms() or 0) < again_ms and due_ms:
        assert c.run(due_ms - c.now_ms) == ([], [])
    assert due_ms == again_ms
    assert c.run(due_ms - c.now_ms) == ([], ["low2", "low1"])


def test_nobody_is_stopped_when_preemption_is_off() -> None:
    """`preemption.enabled: false`."""
    c = PriorityCluster(enabled=False)
    c.fill("low", 4, 1)
    c.submit("urgent", 4, 9)
    assert c.run() == ([], [])


def test_a_node_on_which_it_was_in_vain_is_looked_at_again_after_an_hour() -> None:
    """By a timer: nothing else happens."""
    c = PriorityCluster(nodes={"n1": 3})
    c.fill("low", 3, 0)
    c.submit("high", 3, 9)
    part = c.s.cluster.partitions["default"]
    for _ in range(FRUITLESS_MAX):
        part.disruption.note_fruitless(part.applications["high"].asks["high"], part.nodes.nodes["n1"], c.now_ms)
    until_ms = c.now_ms + HOUR_MS
    assert c.run() == ([], [])
    assert c.s.next_wakeup_ms() == until_ms
    assert c.run(HOUR_MS) == ([], ["low"])


@pytest.mark.parametrize("rule", ["guarantee", "evictions.max"])
def test_what_is_passed_over_goes_with_higher_work_of_another_queue(rule: str) -> None:
    """Lower work uses up what its queue may lose, and is too small also with the higher."""
    properties = {"preemption.evictions.max": "1"} if rule == "evictions.max" else {}
    a = QueueSpec(name="a", guaranteed=cores(4) if rule == "guarantee" else None, properties=properties)
    c = PriorityCluster(a, QueueSpec(name="b"), QueueSpec(name="c"), nodes={"n1": 8, "n2": 2}, rule="both")
    c.fill("far", 2, 9, where=only_on("n2"))
    c.fill("small", 2, 0)
    c.fill("large", 4, 1)
    c.fill("higher", 2, 5, "root.b")
    c.submit("urgent", 6, 7, "root.c")
    assert c.run() == ([], ["large", "higher"])


@pytest.mark.plain
@pytest.mark.parametrize("rule", ["priority", "both"])
def test_nodes_that_are_passed_over_have_no_better_plan(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = [preempting(seed, rule) for seed in range(8)]
    assert sum(isinstance(decision, Evict) for decided in found for decision in decided) > 20
    passed_over = []
    is_no_better = Search._is_no_better
    monkeypatch.setattr(Search, "_is_no_better", lambda *given: passed_over.append(is_no_better(*given)))
    assert found == [preempting(seed, rule) for seed in range(8)]
    assert sum(passed_over) > 20
