"""Quantities of tables: what is written is what is counted."""

from __future__ import annotations

import pytest

from fairlead.sim.importing.quantities import cores_of, duration_of
from fairlead.sim.importing.units import Kind, Unit, unit_of


def test_thousandths_of_a_core_are_not_rounded_up() -> None:
    """Floating point says 65534.00000000001 for 65.534 times 1,000; what is finer than a thousandth takes the next."""
    assert all(cores_of(f"{n // 1000}.{n % 1000:03d}", "cores") == n for n in range(100_000))
    assert cores_of("0.0001", "cores") == 1


@pytest.mark.parametrize(
    ("texts", "unit", "first_s"),
    [
        (("5:32", "1:06:32", "1-02:03:04"), "m:ss", 332),
        (("5:32", "6:32", "1-02:03:04"), "m:ss", 332),
        (("5:32", "6:32", "99:00"), "m:ss", 332),
        (("5:32", "6:32", "7:00"), "h:mm", 19_920),
    ],
)
def test_minutes_and_seconds_are_told_by_longer_texts_beside_them(
    texts: tuple[str, ...], unit: str, first_s: int
) -> None:
    """As `squeue` writes times: hours and days stand there only where there are any."""
    found = unit_of(Kind.DURATION, "Elapsed", texts)
    assert found == Unit(unit, known=False)
    assert duration_of(texts[0], unit) == first_s * 1000


def test_units_may_say_that_they_may_be_more_than_one() -> None:
    """As LSF writes run times."""
    texts = ("3600 second(s)", "1 second(s)")
    assert unit_of(Kind.DURATION, "RUN_TIME", texts) is not None
    assert [duration_of(text, "") for text in (*texts, "1 hour(s) 2 minute(s)")] == [3_600_000, 1000, 3_720_000]
