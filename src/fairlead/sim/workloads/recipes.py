"""Recipes: short descriptions of made-up workloads, from YAML or by name.

Decides which keys a recipe has, what they mean and what is wrong with one. Never draws anything (`generate` does).
Invariant: a recipe that is returned can be drawn from; an unknown key is an error, never ignored.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
import yaml

from fairlead.core.model.quantities import QuantityError, parse_quantity, resource_called
from fairlead.core.model.resources import Resources
from fairlead.times import parse_duration

Positive = Annotated[float, msgspec.Meta(gt=0)]
Whole = Annotated[int, msgspec.Meta(ge=1)]
Part = Annotated[float, msgspec.Meta(ge=0, le=1)]
KINDS = ("lognormal", "pareto", "exponential", "fixed")


class RecipeError(ValueError):
    """A recipe that cannot be used; the text says where and why."""


class _Run(msgspec.Struct, forbid_unknown_fields=True):
    kind: str = "lognormal"
    median: str = "10m"
    spread: Positive = 1.0
    longest: str = "7d"


class _Tenant(msgspec.Struct, forbid_unknown_fields=True):
    user: str
    sizes: list[dict[str, Any]]
    queue: str = "root.default"
    weight: Positive = 1.0
    priority: int = 0
    run: _Run = msgspec.field(default_factory=_Run)
    tasks: Annotated[float, msgspec.Meta(ge=1)] = 1.0
    tasks_max: Whole = 1000
    gangs: Part = 0.0
    gang_patience: str = "1d"
    limit_factor: Annotated[float, msgspec.Meta(ge=1)] | None = None
    retries: Annotated[int, msgspec.Meta(ge=0)] = 0
    idle: bool = False


class _Arrivals(msgspec.Struct, forbid_unknown_fields=True):
    load: Positive = 0.8
    jobs_per_hour: Positive | None = None
    swing: Part = 0.0
    peak_hour: Annotated[float, msgspec.Meta(ge=0, le=24)] = 14.0


class _Nodes(msgspec.Struct, forbid_unknown_fields=True):
    count: Whole
    each: dict[str, str | int]


class _Recipe(msgspec.Struct, forbid_unknown_fields=True):
    tenants: Annotated[list[_Tenant], msgspec.Meta(min_length=1)]
    nodes: _Nodes
    tasks: Whole | None = None
    lasts: str | None = None
    arrivals: _Arrivals = msgspec.field(default_factory=_Arrivals)


class Lengths(msgspec.Struct, frozen=True):
    """How long tasks run: `spread` is sigma of lognormal, alpha of pareto; nothing runs longer than `longest_ms`."""

    kind: str
    median_ms: int
    spread: float
    longest_ms: int


class Size(msgspec.Struct, frozen=True):
    """What a task asks for, and how often relative to the other sizes."""

    amount: Resources
    weight: float


class Tenant(msgspec.Struct, frozen=True):
    """Who submits what."""

    user: str
    queue: str
    weight: float
    priority: int
    sizes: tuple[Size, ...]
    run: Lengths
    tasks_mean: float
    tasks_max: int
    gangs: float
    gang_patience_ms: int
    limit_factor: float | None
    retries: int
    idle: bool


class Recipe(msgspec.Struct, frozen=True):
    """A whole workload: until `tasks` were made or `lasts_ms` are over, whichever is first."""

    name: str
    tenants: tuple[Tenant, ...]
    node_count: int
    node: Resources
    tasks: int | None
    lasts_ms: int | None
    load: float
    jobs_per_hour: float | None
    swing: float
    peak_hour: float


def read_recipe(text: str, name: str, changes: Mapping[str, Any] | None = None) -> Recipe:
    """The recipe in a YAML text; `changes` (`tasks`, `lasts`, `load`, `nodes`) replace what it says where not None.

    Raises `RecipeError`.
    """
    try:
        plain = yaml.safe_load(text)
    except yaml.YAMLError as e:
        raise RecipeError(f"{name} is not YAML: {' '.join(str(e).split())}") from e
    try:
        raw = msgspec.convert(plain, _Recipe, strict=True)
    except msgspec.ValidationError as e:
        raise RecipeError(f"{name}: {e}") from e
    given = {key: value for key, value in (changes or {}).items() if value is not None}
    if "tasks" in given or "lasts" in given:
        raw.tasks, raw.lasts = given.get("tasks"), given.get("lasts")
    raw.arrivals.load = given.get("load", raw.arrivals.load)
    if "load" in given:
        raw.arrivals.jobs_per_hour = None
    raw.nodes.count = given.get("nodes", raw.nodes.count)
    if raw.tasks is None and raw.lasts is None:
        raise RecipeError(f"{name}: has no end: say `tasks: 10000` or `lasts: 7d`")
    return Recipe(
        name=name,
        tenants=tuple(_tenant(t, f"{name}: tenant {t.user}") for t in raw.tenants),
        node_count=raw.nodes.count,
        node=_amount(raw.nodes.each, f"{name}: nodes.each"),
        tasks=raw.tasks,
        lasts_ms=None if raw.lasts is None else _duration(raw.lasts, f"{name}: lasts"),
        load=raw.arrivals.load,
        jobs_per_hour=raw.arrivals.jobs_per_hour,
        swing=raw.arrivals.swing,
        peak_hour=raw.arrivals.peak_hour,
    )


def _tenant(raw: _Tenant, at: str) -> Tenant:
    if not raw.sizes:
        raise RecipeError(f"{at}: sizes must name at least one size")
    if not raw.queue.startswith("root."):
        raise RecipeError(f"{at}: queue {raw.queue!r} must be a whole path, such as root.{raw.queue}")
    if raw.run.kind not in KINDS:
        raise RecipeError(f"{at}: run.kind {raw.run.kind!r} must be one of {', '.join(KINDS)}")
    lengths = Lengths(
        raw.run.kind,
        max(_duration(raw.run.median, f"{at}: run.median"), 1),
        raw.run.spread,
        _duration(raw.run.longest, f"{at}: run.longest"),
    )
    return Tenant(
        user=raw.user,
        queue=raw.queue,
        weight=raw.weight,
        priority=raw.priority,
        sizes=tuple(_size(size, f"{at}: size {number}") for number, size in enumerate(raw.sizes, 1)),
        run=lengths,
        tasks_mean=raw.tasks,
        tasks_max=raw.tasks_max,
        gangs=raw.gangs,
        gang_patience_ms=_duration(raw.gang_patience, f"{at}: gang_patience"),
        limit_factor=raw.limit_factor,
        retries=raw.retries,
        idle=raw.idle,
    )


def _size(raw: Mapping[str, Any], at: str) -> Size:
    weight = raw.get("weight", 1)
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight < math.inf:
        raise RecipeError(f"{at}: weight {weight!r} must be a number above 0")
    return Size(_amount({name: value for name, value in raw.items() if name != "weight"}, at), float(weight))


def _amount(raw: Mapping[str, Any], at: str) -> Resources:
    found = {}
    for name, text in raw.items():
        try:
            found[resource_called(name)] = parse_quantity(resource_called(name), str(text))
        except QuantityError as e:
            raise RecipeError(f"{at}: {e}") from e
    amount = Resources(found)
    if not amount:
        raise RecipeError(f"{at}: names no resource, such as cpu: 2")
    return amount


def _duration(text: str, at: str) -> int:
    ms = duration_ms(text)
    if ms is None:
        raise RecipeError(f"{at}: {text!r} must be a time, such as 90s, 10m, 2h or 7d")
    return ms


def duration_ms(text: str) -> int | None:
    """`7d`, `90s`, `1h30m` in milliseconds; None if it is none, or a number without a unit."""
    try:
        return parse_duration(text) if text[-1:].isalpha() else None
    except ValueError:
        return None


_NODES = "nodes: {count: 100, each: {vcore: 32, memory: 128Gi}}\n"
_GPU_NODES = "nodes: {count: 50, each: {vcore: 64, memory: 512Gi, nvidia.com/gpu: 8}}\n"

PRESETS: dict[str, str] = {
    "poisson": """\
# Small tasks of two users at a steady rate; run times exponential.
tasks: 10000
"""
    + _NODES
    + """\
arrivals: {load: 0.9}
tenants:
  - {user: ann, queue: root.a, run: {kind: exponential, median: 10m}, sizes: [{vcore: 2, memory: 8Gi}]}
  - {user: bob, queue: root.b, run: {kind: exponential, median: 10m}, sizes: [{vcore: 4, memory: 8Gi}]}
""",
    "diurnal": """\
# People submit by day, a batch user all the time; nights are quiet.
lasts: 7d
"""
    + _NODES
    + """\
arrivals: {load: 0.8, swing: 0.9, peak_hour: 14}
tenants:
  - {user: day, queue: root.interactive, weight: 3, priority: 10, run: {median: 20m}, sizes: [{vcore: 4, memory: 16Gi}]}
  - {user: batch, queue: root.batch, run: {median: 2h}, tasks: 20, sizes: [{vcore: 8, memory: 16Gi}]}
""",
    "heavy-tails": """\
# Most tasks are short and small; a few run for a day and ask for half a node.
tasks: 20000
"""
    + _NODES
    + """\
arrivals: {load: 0.9}
tenants:
  - user: ann
    queue: root.short
    weight: 5
    run: {kind: pareto, median: 5m, spread: 1.3, longest: 12h}
    tasks: 4
    sizes: [{vcore: 1, memory: 2Gi, weight: 8}, {vcore: 4, memory: 16Gi, weight: 2}]
  - user: bob
    queue: root.long
    run: {kind: pareto, median: 1h, spread: 1.2, longest: 1d}
    sizes: [{vcore: 4, memory: 8Gi, weight: 6}, {vcore: 16, memory: 64Gi, weight: 1}]
""",
    "gangs": """\
# Training jobs that start together or not at all, beside single tasks.
tasks: 5000
"""
    + _GPU_NODES
    + """\
arrivals: {load: 0.8}
tenants:
  - user: train
    queue: root.train
    gangs: 1
    tasks: 8
    tasks_max: 32
    run: {median: 3h, spread: 1.2, longest: 3d}
    sizes: [{vcore: 8, memory: 64Gi, nvidia.com/gpu: 1}]
  - user: notebook
    queue: root.notebooks
    weight: 4
    priority: 10
    run: {median: 30m}
    sizes: [{vcore: 4, memory: 16Gi, nvidia.com/gpu: 1}]
""",
    "tenants": """\
# Five teams of different size and taste share a cluster.
lasts: 7d
"""
    + _NODES
    + """\
arrivals: {load: 0.9, swing: 0.5}
tenants:
  - {user: search, queue: root.search, weight: 8, priority: 20, run: {median: 2m}, sizes: [{vcore: 2, memory: 4Gi}]}
  - {user: ads, queue: root.ads, weight: 4, priority: 10, tasks: 5, sizes: [{vcore: 4, memory: 16Gi}]}
  - user: ml
    queue: root.ml
    weight: 2
    run: {median: 2h, spread: 1.3}
    tasks: 4
    gangs: 0.5
    sizes: [{vcore: 8, memory: 32Gi}]
  - {user: etl, queue: root.etl, weight: 1, run: {median: 30m}, tasks: 40, sizes: [{vcore: 1, memory: 8Gi}]}
  - user: student
    queue: root.student
    weight: 2
    run: {kind: pareto, median: 5m, spread: 1.2, longest: 1d}
    sizes: [{vcore: 1, memory: 2Gi}]
""",
}
"""By name, the YAML text."""
