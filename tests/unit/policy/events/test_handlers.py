"""Events about work: each ask by itself, unknown things ignored or refused, and every kind of event has its place."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from priority_clusters import PriorityCluster, labelled, only_on

from fairlead.core.model.conditions import Conditions
from fairlead.core.model.constraints import AffinityTerm, Constraints
from fairlead.core.model.decisions import ApplicationChanged, ApplicationRejected, AskRejected, Released
from fairlead.core.model.events import EVENTS, AddApplication, AddAsks, Cause, Release, RemoveApplication
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import TAG_FOREIGN, ApplicationSpec, AskSpec, RetrySpec
from fairlead.policy.events.admin_objects import CLUSTER_HANDLERS
from fairlead.policy.events.handlers import HANDLERS, partition_of, refuse_unknown_partition

ONE = Resources({"vcore": 1000})
GOOD = AskSpec(application="app", key="good", resources=ONE)
BAD: list[tuple[str, dict[str, Any], str]] = [
    ("unknown application", {"application": "nobody"}, "failed to find application nobody"),
    ("unknown node", {"node": "n9"}, "failed to find node n9"),
    ("nothing", {"resources": Resources({})}, "contains no resources"),
    ("negative", {"resources": Resources({"vcore": -1})}, "negative"),
    ("priority", {"priority": 2**31}, "2147483648 is not a 32-bit integer"),
    ("gang with conditions", {"task_group": "g", "conditions": Conditions(held_by="ann")}, "a gang waits as a whole"),
    ("no attempt", {"attempt": 0}, "the first attempt is 1"),
    ("requeued too often", {"attempt": 2, "requeues": 2}, "attempt 2 cannot come after 2 that were requeued"),
    ("requeued too seldom", {"requeues": -1}, "attempt 1 cannot come after -1"),
    ("grace", {"grace_ms": -5}, "grace_ms is -5; it cannot be below 0"),
    ("time limit", {"time_limit_ms": -1}, "time_limit_ms is -1"),
    ("running time", {"min_runtime_ms": -1}, "min_runtime_ms is -1"),
    ("attempts", {"retry": RetrySpec(limit=-1)}, "retry.limit is -1"),
    ("back-off", {"retry": RetrySpec(limit=3, backoff_ms=-1)}, "retry.backoff_ms is -1"),
    ("idle gang", {"task_group": "g", "idle": True}, "idle work cannot be a gang"),
]


def cluster() -> PriorityCluster:
    """With an empty application `app`."""
    c = PriorityCluster()
    c.handle(AddApplication(ApplicationSpec(id="app", queue="root.a")))
    return c


@pytest.mark.parametrize(("name", "change", "why"), BAD, ids=[name for name, _, _ in BAD])
def test_a_bad_ask_is_refused_and_the_others_go_on(name: str, change: dict[str, Any], why: str) -> None:
    c = cluster()
    decided = c.handle(AddAsks((replace(GOOD, key="bad", **change), GOOD)))
    [refused] = [d for d in decided if isinstance(d, AskRejected)]
    assert (refused.key, why in refused.reason.sentence()) == ("bad", True), name
    assert c.run()[0] == ["good@n1"]


def test_an_application_is_taken_in_once() -> None:
    c = cluster()
    [refused] = c.handle(AddApplication(ApplicationSpec(id="app", queue="root.b")))
    assert isinstance(refused, ApplicationRejected)
    assert "already existed" in refused.reason.sentence()
    assert c.s.cluster.partitions["default"].applications["app"].queue.path == "root.a"


def test_a_refused_application_is_kept_with_its_reason() -> None:
    """So that one can ask why."""
    c = cluster()
    c.handle(AddApplication(ApplicationSpec(id="lost", queue="root.nowhere")))
    part = c.s.cluster.partitions["default"]
    lost = part.rejected["lost"]
    assert lost.rejected is not None
    assert lost.message == lost.rejected.sentence()
    assert str(lost.state) == "Rejected"


def test_an_application_goes_with_all_that_it_has() -> None:
    c = cluster()
    c.handle(AddAsks((GOOD, replace(GOOD, key="big", resources=Resources({"vcore": 9000})))))
    c.run()
    decided = c.handle(RemoveApplication("app"))
    assert [(d.key, d.cause) for d in decided if isinstance(d, Released)] == [("good", Cause.STOPPED_BY_RM)]
    assert [(d.id, d.state) for d in decided if isinstance(d, ApplicationChanged)] == [("app", "Removed")]
    part = c.s.cluster.partitions["default"]
    assert (part.applications, part.ended, part.root.allocated) == ({}, {}, {"vcore": 0})
    assert c.handle(RemoveApplication("app")) == []


def test_an_end_may_be_reported_twice() -> None:
    c = cluster()
    c.handle(AddAsks((GOOD,)))
    c.run()
    c.handle(Release("app", "good", Cause.FINISHED))
    assert c.handle(Release("app", "good", Cause.FINISHED)) == []
    assert c.handle(Release("nobody", "good")) == []
    assert c.handle(Release("", "no-foreign-work")) == []


def test_without_a_key_all_of_the_application_ends() -> None:
    """What waits, what runs, what is held."""
    c = cluster()
    held = replace(GOOD, key="held", conditions=Conditions(held_by="ann"))
    big = replace(GOOD, key="big", resources=Resources({"vcore": 9000}))
    c.handle(AddAsks((GOOD, held, big)))
    c.run()
    c.handle(Release("app", ""))
    part = c.s.cluster.partitions["default"]
    assert part.root.allocated == {"vcore": 0}
    assert not part.held_asks
    assert all(not ask.pending and ask.node is None for a in part.applications.values() for ask in a.asks.values())


def test_work_of_others_makes_a_node_smaller() -> None:
    c = cluster()
    foreign = AskSpec(application="", key="f", resources=Resources({"vcore": 3500}), node="n1", tags={TAG_FOREIGN: "x"})
    c.handle(AddAsks((foreign, GOOD)))
    assert c.run() == ([], [])
    c.handle(Release("", "f"))
    assert c.run()[0] == ["good@n1"]


@pytest.mark.parametrize(("node", "why"), [("n9", "failed to find node n9"), ("", "node ID is empty")])
def test_work_of_others_has_to_be_on_a_node(node: str, why: str) -> None:
    foreign = AskSpec(application="", key="f", resources=ONE, node=node, tags={TAG_FOREIGN: "x"})
    [refused] = cluster().handle(AddAsks((foreign,)))
    assert isinstance(refused, AskRejected)
    assert why in refused.reason.sentence()


def test_what_runs_already_is_taken_into_the_books() -> None:
    """Over any limit, if need be."""
    c = cluster()
    c.handle(AddAsks((replace(GOOD, node="n1", resources=Resources({"vcore": 9000})),)))
    part = c.s.cluster.partitions["default"]
    assert (part.root.allocated, part.nodes.nodes["n1"].free) == ({"vcore": 9000}, {"vcore": -5000})


def test_an_ask_of_another_size_may_have_work_stopped_that_started_while_it_waited() -> None:
    """As it was it could not have been helped then; what it asks for now is more than new work."""
    c = PriorityCluster(nodes={"n1": 4})
    c.submit("high", 5, 9)
    c.submit("low", 2)
    assert c.run() == (["low@n1"], [])
    assert c.run() == ([], [])
    c.handle(AddAsks((AskSpec(application="high", key="high", resources=Resources({"vcore": 4000}), priority=9),)))
    assert c.run() == ([], ["low"])


def test_work_of_others_that_changes_is_more_than_new_work() -> None:
    """While it was that large, stopping `low` would not have been enough for `high`."""
    c = PriorityCluster(nodes={"n1": 4})
    foreign = AskSpec(application="", key="foreign", resources=ONE, node="n1", tags={TAG_FOREIGN: "default"})
    c.handle(AddAsks((foreign,)))
    c.submit("high", 4, 9)
    c.submit("low", 2)
    assert c.run() == (["low@n1"], [])
    c.handle(AddAsks((replace(foreign, resources=Resources({"vcore": 0})),)))
    assert c.run() == ([], ["low"])


@pytest.mark.parametrize("waited", [False, True])
def test_work_that_is_reported_to_run_is_more_than_new_work(waited: bool) -> None:
    """Before it came, nothing could have been stopped for what wants to be beside it."""
    c = PriorityCluster(nodes={"n1": 4})
    beside = Constraints(affinity=(AffinityTerm(labelled("db")),))
    c.handle(AddApplication(ApplicationSpec(id="db", queue="root.a")))
    db = AskSpec(
        application="db", key="db", resources=ONE, priority=9, labels={"app": "db"}, where=only_on("elsewhere")
    )
    if waited:
        c.handle(AddAsks((db,)))
    c.submit("high", 3, 9, where=beside)
    c.submit("low", 2)
    assert c.run() == (["low@n1"], [])
    c.handle(AddAsks((replace(db, node="n1"),)))
    assert c.run() == ([], ["low"])


def test_every_kind_of_event_has_one_handler() -> None:
    """But for those that the front door takes itself."""
    handled = set(HANDLERS) | set(CLUSTER_HANDLERS)
    assert not set(HANDLERS) & set(CLUSTER_HANDLERS)
    assert {kind.__name__ for kind in set(EVENTS) - handled} == {"Configure"}


def test_an_unknown_partition_is_said_for_each_part() -> None:
    out: list[Any] = []
    event = AddAsks((GOOD, replace(GOOD, key="other")), partition="gpu")
    assert partition_of(event) == "gpu"
    refuse_unknown_partition(event, "gpu", out)
    assert [(d.key, "partition gpu" in d.reason.sentence()) for d in out] == [("good", True), ("other", True)]
    assert partition_of(AddApplication(ApplicationSpec(id="x", partition="cpu"))) == "cpu"
