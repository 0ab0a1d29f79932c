"""Declared things: what administrators name beside the tree of queues, by the queue file or by order.

Decides what may be made, changed and removed: what the queue file declares changes with the file alone, and a file that
names what was made by order takes it over. Never decides what a thing means (the books of each kind do). Invariant: all
that the file declares is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from fairlead.core.model.plain import from_plain
from fairlead.core.model.reasons import Reason, Refused
from fairlead.core.model.specs import BudgetSpec, PriorityClassSpec, QuotaSpec, WindowSpec

if TYPE_CHECKING:
    from fairlead.core.books.asks import Ask

S = TypeVar("S", PriorityClassSpec, BudgetSpec, QuotaSpec, WindowSpec)
Asks = Callable[[], Iterable["Ask"]]
"""All work that waits or runs, for those that count it."""


def no_asks() -> Iterable[Ask]:
    """Where nothing counts work."""
    return ()


def in_words(problem: tuple[str, str] | None) -> str:
    """Of a field that is wrong and what to do about it, the second alone; nothing when all is well."""
    return problem[1] if problem is not None else ""


class Declared(Generic[S]):
    """The things of one kind by name, in the order in which they were made."""

    def __init__(self, what: str, flaw: Callable[[S], str]) -> None:
        self._what = what
        """What people call such a thing."""
        self._flaw: Callable[[S], str] = flaw
        """What is wrong with one and what to write instead; nothing when it makes sense."""
        self._specs: dict[str, S] = {}
        self._filed: dict[str, None] = {}
        """Names of those that the queue file has."""

    def __bool__(self) -> bool:
        return bool(self._specs)

    def is_of_file(self, name: str) -> bool:
        """Whether the queue file declares it."""
        return name in self._filed

    def flaws(self, specs: Iterable[S]) -> list[str]:
        """What is wrong with any of these."""
        return [flaw for flaw in map(self._flaw, specs) if flaw]

    def why_not_set(self, spec: S) -> Reason | None:
        """Why it cannot be made or changed so; None when it can."""
        flaw = self._flaw(spec)
        if not flaw and spec.name in self._filed:
            flaw = f"{self._what} {spec.name} is in the queue file; change it there"
        return Refused(flaw) if flaw else None

    def why_not_remove(self, name: str) -> Reason | None:
        """Why it cannot be removed; None when it can."""
        if name not in self._specs:
            return Refused(f"there is no {self._what} {name}")
        filed = name in self._filed
        return Refused(f"{self._what} {name} is in the queue file; remove it there") if filed else None

    def set(self, spec: S, asks: Asks = no_asks) -> str:
        """Make it or change it: `added`, `changed`, or nothing when it was so already."""
        known = self._specs.get(spec.name)
        if known == spec:
            return ""
        self._specs[spec.name] = spec
        self._changed(spec.name, asks)
        return "added" if known is None else "changed"

    def remove(self, name: str) -> None:
        """It holds no longer."""
        del self._specs[name]
        self._filed.pop(name, None)
        self._changed(name, no_asks)

    def configure(self, specs: Iterable[S], asks: Asks = no_asks) -> list[tuple[str, str]]:
        """The file's are these from now on: name and `added`, `changed` or `removed` for each difference.

        What was made by order stays, unless the file has something of the same name.
        """
        wanted = {spec.name: spec for spec in specs}
        changes = [(name, "removed") for name in self._filed if name not in wanted]
        for name, _ in changes:
            self.remove(name)
        changes += [(spec.name, change) for spec in wanted.values() if (change := self.set(spec, asks))]
        self._filed = dict.fromkeys(wanted)
        return changes

    def _load(self, specs: Iterable[Any], filed: Iterable[str]) -> None:
        for spec in map(from_plain, specs):
            self._specs[spec.name] = spec
            self._changed(spec.name, no_asks)
        self._filed = dict.fromkeys(filed)

    def _changed(self, name: str, asks: Asks) -> None:
        """It was made, changed or removed: what is kept beside it follows."""
