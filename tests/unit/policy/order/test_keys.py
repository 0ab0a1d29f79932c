"""The order of applications in a leaf: by age, also after a restart, and what decides between equals."""

from __future__ import annotations

import json
import random

import pytest
from invariants.books import check_books

from fairlead.core.acts import room_changes
from fairlead.core.books.applications import Application
from fairlead.core.model.decisions import Allocated
from fairlead.core.model.events import AddApplication, AddAsks, AddNode, SetPriority
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import (
    TAG_CREATION_TIME,
    ApplicationSpec,
    AskSpec,
    ClusterSpec,
    NodeSpec,
    PartitionSpec,
    QueueSpec,
    RetrySpec,
)
from fairlead.policy.order.keys import application_key, first_leaf_in_walk, queue_key
from fairlead.scheduler import Scheduler

NOW_MS = 1_000_000


def cluster(cores: int, **properties: str) -> Scheduler:
    """One leaf with these properties and one node with so many cores."""
    named = {name.replace("_", "."): value for name, value in properties.items()}
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=(QueueSpec(name="a", properties=named),))
    s = Scheduler(ClusterSpec(partitions=(PartitionSpec(root=root),)))
    s.handle(AddNode(NodeSpec(id="n", capacity=Resources({"vcore": cores}))), 0)
    return s


def app(s: Scheduler, *names: str, now_ms: int = NOW_MS) -> None:
    for name in names:
        s.handle(AddApplication(ApplicationSpec(id=name, queue="root.a")), now_ms)


def ask(s: Scheduler, app: str, key: str, created_s: int | None = None, **fields: object) -> None:
    """An ask of one core; `created_s`: when it was created, in Unix seconds."""
    tags = {TAG_CREATION_TIME: str(created_s)} if created_s is not None else {}
    spec = AskSpec(application=app, key=key, resources=Resources({"vcore": 1}), tags=tags, **fields)  # type: ignore[arg-type]
    s.handle(AddAsks((spec,)), NOW_MS)


def placed(s: Scheduler) -> list[str]:
    decisions = s.schedule(NOW_MS)
    check_books(s)
    return [d.key for d in decisions if isinstance(d, Allocated)]


@pytest.mark.parametrize("first", ["older", "younger"])
def test_after_a_restart_an_application_is_as_old_as_its_oldest_allocation(first: str) -> None:
    """Both are reported anew in any order; the waiting pod of the one that runs longer comes first."""
    s = cluster(3)
    app(s, "younger", "older") if first == "younger" else app(s, "older", "younger")
    for name in ("younger", "older") if first == "younger" else ("older", "younger"):
        began = 100 if name == "older" else 200
        ask(s, name, f"{name}-runs", began, node="n")
        ask(s, name, f"{name}-waits", 300)
    assert placed(s) == ["older-waits"]


def test_an_application_that_waits_already_moves_ahead_when_an_older_allocation_of_it_is_found() -> None:
    """Its place in line follows its age at once, also where it is parked behind a full node."""
    s = cluster(3)
    app(s, "full", "one", "two")
    ask(s, "full", "f0", 100, node="n")
    ask(s, "full", "f1", 100, node="n")
    ask(s, "one", "one-waits", 300)
    ask(s, "two", "two-runs-too", 400, node="n")
    ask(s, "two", "two-waits", 400)
    assert placed(s) == []
    s.handle(AddNode(NodeSpec(id="n2", capacity=Resources({"vcore": 2}))), NOW_MS)
    ask(s, "two", "two-runs", 200, node="n2")
    assert placed(s) == ["two-waits"]


def test_an_ask_that_is_found_running_makes_its_application_no_younger() -> None:
    """Only what is older counts."""
    s = cluster(2)
    app(s, "one", now_ms=100_000)
    app(s, "two", now_ms=200_000)
    ask(s, "one", "one-runs", 900, node="n")
    ask(s, "two", "two-waits", 950)
    ask(s, "one", "one-waits", 990)
    assert placed(s) == ["one-waits"]


def test_the_age_survives_a_dump() -> None:
    """What was read back goes on as if nothing had been."""
    s = cluster(2)
    app(s, "younger", "older")
    ask(s, "older", "older-runs", 100, node="n")
    ask(s, "younger", "younger-waits", 200)
    ask(s, "older", "older-waits", 300)
    again = Scheduler.load(json.loads(json.dumps(s.dump())))
    assert placed(again) == placed(s) == ["older-waits"]


WITHOUT_PRIORITY = {"application_sort_policy": "fifo", "application_sort_priority": "disabled"}


def test_without_priority_sorting_priority_decides_between_applications_of_one_moment() -> None:
    """YuniKorn: earlier submission, then higher priority; then the one that arrived first."""
    s = cluster(2, **WITHOUT_PRIORITY)
    app(s, "low", "high", "high-too")
    ask(s, "low", "l", 100, priority=1)
    ask(s, "high", "h", 100, priority=5)
    ask(s, "high-too", "h2", 100, priority=5)
    assert placed(s) == ["h", "h2"]


def test_without_priority_sorting_the_older_application_still_comes_first() -> None:
    """Whatever the priorities."""
    s = cluster(1, **WITHOUT_PRIORITY)
    app(s, "younger", "older")
    ask(s, "younger", "y", 200, priority=9)
    ask(s, "older", "o", 100)
    assert placed(s) == ["o"]


def test_without_priority_sorting_a_change_of_priority_moves_an_equal() -> None:
    """The kept order follows."""
    s = cluster(0, **WITHOUT_PRIORITY)
    app(s, "one", "two")
    ask(s, "one", "a", 100)
    ask(s, "two", "b", 100)
    assert placed(s) == []
    s.handle(SetPriority("two", "b", 7), NOW_MS)
    s.handle(AddNode(NodeSpec(id="n2", capacity=Resources({"vcore": 1}))), NOW_MS)
    assert placed(s) == ["b"]


@pytest.mark.parametrize("created_s", [-(10**10), 100])
def test_without_priority_sorting_what_is_tried_again_goes_ahead_of_every_age(created_s: int) -> None:
    """The keys of both kinds can be compared, whatever times and priorities they hold."""
    s = cluster(1, **WITHOUT_PRIORITY)
    app(s, "one", "two")
    ask(s, "one", "a", created_s, priority=2**31 - 1)
    again = {"attempt": 2, "first_key": "b", "retry": RetrySpec(limit=3), "priority": -(2**31)}
    ask(s, "two", "b#2", 300, **again)
    assert placed(s) == ["b#2"]


@pytest.mark.parametrize("seed", range(20))
def test_the_first_in_the_walk_is_the_first_of_all_sorted_by_the_whole_way(seed: int) -> None:
    """Queue by queue from the root, leaves at different depths, then by the application's own place."""
    rng = random.Random(seed)
    fair = {"application.sort.policy": "fair"}
    inner = tuple(QueueSpec(name=f"c{i}", properties=fair) for i in range(3))
    leaves = (QueueSpec(name="b", parent=True, queues=inner), QueueSpec(name="d"), QueueSpec(name="e", properties=fair))
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=leaves)
    s = Scheduler(ClusterSpec(partitions=(PartitionSpec(root=root),)))
    s.handle(AddNode(NodeSpec(id="n", capacity=Resources({"vcore": 60}))), 0)
    for i in range(30):
        queue = rng.choice(("root.b.c0", "root.b.c1", "root.b.c2", "root.d", "root.e"))
        s.handle(AddApplication(ApplicationSpec(id=f"a{i}", queue=queue)), i)
        for k in range(5):
            spec = AskSpec(
                application=f"a{i}", key=f"a{i}-{k}", resources=Resources({"vcore": 1}), priority=rng.randint(0, 2)
            )
            s.handle(AddAsks((spec,)), i)
    s.schedule(100)
    partition = s.cluster.partitions["default"]
    waiting = [a for a in partition.applications.values() if a.pending_count]
    room_changes.reshare(partition)

    def way(app: Application) -> tuple[object, ...]:
        return (*(queue_key(queue) for queue in reversed(app.queue.lineage[:-1])), application_key(app))

    for _ in range(10):
        some = rng.sample(waiting, rng.randint(1, len(waiting)))
        assert first_leaf_in_walk({app.queue: None for app in some}) is min(some, key=way).queue
