"""Windows: which of them an ask would run into, when it would begin to, and what that means for where it may run."""

from __future__ import annotations

import pytest

from fairlead.core.books.windows import occurrence, window_problem
from fairlead.core.model.specs import WindowSpec

HOUR = 3_600_000
DAY = 24 * HOUR


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (WindowSpec(name="", starts_ms=0, length_ms=1), "a window has no name"),
        (WindowSpec(name="w", starts_ms=0, length_ms=0), "longer than nothing"),
        (WindowSpec(name="w", starts_ms=-1, length_ms=1), "before 1970"),
        (WindowSpec(name="w", starts_ms=0, length_ms=5, every_ms=5), "come again before it is over"),
        (WindowSpec(name="w", starts_ms=0, length_ms=5, every_ms=-1), "come again before it is over"),
    ],
)
def test_what_makes_no_sense_is_said(spec: WindowSpec, said: str) -> None:
    assert said in (window_problem(spec) or ("", ""))[1]


def test_a_sensible_one_has_no_flaw() -> None:
    assert window_problem(WindowSpec(name="w", starts_ms=0, length_ms=HOUR, every_ms=DAY)) is None


def test_one_time_is_itself_until_it_is_over() -> None:
    spec = WindowSpec(name="w", starts_ms=100, length_ms=10)
    assert [occurrence(spec, now) for now in (0, 100, 109, 110)] == [(100, 110)] * 3 + [None]


def test_one_that_comes_again_is_the_open_one_or_the_next() -> None:
    spec = WindowSpec(name="w", starts_ms=100, length_ms=10, every_ms=50)
    assert occurrence(spec, 0) == occurrence(spec, 109) == (100, 110)
    assert occurrence(spec, 110) == occurrence(spec, 159) == (150, 160)
    assert occurrence(spec, 160) == occurrence(spec, 200) == (200, 210)
    assert occurrence(spec, 100 + 50 * 1000 + 9) == (50_100, 50_110)
