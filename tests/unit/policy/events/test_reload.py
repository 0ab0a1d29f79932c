"""Whether a queue file can take effect: all that is wrong is said at once, and asking changes nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fairlead.core.model.events import AddApplication, AddAsks
from fairlead.core.model.resources import Limits, Resources
from fairlead.core.model.specs import (
    ApplicationSpec,
    AskSpec,
    BudgetSpec,
    ClusterSpec,
    PartitionSpec,
    QueueSpec,
    RuleSpec,
)
from fairlead.policy.events.reload import why_not
from fairlead.scheduler import Scheduler

GOOD = QueueSpec(name="root", parent=True, submit_acl="*", queues=(QueueSpec(name="a"), QueueSpec(name="b")))


def of(*queues: QueueSpec, **more: object) -> ClusterSpec:
    part = PartitionSpec(root=replace(GOOD, queues=queues), **more)  # type: ignore[arg-type]
    return ClusterSpec(partitions=(part,))


def said(spec: ClusterSpec) -> str:
    """What is wrong with it for a cluster where something waits in `root.a`."""
    s = Scheduler(ClusterSpec(partitions=(PartitionSpec(root=GOOD),)))
    s.handle(AddApplication(ApplicationSpec(id="app", queue="root.a")), 0)
    s.handle(AddAsks((AskSpec(application="app", key="k", resources=Resources({"vcore": 1})),)), 0)
    before = s.dump()
    reason = why_not(s.cluster, spec)
    assert s.dump() == before
    return reason.sentence() if reason is not None else ""


def test_a_good_file_has_nothing_wrong() -> None:
    assert said(ClusterSpec(partitions=(PartitionSpec(root=GOOD),))) == ""
    assert said(of(QueueSpec(name="a", max=Limits({"vcore": 1})))) == ""


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        (ClusterSpec(partitions=()), "no partition"),
        (ClusterSpec(partitions=(PartitionSpec(root=GOOD), PartitionSpec(root=GOOD))), "duplicate partition name"),
        (of(QueueSpec(name="a b")), "queue root: 'a b'"),
        (of(QueueSpec(name="a"), QueueSpec(name="A")), "duplicate child name found with name 'A'"),
        (of(QueueSpec(name="p", parent=True, queues=(QueueSpec(name="x"), QueueSpec(name="x")))), "queue root.p: dupl"),
        (of(QueueSpec(name="a", submit_acl="a b c")), "queue root.a"),
        (of(QueueSpec(name="a"), placement_rules=(RuleSpec(name="nonsense"),)), "partition default"),
        (replace(of(QueueSpec(name="a")), budgets=(BudgetSpec(name="keep"),)), "keep"),
    ],
    ids=["none", "twice", "name", "case", "below", "acl", "rule", "budget"],
)
def test_what_is_wrong_is_said_with_its_place(spec: ClusterSpec, why: str) -> None:
    assert why in said(spec)


def test_all_of_it_is_said_at_once() -> None:
    text = said(of(QueueSpec(name="a b"), QueueSpec(name="c", submit_acl="a b c")))
    assert "'a b'" in text
    assert "queue root.c" in text
    assert "; " in text
