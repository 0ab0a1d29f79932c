"""Does twice the input take at most 2.3 times the work? Each reader; each route that takes, lists or means many things.

    make linear                              all of it
    python -m benchmarks.linear [PART]       only what has PART in its name

Counts seconds of processor time without searches for garbage, both sizes in turns (`linear_rounds`), so that other
processes count little; sizes are such that a try takes a moment. Exit status 1 if something grows faster.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from benchmarks.linear_readers import READERS
from benchmarks.linear_rounds import Growth, growth
from benchmarks.linear_routes import ratios

MOST = 2.3
"""Times as much for twice the input."""
LEAST_S = 0.05
"""What is measured takes at least so long; the input grows until it does."""
MOST_SIZE = 25_000
"""But it does not grow beyond this: more things at once nothing takes."""


def seconds(read: Callable[[], object]) -> float:
    """Of processor time."""
    began = time.process_time()
    read()
    return time.process_time() - began


def ratio(make: Callable[[int], Callable[[], object]], size: int) -> tuple[int, Growth]:
    """A size, what it takes, and how many times as much twice of it does."""
    while seconds(make(size)) < LEAST_S and size < MOST_SIZE:
        size *= 2
    once, twice = make(size), make(2 * size)
    return size, growth(lambda: seconds(once), lambda: seconds(twice))


def main() -> int:
    """Measure all; 1 if something grows faster than it may, 2 if nothing has such a name."""
    part, good, measured = sys.argv[1] if len(sys.argv) > 1 else "", True, 0
    for name, (make, size) in READERS.items():
        if part in name:
            size, took = ratio(make, size)
            measured += 1
            ok = took.times <= MOST
            good = good and ok
            about = f"{size}: {took.seconds * 1000:.0f} ms"
            print(f"{'ok  ' if ok else 'BAD '} {took.times:5.2f} times  {name} ({about})", flush=True)
    for found in ratios(part):
        measured += 1
        took = found.took
        ok = took.times <= MOST and found.status < 500
        good = good and ok
        about = f"{found.size}: {took.seconds * 1000:.0f} ms, {found.status}"
        print(f"{'ok  ' if ok else 'BAD '} {took.times:5.2f} times  {found.name} ({about})", flush=True)
    if not measured:
        print(f"no reader and no route has {part!r} in its name; the readers: {', '.join(READERS)}", file=sys.stderr)
        return 2
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
