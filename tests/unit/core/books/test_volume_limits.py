"""How many volumes of one driver a node takes: counted once however many use them, and looked at again."""

from __future__ import annotations

import random

from priority_clusters import PriorityCluster

from fairlead.core.books.volume_limits import VolumeLimits
from fairlead.core.model.constraints import VOLUME_LIMIT, Constraints
from fairlead.core.model.decisions import AskRejected
from fairlead.core.model.events import LabelNode
from fairlead.core.model.reasons import NoNodeSuits


def limits(count: int, driver: str = "disk") -> dict[str, str]:
    return {VOLUME_LIMIT + driver: str(count)}


def using(*names: str, driver: str = "disk") -> Constraints:
    return Constraints(volumes=tuple(f"{name}@{driver}" for name in names))


def cluster(count: int = 1) -> PriorityCluster:
    c = PriorityCluster(nodes={"n1": 9})
    c.handle(LabelNode("n1", limits(count)))
    return c


def test_a_node_takes_no_more_than_it_can_attach() -> None:
    """And says so; what ends gives it back."""
    c = cluster()
    c.fill("one", 1, where=using("a"))
    c.submit("two", 1, where=using("b"))
    c.submit("plain", 1)
    assert c.run() == (["plain@n1"], [])
    reason = c.s.why("two", "two")
    assert isinstance(reason, NoNodeSuits)
    assert (dict(reason.excluded), reason.sentence()) == (
        {"volumes": 1}, "the only node does not suit it: 1 to which no more volumes can be attached",
    )  # fmt: skip
    c.finished("one")
    assert c.run() == (["two@n1"], [])


def test_a_volume_that_is_there_already_costs_nothing() -> None:
    """Also where it was attached after the look that found no place."""
    c = cluster()
    c.node("n2", 9, **limits(0))
    c.submit("more", 1, where=using("a", "b"))
    c.fill("one", 1, where=using("a"))
    assert c.fill("two", 1, where=using("a")) == "n1"
    assert c.run() == ([], [])
    c.handle(LabelNode("n1", limits(2)))
    assert c.run() == (["more@n1"], [])


def test_another_driver_and_a_node_that_says_nothing_have_no_limit() -> None:
    c = cluster(0)
    c.fill("one", 1, where=using("a", driver="other"))
    c.node("n2", 9)
    assert c.fill("two", 1, where=using("a", "b", "c")) == "n2"


def test_preemption_knows_which_volumes_go() -> None:
    """The one whose volume is shared does not help; the other does."""
    c = cluster(2)
    for name, volume in (("shared-1", "a"), ("shared-2", "a"), ("own", "b")):
        c.fill(name, 1, where=using(volume))
    c.submit("high", 1, 9, where=using("c"))
    assert c.run() == ([], ["own"])
    c.gone("own")
    assert c.run() == (["high@n1"], [])


def test_what_is_promised_a_node_has_its_volumes_there() -> None:
    c = cluster(1)
    c.fill("low", 9, where=using("a"))
    c.submit("high", 9, 9, where=using("b"))
    assert c.run() == ([], ["low"])
    c.gone("low")
    assert c.run() == (["high@n1"], [])


def test_a_volume_without_a_driver_is_refused() -> None:
    c = cluster()
    c.submit("bad", 1, where=Constraints(volumes=("a",)))
    assert [d.reason.sentence() for d in c.decided if isinstance(d, AskRejected)] == ["volumes: 'a' is not name@driver"]


def test_what_is_counted_is_what_is_there() -> None:
    """Whatever comes and goes in which order, nothing is left over, and both ways to ask agree."""
    rng, books, there = random.Random(1), VolumeLimits(), []
    c = PriorityCluster(nodes={"n1": 1, "n2": 1})
    for name in ("n1", "n2"):
        c.handle(LabelNode(name, limits(3)))
    nodes = list(c.s.cluster.partitions["default"].nodes.nodes.values())
    for _ in range(300):
        if there and rng.random() < 0.5:
            books.claimed(*there.pop(rng.randrange(len(there))), -1)
        else:
            there.append((using(*rng.sample("abcdef", 2)).volumes, rng.choice(nodes)))
            books.claimed(*there[-1], 1)
        wanted = using(rng.choice("abcdef"))
        for row, node in enumerate(nodes):
            attached = {volume for volumes, at in there if at is node for volume in volumes}
            expected = len(attached | set(wanted.volumes)) > 3 and not attached >= set(wanted.volumes)
            assert books.exceeded(wanted, node) == expected
            assert books.rows(wanted, nodes)[row] != expected
    while there:
        books.claimed(*there.pop(), -1)
    assert books.attached == {}
