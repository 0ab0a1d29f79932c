"""Faults that a reading by events found: what changes nothing, what is reported, and values that make no sense."""

from __future__ import annotations

from dataclasses import replace

import pytest
from invariants.books import check_books
from small_clusters import (
    RULES,
    SOON,
    application,
    ask,
    cluster,
    cores,
    guaranteed,
    over_time,
    queue_file,
    restarted,
    started,
    stopped,
    submit,
)

from fairlead.core.model.conditions import Conditions
from fairlead.core.model.constraints import (
    GT,
    IN,
    NODE_NAME,
    VOLUME_LIMIT,
    AffinityTerm,
    Constraints,
    PreferredNodes,
    PreferredWork,
    Requirement,
)
from fairlead.core.model.decisions import (
    ApplicationRejected,
    AskRejected,
    ConfigurationRejected,
    NodeRejected,
    ReservationSwitched,
    Unreserved,
)
from fairlead.core.model.events import (
    AddApplication,
    AddAsks,
    AddNode,
    Cause,
    ChangeAsk,
    Configure,
    Event,
    LabelAsk,
    LabelNode,
    MoveApplication,
    Release,
    RemoveWindow,
    ReportImages,
    ReserveAsk,
    SetAtOnce,
    SetBudget,
    SetQuota,
    SetWindow,
)
from fairlead.core.model.resources import Limits, Resources
from fairlead.core.model.specs import (
    TAG_FOREIGN,
    ApplicationSpec,
    AskSpec,
    BudgetSpec,
    NodeSpec,
    PriorityClassSpec,
    QueueSpec,
    QuotaSpec,
    RetrySpec,
    WindowSpec,
)
from fairlead.scheduler import Scheduler

# -- what changes nothing -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(
    "change",
    [
        ChangeAsk("x", "x", cores(2), 1_000),
        ChangeAsk("x", "x", cores(2), 9_000),
        LabelAsk("x", "x", {"team": "red"}, images=("i",)),
        LabelAsk("x", "x", {"team": "blue"}),
    ],
)
def test_what_was_made_free_for_an_ask_stays_kept_when_it_gets_another_time_limit_or_label(
    rule: str, change: Event
) -> None:
    """Its place does not depend on them: it lost the node, and by guarantee more was stopped for it elsewhere."""
    s = cluster(guaranteed("a", 4, properties=SOON), QueueSpec(name="b"), rule=rule, nodes={"n1": 2, "n2": 2})
    for key in ("y1", "y2"):
        submit(s, key, 2, queue="root.b")
        s.schedule(0)
    submit(s, "x", 2, 10, priority=5, time_limit_ms=1_000, labels={"team": "red"})
    assert len(stopped(over_time(s, 10, 2_000))) == 1
    said = s.handle(change, 2_000)
    assert not [d for d in said if isinstance(d, Unreserved)]
    assert stopped(over_time(s, 2_000, 40_000)) == []
    assert restarted(s).dump() == s.dump()
    check_books(s)


# -- what is held ---------------------------------------------------------------------------------------------------


def test_what_is_held_counts_for_the_budgets_of_the_labels_that_it_has_now() -> None:
    """A search had counted it before: it went on counting for what it was called then."""
    s = cluster(nodes={"n1": 4})
    s.handle(SetBudget(BudgetSpec(name="web", selector=(Requirement("app", IN, ("web",)),), max_unavailable=1)), 0)
    application(s, "x")
    ask(s, "x", "runs", labels={"app": "web"})
    ask(s, "x", "held", labels={"app": "web"}, conditions=Conditions(held_by="ann"))
    s.schedule(0)
    assert left(s) == {"web": 0}
    s.handle(LabelAsk("x", "held", {"app": "db"}), 1)
    assert left(s) == left(restarted(s)) == {"web": 1}


def left(s: Scheduler) -> dict[str, int]:
    return s.cluster.admission.budgets.left(s.cluster.partitions["default"])


# -- what is reported -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("grows", [False, True])
def test_what_waits_and_is_reported_to_run_is_taken_over_whatever_quotas_say(grows: bool) -> None:
    """It runs, like what was never heard of; larger than it was, it was refused, and waited on in the books."""
    s = cluster(nodes={"n1": 4})
    s.handle(SetQuota(QuotaSpec(name="q", queue="root.a", resources=Limits({"vcore": 1000}))), 0)
    submit(s, "x", 1)
    said = ask(s, "x", "x", 1 + grows, node="n1")
    assert started(said) == ["x@n1"]
    assert s.schedule(0) == []
    check_books(s)


@pytest.mark.parametrize("at_once", [0, 1])
def test_what_is_held_and_is_reported_to_run_is_taken_over(at_once: int) -> None:
    """Whatever it was to wait for: it was refused, and was to start once more later."""
    s = cluster(nodes={"n1": 8})
    application(s, "x", at_once=at_once)
    ask(s, "x", "first")
    ask(s, "x", "held", conditions=Conditions(begin_ms=5_000), priority=3)
    said = ask(s, "x", "held", 2, 1, node="n1")
    assert started(said) == ["held@n1"]
    assert s.next_wakeup_ms() is None
    assert started(over_time(s, 1, 10_000)) == ["first@n1"]
    held = s.cluster.partitions["default"].applications["x"].asks["held"]
    assert (held.priority, held.items) == (3, cores(2).items)
    assert restarted(s).dump() == s.dump()
    check_books(s)


# -- orders ---------------------------------------------------------------------------------------------------------


def test_why_the_turn_of_an_application_that_is_moved_is_kept_no_longer() -> None:
    """It waits on: it was said that it does not."""
    s = cluster(nodes={"n1": 1})
    submit(s, "y", 1)
    submit(s, "x", 1, 1)
    s.schedule(1)
    s.handle(ReserveAsk("x", "x", on=True, who="ann"), 2)
    said = s.handle(MoveApplication("x", "root.b", who="ann"), 3)
    assert [d.why for d in said if isinstance(d, ReservationSwitched)] == ["it waits in another queue now"]
    check_books(s)


# -- windows --------------------------------------------------------------------------------------------------------


def test_a_window_is_for_the_work_of_its_queues_however_they_are_written() -> None:
    """Names of queues have no case anywhere: it kept away the work that it was for."""
    s = cluster(QueueSpec(name="Lab"), nodes={"n1": 1})
    submit(s, "x", 1, queue="root.Lab")
    s.handle(SetWindow(WindowSpec(name="w", starts_ms=1_000, length_ms=1_000, queues=("root.Lab",))), 0)
    assert started(s.schedule(0)) == ["x@n1"]


def test_nobody_wakes_up_for_a_window_that_was_removed() -> None:
    """Nor for the time at which something that waits would have begun to reach into it."""
    s = cluster(nodes={"n1": 1})
    submit(s, "y", 1)
    submit(s, "x", 1, time_limit_ms=300)
    s.schedule(0)
    for name, starts_ms in (("late", 5_000), ("early", 1_000)):
        s.handle(SetWindow(WindowSpec(name=name, starts_ms=starts_ms, length_ms=1_000)), 0)
    assert s.next_wakeup_ms() == 701
    s.handle(RemoveWindow("early"), 0)
    assert s.next_wakeup_ms() == 4_701
    s.handle(RemoveWindow("late"), 0)
    assert s.next_wakeup_ms() is None


# -- values that make no sense --------------------------------------------------------------------------------------


def test_a_port_is_the_same_however_it_is_written() -> None:
    """With a zero before it, it was another one: two works with one port came to one node."""
    s = cluster(nodes={"n1": 4})
    application(s, "x")
    for key, port in (("one", "TCP//8080"), ("two", "TCP/0.0.0.0/08080")):
        ask(s, "x", key, where=Constraints(ports=(port,)))
    assert started(s.schedule(0)) == ["one@n1"]
    check_books(s)


def test_numbers_of_thousands_of_digits_are_no_ports_and_no_limits() -> None:
    """Python refuses to read them: an ask, and a node, made the scheduler fail, in the middle of a call."""
    s = cluster(nodes={"n1": 4})
    application(s, "x")
    many = "9" * 5_000
    said = ask(s, "x", "bad", where=Constraints(ports=(f"TCP//{many}",)))
    assert [d.key for d in said if isinstance(d, AskRejected)] == ["bad"]
    s.handle(LabelNode("n1", {VOLUME_LIMIT + "disk": many}), 0)
    ask(s, "x", "k", where=Constraints(volumes=("v@disk",)))
    assert started(s.schedule(0)) == ["k@n1"]


def test_images_may_be_reported_with_any_size() -> None:
    """Beyond 64 bits the scheduler failed when something was placed; together beyond, a node was worth nothing."""
    s = cluster(nodes={"n1": 4, "n2": 4})
    application(s, "x")
    s.handle(ReportImages("n2", {"huge": 2**70, "i": 2**63, "j": 2**63}), 0)
    ask(s, "x", "one", images=("huge",))
    assert started(s.schedule(0)) == ["one@n2"]
    ask(s, "x", "two", images=("i", "j"))
    assert started(s.schedule(0)) == ["two@n2"]


@pytest.mark.parametrize("weight", [2**31, -(2**64)])
def test_a_wish_of_a_weight_that_no_number_of_a_row_holds_is_refused(weight: int) -> None:
    """The scheduler failed when it was placed, or counted it as something else."""
    s = cluster(nodes={"n1": 4, "n2": 4})
    application(s, "x")
    second = (Requirement(NODE_NAME, IN, ("n2",)),)
    nodes = Constraints(preferred_nodes=(PreferredNodes(weight, second),))
    work = Constraints(preferred_work=(PreferredWork(weight, AffinityTerm(second)),))
    said = [d for where in (nodes, work) for d in ask(s, "x", "k", where=where) if isinstance(d, AskRejected)]
    assert [d.reason.sentence().partition(":")[0] for d in said] == ["preferred_nodes", "preferred_work"]
    ask(s, "x", "k", where=Constraints(preferred_nodes=(PreferredNodes(2**31 - 1, second),)))
    assert started(s.schedule(0)) == ["k@n2"]


@pytest.mark.parametrize("amounts", [{"vcore": -4_000}, {"": 1}, {"vcore": 2**63}])
def test_foreign_work_of_amounts_that_make_no_sense_is_refused(amounts: dict[str, int]) -> None:
    """Below 0 it made room that the node does not have; what was reported of it before stays."""
    s = cluster(nodes={"n1": 4})
    foreign = AskSpec(application="", key="f", resources=cores(1), node="n1", tags={TAG_FOREIGN: "yes"})
    s.handle(AddAsks((foreign,)), 0)
    said = s.handle(AddAsks((replace(foreign, resources=Resources(amounts)),)), 0)
    assert [d.key for d in said if isinstance(d, AskRejected)] == ["f"]
    application(s, "x")
    for key in ("one", "two"):
        ask(s, "x", key, 3)
    assert started(s.schedule(0)) == ["one@n1"]
    check_books(s)


def test_what_has_no_name_is_refused() -> None:
    """Nothing could end it: an empty name is foreign work, all of an application, or no node."""
    s = cluster(nodes={"n1": 4})
    application(s, "x")
    said = [
        *s.handle(AddApplication(ApplicationSpec(id="", queue="root.a")), 0),
        *ask(s, "x", ""),
        *s.handle(AddNode(NodeSpec(id="", capacity=cores(1))), 0),
    ]
    assert [type(d) for d in said] == [ApplicationRejected, AskRejected, NodeRejected]
    assert s.schedule(0) == []
    part = s.cluster.partitions["default"]
    assert (list(part.applications), list(part.rejected), list(part.nodes.nodes)) == (["x"], [], ["n1"])


@pytest.mark.parametrize("size", [{"vcore": -2_000}, {"": 1}, {"vcore": 2**63}])
def test_a_gang_of_a_size_that_makes_no_sense_is_refused(size: dict[str, int]) -> None:
    """It is whole never: it held its placeholders until its time was over, then failed or started over."""
    s = cluster(nodes={"n1": 4})
    said = s.handle(
        AddApplication(ApplicationSpec(id="g", queue="root.a", placeholder_ask=Resources(size), gang_style="Hard")), 0
    )
    assert [type(d) for d in said] == [ApplicationRejected]
    assert list(s.cluster.partitions["default"].applications) == []


# -- what is declared -----------------------------------------------------------------------------------------------


def test_a_queue_file_of_two_global_defaults_is_refused() -> None:
    """There is one at most: the one that came first was it, and the other said that it was."""
    s = cluster(nodes={"n1": 1})
    two = tuple(PriorityClassSpec(name=name, value=1, global_default=True) for name in ("one", "two"))
    said = s.handle(Configure(queue_file(priority_classes=two)), 0)
    assert [type(d) for d in said] == [ConfigurationRejected]
    assert s.cluster.admission.classes.default is None


def test_images_that_are_reported_of_a_partition_that_is_not_there_are_refused() -> None:
    """As they are of a node that is not there, and as all else that is said of nodes: nothing was said."""
    s = cluster(nodes={"n1": 1})
    said = s.handle(ReportImages("n1", {"i": 1}, partition="lost"), 0)
    assert [(d.id, d.partition) for d in said if isinstance(d, NodeRejected)] == [("n1", "lost")]


@pytest.mark.parametrize(("says", "runs"), [("8", True), ("+8", True), ("1_0", False), ("9" * 30, False), ("٨", False)])
def test_what_is_above_a_number_is_what_kubernetes_reads_as_one(says: str, runs: bool) -> None:
    """`1_0` is a label and no number, and none is of more than 64 bits: work came to nodes that no manifest meant."""
    s = cluster(nodes={"n1": 4})
    s.handle(LabelNode("n1", {"size": says}), 0)
    application(s, "x")
    ask(s, "x", "k", where=Constraints(selector=(Requirement("size", GT, ("5",)),)))
    assert started(s.schedule(0)) == ["k@n1"] * runs


def test_a_further_attempt_takes_the_name_of_nothing_that_waits() -> None:
    """There were two of one name until its back-off was over: orders were about the wrong one, and with fewer at once
    the one that somebody had submitted was gone, and nobody was told.
    """
    s = cluster(nodes={"n1": 2})
    application(s, "x")
    ask(s, "x", "k", 2, retry=RetrySpec(limit=3, backoff_ms=5_000))
    s.schedule(0)
    for key in ("other", "k#2"):
        ask(s, "x", key, 2, 1)
    said = s.handle(Release("x", "k", Cause.INTERRUPTED), 2)
    assert [d.key for d in said if isinstance(d, AskRejected)] == ["k"]
    s.handle(SetAtOnce("x", 1), 3)
    assert s.why("x", "k#2") is not None
    assert started(s.schedule(3)) == ["other@n1"]
    s.handle(Release("x", "other"), 4)
    assert started(s.schedule(4)) == ["k#2@n1"]
    check_books(s)
