"""One colour for a queue in every plot of a report."""

from __future__ import annotations

import re
from typing import Any

from fairlead.sim.report import LAYERS_MAX, largest_queues, nodes, queue_fills, shares


def outcome(name: str, *queues: str, seen: tuple[str, ...] = ()) -> dict[str, Any]:
    """What the plots read; `seen` is the order in which queues come in the runs on the nodes."""
    shares = {path: [0.1 * (i + 1)] * 2 for i, path in enumerate(queues)}
    bars = [[0, i, f"t{i}", 10.0 * i, 10.0 * i + 5, "completed"] for i, _ in enumerate(seen)]
    plan = {"nodes": ["n"], "queues": list(seen), "bars": bars, "left_out": 0}
    return {
        "name": name,
        "courses": {"at_s": [0.0, 50.0], "shares": shares},
        "gantt": plan,
        "figures": {"begin_s": 0.0, "end_s": 100.0},
    }


def test_a_queue_has_one_colour_in_all_plots() -> None:
    """However the runs on the nodes begin, and in each outcome."""
    first = outcome("a", "root.batch", "root.web", seen=("root.web", "root.batch"))
    second = outcome("b", "root.batch", "root.web", seen=("root.batch", "root.web"))
    fills = queue_fills([first, second])
    assert len(set(fills.values())) == 2
    for page in (shares([first, second]).html(), nodes([first, second]).html()):
        legend = re.findall(r'<i style="background:(#\w+)"></i>([\w.]+)', page)
        assert {path: colour for colour, path in legend} == fills
    drawn = [re.findall(r'<rect[^>]*fill="(#\w+)"', nodes([one]).html()) for one in (first, second)]
    bars = [[colour for colour in one if colour in fills.values()] for one in drawn]
    assert bars == [[fills["root.web"], fills["root.batch"]], [fills["root.batch"], fills["root.web"]]]


def test_the_largest_are_told_apart() -> None:
    """With more queues than colours the largest still have one of their own."""
    many = outcome("a", *[f"root.q{i:02}" for i in range(30)])
    largest = largest_queues([many])
    assert len({queue_fills([many])[path] for path in largest}) == LAYERS_MAX == len(largest)
    assert "root.q29" in largest
    assert "root.q00" not in largest
