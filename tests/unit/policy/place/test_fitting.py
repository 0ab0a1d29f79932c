"""Where the next ask of a batch would start, and what is remembered where it would not."""

from __future__ import annotations

from priority_clusters import PriorityCluster

from fairlead.core.model.resources import Limits
from fairlead.core.model.specs import QueueSpec
from fairlead.policy.order.pick import Lines
from fairlead.policy.place.fitting import may_fit_still, node_for


def test_what_is_known_not_to_fit_is_not_searched_again() -> None:
    """Until a node gains."""
    c = PriorityCluster(nodes={"n1": 1}, rule="guarantee")
    part = c.s.cluster.partitions["default"]
    lines = Lines(part)
    c.submit("one", 2)
    assert c.run() == ([], [])
    ask = part.applications["one"].asks["one"]
    assert ask.batch is not None
    assert lines.first_that_may_fit(ask.app.queue) is None
    c.node("n2", 2)
    assert lines.first_that_may_fit(ask.app.queue) is ask.batch
    found = node_for(part, ask.batch)
    assert found is not None
    assert found.id == "n2"
    assert may_fit_still(ask.batch)


def test_what_a_full_queue_is_in_the_way_of_has_no_node() -> None:
    """And may not fit any more until that has room."""
    c = PriorityCluster(QueueSpec(name="a", max=Limits({"vcore": 1000})), nodes={"n1": 4}, rule="guarantee")
    part = c.s.cluster.partitions["default"]
    c.submit("runs", 1)
    c.run()
    c.submit("waits", 1)
    Lines(part).settle()
    batch = part.applications["waits"].asks["waits"].batch
    assert batch is not None
    assert node_for(part, batch) is None
    assert not may_fit_still(batch)
    c.finished("runs")
    Lines(part).settle()
    assert may_fit_still(batch)
    assert node_for(part, batch) is not None
