"""Back-off: when an application rests, for how long, and what does not count."""

from __future__ import annotations

import json
from typing import Any

import pytest
from invariants.books import check_books

from fairlead.core.model.decisions import Allocated, Reserved
from fairlead.core.model.events import AddApplication, AddAsks, AddNode, Cause, DrainNode, Event, Release
from fairlead.core.model.reasons import BackedOff
from fairlead.core.model.resources import Limits, Resources
from fairlead.core.model.specs import (
    TAG_REQUIRED_NODE,
    ApplicationSpec,
    AskSpec,
    ClusterSpec,
    NodeSpec,
    PartitionSpec,
    PreemptionSpec,
    QueueSpec,
)
from fairlead.policy.eligibility.attempt_times import RESERVE_AFTER_MS
from fairlead.scheduler import Scheduler


def cluster(after: int, most: int = 0, guaranteed: int = 0, rule: str = "guarantee") -> Scheduler:
    """Two nodes of 4 cores; applications of the leaf rest for 10 s after so many misses."""
    properties = {"application.unschedasks.backoff": str(after), "application.unschedasks.backoff.delay": "10s"}
    bounds = {"max": Limits({"vcore": most}) if most else None, "guaranteed": Limits({"vcore": guaranteed})}
    leaf = QueueSpec(name="leaf", properties=properties, **bounds)
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=(leaf,))
    s = Scheduler(ClusterSpec(partitions=(PartitionSpec(root=root, preemption=PreemptionSpec(rule=rule)),)))
    for name in ("n0", "n1"):
        s.handle(AddNode(NodeSpec(id=name, capacity=Resources({"vcore": 4}))), 0)
    s.handle(AddApplication(ApplicationSpec(id="a", queue="root.leaf")), 0)
    return s


def ask(s: Scheduler, *cores: int, at_ms: int = 0) -> None:
    """Asks of these sizes, named by their place."""
    known = len(s.cluster.partitions["default"].applications["a"].asks)
    sizes = enumerate(cores, known)
    asks = tuple(AskSpec(application="a", key=f"k{i}", resources=Resources({"vcore": size})) for i, size in sizes)
    s.handle(AddAsks(asks), at_ms)


def placed(s: Scheduler, at_ms: int) -> list[str]:
    """What a scheduling run places."""
    decided = s.schedule(at_ms)
    check_books(s)
    return [d.key for d in decided if isinstance(d, Allocated)]


def test_asks_behind_too_many_misses_are_not_looked_at() -> None:
    """The third would fit."""
    s = cluster(after=2)
    ask(s, 5, 6, 1)
    assert placed(s, 0) == []
    assert s.why("a", "k2") == BackedOff(10_000, 2)


@pytest.mark.parametrize("rule", ["guarantee", "priority", "both"])
def test_what_has_its_turn_later_is_no_miss_before_it(rule: str) -> None:
    """Where guarantees come before rank, the younger one, which is within that of its queue, has its turn first."""
    s = cluster(after=1, guaranteed=1, rule=rule)
    ask(s, 5)
    assert placed(s, 0) == []
    ask(s, 1)
    assert placed(s, 0) == (["k1"] if rule == "both" else [])


def test_one_miss_fewer_lets_them_pass() -> None:
    """The threshold is what counts."""
    s = cluster(after=3)
    ask(s, 5, 6, 1)
    assert placed(s, 0) == ["k2"]


def test_the_rest_ends_by_itself() -> None:
    """With a timer; then the application is looked at again."""
    s = cluster(after=1)
    ask(s, 5, 1)
    placed(s, 0)
    s.handle(AddNode(NodeSpec(id="n2", capacity=Resources({"vcore": 5}))), 1)
    assert placed(s, 9_999) == []
    assert s.next_wakeup_ms() == 10_000
    assert placed(s, 10_000) == ["k0", "k1"]


def test_after_it_an_ask_that_has_waited_long_enough_gets_a_node_set_aside() -> None:
    """In its rest none does, and when the next one will is worked out without it."""
    s = cluster(after=1)
    ask(s, 2, 2)
    assert placed(s, 0) == ["k0", "k1"]
    ask(s, 4, 2, at_ms=1)
    assert placed(s, 1) == placed(s, 5_000) == []
    assert [d.key for d in s.schedule(10_001) if isinstance(d, Reserved)] == ["k2"]


def test_a_new_ask_does_not_end_it() -> None:
    """The whole application rests."""
    s = cluster(after=1)
    ask(s, 5, 1)
    placed(s, 0)
    ask(s, 1, at_ms=5)
    assert placed(s, 5) == []


def test_misses_at_the_end_of_the_line_do_not_count() -> None:
    """There is nobody behind them who would have to wait for the search."""
    s = cluster(after=2)
    ask(s, 5, 6)
    placed(s, 0)
    s.handle(AddNode(NodeSpec(id="n2", capacity=Resources({"vcore": 6}))), 1)
    assert placed(s, 1) == ["k0"]


def test_asks_that_the_queue_holds_back_are_no_misses() -> None:
    """No node was looked at for them."""
    s = cluster(after=1, most=4)
    ask(s, 5, 1)
    assert placed(s, 0) == ["k1"]


# -- who was laid aside while something above the nodes was in the way --------------------------------------------


def two_leaves(first_max: int = 0, second_max: int = 0, width: int = 1) -> Scheduler:
    """Two nodes of 4 cores with 3 in use on each; in both leaves applications rest after one miss, all ask for 3."""

    def leaf(name: str, most: int) -> QueueSpec:
        properties = {"application.unschedasks.backoff": "1", "application.sort.policy": "fifo"}
        return QueueSpec(name=name, properties=properties, max=Limits({"vcore": most}) if most else None)

    running = QueueSpec(name="running")
    queues = (leaf("first", first_max), leaf("second", second_max), running)
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=queues)
    s = Scheduler(ClusterSpec(partitions=(PartitionSpec(root=root),)))
    s.handle(AddApplication(ApplicationSpec(id="busy", queue="root.running")), 0)
    for node in ("n0", "n1"):
        s.handle(AddNode(NodeSpec(id=node, capacity=Resources({"vcore": 4}))), 0)
        for size in (1, 2):
            spec = AskSpec(application="busy", key=f"{node}-{size}", resources=Resources({"vcore": size}), node=node)
            s.handle(AddAsks((spec,)), 0)
    for app in [f"{name}{i}" for name in ("first", "second") for i in range(width)]:
        s.handle(AddApplication(ApplicationSpec(id=app, queue=f"root.{app[:-1]}")), 0)
        both = [AskSpec(application=app, key=f"{app}-{i}", resources=Resources({"vcore": 3})) for i in range(2)]
        s.handle(AddAsks(tuple(both)), 0)
    return s


def state_of(s: Scheduler) -> dict[str, Any]:
    state: dict[str, Any] = s.dump()
    return state


def goes_on(s: Scheduler, *events: Event) -> Scheduler:
    """Let the events happen; one that was read back from the dump finds nothing to do afterwards, nor to note."""
    for event in events:
        s.handle(event, 10)
    s.schedule(10)
    check_books(s)
    state = state_of(s)
    again = Scheduler.load(json.loads(json.dumps(state)))
    assert again.schedule(10) == []
    assert state_of(again) == state
    return s


def resting(s: Scheduler) -> list[str]:
    """The applications that rest."""
    apps = s.cluster.partitions["default"].applications.values()
    return [app.id for app in apps if app.backoff_until_ms is not None]


@pytest.mark.parametrize("width", [1, 6])
def test_what_the_sum_of_all_nodes_held_back_counts_when_it_no_longer_does(width: int) -> None:
    """The cluster has room again, but no single node: the first to look finds that out, and all of them rest."""
    s = two_leaves(width=width)
    s.schedule(1)
    assert resting(s) == []
    goes_on(s, Release("busy", "n0-1", Cause.FINISHED))
    assert resting(s) == [f"{name}{i}" for name in ("first", "second") for i in range(width)]


def test_what_its_queue_held_back_counts_when_it_no_longer_does() -> None:
    """Its queue has room again, and there is no node, as others know already."""
    s = two_leaves(second_max=4, width=2)
    own = AskSpec(application="second0", key="own", resources=Resources({"vcore": 2}), node="n0")
    s.handle(Release("busy", "n0-2", Cause.FINISHED), 1)
    s.handle(AddAsks((own,)), 1)
    s.handle(Release("busy", "n1-1", Cause.FINISHED), 1)
    s.schedule(1)
    assert resting(s) == ["first0", "first1"]
    goes_on(s, Release("second0", "own", Cause.FINISHED), AddAsks((_one_more(),)))
    assert resting(s) == ["first0", "first1", "second0", "second1"]


def _one_more() -> AskSpec:
    """Work that takes what was just freed."""
    return AskSpec(application="busy", key="more", resources=Resources({"vcore": 2}), node="n0")


def test_a_running_one_that_is_reported_may_be_what_stands_behind_the_last_miss() -> None:
    """Nobody stood behind the misses before."""
    s = cluster(after=1)
    ask(s, 5)
    s.schedule(0)
    s.handle(AddNode(NodeSpec(id="n2", capacity=Resources({"vcore": 4}))), 0)
    goes_on(s)
    assert resting(s) == []
    goes_on(s, AddAsks((AskSpec(application="a", key="run", resources=Resources({"vcore": 1}), node="n2"),)))
    assert resting(s) == ["a"]


def test_a_node_that_was_left_to_one_that_rests_in_that_call_is_used() -> None:
    """`k0` leaves the node that is set aside for it to `daemon`, whose application then rests for what misses."""
    s = cluster(after=1)
    s.handle(AddNode(NodeSpec(id="spare", capacity=Resources({"vcore": 100}))), 0)
    s.handle(DrainNode("spare"), 0)
    ask(s, 1)
    s.handle(AddApplication(ApplicationSpec(id="runs", queue="root.leaf")), 0)
    for key, size, node in (("r0", 3, "n0"), ("r1", 4, "n1")):
        tags = {TAG_REQUIRED_NODE: node}
        s.handle(AddAsks((AskSpec(application="runs", key=key, resources=Resources({"vcore": size}), tags=tags),)), 0)
    assert sorted(placed(s, 0)) == ["k0", "r0", "r1"]
    ask(s, 3)
    s.schedule(0)
    decided = s.schedule(RESERVE_AFTER_MS)
    assert [d.key for d in decided if isinstance(d, Reserved)] == ["k1"]
    s.handle(AddApplication(ApplicationSpec(id="b", queue="root.leaf")), RESERVE_AFTER_MS)
    misses = AskSpec(application="b", key="misses", resources=Resources({"vcore": 5}), priority=1)
    size, tags = Resources({"vcore": 2}), {TAG_REQUIRED_NODE: "n0"}
    s.handle(AddAsks((misses, AskSpec(application="b", key="daemon", resources=size, tags=tags))), RESERVE_AFTER_MS)
    s.handle(Release("runs", "r0"), RESERVE_AFTER_MS)
    assert placed(s, RESERVE_AFTER_MS) == ["k1"]
    assert isinstance(s.why("b", "daemon"), BackedOff)
