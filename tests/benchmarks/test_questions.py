"""The benchmark of questions, on a small state: that it measures what it says."""

from __future__ import annotations

import pytest
from benchmarks.questions import RULES, WHATIF_MAX_MS, WHY_MAX_MS, Going, Size, rows, state

SMALL = Size(nodes=12, applications=24, turns=5, whys=4)


@pytest.mark.parametrize("rule", RULES)
def test_the_state_is_full_and_at_rest(rule: str) -> None:
    """Something runs on every node, more waits than runs, and another run at the same time decides nothing."""
    scheduler = state(rule, SMALL)
    partition = scheduler.cluster.partitions["default"]
    waiting = sum(app.pending_count for app in partition.applications.values())
    assert partition.spec.preemption.rule == rule
    assert all(node.allocations for node in partition.nodes.nodes.values())
    assert waiting > partition.allocation_count > SMALL.nodes
    assert scheduler.schedule(scheduler.cluster.now_ms) == []


def test_work_comes_and_goes_in_each_turn() -> None:
    """Else the questions would be asked of one state again and again."""
    going = Going(state("priority", SMALL))
    before = going.scheduler.dump()
    for _ in range(5):
        going.turn()
    assert going.turns == 5
    assert going.now_ms == going.scheduler.cluster.now_ms
    partition = going.scheduler.cluster.partitions["default"]
    came = [key for app in partition.applications.values() for key in app.asks if key.startswith("new-")]
    assert len(came) > 0
    assert going.scheduler.dump() != before
    app, key = going.one_waiting()
    assert going.scheduler.why(app, key) is not None


@pytest.mark.thorough
@pytest.mark.timeout(60)
def test_every_row_says_what_was_measured_and_whether_it_is_within() -> None:
    """Two questions under two rules, each with its numbers."""
    found = rows(1, SMALL)
    assert [row["name"] for row, _ in found] == [
        f"questions: {question}, rule {rule}" for rule in RULES for question in ("why", "whatif")
    ]
    for row, line in found:
        most = WHY_MAX_MS if ": why," in row["name"] else WHATIF_MAX_MS
        assert row["limit_ms"] == most
        assert row["asked"] == (4 if most == WHY_MAX_MS else 3)
        assert 0 < row["p50_ms"] <= row["max_ms"]
        assert row["within"] == (row["max_ms"] <= most)
        assert "12 nodes" in row["about"]
        assert f"{row['max_ms']:,.1f} ms" in line
    assert found[0][0]["cpu_max_ms"] > 0
    assert found[1][0]["turns_a_second_meanwhile"] > 0
