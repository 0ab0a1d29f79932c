"""Made-up workloads, drawn from a seed.

Decides when jobs come, of which tenant, how large they are and how long they run, from a short description (`Recipe`).
Never schedules. Invariant: the same description and seed give the same jobs, however far they are read; nothing is kept
of a job that was handed out.
"""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from random import Random

from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import ApplicationSpec, AskSpec, NodeSpec, RetrySpec
from fairlead.sim.jobs import Job, Task, Workload, queue_file
from fairlead.sim.workloads.recipes import Lengths, Recipe, Tenant

DAY_MS = 86_400_000
_NONE: Mapping[str, str] = {}
"""Tags and labels of all that is made up: one object instead of two for each task."""
_SAMPLES = 4000


def generate(recipe: Recipe, seed: int, nodes: Sequence[NodeSpec], name: str = "recipe") -> Workload:
    """The workload of a description. `nodes` is what `load` refers to."""
    jobs_a_ms = _rate(recipe, seed, nodes)
    return Workload(
        name=name,
        jobs=_jobs(recipe, seed, jobs_a_ms),
        nodes=tuple(nodes),
        tasks=recipe.tasks,
        notes=[f"drawn with seed {seed}: {jobs_a_ms * 3_600_000:,.1f} jobs an hour in the mean"],
        queues=queue_file(tenant.queue for tenant in recipe.tenants),
    )


# -- how much ------------------------------------------------------------------------------------------------------


def _rate(recipe: Recipe, seed: int, nodes: Sequence[NodeSpec]) -> float:
    """Jobs a millisecond in the mean: as stated, or as many as use `load` of the nodes' scarcest resource."""
    if recipe.arrivals.jobs_per_hour is not None:
        return recipe.arrivals.jobs_per_hour / 3_600_000
    offered: dict[str, int] = {}
    for node in nodes:
        for name, amount in node.capacity:
            offered[name] = offered.get(name, 0) + amount
    random = Random(f"{seed} load")
    whole = sum(t.weight for t in recipe.tenants)
    spent: dict[str, float] = {}
    for tenant in recipe.tenants:
        tasks = _mean([_count(random, tenant) for _ in range(_SAMPLES)])
        run_ms = _mean([_length(random, tenant.run) for _ in range(_SAMPLES)])
        sizes = sum(s.weight for s in tenant.sizes)
        for size in tenant.sizes:
            for name, amount in size.amount:
                part = tenant.weight / whole * size.weight / sizes
                spent[name] = spent.get(name, 0.0) + part * tasks * run_ms * amount
    scarce = max((cost / offered[name] for name, cost in spent.items() if offered.get(name)), default=0.0)
    if not scarce:
        raise ValueError("the load of the recipe cannot be reached: its tasks ask for nothing that the nodes offer")
    return recipe.arrivals.load / scarce


def _mean(values: Sequence[int]) -> float:
    return sum(values) / len(values)


# -- drawing -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Prepared:
    tenant: Tenant
    sums: list[float]
    """Of the weights of its sizes, for drawing one."""
    retry: RetrySpec | None
    amounts: tuple[Resources, ...]


def _jobs(recipe: Recipe, seed: int, jobs_a_ms: float) -> Iterator[Job]:
    random = Random(f"{seed} jobs")
    prepared = [
        _Prepared(
            tenant,
            list(accumulate(s.weight for s in tenant.sizes)),
            RetrySpec(limit=tenant.retries) if tenant.retries else None,
            tuple(s.amount for s in tenant.sizes),
        )
        for tenant in recipe.tenants
    ]
    sums = list(accumulate(p.tenant.weight for p in prepared))
    made = 0
    for number, at_ms in enumerate(_moments(random, recipe, jobs_a_ms), 1):
        chosen = prepared[bisect(sums, random.random() * sums[-1])]
        left = None if recipe.tasks is None else recipe.tasks - made
        job = _job(random, chosen, at_ms, number, left)
        yield job
        made += len(job.tasks)
        if recipe.tasks is not None and made >= recipe.tasks:
            return


def _moments(random: Random, recipe: Recipe, jobs_a_ms: float) -> Iterator[int]:
    """When jobs come: a Poisson process, thinned by the hour of the day where it is diurnal. Whole seconds."""
    arrivals = recipe.arrivals
    peak = jobs_a_ms * (1 + arrivals.swing)
    at_ms = 0.0
    end_ms = math.inf if recipe.lasts is None else recipe.lasts
    while True:
        at_ms += random.expovariate(peak)
        if at_ms >= end_ms:
            return
        if arrivals.swing:
            phase = 2 * math.pi * (at_ms / DAY_MS - arrivals.peak_hour / 24)
            if random.random() * (1 + arrivals.swing) > 1 + arrivals.swing * math.cos(phase):
                continue
        yield int(at_ms) // 1000 * 1000


def _job(random: Random, chosen: _Prepared, at_ms: int, number: int, left: int | None) -> Job:
    tenant = chosen.tenant
    count = _count(random, tenant)
    if left is not None:
        count = min(count, left)
    amount = chosen.amounts[bisect(chosen.sums, random.random() * chosen.sums[-1])]
    id_ = f"{tenant.user}-{number}"
    gang = tenant.gangs > 0 and count > 1 and random.random() < tenant.gangs
    same_ms = _length(random, tenant.run) if gang else 0
    tasks = []
    for i in range(count):
        run_ms = same_ms or _length(random, tenant.run)
        ask = AskSpec(
            application=id_,
            key=f"{id_}-{i}",
            resources=amount,
            priority=tenant.priority,
            tags=_NONE,
            labels=_NONE,
            time_limit_ms=None if tenant.limit_factor is None else int(run_ms * tenant.limit_factor),
            retry=chosen.retry,
            idle=tenant.idle,
        )
        tasks.append(Task(ask, run_ms))
    application = ApplicationSpec(
        id=id_, queue=tenant.queue, user=tenant.user, placeholder_timeout_ms=int(tenant.gang_patience) if gang else 0
    )
    return Job(at_ms, application, tuple(tasks), gang)


def _count(random: Random, tenant: Tenant) -> int:
    """Tasks of a job: geometric with the stated mean, at most the stated number."""
    if tenant.tasks <= 1:
        return 1
    count = 1 + int(math.log(1.0 - random.random()) / math.log(1.0 - 1.0 / tenant.tasks))
    return min(count, tenant.tasks_max)


def _length(random: Random, lengths: Lengths) -> int:
    """How long a task runs, in whole seconds but at least one."""
    median = max(lengths.median, 1)
    if lengths.kind == "fixed":
        drawn = float(median)
    elif lengths.kind == "exponential":
        drawn = random.expovariate(math.log(2) / median)
    elif lengths.kind == "lognormal":
        drawn = random.lognormvariate(math.log(median), lengths.spread)
    else:
        drawn = median / 2 ** (1 / lengths.spread) * random.paretovariate(lengths.spread)
    return max(1000, int(min(drawn, lengths.longest)) // 1000 * 1000)
