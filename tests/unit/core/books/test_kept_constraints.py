"""What an ask for which work was told to stop keeps beside room: its ports, its distance to others, its place to run.

The rules themselves are scenarios: `tests/scenarios/data/promises.jsonl`.
"""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from invariants.books import check_books
from priority_clusters import PriorityCluster, labelled

from fairlead.core.model.constraints import HOSTNAME, AffinityTerm, Constraints, Requirement, SpreadTerm
from fairlead.core.model.events import Configure, LabelNode, Release, UpdateNode
from fairlead.core.model.reasons import ApplicationsPromised, NoNodeSuits
from fairlead.core.model.resources import Limits, Resources
from fairlead.core.model.specs import LimitSpec, QueueSpec
from fairlead.insight.unblock import unblock
from fairlead.scheduler import Scheduler

PORT = Constraints(ports=("TCP/0.0.0.0/80",))
NEAR_X = AffinityTerm(labelled("x"), HOSTNAME)
X = {"app": "x"}


@pytest.mark.timeout(60)
def test_what_is_taken_from_a_weaker_ask_it_does_not_take_back() -> None:
    """A node uses more than it has, so the sum is what both need: nobody else has to stop for the stronger one, and yet
    what leaves for the weaker one is promised to it."""
    low = QueueSpec(name="c", properties={"priority.offset": "-2"})
    c = PriorityCluster(QueueSpec(name="a"), low, nodes={"n0": 7})
    c.fill("w0", 7, 9)
    c.node("n1", 6)
    c.fill("w1", 4, 9)
    c.submit("n1only", 2, 0, queue="root.c")
    assert c.run()[0] == ["n1only@n1"]
    c.node("n2", 2)
    c.fill("victim", 2, queue="root.c")
    c.finished("n1only")
    c.handle(UpdateNode("n0", Resources({"vcore": 5_000})))
    c.submit("weaker", 2, 6, queue="root.c")
    assert c.run() == ([], ["victim"])
    assert c.nominated() == {"weaker": "n2"}
    c.submit("stronger", 2, 6)
    assert c.run() == ([], [])
    assert c.nominated() == {"stronger": "n1"}
    c.gone("victim")
    assert c.run() == (["stronger@n1"], [])


def stopped_for(where: Constraints, of_a: int = 0, **more: object) -> PriorityCluster:
    """`low` leaves n1 for `high`; beside them are 2 cores on n1, and 4 on n2; `of_a` applications may run in `a`."""
    c = PriorityCluster(QueueSpec(name="a", max_applications=of_a), QueueSpec(name="b"), nodes={"n1": 8})
    c.fill("low", 6, queue="root.b")
    c.submit("high", 8, 5, where=where, **more)
    assert c.run() == ([], ["low"])
    c.node("n2", 4)
    return c


@pytest.mark.parametrize(
    ("mine", "theirs", "labels"),
    [
        (Constraints(anti_affinity=(NEAR_X,)), Constraints(), X),
        (Constraints(affinity=(NEAR_X,)), Constraints(), X),
        (
            Constraints(spread=(SpreadTerm(labelled("x"), HOSTNAME),)),
            Constraints(spread=(SpreadTerm(labelled("x"), HOSTNAME),)),
            X,
        ),
    ],
    ids=["apart", "first", "spread"],
)
def test_a_restart_keeps_what_is_promised(mine: Constraints, theirs: Constraints, labels: dict[str, str]) -> None:
    """Who was kept off before is kept off after it, and both go on alike."""
    c = stopped_for(replace(mine, ports=PORT.ports), of_a=1, labels=X)
    c.submit("place", 1)
    c.submit("other", 1, queue="root.b", where=theirs, labels=labels)
    c.submit("port", 1, queue="root.b", where=replace(PORT, selector=(Requirement(HOSTNAME, "In", ("n1",)),)))
    written = json.dumps(c.s.dump())
    again = Scheduler.load(json.loads(written))
    check_books(again)
    assert json.dumps(again.dump()) == written
    for now_ms in (10, 20):
        assert again.schedule(now_ms) == c.s.schedule(now_ms)
        assert again.why("place", "place") == c.s.why("place", "place")
        event = Release("low", "low") if now_ms == 10 else Release("high", "high")
        assert again.handle(event, now_ms) == c.s.handle(event, now_ms)
        check_books(again)
    assert json.dumps(again.dump()) == json.dumps(c.s.dump())


@pytest.mark.parametrize("spread", [True, False])
def test_plain_work_is_kept_off_too(spread: bool) -> None:
    """What `high` must not be with, or is spread among, is all that lacks a label: that is true of plain work."""
    lacking = (Requirement("tame", "DoesNotExist"),)
    apart = Constraints(anti_affinity=(AffinityTerm(lacking, HOSTNAME),))
    among = Constraints(spread=(SpreadTerm(lacking, HOSTNAME, max_skew=1),))
    c = PriorityCluster(nodes={"n1": 8})
    if spread:
        c.fill("stays", 1, 9)
    c.fill("low", 5, queue="root.b")
    c.submit("high", 5 if spread else 6, 5, where=among if spread else apart, labels={"tame": "no"})
    c.node("n2", 1)
    assert c.run() == ([], ["low"])
    c.submit("plain", 2, queue="root.b")
    assert c.run() == ([], [])
    reason = c.s.why("plain", "plain")
    assert isinstance(reason, NoNodeSuits)
    assert reason.excluded == {"promised": 1, "too-small": 1}
    c.handle(Release("high", "high"))
    assert c.run() == (["plain@n1"], [])


@pytest.mark.parametrize("stopped", [True, False])
def test_another_first_one_is_kept_off_while_the_last_one_leaves(stopped: bool) -> None:
    """`first` wants to be with its like, and is to be the first of them once what is stopped for it has gone.

    Until then nothing like it starts in another zone, where it could not follow.
    """
    c = PriorityCluster()
    c.handle(LabelNode("n1", {"zone": "a"}))
    zone = Constraints(affinity=(AffinityTerm(labelled("x"), "zone"),), selector=(Requirement("zone", "In", ("a",)),))
    c.fill("low", 4, 0, "root.b", labels=X if stopped else {})
    c.node("n2", 2, zone="b")
    c.submit("first", 4, 5, where=zone, labels=X)
    assert c.run() == ([], ["low"])
    c.submit("other", 2, queue="root.b", labels=X)
    assert c.run() == ([], [])
    c.gone("low")
    assert c.run() == (["first@n1", "other@n2"], [])


@pytest.mark.parametrize("robbed", [True, False])
def test_no_group_is_begun_apart_from_where_one_of_it_is_to_start(robbed: bool) -> None:
    """`plain` is to start in zone a, and is of the kind that `choosy` wants to be with.

    A place in zone b would be lost as soon as `plain` runs. So nothing is stopped there, and what is free is not taken.
    """
    c = PriorityCluster()
    c.handle(LabelNode("n1", {"zone": "a"}))
    c.fill("low", 4, 0, "root.b")
    c.node("n2", 2, zone="b")
    c.fill("small", 2, 0, "root.b")
    c.submit("plain", 4, 5, labels=X)
    assert c.run() == ([], ["low"])
    near = Constraints(affinity=(AffinityTerm(labelled("x"), "zone"),))
    c.submit("choosy", 2, 4, where=near, labels=X)
    assert c.run() == ([], [])
    c.finished("small")
    assert c.run() == ([], [])
    if robbed:
        c.submit("strong", 4, 9)
        assert c.run() == (["choosy@n2"], [])
        return
    c.gone("low")
    assert c.run() == (["plain@n1"], [])
    c.finished("plain")
    assert c.run() == (["choosy@n1"], [])


def test_what_is_promised_counts_where_there_is_the_least_too() -> None:
    """There is one zone only, so that no place in it is ahead of another, whatever is to start there."""
    c = PriorityCluster()
    for name in ("n2", "n3"):
        c.node(name, 4, zone="a")
    c.fill("low", 4, queue="root.b")
    c.fill("low2", 4, queue="root.b")
    c.fill("low3", 4, queue="root.b", where=Constraints(selector=(Requirement("zone", "In", ("a",)),)))
    c.node("n4", 2, zone="a")
    c.submit("high", 4, 5, where=Constraints(selector=(Requirement("zone", "In", ("a",)),)), labels=X)
    assert c.run()[1]
    assert c.nominated()["high"] in ("n2", "n3")
    c.submit("even", 2, where=Constraints(spread=(SpreadTerm(labelled("x"), "zone", max_skew=1),)), labels=X)
    assert c.run() == (["even@n4"], [])


def test_what_is_only_promised_does_not_yet_let_what_is_spread_start() -> None:
    """In one zone there is one of its like more than in the other: it may start there once another has started here."""
    c = PriorityCluster(nodes={"c1": 1})
    c.node("a1", 2, zone="a")
    c.node("b1", 4, zone="b")
    c.fill("x", 1, 10, labels=X, where=Constraints(selector=(Requirement("zone", "In", ("a",)),)))
    c.fill("low", 4, queue="root.b")
    where = Constraints(
        selector=(Requirement("zone", "In", ("a",)),), spread=(SpreadTerm(labelled("x"), "zone", only_selected=False),)
    )
    c.submit("even", 1, 9, where=where, labels=X)
    assert c.run() == ([], [])
    c.submit("high", 4, 5, where=Constraints(selector=(Requirement("zone", "In", ("b",)),)), labels=X)
    assert c.run() == ([], ["low"])
    assert c.run() == ([], []), "it has not started yet"
    c.gone("low")
    assert c.run() == (["high@b1", "even@a1"], [])


def test_what_is_spread_is_looked_at_again_when_more_is_promised() -> None:
    """One is to start in zone a, so that another there would be ahead; until one is to start in zone b as well."""
    c = PriorityCluster(nodes={"c1": 1})
    c.node("a1", 4, zone="a")
    c.node("b1", 4, zone="b")
    in_a, in_b = (Requirement("zone", "In", (zone,)) for zone in "ab")
    for key, zone in (("low-a", in_a), ("low-b", in_b)):
        c.fill(key, 4, queue="root.b", where=Constraints(selector=(zone,)))
    c.node("a2", 1, zone="a")
    c.submit("high-a", 4, 5, where=Constraints(selector=(in_a,)), labels=X)
    assert c.run() == ([], ["low-a"])
    spread = SpreadTerm(labelled("x"), "zone", only_selected=False)
    c.submit("even", 1, where=Constraints(selector=(in_a,), spread=(spread,)), labels=X)
    assert c.run() == ([], [])
    c.submit("high-b", 4, 5, where=Constraints(selector=(in_b,)), labels=X)
    assert c.run() == (["even@a2"], ["low-b"])


def test_room_that_gathers_is_mere_room() -> None:
    """`late` waited for too long, and room gathers for it on the only node: the port there is not its own for that."""
    c = PriorityCluster(QueueSpec(name="a", properties={"wait.max": "10s"}), nodes={"n1": 4})
    c.fill("early", 1, where=PORT, time_limit_ms=60_000)
    c.submit("late", 1, where=PORT)
    assert c.run() == ([], [])
    assert c.run(11_000) == ([], [])
    assert c.nominated() == {"late": "n1"}
    c.finished("early")
    assert c.run() == (["late@n1"], [])


def test_a_place_under_a_new_queue_file() -> None:
    """A higher number lets the next one run at once; a place is kept under the new number as well."""
    c = stopped_for(Constraints(), of_a=1)
    c.submit("one", 1)
    c.submit("two", 1)
    assert c.run() == ([], [])
    assert c.s.why("one", "one") == ApplicationsPromised("queue", "", "root.a", 0, 1, ("high",))
    assert {change["sentence"] for change in unblock(c.s, "one", "one")} >= {
        "runs if its priority were 6 (now 0; 5 is not enough)",
        "runs if root.a might run 2 applications (now 1)",
        "runs if high were gone",
    }
    part = c.spec.partitions[0]
    queues = (QueueSpec(name="a", max_applications=2), QueueSpec(name="b"))
    c.handle(Configure(replace(c.spec, partitions=(replace(part, root=replace(part.root, queues=queues)),))))
    assert c.run() == (["one@n2"], [])
    assert c.s.why("two", "two") == ApplicationsPromised("queue", "", "root.a", 1, 2, ("high",))
    c.gone("low")
    assert c.run() == (["high@n1"], [])


def test_why_it_is_kept_off() -> None:
    """A port that is promised is another reason than one that is in use."""
    c = stopped_for(PORT)
    c.submit("other", 1, queue="root.b", where=replace(PORT, selector=(Requirement(HOSTNAME, "In", ("n1",)),)))
    reason = c.s.why("other", "other")
    assert isinstance(reason, NoNodeSuits)
    assert reason.excluded == {"promised": 1, "selector": 1}
    c.gone("low")
    assert c.run() == (["high@n1"], [])
    reason = c.s.why("other", "other")
    assert isinstance(reason, NoNodeSuits)
    assert reason.excluded == {"ports": 1, "selector": 1}


def test_idle_work_leaves_its_user_the_room_that_is_promised() -> None:
    """Under a user's limit what he needs for whom work was stopped is promised: his idle work waits for it too."""
    ann = LimitSpec(users=("nobody",), max_resources=Limits({"vcore": 3_000}))
    c = PriorityCluster(QueueSpec(name="a", limits=(ann,)), QueueSpec(name="b"), nodes={"n1": 4})
    c.fill("low", 4, queue="root.b")
    c.submit("high", 3, 5)
    assert c.run() == ([], ["low"])
    c.node("n2", 1)
    c.submit("spare", 1, idle=True)
    assert c.run() == ([], []), "with it high could not start"
    c.gone("low")
    assert c.run() == (["high@n1"], [])
    c.finished("high")
    assert c.run()[0] == ["spare@n1"]


def two_of_a_spread(**low: object) -> PriorityCluster:
    """At most two more may be on a node than on the other. For `one` and `two` of a spread `low` leaves."""
    c = PriorityCluster()
    c.fill("low", 4, **low)
    c.node("n2", 2)
    c.fill("beside", 2, 1)
    even = Constraints(spread=(SpreadTerm(labelled("x"), HOSTNAME, max_skew=2),))
    c.submit("one", 2, 5, where=even, labels=X)
    c.submit("two", 2, 5, where=even, labels=X)
    assert c.run() == ([], ["low"])
    assert c.nominated() == {"one": "n1", "two": "n1"}
    return c


def test_what_leaves_for_work_of_a_spread_does_not_count_for_what_is_promised() -> None:
    """It is of the same kind, and will be gone: `two` is not in the way of `one`, and `beside` goes on."""
    c = two_of_a_spread(labels=X)
    c.gone("low")
    assert c.run() == (["one@n1", "two@n1"], [])


def test_what_is_promised_of_a_spread_counts_once() -> None:
    """`two` is not in its own way: what is kept for it stays kept while `one` starts."""
    c = two_of_a_spread()
    c.gone("low")
    c.s.schedule(10, 1)
    assert c.nominated() == {"two": "n1"}
