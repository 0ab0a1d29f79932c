"""When room is made by guarantee: in the ask's own turn, not before its delay, and no search twice for nothing."""

from __future__ import annotations

import pytest
import small_clusters
from priority_clusters import PriorityCluster, cores
from small_clusters import SOON, application, ask, guaranteed, restarted, started, submit

from fairlead.core.acts.infeasible import ATTEMPT_EVERY_MS
from fairlead.core.model.decisions import Evict
from fairlead.core.model.events import Release
from fairlead.core.model.resources import Limits
from fairlead.core.model.specs import LimitSpec, QueueSpec
from fairlead.policy.preemption.when import ATTEMPTS_MAX

DELAY_MS = 10_000


def cluster(guaranteed: int = 2, **more: object) -> PriorityCluster:
    """`a` is guaranteed so much and has nothing; `b` has all four cores of the node, and no guarantee worth a core."""
    a = QueueSpec(
        name="a",
        guaranteed=cores(guaranteed),
        properties={"preemption.delay": f"{DELAY_MS}ms"},
        **more,  # type: ignore[arg-type]
    )
    b = QueueSpec(name="b", guaranteed=Limits({"vcore": 1}))
    c = PriorityCluster(a, b, rule="guarantee")
    for at in range(4):
        c.fill(f"b{at}", 1, 0, "root.b")
    return c


def test_nothing_is_stopped_before_the_delay_is_over() -> None:
    c = cluster()
    c.submit("w", 1)
    assert c.run(DELAY_MS - 1) == ([], [])
    assert c.run(1) == ([], ["b3"])


def test_the_order_tells_for_what_and_by_which_rule() -> None:
    c = cluster()
    c.submit("w", 1)
    c.run(DELAY_MS)
    [order] = c.evictions()
    assert isinstance(order, Evict)
    assert (order.on_behalf_of, order.rule, order.node) == ("w", "guarantee", "n1")
    assert "preempted by w from application w in root.a" in order.message


def test_the_asks_of_an_application_try_in_their_order() -> None:
    """One is not ahead of a larger one that came before it because its equal, for which room is made, came first."""
    nodes = {f"n{i}": i for i in (1, 2)}
    s = small_clusters.cluster(guaranteed("a", 3, properties=SOON), QueueSpec(name="b"), nodes=nodes)
    for i in range(3):
        submit(s, f"b{i}", 1, queue="root.b")
    assert len(started(s.schedule(0))) == 3
    application(s, "w")
    for key, count in (("first", 1), ("second", 2), ("third", 1)):
        ask(s, "w", key, count)
    decided = s.schedule(1_000)
    assert [d.on_behalf_of for d in decided if isinstance(d, Evict)] == ["w/first", "w/second", "w/second"]


def test_the_node_is_set_aside_for_the_ask() -> None:
    """What the victim leaves is taken by no other."""
    c = cluster()
    c.submit("w", 1)
    c.run(DELAY_MS)
    c.submit("small", 1, 0, "root.b")
    c.gone("b3")
    assert c.run()[0] == ["w@n1"]


def test_an_ask_stops_work_once() -> None:
    c = cluster()
    c.submit("w", 1)
    c.run(DELAY_MS)
    for _ in range(5):
        assert c.run(ATTEMPT_EVERY_MS) == ([], [])


def test_equal_asks_stop_work_one_after_the_other_up_to_the_guarantee() -> None:
    """While the only node is set aside for one of them, none is left for the next."""
    c = cluster()
    for key in ("w1", "w2", "w3"):
        c.submit(key, 1)
    assert c.run(DELAY_MS)[1] == ["b3"]
    c.gone("b3")
    assert c.run(ATTEMPT_EVERY_MS) == (["w1@n1"], ["b2"])
    c.gone("b2")
    assert c.run(ATTEMPT_EVERY_MS) == (["w2@n1"], []), "the guarantee is used up"


def test_a_limit_that_would_hold_it_back_anyway_stops_nothing() -> None:
    """As soon as that moves, it may."""
    c = cluster(limits=(LimitSpec(users=("*",), max_resources=Limits({"vcore": 500})),))
    c.submit("w", 1)
    assert c.run(DELAY_MS) == ([], [])
    assert c.run(10 * ATTEMPT_EVERY_MS) == ([], [])


def test_what_is_too_large_for_every_node_makes_no_attempt() -> None:
    """And keeps no timer."""
    c = cluster(guaranteed=9)
    c.submit("w", 5)
    c.run(DELAY_MS)
    part = c.s.cluster.partitions["default"]
    assert len(part.nodes.oversize) == 1
    assert not [timer for timer in c.s.cluster.timers.pending() if (timer.kind, timer.subject) == ("preempt", "w")]
    c.node("n2", 5)
    assert c.run()[0] == ["w@n2"]


def test_only_so_many_searches_are_made_in_one_visit_to_a_leaf() -> None:
    """The rest has its turn in the next run; all of them are made in the end."""
    c = cluster(guaranteed=99)
    for at in range(ATTEMPTS_MAX + 5):
        c.submit(f"w{at:02}", 4, at)
    c.submit("small", 1, 99)
    assert c.run(DELAY_MS)[1] != []


@pytest.mark.parametrize("restart_ms", [None, 7_900])
def test_a_long_batch_tries_after_a_restart_when_it_would_have_without(restart_ms: int | None) -> None:
    """It had tried in vain a moment before, and asks came since that had not: they wait for its next time."""
    first = guaranteed("a", 8, properties=SOON)
    s = small_clusters.cluster(first, QueueSpec(name="b"), nodes={"n1": 4})
    for app in ("mine", "many"):
        application(s, app)
    for at in range(4):
        ask(s, "mine", f"m{at}")
    told: list[tuple[int, str]] = []
    for now in range(10, 8_200, 50):
        for number in range((now - 50) // 30 + 1, now // 30 + 1):
            ask(s, "many", f"k{number:03}", 1, now)
        if now == 8_010:
            for at in range(4):
                s.handle(Release("mine", f"m{at}"), now)
                submit(s, f"v{at}", 1, now, "root.b", node="n1")
        if now - 50 < (restart_ms or 0) <= now:
            s = restarted(s)
        told += [(now, d.key) for d in s.schedule(now) if isinstance(d, Evict)]
    assert told == [(8_010, "v3")]


@pytest.mark.parametrize("waits", [True, False])
def test_that_something_may_try_is_a_change_only_if_it_waits_still(waits: bool) -> None:
    """What started in its turn while others waited was stopped for one of them when the time of a third came that had
    started long before.
    """
    c = cluster()
    partition = c.s.cluster.partitions["default"]
    if not waits:
        c.finished("b0")
    c.submit("w", 1)
    assert len(c.run()[0]) == (not waits)
    before = partition.changed_seq
    c.run(DELAY_MS)
    assert (partition.changed_seq > before) is waits


def test_a_node_that_another_has_had_for_an_hour_is_tried_then() -> None:
    """Of a lower priority, for which nothing was stopped: nothing else says that the node may be taken by now."""
    c = cluster(guaranteed=3)
    for name in ("n2", "n3"):
        c.node(name, 2)
    c.submit("low", 3, -1, "root.b")
    c.run(3_000)
    c.submit("high", 3, 0)
    for _ in range(5):
        assert c.run(20_000) == ([], [])
    assert c.run(3_600_000 - 101_000)[1] == []
    assert len(c.run(20_000)[1]) == 3
