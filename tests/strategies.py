"""Hypothesis strategies for every value that crosses the front door: specs, events, decisions, reasons.

Derived from the type hints, so that a new event, decision or reason is drawn without a line here. `events`, `decisions`
and `reasons` draw any of them; `of(cls)` draws one class with every field.
"""

from __future__ import annotations

import typing
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from hypothesis import strategies as st

from fairlead.core.model import reasons as reason_module
from fairlead.core.model.decisions import DECISIONS, Decision
from fairlead.core.model.events import EVENTS, Event
from fairlead.core.model.reasons import Reason
from fairlead.core.model.resources import Limits, Resources
from fairlead.core.model.specs import (
    ApplicationSpec,
    AskSpec,
    ClusterSpec,
    FilterSpec,
    LimitSpec,
    NodeSortSpec,
    NodeSpec,
    PartitionSpec,
    PreemptionSpec,
    QueueSpec,
    RuleSpec,
    TemplateSpec,
)

EVENT_TYPES: tuple[type, ...] = EVENTS
DECISION_TYPES: tuple[type, ...] = DECISIONS
REASON_TYPES: tuple[type[Reason], ...] = tuple(
    c for c in vars(reason_module).values() if isinstance(c, type) and issubclass(c, Reason) and c is not Reason
)

NAMES = st.sampled_from(["vcore", "memory", "nvidia.com/gpu", "pods"]) | st.text(max_size=8)
INTEGERS = st.integers(-(2**31), 2**31 - 1) | st.integers(-(2**70), 2**70)
RESOURCES = st.dictionaries(NAMES, INTEGERS, max_size=4).map(Resources)
LIMITS = st.dictionaries(NAMES, INTEGERS, max_size=4).map(Limits)


TEXT = st.text(max_size=10)


def of(cls: type, **chosen: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Any value of a dataclass, every field drawn by its type unless `chosen`."""
    hints = typing.get_type_hints(cls)
    return st.builds(
        cls, **{f.name: chosen[f.name] if f.name in chosen else _small(hints[f.name]) for f in fields(cls) if f.init}
    )


def _small(hint: Any) -> st.SearchStrategy[Any]:
    """What the type says, but small: a long list finds nothing that a short one does not."""
    args = typing.get_args(hint)
    if hint is str:
        return TEXT
    if typing.get_origin(hint) is tuple and args[1:] == (...,):
        return st.lists(_small(args[0]), max_size=2).map(tuple)
    if typing.get_origin(hint) is Mapping:
        return st.dictionaries(NAMES, _small(args[1]), max_size=3)
    return st.from_type(hint)


st.register_type_strategy(Resources, RESOURCES)
st.register_type_strategy(Limits, LIMITS)
for _cls in (ApplicationSpec, AskSpec, FilterSpec, LimitSpec, NodeSpec, PreemptionSpec, TemplateSpec):
    st.register_type_strategy(_cls, of(_cls))
st.register_type_strategy(
    NodeSortSpec,
    of(NodeSortSpec, weights=st.dictionaries(NAMES, st.floats(allow_nan=False, allow_infinity=False), max_size=3)),
)

RULES = st.recursive(of(RuleSpec, parent=st.none()), lambda inner: of(RuleSpec, parent=st.none() | inner), max_leaves=3)
QUEUES = st.recursive(
    of(QueueSpec, queues=st.just(())),
    lambda inner: of(QueueSpec, queues=st.lists(inner, max_size=3).map(tuple)),
    max_leaves=5,
)
st.register_type_strategy(RuleSpec, RULES)
st.register_type_strategy(QueueSpec, QUEUES)
for _cls in (PartitionSpec, ClusterSpec):
    st.register_type_strategy(_cls, of(_cls))

REASONS = st.one_of([of(c) for c in REASON_TYPES])
st.register_type_strategy(Reason, REASONS)


def events() -> st.SearchStrategy[Event]:
    """Any event."""
    return st.one_of([of(c) for c in EVENT_TYPES])


def decisions() -> st.SearchStrategy[Decision]:
    """Any decision."""
    return st.one_of([of(c) for c in DECISION_TYPES])


def reasons() -> st.SearchStrategy[Reason]:
    """Any reason."""
    return REASONS
