"""Which nodes have what an ask runs: points by size and by how many nodes have it."""

from __future__ import annotations

import pytest
from priority_clusters import PriorityCluster

from fairlead.core.books.images import Images
from fairlead.core.books.nodes import NodeTable
from fairlead.core.model.decisions import NodeRejected
from fairlead.core.model.events import LabelAsk, LabelNode, RemoveNode, ReportImages
from fairlead.scheduler import Scheduler

MIB = 1024**2
LARGE = {"tool:1": 2000 * MIB}


def cluster(nodes: int = 4) -> PriorityCluster:
    """The order of nodes begins with the emptiest, then with `n0`."""
    c = PriorityCluster(nodes={f"n{i}": 4 for i in range(nodes)})
    c.handle(ReportImages("n3", LARGE))
    return c


def images_of(c: PriorityCluster) -> Images:
    table: NodeTable = c.s.cluster.partitions["default"].nodes
    return table.images


def points(c: PriorityCluster, *wish: str) -> list[int] | None:
    found = images_of(c).points(wish)
    return found.tolist() if found is not None else None


@pytest.mark.parametrize(
    ("size", "holders", "found"),
    [
        (23 * 4, 1, None),
        (300, 1, 5),  # (300 / 4 - 23) of 977
        (300, 2, 12),
        (4000, 1, 100),
        (40_000, 1, 100),
        (1000, 4, None),
    ],
)
def test_the_points_of_one_image(size: int, holders: int, found: int | None) -> None:
    """Nothing for what is fetched soon, or is everywhere; all for 1,000 MiB."""
    c = cluster()
    for i in range(holders):
        c.handle(ReportImages(f"n{i}", {"a:1": size * MIB}))
    assert points(c, "a:1") == (None if found is None else [found] * holders + [0] * (4 - holders))


def test_several_images_share_the_bounds() -> None:
    """Of two the sum counts, up to twice as much; one that is wanted twice counts twice."""
    c = cluster()
    c.handle(ReportImages("n0", {"a:1": 2000 * MIB, "b:1": 400 * MIB}))
    assert points(c, "a:1") == [48, 0, 0, 0]
    assert points(c, "a:1", "b:1") == [(600 - 23) * 100 // 1977, 0, 0, 0]
    assert points(c, "a:1", "a:1") == [(1000 - 23) * 100 // 1977, 0, 0, 0]
    assert points(c, "a:1", "unknown") == [(500 - 23) * 100 // 1977, 0, 0, 0]


def test_a_node_that_has_it_comes_first_and_another_will_do() -> None:
    c = cluster()
    assert c.fill("one", 3, images=("tool:1",)) == "n3"
    assert c.fill("two", 3, images=("tool:1",)) == "n0"
    assert c.fill("other", 1, images=("else:1",)) == "n1"


def test_what_is_fetched_and_removed_counts_from_then_on() -> None:
    c = cluster()
    c.handle(ReportImages("n1", LARGE))
    c.handle(ReportImages("n3", {}))
    assert c.fill("one", 1, images=("tool:1",)) == "n1"
    c.handle(ReportImages("n1", {}))
    assert images_of(c).by_name == {}
    assert c.fill("two", 1, images=("tool:1",)) == "n0"


def test_nodes_that_come_and_go_count_in_what_part_has_it() -> None:
    c = cluster()
    assert points(c, "tool:1") == [0, 0, 0, 48]
    c.handle(RemoveNode("n0"))
    assert points(c, "tool:1") == [0, 0, (666 - 23) * 100 // 977]
    c.node("n9", 4)
    c.handle(LabelNode("n1", {"zone": "a"}))
    assert points(c, "tool:1") == [0, 0, 48, 0]
    c.handle(RemoveNode("n3"))
    assert images_of(c).by_name == {}
    assert images_of(c).of_node == {}


def test_rows_follow_without_being_made_anew() -> None:
    c = cluster()
    assert points(c, "tool:1") == [0, 0, 0, 48]
    c.handle(ReportImages("n0", LARGE))
    c.handle(ReportImages("n3", {"other": 1}))
    assert points(c, "tool:1") == [48, 0, 0, 0]


def test_names_are_kept_once_and_the_first_size_counts() -> None:
    c = cluster()
    for i in range(3):
        c.handle(ReportImages(f"n{i}", {"tool:1": i}))
    assert list(images_of(c).by_name) == ["tool:1"]
    assert images_of(c).by_name["tool:1"].size == 2000 * MIB


def test_another_image_while_it_waits() -> None:
    c = cluster()
    c.submit("one", 1, images=("else:1",))
    c.handle(LabelAsk("one", "one", {}, images=("tool:1",)))
    assert c.run() == (["one@n3"], [])


def test_it_is_known_again_after_a_restart() -> None:
    c = cluster()
    c.handle(ReportImages("n0", {"tool:1": 1}))
    written = c.s.dump()
    c.s = Scheduler.load(written)
    assert c.s.dump() == written
    c.handle(ReportImages("n0", {}))
    assert c.fill("one", 1, images=("tool:1",)) == "n3"


def test_what_makes_no_sense_is_refused() -> None:
    c = cluster()
    c.handle(ReportImages("gone", LARGE))
    c.handle(ReportImages("n0", {"bad": -1}))
    assert [d.reason.sentence() for d in c.decided if isinstance(d, NodeRejected)] == [
        "failed to find node gone",
        "the image bad has a size below 0",
    ]
    assert list(images_of(c).by_name) == ["tool:1"]
