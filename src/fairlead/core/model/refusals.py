"""Why something is not taken in at all: refusals, part of `fairlead.core.model.reasons`, where others find them.

Decides what can be said of it. Never says why something that was taken in waits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fairlead.core.model.reason import Reason


@dataclass(frozen=True, slots=True)
class SubmitDenied(Reason):
    """No access list lets the user submit to a queue."""

    queue: str
    user: str
    groups: tuple[str, ...]

    def _sentence(self) -> str:
        groups = ", ".join(self.groups[:8]) + (", ..." if len(self.groups) > 8 else "")
        return (
            f"{self.user} may not submit to {self.queue}: no access list there or above it names {self.user} or one of "
            f"the groups {groups or '(none)'}"
        )


@dataclass(frozen=True, slots=True)
class UnknownPriorityClass(Reason):
    """There is no priority class of that name."""

    name: str
    known: tuple[str, ...]
    """The names of all classes, highest value first."""

    def _sentence(self) -> str:
        more = ", ..." if len(self.known) > 8 else ""
        return f"there is no priority class {self.name}; there are {', '.join(self.known[:8])}{more}"


@dataclass(frozen=True, slots=True)
class PriorityMismatch(Reason):
    """A priority was given beside a class that has another value."""

    template = (
        "priority class {name} stands for {value}, and the priority {priority} was given too; leave one of the two out"
    )
    name: str
    """The priority class."""
    value: int
    priority: int


@dataclass(frozen=True, slots=True)
class QuotaExceeded(Reason):
    """A quota by priority class has no room for it; this is known when it is submitted, and it does not wait."""

    template = "needs {needed}; quota {quota} of queue {queue} has {used} in use of {max}"
    quota: str
    queue: str
    """The queue whose quota it is."""
    needed: Mapping[str, int]
    used: Mapping[str, int]
    """What has been admitted under the quota, whether it waits or runs."""
    max: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class ClassNotAllowed(Reason):
    """Its priority class is limited, and no quota by class selects it in that queue."""

    template = (
        "priority class {name} is limited: it may be used only where a quota selects it, and none of {queue} or above "
        "does"
    )
    name: str
    """The priority class."""
    queue: str


@dataclass(frozen=True, slots=True)
class Refused(Reason):
    """A request that can never be done as it stands; `text` says why in the field's own words."""

    template = "{text}"
    text: str
