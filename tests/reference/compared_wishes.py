"""Work that would rather be on some nodes than on others, for the comparison of two simulators: drawn, in our words."""

from __future__ import annotations

import random
from collections.abc import Collection
from dataclasses import replace

from reference.compared_company import KINDS, of_kind, zones_of
from reference.compared_world import World
from reference.plain_line import Job, Task
from reference.plain_wishes import Wishes

from fairlead.core.model.constraints import (
    HOSTNAME,
    PREFER_NO_SCHEDULE,
    AffinityTerm,
    Constraints,
    PreferredNodes,
    PreferredWork,
    Requirement,
    SpreadTerm,
    Taint,
)


def wishing(chance: random.Random, made: World) -> World:
    """Some work is of a kind and has wishes, and some nodes are disliked."""
    zones = made.zones or zones_of(chance, made.nodes)
    disliked = frozenset(node for node in made.nodes if chance.random() < 0.3) if chance.random() < 0.5 else frozenset()
    jobs = [_wishing(chance, job) if chance.random() < 0.7 else job for job in made.jobs]
    return replace(made, zones=zones, disliked=disliked, jobs=jobs)


def _wishing(chance: random.Random, job: Job) -> Job:
    kind = job.tasks[0].kind or chance.choice(KINDS)
    wishes = Wishes(nodes=_nodes(chance), works=_works(chance), spread=_spread(chance))
    return replace(job, tasks=tuple(replace(task, kind=kind, wishes=wishes) for task in job.tasks))


def _nodes(chance: random.Random) -> tuple[tuple[int, str], ...]:
    return tuple((chance.randint(1, 5), zone) for zone in "pq" if chance.random() < 0.3)


def _works(chance: random.Random) -> tuple[tuple[int, str, bool], ...]:
    found = ((chance.choice([-3, -1, 1, 2]), kind, chance.random() < 0.5) for kind in KINDS)
    return tuple(each for each in found if chance.random() < 0.3)


def _spread(chance: random.Random) -> tuple[bool, ...]:
    return (chance.random() < 0.5,) if chance.random() < 0.3 else ()


def wished(task: Task, others: Constraints) -> Constraints:
    """The same with what it would rather have."""
    wishes = task.wishes
    nodes = (PreferredNodes(weight, (Requirement("zone", "In", (zone,)),)) for weight, zone in wishes.nodes)
    works = (PreferredWork(weight, AffinityTerm(of_kind(kind), _key(by))) for weight, kind, by in wishes.works)
    spread = (SpreadTerm(of_kind(task.kind), _key(by)) for by in wishes.spread)
    return replace(others, preferred_nodes=tuple(nodes), preferred_work=tuple(works), preferred_spread=tuple(spread))


def taints(node: str, disliked: Collection[str]) -> tuple[Taint, ...]:
    """Those of a node."""
    return (Taint("worn", effect=PREFER_NO_SCHEDULE),) if node in disliked else ()


def _key(is_by_zone: bool) -> str:
    return "zone" if is_by_zone else HOSTNAME
