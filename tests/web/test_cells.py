"""A node as cells: what is used, what is kept for somebody, and what is free."""

from __future__ import annotations

import msgspec
import pytest

from fairlead.web.cells import ends, node_card
from fairlead.web.colours import Colours
from fairlead.wire.cluster import Node
from fairlead.wire.occupancy import Occupant
from fairlead.wire.pages import Kept

NODE = Node(
    id="n", capacity={"cpu": 8}, allocated={"cpu": 3}, free={"cpu": 5}, schedulable=True, attributes={}, taints=[],
    running=1,
)  # fmt: skip
JOB = Occupant(
    key="1", user="ann", name="", queue="root.a", state="running", started_at_ms=0, ends_at_ms=None, node="n",
    resources={"cpu": 3}, gpus=[],
)  # fmt: skip


def kept(cpu: int, **more: object) -> Kept:
    said = {"node": "n", "key": "2", "name": "x", "user": "bob", "queue": "root.b", "resources": {"cpu": cpu}}
    return Kept(**said | {"visible": False, "whole": False, "leaving": 0} | more)  # type: ignore[arg-type]


@pytest.mark.parametrize(("cpu", "striped", "free"), [(2, 2, 3), (5, 5, 0), (7, 5, 0)])
def test_of_what_is_free_what_is_kept_is_striped(cpu: int, striped: int, free: int) -> None:
    shown = node_card(NODE, [JOB], [kept(cpu)], Colours([]), may_drain=False)
    assert shown.count("cell promised") == striped
    assert shown.count('title="free"') == free
    assert shown.count('<a class="cell') + shown.count('class="cell q0"') == 3


def test_what_stands_still_is_not_said_to_have_no_time_limit() -> None:
    assert ends(JOB) == "no time limit"
    assert ends(msgspec.structs.replace(JOB, state="suspended")) == "stands still"
    card = node_card(NODE, [msgspec.structs.replace(JOB, state="suspended")], [], Colours([]), may_drain=False)
    assert "no time limit" not in card


def test_for_whom_it_is_kept_is_said_and_what_it_waits_for() -> None:
    shown = node_card(NODE, [JOB], [kept(2, leaving=1)], Colours([]), may_drain=False)
    assert "bob · cpu 2 is kept for it, until 1 job that must make room has gone" in shown
    assert 'href="/job/2"' not in shown, "it is not the viewer's to see"
    shown = node_card(NODE, [], [kept(2, whole=True)], Colours([]), may_drain=True)
    assert "the whole node is kept for it" in shown
