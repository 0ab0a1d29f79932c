"""Bound: what a plan of preemption by priority has to keep to: the room of one node, or one maximum of a queue.

Decides whether the room is enough as things are, and whether something may keep its own. Never decides what goes.
Invariant: what is `left` follows each ask that gives its room back or takes it again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from fairlead.core.books.asks import Ask
from fairlead.core.books.idle_work import payer
from fairlead.core.books.node import Node
from fairlead.core.books.queues import Queue
from fairlead.core.model.resources import Book


@dataclass(slots=True, eq=False)
class Bound:
    """Something that the ask has to fit into beside what stays: a node, or a queue's maximum."""

    place: Node | Queue
    left: Book
    """What is over; below 0: missing."""
    but_idle: bool = False
    """It is a guarantee: idle work counts for none."""

    def copy(self, gone: Iterable[Ask] = ()) -> Bound:
        """One to try things on, as it is once these are gone."""
        rest = Bound(self.place, dict(self.left), self.but_idle)
        for ask in gone:
            if rest.holds(ask):
                rest.add(ask, 1)
        return rest

    @property
    def is_kept(self) -> bool:
        """Whether nothing is missing."""
        return all(amount >= 0 for amount in self.left.values())

    def holds(self, ask: Ask) -> bool:
        """Whether this ask, running or nominated, takes its room from here."""
        if self.but_idle and ask.spec.idle:
            return False
        return self.place in payer(ask).lineage or self.place in (ask.node, ask.held_on)

    def add(self, ask: Ask, sign: int) -> None:
        """The ask gives its room back (1) or takes it (-1)."""
        left = self.left
        for name, amount in ask.items:
            if name in left:
                left[name] += sign * amount


def all_let(bounds: Iterable[Bound], ask: Ask) -> bool:
    """Whether the ask could take its room again from each of these without anything being missing."""
    for bound in bounds:
        left = bound.left
        for name, amount in ask.items:
            if name in left and amount > left[name]:
                return False
    return True
