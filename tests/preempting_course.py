"""A cluster full of low work, on which much that is more important comes at once: to compare two ways of deciding."""

from __future__ import annotations

import random
from dataclasses import replace

from priority_clusters import PriorityCluster, cores, labelled

from fairlead.core.model.constraints import ANYWHERE, AffinityTerm, Constraints
from fairlead.core.model.decisions import Decision
from fairlead.core.model.events import AddApplication, AddAsks, Checkpoint
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import ApplicationSpec, AskSpec, BudgetSpec, QueueSpec

LEAVES = ["root.a", "root.b", "root.c"]
APART = Constraints(anti_affinity=(AffinityTerm(labelled("apart")),))


def preempting(seed: int, rule: str) -> list[Decision]:
    """All that is decided: much of what comes is alike, some of what is told to stop leaves, and some work ends."""
    chance = random.Random(f"preempting-{seed}")
    some = chance.random
    queues = (
        QueueSpec(name="a", guaranteed=cores(chance.randint(2, 9)) if some() < 0.3 else None),
        QueueSpec(name="b", properties={"priority.offset": str(chance.randint(-1, 1))} if some() < 0.5 else {}),
        QueueSpec(name="c", max=cores(chance.randint(4, 12)) if some() < 0.5 else None),
    )
    budgets = (
        (BudgetSpec(name="few", selector=labelled("few"), min_available=chance.randint(1, 4)),) if some() < 0.3 else ()
    )
    nodes = {f"n{i}": chance.randint(1, 4) for i in range(chance.randint(6, 14))}
    c = PriorityCluster(*queues, nodes=nodes, rule=rule, budgets=budgets)
    for i in range(chance.randint(10, 40)):
        label = {"app": chance.choice(["few", "many"])}
        c.submit(f"low{i}", chance.choice([1, 1, 2]), chance.choice([0, 0, 1, 2]), chance.choice(LEAVES), labels=label)
        if some() < 0.6:
            c.run(chance.randint(1, 2_000))
        if some() < 0.1 and running(c):
            key = chance.choice(running(c))
            c.handle(Checkpoint(key, key))
    for i in range(chance.randint(1, 4)):
        come(c, chance, f"high{i}")
        for _ in range(chance.randint(1, 3)):
            c.run(chance.randint(1, 9_000))
            for told in [e.key for e in c.evictions() if e.key in running(c)]:
                if some() < 0.5:
                    c.gone(told)
        if some() < 0.5 and running(c):
            c.finished(chance.choice(running(c)))
    return c.decided


def come(c: PriorityCluster, chance: random.Random, name: str) -> None:
    """An application with some asks that are alike, or nearly; or a gang."""
    count, each, priority = chance.randint(1, 8), chance.choice([1, 1, 2, 3]), chance.choice([1, 3, 3, 5])
    is_gang, where = chance.random() < 0.3, APART if chance.random() < 0.2 else ANYWHERE
    whole = Resources({"vcore": 1_000 * each * count}) if is_gang else Resources({})
    c.handle(AddApplication(ApplicationSpec(id=name, queue=chance.choice(LEAVES), placeholder_ask=whole)))
    alike = AskSpec(
        application=name,
        key="",
        resources=Resources({"vcore": 1_000 * each}),
        placeholder=is_gang,
        task_group="workers" if is_gang else "",
        labels={"app": "apart"} if where is APART else {},
        where=where,
    )
    asks = (replace(alike, key=f"{name}-{i}", priority=priority + (chance.random() < 0.1)) for i in range(count))
    c.handle(AddAsks(tuple(asks)))


def running(c: PriorityCluster) -> list[str]:
    """The low work that runs."""
    apps = c.s.cluster.partitions["default"].applications.values()
    return sorted(ask.key for app in apps for ask in app.asks.values() if ask.key.startswith("low") and ask.node)
