"""What is wrong with a queue file, as values: where, what, and what to do.

Decides how a finding is held, sorted and printed. Never judges a file. Invariant: a `ConfigurationError` holds at least
one problem of severity `error`, and its problems are in the order of the text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

ERROR = "error"
WARNING = "warning"

SHOWN_AT_MOST = 50
"""Problems printed by `str(ConfigurationError)`; the exception itself holds all of them."""


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
    severity: str = ERROR
    """`error` or `warning`; a file with warnings alone loads."""

    def __str__(self) -> str:
        place = f" {self.path}:" if self.path else ""
        note = "" if self.severity == ERROR else f" {self.severity}:"
        return f"{self.source}:{self.line}:{self.column}:{place}{note} {self.message}"

    def as_dict(self) -> dict[str, str | int]:
        """The fields for JSON."""
        return asdict(self)


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
    for problem in sorted(problems, key=lambda p: (p.source, p.line, p.column)):
        place = (problem.source, problem.line, problem.column, problem.path)
        once.setdefault((*place, problem.message, problem.severity), problem)
    return list(once.values())
