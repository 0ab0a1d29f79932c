"""Declared things: what administrators name beside the tree of queues, by the queue file or by order.

Decides what may be made, changed and removed: what the queue file declares changes with the file alone, and a file that
names what was made by order takes it over. Never decides what a thing means (the books of each kind do). Invariant: all
that the file declares is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from fairlead.core.model.plain import from_plain
from fairlead.core.model.reasons import Reason, Refused
from fairlead.core.model.specs import BudgetSpec, PriorityClassSpec, QuotaSpec, WindowSpec

S = TypeVar("S", PriorityClassSpec, BudgetSpec, QuotaSpec, WindowSpec)
Problem = tuple[str, str] | None
"""The field that is wrong (nothing: the whole) and what to do about it; None when all is well."""


class Declared(Generic[S]):
    """The things of one kind by name, in the order in which they were made."""

    def __init__(self, what: str, problem: Callable[[S], Problem]) -> None:
        self._what = what
        """What people call such a thing."""
        self._problem: Callable[[S], Problem] = problem
        self._specs: dict[str, S] = {}
        self._filed: dict[str, None] = {}
        """Names of those that the queue file has."""

    def __bool__(self) -> bool:
        return bool(self._specs)

    def __iter__(self) -> Iterator[S]:
        """In the order in which they were made."""
        return iter(self._specs.values())

    def get(self, name: str) -> S | None:
        """The one of this name."""
        return self._specs.get(name)

    def is_of_file(self, name: str) -> bool:
        """Whether the queue file declares it."""
        return name in self._filed

    def flaws(self, specs: Iterable[S]) -> list[str]:
        """What is wrong with any of these."""
        return [problem[1] for problem in map(self._problem, specs) if problem is not None]

    def why_not_set(self, spec: S) -> Reason | None:
        """Why it cannot be made or changed so; None when it can."""
        if flaws := self.flaws([spec]):
            return Refused(flaws[0])
        filed = spec.name in self._filed
        return Refused(f"{self._what} {spec.name} is in the queue file; change it there") if filed else None

    def why_not_remove(self, name: str) -> Reason | None:
        """Why it cannot be removed; None when it can."""
        if name not in self._specs:
            return Refused(f"there is no {self._what} {name}")
        filed = name in self._filed
        return Refused(f"{self._what} {name} is in the queue file; remove it there") if filed else None

    def set(self, spec: S) -> str:
        """Make it or change it: `added`, `changed`, or nothing when it was so already."""
        known = self._specs.get(spec.name)
        if known == spec:
            return ""
        self._specs[spec.name] = spec
        self._changed(spec.name)
        return "added" if known is None else "changed"

    def remove(self, name: str) -> None:
        """It holds no longer."""
        del self._specs[name]
        self._filed.pop(name, None)
        self._changed(name)

    def configure(self, specs: Iterable[S]) -> list[tuple[str, str]]:
        """The file's are these from now on: name and `added`, `changed` or `removed` for each difference.

        What was made by order stays, unless the file has something of the same name.
        """
        wanted = {spec.name: spec for spec in specs}
        changes = [(name, "removed") for name in self._filed if name not in wanted]
        for name, _ in changes:
            self.remove(name)
        changes += [(spec.name, change) for spec in wanted.values() if (change := self.set(spec))]
        self._filed = dict.fromkeys(wanted)
        return changes

    def _load(self, specs: Iterable[Any], filed: Iterable[str]) -> None:
        for spec in map(from_plain, specs):
            self._specs[spec.name] = spec
            self._changed(spec.name)
        self._filed = dict.fromkeys(filed)

    def _changed(self, name: str) -> None:
        """It was made, changed or removed: what is kept beside it follows."""
