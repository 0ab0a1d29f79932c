"""Disruption budgets: how much of the work with certain labels may be stopped for others at once.

Decides which budgets a piece of work counts for and how many disruptions each of them has left. Never forbids anything:
a budget makes other victims be preferred, and what is violated in the end is said with the eviction. Invariant: a
budget never has less than 0 left.

A partition is counted when a search first asks for it, and followed from then on: each start, end and order to stop of
work that some budget is about. A change of the budgets makes all counts void. So nothing is counted that is not asked
for.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fairlead.core.books.declared import Declared, Problem
from fairlead.core.model.constraints import Constraints
from fairlead.core.model.matching import flaw as constraints_flaw
from fairlead.core.model.plain import to_plain
from fairlead.core.model.selector_index import SelectorIndex
from fairlead.core.model.specs import BudgetSpec

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fairlead.core.books import Application, Ask, Partition
    from fairlead.core.model.specs import AskSpec

TAG_NAMESPACE = "namespace"
"""The tag of an application that says which namespace its work belongs to."""
_PART = re.compile(r"([0-9]{1,3})%")


def budget_problem(spec: BudgetSpec) -> Problem:
    """What is wrong with a budget."""
    if not spec.name:
        return "", "a budget has no name"
    given = [v for v in (spec.min_available, spec.max_unavailable) if v is not None]
    if len(given) != 1:
        return "", (
            f"budget {spec.name}: give either a minimum that stays (minAvailable) or a maximum that may stop "
            "(maxUnavailable), not both or neither"
        )
    bad = _amount_flaw(given[0]) or constraints_flaw(Constraints(selector=spec.selector))
    return ("", f"budget {spec.name}: {bad}") if bad else None


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


class Counted:
    """What each budget counts in one partition."""

    def __init__(self) -> None:
        self.expected: Counter[str] = Counter()
        """What waits or runs."""
        self.healthy: Counter[str] = Counter()
        """What runs and was not told to stop."""
        self.works: dict[Ask, tuple[tuple[str, ...], bool]] = {}
        """Of all work that some budget is about: which budgets, and whether it was counted as healthy."""
        self.coming: Counter[str] = Counter()
        """What is held until its conditions are met, as of `coming_version` of the partition's held asks."""
        self.coming_version = -1

    def enter(self, ask: Ask, names: tuple[str, ...]) -> None:
        """It counts for these budgets from now on."""
        if names:
            self.works[ask] = names, False
            self.expected.update(names)
            self.changed(ask)

    def leave(self, ask: Ask) -> None:
        """It counts no longer."""
        names, was_healthy = self.works.pop(ask, ((), False))
        self.expected.subtract(names)
        self.healthy.subtract(names if was_healthy else ())

    def changed(self, ask: Ask) -> None:
        """It started, or was told to stop."""
        names, was_healthy = self.works.get(ask, ((), False))
        is_healthy = ask.node is not None and ask.evict_cause is None
        if names:
            self.works[ask] = names, is_healthy
        for name in names:
            self.healthy[name] += is_healthy - was_healthy


class Budgets(Declared[BudgetSpec]):
    """All budgets, by name. They hold in each partition for itself."""

    def __init__(self) -> None:
        super().__init__("budget", budget_problem)
        self._index: SelectorIndex[str] = SelectorIndex()
        """The budgets by the labels that they look at."""
        self.counted: dict[str, Counted] = {}
        """By partition; those that were asked for since the budgets last changed."""

    def _changed(self, name: str) -> None:
        if name in self._index.selectors:
            self._index.drop(name)
        if name in self._specs:
            self._index.add(name, self._specs[name].selector)
        self.counted.clear()

    # -- what counts for them -------------------------------------------------------------------------------------

    def protecting(self, ask: Ask) -> tuple[str, ...]:
        """Names of the budgets that this work counts for, in the order of the budgets. Placeholders are no work."""
        return () if ask.spec.placeholder else self._about(ask.app, ask.spec)

    def _about(self, app: Application, spec: AskSpec) -> tuple[str, ...]:
        namespaces = ("", app.spec.tags.get(TAG_NAMESPACE, ""))
        matching = self._index.matching(spec.labels)
        found = {name: None for name in matching if self._specs[name].namespace in namespaces}
        return tuple(found) if len(found) < 2 else tuple(name for name in self._specs if name in found)

    def told_to_stop(self, ask: Ask) -> None:
        """`ask` is told to stop, for the first time: where the place counts, that much less is left, counted or not."""
        if self._specs and ask.evict_cause is None:
            for name in self.protecting(ask):
                spec = self._specs[name]
                if spec.left:
                    self._specs[name] = replace(spec, left=spec.left - 1)

    def left(self, partition: Partition) -> dict[str, int]:
        """How many more works each budget lets stop now.

        Where the place counts, that is what it said, less what was told to stop since. Else: expected is what waits,
        runs, or is held until its conditions are met; healthy is what runs and was not told to stop.
        """
        counted = self.counted.get(partition.name)
        if counted is None:
            counted = self.counted[partition.name] = self._count(partition)
        if counted.coming_version != partition.held_asks.version:
            counted.coming, counted.coming_version = self._coming(partition), partition.held_asks.version
        expected, healthy, coming = counted.expected, counted.healthy, counted.coming
        return {
            name: max(healthy[name] - _needed(spec, expected[name] + coming[name]), 0)
            if spec.left is None
            else spec.left
            for name, spec in self._specs.items()
        }

    def _count(self, partition: Partition) -> Counted:
        counted = Counted()
        for app in partition.applications.values():
            for ask in app.asks.values():
                counted.enter(ask, self.protecting(ask))
        return counted

    def _coming(self, partition: Partition) -> Counter[str]:
        held = ((partition.applications[application], each.spec) for application, each in partition.held_asks)
        return Counter(name for app, spec in held for name in self._about(app, spec))

    # -- written down ---------------------------------------------------------------------------------------------

    def dump(self) -> list[Any]:
        """Each with whether the file declares it, as plain values."""
        return [[to_plain(spec), name in self._filed] for name, spec in self._specs.items()]

    def load(self, rows: list[Any]) -> None:
        """What `dump` wrote down."""
        self._load((plain for plain, _ in rows), (plain["name"] for plain, filed in rows if filed))


def _needed(spec: BudgetSpec, expected: int) -> int:
    """How many have to stay."""
    if spec.max_unavailable is None:
        return scaled(spec.min_available or 0, expected)
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
