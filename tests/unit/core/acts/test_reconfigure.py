from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from invariants.books import check_books

from fairlead.config import load_text
from fairlead.core.books.queues import Queue
from fairlead.core.model.decisions import (
    ApplicationAccepted,
    ApplicationChanged,
    ApplicationRejected,
    AskRejected,
    ConfigurationRejected,
    Configured,
    Decision,
    QueueChanged,
    Released,
)
from fairlead.core.model.events import AddApplication, AddAsks, AddNode, Cause, Configure, Release, RemoveApplication
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import (
    ApplicationSpec,
    AskSpec,
    ClusterSpec,
    NodeSpec,
    PartitionSpec,
    QueueSpec,
    RuleSpec,
)
from fairlead.policy.order.keys import fair_share
from fairlead.scheduler import Scheduler

CREATE = [{"name": "provided", "create": True}]


def spec(*queues: dict[str, Any], rules: object = CREATE, **root: object) -> ClusterSpec:
    tree = [{"name": "root", "submitacl": "*", "queues": list(queues)} | root]
    return load_text(json.dumps({"partitions": [{"placementrules": rules, "queues": tree}]}))


def leaf(name: str, **more: object) -> dict[str, Any]:
    return {"name": name} | more


def start(*queues: dict[str, Any], nodes: int = 1) -> Scheduler:
    s = Scheduler(spec(*queues))
    for i in range(nodes):
        s.handle(AddNode(NodeSpec(id=f"n{i}", capacity=Resources({"vcore": 10}))), 0)
    return s


def submit(s: Scheduler, app: str, queue: str, asks: int = 1, priority: int = 0) -> bool:
    """Whether the application was taken in."""
    now = s.cluster.now_ms
    said = s.handle(AddApplication(ApplicationSpec(id=app, queue=queue, user="u")), now)
    one = Resources({"vcore": 1})
    s.handle(
        AddAsks(
            tuple(AskSpec(application=app, key=f"{app}{i}", resources=one, priority=priority) for i in range(asks))
        ),
        now,
    )
    return any(isinstance(d, ApplicationAccepted) for d in said)


def configure(s: Scheduler, new: ClusterSpec) -> list[Decision]:
    said = s.handle(Configure(new), s.cluster.now_ms)
    check_books(s)
    return said


def changes(decisions: list[Decision]) -> list[tuple[str, str]]:
    return [(d.queue, d.change) for d in decisions if isinstance(d, QueueChanged)]


def queue(s: Scheduler, path: str) -> Queue:
    found = s.cluster.partitions["default"].root.find(path)
    assert found is not None, path
    return found


def running(s: Scheduler) -> int:
    s.schedule(s.cluster.now_ms)
    check_books(s)
    return s.cluster.partitions["default"].root.allocated.get("vcore", 0)


def test_queues_are_added_and_others_drain() -> None:
    """And it is said, before the file takes effect as a whole."""
    s = start(leaf("a"), leaf("b", queues=[leaf("c")]))
    said = configure(s, spec(leaf("a"), leaf("new")))
    assert changes(said) == [("root.b", "draining"), ("root.b.c", "draining"), ("root.new", "added")]
    assert isinstance(said[-1], Configured)


def test_a_draining_queue_finishes_its_work_and_takes_nothing_new() -> None:
    """Then it goes."""
    s = start(leaf("a"), leaf("b"))
    submit(s, "old", "root.b", asks=2)
    configure(s, spec(leaf("a")))
    assert not submit(s, "late", "root.b")
    assert running(s) == 2
    s.schedule(20_000)
    assert queue(s, "root.b").state == "Draining"
    s.handle(RemoveApplication("old"), 20_000)
    assert changes(s.schedule(30_000)) == [("root.b", "removed")]


def test_an_empty_queue_goes_at_the_next_cleaning() -> None:
    """Which is a timer, so that somebody who sleeps until the next one is woken."""
    s = start(leaf("a"), leaf("b"))
    configure(s, spec(leaf("a")))
    assert s.next_wakeup_ms() == 10_000
    assert changes(s.schedule(10_000)) == [("root.b", "removed")]
    assert s.next_wakeup_ms() is None


def test_a_queue_that_is_listed_again_is_restarted() -> None:
    """It takes work again, and is not removed."""
    s = start(leaf("a"), leaf("b"))
    configure(s, spec(leaf("a")))
    assert changes(configure(s, spec(leaf("a"), leaf("b")))) == [("root.b", "restarted")]
    assert submit(s, "x", "root.b")
    s.schedule(10_000)
    assert queue(s, "root.b").state == "Active"


def test_limits_and_properties_are_derived_anew() -> None:
    """What is no longer in the file is the default again, also for what was inherited."""
    s = start(
        leaf("a", resources={"max": {"vcore": "4m"}}, properties={"priority.offset": "5", "k": "v"}, queues=[leaf("b")])
    )
    assert queue(s, "root.a.b").properties.raw == {"k": "v", "priority.offset": "0"}
    configure(s, spec(leaf("a", maxapplications=3, queues=[leaf("b", maxapplications=3)])))
    assert queue(s, "root.a").max is None
    assert queue(s, "root.a").max_applications == 3
    assert queue(s, "root.a").properties.priority_offset == 0
    assert queue(s, "root.a.b").properties.raw == {}


def test_a_new_offset_counts_at_once_for_what_waits() -> None:
    """The priorities that the queues report are worked out anew."""
    s = start(leaf("a"), leaf("b"), nodes=0)
    submit(s, "x", "root.a", priority=3)
    configure(s, spec(leaf("a", properties={"priority.offset": "100"}), leaf("b")))
    assert queue(s, "root").reported == 103


@pytest.mark.parametrize("limit", [{"resources": {"max": {"vcore": "6m"}}}, {}])
def test_a_raised_maximum_lets_waiting_work_start(limit: dict[str, Any]) -> None:
    """Also when it is removed."""
    s = start(leaf("a", resources={"max": {"vcore": "2m"}}))
    submit(s, "x", "root.a", asks=6)
    assert running(s) == 2
    configure(s, spec(leaf("a", **limit)))
    assert running(s) == 6


def test_a_lowered_maximum_stops_nothing() -> None:
    """Nothing new starts until it is met."""
    s = start(leaf("a"))
    submit(s, "x", "root.a", asks=3)
    assert running(s) == 3
    configure(s, spec(leaf("a", resources={"max": {"vcore": "2m"}})))
    submit(s, "y", "root.a")
    assert running(s) == 3


def test_more_applications_may_run_at_once() -> None:
    """Those that waited for their turn start."""
    s = start(leaf("a", maxapplications=1))
    submit(s, "x", "root.a")
    submit(s, "y", "root.a")
    assert running(s) == 1
    configure(s, spec(leaf("a", maxapplications=2)))
    assert running(s) == 2


def test_a_dynamic_queue_that_the_file_names_belongs_to_it() -> None:
    """With the file's limits, and it stays when it is empty."""
    s = start(leaf("a", parent=True, childtemplate={"maxapplications": 1}))
    submit(s, "x", "root.a.dyn")
    configure(s, spec(leaf("a", queues=[leaf("dyn", resources={"max": {"vcore": 1}})])))
    assert queue(s, "root.a.dyn").managed
    assert queue(s, "root.a.dyn").max_applications == 0
    s.handle(RemoveApplication("x"), 0)
    s.schedule(10_000)
    assert queue(s, "root.a.dyn").max == {"vcore": 1000}


def test_dynamic_queues_keep_their_template() -> None:
    """A changed one is for those made from now on."""
    s = start(leaf("a", parent=True, childtemplate={"maxapplications": 1}))
    submit(s, "x", "root.a.one")
    configure(s, spec(leaf("a", parent=True, childtemplate={"maxapplications": 2})))
    submit(s, "y", "root.a.two")
    assert (queue(s, "root.a.one").max_applications, queue(s, "root.a.two").max_applications) == (1, 2)


def test_an_inherited_template_follows_the_parents() -> None:
    """After a reload too, also into queues that were there before."""
    s = start(leaf("a", childtemplate={"maxapplications": 1}, queues=[leaf("b", parent=True)]))
    configure(s, spec(leaf("a", childtemplate={"maxapplications": 2}, queues=[leaf("b", parent=True)])))
    submit(s, "x", "root.a.b.c")
    assert queue(s, "root.a.b.c").max_applications == 2


def test_a_parent_that_placement_made_follows_too() -> None:
    """What is made below it from now on has the template of the file in force, not that of when it was made."""
    s = start(leaf("a", parent=True, childtemplate={"maxapplications": 1}))
    submit(s, "x", "root.a.made.deep.one")
    configure(s, spec(leaf("a", parent=True, childtemplate={"maxapplications": 2})))
    submit(s, "y", "root.a.made.deep.two")
    assert [queue(s, f"root.a.made.deep.{name}").max_applications for name in ("one", "two")] == [1, 2]


def test_an_empty_leaf_may_become_a_parent_and_back() -> None:
    """Work goes to whatever is a leaf."""
    s = start(leaf("a"), nodes=1)
    configure(s, spec(leaf("a", queues=[leaf("b")])))
    assert submit(s, "x", "root.a.b")
    assert running(s) == 1
    s.handle(RemoveApplication("x"), 0)
    configure(s, spec(leaf("a")))
    s.schedule(10_000)
    assert submit(s, "y", "root.a")
    assert running(s) == 1


def test_a_leaf_with_applications_cannot_become_a_parent() -> None:
    """The file is refused as a whole, and says what to do."""
    s = start(leaf("a"), leaf("b"))
    submit(s, "x", "root.a")
    before = s.dump()
    (refused,) = configure(s, spec(leaf("a", queues=[leaf("sub")]), leaf("c")))
    assert isinstance(refused, ConfigurationRejected)
    assert "root.a would become a parent" in refused.reason.sentence()
    assert s.dump() == before


def test_a_leaf_in_which_all_has_ended_becomes_a_parent_soon() -> None:
    """Nobody sees what ended there, so it is said how long that keeps its place."""
    s = start(leaf("a"))
    submit(s, "x", "root.a")
    assert running(s) == 1
    s.handle(Release("x", "x0", Cause.FINISHED), 1_000)
    (refused,) = configure(s, spec(leaf("a", queues=[leaf("sub")])))
    assert isinstance(refused, ConfigurationRejected)
    assert refused.reason.sentence().endswith("what ended in it last keeps its place for 30 s; try again then")
    s.schedule(31_000)
    assert isinstance(s.handle(Configure(spec(leaf("a", queues=[leaf("sub")]))), 31_000)[-1], Configured)


def test_a_parent_of_empty_queues_becomes_a_leaf_at_once() -> None:
    """It takes work as soon as the file says so; what placement made below goes with it."""
    made = leaf("a", parent=True, queues=[leaf("b", queues=[leaf("c")])])
    s = start(made)
    assert submit(s, "x", "root.a.own")
    s.handle(RemoveApplication("x"), 0)
    said = configure(s, spec(leaf("a", properties={"wait.max": "10s"})))
    assert changes(said)[-3:] == [("root.a.own", "removed"), ("root.a.b.c", "removed"), ("root.a.b", "removed")]
    assert queue(s, "root.a").properties.wait_max_ms == 10_000
    assert submit(s, "y", "root.a")
    assert running(s) == 1


def test_a_parent_with_children_becomes_a_leaf_when_they_are_gone() -> None:
    """Until then what is in them goes on."""
    s = start(leaf("a", queues=[leaf("b")]))
    submit(s, "x", "root.a.b")
    configure(s, spec(leaf("a", maxapplications=5)))
    assert running(s) == 1
    assert not submit(s, "y", "root.a")
    s.handle(RemoveApplication("x"), 1000)
    s.schedule(10_000)
    assert submit(s, "z", "root.a")
    assert running(s) == 1
    assert queue(s, "root.a").max_applications == 5


def test_rules_are_replaced() -> None:
    """For what comes from now on."""
    s = start(leaf("a"), leaf("b"))
    configure(s, spec(leaf("a"), leaf("b"), rules=[{"name": "fixed", "value": "b"}]))
    submit(s, "x", "root.a")
    assert list(queue(s, "root.b").applications) == ["x"]


@pytest.mark.parametrize(
    ("part", "text"),
    [
        (PartitionSpec(placement_rules=(RuleSpec(name="nonsense"),)), "unknown rule name specified nonsense"),
        (PartitionSpec(root=QueueSpec(name="root", submit_acl="a b c")), "multiple spaces found in ACL: 'a b c'"),
        (PartitionSpec(root=QueueSpec(name="root", queues=(QueueSpec(name="a.b"),))), "invalid queue name"),
        (
            PartitionSpec(root=QueueSpec(name="root", queues=(QueueSpec(name="a"), QueueSpec(name="A")))),
            "duplicate child name found with name 'A'",
        ),
    ],
)
def test_what_cannot_be_built_is_refused(part: PartitionSpec, text: str) -> None:
    """Also in a configuration that no reader of files has checked."""
    s = start(leaf("a"))
    (refused,) = configure(s, ClusterSpec(partitions=(part,)))
    assert isinstance(refused, ConfigurationRejected)
    assert text in refused.reason.sentence()
    assert submit(s, "x", "root.a")


def test_all_that_is_wrong_is_said_at_once() -> None:
    """No partition, or several bad ones."""
    bad = PartitionSpec(name="x", placement_rules=(RuleSpec(name="nonsense"),))
    (refused,) = configure(start(), ClusterSpec(partitions=(bad, replace(bad, name="X"))))
    assert isinstance(refused, ConfigurationRejected)
    assert refused.reason.sentence().count("nonsense") == 2
    assert "duplicate partition name found with name X" in refused.reason.sentence()
    (refused,) = configure(start(), ClusterSpec(partitions=()))
    assert isinstance(refused, ConfigurationRejected)


# -- partitions ---------------------------------------------------------------------------------------------------


def two() -> ClusterSpec:
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=(QueueSpec(name="a"),))
    return ClusterSpec(partitions=(PartitionSpec(root=root), PartitionSpec(name="gpu", root=root)))


def fill(s: Scheduler, now: int) -> None:
    s.handle(AddNode(NodeSpec(id="g", capacity=Resources({"vcore": 2}), partition="gpu")), now)
    s.handle(AddApplication(ApplicationSpec(id="x", queue="root.a", user="u", partition="gpu")), now)
    asks = tuple(AskSpec(application="x", key=f"x{i}", resources=Resources({"vcore": 1})) for i in range(3))
    s.handle(AddAsks(asks, partition="gpu"), now)
    s.schedule(now)
    check_books(s)


def test_a_new_partition_takes_work() -> None:
    """Until then it did not exist."""
    s = start(leaf("a"))
    configure(s, two())
    fill(s, 0)
    assert s.cluster.partitions["gpu"].root.allocated == {"vcore": 2}


def test_the_applications_of_a_removed_partition_fail() -> None:
    """What runs is given back, what waits is refused, and nothing of it is left."""
    s = Scheduler(two())
    fill(s, 0)
    said = configure(s, ClusterSpec(partitions=two().partitions[:1]))
    assert [(d.key, d.node, d.message) for d in said if isinstance(d, Released)] == [
        ("x0", "g", "PartitionRemoved"),
        ("x1", "g", "PartitionRemoved"),
    ]
    assert [d.key for d in said if isinstance(d, AskRejected)] == ["x2"]
    assert [d.state for d in said if isinstance(d, ApplicationChanged)] == ["Failing", "Failed"]
    assert list(s.cluster.partitions) == ["default"]
    assert s.next_wakeup_ms() is None
    again = s.handle(AddApplication(ApplicationSpec(id="x", queue="root.a", partition="gpu")), 0)
    assert isinstance(again[0], ApplicationRejected)


def test_a_completing_application_of_a_removed_partition_completes() -> None:
    """It has nothing left to lose."""
    s = Scheduler(two())
    fill(s, 0)
    from fairlead.core.model.events import Release

    s.handle(Release("x", "", partition="gpu"), 0)
    said = configure(s, ClusterSpec(partitions=two().partitions[:1]))
    assert [d.state for d in said if isinstance(d, ApplicationChanged)] == ["Completed"]


def test_a_partition_that_comes_back_starts_empty() -> None:
    """No timer of the old one reaches it."""
    s = Scheduler(two())
    fill(s, 0)
    configure(s, ClusterSpec(partitions=two().partitions[:1]))
    configure(s, two())
    assert s.cluster.partitions["gpu"].applications == {}
    fill(s, 5)
    assert s.cluster.partitions["gpu"].root.allocated == {"vcore": 2}


def test_what_is_kept_of_it_survives_a_restart() -> None:
    """Draining queues, made ones and the next cleaning are in the state."""
    s = start(leaf("a"), leaf("b"), leaf("p", parent=True))
    submit(s, "x", "root.p.dyn")
    configure(s, spec(leaf("a"), leaf("p", parent=True)))
    s.handle(RemoveApplication("x"), 3_000)
    again = Scheduler.load(s.dump())
    assert again.dump() == s.dump()
    assert (
        changes(again.schedule(10_000))
        == changes(s.schedule(10_000))
        == [
            ("root.p.dyn", "removed"),
            ("root.b", "removed"),
        ]
    )


def test_a_new_configuration_may_make_a_difference_to_what_was_stopped_in_vain() -> None:
    """Bounds and fences may be others: what was remembered against loops does not hold back any more."""
    s = start(leaf("a"))
    memory = s.cluster.partitions["default"].disruption
    capacity, news = memory.capacity, memory.news
    configure(s, spec(leaf("a"), leaf("b")))
    assert (memory.capacity, memory.news) == (capacity + 1, news + 1)


def test_the_root_follows_the_file_too() -> None:
    """It has no limits of its own, but properties, access and a template."""
    s = start(leaf("a"))
    configure(s, spec(leaf("a"), adminacl="ann", properties={"application.sort.priority": "disabled"}))
    root = queue(s, "root")
    assert (root.admin_acl, root.properties.priority_sorting) == ("ann", False)


def test_shares_are_measured_against_the_limits_of_now() -> None:
    """Also those of queues that the file does not name: what is above them has changed."""
    s = start(leaf("a", parent=True, resources={"max": {"vcore": "4m"}}), leaf("b"))
    submit(s, "x", "root.a.made")
    running(s)
    made = queue(s, "root.a.made")
    assert fair_share(made) == 1 / 4
    configure(s, spec(leaf("a", parent=True, resources={"max": {"vcore": "2m"}}), leaf("b")))
    assert fair_share(made) == 1 / 2


def test_a_queue_that_becomes_a_leaf_later_has_the_properties_of_a_leaf() -> None:
    """Those that only a leaf may have counted for nothing until then."""
    s = start(leaf("a", queues=[leaf("b")]))
    submit(s, "x", "root.a.b")
    configure(s, spec(leaf("a", properties={"wait.max": "10s"})))
    assert queue(s, "root.a").properties.wait_max_ms == 0
    s.handle(RemoveApplication("x"), 1000)
    s.schedule(10_000)
    assert queue(s, "root.a").properties.wait_max_ms == 10_000
