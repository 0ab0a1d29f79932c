"""The law of promises can fail: that an ask has a host port, or keeps others away, is no excuse by itself."""

from __future__ import annotations

from typing import Any

import pytest
from priority_clusters import PriorityCluster, labelled
from properties.promises import Promises

from fairlead.core import claims
from fairlead.core.constraints import HOSTNAME, AffinityTerm, Constraints

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
    claims.unhold(part, part.applications["high"].asks["high"])
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
def test_a_promise_is_excused_by_who_started_meanwhile(where: Constraints, other: dict[str, Any]) -> None:
    """Nothing is kept of a port or a distance: other work may take it."""
    _, promises = promised(where, **other)
    promises.decisions([])
    assert promises.counts["promises lost"] == 1
