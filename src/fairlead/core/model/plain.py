"""Plain values: declared things (specs, resources, limits, reasons) as JSON-ready values, and back.

Decides one form for each type, tagged with its name, so that a state can be written down without pickling. Never holds
running state. Invariant: `from_plain(to_plain(x)) == x` for every declared value, as with `to_brief`, and no two plain
values share a part.

A state has tens of thousands of asks of twenty fields each: what a class looks like is found out once, and what is
plain already costs no call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from fairlead.core.model import conditions, constraints, events, reasons, specs
from fairlead.core.model.resources import Limits, Resources

TAG = "$"

_CLASSES: dict[str, type[Any]] = {
    name: cls
    for module in (conditions, constraints, specs, reasons, events)
    for name, cls in sorted(vars(module).items())
    if isinstance(cls, type) and is_dataclass(cls)
}
_AMOUNTS: dict[str, type[Resources | Limits]] = {"Resources": Resources, "Limits": Limits}
_ATOMS = frozenset({type(None), bool, int, float, str})
"""Exactly these are plain as they are."""


def to_plain(value: Any) -> Any:
    """`value` as None, bool, int, float, str, list or dict; raises TypeError for anything that is not declared."""
    kind = value.__class__
    if kind in _ATOMS:
        return value
    write = _WRITERS.get(kind) or _writer_of_other(value)
    return write(value)


def to_brief(value: Any) -> dict[str, Any]:
    """A declared value as `to_plain` writes it, without the fields that hold their defaults."""
    row: dict[str, Any] = to_plain(value)
    defaults = _DEFAULTS[value.__class__]
    return {name: part for name, part in row.items() if name not in defaults or part != defaults[name]}


def from_plain(plain: Any) -> Any:
    """The value that `to_plain` wrote down; lists come back as tuples. Raises ValueError for an unknown tag."""
    kind = plain.__class__
    if kind is list:
        return tuple([v if v.__class__ in _ATOMS else from_plain(v) for v in plain])
    if kind is not dict:
        return plain
    tag = plain.get(TAG)
    if tag in _AMOUNTS:
        return _AMOUNTS[tag](plain["of"])
    if tag == "map":
        return {k: v if v.__class__ in _ATOMS else from_plain(v) for k, v in plain["of"].items()}
    cls = _CLASSES.get(str(tag))
    if cls is None:
        raise ValueError(f"a value with the unknown tag {tag!r}: it was written by another version")
    return cls(**{k: v if v.__class__ in _ATOMS else from_plain(v) for k, v in plain.items() if k != TAG})


# -- how each type is written -------------------------------------------------------------------------------------


def _sequence(value: tuple[Any, ...] | list[Any]) -> list[Any]:
    return [v if v.__class__ in _ATOMS else to_plain(v) for v in value]


def _mapping(value: Mapping[Any, Any]) -> dict[str, Any]:
    return {TAG: "map", "of": {str(k): v if v.__class__ in _ATOMS else to_plain(v) for k, v in value.items()}}


def _amounts(value: Resources | Limits) -> dict[str, Any]:
    return {TAG: type(value).__name__, "of": value.as_dict()}


def _declared(cls: type[Any]) -> Callable[[Any], dict[str, Any]]:
    tag, names = cls.__name__, [f.name for f in fields(cls)]

    def write(value: Any) -> dict[str, Any]:
        row: dict[str, Any] = {TAG: tag}
        for name in names:
            part = getattr(value, name)
            row[name] = part if part.__class__ in _ATOMS else to_plain(part)
        return row

    return write


def _writer_of_other(value: Any) -> Callable[[Any], Any]:
    """What writes a value whose very class is not known: enumerations and further kinds of what is."""
    if isinstance(value, StrEnum):
        return str
    if isinstance(value, bool | int | float | str):
        return lambda plain: plain
    if isinstance(value, tuple | list):
        return _sequence
    if isinstance(value, Mapping):
        return _mapping
    if isinstance(value, np.integer):
        return int
    if isinstance(value, np.bool_):
        return bool
    raise TypeError(f"{type(value).__name__} has no plain form")


_WRITERS: dict[type[Any], Callable[[Any], Any]] = {
    Resources: _amounts,
    Limits: _amounts,
    tuple: _sequence,
    list: _sequence,
    dict: _mapping,
    **{cls: _declared(cls) for cls in _CLASSES.values()},
}
_DEFAULTS = {
    cls: {
        field.name: to_plain(field.default if field.default_factory is MISSING else field.default_factory())
        for field in fields(cls)
        if field.default is not MISSING or field.default_factory is not MISSING
    }
    for cls in _CLASSES.values()
}
"""The fields of each class that need not be given, with the plain form of what they are then."""
