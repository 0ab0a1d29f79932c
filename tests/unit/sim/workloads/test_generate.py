"""Made-up workloads: recipes, and what is drawn from them."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import Any

import pytest

from fairlead.config import load_text
from fairlead.core.model.events import AddAsks
from fairlead.core.model.specs import NodeSpec
from fairlead.journal import codec
from fairlead.sim.jobs import Workload
from fairlead.sim.workloads.generate import PRESETS, RecipeError, generate, read_recipe
from fairlead.times import duration_ms

SMALL = """
tasks: 100
nodes: {count: 10, each: {vcore: 8}}
tenants:
  - {user: ann, sizes: [{vcore: 1}]}
"""


def made(text: str = SMALL, seed: int = 1, **changes: Any) -> Workload:
    recipe = read_recipe(text, "recipe", **changes)
    nodes = [NodeSpec(id=f"n{i}", capacity=recipe.nodes.each) for i in range(recipe.nodes.count)]
    return generate(recipe, seed, nodes)


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_every_preset_can_be_drawn_from(name: str) -> None:
    """Jobs in order of time, in queues that its queue file has, each task small enough for a node."""
    workload = made(PRESETS[name], tasks=300)
    jobs = list(workload.jobs)
    assert sum(len(j.tasks) for j in jobs) == 300
    assert [j.at_ms for j in jobs] == sorted(j.at_ms for j in jobs)
    leaves = {f"root.{q.name}" for q in load_text(workload.queues).partitions[0].root.queues}
    assert {j.application.queue for j in jobs} <= leaves
    assert all(codec.encode(AddAsks(tuple(task.ask for task in j.tasks))) for j in jobs), "it can be recorded"
    most = dict(workload.nodes[0].capacity)
    assert all(amount <= most[name] for j in jobs for t in j.tasks for name, amount in t.ask.resources)


def test_the_same_seed_gives_the_same_jobs() -> None:
    """However many are read; another seed gives others."""
    few, all_, other = (list(islice(made(PRESETS["tenants"], seed).jobs, n)) for seed, n in ((3, 20), (3, 50), (4, 20)))
    assert few == all_[:20]
    assert few != other


def test_the_load_is_what_the_nodes_are_asked_for() -> None:
    """Work per time over what there is, to a tenth."""
    text = SMALL.replace("tasks: 100", "tasks: 20000").replace(
        "sizes", "run: {kind: exponential, median: 5m}, tasks: 3, sizes"
    )
    jobs = list(made(text, load=0.7).jobs)
    asked = sum(t.run_ms * t.ask.resources["vcore"] for j in jobs for t in j.tasks)
    assert asked / (jobs[-1].at_ms * 80_000) == pytest.approx(0.7, rel=0.1)


def test_a_rate_may_be_stated_instead() -> None:
    """Sixty an hour for ten hours, give or take."""
    jobs = list(made(SMALL.replace("tasks: 100", "lasts: 10h\narrivals: {jobs_per_hour: 60}")).jobs)
    assert 500 < len(jobs) < 700
    assert jobs[-1].at_ms < 36_000_000


def test_bursts_of_many_jobs_end_with_the_work() -> None:
    """Ten jobs a minute, twenty at once: they come within the day, not one a minute for ten days."""
    text = SMALL.replace("tasks: 100", "lasts: 1d\narrivals: {jobs_per_hour: 600, burst: 20, swing: 0.5}")
    jobs = list(made(text).jobs)
    assert 13_000 < len(jobs) < 16_000
    assert jobs[-1].at_ms < 1.1 * duration_ms("1d")  # type: ignore[operator]


def test_days_have_peaks() -> None:
    """More comes around the peak hour than twelve hours away."""
    text = SMALL.replace("tasks: 100", "lasts: 20d\narrivals: {jobs_per_hour: 60, swing: 0.9, peak_hour: 14}")
    hours = Counter(j.at_ms // 3_600_000 % 24 for j in made(text).jobs)
    assert sum(hours[h] for h in (13, 14, 15)) > 5 * sum(hours[h] for h in (1, 2, 3))


def test_run_times_have_the_stated_median() -> None:
    """Of every kind."""
    for kind in ("lognormal", "pareto", "exponential", "fixed"):
        text = SMALL.replace("tasks: 100", "tasks: 4000").replace(
            "sizes", f"run: {{kind: {kind}, median: 20m, spread: 1.5}}, sizes"
        )
        times = sorted(t.run_ms for j in made(text).jobs for t in j.tasks)
        assert times[len(times) // 2] == pytest.approx(1_200_000, rel=0.1), kind


def test_nothing_runs_longer_than_the_longest() -> None:
    """Heavy tails are cut there."""
    text = SMALL.replace("tasks: 100", "tasks: 3000").replace(
        "sizes", "run: {kind: pareto, median: 10m, spread: 1, longest: 1h}, sizes"
    )
    assert max(t.run_ms for j in made(text).jobs for t in j.tasks) == 3_600_000


def test_gangs_limits_retries_and_idle_reach_the_tasks() -> None:
    """A gang's tasks run equally long."""
    text = SMALL.replace("sizes", "gangs: 1, tasks: 4, limit_factor: 2, retries: 3, idle: true, priority: 9, sizes")
    jobs = list(made(text).jobs)
    gang = next(j for j in jobs if j.gang)
    assert len({t.run_ms for t in gang.tasks}) == 1
    assert all(j.gang == (len(j.tasks) > 1) for j in jobs)
    ask = gang.tasks[0].ask
    assert (ask.time_limit_ms, ask.priority, ask.idle) == (2 * gang.tasks[0].run_ms, 9, True)
    assert ask.retry is not None
    assert ask.retry.limit == 3


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("tasks: 100", "tasks: 0"), r"Expected `int` >= 1.*\$.tasks"),
        (("tasks: 100", ""), "has no end: say `tasks: 10000` or `lasts: 7d`"),
        (("tasks: 100", "lasts: soon"), r"'soon' must be a time.* - at `\$\.lasts`"),
        (("user: ann", "user: ann, colour: red"), "unknown field `colour`"),
        (("vcore: 1", "vcore: many"), r"invalid quantity.*'many'.* - at `\$\.tenants\[0\]\.sizes\[0\]`"),
        (("{vcore: 1}", "{weight: 2}"), "names no resource"),
        (("{vcore: 1}", "{vcore: 1, weight: 0}"), "weight 0 must be a number above 0"),
        (("[{vcore: 1}]", "[]"), "sizes must name at least one size"),
        (("user: ann", "user: ann, queue: a"), "queue 'a' must be a whole path, such as root.a"),
        (("user: ann", "user: ann, run: {kind: odd}"), r"Invalid enum value 'odd' - at `\$\.tenants\[0\]\.run\.kind`"),
        (("user: ann", "user: ann, run: {median: x}"), r"'x' must be a time.* - at `\$\.tenants\[0\]\.run\.median`"),
        (("user: ann", "user: ann, priority: 2147483648"), r"`int` <= 2147483647 - at `\$\.tenants\[0\]\.priority`"),
        (("tasks: 100", "tasks: [1"), "is not YAML"),
    ],
)
def test_a_bad_recipe_is_refused_with_its_place(change: tuple[str, str], says: str) -> None:
    """Nothing is ignored."""
    with pytest.raises(RecipeError, match=says):
        read_recipe(SMALL.replace(*change), "recipe")


def test_a_load_of_something_the_nodes_do_not_have_is_refused() -> None:
    """It could never be reached."""
    with pytest.raises(ValueError, match="cannot be reached"):
        made(SMALL.replace("vcore: 8", "memory: 1Gi"))


def test_durations_may_be_days() -> None:
    """Beside those of the queue file."""
    assert [duration_ms(t) for t in ("2d", "1.5d", "90s", "1h30m", "x", "d", "")] == [
        172_800_000,
        129_600_000,
        90_000,
        5_400_000,
        None,
        None,
        None,
    ]


@pytest.mark.parametrize(
    "run", ["{kind: lognormal, spread: 1000}", "{kind: pareto, spread: 0.001}", "{kind: pareto, spread: 1.0e-9}"]
)
def test_a_spread_beyond_all_numbers_is_cut_at_the_longest(run: str) -> None:
    """It ended in a traceback."""
    lengths = [t.run_ms for j in made(SMALL.replace("sizes", f"run: {run}, sizes")).jobs for t in j.tasks]
    assert max(lengths) == duration_ms("7d")


@pytest.mark.parametrize("said", ["limit_factor: .inf", "tasks: 1.0e+17", "weight: .inf"])
def test_numbers_that_nothing_can_be_drawn_with_are_refused(said: str) -> None:
    with pytest.raises(RecipeError, match=r"1000000000\.0"):
        made(SMALL.replace("sizes", f"{said}, sizes"))
