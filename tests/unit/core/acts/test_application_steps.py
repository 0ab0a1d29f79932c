"""The life of an application: its steps take their time, and what has ended is forgotten at its own time."""

from __future__ import annotations

import pytest

from fairlead.core.acts.application_steps import ENDED_KEPT_MS, STAYS_MS
from fairlead.core.model.conditions import Conditions
from fairlead.core.model.decisions import Allocated, ApplicationChanged
from fairlead.core.model.events import AddApplication, AddAsks, AddNode, Cause, Release
from fairlead.core.model.lifecycle import State
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import ApplicationSpec, AskSpec, ClusterSpec, NodeSpec, PartitionSpec, QueueSpec
from fairlead.scheduler import Scheduler

ONE = Resources({"vcore": 1000})
ROOT = QueueSpec(name="root", parent=True, submit_acl="*", queues=(QueueSpec(name="a"),))


def scheduler() -> Scheduler:
    made = Scheduler(ClusterSpec(partitions=(PartitionSpec(root=ROOT),)))
    made.handle(AddNode(NodeSpec(id="n", capacity=ONE)), 0)
    return made


def lived(made: Scheduler, name: str, at_ms: int) -> int:
    """An application comes, runs for a second, and completes; when that was."""
    made.handle(AddApplication(ApplicationSpec(id=name, queue="root.a")), at_ms)
    made.handle(AddAsks((AskSpec(application=name, key=name, resources=ONE),)), at_ms)
    made.schedule(at_ms)
    made.handle(Release(name, name), at_ms + 1000)
    made.schedule(at_ms + 1000 + STAYS_MS[State.COMPLETING])
    return at_ms + 1000 + STAYS_MS[State.COMPLETING]


def expired(made: Scheduler, at_ms: int) -> list[str]:
    """Who is said to have expired by then."""
    return [d.id for d in made.schedule(at_ms) if isinstance(d, ApplicationChanged) and d.state == "Expired"]


def test_each_is_forgotten_three_days_after_its_end() -> None:
    """Not earlier, and said once; the younger one stays."""
    made = scheduler()
    first, second = lived(made, "one", 0), lived(made, "two", 100_000)
    ended = made.cluster.partitions["default"].ended
    assert [a.id for a in ended.values()] == ["one", "two"]
    assert expired(made, first + ENDED_KEPT_MS - 1) == []
    assert expired(made, first + ENDED_KEPT_MS) == ["one"]
    assert [a.id for a in ended.values()] == ["two"]
    assert expired(made, second + ENDED_KEPT_MS) == ["two"]
    assert not ended


def test_two_lives_under_one_name_are_forgotten_each_at_its_time() -> None:
    """The end of the first does not take the second along."""
    made = scheduler()
    first, second = lived(made, "again", 0), lived(made, "again", 100_000)
    ended = made.cluster.partitions["default"].ended
    assert len(ended) == 2
    expired(made, first + ENDED_KEPT_MS)
    assert len(ended) == 1
    expired(made, second + ENDED_KEPT_MS)
    assert not ended


def test_a_rejected_one_is_forgotten_too() -> None:
    """Three days after it was refused."""
    made = scheduler()
    made.handle(AddApplication(ApplicationSpec(id="lost", queue="root.nowhere")), 5000)
    assert "lost" in made.cluster.partitions["default"].rejected
    assert expired(made, 5000 + ENDED_KEPT_MS) == ["lost"]
    assert not made.cluster.partitions["default"].rejected


def test_one_refused_again_is_kept_from_the_last_time_on() -> None:
    """The timer of the first refusal is void."""
    made = scheduler()
    for at_ms in (5000, 60_000):
        made.handle(AddApplication(ApplicationSpec(id="lost", queue="root.nowhere")), at_ms)
    assert expired(made, 5000 + ENDED_KEPT_MS) == []
    assert expired(made, 60_000 + ENDED_KEPT_MS) == ["lost"]


def test_one_that_starts_runs_after_its_time() -> None:
    """Where the older step `Starting` is taken, and no second allocation came before."""
    made = Scheduler(ClusterSpec(partitions=(PartitionSpec(root=ROOT, state_aware=True),)))
    made.handle(AddNode(NodeSpec(id="n", capacity=ONE)), 0)
    made.handle(AddApplication(ApplicationSpec(id="one", queue="root.a")), 0)
    made.handle(AddAsks((AskSpec(application="one", key="one", resources=ONE),)), 0)
    made.schedule(0)
    app = made.cluster.partitions["default"].applications["one"]
    assert (str(app.state), made.next_wakeup_ms()) == ("Starting", STAYS_MS[State.STARTING])
    made.schedule(STAYS_MS[State.STARTING] - 1)
    assert str(app.state) == "Starting"
    made.schedule(STAYS_MS[State.STARTING])
    assert str(app.state) == "Running"


def test_each_that_ended_is_kept_also_where_they_had_one_name() -> None:
    """It came again at once, and failed within a second: both are there, and go at their times."""
    made = scheduler()
    end = lived(made, "a", 0)
    gang = {"placeholder_ask": Resources({"vcore": 2000}), "placeholder_timeout_ms": 1, "gang_style": "Hard"}
    made.handle(AddApplication(ApplicationSpec(id="a", queue="root.a", **gang)), end)  # type: ignore[arg-type]
    ask = AskSpec(application="a", key="p", resources=ONE, placeholder=True, task_group="t")
    made.handle(AddAsks((ask,)), end)
    made.schedule(end)
    made.schedule(end + 1)
    made.handle(Release("a", "p", Cause.TIMEOUT), end + 2)
    ended = made.cluster.partitions["default"].ended
    assert [str(each.state) for each in ended.values()] == ["Completed", "Failed"]
    assert [expired(made, at + ENDED_KEPT_MS) for at in (end - 1, end, end + 1, end + 2)] == [[], ["a"], [], ["a"]]


@pytest.mark.parametrize("later", [None, Conditions(begin_ms=5)], ids=["at once", "held until then"])
def test_idle_work_that_comes_again_holds_no_place_to_run_while_nothing_of_it_runs(later: Conditions | None) -> None:
    """Its application was about to complete, and runs again: ordinary work of another one has the place."""
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=(QueueSpec(name="a", max_applications=1),))
    made = Scheduler(ClusterSpec(partitions=(PartitionSpec(root=root),)))
    made.handle(AddNode(NodeSpec(id="n", capacity=ONE)), 0)
    for name in ("borrows", "other"):
        made.handle(AddApplication(ApplicationSpec(id=name, queue="root.a")), 1)
    made.handle(AddAsks((AskSpec(application="borrows", key="first", resources=ONE, idle=True),)), 2)
    made.schedule(2)
    made.handle(AddAsks((AskSpec(application="other", key="other", resources=ONE),)), 3)
    made.handle(Release("borrows", "first", Cause.FINISHED), 4)
    second = AskSpec(application="borrows", key="second", resources=ONE, idle=True, conditions=later)
    made.handle(AddAsks((second,)), 4)
    assert [d.key for d in made.schedule(5) if isinstance(d, Allocated)] == ["other"]
