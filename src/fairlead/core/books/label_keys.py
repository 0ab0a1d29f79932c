"""Label keys: which labels of work matter, so that asks that differ in others alone are equal.

Decides when a label begins to count and when it no longer does. Never groups asks (`core.acts.shapes` does). Invariant:
a key counts while the terms of some ask in the books look at it; one that none looks at any more goes on counting
while asks that carry it wait, so that asks which were told apart need not be put together again, and again apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairlead.core.books.asks import Ask
    from fairlead.core.model.constraints import AffinityTerm, Constraints, SpreadTerm
    from fairlead.core.model.specs import AskSpec


class LabelKeys:
    """The keys that count, and by label what waits with it."""

    def __init__(self) -> None:
        self._lookers: dict[str, int] = {}
        """Of each key that counts: how many asks in the books have terms that look at it."""
        self._carriers: dict[str, dict[Ask, None]] = {}
        """Waiting asks by each label that they carry, whether it counts or not."""

    def __bool__(self) -> bool:
        return bool(self._lookers)

    def __contains__(self, key: str) -> bool:
        return key in self._lookers

    def __iter__(self) -> Iterator[str]:
        return iter(self._lookers)

    def look(self, where: Constraints) -> list[Ask]:
        """An ask with these constraints is in the books from now on: the waiting asks to be told apart, by arrival."""
        found: dict[Ask, None] = {}
        for key in keys_of(where):
            if key not in self._lookers:
                self._lookers[key] = 0
                found |= self._carriers.get(key, {})
            self._lookers[key] += 1
        return sorted(found, key=lambda ask: ask.seq)

    def look_no_longer(self, where: Constraints) -> None:
        """An ask with these constraints is gone from the books."""
        for key in keys_of(where):
            self._lookers[key] -= 1
            self._drop_if_unused(key)

    def carries(self, ask: Ask, labels: Mapping[str, str]) -> None:
        """The ask waits with these labels from now on (none: it runs, or is gone). Of those that it had until now, and
        which its `spec` still says, the others count for it no longer.
        """
        for key in labels:
            self._carriers.setdefault(key, {})[ask] = None
        for key in [key for key in ask.spec.labels if key not in labels]:
            carriers = self._carriers[key]
            del carriers[ask]
            if not carriers:
                del self._carriers[key]
                self._drop_if_unused(key)

    def _drop_if_unused(self, key: str) -> None:
        if self._lookers.get(key) == 0 and key not in self._carriers:
            del self._lookers[key]

    def load(self, keys: Iterable[str], asks: Iterable[Ask], others: Iterable[AskSpec]) -> None:
        """Those that counted when the state was written down, in that order; some may be there for nothing any more.

        `others`: work of other schedulers.
        """
        self._lookers = dict.fromkeys(keys, 0)
        for spec in others:
            self.look(spec.where)
        carried: dict[str, None] = {}
        for ask in asks:
            self.look(ask.spec.where)
            if ask.pending:
                carried |= dict.fromkeys(ask.spec.labels)
        self._lookers = {key: count for key, count in self._lookers.items() if count or key in carried}


def keys_of(where: Constraints) -> dict[str, None]:
    """The labels of work that terms of these constraints look at."""
    return {condition.key: None for term in terms_of(where) for condition in term.selector}


def terms_of(where: Constraints) -> tuple[AffinityTerm | SpreadTerm, ...]:
    """What these constraints say about other work."""
    return (*where.affinity, *where.anti_affinity, *where.spread)
