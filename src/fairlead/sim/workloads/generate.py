"""Made-up workloads: recipes (short descriptions, from YAML or by name), and what is drawn from them and a seed.

Decides which keys a recipe has and what is wrong with one; when jobs come, of which tenant, how large they are and how
long they run. Never schedules. Invariant: a recipe that is returned can be drawn from, an unknown key is an error; the
same recipe and seed give the same jobs, however far they are read; nothing is kept of a job that was handed out.
"""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from itertools import accumulate
from random import Random
from typing import Annotated, Any, Literal

import msgspec
import yaml
from msgspec.structs import replace

from fairlead.core.model.quantities import parse_quantity, resource_called
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import PRIORITY_MAX, PRIORITY_MIN, ApplicationSpec, AskSpec, NodeSpec, RetrySpec
from fairlead.sim.jobs import Job, Task, Workload, queue_file
from fairlead.times import duration_ms

MOST = 1e9
"""Of a number: beyond it there is none that means something, and some that nothing can be drawn with."""
Positive = Annotated[float, msgspec.Meta(gt=0, le=MOST)]
Whole = Annotated[int, msgspec.Meta(ge=1)]
Part = Annotated[float, msgspec.Meta(ge=0, le=1)]
Priority = Annotated[int, msgspec.Meta(ge=PRIORITY_MIN, le=PRIORITY_MAX)]
FromOne = Annotated[float, msgspec.Meta(ge=1, le=MOST)]
FORECAST = ("bursty", "weekly", "bimodal", "preempting", "training", "log-like", "arrays")
"""Kinds of work on which forecasts are tried."""
PRESETS: dict[str, str] = {
    name: resources.files("fairlead.sim.workloads").joinpath("presets", f"{name}.yaml").read_text("utf-8")
    for name in ("poisson", "diurnal", "heavy-tails", "gangs", "tenants", *FORECAST)
}
"""By name, the YAML text."""


class RecipeError(ValueError):
    """A recipe that cannot be used; the text says where and why."""


class Duration(int):
    """Milliseconds, written as `90s`, `10m`, `2h` or `7d`."""


class Size:
    """What a task asks for, and how often relative to the other sizes: amounts by name, and `weight`."""

    __slots__ = ("amount", "weight")

    def __init__(self, given: dict[str, Any]) -> None:
        """Raises `ValueError`."""
        weight = given.get("weight", 1)
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight <= MOST:
            raise ValueError(f"weight {weight!r} must be a number above 0, up to {MOST:,.0f}")
        self.weight = float(weight)
        self.amount = _amount({name: value for name, value in given.items() if name != "weight"})


class Lengths(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How long tasks run: `spread` is sigma of lognormal, alpha of pareto; nothing runs longer than `longest`."""

    kind: Literal["lognormal", "pareto", "exponential", "fixed"] = "lognormal"
    median: Duration = Duration(600_000)
    spread: Positive = 1.0
    longest: Duration = Duration(7 * 86_400_000)


class Tenant(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who submits what. Jobs have `tasks` tasks in the mean; the part `gangs` of them start together.

    A time limit is the run time by `limit_factor`, or the least of `limits` that is no shorter than that.
    """

    user: str
    sizes: tuple[Size, ...]
    queue: str = "root.default"
    weight: Positive = 1.0
    priority: Priority = 0
    run: Lengths = Lengths()
    tasks: FromOne = 1.0
    tasks_max: Whole = 1000
    gangs: Part = 0.0
    gang_patience: Duration = Duration(86_400_000)
    limit_factor: FromOne | None = None
    limits: tuple[Duration, ...] = ()
    retries: Annotated[int, msgspec.Meta(ge=0)] = 0
    idle: bool = False

    def __post_init__(self) -> None:
        if not self.sizes:
            raise ValueError("sizes must name at least one size")
        if not self.queue.startswith("root."):
            raise ValueError(f"queue {self.queue!r} must be a whole path, such as root.{self.queue}")


class Arrivals(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How many jobs come: so many that the part `load` of the nodes is asked for, or a number; `swing` by day, the part
    `weekend` of the rest on Saturdays and Sundays, and in bursts of `burst` jobs of one tenant within some minutes.
    """

    load: Positive = 0.8
    jobs_per_hour: Positive | None = None
    swing: Part = 0.0
    peak_hour: Annotated[float, msgspec.Meta(ge=0, le=24)] = 14.0
    weekend: Part = 1.0
    burst: FromOne = 1.0


class Nodes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The machines, all alike."""

    count: Whole
    each: Resources


class Recipe(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A whole workload: until `tasks` were made or `lasts` is over, whichever is first."""

    tenants: Annotated[tuple[Tenant, ...], msgspec.Meta(min_length=1)]
    nodes: Nodes
    tasks: Whole | None = None
    lasts: Duration | None = None
    arrivals: Arrivals = Arrivals()
    queue_file: str = ""
    """The text of a queue file that suits it; empty: one is made with the queues of its tenants."""


def read_recipe(
    text: str, name: str, *, tasks: int | None = None, lasts: str | None = None, load: float | None = None
) -> Recipe:
    """The recipe in a YAML text; `tasks`, `lasts` and `load` replace what it says where not None.

    Raises `RecipeError`.
    """
    try:
        recipe = msgspec.convert(yaml.safe_load(text), Recipe, dec_hook=_read)
    except yaml.YAMLError as e:
        raise RecipeError(f"{name} is not YAML: {' '.join(str(e).split())}") from e
    except msgspec.ValidationError as e:
        raise RecipeError(f"{name}: {e}") from e
    if tasks is not None or lasts is not None:
        recipe = replace(recipe, tasks=tasks, lasts=None if lasts is None else duration_ms(lasts))
    if load is not None:
        recipe = replace(recipe, arrivals=replace(recipe.arrivals, load=load, jobs_per_hour=None))
    if recipe.tasks is None and recipe.lasts is None:
        raise RecipeError(f"{name}: has no end: say `tasks: 10000` or `lasts: 7d`")
    return recipe


def _read(kind: type, given: Any) -> Any:
    """What msgspec does not read by itself."""
    if kind is Duration:
        ms = duration_ms(given) if isinstance(given, str) else None
        if ms is None:
            raise ValueError(f"{given!r} must be a time, such as 90s, 10m, 2h or 7d")
        return Duration(ms)
    if not isinstance(given, dict):
        raise ValueError(f"{given!r} must be amounts by name, such as {{cpu: 2}}")
    return Size(given) if kind is Size else _amount(given)


def _amount(given: dict[str, Any]) -> Resources:
    called = {resource_called(name): str(text) for name, text in given.items()}
    amount = Resources({name: parse_quantity(name, text) for name, text in called.items()})
    if not amount:
        raise ValueError("names no resource, such as cpu: 2")
    return amount


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
        queues=recipe.queue_file or queue_file(tenant.queue for tenant in recipe.tenants),
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
    burst, chosen = 0, prepared[0]
    for number, (at_ms, left_of_burst) in enumerate(_moments(random, recipe, jobs_a_ms), 1):
        if not burst:
            chosen = prepared[bisect(sums, random.random() * sums[-1])]
        burst = left_of_burst
        left = None if recipe.tasks is None else recipe.tasks - made
        job = _job(random, chosen, at_ms, number, left)
        yield job
        made += len(job.tasks)
        if recipe.tasks is not None and made >= recipe.tasks:
            return


WITHIN_MS = 60_000
"""A burst has a job in each so long a time, in the mean."""
DENSE = 0.8
"""The part of the time in which bursts are under way, at most: where many jobs come, those of a burst follow faster."""


def _moments(random: Random, recipe: Recipe, jobs_a_ms: float) -> Iterator[tuple[int, int]]:
    """When jobs come, in whole seconds, and how many more belong to the same burst: those come next."""
    arrivals = recipe.arrivals
    if arrivals.burst == 1:
        yield from ((at_ms, 0) for at_ms in _begins(random, recipe, jobs_a_ms))
        return
    last_ms, within_ms = 0, min(WITHIN_MS, DENSE / _peak(arrivals, jobs_a_ms))
    for begin_ms in _begins(random, recipe, jobs_a_ms / arrivals.burst):
        count = 1 + int(math.log(1.0 - random.random()) / math.log(1.0 - 1.0 / arrivals.burst))
        last_ms = max(last_ms, begin_ms)
        for left in reversed(range(count)):
            yield last_ms, left
            last_ms += int(random.expovariate(1 / within_ms)) // 1000 * 1000


def _peak(arrivals: Arrivals, jobs_a_ms: float) -> float:
    """How many come in a millisecond when most come."""
    return jobs_a_ms * (1 + arrivals.swing) / ((5 + 2 * arrivals.weekend) / 7)


def _begins(random: Random, recipe: Recipe, jobs_a_ms: float) -> Iterator[int]:
    """When jobs or bursts come: a Poisson process, thinned by hour and weekday where the recipe says so. The time
    begins with a Monday.
    """
    arrivals = recipe.arrivals
    peak = _peak(arrivals, jobs_a_ms)
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
        if arrivals.weekend < 1 and at_ms // DAY_MS % 7 >= 5 and random.random() > arrivals.weekend:
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
            time_limit_ms=_limit(tenant, run_ms),
            retry=chosen.retry,
            idle=tenant.idle,
        )
        tasks.append(Task(ask, run_ms))
    application = ApplicationSpec(
        id=id_, queue=tenant.queue, user=tenant.user, placeholder_timeout_ms=int(tenant.gang_patience) if gang else 0
    )
    return Job(at_ms, application, tuple(tasks), gang)


def _limit(tenant: Tenant, run_ms: int) -> int | None:
    """The time limit that the owner declares; None: none."""
    if tenant.limit_factor is None and not tenant.limits:
        return None
    least_ms = int(run_ms * (tenant.limit_factor or 1.0))
    if not tenant.limits:
        return least_ms
    # A plain number: no journal has a word for ours.
    return int(min((limit for limit in tenant.limits if limit >= least_ms), default=max(tenant.limits)))


def _count(random: Random, tenant: Tenant) -> int:
    """Tasks of a job: geometric with the stated mean, at most the stated number."""
    if tenant.tasks <= 1:
        return 1
    count = 1 + int(math.log(1.0 - random.random()) / math.log(1.0 - 1.0 / tenant.tasks))
    return min(count, tenant.tasks_max)


def _length(random: Random, lengths: Lengths) -> int:
    """How long a task runs, in whole seconds but at least one."""
    try:
        drawn = _drawn(random, lengths, max(lengths.median, 1))
    except OverflowError:
        drawn = math.inf  # With a large spread some are longer than any number.
    return max(1000, int(min(drawn, lengths.longest)) // 1000 * 1000)


def _drawn(random: Random, lengths: Lengths, median: int) -> float:
    if lengths.kind == "fixed":
        return float(median)
    if lengths.kind == "exponential":
        return random.expovariate(math.log(2) / median)
    if lengths.kind == "lognormal":
        return random.lognormvariate(math.log(median), lengths.spread)
    return median / 2 ** (1 / lengths.spread) * random.paretovariate(lengths.spread)
