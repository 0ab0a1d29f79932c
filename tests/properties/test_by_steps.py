"""A call decides the same as the runs in it, one by one: that a run goes on where the next would begin saves time."""

from __future__ import annotations

import pytest
from portions import share
from properties.crowd_memory import step_by_step
from properties.deep_courses import DeepCourse
from properties.rank_courses import RankCourse, rules_of_configuration
from properties.told_otherwise import recorded

from fairlead.core.model.decisions import Reserved
from fairlead.core.model.events import AddApplication, AddAsks, AddNode, Configure, Event
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import ApplicationSpec, AskSpec, ClusterSpec, NodeSpec, PartitionSpec, QueueSpec
from fairlead.scheduler import Scheduler

QUICK = share(4)


@pytest.mark.timeout(14_400)
@pytest.mark.parametrize("rule", rules_of_configuration())
@pytest.mark.parametrize("kind", [RankCourse, DeepCourse])
def test_step_by_step_the_same_is_decided(kind: type[RankCourse], rule: str) -> None:
    for number in range(QUICK):
        course = recorded(kind, rule, number)
        scheduler = Scheduler(course.spec)
        for call, (told, now_ms, before) in enumerate(course.calls):
            if isinstance(told, Event):
                after = scheduler.handle(told, now_ms)
            else:
                after = scheduler.schedule(now_ms, told) if told else step_by_step(scheduler, now_ms)
            assert after == before, f"course {number}, call {call} at {now_ms}"


def test_many_nodes_are_set_aside_step_by_step_as_at_once() -> None:
    """In two queues at once, with room left for some of what waits; what it asks for has four sizes."""

    def crowd() -> Scheduler:
        root = QueueSpec(name="root", parent=True, submit_acl="*", queues=(QueueSpec(name="a"), QueueSpec(name="b")))
        scheduler = Scheduler()
        scheduler.handle(Configure(ClusterSpec(partitions=(PartitionSpec(root=root),))), 0)
        for node in range(12):
            scheduler.handle(AddNode(NodeSpec(id=f"n{node:02}", capacity=Resources({"vcore": 7 + node % 3}))), 0)
        for app in range(8):
            scheduler.handle(AddApplication(ApplicationSpec(id=f"w{app}", queue=f"root.{'ab'[app % 2]}")), 0)
            sizes = [Resources({"vcore": 3 + (app + n) % 4}) for n in range(6)]
            asks = [AskSpec(application=f"w{app}", key=f"w{app}-{n}", resources=size) for n, size in enumerate(sizes)]
            scheduler.handle(AddAsks(tuple(asks)), 0)
        return scheduler

    at_once, by_steps = crowd(), crowd()
    reserved = 0
    for now_ms in (0, 1_999, 2_000, 2_500, 10_000):
        decisions = at_once.schedule(now_ms)
        assert step_by_step(by_steps, now_ms) == decisions
        reserved += sum(isinstance(each, Reserved) for each in decisions)
        assert by_steps.dump() == at_once.dump()
    assert reserved == 12
