"""The project's own benchmarks: how fast the core places, idles and restarts.

Decides how rounds become one figure: the median of all rounds, each on a freshly built state. Never compares with
anything. Invariant: only the calls named by a case are timed, building its state is not.
"""

from __future__ import annotations

import gc
import os
import platform
import statistics
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, TextIO

import msgspec

from fairlead.sim.bench_cases import CASES, Case
from fairlead.version import build, version_and_build

Others = Callable[[int], Iterable[tuple[dict[str, Any], str]]]


def run(
    out: TextIO | None = None,
    err: TextIO | None = None,
    *,
    only: Collection[str] = (),
    rounds: int = 3,
    as_json: bool = False,
    others: Mapping[str, Others] = MappingProxyType({}),
) -> int:
    """Run the benchmarks (or `only` those), and print the build and a line for each.

    Returns 0, or 2 after a sentence on `err`. `others` are benchmarks from elsewhere, by name: each takes the rounds
    and gives rows with their lines.
    """
    out, err = out or sys.stdout, err or sys.stderr
    known = [*(c.name for c in CASES), *others]
    unknown = sorted(set(only) - set(known))
    if unknown or rounds < 1:
        names = ", ".join(known)
        problem = (
            f"there is no benchmark {', '.join(unknown)}; there are {names}" if unknown else "rounds must be 1 or more"
        )
        print(f"cannot run the benchmarks: {problem}", file=err)
        return 2
    rows = []
    if not as_json:
        print(f"fairlead {version_and_build()}, Python {platform.python_version()}", file=out, flush=True)
    for case in CASES:
        if only and case.name not in only:
            continue
        row = measure(case, rounds)
        rows.append({"build": build()} | row)
        if not as_json:
            print(row_text(row), file=out, flush=True)
    for name, other in others.items():
        if not only or name in only:
            for row, line in other(rounds):
                rows.append({"build": build()} | row)
                if not as_json:
                    print(line, file=out, flush=True)
    if as_json:
        print(msgspec.json.encode(rows).decode(), file=out)
    return 0


def measure(case: Case, rounds: int) -> dict[str, Any]:
    """All rounds of one case: `rate` (units a second, the median), `micros` for each unit, `memory_mb` grown by."""
    rates, count, grown = [], 0, 0.0
    for _ in range(rounds):
        gc.collect()
        before = resident_mb()
        state = case.prepare()
        sample = case.measure(state)
        grown = max(grown, resident_mb() - before)
        count = sample.count
        rates.append(sample.count / sample.seconds)
        del state
    rate = statistics.median(rates)
    return {
        "name": case.name,
        "about": case.about,
        "unit": case.unit,
        "count": count,
        "rate": round(rate, 1),
        "micros": round(1e6 / rate, 2),
        "rounds": [round(r, 1) for r in rates],
        "memory_mb": round(grown, 1),
    }


def resident_mb() -> float:
    """The memory of this process that is in RAM, in MB; 0 where the system does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def row_text(row: dict[str, Any]) -> str:
    """One benchmark as one line."""
    return (
        f"{row['name']:10} {row['rate']:11,.0f} {row['unit'] + 's/s':14} {row['micros']:9,.2f} µs each"
        f"  {row['count']:7,} of them  {row['memory_mb']:7.1f} MB   {row['about']}"
    )
