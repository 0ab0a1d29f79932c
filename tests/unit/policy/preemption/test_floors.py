"""Floors: what is below one has no plan, and most that has no plan is below one."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from priority_clusters import PriorityCluster, cores, on
from properties.rank_courses import decided_in

from fairlead.core.books.asks import Ask
from fairlead.core.books.demand import Demand, Shape
from fairlead.core.model.resources import Items
from fairlead.core.model.specs import QueueSpec
from fairlead.policy.order.effective_priority import EVERYBODY, NOBODY, is_stronger
from fairlead.policy.order.pick import Lines
from fairlead.policy.order.victim_index import Stoppable
from fairlead.policy.order.victim_levels import Rooms
from fairlead.policy.preemption.floors import Floors
from fairlead.policy.preemption.plan import Search

A, B = QueueSpec(name="a"), QueueSpec(name="b")


def floors(c: PriorityCluster) -> Floors:
    """By the table of the cluster itself: nodes are marked for one."""
    part = c.s.cluster.partitions["default"]
    return Floors(part, c.s._cycle_of(part).lines.stoppable)


def ask_of(c: PriorityCluster, key: str) -> Ask:
    return c.s.cluster.partitions["default"].applications[key].asks[key]


def is_below(c: PriorityCluster, key: str) -> bool:
    ask = ask_of(c, key)
    assert ask.shape is not None
    return floors(c).is_below(ask, ask.shape)


def above(c: PriorityCluster) -> list[str]:
    """The first asks of what would be looked at (if anything could be stopped: the cluster must not do that)."""
    c.run()
    part = c.s.cluster.partitions["default"]
    lines = c.s._cycle_of(part).lines
    return [demand.line[0][2].head.key for demand in floors(c).those_above(lines)]


def test_only_what_is_above_something_that_runs_is_not_below() -> None:
    c = PriorityCluster(A, B, nodes={"n1": 2})
    c.fill("runs", 2, 3)
    c.submit("equal", 2, 3, "root.b")
    c.submit("higher", 2, 4, "root.b")
    assert is_below(c, "equal")
    assert not is_below(c, "higher")


def test_low_work_that_makes_no_room_for_the_shape_lets_nothing_pass() -> None:
    """One small job of a low priority runs: what is as small may have it stopped, what is wider is below the others."""
    c = PriorityCluster(A, B, nodes={"n1": 4, "n2": 4}, enabled=False)
    c.fill("low", 1, 0, tags=on("n1"))
    c.fill("beside", 3, 5, tags=on("n1"))
    c.fill("other", 4, 5, tags=on("n2"))
    c.submit("small", 1, 3, "root.b")
    c.submit("wide", 2, 3, "root.b")
    part = floors(c)
    assert part.of_leaf(ask_of(c, "wide").app.queue) == 0
    assert not is_below(c, "small")
    assert is_below(c, "wide")
    assert above(c) == ["small"]


def test_the_floor_of_a_shape_counts_what_waits_at_most() -> None:
    """Work above all that waits is not counted through; what no node could hold has no floor that anything is above."""
    c = PriorityCluster(A, B, nodes={"n1": 4}, enabled=False)
    c.fill("runs", 4, 5)
    for key, size, priority in (("wide", 4, 6), ("vast", 5, 9), ("tiny", 1, 9)):
        c.submit(key, size, priority, "root.b")
    found = {key: floors(c).of_shape(shape) for key in ("wide", "vast") if (shape := ask_of(c, key).shape)}
    assert found == {"wide": 5, "vast": EVERYBODY}


@pytest.mark.plain
def test_of_many_sizes_few_are_worked_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """One between two of the same floor has that too; more of this and less of that is neither larger nor smaller."""
    c = PriorityCluster(A, B, nodes={"n1": 4, "n2": 4}, enabled=False)
    c.fill("low", 2, 0, tags=on("n1"))
    c.fill("beside", 2, 5, tags=on("n1"))
    c.fill("other", 4, 5, tags=on("n2"))
    for size in (1, 2, 3, 4, 5):
        c.submit(f"w{size}", size, 9, "root.b")
    known = floors(c)
    asked: list[Items] = []
    work_out = Rooms.lowest_for

    def counted(self: Rooms, items: Items, upto: int) -> tuple[int, ...] | None:
        asked.append(items)
        return work_out(self, items, upto)

    monkeypatch.setattr(Rooms, "lowest_for", counted)
    found = {}
    for size in (1, 3, 4, 2, 5):
        shape = ask_of(c, f"w{size}").shape
        assert shape is not None
        found[size] = (known.of_shape(shape), len(asked))
    assert found == {1: (0, 1), 3: (5, 2), 4: (5, 3), 2: (0, 4), 5: (EVERYBODY, 5)}
    more_of_them = [Shape((tuple(items.items()), "")) for items in ({"vcore": 3500}, {"vcore": 1500}, {"vcore": 9000})]
    assert [known.of_shape(shape) for shape in more_of_them] == [5, 0, EVERYBODY]
    assert len(asked) == 5
    askew = Shape(((("gpu", 1), ("vcore", 1)), ""))
    assert known.of_shape(askew) == EVERYBODY
    assert len(asked) == 6


def test_in_a_full_queue_only_what_is_above_something_there_is_looked_at() -> None:
    """However low other work is: that a node gets room does not help."""
    full = QueueSpec(name="full", parent=True, max=cores(4), queues=(QueueSpec(name="x"), QueueSpec(name="y")))
    c = PriorityCluster(full, B, nodes={"n1": 8}, enabled=False)
    c.fill("high", 2, 5, "root.full.x")
    c.fill("higher", 2, 7, "root.full.x")
    c.fill("low", 4, 0, "root.b")
    c.submit("equal", 1, 5, "root.full.y")
    assert above(c) == []
    c.submit("stronger", 1, 6, "root.full.y")
    assert above(c) == ["stronger"]


def test_in_a_full_leaf_only_what_is_above_something_there_is_looked_at() -> None:
    c = PriorityCluster(QueueSpec(name="a", max=cores(4)), B, nodes={"n1": 8}, enabled=False)
    c.fill("high", 4, 5)
    c.fill("low", 4, 0, "root.b")
    c.submit("equal", 1, 5)
    assert above(c) == []
    c.submit("stronger", 1, 6)
    assert above(c) == ["stronger"]


def test_what_leaves_a_full_queue_is_room_for_all_that_waits_for_it() -> None:
    """Also for what is above nothing that stays there, in another leaf than that for which it was told to stop."""
    full = QueueSpec(name="full", parent=True, max=cores(4), queues=(QueueSpec(name="x"), QueueSpec(name="y")))
    c = PriorityCluster(full, B, nodes={"n1": 8})
    c.fill("high", 2, 5, "root.full.x")
    c.fill("higher", 2, 7, "root.full.x")
    c.fill("low", 4, 0, "root.b")
    c.submit("equal", 1, 5, "root.full.x")
    assert above(c) == []
    c.submit("stronger", 1, 6, "root.full.y")
    assert c.run() == ([], ["high"])
    assert c.nominated() == {"stronger": "n1", "equal": "n1"}


def test_what_others_leave_is_room_for_all() -> None:
    """One was told to stop for an ask that needs less than it leaves: the rest is there for equals of what runs."""
    c = PriorityCluster(A, B, nodes={"n1": 4})
    c.fill("low", 4, 0)
    c.submit("first", 1, 9, "root.b")
    assert c.run() == ([], ["low"])
    c.submit("fits", 3, 0)
    c.submit("wide", 4, 0)
    shapes = [ask_of(c, key).shape for key in ("fits", "wide")]
    assert [floors(c).of_shape(shape) == NOBODY for shape in shapes if shape] == [True, False]
    assert not is_below(c, "fits")
    assert is_below(c, "wide")
    assert c.run() == ([], [])
    assert c.nominated() == {"first": "n1", "fits": "n1"}


def test_what_is_kept_for_weaker_asks_counts_as_room_for_stronger_ones_alone() -> None:
    c = PriorityCluster(A, B, nodes={"n1": 4})
    c.fill("low", 4, 0)
    c.submit("kept", 4, 5, "root.b")
    assert c.run() == ([], ["low"])
    c.submit("equal", 4, 5, "root.b")
    c.submit("stronger", 4, 6, "root.b")
    assert is_below(c, "equal")
    assert not is_below(c, "stronger")
    assert not is_below(c, "kept")  # It may exchange its own room.


def test_what_is_owed_something_is_below_nothing() -> None:
    owing = QueueSpec(name="a", guaranteed=cores(2))
    c = PriorityCluster(owing, B, nodes={"n1": 4}, rule="both", enabled=False)
    c.fill("runs", 4, 9, "root.b")
    c.submit("owed", 2, 0)
    c.submit("too-much", 3, 0)
    assert not is_below(c, "owed")
    assert is_below(c, "too-much")
    assert "owed" in above(c)


def test_what_is_owed_something_is_below_where_all_else_is_guarded() -> None:
    """More is guaranteed than there is: what waits within its guarantee finds nothing that is above that of others."""
    queues = [QueueSpec(name=name, guaranteed=cores(4)) for name in "ab"]
    c = PriorityCluster(*queues, nodes={"n1": 2, "n2": 2}, rule="both")
    for n in range(2):
        c.fill(f"a{n}", 1, queue="root.a")
        c.fill(f"b{n}", 1, queue="root.b")
    c.submit("equal", 1, queue="root.a")
    c.submit("higher", 1, 1, queue="root.a")
    assert is_below(c, "equal")
    assert not is_below(c, "higher")  # It may stop work of its own queue.
    c.finished("a0")
    assert not is_below(c, "equal")


def test_what_is_owed_something_takes_what_is_kept_for_weaker_asks() -> None:
    a, guarded = QueueSpec(name="a", guaranteed=cores(2)), QueueSpec(name="c", guaranteed=cores(2))
    c = PriorityCluster(a, B, guarded, nodes={"n1": 4}, rule="both")
    c.fill("guarded", 2, queue="root.c")
    c.fill("low", 2, queue="root.b")
    c.submit("kept", 2, 5, "root.b")
    assert c.run() == ([], ["low"])
    c.submit("owed", 2)
    assert not is_below(c, "owed")
    c.run()
    assert c.nominated() == {"owed": "n1"}


def test_a_guarantee_above_its_own_keeps_it_looking() -> None:
    """Beside it, in the queue above that is guaranteed something too, runs what it may take back."""
    p = QueueSpec(
        name="p",
        parent=True,
        guaranteed=cores(3),
        queues=(QueueSpec(name="x", guaranteed=cores(1)), QueueSpec(name="y")),
    )
    c = PriorityCluster(p, QueueSpec(name="b", guaranteed=cores(2)), nodes={"n1": 4}, rule="both")
    c.fill("b", 2, 9, queue="root.b")
    c.fill("y", 1, 9, queue="root.p.y")
    c.fill("also", 1, 9, queue="root.p.y")
    c.submit("owed", 1, queue="root.p.x")
    assert not is_below(c, "owed")
    assert c.run() == ([], ["also"])


def test_idle_work_is_below_everything() -> None:
    c = PriorityCluster(A, B, nodes={"n1": 4})
    c.fill("idle", 2, 7, idle=True)
    c.fill("runs", 2, 5)
    c.submit("low", 1, 0, "root.b")
    assert not is_below(c, "low")
    assert c.run() == ([], ["idle"])


def test_offsets_count_on_the_way() -> None:
    raised = QueueSpec(name="b", properties={"priority.offset": "10"})
    c = PriorityCluster(A, raised, nodes={"n1": 4}, enabled=False)
    c.fill("runs", 4, 5)
    c.submit("raised", 4, 0, "root.b")
    c.submit("plain", 4, 5)
    c.submit("low", 4, -5, "root.b")
    assert [is_below(c, key) for key in ("raised", "plain", "low")] == [False, True, True]


@pytest.mark.parametrize("rule", ["priority", "both"])
def test_what_is_below_a_floor_has_no_plan(rule: str) -> None:
    """On small clusters drawn at random, for every ask that waits."""
    chance, below, all_in_all = random.Random(7), 0, 0
    for _ in range(25):
        offset = {"priority.offset": str(chance.choice([-3, 4]))} if chance.random() < 0.3 else {}
        guaranteed = cores(chance.randint(1, 4)) if chance.random() < 0.5 else None
        queues = (
            QueueSpec(name="a", guaranteed=guaranteed),
            QueueSpec(name="b", properties=offset),
            QueueSpec(name="c"),
        )
        c = PriorityCluster(*queues, nodes={f"n{i}": chance.randint(2, 5) for i in range(3)}, rule=rule)
        for n in range(25):
            tags = on(f"n{chance.randrange(3)}") if chance.random() < 0.2 else {}
            c.submit(f"j{n}", chance.randint(1, 4), chance.randint(0, 4), f"root.{chance.choice('abc')}", tags=tags)
            if chance.random() < 0.4:
                c.run()
            if chance.random() < 0.3 and (stopped := c.evictions()) and runs(c, stopped[-1].key):
                c.gone(stopped[-1].key)
        part = c.s.cluster.partitions["default"]
        table = Stoppable()
        known = Floors(part, table)
        for app in part.applications.values():
            for ask in app.asks.values():
                if ask.pending and ask.shape is not None and ask.nomination is None:
                    all_in_all += 1
                    if known.is_below(ask, ask.shape):
                        below += 1
                        weaker = [other for other in part.nominations if is_stronger(ask, other)]
                        search = Search(part, ask, weaker)
                        assert search.best(table) is None, f"{ask} is below a floor"
    assert all_in_all > below > all_in_all // 2


def runs(c: PriorityCluster, key: str) -> bool:
    app = c.s.cluster.partitions["default"].applications.get(key)
    return app is not None and key in app.asks and app.asks[key].node is not None


@pytest.mark.thorough
@pytest.mark.plain
@pytest.mark.parametrize("rule", ["priority", "both"])
def test_looking_at_everything_decides_the_same(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = range(40, 43)
    quick = [decided_in(rule, number) for number in numbers]

    def everything(_: Floors, lines: Lines) -> Iterator[Demand]:
        return lines.those_held_up()

    monkeypatch.setattr(Floors, "those_above", everything)
    monkeypatch.setattr(Floors, "is_below", lambda *_: False)
    assert [decided_in(rule, number) for number in numbers] == quick
