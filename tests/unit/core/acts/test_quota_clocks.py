"""Quota clocks: from when on a queue above its maximum may be made to give work back."""

from __future__ import annotations

from dataclasses import replace

import pytest
from loose_books import tree

from fairlead.core.acts import quota_clocks
from fairlead.core.acts.quota_clocks import TIMER, forced, rearm, set_timer
from fairlead.core.books.partition import Partition
from fairlead.core.books.queues import Queue
from fairlead.core.model.specs import ClusterSpec, PartitionSpec, PreemptionSpec, QueueSpec
from fairlead.scheduler import Scheduler

DELAY = {"quota.preemption.delay": "10s"}


def partition(enabled: bool = True, **properties: str) -> tuple[Partition, Queue]:
    """At 5,000 ms; leaf `root.a` uses four cores of its maximum of four."""
    raw = {name.replace("_", "."): value for name, value in properties.items()} or DELAY
    root = QueueSpec(name="root", parent=True, queues=(QueueSpec(name="a", properties=raw),))
    rules = PreemptionSpec(quota_enabled=enabled)
    s = Scheduler(ClusterSpec(partitions=(PartitionSpec(root=root, preemption=rules),)), 5_000)
    part = s.cluster.partitions["default"]
    leaf = part.root.children["a"]
    leaf.max = {"vcore": 4}
    leaf.add_allocated((("vcore", 4),))
    return part, leaf


def due(part: Partition) -> int | None:
    return part.timers.due_ms("default", "", TIMER)


def test_a_clock_starts_when_the_maximum_is_lowered_below_the_use() -> None:
    part, leaf = partition()
    before = quota_clocks.terms(part)
    leaf.max = {"vcore": 3}
    rearm(part, before)
    assert (leaf.quota_due_ms, due(part)) == (15_000, 15_000)


def test_a_maximum_for_something_that_was_unlimited_is_lower() -> None:
    part, leaf = partition()
    leaf.max = None
    before = quota_clocks.terms(part)
    leaf.max = {"vcore": 3}
    rearm(part, before)
    assert leaf.quota_due_ms == 15_000


def test_no_clock_starts_for_what_was_above_before() -> None:
    """Its use was forced on it; a file that changes something else is no reason."""
    part, leaf = partition()
    leaf.max = {"vcore": 3}
    rearm(part, quota_clocks.terms(part))
    assert (leaf.quota_due_ms, due(part)) == (None, None)


def test_a_running_clock_is_shifted_by_the_change_of_the_delay() -> None:
    part, leaf = partition()
    before = quota_clocks.terms(part)
    leaf.quota_due_ms, leaf.max = 9_000, {"vcore": 3}
    leaf.set_properties({"quota.preemption.delay": "12s"})
    rearm(part, before)
    assert leaf.quota_due_ms == 11_000


@pytest.mark.parametrize("case", ["within", "without delay", "without maximum"])
def test_a_clock_stops_where_nothing_may_be_made_to_go(case: str) -> None:
    part, leaf = partition()
    before = quota_clocks.terms(part)
    leaf.quota_due_ms = 9_000
    leaf.max = {"within": {"vcore": 4}, "without delay": {"vcore": 3}, "without maximum": None}[case]
    if case == "without delay":
        leaf.set_properties({})
    rearm(part, before)
    assert leaf.quota_due_ms is None


def test_use_that_is_forced_on_a_leaf_starts_the_clocks_above_it() -> None:
    part, leaf = partition()
    forced(part, leaf)
    assert leaf.quota_due_ms is None, "it is at its maximum, not above"
    leaf.add_allocated((("vcore", 1),))
    forced(part, leaf)
    assert (leaf.quota_due_ms, due(part)) == (15_000, 15_000)
    part.now_ms = 6_000
    forced(part, leaf)
    assert leaf.quota_due_ms == 15_000, "a clock that runs goes on"


def test_nothing_runs_where_quotas_stop_nothing() -> None:
    part, leaf = partition(enabled=False)
    leaf.add_allocated((("vcore", 1),))
    forced(part, leaf)
    leaf.quota_due_ms = 9_000
    set_timer(part)
    assert due(part) is None


def switched(part: Partition, enabled: bool) -> None:
    """By a change of the file."""
    before = quota_clocks.terms(part)
    part.spec = replace(part.spec, preemption=replace(part.spec.preemption, quota_enabled=enabled))
    rearm(part, before)


def test_what_was_above_its_maximum_has_its_delay_from_when_enforcing_is_switched_on() -> None:
    part, leaf = partition(enabled=False)
    leaf.add_allocated((("vcore", 1),))
    forced(part, leaf)
    part.now_ms = 60_000
    switched(part, True)
    assert (leaf.quota_due_ms, due(part)) == (70_000, 70_000)
    switched(part, False)
    assert leaf.quota_due_ms is None


def test_what_was_lowered_while_nothing_was_enforced_has_its_delay_too() -> None:
    part, leaf = partition(enabled=False)
    before = quota_clocks.terms(part)
    leaf.max = {"vcore": 3}
    rearm(part, before)
    part.now_ms = 60_000
    switched(part, True)
    assert leaf.quota_due_ms == 70_000


def test_the_timer_is_for_the_first_clock_and_not_in_the_past() -> None:
    part, leaf = partition()
    leaf.quota_due_ms = 4_000
    set_timer(part)
    assert due(part) == 5_000
    set_timer(part, not_before_ms=7_000)
    assert due(part) == 7_000


def test_a_loose_queue_is_over_when_it_uses_more_of_something() -> None:
    leaf = tree("root.a")["root.a"]
    assert not quota_clocks.is_over(leaf)
    leaf.max = {"vcore": 1}
    leaf.add_allocated((("vcore", 1), ("memory", 5)))
    assert not quota_clocks.is_over(leaf)
    leaf.add_allocated((("vcore", 1),))
    assert quota_clocks.is_over(leaf)
