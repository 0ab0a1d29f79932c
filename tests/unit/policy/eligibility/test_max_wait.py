"""Kept turns: an administrator's reservation for one task, the bound on waiting, and backfill past them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from invariants.books import check_books
from priority_clusters import PriorityCluster, labelled, on, only_on

from fairlead.core.model.constraints import AffinityTerm, Constraints
from fairlead.core.model.decisions import Allocated, AskRejected, Decision, Evict, ReservationSwitched, Unreserved
from fairlead.core.model.events import (
    AddApplication,
    AddAsks,
    AddNode,
    Cause,
    ChangeAsk,
    DrainNode,
    MoveApplication,
    Release,
    ReserveAsk,
    SetPriority,
    UndrainNode,
    UpdateNode,
)
from fairlead.core.model.reasons import HeldForReservation
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
)
from fairlead.scheduler import Scheduler

MINUTE, HOUR = 60_000, 3_600_000
GIB = 1 << 30


def amount(cores: int, gib: int) -> Resources:
    return Resources({"vcore": cores * 1000, "memory": gib * GIB})


class Place:
    """One queue `root.q` with its own quota, and `root.other` without."""

    def __init__(
        self, properties: dict[str, str] | None = None, most: int | None = 4, node: int = 100, *, preempts: bool = False
    ) -> None:
        limits = None if most is None else Limits({"vcore": most * 1000, "memory": 2 * most * GIB})
        leaves = (QueueSpec(name="q", max=limits, properties=properties or {}), QueueSpec(name="other"))
        root = QueueSpec(name="root", parent=True, submit_acl="*", queues=leaves)
        preemption = PreemptionSpec(rule="priority", enabled=preempts)
        self.s = Scheduler(ClusterSpec(partitions=(PartitionSpec(root=root, preemption=preemption),)))
        self.now = 0
        self.s.handle(AddNode(NodeSpec(id="n", capacity=amount(node, 2 * node))), 0)

    def submit(self, name: str, cores: int, priority: int = 0, queue: str = "root.q", limit: int | None = None) -> None:
        self.s.handle(AddApplication(ApplicationSpec(id=name, queue=queue)), self.now)
        ask = AskSpec(
            application=name, key=name, resources=amount(cores, 2 * cores), priority=priority, time_limit_ms=limit
        )
        self.s.handle(AddAsks((ask,)), self.now)

    def end(self, name: str) -> None:
        self.s.handle(Release(name, name, Cause.FINISHED), self.now)

    def reserve(self, name: str, on: bool = True) -> list[Decision]:
        return self.s.handle(ReserveAsk(name, name, on, "ann", "a deadline"), self.now)

    def run(self, at: int | None = None) -> list[str]:
        """What starts by then."""
        if at is not None:
            self.now = at
        decisions: list[Decision] = []
        while more := self.s.schedule(self.now):
            decisions += more
        check_books(self.s)
        return [d.application for d in decisions if isinstance(d, Allocated)]


def test_the_timeline_of_a_reservation() -> None:
    """Queue full at 10:00; B passes A; with a reservation for A nobody below does; when A runs, it is over."""
    p = Place(most=5)
    p.now = 9 * HOUR
    for name, cores in (("r1", 1), ("r2", 2), ("r3", 2)):
        p.submit(name, cores)
    assert p.run() == ["r1", "r2", "r3"]
    p.now = 10 * HOUR
    for name, cores, priority in (("A", 4, 6), ("B", 1, 4), ("C", 2, 4), ("D", 1, 2)):
        p.submit(name, cores, priority)
    assert p.run() == []
    p.now = 11 * HOUR
    p.end("r1")
    assert p.run() == ["B"]
    p.now += 5 * MINUTE
    assert p.reserve("A")[-1] == ReservationSwitched("A", "A", True, "ann", "a deadline")
    assert p.run() == []
    p.now += 5 * MINUTE
    p.end("r2")
    assert p.run() == []
    p.now += 5 * MINUTE
    p.end("r3")
    assert p.run() == ["A"]
    p.now += 5 * MINUTE
    p.end("B")
    assert p.run() == ["D"]


def test_a_small_task_passes_a_large_one() -> None:
    """Default backfill: A (8) was created before B (4); both wait at 1 free; at 4 free B runs."""
    p = Place(most=8)
    p.submit("r1", 4)
    p.submit("r2", 3)
    p.submit("r3", 1)
    p.run()
    p.submit("A", 8)
    p.submit("B", 4)
    p.end("r3")
    assert p.run(10 * HOUR) == []
    p.end("r2")
    assert p.run(11 * HOUR) == ["B"]


def test_the_same_and_higher_priorities_are_not_held_back() -> None:
    """A reservation holds back what is below it, in its own queue only."""
    p = Place(most=4)
    p.submit("r", 1)
    p.run()
    p.submit("A", 4, 5)
    p.reserve("A")
    p.submit("below", 1, 4)
    p.submit("same", 1, 5)
    p.submit("above", 1, 6)
    p.submit("else", 1, 0, queue="root.other")
    assert sorted(p.run()) == ["above", "else", "same"]
    why = p.s.why("below", "below")
    assert why == HeldForReservation("root.q", "A/A", 5, 0, "ann", "a deadline")


def test_a_reservation_ends_when_it_is_switched_off_or_its_ask_is_gone() -> None:
    """What was held back runs then."""
    for end in ("off", "withdrawn", "moved", "raised"):
        p = Place(most=4)
        p.submit("r", 2)
        p.run()
        p.submit("A", 4, 5)
        p.reserve("A")
        p.submit("below", 1, 4)
        assert p.run() == []
        if end == "off":
            assert p.reserve("A", on=False)[-1] == ReservationSwitched("A", "A", False, "ann", "a deadline")
        elif end == "withdrawn":
            p.end("A")
        elif end == "moved":
            p.s.handle(MoveApplication("A", "root.other"), 0)
        else:
            p.s.handle(SetPriority("below", "below", 5), 0)
        assert "below" in p.run(), end


def test_an_order_that_makes_no_sense_is_refused() -> None:
    """Of unknown, running and idle work; twice; and switching off what is not on."""
    p = Place()
    p.submit("r", 1)
    p.run()
    p.submit("w", 9)
    p.s.handle(AddApplication(ApplicationSpec(id="i", queue="root.q")), 0)
    p.s.handle(AddAsks((AskSpec(application="i", key="i", resources=amount(1, 1), idle=True),)), 0)
    orders = [
        (ReserveAsk("x", "x", True), "nothing waits under x/x"),
        (ReserveAsk("r", "r", True), "nothing waits under r/r"),
        (ReserveAsk("i", "i", True), "i/i is idle work"),
        (ReserveAsk("w", "w", False), "w/w has no reservation"),
        (ReserveAsk("w", "w", True), ""),
        (ReserveAsk("w", "w", True), "w/w has a reservation already"),
    ]
    for order, said in orders:
        [decision] = p.s.handle(order, 0)
        assert isinstance(decision, AskRejected) is bool(said)
        assert not isinstance(decision, AskRejected) or decision.reason.sentence().startswith(said)


def test_who_waited_long_enough_gets_a_reservation_by_itself() -> None:
    """The oldest first, one at a time; small work of the same priority does not pass it any longer."""
    p = Place({"wait.max": "2h"}, most=4)
    p.submit("r", 2)
    p.run()
    p.submit("A", 4)
    p.now = MINUTE
    p.submit("B", 3)
    p.now = HOUR
    p.submit("small", 1)
    assert p.run() == ["small"]
    assert p.s.next_wakeup_ms() is not None
    p.run(2 * HOUR)
    p.submit("late", 1)
    assert p.run(2 * HOUR + 2 * MINUTE) == []
    why = p.s.why("late", "late")
    assert isinstance(why, HeldForReservation)
    assert why.why == "it has waited for 2h, the wait.max of its queue"
    assert [a.key for a, _ in p.s.cluster.partitions["default"].reserving.every()] == ["A"]
    p.end("r")
    assert p.run(3 * HOUR) == []
    p.end("small")
    assert p.run() == ["A"]
    p.end("A")
    assert p.run(4 * HOUR) == ["B", "late"]


def test_what_can_never_run_gets_no_reservation() -> None:
    """It would hold its queue back for ever; when a node that is large enough comes, it gets one."""
    p = Place({"wait.max": "1m"}, most=None, node=4)
    p.submit("r", 2)
    p.run()
    p.submit("huge", 8)
    p.submit("late", 2)
    assert p.run(HOUR) == ["late"]
    p.s.handle(AddNode(NodeSpec(id="large", capacity=amount(7, 16), schedulable=True)), HOUR)
    p.run()
    assert not p.s.cluster.partitions["default"].reserving.of
    p.s.handle(AddNode(NodeSpec(id="larger", capacity=amount(8, 16))), HOUR)
    p.submit("x", 1)
    assert "huge" in p.run()


def test_other_queues_do_not_fill_the_node_for_ever() -> None:
    """For who waited too long the room of one node gathers; what others leave free of it they may use."""
    p = Place({"wait.max": "1m"}, most=None, node=4)
    for name in ("a", "b", "c", "d"):
        p.submit(name, 1, queue="root.other")
    p.run()
    p.submit("A", 3)
    p.run(2 * MINUTE)
    for name in ("e", "f", "g"):
        p.submit(name, 1, queue="root.other")
    for ended, starts in (("a", []), ("b", []), ("c", ["A"]), ("d", ["e"])):
        p.end(ended)
        assert p.run() == starts
    assert p.s.why("f", "f") is not None


def test_easy_backfill_lets_pass_what_ends_in_time() -> None:
    """And what leaves enough for the reserved one; nothing that has no limit and is in its way."""
    p = Place({"backfill": "easy"}, most=6)
    p.submit("r", 4, limit=HOUR)
    p.run()
    p.submit("A", 5, 5)
    p.reserve("A")
    assert p.s.expected_start_ms("A", "A") == HOUR
    p.submit("endless", 2)
    p.submit("long", 2, limit=HOUR + 1)
    p.submit("short", 1, limit=HOUR)
    p.submit("beside", 1)
    assert p.run() == ["short", "beside"]
    assert p.s.expected_start_ms("A", "A") == HOUR
    p.end("r")
    p.end("short")
    assert p.run(HOUR) == ["A"]


def test_what_ends_later_than_was_declared_lets_more_pass() -> None:
    """The time limit of running work is changed: the next run counts with it, with nothing else to tell it."""
    p = Place({"backfill": "easy"}, most=6)
    p.submit("r", 4, limit=HOUR)
    p.run()
    p.submit("A", 5, 5)
    p.reserve("A")
    p.submit("long", 2, limit=HOUR + 1)
    assert p.run() == []
    p.s.handle(ChangeAsk("r", "r", amount(4, 8), 2 * HOUR, "ann", "it takes longer"), 0)
    assert p.run() == ["long"]


def test_without_limits_the_start_is_unknown_and_nothing_passes() -> None:
    """Nobody knows when work without a time limit ends."""
    p = Place({"backfill": "easy"}, most=4)
    p.submit("r", 3)
    p.run()
    p.submit("A", 4, 5)
    p.reserve("A")
    p.submit("short", 1, limit=1)
    assert p.run() == []
    assert p.s.expected_start_ms("A", "A") is None
    assert p.s.expected_start_ms("r", "r") is None


def test_a_free_queue_lets_nothing_pass() -> None:
    """Without `backfill: easy` what is held back waits, however short."""
    p = Place(most=4)
    p.submit("r", 3, limit=HOUR)
    p.run()
    p.submit("A", 4, 5)
    p.reserve("A")
    p.submit("short", 1, limit=1)
    assert p.run() == []


def test_what_ends_in_time_passes_though_it_is_not_the_first_of_its_kind() -> None:
    """Asks of one application that are alike but for their time limit: each is asked for itself."""
    p = Place({"backfill": "easy"}, most=6)
    p.submit("runs", 4, limit=HOUR)
    assert p.run() == ["runs"]
    p.submit("kept", 6, priority=5, limit=HOUR)
    p.reserve("kept")
    p.s.handle(AddApplication(ApplicationSpec(id="many", queue="root.q")), p.now)
    for key, limit in (("long", 2 * HOUR), ("unlimited", None), ("short", HOUR)):
        ask = AskSpec(application="many", key=key, resources=amount(1, 2), time_limit_ms=limit)
        wide = AskSpec(application="many", key=f"{key} and wide", resources=amount(2, 4), time_limit_ms=limit)
        p.s.handle(AddAsks((wide, ask)), p.now)
    p.s.schedule(p.now)
    running = [a.key for a in p.s.cluster.partitions["default"].applications["many"].allocated_asks()]
    assert running == ["short and wide"]


def test_no_turn_is_kept_for_what_no_node_that_takes_work_could_hold() -> None:
    """The only node that is large enough takes no new work: the next has the turn, and then the first again."""
    p = Place({"wait.max": "1m"}, most=None, node=4)
    p.s.handle(AddNode(NodeSpec(id="small", capacity=amount(2, 4))), 0)
    p.submit("r1", 4)
    p.submit("r2", 2)
    p.run()
    p.submit("large", 3)
    p.submit("later", 1)
    p.run(2 * MINUTE)

    def kept() -> list[str]:
        return [ask.key for ask, _ in p.s.cluster.partitions["default"].reserving.every()]

    assert kept() == ["large"]
    # While something of a higher priority waits no room is kept for it, so that the end of that says nothing.
    p.submit("urgent", 4, 5)
    p.run()
    p.s.handle(DrainNode("n"), p.now)
    p.run()
    assert kept() == ["later"]
    p.s.handle(DrainNode("small"), p.now)
    p.run()
    assert kept() == []
    p.s.handle(UndrainNode("n"), p.now)
    p.run()
    assert kept() == ["large"]


@pytest.mark.parametrize("idle", [False, True], ids=["by-floors", "by-search"])
def test_room_that_gathers_for_an_ask_keeps_its_equals_from_stopping_work_and_not_itself(idle: bool) -> None:
    """Two of three cores are kept for A; only with these is it enough to stop what has the third. Where idle work runs,
    no floor says that B need not be looked at.
    """
    p = Place({"wait.max": "10s"}, most=None, node=3, preempts=True)
    if idle:
        p.s.handle(AddNode(NodeSpec(id="m", capacity=amount(1, 2))), 0)
        p.s.handle(AddApplication(ApplicationSpec(id="idle", queue="root.other")), 0)
        spec = AskSpec(application="idle", key="idle", resources=amount(1, 2), idle=True, node="m")
        p.s.handle(AddAsks((spec,)), 0)
        p.run()
    p.s.handle(AddApplication(ApplicationSpec(id="young", queue="root.other")), 0)
    young = AskSpec(application="young", key="young", resources=amount(1, 2), priority=-1, min_runtime_ms=MINUTE)
    p.s.handle(AddAsks((young,)), 0)
    p.submit("strong", 2, 5, queue="root.other")
    p.run()
    p.submit("B", 3, queue="root.other")
    p.submit("A", 3)
    p.run(20_000)
    p.end("strong")
    p.run()
    assert [ask.key for ask in p.s.cluster.partitions["default"].nominations] == ["A"]
    stopped = [d for d in p.s.schedule(2 * MINUTE) if isinstance(d, Evict)]
    assert [(d.key, d.on_behalf_of) for d in stopped] == [("young", "A")]


@pytest.mark.parametrize("rule", ["priority", "both"])
@pytest.mark.parametrize("priority", [5, 1])
def test_what_waited_too_long_leaves_the_room_of_its_parent_to_what_goes_before_it(rule: str, priority: int) -> None:
    """A queue above them empties for the first, of the same priority or a higher one; the other waited too long, too,
    in another leaf, and takes none of it.
    """
    leaves = tuple(QueueSpec(name=name, properties={"wait.max": "1s"}) for name in "xy")
    c = PriorityCluster(
        QueueSpec(name="c", parent=True, max=Limits({"vcore": 4000}), queues=leaves), nodes={"n1": 10}, rule=rule
    )
    c.fill("runs", 2, 9, "root.c.x")
    c.submit("large", 3, 5, "root.c.y")
    assert c.run(2_000) == ([], [])
    c.submit("small", 1, priority, "root.c.x")
    assert c.run(2_000) == ([], [])
    c.finished("runs")
    assert sorted(c.run()[0]) == ["large@n1", "small@n1"]


@pytest.mark.parametrize("rule", ["priority", "both"])
def test_it_starts_where_there_is_room_first_though_a_later_one_waits_for_their_parent(rule: str) -> None:
    """Room gathers for it on a node that stays full: it takes that of another one."""
    leaves = tuple(QueueSpec(name=name, properties={"wait.max": "1s"}) for name in "xy")
    parent = QueueSpec(name="c", parent=True, max=Limits({"vcore": 6000}), queues=leaves)
    c = PriorityCluster(parent, QueueSpec(name="other"), nodes={"n1": 4, "n2": 5}, rule=rule)
    c.fill("stays", 3, 9, "root.c.x", where=only_on("n1"))
    c.fill("ends", 4, 9, "root.other", where=only_on("n2"))
    c.submit("first", 3, 5, "root.c.y")
    assert c.run(2_000) == ([], [])
    c.submit("later", 2, 5, "root.c.x")
    assert c.run(2_000) == ([], [])
    c.finished("ends")
    assert c.run() == (["first@n2"], [])


@pytest.mark.parametrize("rule", ["priority", "both"])
def test_room_that_gathers_is_in_the_way_of_none_for_which_work_was_stopped(rule: str) -> None:
    """That starts elsewhere as soon as it can: what is weaker would take the room there else."""
    leaves = (QueueSpec(name="x"), QueueSpec(name="y", properties={"wait.max": "1s"}))
    parent = QueueSpec(name="c", parent=True, max=Limits({"vcore": 6000}), queues=leaves)
    nodes = {"n0": 1, "n1": 4, "n2": 4, "n3": 4}
    c = PriorityCluster(parent, QueueSpec(name="other"), nodes=nodes, rule=rule)
    for name, cores, priority, node in (("ends", 3, 9, "n1"), ("low", 3, 0, "n2"), ("stays", 2, 9, "n3")):
        c.fill(name, cores, priority, "root.other", where=only_on(node))
    c.fill("runs", 1, 9, "root.c.x", where=only_on("n0"))
    c.submit("late", 3, 0, "root.c.y")
    assert c.run(2_000) == ([], [])
    c.submit("strong", 3, 5, "root.c.x")
    assert c.run() == ([], ["low"])
    c.submit("weak", 3, -1, "root.other")
    c.finished("ends")
    assert c.run() == (["strong@n1"], [])


@pytest.mark.parametrize("rule", ["priority", "both"])
def test_room_that_gathers_stays_where_all_nodes_together_are_full(rule: str) -> None:
    """One node has become smaller than what runs there; such room is not in the way of what stops work elsewhere."""
    leaves = (QueueSpec(name="a", properties={"wait.max": "1s"}), QueueSpec(name="b"))
    c = PriorityCluster(*leaves, nodes={"n1": 4, "n2": 4, "n3": 6}, rule=rule)
    for name, priority, node in (("wide", 9, "n1"), ("busy", 9, "n2"), ("low", 0, "n3")):
        c.fill(name, 4, priority, "root.b", where=only_on(node))
    c.handle(UpdateNode("n1", Resources({"vcore": 2000})))
    c.submit("late", 2, 0, "root.a", where=only_on("n2"))
    c.run(2_000)
    assert c.nominated() == {"late": "n2"}
    c.submit("strong", 4, 5, "root.b")
    assert c.run() == ([], ["low"])
    assert c.nominated() == {"late": "n2", "strong": "n3"}
    assert not [d for d in c.decided if isinstance(d, Unreserved)]


def test_what_has_a_reservation_from_somebody_does_not_stand_in_for_its_equals() -> None:
    """The next of its kind has waited too long as well, and gets its turn by itself; course 8029 under `both`."""
    place = Place({"wait.max": "1m"})
    place.submit("runs", 3)
    assert place.run() == ["runs"]
    place.s.handle(AddApplication(ApplicationSpec(id="two", queue="root.q")), 0)
    alike = [AskSpec(application="two", key=key, resources=amount(3, 6)) for key in ("first", "second")]
    place.s.handle(AddAsks(tuple(alike)), 0)
    assert place.run() == []
    place.s.handle(ReserveAsk("two", "first", True, "ann", "a deadline"), 0)
    place.run()
    decided = place.s.schedule(MINUTE)
    check_books(place.s)
    assert [(d.key, d.on) for d in decided if isinstance(d, ReservationSwitched)] == [("second", True)]


def test_what_placeholders_stood_in_for_too_long_has_its_turn_kept_once_it_is_in_line() -> None:
    """Its time was over while another one was on its way to the placeholder: nothing but its place in line tells."""
    p = Place({"wait.max": "10m"}, most=4, node=4)

    def ask(key: str, **fields: bool) -> AskSpec:
        return AskSpec(application="g", key=key, resources=amount(2, 4), task_group="t", **fields)

    p.s.handle(AddApplication(ApplicationSpec(id="g", queue="root.q")), 0)
    p.s.handle(AddAsks((ask("p", placeholder=True),)), 0)
    assert p.run() == ["g"]
    p.submit("r", 2)
    assert p.run() == ["r"]
    p.s.handle(AddAsks((ask("r0"), ask("r1"))), 0)
    p.run()
    assert p.run(12 * MINUTE) == []
    kept = p.s.cluster.partitions["default"].reserving
    assert not list(kept.every())
    p.s.handle(Release("g", "p", Cause.PLACEHOLDER_REPLACED), p.now)
    p.run()
    assert [a.key for a, _ in kept.every()] == ["r1"]
    p.submit("late", 1)
    p.end("r")
    assert p.run() == ["g"]


def test_what_work_elsewhere_keeps_off_its_only_node_comes_to_rest() -> None:
    """The node is set aside for it at once, and no room gathers there besides: it has room, which does not help."""
    c = PriorityCluster(QueueSpec(name="a", properties={"wait.max": "1m"}), nodes={"n0": 1}, rule="guarantee")
    for name in ("n1", "n2"):
        c.node(name, 4, zone="z")
    c.fill("web", 1, tags=on("n2"), labels={"app": "web"})
    apart = Constraints(anti_affinity=(AffinityTerm(labelled("web"), "zone"),))
    c.submit("apart", 1, tags=on("n1"), where=apart)
    assert c.run() == ([], [])
    assert c.run(2 * MINUTE) == ([], [])
    assert c.nominated() == {}
    c.finished("web")
    assert c.run() == (["apart@n1"], [])


def test_a_place_that_another_one_takes_in_the_same_call_is_made_again() -> None:
    """`late` needs a place to run. `two` gives its place, which `urgent` takes in its turn; so `one` gives its too."""
    a = QueueSpec(name="a", max_applications=2, properties={"wait.max": "10s"})
    c = PriorityCluster(a, QueueSpec(name="b"), nodes={"n1": 4}, enabled=False)
    for name, queue in (("blocks", "root.b"), ("one", "root.a"), ("two", "root.a")):
        c.fill(name, 1, queue=queue)
    c.submit("late", 4)
    c.run(10_000)
    for name in ("one", "two"):
        c.handle(AddAsks((AskSpec(application=name, key="next", resources=amount(1, 0)),)))
        c.finished(name)
    c.submit("urgent", 1, 5)
    assert c.run()[0] == ["urgent@n1"]
    apps = c.s.cluster.partitions["default"].applications
    assert {name: str(apps[name].state) for name in ("one", "two", "urgent")} == {
        "one": "Accepted",
        "two": "Accepted",
        "urgent": "Running",
    }


def test_so_it_has_where_the_last_placeholder_is_withdrawn() -> None:
    p = Place({"wait.max": "10m"}, most=4, node=4)
    p.submit("r", 4)
    assert p.run() == ["r"]
    p.s.handle(AddApplication(ApplicationSpec(id="g", queue="root.q")), 0)
    real = AskSpec(application="g", key="real", resources=amount(2, 4), task_group="t")
    p.s.handle(AddAsks((real,)), 0)
    p.run(5 * MINUTE)
    p.s.handle(AddAsks((replace(real, key="p", placeholder=True),)), p.now)
    kept = p.s.cluster.partitions["default"].reserving
    p.run(12 * MINUTE)
    assert not list(kept.every())
    p.s.handle(Release("g", "p", Cause.STOPPED_BY_RM), p.now)
    p.run()
    assert [a.key for a, _ in kept.every()] == ["real"]


def test_where_a_gang_has_come_together_a_restart_gives_no_turn_that_was_not_given_before() -> None:
    """What placeholders stood in for is looked at when that is over, and not whenever it is put in line."""
    limit = LimitSpec(users=("ann",), max_resources=Limits({"vcore": 2_000}))
    q = QueueSpec(name="q", max=Limits({"vcore": 5_000}), properties={"wait.max": "10s"})
    c = PriorityCluster(q, QueueSpec(name="other"), nodes={"n": 100}, limits=(limit,))
    c.handle(AddApplication(ApplicationSpec(id="gang", queue="root.q", placeholder_ask=Resources({"vcore": 1_000}))))
    member = AskSpec(application="gang", key="p", resources=Resources({"vcore": 1_000}), task_group="g")
    c.handle(AddAsks((replace(member, placeholder=True),)))
    c.run()
    c.fill("r", 4, queue="root.q")
    c.submit("old", 4, priority=-1, queue="root.q")
    c.submit("ann's", 2, queue="root.q", user="ann")
    c.handle(AddAsks((replace(member, key="one"), replace(member, key="two"))))
    c.run()
    c.handle(Release("gang", "p", Cause.PLACEHOLDER_REPLACED))
    c.run(11_000)
    assert [d.key for d in c.decided if isinstance(d, ReservationSwitched)] == ["old"]
    c.fill("more of ann's", 1, queue="root.other", user="ann")
    assert Scheduler.load(c.s.dump()).schedule(c.now_ms) == c.s.schedule(c.now_ms) == []
