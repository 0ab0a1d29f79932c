"""Faults that a reading of the whole of `core` and `policy` found: rare turns of events that no random course took."""

from __future__ import annotations

from typing import Any

import pytest
from invariants.books import check_books

from fairlead.core.model.conditions import MET, Conditions
from fairlead.core.model.constraints import HOSTNAME, Constraints, Requirement
from fairlead.core.model.decisions import (
    Allocated,
    AskRejected,
    Decision,
    Evict,
    LoopBroken,
    MoveRejected,
    NodeRejected,
    Released,
    Unreserved,
)
from fairlead.core.model.events import (
    AddApplication,
    AddAsks,
    AddNode,
    Cause,
    ChangeAsk,
    Configure,
    DrainNode,
    Event,
    LabelAsk,
    Leaving,
    MoveApplication,
    Nominated,
    Release,
    RemoveApplication,
    ReserveAsk,
    SetConditions,
    SetPriority,
    SetPriorityClass,
    SetWindow,
    UndrainNode,
    UpdateNode,
)
from fairlead.core.model.resources import Limits, Resources
from fairlead.core.model.specs import (
    TAG_FOREIGN,
    TAG_REQUIRED_NODE,
    ApplicationSpec,
    AskSpec,
    ClusterSpec,
    LimitSpec,
    NodeSpec,
    PartitionSpec,
    PreemptionSpec,
    PriorityClassSpec,
    QueueSpec,
    QuotaSpec,
    WindowSpec,
)
from fairlead.scheduler import Scheduler

HOUR_MS = 3_600_000
LEAVES = (QueueSpec(name="a"), QueueSpec(name="b"))


def cores(count: int) -> Resources:
    return Resources({"vcore": count * 1000})


def partition(*queues: QueueSpec, name: str = "default", rule: str = "guarantee", **more: Any) -> PartitionSpec:
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=queues or LEAVES, **more)
    return PartitionSpec(name=name, root=root, preemption=PreemptionSpec(rule=rule))


def cluster(
    *queues: QueueSpec, nodes: dict[str, int], rule: str = "guarantee", limits: tuple[LimitSpec, ...] = (), **more: Any
) -> Scheduler:
    """With these leaves (default: a and b) and nodes of so many cores; `more` is of the cluster."""
    s = Scheduler(ClusterSpec(partitions=(partition(*queues, rule=rule, limits=limits),), **more))
    for name, count in nodes.items():
        s.handle(AddNode(NodeSpec(id=name, capacity=cores(count))), 0)
    return s


def submit(
    s: Scheduler, key: str, count: int, now: int = 0, queue: str = "root.a", user: str = "nobody", **more: Any
) -> list[Decision]:
    """One application with one ask of the same name; what is said of it."""
    s.handle(AddApplication(ApplicationSpec(id=key, queue=queue, user=user)), now)
    return s.handle(AddAsks((AskSpec(application=key, key=key, resources=cores(count), **more),)), now)


def started(decisions: list[Decision]) -> list[str]:
    return [f"{d.key}@{d.node}" for d in decisions if isinstance(d, Allocated)]


def stopped(decisions: list[Decision]) -> list[str]:
    return [d.key for d in decisions if isinstance(d, Evict)]


def refused(decisions: list[Decision]) -> list[str]:
    return [d.key for d in decisions if isinstance(d, AskRejected)]


# -- partitions -----------------------------------------------------------------------------------------------------


def gpu_cluster(window_first: bool) -> Scheduler:
    """A partition that a queue file adds, and a window, in one order or the other."""
    s = Scheduler(ClusterSpec(partitions=(partition(),)))
    both = Configure(ClusterSpec(partitions=(partition(), partition(name="gpu"))))
    window = SetWindow(WindowSpec(name="w", starts_ms=1000, length_ms=1000))
    for event in (window, both) if window_first else (both, window):
        s.handle(event, 0)
    s.handle(AddNode(NodeSpec(id="n1", capacity=cores(2), partition="gpu")), 0)
    s.handle(AddApplication(ApplicationSpec(id="x", queue="root.a", partition="gpu")), 0)
    s.handle(AddAsks((AskSpec(application="x", key="k", resources=cores(1)),), partition="gpu"), 0)
    return s


@pytest.mark.parametrize("window_first", [True, False])
def test_a_partition_that_is_added_while_a_window_is_declared_keeps_it_too(window_first: bool) -> None:
    s = gpu_cluster(window_first)
    assert not started(s.schedule(0))  # It may run into the window.
    assert s.why("x", "k", "gpu") is not None
    assert not started(s.schedule(1_000))
    assert started(s.schedule(2_000)) == ["k@n1"]


def test_an_ask_under_way_to_the_place_of_a_placeholder_is_told_that_its_partition_is_removed() -> None:
    s = Scheduler(ClusterSpec(partitions=(partition(), partition(name="gpu"))))
    s.handle(AddNode(NodeSpec(id="n1", capacity=cores(1), partition="gpu")), 0)
    gang = ApplicationSpec(id="g", queue="root.a", partition="gpu", placeholder_ask=cores(1))
    s.handle(AddApplication(gang), 0)
    held = AskSpec(application="g", key="p", resources=cores(1), task_group="t", placeholder=True)
    s.handle(AddAsks((held,), "gpu"), 0)
    assert started(s.schedule(0)) == ["p@n1"]
    s.handle(AddAsks((AskSpec(application="g", key="real", resources=cores(1), task_group="t"),), "gpu"), 1)
    assert stopped(s.schedule(1)) == ["p"]
    said = s.handle(Configure(ClusterSpec(partitions=(partition(),))), 2)
    assert refused(said) == ["real"]
    assert [d.key for d in said if isinstance(d, Released)] == ["p"]


ELSEWHERE: tuple[Event, ...] = (
    SetPriority("x", "x", 1, partition="nope"),
    ChangeAsk("x", "x", cores(1), None, partition="nope"),
    SetConditions("x", "x", MET, "ann", partition="nope"),
    ReserveAsk("x", "x", True, "ann", partition="nope"),
)


@pytest.mark.parametrize("order", ELSEWHERE, ids=lambda order: type(order).__name__)
def test_an_order_for_a_partition_that_is_not_there_is_refused(order: Event) -> None:
    said = cluster(nodes={"n1": 1}).handle(order, 0)
    assert refused(said) == ["x"]
    assert "nope" in str(said[0])


def test_so_are_those_for_nodes_and_applications() -> None:
    s = cluster(nodes={"n1": 1})
    assert isinstance(s.handle(UpdateNode("n1", cores(1), partition="nope"), 0)[0], NodeRejected)
    assert isinstance(s.handle(MoveApplication("x", "root.b", partition="nope"), 0)[0], MoveRejected)


def test_a_broken_loop_names_its_partition() -> None:
    s = Scheduler(ClusterSpec(partitions=(partition(name="gpu", rule="priority"),)))
    s.handle(AddNode(NodeSpec(id="n1", capacity=cores(4), partition="gpu")), 0)
    for key, priority in (("low", 0), ("high", 9)):
        s.handle(AddApplication(ApplicationSpec(id=key, queue="root.a", partition="gpu")), 0)
        s.schedule(0)
        s.handle(AddAsks((AskSpec(application=key, key=key, resources=cores(4), priority=priority),), "gpu"), 0)
    told: list[Decision] = []
    for turn in range(6):  # What another scheduler runs takes the room each time.
        now = 1_000 * (turn + 1)
        for victim in stopped(s.schedule(now)):
            s.handle(Release(victim, victim, Cause.PREEMPTED_BY_SCHEDULER, partition="gpu"), now)
        foreign = AskSpec(application="", key="other", node="n1", resources=cores(4), tags={TAG_FOREIGN: "default"})
        told += s.handle(AddAsks((foreign,), "gpu"), now)
        told += s.schedule(now + 1)
        told += s.handle(Release("", "other", partition="gpu"), now + 2)
        again = f"low{turn}"
        s.handle(AddApplication(ApplicationSpec(id=again, queue="root.a", partition="gpu")), now + 2)
        s.handle(AddAsks((AskSpec(application=again, key=again, node="n1", resources=cores(4)),), "gpu"), now + 2)
    assert [d.partition for d in told if isinstance(d, LoopBroken)] == ["gpu"]


# -- what is held ---------------------------------------------------------------------------------------------------

AT_A_SECOND = Conditions(begin_ms=1_000)


def test_new_constraints_of_what_is_held_hold_when_it_is_in_line() -> None:
    s = cluster(nodes={"hdd": 2})
    submit(s, "k", 1, conditions=AT_A_SECOND)
    on_ssd = Constraints(selector=(Requirement("disk", "In", ("ssd",)),))
    s.handle(LabelAsk("k", "k", {"team": "x"}, on_ssd), 1)
    assert not started(s.schedule(1_000))
    assert not started(Scheduler.load(s.dump()).schedule(1_000))
    s.handle(AddNode(NodeSpec(id="ssd", capacity=cores(2), attributes={"disk": "ssd"})), 1_001)
    assert started(s.schedule(1_001)) == ["k@ssd"]


def test_what_is_held_may_have_another_priority_than_its_class_like_what_waits() -> None:
    s = cluster(nodes={"n1": 4}, quotas=(QuotaSpec(name="q", queue="root.b", resources=Limits({"vcore": 100_000})),))
    s.handle(SetPriorityClass(PriorityClassSpec(name="x", value=5)), 0)
    submit(s, "set", 1, priority_class="x", conditions=AT_A_SECOND)
    submit(s, "kept", 1, priority_class="x", conditions=AT_A_SECOND)
    assert not refused(s.handle(SetPriority("set", "set", 7), 1))
    s.handle(SetPriorityClass(PriorityClassSpec(name="x", value=6)), 2)
    said = s.schedule(1_000)
    assert not refused(said)
    assert sorted(started(said)) == ["kept@n1", "set@n1"]


# -- what is reported -----------------------------------------------------------------------------------------------


def test_what_is_reported_as_leaving_leaves_alike_after_a_restart() -> None:
    """Whatever the reason that is given: it counts as gone from what its queue is guaranteed."""
    lab = QueueSpec(name="lab", guaranteed=Limits({"vcore": 2000}))
    rest = QueueSpec(name="rest", guaranteed=Limits({"vcore": 1000}))
    s = cluster(lab, rest, nodes={"n1": 2}, rule="both")
    s.handle(AddApplication(ApplicationSpec(id="r", queue="root.rest")), 0)
    for key in ("one", "two"):
        s.handle(AddAsks((AskSpec(application="r", key=key, resources=cores(1), node="n1"),)), 0)
    s.handle(Leaving("r", "one", Cause.TIMEOUT), 1)
    check_books(s)
    again = Scheduler.load(s.dump())
    for each in (s, again):
        submit(each, "mine", 1, 2, "root.lab")
    assert again.schedule(2) == s.schedule(2)
    assert again.dump() == s.dump()


@pytest.mark.parametrize("rule", ["guarantee", "both"])
def test_idle_work_is_not_nominated_by_report(rule: str) -> None:
    s = cluster(nodes={"n1": 4}, rule=rule)
    submit(s, "i", 2, idle=True)
    s.handle(Nominated("i", "i", "n1"), 1)
    assert started(s.schedule(2)) == ["i@n1"]
    check_books(s)


def test_an_ask_that_has_a_node_set_aside_may_be_reported_as_nominated_elsewhere() -> None:
    s = cluster(nodes={f"n{i}": 4 for i in range(5)})
    for i in range(5):
        submit(s, f"r{i}", 3)
    s.schedule(0)
    submit(s, "w", 4, 1)
    for now in (1, 2_002, 5_000):
        s.schedule(now)
    part = s.cluster.partitions["default"]
    ask = part.applications["w"].asks["w"]
    assert ask.reserved_on is not None
    other = next(node for node in part.nodes.nodes.values() if node is not ask.reserved_on)
    victim = next(iter(other.allocations))
    s.handle(Leaving(victim.app.id, victim.key), 5_002)
    s.handle(Nominated("w", "w", other.id), 5_003)
    check_books(s)
    s.handle(Release(victim.app.id, victim.key, Cause.FINISHED), 5_004)
    assert started(s.schedule(5_004)) == [f"w@{other.id}"]


def test_no_timer_of_an_application_outlives_it() -> None:
    s = cluster(nodes={"n1": 2})
    submit(s, "runs", 2)
    s.schedule(0)
    submit(s, "waits", 2)
    submit(s, "later", 1, conditions=Conditions(begin_ms=60_000))
    for now in (1, 3_000, 6_000):
        s.schedule(now)
    for app in ("waits", "later"):
        s.handle(RemoveApplication(app), 6_001)
    check_books(s)
    assert [timer for timer in s.cluster.timers.pending() if timer.subject in {"waits", "later"}] == []


def test_an_application_that_is_refused_again_is_kept_from_then_on_and_holds_up_no_other() -> None:
    s = cluster(nodes={"n1": 2})
    for hour, name in enumerate(("x", "y", "x")):
        s.handle(AddApplication(ApplicationSpec(id=name, queue="root.nowhere")), hour * HOUR_MS)
    s.schedule(73 * HOUR_MS)
    assert list(s.cluster.partitions["default"].rejected) == ["x"]
    s.schedule(74 * HOUR_MS)
    assert not s.cluster.partitions["default"].rejected


# -- gangs ----------------------------------------------------------------------------------------------------------


def test_an_ask_under_way_to_another_node_waits_again_when_that_is_drained() -> None:
    """As when it is labelled otherwise; in the place of its placeholder it would start all the same."""
    s = cluster(nodes={"n1": 2})
    s.handle(AddApplication(ApplicationSpec(id="g", queue="root.a")), 0)
    of_gang: dict[str, Any] = {"application": "g", "resources": cores(2), "task_group": "t"}
    s.handle(AddAsks((AskSpec(key="p", placeholder=True, **of_gang),)), 0)
    assert started(s.schedule(1)) == ["p@n1"]
    s.handle(AddNode(NodeSpec(id="n2", capacity=cores(2), attributes={"zone": "z"})), 2)
    in_zone = Constraints(selector=(Requirement("zone", "In", ("z",)),))
    s.handle(AddAsks((AskSpec(key="real", where=in_zone, **of_gang),)), 2)
    assert stopped(s.schedule(3)) == ["p"]
    s.handle(DrainNode("n2"), 4)
    check_books(s)
    s.handle(Release("g", "p", Cause.PLACEHOLDER_REPLACED), 5)
    assert started(s.schedule(6)) == []
    s.handle(UndrainNode("n2"), 7)
    assert started(s.schedule(8)) == ["real@n2"]
    check_books(s)


def test_what_can_go_to_another_node_does_not_wait_behind_what_can_go_nowhere() -> None:
    s = cluster(nodes={"n1": 2})
    s.handle(AddApplication(ApplicationSpec(id="g", queue="root.a")), 0)
    of_gang: dict[str, Any] = {"application": "g", "resources": cores(1), "task_group": "t"}
    s.handle(AddAsks(tuple(AskSpec(key=key, placeholder=True, **of_gang) for key in ("p1", "p2"))), 0)
    s.schedule(0)
    s.handle(AddNode(NodeSpec(id="n2", capacity=cores(2), attributes={"disk": "ssd"})), 1)
    for key, disk in (("nowhere", "tape"), ("elsewhere", "ssd")):
        where = Constraints(selector=(Requirement("disk", "In", (disk,)),))
        s.handle(AddAsks((AskSpec(key=key, where=where, **of_gang),)), 2)
    assert stopped(s.schedule(3)) == ["p1"]
    s.handle(Release("g", "p1", Cause.PLACEHOLDER_REPLACED), 4)
    assert s.cluster.partitions["default"].applications["g"].asks["elsewhere"].node is not None
    check_books(s)


def test_no_gang_gives_way_to_one_whose_last_placeholder_has_its_room_coming() -> None:
    s = cluster(nodes={"n1": 4, "n3": 4}, rule="priority")
    submit(s, "v", 4)
    s.schedule(0)

    def gang(name: str, now: int, priority: int, **more: Any) -> None:
        s.handle(AddApplication(ApplicationSpec(id=name, queue="root.a")), now)
        of_gang: dict[str, Any] = {"application": name, "resources": cores(4), "placeholder": True, "task_group": "t"}
        asks = tuple(AskSpec(key=f"{name}{i}", priority=priority, **of_gang, **more) for i in (1, 2))
        s.handle(AddAsks(asks), now)

    gang("second", 1, 5, allow_preempt_other=False)
    assert started(s.schedule(2)) == ["second1@n3"]
    s.handle(AddNode(NodeSpec(id="n2", capacity=cores(4))), 3)
    gang("first", 3, 6)
    assert stopped(s.schedule(4)) == ["v"]
    s.handle(Release("v", "v", Cause.PREEMPTED_BY_SCHEDULER), 5)
    assert started(s.schedule(5)) == ["first2@n1"]


# -- turns ----------------------------------------------------------------------------------------------------------


def expected_start(s: Scheduler) -> int | None:
    """A vast one with a kept turn behind a run that ends at 10 s, and what may be backfilled beside it."""
    submit(s, "run", 8, user="other", time_limit_ms=10_000)
    s.schedule(0)
    submit(s, "head", 8, 1, user="u", priority=5, allow_preempt_other=False)
    s.handle(ReserveAsk("head", "head", True, "ann"), 2)
    s.schedule(2)
    submit(s, "small", 4, 3, user="u")
    s.schedule(4)
    return s.expected_start_ms("head", "head")


BACKFILL = {"backfill": "easy"}


def test_backfill_leaves_the_limit_of_a_user_to_the_one_whose_start_is_expected() -> None:
    limit = LimitSpec(users=("u",), max_resources=Limits({"vcore": 10000}))
    s = cluster(QueueSpec(name="a", properties=BACKFILL), nodes={"n1": 8, "n2": 4}, limits=(limit,))
    assert expected_start(s) == 10_000
    s.handle(Release("run", "run", Cause.FINISHED), 10_000)
    assert started(s.schedule(10_000))[0] == "head@n1"


def test_backfill_leaves_the_last_place_to_run_to_the_one_whose_start_is_expected() -> None:
    s = cluster(QueueSpec(name="a", properties=BACKFILL, max_applications=2), nodes={"n1": 8, "n2": 4})
    assert expected_start(s) == 10_000
    s.handle(Release("run", "run", Cause.FINISHED), 10_000)
    assert started(s.schedule(10_000))[0] == "head@n1"


def test_idle_work_that_requires_a_node_starts_there_though_it_is_drained_like_other_work() -> None:
    s = cluster(nodes={"n1": 4, "n2": 4})
    s.handle(DrainNode("n1"), 0)
    submit(s, "i", 1, 1, idle=True, tags={TAG_REQUIRED_NODE: "n1"})
    assert started(s.schedule(2)) == ["i@n1"]


def test_turns_and_preemption_see_the_same_priority_beyond_32_bits() -> None:
    """Nothing is started and stopped for what waited, however large offsets and priorities are."""
    large = 2_000_001_000
    leaves = tuple(
        QueueSpec(name=name, properties={"priority.offset": str(offset)})
        for name, offset in (("a", 200_000_000), ("b", 150_000_000))
    )
    s = cluster(*leaves, nodes={"n1": 5}, rule="both")
    submit(s, "fill", 1, priority=large)
    s.schedule(0)
    submit(s, "first", 4, 1, "root.a", priority=large)
    submit(s, "second", 4, 1, "root.b", priority=large)
    assert len(started(s.schedule(2))) == 1
    submit(s, "new", 1, 3, priority=-5)
    s.handle(Release("not", "there"), 3)
    assert stopped(s.schedule(4)) == []


# -- quotas ---------------------------------------------------------------------------------------------------------


def test_what_was_put_on_hold_counts_for_its_quota_again_when_it_is_released() -> None:
    quota = QuotaSpec(name="q", queue="root.a", resources=Limits({"vcore": 4000}))
    s = cluster(nodes={"n1": 20}, quotas=(quota,))
    submit(s, "one", 4)
    s.handle(SetConditions("one", "one", Conditions(held_by="ann"), "ann"), 1)
    submit(s, "two", 4, 2)
    s.handle(SetConditions("one", "one", Conditions(), "ann"), 3)
    s.schedule(4)
    used = sum(
        amount
        for app in s.cluster.partitions["default"].applications.values()
        for ask in app.asks.values()
        for _, amount in ask.items
    )
    assert used <= 4_000


# -- nodes whose label says another hostname ------------------------------------------------------------------------


def labelled(*nodes: str, hostname: str) -> Scheduler:
    s = cluster(nodes={})
    for name in nodes:
        s.handle(AddNode(NodeSpec(id=name, capacity=cores(4), attributes={HOSTNAME: hostname})), 0)
    return s


def test_a_port_is_taken_on_a_node_and_not_on_all_of_one_hostname() -> None:
    s = labelled("n1", "n2", hostname="same")
    for key in ("one", "two"):
        submit(s, key, 1, where=Constraints(ports=("TCP//80",)))
    assert sorted(started(s.schedule(1))) == ["one@n1", "two@n2"]


@pytest.mark.parametrize("node_first", [True, False])
def test_a_window_keeps_the_nodes_free_that_it_names(node_first: bool) -> None:
    window = SetWindow(WindowSpec(name="w", starts_ms=1_000, length_ms=1_000, nodes=("n1",)))
    s = cluster(nodes={"other": 1})
    n1 = AddNode(NodeSpec(id="n1", capacity=cores(4), attributes={HOSTNAME: "ip-10-0-0-1"}))
    s.handle(window, 0)
    if node_first:
        s.handle(n1, 0)
    submit(s, "long", 2, 1)
    if not node_first:
        s.handle(n1, 1)
    assert not started(s.schedule(2))
    assert started(s.schedule(2_000)) == ["long@n1"]


# -- limits and full queues -----------------------------------------------------------------------------------------


def nominated(s: Scheduler) -> list[str]:
    return [ask.key for ask in s.cluster.partitions["default"].nominations]


def stop_and_nominate(*nodes: int) -> Scheduler:
    """By priority: on each node, of so many cores, low work of another user; a user `u` may use 4 cores."""
    limit = LimitSpec(users=("u",), max_resources=Limits({"vcore": 4_000}))
    s = cluster(nodes={f"n{i}": count for i, count in enumerate(nodes, 1)}, rule="priority", limits=(limit,))
    for i, count in enumerate(nodes, 1):
        submit(s, f"low{i}", count, queue="root.b", user="w", node=f"n{i}")
    return s


def test_what_is_promised_to_others_is_not_given_back_under_the_limit_of_a_user() -> None:
    s = stop_and_nominate(3, 2)
    submit(s, "mine", 3, user="u", priority=1)
    submit(s, "other", 2, user="v", priority=5, tags={TAG_REQUIRED_NODE: "n2"})
    s.schedule(1)
    assert nominated(s) == ["other", "mine"]
    submit(s, "first", 2, 2, user="u", priority=9, tags={TAG_REQUIRED_NODE: "n2"})
    s.schedule(2)
    assert nominated(s) == ["first"]
    check_books(s)


def test_of_two_nominated_under_a_limit_the_weaker_makes_room() -> None:
    s = stop_and_nominate(1, 2, 2)
    submit(s, "strong", 1, user="u", priority=5)
    submit(s, "weak", 2, user="u", priority=1)
    s.schedule(1)
    submit(s, "first", 2, 2, user="u", priority=9, tags={TAG_REQUIRED_NODE: "n3"})
    said = s.schedule(2)
    assert nominated(s) == ["strong", "first"]
    assert [d.key for d in said if isinstance(d, Unreserved)] == ["weak"]


def test_nothing_is_stopped_on_a_required_node_while_the_queue_is_full() -> None:
    s = cluster(QueueSpec(name="a", max=Limits({"vcore": 10_000})), QueueSpec(name="b"), nodes={"n1": 8, "n2": 8})
    submit(s, "important", 4, queue="root.b", node="n1", priority=9)
    submit(s, "low", 4, queue="root.b", node="n1")
    submit(s, "required", 8, tags={TAG_REQUIRED_NODE: "n1"}, priority=5)
    s.schedule(1)
    submit(s, "fills", 8, 2)
    s.schedule(2)
    s.handle(Release("important", "important", Cause.FINISHED), 3)
    assert stopped(s.schedule(3)) == []
    s.handle(Release("fills", "fills", Cause.FINISHED), 4)
    assert stopped(s.schedule(4)) == ["low"]
