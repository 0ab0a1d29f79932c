"""The corpora, and some mutations of each: no reader fails but by its own errors (`make fuzz` goes further)."""

from __future__ import annotations

import pytest
from fuzz.mutations import CORPUS, MOST_BYTES, corpus, mutated
from fuzz.targets import TARGETS

EACH = 60


def test_each_target_has_a_small_corpus() -> None:
    """And nothing else is there."""
    assert sorted(TARGETS) == sorted(path.name for path in CORPUS.iterdir())
    assert all(len(data) <= MOST_BYTES for target in TARGETS for data in corpus(target))


@pytest.mark.thorough
@pytest.mark.parametrize("target", TARGETS)
def test_what_is_kept_and_what_is_like_it(target: str) -> None:
    """The same inputs every time."""
    inputs = corpus(target)
    for data in inputs:
        TARGETS[target](data)
    for number in range(EACH):
        TARGETS[target](mutated(inputs, number))
