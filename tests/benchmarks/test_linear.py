"""Each reader does at most 2.3 times the work for twice the input: calls are counted, not time (`make linear`)."""

from __future__ import annotations

import cProfile

import pytest
from benchmarks.linear import MOST
from benchmarks.linear_readers import READERS

SMALLER = 4
"""So many times smaller than what is measured: calls need no long run to be counted."""


def calls(read: object) -> int:
    """Of functions, those of C among them."""
    profile = cProfile.Profile()
    profile.runcall(read)  # type: ignore[arg-type]
    return sum(entry.callcount for entry in profile.getstats())


@pytest.mark.parametrize("name", READERS)
def test_twice_the_input_is_at_most_so_many_times_the_calls(name: str) -> None:
    """The first run fills what is kept between runs."""
    make, size = READERS[name]
    size //= SMALLER
    for _ in range(2):
        once = calls(make(size))
    assert calls(make(2 * size)) <= MOST * once


def test_what_grows_faster_is_found() -> None:
    """A reader that looks at everything again for each thing."""

    def twice_over(n: int) -> object:
        return lambda: [max(range(5), key=lambda _: 0) for _ in range(n) for _ in range(n // 10)]

    assert calls(twice_over(100)) * MOST < calls(twice_over(200))
