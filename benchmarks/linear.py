"""Does twice the input take at most 2.3 times the work? Each reader; each route that takes, lists or means many things.

    make linear                              all of it
    python -m benchmarks.linear [PART]       only what has PART in its name

Counts seconds of processor time without searches for garbage, the least of several tries, so that other processes count
little; sizes are such that a try takes a moment. Exit status 1 if something grows faster.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable

from benchmarks.linear_readers import READERS
from benchmarks.linear_routes import ratios

MOST = 2.3
"""Times as much for twice the input."""
LEAST_S = 0.05
"""What is measured takes at least so long; the input grows until it does."""
MOST_SIZE = 25_000
"""But it does not grow beyond this: more things at once nothing takes."""
TRIES = 5


def seconds(read: Callable[[], object]) -> float:
    """The least processor time of some tries."""
    found = []
    for _ in range(TRIES):
        gc.collect()
        gc.disable()
        began = time.process_time()
        read()
        found.append(time.process_time() - began)
        gc.enable()
    return min(found)


def ratio(make: Callable[[int], Callable[[], object]], size: int) -> tuple[int, float, float]:
    """A size, what it takes, and how many times as much twice of it does."""
    while (took := seconds(make(size))) < LEAST_S and size < MOST_SIZE:
        size *= 2
    return size, took, seconds(make(2 * size)) / took


def main() -> int:
    """Measure all; 1 if something grows faster than it may, 2 if nothing has such a name."""
    part, good, measured = sys.argv[1] if len(sys.argv) > 1 else "", True, 0
    for name, (make, size) in READERS.items():
        if part in name:
            size, took, times = ratio(make, size)
            measured += 1
            good = good and times <= MOST
            print(f"{'ok  ' if times <= MOST else 'BAD '} {times:5.2f} times  {name} ({size}: {took * 1000:.0f} ms)")
    for found in ratios(part):
        measured += 1
        ok = found.times <= MOST and found.status < 500
        good = good and ok
        about = f"{found.size}: {found.seconds * 1000:.0f} ms, {found.status}"
        print(f"{'ok  ' if ok else 'BAD '} {found.times:5.2f} times  {found.name} ({about})", flush=True)
    if not measured:
        print(f"no reader and no route has {part!r} in its name; the readers: {', '.join(READERS)}", file=sys.stderr)
        return 2
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
