"""An index of selectors: which of many match given labels, without trying each.

Decides nothing: it finds what `core.model.matching.matches` would find one by one. Never knows what the selectors are
for. Invariant: every selector is either under each label that one of its `In` conditions allows, or among the general
ones.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Generic, TypeVar

from fairlead.core.model.constraints import IN
from fairlead.core.model.matching import Selector, matches

K = TypeVar("K", bound=Hashable)


class SelectorIndex(Generic[K]):
    """Selectors by key, with a quick way to those that match."""

    def __init__(self) -> None:
        self.selectors: dict[K, Selector] = {}
        self._by_label: dict[tuple[str, str], dict[K, None]] = {}
        self._general: dict[K, None] = {}
        """Those that no single label leads to."""

    def add(self, key: K, selector: Selector) -> None:
        """A selector that is looked for from now on."""
        self.selectors[key] = selector
        labels = _labels_of(selector)
        for label in labels:
            self._by_label.setdefault(label, {})[key] = None
        if not labels:
            self._general[key] = None

    def drop(self, key: K) -> None:
        """A selector that is needed no longer."""
        self._general.pop(key, None)
        for label in _labels_of(self.selectors.pop(key)):
            of_label = self._by_label[label]
            of_label.pop(key, None)
            if not of_label:
                del self._by_label[label]

    def matching(self, labels: Mapping[str, str]) -> Iterator[K]:
        """The keys of those that match, each once, in no order that reaches a decision."""
        if self._by_label:
            for label in labels.items():
                for key in self._by_label.get(label, ()):
                    if matches(self.selectors[key], labels):
                        yield key
        for key in self._general:
            if matches(self.selectors[key], labels):
                yield key


def _labels_of(selector: Selector) -> list[tuple[str, str]]:
    """Labels of which work needs one to match; nothing when no single one leads to the selector."""
    for condition in selector:
        if condition.operator == IN:
            return [(condition.key, value) for value in dict.fromkeys(condition.values)]
    return []
