"""Disruption budgets: how much of the work with certain labels may be stopped for others at once.

Decides which budgets a piece of work counts for and how many disruptions each of them has left. Never forbids anything:
a budget makes other victims be preferred, and what is violated in the end is said with the eviction. Invariant: a
budget never has less than 0 left. Nothing is kept of the work itself: it is counted when a search asks for it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from fairlead.core.constraints import Constraints
from fairlead.core.plain import from_plain, to_plain
from fairlead.core.reasons import Refused
from fairlead.core.suitability import flaw as constraints_flaw
from fairlead.core.suitability import matches

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fairlead.core.applications import Ask
    from fairlead.core.partition import Partition
    from fairlead.core.reasons import Reason
    from fairlead.core.specs import BudgetSpec

TAG_NAMESPACE = "namespace"
"""The tag of an application that says which namespace its work belongs to."""
_PART = re.compile(r"([0-9]{1,3})%")


def flaw(spec: BudgetSpec) -> str:
    """What is wrong with a budget and what to write instead; nothing when it makes sense."""
    if not spec.name:
        return "a budget has no name"
    given = [v for v in (spec.min_available, spec.max_unavailable) if v is not None]
    if len(given) != 1:
        return (
            f"budget {spec.name}: give either a minimum that stays (minAvailable) or a maximum that may stop "
            "(maxUnavailable), not both or neither"
        )
    bad = _amount_flaw(given[0]) or constraints_flaw(Constraints(selector=spec.selector))
    return f"budget {spec.name}: {bad}" if bad else ""


def _amount_flaw(amount: int | str) -> str:
    if isinstance(amount, int):
        return "" if amount >= 0 else f"{amount} is below 0"
    part = _PART.fullmatch(amount)
    if part is None or int(part[1]) > 100:
        return f"{amount!r} is neither a whole number nor a part from 0% to 100%"
    return ""


def scaled(amount: int | str, whole: int) -> int:
    """A bound as a number of works: itself, or that part of the whole, rounded up."""
    if isinstance(amount, int):
        return amount
    return -(-int(amount[:-1]) * whole // 100)


class Budgets:
    """All budgets, by name. They hold in each partition for itself."""

    __slots__ = ("_filed", "_specs")

    def __init__(self) -> None:
        self._specs: dict[str, BudgetSpec] = {}
        self._filed: dict[str, None] = {}
        """Names of those that the queue file has."""

    def __bool__(self) -> bool:
        return bool(self._specs)

    def __iter__(self) -> Iterator[BudgetSpec]:
        """Every budget, in the order in which they were made."""
        return iter(self._specs.values())

    def is_of_file(self, name: str) -> bool:
        """Whether the queue file declares it."""
        return name in self._filed

    def why_not_set(self, spec: BudgetSpec) -> Reason | None:
        """Why the budget cannot be made or changed so; None when it can."""
        bad = flaw(spec)
        if not bad and spec.name in self._filed:
            bad = f"budget {spec.name} is in the queue file; change it there"
        return Refused(bad) if bad else None

    def why_not_remove(self, name: str) -> Reason | None:
        """Why the budget cannot be removed; None when it can."""
        if name not in self._specs:
            return Refused(f"there is no budget {name}")
        return Refused(f"budget {name} is in the queue file; remove it there") if name in self._filed else None

    def set(self, spec: BudgetSpec) -> str:
        """Make the budget or change it: `added`, `changed`, or nothing when it was so already."""
        known = self._specs.get(spec.name)
        self._specs[spec.name] = spec
        return "added" if known is None else "changed" if known != spec else ""

    def remove(self, name: str) -> None:
        """It protects nothing any more."""
        del self._specs[name]
        self._filed.pop(name, None)

    def configure(self, specs: Iterable[BudgetSpec]) -> list[tuple[str, str]]:
        """The file's budgets are these from now on: name and `added`, `changed` or `removed` for each difference.

        Those that were made by order stay, unless the file has one of the same name.
        """
        wanted = {spec.name: spec for spec in specs}
        changes = [(name, "removed") for name in self._filed if name not in wanted]
        for name, _ in changes:
            self.remove(name)
        changes += [(spec.name, change) for spec in wanted.values() if (change := self.set(spec))]
        self._filed = dict.fromkeys(wanted)
        return changes

    def protecting(self, ask: Ask) -> tuple[str, ...]:
        """Names of the budgets that this work counts for. Placeholders are no work."""
        if ask.spec.placeholder:
            return ()
        namespace = ask.app.spec.tags.get(TAG_NAMESPACE, "")
        return tuple(
            name
            for name, spec in self._specs.items()
            if (not spec.namespace or spec.namespace == namespace) and matches(spec.selector, ask.spec.labels)
        )

    def left(self, partition: Partition) -> dict[str, int]:
        """How many more works each budget lets stop now.

        Expected is what waits, runs, or is to come as a further attempt; healthy is what runs and was not told to stop.
        """
        expected = dict.fromkeys(self._specs, 0)
        healthy = dict(expected)
        for app in partition.applications.values():
            for ask in app.asks.values():
                for name in self.protecting(ask):
                    expected[name] += 1
                    healthy[name] += ask.node is not None and ask.evict_cause is None
        for application, coming in partition.retries:
            app = partition.applications[application]
            namespace = app.spec.tags.get(TAG_NAMESPACE, "")
            for name, spec in self._specs.items():
                of_it = not spec.namespace or spec.namespace == namespace
                expected[name] += of_it and matches(spec.selector, coming.spec.labels)
        return {name: max(healthy[name] - _needed(spec, expected[name]), 0) for name, spec in self._specs.items()}

    def dump(self) -> list[Any]:
        """All of it as plain values."""
        return [[to_plain(spec), spec.name in self._filed] for spec in self._specs.values()]

    def load(self, rows: list[Any]) -> None:
        """What `dump` wrote down."""
        for plain, filed in rows:
            spec = from_plain(plain)
            self._specs[spec.name] = spec
            if filed:
                self._filed[spec.name] = None


def _needed(spec: BudgetSpec, expected: int) -> int:
    """How many have to stay."""
    if spec.min_available is not None:
        return scaled(spec.min_available, expected)
    assert spec.max_unavailable is not None
    return max(expected - scaled(spec.max_unavailable, expected), 0)


def violated(left: dict[str, int], victims: Iterable[tuple[Ask, tuple[str, ...]]]) -> dict[Ask, tuple[str, ...]]:
    """For each victim, taken in this order, the budgets that have nothing left for it; `left` stays as it is."""
    rest = dict(left)
    found: dict[Ask, tuple[str, ...]] = {}
    for victim, names in victims:
        for name in names:
            rest[name] = rest.get(name, 0) - 1
        found[victim] = tuple(name for name in names if rest[name] < 0)
    return found
