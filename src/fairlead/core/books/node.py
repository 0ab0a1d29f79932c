"""A node: what it has, what is used and kept there, and how full it is.

Decides whether an amount fits on it. Never decides which work it takes; what a node suits is the matter of
`core.books.constraints_index`. Invariant: `available` is the total less what is allocated and occupied; `free` is what
of that is not kept for a nominated ask.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fairlead.core.model.constraints import CORDONED, HOSTNAME, NODE_NAME, PREFER_NO_SCHEDULE, Taint
from fairlead.core.model.matching import keeps_away
from fairlead.core.model.resources import Book, Items, Resources, add_to, fits_in, negative
from fairlead.core.model.specs import AskSpec, NodeSortSpec, NodeSpec

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fairlead.core.books.asks import Ask


class Node:
    """One node with its books."""

    __slots__ = (
        "allocations",
        "available",
        "discourages",
        "foreign",
        "free",
        "held",
        "id",
        "keeps_away",
        "labels",
        "occupied",
        "reservations",
        "row",
        "schedulable",
        "score_terms",
        "seq",
        "spec",
        "stamp",
        "total",
        "weight_sum",
    )

    def __init__(self, spec: NodeSpec, seq: int) -> None:
        self.id = spec.id
        self.spec = spec
        self.seq = seq
        self.labels: dict[str, str] = {}
        """What selectors and topology keys look at: its attributes, and its id."""
        self.keeps_away = False
        """It has a taint that not all work tolerates."""
        self.discourages = False
        """It has a taint by which it would rather be left alone."""
        self.describe(dict(spec.attributes), spec.taints)
        self.schedulable = spec.schedulable
        self.total: Book = {}
        self.occupied: Book = {}
        """What others (not this scheduler) use here."""
        self.available: Book = {}
        self.free: Book = self.available
        self.held: dict[Ask, Items] = {}
        """Space held for these asks while their victims leave."""
        self.allocations: dict[Ask, None] = {}
        self.foreign: dict[str, tuple[AskSpec, int]] = {}
        """Work of other schedulers by key: what was reported of it, and when."""
        self.reservations: dict[Ask, int] = {}
        """Asks for which it is set aside, and since when."""
        self.score_terms: tuple[tuple[str, int, float], ...] = ()
        self.weight_sum = 0.0
        # Kept orders (NodeTable).
        self.stamp = 0
        """Its entry in the orders that counts (`core.books.node_order`); 0: it stands in none."""
        self.row = -1

    @property
    def takes_new(self) -> bool:
        """Whether it takes new work, if that does not say that it may be cordoned: nobody drained or cordoned it."""
        return self.schedulable and all(taint.key != CORDONED for taint in self.spec.taints)

    @property
    def is_open(self) -> bool:
        """Whether it takes ordinary new work."""
        return self.schedulable and not self.reservations

    def takes(self, ask: Ask) -> bool:
        """Whether this ask may come, for whomever it is set aside; what requires the node may when it is drained."""
        return ask.required_node == self.id if ask.required_node else self.schedulable

    @property
    def is_common(self) -> bool:
        """Whether it takes ordinary new work that tolerates nothing."""
        return self.schedulable and not self.reservations and not self.keeps_away

    def describe(self, attributes: dict[str, str], taints: tuple[Taint, ...]) -> None:
        """Replace what the node says about itself (its table has to know: `NodeTable.describe`)."""
        self.spec = replace(self.spec, attributes=attributes, taints=taints)
        self.labels = {HOSTNAME: self.id, **attributes, NODE_NAME: self.id}
        self.keeps_away = any(keeps_away(taint) for taint in taints)
        self.discourages = any(taint.effect == PREFER_NO_SCHEDULE for taint in taints)

    def set_capacity(self, capacity: Resources) -> None:
        """Replace what the node has in total; amounts of 0 count as not there."""
        allocated = self.allocated
        self.total = capacity.as_dict()
        self.recompute(allocated)

    @property
    def allocated(self) -> Book:
        """What its allocations use: the rest of the total."""
        return {n: self.total.get(n, 0) - self.occupied.get(n, 0) - left for n, left in self.available.items()}

    def recompute(self, allocated: Book) -> None:
        """Work out `available` and `free` from the other books."""
        available = dict(self.total)
        for book in (allocated, self.occupied):
            for name, amount in book.items():
                available[name] = available.get(name, 0) - amount
        self.available = available
        self._recompute_free()

    def _recompute_free(self) -> None:
        if not self.held:
            self.free = self.available
            return
        free = dict(self.available)
        for items in self.held.values():
            for name, amount in items:
                free[name] = free.get(name, 0) - amount
        self.free = free

    def take(self, ask: Ask) -> None:
        """`ask` is allocated here. No check: the caller made sure, or is forced to."""
        available = self.available
        for name, amount in ask.items:
            if name in available:
                available[name] -= amount
            else:
                available[name] = -amount
        self.allocations[ask] = None
        if self.held:
            self._recompute_free()

    def give_back(self, ask: Ask) -> None:
        """`ask` is gone from here."""
        add_to(self.available, ask.items)
        del self.allocations[ask]
        if self.held:
            self._recompute_free()

    def resize(self, old: Items, new: Items) -> None:
        """An allocation here changed its size while it runs."""
        add_to(self.available, old)
        add_to(self.available, negative(new))
        if self.held:
            self._recompute_free()

    def hold(self, ask: Ask) -> None:
        """Keep space for `ask` while its victims leave."""
        self.held[ask] = ask.items
        self._recompute_free()

    def unhold(self, ask: Ask) -> None:
        """Keep space for `ask` no longer."""
        self.held.pop(ask, None)
        self._recompute_free()

    def set_foreign(self, key: str, reported: tuple[AskSpec, int] | None) -> None:
        """This was reported of work of another scheduler here, and then (None: it is here no longer)."""
        if reported is None:
            self.foreign.pop(key, None)
        else:
            self.foreign[key] = reported
        allocated = self.allocated
        self.occupied = {}
        for spec, _ in self.foreign.values():
            add_to(self.occupied, spec.resources.items)
        self.recompute(allocated)

    def running(self) -> Iterator[AskSpec]:
        """What runs here, of whatever scheduler."""
        yield from (ask.spec for ask in self.allocations)
        yield from (spec for spec, _ in self.foreign.values())

    def fits_total(self, items: Items) -> bool:
        """Whether the amount would fit on the empty node."""
        return fits_in(items, self.total)

    def free_for(self, ask: Ask, gone: Iterable[Ask] = ()) -> Book:
        """What is free for `ask` once some work has gone, counting what is held for itself."""
        free = dict(self.free)
        add_to(free, self.held.get(ask, ()))
        for each in gone:
            add_to(free, each.items)
        return free

    def room_for(self, ask: Ask) -> bool:
        """Whether `ask` fits into what is free for it."""
        return fits_in(ask.items, self.free_for(ask))

    def shortage(self, items: Items) -> float:
        """How much of an amount is missing in what is free, summed over the resources as parts of the amount."""
        return sum(max(amount - self.free.get(name, 0), 0) / amount for name, amount in items)

    def weigh(self, sort: NodeSortSpec) -> None:
        """Take over how the order of nodes is made."""
        terms = [(n, t, float(sort.weights[n])) for n, t in sorted(self.total.items()) if sort.weights.get(n, 0) > 0]
        self.score_terms = tuple(terms)
        self.weight_sum = sum(w for _, _, w in terms)

    def usage(self) -> float:
        """Weighted share in use, 0 (empty) to 1 (full); more when over-committed."""
        if not self.score_terms:
            return 0.0
        available, used = self.available, 0.0
        for name, total, weight in self.score_terms:
            used += (1.0 - available[name] / total) * weight
        return used / self.weight_sum

    def __repr__(self) -> str:
        return f"<Node {self.id}>"
