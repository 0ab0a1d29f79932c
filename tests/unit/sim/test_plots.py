"""Plots: how an axis is labelled."""

from __future__ import annotations

import pytest

from fairlead.sim.plots import time_text, time_ticks


@pytest.mark.parametrize(
    ("until_s", "texts"),
    [
        (42 * 3600, ["0", "8h", "16h", "24h", "32h", "40h"]),
        (5400, ["0", "15min", "30min", "45min", "60min", "75min", "90min"]),
        (4 * 86400, ["0", "12h", "24h", "36h", "48h", "60h", "72h", "84h", "96h"]),
        (40, ["0", "5s", "10s", "15s", "20s", "25s", "30s", "35s", "40s"]),
    ],
)
def test_an_axis_has_one_unit(until_s: float, texts: list[str]) -> None:
    """No `16h, 1d, 32h`."""
    ticks = time_ticks(until_s)
    assert [time_text(tick, ticks[1]) for tick in ticks] == texts


def test_a_time_by_itself_is_in_its_largest_unit() -> None:
    """As on an axis that is not even."""
    assert [time_text(s) for s in (0, 10, 60, 3600, 21_600, 86_400)] == ["0", "10s", "1min", "1h", "6h", "1d"]
