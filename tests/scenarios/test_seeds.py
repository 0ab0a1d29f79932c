"""The eleven-step example of priorities with fences and offsets, against its table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fairlead.sim.scenario import run_steps
from fairlead.sim.steps import Scenario, read_scenarios

NA = -(2**31)
SYSTEM, TENANTS = "root.system", "root.tenants"
A, B = f"{TENANTS}.tenant-a", f"{TENANTS}.tenant-b"

BEFORE = {
    SYSTEM: 1001,
    f"{SYSTEM}.system-normal": 10,
    f"{SYSTEM}.system-high": 1001,
    f"{SYSTEM}.system-low": -997,
    TENANTS: 0,
    A: 10,
    f"{A}.child-a-1": 8,
    f"{A}.child-a-2": 6,
    B: 0,
    f"{B}.child-b-1": 9,
    f"{B}.child-b-2": 8,
}
"""What each queue reports while nothing is placed."""

STEPS: list[tuple[str, str, dict[str, int]]] = [
    ("system-high", "p1", {f"{SYSTEM}.system-high": NA, SYSTEM: 10}),
    ("system-normal", "p10", {f"{SYSTEM}.system-normal": 2, SYSTEM: 2}),
    ("system-normal", "p2", {f"{SYSTEM}.system-normal": NA, SYSTEM: -997}),
    ("child-a-1", "p8", {f"{A}.child-a-1": 5}),
    ("child-a-2", "p6", {f"{A}.child-a-2": 4}),
    ("child-a-1", "p5", {f"{A}.child-a-1": NA}),
    ("child-a-2", "p4", {f"{A}.child-a-2": NA, A: NA}),
    ("child-b-1", "p9", {f"{B}.child-b-1": 7}),
    ("child-b-2", "p8", {f"{B}.child-b-2": NA}),
    ("child-b-1", "p7", {f"{B}.child-b-1": NA, B: NA, TENANTS: NA}),
    ("system-low", "p3", {f"{SYSTEM}.system-low": NA, SYSTEM: NA}),
]
"""Leaf, request, and the priorities that are new after it was placed."""

with (Path(__file__).parent / "data" / "seeds.jsonl").open("rb") as lines:
    BY_STEP = {s.name: s for s in read_scenarios(iter(lines), "seeds.jsonl")}


def after(steps: int) -> Scenario:
    """The example, stopped after so many allocations."""
    return BY_STEP[f"seeds-{steps:02d}"]


@pytest.mark.parametrize("steps", range(12))
def test_queue_priorities_after_each_step(steps: int) -> None:
    """Each line of the table, with everything that the lines before it changed."""
    expected = dict(BEFORE)
    for _, _, changed in STEPS[:steps]:
        expected |= changed
    queues: dict[str, Any] = run_steps(after(steps))["result"]["queues"]
    assert {path: queues[path]["currentPriority"] for path in expected} == expected


def test_the_order_of_all_eleven() -> None:
    """Who is placed, one after the other."""
    result = run_steps(after(11))["result"]
    assert [row["key"] for row in result["allocated"]] == [f"{leaf}-{request}" for leaf, request, _ in STEPS]
