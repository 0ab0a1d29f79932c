"""The benchmark of growth fills what it measures, and says when the cost grows too much."""

from __future__ import annotations

import pytest
from benchmarks import growth
from benchmarks.growth import Size, filled


def test_a_cluster_is_full_and_enough_waits() -> None:
    scheduler, running = filled(Size(nodes=3, queues=2, waiting=250))
    part = scheduler.cluster.partitions["default"]
    assert len(running) == 12
    assert all(not node.free["vcore"] for node in part.nodes.nodes.values())
    assert sum(app.pending_count for app in part.applications.values()) >= 250


@pytest.mark.parametrize(("last", "status"), [(2.9, 0), (3.1, 1)])
def test_the_status_says_whether_it_grows_too_much(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], last: float, status: int
) -> None:
    costs = iter([2.0, 2.0, last])
    monkeypatch.setattr(growth, "GROWTH", {"nodes": (Size(nodes=1), Size(nodes=2), Size(nodes=3))})
    monkeypatch.setattr(growth, "cost", lambda _size: next(costs))
    assert growth.main() == status
    assert f"3: {last:.0f} us" in capsys.readouterr().out
