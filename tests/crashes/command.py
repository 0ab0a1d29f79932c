"""`make crash-everywhere`, for supervisors and for services: seeds, what became of them, what broke a promise.

Decides what is printed and the exit status. Never decides what a seed does.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable

from crashes.tracing import allowed

Run = Callable[[int, int], tuple[Counter[str], list[str]]]
"""The first seed and how many: what became of them, and a sentence for each broken promise."""


def again(program: str, first: int, seeds: int) -> str:
    """The command that runs these seeds again."""
    return f"PYTHONPATH=tests:src .venv/bin/python tests/crashes/{program}.py --first {first} --seeds {seeds}"


def main(about: str | None, run: Run) -> int:
    """The exit status: 1 if a promise was broken, 2 if nothing can be traced here."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    given = parser.parse_args()
    if given.seeds < 1:
        parser.error("there has to be one seed at least")
    if why := allowed():
        print(why, file=sys.stderr)
        return 2
    counts, failures = run(given.first, given.seeds)
    found = ", ".join(f"{count} {what}" for what, count in sorted(counts.items()))
    print(f"seeds {given.first} to {given.first + given.seeds - 1}, {len(failures)} failures: {found}")
    for failure in failures:
        print(failure, file=sys.stderr)
    return 1 if failures else 0
