from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.config import ERROR, ConfigurationError, check_text, default_text, load_text
from fairlead.config.declare import FILE_KEYS, LIMIT_KEYS, PARTITION_KEYS, QUEUE_KEYS, RULE_KEYS, TEMPLATE_KEYS
from fairlead.config.load import not_yet
from fairlead.config.show import as_yaml

KEYS = sorted({*FILE_KEYS, *PARTITION_KEYS, *QUEUE_KEYS, *LIMIT_KEYS, *RULE_KEYS, *TEMPLATE_KEYS, "max", "vcore", "<<"})
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["*", "root", "a", "10", "fixed"])
    | st.text()
)
TREES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS) | st.text(), inner, max_size=5),
    max_leaves=25,
)
MARKS = [*list(":-[]{}&*!|>'\"%@`#,? \n\t~"), "<<: ", "&a ", "*a", "---\n", "\x00", "ü", "�", "!!int ", "\ufeff"]


def settled(text: str) -> None:
    """Loads, or raises the one error with at least one problem; what loads can be shown and examined."""
    problems = check_text(text)
    assert all(p.line >= 1 and p.column >= 1 and p.message for p in problems)
    if any(p.severity == ERROR for p in problems):
        with pytest.raises(ConfigurationError) as caught:
            load_text(text)
        assert list(caught.value.problems) == problems
        return
    spec = load_text(text)
    assert spec.partitions
    assert as_yaml(spec)
    assert all(p.message.startswith("not yet: ") for p in not_yet(spec))


@settings(max_examples=150, deadline=None)
@given(st.text())
def test_any_text_loads_or_is_refused(text: str) -> None:
    """Never another exception."""
    settled(text)


@settings(max_examples=150, deadline=None)
@given(TREES)
def test_any_structure_loads_or_is_refused(tree: object) -> None:
    """JSON of known keys in the wrong places with values of any type."""
    settled(json.dumps({"partitions": tree}, ensure_ascii=False))


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 6), st.sampled_from(MARKS)), min_size=1, max_size=4))
def test_a_damaged_file_loads_or_is_refused(damage: list[tuple[int, int, str]]) -> None:
    """A good file with pieces cut out and signs put in."""
    text = default_text()
    for at, length, mark in damage:
        text = text[:at] + mark + text[at + length :]
    settled(text)
