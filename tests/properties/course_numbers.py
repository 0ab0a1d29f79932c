"""Which courses a command takes: from a first number to the one after the last. Refuses what names none."""

from __future__ import annotations

from argparse import ArgumentParser


def require_some(arguments: ArgumentParser, first: int, last: int, target: str) -> None:
    """Ends the program with what the numbers mean when there is no course among them; `target`: of the Makefile."""
    if not 0 <= first < last:
        arguments.error(
            f"no courses from {first} to {last - 1}: LAST (COURSES of `make {target}`) is the number after that of the"
            " last course, not how many; FIRST (FROM) is 0 or more, and LAST more than that"
        )
