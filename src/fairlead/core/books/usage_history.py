"""Consumption: what an application has had so far, as the REST reads show it.

Decides what counts: the most that its real allocations were at once, and for every allocation that ended its amount
times how long it lasted, by what became of it and by the type of its node. Never plays a part in a decision. Invariant:
figures change only when an allocation ends or shrinks, so that placing costs nothing; a reader adds what runs now.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fairlead.core.model.events import Cause
from fairlead.core.model.resources import Book

if TYPE_CHECKING:
    from fairlead.core.books import Ask, Node

USED, PREEMPTED, PLACEHOLDER = "used", "preempted", "placeholder"
INSTANCE_TYPE = "si/instance-type"
UNKNOWN_INSTANCE = "UNKNOWN"


@dataclass(slots=True)
class Consumption:
    """The figures of one application."""

    peak: Book = field(default_factory=dict)
    """The most of each resource that real allocations had at once, up to the last end."""
    spent: dict[tuple[str, str], Book] = field(default_factory=dict)
    """By bucket and instance type: amount times milliseconds."""

    def note_peak(self, allocated: Book) -> None:
        """Take note of what is allocated, before it becomes less."""
        peak = self.peak
        for name, amount in allocated.items():
            if amount > peak.get(name, 0):
                peak[name] = amount

    def note_end(self, ask: Ask, node: Node, now_ms: int) -> None:
        """An allocation ends now; call it before the books forget why and where."""
        lasted_ms = now_ms - (ask.allocated_ms or 0)
        if lasted_ms <= 0:
            return
        bucket = PLACEHOLDER if ask.spec.placeholder else USED
        if ask.evict_cause is Cause.PREEMPTED_BY_SCHEDULER:
            bucket = PREEMPTED
        key = (bucket, node.spec.attributes.get(INSTANCE_TYPE) or UNKNOWN_INSTANCE)
        spent = self.spent.setdefault(key, {})
        for name, amount in ask.items:
            spent[name] = spent.get(name, 0) + amount * lasted_ms

    def seconds(self, bucket: str) -> dict[str, dict[str, int]]:
        """Amount times whole seconds of a bucket, by instance type."""
        return {
            instance: {name: spent[name] // 1000 for name in sorted(spent)}
            for (of, instance), spent in sorted(self.spent.items())
            if of == bucket
        }

    def as_plain(self) -> dict[str, Any]:
        """The figures as JSON-ready values, in one order."""
        spent = [[*key, dict(sorted(book.items()))] for key, book in sorted(self.spent.items())]
        return {"peak": dict(sorted(self.peak.items())), "spent": spent}

    @classmethod
    def of_plain(cls, plain: Mapping[str, Any]) -> Consumption:
        """What `as_plain` wrote."""
        spent = {(bucket, instance): dict(book) for bucket, instance, book in plain["spent"]}
        return cls(dict(plain["peak"]), spent)
