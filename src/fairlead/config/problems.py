"""What is wrong with a queue file, as values: where, what, and what to do.

Decides how a finding is held, sorted and printed. Never judges a file. Invariant: a `ConfigurationError` holds at least
one problem of severity `error`, and its problems are in the order of the text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

ERROR = "error"
WARNING = "warning"

SHOWN_AT_MOST = 50
"""Problems printed by `str(ConfigurationError)`; the exception itself holds all of them."""


class Stage(IntEnum):
    """The steps in which YuniKorn checks a file; it stops at the first failure of the first step that fails."""

    SYNTAX = 0
    PARTITION_NAME = 1
    STRUCTURE = 2
    QUEUES = 3
    RESOURCES = 4
    RULES = 5
    NODE_SORT = 6
    MAX_APPLICATIONS = 7
    LIMIT_RESOURCES = 8
    LIMIT_APPLICATIONS = 9
    BUILD = 10
    """Found only when the partition is made from the file that passed all the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One finding. Line and column count from 1."""

    source: str
    line: int
    column: int
    path: str
    """Where in the structure, such as `partitions[0].queues[0].resources.max.vcore`; empty for the whole text."""
    value: str = ""
    """The offending value as text."""
    message: str
    """What is wrong and what to do."""
    reference: str = ""
    """The words in which Apache YuniKorn refuses the same thing, where it does."""
    severity: str = ERROR
    """`error` or `warning`; a file with warnings alone loads."""
    order: tuple[int, int, int] = field(default=(0, 0, 0), compare=False, repr=False)
    """(step or partition, stage, running number): sorts problems as YuniKorn would meet them."""

    def __str__(self) -> str:
        place = f" {self.path}:" if self.path else ""
        note = "" if self.severity == ERROR else f" {self.severity}:"
        return f"{self.source}:{self.line}:{self.column}:{place}{note} {self.message}"

    def as_dict(self) -> dict[str, str | int]:
        """The fields for JSON, without the inner order."""
        names = ("source", "line", "column", "path", "value", "message", "reference", "severity")
        return {name: getattr(self, name) for name in names}


class ConfigurationError(ValueError):
    """A queue file that cannot be used; `problems` holds everything that was found, warnings included."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        shown = [str(problem) for problem in self.problems[:SHOWN_AT_MOST]]
        rest = len(self.problems) - len(shown)
        super().__init__("\n".join([*shown, f"... and {rest} more"] if rest > 0 else shown))

    @property
    def errors(self) -> tuple[Problem, ...]:
        """The problems that stop the file from being used."""
        return tuple(problem for problem in self.problems if problem.severity == ERROR)

    def __reduce__(self) -> tuple[type[ConfigurationError], tuple[tuple[Problem, ...]]]:
        return (ConfigurationError, (self.problems,))


def in_text_order(problems: Iterable[Problem]) -> list[Problem]:
    """Sorted by line, then column, then as found; what two checks say of one place in the same words is said once."""
    once: dict[tuple[object, ...], Problem] = {}
    for problem in sorted(problems, key=lambda p: (p.source, p.line, p.column, p.order)):
        place = (problem.source, problem.line, problem.column, problem.path)
        once.setdefault((*place, problem.message, problem.severity), problem)
    return list(once.values())


def first_reference(problems: Iterable[Problem]) -> str:
    """YuniKorn's message for the failure it would have met first; empty if it would not refuse any of them."""
    refused = [p for p in problems if p.severity == ERROR and p.reference]
    return min(refused, key=lambda p: p.order).reference if refused else ""
