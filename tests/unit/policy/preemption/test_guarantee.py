"""Preemption by guarantee: a queue below its guarantee takes back what others use above theirs, and nothing more."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from invariants.books import check_books

from fairlead.core.model.constraints import ANYWHERE, AffinityTerm, Constraints, PreferredNodes, Requirement
from fairlead.core.model.decisions import Allocated, Evict, Reserved
from fairlead.core.model.events import (
    AddApplication,
    AddAsks,
    AddNode,
    Cause,
    Configure,
    DrainNode,
    Release,
    RemoveNode,
    UndrainNode,
)
from fairlead.core.model.resources import Limits, Resources
from fairlead.core.model.specs import (
    ApplicationSpec,
    AskSpec,
    ClusterSpec,
    NodeSpec,
    PartitionSpec,
    PreemptionSpec,
    QueueSpec,
)
from fairlead.scheduler import Scheduler

QUICK = {"preemption.delay": "1s"}


def queue(name: str, *below: QueueSpec, g: int = 0, most: int = 0, **properties: str) -> QueueSpec:
    """A queue with so many cores guaranteed and at most (0: not set)."""
    return QueueSpec(
        name=name,
        queues=below,
        guaranteed=Limits({"vcore": g * 1000}) if g else None,
        max=Limits({"vcore": most * 1000}) if most else None,
        properties=QUICK | {k.replace("_", "."): v for k, v in properties.items()},
    )


def spec_of(*queues: QueueSpec, **switches: Any) -> ClusterSpec:
    """A cluster's configuration with these queues below the root."""
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=queues)
    return ClusterSpec(partitions=(PartitionSpec(root=root, preemption=PreemptionSpec(**switches)),))


class Case:
    """A scheduler with its time; every step checks the books."""

    def __init__(self, *queues: QueueSpec, nodes: tuple[int, ...] = (4,), **switches: Any) -> None:
        self.now = 0
        self.s = Scheduler(spec_of(*queues, **switches))
        for i, cores in enumerate(nodes, 1):
            self.s.handle(AddNode(NodeSpec(id=f"n{i}", capacity=Resources({"vcore": cores * 1000}))), 0)

    def ask(self, key: str, leaf: str, cores: float = 1, priority: int = 0, **more: Any) -> None:
        """One application of this name with one ask in this queue."""
        self.s.handle(AddApplication(ApplicationSpec(id=key, queue=f"root.{leaf}")), self.now)
        resources = Resources({"vcore": int(cores * 1000)})
        ask = AskSpec(application=key, key=key, resources=resources, priority=priority, **more)
        self.s.handle(AddAsks((ask,)), self.now)

    def run(self, after: int = 0, limit: int | None = None) -> tuple[list[str], list[str]]:
        """Let time pass and schedule: who starts (`key@node`) and who is told to stop."""
        self.now += after
        decided = self.s.schedule(self.now, limit)
        check_books(self.s)
        started = [f"{d.key}@{d.node}" for d in decided if isinstance(d, Allocated)]
        return started, [d.key for d in decided if isinstance(d, Evict)]

    def gone(self, *keys: str) -> None:
        """These have stopped, as they were told to."""
        for key in keys:
            self.s.handle(Release(key, key, Cause.PREEMPTED_BY_SCHEDULER), self.now)
        check_books(self.s)


def full(*queues: QueueSpec, victims: str = "b", nodes: tuple[int, ...] = (4,), **more: Any) -> Case:
    """All nodes are filled with `v1`, `v2`, … of one core each in one queue."""
    case = Case(*queues, nodes=nodes)
    for i in range(1, sum(nodes) + 1):
        case.ask(f"v{i}", victims, **more)
    case.run()
    return case


def test_a_queue_below_its_guarantee_takes_the_newest() -> None:
    """After the delay the newest of the other queue goes; the node is reserved and then used."""
    case = full(queue("a", g=2), queue("b"))
    case.ask("h", "a")
    assert case.run() == ([], [])
    assert case.run(999) == ([], [])
    assert case.run(1) == ([], ["v4"])
    case.gone("v4")
    assert case.run() == (["h@n1"], [])


def test_the_wake_up_comes_at_the_end_of_the_delay() -> None:
    """Whoever drives the scheduler is told when to call it next."""
    case = full(queue("a", g=2), queue("b"))
    case.ask("h", "a", tags={"creationTime": "0"})
    case.run()
    assert case.s.next_wakeup_ms() == 1_000


def test_the_order_says_for_whom_and_by_which_rule() -> None:
    """An eviction carries the ask that it is for."""
    case = full(queue("a", g=2), queue("b"))
    case.ask("h", "a")
    decided = case.s.schedule(1_000)
    evict = next(d for d in decided if isinstance(d, Evict))
    assert (evict.cause, evict.on_behalf_of, evict.rule) == (Cause.PREEMPTED_BY_SCHEDULER, "h", "guarantee")
    assert "root.a" in evict.message
    assert [d for d in decided if isinstance(d, Reserved)] == [Reserved("h", "h", "n1")]


def test_the_freed_space_is_kept_for_the_preemptor() -> None:
    """Work that would come first does not get what the victim leaves."""
    case = full(queue("a", g=2), queue("b"))
    case.ask("h", "a")
    case.run(1_000)
    case.ask("thief", "b", priority=100)
    case.gone("v4")
    assert case.run() == (["h@n1"], [])


def test_no_more_is_stopped_than_the_free_space_leaves_missing() -> None:
    """Half a core is free: one victim is enough for an ask of one and a half."""
    case = Case(queue("a", g=2), queue("b"))
    case.ask("half", "b", 0.5)
    for i in range(1, 4):
        case.ask(f"v{i}", "b")
    case.run()
    case.ask("h", "a", 1.5)
    assert case.run(1_000) == ([], ["v3"])


def test_several_victims_for_one_ask_go_together() -> None:
    """Two cores for one ask; it starts when the last of them is gone."""
    case = full(queue("a", g=2), queue("b"))
    case.ask("h", "a", 2)
    assert case.run(1_000) == ([], ["v4", "v3"])
    case.gone("v4")
    assert case.run() == ([], [])
    case.gone("v3")
    assert case.run() == (["h@n1"], [])


def test_it_happens_once_for_each_ask() -> None:
    """While the victims take their time no others are stopped."""
    case = full(queue("a", g=2), queue("b"))
    case.ask("h", "a")
    assert case.run(1_000) == ([], ["v4"])
    assert case.run(60_000) == ([], [])


def test_without_any_guarantee_nothing_is_stopped() -> None:
    """Nobody is entitled to anything, and no timer is set for an attempt that cannot succeed."""
    case = full(queue("a"), queue("b"))
    case.ask("h", "a")
    assert case.run() == ([], [])
    due = case.s.next_wakeup_ms()
    assert due is None or due > 1_000
    assert case.run(60_000) == ([], [])


def test_an_ask_that_would_exceed_the_guarantee_stops_nothing() -> None:
    """Three cores do not fit into a guarantee of two."""
    case = full(queue("a", g=2), queue("b"))
    case.ask("h", "a", 3)
    assert case.run(1_000) == ([], [])


def test_a_queue_within_its_guarantee_gives_nothing() -> None:
    """Both queues are entitled to what they use."""
    case = full(queue("a", g=2), queue("b", g=4))
    case.ask("h", "a")
    assert case.run(1_000) == ([], [])


def test_no_queue_is_pushed_below_its_guarantee() -> None:
    """One core above the guarantee does not cost the other queue its only task of two cores."""
    case = Case(queue("a", g=1), queue("b", g=3), nodes=(4,))
    case.ask("big", "b", 4)
    case.run()
    case.ask("h", "a")
    assert case.run(1_000) == ([], [])


def test_the_own_queue_is_spared() -> None:
    """Work of the same queue goes for nobody."""
    case = full(queue("a", g=8), queue("b"), victims="a")
    case.ask("h", "a", priority=100)
    assert case.run(1_000) == ([], [])


def test_higher_priority_is_spared() -> None:
    """Equal priority may be stopped, higher may not."""
    case = full(queue("a", g=2), queue("b"), priority=5)
    case.ask("low", "a", priority=4)
    case.ask("same", "a", priority=5)
    decided = case.s.schedule(1_000)
    assert [d.on_behalf_of for d in decided if isinstance(d, Evict)] == ["same"]


def test_offsets_count_on_the_way_between_queues() -> None:
    """A queue whose offset lifts its work above the ask is out of reach."""
    case = full(queue("a", g=2), queue("b", priority_offset="1"))
    case.ask("h", "a")
    assert case.run(1_000) == ([], [])
    case.ask("higher", "a", priority=1)
    assert case.run(1_000) == ([], ["v4"])


def test_the_offset_of_a_common_parent_changes_nothing_inside() -> None:
    """Both sides carry it, so that a lower ask does not win by it."""
    case = full(queue("x", queue("a", g=2), queue("b"), priority_offset="10"), victims="x.b", priority=5)
    case.ask("h", "x.a", priority=4)
    assert case.run(1_000) == ([], [])


def test_a_priority_fence_hides_what_is_inside() -> None:
    """Below a fenced queue whose offset is not higher all work may go, whatever its own priority."""
    case = full(queue("a", g=2), queue("b", priority_policy="fence", priority_offset="-1"), priority=1000)
    case.ask("h", "a")
    assert case.run(1_000) == ([], ["v4"])


def test_a_fence_keeps_the_search_inside() -> None:
    """Work below a fenced queue takes nothing from outside of it."""
    fenced = queue("x", queue("a", g=2), queue("c"), preemption_policy="fence")
    case = full(fenced, queue("b"))
    case.ask("h", "x.a")
    assert case.run(1_000) == ([], [])


def test_a_fence_is_open_from_outside() -> None:
    """A fence protects nobody: it only holds back what is inside."""
    case = full(queue("a", g=2), queue("x", queue("c"), preemption_policy="fence"), victims="x.c")
    case.ask("h", "a")
    assert case.run(1_000) == ([], ["v4"])


def test_a_disabled_queue_gives_nothing() -> None:
    """`preemption.policy: disabled` holds for the queues below too."""
    case = full(queue("a", g=2), queue("x", queue("c"), preemption_policy="disabled"), victims="x.c")
    case.ask("h", "a")
    assert case.run(1_000) == ([], [])


def test_a_full_parent_keeps_the_search_below_it() -> None:
    """The parent is at its maximum: only work below it helps, though newer work is elsewhere."""
    case = Case(queue("p", queue("a", g=2), queue("b"), most=2), queue("c"), nodes=(8,))
    for i, where in enumerate(("p.b", "p.b", "c", "c"), 1):
        case.ask(f"v{i}", where)
    case.run()
    case.ask("h", "p.a")
    assert case.run(1_000) == ([], ["v2"])
    case.gone("v2")
    assert case.run() == (["h@n1"], [])


def test_the_guarantee_of_a_parent_counts_for_a_leaf_without_one() -> None:
    """The leaf has no guarantee, its parent has and is below it."""
    case = full(queue("p", queue("a"), g=2), queue("b"))
    case.ask("h", "p.a")
    assert case.run(1_000) == ([], ["v4"])


@pytest.mark.parametrize("marked", [{"allow_preempt_self": False}, {"originator": True}])
def test_protected_work_goes_last(marked: dict[str, bool]) -> None:
    """The newest did not agree, or is an originator: an older one goes instead."""
    case = Case(queue("a", g=2), queue("b"), nodes=(2,))
    case.ask("old", "b")
    case.ask("new", "b", **marked)
    case.run()
    case.ask("h", "a")
    assert case.run(1_000) == ([], ["old"])


def test_protected_work_goes_when_nothing_else_helps() -> None:
    """Not to agree is a wish, not a shield."""
    case = full(queue("a", g=2), queue("b"), nodes=(1,), allow_preempt_self=False)
    case.ask("h", "a")
    assert case.run(1_000) == ([], ["v1"])


def test_the_node_with_the_fewest_victims_is_taken() -> None:
    """One task of two cores goes rather than two of one core."""
    case = Case(queue("a", g=2), queue("b"), nodes=(2, 2))
    case.ask("s1", "b")
    case.ask("big", "b", 2)
    case.ask("s2", "b")
    case.run()
    case.ask("h", "a", 2)
    assert case.run(1_000) == ([], ["big"])


def test_an_ask_that_may_not_preempt_waits() -> None:
    """It has to say that others may be stopped for it."""
    case = full(queue("a", g=2), queue("b"))
    case.ask("h", "a", allow_preempt_other=False)
    assert case.run(60_000) == ([], [])


def test_it_can_be_switched_off() -> None:
    """`preemption.enabled: false`."""
    case = Case(queue("a", g=2), queue("b"), enabled=False)
    for i in range(4):
        case.ask(f"v{i}", "b")
    case.run()
    case.ask("h", "a")
    assert case.run(60_000) == ([], [])


def test_a_failed_attempt_is_repeated_after_fifteen_seconds() -> None:
    """Only the drained node could help; open again, it is found at the next attempt, not before."""
    case = full(queue("a", g=2), queue("b"))
    case.ask("h", "a")
    case.s.handle(DrainNode("n1"), 0)
    assert case.run(1_000) == ([], [])
    case.s.handle(UndrainNode("n1"), case.now)
    assert case.run(14_999) == ([], [])
    assert case.run(1) == ([], ["v4"])


def test_nothing_is_searched_again_while_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The books are as they were when the last search failed: the next attempt costs nothing."""
    case = full(queue("a", g=2), queue("b", g=4))
    case.ask("h", "a")
    case.run(1_000)
    case.run(15_000)  # What started before the last change may be stopped from now on.
    monkeypatch.setattr("fairlead.policy.preemption.when.find_plan", lambda *a, **k: pytest.fail("searched again"))
    for _ in range(4):
        assert case.run(15_000) == ([], [])


def test_equal_asks_preempt_one_after_the_other() -> None:
    """Each of three equal asks gets its own room, each in a run of its own."""
    case = Case(queue("a", g=3), queue("b"), nodes=(1, 1, 1))
    for i in range(1, 4):
        case.ask(f"v{i}", "b")
    case.run()
    case.s.handle(AddApplication(ApplicationSpec(id="h", queue="root.a")), 0)
    one = AskSpec(application="h", key="h0", resources=Resources({"vcore": 1000}))
    case.s.handle(AddAsks(tuple(replace(one, key=f"h{i}") for i in range(3))), 0)
    stopped = []
    for after in (1_000, 0, 0):
        stopped += case.run(after)[1]
    assert sorted(stopped) == ["v1", "v2", "v3"]
    case.gone(*stopped)
    assert len(case.run()[0]) == 3


def test_the_preemptor_is_not_overtaken_by_smaller_work_behind_it() -> None:
    """Its turn comes first: what is free stays for it when room is made in the same run."""
    case = Case(queue("a", g=2), queue("b"))
    for i in range(1, 4):
        case.ask(f"v{i}", "b")
    case.run()
    case.ask("h", "a", 2)
    case.run()
    case.now = 1_000
    case.ask("small", "b")
    assert case.run() == ([], ["v3"])
    assert case.run() == ([], [])
    case.gone("v3")
    assert case.run(limit=1) == (["h@n1"], [])


def test_what_was_lost_with_its_node_may_be_asked_for_again() -> None:
    """The reserved node goes away: the ask may cause others to be stopped once more."""
    case = full(queue("a", g=2), queue("b"), nodes=(1, 1))
    case.ask("h", "a")
    (first,) = case.run(1_000)[1]
    home = case.s.cluster.partitions["default"].applications[first].asks[first].node
    assert home is not None
    case.s.handle(RemoveNode(home.id), case.now)
    check_books(case.s)
    (second,) = case.run(15_000)[1]
    assert second != first


def test_a_new_guarantee_counts_at_once() -> None:
    """The ask is older than the delay when its queue gets a guarantee."""
    case = full(queue("a"), queue("b"))
    case.ask("h", "a")
    assert case.run(60_000) == ([], [])
    case.s.handle(Configure(spec_of(queue("a", g=2), queue("b"))), case.now)
    assert case.run() == ([], ["v4"])


def test_a_load_in_the_middle_goes_on_the_same() -> None:
    """Written down before the delay is over and made again, it preempts at the same moment."""
    case = full(queue("a", g=2), queue("b"))
    case.ask("h", "a")
    case.run()
    case.s = Scheduler.load(case.s.dump())
    assert case.run(999) == ([], [])
    assert case.run(1) == ([], ["v4"])


def test_a_victim_that_changes_its_size_is_counted_with_the_new_one() -> None:
    """Told to stop, it still grows in place: what is about to be free follows."""
    case = full(queue("a", g=2), queue("b"), nodes=(2,))
    case.ask("h", "a")
    assert case.run(1_000) == ([], ["v2"])
    grown = AskSpec(application="v2", key="v2", resources=Resources({"vcore": 1500}))
    case.s.handle(AddAsks((grown,)), case.now)
    check_books(case.s)
    assert case.s.cluster.partitions["default"].root.preempting == {"vcore": 1500}
    case.gone("v2")
    assert case.s.cluster.partitions["default"].root.preempting == {}


def large_victims(*nodes: int, g: int = 12) -> Case:
    """Each node is filled by one work, `v1` on n1 and so on, and queue `a` is guaranteed so many cores."""
    case = Case(queue("a", g=g), queue("b"), nodes=nodes)
    for i, cores in enumerate(nodes, 1):
        case.ask(f"v{i}", "b", cores, grace_ms=100_000)
    case.run()
    return case


def test_what_fits_beside_the_ask_for_which_room_is_made_has_nothing_more_stopped() -> None:
    """One work of four cores is enough for four asks of one; the fifth needs another one."""
    case = large_victims(4, 4, 4)
    for i in range(1, 5):
        case.ask(f"h{i}", "a")
    assert case.run(1_000) == ([], ["v1"])
    case.ask("h5", "a")
    assert case.run(1_000) == ([], ["v2"])
    case.s = Scheduler.load(case.s.dump())
    check_books(case.s)
    case.ask("thief", "b", priority=100)
    case.gone("v1")
    assert sorted(case.run(5_000)[0]) == ["h1@n1", "h2@n1", "h3@n1", "h4@n1"]


@pytest.mark.parametrize("what", ["selector", "wish", "label"])
def test_so_it_has_where_other_work_does_not_decide_where_it_may_run(what: str) -> None:
    """It names nodes, would rather be on some, or has a label that others look at: it had more stopped for it."""
    case = large_victims(4, 4)
    term = Requirement("kubernetes.io/hostname", "In", ("n1", "n2"))
    where = {
        "selector": Constraints(selector=(term,)),
        "wish": Constraints(preferred_nodes=(PreferredNodes(1, (term,)),)),
    }
    case.ask("far", "b", 4, where=Constraints(affinity=(AffinityTerm((Requirement("job", "In", ("x",)),)),)))
    for i in range(1, 5):
        case.ask(f"h{i}", "a", where=where.get(what, ANYWHERE), labels={"job": "x"} if what == "label" else {})
    assert case.run(1_000) == ([], ["v1"])
    case.gone("v1")
    assert sorted(case.run(5_000)[0]) == ["h1@n1", "h2@n1", "h3@n1", "h4@n1"]


def test_what_does_not_fit_beside_it_has_other_work_stopped() -> None:
    """Two asks of three cores need two nodes."""
    case = large_victims(4, 4)
    case.ask("h1", "a", 3)
    case.ask("h2", "a", 3)
    assert case.run(1_000) == ([], ["v1", "v2"])


def test_what_is_beyond_its_guarantee_gets_nothing_beside_it() -> None:
    """The second ask would lift the queue above its guarantee: it has its turn like any other."""
    case = large_victims(4, g=4)
    case.ask("h1", "a", 3)
    case.ask("h2", "a", 1)
    case.ask("more", "a", 1, priority=-1)
    assert case.run(1_000) == ([], ["v1"])
    node = case.s.cluster.partitions["default"].nodes.nodes["n1"]
    assert [ask.key for ask in node.reservations] == ["h1", "h2"]


def test_what_is_apart_from_the_ask_for_which_room_is_made_is_not_put_beside_it() -> None:
    """Room is not all that counts for it."""
    case = large_victims(4, 4)
    apart = Constraints(anti_affinity=(AffinityTerm((Requirement("job", "In", ("x",)),)),))
    case.ask("h1", "a", labels={"job": "x"})
    case.ask("h2", "a", where=apart)
    assert case.run(1_000) == ([], ["v1", "v2"])


def test_room_beside_it_is_not_counted_on_above_a_maximum() -> None:
    """The node and the guarantee have room for the second ask beside the first, the queue above has not."""
    below = queue("a", g=4), queue("b")
    case = Case(queue("p", *below, g=4, most=6), queue("c"), nodes=(8,))
    case.ask("stays", "p.b", 3, priority=9)
    case.ask("v1", "p.b", 3)
    case.run()
    case.ask("h1", "p.a", 1)
    case.ask("h2", "p.a", 3)
    assert case.run(1_000) == ([], ["v1"])
    node = case.s.cluster.partitions["default"].nodes.nodes["n1"]
    assert [ask.key for ask in node.reservations] == ["h1"]


def kept_for_a_turn(nodes: tuple[int, ...], most: int, waits: int, *others: tuple[str, str, int, int]) -> Case:
    """`late` waits too long in `p.b`, and room is kept for it."""
    below = queue("a", g=4), queue("b", wait_max="1m")
    case = Case(queue("p", *below, most=most), queue("c", preemption_policy="disabled"), nodes=nodes)
    for other in others:
        case.ask(*other)
        case.run()
    case.ask("late", "p.b", waits)
    assert case.run() == ([], [])
    assert case.run(60_000) == ([], [])
    return case


def test_nothing_is_stopped_for_room_that_is_kept_for_another_under_a_maximum() -> None:
    """What the victim would leave in the queue above goes to what has waited too long there."""
    case = kept_for_a_turn((6, 4), 6, 3, ("v1", "p.b", 3, 0), ("stays", "p.b", 3, 9))
    case.ask("h", "p.a", 3)
    assert case.run(1_000) == ([], [])
    case.s.handle(Release("v1", "v1", Cause.FINISHED), case.now)
    assert case.run() == (["late@n1"], [])


def test_what_is_kept_for_another_under_a_maximum_is_made_room_beside() -> None:
    """The queue above has room but for what is kept in it; a node has all that it takes."""
    case = kept_for_a_turn((1, 5, 3), 8, 5, ("v1", "p.b", 1, 0), ("other", "c", 2, 0))
    case.ask("h", "p.a", 3)
    assert case.run(1_000) == (["h@n3"], ["v1"])
