"""What a reading of what is combined, and of what was mended last, found: one rule beside another.

Each test names what would go wrong. Times are in milliseconds.
"""

from __future__ import annotations

import pytest
from invariants.books import check_books
from small_clusters import cluster, stopped, submit

from fairlead.core.model.constraints import IN, Requirement
from fairlead.core.model.specs import BudgetSpec, QueueSpec

ONCE = QueueSpec(name="b", properties={"preemption.evictions.max": "1"})


@pytest.mark.parametrize("rule", ["priority", "both"])
def test_the_one_larger_work_that_goes_breaks_no_budget_where_another_breaks_none(rule: str) -> None:
    protected = BudgetSpec(name="kept", selector=(Requirement("app", IN, ("x",)),), max_unavailable=0)
    s = cluster(QueueSpec(name="a"), ONCE, nodes={"n1": 6}, rule=rule, budgets=(protected,))
    submit(s, "protected", 2, 0, queue="root.b", node="n1", labels={"app": "x"})
    submit(s, "large", 2, 0, queue="root.b", node="n1", priority=1)
    submit(s, "small", 1, 0, queue="root.b", node="n1")
    submit(s, "tiny", 1, 0, queue="root.b", node="n1")
    submit(s, "w", 2, 1, priority=5)
    assert stopped(s.schedule(1)) == ["large"]
    check_books(s)


@pytest.mark.parametrize("rule", ["priority", "both"])
def test_the_one_larger_work_that_goes_is_willing_where_another_is_not(rule: str) -> None:
    s = cluster(QueueSpec(name="a"), ONCE, nodes={"n1": 6}, rule=rule)
    submit(s, "willing", 2, 0, queue="root.b", node="n1")
    submit(s, "unwilling", 2, 0, queue="root.b", node="n1", allow_preempt_self=False)
    submit(s, "small", 1, 0, queue="root.b", node="n1")
    submit(s, "tiny", 1, 0, queue="root.b", node="n1")
    submit(s, "w", 2, 1, priority=5)
    assert stopped(s.schedule(1)) == ["willing"]
    check_books(s)
