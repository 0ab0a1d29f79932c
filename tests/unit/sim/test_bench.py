"""The project's own benchmarks measure what they say."""

from __future__ import annotations

import io
import json
import platform

import pytest

from fairlead.core.model.decisions import Allocated
from fairlead.core.model.specs import QueueSpec
from fairlead.scheduler import Scheduler
from fairlead.sim.bench import (
    CASES,
    ONE,
    Case,
    add_nodes,
    add_work,
    answers,
    cluster,
    idle_cycles,
    measure,
    place_all,
    print_rows,
    restart,
    row_text,
    run,
)
from fairlead.version import build, version_and_build


def small() -> Scheduler:
    """Two nodes, three asks, room for two."""
    scheduler = cluster([QueueSpec(name="leaf")])
    add_nodes(scheduler, 2, 1000, 100)
    add_work(scheduler, "app", "root.leaf", [(ONE, 0)] * 3)
    return scheduler


def small_and_full() -> Scheduler:
    """After everything that fits has been placed."""
    scheduler = small()
    assert sum(isinstance(d, Allocated) for d in scheduler.schedule(0)) == 2
    return scheduler


def test_placing_counts_what_was_placed() -> None:
    """Not what was asked for."""
    assert place_all(small()).count == 2


def test_idle_counts_calls_and_refuses_work() -> None:
    """A cycle that places something is not idle."""
    assert idle_cycles(small_and_full()).count == 2000
    with pytest.raises(RuntimeError, match="not idle"):
        idle_cycles(small())


def test_why_counts_the_applications_that_wait_and_refuses_what_could_start() -> None:
    assert answers(small_and_full()).count == 1
    with pytest.raises(RuntimeError, match="not of a full cluster"):
        answers(small())


def test_a_restart_counts_the_asks_it_brought_back() -> None:
    """Running and waiting ones."""
    assert restart(small_and_full()).count == 3


def test_a_row_is_the_median_of_its_rounds() -> None:
    """With all of them beside it."""
    row = measure(Case("x", "about", "allocation", small, place_all), 3)
    assert len(row["rounds"]) == 3
    assert row["rate"] == sorted(row["rounds"])[1]
    assert "allocations/s" in row_text(row)


@pytest.mark.thorough
def test_one_benchmark_runs_alone() -> None:
    """As a line of text or as JSON."""
    out = io.StringIO()
    assert run(out, only=["restart"], rounds=1, as_json=True) == 0
    (row,) = json.loads(out.getvalue())
    assert (row["name"], row["unit"], row["count"]) == ("restart", "ask", 20_000)
    assert row["rate"] > 0
    assert row["build"] == build()


def test_the_lines_open_with_the_build() -> None:
    """Figures without it say nothing."""
    out = io.StringIO()
    print_rows([({"name": "x"}, "the line")], out)
    assert out.getvalue() == f"fairlead {version_and_build()}, Python {platform.python_version()}\nthe line\n"


def test_an_unknown_benchmark_is_refused() -> None:
    """With the names that there are."""
    err = io.StringIO()
    assert run(io.StringIO(), err, only=["nonsense"]) == 2
    assert "flat" in err.getvalue()
    assert run(io.StringIO(), err, rounds=0) == 2


def test_every_benchmark_has_a_name_of_its_own() -> None:
    """Names select them."""
    assert len({case.name for case in CASES}) == len(CASES) >= 9
