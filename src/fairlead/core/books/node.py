"""A node: what it has, what is used and kept there, and how full it is.

Decides whether an amount fits on it. Never decides which work it takes; what a node suits is the matter of
`core.books.constraints_index`. Invariant: `available` is the total less what is allocated and occupied; `free` is what
of that is not kept for a nominated ask.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from fairlead.core.model.constraints import CORDONED, HOSTNAME, NODE_NAME, Taint
from fairlead.core.model.matching import keeps_away
from fairlead.core.model.resources import Book, Items, Resources, add_to, fits_in, negative
from fairlead.core.model.specs import AskSpec, NodeSortSpec, NodeSpec

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fairlead.core.books.asks import Ask


@dataclass(slots=True, eq=False)
class Node:
    """One node with its books."""

    spec: NodeSpec
    seq: int
    id: str = field(init=False)
    labels: dict[str, str] = field(init=False)
    """What selectors and topology keys look at: its attributes, and its id."""
    keeps_away: bool = field(init=False)
    """It has a taint that not all work tolerates."""
    schedulable: bool = field(init=False)
    total: Book = field(default_factory=dict)
    occupied: Book = field(default_factory=dict)
    """What others (not this scheduler) use here."""
    available: Book = field(default_factory=dict)
    free: Book = field(init=False)
    held: dict[Ask, Items] = field(default_factory=dict)
    """Space held for these asks while their victims leave."""
    allocations: dict[Ask, None] = field(default_factory=dict)
    foreign: dict[str, tuple[AskSpec, int]] = field(default_factory=dict)
    """Work of other schedulers by key: what was reported of it, and when."""
    reservations: dict[Ask, int] = field(default_factory=dict)
    """Asks for which it is set aside, and since when."""
    score_terms: tuple[tuple[str, int, float], ...] = ()
    weight_sum: float = 0.0
    emptiest_first: bool = True
    """The smallest share in use is first; else the largest."""
    stamp: int = 0
    """Its entry in the orders that counts (`core.books.node_order`); 0: it stands in none."""
    row: int = -1
    """Where it stands in the columns (`core.books.node_columns`)."""

    def __post_init__(self) -> None:
        self.id, self.schedulable, self.free = self.spec.id, self.spec.schedulable, self.available
        self.describe(dict(self.spec.attributes), self.spec.taints)

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
        own = {} if NODE_NAME in attributes else {HOSTNAME: self.id}
        self.labels = {**own, **attributes, NODE_NAME: self.id}
        self.keeps_away = any(keeps_away(taint) for taint in taints)

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
        self.available = dict(self.total)
        for book in (allocated, self.occupied):
            add_to(self.available, negative(tuple(book.items())))
        self._recompute_free()

    def _recompute_free(self) -> None:
        self.free = self.available
        if self.held:
            free = self.free = dict(self.available)
            for items in self.held.values():
                for name, amount in items:
                    free[name] = free.get(name, 0) - amount

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
        self._recompute_free()

    def hold(self, ask: Ask) -> None:
        """Keep space for `ask` while its victims leave."""
        self.held[ask] = ask.items
        self._recompute_free()

    def unhold(self, ask: Ask) -> None:
        """Keep space for `ask` no longer."""
        self.held.pop(ask, None)
        self._recompute_free()

    def recount_foreign(self) -> None:
        """Other work of other schedulers runs here than before."""
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
        self.emptiest_first = sort.policy == "fair"

    def score(self) -> float:
        """Its place among all, smaller first: the weighted share in use, from 0 (empty) to 1 (full; more when it is
        over-committed), or 1 less that.
        """
        used = 0.0
        if self.score_terms:
            available = self.available
            for name, total, weight in self.score_terms:
                used += (1.0 - available[name] / total) * weight
            used /= self.weight_sum
        return used if self.emptiest_first else 1.0 - used

    def __repr__(self) -> str:
        return f"<Node {self.id}>"
