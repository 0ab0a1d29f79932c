"""One partition's books: what it is made with, and the numbers that say what is new."""

from __future__ import annotations

from dataclasses import replace

import pytest
from priority_clusters import PriorityCluster

from fairlead.core.books.partition import Partition
from fairlead.core.model.conditions import Conditions
from fairlead.core.model.events import (
    AddAsks,
    AddNode,
    ChangeAsk,
    Checkpoint,
    Configure,
    Event,
    LabelNode,
    MoveApplication,
    Release,
    RemoveBudget,
    RemoveNode,
    ReportImages,
    SetBudget,
    SetPriority,
    SetPriorityClass,
    SetQuota,
    UndrainNode,
    UpdateNode,
)
from fairlead.core.model.resources import Limits, Resources
from fairlead.core.model.specs import TAG_FOREIGN, AskSpec, BudgetSpec, NodeSpec, PriorityClassSpec, QuotaSpec

OTHER_WORK = AskSpec(
    application="", key="of others", node="n1", resources=Resources({"vcore": 100}), tags={TAG_FOREIGN: "Default"}
)
REPORT = AddAsks((OTHER_WORK,))


def partition(c: PriorityCluster) -> Partition:
    return c.s.cluster.partitions["default"]


def test_its_nodes_know_what_the_queues_use() -> None:
    """By one book, not a copy."""
    c = PriorityCluster()
    part = partition(c)
    assert part.nodes.in_use is part.root.allocated
    c.fill("one", 2)
    assert part.nodes.in_use == {"vcore": 2000}


def test_an_ask_is_found_by_its_names_whether_it_waits_or_runs() -> None:
    """What is held is no ask yet."""
    c = PriorityCluster()
    part = partition(c)
    c.fill("runs", 1)
    c.submit("waits", 9)
    c.submit("held", 1, conditions=Conditions(held_by="ann"))
    for name in ("runs", "waits"):
        assert part.find_ask(name, name) is part.applications[name].asks[name]
    assert [part.find_ask(*names) for names in (("held", "held"), ("runs", "waits"), ("none", "none"))] == [None] * 3


def test_ordinary_starts_leave_the_stamp_of_room_as_it_is() -> None:
    """Ends change it, and starts of idle work, since others may take room from that."""
    c = PriorityCluster()
    part = partition(c)
    stamp = part.room_stamp
    c.fill("one", 2)
    assert part.room_stamp == stamp
    c.fill("idle", 1, idle=True)
    assert part.room_stamp > stamp
    stamp = part.room_stamp
    c.finished("one")
    assert part.room_stamp > stamp


def with_young_work() -> tuple[PriorityCluster, Partition]:
    """`small` has started while `waits` and `other` waited, beside work of another scheduler."""
    c = PriorityCluster()
    c.handle(REPORT)
    c.submit("waits", 9)
    c.submit("other", 9)
    c.run()
    c.fill("small", 1)
    return c, partition(c)


def test_work_is_young_for_what_waited_when_it_started() -> None:
    """Until something other than new work has come."""
    c, part = with_young_work()
    waits, small = (part.applications[name].asks[name] for name in ("waits", "small"))
    assert part.is_young(small, waits)
    c.submit("later", 9)
    later = part.applications["later"].asks["later"]
    assert part.is_young(small, waits), "new work is no news"
    assert not part.is_young(small, later), "it came when the other ran"
    c.handle(AddNode(NodeSpec(id="n2", capacity=Resources({"vcore": 1}))))
    assert not part.is_young(small, waits)


@pytest.mark.parametrize(
    "event",
    [
        UpdateNode("n1", Resources({"vcore": 4000})),
        UpdateNode("n1", Resources({"vcore": -1})),
        LabelNode("n1"),
        ReportImages("n1", {"image": 10**9}),
        UndrainNode("n1"),
        RemoveNode("unknown"),
        Release("unknown", "unknown"),
        Release("", "unknown"),
        SetPriority("waits", "waits", 0),
        SetPriority("small", "small", 9),
        ChangeAsk("waits", "waits", Resources({"vcore": 9000})),
        MoveApplication("waits", "root.a"),
        Checkpoint("small", "small"),
        RemoveBudget("unknown"),
        SetQuota(QuotaSpec(name="wide", queue="root", resources=Limits({"vcore": 10**9}))),
        SetPriorityClass(PriorityClassSpec(name="unused", value=7)),
        REPORT,
    ],
    ids=lambda event: type(event).__name__,
)
def test_what_lets_nothing_have_work_stopped_leaves_the_young_spared(event: Event) -> None:
    """What is refused, reported as it was, or counts for what comes later."""
    c, part = with_young_work()
    waits, small = (part.applications[name].asks[name] for name in ("waits", "small"))
    c.handle(event)
    assert part.is_young(small, waits)


def test_the_same_queue_file_leaves_the_young_spared() -> None:
    """Another one does not."""
    c, part = with_young_work()
    waits, small = (part.applications[name].asks[name] for name in ("waits", "small"))
    c.handle(Configure(replace(c.spec, checksum="of a comment")))
    assert part.is_young(small, waits)
    root = replace(part.spec.root, max_applications=7)
    c.handle(Configure(replace(c.spec, partitions=(replace(part.spec, root=root),))))
    assert not part.is_young(small, waits)


@pytest.mark.parametrize(
    "event",
    [
        SetPriority("waits", "waits", 1),
        Release("other", "other"),
        ChangeAsk("waits", "waits", Resources({"vcore": 8000})),
        ChangeAsk("waits", "waits", Resources({"vcore": 9000}), 60_000),
        SetBudget(BudgetSpec(name="new", min_available=1)),
        AddAsks((replace(OTHER_WORK, resources=Resources({"vcore": 200})),)),
    ],
    ids=lambda event: type(event).__name__,
)
def test_what_changes_something_ends_that(event: Event) -> None:
    """Something may be stopped for what waits that could not be before, or another one has its turn."""
    c, part = with_young_work()
    waits, small = (part.applications[name].asks[name] for name in ("waits", "small"))
    c.handle(event)
    assert not part.is_young(small, waits)


def test_that_nothing_is_young_any_more_is_a_change_of_what_may_be_stopped() -> None:
    """Whatever it is that came: what was found out of that in vain is void."""
    _, part = with_young_work()
    stamp = part.room_stamp
    part.note_change()
    assert part.room_stamp > stamp
    stamp = part.room_stamp
    part.note_change()
    assert part.room_stamp == stamp, "nothing was young"


def test_that_nothing_is_spared_any_more_is_a_change_of_what_may_be_stopped() -> None:
    c = PriorityCluster()
    part = partition(c)
    stamp = part.room_stamp
    c.submit("new", 1)
    assert part.room_stamp == stamp, "nothing was spared"
    part.disruption.spared_at = part.disruption.news
    c.submit("newer", 1)
    assert part.room_stamp > stamp


def test_a_change_has_a_number_in_the_line_of_asks() -> None:
    c = PriorityCluster()
    part = partition(c)
    c.submit("one", 9)
    news = part.news
    c.handle(SetPriority("one", "one", 3))
    c.submit("two", 9)
    one, two = (part.applications[name].asks[name] for name in ("one", "two"))
    assert one.seq < part.changed_seq < two.seq
    assert part.news > news


def test_asks_of_one_shape_wait_with_one_demand() -> None:
    """Those of another task group, or in another leaf, with their own."""
    c = PriorityCluster()
    part = partition(c)
    for name, queue in (("one", "root.a"), ("two", "root.a"), ("three", "root.b")):
        c.submit(name, 9, queue=queue)
    c.run()
    asks = [part.applications[name].asks[name] for name in ("one", "two", "three")]
    first, second, third = (ask.batch.demand for ask in asks if ask.batch is not None)
    shape = first.shape
    assert first is second is not third
    assert asks[0].app.demand_for(shape, "") is first
    assert asks[0].app.demand_for(shape, "workers") is not first
    assert set(shape.demands_in_line()) == {first, third}
