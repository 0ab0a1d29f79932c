"""What the tests of pages share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from testbed.nursery import Nursery


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    """Starts services without paying for their imports each time."""
    made = Nursery()
    yield made
    made.close()
