"""What is kept for one ask: one claim at a time, known again after a restart, and in nobody's way but others'.

Every test fails when the one thing that it is about is taken out; the test says which.
"""

from __future__ import annotations

import json

import pytest
from invariants.books import check_books

from fairlead.core.books.asks import Ask
from fairlead.core.books.user_limits import Ceiling
from fairlead.core.model.constraints import Constraints, Requirement
from fairlead.core.model.decisions import Allocated, Decision, Evict, LoopBroken, Reserved
from fairlead.core.model.events import AddApplication, AddAsks, AddNode, Cause, Configure, Event, Release
from fairlead.core.model.resources import Limits, Resources
from fairlead.core.model.specs import (
    TAG_REQUIRED_NODE,
    ApplicationSpec,
    AskSpec,
    ClusterSpec,
    LimitSpec,
    NodeSpec,
    PartitionSpec,
    PreemptionSpec,
    QueueSpec,
)
from fairlead.scheduler import Scheduler


class Place:
    """Queues below `root`, and nodes `n0`, `n1`, … of so many cores."""

    def __init__(self, rule: str, queues: tuple[QueueSpec, ...], *nodes: int) -> None:
        root = QueueSpec(name="root", parent=True, submit_acl="*", queues=queues)
        self.s = Scheduler(ClusterSpec(partitions=(PartitionSpec(root=root, preemption=PreemptionSpec(rule=rule)),)))
        self.nodes = 0
        for cores in nodes:
            self.add_node(cores)

    def handle(self, event: Event, now_ms: int = 0) -> None:
        self.s.handle(event, now_ms)

    def add_node(self, cores: int, now_ms: int = 0) -> None:
        self.handle(AddNode(NodeSpec(id=f"n{self.nodes}", capacity=Resources({"vcore": cores}))), now_ms)
        self.nodes += 1

    def submit(self, name: str, cores: int, queue: str, now_ms: int = 0, **more: object) -> None:
        self.handle(AddApplication(ApplicationSpec(id=name, queue=queue)), now_ms)
        spec = AskSpec(application=name, key=name, resources=Resources({"vcore": cores}), **more)  # type: ignore[arg-type]
        self.handle(AddAsks((spec,)), now_ms)

    def end(self, name: str, now_ms: int, cause: Cause = Cause.FINISHED) -> None:
        self.handle(Release(name, name, cause), now_ms)

    def run(self, now_ms: int) -> list[Decision]:
        decided = []
        while more := self.s.schedule(now_ms):
            decided += more
        check_books(self.s)
        return decided

    def ask(self, name: str) -> Ask:
        return self.s.cluster.partitions["default"].applications[name].asks[name]


def started(decided: list[Decision]) -> list[str]:
    return [f"{d.key}@{d.node}" for d in decided if isinstance(d, Allocated)]


def stopped(decided: list[Decision]) -> list[str]:
    return [d.key for d in decided if isinstance(d, Evict)]


def test_for_whom_room_gathers_no_node_is_set_aside_too() -> None:
    """`Seekers`: `second` has its turn when `first` starts, and is old enough for a node of its own in the same run."""
    p = Place("guarantee", (QueueSpec(name="q", properties={"wait.max": "10s"}),), 4, 2, 2)
    p.submit("runs", 4, "root.q")
    p.run(0)
    p.submit("first", 4, "root.q", 1)
    p.submit("second", 4, "root.q", 2)
    p.run(30_000)
    p.end("runs", 30_001)
    decided = p.run(30_001)
    assert started(decided) == ["first@n0"]
    second = p.ask("second")
    assert second.held_on is not None
    assert second.reserved_on is None
    assert [d.key for d in decided if isinstance(d, Reserved)] == ["second"], "once"


def guaranteed(wait_max: str) -> tuple[QueueSpec, ...]:
    properties = {"preemption.delay": "5s"} | ({"wait.max": wait_max} if wait_max else {})
    return (QueueSpec(name="a", guaranteed=Limits({"vcore": 8}), properties=properties), QueueSpec(name="b"))


def test_room_that_gathers_for_an_ask_counts_when_others_are_stopped_for_it() -> None:
    """`guarantee._free_for`, and one claim in `claims.reserve`: 2 of the 4 cores are there, so one work is enough.

    The node that is set aside for it then becomes room that is held, because it has a turn (`turns._gather_room`).
    """
    p = Place("guarantee", guaranteed("1s"), 4)
    p.submit("one", 2, "root.b")
    p.submit("two", 2, "root.b")
    assert len(started(p.run(0))) == 2
    p.submit("big", 4, "root.a", 1)
    p.run(1_001)
    p.end("one", 1_002)
    assert started(p.run(1_002)) == []
    assert p.ask("big").held_on is not None
    assert stopped(p.run(6_000)) == ["two"]
    assert p.ask("big").reserved_on is None
    assert p.ask("big").held_on is not None
    assert [victim.key for victim in p.ask("big").victims] == ["two"]
    p.end("two", 6_001, Cause.PREEMPTED_BY_SCHEDULER)
    assert started(p.run(6_001)) == ["big@n0"]


def test_what_is_promised_to_an_ask_is_not_in_its_own_way() -> None:
    """`turns._room_elsewhere`: an equal ask before it waits for what is promised to it, and both wait as one demand."""
    team = QueueSpec(
        name="a", parent=True, max=Limits({"vcore": 4}), queues=(QueueSpec(name="x", properties={"wait.max": "10s"}),)
    )
    p = Place("guarantee", (team, QueueSpec(name="c")), 3, 2)
    p.submit("own", 2, "root.a.x", node="n0")
    p.submit("other", 1, "root.c", node="n0")
    p.submit("another", 2, "root.c", node="n1")
    p.submit("old", 2, "root.a.x", 1, priority=0)
    p.run(1_000)
    p.submit("again", 2, "root.a.x", 9_000, attempt=2, tags={})
    p.run(10_001)
    assert p.ask("old").held_on is not None
    p.end("another", 10_002)
    assert started(p.run(10_002)) == ["old@n1"]


def test_all_that_require_a_node_have_it_set_aside() -> None:
    """`reserve.watch_ages`: a new node makes the sum large enough; who asks for the same elsewhere is looked at too."""
    p = Place("guarantee", (QueueSpec(name="x"), QueueSpec(name="y")), 2)
    p.submit("runs", 2, "root.x")
    p.run(0)
    for name, queue in (("one", "root.x"), ("two", "root.y")):
        p.submit(name, 2, queue, 1, tags={TAG_REQUIRED_NODE: "n0"})
    assert p.run(1) == [], "all nodes together have no room"
    p.add_node(2, 2)
    assert sorted(d.key for d in p.run(2) if isinstance(d, Reserved)) == ["one", "two"]


def test_who_waited_for_anothers_turn_may_have_others_stopped_when_it_is_over() -> None:
    """`reserving.wake`: that nothing could be stopped for `k1` says nothing about `k2`, for whom nobody has looked."""
    properties = {"wait.max": "1s", "preemption.delay": "1s"}
    queues = (
        QueueSpec(name="a", guaranteed=Limits({"vcore": 2}), properties=properties),
        QueueSpec(name="b"),
        QueueSpec(name="fixed", properties={"preemption.policy": "disabled"}),
    )
    p = Place("guarantee", queues, 1, 1)
    p.submit("f1", 1, "root.fixed")
    p.submit("f2", 1, "root.fixed")
    p.run(0)
    p.handle(AddApplication(ApplicationSpec(id="w", queue="root.a")))
    one = Resources({"vcore": 1})
    p.handle(AddAsks(tuple(AskSpec(application="w", key=f"k{i}", resources=one) for i in (1, 2))))
    assert stopped(p.run(2_000)) == []
    p.add_node(1, 2_500)
    p.submit("late", 1, "root.b", 2_500, node="n2")
    p.end("f1", 3_000)
    decided = p.run(3_000)
    assert started(decided) == ["k1@n0"]
    assert stopped(decided) == ["late"]


def test_a_restart_forgets_not_whose_room_is_held() -> None:
    """`Ask.took_back` is written down: of the work stopped for `high` only the idle one is left, and it is not all."""
    p = Place("priority", (QueueSpec(name="q"),), 4)
    p.submit("idle", 2, "root.q", idle=True)
    p.submit("low", 2, "root.q")
    p.run(0)
    p.submit("high", 4, "root.q", 1, priority=5)
    assert sorted(stopped(p.run(1))) == ["idle", "low"]
    p.end("low", 2, Cause.PREEMPTED_BY_SCHEDULER)
    assert started(p.run(2)) == []
    again = Scheduler.load(json.loads(json.dumps(p.s.dump())))
    p.submit("higher", 4, "root.q", 3, priority=9)
    for event in (
        AddApplication(ApplicationSpec(id="higher", queue="root.q")),
        AddAsks((AskSpec(application="higher", key="higher", resources=Resources({"vcore": 4}), priority=9),)),
    ):
        again.handle(event, 3)
    decided = p.run(3)
    assert [d.key for d in decided if isinstance(d, Reserved)] == ["higher"]
    assert again.schedule(3) == decided


def test_who_has_space_on_the_node_that_it_requires_does_not_clear_it() -> None:
    """`allocate._first_node`: a restart looks again at `daemon`, for which room gathers; `waits` keeps the node."""
    p = Place("guarantee", (QueueSpec(name="q"), QueueSpec(name="d", properties={"wait.max": "1s"})), 4)
    p.submit("runs", 4, "root.q")
    p.run(0)
    p.submit("daemon", 3, "root.d", 1, tags={TAG_REQUIRED_NODE: "n0"})
    p.run(1_500)
    assert p.ask("daemon").held_on is not None
    p.add_node(3, 1_600)
    here = Constraints(node_terms=((Requirement("kubernetes.io/hostname", "In", ("n0",)),),))
    p.submit("waits", 2, "root.q", 1_600, where=here)
    p.run(5_000)
    assert p.ask("waits").reserved_on is not None
    again = Scheduler.load(json.loads(json.dumps(p.s.dump())))
    assert again.schedule(5_000) == []
    p.end("runs", 5_001)
    assert started(p.run(5_001))[0] == "daemon@n0"


def test_room_is_kept_under_the_limits_of_now() -> None:
    """A new queue file changes a limit: the nominated ask counts under the new one, and no longer under the old."""

    def limited(most: int) -> ClusterSpec:
        limit = LimitSpec(users=("ann",), max_resources=Limits({"vcore": most}))
        queues = (QueueSpec(name="a", limits=(limit,)), QueueSpec(name="b"))
        root = QueueSpec(name="root", parent=True, submit_acl="*", queues=queues)
        return ClusterSpec(partitions=(PartitionSpec(root=root, preemption=PreemptionSpec(rule="priority")),))

    s = Scheduler(limited(8))
    s.handle(AddNode(NodeSpec(id="n", capacity=Resources({"vcore": 4}))), 0)
    for name, queue, priority in (("low", "root.b", 0), ("high", "root.a", 9)):
        s.handle(AddApplication(ApplicationSpec(id=name, queue=queue, user="ann")), 0)
        four = AskSpec(application=name, key=name, resources=Resources({"vcore": 4}), priority=priority)
        s.handle(AddAsks((four,)), 0)
        s.schedule(0)
    nominations = s.cluster.partitions["default"].nominations
    [ask] = list(nominations)
    [old] = [place for place in nominations.of[ask].places if isinstance(place, Ceiling)]
    s.handle(Configure(limited(6)), 2)
    [new] = [place for place in nominations.of[ask].places if isinstance(place, Ceiling)]
    assert (new.max, nominations.kept[new], new.promised) == ({"vcore": 6}, {"vcore": 4}, {ask.app: 1})
    assert (old in nominations.kept, old.promised) == (False, {})
    check_books(s)


@pytest.mark.parametrize("wait_max", ["1s", ""], ids=["room gathers", "a node is set aside"])
def test_by_guarantee_too_it_moves_on_twice_and_then_after_an_hour(wait_max: str) -> None:
    """Work that was told to stop does not leave: other work is stopped, which is counted, reported and then barred."""
    p = Place("guarantee", guaranteed(wait_max), 4, 4, 4, 4)
    for name, cores, node in (("one", 2, 0), ("two", 2, 0), ("three", 4, 1), ("four", 4, 2), ("five", 4, 3)):
        p.submit(name, cores, "root.b", node=f"n{node}")
    p.submit("big", 4, "root.a", 1)
    p.run(1_001)
    p.end("one", 1_002)
    said = [(1_002, each) for each in p.run(1_002)]
    while (due_ms := p.s.next_wakeup_ms()) is not None and due_ms < 3 * 3_600_000:
        said += [(due_ms, each) for each in p.run(due_ms)]
    times = {each.key: at_ms for at_ms, each in said if isinstance(each, Evict)}
    assert list(times) == ["two", "three", "four", "five"]
    assert next((at_ms, each.times) for at_ms, each in said if isinstance(each, LoopBroken)) == (times["four"], 2)
    assert times["five"] == times["four"] + 3_600_000
