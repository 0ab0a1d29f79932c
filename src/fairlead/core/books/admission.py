"""What administrators declare beside the tree of queues, for the whole cluster: priority classes and their quotas.

Decides what the queue file's part of it means for the rest. Never decides about an ask (`policy.events.admission`).
Invariant: every ask and allocation of every partition is counted in the quotas that it comes under, exactly once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from fairlead.core.books.budgets import Budgets
from fairlead.core.books.class_quotas import ClassQuotas
from fairlead.core.books.classes import PriorityClasses
from fairlead.core.books.declared import Declared
from fairlead.core.books.windows import Windows
from fairlead.core.model.resources import negative

if TYPE_CHECKING:
    from fairlead.core.books import Ask, Partition
    from fairlead.core.model.resources import Items
    from fairlead.core.model.specs import ClusterSpec

CLASS, QUOTA, BUDGET, WINDOW = "priority-class", "quota", "budget", "window"
"""Kinds of declared things."""


class Admission:
    """The classes and quotas that new work is measured against; one for all partitions."""

    def __init__(self, partitions: Iterable[Partition] = ()) -> None:
        self.classes = PriorityClasses()
        self.quotas = ClassQuotas(partial(every_ask, partitions))
        self.budgets = Budgets()
        self.windows = Windows()

    @property
    def is_asked(self) -> bool:
        """Whether even an ask without a class has to be looked at."""
        return self.classes.default is not None or bool(self.quotas)

    def enter(self, ask: Ask) -> None:
        """`ask` is in the books from now on."""
        self.quotas.count(ask, 1)
        if (counted := self.budgets.counted.get(ask.app.spec.partition)) is not None:
            counted.enter(ask, self.budgets.protecting(ask))

    def leave(self, ask: Ask) -> None:
        """`ask` is in the books no longer."""
        self.quotas.count(ask, -1)
        if (counted := self.budgets.counted.get(ask.app.spec.partition)) is not None:
            counted.leave(ask)

    def changed(self, ask: Ask) -> None:
        """`ask` started, or was told to stop."""
        if (counted := self.budgets.counted.get(ask.app.spec.partition)) is not None:
            counted.changed(ask)

    def resized(self, ask: Ask, old: Items, new: Items) -> None:
        """`ask` changes its size."""
        for items in (negative(old), new):
            self.quotas.add(ask.app.queue.path, ask.spec.priority_class, items)

    def file_problems(self, spec: ClusterSpec) -> list[str]:
        """Why the queue file's part cannot be put in force."""
        of_classes = self.classes.file_problems(spec.priority_classes)
        return [*of_classes, *self.quotas.flaws(spec.quotas), *self.budgets.flaws(spec.budgets)]

    def configure(self, spec: ClusterSpec) -> list[tuple[str, str, str]]:
        """The queue file declares this from now on: kind, name and change of whatever differs."""
        declared = {CLASS: spec.priority_classes, QUOTA: spec.quotas, BUDGET: spec.budgets}
        return [(kind, *change) for kind, specs in declared.items() for change in self.of(kind).configure(specs)]

    def of(self, kind: str) -> Declared[Any]:
        """The things of this kind."""
        books: dict[str, Declared[Any]] = {
            CLASS: self.classes,
            QUOTA: self.quotas,
            BUDGET: self.budgets,
            WINDOW: self.windows,
        }
        return books[kind]

    def dump(self) -> dict[str, Any]:
        """All of it as plain values."""
        return {
            "classes": self.classes.dump(),
            "quotas": self.quotas.dump(),
            "budgets": self.budgets.dump(),
            "windows": self.windows.dump(),
        }

    def load(self, state: dict[str, Any] | None) -> None:
        """What `dump` wrote down (None: by a version that knew nothing of it); nothing is admitted yet."""
        if state is not None:
            self.classes.load(state["classes"])
            self.quotas.load(state["quotas"])
            self.budgets.load(state["budgets"])
            self.windows.load(state.get("windows"))


def every_ask(partitions: Iterable[Partition]) -> Iterator[Ask]:
    """Everything admitted: what waits and what runs."""
    for partition in partitions:
        for app in partition.applications.values():
            yield from app.asks.values()
