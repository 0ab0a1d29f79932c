"""In which queues something may be within its guarantees is kept, and follows what runs, waits and is configured."""

from __future__ import annotations

from priority_clusters import PriorityCluster, cores

from fairlead.core.books.guarantees import find_owed, is_owed_leaf, may_be_owed, owed_leaves
from fairlead.core.books.queues import Queue
from fairlead.core.model.events import AddAsks, Configure, SetPriority
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import AskSpec, ClusterSpec, PartitionSpec, PreemptionSpec, QueueSpec

A = QueueSpec(name="a", guaranteed=cores(2))
B = QueueSpec(name="b")


def world(*queues: QueueSpec, rule: str = "both", nodes: int = 4) -> PriorityCluster:
    return PriorityCluster(*(queues or (A, B)), nodes={"n1": nodes}, rule=rule)


def owed(c: PriorityCluster) -> list[str]:
    """The leaves in which something may be owed; every single one says the same."""
    root = c.s.cluster.partitions["default"].root
    leaves = list(owed_leaves(root))
    assert leaves == [queue for queue in root.walk() if queue.is_leaf and is_owed_leaf(queue)]
    return [leaf.name for leaf in leaves]


def queue(c: PriorityCluster, path: str) -> Queue:
    found = c.s.cluster.partitions["default"].root.find(path)
    assert found is not None
    return found


def test_it_is_so_while_something_waits_and_the_guarantee_is_not_used_up() -> None:
    c = world()
    assert owed(c) == []
    c.submit("one", 1)
    assert owed(c) == ["a"]
    c.run()
    assert owed(c) == []
    c.submit("two", 1)
    c.submit("three", 1)
    assert owed(c) == ["a"]
    c.run()
    c.submit("four", 2)
    assert owed(c) == []  # The guarantee is used up.
    c.finished("one")
    assert owed(c) == []
    c.finished("two")
    assert owed(c) == ["a"]


def test_what_starts_or_is_reported_uses_it_up_while_more_waits() -> None:
    c = world(nodes=2)
    c.submit("one", 2)
    c.submit("two", 2)
    assert owed(c) == ["a"]
    assert c.run() == (["one@n1"], [])
    assert owed(c) == []
    other = world()
    other.submit("waits", 9)
    assert owed(other) == ["a"]
    there = AskSpec(application="waits", key="there", resources=Resources({"vcore": 2000}), node="n1")
    other.handle(AddAsks((there,)))
    assert owed(other) == []


def test_what_was_told_to_stop_counts_as_gone() -> None:
    """A queue takes back what another one has above its guarantee: it is owed no more of it, and that one not again."""
    c = world(A, QueueSpec(name="b", guaranteed=cores(1)), nodes=2)
    c.fill("first", 1, queue="root.b")
    c.fill("second", 1, queue="root.b")
    c.submit("third", 1, queue="root.b")
    assert owed(c) == []
    c.submit("mine", 1)
    assert owed(c) == ["a"]
    stopped = c.run()[1]
    assert stopped == ["second"]
    assert owed(c) == ["a"]  # `mine` waits for room that it does not have yet.
    assert queue(c, "root.b").preempting == {"vcore": 1000}


def test_what_stops_within_a_guarantee_gives_it_back() -> None:
    """A queue uses all that it is guaranteed, and stops some of that for more important work of its own."""
    c = world(nodes=2)
    c.fill("low", 1)
    c.fill("other", 1)
    c.submit("urgent", 1, 9)
    assert owed(c) == []
    assert c.run() == ([], ["other"])
    assert owed(c) == ["a"]


def test_only_leaves_below_a_guarantee_are_and_none_where_they_do_not_count() -> None:
    deep = QueueSpec(name="p", parent=True, guaranteed=cores(2), queues=(QueueSpec(name="x"), QueueSpec(name="y")))
    c = world(deep, B)
    for path in ("root.p.x", "root.b"):
        c.submit(path, 1, queue=path)
    assert owed(c) == ["x"]
    other = world(deep, B, rule="priority")
    other.submit("some", 1, queue="root.p.x")
    assert owed(other) == []


def test_a_guarantee_above_that_is_used_up_ends_it_for_all_below() -> None:
    leaves = (QueueSpec(name="x", guaranteed=cores(2)), QueueSpec(name="y", guaranteed=cores(2)))
    c = world(QueueSpec(name="p", parent=True, guaranteed=cores(3), queues=leaves))
    c.fill("x", 3, queue="root.p.x")
    c.submit("y", 1, queue="root.p.y")
    assert owed(c) == []
    assert may_be_owed(queue(c, "root.p.y"))
    assert not may_be_owed(queue(c, "root.p"))
    c.finished("x")
    assert owed(c) == ["y"]


def test_another_configuration_and_a_withdrawal_change_it() -> None:
    c = world()
    c.submit("some", 1, queue="root.b")
    assert owed(c) == []
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=(A, QueueSpec(name="b", guaranteed=cores(1))))
    c.handle(Configure(ClusterSpec(partitions=(PartitionSpec(root=root, preemption=PreemptionSpec(rule="both")),))))
    assert owed(c) == ["b"]
    c.finished("some")
    assert owed(c) == []


def test_what_is_kept_is_what_is_worked_out_anew() -> None:
    c = world()
    c.submit("some", 1)
    root = c.s.cluster.partitions["default"].root
    kept = list(root.owed_below)
    find_owed(root)
    assert list(root.owed_below) == kept == [queue(c, "root.a")]
    loaded = type(c.s).load(c.s.dump())
    assert [q.name for q in loaded.cluster.partitions["default"].root.owed_below] == ["a"]


def test_a_priority_that_changes_is_no_end_of_it() -> None:
    c = world(nodes=1)
    c.submit("wide", 2, 3)
    assert owed(c) == ["a"]
    c.handle(SetPriority("wide", "wide", -3))
    assert owed(c) == ["a"]
