"""Bounds of a plan: the room of a node, and the maximum of a queue."""

from __future__ import annotations

from loose_books import application, ask, node, tree

from fairlead.policy.preemption.bound import Bound, all_let


def test_it_is_kept_when_nothing_is_missing() -> None:
    there = node("n", vcore=4)
    assert Bound(there, {"vcore": 0, "memory": 3}).is_kept
    assert not Bound(there, {"vcore": 3, "memory": -1}).is_kept


def test_what_goes_gives_its_room_and_takes_it_again() -> None:
    """Of what is bound at all."""
    leaf = tree("root.a")["root.a"]
    running = ask(application(leaf), "k", {"vcore": 2, "memory": 9})
    bound = Bound(leaf, {"vcore": -1})
    bound.add(running, 1)
    assert (bound.left, bound.is_kept) == ({"vcore": 1}, True)
    assert not all_let([bound], running)
    bound.add(running, -1)
    assert bound.left == {"vcore": -1}


def test_what_fits_beside_may_stay() -> None:
    """In each of them; what one of them does not bind there is enough of."""
    leaf = tree("root.a")["root.a"]
    app = application(leaf)
    bounds = [Bound(leaf, {"vcore": 2}), Bound(node("n", vcore=4), {"vcore": 4, "memory": 9})]
    assert all_let(bounds, ask(app, "two", {"vcore": 2}))
    assert not all_let(bounds, ask(app, "three", {"vcore": 3}))
    assert not all_let(reversed(bounds), ask(app, "also three", {"vcore": 3}))
    assert all_let(bounds[:1], ask(app, "other", {"memory": 99}))
    assert not all_let(bounds, ask(app, "too much of it", {"memory": 99}))


def test_a_node_holds_what_runs_there_and_a_queue_what_is_below() -> None:
    queues, there = tree("root.p.a", "root.b"), node("n", vcore=4)
    running = ask(application(queues["root.p.a"]), "k")
    running.node = there
    assert Bound(there, {}).holds(running)
    assert Bound(queues["root.p"], {}).holds(running)
    assert not Bound(queues["root.b"], {}).holds(running)
    assert not Bound(node("m", vcore=4), {}).holds(running)


def test_idle_work_takes_no_room_of_its_own_leaf() -> None:
    """It counts in its resource group, and from there up."""
    queues = tree("root.p.a")
    borrowed = ask(application(queues["root.p.a"]), "k", idle=True)
    assert not Bound(queues["root.p.a"], {}).holds(borrowed)
    assert Bound(queues["root"], {}).holds(borrowed)
