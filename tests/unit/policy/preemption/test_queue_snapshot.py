"""What queues would have left of their guarantees: supposed, and taken back exactly."""

from __future__ import annotations

from loose_books import tree

from fairlead.core.books.queues import Queue
from fairlead.policy.preemption.queue_snapshot import QueueSnapshots

ONE = (("vcore", 1),)


def queues(**guaranteed: int) -> dict[str, Queue]:
    """`root.p.a`, `root.p.b` and `root.q.c`, by their last names, with so many cores guaranteed."""
    made = {queue.name: queue for queue in tree("root.p.a", "root.p.b", "root.q.c").values()}
    for name, cores in guaranteed.items():
        made[name].guaranteed = {"vcore": cores}
    return made


def test_without_a_guarantee_nothing_is_said() -> None:
    q = queues()
    assert QueueSnapshots(q["a"]).of(q["c"]).remaining() == {}


def test_what_was_told_to_stop_counts_as_gone() -> None:
    q = queues(c=3)
    q["c"].add_allocated((("vcore", 2),))
    q["c"].add_part(ONE, 1, is_leaving=True)
    assert QueueSnapshots(q["a"]).of(q["c"]).remaining() == {"vcore": 2}


def test_on_the_way_down_the_least_counts() -> None:
    q = queues(q=2, c=5)
    assert QueueSnapshots(q["a"]).of(q["c"]).remaining() == {"vcore": 2}


def test_in_its_own_queue_the_own_guarantee_wins() -> None:
    """Over those above, by resource."""
    q = queues(p=1, a=5)
    q["p"].guaranteed = {"vcore": 1, "memory": 7}
    assert QueueSnapshots(q["a"]).ask_queue.remaining() == {"vcore": 5}
    q["a"].guaranteed = None
    assert QueueSnapshots(q["a"]).ask_queue.remaining() == {"vcore": 1, "memory": 7}


def test_a_common_parent_does_not_keep_an_ask_from_its_siblings() -> None:
    """Where the ask's queue has a guarantee of its own."""
    q = queues(p=9, b=1)
    q["b"].add_allocated((("vcore", 3),))
    assert QueueSnapshots(q["a"]).of(q["b"]).remaining() == {"vcore": -2}
    q["a"].guaranteed = {"vcore": 1}
    assert QueueSnapshots(q["a"]).of(q["p"]).remaining() == {}
    assert QueueSnapshots(q["a"]).of(q["b"]).remaining() == {"vcore": -2}


def test_what_is_supposed_counts_up_to_the_root_and_is_taken_back_to_a_mark() -> None:
    q = queues(c=3, q=3)
    snapshots = QueueSnapshots(q["a"])
    leaf = snapshots.of(q["c"])
    snapshots.add(leaf, ONE)
    mark = snapshots.mark()
    snapshots.remove(leaf, (("vcore", 5), ("memory", 1)))
    assert snapshots.of(q["q"]).remaining() == {"vcore": 7}
    snapshots.undo(mark)
    assert leaf.remaining() == {"vcore": 2}
    snapshots.undo()
    assert (leaf.remaining(), snapshots.of(q["q"]).remaining()) == ({"vcore": 3}, {"vcore": 3})


def test_the_books_are_not_touched() -> None:
    q = queues(c=3)
    snapshots = QueueSnapshots(q["a"])
    snapshots.add(snapshots.of(q["c"]), ONE)
    assert (q["c"].allocated, q["root"].allocated) == ({}, {})
