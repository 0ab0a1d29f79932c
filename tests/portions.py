"""Which of the cases that were found once are taken when, and how many random ones.

Decides it by the build: the compiled one, on which they cost a third, takes all; the plain one takes some in
`make test`, and the rest of those that were found once among the slow tests; so it does with tests that take seconds
as a whole. Thus every `.ci/run` takes each. Never leaves one out for good.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from fairlead.version import build

PLAIN = 0.4
"""The part of the random cases that the plain build takes."""


def share(many: int) -> int:
    """So many random cases in the compiled build; fewer in the plain one."""
    return many if build() == "compiled" else round(many * PLAIN)


def where_compiled(test: Callable[..., None]) -> Callable[..., None]:
    """A test that the compiled build takes; the plain one has it among the slow tests."""
    return test if build() == "compiled" else pytest.mark.slow(test)


def in_portions(cases: Iterable[Any], one_in: int) -> list[Any]:
    """The cases, as parameters of a test: the plain build takes one in so many by default."""
    takes_all = build() == "compiled"
    return [
        each if takes_all or not number % one_in else pytest.param(*_values(each), marks=pytest.mark.slow)
        for number, each in enumerate(cases)
    ]


def _values(case: Any) -> tuple[Any, ...]:
    return case if isinstance(case, tuple) else (case,)
