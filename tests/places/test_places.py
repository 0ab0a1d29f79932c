"""One policy, four places: the same workload, the same events in the same order, the same decisions.

Here the library, the simulator and the machine; `tests/kubernetes/test_places.py` has the cluster.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from places import library, machine, simulator
from places.course import lines
from places.workload import Workload, drawn, read

from fairlead.core.books.applications import Application
from fairlead.policy.order import pick

ALL = ["fair_queues", "by_priority", "guarantees", "gang"]
ONE_NODE = ["by_priority", "guarantees"]
"""Those that one machine can be given."""
SEEDS = [0, pytest.param(1, marks=pytest.mark.thorough)]


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder with a short name: the path of a socket has its limit."""
    folder = Path("/tmp") / f"fl-places-{os.getpid()}"
    folder.mkdir()
    yield folder
    shutil.rmtree(folder)


def _says_something(workload: Workload) -> list[str]:
    """The course in the simulator: there must be something to compare."""
    said = lines(simulator.run(workload))
    assert sum(" -> " in pick for pick in said) >= 8
    return said


@pytest.mark.parametrize("name", ALL)
def test_library_and_simulator_decide_the_same(name: str) -> None:
    """By hand on a clock of its own, and in virtual time."""
    workload = read(name)
    course = simulator.run(workload)
    assert lines(library.run(workload, course)) == _says_something(workload)


@pytest.mark.parametrize("seed", SEEDS)
def test_library_and_simulator_decide_the_same_at_random(seed: int) -> None:
    """200 tasks: queues, classes, limits, taints, selectors, victims."""
    workload = drawn(seed)
    course = simulator.run(workload)
    assert lines(library.run(workload, course)) == _says_something(workload)


@pytest.mark.real
@pytest.mark.parametrize("name", ONE_NODE)
def test_the_machine_decides_the_same(name: str, short: Path) -> None:
    """With real processes that end by themselves or are asked to."""
    workload = read(name)
    course = simulator.run(workload)
    assert lines(machine.run(short, workload, course)) == _says_something(workload)


@pytest.mark.parametrize("name", [*ALL, ""])
def test_another_tie_break_would_be_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one place of two equal applications the later goes first: no workload is so plain that nobody notices."""
    workload = read(name) if name else drawn(0)
    course = simulator.run(workload)
    right = pick.application_key

    def later_first(app: Application) -> tuple[object, ...]:
        *before, last = right(app)
        submitted = (-app.submitted_ms, -app.seq)
        return (*before, submitted) if isinstance(last, tuple) and len(last) == 2 else (*before, last)

    monkeypatch.setattr(pick, "application_key", later_first)
    changed = library.run(workload, course)
    assert lines(changed) != lines(course)
