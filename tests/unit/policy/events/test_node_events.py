"""Nodes that change: a swap under way to one that suits no more, and what was stopped in vain."""

from __future__ import annotations

import pytest
from gang_course import evicted, formed
from small_clusters import cluster, submit

from fairlead.core.books.eviction_history import FRUITLESS_MAX, HOUR_MS
from fairlead.core.model.constraints import Constraints, Requirement, Taint, Toleration
from fairlead.core.model.decisions import Retried
from fairlead.core.model.events import (
    AddNode,
    Cause,
    DrainNode,
    Event,
    LabelNode,
    RemoveNode,
    UndrainNode,
    UpdateNode,
)
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import NodeSpec


@pytest.mark.parametrize("effect", ["NoExecute", "NoSchedule"])
def test_a_swap_does_not_end_on_a_node_that_was_tainted_meanwhile(effect: str) -> None:
    """The real ask does not run yet: it waits again, and its placeholder is lost."""
    g = formed(1, 1, 1)
    home = g.running["p0"]
    g.ask("r0")
    told = g.run()
    assert evicted(told) == [("p0", Cause.PLACEHOLDER_REPLACED)]
    g.do(LabelNode(home, {}, (Taint("broken", "", effect),)))
    g.confirm(told)
    assert g.running == {}
    g.run()
    assert list(g.running) == ["r0"]
    assert g.running["r0"] != home


def test_a_swap_of_an_ask_that_tolerates_the_taint_goes_on() -> None:
    """Even if its placeholder does not: that leaves anyway, and is not told twice."""
    g = formed(1, 1)
    g.ask("r0", where=Constraints(tolerations=(Toleration("broken", "Exists"),)))
    told = g.run()
    assert evicted(g.do(LabelNode("n0", {}, (Taint("broken", "", "NoExecute"),)))) == []
    g.confirm(told)
    assert g.running == {"r0": "n0"}


def test_a_swap_that_moves_to_a_node_that_is_tainted_meanwhile_is_called_off() -> None:
    """The room that was held for it there is given back; where its placeholder was does not matter."""
    g = formed(1, 1)
    g.do(AddNode(NodeSpec(id="other", capacity=Resources({"vcore": 1}), attributes={"disk": "ssd"})))
    g.ask("r0", where=Constraints(selector=(Requirement("disk", "In", ("ssd",)),)))
    told = g.run()
    assert evicted(told) == [("p0", Cause.PLACEHOLDER_REPLACED)]
    g.do(LabelNode("n0", {}, (Taint("broken", "", "NoExecute"),)))
    assert g.app.swapping == 1
    g.do(LabelNode("other", {"disk": "ssd"}, (Taint("broken", "", "NoExecute"),)))
    assert g.app.swapping == 0
    g.confirm(told)
    g.run()
    assert g.running == {}
    g.do(LabelNode("other", {"disk": "ssd"}))
    g.run()
    assert g.running == {"r0": "other"}


CHANGES = (
    DrainNode("n1"),
    UndrainNode("n0"),
    UpdateNode("n1", Resources({"vcore": 2})),
    LabelNode("n1", {"disk": "ssd"}),
    RemoveNode("n1"),
)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: type(change).__name__)
def test_a_change_of_a_node_lets_what_was_stopped_in_vain_be_stopped_again(change: Event) -> None:
    """It may come out differently now (`core.books.eviction_history`); what changes nothing does not count."""
    g = formed(1, 1, 1)
    g.do(DrainNode("n0"))
    partition, ask = g.s.cluster.partitions["default"], g.app.asks["p0"]
    memory, node = partition.disruption, partition.nodes.nodes["n0"]
    memory.note(ask, ask, 0)
    for _ in range(FRUITLESS_MAX):
        memory.note_fruitless(ask, node, 0)
    g.do(DrainNode("n0"))
    assert (memory.barred_until(ask, node, 0), memory.was_stopped_for(ask, ask)) == (HOUR_MS, True)
    g.do(change)
    assert (memory.barred_until(ask, node, 0), memory.was_stopped_for(ask, ask)) == (None, False)


@pytest.mark.parametrize(("stops", "comes_back"), [(True, ["i#2"]), (False, [])])
def test_idle_work_that_gives_way_comes_back_though_its_node_goes_first(stops: bool, comes_back: list[str]) -> None:
    """It was told to stop and would have come back: that its node is removed meanwhile is no end of it."""
    s = cluster(nodes={"n1": 4})
    submit(s, "i", 4, 0, idle=True)
    s.schedule(0)
    if stops:
        submit(s, "w", 4, 1, queue="root.b")
    s.schedule(1)
    assert [d.new_key for d in s.handle(RemoveNode("n1"), 2) if isinstance(d, Retried)] == comes_back
