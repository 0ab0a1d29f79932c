"""Faults that a reading along one theme found: what stops work, for whom, and what becomes of it meanwhile."""

from __future__ import annotations

from typing import Any

import pytest
from invariants.books import check_books
from small_clusters import (
    SOON,
    cluster,
    cores,
    guaranteed,
    over_time,
    queue_file,
    started,
    stopped,
    submit,
)

from fairlead.core.model.constraints import NO_EXECUTE, NO_SCHEDULE, Requirement, Taint
from fairlead.core.model.events import (
    AddApplication,
    AddAsks,
    Cause,
    ChangeAsk,
    Configure,
    DrainNode,
    Event,
    LabelNode,
    Leaving,
    MoveApplication,
    Nominated,
    Release,
    RemoveApplication,
    RemoveNode,
    SetBudget,
    UpdateNode,
)
from fairlead.core.model.resources import Limits
from fairlead.core.model.specs import (
    TAG_REQUIRED_NODE,
    ApplicationSpec,
    AskSpec,
    BudgetSpec,
    ClusterSpec,
    QueueSpec,
)
from fairlead.policy.order.victim_index import Stoppable
from fairlead.policy.preemption.plan import Plan, Search
from fairlead.scheduler import Scheduler


def nominated(s: Scheduler) -> dict[str, str]:
    return {ask.key: n.node.id for ask, n in s.cluster.partitions["default"].nominations.of.items()}


# -- what is kept is lost -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "lost",
    [
        DrainNode("n1"),
        RemoveNode("n1"),
        ChangeAsk("w", "w", cores(3)),
        LabelNode("n1", {}, (Taint("gpu", "", NO_SCHEDULE),)),
    ],
)
def test_by_guarantee_work_may_be_stopped_again_for_an_ask_that_lost_what_was_kept_for_it(lost: Event) -> None:
    """It was nominated by report, after a restart of the controller."""
    s = cluster(guaranteed("a", 4, properties=SOON), QueueSpec(name="b"), nodes={"n1": 4, "n2": 4}, rule="guarantee")
    submit(s, "v1", 4, queue="root.b", node="n1")
    submit(s, "v2", 4, queue="root.b", node="n2")
    submit(s, "w", 4)
    s.handle(Leaving("v1", "v1", Cause.PREEMPTED_BY_SCHEDULER), 1)
    s.handle(Nominated("w", "w", "n1"), 1)
    assert nominated(s) == {"w": "n1"}
    s.handle(lost, 2)
    s.handle(DrainNode("n1"), 2)
    check_books(s)
    s.handle(Release("v1", "v1", Cause.PREEMPTED_BY_SCHEDULER), 3)
    assert stopped(over_time(s, 3, 60_000)) == ["v2"]


def test_by_guarantee_an_ask_that_was_nominated_by_report_looks_elsewhere_when_its_victim_is_overdue() -> None:
    s = cluster(guaranteed("a", 4, properties=SOON), QueueSpec(name="b"), nodes={"n1": 4, "n2": 4}, rule="guarantee")
    submit(s, "v1", 4, queue="root.b", node="n1")
    submit(s, "v2", 4, queue="root.b", node="n2")
    submit(s, "w", 4)
    s.handle(Leaving("v1", "v1", Cause.PREEMPTED_BY_SCHEDULER), 1)
    s.handle(Nominated("w", "w", "n1"), 1)
    assert stopped(over_time(s, 1, 89_999)) == []
    assert stopped(over_time(s, 90_001, 200_000)) == ["v2"]
    check_books(s)
    s.handle(Release("v2", "v2", Cause.PREEMPTED_BY_SCHEDULER), 200_001)
    assert started(s.schedule(200_001)) == ["w@n2"]


@pytest.mark.parametrize("rule", ["priority", "both"])
def test_an_ask_whose_node_shrinks_below_it_looks_anew_at_once(rule: str) -> None:
    """Not when its victims have left: the node can hold it no more."""
    s = cluster(nodes={"n1": 4, "n2": 4}, rule=rule)
    submit(s, "v1", 4, queue="root.b", node="n1")
    submit(s, "v2", 4, queue="root.b", node="n2", priority=1)
    submit(s, "high", 4, priority=9)
    assert stopped(s.schedule(0)) == ["v1"]
    s.handle(UpdateNode("n1", cores(3)), 1)
    assert stopped(s.schedule(1)) == ["v2"]
    assert nominated(s) == {"high": "n2"}
    check_books(s)


@pytest.mark.parametrize("rule", ["guarantee", "priority", "both"])
def test_what_requires_another_node_is_not_nominated_by_report(rule: str) -> None:
    s = cluster(nodes={"n1": 4, "n2": 4}, rule=rule)
    submit(s, "leaves", 4, queue="root.b", node="n2")
    submit(s, "stays", 4, queue="root.b", node="n1", priority=9)
    submit(s, "daemon", 2, priority=5, tags={TAG_REQUIRED_NODE: "n1"})
    s.handle(Leaving("leaves", "leaves", Cause.PREEMPTED_BY_SCHEDULER), 1)
    s.handle(Nominated("daemon", "daemon", "n2"), 1)
    assert nominated(s) == {}
    s.handle(Release("leaves", "leaves", Cause.PREEMPTED_BY_SCHEDULER), 2)
    assert started(s.schedule(2)) == []


# -- the rule changes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["priority", "both"])
def test_nothing_more_is_stopped_for_an_ask_when_the_rule_changes_while_its_victims_leave(rule: str) -> None:
    queues = guaranteed("a", 4, properties=SOON), QueueSpec(name="b")
    s = cluster(*queues, nodes={"n1": 4, "n2": 4}, rule="guarantee")
    submit(s, "v1", 4, queue="root.b", node="n1")
    submit(s, "v2", 4, queue="root.b", node="n2")
    submit(s, "w", 4, priority=5)
    assert stopped(over_time(s, 0, 1_000)) == ["v1"]
    s.handle(Configure(queue_file(*queues, rule=rule)), 1_001)
    check_books(s)
    assert stopped(over_time(s, 1_001, 2_000)) == []
    assert nominated(s) == {"w": "n1"}
    s.handle(Release("v1", "v1", Cause.PREEMPTED_BY_SCHEDULER), 2_001)
    assert started(s.schedule(2_001)) == ["w@n1"]
    check_books(s)


def started_within_a_guarantee() -> Scheduler:
    """By both: low work of `lab` started within its guarantee while higher work of `rest` waited."""
    s = cluster(guaranteed("lab", 2), QueueSpec(name="rest"), nodes={"n1": 2}, rule="both")
    submit(s, "first", 2, 0, "root.rest", priority=5)
    s.schedule(0)
    submit(s, "high", 2, 1, "root.rest", priority=5)
    submit(s, "low", 2, 1, "root.lab")
    s.schedule(1)
    s.handle(Release("first", "first", Cause.PREEMPTED_BY_SCHEDULER), 2)
    assert started(s.schedule(2)) == ["low@n1"]
    return s


@pytest.mark.parametrize(
    "file",
    [
        queue_file(guaranteed("lab", 2), QueueSpec(name="rest"), rule="priority"),
        queue_file(QueueSpec(name="lab"), QueueSpec(name="rest"), rule="both"),
        queue_file(QueueSpec(name="lab"), guaranteed("rest", 1), rule="both"),
    ],
)
def test_what_started_within_a_guarantee_that_counts_no_longer_is_not_spared_for_it(file: ClusterSpec) -> None:
    s = started_within_a_guarantee()
    s.handle(Configure(file), 3)
    assert stopped(s.schedule(3)) == ["low"]


def test_what_started_within_a_guarantee_and_was_moved_out_of_it_is_not_spared_for_it() -> None:
    s = started_within_a_guarantee()
    s.handle(MoveApplication("low", "root.rest"), 3)
    assert stopped(s.schedule(3)) == ["low"]


# -- so many evictions within the hour ------------------------------------------------------------------------------


def test_where_one_queue_can_lose_no_more_others_make_room_though_they_too_can_lose_only_so_much() -> None:
    once = {"preemption.evictions.max": "1"}
    capped = (QueueSpec(name=name, properties=once) for name in ("b", "c"))
    s = cluster(QueueSpec(name="a"), *capped, QueueSpec(name="d"), nodes={"n1": 6}, rule="priority")
    for priority, queue in enumerate("bcd"):
        for number in (1, 2):
            submit(s, f"{queue}{number}", 1, queue=f"root.{queue}", priority=priority)
    s.schedule(0)
    submit(s, "high", 3, 1, priority=9)
    assert stopped(s.schedule(1)) == ["b2", "c2", "d2"]


def test_under_a_maximum_work_elsewhere_makes_room_where_the_lowest_can_lose_no_more() -> None:
    once = {"preemption.evictions.max": "1"}
    leaves = (QueueSpec(name="a"), QueueSpec(name="b", properties=once), QueueSpec(name="c"))
    full = QueueSpec(name="p", parent=True, max=Limits({"vcore": 3_000}), queues=leaves)
    s = cluster(full, nodes={"n1": 3, "n2": 3}, rule="priority")
    for key, priority in (("b1", 1), ("b2", 1), ("c1", 2)):
        submit(s, key, 1, queue=f"root.p.{key[0]}", priority=priority, node="n1")
    submit(s, "high", 2, 1, "root.p.a", priority=9, tags={TAG_REQUIRED_NODE: "n2"})
    assert stopped(s.schedule(1)) == ["b2", "c1"]


def test_by_guarantee_of_a_queue_that_can_lose_only_so_much_that_is_stopped_which_makes_room() -> None:
    once = {"preemption.evictions.max": "1"}
    queues = guaranteed("a", 4, properties=SOON), QueueSpec(name="b", properties=once)
    s = cluster(*queues, nodes={"n1": 2, "n2": 4}, rule="guarantee")
    submit(s, "large", 4, 0, "root.b", node="n2")
    submit(s, "small", 1, 1, "root.b", node="n1")
    submit(s, "newest", 1, 2, "root.b", node="n1")
    submit(s, "w", 4, 3)
    assert stopped(over_time(s, 3, 2_000)) == ["large"]


# -- budgets --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("searched_before", [True, False])
def test_what_is_told_to_stop_for_a_taint_counts_for_a_budget_that_the_place_counts(searched_before: bool) -> None:
    """One more may stop, and that one is gone: what is not in the budget makes room, though it stands higher."""
    s = cluster(nodes={"n1": 2, "n2": 2, "n3": 2}, rule="priority")
    for node, priority, labels in (("n1", 0, {"app": "db"}), ("n2", 0, {"app": "db"}), ("n3", 1, {})):
        submit(s, f"on-{node}", 2, queue="root.b", node=node, priority=priority, labels=labels)
    database = (Requirement("app", "In", ("db",)),)
    s.handle(SetBudget(BudgetSpec(name="db", selector=database, min_available=1, left=1)), 0)
    if searched_before:
        s.cluster.admission.budgets.left(s.cluster.partitions["default"])
    assert stopped(s.handle(LabelNode("n1", {}, (Taint("sick", "", NO_EXECUTE),)), 1)) == ["on-n1"]
    submit(s, "high", 2, 2, priority=9)
    assert stopped(s.schedule(2)) == ["on-n3"]


# -- guarantees -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cause", [Cause.STOPPED_BY_RM, Cause.TIMEOUT, Cause.PREEMPTED_BY_SCHEDULER])
def test_what_leaves_counts_as_gone_from_what_its_queue_is_guaranteed_whoever_told_it_to(cause: Cause) -> None:
    """A pod that its owner deleted, for one."""
    s = cluster(guaranteed("lab", 2), QueueSpec(name="rest"), nodes={"n1": 4}, rule="both")
    submit(s, "deleted", 2, queue="root.lab", node="n1")
    submit(s, "stays", 2, queue="root.lab", node="n1")
    s.handle(Leaving("deleted", "deleted", cause), 1)
    check_books(s)
    submit(s, "high", 2, 2, "root.rest", priority=9)
    assert stopped(Scheduler.load(s.dump()).schedule(2)) == []
    assert stopped(s.schedule(2)) == []


def test_a_placeholder_that_goes_for_nothing_counts_as_gone_from_what_its_queue_is_guaranteed() -> None:
    s = cluster(guaranteed("lab", 2), QueueSpec(name="rest"), nodes={"n1": 4}, rule="both")
    s.handle(AddApplication(ApplicationSpec(id="g", queue="root.lab")), 0)
    of_gang: dict[str, Any] = {"application": "g", "resources": cores(2), "task_group": "t"}
    s.handle(AddAsks((AskSpec(key="p", placeholder=True, **of_gang),)), 0)
    assert started(s.schedule(0)) == ["p@n1"]
    s.handle(AddAsks((AskSpec(key="real", **of_gang),)), 1)
    assert stopped(s.schedule(1)) == ["p"]
    check_books(s)
    submit(s, "stays", 2, 1, "root.lab", node="n1")
    s.handle(Release("g", "real"), 2)
    check_books(s)
    submit(s, "high", 2, 2, "root.rest", priority=9)
    assert stopped(Scheduler.load(s.dump()).schedule(2)) == []
    assert stopped(s.schedule(2)) == []
    s.handle(Release("g", "p", Cause.PLACEHOLDER_REPLACED), 3)
    check_books(s)


def test_by_guarantee_no_more_is_stopped_for_two_asks_than_their_queue_is_guaranteed() -> None:
    """Also while what was stopped for the first has not left."""
    s = cluster(guaranteed("a", 4, properties=SOON), QueueSpec(name="b"), nodes={"n1": 4, "n2": 4}, rule="guarantee")
    submit(s, "v1", 4, queue="root.b", node="n1")
    submit(s, "v2", 4, queue="root.b", node="n2")
    submit(s, "first", 4)
    submit(s, "second", 4)
    assert stopped(over_time(s, 0, 60_000)) == ["v1"]
    s.handle(RemoveApplication("first"), 60_001)
    s.handle(Release("v1", "v1", Cause.PREEMPTED_BY_SCHEDULER), 60_001)
    assert started(s.schedule(60_001)) == ["second@n1"]
    check_books(s)


# -- work that has one place to run ---------------------------------------------------------------------------------


def two_on_one_node(size: int, left: int) -> Scheduler:
    """In the walk: two works of so many cores on n1, and `one`, which needs two there, has the newer one stopped."""
    s = cluster(nodes={"n1": 2 * size + left, "n2": 8}, rule="guarantee")
    submit(s, "older", size, 0, "root.b", node="n1")
    submit(s, "newer", size, 1, "root.b", node="n1")
    submit(s, "one", 2, 2, tags={TAG_REQUIRED_NODE: "n1"})
    assert stopped(s.schedule(2)) == ["newer"]
    return s


def test_what_leaves_a_node_for_one_that_requires_it_is_room_for_a_second_one_too() -> None:
    s = two_on_one_node(4, 0)
    submit(s, "two", 2, 3, tags={TAG_REQUIRED_NODE: "n1"})
    assert stopped(s.schedule(3)) == []
    check_books(s)
    s.handle(Release("newer", "newer", Cause.PREEMPTED_BY_SCHEDULER), 4)
    assert started(s.schedule(4)) == ["one@n1", "two@n1"]


def test_for_a_second_one_that_requires_the_node_more_is_stopped_where_the_first_needs_what_leaves() -> None:
    s = two_on_one_node(3, 0)
    submit(s, "two", 2, 3, tags={TAG_REQUIRED_NODE: "n1"})
    assert stopped(s.schedule(3)) == ["older"]


def test_what_requires_a_node_has_other_work_stopped_there_when_what_was_told_to_is_overdue() -> None:
    s = two_on_one_node(2, 0)
    assert stopped(over_time(s, 3, 90_001)) == []
    assert stopped(over_time(s, 90_002, 100_000)) == ["older"]
    check_books(s)
    again = Scheduler.load(s.dump())
    assert over_time(again, 100_000, 8_000_000) == over_time(s, 100_000, 8_000_000)
    assert again.dump() == s.dump()


def test_a_second_one_that_counted_on_what_leaves_has_more_stopped_when_that_is_overdue() -> None:
    s = two_on_one_node(4, 0)
    submit(s, "two", 2, 3, tags={TAG_REQUIRED_NODE: "n1"})
    assert stopped(over_time(s, 3, 90_001)) == []
    assert stopped(over_time(s, 90_002, 100_000)) == ["older"]
    check_books(s)


def test_what_is_kept_on_a_node_is_taken_by_what_requires_it_only_where_there_is_room_now() -> None:
    s = cluster(guaranteed("a", 4, properties=SOON), QueueSpec(name="b"), nodes={"n1": 8, "n2": 8}, rule="guarantee")
    submit(s, "leaves", 8, 0, "root.b", node="n1", priority=9)
    submit(s, "other", 8, 0, "root.b", node="n2", priority=9)
    submit(s, "w", 4, 0)
    s.handle(Leaving("leaves", "leaves", Cause.PREEMPTED_BY_SCHEDULER), 0)
    s.handle(Nominated("w", "w", "n1"), 0)
    submit(s, "one", 6, 1, "root.b", priority=5, tags={TAG_REQUIRED_NODE: "n1"})
    assert started(s.schedule(1)) == []
    check_books(s)
    s.handle(Release("leaves", "leaves", Cause.PREEMPTED_BY_SCHEDULER), 2)
    assert started(s.schedule(2)) == ["one@n1"]
    check_books(s)


# -- cost -----------------------------------------------------------------------------------------------------------


@pytest.mark.plain
def test_what_was_in_vain_for_one_ask_does_not_have_each_of_the_others_searched_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    searched: list[str] = []
    best = Search.best

    def counted(self: Search, table: Stoppable) -> Plan | None:
        searched.append(self.ask.key)
        return best(self, table)

    monkeypatch.setattr(Search, "best", counted)
    spared = {"preemption.min.runtime": "1h"}
    s = cluster(QueueSpec(name="a"), QueueSpec(name="b", properties=spared), nodes={"n1": 4}, rule="priority")
    submit(s, "runs", 4, queue="root.b", node="n1")
    for number in range(20):
        submit(s, f"w{number}", 3, priority=2)
    part = s.cluster.partitions["default"]
    other = part.applications["runs"].asks["runs"]
    for time_ms in range(2):
        part.disruption.note_fruitless(other, part.nodes.nodes["n1"], time_ms)
    assert stopped(s.schedule(1)) == []
    assert searched == ["w0"]
    assert part.disruption.has_history(other)
    again = Scheduler.load(s.dump()).cluster.partitions["default"]
    assert again.disruption.has_history(again.applications["runs"].asks["runs"])
    assert not again.disruption.has_history(again.applications["w0"].asks["w0"])
    s.handle(UpdateNode("n1", cores(4)), 2)
    assert part.disruption.barred_until(other, part.nodes.nodes["n1"], 3_700_000) is None
