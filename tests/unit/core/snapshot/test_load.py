"""A state that is loaded goes on exactly as the one that was written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from invariants.books import check_books

from fairlead.core.model.conditions import Conditions
from fairlead.core.model.events import AddApplication, AddAsks, AddNode, Cause, Configure, DrainNode, Release
from fairlead.core.model.plain import to_plain
from fairlead.core.model.resources import Limits, Resources
from fairlead.core.model.specs import (
    ApplicationSpec,
    AskSpec,
    ClusterSpec,
    NodeSpec,
    PartitionSpec,
    PreemptionSpec,
    QueueSpec,
)
from fairlead.scheduler import Scheduler


def _busy() -> Scheduler:
    leaves = (
        QueueSpec(name="a", guaranteed=Limits({"vcore": 4000}), properties={"application.sort.policy": "fair"}),
        QueueSpec(name="b", max=Limits({"vcore": 3000}), properties={"priority.offset": "10"}),
        QueueSpec(name="c", max_applications=1),
    )
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=leaves)
    part = PartitionSpec(root=root, preemption=PreemptionSpec(rule="priority"))
    s = Scheduler(ClusterSpec(partitions=(part,)))
    for i in range(3):
        s.handle(AddNode(NodeSpec(id=f"n{i}", capacity=Resources({"vcore": 4000, "memory": 100}))), 0)
    for i, leaf in enumerate("abcabc"):
        s.handle(AddApplication(ApplicationSpec(id=f"app{i}", queue=f"root.{leaf}")), i)
        asks = tuple(
            AskSpec(
                application=f"app{i}",
                key=f"k{i}-{k}",
                resources=Resources({"vcore": 1000, "memory": 7}),
                priority=k % 3,
            )
            for k in range(4)
        )
        s.handle(AddAsks(asks), i)
    s.schedule(10)
    s.handle(Release("app0", "k0-2", Cause.FINISHED), 20)
    s.handle(DrainNode("n1"), 21)
    s.handle(AddApplication(ApplicationSpec(id="high", queue="root.a")), 22)
    big = AskSpec(application="high", key="big", resources=Resources({"vcore": 3000, "memory": 7}), priority=50)
    s.handle(AddAsks((big,)), 22)
    s.schedule(23)
    return s


def test_a_loaded_scheduler_dumps_what_it_was_loaded_from() -> None:
    """Through JSON and back, byte for byte."""
    s = _busy()
    text = json.dumps(s.dump())
    again = Scheduler.load(json.loads(text))
    check_books(again)
    assert json.dumps(again.dump()) == text


STARTS = ("seq", "submitted_seq", "started_seq", "changed_seq")
"""The numbers that starts have, and those that others have because of it."""


def test_a_state_of_version_2_is_read() -> None:
    """It was written by the same course of events, and says every field of every ask. It did not number starts."""
    text = (Path(__file__).parent / "data" / "version-2.json").read_text()
    loaded = Scheduler.load(json.loads(text)).dump()
    assert _without(loaded, *STARTS) == _without(_busy().dump(), *STARTS)
    assert len(text) > 2 * len(json.dumps(_busy().dump(), indent=1))


@pytest.mark.parametrize("version", [3, 4])
def test_a_state_of_an_older_version_is_read(version: int) -> None:
    """It was written by the same course of events, and says also what can be added up (3), or counted from 0 again.
    Nodes had their numbers behind those of the changes that they are."""
    text = (Path(__file__).parent / "data" / f"version-{version}.json").read_text()
    assert _without(Scheduler.load(json.loads(text)).dump(), "seq") == _without(_busy().dump(), "seq")


def _without(state: Any, *numbers: str) -> Any:
    if isinstance(state, dict):
        return {key: _without(each, *numbers) for key, each in state.items() if key not in numbers}
    return [_without(each, *numbers) for each in state] if isinstance(state, list) else state


def test_an_attempt_in_its_back_off_of_version_2_is_held() -> None:
    """Until the same time."""
    state = json.loads((Path(__file__).parent / "data" / "version-2.json").read_text())
    [part] = state["partitions"]
    spec = AskSpec(application="app0", key="again", resources=Resources({"vcore": 1}))
    part["retries"] = [["app0", 5_000, to_plain(spec)]]
    s = Scheduler.load(state)
    held = s.cluster.partitions["default"].held_asks.get("app0", "again")
    assert held is not None
    assert (held.spec, held.conditions) == (spec, Conditions(begin_ms=5_000))


def test_a_loaded_scheduler_goes_on_as_the_original() -> None:
    """The same events give the same decisions, with victims on their way out and space held."""
    s = _busy()
    assert s.dump()["partitions"][0]["nominations"], "the case must have a nominated ask"
    again = Scheduler.load(json.loads(json.dumps(s.dump())))
    for one in (s, again):
        one.handle(Release("app3", "k3-2", Cause.FINISHED), 30)
    rows = [row for p in s.dump()["partitions"] for a in p["applications"] for row in a["asks"]]
    victims = [row["spec"]["key"] for row in rows if "evict_cause" in row]
    events = [Release(f"app{v[1]}", v, Cause.PREEMPTED_BY_SCHEDULER) for v in victims]
    for event in events:
        assert s.handle(event, 31) == again.handle(event, 31)
    assert s.schedule(40) == again.schedule(40)
    assert s.dump() == again.dump()
    check_books(s)


def test_a_run_that_comes_to_nothing_decides_nothing() -> None:
    """Work is withdrawn before any run: for which limits its application counts is as open as before, read back or not.

    Limits that are added then hold for what comes next.
    """
    s = _one_queue(PreemptionSpec(enabled=False))
    s.handle(AddApplication(ApplicationSpec(id="late", queue="root.a", user="ann")), 2)
    s.handle(AddAsks((AskSpec(application="late", key="one", resources=Resources({"vcore": 1})),)), 2)
    s.handle(Release("late", "one"), 2)
    again = Scheduler.load(json.loads(json.dumps(s.dump())))
    for each in (s, again):
        each.schedule(3)
    assert s.dump() == again.dump()
    assert s.cluster.partitions["default"].applications["late"].limit_group is None


def test_a_bound_on_waiting_is_looked_at_where_something_has_waited() -> None:
    """And in no other queue, after a node has come: read back or not."""
    waits = {"wait.max": "10s"}
    queues = (QueueSpec(name="a", properties=waits), QueueSpec(name="b", properties=waits), QueueSpec(name="c"))
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=queues)
    s = Scheduler(ClusterSpec(partitions=(PartitionSpec(root=root),)))
    s.handle(AddApplication(ApplicationSpec(id="w", queue="root.b")), 0)
    s.handle(AddAsks((AskSpec(application="w", key="w", resources=Resources({"vcore": 9})),)), 0)
    again = Scheduler.load(json.loads(json.dumps(s.dump())))
    for each in (s, again):
        each.handle(AddNode(NodeSpec(id="n", capacity=Resources({"vcore": 1}))), 1)
        assert each.dump()["partitions"][0]["reserving"]["overdue"] == ["root.b"]
    assert s.dump() == again.dump()


def test_timers_are_numbered_on_after_a_restart() -> None:
    """Also where the newest of them have fired."""
    s = _busy()
    s.cluster.timers.set(50, "default", "app0", "none")
    assert s.cluster.timers.pop_due(50) is not None
    again = Scheduler.load(json.loads(json.dumps(s.dump())))
    for each in (s, again):
        each.cluster.timers.set(60, "default", "app0", "none")
    assert s.cluster.timers.pending() == again.cluster.timers.pending()


def test_a_state_of_another_version_is_refused() -> None:
    """With both versions in the message."""
    with pytest.raises(ValueError, match="version 99"):
        Scheduler.load(_busy().dump() | {"version": 99})


def _again(s: Scheduler) -> dict[str, Any]:
    return Scheduler.load(json.loads(json.dumps(s.dump()))).dump()


def test_an_ended_application_keeps_the_name_of_a_queue_that_is_gone() -> None:
    """What ended in a queue is still shown there after the queue was removed and the state was loaded."""
    s = _one_queue(PreemptionSpec(enabled=False))
    s.handle(Release("low", "l", Cause.FINISHED), 2)
    s.schedule(60_000, 0)
    s.handle(Configure(ClusterSpec(partitions=(PartitionSpec(root=QueueSpec(name="root", parent=True)),))), 60_001)
    s.schedule(100_000, 0)
    (_, ended), *_ = s.dump()["partitions"][0]["ended"]
    assert ended["queue"] == "root.a"
    assert "root.a" not in [q.path for q in s.cluster.partitions["default"].root.walk()]
    assert _again(s) == s.dump()


def test_victims_that_have_left_are_not_written() -> None:
    """A preemptor waits only for those who are still there."""
    s = _one_queue(PreemptionSpec(rule="priority"))
    s.handle(AddApplication(ApplicationSpec(id="high", queue="root.a")), 2)
    s.handle(AddAsks((AskSpec(application="high", key="h", resources=Resources({"vcore": 2}), priority=9),)), 2)
    s.schedule(3)
    assert s.cluster.partitions["default"].applications["high"].asks["h"].victims
    s.handle(Release("low", "l", Cause.PREEMPTED_BY_SCHEDULER), 4)
    assert _again(s) == s.dump()


def test_what_was_made_first_and_is_not_first_in_line_is_written_in_order() -> None:
    """Of two sizes the one that came first is asked for later by now: the state is the same text after a restart."""
    s = _one_queue(PreemptionSpec())
    s.handle(AddApplication(ApplicationSpec(id="a", queue="root.a")), 1)
    for now_ms, keys in enumerate((["b0", "s0"], ["s1", "s2", "b1", "b2"])):
        sizes = [Resources({"vcore": 2 if key[0] == "b" else 1}) for key in keys]
        asks = (AskSpec(application="a", key=key, resources=size) for key, size in zip(keys, sizes, strict=True))
        s.handle(AddAsks(tuple(asks)), 1 + now_ms)
    s.handle(Release("a", "b0"), 2)
    s.handle(Release("a", "s0"), 2)
    assert len(s.dump()["partitions"][0]["attempts"]) == 2
    assert _again(s) == s.dump()


def test_what_is_left_of_a_batch_is_as_old_after_a_restart() -> None:
    """Of two that are alike the older one was withdrawn: another one comes, and both states are the same again."""
    s = _one_queue(PreemptionSpec())
    s.handle(AddApplication(ApplicationSpec(id="a", queue="root.a")), 1)
    asks = [AskSpec(application="a", key=f"k{n}", resources=Resources({"vcore": 1})) for n in range(3)]
    s.handle(AddAsks((asks[0],)), 1)
    s.handle(AddAsks((asks[1],)), 2)
    s.handle(Release("a", "k0"), 3)
    again = Scheduler.load(json.loads(json.dumps(s.dump())))
    for each in (s, again):
        each.handle(AddAsks((asks[2],)), 4)
    assert s.dump() == again.dump()


def _one_queue(preemption: PreemptionSpec) -> Scheduler:
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=(QueueSpec(name="a"),))
    s = Scheduler(ClusterSpec(partitions=(PartitionSpec(root=root, preemption=preemption),)))
    s.handle(AddNode(NodeSpec(id="n", capacity=Resources({"vcore": 2}))), 0)
    s.handle(AddApplication(ApplicationSpec(id="low", queue="root.a")), 0)
    s.handle(AddAsks((AskSpec(application="low", key="l", resources=Resources({"vcore": 2})),)), 0)
    s.schedule(1)
    return s
