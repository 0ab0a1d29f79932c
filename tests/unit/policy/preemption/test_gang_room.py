"""Gangs of which not all could have room, whatever may be stopped for them: nothing is stopped for the rest."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from priority_clusters import PriorityCluster, cores, on

from fairlead.core.model.constraints import ANYWHERE, Constraints
from fairlead.core.model.decisions import Allocated
from fairlead.core.model.events import AddApplication, AddAsks, Cause, Release
from fairlead.core.model.lifecycle import State
from fairlead.core.model.resources import Limits, Resources
from fairlead.core.model.specs import ApplicationSpec, AskSpec, LimitSpec, QueueSpec
from fairlead.policy.preemption import by_priority
from fairlead.policy.preemption.gang_room import GangRoom

RULES = ["priority", "both"]
APART = Constraints(ports=("TCP/0.0.0.0/80",))


def amount(cores: int) -> Resources:
    return Resources({"vcore": 1_000 * cores})


def cluster(rule: str, count: int = 4, most: int | None = None, limits: tuple[LimitSpec, ...] = ()) -> PriorityCluster:
    """So many nodes of two cores."""
    a = QueueSpec(name="a", max=cores(most) if most is not None else None, limits=limits)
    return PriorityCluster(a, QueueSpec(name="b"), nodes={f"n{i}": 2 for i in range(count)}, rule=rule)


def gang(c: PriorityCluster, members: int, each: int = 2, priority: int = 5, user: str = "u", **own: Any) -> None:
    """Placeholders of a higher priority than most of what runs."""
    whole, size = amount(each * members), amount(each)
    c.handle(AddApplication(ApplicationSpec(id="gang", queue="root.a", placeholder_ask=whole, user=user)))
    more = {"priority": priority, "placeholder": True, "task_group": "t"} | own
    c.handle(
        AddAsks(tuple(AskSpec(application="gang", key=f"gang-{i}", resources=size, **more) for i in range(members)))
    )


def stopped(c: PriorityCluster) -> list[str]:
    """What is told to stop in some runs, in which all that is told to stop leaves at once."""
    found = []
    for _ in range(8):
        _, told = c.run(20_000)
        for key in told:
            c.gone(key)
        found += told
    return found


def started(c: PriorityCluster) -> list[str]:
    return [f"{each.key}@{each.node}" for each in c.decided if isinstance(each, Allocated)]


def fill(c: PriorityCluster, *priorities: int, queue: str = "root.b", **more: Any) -> None:
    """Work of these priorities that takes a node each."""
    for i, priority in enumerate(priorities):
        c.fill(f"w{i}", 2, priority, queue, **more)


@pytest.mark.parametrize("rule", RULES)
def test_nothing_is_stopped_where_work_that_stays_leaves_too_few_nodes(rule: str) -> None:
    c = cluster(rule)
    fill(c, 0, 0, 5, 9)
    gang(c, 3)
    assert stopped(c) == []
    c.finished("w3")
    assert sorted(stopped(c)) == ["w0", "w1"], "a node more makes it possible"


@pytest.mark.parametrize("rule", RULES)
def test_so_it_is_where_one_of_them_waited_too_long_and_room_gathers_for_it(rule: str) -> None:
    """And what gathers for it is room of its gang."""
    a = QueueSpec(name="a", properties={"wait.max": "10s"})
    c = PriorityCluster(a, QueueSpec(name="b"), nodes={f"n{i}": 2 for i in range(4)}, rule=rule)
    fill(c, 0, 0, 5, 9)
    gang(c, 3)
    assert stopped(c) == []
    assert [ask.app.id for ask in c.s.cluster.partitions["default"].nominations] == ["gang"]
    c.finished("w3")
    assert sorted(stopped(c)) == ["w0", "w1"]


@pytest.mark.parametrize("rule", RULES)
def test_work_is_stopped_where_that_makes_the_gang_whole(rule: str) -> None:
    c = cluster(rule)
    fill(c, 0, 0, 5)
    gang(c, 3)
    assert sorted(stopped(c)) == ["w0", "w1"]


@pytest.mark.parametrize("rule", RULES)
def test_one_member_less_makes_it_possible(rule: str) -> None:
    c = cluster(rule)
    fill(c, 0, 0, 5, 5)
    gang(c, 3)
    assert stopped(c) == []
    c.handle(Release("gang", "gang-2", Cause.FINISHED))
    assert sorted(stopped(c)) == ["w0", "w1"]


@pytest.mark.parametrize("rule", RULES)
def test_what_is_stopped_for_weaker_work_is_not_taken_by_a_gang_that_cannot_be_whole(rule: str) -> None:
    """Else work after work would be stopped for the job, and its placeholders would take the room of each."""
    c = cluster(rule)
    fill(c, 0, 0, 5, 9)
    gang(c, 3)
    assert stopped(c) == []
    c.submit("job", 2, 4, "root.b")
    assert stopped(c) == ["w1"]
    assert "job@n1" in started(c)
    c.finished("w3")
    assert sorted(stopped(c)) == ["job", "w0"], "the gang is stronger, once all of it has room"


@pytest.mark.parametrize("rule", RULES)
def test_a_gang_that_becomes_whole_takes_the_room_that_is_kept_for_weaker_work(rule: str) -> None:
    c = cluster(rule)
    fill(c, 0, 0, 5, 9)
    gang(c, 3)
    c.submit("job", 2, 4, "root.b")
    assert c.run(20_000)[1] == ["w1"]
    c.finished("w3")
    assert c.run() == (["gang-0@n3"], ["w0"])
    assert c.nominated() == {"gang-1": "n1", "gang-2": "n0"}


@pytest.mark.parametrize("rule", RULES)
def test_room_that_only_gathers_for_weaker_work_is_taken_by_such_a_gang(rule: str) -> None:
    """Nothing was stopped for it: the placeholders would have had that room when it became free."""
    b = QueueSpec(name="b", properties={"wait.max": "10s"})
    c = PriorityCluster(QueueSpec(name="a"), b, nodes={f"n{i}": 2 for i in range(4)}, rule=rule)
    fill(c, 4, 5, 5, 9)
    c.submit("job", 2, 4, "root.b")
    assert stopped(c) == []
    assert c.nominated() == {"job": "n0"}
    gang(c, 3)
    c.finished("w0")
    assert c.run()[0] == ["gang-0@n0"]


@pytest.mark.parametrize("rule", RULES)
def test_work_of_the_same_application_that_is_no_member_has_work_stopped(rule: str) -> None:
    """It was passed over behind placeholders like it, as long as these would have had work stopped in vain."""
    c = cluster(rule)
    fill(c, 0, 5, 5, 9)
    gang(c, 3)
    c.handle(AddAsks((AskSpec(application="gang", key="other", resources=amount(2), priority=5),)))
    assert stopped(c) == ["w0"]
    assert "other@n0" in started(c)


@pytest.mark.parametrize("rule", RULES)
def test_what_stays_in_a_full_queue_counts_too(rule: str) -> None:
    c = cluster(rule, most=6)
    c.fill("low", 2, 0, "root.a")
    c.fill("high", 2, 9, "root.a")
    gang(c, 3)
    assert stopped(c) == [], "six cores of which two stay"
    c.finished("high")
    assert stopped(c) == ["low"]


@pytest.mark.parametrize("rule", RULES)
def test_the_rest_of_a_limit_of_its_user_has_to_be_enough(rule: str) -> None:
    limit = LimitSpec(users=("u",), max_resources=Limits({"vcore": 6_000}))
    c = cluster(rule, limits=(limit,))
    c.fill("own", 2, 0, "root.a", user="u")
    fill(c, 0, 0, 0)
    gang(c, 3)
    assert stopped(c) == [], "nothing is stopped for a limit, not even work of the same user"
    c.finished("own")
    assert len(stopped(c)) == 2


@pytest.mark.parametrize("rule", RULES)
def test_members_that_keep_apart_need_a_node_each(rule: str) -> None:
    c = cluster(rule)
    fill(c, 0, 0, 5, 5)
    gang(c, 3, each=1, where=APART)
    assert stopped(c) == []
    c.finished("w3")
    assert sorted(stopped(c)) == ["w0", "w1"]


@pytest.mark.parametrize("rule", RULES)
def test_groups_that_fit_by_themselves_but_not_together_have_nothing_stopped(rule: str) -> None:
    c = cluster(rule, count=3)
    fill(c, 0, 0, 9)
    c.handle(AddApplication(ApplicationSpec(id="gang", queue="root.a", placeholder_ask=amount(5))))
    c.handle(AddAsks((*members("driver", 1, 1), *members("workers", 2, 2))))
    assert stopped(c) == [], "five cores, of which four could be made free"
    c.finished("w2")
    assert len(stopped(c)) == 2


@pytest.mark.parametrize("rule", RULES)
def test_idle_work_counts_as_what_gives_way(rule: str) -> None:
    c = cluster(rule)
    fill(c, 9, 9, 5, 5, idle=True)
    gang(c, 3)
    assert len(stopped(c)) == 3


@pytest.mark.parametrize("rule", RULES)
def test_a_member_that_asks_for_what_no_node_has_keeps_the_others_from_it(rule: str) -> None:
    """On its own node, too."""
    c = cluster(rule)
    fill(c, 0, 0, 0, 0)
    c.handle(AddApplication(ApplicationSpec(id="gang", queue="root.a", placeholder_ask=amount(6))))
    odd = replace(members("odd", 1, 2)[0], resources=Resources({"vcore": 2_000, "gpu": 1}), tags=on("n1"))
    c.handle(AddAsks((odd, *members("workers", 2, 2))))
    assert stopped(c) == []


@pytest.mark.parametrize("rule", RULES)
def test_groups_that_fit_by_themselves_and_in_sum_have_nothing_stopped_where_they_do_not_side_by_side(
    rule: str,
) -> None:
    """3, 3 and 2 on two nodes of 4 make 8 of 8; what stands there was stopped again and again."""
    c = PriorityCluster(nodes={"n1": 4, "n2": 4}, rule=rule)
    for node in ("n1", "n2"):
        c.fill(node, 4, 0, "root.b")
    c.handle(AddApplication(ApplicationSpec(id="gang", queue="root.a", placeholder_ask=amount(8))))
    c.handle(AddAsks((*members("large", 2, 3), *members("small", 1, 2))))
    assert stopped(c) == []
    c.node("n3", 2)
    assert stopped(c) != []


def members(group: str, count: int, each: int) -> list[AskSpec]:
    """Placeholders of a group."""
    own = {"resources": amount(each), "placeholder": True, "task_group": group, "priority": 5}
    return [AskSpec(application="gang", key=f"{group}-{i}", **own) for i in range(count)]


@pytest.mark.plain
@pytest.mark.parametrize("rule", RULES)
def test_of_a_gang_that_cannot_be_whole_no_more_than_one_member_is_searched_for(
    rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two thousand members each turn took 3 ms."""
    c = cluster(rule, count=8)
    fill(c, *[0] * 6, 9, 9)
    gang(c, 7)
    searched: list[object] = []
    plan = by_priority._plan
    monkeypatch.setattr(by_priority, "_plan", lambda *given: searched.append(given[2]) or plan(*given))
    assert stopped(c) == []
    assert len(searched) == 1


# -- it never says no where the gang would become whole -----------------------------------------------------------


def mixed(seed: int, rule: str) -> tuple[PriorityCluster, list[AskSpec]]:
    """Some nodes with work of all kinds, and the placeholders of a gang that come."""
    chance = random.Random(seed)
    some = chance.random
    own = QueueSpec(
        name="a",
        max=cores(chance.randint(3, 9)) if some() < 0.3 else None,
        guaranteed=cores(chance.randint(1, 4)) if some() < 0.3 else None,
    )
    rules = {"priority.offset": str(chance.randint(-2, 2))} if some() < 0.3 else {}
    other = QueueSpec(
        name="b",
        guaranteed=cores(chance.randint(1, 4)) if some() < 0.3 else None,
        properties=rules | ({"preemption.policy": "disabled"} if some() < 0.1 else {}),
    )
    nodes = {f"n{i}": chance.randint(1, 5) for i in range(chance.randint(2, 5))}
    c = PriorityCluster(own, other, nodes=nodes, rule=rule)
    for i in range(chance.randint(3, 14)):
        where, priority = chance.choice(["root.a", "root.b", "root.b"]), chance.choice([0, 0, 0, 3, 5, 9])
        c.submit(f"w{i}", chance.randint(1, 3), priority, where, idle=some() < 0.15)
        all_leave(c)
    asks = []
    for group in range(chance.choice([1, 1, 2, 3])):
        count, each, priority = chance.randint(1, 4), chance.randint(1, 3), chance.choice([4, 4, 6])
        where = APART if some() < 0.2 else ANYWHERE
        asks += [replace(ask, priority=priority, where=where) for ask in members(f"t{group}", count, each)]
    return c, asks


def all_leave(c: PriorityCluster) -> None:
    """All that is told to stop in a run does."""
    _, told = c.run(20_000)
    apps = c.s.cluster.partitions["default"].applications
    for key in told:
        for name in [name for name, app in apps.items() if key in app.asks]:
            c.gone(key, name)


def becomes_whole(seed: int, rule: str) -> tuple[bool, int]:
    """Whether it does, and how much is stopped for it."""
    c, asks = mixed(seed, rule)
    whole = Resources({"vcore": sum(ask.resources.as_dict()["vcore"] for ask in asks)})
    c.handle(AddApplication(ApplicationSpec(id="gang", queue="root.a", placeholder_ask=whole)))
    c.handle(AddAsks(tuple(asks)))
    for _ in range(20):
        all_leave(c)
    app = c.s.cluster.partitions["default"].applications.get("gang")
    is_whole = app is not None and app.state is not State.ACCEPTED
    return is_whole, sum(e.on_behalf_of.startswith("gang/") for e in c.evictions())


@pytest.mark.plain
@pytest.mark.parametrize("rule", RULES)
def test_what_becomes_whole_without_it_does_with_it(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And most of what would be stopped for nothing is not."""
    seeds = range(60)
    found = [becomes_whole(seed, rule) for seed in seeds]
    monkeypatch.setattr(GangRoom, "is_in_vain", lambda *_: False)
    without = [becomes_whole(seed, rule) for seed in seeds]
    assert [whole for whole, _ in found] == [whole for whole, _ in without]
    in_vain, before = (sum(count for whole, count in each if not whole) for each in (found, without))
    assert before > 10
    assert in_vain * 4 <= before


@pytest.mark.parametrize("rule", RULES)
def test_idle_work_of_a_low_priority_has_no_room_of_its_queue(rule: str) -> None:
    """It counts in its resource group alone: what it gives back makes none in a full queue."""
    a = QueueSpec(name="a", max=cores(4))
    c = PriorityCluster(a, QueueSpec(name="b"), nodes={"n1": 5}, rule=rule)
    c.fill("important", 3, 20)
    c.fill("idle", 2, 0, idle=True)
    gang(c, 2, each=1)
    assert stopped(c) == []
    c.finished("important")
    assert stopped(c) == [], "three cores are free now"
