"""Allocations: what follows in all books when an ask gets its node, is told to stop, and is gone."""

from __future__ import annotations

from typing import Any

import pytest
from priority_clusters import PriorityCluster, cores

from fairlead.core.acts.allocations import evict, place, release
from fairlead.core.books.asks import Ask
from fairlead.core.books.node import Node
from fairlead.core.books.partition import Partition
from fairlead.core.model.decisions import Allocated, Evict, Released
from fairlead.core.model.events import AddApplication, AddAsks, Cause
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import ApplicationSpec, AskSpec, QueueSpec


def waiting(**more: Any) -> tuple[PriorityCluster, Partition, Ask, Node]:
    """An ask for two of four cores that nothing has looked at, and its node."""
    c = PriorityCluster(QueueSpec(name="a", max=cores(3)))
    c.submit("w", 2, **more)
    part = c.s.cluster.partitions["default"]
    return c, part, part.applications["w"].asks["w"], part.nodes.nodes["n1"]


def running(**more: Any) -> tuple[PriorityCluster, Partition, Ask, Node]:
    """The same, on its node."""
    c, part, ask, node = waiting(**more)
    assert c.run() == (["w@n1"], [])
    return c, part, ask, node


def test_what_is_placed_is_in_every_book_and_waits_no_longer() -> None:
    _, part, ask, node = waiting()
    place(part, ask, node)
    queue = ask.app.queue
    assert (ask.node, ask.pending, ask.batch, ask.allocated_ms) == (node, False, None, part.now_ms)
    assert (node.free["vcore"], queue.allocated, queue.pending_sum) == (2000, {"vcore": 2000}, 0)
    assert (ask.app.allocated, ask.app.allocations, str(ask.app.state)) == ({"vcore": 2000}, 1, "Running")
    assert part.out[0] == Allocated("w", "w", "n1")


def test_a_start_has_a_number_in_the_line_of_asks() -> None:
    c, part, ask, _ = running()
    c.submit("later", 1)
    later = part.applications["later"].asks["later"]
    assert ask.seq < ask.started_seq == part.started_seq < later.seq


def test_a_start_makes_things_tighter_only() -> None:
    """The books change, but nothing that lacked room has it now; idle work may be taken back from."""
    _, part, ask, node = waiting()
    version, room = part.books_version, part.room_stamp
    place(part, ask, node)
    assert (part.books_version - version, part.room_stamp - room) == (1, 0)
    _, part, ask, node = waiting(idle=True)
    room = part.room_stamp
    place(part, ask, node)
    assert part.room_stamp - room == 1


def test_what_is_told_to_stop_stays_in_the_books_until_it_is_gone() -> None:
    _, part, ask, node = running()
    evict(part, ask, Cause.PREEMPTED_BY_SCHEDULER, "w/other", "priority", "because")
    assert (ask.evict_cause, ask.evicted_by) == (Cause.PREEMPTED_BY_SCHEDULER, ("priority", "w/other"))
    assert (ask.node, node.free["vcore"], ask.app.queue.allocated) == (node, 2000, {"vcore": 2000})
    assert ask.app.queue.preempting == {"vcore": 2000}
    [said] = [d for d in part.out if isinstance(d, Evict)]
    assert (said.key, said.node, said.rule, said.on_behalf_of) == ("w", "n1", "priority", "w/other")


def test_what_is_told_to_stop_is_no_candidate_on_its_node_any_more() -> None:
    """Whatever it is told to stop for: its node is searched anew, and what was found out does not count."""
    _, part, ask, node = running()
    part.nodes.since_search.clear()
    version = part.books_version
    evict(part, ask, Cause.TIMEOUT)
    assert list(part.nodes.since_search) == [node]
    assert part.books_version > version
    assert ask.app.queue.preempting == {}, "its room is not on its way to anything"


def test_what_is_gone_is_in_no_book() -> None:
    _, part, ask, node = running()
    evict(part, ask, Cause.PREEMPTED_BY_SCHEDULER)
    version = part.books_version
    release(part, ask, Cause.FINISHED)
    queue = ask.app.queue
    assert (ask.node, node.free["vcore"], queue.allocated, queue.preempting) == (None, 4000, {"vcore": 0}, {})
    assert (ask.app.allocations, ask.app.asks) == (0, {})
    assert (part.released_count, part.books_version > version) == (1, True)
    assert part.out[-1] == Released("w", "w", "n1", Cause.FINISHED)


@pytest.mark.parametrize("cause", [Cause.TIMEOUT, Cause.PREEMPTED_BY_SCHEDULER, Cause.PLACEHOLDER_REPLACED])
def test_what_only_confirms_an_order_of_the_scheduler_is_not_said_again(cause: Cause) -> None:
    _, part, ask, _ = running()
    evict(part, ask, cause)
    part.out.clear()
    release(part, ask, cause)
    assert (ask.node, [each for each in part.out if isinstance(each, Released)]) == (None, [])


def test_what_runs_already_is_taken_over_beyond_every_bound() -> None:
    """It is as if it had started before this scheduler: nothing waited for its room."""
    c = PriorityCluster(QueueSpec(name="a", max=cores(3)))
    c.handle(AddApplication(ApplicationSpec(id="old", queue="root.a")))
    spec = AskSpec(application="old", key="k", resources=Resources({"vcore": 6000}), node="n1")
    c.handle(AddAsks((spec,)))
    part = c.s.cluster.partitions["default"]
    ask, node = part.applications["old"].asks["k"], part.nodes.nodes["n1"]
    assert (ask.node, ask.started_seq, node.free["vcore"]) == (node, 0, -2000)
    assert list(part.nodes.suspects) == [node]
    assert str(ask.app.state) == "Running"
