"""One run of the cycle: what it says came of it, and in which order its steps are tried."""

from __future__ import annotations

import pytest
from priority_clusters import PriorityCluster

from fairlead.core.books.asks import Ask
from fairlead.core.model.events import ReserveAsk
from fairlead.core.model.resources import Resources
from fairlead.policy.cycle import Cycle
from fairlead.policy.place.allocate import MOVED, Moved

RULES = ["guarantee", "priority", "both"]


def run_once(c: PriorityCluster) -> str | Moved | None:
    """What came of one run, by a cycle that is kept: the key of what was placed, if anything was."""
    [cycle] = c.s._cycles.values() or [c.s._cycle_of(c.s.cluster.partitions["default"])]
    assert isinstance(cycle, Cycle)
    outcome = cycle.run_once()
    return outcome.key if isinstance(outcome, Ask) else outcome


def started(c: PriorityCluster) -> list[str]:
    """What runs, in the order in which it started."""
    part = c.s.cluster.partitions["default"]
    asks = [a for app in part.applications.values() for a in app.allocated_asks()]
    return [a.key for a in sorted(asks, key=lambda a: (a.allocated_ms or 0, a.seq))]


@pytest.mark.parametrize("rule", RULES)
def test_a_run_places_at_most_one_ask(rule: str) -> None:
    """Then the next begins afresh; the last finds nothing."""
    c = PriorityCluster(rule=rule)
    c.submit("one", 1)
    c.submit("two", 1)
    assert [run_once(c) for _ in range(3)] == ["one", "two", None]
    assert started(c) == ["one", "two"]


@pytest.mark.parametrize("rule", RULES)
def test_without_news_an_empty_run_is_not_made_again(rule: str) -> None:
    """It is remembered until something changes."""
    c = PriorityCluster(rule=rule)
    assert run_once(c) is None
    part = c.s.cluster.partitions["default"]
    assert part.rested_at == (part.news, part.books_version)
    c.submit("one", 1)
    assert part.rested_at != (part.news, part.books_version)
    assert run_once(c) == "one"


@pytest.mark.parametrize("rule", ["priority", "both"])
def test_telling_work_to_stop_is_a_move_and_no_placement(rule: str) -> None:
    c = PriorityCluster(rule=rule)
    c.fill("low", 4)
    c.submit("high", 4, 9)
    assert run_once(c) is MOVED
    assert c.nominated() == {"high": "n1"}
    assert run_once(c) is None


@pytest.mark.parametrize("rule", RULES)
def test_idle_work_comes_after_all_else(rule: str) -> None:
    """However high its priority, and however long it has waited."""
    c = PriorityCluster(rule=rule)
    c.submit("idle", 4, 99, idle=True)
    c.submit("low", 1, -5)
    assert c.run() == (["low@n1"], [])


@pytest.mark.parametrize("rule", RULES)
def test_a_kept_turn_comes_before_what_it_holds_back(rule: str) -> None:
    """The room stays free until it is enough."""
    c = PriorityCluster(rule=rule)
    c.submit("large", 5, 5, allow_preempt_other=False)
    c.submit("small", 1, 1)
    c.handle(ReserveAsk("large", "large", True, "ann", "it matters"))
    assert c.run() == ([], [])
    c.node("n2", 5)
    assert c.run()[0] == ["large@n2", "small@n1"]


@pytest.mark.parametrize("rule", RULES)
def test_nothing_is_done_without_a_node(rule: str) -> None:
    c = PriorityCluster(rule=rule, nodes={"n1": 0})
    c.submit("one", 1)
    assert run_once(c) is None
    assert c.s.cluster.partitions["default"].nodes.nodes["n1"].total == Resources().as_dict()
