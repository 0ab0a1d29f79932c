"""A few seeds of `make crash-everywhere`: those that broke a promise once, and some more."""

from __future__ import annotations

import pytest
from crashes import services, supervisors
from crashes.tracing import allowed

pytestmark = [pytest.mark.real, pytest.mark.timeout(300), pytest.mark.skipif(bool(allowed()), reason=allowed())]


@pytest.mark.parametrize(
    "first", [53, 157, *(pytest.param(each, marks=pytest.mark.thorough) for each in [193, 345, 23887, 50761])]
)
def test_faults_at_system_calls_of_a_supervisor(first: int) -> None:
    """An end that is told once, nothing twice, nothing left."""
    counts, failures = supervisors.run(first, 2)
    assert not failures, failures
    assert counts.total() == 2


@pytest.mark.thorough
@pytest.mark.parametrize(("first", "seeds"), [(0, 3), (50040, 5), (50260, 3), (70345, 2)])
def test_faults_at_system_calls_of_the_service(first: int, seeds: int) -> None:
    """What was acknowledged runs once; what the disk refuses is a sentence in the log."""
    counts, failures = services.run(first, seeds)
    assert not failures, failures
    assert counts["jobs"] >= 1
