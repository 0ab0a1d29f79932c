"""Turns by rank: who goes before whom, and what each does in its own turn."""

from __future__ import annotations

import pytest
from priority_clusters import PriorityCluster, cores, on

from fairlead.core.books.asks import Ask
from fairlead.core.model.constraints import AffinityTerm, Constraints, Requirement
from fairlead.core.model.events import AddApplication, AddAsks
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import ApplicationSpec, AskSpec, QueueSpec
from fairlead.policy.order import effective_priority
from fairlead.policy.place import by_rank, nominated


def leaf(name: str, guaranteed: int = 0, maximum: int = 0, **properties: str) -> QueueSpec:
    """A leaf with these cores; 0: none."""
    return QueueSpec(
        name=name,
        guaranteed=cores(guaranteed) if guaranteed else None,
        max=cores(maximum) if maximum else None,
        properties={key.replace("_", "."): value for key, value in properties.items()},
    )


def test_room_stays_free_for_an_ask_whose_full_queue_is_about_to_have_room() -> None:
    """Else weaker work would start there, and other work be stopped for it later."""
    c = PriorityCluster(leaf("a", maximum=2), leaf("b"), nodes={"n1": 4, "n2": 2})
    c.fill("idle", 2, 0, "root.b")
    c.fill("old", 2, 0, "root.a", where=Constraints(selector=(Requirement("kubernetes.io/hostname", "In", ("n1",)),)))
    c.finished("idle")
    c.submit("big", 4, 5, "root.b")
    c.submit("next", 2, 3, "root.a")
    c.submit("small", 2, 1, "root.b")
    assert c.run() == ([], ["old"])
    assert c.nominated() == {"big": "n1", "next": "n2"}
    c.gone("old")
    assert sorted(c.run()[0]) == ["big@n1", "next@n2"]


def test_an_ask_that_stops_nobody_starts_at_once_in_room_that_is_kept_for_a_weaker_one() -> None:
    """Though the weaker one would fit beside it once what was told to stop is gone."""
    c = PriorityCluster(nodes={"n1": 3})
    c.fill("old", 1, 0)
    c.fill("other", 2, 9)
    c.submit("weak", 1, 1)
    assert c.run() == ([], ["old"])
    c.submit("never", 2, 3, allow_preempt_other=False)
    assert c.run() == ([], [])
    c.finished("other")
    assert c.run()[0] == ["never@n1"]
    assert c.nominated() == {"weak": "n1"}


def test_a_nominated_ask_does_not_pass_a_stronger_one_behind_the_first_of_all() -> None:
    """The first of all is only as strong as the nominated one; behind it a stronger one of its own parent waits."""
    parent = QueueSpec(name="a", parent=True, queues=(leaf("x"), leaf("y")), properties={"priority.policy": "fence"})
    c = PriorityCluster(parent, leaf("b"), leaf("c"), nodes={"n1": 2, "n2": 1})
    c.fill("v", 2, -1, "root.b")
    c.fill("used", 1, 0, "root.a.x")
    c.submit("weak", 2, 0, "root.a.y")
    assert c.run() == ([], ["v"])
    c.gone("v")
    c.submit("strong", 2, 3, "root.a.x")
    c.submit("first", 4, 0, "root.c")
    assert c.run()[0] == ["strong@n1"]


def test_work_that_an_ask_wants_to_be_with_is_not_in_its_way() -> None:
    """That it could be stopped is no reason to look only at what is left without it."""
    c = PriorityCluster(nodes={"n1": 4})
    c.fill("friend", 1, 2, labels={"app": "x"})
    c.fill("v", 3, 0)
    c.submit("weak", 2, 1)
    assert c.run() == ([], ["v"])
    c.gone("v")
    near = AffinityTerm((Requirement("app", "In", ("x",)),), "kubernetes.io/hostname")
    c.submit("strong", 3, 5, where=Constraints(affinity=(near,)))
    assert c.run() == (["strong@n1"], [])


def test_in_one_leaf_too_what_is_within_the_guarantee_goes_first() -> None:
    """With `both`: the smaller ask is within the guarantee, the larger and stronger one is not."""
    c = PriorityCluster(leaf("a", guaranteed=5), leaf("b"), nodes={"n1": 4, "n2": 2}, rule="both")
    c.fill("used", 4, 0, "root.a")
    c.fill("v", 2, 0, "root.b")
    c.submit("weak", 1, -1, "root.a")
    assert c.run() == ([], ["v"])
    c.gone("v")
    c.submit("strong", 2, 1, "root.a")
    assert c.run() == (["weak@n2"], ["used"]), "the stronger one stops other work: it is within the guarantee then"


def daemons(count: int) -> PriorityCluster:
    """Full nodes, and one ask for each that runs there alone, stops what it has to, and is nominated."""
    names = [f"n{i:02d}" for i in range(count)]
    c = PriorityCluster(leaf("a"), leaf("b"), nodes=dict.fromkeys(names, 2))
    for name in names:
        c.fill(f"low-{name}", 2, 0, "root.b", tags=on(name))
    c.handle(AddApplication(ApplicationSpec(id="set", queue="root.a")))
    one = Resources({"vcore": 1000})
    asks = [AskSpec(application="set", key=f"set-{n}", resources=one, priority=9, tags=on(n)) for n in names]
    c.handle(AddAsks(tuple(asks)))
    assert sorted(c.run()[1]) == [f"low-{name}" for name in names]
    for name in names:
        c.gone(f"low-{name}")
    return c


def test_of_many_that_are_alike_and_may_start_the_oldest_is_first() -> None:
    c = daemons(12)
    assert c.run()[0] == [f"set-n{i:02d}@n{i:02d}" for i in range(12)]


@pytest.mark.plain
def test_of_many_that_are_alike_and_may_start_only_one_has_its_place_worked_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """For each placement; with a daemon set on a thousand nodes that was 20 s in one call."""
    c = daemons(12)
    placed_for: list[Ask] = []
    paths: list[Ask] = []
    place_for, path_of = nominated.Places.of, by_rank.path_of
    monkeypatch.setattr(nominated.Places, "of", lambda places, ask: placed_for.append(ask) or place_for(places, ask))
    monkeypatch.setattr(by_rank, "path_of", lambda ask: paths.append(ask) or path_of(ask))
    assert len(c.run()[0]) == 12
    assert len(placed_for) == 12 * 13 // 2
    assert len(paths) < 40  # 156, if that of each were worked out for each placement.


@pytest.mark.plain
@pytest.mark.parametrize("rule", ["priority", "both"])
def test_room_is_looked_for_once_however_many_find_no_node(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It took a search before each of them: a cluster of 12 nodes with much that may run nowhere took half a second."""
    c = PriorityCluster(rule=rule, nodes={"n1": 4})
    c.fill("old", 2, 0)
    for i in range(20):
        label = (Requirement(f"label-{i}", "Exists"),)
        c.submit(f"nowhere-{i}", 1, 5, where=Constraints(selector=label))
    c.submit("small", 1, 1)
    looked = []
    make_room_before = by_rank.make_room_before
    monkeypatch.setattr(
        by_rank,
        "make_room_before",
        lambda part, lines, next_ask: looked.append(next_ask) or make_room_before(part, lines, next_ask),
    )
    assert c.run() == (["small@n1"], [])
    assert len(looked) == 2, "before that one, and at the end"


@pytest.mark.plain
def test_of_many_nominees_that_are_alike_the_weaker_ones_are_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn beside a thousand of them took half a second."""
    c = PriorityCluster(nodes={f"n{i}": 1 for i in range(20)})
    for i in range(20):
        c.submit(f"low{i}", 1, 0, "root.b")
    c.run()
    for i in range(15):
        c.submit(f"high{i}", 1, 5)
    c.run()
    assert len(c.nominated()) == 15
    looked: list[int] = []
    stands = effective_priority._stands_above
    monkeypatch.setattr(effective_priority, "_stands_above", lambda *given: looked.append(1) or stands(*given))
    c.finished(next(key for key in (f"low{i}" for i in range(20)) if key not in {e.key for e in c.evictions()}))
    assert len(c.run()[0]) == 1, "one starts there"
    assert 0 < len(looked) < 10
