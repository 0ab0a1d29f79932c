"""Gangs that each hold a part of what the others lack: which of them gives way, and that all come through."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from invariants.books import check_books
from portions import where_compiled

from fairlead.core.acts.allocations import evict
from fairlead.core.acts.gangs import give_way
from fairlead.core.model.constraints import Constraints
from fairlead.core.model.decisions import Allocated, Decision, Evict, Released, Retried
from fairlead.core.model.events import (
    AddApplication,
    AddAsks,
    AddNode,
    Cause,
    DrainNode,
    Event,
    Release,
    RemoveApplication,
    RemoveNode,
    ReserveAsk,
    UndrainNode,
    UpdateNode,
)
from fairlead.core.model.reasons import ClusterFull, GangsHoldEachOther
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


def cores(count: int) -> Resources:
    return Resources({"vcore": count})


class Gangs:
    """Leaves `root.q0`, `root.q1`, … and gangs in them, whose members run for a while once all placeholders stand."""

    def __init__(self, *nodes: int, queues: int = 3, confirms: bool = True, **leaf: Any) -> None:
        leaves = tuple(QueueSpec(name=f"q{i}", **leaf) for i in range(queues))
        root = QueueSpec(name="root", parent=True, submit_acl="*", queues=leaves)
        self.s = Scheduler(ClusterSpec(partitions=(PartitionSpec(root=root),)))
        self.now = 0
        self.confirms = confirms
        self.whole: list[str] = []
        self.evictions: list[tuple[str, str, str]] = []
        self.retried: dict[str, str] = {}
        self._size: dict[str, int] = {}
        self.stands: dict[str, set[str]] = {}
        for i, count in enumerate(nodes):
            self.do(AddNode(NodeSpec(id=f"n{i}", capacity=cores(count))))

    def do(self, event: Event) -> list[Decision]:
        self.now += 1
        decided = self.s.handle(event, self.now)
        check_books(self.s)
        self._take(decided)
        return decided

    def gang(
        self, name: str, members: int, queue: int, cores_each: int = 1, timeout_ms: int = 0, priority: int = 0
    ) -> None:
        """A gang comes, with all its placeholders."""
        self.application(name, members, queue, cores_each, timeout_ms)
        for i in range(members):
            self.placeholder(name, f"{name}-{i}", cores_each, priority)

    def application(self, name: str, members: int, queue: int, cores_each: int = 1, timeout_ms: int = 0) -> None:
        self._size[name], self.stands[name] = members, set()
        total = cores(members * cores_each)
        spec = ApplicationSpec(
            id=name, queue=f"root.q{queue}", placeholder_ask=total, placeholder_timeout_ms=timeout_ms or 10**9
        )
        self.do(AddApplication(spec))

    def in_turns(self, *sizes: int, names: tuple[str, ...] = ("old", "young"), timeout_ms: int = 0) -> None:
        """Gangs of so many come, one in each queue. Their placeholders come in turns, as pods may: two of each have a
        node before the others are there.
        """
        for queue, (name, size) in enumerate(zip(names, sizes, strict=True)):
            self.application(name, size, queue, timeout_ms=timeout_ms if not queue else 0)
        for i in range(max(sizes)):
            for name, size in zip(names, sizes, strict=True):
                if i < size:
                    self.placeholder(name, f"{name}-{i}")
                    self.run(int(i < 2))

    def placeholder(self, name: str, key: str, cores_each: int = 1, priority: int = 0, **more: Any) -> None:
        size = cores(cores_each)
        ask = AskSpec(application=name, key=key, resources=size, priority=priority, placeholder=True, task_group="t")
        self.do(AddAsks((replace(ask, **more),)))

    def run(self, limit: int | None = None) -> None:
        """Schedule and confirm until nothing happens; a restart in between changes nothing."""
        while True:
            again = Scheduler.load(json.loads(json.dumps(self.s.dump())))
            decided = self.s.schedule(self.now, limit)
            assert again.schedule(self.now, limit) == decided
            assert again.dump() == self.s.dump()
            check_books(self.s)
            self._take(decided)
            evicted = [d for d in decided if isinstance(d, Evict)]
            if not decided or limit is not None or not self.confirms:
                return
            for d in evicted:
                self.do(Release(d.application, d.key, d.cause))

    def _take(self, decided: list[Decision]) -> None:
        for d in decided:
            if isinstance(d, Allocated) and d.application in self.stands:
                self.stands[d.application].add(d.key)
                if len(self.stands[d.application]) == self._size[d.application]:
                    self.whole.append(d.application)
            elif isinstance(d, Evict):
                self.evictions.append((d.key, d.rule, d.on_behalf_of))
                self.stands[d.application].discard(d.key)
            elif isinstance(d, Retried):
                self.retried[d.key] = d.new_key

    def end(self, name: str) -> None:
        self.do(RemoveApplication(name))

    def holds(self, name: str) -> int:
        return int(self.apps[name].placeholders.get("vcore", 0)) if name in self.apps else 0

    @property
    def apps(self) -> Any:
        return self.s.cluster.partitions["default"].applications


def stuck(timeout_ms: int = 0, **more: Any) -> Gangs:
    """Two gangs of three cores on four, each of which holds two."""
    g = Gangs(4, **more)
    g.in_turns(3, 3, timeout_ms=timeout_ms)
    return g


def test_a_gang_of_higher_priority_does_not_give_way_to_an_older_one() -> None:
    """It would be stopped for it as soon as it ran."""
    g = Gangs(4)
    g.gang("low", 3, 0)
    g.run(2)
    g.gang("high", 3, 1, priority=5)
    g.run()
    assert g.whole == ["high"]
    assert {key for key, _, _ in g.evictions} == {"low-0", "low-1"}


def test_the_younger_gives_its_placeholders_back_and_the_older_gets_through() -> None:
    """Two gangs of three on four cores, in two queues, each of which has got two."""
    g = stuck()
    g.run()
    assert g.whole == ["old"]
    assert (g.holds("old"), g.holds("young")) == (3, 1)  # What is left over is anybody's again.
    assert g.evictions == [("young-0", "gang-deadlock", "old/old-2"), ("young-1", "gang-deadlock", "old/old-2")]
    assert g.retried == {"young-0": "young-0#2", "young-1": "young-1#2"}
    assert str(g.apps["old"].state) == "Running"
    g.end("old")
    g.run()
    assert g.whole == ["old", "young"]


def test_nothing_gives_way_to_a_gang_that_waits_for_the_turn_of_another() -> None:
    """It could not use the room until that turn is over."""
    g = stuck()
    g.do(AddApplication(ApplicationSpec(id="large", queue="root.q0")))
    g.do(AddAsks((AskSpec(application="large", key="large", resources=cores(16), priority=5),)))
    g.do(ReserveAsk("large", "large", True))
    g.run()
    assert (g.evictions, g.whole) == ([], [])
    g.end("large")
    g.run()
    assert g.whole == ["old"]


def test_both_say_whom_they_wait_for_while_placeholders_are_given_back() -> None:
    """With what each holds and still needs; then only the one that gave way does."""
    g = stuck(confirms=False)
    g.run()
    books = ({"vcore": 2}, {"vcore": 1})
    assert g.s.why("old", "old-2") == GangsHoldEachOther("young", *books, *books, False)
    why = g.s.why("young", "young-2")
    assert why == GangsHoldEachOther("old", *books, *books, True)
    assert why.sentence() == (
        "its gang holds cpu 0.002 and still needs cpu 0.001, gang old holds cpu 0.002 and still needs cpu 0.001; "
        "its placeholders are given back until gang old is whole or gone"
    )
    g.do(Release("young", "young-0", Cause.PREEMPTED_BY_SCHEDULER))
    g.do(Release("young", "young-1", Cause.PREEMPTED_BY_SCHEDULER))
    assert g.s.why("young", "young-1#2") == GangsHoldEachOther("old", {}, {"vcore": 3}, *books, True)
    assert not isinstance(g.s.why("old", "old-2"), GangsHoldEachOther)
    g.run()
    assert isinstance(g.s.why("young", "young-1#2"), ClusterFull)  # The older is whole: it waits for room like others.


def test_nothing_is_waited_for_that_could_end_and_let_one_through() -> None:
    """The fifth core is busy, nobody knows how long: the older is whole at once by what the younger gives back."""
    g = Gangs(5)
    g.do(AddApplication(ApplicationSpec(id="work", queue="root.q2")))
    g.do(AddAsks((AskSpec(application="work", key="w", resources=cores(1), node="n0"),)))
    g.in_turns(3, 3)
    g.run()
    assert (g.whole, g.holds("old"), g.holds("young")) == (["old"], 3, 1)
    assert [key for key, _, _ in g.evictions] == ["young-0", "young-1"]
    g.do(Release("work", "w", Cause.FINISHED))
    g.run()
    assert (g.whole, g.holds("young")) == (["old"], 2)


def test_what_lacks_more_than_the_younger_hold_takes_nothing_from_them() -> None:
    """With real work on four of nine cores the older would not be whole by that: both keep what they hold."""
    g = Gangs(9)
    g.do(AddApplication(ApplicationSpec(id="work", queue="root.q2")))
    g.do(AddAsks((AskSpec(application="work", key="w", resources=cores(4), node="n0"),)))
    g.in_turns(6, 6)
    g.run()
    assert (g.whole, g.evictions) == ([], [])
    assert g.holds("old") + g.holds("young") == 5


def test_real_work_that_could_not_let_anybody_through_does_not_hold_it_up() -> None:
    """One core is busy, and even with it nobody would be whole."""
    g = Gangs(5)
    g.do(AddApplication(ApplicationSpec(id="work", queue="root.q2")))
    g.do(AddAsks((AskSpec(application="work", key="w", resources=cores(1), node="n0"),)))
    g.in_turns(4, 4)
    g.run()
    assert (g.whole, g.holds("young")) == (["old"], 0)


def test_a_circle_of_three() -> None:
    """Each holds two of three cores on six; as few give way as it takes, the youngest first, and all come through."""
    g = Gangs(6)
    g.in_turns(3, 3, 3, names=("a", "b", "c"))
    g.run()
    assert g.whole == ["a", "b"]
    assert {key[0] for key, _, _ in g.evictions} == {"c"}
    assert g.holds("c") == 0
    g.end("a")
    g.run()
    assert g.whole == ["a", "b", "c"]


def test_gangs_that_are_kept_small_by_a_limit_hold_each_other_too() -> None:
    """There is room on the nodes; what they lack is room under a limit of their common user."""
    limit = LimitSpec(users=("*",), max_resources=Limits({"vcore": 4}))
    root = QueueSpec(
        name="root", parent=True, submit_acl="*", queues=(QueueSpec(name="q0"), QueueSpec(name="q1")), limits=(limit,)
    )
    g = Gangs()
    g.s = Scheduler(ClusterSpec(partitions=(PartitionSpec(root=root),)))
    g.do(AddNode(NodeSpec(id="n", capacity=cores(100))))
    g.in_turns(3, 3)
    g.run()
    assert (g.whole, g.holds("young")) == (["old"], 1)


def given_back(**more: Any) -> Gangs:
    """The younger has given back what it held, and nothing was scheduled since."""
    g = stuck(confirms=False, **more)
    g.run()
    for key in ("young-0", "young-1"):
        g.do(Release("young", key, Cause.PREEMPTED_BY_SCHEDULER))
    g.confirms = True
    assert g.apps["young"].gives_way_to is g.apps["old"]
    return g


def test_a_gang_that_gave_way_holds_no_place_under_maxapplications() -> None:
    """It queues for one again, and counts anew when it gets placeholders."""
    g = given_back(max_applications=1)
    partition = g.s.cluster.partitions["default"]
    assert list(partition.root.allocating_accepted) == ["old"]


def test_it_waits_until_the_older_is_gone() -> None:
    """Taken out before it was whole."""
    g = given_back()
    g.end("old")
    assert g.apps["young"].gives_way_to is None
    g.run()
    assert g.whole == ["young"]


def test_it_waits_until_the_older_is_no_gang_any_more() -> None:
    """The placeholder that it lacked was withdrawn: it waits for no room, so that nobody waits for it."""
    g = given_back()
    g.do(Release("old", "old-2"))
    g.run()
    assert g.apps["young"].gives_way_to is None
    assert (g.holds("old"), g.holds("young")) == (2, 2)


def test_it_has_its_turn_before_weaker_work_when_the_older_has_no_placeholder_left() -> None:
    """All of them are withdrawn, and its real work is larger than any node: what waits behind the younger, and would
    take all the room, starts after that.
    """
    g = given_back()
    g.do(AddAsks((AskSpec(application="old", key="real", resources=cores(9), task_group="t"),)))
    g.do(AddApplication(ApplicationSpec(id="weaker", queue="root.q2")))
    g.do(AddAsks((AskSpec(application="weaker", key="weaker", resources=cores(4), priority=-1),)))
    for key in ("old-2", "old-1", "old-0"):
        g.do(Release("old", key))
    g.run()
    assert g.whole == ["young"]


def test_it_waits_while_the_older_gets_one_in_the_place_of_what_was_stopped() -> None:
    """A member of it was told to go for other work as the last one got its node: it lacks one again at once."""
    g = given_back()
    partition = g.s.cluster.partitions["default"]
    old = g.apps["old"].asks["old-0"]
    evict(partition, old, Cause.PREEMPTED_BY_SCHEDULER, "other/work", "priority")
    partition.out.clear()
    g.stands["old"].discard("old-0")
    g.confirms = False
    g.run()  # The last one starts.
    g.do(Release("old", "old-0", Cause.PREEMPTED_BY_SCHEDULER))
    assert g.apps["young"].gives_way_to is g.apps["old"]
    g.placeholder("old", "old-0-again")
    g.confirms = True
    g.run()
    assert g.whole == ["old"]
    assert g.apps["young"].gives_way_to is None


def test_it_waits_no_longer_for_one_that_can_never_be_whole() -> None:
    """The node shrank: with one that could hold the younger beside it, that one need not wait."""
    g = given_back()
    g.do(UpdateNode("n0", cores(2)))
    g.run()
    assert g.apps["young"].gives_way_to is None


def test_it_waits_until_the_time_of_the_older_is_over() -> None:
    """Its placeholders came too late: it starts over, and the younger is whole."""
    g = given_back(timeout_ms=1_000)
    g.now += 2_000
    g.run()
    assert g.apps["young"].gives_way_to is None
    assert g.whole == ["young"]


def test_one_that_no_cluster_could_hold_gives_way_though_it_is_older() -> None:
    """It lost a node and would wait for ever: the younger one runs."""
    g = Gangs(3, 1)
    g.in_turns(4, 3)
    assert (g.holds("old"), g.holds("young")) == (2, 2)
    for lost in [d for d in g.do(RemoveNode("n1")) if isinstance(d, Released)]:
        g.placeholder(lost.application, f"{lost.key}-again")
        g.stands[lost.application].discard(lost.key)
    g.run()
    assert g.whole == ["young"]
    assert g.apps["old"].gives_way_to is None


def test_one_whose_members_keep_apart_gets_nothing_from_others_where_two_would_be_on_one_node() -> None:
    """Three need a port of their own, on two nodes: such a gang is never whole, and gives way itself."""
    g, port = Gangs(1, 4), Constraints(ports=("TCP/0.0.0.0/80",))
    g.application("old", 3, queue=0)
    g.placeholder("old", "old-0", where=port)
    g.run()
    g.gang("young", 5, queue=1)
    g.run(4)
    for key in ("old-1", "old-2"):
        g.placeholder("old", key, where=port)
    g.run()
    assert (g.whole, [key for key, _, _ in g.evictions]) == (["young"], ["old-0"])


def test_one_that_lacks_nothing_any_more_is_not_waited_for_though_it_is_not_whole() -> None:
    """It lost a placeholder for good, and the others have a node: that is for its time out to end."""
    g = Gangs(3, 1)
    g.in_turns(4, 3)
    g.do(RemoveNode("n1"))
    g.run()
    assert [name for name in ("old", "young") if g.apps[name].gives_way_to is not None] == []


def test_those_that_wait_for_one_that_gives_way_itself_wait_for_the_same_as_it() -> None:
    """Nobody waits in a row: when the oldest is whole, all may go on."""
    g = given_back()
    old, young = g.apps["old"], g.apps["young"]
    g.gang("late", 1, 2)
    give_way(old, g.apps["late"])
    assert young.gives_way_to is old.gives_way_to is g.apps["late"]
    assert (g.apps["late"].awaited_by, old.awaited_by) == ([young, old], [])


def test_one_that_waits_for_another_and_is_taken_out_is_waiting_for_nothing() -> None:
    g = given_back()
    g.end("young")
    assert g.apps["old"].awaited_by == []
    g.run()
    assert g.whole == ["old"]


def test_a_restart_while_one_gives_way_changes_nothing() -> None:
    """Who waits for whom is part of the state."""
    g = stuck()
    g.confirms = False
    g.run()
    again = Scheduler.load(json.loads(json.dumps(g.s.dump())))
    assert again.dump() == g.s.dump()
    check_books(again)
    waits = again.cluster.partitions["default"].applications["young"].gives_way_to
    assert waits is not None
    assert waits.id == "old"


@st.composite
def worlds(draw: st.DrawFn) -> tuple[list[int], list[tuple[int, int, int]]]:
    """Small nodes, and gangs (members, cores each, queue) each of which the empty cluster could hold."""
    nodes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    found = []
    for _ in range(draw(st.integers(2, 6))):
        each = draw(st.integers(1, max(nodes)))
        most = sum(size // each for size in nodes)
        found.append((draw(st.integers(1, most)), each, draw(st.integers(0, 2))))
    return nodes, found


@where_compiled
@given(world=worlds(), order=st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=60)
def test_random_gangs_on_small_clusters_always_come_through(
    world: tuple[list[int], list[tuple[int, int, int]]], order: Any
) -> None:
    """Whatever their sizes and queues: some gang is whole at any time, and when it ends the next one is."""
    nodes, gangs = world
    g = Gangs(*nodes)
    for i, (members, each, queue) in enumerate(gangs):
        g.gang(f"g{i}", members, queue, each)
        if order.random() < 0.5:
            g.run(order.randint(1, 3))
            for ask in [a for app in g.apps.values() for a in app.asks.values() if a.evict_cause]:
                g.do(Release(ask.app.id, ask.key, Cause.PREEMPTED_BY_SCHEDULER))
    g.run()
    for _ in gangs:
        running = [name for name in g.apps if str(g.apps[name].state) == "Running"]
        assert running or not g.apps, {name: g.holds(name) for name in g.apps}
        for name in running[: order.randint(1, len(running))] if running else ():
            g.end(name)
        g.run()
    assert not g.apps
    assert sorted(set(g.whole)) == sorted(f"g{i}" for i in range(len(gangs)))


def test_under_a_bound_on_applications_the_younger_goes_on_when_the_older_is_gone() -> None:
    """It needs a place to run there, and has to be looked at when it may have one."""
    g = stuck(max_applications=1)
    g.run()
    assert (g.whole, g.holds("young")) == (["old"], 1)
    g.end("old")
    g.run()
    assert g.whole == ["old", "young"]


def test_the_gate_behind_which_it_waits_for_the_older_opens_where_applications_are_counted() -> None:
    """There it has to enter as before when the older is waited for no more: it is looked at again all the same."""
    g = given_back(max_applications=5)
    g.do(DrainNode("n0"))
    g.run()
    assert g.apps["young"].gives_way_to is None
    g.do(UndrainNode("n0"))
    g.run()
    assert g.holds("old") + g.holds("young") == 4
