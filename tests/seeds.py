"""Which seeds of a random course `make test` runs, and which wait for `make test-long`."""

from __future__ import annotations

import pytest


def seeds(quick: int, every: int) -> list[object]:
    """The seeds below `every`; those from `quick` on are slow ones."""
    return [seed if seed < quick else pytest.param(seed, marks=pytest.mark.slow) for seed in range(every)]
