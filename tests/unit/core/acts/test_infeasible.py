"""Work that no node, or no queue, could hold even when empty: it waits for no time, and is woken when that changes."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from priority_clusters import PriorityCluster, cores

from fairlead.core.model.events import (
    AddApplication,
    AddAsks,
    Configure,
    DrainNode,
    MoveApplication,
    UndrainNode,
    UpdateNode,
)
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import ApplicationSpec, AskSpec, ClusterSpec, PartitionSpec, QueueSpec, RuleSpec
from fairlead.scheduler import Scheduler

DELAY = {"preemption.delay": "1s"}


def with_a_guarantee() -> PriorityCluster:
    """Queue a is guaranteed 8 cores; `big` of a needs 4, and no node that takes work has more than 2."""
    mine = QueueSpec(name="a", guaranteed=cores(8), properties=DELAY)
    c = PriorityCluster(mine, QueueSpec(name="b"), nodes={"n1": 2, "n2": 8}, rule="guarantee")
    c.handle(DrainNode("n2"))
    c.submit("big", 4)
    assert c.run(1_000) == ([], [])
    return c


def occupy(c: PriorityCluster, node: str, count: int, each: int) -> None:
    """Work of queue b that runs there already."""
    c.handle(AddApplication(ApplicationSpec(id="others", queue="root.b")))
    size = Resources({"vcore": each * 1000})
    c.handle(
        AddAsks(tuple(AskSpec(application="others", key=f"o{i}", resources=size, node=node) for i in range(count)))
    )


def widen(c: PriorityCluster, by: str) -> None:
    """A node could hold `big` from now on, but is full of work of queue b."""
    if by == "node":
        c.node("n3", 4)
    elif by == "capacity":
        c.handle(UpdateNode("n1", Resources({"vcore": 4000})))
    else:
        c.handle(UndrainNode("n2"))
    occupy(c, {"node": "n3", "capacity": "n1", "undrain": "n2"}[by], 2, 4 if by == "undrain" else 2)


def test_it_sets_no_timer() -> None:
    """It was looked at every 15 seconds for ever: 5,760 wake-ups a day, each with a record in the journal."""
    c = with_a_guarantee()
    c.run(1_000)
    assert c.s.next_wakeup_ms() is None
    assert c.run(3_600_000) == ([], [])
    assert c.s.next_wakeup_ms() is None
    fits = PriorityCluster(QueueSpec(name="a", guaranteed=cores(8), properties=DELAY), rule="guarantee")
    fits.fill("runs", 4)
    fits.submit("waits", 4)
    fits.run()
    assert fits.s.next_wakeup_ms() is not None, "work that some node could hold is still looked at in time"


@pytest.mark.parametrize("by", ["node", "capacity", "undrain"])
def test_a_node_that_could_hold_it_wakes_it(by: str) -> None:
    """What the wake-up is for: nobody ends, and there is no timer, yet work is stopped for it."""
    c = with_a_guarantee()
    c.run(40_000)
    widen(c, by)
    assert c.run(4_999) == ([], []), "its attempts keep their times: 1 s after it came, then every 15"
    assert c.run()[1], "work above the guarantee of its queue gives way to it"
    assert {e.on_behalf_of for e in c.evictions()} == {"big"}


def test_an_attempt_that_falls_on_the_coming_of_the_node_is_made() -> None:
    """As if it had tried in vain all the time, and the node came a moment before."""
    c = with_a_guarantee()
    c.run(30_000)
    widen(c, "node")
    assert c.run(0)[1]


@pytest.mark.parametrize("by", ["node", "capacity", "undrain"])
def test_a_restart_changes_nothing_about_it(by: str) -> None:
    """Loaded from a snapshot it rests too, and does the same when a node comes."""
    there, again = with_a_guarantee(), with_a_guarantee()
    there.run(20_000)
    again.run(20_000)
    again.s = Scheduler.load(there.s.dump())
    again.run(20_000)
    there.run(20_000)
    assert again.s.next_wakeup_ms() is None
    for c in (there, again):
        widen(c, by)
        assert c.run(4_999) == ([], [])
        c.run()
    assert there.evictions() == again.evictions() != []


def test_a_restart_writes_it_down_in_the_same_order() -> None:
    """A size of which the first that rested has gone was written before one that began to rest meanwhile."""
    there, again = with_a_guarantee(), with_a_guarantee()
    for c in (there, again):
        c.submit("wide", 5)
        c.run(500)
        c.submit("equal", 4)
        c.finished("big")
        c.run(600)
    again.s = Scheduler.load(there.s.dump())
    for c in (there, again):
        c.run(1_000)
    assert again.s.dump() == there.s.dump()
    assert len(there.s.dump()["partitions"][0]["resting"]) == 2
    for c in (there, again):
        widen(c, "undrain")
        c.run(20_000)
    assert again.s.dump() == there.s.dump()


def test_a_smaller_ask_does_not_rest() -> None:
    """Another size is another shape: it fits, and so it is placed."""
    c = with_a_guarantee()
    c.handle(AddAsks((AskSpec(application="big", key="big", resources=Resources({"vcore": 2000})),)))
    assert c.run() == (["big@n1"], [])


def test_who_rests_is_forgotten_with_the_last_of_its_kind() -> None:
    """Nothing is kept of work that is gone, while its equal rests on."""
    c = with_a_guarantee()
    c.submit("equal", 4)
    c.run(1_000)
    table = c.s.cluster.partitions["default"].nodes
    (shape,) = table.oversize
    assert len(shape.resting) == 2
    c.finished("big")
    assert len(shape.resting) == 1
    c.finished("equal")
    assert not table.oversize


def test_the_room_it_needs_may_go_again() -> None:
    """A node that could hold it came and went: it rests again, and wakes for the next one."""
    c = with_a_guarantee()
    c.handle(UndrainNode("n2"))
    c.handle(DrainNode("n2"))
    c.run(60_000)
    assert c.s.next_wakeup_ms() is None
    widen(c, "undrain")
    assert c.run(15_000)[1]


def under_a_maximum(where: str = "parent", most: int = 2) -> tuple[QueueSpec, ...]:
    """Queue a is guaranteed 4 cores; `where` says which queue has a maximum of so many."""
    leaf = QueueSpec(name="a", guaranteed=cores(4), properties=DELAY, max=cores(most) if where == "leaf" else None)
    above = QueueSpec(name="p", parent=True, queues=(leaf,), max=cores(most) if where == "parent" else None)
    return (above, QueueSpec(name="b"))


def confined(where: str) -> PriorityCluster:
    """`big` of a needs 4 cores, which is more than the maximum; queue b uses all there is."""
    c = PriorityCluster(*under_a_maximum(where), rule="guarantee")
    occupy(c, "n1", 2, 2)
    c.submit("big", 4, queue="root.p.a")
    assert c.run(1_000) == ([], [])
    return c


def with_queues(c: PriorityCluster, *queues: QueueSpec) -> None:
    """Another queue file is in force from now on."""
    part = c.spec.partitions[0]
    root = replace(part.root, queues=queues)
    c.handle(Configure(replace(c.spec, partitions=(replace(part, root=root),), checksum="other")))


@pytest.mark.parametrize("where", ["leaf", "parent"])
def test_more_than_a_maximum_sets_no_timer(where: str) -> None:
    """Nothing that is stopped helps it, in its own queue or above."""
    c = confined(where)
    c.run(1_000)
    assert c.s.next_wakeup_ms() is None
    assert c.run(3_600_000) == ([], [])
    assert c.s.next_wakeup_ms() is None


@pytest.mark.parametrize("where", ["leaf", "parent"])
@pytest.mark.parametrize("restart", [False, True])
def test_a_higher_maximum_wakes_it(where: str, restart: bool) -> None:
    """After a restart too; its attempts keep their times. One that is still too low wakes nobody."""
    c = confined(where)
    c.run(20_000)
    if restart:
        c.s = Scheduler.load(c.s.dump())
    c.run(20_000)
    with_queues(c, *under_a_maximum(where, 3))
    assert c.run(0) == ([], [])
    assert c.s.next_wakeup_ms() is None
    with_queues(c, *under_a_maximum(where, 4))
    assert c.run(4_998) == ([], [])
    assert c.s.next_wakeup_ms() == 46_000
    assert c.run(2)[1] == ["o1", "o0"]
    assert {e.on_behalf_of for e in c.evictions()} == {"big"}


def test_a_smaller_ask_or_another_queue_is_looked_at() -> None:
    """What rests is forgotten with its batch; the ask that takes its place fits."""
    c = confined("leaf")
    leaf = c.s.cluster.partitions["default"].root.children["p"].children["a"]
    assert len(leaf.resting) == 1
    c.handle(AddAsks((AskSpec(application="big", key="big", resources=Resources({"vcore": 2000})),)))
    assert not leaf.resting
    assert c.run(15_000)[1]
    c = confined("leaf")
    leaf = c.s.cluster.partitions["default"].root.children["p"].children["a"]
    c.handle(MoveApplication("big", "root.b"))
    assert not leaf.resting
    c.gone("o0", "others")
    c.gone("o1", "others")
    assert c.run() == (["big@n1"], [])


def test_a_quota_of_a_namespace_that_is_raised_wakes_it() -> None:
    """A leaf that a placement rule made has its maximum from the tags of the last application in it."""
    rule = RuleSpec(name="tag", value="namespace", create=True)
    part = PartitionSpec(root=QueueSpec(name="root", parent=True, submit_acl="*"), placement_rules=(rule,))
    c = PriorityCluster(rule="guarantee")
    c.s = Scheduler(ClusterSpec(partitions=(part,)))
    c.node("n1", 4)

    def comes(app: str, size: int, namespace: str, most: int = 0) -> None:
        limits = json.dumps({"resources": {"vcore": {"value": most}}})
        tags = {"namespace.resourcequota": limits, "namespace.resourceguaranteed": limits} if most else {}
        c.handle(AddApplication(ApplicationSpec(id=app, tags={"namespace": namespace, **tags})))
        c.handle(AddAsks((AskSpec(application=app, key=app, resources=Resources({"vcore": size})),)))

    comes("others", 4000, "b")
    c.run()
    comes("big", 4000, "a", 2000)
    c.run(30_000)
    c.run(60_000)
    assert c.s.next_wakeup_ms() is None
    comes("small", 1, "a", 4000)
    c.run(30_000)
    assert [e.on_behalf_of for e in c.evictions()] == ["big"]
