"""Which courses a command takes: from a first number to the one after the last. Refuses what names none."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence


def asked_for(texts: Sequence[str] | None, description: str, target: str, rules: Sequence[str] = ()) -> Namespace:
    """The `first` and `last` of a command line, after its `rule` if there are `rules`; `target`: of the Makefile."""
    arguments = ArgumentParser(description=description)
    if rules:
        arguments.add_argument("rule", choices=rules, help="the rule of preemption")
    arguments.add_argument("first", type=int, help="the number of the first course")
    arguments.add_argument("last", type=int, help="the number after that of the last course")
    given = arguments.parse_args(texts)
    require_some(arguments, given.first, given.last, target)
    return given


def require_some(arguments: ArgumentParser, first: int, last: int, target: str) -> None:
    """Ends the program with what the numbers mean when there is no course among them; `target`: of the Makefile."""
    if not 0 <= first < last:
        arguments.error(
            f"no courses from {first} to {last - 1}: LAST (COURSES of `make {target}`) is the number after that of the"
            " last course, not how many; FIRST (FROM) is 0 or more, and LAST more than that"
        )
