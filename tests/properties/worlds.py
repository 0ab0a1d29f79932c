"""Random worlds: small clusters, queue trees and asks, made to collide.

Amounts are tiny and names few, so that limits, priorities and rooms meet often. What an event is about is picked from
what is there, so that most events make sense and some do not. Queue files are numbered and made from their number:
drawing each of their many parts would take longer than the tests.
"""

from __future__ import annotations

import random
from functools import cache

from hypothesis import strategies as st

from fairlead.core.model.resources import Limits, Resources
from fairlead.core.model.specs import ClusterSpec, LimitSpec, NodeSortSpec, PartitionSpec, PreemptionSpec, QueueSpec

NAMES = ("vcore", "memory", "gpu")
Tree = dict[str, "Tree"]
TREE: Tree = {"a": {"x": {}, "y": {}}, "b": {"z": {}}, "c": {}}
LEAVES = ("root.a.x", "root.a.y", "root.b.z", "root.c")

PICK = st.integers(0, 999)
"""Which of the things that are there: taken modulo their number."""


def amounts(low: int, high: int, names: tuple[str, ...] = NAMES) -> st.SearchStrategy[Resources]:
    """So much of each resource; most have `gpu` 0."""
    return st.builds(
        lambda first, second, third: Resources(dict(zip(names, (first, second, third), strict=False))),
        st.integers(low, high),
        st.integers(0, high),
        st.sampled_from([0, 0, 0, 1, 2]),
    )


FEW = [Resources({"vcore": 1}), Resources({"vcore": 2}), Resources({"vcore": 1, "memory": 1}), Resources({"memory": 3})]
ASKED = st.sampled_from(FEW) | st.sampled_from(FEW) | amounts(1, 3)
"""Mostly one of a few shapes, so that several asks and applications have the same."""
CAPACITY = amounts(2, 8)
PRIORITY = st.sampled_from([0, 0, 1, 1, 2, 3, -1, 100, -100, 2**31 - 1, -(2**31) + 1, -(2**31)])


WORLDS = 400
"""How many queue files are drawn from; the first is plain, and the later ones have more to them."""

_PROPERTIES: dict[str, tuple[str, ...]] = {
    "application.sort.policy": ("fair", "fifo"),
    "application.sort.priority": ("disabled", "enabled"),
    "priority.policy": ("fence", "default"),
    "priority.offset": ("1", "-1", "5", "1000", "2147483647", "-2147483648", "0"),
    "preemption.policy": ("fence", "disabled", "default"),
}
_RESTLESS: dict[str, tuple[str, ...]] = {
    **_PROPERTIES,
    "preemption.delay": ("1ms", "1s", "20s"),
    "quota.preemption.delay": ("1s", "10s"),
    "application.unschedasks.backoff": ("1", "2"),
    "application.unschedasks.backoff.delay": ("1s", "30s"),
}
"""What the naive scheduler does not know."""
_RULES = (
    PreemptionSpec(rule="priority"),
    PreemptionSpec(rule="priority", quota_enabled=True),
    PreemptionSpec(rule="guarantee"),
    PreemptionSpec(rule="guarantee", quota_enabled=True),
)
_WEIGHTS = ({"vcore": 1.0, "memory": 1.0}, {"vcore": 4.0, "memory": 1.0}, {"gpu": 1.0}, {"memory": 0.3, "vcore": 0.1})


class _Maker:
    """One queue file, made from its number alone."""

    def __init__(self, number: int, peaceful: bool) -> None:
        self.chance = random.Random(number)
        self.much = min(number / WORLDS, 0.5)
        self.peaceful = peaceful

    def now_and_then(self) -> bool:
        return self.chance.random() < self.much

    def limits(self, low: int, high: int) -> Limits | None:
        if not self.now_and_then():
            return None
        names = self.chance.sample(NAMES, self.chance.randint(1, 2))
        return Limits({name: self.chance.choice([low, *range(low, high + 1)]) for name in names})

    def properties(self) -> dict[str, str]:
        known = _PROPERTIES if self.peaceful else _RESTLESS
        return {key: self.chance.choice(texts) for key, texts in known.items() if self.now_and_then()}

    def limits_of_users(self) -> tuple[LimitSpec, ...]:
        if self.peaceful or self.chance.random() > self.much / 3:
            return ()
        most = Limits({self.chance.choice(NAMES): self.chance.randint(0, 5)})
        return (
            LimitSpec(users=("ann",), max_resources=most),
            LimitSpec(groups=("staff",), max_applications=self.chance.randint(1, 3)),
            LimitSpec(users=("*",), max_applications=self.chance.randint(1, 4)),
        )

    def queues(self, below: Tree) -> tuple[QueueSpec, ...]:
        return tuple(
            QueueSpec(
                name=name,
                parent=bool(inner),
                queues=self.queues(inner),
                max=self.limits(0, 8),
                guaranteed=self.limits(0, 6),
                max_applications=self.chance.randint(1, 3) if self.now_and_then() else 0,
                properties=self.properties(),
                limits=self.limits_of_users(),
            )
            for name, inner in below.items()
            if self.peaceful or self.chance.random() > self.much / 4
        )

    def cluster(self, preemption: PreemptionSpec | None) -> ClusterSpec:
        root = QueueSpec(
            name="root",
            parent=True,
            submit_acl="*",
            queues=self.queues(TREE),
            max_applications=4 if self.chance.random() < self.much / 2 else 0,
            properties=self.properties(),
            limits=self.limits_of_users(),
        )
        part = PartitionSpec(
            root=root,
            node_sort=NodeSortSpec(
                policy="binpacking" if self.now_and_then() else "fair", weights=self.chance.choice(_WEIGHTS)
            ),
            preemption=preemption or self.chance.choice(_RULES),
        )
        return ClusterSpec(partitions=(part,), checksum=f"world {self.chance.random()}")


@cache
def world(number: int) -> ClusterSpec:
    """A queue file with everything; queues may be missing in it."""
    return _Maker(number, peaceful=False).cluster(None)


@cache
def peaceful_world(number: int) -> ClusterSpec:
    """A queue file with all queues, and with nothing that the naive scheduler does not know."""
    return _Maker(number, peaceful=True).cluster(PreemptionSpec(enabled=False))


CLUSTER = st.integers(0, WORLDS - 1).map(world)
PEACEFUL_CLUSTER = st.integers(0, WORLDS - 1).map(peaceful_world)
