"""The shape that every reason has (a code, its numbers, one plain sentence), and why something is not taken in at all.

Decides what can be said of the latter; why what was taken in waits is said in `fairlead.core.model.reasons`, where the
refusals can be had too. Invariant: what a program reads is in the fields, and `code`, the name of the class in lower
case, names the type for good.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from fairlead.core.model.quantities import format_amounts


@dataclass(frozen=True, slots=True)
class Reason:
    """Why not (yet)."""

    code: ClassVar[str] = "unknown"
    template: ClassVar[str] = ""
    """The sentence, with fields in braces: amounts for people (what is needed rounded up), names with commas."""

    def __init_subclass__(cls) -> None:
        cls.code = re.sub(r"\B(?=[A-Z])", "-", cls.__name__).lower()

    def sentence(self) -> str:
        """One plain sentence with the numbers."""
        return self._sentence()

    def _sentence(self) -> str:
        return self.template.format_map({f.name: _in_words(f.name, getattr(self, f.name)) for f in fields(self)})

    def as_dict(self) -> dict[str, Any]:
        """`{"code": …, "sentence": …, <fields>}`, ready for JSON."""
        shown: dict[str, Any] = {"code": self.code, "sentence": self.sentence()}
        for f in fields(self):
            value = getattr(self, f.name)
            shown[f.name] = (
                dict(value) if isinstance(value, Mapping) else list(value) if isinstance(value, tuple) else value
            )
        return shown


def _in_words(name: str, value: Any) -> str:
    if isinstance(value, Mapping):
        return amounts_of(value, list(value), up=name == "needed")
    return some(value) if isinstance(value, tuple) else str(value)


NAMED = 3
"""So many asks a sentence names where there may be hundreds; the fields have all of them."""


def some(names: tuple[str, ...]) -> str:
    """The first few of some asks (`application/key`), for people."""
    return first_few(tuple(map(short, names[:NAMED])) + names[NAMED:])


def first_few(names: tuple[str, ...]) -> str:
    """The first few names as they are."""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"{', '.join(names[:NAMED]) or 'other work'}{more}"


def short(name: str) -> str:
    """`application/key` for people: the key alone where both are the same, or where it begins with the application."""
    application, _, key = name.partition("/")
    return (
        key if key == application or key.startswith((f"{application}/", f"{application}#", f"{application}.")) else name
    )


def amounts_of(amounts: Mapping[str, int], names: list[str], *, up: bool = False) -> str:
    """The amounts of these resources alone: a sentence names what is short and nothing else. Where more is used than
    there is, nothing is free.
    """
    return format_amounts({name: max(amounts.get(name, 0), 0) for name in names}, up=up)


def short_of(needed: Mapping[str, int], left: Mapping[str, int]) -> list[str]:
    """The resources of which less is left than needed; all of them where none is."""
    return [name for name in needed if needed[name] > left.get(name, 0)] or list(needed)


# -- refusals -----------------------------------------------------------------------------------------------------


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
