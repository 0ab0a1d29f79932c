"""Suspicions from earlier readings that turned out to be faults, one by one."""

from __future__ import annotations

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

from fairlead.core.model.constraints import AffinityTerm, Constraints, Requirement, Taint, Toleration
from fairlead.core.model.decisions import Evict, MoveRejected, Reserved, Retried, Unreserved
from fairlead.core.model.events import AddNode, Cause, Configure, LabelNode, MoveApplication, Release, SetPriority
from fairlead.core.model.reasons import ApplicationsAtMax, ApplicationsPromised, QueuePromised
from fairlead.core.model.resources import Limits
from fairlead.core.model.specs import TAG_REQUIRED_NODE, NodeSpec, QueueSpec
from fairlead.scheduler import Scheduler

GROUP = {"resource.group": "true"}


def lab(count: int, name: str = "lab") -> QueueSpec:
    """A resource group with a guarantee of so many cores."""
    return guaranteed(name, count, parent=True, properties=GROUP, queues=(QueueSpec(name="a"), QueueSpec(name="b")))


# -- guarantees -------------------------------------------------------------------------------------------------------


def test_idle_work_uses_nothing_of_the_guarantee_of_its_group() -> None:
    s = cluster(lab(2), QueueSpec(name="rest"), nodes={"n1": 2, "n2": 1, "n3": 1}, rule="both")
    application(s, "idle", "root.lab.a")
    for key in ("i1", "i2"):
        ask(s, "idle", key, idle=True)
    submit(s, "high", 2, queue="root.rest", priority=5)
    assert sorted(started(s.schedule(0))) == ["high@n1", "i1@n2", "i2@n3"]
    submit(s, "own", 2, 1, "root.lab.b")
    assert stopped(s.schedule(1)) == ["high"], "it is within the guarantee: of that only idle work uses anything"
    check_books(s)


def test_what_a_queue_is_guaranteed_goes_first_also_while_idle_work_runs_in_it() -> None:
    s = cluster(lab(2), QueueSpec(name="rest"), nodes={"n1": 1, "n2": 1}, rule="both")
    application(s, "idle", "root.lab.a")
    for key in ("i1", "i2"):
        ask(s, "idle", key, idle=True)
    s.schedule(0)
    s.handle(AddNode(NodeSpec(id="n3", capacity=cores(2))), 1)
    submit(s, "high", 2, 1, "root.rest", priority=5)
    submit(s, "own", 2, 1, "root.lab.b")
    assert started(restarted(s).schedule(1)) == started(s.schedule(1)) == ["own@n3"]


def test_what_idle_work_borrows_follows_it_when_it_grows_moves_stops_and_ends() -> None:
    s = cluster(lab(2), lab(3, "other"), QueueSpec(name="rest"), nodes={"n1": 4}, rule="both")
    application(s, "idle", "root.lab.a")
    for key in ("i1", "i2"):
        ask(s, "idle", key, idle=True)
    s.schedule(0)
    ask(s, "idle", "i1", 2, 1, idle=True)
    check_books(s)
    s.handle(MoveApplication("idle", "root.other.b"), 2)
    check_books(s)
    submit(s, "wide", 3, 3, "root.other.a")
    assert stopped(s.schedule(3)) == ["i1"]
    check_books(s)
    left = restarted(s)
    check_books(left)
    left.handle(Release("idle", "i1", Cause.FINISHED), 4)
    check_books(left)
    s.handle(Configure(queue_file(lab(2), lab(3, "other"), rule="both")), 3)
    check_books(s)
    s.handle(Release("idle", "i2", Cause.FINISHED), 4)
    check_books(s)
    over_time(s, 4, 200_000)  # The other one does not leave in its time.
    check_books(s)
    s.handle(Release("idle", "i1", Cause.FINISHED), 200_001)
    check_books(s)


# -- turns and gangs --------------------------------------------------------------------------------------------------

BOUNDED = QueueSpec(name="a", max_applications=1, properties={"wait.max": "10s"})


def part_of_a_gang_with_the_place(rule: str) -> Scheduler:
    """A gang of which two of three stand in the queue's one place to run, and older work that waits for both."""
    s = cluster(BOUNDED, QueueSpec(name="b"), nodes={"n1": 4}, rule=rule)
    submit(s, "x", 2, queue="root.b")
    s.schedule(0)
    submit(s, "w", 3, 1)
    application(s, "g", "root.a", 2, placeholder_ask=cores(3))
    for key in ("p1", "p2", "p3"):
        ask(s, "g", key, 1, 2, placeholder=True, task_group="t")
    assert sorted(started(s.schedule(2))) == ["p1@n1", "p2@n1"]
    return s


@pytest.mark.parametrize("rule", RULES)
def test_a_gang_that_is_not_whole_gives_up_its_place_to_run_for_a_turn_that_holds_it_back(rule: str) -> None:
    s = part_of_a_gang_with_the_place(rule)
    s.handle(Release("x", "x", Cause.FINISHED), 11_001)
    told = [d for d in s.schedule(11_001) if isinstance(d, Evict)]
    assert [(d.key, d.rule) for d in told] == [("p1", "gang-deadlock"), ("p2", "gang-deadlock")]
    said = [d for key in ("p1", "p2") for d in s.handle(Release("g", key, Cause.PREEMPTED_BY_SCHEDULER), 11_002)]
    assert [d.new_key for d in said if isinstance(d, Retried)] == ["p1#2", "p2#2"]
    check_books(s)
    assert started(restarted(s).schedule(11_002)) == started(s.schedule(11_002)) == ["w@n1"]
    s.handle(Release("w", "w", Cause.FINISHED), 12_000)
    assert sorted(started(s.schedule(12_000))) == ["p1#2@n1", "p2#2@n1", "p3@n1"]
    check_books(s)


def test_a_gang_keeps_its_place_where_some_of_it_is_held_back_by_no_turn() -> None:
    for key, more in (("p3", ["p3@n1"]), ("p1", [])):
        s = part_of_a_gang_with_the_place("guarantee")
        s.handle(SetPriority("g", key, 5), 3)
        assert stopped(s.schedule(11_001)) == []
        s.handle(Release("x", "x", Cause.FINISHED), 11_002)
        said = s.schedule(11_002)
        assert stopped(said) == []
        assert started(said) == more


# -- expected starts --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES)
def test_room_that_is_kept_for_a_weaker_ask_puts_off_no_expected_start_where_rank_decides(rule: str) -> None:
    patient = QueueSpec(name="b", properties={"wait.max": "10s"})
    s = cluster(QueueSpec(name="a"), patient, nodes={"n1": 4}, rule=rule)
    submit(s, "x", 2, priority=9, time_limit_ms=100_000)
    s.schedule(0)
    submit(s, "weak", 4, 1, "root.b", priority=1)
    over_time(s, 1, 10_500)
    submit(s, "strong", 4, 11_000, priority=5)
    s.schedule(11_000)
    first = "weak" if rule == "guarantee" else "strong"
    assert s.expected_start_ms(first, first) == 100_000
    if rule == "guarantee":
        assert s.expected_start_ms("strong", "strong") is None
    s.handle(Release("x", "x", Cause.FINISHED), 100_000)
    assert started(s.schedule(100_000)) == [f"{first}@n1"]


def test_a_smaller_ask_may_take_the_room_that_is_kept_for_it_before_a_stronger_one_has_enough() -> None:
    patient = QueueSpec(name="b", properties={"wait.max": "10s"})
    s = cluster(QueueSpec(name="a"), patient, nodes={"n1": 4}, rule="priority")
    submit(s, "x", 2, priority=9, time_limit_ms=100_000)
    submit(s, "y", 1, priority=9, time_limit_ms=50_000)
    s.schedule(0)
    submit(s, "weak", 2, 1, "root.b", priority=1)
    over_time(s, 1, 10_500)
    submit(s, "strong", 4, 11_000, priority=5)
    s.schedule(11_000)
    assert s.expected_start_ms("strong", "strong") is None
    s.handle(Release("y", "y", Cause.FINISHED), 50_000)
    assert started(s.schedule(50_000)) == ["weak@n1"]


# -- nodes ------------------------------------------------------------------------------------------------------------

NEW = Constraints(selector=(Requirement("disk", "In", ("new",)),))
TAINT = Taint("repair", "", "NoSchedule")


@pytest.mark.parametrize("why", ["selector", "taint", "company"])
def test_no_node_is_set_aside_for_an_ask_that_requires_it_and_is_kept_off_it_for_good(why: str) -> None:
    s = cluster(nodes={"n1": 4})
    company = (AffinityTerm((Requirement("app", "In", ("web",)),), "kubernetes.io/hostname"),)
    where = {"selector": NEW, "taint": Constraints(), "company": Constraints(affinity=company)}[why]
    if why == "taint":
        s.handle(LabelNode("n1", {}, (TAINT,)), 0)
    submit(s, "own", 2, tags={TAG_REQUIRED_NODE: "n1"}, where=where)
    tolerant = Constraints(tolerations=(Toleration(key="repair", operator="Exists"),))
    submit(s, "other", 1, where=tolerant, labels={"app": "web"})
    said = s.schedule(0)
    assert not [d for d in said if isinstance(d, Reserved)]
    expected = ["other@n1", "own@n1"] if why == "company" else ["other@n1"]
    assert started(said) == expected
    if why != "company":
        s.handle(LabelNode("n1", {"disk": "new"}), 1)
        assert started(s.schedule(1)) == ["own@n1"]
    check_books(s)


@pytest.mark.parametrize("why", ["selector", "taint"])
def test_a_node_goes_back_that_an_ask_requires_and_is_kept_off_for_good_from_now_on(why: str) -> None:
    s = cluster(nodes={"n1": 4, "n2": 2})
    s.handle(LabelNode("n1", {"disk": "new"}), 0)
    submit(s, "there", 3, priority=9, where=NEW)
    s.schedule(0)
    submit(s, "own", 2, 1, tags={TAG_REQUIRED_NODE: "n1"}, where=NEW)
    assert [d.node for d in s.schedule(1) if isinstance(d, Reserved)] == ["n1"]
    s.handle(LabelNode("n1", {"disk": "new" if why == "taint" else "old"}, (TAINT,) if why == "taint" else ()), 2)
    tolerant = Constraints(tolerations=(Toleration(key="repair", operator="Exists"),))
    submit(s, "full", 2, 2)
    submit(s, "other", 1, 2, where=tolerant)
    said = s.schedule(2)
    assert [d.node for d in said if isinstance(d, Unreserved)] == ["n1"]
    assert started(said) == ["full@n2", "other@n1"]
    s.handle(Release("there", "there", Cause.FINISHED), 3)
    assert started(s.schedule(3)) == []
    s.handle(LabelNode("n1", {"disk": "new"}), 4)
    assert started(s.schedule(4)) == ["own@n1"]
    check_books(s)


# -- preemption by guarantee ------------------------------------------------------------------------------------------


def test_by_guarantee_a_full_node_and_a_full_maximum_are_both_made_room_in() -> None:
    below = (guaranteed("a", 2, properties=SOON), QueueSpec(name="b"))
    parent = QueueSpec(name="p", parent=True, max=Limits({"vcore": 4000}), queues=below)
    s = cluster(parent, nodes={"n1": 2, "n2": 3})
    application(s, "b", "root.p.b")
    for key, node in (("b1", "n1"), ("b2", "n2"), ("b3", "n2"), ("b4", "n2")):
        ask(s, "b", key, where=Constraints(selector=(Requirement("kubernetes.io/hostname", "In", (node,)),)))
    assert sorted(started(s.schedule(0))) == ["b1@n1", "b2@n2", "b3@n2", "b4@n2"]
    submit(s, "a", 2, 1, "root.p.a")
    said = over_time(s, 1, 20_000)
    assert stopped(said) == ["b1", "b4"]
    for key in ("b1", "b4"):
        s.handle(Release("b", key, Cause.PREEMPTED_BY_SCHEDULER), 20_001)
    assert started(s.schedule(20_001)) == ["a@n1"]
    check_books(s)


# -- moves ------------------------------------------------------------------------------------------------------------


def promised(target: QueueSpec) -> Scheduler:
    """`mover` runs elsewhere; room is made for `high`, in this queue, by stopping `low`."""
    s = cluster(target, QueueSpec(name="b"), nodes={"n1": 2, "n2": 1}, rule="priority")
    submit(s, "low", 2, queue="root.b")
    s.schedule(0)
    submit(s, "mover", 1, queue="root.b", priority=7)
    s.schedule(0)
    submit(s, "high", 2, 1, priority=9)
    assert stopped(s.schedule(1)) == ["low"]
    return s


def test_a_move_takes_no_place_to_run_that_is_promised_to_another_application() -> None:
    s = promised(QueueSpec(name="a", max_applications=1))
    said = s.handle(MoveApplication("mover", "root.a"), 2)
    assert said == [MoveRejected("mover", ApplicationsPromised("queue", "", "root.a", 0, 1, ("high",)), "default")]
    s.handle(Release("low", "low", Cause.PREEMPTED_BY_SCHEDULER), 3)
    assert started(s.schedule(3)) == ["high@n1"]
    said = s.handle(MoveApplication("mover", "root.a"), 4)
    assert said == [MoveRejected("mover", ApplicationsAtMax("root.a", 1, 1), "default")]


def test_a_move_takes_no_room_under_a_maximum_that_is_promised_to_others() -> None:
    s = promised(QueueSpec(name="a", max=Limits({"vcore": 2000})))
    said = s.handle(MoveApplication("mover", "root.a"), 2)
    reason = QueuePromised("root.a", {"vcore": 1000}, {"vcore": 2000}, ("high/high",))
    assert said == [MoveRejected("mover", reason, "default")]
    s.handle(Release("low", "low", Cause.PREEMPTED_BY_SCHEDULER), 3)
    assert started(s.schedule(3)) == ["high@n1"]
