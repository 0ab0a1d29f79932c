"""What is in the way above the nodes: found, remembered with the demand or the queue, and forgotten when it moves."""

from __future__ import annotations

from priority_clusters import PriorityCluster, cores

from fairlead.core.books.asks import Ask
from fairlead.core.model.specs import LimitSpec, QueueSpec
from fairlead.policy.eligibility.headroom import is_full_above, is_held_back, is_short, obstacle_above


def looked_at(c: PriorityCluster, key: str = "w") -> Ask:
    """The waiting ask, after a call that could not place it."""
    assert c.run() == ([], [])
    return c.s.cluster.partitions["default"].applications[key].asks[key]


def held_back(c: PriorityCluster, ask: Ask) -> bool:
    """As far as is known."""
    assert ask.batch is not None
    return is_held_back(c.s.cluster.partitions["default"], ask.batch.demand, ask)


def test_nothing_is_in_the_way_of_what_only_lacks_a_node() -> None:
    c = PriorityCluster(nodes={"n1": 2, "n2": 2})
    c.submit("one", 1)
    c.submit("two", 1)
    c.run()
    c.submit("w", 2)
    ask = looked_at(c)
    assert not held_back(c, ask)
    assert ask.batch is not None
    assert ask.batch.demand.obstacle is None


def test_the_maximum_of_the_own_leaf_blocks_the_demand_until_room_is_made() -> None:
    c = PriorityCluster(QueueSpec(name="a", max=cores(2)))
    c.fill("one", 2)
    c.submit("w", 1)
    ask = looked_at(c)
    assert ask.batch is not None
    assert ask.batch.demand.obstacle is ask.app.queue
    c.finished("one")
    assert ask.batch.demand.obstacle is None
    assert not held_back(c, ask)


def test_the_maximum_of_a_queue_above_is_remembered_there_for_the_shape() -> None:
    """For all that ask for as much below it."""
    team = QueueSpec(name="team", parent=True, max=cores(2), queues=(QueueSpec(name="x"), QueueSpec(name="y")))
    c = PriorityCluster(team)
    c.fill("one", 2, 0, "root.team.x")
    c.submit("w", 1, 0, "root.team.y")
    ask = looked_at(c)
    assert ask.batch is not None
    assert list(ask.app.queue.lineage[1].full) == [ask.batch.demand.shape]
    assert is_full_above(ask.batch.demand)
    assert ask.batch.demand.obstacle is None
    c.finished("one")
    assert not is_full_above(ask.batch.demand)


def test_a_limit_of_its_user_blocks_the_demand() -> None:
    queue = QueueSpec(name="a", limits=(LimitSpec(users=("*",), max_resources=cores(2)),))
    c = PriorityCluster(queue)
    c.fill("one", 2)
    c.submit("w", 1)
    ask = looked_at(c)
    assert ask.batch is not None
    assert repr(ask.batch.demand.obstacle) == "<Ceiling of user nobody in root.a>"


def test_a_closed_gate_comes_before_all_else() -> None:
    c = PriorityCluster(QueueSpec(name="a", max=cores(2), max_applications=1))
    c.fill("one", 2)
    c.submit("w", 1)
    ask = looked_at(c)
    assert ask.batch is not None
    assert ask.batch.demand in ask.app.queue.gated


def test_too_little_on_all_nodes_together_marks_the_shape() -> None:
    c = PriorityCluster()
    c.fill("one", 3)
    c.submit("w", 2)
    ask = looked_at(c)
    assert ask.shape is not None
    assert (ask.shape.unfit, ask.shape.blocked_by_root) == (True, True)


def test_room_that_is_kept_for_nominated_asks_is_none() -> None:
    """Of the maximum of the queue that both are in."""
    c = PriorityCluster(QueueSpec(name="a", max=cores(4)), QueueSpec(name="b"), nodes={"n1": 4, "n2": 4})
    c.fill("low", 4, 1)
    c.submit("urgent", 4, 9)
    assert c.run()[1] == ["low"]
    c.submit("w", 1)
    ask = looked_at(c)
    assert ask.batch is not None
    c.gone("low")
    assert ask.app.queue.short_of_room(ask.items) is None
    assert is_short(c.s.cluster.partitions["default"], ask.batch.demand, ask)


def test_what_is_in_the_way_of_one_ask_is_found_and_not_remembered() -> None:
    """Its queue, and nothing once that has room."""
    c = PriorityCluster(QueueSpec(name="a", max=cores(2)), nodes={"n1": 3})
    c.fill("one", 2)
    c.submit("w", 2)
    part = c.s.cluster.partitions["default"]
    ask = part.applications["w"].asks["w"]
    assert ask.batch is not None
    assert obstacle_above(part, ask) is ask.app.queue
    c.finished("one")
    assert obstacle_above(part, ask) is None
    assert ask.batch.demand.obstacle is None
