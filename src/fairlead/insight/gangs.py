"""Gangs in a possible future: what their owners do once all placeholders stand.

Decides which gangs stand whole, and which real work comes for them then: one ask for each placeholder, of its size.
Never places anything. Invariant: the work of a gang comes once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fairlead.core.model.events import AddAsks

if TYPE_CHECKING:
    from fairlead.core.books.applications import Application
    from fairlead.core.model.specs import AskSpec
    from fairlead.scheduler import Scheduler

WORK = "~work"
"""How the key of a gang's supposed work ends."""


@dataclass(frozen=True, slots=True)
class Standing:
    """A gang whose placeholders all have a node."""

    partition: str
    placeholders: tuple[str, ...]
    """Their keys."""
    asks: tuple[AskSpec, ...]

    def work(self) -> AddAsks:
        """Its owner submits what is still missing of the real work."""
        return AddAsks(self.asks, self.partition)


class Gangs:
    """The gangs of one future."""

    __slots__ = ("_opened", "_scheduler")

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._opened: set[tuple[str, str]] = set()

    def standing(self) -> Iterator[Standing]:
        """Those that stand whole as it is."""
        for name, partition in self._scheduler.cluster.partitions.items():
            for app in list(partition.applications.values()):
                if app.placeholder_count and (found := self.complete(name, app)) is not None:
                    yield found

    def complete(self, partition: str, app: Application) -> Standing | None:
        """The gang of this application, if the last of its placeholders stands now."""
        placeholders = [ask for ask in app.asks.values() if ask.spec.placeholder]
        if (partition, app.id) in self._opened or any(ask.pending for ask in placeholders):
            return None
        self._opened.add((partition, app.id))
        came = Counter(a.spec.task_group for a in app.asks.values() if a.pending and not a.spec.placeholder)
        missing = []
        for ask in placeholders:
            group = ask.spec.task_group
            if came[group]:
                came[group] -= 1
            else:
                missing.append(replace(ask.spec, key=f"{ask.key}{WORK}", placeholder=False))
        return Standing(partition, tuple(ask.key for ask in placeholders), tuple(missing))
