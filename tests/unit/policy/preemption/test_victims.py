"""Victims by guarantee: what may be stopped for an ask at all, and what is preferred."""

from __future__ import annotations

import pytest
from loose_books import application, ask, node, tree
from priority_clusters import PriorityCluster, cores, on
from properties.rank_courses import decided_in

from fairlead.core.books.asks import Ask, Batch
from fairlead.core.books.nominations import Nomination
from fairlead.core.books.partition import Partition
from fairlead.core.books.queues import Queue
from fairlead.core.model.decisions import Evict
from fairlead.core.model.events import Cause
from fairlead.core.model.specs import TAG_REQUIRED_NODE, ClusterSpec, PartitionSpec, QueueSpec
from fairlead.policy.place import allocate
from fairlead.policy.preemption import victims
from fairlead.policy.preemption.queue_snapshot import QueueSnapshots
from fairlead.policy.preemption.victims import (
    Survey,
    by_node,
    candidates,
    fewest,
    idle_candidates,
    missing_on,
    on_behalf_of,
    preference,
    reluctance,
    search_root,
    taint,
)
from fairlead.scheduler import Scheduler

SPEC = ClusterSpec(partitions=(PartitionSpec(root=QueueSpec(name="root")),))
PARTITION = Scheduler(SPEC).cluster.partitions["default"]
"""In it nothing has come."""
DELAY_MS = 30_000
OWED = QueueSpec(name="a", guaranteed=cores(4))
OTHER = QueueSpec(name="b", guaranteed=cores(1))


def queues(**properties: dict[str, str]) -> dict[str, Queue]:
    """`root.p.a` and `root.q.b`, by their last names; the others guarantee no core, so that all they use is above."""
    made = {queue.name: queue for queue in tree("root.p.a", "root.q.b").values()}
    for name, raw in properties.items():
        made[name].set_properties(raw)
    made["b"].guaranteed = {"vcore": 0}
    return made


def running(leaf: Queue, key: str, **spec: object) -> Ask:
    """It started before the last event."""
    made = ask(application(leaf, key), key, **spec)  # type: ignore[arg-type]
    made.node = node("n", vcore=9)
    made.app.allocations = 1
    leaf.add_allocated(made.items)
    return made


def found(q: dict[str, Queue], priority: int = 0) -> list[str]:
    """The keys of what may be stopped for an ask of `a`."""
    preemptor = ask(application(q["a"], "w"), "w", priority=priority)
    return [victim.key for victim in candidates(Survey(PARTITION), preemptor, QueueSnapshots(q["a"]))]


def test_what_is_above_its_guarantee_elsewhere_may_go() -> None:
    q = queues()
    running(q["b"], "victim")
    running(q["a"], "own")
    assert found(q) == ["victim"], "the own queue is spared"


def test_a_queue_within_its_guarantee_gives_nothing() -> None:
    q = queues()
    running(q["b"], "victim")
    q["b"].guaranteed = {"vcore": 1}
    assert found(q) == []


def test_what_has_a_higher_priority_is_spared() -> None:
    q = queues()
    running(q["b"], "equal", priority=3)
    running(q["b"], "higher", priority=4)
    assert found(q, priority=3) == ["equal"]


def test_offsets_on_the_way_count() -> None:
    q = queues(b={"priority.offset": "2"})
    running(q["b"], "victim", priority=1)
    assert found(q, priority=2) == []
    assert found(q, priority=3) == ["victim"]


def test_a_queue_that_disables_preemption_gives_nothing() -> None:
    q = queues(b={"preemption.policy": "disabled"})
    running(q["b"], "victim")
    assert found(q) == []


def test_a_fence_keeps_the_search_inside() -> None:
    q = queues(p={"preemption.policy": "fence"})
    running(q["b"], "victim")
    assert found(q) == []
    assert search_root(ask(application(q["a"], "w"), "w")) is q["p"]


def test_a_fence_keeps_idle_work_in_where_it_runs_and_a_full_queue_where_it_counts() -> None:
    """Idle work borrows at the root here, above the fence, and frees nothing under the maximum of a queue below it."""
    inner = (QueueSpec(name="a", guaranteed=cores(2)), QueueSpec(name="b"))
    fenced = QueueSpec(name="p", parent=True, properties={"preemption.policy": "fence"}, queues=inner)
    c = PriorityCluster(fenced, QueueSpec(name="q"), rule="guarantee")
    for key, queue in (("inside", "root.p.b"), ("outside", "root.q")):
        c.fill(key, 2, queue=queue, idle=True)
    c.submit("w", 1, queue="root.p.a")
    part = c.s.cluster.partitions["default"]
    waiting = part.applications["w"].asks["w"]
    assert search_root(waiting).path == "root.p"
    assert [each.key for each in idle_candidates(part, waiting)] == ["inside"]
    waiting.app.queue.lineage[1].max = {"vcore": 0}
    assert idle_candidates(part, waiting) == []


def test_under_a_full_maximum_only_work_below_it_helps() -> None:
    q = queues()
    q["p"].max = {"vcore": 1}
    q["a"].add_allocated((("vcore", 1),))
    assert search_root(ask(application(q["a"], "w"), "w")) is q["a"]
    assert search_root(ask(application(q["a"], "m"), "m", {"memory": 1})) is q["root"]


def test_what_leaves_has_just_started_or_has_one_node_to_run_on_stays() -> None:
    q = queues()
    running(q["b"], "leaves").evict_cause = Cause.PREEMPTED_BY_SCHEDULER
    running(q["b"], "young").started_seq = 2**40
    running(q["b"], "bound", tags={TAG_REQUIRED_NODE: "n"})
    running(q["b"], "other", amounts={"memory": 1})
    assert found(q) == []


def test_idle_then_willing_then_the_newest_goes_first() -> None:
    leaf = tree("root.a")["root.a"]
    app = application(leaf)
    old, new = ask(app, "old"), ask(app, "new", now_ms=5)
    meek, origin = ask(app, "meek", allow_preempt_self=False), ask(app, "origin", originator=True)
    idle = ask(app, "idle", idle=True, allow_preempt_self=False)
    order = [victim.key for victim in sorted([meek, origin, old, new, idle], key=preference)]
    assert order == ["idle", "new", "old", "origin", "meek"]
    assert [taint(victim) for victim in (idle, new, origin, meek)] == [0, 0, 1, 2]


def test_where_no_guarantee_is_the_reason_an_originator_is_the_last() -> None:
    """Then the priority counts too."""
    app = application(tree("root.a")["root.a"])
    low, high = ask(app, "low", priority=1), ask(app, "high", priority=2)
    meek, origin = ask(app, "meek", allow_preempt_self=False), ask(app, "origin", originator=True)
    assert [v.key for v in sorted([origin, meek, high, low], key=reluctance)] == ["low", "high", "meek", "origin"]


def test_the_name_of_an_ask_is_that_of_its_application_where_both_are_one() -> None:
    app = application(tree("root.a")["root.a"], "job")
    assert (on_behalf_of(ask(app, "job")), on_behalf_of(ask(app, "k"))) == ("job", "job/k")


def test_a_node_misses_what_is_free_for_others_alone() -> None:
    """What is held for the ask itself is free for it, and so is what work leaves that has gone."""
    app, there = application(tree("root.a")["root.a"]), node("n", vcore=4, memory=1)
    asking, gone = ask(app, "asking", {"vcore": 3, "memory": 2}), ask(app, "gone", {"vcore": 2})
    there.take(gone)
    there.hold(ask(app, "other", {"vcore": 1}))
    assert missing_on(there, asking) == {"vcore": 2, "memory": 1}
    assert missing_on(there, asking, (gone,)) == {"memory": 1}
    there.hold(asking)
    assert missing_on(there, asking, (gone,)) == {"memory": 1}


def test_the_fewest_that_are_enough_are_the_largest_of_each_resource() -> None:
    app = application(tree("root.a")["root.a"])
    work = [ask(app, f"v{n}", {"vcore": n, "memory": 1}) for n in (1, 2, 3)]
    assert fewest({"vcore": 3}, work) == 1
    assert fewest({"vcore": 4, "memory": 1}, work) == 2
    assert fewest({"vcore": 1, "memory": 3}, work) == 3
    assert fewest({"vcore": 7}, work) == 0


def test_work_and_nominees_are_told_by_their_node() -> None:
    app, one, two = application(tree("root.a")["root.a"]), node("one"), node("two")
    a, b, c = (ask(app, key) for key in "abc")
    a.node = c.node = two
    b.nomination = Nomination(b, one, (), gathers=False)
    assert by_node([a, b, c]) == {two: [a, c], one: [b]}


# -- what attempts share: listed once for each state of the books, and the same as anew --


def partition(c: PriorityCluster) -> Partition:
    return c.s.cluster.partitions["default"]


def keys(asks: list[Ask]) -> list[str]:
    return [ask.key for ask in asks]


def test_of_a_leaf_that_is_listed_which_is_low_enough_and_may_be_told_to_stop() -> None:
    c = PriorityCluster(OWED, OTHER, nodes={"n1": 8, "n2": 4}, rule="guarantee")
    c.fill("low", 1, 0, "root.b")
    c.fill("high", 1, 5, "root.b")
    c.fill("idle", 1, 0, "root.b", idle=True)
    c.fill("bound", 1, 0, "root.b", tags=on("n2"))
    c.submit("waits", 9, 0, "root.b")
    found = Survey(partition(c))
    b = partition(c).applications["low"].queue
    assert keys(found.stoppable(b, 1)) == ["low"]
    assert keys(found.stoppable(b, 6)) == ["low", "high"]


def test_that_is_to_come_for_which_work_was_told_to_stop() -> None:
    c = PriorityCluster(OWED, OTHER, nodes={"n1": 4}, rule="guarantee")
    c.fill("one", 2, 0, "root.b")
    c.fill("two", 2, 0, "root.b")
    c.submit("owed", 2)
    assert Survey(partition(c)).to_come == []
    assert c.run(DELAY_MS)[1] == ["two"]
    found = Survey(partition(c))
    assert keys(found.to_come) == ["owed"]
    assert keys(found.stoppable(partition(c).applications["one"].queue, 1)) == ["one"]


def crowded(asks: int) -> PriorityCluster:
    """So many asks of as many applications, and all that runs elsewhere is one work larger than what they are owed."""
    c = PriorityCluster(QueueSpec(name="a", guaranteed=cores(2)), OTHER, nodes={"n1": 4}, rule="guarantee")
    c.fill("other", 4, 0, "root.b")
    for i in range(asks):
        c.submit(f"w{i}", 1, 0)
    c.run()
    return c


@pytest.mark.plain
def test_attempts_of_one_state_look_once_at_what_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    c = crowded(40)
    looks: list[Ask] = []
    may_be_told = victims.may_be_told
    monkeypatch.setattr(victims, "may_be_told", lambda ask: looks.append(ask) is None and may_be_told(ask))
    least = Survey(partition(c)).stoppable(partition(c).applications["other"].queue, 10)
    assert (keys(least), len(looks)) == (["other"], 1)
    looks.clear()
    assert c.run(DELAY_MS) == ([], [])
    assert all(
        ask.preempt_checked_ms == c.now_ms
        for app in partition(c).applications.values()
        for ask in app.asks.values()
        if ask.pending
    )
    assert keys(looks) == ["other"]


@pytest.mark.plain
def test_those_that_may_try_are_put_in_order_once_for_each_visit(monkeypatch: pytest.MonkeyPatch) -> None:
    c = crowded(40)
    keyed: list[Batch] = []
    batch_key = allocate.batch_key

    def counted(batch: Batch) -> tuple[object, ...]:
        keyed.append(batch)
        return batch_key(batch)

    monkeypatch.setattr(allocate, "batch_key", counted)
    assert c.run(DELAY_MS) == ([], [])
    assert len(keyed) <= 40 + 30 + 20 + 10


@pytest.mark.thorough
@pytest.mark.plain
def test_a_new_survey_for_each_attempt_decides_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = (26, 175, 613)
    shared = [decided_in("guarantee", number) for number in numbers]
    assert sum(isinstance(d, Evict) and d.rule == "guarantee" for decided in shared for d in decided) > 9
    made: list[Survey] = []
    init = Survey.__init__

    def never_again(self: Survey, part: Partition) -> None:
        init(self, part)
        self.version = -1
        made.append(self)

    monkeypatch.setattr(Survey, "__init__", never_again)
    assert [decided_in("guarantee", number) for number in numbers] == shared
    assert made
