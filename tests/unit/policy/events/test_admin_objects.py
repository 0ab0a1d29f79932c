"""Orders about classes, quotas, budgets and windows: carried out and said, or refused and nothing changed."""

from __future__ import annotations

from typing import Any

import pytest
from priority_clusters import PriorityCluster

from fairlead.core.model.decisions import DeclarationChanged, DeclarationRejected, WindowClosed, WindowOpened
from fairlead.core.model.events import (
    Configure,
    Event,
    RemoveBudget,
    RemovePriorityClass,
    RemoveQuota,
    RemoveWindow,
    SetBudget,
    SetPriorityClass,
    SetQuota,
    SetWindow,
)
from fairlead.core.model.reasons import WindowAhead
from fairlead.core.model.resources import Limits
from fairlead.core.model.specs import (
    BudgetSpec,
    ClusterSpec,
    PartitionSpec,
    PriorityClassSpec,
    QueueSpec,
    QuotaSpec,
    WindowSpec,
)
from fairlead.policy.events.admin_objects import CLUSTER_HANDLERS
from fairlead.scheduler import Scheduler

ROOT = QueueSpec(name="root", parent=True, submit_acl="*", queues=(QueueSpec(name="a"),))
PARTS = (PartitionSpec(root=ROOT),)
CLASS = PriorityClassSpec(name="x", value=5)
QUOTA = QuotaSpec(name="x", queue="root.a", resources=Limits({"vcore": 4}))
BUDGET = BudgetSpec(name="x", min_available=1)
WINDOW = WindowSpec(name="x", starts_ms=1_000, length_ms=10)
KINDS: list[tuple[str, Any, Any, Any]] = [
    ("priority-class", SetPriorityClass, RemovePriorityClass, CLASS),
    ("quota", SetQuota, RemoveQuota, QUOTA),
    ("budget", SetBudget, RemoveBudget, BUDGET),
    ("window", SetWindow, RemoveWindow, WINDOW),
]
BAD: list[tuple[str, Event, str]] = [
    ("priority-class", SetPriorityClass(PriorityClassSpec(name="x", preemption_policy="Sometimes")), "Never"),
    ("quota", SetQuota(QuotaSpec(name="x", queue="root.a", resources=Limits({}))), "amount"),
    ("budget", SetBudget(BudgetSpec(name="x", min_available=1, max_unavailable=1)), "not both or neither"),
]


def scheduler(**filed: Any) -> Scheduler:
    return Scheduler(ClusterSpec(partitions=PARTS, **filed))


@pytest.mark.parametrize(("kind", "sets", "removes", "spec"), KINDS, ids=lambda x: x if isinstance(x, str) else "")
def test_it_is_made_and_removed_and_said_with_its_author(kind: str, sets: Any, removes: Any, spec: Any) -> None:
    s = scheduler()
    assert s.handle(sets(spec, who="ann"), 0) == [DeclarationChanged(kind, "x", "added", "ann")]
    assert s.handle(sets(spec, who="ann"), 0) == [], "it was so already"
    assert s.handle(removes("x", who="bob"), 0) == [DeclarationChanged(kind, "x", "removed", "bob")]
    [refused] = s.handle(removes("x"), 0)
    assert isinstance(refused, DeclarationRejected)
    assert "x" in refused.reason.sentence()


@pytest.mark.parametrize(("kind", "event", "why"), BAD, ids=lambda x: x if isinstance(x, str) else "")
def test_what_makes_no_sense_is_refused_and_changes_nothing(kind: str, event: Event, why: str) -> None:
    s = scheduler()
    before = s.dump()
    [refused] = s.handle(event, 0)
    assert isinstance(refused, DeclarationRejected)
    assert refused.kind == kind
    assert why in refused.reason.sentence()
    assert s.dump()["admission"] == before["admission"]


FILED: list[tuple[dict[str, Any], Event, Event]] = [
    (
        {"priority_classes": (CLASS,)},
        SetPriorityClass(PriorityClassSpec(name="x", value=6)),
        RemovePriorityClass("x"),
    ),
    (
        {"quotas": (QUOTA,)},
        SetQuota(QuotaSpec(name="x", queue="root", resources=Limits({"vcore": 1}))),
        RemoveQuota("x"),
    ),
    ({"budgets": (BUDGET,)}, SetBudget(BudgetSpec(name="x", min_available=2)), RemoveBudget("x")),
]


@pytest.mark.parametrize(("filed", "change", "removal"), FILED, ids=["class", "quota", "budget"])
def test_what_the_file_declares_changes_with_the_file_alone(filed: Any, change: Event, removal: Event) -> None:
    s = scheduler(**filed)
    for event in (change, removal):
        [refused] = s.handle(event, 0)
        assert isinstance(refused, DeclarationRejected)
        assert "queue file" in refused.reason.sentence()
    changed = s.handle(Configure(ClusterSpec(partitions=PARTS)), 1)
    assert [d.change for d in changed if isinstance(d, DeclarationChanged)] == ["removed"]


def test_every_order_about_a_declared_thing_has_its_handler() -> None:
    orders = {sets for _, sets, _, _ in KINDS} | {removes for _, _, removes, _ in KINDS}
    assert set(CLUSTER_HANDLERS) == orders


# -- windows ------------------------------------------------------------------------------------------------------

W = WindowSpec(name="w", starts_ms=1_000, length_ms=1_000)


def test_of_a_window_it_is_said_what_became_of_it() -> None:
    """Added, changed, removed; the same again is no change."""
    c = PriorityCluster()
    other = WindowSpec(name="w", starts_ms=2_000, length_ms=1_000)
    for event in (SetWindow(W, "ann"), SetWindow(W), SetWindow(other, "bob"), RemoveWindow("w", "ann")):
        c.handle(event)
    told = [(d.name, d.change, d.who) for d in c.decided if isinstance(d, DeclarationChanged)]
    assert told == [("w", "added", "ann"), ("w", "changed", "bob"), ("w", "removed", "ann")]


def test_a_window_that_makes_no_sense_keeps_nothing_free() -> None:
    c = PriorityCluster()
    c.submit("a", 1)
    c.handle(SetWindow(WindowSpec(name="w", starts_ms=0, length_ms=0)))
    c.handle(RemoveWindow("nope"))
    assert [d.kind for d in c.decided if isinstance(d, DeclarationRejected)] == ["window", "window"]
    assert c.run()[0] == ["a@n1"]


def test_a_window_that_is_removed_while_it_is_open_closes_and_what_waits_starts() -> None:
    c = PriorityCluster()
    c.handle(SetWindow(W))
    c.submit("a", 1)
    assert c.run(1_500) == ([], [])
    assert isinstance(c.s.why("a", "a"), WindowAhead)
    c.handle(RemoveWindow("w"))
    assert [type(d) for d in c.decided if isinstance(d, WindowOpened | WindowClosed)] == [WindowOpened, WindowClosed]
    assert c.run()[0] == ["a@n1"]
