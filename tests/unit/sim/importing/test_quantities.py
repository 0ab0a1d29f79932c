"""Quantities of tables: what is written is what is counted."""

from __future__ import annotations

from fairlead.sim.importing.quantities import cores_of


def test_thousandths_of_a_core_are_not_rounded_up() -> None:
    """Floating point says 65534.00000000001 for 65.534 times 1,000; what is finer than a thousandth takes the next."""
    assert all(cores_of(f"{n // 1000}.{n % 1000:03d}", "cores") == n for n in range(100_000))
    assert cores_of("0.0001", "cores") == 1
