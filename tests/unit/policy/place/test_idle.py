"""Idle work: what it may use, when it starts, and how others take that back."""

from __future__ import annotations

from invariants.books import check_books

from fairlead.core.model.decisions import Allocated, AskRejected, Decision, Evict, Reserved, Retried
from fairlead.core.model.events import (
    AddApplication,
    AddAsks,
    AddNode,
    Cause,
    Configure,
    MoveApplication,
    Release,
    ReserveAsk,
)
from fairlead.core.model.reasons import HeldForReservation, QueueFull
from fairlead.core.model.resources import Limits, Resources
from fairlead.core.model.specs import (
    ApplicationSpec,
    AskSpec,
    ClusterSpec,
    LimitSpec,
    NodeSpec,
    PartitionSpec,
    PreemptionSpec,
    QueueSpec,
    RetrySpec,
)
from fairlead.policy.preemption.cheapest_set import cheapest
from fairlead.scheduler import Scheduler

GROUP = {"resource.group": "true"}


def cores(count: int) -> Resources:
    return Resources({"vcore": count})


def tree(group: int | None = 8, a: int = 4, b: int = 4, marked: bool = True, limit: int = 0) -> ClusterSpec:
    """`root.g` with the leaves `a` and `b`, and another group `root.h` with the leaf `c`."""
    limits = (LimitSpec(users=("*",), max_resources=Limits({"vcore": limit})),) if limit else ()
    inner = (
        QueueSpec(name="a", max=Limits({"vcore": a}), limits=limits),
        QueueSpec(name="b", max=Limits({"vcore": b})),
    )
    most = Limits({"vcore": group}) if group else None
    g = QueueSpec(name="g", parent=True, queues=inner, max=most, properties=GROUP if marked else {})
    h = QueueSpec(name="h", parent=True, queues=(QueueSpec(name="c"),), properties=GROUP if marked else {})
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=(g, h))
    preemption = PreemptionSpec(rule="priority", enabled=False)
    return ClusterSpec(partitions=(PartitionSpec(root=root, preemption=preemption),))


class Place:
    def __init__(self, *nodes: int, spec: ClusterSpec | None = None) -> None:
        self.s = Scheduler(spec or tree())
        self.now = 0
        for number, size in enumerate(nodes):
            self.s.handle(AddNode(NodeSpec(id=f"n{number}", capacity=cores(size))), 0)

    def submit(
        self, name: str, count: int, queue: str = "root.g.a", priority: int = 0, **more: object
    ) -> list[Decision]:
        self.s.handle(AddApplication(ApplicationSpec(id=name, queue=queue)), self.now)
        ask = AskSpec(application=name, key=name, resources=cores(count), priority=priority, **more)  # type: ignore[arg-type]
        return self.s.handle(AddAsks((ask,)), self.now)

    def idle(self, name: str, count: int, queue: str = "root.g.a", priority: int = 0) -> None:
        self.submit(name, count, queue, priority, idle=True)

    def end(self, name: str, cause: Cause = Cause.FINISHED) -> None:
        self.s.handle(Release(name, name, cause), self.now)

    def run(self) -> tuple[list[str], list[str]]:
        """What starts, and what is told to stop."""
        decisions: list[Decision] = []
        while more := self.s.schedule(self.now):
            decisions += more
        check_books(self.s)
        self.now += 1000
        starts = [d.application for d in decisions if isinstance(d, Allocated)]
        return starts, [d.application for d in decisions if isinstance(d, Evict)]

    def leave(self, *names: str) -> tuple[list[str], list[str]]:
        for name in names:
            self.end(name, Cause.PREEMPTED_BY_SCHEDULER)
        return self.run()


def test_it_goes_beyond_the_maximum_of_its_own_queue() -> None:
    """Up to the maximum of the resource group; in the books it counts there and above."""
    p = Place(20)
    p.idle("i1", 6)
    p.idle("i2", 2)
    p.idle("i3", 1)
    assert p.run() == (["i1", "i2"], [])
    root = p.s.cluster.partitions["default"].root
    assert root.children["g"].allocated == {"vcore": 8}
    assert root.children["g"].children["a"].allocated == {}
    assert p.s.cluster.partitions["default"].idle.use_by_queue() == {"root.g.a": {"vcore": 8}}
    assert isinstance(p.s.why("i3", "i3"), QueueFull)


def test_it_borrows_from_the_whole_partition_where_no_group_is_marked() -> None:
    """Then the root is its group, and every maximum below counts for others alone."""
    p = Place(20, spec=tree(marked=False))
    p.idle("i1", 20)
    assert p.run() == (["i1"], [])


def test_it_starts_after_everybody_else() -> None:
    """Whatever its priority."""
    p = Place(4)
    p.idle("i", 3, priority=9)
    p.submit("w", 2)
    assert p.run() == (["w"], [])


def test_it_takes_nothing_from_the_quota_of_its_queue() -> None:
    """Its own queue has all of its maximum left for others."""
    p = Place(8)
    p.idle("i", 4)
    p.run()
    p.submit("w", 4)
    assert p.run() == (["w"], [])


def test_limits_of_users_count_it() -> None:
    """What a user may use is what he may use, idle or not."""
    p = Place(8, spec=tree(limit=3))
    p.idle("i", 2)
    p.idle("j", 2)
    assert p.run() == (["i"], [])
    reason = p.s.why("j", "j")
    assert reason is not None
    assert reason.code == "limit-reached"


def test_others_take_it_back() -> None:
    """The space is held for the one that waits, over its victims' grace, and nothing of its rank gets it."""
    p = Place(4)
    p.idle("i", 4, queue="root.g.b")
    p.run()
    p.submit("w", 3)
    decisions = p.s.schedule(p.now)
    assert [(d.application, d.rule, d.on_behalf_of) for d in decisions if isinstance(d, Evict)] == [
        ("i", "reclaim", "w")
    ]
    assert any(isinstance(d, Reserved) and d.application == "w" for d in decisions)
    p.submit("equal", 3, queue="root.h.c")
    assert p.run() == ([], [])
    assert p.leave("i") == (["w"], [])


def test_what_is_stronger_takes_the_room_that_is_taken_back() -> None:
    """Where rank decides: before the one for which it was taken back has started, and nothing is stopped for that."""
    p = Place(4)
    p.idle("i", 4, queue="root.g.b")
    p.run()
    p.submit("w", 3)
    assert p.run() == ([], ["i"])
    p.submit("high", 3, queue="root.h.c", priority=99)
    assert p.run() == ([], [])
    assert p.leave("i") == (["high"], [])


def test_stopped_work_goes_back_to_its_queue_as_often_as_that_happens() -> None:
    """Without any retry: as a further attempt that enters at once, with the priority it has, and no further ahead."""
    p = Place(4)
    p.idle("i", 4, priority=3)
    assert p.run() == (["i"], [])
    for number in (1, 2, 3):
        p.submit(f"w{number}", 2, "root.g.b")
        key = "i" if number == 1 else f"i#{number}"
        assert p.run() == ([], ["i"])
        decided = p.s.handle(Release("i", key, Cause.PREEMPTED_BY_SCHEDULER), p.now)
        assert [(d.new_key, d.due_ms) for d in decided if isinstance(d, Retried)] == [(f"i#{number + 1}", p.now)]
        assert p.run() == ([f"w{number}"], [])
        back = p.s.cluster.partitions["default"].applications["i"].asks[f"i#{number + 1}"]
        assert (back.pending, back.priority, back.spec.retried) == (True, 3, False)
        p.end(f"w{number}")
        assert p.run() == (["i"], [])


def test_what_was_ended_otherwise_does_not_come_back() -> None:
    """By its owner, even after it was told to stop; by itself; or with its node."""
    for cause in (Cause.STOPPED_BY_RM, Cause.FINISHED, Cause.TIMEOUT, Cause.INTERRUPTED):
        p = Place(4)
        p.idle("i", 4)
        p.run()
        p.submit("w", 2, "root.g.b")
        assert p.run() == ([], ["i"])
        decided = p.s.handle(Release("i", "i", cause, exit_code=1), p.now)
        assert not [d for d in decided if isinstance(d, Retried)]
        assert p.run() == (["w"], [])
        assert p.s.why("i", "i#2") is None


def test_stopped_work_with_retry_follows_its_retry() -> None:
    """Its back-off, and its limit."""
    p = Place(4)
    p.submit("i", 4, idle=True, retry=RetrySpec(limit=1, backoff_ms=60_000))
    p.run()
    p.submit("w", 2, "root.g.b")
    p.run()
    p.end("i", Cause.PREEMPTED_BY_SCHEDULER)
    p.end("w")
    assert p.run() == ([], [])
    p.now += 60_000
    assert p.run() == (["i"], [])
    p.submit("v", 2, "root.g.b")
    p.run()
    decided = p.s.handle(Release("i", "i#2", Cause.PREEMPTED_BY_SCHEDULER), p.now)
    assert not [d for d in decided if isinstance(d, Retried)]


def test_nobody_takes_back_more_than_its_own_quota_allows() -> None:
    """Who is over his own queue's maximum stops nobody; nor does other idle work, nor work of another group."""
    p = Place(8)
    p.idle("i", 8, queue="root.g.b")
    p.run()
    p.submit("over", 5)
    p.idle("j", 1)
    p.submit("outside", 1, queue="root.h.c")
    assert p.run() == ([], [])


def test_a_full_group_gives_back_on_any_node() -> None:
    """Where the maximum of the group is in the way and not the node, idle work anywhere in it makes room."""
    p = Place(4, 8)
    p.idle("i", 4, queue="root.g.b")
    p.idle("j", 4, queue="root.g.b")
    p.run()
    p.submit("w", 3)
    assert p.run() == ([], ["j"])
    assert p.leave("j") == (["w"], [])


def test_victims_are_few_then_low_then_young() -> None:
    """1. the fewest, 2. of the lowest priority, 3. those that started last."""
    cases = [
        ([("a", 1, 0), ("b", 1, 0), ("c", 2, 5)], 2, ["c"]),
        ([("a", 2, 1), ("b", 2, 0), ("c", 2, 2)], 2, ["b"]),
        ([("a", 2, 1), ("b", 2, 1), ("c", 2, 1)], 2, ["c"]),
        ([("a", 1, 3), ("b", 1, 1), ("c", 1, 2)], 2, ["b", "c"]),
        ([("a", 3, 9), ("b", 1, 0), ("c", 1, 0)], 3, ["a"]),
    ]
    for running, wanted, victims in cases:
        p = Place(sum(size for _, size, _ in running))
        for name, size, priority in running:
            p.idle(name, size, "root.g.b", priority)
            p.run()
        p.submit("w", wanted)
        assert sorted(p.run()[1]) == victims


def test_many_small_victims_are_chosen_quickly_and_none_in_vain() -> None:
    """Beyond the number of sets that are compared the largest contributions go first."""
    p = Place(60, spec=tree(group=None, a=60))
    for number in range(40):
        p.idle(f"i{number}", 1 + number % 2, "root.g.b", number % 3)
    p.run()
    p.submit("w", 20)
    victims = p.run()[1]
    assert len(victims) == 10
    asks = [a for a in p.s.cluster.partitions["default"].idle.running if a.key in victims]
    for spared in asks:
        assert sum(dict(a.items)["vcore"] for a in asks if a is not spared) < 20
    assert cheapest([({}, dict.fromkeys(asks))], asks) == ()


def test_a_group_inside_another_belongs_to_it_too() -> None:
    """Who is outside of every marked group takes back what is borrowed in any of them."""
    spec = tree()
    part = spec.partitions[0]
    plain = QueueSpec(name="plain")
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=(*part.root.queues, plain))
    p = Place(4, spec=ClusterSpec(partitions=(PartitionSpec(root=root, preemption=part.preemption),)))
    p.idle("i", 4)
    p.run()
    p.submit("w", 1, queue="root.plain")
    assert p.run() == ([], ["i"])


def test_it_comes_back_to_free_space_only_after_the_others() -> None:
    """While somebody waits who is to have the space, idle work does not take it."""
    p = Place(4)
    p.idle("i", 2, queue="root.g.b")
    p.run()
    p.submit("w", 3)
    assert p.run() == ([], ["i"])
    p.idle("j", 1)
    assert p.run() == ([], [])
    assert p.leave("i") == (["w", "j"], [])


def test_a_reserved_task_goes_before_idle_work_of_the_group() -> None:
    """4 cores are left in the group: the reserved task takes them; the idle one waits until some are given back."""
    p = Place(8)
    p.submit("r", 4, queue="root.g.b")
    p.run()
    p.submit("A", 4, priority=6)
    p.s.handle(ReserveAsk("A", "A", True, "ann"), p.now)
    p.idle("I", 2, queue="root.g.b")
    assert p.run() == (["A"], [])
    p.end("r")
    assert p.run() == (["I"], [])


def test_idle_work_of_the_group_waits_for_a_reserved_task() -> None:
    """Even where it would fit; idle work of other groups does not."""
    p = Place(20)
    p.submit("r", 2)
    p.run()
    p.submit("A", 4, priority=6)
    p.s.handle(ReserveAsk("A", "A", True, "ann"), p.now)
    p.idle("I", 1, queue="root.g.b")
    p.idle("J", 1, queue="root.h.c")
    assert p.run() == (["J"], [])
    assert p.s.why("I", "I") == HeldForReservation("root.g", "A/A", 6, 1000, "ann", "")
    p.end("r")
    assert p.run() == (["A", "I"], [])


def test_an_idle_gang_is_refused() -> None:
    """With what to do instead."""
    p = Place(4)
    [refused] = [d for d in p.submit("g", 1, idle=True, task_group="t", placeholder=True) if isinstance(d, AskRejected)]
    assert "cannot be a gang" in refused.reason.sentence()


def test_the_books_follow_when_the_file_or_the_queue_changes() -> None:
    """What runs counts in the new group; a restart changes nothing."""
    p = Place(8)
    p.idle("i", 4)
    p.run()
    p.idle("k", 2, queue="root.g.b")
    p.s.handle(Configure(tree(marked=False)), p.now)
    check_books(p.s)
    root = p.s.cluster.partitions["default"].root
    assert root.children["g"].allocated["vcore"] == 0
    p.s.handle(Configure(tree()), p.now)
    check_books(p.s)
    p.s.handle(MoveApplication("i", "root.h.c"), p.now)
    check_books(p.s)
    assert root.children["g"].allocated["vcore"] == 0
    again = Scheduler.load(p.s.dump())
    check_books(again)
    assert again.schedule(p.now) == p.s.schedule(p.now)


def test_preemption_by_quota_takes_idle_work_first() -> None:
    """When the maximum of a group is lowered, idle work makes it fit before anybody else has to."""

    def spec(most: int) -> ClusterSpec:
        leaf = QueueSpec(name="a")
        g = QueueSpec(
            name="g",
            parent=True,
            queues=(leaf,),
            max=Limits({"vcore": most}),
            properties={**GROUP, "quota.preemption.delay": "1s"},
        )
        root = QueueSpec(name="root", parent=True, submit_acl="*", queues=(g,))
        return ClusterSpec(partitions=(PartitionSpec(root=root, preemption=PreemptionSpec(quota_enabled=True)),))

    p = Place(8, spec=spec(8))
    p.submit("w", 4)
    p.idle("i", 2)
    p.idle("j", 2)
    p.run()
    p.s.handle(Configure(spec(6)), p.now)
    p.now += 2000
    told = [d.application for d in p.s.handle(ReserveAsk("x", "x", True), p.now) if isinstance(d, Evict)]
    assert told == ["j"]
