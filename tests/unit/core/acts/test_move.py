from __future__ import annotations

from typing import Any

import pytest
from invariants.books import check_books

from fairlead.config import load_text
from fairlead.core.model.decisions import ApplicationMoved, Decision, Evict, MoveRejected
from fairlead.core.model.events import AddApplication, AddAsks, AddNode, Configure, MoveApplication, RemoveApplication
from fairlead.core.model.reasons import ApplicationsAtMax, QueueFull
from fairlead.core.model.resources import Limits, Resources
from fairlead.core.model.specs import (
    ApplicationSpec,
    AskSpec,
    ClusterSpec,
    LimitSpec,
    NodeSpec,
    PartitionSpec,
    QueueSpec,
)
from fairlead.scheduler import Scheduler


def start(*queues: QueueSpec) -> Scheduler:
    s = Scheduler(spec(*queues))
    s.handle(AddNode(NodeSpec(id="n", capacity=Resources({"vcore": 4}))), 0)
    return s


def spec(*queues: QueueSpec) -> ClusterSpec:
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=queues)
    return ClusterSpec(partitions=(PartitionSpec(root=root),))


def submit(s: Scheduler, app: str, queue: str, asks: int = 1, **more: Any) -> None:
    s.handle(AddApplication(ApplicationSpec(id=app, queue=queue, user="u", **more)), 0)
    one = Resources({"vcore": 1})
    s.handle(AddAsks(tuple(AskSpec(application=app, key=f"{app}{i}", resources=one) for i in range(asks))), 0)


def move(s: Scheduler, app: str, queue: str) -> Decision:
    said = s.handle(MoveApplication(app, queue, who="boss"), s.cluster.now_ms)
    check_books(s)
    return said[-1]


def allocated(s: Scheduler, path: str) -> int:
    queue = s.cluster.partitions["default"].root.find(path)
    assert queue is not None
    return queue.allocated.get("vcore", 0)


A, B = QueueSpec(name="a"), QueueSpec(name="b")


def test_everything_goes_along() -> None:
    """What runs, what waits, and that it runs."""
    s = start(A, B)
    submit(s, "x", "root.a", asks=6)
    s.schedule(0)
    assert move(s, "x", "root.B") == ApplicationMoved("x", "root.a", "root.b", "boss")
    assert (allocated(s, "root.a"), allocated(s, "root.b")) == (0, 4)
    b = s.cluster.partitions["default"].root.find("root.b")
    assert b is not None
    assert (b.running, b.pending_sum, list(b.applications)) == (1, 2, ["x"])


def test_what_waited_for_the_old_queue_starts_in_the_new_one() -> None:
    """And what waited behind it in the old one too."""
    s = start(QueueSpec(name="a", max=Limits({"vcore": 1})), B)
    submit(s, "x", "root.a", asks=2)
    submit(s, "y", "root.a")
    s.schedule(0)
    assert allocated(s, "root.a") == 1
    move(s, "x", "root.b")
    s.schedule(0)
    check_books(s)
    assert (allocated(s, "root.a"), allocated(s, "root.b")) == (1, 2)


def test_it_makes_way_for_the_next_application() -> None:
    """The queue it left may run one more."""
    s = start(QueueSpec(name="a", max_applications=1), B)
    submit(s, "x", "root.a")
    submit(s, "y", "root.a")
    s.schedule(0)
    move(s, "x", "root.b")
    s.schedule(0)
    assert allocated(s, "root") == 2


def test_a_queue_over_its_maximum_is_no_target() -> None:
    """Nothing is taken back to make room; the reason has the numbers."""
    s = start(A, QueueSpec(name="p", max=Limits({"vcore": 2}), queues=(QueueSpec(name="b"),)))
    submit(s, "x", "root.a", asks=3)
    s.schedule(0)
    said = move(s, "x", "root.p.b")
    assert said == MoveRejected("x", QueueFull("root.p", {"vcore": 3}, {"vcore": 2}, {"vcore": 2}))
    assert allocated(s, "root.a") == 3


def test_below_the_same_maximum_it_takes_no_more_room() -> None:
    """Queues that it counts for already are no obstacle."""
    s = start(QueueSpec(name="p", max=Limits({"vcore": 2}), max_applications=1, queues=(A, B)))
    submit(s, "x", "root.p.a", asks=2)
    s.schedule(0)
    assert isinstance(move(s, "x", "root.p.b"), ApplicationMoved)


def test_a_queue_that_runs_as_many_as_it_may_is_no_target() -> None:
    """Unless the application does not run yet: then it waits there."""
    s = start(A, QueueSpec(name="b", max_applications=1))
    submit(s, "x", "root.a")
    submit(s, "y", "root.b")
    s.schedule(0)
    assert move(s, "x", "root.b") == MoveRejected("x", ApplicationsAtMax("root.b", 1, 1))
    submit(s, "z", "root.a")
    assert isinstance(move(s, "z", "root.b"), ApplicationMoved)
    s.schedule(0)
    check_books(s)
    assert allocated(s, "root.b") == 1


@pytest.mark.parametrize(
    ("app", "queue", "text"),
    [
        ("nobody", "root.b", "failed to find application nobody"),
        ("x", "root.nope", "there is no queue root.nope"),
        ("x", "root", "is a parent"),
        ("x", "root.a", "is in root.a already"),
        ("x", "root.leaving", "is draining"),
        ("x", "root.@recovery@", "is for recovery only"),
        ("gang", "root.fair", "unsupported sort type"),
    ],
)
def test_where_it_cannot_go(app: str, queue: str, text: str) -> None:
    """Each with its reason."""
    fair = QueueSpec(name="fair", properties={"application.sort.policy": "fair"})
    s = start(A, B, fair, QueueSpec(name="leaving"))
    submit(s, "stays", "root.leaving")
    submit(s, "forced", "", tags={"application.create.force": "true"})
    s.handle(Configure(spec(A, B, fair)), 0)
    submit(s, "x", "root.a")
    submit(s, "gang", "root.a", placeholder_ask=Resources({"vcore": 2}))
    said = move(s, app, queue)
    assert isinstance(said, MoveRejected)
    assert text in said.reason.sentence()


def test_an_unknown_partition_is_said() -> None:
    """As for every other event."""
    (said,) = start(A).handle(MoveApplication("x", "root.a", partition="gpu"), 0)
    assert isinstance(said, MoveRejected)


def test_a_dynamic_queue_that_it_left_is_removed() -> None:
    """Once it is empty."""
    s = start(B)
    submit(s, "x", "", tags={"application.create.force": "true"})
    move(s, "x", "root.b")
    s.schedule(10_000)
    assert s.cluster.partitions["default"].root.find("root.@recovery@") is None


def test_limits_of_its_user_follow_it() -> None:
    """What it uses counts where it is."""
    limited = QueueSpec(name="b", limits=(LimitSpec(limit="u", users=("u",), max_resources=Limits({"vcore": 2})),))
    s = start(A, limited)
    submit(s, "x", "root.a", asks=3)
    s.schedule(0)
    move(s, "x", "root.b")
    submit(s, "y", "root.b")
    s.schedule(0)
    check_books(s)
    assert allocated(s, "root.b") == 3
    s.handle(RemoveApplication("x"), 0)
    s.schedule(0)
    assert allocated(s, "root.b") == 1


def test_it_survives_a_restart() -> None:
    """The state says where it is."""
    s = start(A, B)
    submit(s, "x", "root.a", asks=6)
    s.schedule(0)
    move(s, "x", "root.b")
    again = Scheduler.load(s.dump())
    check_books(again)
    assert again.dump() == s.dump()


def test_work_may_be_stopped_by_the_rules_of_the_queue_it_is_in_now() -> None:
    """In the old queue nobody could stop it; whoever looked then looks again after the move."""
    text = """
partitions:
  - name: default
    preemption: {rule: priority}
    queues:
      - name: root
        submitacl: "*"
        queues: [{name: safe, properties: {preemption.policy: disabled}}, {name: open}]
"""
    scheduler = Scheduler(load_text(text))
    scheduler.handle(AddNode(NodeSpec(id="n1", capacity=Resources({"vcore": 2}))), 0)
    for app, queue in (("low", "root.safe"), ("high", "root.open")):
        scheduler.handle(AddApplication(ApplicationSpec(id=app, queue=queue, user="u")), 0)
    amount = Resources({"vcore": 2})
    scheduler.handle(AddAsks((AskSpec(application="low", key="l", resources=amount),)), 0)
    scheduler.schedule(0)
    scheduler.handle(AddAsks((AskSpec(application="high", key="h", resources=amount, priority=9),)), 1)
    assert scheduler.schedule(1) == []
    scheduler.handle(MoveApplication("low", "root.open"), 2)
    assert [d.key for d in scheduler.schedule(2) if isinstance(d, Evict)] == ["l"]


def test_what_idle_work_needs_no_longer_does_not_stand_in_the_way() -> None:
    """It shrank while it ran: the application's total keeps the name with 0, and its queue never had it."""
    scheduler = start(A, B)
    scheduler.handle(AddNode(NodeSpec(id="m", capacity=Resources({"gpu": 2, "vcore": 2}))), 0)
    submit(scheduler, "i", "root.a")
    for amounts in ({"gpu": 1, "vcore": 1}, {"vcore": 1}):
        idle = AskSpec(application="i", key="l", resources=Resources(amounts), idle=True)
        scheduler.handle(AddAsks((idle,)), 0)
        scheduler.schedule(0)
    assert isinstance(move(scheduler, "i", "root.b"), ApplicationMoved)


def test_idle_work_takes_no_resource_group_over_its_maximum() -> None:
    """It counts in the books of its group, in no queue below: that one's maximum is none of its business."""
    group = {"resource.group": "true"}
    small, one = Limits({"vcore": 1}), QueueSpec(name="l", max=Limits({"vcore": 1}))
    scheduler = start(
        QueueSpec(name="a"),
        QueueSpec(name="full", parent=True, properties=group, max=small, queues=(QueueSpec(name="l"),)),
        QueueSpec(name="free", parent=True, properties=group, queues=(one,)),
    )
    scheduler.handle(AddNode(NodeSpec(id="m", capacity=Resources({"vcore": 2}))), 0)
    submit(scheduler, "i", "root.a")
    scheduler.handle(AddAsks((AskSpec(application="i", key="l", resources=Resources({"vcore": 2}), idle=True),)), 0)
    scheduler.schedule(0)
    refused = move(scheduler, "i", "root.full.l")
    assert isinstance(refused, MoveRejected)
    assert "root.full" in refused.reason.sentence()
    assert isinstance(move(scheduler, "i", "root.free.l"), ApplicationMoved)
    check_books(scheduler)


def test_a_queue_above_both_takes_idle_work_that_did_not_count_there_before() -> None:
    """It counted above them alone; in the group that it comes to, all below that count it too."""
    team = QueueSpec(name="team", parent=True, queues=(B,), properties={"resource.group": "true"})
    s = start(QueueSpec(name="p", parent=True, queues=(A, team), max=Limits({"vcore": 3})))
    submit(s, "x", "root.p.a", asks=2)
    s.handle(AddApplication(ApplicationSpec(id="i", queue="root.p.a", user="u")), 0)
    s.handle(AddAsks((AskSpec(application="i", key="l", resources=Resources({"vcore": 2}), idle=True),)), 0)
    s.schedule(0)
    assert (allocated(s, "root.p"), allocated(s, "root")) == (2, 4)
    said = move(s, "i", "root.p.team.b")
    assert isinstance(said, MoveRejected)
    assert isinstance(said.reason, QueueFull)
    assert said.reason.queue == "root.p"
