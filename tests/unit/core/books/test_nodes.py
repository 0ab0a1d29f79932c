"""Work of another scheduler: it takes room on one node, and a report of it looks at no other."""

from __future__ import annotations

import random
import time

from invariants.books import check_books
from priority_clusters import PriorityCluster, labelled

from fairlead.core.books.node import Node
from fairlead.core.model.constraints import AffinityTerm, Constraints
from fairlead.core.model.decisions import AskRejected
from fairlead.core.model.events import AddAsks, AddNode, LabelNode, Release, RemoveNode
from fairlead.core.model.resources import Resources, fits_in
from fairlead.core.model.specs import TAG_FOREIGN, AskSpec, ClusterSpec, NodeSpec, PartitionSpec, QueueSpec
from fairlead.scheduler import Scheduler


def cluster(nodes: int) -> Scheduler:
    """So many nodes of 8 cores."""
    s = Scheduler(ClusterSpec(partitions=(PartitionSpec(root=QueueSpec(name="root", parent=True)),)))
    for i in range(nodes):
        s.handle(AddNode(NodeSpec(id=f"n{i}", capacity=Resources({"vcore": 8}))), 0)
    return s


def foreign(key: str, node: str, cores: int = 1) -> AddAsks:
    """The report of such work."""
    spec = AskSpec(
        application="", key=key, node=node, resources=Resources({"vcore": cores}), tags={TAG_FOREIGN: "default"}
    )
    return AddAsks((spec,))


def nodes_of(s: Scheduler) -> dict[str, Node]:
    """The nodes of the only partition."""
    return s.cluster.partitions["default"].nodes.nodes


def used(s: Scheduler) -> dict[str, int]:
    """Cores that others use, by node, where there are any."""
    return {n.id: n.occupied["vcore"] for n in nodes_of(s).values() if n.occupied.get("vcore")}


def test_of_nodes_the_emptiest_is_first_then_the_smaller_id() -> None:
    s = cluster(3)
    s.handle(foreign("f", "n0"), 0)
    table = s.cluster.partitions["default"].nodes
    assert [node.id for node in table.every()] == ["n1", "n2", "n0"]
    nodes = table.nodes
    assert table.first_in_order([nodes["n0"], nodes["n2"], nodes["n1"]]) is nodes["n1"]
    assert table.first_in_order([]) is None


def test_it_is_where_it_was_last_reported() -> None:
    """It may grow and move, and its end frees the node that it was on; a second end is passed over."""
    s = cluster(3)
    for event, expected in (
        (foreign("f", "n1", 2), {"n1": 2}),
        (foreign("f", "n1", 3), {"n1": 3}),
        (foreign("g", "n1", 1), {"n1": 4}),
        (foreign("f", "n2", 1), {"n1": 1, "n2": 1}),
        (Release("", "f"), {"n1": 1}),
        (Release("", "f"), {"n1": 1}),
    ):
        s.handle(event, 0)
        check_books(s)
        assert used(s) == expected


def test_it_goes_with_its_node() -> None:
    """A node that comes back under the same id has nothing of it, and its end is passed over."""
    s = cluster(2)
    s.handle(foreign("f", "n1"), 0)
    s.handle(RemoveNode("n1"), 0)
    check_books(s)
    s.handle(AddNode(NodeSpec(id="n1", capacity=Resources({"vcore": 8}))), 0)
    assert s.handle(Release("", "f"), 0) == []
    check_books(s)
    assert used(s) == {}
    (refused,) = s.handle(foreign("f", "gone"), 0)
    assert isinstance(refused, AskRejected)


def test_reports_in_any_order_are_what_the_last_ones_say() -> None:
    """Against a plain record by key, also after a restart."""
    rng = random.Random(7)
    s, last = cluster(5), dict[str, tuple[str, int]]()
    for i in range(300):
        key, node, cores = f"f{rng.randrange(12)}", f"n{rng.randrange(5)}", rng.randint(1, 3)
        if rng.random() < 0.6:
            s.handle(foreign(key, node, cores), i)
            last[key] = (node, cores)
        else:
            s.handle(Release("", key), i)
            last.pop(key, None)
        if i % 50 == 25:
            s = Scheduler.load(s.dump())
        check_books(s)
        expected: dict[str, int] = {}
        for where, amount in last.values():
            expected[where] = expected.get(where, 0) + amount
        assert used(s) == expected


def test_a_report_does_not_look_at_all_nodes() -> None:
    """With a hundred times the nodes a report costs about as much."""

    def seconds(s: Scheduler) -> float:
        best = float("inf")
        for turn in range(5):
            began = time.process_time()
            for i in range(200):
                s.handle(foreign(f"f{i}", f"n{(i + turn) % 30}"), 0)
            best = min(best, time.process_time() - began)
        return best

    assert seconds(cluster(3000)) < 5 * seconds(cluster(30))


def test_a_node_that_moves_to_another_zone_lets_work_start_in_the_one_that_it_left() -> None:
    """`describe` has every shape looked at again, not what fits on that node alone."""
    c = PriorityCluster(nodes={"n1": 2, "n2": 4})
    for name in ("n1", "n2"):
        c.handle(LabelNode(name, {"zone": "a"}))
    c.submit("db", 2, node="n1", labels={"app": "db"})
    apart = Constraints(anti_affinity=(AffinityTerm(labelled("db"), "zone"),))
    c.submit("waits", 2, where=apart)
    assert c.run() == ([], [])
    c.handle(LabelNode("n1", {"zone": "b"}))
    assert c.run()[0] == ["waits@n2"]


def test_what_is_left_of_all_nodes_says_the_same_of_every_shape_as_the_sum_of_one() -> None:
    """The quick way, for all that wait at once, and the plain one; also where more is in use than there is."""
    chance = random.Random(7)
    table = PriorityCluster().s.cluster.partitions["default"].nodes
    answers = []
    for _ in range(300):
        table.total = {name: chance.randint(0, 4) for name in chance.sample(["a", "b", "c"], 2)}
        table.in_use = {name: chance.randint(0, 5) for name in chance.sample(["a", "b", "c"], 2)}
        items = tuple((name, chance.randint(1, 3)) for name in chance.sample(["a", "b", "c"], 2))
        answers.append(table.sum_has_room(items))
        assert fits_in(items, table.left_of_all()) is answers[-1], (table.total, table.in_use, items)
    assert len(set(answers)) == 2
