"""Running a scenario in virtual time."""

from __future__ import annotations

import gc
import io
import json
from pathlib import Path
from typing import Any

import pytest
from plain_scenarios import run_scenario

from fairlead.collector import collector_off
from fairlead.sim.scenario import run_file
from fairlead.sim.steps import ScenarioError

CONFIG = """
partitions:
- name: default
  queues:
  - name: root
    submitacl: '*'
    queues:
    - name: a
    - name: b
"""
NODE = {"op": "node", "id": "n", "resources": {"vcore": 10, "memory": 100}}
APP = {"op": "app", "id": "app", "queue": "root.a"}


def ask(key: str, vcore: int = 1, **more: Any) -> dict[str, Any]:
    """An ask of the application."""
    return {"op": "ask", "app": "app", "key": key, "resources": {"vcore": vcore}, **more}


def schedule(steps: int = 100, **more: Any) -> dict[str, Any]:
    """A schedule step."""
    return {"op": "schedule", "steps": steps, **more}


def run(*steps: dict[str, Any], config: str = CONFIG) -> dict[str, Any]:
    """The whole answer to a scenario of these steps."""
    return run_scenario({"name": "it", "config": config, "steps": list(steps)})


def keys(answer: dict[str, Any]) -> list[str]:
    """Who was allocated, in order."""
    return [row["key"] for row in answer["result"]["allocated"]]


def test_a_run_places_at_most_its_steps() -> None:
    """`runs` counts the one that found nothing only when there was one."""
    answer = run(NODE, APP, ask("k", count=5), schedule(0), schedule(2), schedule(3), schedule(4))
    assert [t["runs"] for t in answer["timings"]] == [0, 2, 3, 1]
    assert [row["step"] for row in answer["result"]["allocated"]] == [4, 4, 5, 5, 5]


def test_settle_does_all_its_runs() -> None:
    """Also those that place nothing."""
    answer = run(NODE, APP, ask("k"), schedule(4, action="settle"))
    assert (answer["timings"][0]["runs"], keys(answer)) == (4, ["k"])


def test_the_end_shows_applications_and_queues() -> None:
    """States and amounts in the words of the REST reads; what is empty is left out."""
    result = run(NODE, APP, ask("k", 4), ask("big", 7), schedule())["result"]
    assert result["apps"] == {
        "app": {
            "state": "Running",
            "allocated": {"vcore": 4},
            "pending": {"vcore": 7},
            "placeholder": {},
            "allocations": ["k@n"],
        }
    }
    assert result["queues"]["root.a"] == {
        "currentPriority": 0,
        "isLeaf": True,
        "isManaged": True,
        "status": "Active",
        "allocatedResource": {"vcore": 4},
        "pendingResource": {"vcore": 7},
        "headroom": {"memory": 100, "vcore": 6},
        "runningApps": 1,
    }
    assert set(result["queues"]["root.b"]) == {"currentPriority", "isLeaf", "isManaged", "status", "headroom"}
    assert result["queues"]["root"]["maxResource"] == {"memory": 100, "vcore": 10}


def test_a_release_is_listed_and_makes_room() -> None:
    """An allocation that ran is a row; an ask that only waited is none."""
    answer = run(
        NODE,
        APP,
        ask("k", 10),
        ask("w", 10),
        ask("x", 10),
        schedule(),
        {"op": "release", "app": "app", "key": "k"},
        {"op": "release", "app": "app", "key": "w"},
        schedule(),
    )
    assert answer["result"]["released"] == [{"key": "k", "app": "app", "by": "STOPPED_BY_RM", "step": 6}]
    assert keys(answer) == ["k", "x"]


def test_what_is_refused_is_listed_with_a_reason() -> None:
    """Applications, asks and nodes."""
    result = run(NODE, NODE, APP, ask("none", 0), {"op": "app", "id": "x", "queue": "root.nowhere"})["result"]
    assert list(result["nodes_rejected"]) == ["n"]
    assert list(result["apps_rejected"]) == ["x"]
    assert list(result["asks_rejected"]) == ["none"]
    assert all(result[part][name] for part, name in (("apps_rejected", "x"), ("asks_rejected", "none")))


def test_time_passes_only_in_sleep() -> None:
    """An application without work completes after thirty seconds, not before."""
    steps: list[dict[str, Any]] = [NODE, APP, ask("k"), schedule(), {"op": "release", "app": "app", "key": "k"}]
    states = [
        run(*steps, {"op": "sleep", "millis": ms}, schedule())["result"]["apps"].get("app", {}).get("state")
        for ms in (29_999, 30_000)
    ]
    assert states == ["Completing", None]


@pytest.mark.parametrize("where", ["first", "later"])
def test_a_refused_configuration_is_the_result(where: str) -> None:
    """At the beginning or while running."""
    bad = CONFIG.replace("name: b", "name: A")
    answer = run(config=bad) if where == "first" else run(NODE, {"op": "config", "config": bad}, APP)
    assert list(answer["result"]) == ["rejected"]
    assert "second child named 'A'" in answer["result"]["rejected"]


def test_a_configuration_that_would_be_ignored_is_refused() -> None:
    """What the scheduler does not act on yet is said, not passed over."""
    answer = run(config=CONFIG.replace("  queues:", "  usergroupresolver: {type: os}\n  queues:", 1))
    assert "not yet" in answer["result"]["rejected"]


def test_a_new_configuration_takes_effect() -> None:
    """A smaller maximum holds for what comes after."""
    smaller = CONFIG.replace("name: a\n", "name: a\n      resources: {max: {vcore: 3m}}\n")
    answer = run(NODE, APP, ask("k", 2, count=3), schedule(1), {"op": "config", "config": smaller}, schedule())
    assert keys(answer) == ["k-0"]


def test_a_scenario_that_makes_no_sense_is_an_error() -> None:
    """Not a result."""
    with pytest.raises(ScenarioError, match="steps"):
        run_scenario({"config": CONFIG})


def test_run_file_writes_a_line_for_each(tmp_path: Path) -> None:
    """JSON lines with name, result and timings."""
    path, out = tmp_path / "f.jsonl", io.StringIO()
    one = {"name": "it", "config": CONFIG, "steps": [NODE, APP, ask("k"), schedule()]}
    path.write_text((json.dumps(one) + "\n") * 2)
    assert run_file(str(path), out) == 0
    first, second = (json.loads(line) for line in out.getvalue().splitlines())
    assert (first["name"], first["result"]) == ("it", second["result"])
    assert first["timings"][0]["seconds"] > 0


def test_run_file_says_what_is_wrong_and_where(tmp_path: Path) -> None:
    """Status 2; what ran before is there."""
    path, out, err = tmp_path / "f.jsonl", io.StringIO(), io.StringIO()
    path.write_text(json.dumps({"config": CONFIG, "steps": []}) + '\n{"config": 1}\n')
    assert run_file(str(path), out, err) == 2
    assert len(out.getvalue().splitlines()) == 1
    assert f"{path}:2: " in err.getvalue()
    assert run_file(str(tmp_path / "none"), out, err) == 2


def test_the_collector_is_back_after_a_timed_call() -> None:
    """Even when the call fails."""
    assert gc.isenabled()

    def fail() -> None:
        with collector_off():
            assert not gc.isenabled()
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert gc.isenabled()


def test_a_window_begins_so_long_after_the_scenario_does() -> None:
    """Counted from 1970 it was over long ago, and kept nothing free."""
    window = {"op": "window", "name": "w", "startsMillis": 1000, "lengthMillis": 5000}
    long, short = ask("long", timeLimitMillis=2000), ask("short", timeLimitMillis=500)
    answer = run(NODE, APP, window, long, short, schedule(), {"op": "sleep", "millis": 6000}, schedule())
    assert [(row["key"], row["step"]) for row in answer["result"]["allocated"]] == [("short", 5), ("long", 7)]
