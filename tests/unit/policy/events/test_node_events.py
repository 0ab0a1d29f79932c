"""Gangs and nodes that change: a swap that is under way to a node that does not suit any more."""

from __future__ import annotations

import pytest
from gang_course import evicted, formed

from fairlead.core.model.constraints import Constraints, Requirement, Taint, Toleration
from fairlead.core.model.events import AddNode, Cause, LabelNode
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
