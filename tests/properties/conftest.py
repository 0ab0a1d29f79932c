"""How many courses the property tests of all policies take: a few each time, with `--steps N` as many as that is."""

from __future__ import annotations

import pytest
from portions import share

COURSES = share(6)
STEPS_OF_ONE = 200


@pytest.fixture(scope="session")
def courses(pytestconfig: pytest.Config) -> int:
    """A course of all policies costs as much as thousands of steps of the core alone, so by default there are few."""
    asked: int | None = pytestconfig.getoption("--steps")
    return max(asked // STEPS_OF_ONE, 1) if asked else COURSES
