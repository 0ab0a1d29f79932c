"""Which idle work goes for an ask: of its group, of others by guarantee, under limits, and no more than it takes."""

from __future__ import annotations

from typing import Any

import pytest
from priority_clusters import PriorityCluster, cores, only_on

from fairlead.core.model.constraints import Constraints
from fairlead.core.model.events import AddApplication, AddAsks, Cause, Release
from fairlead.core.model.resources import Limits, Resources
from fairlead.core.model.specs import ApplicationSpec, AskSpec, LimitSpec, QueueSpec
from fairlead.scheduler import Scheduler

GROUP = {"resource.group": "true"}
FOUR = cores(4)
AT_ONCE = {"preemption.delay": "1s"}
PORT = Constraints(ports=("TCP/0.0.0.0/8080",))
RULES = pytest.mark.parametrize("rule", ["priority", "guarantee"])


def two_groups(rule: str, mine: Limits = FOUR, enabled: bool = True, **of_g: str) -> PriorityCluster:
    """`root.g.a` and `root.h.b` are in groups of their own; `root.h.b` is promised 4 cores; 4 cores on n1."""
    a = QueueSpec(name="a", properties={key.replace("_", "."): value for key, value in of_g.items()})
    b = QueueSpec(name="b", guaranteed=mine, properties=AT_ONCE)
    g = QueueSpec(name="g", parent=True, queues=(a, QueueSpec(name="other")), properties=GROUP)
    h = QueueSpec(name="h", parent=True, queues=(b,), properties=GROUP)
    return PriorityCluster(g, h, rule=rule, enabled=enabled)


def stopped(c: PriorityCluster) -> list[tuple[str, str]]:
    return [(e.key, e.rule) for e in c.evictions()]


def idle(c: PriorityCluster, key: str, size: int, priority: int = 9, **more: Any) -> None:
    c.fill(key, size, priority, "root.g.a", idle=True, **more)


@RULES
def test_idle_work_of_another_group_gives_way_to_a_queue_below_its_guarantee(rule: str) -> None:
    """Whatever the rule, and however high its priority; at once, and the room is held."""
    c = two_groups(rule)
    idle(c, "borrows", 4)
    c.submit("mine", 4, 0, "root.h.b")
    assert c.run() == ([], ["borrows"])
    assert c.nominated() == {"mine": "n1"}
    c.gone("borrows")
    assert c.run()[0] == ["mine@n1"]
    assert stopped(c) == [("borrows", "guarantee")]


@RULES
@pytest.mark.parametrize(
    ("case", "more"),
    [
        ("nothing is promised", {"mine": Limits({})}),
        ("it is more than what is promised", {"mine": cores(3)}),
        ("preemption is off", {"enabled": False}),
        ("the idle work's queue is nobody's victim", {"preemption_policy": "disabled"}),
        ("the idle work has not run for long", {"preemption_min_runtime": "1h"}),
    ],
)
def test_only_a_guarantee_reaches_beyond_the_group(rule: str, case: str, more: dict[str, Any]) -> None:
    """Otherwise idle work gives back in its own group alone, and what spares work from preemption spares it."""
    c = two_groups(rule, **more)
    idle(c, "borrows", 4)
    c.submit("mine", 4, 0, "root.h.b")
    for _ in range(5):
        assert c.run(1_000) == ([], []), case


@pytest.mark.parametrize("rule", ["guarantee", "priority", "both"])
@pytest.mark.parametrize("priority", [4, 5])
def test_where_rank_decides_a_higher_priority_stops_idle_work_of_another_group_as_any_work(
    rule: str, priority: int
) -> None:
    c = two_groups(rule, mine=Limits({}))
    idle(c, "borrows", 4, priority=4)
    c.submit("mine", 4, priority, "root.h.b")
    assert c.run(30_000) == ([], ["borrows"] if priority > 4 and rule != "guarantee" else [])
    assert {how for _, how in stopped(c)} <= {"priority"}


@RULES
def test_an_ask_that_stops_nobody_takes_nothing_from_other_groups(rule: str) -> None:
    """`Never` is about preemption; what its own group lends is its own."""
    c = two_groups(rule)
    idle(c, "borrows", 4)
    c.submit("never", 4, 0, "root.h.b", allow_preempt_other=False)
    assert c.run(30_000) == ([], [])
    c.submit("inside", 4, 0, "root.g.other", allow_preempt_other=False)
    assert c.run() == ([], ["borrows"])
    assert stopped(c) == [("borrows", "reclaim")]


@RULES
def test_two_asks_together_take_no_more_than_is_promised(rule: str) -> None:
    """What is nominated counts as used of the guarantee."""
    c = two_groups(rule, mine=cores(2))
    idle(c, "one", 2)
    idle(c, "two", 2)
    c.submit("first", 2, 0, "root.h.b")
    c.submit("second", 2, 0, "root.h.b")
    assert c.run() == ([], ["two"])
    for _ in range(40):
        assert c.run(1_000) == ([], [])


@RULES
def test_two_asks_together_take_no_more_than_the_limit_of_their_user(rule: str) -> None:
    """`reclaim._may_claim`: what is promised under a limit counts there, or the second work is stopped for nothing."""
    limit = LimitSpec(users=("nobody",), max_resources=cores(3))
    mine = QueueSpec(name="a", limits=(limit,))
    c = PriorityCluster(
        QueueSpec(name="g", parent=True, queues=(mine, QueueSpec(name="b")), properties=GROUP), rule=rule
    )
    for key in ("one", "two"):
        c.fill(key, 2, 0, "root.g.b", idle=True)
    for key in ("first", "second"):
        c.submit(key, 2, 0, "root.g.a")
    assert c.run() == ([], ["two"])
    c.gone("two")
    assert c.run() == (["first@n1"], [])
    assert c.run(20_000) == ([], [])


@pytest.mark.parametrize("rule", ["guarantee", "priority", "both"])
@pytest.mark.parametrize(
    ("free", "size", "expected"),
    [
        pytest.param(0, 2, ["web"], id="it is enough"),
        pytest.param(0, 3, ["plain", "web"], id="completed with the cheapest"),
        pytest.param(2, 2, ["web"], id="there is room without it"),
    ],
)
def test_idle_work_that_has_the_port_goes_though_other_work_is_cheaper(
    rule: str, free: int, size: int, expected: list[str]
) -> None:
    """Where the cheapest leaves the port in use, what has it goes."""
    c = PriorityCluster(nodes={"n1": 6 + free}, rule=rule)
    c.fill("web", 2, 5, idle=True, where=PORT)
    c.fill("dear", 2, 9, idle=True)
    c.fill("plain", 2, idle=True)
    c.submit("mine", size, queue="root.b", where=PORT)
    started, told = c.run()
    assert (started, sorted(told)) == ([], expected)


def test_what_has_the_port_goes_within_what_its_queue_may_lose() -> None:
    """Its queue may lose one, and with that neither the port nor the room would be enough."""
    c = two_groups("priority", preemption_evictions_max="1")
    for key, where in (("web", PORT), ("plain", Constraints())):
        idle(c, key, 2, where=where)
    c.submit("large", 3, 0, "root.h.b", where=PORT)
    assert c.run() == ([], [])
    c.submit("small", 2, 0, "root.h.b", where=PORT)
    assert c.run() == ([], ["web"])


@pytest.mark.parametrize("rule", ["guarantee", "priority", "both"])
def test_what_leaves_already_is_counted_in_the_same_order_after_a_restart(rule: str) -> None:
    """By arrival: what came later has started first."""
    c = PriorityCluster(rule=rule)
    c.submit("first", 2, 0, idle=True)
    c.submit("second", 2, 1, idle=True)
    assert c.run()[0] == ["second@n1", "first@n1"]
    c.submit("large", 4, queue="root.b")
    assert sorted(c.run()[1]) == ["first", "second"]
    again = Scheduler.load(c.s.dump())
    c.handle(Release("large", "large", Cause.STOPPED_BY_RM))
    again.handle(Release("large", "large", Cause.STOPPED_BY_RM), c.now_ms)
    other = AskSpec(application="other", key="other", resources=Resources({"vcore": 4_000}))
    for event in (AddApplication(ApplicationSpec(id="other", queue="root.b")), AddAsks((other,))):
        c.handle(event)
        again.handle(event, c.now_ms)
    c.run()
    again.schedule(c.now_ms)
    assert c.nominated() == {"other": "n1"}
    assert again.dump() == c.s.dump()


# -- limits of a user ---------------------------------------------------------------------------------------------

EVERY_RULE = pytest.mark.parametrize("rule", ["priority", "guarantee", "both"])


def limited(rule: str, cores_each: int = 4, nodes: dict[str, int] | None = None) -> PriorityCluster:
    """Each user may have so much of `root.a` and `root.b` together; 8 cores on each of two nodes."""
    most = LimitSpec(users=("*",), max_resources=cores(cores_each))
    return PriorityCluster(rule=rule, nodes=nodes or {"n1": 8, "n2": 8}, limits=(most,))


@EVERY_RULE
def test_the_idle_work_of_a_user_gives_back_what_their_limit_lacks_for_their_other_work(rule: str) -> None:
    """Wherever it runs: the nodes have room."""
    c = limited(rule)
    c.fill("own", 3, 9, "root.a", user="u", idle=True)
    c.fill("other", 4, 0, "root.a", user="v", idle=True)
    c.submit("ordinary", 2, 0, "root.b", user="u")
    assert c.run() == ([], ["own"])
    assert list(c.nominated()) == ["ordinary"]
    c.gone("own")
    assert c.run()[0] == ["ordinary@n1"]
    assert stopped(c) == [("own", "reclaim")]


@EVERY_RULE
def test_under_a_limit_no_more_goes_than_it_takes_and_none_where_that_is_not_enough(rule: str) -> None:
    c = limited(rule)
    c.fill("works", 2, 0, "root.a", user="u")
    c.fill("one", 1, 0, "root.a", user="u", idle=True)
    c.fill("two", 1, 0, "root.a", user="u", idle=True)
    c.submit("too much", 3, 0, "root.b", user="u")
    assert c.run() == ([], [])
    c.submit("right", 1, 0, "root.b", user="u")
    assert c.run() == ([], ["two"])
    c.gone("two")
    assert c.run()[0] == ["right@n1"]


@EVERY_RULE
def test_while_idle_work_leaves_a_limit_the_next_of_the_same_user_has_more_of_it_stopped(rule: str) -> None:
    """What leaves for one is not counted on for another."""
    c = limited(rule)
    for key in ("one", "two"):
        c.fill(key, 2, 0, "root.a", user="u", idle=True)
    c.submit("first", 2, 0, "root.b", user="u")
    assert c.run() == ([], ["two"])
    c.submit("second", 2, 0, "root.b", user="u")
    assert c.run() == ([], ["one"])
    c.submit("third", 2, 0, "root.b", user="u")
    assert c.run() == ([], [])
    c.gone("one")
    c.gone("two")
    assert sorted(name.partition("@")[0] for name in c.run()[0]) == ["first", "second"]


@EVERY_RULE
def test_what_leaves_a_limit_is_enough_for_what_comes_after(rule: str) -> None:
    """Nothing more goes: the rest of what the large one leaves is enough."""
    c = limited(rule)
    c.fill("small", 1, 9, "root.a", user="u", idle=True)
    c.fill("large", 3, 0, "root.a", user="u", idle=True)
    c.submit("first", 1, 0, "root.b", user="u")
    assert c.run() == ([], ["large"])
    c.submit("second", 2, 0, "root.b", user="u")
    assert c.run() == ([], [])
    assert sorted(c.nominated()) == ["first", "second"]
    c.gone("large")
    assert sorted(name.partition("@")[0] for name in c.run()[0]) == ["first", "second"]


@EVERY_RULE
def test_what_a_node_lacks_comes_from_there_and_what_a_limit_lacks_from_its_user(rule: str) -> None:
    """First the limit has room, and no node; then it is full."""
    c = limited(rule, nodes={"n1": 4, "n2": 4})
    c.fill("full", 4, 0, "root.a", user="v")
    c.fill("own", 2, 9, "root.a", user="u", idle=True)
    c.fill("foreign", 2, 0, "root.a", user="w", idle=True)
    c.submit("ordinary", 2, 0, "root.b", user="u")
    assert c.run() == ([], ["foreign"])
    c.gone("foreign")
    assert c.run()[0] == ["ordinary@n2"]
    c.submit("more", 2, 0, "root.b", user="u")
    assert c.run() == ([], ["own"])


@EVERY_RULE
def test_other_work_is_not_stopped_for_a_limit(rule: str) -> None:
    """A limit is no reason to stop work, be it lower or the user's own: idle work alone gives back."""
    c = limited(rule)
    c.fill("lower", 4, 0, "root.a", user="u")
    c.fill("idle", 4, 0, "root.a", user="v", idle=True)
    c.submit("ordinary", 2, 9, "root.b", user="u")
    for _ in range(3):
        assert c.run(20_000) == ([], [])


@EVERY_RULE
def test_room_that_gathers_for_an_ask_is_no_reason_to_leave_idle_work_alone(rule: str) -> None:
    """The node has no idle work, and no more room than what gathers there for the ask; its group is full."""
    late = QueueSpec(name="a", properties={"wait.max": "1s"})
    group = QueueSpec(
        name="g", parent=True, queues=(late, QueueSpec(name="other")), max=cores(4), properties=dict(GROUP)
    )
    c = PriorityCluster(group, QueueSpec(name="h"), rule=rule, nodes={"n1": 2, "n2": 8})
    c.fill("ends", 2, 9, "root.h", where=only_on("n1"))
    c.fill("borrows", 3, 0, "root.g.other", where=only_on("n2"), idle=True)
    c.submit("waits", 2, 0, "root.g.a", where=only_on("n1"))
    assert c.run(2_000) == ([], [])
    assert c.nominated() == {"waits": "n1"}
    c.finished("ends")
    assert c.run() == ([], ["borrows"])
    c.gone("borrows")
    assert c.run()[0] == ["waits@n1"]
