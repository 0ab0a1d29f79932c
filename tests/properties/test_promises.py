"""The law of promises can fail: that an ask has a host port, or keeps others away, is no excuse by itself."""

from __future__ import annotations

from typing import Any

import pytest
from priority_clusters import PriorityCluster, labelled
from properties.promises import Promises

from fairlead.core.acts import nominate, reserve_node
from fairlead.core.model.constraints import HOSTNAME, AffinityTerm, Constraints, SpreadTerm
from fairlead.core.model.decisions import Allocated
from fairlead.core.model.resources import Limits
from fairlead.core.model.specs import TAG_REQUIRED_NODE, QueueSpec

PORT = Constraints(ports=("TCP/0.0.0.0/80",))
APART = Constraints(anti_affinity=(AffinityTerm(labelled("x"), HOSTNAME),))


def promised(mine: Constraints, **of_other: Any) -> tuple[PriorityCluster, Promises]:
    """`low` is stopped for `high`, and then the room is taken from `high` for no reason; `other` runs beside it."""
    c = PriorityCluster(nodes={"n1": 4})
    part = c.s.cluster.partitions["default"]
    promises = Promises(lambda: part.applications, lambda: part.nodes.nodes.values())
    c.fill("low", 3, 0)
    c.submit("high", 3, 5, where=mine)
    assert c.run() == ([], ["low"])
    promises.decisions(c.decided)
    assert c.nominated() == {"high": "n1"}
    if of_other:
        c.submit("other", 1, 0, node="n1", **of_other)
    nominate.withdraw(part, part.applications["high"].asks["high"])
    return c, promises


@pytest.mark.parametrize("where", [PORT, APART], ids=["port", "apart"])
def test_a_promise_that_is_lost_for_no_reason_is_seen(where: Constraints) -> None:
    """Nobody runs on the node who has the port, or whom it must not be near."""
    _, promises = promised(where)
    with pytest.raises(AssertionError, match="lost what was stopped for it"):
        promises.decisions([])


@pytest.mark.parametrize(
    ("where", "other"),
    [(PORT, {"where": PORT}), (APART, {"labels": {"app": "x"}})],
    ids=["port", "apart"],
)
def test_a_promise_that_is_lost_to_who_started_meanwhile_is_seen(where: Constraints, other: dict[str, Any]) -> None:
    """A port and a distance are kept as the room is."""
    _, promises = promised(where, **other)
    with pytest.raises(AssertionError, match="lost what was stopped for it"):
        promises.decisions([])


@pytest.mark.parametrize("is_new", [True, False])
def test_a_promise_is_excused_by_whom_it_is_spread_among_unless_they_are_new(is_new: bool) -> None:
    """There are two on its node, one more than it may be ahead: that excuses it if nobody let that one start."""
    spread = Constraints(spread=(SpreadTerm(labelled("x"), HOSTNAME),))
    c, promises = promised(spread, labels={"app": "x"})
    c.submit("more", 1, 0, node="n1", labels={"app": "x"})
    c.node("n2", 4)
    if not is_new:
        promises.decisions([])
        assert promises.counts["promises lost"] == 1
        return
    with pytest.raises(AssertionError, match="lost what was stopped for it"):
        promises.decisions([Allocated("other", "other", "n1"), Allocated("more", "more", "n1")])


@pytest.mark.parametrize("there", [True, False])
def test_only_who_requires_that_very_node_may_take_it(there: bool) -> None:
    """A daemon starts at once, and the node is set aside no longer: excused where it is the daemon's own node."""
    guaranteed = QueueSpec(
        name="a", guaranteed=Limits({"vcore": 3_000}), properties={"preemption.delay": "1s", "priority.offset": "1"}
    )
    c = PriorityCluster(guaranteed, QueueSpec(name="b"), nodes={"n1": 4, "n2": 1}, rule="guarantee")
    part = c.s.cluster.partitions["default"]
    promises = Promises(lambda: part.applications, lambda: part.nodes.nodes.values())
    c.fill("low", 3, queue="root.b")
    c.submit("high", 3, queue="root.a")
    assert c.run(1_000) == ([], ["low"])
    promises.decisions(c.decided)
    high = part.applications["high"].asks["high"]
    assert high.reserved_on is part.nodes.nodes["n1"]
    c.submit("daemon", 1, queue="root.b", tags={TAG_REQUIRED_NODE: "n1" if there else "n2"})
    before = len(c.decided)
    assert c.run() == ([f"daemon@{'n1' if there else 'n2'}"], [])
    if there:
        promises.decisions(c.decided[before:])
        assert promises.counts["promises taken"] == 1
        return
    reserve_node.unreserve(part, high)
    with pytest.raises(AssertionError, match="lost what was stopped for it"):
        promises.decisions(c.decided[before:])
