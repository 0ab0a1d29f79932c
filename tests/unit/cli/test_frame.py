"""One screenful of the live view."""

from __future__ import annotations

from typing import Any

import pytest
from testbed.answering import made

from fairlead.cli.frame import WAITING, frame
from fairlead.cli.watch import View
from fairlead.wire.cluster import Node, Queue
from fairlead.wire.jobs import Job


def job(key: str, state: str, **fields: Any) -> Job:
    said = {
        "key": key,
        "name": f"job-{key}",
        "queue": "root.batch",
        "user": "ann",
        "priority": 0,
        "state": state,
        "node": "here",
        "submitted_at_ms": 0,
        "started_at_ms": 1000 + int(key),
        "ended_at_ms": None,
        "resources": {"cpu": 1},
    }
    return made(Job, **said | fields)


WAITS = {"reason": {"code": "cluster-full", "sentence": "all nodes together have cpu 0 free of cpu 4"}}


def view(running: int, waiting: int, total_waiting: int | None = None) -> View:
    queues = [
        {
            "path": "root",
            "waiting": waiting if total_waiting is None else total_waiting,
            "running_applications": running,
            "max": {},
            "allocated": {"cpu": 1},
            "children": [
                {
                    "path": "root.batch",
                    "waiting": waiting,
                    "running_applications": running,
                    "max": {},
                    "allocated": {"cpu": 1},
                }
            ],
        }
    ]
    nodes = [{"id": "here", "capacity": {"cpu": 4, "memory": 2**33}, "allocated": {"cpu": 1}}]
    live = [job(str(i), "running") for i in range(running)]
    live += [job(str(100 + i), "waiting", **WAITS) for i in range(waiting)]
    return View(60_000, live, [], [made(Queue, **each) for each in queues], [made(Node, **each) for each in nodes])


def test_it_says_who_runs_who_waits_and_why() -> None:
    """With the machine's use on top and the footer below."""
    lines = frame(view(1, 1), 100, 40, title="here", recent=["12:00 something"], footer=["q leaves"])
    text = "\n".join(lines)
    assert lines[0].startswith("here")
    assert "1 running, 1 waiting" in lines[0]
    assert "1 of 4" in lines[1]
    assert "job-0" in text
    assert WAITS["reason"]["sentence"] in text
    assert lines[-1] == "q leaves"
    assert text.index("RUNS") < text.index("WAITS") < text.index("LATEST")


@pytest.mark.parametrize("height", [3, 10, 16, 24, 60])
@pytest.mark.parametrize("width", [40, 80, 140])
@pytest.mark.parametrize(("running", "waiting"), [(0, 0), (1, 0), (3, 50), (80, 80)])
def test_it_never_exceeds_the_terminal(height: int, width: int, running: int, waiting: int) -> None:
    """Whatever there is to show."""
    lines = frame(view(running, waiting), width, height, recent=["x" * 300] * 8, footer=["f" * 300] * 2)
    assert len(lines) <= height
    assert max(map(len, lines), default=0) <= width


def test_what_does_not_fit_is_counted() -> None:
    """Also what was not even fetched."""
    lines = frame(view(2, 50, total_waiting=1000), 100, 20)
    [rest] = [line for line in lines if "more" in line]
    shown = sum("job-10" in line for line in lines)
    assert f"and {1000 - shown} more" in rest


def test_queues_with_work_are_kept_before_those_without() -> None:
    """A small terminal shows where something runs, in the order of the tree."""
    shown = view(2, 1)
    empty = [made(Queue, path=f"root.{name}") for name in "abcdef"]
    shown.queues[0].children[:0] = empty
    lines = frame(shown, 100, 17)
    first = next(i for i, line in enumerate(lines) if line.startswith("QUEUE"))
    told = [line.split()[0] for line in lines[first + 1 : lines.index("", first)]]
    assert told[0] == "root"
    assert told[-2:] == ["batch", "…"]
    assert told[1] == "a"


def test_work_that_is_told_to_stop_is_marked() -> None:
    """It still holds its place."""
    shown = View(60_000, [job("1", "stopping")], [], [], [])
    assert any("job-1 (stopping)" in line for line in frame(shown, 100, 20))


def test_names_cannot_break_the_frame() -> None:
    """Control characters are shown."""
    shown = View(60_000, [job("1", "running", name="a\x1b[2J\nb")], [], [], [])
    assert any(r"a\x1b[2J\nb" in line for line in frame(shown, 100, 20))


def test_who_waits_with_the_highest_priority_is_shown_first() -> None:
    """He is next; where there is no room the others are counted."""
    waiting = [job(str(i), "waiting", priority=i % 7, submitted_at_ms=i, **WAITS) for i in range(1, 40)]
    lines = frame(View(60_000, waiting, [], [], []), 100, 12)
    assert [line.split()[0] for line in lines if "job-" in line][:3] == ["6", "13", "20"]


def test_a_small_terminal_has_all_use_in_one_line() -> None:
    """And the newest lines of what happened, so that there is room for the rest."""
    shown = view(1, 20)
    small, large = (frame(shown, 80, height, recent=["old", "newer", "newest"], footer=["q"]) for height in (23, 49))
    assert small[1].startswith("cpu #.... 1 of 4  memory ..... 0 of 8Gi")
    assert [line.split()[0] for line in large[1:3]] == ["cpu", "memory"]
    assert ("old" in small, "newer" in small, "newest" in small, "old" in large) == (False, True, True, True)
    assert len(small) == 23


def test_one_part_has_all_the_room() -> None:
    """As a key asks for."""
    lines = frame(view(3, 15), 80, 23, recent=["x"], only=WAITING)
    assert sum("job-1" in line for line in lines) == 15
    assert not any(line.startswith(("RUNS", "QUEUE", "LATEST")) for line in lines)
