"""The index of selectors finds exactly what trying each of them finds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairlead.core.model.constraints import DOES_NOT_EXIST, EXISTS, IN, NOT_IN, Requirement
from fairlead.core.model.matching import matches
from fairlead.core.model.selector_index import SelectorIndex

KEYS, VALUES = st.sampled_from("abc"), st.sampled_from("xyz")
WITH_VALUES = st.builds(
    lambda key, operator, values: Requirement(key, operator, tuple(values)),
    KEYS,
    st.sampled_from((IN, IN, NOT_IN)),
    st.lists(VALUES, min_size=1, max_size=3),
)
WITHOUT = st.builds(Requirement, KEYS, st.sampled_from((EXISTS, DOES_NOT_EXIST)))
SELECTORS = st.lists(WITH_VALUES | WITHOUT, max_size=3).map(tuple)


@given(
    selectors=st.lists(SELECTORS, max_size=8),
    dropped=st.lists(st.integers(0, 7)),
    asked=st.lists(st.dictionaries(KEYS, VALUES), min_size=1),
)
def test_it_finds_what_trying_each_one_finds(
    selectors: list[tuple[Requirement, ...]], dropped: list[int], asked: list[dict[str, str]]
) -> None:
    """Each once, also after some are dropped; and nothing is left of what was dropped."""
    index: SelectorIndex[int] = SelectorIndex()
    for key, selector in enumerate(selectors):
        index.add(key, selector)
    for key in dict.fromkeys(dropped):
        if key in index.selectors:
            index.drop(key)
    kept = {key: s for key, s in enumerate(selectors) if key not in dropped}
    for labels in asked:
        assert sorted(index.matching(labels)) == [key for key, s in kept.items() if matches(s, labels)]
