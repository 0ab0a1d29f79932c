"""The laws of rank in courses with a deeper tree, gangs of several groups, and limits of groups.

What `rank_courses` seldom has: three levels of queues with offsets and fences, gangs whose groups differ in size and
priority, work of a gang's application that is of no group, limits of groups and of every user. The laws are the same.
`python tests/properties/deep_courses.py RULE FROM TO` prints as `rank_courses` does.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from properties.policies import OF_LEAVES, PROPERTIES, PROTECTIONS, SHAPES, Mixture, budget
from properties.rank_courses import RankCourse, command_line

from fairlead.core.model.events import AddApplication, AddAsks, Event
from fairlead.core.model.resources import Limits, Resources
from fairlead.core.model.specs import (
    ApplicationSpec,
    ClusterSpec,
    LimitSpec,
    NodeSortSpec,
    PartitionSpec,
    PreemptionSpec,
    PriorityClassSpec,
    QueueSpec,
)

RULES_OF_QUEUES = {"priority.offset": (("1", "-2", "3"), 0.3), "priority.policy": (("fence",), 0.2)}


def deep_world(chance: random.Random, mixture: Mixture) -> ClusterSpec:
    """A queue file with three levels below the root."""

    def amounts(low: int, high: int, likely: float) -> Limits | None:
        if chance.random() >= likely:
            return None
        vcore = {"vcore": chance.randint(low, high)}
        return Limits(vcore | ({"memory": chance.randint(2, 10)} if chance.random() < 0.3 else {}))

    def properties(is_leaf: bool) -> dict[str, str]:
        known = PROPERTIES | (OF_LEAVES if is_leaf else {"resource.group": (("true",), 0.3)})
        known |= {key: (known[key][0], mixture.protected / 2) for key in PROTECTIONS}
        known |= RULES_OF_QUEUES
        return {key: chance.choice(texts) for key, (texts, likely) in known.items() if chance.random() < likely * 0.8}

    def limits() -> tuple[LimitSpec, ...]:
        if chance.random() > 0.2:
            return ()
        most = Limits({"vcore": chance.randint(2, 6)})
        return chance.choice(
            [
                (LimitSpec(users=("ann",), max_resources=most), LimitSpec(users=("*",), max_applications=4)),
                (LimitSpec(groups=("staff",), max_resources=most),),
                (LimitSpec(users=("*",), max_resources=most),),
                (
                    LimitSpec(groups=("*",), max_resources=most, max_applications=3),
                    LimitSpec(users=("bob",), max_applications=1),
                ),
            ]
        )

    def queue(name: str, *below: QueueSpec) -> QueueSpec:
        return QueueSpec(
            name=name,
            parent=bool(below),
            queues=below,
            max=amounts(3 if below else 2, 12, 0.3),
            guaranteed=amounts(1, 5, 0.4),
            max_applications=chance.randint(1, 4) if chance.random() < 0.12 else 0,
            limits=limits(),
            properties=properties(not below),
        )

    of_a = queue("a", queue("x", queue("p"), queue("q")), queue("y"))
    below = (of_a, queue("b", queue("z")), queue("c"), queue("d", queue("u", queue("v"))))
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=below)
    preemption = PreemptionSpec(rule=mixture.rule, enabled=chance.random() < 0.95, quota_enabled=chance.random() < 0.3)
    sort = NodeSortSpec(policy=chance.choice(["fair", "binpacking"]))
    classes = (
        PriorityClassSpec(name="low", value=-1, min_runtime_ms=mixture.min_runtime_ms),
        PriorityClassSpec(name="high", value=4),
        PriorityClassSpec(name="meek", value=3, preemption_policy="Never"),
    )
    return ClusterSpec(
        partitions=(PartitionSpec(root=root, preemption=preemption, node_sort=sort),),
        priority_classes=classes,
        budgets=(budget(chance, "first"),) if chance.random() < 0.2 else (),
        checksum=str(chance.random()),
    )


class DeepCourse(RankCourse):
    """One course in such a world."""

    leaves: ClassVar = ("root.a.x.p", "root.a.x.q", "root.a.y", "root.b.z", "root.c", "root.d.u.v")

    def file(self) -> ClusterSpec:
        """As of all courses."""
        return deep_world(self.chance, self.mixture)

    def changed_file(self) -> ClusterSpec:
        """As of all courses."""
        return self.file()

    def submit_gang(self, app: str, queue: str, user: str, shape: Resources) -> Iterator[Event]:
        """A gang of one to three groups; now and then with fewer members than it says, or with work of no group."""
        chance = self.chance
        count = chance.choice([1, 1, 2, 2, 3])
        groups = [(f"g{g}", chance.choice(SHAPES), chance.randint(1, 4)) for g in range(count)]
        whole: Counter[str] = Counter()
        for _, each, members in groups:
            for name, amount in each.items:
                whole[name] += amount * members
        yield AddApplication(
            ApplicationSpec(
                id=app,
                queue=queue,
                user=user,
                groups=("staff",) if user == "ann" else (),
                placeholder_ask=Resources(whole if chance.random() < 0.9 else {}),
                gang_style=chance.choice(["Soft", "Hard"]),
                placeholder_timeout_ms=chance.choice([0, 5_000, 60_000]),
            )
        )
        alike = self.ask(app, shape)
        for group, each, members in groups:
            priority = alike.priority if chance.random() < 0.8 else chance.choice([0, 1, 5])
            member = replace(alike, resources=each, task_group=group, priority=priority)
            if chance.random() < 0.3:
                member = replace(member, where=chance.where())
            yield AddAsks(
                tuple(replace(member, key=self.name("k"), placeholder=True, retry=None) for _ in range(members))
            )
            if chance.random() < 0.8:
                come = members if chance.random() < 0.8 else max(1, members - 1)
                yield AddAsks(tuple(replace(member, key=self.name("k")) for _ in range(come)))
        if chance.random() < 0.25:
            yield AddAsks((self.ask(app, chance.choice(SHAPES)),))


if __name__ == "__main__":
    sys.exit(command_line(DeepCourse, "deep-courses"))
