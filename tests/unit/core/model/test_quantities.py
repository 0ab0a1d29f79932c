"""Amounts in words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.core.model.quantities import format_amount, format_amounts, format_bytes, format_exactly

GI = 2**30


@pytest.mark.parametrize(
    ("value", "down", "up"),
    [
        (0, "0", "0"),
        (1000, "1000", "1000"),
        (1024, "1Ki", "1Ki"),
        (4 * GI, "4Gi", "4Gi"),
        (4 * GI + 1, "4Gi", "4.1Gi"),
        (4 * GI - 1, "3.9Gi", "4Gi"),
        (GI - 1, "1023.9Mi", "1024Mi"),
        (16736 * 2**20, "16.3Gi", "16.4Gi"),
        (-3 * GI // 2, "-1.5Gi", "-1.5Gi"),
    ],
)
def test_bytes_have_one_decimal_at_most(value: int, down: str, up: str) -> None:
    assert (format_bytes(value), format_bytes(value, up=True)) == (down, up)


@pytest.mark.parametrize(
    ("vcore", "said"), [(0, "0"), (500, "0.5"), (2000, "2"), (3_998_100, "3998.1"), (-250, "-0.25")]
)
def test_cores_are_exact(vcore: int, said: str) -> None:
    assert format_amount("vcore", vcore) == said


@given(free=st.integers(0, 2**45), lacks=st.integers(1, 2**45))
def test_what_is_needed_never_looks_like_what_is_free(free: int, lacks: int) -> None:
    """Where too little is free the two texts differ: nobody reads "needs 4Gi; 4Gi are free"."""
    assert format_bytes(free + lacks, up=True) != format_bytes(free)


def test_people_read_cpu() -> None:
    amounts = {"vcore": 1500, "memory": 16736 * 2**20, "gpu": 1}
    assert format_amounts(amounts) == "cpu 1.5, gpu 1, memory 16.3Gi"
    assert format_exactly(amounts) == "cpu 1.5, gpu 1, memory 16736Mi"
    assert format_amounts({}) == format_exactly({}) == "nothing"
