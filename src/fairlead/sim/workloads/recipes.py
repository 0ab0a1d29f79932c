"""Recipes: short descriptions of made-up workloads, from YAML or by name.

Decides which keys a recipe has, what they mean and what is wrong with one. Never draws anything (`generate` does).
Invariant: a recipe that is returned can be drawn from; an unknown key is an error, never ignored.
"""

from __future__ import annotations

import math
from importlib import resources
from typing import Annotated, Any, Literal

import msgspec
import yaml
from msgspec.structs import replace

from fairlead.core.model.quantities import parse_quantity, resource_called
from fairlead.core.model.resources import Resources
from fairlead.times import duration_ms

Positive = Annotated[float, msgspec.Meta(gt=0)]
Whole = Annotated[int, msgspec.Meta(ge=1)]
Part = Annotated[float, msgspec.Meta(ge=0, le=1)]
FromOne = Annotated[float, msgspec.Meta(ge=1)]
PRESETS: dict[str, str] = {
    name: resources.files("fairlead.sim.workloads").joinpath("presets", f"{name}.yaml").read_text("utf-8")
    for name in ("poisson", "diurnal", "heavy-tails", "gangs", "tenants")
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
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight < math.inf:
            raise ValueError(f"weight {weight!r} must be a number above 0")
        self.weight = float(weight)
        self.amount = _amount({name: value for name, value in given.items() if name != "weight"})


class Lengths(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How long tasks run: `spread` is sigma of lognormal, alpha of pareto; nothing runs longer than `longest`."""

    kind: Literal["lognormal", "pareto", "exponential", "fixed"] = "lognormal"
    median: Duration = Duration(600_000)
    spread: Positive = 1.0
    longest: Duration = Duration(7 * 86_400_000)


class Tenant(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who submits what. Jobs have `tasks` tasks in the mean; the part `gangs` of them start together."""

    user: str
    sizes: tuple[Size, ...]
    queue: str = "root.default"
    weight: Positive = 1.0
    priority: int = 0
    run: Lengths = Lengths()
    tasks: FromOne = 1.0
    tasks_max: Whole = 1000
    gangs: Part = 0.0
    gang_patience: Duration = Duration(86_400_000)
    limit_factor: FromOne | None = None
    retries: Annotated[int, msgspec.Meta(ge=0)] = 0
    idle: bool = False

    def __post_init__(self) -> None:
        if not self.sizes:
            raise ValueError("sizes must name at least one size")
        if not self.queue.startswith("root."):
            raise ValueError(f"queue {self.queue!r} must be a whole path, such as root.{self.queue}")


class Arrivals(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How many jobs come: so many that the part `load` of the nodes is asked for, or a number; `swing` by day."""

    load: Positive = 0.8
    jobs_per_hour: Positive | None = None
    swing: Part = 0.0
    peak_hour: Annotated[float, msgspec.Meta(ge=0, le=24)] = 14.0


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
