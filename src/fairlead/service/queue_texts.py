"""Texts that are to be the queue file of a service: whether one can be used here, and what is wrong with it.

Decides what a service asks of a queue file beyond what every reader of one asks: a text that is not empty, nothing in
it that would be ignored, and the partition of this machine. Never puts one in force.
"""

from __future__ import annotations

import msgspec

from fairlead.config import ConfigurationError, Problem, check_text, load_text
from fairlead.config.home import homeless, not_yet
from fairlead.core.model.specs import ClusterSpec
from fairlead.runtime import Refusal
from fairlead.wire.configuration import ConfigProblem


def usable(text: str, source: str = "<text>") -> ClusterSpec:
    """The configuration of a text. Raises `ConfigurationError` also for what would be ignored, or has no place here."""
    if not text.strip():
        # The reader takes the empty text for its built-in file; a truncated file must not have that effect.
        message = "the text is empty; a queue file needs at least one partition"
        raise ConfigurationError([Problem(source=source, line=1, column=1, path="", message=message)])
    spec = load_text(text, source)
    if missing := not_yet(spec, source, knows_groups=True):
        raise ConfigurationError(missing)
    if missing := homeless(spec, source):
        raise ConfigurationError(missing)
    return spec


def problems_of(text: str) -> list[Problem]:
    """Everything that is wrong with a text, or odd in it."""
    found = check_text(text)
    if any(problem.severity == "error" for problem in found):
        return found
    try:
        usable(text)
    except ConfigurationError as error:
        return [*found, *error.problems]
    return found


def shown_problem(problem: Problem) -> ConfigProblem:
    """A problem for the outside."""
    return ConfigProblem(**{name: getattr(problem, name) for name in ConfigProblem.__struct_fields__})


def taken(text: str, field: str = "text") -> ClusterSpec:
    """The configuration of a text in a request. Raises `Refusal` with everything that is wrong with it."""
    try:
        return usable(text)
    except ConfigurationError as error:
        details = [msgspec.to_builtins(shown_problem(problem)) for problem in error.problems]
        first = error.errors[0]
        place = f"{first.path}: " if first.path else ""
        more = f" (and {len(error.errors) - 1} more)" if len(error.errors) > 1 else ""
        message = f"line {first.line}: {place}{first.message}{more}"
        raise Refusal("invalid", message, field=field, details=details) from error
