"""Preemption by quota: after its maximum was lowered a queue gives back what it uses above it, once, after a delay."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from invariants.books import check_books

from fairlead.core.books.queues import Queue
from fairlead.core.model.decisions import Evict
from fairlead.core.model.events import AddApplication, AddAsks, AddNode, Cause, Configure, Leaving, Release
from fairlead.core.model.resources import Limits, Resources
from fairlead.core.model.specs import (
    TAG_REQUIRED_NODE,
    ApplicationSpec,
    AskSpec,
    ClusterSpec,
    NodeSpec,
    PartitionSpec,
    PreemptionSpec,
    QueueSpec,
)
from fairlead.policy.preemption.quota import _victims
from fairlead.scheduler import Scheduler

DELAY = "quota.preemption.delay"


def queue(
    name: str, *below: QueueSpec, most: int | None = None, g: int = 0, delay: str = "1s", **more: Any
) -> QueueSpec:
    """A queue with this maximum and guarantee in thousandths of a core."""
    return QueueSpec(
        name=name,
        queues=below,
        max=Limits({"vcore": most} | more) if most is not None else None,
        guaranteed=Limits({"vcore": g}) if g else None,
        properties={DELAY: delay} if delay else {},
    )


def spec_of(*queues: QueueSpec, on: bool = True) -> ClusterSpec:
    """A cluster's configuration with these queues below the root."""
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=queues)
    return ClusterSpec(partitions=(PartitionSpec(root=root, preemption=PreemptionSpec(quota_enabled=on)),))


class Case:
    """A scheduler on one large node, with its time; what is told to stop stops at once unless `patient`."""

    def __init__(self, *queues: QueueSpec, on: bool = True) -> None:
        self.now, self.on, self.patient = 0, on, False
        self.s = Scheduler(spec_of(*queues, on=on))
        capacity = Resources({"vcore": 1_000_000, "memory": 1_000_000})
        self.s.handle(AddNode(NodeSpec(id="n1", capacity=capacity)), 0)

    def fill(self, where: str, *sizes: int, memory: int = 0, **more: Any) -> None:
        """An application with asks `LEAF0`, `LEAF1`, … of these sizes in thousandths of a core, running."""
        leaf = where.split(".")[-1]
        if leaf not in self.s.cluster.partitions["default"].applications:
            self.s.handle(AddApplication(ApplicationSpec(id=leaf, queue=f"root.{where}")), self.now)
        first = len(self.s.cluster.partitions["default"].applications[leaf].asks)
        for i, size in enumerate(sizes, first):
            amount = Resources({"vcore": size, "memory": memory})
            self.s.handle(AddAsks((AskSpec(application=leaf, key=f"{leaf}{i}", resources=amount, **more),)), self.now)
        self.s.schedule(self.now)

    def set(self, *queues: QueueSpec) -> None:
        """The queues are configured anew."""
        self.s.handle(Configure(spec_of(*queues, on=self.on)), self.now)

    def after(self, ms: int) -> list[str]:
        """Let time pass as a driver does it; who is told to stop."""
        until, stopped = self.now + ms, []
        while True:
            due = self.s.next_wakeup_ms()
            self.now = until if due is None or due > until else max(due, self.now)
            orders = [d for d in self.s.schedule(self.now, limit=0) if isinstance(d, Evict)]
            check_books(self.s)
            stopped += [d.key for d in orders]
            for d in orders:
                if not self.patient:
                    self.s.handle(Release(d.application, d.key, Cause.PREEMPTED_BY_SCHEDULER), self.now)
            if self.now == until and ((due := self.s.next_wakeup_ms()) is None or due > until):
                return stopped


def test_a_lowered_maximum_is_enforced_after_the_delay() -> None:
    """The newest go until the queue is within its maximum; not earlier, and only once."""
    case = Case(queue("a", most=10_000))
    case.fill("a", *[1000] * 8)
    case.set(queue("a", most=5_000))
    assert case.after(999) == []
    assert case.after(1) == ["a7", "a6", "a5"]
    assert case.after(60_000) == []


def test_the_order_names_the_queue() -> None:
    """The eviction says why, and is on behalf of nobody."""
    case = Case(queue("a", most=2_000))
    case.fill("a", 1000, 1000)
    case.set(queue("a", most=1_000))
    evict = next(d for d in case.s.schedule(1_000) if isinstance(d, Evict))
    assert (evict.rule, evict.on_behalf_of, evict.cause) == ("quota", "", Cause.PREEMPTED_BY_SCHEDULER)
    assert "root.a" in evict.message


@pytest.mark.parametrize("delay", ["", "soon"])
def test_without_a_delay_nothing_is_taken_back(delay: str) -> None:
    """No delay, or one that cannot be read, means that the queue keeps what runs."""
    case = Case(queue("a", most=10_000, delay=delay))
    case.fill("a", *[1000] * 8)
    case.set(queue("a", most=5_000, delay=delay))
    assert case.after(60_000) == []


def test_the_partition_has_to_switch_it_on() -> None:
    """`quotapreemptionenabled` is off unless it is given; no timer runs then."""
    case = Case(queue("a", most=10_000), on=False)
    case.fill("a", *[1000] * 8)
    case.set(queue("a", most=5_000))
    assert case.after(60_000) == []


def test_the_delay_is_inherited() -> None:
    """A property of the parent holds for its children."""
    case = Case(queue("p", queue("a", most=10_000, delay="")))
    case.fill("p.a", *[1000] * 8)
    case.set(queue("p", queue("a", most=5_000, delay="")))
    assert len(case.after(1_000)) == 3


def test_the_name_of_the_property_in_yunikorn_1_8_works() -> None:
    """`preemption.quota.delay` is read too; the newer name wins."""
    old = "preemption.quota.delay"
    case = Case(replace(queue("a", most=10_000), properties={old: "2s"}))
    case.fill("a", *[1000] * 8)
    case.set(replace(queue("a", most=5_000), properties={old: "2s"}))
    assert case.after(1_999) == []
    assert len(case.after(1)) == 3
    case.set(replace(queue("a", most=4_000), properties={DELAY: "3s", old: "1s"}))
    assert case.after(2_999) == []
    assert len(case.after(1)) == 1


def test_a_queue_that_shrinks_by_itself_in_time_keeps_the_rest() -> None:
    """Within its maximum again before the time is up: nothing happens, then or later."""
    case = Case(queue("a", most=10_000))
    case.fill("a", *[1000] * 3)
    case.set(queue("a", most=2_000))
    case.s.handle(Release("a", "a0"), 500)
    assert case.after(60_000) == []


def test_a_maximum_raised_again_in_time_stops_the_clock() -> None:
    """The change was taken back."""
    case = Case(queue("a", most=10_000))
    case.fill("a", *[1000] * 3)
    case.set(queue("a", most=2_000))
    case.after(500)
    case.set(queue("a", most=10_000))
    assert case.after(60_000) == []


def test_another_delay_shifts_the_clock() -> None:
    """One second more, from when the clock was started."""
    case = Case(queue("a", most=10_000))
    case.fill("a", *[1000] * 3)
    case.set(queue("a", most=2_000))
    case.after(500)
    case.set(queue("a", most=2_000, delay="2s"))
    assert case.after(1_499) == []
    assert case.after(1) == ["a2"]


def test_a_first_maximum_counts_as_lowered() -> None:
    """Without a maximum a queue was unlimited."""
    case = Case(queue("a"))
    case.fill("a", *[1000] * 3)
    case.set(queue("a", most=2_000))
    assert case.after(1_000) == ["a2"]


def test_one_resource_down_and_one_up_counts_as_lowered() -> None:
    """What is above its maximum is taken back, whatever else was raised."""
    case = Case(queue("a", most=10_000, memory=10))
    case.fill("a", *[1000] * 3)
    case.set(queue("a", most=2_000, memory=20))
    assert case.after(1_000) == ["a2"]


def test_use_forced_on_a_queue_starts_the_clock() -> None:
    """Allocations reported from outside go over the maximum."""
    case = Case(queue("a", most=2_000))
    case.fill("a", 1000, 1000)
    ask = AskSpec(application="a", key="extra", resources=Resources({"vcore": 1000}), node="n1")
    case.s.handle(AddAsks((ask,)), 0)
    assert case.after(999) == []
    assert case.after(1) == ["extra"]


def test_growing_in_place_starts_the_clock() -> None:
    """A running allocation becomes larger than the queue allows."""
    case = Case(queue("a", most=3_000))
    case.fill("a", 1000, 1000, 1000)
    case.s.handle(AddAsks((AskSpec(application="a", key="a0", resources=Resources({"vcore": 2000})),)), 0)
    assert case.after(1_000) == ["a2"]


def test_lower_priority_goes_first_and_protected_work_last() -> None:
    """1. agreed, 2. did not agree, 3. originators; within each the lowest priority, then the newest."""
    case = Case(queue("a", most=10_000))
    case.fill("a", 1000, originator=True, priority=-5)
    case.fill("a", 1000, allow_preempt_self=False, priority=-5)
    case.fill("a", 1000, 1000)
    case.fill("a", 1000, priority=5)
    case.set(queue("a", most=500))
    assert case.after(1_000) == ["a3", "a2", "a4", "a1", "a0"]


def test_work_larger_than_what_is_owed_stays() -> None:
    """Two large tasks are not stopped for a small excess."""
    case = Case(queue("a", most=10_000))
    case.fill("a", 4000, 4000)
    case.set(queue("a", most=6_000))
    assert case.after(60_000) == []


def test_what_gives_nothing_that_is_owed_stays() -> None:
    """Memory is owed and cores are not: work without memory is passed over."""
    case = Case(queue("a", most=10_000, memory=10))
    case.fill("a", 1000, 1000, memory=3)
    case.fill("a", 1000)
    case.set(queue("a", most=10_000, memory=3))
    assert case.after(1_000) == ["a1"]


def test_a_leaf_is_not_brought_below_its_guarantee() -> None:
    """The second large task would; a small one after it does not."""
    case = Case(queue("a", most=20_000, g=2_000))
    case.fill("a", 500, 500, 1500, 1500)
    case.set(queue("a", most=2_000, g=2_000))
    assert case.after(1_000) == ["a3", "a1"]


def test_a_leaf_that_gives_all_above_its_guarantee_gives_no_more() -> None:
    """Where its share is larger: what is left above the guarantee is nothing then."""
    case = Case(queue("a", g=2_000))
    case.fill("a", *[1_000] * 4)
    partition = case.s.cluster.partitions["default"]
    leaf = partition.applications["a"].queue
    assert len(_victims(partition, leaf, leaf, {"vcore": 3_000})) == 2


def test_a_parent_is_not_brought_below_its_guarantee_either() -> None:
    """Each gives up to one piece of work more than its share, where that is not guaranteed above."""
    parents = (queue("x", queue("x1"), g=3_500), queue("y", queue("y1")))
    case = Case(queue("p", *parents, most=10_000))
    case.fill("p.x.x1", *[1000] * 5)
    case.fill("p.y.y1", *[1000] * 5)
    case.set(queue("p", *parents, most=5_000))
    assert Counter(key[:1] for key in case.after(1_000)) == {"x": 1, "y": 4}


def test_work_that_needs_its_node_stays() -> None:
    """A daemon has nowhere else to go."""
    case = Case(queue("a", most=10_000))
    case.fill("a", 1000)
    case.fill("a", 1000, tags={TAG_REQUIRED_NODE: "n1"})
    case.set(queue("a", most=1_000))
    assert case.after(1_000) == ["a0"]


def test_children_give_in_proportion_to_what_they_use_above_their_guarantees() -> None:
    """Forty above the guarantee against eighty; below, by what each leaf uses; rounded at every level."""
    leaves = (queue("l1", queue("c1"), queue("c2"), g=10), queue("l2", queue("c3"), queue("c4")))
    case = Case(queue("p", *leaves, most=1_000))
    for where, n in (("p.l1.c1", 30), ("p.l1.c2", 20), ("p.l2.c3", 50), ("p.l2.c4", 30)):
        case.fill(where, *[1] * n)
    case.set(queue("p", *leaves, most=30))
    assert Counter(key[:2] for key in case.after(1_000)) == {"c1": 20, "c2": 13, "c3": 42, "c4": 25}


@pytest.mark.parametrize(("leaves", "runs", "over"), [(2, 1, 1), (3, 2, 1), (10, 1, 5), (10, 1, 4), (4, 3, 2)])
def test_parts_that_are_rounded_add_up_to_what_is_too_much(leaves: int, runs: int, over: int) -> None:
    """Of few large units, such as GPUs: neither twice as many are stopped, nor none."""
    below = [queue(f"l{number}") for number in range(leaves)]
    case = Case(queue("p", *below, most=leaves * runs))
    for each in below:
        case.fill(f"p.{each.name}", *[1] * runs)
    case.set(queue("p", *below, most=leaves * runs - over))
    stopped = case.after(1_000)
    assert len(stopped) == over
    assert max(Counter(key[:2] for key in stopped).values()) == 1


def random_tree(chance: Random, name: str = "p", depth: int = 0) -> QueueSpec:
    """Up to three levels, some of them with guarantees."""
    has_more = depth == 0 or (depth < 3 and chance.random() < 0.5)
    below = [random_tree(chance, f"{name}{number}", depth + 1) for number in range(chance.randint(1, 4) * has_more)]
    return queue(name, *below, most=None if depth else 1_000, g=chance.randint(0, 4) if depth else 0)


def paths_of(spec: QueueSpec, above: str = "") -> list[str]:
    """The leaves."""
    path = f"{above}.{spec.name}".lstrip(".")
    return [leaf for child in spec.queues for leaf in paths_of(child, path)] or [path]


def gives_at_most(of: Queue) -> int:
    """What guarantees there and below let go."""
    used, least = of.allocated.get("vcore", 0), (of.guaranteed or {}).get("vcore", 0)
    below = sum(map(gives_at_most, of.children.values())) if of.children else used
    return min(below, max(used - least, 0))


@pytest.mark.parametrize("number", range(25))
def test_of_single_units_just_what_is_too_much_goes_as_far_as_guarantees_let(number: int) -> None:
    """Whatever the tree."""
    chance = Random(number)
    tree = random_tree(chance)
    case = Case(tree)
    for path in paths_of(tree):
        case.fill(path, *[1] * chance.randint(1, 6))
    top = case.s.cluster.partitions["default"].root.children["p"]
    used = top.allocated["vcore"]
    most = chance.randint(1, used)
    case.set(replace(tree, max=Limits({"vcore": most})))
    expected = min(used - most, gives_at_most(top))
    assert len(case.after(5_000)) == expected


def test_a_leaf_whose_part_is_nothing_gives_what_others_cannot() -> None:
    """All work of the other one is larger than what is too much."""
    case = Case(queue("p", queue("x"), queue("y"), most=102))
    case.fill("p.x", 100)
    case.fill("p.y", 1, 1)
    case.set(queue("p", queue("x"), queue("y"), most=101))
    assert case.after(1_000) == ["y1"]


def test_what_no_child_could_give_by_itself_one_of_them_gives() -> None:
    """All work of each is larger than its part, and not larger than what is too much in all."""
    leaves = (queue("x"), queue("y"))
    case = Case(queue("p", *leaves, most=10_000))
    case.fill("p.x", 5_000)
    case.fill("p.y", 5_000)
    case.set(queue("p", *leaves, most=5_000))
    assert case.after(1_000) == ["x0"]


def test_a_child_within_its_guarantee_gives_nothing() -> None:
    """The other one gives all of it."""
    leaves = (queue("x", g=4_000), queue("y"))
    case = Case(queue("p", *leaves, most=20_000))
    case.fill("p.x", *[1000] * 4)
    case.fill("p.y", *[1000] * 4)
    case.set(queue("p", *leaves, most=6_000))
    assert case.after(1_000) == ["y3", "y2"]


def test_a_child_gives_of_what_its_guarantee_does_not_name() -> None:
    """All of it, where it uses nothing that is guaranteed."""
    leaves = (replace(queue("x"), guaranteed=Limits({"memory": 10})), queue("y"))
    case = Case(queue("p", *leaves, most=10_000))
    case.fill("p.x", *[1000] * 6)
    case.fill("p.y", *[1000] * 4)
    case.set(queue("p", *leaves, most=5_000))
    assert case.after(1_000) == ["x5", "x4", "x3", "y3", "y2"]


@pytest.mark.parametrize(("guaranteed", "expected"), [(4_000, {"y": 4}), (0, {"x": 2, "y": 2})])
def test_of_that_goes_no_more_than_of_what_is_guaranteed(guaranteed: int, expected: dict[str, int]) -> None:
    """Each has a core and so much memory: what the cores keep back the other one gives."""
    leaves = (queue("x", g=guaranteed), queue("y"))
    case = Case(queue("p", *leaves, most=20_000, memory=40))
    case.fill("p.x", *[1000] * 4, memory=5)
    case.fill("p.y", *[1000] * 4, memory=5)
    case.set(queue("p", *leaves, most=20_000, memory=20))
    assert Counter(key[0] for key in case.after(1_000)) == expected


def test_a_child_that_is_still_above_its_own_maximum_has_its_turn_a_second_later() -> None:
    """First the parent's excess is taken from the whole tree, then what the child still owes by itself."""
    case = Case(queue("p", queue("x", most=16_000), queue("y"), most=20_000))
    case.fill("p.x", *[1000] * 8)
    case.fill("p.y", *[1000] * 4)
    case.set(queue("p", queue("x", most=5_000), queue("y"), most=10_000))
    assert case.after(1_000) == ["x7", "x6"]
    assert case.after(999) == []
    assert case.after(1) == ["x5"]


def test_what_leaves_already_counts_as_gone() -> None:
    """The victims of the parent take their time: the child does not owe them again."""
    case = Case(queue("p", queue("x", most=16_000), most=20_000))
    case.patient = True
    case.fill("p.x", *[1000] * 8)
    case.set(queue("p", queue("x", most=5_000), most=5_000))
    assert case.after(1_000) == ["x7", "x6", "x5"]
    assert case.after(5_000) == []


def test_a_load_in_the_middle_goes_on_the_same() -> None:
    """The clock is part of the state."""
    case = Case(queue("a", most=10_000))
    case.fill("a", *[1000] * 3)
    case.set(queue("a", most=2_000))
    case.s = Scheduler.load(case.s.dump())
    assert case.after(999) == []
    assert case.after(1) == ["a2"]


def test_what_its_owner_withdrew_and_is_going_is_not_made_up_for() -> None:
    """It counts as gone for what is too much, for the part of each leaf, and for the guarantee."""
    case = Case(queue("a", most=10_000))
    case.fill("a", *[1000] * 8)
    case.set(queue("a", most=5_000))
    for key in ("a0", "a1"):
        case.s.handle(Leaving("a", key), case.now)
    assert case.after(1_000) == ["a7"]
    below = [queue("b", delay=""), queue("c", delay="", g=2_000)]
    case = Case(queue("p", *below, most=10_000))
    case.fill("p.b", 1000, 1000)
    case.fill("p.c", *[1000] * 6)
    case.set(queue("p", *below, most=3_000))
    for key in ("b0", "b1", "c0"):
        case.s.handle(Leaving(key[0], key), case.now)
    assert case.after(1_000) == ["c5", "c4"]


def test_what_is_going_is_within_no_guarantee_of_its_leaf() -> None:
    """Two stay, and so much is guaranteed."""
    below = [queue("b", delay="", g=2_000), queue("c", delay="")]
    case = Case(queue("p", *below, most=10_000))
    case.fill("p.b", 1000, 1000, 1000)
    case.fill("p.c", 1000, allow_preempt_self=False)
    case.set(queue("p", *below, most=1_000))
    case.s.handle(Leaving("b", "b0"), case.now)
    assert case.after(1_000) == ["c0"]
