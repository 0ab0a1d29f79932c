"""queues, nodes, drain, undrain."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import pytest
from testbed.answering import made

from fairlead.cli import render
from fairlead.cli.cluster import _QUEUE_COLUMNS, fullest, queue_cells
from fairlead.cli.completion import with_depth
from fairlead.cli.render import Screen
from fairlead.wire.cluster import Queue


def queue(path: str, *children: Any, **fields: Any) -> dict[str, Any]:
    return {
        "path": path,
        "leaf": not children,
        "state": "active",
        "max": {},
        "guaranteed": {},
        "allocated": {},
        "pending": {},
        "priority": None,
        "running_applications": 0,
        "max_applications": 0,
        "waiting": 0,
        "children": list(children),
    } | fields


TREE = queue(
    "root",
    queue(
        "root.a",
        max={"cpu": 4, "memory": 2**30},
        allocated={"cpu": 3},
        priority=7,
        running_applications=2,
        max_applications=5,
    ),
    queue("root.b", queue("root.b.c", waiting=3)),
)


def test_paths_are_whole_without_a_terminal(service: Any, run: Callable[..., Any]) -> None:
    """So that they can be searched for."""
    service.on("GET", "/queues", {"queues": [TREE]})
    lines = run("queues").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["QUEUE", "root", "root.a", "root.b", "root.b.c"]
    assert lines[2].split()[1:7] == ["active", "7", "2/5", "0", "########..", "cpu"]


def test_trees_of_several_partitions_are_told_apart(service: Any, run: Callable[..., Any]) -> None:
    """Two roots looked the same; with one partition there is no such column."""
    service.on("GET", "/queues", {"queues": [{**TREE, "partition": "default"}, queue("root", partition="gpu")]})
    cells = [line.split()[:2] for line in run("queues").stdout.splitlines()]
    assert cells[:2] == [["PARTITION", "QUEUE"], ["default", "root"]]
    assert cells[-1] == ["gpu", "root"]


def test_the_tree_is_indented_in_a_terminal() -> None:
    """By its own last name."""
    out = io.StringIO()
    render.table(Screen(out, 80), _QUEUE_COLUMNS, [queue_cells(*pair) for pair in with_depth(made(Queue, **TREE))])
    lines = out.getvalue().splitlines()
    assert [line[:8].rstrip() for line in lines[1:]] == ["root", "  a", "  b", "    c"]
    assert max(map(len, lines)) <= 80


def test_one_queue_can_be_asked_for(service: Any, run: Callable[..., Any]) -> None:
    """With those below it; an unknown one is status 4."""
    service.on("GET", "/queues", {"queues": [TREE]})
    assert [q["path"] for q in json.loads(run("queues", "root.b", "--json").stdout)] == ["root.b"]
    assert run("queues", "root.x").exit_code == 4


@pytest.mark.parametrize("named", ["b", "B.C", "root.B"])
def test_a_queue_is_named_as_everywhere_else(service: Any, run: Callable[..., Any], named: str) -> None:
    """Without the root, in any case; of one that is not there the like ones are said."""
    service.on("GET", "/queues", {"queues": [TREE]})
    assert run("queues", named, "-o", "name").stdout.splitlines()[-1] == "root.b.c"
    result = run("queues", "root.c")
    assert result.exit_code == 4
    assert "there is no queue root.c; did you mean root." in result.stderr


def test_the_fullest_resource_counts() -> None:
    """Without a maximum there is none."""
    assert fullest(made(Queue, allocated={"cpu": 1, "memory": 9}, max={"cpu": 10, "memory": 10})) == (0.9, "memory")
    assert fullest(made(Queue, allocated={"cpu": 1}, max={})) == (0.0, "")


def test_nodes_are_listed(service: Any, run: Callable[..., Any]) -> None:
    """With amounts as people write them."""
    service.on(
        "GET",
        "/nodes",
        {
            "nodes": [
                {
                    "id": "here",
                    "schedulable": False,
                    "running": 2,
                    "capacity": {"cpu": 4},
                    "allocated": {"cpu": 1.5},
                    "free": {"cpu": 2.5},
                }
            ]
        },
    )
    assert run("nodes").stdout.splitlines()[1].split() == ["here", "no", "2", "cpu", "1.5", "cpu", "2.5", "cpu", "4"]


@pytest.mark.parametrize("what", ["drain", "undrain"])
def test_draining_posts_to_the_node(service: Any, run: Callable[..., Any], what: str) -> None:
    """And says what holds now."""
    service.on("POST", f"/nodes/gpu-1/{what}", {})
    result = run(what, "gpu-1")
    assert result.exit_code == 0
    assert "gpu-1 takes" in result.stdout


def test_what_stands_still_is_not_said_to_have_no_limit(service: Any, run: Callable[..., Any]) -> None:
    """Its time limit stands still too, so that nobody knows when it ends."""
    job = {"key": "1", "user": "ann", "name": "x", "queue": "root.a", "started_at_ms": 1, "ends_at_ms": None}
    job |= {"node": "n", "resources": {"cpu": 1}, "gpus": []}
    rows = [job | {"state": "running"}, job | {"key": "2", "state": "suspended"}]
    service.on("GET", "/occupants", {"occupants": rows, "next": None, "total": 2})
    lines = run("nodes", "--jobs").stdout.splitlines()
    assert lines[1].endswith("no limit")
    assert lines[2].endswith("stands still")
