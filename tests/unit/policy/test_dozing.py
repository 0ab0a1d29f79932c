"""Who is woken when a node gains room: as few as possible, the same as if everybody were, and nobody forgotten."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from fairlead.core import dozing
from fairlead.core.decisions import Allocated, Decision, Evict
from fairlead.core.demand import Demand
from fairlead.core.dozing import Dozing
from fairlead.core.events import (
    AddApplication,
    AddAsks,
    AddNode,
    Cause,
    DrainNode,
    Event,
    Release,
    SetPriority,
    UndrainNode,
)
from fairlead.core.narrow import Narrow
from fairlead.core.resources import Limits, Resources
from fairlead.core.specs import (
    ApplicationSpec,
    AskSpec,
    ClusterSpec,
    LimitSpec,
    NodeSpec,
    PartitionSpec,
    PreemptionSpec,
    QueueSpec,
)
from fairlead.policy.line import Lines
from fairlead.scheduler import Scheduler

LEAVES = 40


class Calls:
    """How often something was called."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, where: type, name: str) -> None:
        self.count = 0
        original = getattr(where, name)

        def counted(*args: object) -> object:
            self.count += 1
            return original(*args)

        monkeypatch.setattr(where, name, counted)


def submit(s: Scheduler, key: str, queue: str, now_ms: int = 0, cores: int = 1, priority: int = 0, **more: int) -> None:
    """An application of this name with one ask of so many cores in a leaf below the root."""
    s.handle(AddApplication(ApplicationSpec(id=key, queue=f"root.{queue}", user="u")), now_ms)
    resources = Resources({"vcore": cores * 1000, **more})
    s.handle(AddAsks((AskSpec(application=key, key=key, resources=resources, priority=priority),)), now_ms)


def started(s: Scheduler, now_ms: int) -> list[str]:
    """Who starts now."""
    decided = s.schedule(now_ms)
    s.check()
    return [d.key for d in decided if isinstance(d, Allocated)]


@pytest.fixture
def full() -> Scheduler:
    """Two levels of queues, one application of one core waiting in each leaf; the last free core is in two halves."""
    parents = tuple(
        QueueSpec(name=f"p{i}", parent=True, queues=tuple(QueueSpec(name=f"q{j}") for j in range(8))) for i in range(5)
    )
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=(*parents, QueueSpec(name="first")))
    s = Scheduler(ClusterSpec(partitions=(PartitionSpec(root=root),)))
    for node, cores in (("n1", 3000), ("n2", 500), ("n3", 500)):
        s.handle(AddNode(NodeSpec(id=node, capacity=Resources({"vcore": cores}))), 0)
    for i in range(3):
        submit(s, f"r{i}", "first")
    assert started(s, 0) == ["r0", "r1", "r2"]
    for i in range(LEAVES):
        submit(s, f"w{i}", f"p{i % 5}.q{i // 5}")
    assert started(s, 0) == []
    return s


def test_one_place_wakes_one_leaf(full: Scheduler, monkeypatch: pytest.MonkeyPatch) -> None:
    """Room for one is offered to the first; the other 39 leaves sleep on, and are found when their turn comes."""
    woken = Calls(monkeypatch, Demand, "wake")
    full.handle(Release("r0", "r0", Cause.FINISHED), 0)
    assert started(full, 0) == ["w0"]
    assert woken.count <= 2
    for i in (1, 2):
        full.handle(Release(f"r{i}", f"r{i}", Cause.FINISHED), 0)
    assert started(full, 0) == ["w1", "w2"]
    for i in range(LEAVES - 3):
        full.handle(Release(f"w{i}", f"w{i}", Cause.FINISHED), 0)
        assert len(started(full, 0)) == 1


def test_a_leaf_that_dozes_comes_before_one_that_is_awake(full: Scheduler) -> None:
    """Work that comes anew, and is looked at anyway, does not overtake those whose shape may fit again."""
    full.handle(Release("r0", "r0", Cause.FINISHED), 0)
    submit(full, "late", "first")
    assert started(full, 0) == ["w0"]


@pytest.mark.plain
def test_who_is_awake_and_comes_first_wakes_nobody(full: Scheduler, monkeypatch: pytest.MonkeyPatch) -> None:
    """`rouse_next` stops at the first child that is awake: those behind it sleep on."""
    submit(full, "urgent", "first", priority=9)
    looked_through = Calls(monkeypatch, Lines, "send_to_sleep")
    full.handle(Release("r0", "r0", Cause.FINISHED), 0)
    assert started(full, 0) == ["urgent"]
    assert looked_through.count == 1, "no leaf was looked through in vain"


def test_who_has_a_node_of_its_own_is_woken_at_once(full: Scheduler) -> None:
    """`Dozing.stir`: `w0`, for whom n1 is set aside, is tried on the new node before anybody is looked for in turn."""
    full.schedule(3_000)
    (reserved,) = full.cluster.partitions["default"].nodes.nodes["n1"].reservations
    assert reserved.key == "w0"
    submit(full, "urgent", "p4.q7", now_ms=3_000, priority=9)
    assert started(full, 3_000) == []
    full.handle(AddNode(NodeSpec(id="n4", capacity=Resources({"vcore": 1000}))), 3_000)
    assert started(full, 3_000) == ["w0"]


def test_nothing_is_kept_of_who_went_before_its_turn(full: Scheduler) -> None:
    """`leave_shape`: room came for a shape that nobody waits with any more."""
    part = full.cluster.partitions["default"]
    full.handle(Release("r0", "r0", Cause.FINISHED), 0)
    assert part.nodes.dozing.fresh
    for i in range(LEAVES):
        full.handle(Release(f"w{i}", f"w{i}", Cause.FINISHED), 0)
    assert not part.nodes.dozing.fresh


def test_who_was_let_out_and_has_something_new_is_looked_at() -> None:
    """`Queue.touch_app`: that another took the room it was let out for says nothing about the ask that came since."""
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=(QueueSpec(name="a"),))
    s = Scheduler(ClusterSpec(partitions=(PartitionSpec(root=root),)))
    for node, cores in (("n1", 4000), ("n2", 2000), ("n3", 2000)):
        s.handle(AddNode(NodeSpec(id=node, capacity=Resources({"vcore": cores}))), 0)
    submit(s, "runs", "a", cores=4)
    assert started(s, 0) == ["runs"]
    submit(s, "one", "a", cores=3)
    submit(s, "two", "a", cores=4)
    assert started(s, 0) == []
    s.handle(Release("runs", "runs", Cause.FINISHED), 0)
    assert [d.key for d in s.schedule(0, limit=1) if isinstance(d, Allocated)] == ["one"]
    assert s.cluster.partitions["default"].applications["two"].let_out_by
    s.handle(AddAsks((AskSpec(application="two", key="small", resources=Resources({"vcore": 1000})),)), 0)
    assert started(s, 0) == ["small"]


@pytest.mark.plain
def test_only_the_node_that_gained_is_searched(full: Scheduler, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shape that fitted nowhere is looked for on the node that gained, not on all."""
    narrow = Calls(monkeypatch, Narrow, "first")
    full.handle(Release("r0", "r0", Cause.FINISHED), 0)
    assert started(full, 0) == ["w0"]
    assert narrow.count == 1


class Crowd:
    """A random course in a cluster that is always full: many leaves wait with few shapes."""

    def __init__(self, number: int) -> None:
        self.chance = chance = random.Random(number)
        self.now_ms = 0
        self.said = ""
        self.placed = self.made = 0
        parents = tuple(
            QueueSpec(name=f"p{i}", parent=True, queues=tuple(self.queue(f"q{j}") for j in range(4))) for i in range(3)
        )
        root = QueueSpec(name="root", parent=True, submit_acl="*", queues=parents)
        preemption = PreemptionSpec(rule="priority", enabled=chance.random() < 0.3)
        self.s = Scheduler(ClusterSpec(partitions=(PartitionSpec(root=root, preemption=preemption),)))
        for i in range(4):
            self.s.handle(AddNode(NodeSpec(id=f"n{i}", capacity=self.amount(4))), 0)

    def queue(self, name: str) -> QueueSpec:
        """A leaf; some have a maximum, a guarantee, limits, another order."""
        chance = self.chance
        user = LimitSpec(users=("u0",), max_resources=Limits({"vcore": 2000}))
        return QueueSpec(
            name=name,
            max=Limits({"vcore": 3000}) if chance.random() < 0.2 else None,
            guaranteed=Limits({"vcore": 2000}) if chance.random() < 0.3 else None,
            limits=(user,) if chance.random() < 0.2 else (),
            max_applications=2 if chance.random() < 0.1 else 0,
            properties={
                "application.sort.policy": chance.choice(["fair", "fifo"]),
                "priority.offset": chance.choice(["0", "0", "2"]),
            },
        )

    def amount(self, most: int) -> Resources:
        """One of few amounts."""
        return Resources({"vcore": self.chance.randint(1, most) * 1000, "memory": self.chance.randint(1, most)})

    def step(self) -> None:
        """Some work ends, some comes, some changes; then one run."""
        s, chance = self.s, self.chance
        self.now_ms += chance.choice([0, 1, 500, 5_000])
        asks = [ask for app in s.cluster.partitions["default"].applications.values() for ask in app.asks.values()]
        running = [ask for ask in asks if ask.node is not None]
        for ask in chance.sample(running, min(len(running), chance.randint(0, 3))):
            self.handle(Release(ask.app.id, ask.key, Cause.FINISHED))
        there = len(asks)
        while there < 60:
            self.made += 1
            app = f"w{self.made}"
            queue = f"root.p{chance.randrange(3)}.q{chance.randrange(4)}"
            self.handle(AddApplication(ApplicationSpec(id=app, queue=queue, user=f"u{chance.randrange(3)}")))
            new = [self.ask(app, f"{app}.{i}") for i in range(chance.randint(1, 3))]
            self.handle(AddAsks(tuple(new)))
            there += len(new)
        if asks and chance.random() < 0.2:
            ask = chance.choice(asks)
            self.handle(SetPriority(ask.app.id, ask.key, chance.randint(0, 2)))
        if chance.random() < 0.1:
            node = f"n{chance.randrange(4)}"
            change: Event = DrainNode(node) if chance.random() < 0.5 else UndrainNode(node)
            self.handle(change)
        self.note(s.schedule(self.now_ms, chance.choice([None, 1, 2])))
        s.check()

    def ask(self, app: str, key: str) -> AskSpec:
        """One of few shapes."""
        return AskSpec(application=app, key=key, resources=self.amount(2), priority=self.chance.choice([0, 0, 0, 1]))

    def handle(self, event: Event) -> None:
        """One event."""
        self.note(self.s.handle(event, self.now_ms))

    def note(self, decisions: Sequence[Decision]) -> None:
        """Write down what was decided, and let go what was told to stop."""
        for decision in decisions:
            self.said += f"{decision}\n"
            self.placed += isinstance(decision, Allocated)
            if isinstance(decision, Evict):
                self.handle(Release(decision.application, decision.key, decision.cause))


def decided(number: int, steps: int) -> str:
    """What is decided in a course of so many steps."""
    crowd = Crowd(number)
    for _ in range(steps):
        crowd.step()
    assert crowd.placed > steps / 2
    return crowd.said


@pytest.mark.parametrize("number", range(4))
@pytest.mark.plain
def test_who_is_woken_in_turn_is_placed_as_if_all_were_woken(
    number: int, monkeypatch: pytest.MonkeyPatch, fewer_steps: int
) -> None:
    """Waking one leaf after the other, however few wait, changes nothing about who is placed, where, in which order."""
    steps = max(fewer_steps // 50, 30)
    monkeypatch.setattr(dozing, "_are_few", lambda shape, root: True)
    at_once = decided(number, steps)
    monkeypatch.setattr(dozing, "_are_few", lambda shape, root: False)
    in_turn = Calls(monkeypatch, Dozing, "rouse_in")
    assert decided(number, steps) == at_once
    assert in_turn.count > steps / 2


def test_who_waited_for_a_limit_may_preempt_when_another_takes_the_room() -> None:
    """Nothing was due for `b` while its user was at the limit; it must be looked at although `a` took the last place.

    Fails when `Partition.settle_on` marks shapes as unfit where limits hold, and `line._close` touches nobody: each of
    the two is enough.
    """
    limit = LimitSpec(users=("u",), max_resources=Limits({"memory": 2}))
    mine = QueueSpec(
        name="mine", guaranteed=Limits({"vcore": 3000}), limits=(limit,), properties={"preemption.delay": "1s"}
    )
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=(mine, QueueSpec(name="other")))
    rules = PreemptionSpec(rule="guarantee", enabled=True)
    s = Scheduler(ClusterSpec(partitions=(PartitionSpec(root=root, preemption=rules),)))
    s.handle(AddNode(NodeSpec(id="n1", capacity=Resources({"vcore": 3000, "memory": 10}))), 0)
    s.handle(AddNode(NodeSpec(id="n2", capacity=Resources({"vcore": 3000}))), 0)
    submit(s, "old", "mine", memory=2)
    for i in range(2):
        submit(s, f"o{i}", "other", memory=1)
    assert sorted(started(s, 0)) == ["o0", "o1", "old"]
    for key, queue in (("a", "mine"), ("b", "mine"), ("c", "other")):
        submit(s, key, queue, memory=1)
    assert started(s, 0) == []
    assert started(s, 1_500) == []
    s.handle(Release("old", "old", Cause.FINISHED), 1_500)
    decided = s.schedule(1_500)
    s.check()
    assert [d.key for d in decided if isinstance(d, Allocated)] == ["a"]
    assert [d.on_behalf_of for d in decided if isinstance(d, Evict)] == ["b"]
