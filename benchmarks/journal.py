"""The benchmark of the journal's codec: what it costs to write asks and decisions down, and to read them back.

Decides what is measured: the processor time of `encode` and `decode` of 100 asks in one event, and of 100 decisions.
Never touches a file. Invariant: what is read back equals what was written.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

from fairlead.core.model.decisions import Allocated
from fairlead.core.model.events import AddAsks
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import AskSpec
from fairlead.journal import codec
from fairlead.sim.bench import print_rows

NAME = "journal"
COUNT = 100
ASKS_MAX_MICROS = 400.0
REPEATS = 200
"""Calls in a round; the fastest counts, since what else the machine does only ever adds to it."""


def rows(rounds: int) -> list[tuple[dict[str, Any], str]]:
    """A row for asks and one for decisions, as values and as a line."""
    sizes = tuple(Resources({"vcore": 500 * n, "memory": n * 2**30}) for n in (1, 2, 4))
    asks = AddAsks(
        tuple(
            AskSpec(application=f"app-{n % 7}", key=f"task-{n}", resources=sizes[n % 3], priority=n % 5)
            for n in range(COUNT)
        )
    )
    placed = tuple(Allocated(ask.application, ask.key, f"node-{n % 9}") for n, ask in enumerate(asks.asks))
    return [
        _row("asks", asks, codec.encode, codec.decode_event, rounds, ASKS_MAX_MICROS),
        _row("decisions", placed, codec.encode_all, codec.decode_decisions, rounds, None),
    ]


def _row(
    what: str,
    value: Any,
    encode: Callable[[Any], bytes],
    decode: Callable[[bytes], Any],
    rounds: int,
    most: float | None,
) -> tuple[dict[str, Any], str]:
    data = encode(value)
    if decode(data) != value:
        raise AssertionError(f"{what} were read back as something else")
    written = median(_micros(lambda: encode(value)) for _ in range(rounds))
    read = median(_micros(lambda: decode(data)) for _ in range(rounds))
    row: dict[str, Any] = {
        "name": f"{NAME}: {COUNT} {what}",
        "bytes": len(data),
        "encode_cpu_micros": round(written, 1),
        "decode_cpu_micros": round(read, 1),
    }
    line = (
        f"{NAME} {COUNT} {what:10} written in {written:6,.0f} µs, read in {read:6,.0f} µs of CPU; {len(data):,} bytes"
    )
    if most is not None:
        row |= {"limit_micros": most, "within": written + read <= most}
        line += f" (together {written + read:,.0f}, limit {most:,.0f})"
    return row, line


def _micros(act: Callable[[], object]) -> float:
    """The processor time of one call."""
    best = float("inf")
    for _ in range(REPEATS):
        began = time.process_time_ns()
        act()
        best = min(best, (time.process_time_ns() - began) / 1000)
    return best


if __name__ == "__main__":
    print_rows(rows(3), sys.stdout, as_json="--json" in sys.argv)
