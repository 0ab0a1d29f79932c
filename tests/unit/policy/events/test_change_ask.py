"""Orders about asks: another size while they wait, another time limit also while they run."""

from __future__ import annotations

from typing import Any

import pytest
from invariants.books import check_books

from fairlead.core.model.conditions import Conditions
from fairlead.core.model.decisions import Allocated, AskChanged, AskRejected, Decision
from fairlead.core.model.events import AddApplication, AddAsks, AddNode, ChangeAsk, ReserveAsk, SetQuota
from fairlead.core.model.resources import Limits, Resources
from fairlead.core.model.specs import (
    ApplicationSpec,
    AskSpec,
    ClusterSpec,
    NodeSpec,
    PartitionSpec,
    PreemptionSpec,
    QueueSpec,
    QuotaSpec,
)
from fairlead.scheduler import Scheduler


class Place:
    """One leaf with backfill on one node of four cores; each ask is an application of its own."""

    def __init__(self, rule: str = "priority") -> None:
        leaf = QueueSpec(name="a", properties={"backfill": "easy"})
        root = QueueSpec(name="root", parent=True, submit_acl="*", queues=(leaf,))
        part = PartitionSpec(root=root, preemption=PreemptionSpec(rule=rule))
        self.s = Scheduler(ClusterSpec(partitions=(part,)))
        self.s.handle(AddNode(NodeSpec(id="n", capacity=Resources({"vcore": 4}))), 0)

    def ask(self, name: str, cores: int, now: int = 0, **fields: Any) -> list[Decision]:
        self.s.handle(AddApplication(ApplicationSpec(id=name, queue="root.a", user="ann")), now)
        return self.do(AddAsks((AskSpec(application=name, key=name, resources=vcore(cores), **fields),)), now)

    def change(self, name: str, cores: int, limit_ms: int | None = None, now: int = 0) -> list[Decision]:
        return self.do(ChangeAsk(name, name, vcore(cores), limit_ms, "ann"), now)

    def do(self, event: Any, now: int = 0) -> list[Decision]:
        decided = self.s.handle(event, now) + self.s.schedule(now)
        check_books(self.s)
        return decided


def vcore(cores: int) -> Resources:
    return Resources({"vcore": cores})


def started(decisions: list[Decision]) -> list[str]:
    return [each.key for each in decisions if isinstance(each, Allocated)]


@pytest.mark.parametrize("rule", ["priority", "guarantee"])
def test_what_asks_for_less_starts_where_it_fits(rule: str) -> None:
    """At once."""
    p = Place(rule)
    p.ask("runs", 3)
    assert started(p.ask("x", 2)) == []
    [changed, *rest] = p.change("x", 1)
    assert changed == AskChanged("x", "x", vcore(1), None, "ann")
    assert started(rest) == ["x"]


def test_what_is_held_enters_as_it_was_changed() -> None:
    """Its time limit too."""
    p = Place()
    p.ask("x", 9, conditions=Conditions(begin_ms=10))
    p.change("x", 2, 5_000)
    assert started(p.s.schedule(10)) == ["x"]
    spec = p.s.cluster.partitions["default"].applications["x"].asks["x"].spec
    assert (spec.resources, spec.time_limit_ms) == (vcore(2), 5_000)


def test_a_limit_on_what_runs_lets_others_fill_the_room_before() -> None:
    """With it is known when a turn that is kept comes: what ends before that may go ahead."""
    p = Place()
    p.ask("runs", 3)
    p.ask("big", 4, priority=1, allow_preempt_other=False)
    p.do(ReserveAsk("big", "big", True, "ann"))
    assert started(p.ask("small", 1, time_limit_ms=1_000)) == []
    assert started(p.change("runs", 3, 60_000)) == ["small"]


def test_a_member_of_a_gang_that_runs_may_take_longer() -> None:
    """Only its size is that of its placeholder; it was refused both."""
    p = Place()
    p.ask("member", 3, task_group="g", time_limit_ms=1_000)
    p.ask("big", 4, priority=1, allow_preempt_other=False)
    p.do(ReserveAsk("big", "big", True, "ann"))
    assert started(p.ask("small", 1, time_limit_ms=30_000)) == []
    assert started(p.change("member", 3, 60_000)) == ["small"]


@pytest.mark.parametrize(
    ("name", "cores", "said"),
    [
        ("nothing", 1, "there is no ask nothing/nothing"),
        ("runs", 2, "does not wait any more"),
        ("gang", 1, "is part of a gang"),
        ("x", 0, "it would be nothing"),
        ("quota", 3, "quota q"),
    ],
)
def test_what_makes_no_sense_is_refused(name: str, cores: int, said: str) -> None:
    """And nothing changes."""
    p = Place()
    p.s.handle(SetQuota(QuotaSpec(name="q", queue="root.a", resources=Limits({"vcore": 11}))), 0)
    for each, size in (("runs", 3), ("x", 4), ("quota", 2)):
        p.ask(each, size)
    p.ask("gang", 2, task_group="g", placeholder=True)
    before = p.s.dump()["partitions"][0]["applications"]
    [refused] = [each for each in p.change(name, cores) if isinstance(each, AskRejected)]
    assert said in refused.reason.sentence()
    assert p.s.dump()["partitions"][0]["applications"] == before
