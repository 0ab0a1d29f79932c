"""A few seeds of `make crash-everywhere`: those that broke a promise once, and some more."""

from __future__ import annotations

import pytest
from crashes import services, supervisors
from crashes.tracing import allowed

pytestmark = [pytest.mark.real, pytest.mark.timeout(300), pytest.mark.skipif(bool(allowed()), reason=allowed())]


@pytest.mark.parametrize("first", [53, 157, 193, 345, 23887, 50761])
def test_faults_at_system_calls_of_a_supervisor(first: int) -> None:
    """An end that is told once, nothing twice, nothing left."""
    counts, failures = supervisors.run(first, 2)
    assert not failures, failures
    assert counts.total() == 2


def test_faults_at_system_calls_of_the_service() -> None:
    """What was acknowledged runs once."""
    counts, failures = services.run(0, 3)
    assert not failures, failures
    assert counts["jobs"] >= 1
