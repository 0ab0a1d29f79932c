"""Work that wants to be with other work or is spread, for the comparison of two simulators: drawn, and in our words."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace

from reference.plain_beside import Company
from reference.plain_line import Job, Task

from fairlead.core.model.constraints import HOSTNAME, AffinityTerm, Constraints, Requirement, SpreadTerm

KINDS = "gh"


def zones_of(chance: random.Random, nodes: Iterable[str]) -> dict[str, str]:
    """Nodes in one of two zones, or in none."""
    return {node: chance.choice(["p", "q", "p", "q", "p", "q", ""]) for node in nodes}


def in_company(chance: random.Random, jobs: Iterable[Job], *, beside: bool, spread: bool) -> list[Job]:
    """Some work is of a kind, and some of that wants to be with one, or is spread."""
    return [job if job.gang or chance.random() < 0.3 else _of_a_kind(chance, job, beside, spread) for job in jobs]


def _of_a_kind(chance: random.Random, job: Job, beside: bool, spread: bool) -> Job:
    kind, some = chance.choice(KINDS), chance.random()
    company = Company(
        beside=chance.choice(KINDS) if beside and some < 0.5 else "",
        skew=chance.randint(1, 2) if spread and some >= 0.25 and some < 0.75 else 0,
        is_by_zone=chance.random() < 0.5,
    )
    return replace(job, tasks=tuple(replace(task, kind=kind, company=company) for task in job.tasks))


def where(task: Task, others: Constraints) -> Constraints:
    """The same with what it wants of other work."""
    wanted = task.company
    key = "zone" if wanted.is_by_zone else HOSTNAME
    near = (AffinityTerm(of_kind(wanted.beside), key),) if wanted.beside else ()
    even = (SpreadTerm(of_kind(task.kind), key, max_skew=wanted.skew),) if wanted.skew else ()
    return replace(others, affinity=near, spread=even)


def of_kind(kind: str) -> tuple[Requirement, ...]:
    """That work is of a kind."""
    return (Requirement("kind", "In", (kind,)),)
