"""The benchmark of long calls fills what it measures, sees the longest one, and says when it is too long."""

from __future__ import annotations

from dataclasses import replace

import pytest
from benchmarks import longest_call
from benchmarks.longest_call import SITUATIONS, UnderWay, main


def small(name: str) -> UnderWay:
    """The situation on a few nodes, with as many applications as make it full."""
    return UnderWay(replace(SITUATIONS[name], nodes=3, applications=10, each=20, turns=5))


@pytest.mark.parametrize("name", SITUATIONS)
def test_each_situation_has_work_that_runs_and_work_that_waits(name: str) -> None:
    played = small(name)
    played.fill()
    part = played.scheduler.cluster.partitions["default"]
    assert played.running
    assert sum(app.pending_count for app in part.applications.values()) > 10
    assert played.play() > 0
    assert played.longest_s > 0
    assert set(played.running) == {(a.app.id, a.key) for n in part.nodes.nodes.values() for a in n.allocations}


@pytest.mark.parametrize(("most", "status"), [(1_000.0, 0), (0.0, 1)])
def test_the_status_says_whether_a_call_was_too_long(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], most: float, status: int
) -> None:
    few = replace(SITUATIONS["turns kept"], nodes=2, applications=5, each=10, turns=2)
    monkeypatch.setattr(longest_call, "SITUATIONS", {"one": few})
    monkeypatch.setattr(longest_call, "MOST_S", most)
    assert main([]) == status
    assert "one " in capsys.readouterr().out


def test_a_situation_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nope"]) == 2
    assert "'nope'; there are: a full department" in capsys.readouterr().err
