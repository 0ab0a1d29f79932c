"""What is in the way above the nodes: found, remembered with the demand or the queue, and forgotten when it moves."""

from __future__ import annotations

from priority_clusters import PriorityCluster, cores

from fairlead.core.books.asks import Ask
from fairlead.core.model.events import AddApplication, AddAsks
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import ApplicationSpec, AskSpec, LimitSpec, QueueSpec
from fairlead.policy.eligibility.headroom import is_full_above, is_held_back, is_short, obstacle_above
from fairlead.policy.order.pick import Lines


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
    assert ask.batch.demand.obstacle is ask.app.ceilings[0]


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


def of_user(c: PriorityCluster, user: str, key: str, cores: int) -> None:
    """An application of this user with one ask."""
    c.handle(AddApplication(ApplicationSpec(id=key, queue="root.a", user=user)))
    c.handle(AddAsks((AskSpec(application=key, key=key, resources=Resources({"vcore": cores * 1000})),)))


def rests_after_a_look_at(c: PriorityCluster, key: str) -> list[str]:
    """The asks that rest once one look has found that this one is short, or that need not be looked at."""
    part = c.s.cluster.partitions["default"]
    Lines(part).settle()
    asks = {key: ask for app in part.applications.values() for key, ask in app.asks.items()}
    demands = {key: ask.batch.demand for key, ask in asks.items() if ask.batch is not None}
    assert is_short(part, demands[key], asks[key])
    return [key for key, demand in demands.items() if demand.obstacle is not None or is_full_above(demand)]


def test_one_look_at_a_full_leaf_serves_all_that_lack_room_there() -> None:
    """Not what fits, and not what is in another leaf."""
    c = PriorityCluster(QueueSpec(name="a", max=cores(4)), QueueSpec(name="b", max=cores(4)), nodes={"n1": 8})
    c.fill("one", 3)
    for key, size in (("two", 2), ("three", 3), ("fits", 1)):
        c.submit(key, size)
    c.submit("elsewhere", 2, queue="root.b")
    assert rests_after_a_look_at(c, "two") == ["two", "three"]
    assert c.run()[0] == ["elsewhere@n1", "fits@n1"]


def test_one_look_at_a_full_department_serves_all_sizes_below_it() -> None:
    team = QueueSpec(name="team", parent=True, max=cores(4), queues=(QueueSpec(name="x"), QueueSpec(name="y")))
    c = PriorityCluster(team, nodes={"n1": 8})
    c.fill("one", 3, 0, "root.team.x")
    c.submit("two", 2, 0, "root.team.x")
    c.submit("three", 3, 0, "root.team.y")
    c.submit("fits", 1, 0, "root.team.y")
    assert rests_after_a_look_at(c, "two") == ["two", "three"]
    assert c.run()[0] == ["fits@n1"]


def test_one_look_at_a_limit_serves_all_sizes_of_its_user() -> None:
    """Not those of another, whose limit has room."""
    limits = (LimitSpec(users=("*",), max_resources=cores(4)),)
    c = PriorityCluster(QueueSpec(name="a", limits=limits), nodes={"n1": 8})
    c.fill("one", 3)
    for user, key, size in (("nobody", "two", 2), ("nobody", "three", 3), ("nobody", "fits", 1), ("ada", "other", 2)):
        of_user(c, user, key, size)
    assert rests_after_a_look_at(c, "two") == ["two", "three"]
    assert c.run()[0] == ["fits@n1", "other@n1"]


def test_what_a_limit_is_in_the_way_of_does_not_rest_for_its_leaf() -> None:
    """The limit counts first: when it moves others may be stopped, though the leaf is as full as before."""
    limits = (LimitSpec(users=("ada",), max_resources=cores(1)),)
    c = PriorityCluster(QueueSpec(name="a", max=cores(4), limits=limits), nodes={"n1": 8})
    c.fill("one", 3)
    of_user(c, "nobody", "two", 2)
    of_user(c, "ada", "three", 3)
    assert rests_after_a_look_at(c, "two") == ["two"]


def test_what_has_to_enter_does_not_rest_for_its_leaf() -> None:
    """A gate counts first, and another moment opens it."""
    c = PriorityCluster(QueueSpec(name="a", max=cores(4), max_applications=2), nodes={"n1": 8})
    c.fill("one", 3)
    c.handle(AddAsks((AskSpec(application="one", key="two", resources=Resources({"vcore": 2000})),)))
    c.submit("three", 3)
    assert rests_after_a_look_at(c, "two") == ["two"]
