"""The line is read from what the scheduler keeps in order, no further than somebody looks; what waits in each queue is
added up once for the whole tree. Both are counted: in asks looked at, in calls.
"""

from __future__ import annotations

import cProfile
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from priority_clusters import PriorityCluster, cores

from fairlead.core.books.asks import Ask
from fairlead.core.model.events import AddApplication, AddAsks
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import ApplicationSpec, AskSpec, ClusterSpec, PartitionSpec, QueueSpec
from fairlead.insight import line
from fairlead.insight.explain import explain
from fairlead.runtime.measures import Measures
from fairlead.scheduler import Scheduler
from fairlead.service.views import place_in_line
from fairlead.service.yunikorn import figures, shapes
from fairlead.service.yunikorn.history import HistoryRecords
from fairlead.sim.outcome import final_state

APPLICATIONS = 400
FEW, MANY = 2, 16


def test_what_a_guarantee_is_owed_to_is_first_however_little_is_looked_at() -> None:
    """The stronger ask is first in its leaf by priority, and asks for more than the guarantee has left."""
    leaves = (QueueSpec(name="a", guaranteed=cores(5)), QueueSpec(name="b"))
    c = PriorityCluster(*leaves, rule="both", enabled=False)
    c.fill("used", 4, 9)
    c.submit("strong", 2, 1)
    c.submit("owed", 1, -1)
    c.submit("other", 1, 0, "root.b")
    assert c.run() == ([], [])
    partition = c.s.cluster.partitions["default"]
    seen = [[ask.key for ask in line.in_line(partition, most)] for most in (1, 2, 3)]
    assert seen == [["owed"], ["owed", "strong"], ["owed", "strong", "other"]]


def test_why_counts_what_comes_first_as_the_line_does() -> None:
    """Also what is owed to a guarantee, and goes before what has a higher priority."""
    c = PriorityCluster(QueueSpec(name="a", guaranteed=cores(5)), rule="both", enabled=False)
    c.fill("used", 4, 9)
    c.submit("strong", 2, 1)
    c.submit("owed", 1, -1)
    assert c.run() == ([], [])
    assert places_of(c, "owed", "strong") == {"owed": (1, [], 1), "strong": (2, ["owed"], 2)}


def test_a_place_in_a_queue_is_by_applications_where_the_queue_is() -> None:
    """Of one application all come before those of the next, whatever their priorities; the place says so too."""
    c = PriorityCluster(rule="guarantee", enabled=False)
    c.fill("used", 4, 9)
    for app, asks in {"first": {"f1": 5, "f2": 0}, "second": {"s": 3}}.items():
        c.s.handle(AddApplication(ApplicationSpec(id=app, queue="root.a")), c.now_ms)
        for key, priority in asks.items():
            ask = AskSpec(application=app, key=key, resources=Resources({"vcore": 1000}), priority=priority)
            c.s.handle(AddAsks((ask,)), c.now_ms)
    assert c.run() == ([], [])
    assert places_of(c, "f1", "f2", "s") == {"f1": (1, [], 1), "f2": (2, ["f1"], 2), "s": (3, ["f1", "f2"], 3)}


@pytest.mark.parametrize("rule", ["priority", "guarantee", "both"])
def test_idle_work_comes_after_all_else(rule: str) -> None:
    """Whatever its priority, and what waits in other queues too; among itself by priority, whichever queue it is of."""
    c = PriorityCluster(rule=rule, enabled=False)
    c.fill("used", 4, 99)
    for key, priority, queue in (("low", 5, "root.a"), ("high", 9, "root.b")):
        c.submit(key, 1, priority, queue, idle=True)
    c.submit("plain", 1, 0, "root.b")
    assert c.run() == ([], [])
    found = places_of(c, "plain", "high", "low")
    assert found == {"plain": (1, [], 1), "high": (2, ["plain"], 2), "low": (1, [], 1)}


def places_of(c: PriorityCluster, *keys: str) -> dict[str, tuple[int, list[str], int | None]]:
    """Of each ask its place and those before it in the verdict, and the place that its job is shown with."""
    partition = c.s.cluster.partitions["default"]
    asks = {key: ask for app in partition.applications.values() for key, ask in app.asks.items() if key in keys}
    assert [ask.key for ask in line.in_line(partition, len(keys))] == list(keys)
    verdicts = {key: explain(c.s, ask.app.id, key) for key, ask in asks.items()}
    return {key: (verdicts[key].position, verdicts[key].ahead, place_in_line(asks[key])) for key in keys}


def long_line(waiting: int, rule: str) -> PriorityCluster:
    """Of two leaves, six sizes and seven priorities; some of a leaf in one application, the others each in its own."""
    c = PriorityCluster(nodes={"n1": 64}, rule=rule, enabled=False)
    c.fill("full", 64, 100)
    c.s.handle(AddApplication(ApplicationSpec(id="many", queue="root.a")), c.now_ms)
    for number in range(waiting):
        app = "many" if number % 5 == 0 else f"a{number}"
        if app != "many":
            c.s.handle(AddApplication(ApplicationSpec(id=app, queue=f"root.{'ab'[number % 2]}")), c.now_ms)
        size = Resources({"vcore": 1000 * (1 + number % 6)})
        ask = AskSpec(application=app, key=f"k{number}", resources=size, priority=number % 7)
        c.s.handle(AddAsks((ask,)), c.now_ms)
    c.s.schedule(c.now_ms + 1)
    return c


@pytest.mark.thorough
@pytest.mark.parametrize("rule", ["guarantee", "priority"])
def test_the_front_of_a_long_line_touches_no_more_than_that_of_a_short_one(
    rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twenty times as many wait: as many are looked at, and what waits is summed up without looking at any."""
    touched: Counter[int] = Counter()
    key_of: Any = line._key

    def counting(ask: Ask) -> Any:
        touched[len(found)] += 1
        return key_of(ask)

    monkeypatch.setattr(line, "_key", counting)
    found: list[list[Ask]] = []
    for waiting in (200, 4_000):
        partition = long_line(waiting, rule).s.cluster.partitions["default"]
        found.append(line.in_line(partition, 50))
        assert line.waiting(partition) == waiting == line.pending(partition)[partition.root][1]
    assert [len(each) for each in found] == [50, 50]
    assert touched[1] <= touched[0] + 12, "one more at most of each size in each leaf"
    assert touched[1] < 150


def deep(levels: int) -> Scheduler:
    """So many queues below one another, and in the last of them what waits."""
    queue = QueueSpec(name=f"q{levels}", submit_acl="*")
    for level in reversed(range(1, levels)):
        queue = QueueSpec(name=f"q{level}", parent=True, queues=(queue,))
    root = QueueSpec(name="root", parent=True, queues=(queue,))
    scheduler = Scheduler(ClusterSpec(partitions=(PartitionSpec(root=root),)))
    path = ".".join(["root", *(f"q{level}" for level in range(1, levels + 1))])
    for n in range(APPLICATIONS):
        scheduler.handle(AddApplication(ApplicationSpec(id=f"a{n}", queue=path)), 0)
        scheduler.handle(AddAsks((AskSpec(application=f"a{n}", key="k", resources=Resources({"vcore": 1})),)), 0)
    return scheduler


def calls(read: Callable[[Scheduler], object], scheduler: Scheduler) -> int:
    profile = cProfile.Profile()
    profile.runcall(read, scheduler)
    return sum(entry.callcount for entry in profile.getstats())


def tree(scheduler: Scheduler) -> object:
    part = scheduler.cluster.partitions["default"]
    return shapes.queue(part, part.root, subtree=True)


READS: dict[str, Callable[[Scheduler], object]] = {
    "the tree of /ws/v1": tree,
    "the figures of /ws/v1": lambda s: list(figures.families(s, HistoryRecords(lambda: s), Measures())),
    "the end of a scenario": final_state,
}


@pytest.mark.parametrize("name", READS)
def test_an_application_is_looked_at_as_often_however_deep_it_is(name: str) -> None:
    """It was once more for each queue above it."""
    few, many = deep(FEW), deep(MANY)
    calls(READS[name], few)  # Fills what is kept.
    more = calls(READS[name], many) - calls(READS[name], few)
    assert more < APPLICATIONS * (MANY - FEW) / 2


def test_what_waits_below_waits_in_each_queue_above() -> None:
    """Parents first."""
    found = line.pending(deep(3).cluster.partitions["default"])
    assert [queue.path for queue in found] == ["root", "root.q1", "root.q1.q2", "root.q1.q2.q3"]
    assert list(found.values()) == [({"vcore": APPLICATIONS}, APPLICATIONS)] * 4
