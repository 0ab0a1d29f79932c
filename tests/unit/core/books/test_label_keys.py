"""Labels count while somebody's terms look at them: they come and go, and cost only those that carry them."""

from __future__ import annotations

import random
import time

import pytest
from invariants.books import check_books
from priority_clusters import PriorityCluster

from fairlead.core.books.partition import Partition
from fairlead.core.model.constraints import HOSTNAME, IN, AffinityTerm, Constraints, Requirement
from fairlead.core.model.events import AddApplication, AddAsks, Release
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import ApplicationSpec, AskSpec
from fairlead.scheduler import Scheduler


def away_from(key: str) -> Constraints:
    """Anti-affinity to work with the label `key=x`."""
    term = AffinityTerm(selector=(Requirement(key, IN, ("x",)),), topology_key=HOSTNAME)
    return Constraints(anti_affinity=(term,))


def partition_of(c: PriorityCluster) -> Partition:
    """The only partition."""
    return c.s.cluster.partitions["default"]


def counting(c: PriorityCluster) -> list[str]:
    """The labels that count."""
    return list(partition_of(c).nodes.terrain.label_keys)


def test_a_key_goes_with_the_last_ask_that_looks_at_it() -> None:
    """Whether that waits or runs; thousands of keys leave nothing behind."""
    c = PriorityCluster(nodes={"n1": 2})
    c.submit("one", 1, where=away_from("app"))
    c.submit("two", 9, where=away_from("app"))
    c.run()
    assert counting(c) == ["app"]
    c.finished("one")
    assert counting(c) == ["app"]
    c.gone("two")
    assert counting(c) == []
    for i in range(50):
        c.submit(f"w{i}", 1, where=away_from(f"key{i}"), labels={f"key{i}": "x"})
        c.run()
        assert counting(c) == [f"key{i}"]
        c.finished(f"w{i}")
    assert counting(c) == []


def test_a_key_stays_while_waiting_work_carries_it() -> None:
    """What was told apart is not put together again; with the last one that waits the key goes."""
    c = PriorityCluster(nodes={"n1": 2})
    c.submit("red", 9, labels={"app": "x"})
    c.submit("blue", 9, labels={"app": "y"})
    assert len(partition_of(c).shapes) == 1
    c.submit("shy", 9, where=away_from("app"))
    assert len(partition_of(c).shapes) == 3
    c.gone("shy")
    assert counting(c) == ["app"]
    c.gone("red")
    assert counting(c) == ["app"]
    c.gone("blue")
    assert counting(c) == []
    c.submit("green", 9, labels={"app": "z"})
    assert counting(c) == []


@pytest.mark.parametrize("seed", range(8))
def test_asks_are_told_apart_by_just_the_labels_that_count(seed: int) -> None:
    """Through waits, starts, ends and restarts: the check of the books works out keys and shapes a second time."""
    rng, c, seen = random.Random(seed), PriorityCluster(nodes={"n1": 3, "n2": 2}), dict[tuple[str, ...], None]()
    for i in range(120):
        labels = {key: rng.choice("xy") for key in "abc" if rng.random() < 0.4}
        where = {"where": away_from(rng.choice("abc"))} if rng.random() < 0.3 else {}
        apps = partition_of(c).applications
        if rng.random() < 0.5 or not apps:
            c.submit(f"k{i}", rng.randint(1, 3), labels=labels, priority=rng.randint(0, 2), **where)
        else:
            key = rng.choice(sorted(apps))
            c.handle(Release(key, key))
        if rng.random() < 0.3:
            c.run()
        if rng.random() < 0.1:
            again = Scheduler.load(c.s.dump())
            assert again.dump() == c.s.dump()
            c.s = again
        check_books(c.s)
        seen[tuple(counting(c))] = None
    assert len(seen) > 3


def test_a_new_key_looks_only_at_asks_that_carry_it() -> None:
    """With a hundred times as many asks that do not, it costs about as much."""

    def seconds(asks: int) -> float:
        c = PriorityCluster(nodes={"n1": 1})
        c.handle(AddApplication(ApplicationSpec(id="a", queue="root.a")))
        ask = {"application": "a", "resources": Resources({"vcore": 9000})}
        c.handle(AddAsks(tuple(AskSpec(key=f"k{i}", labels={"app": "x"}, **ask) for i in range(asks))))  # type: ignore[arg-type]
        best = float("inf")
        for turn in range(5):
            began = time.process_time()
            for i in range(20):
                key = f"t{turn}-{i}"
                c.s.handle(AddAsks((AskSpec(key=key, where=away_from(key), **ask),)), 0)  # type: ignore[arg-type]
            best = min(best, time.process_time() - began)
        return best

    assert seconds(3000) < 5 * seconds(30)
