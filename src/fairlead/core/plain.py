"""Plain values: declared things (specs, resources, limits, reasons) as JSON-ready values, and back.

Decides one form for each type, tagged with its name, so that a state can be written down without pickling. Never holds
running state. Invariant: `from_plain(to_plain(x)) == x` for every declared value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import StrEnum
from typing import Any

from fairlead.core import constraints, events, reasons, specs
from fairlead.core.resources import Limits, Resources

TAG = "$"

_CLASSES: dict[str, type[Any]] = {
    name: cls
    for module in (constraints, specs, reasons, events)
    for name, cls in sorted(vars(module).items())
    if isinstance(cls, type) and is_dataclass(cls)
}


def to_plain(value: Any) -> Any:
    """`value` as None, bool, int, float, str, list or dict; raises TypeError for anything that is not declared."""
    if isinstance(value, StrEnum):
        return str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Resources):
        return {TAG: "Resources", "of": value.as_dict()}
    if isinstance(value, Limits):
        return {TAG: "Limits", "of": value.as_dict()}
    if isinstance(value, tuple | list):
        return [to_plain(v) for v in value]
    if isinstance(value, Mapping):
        return {TAG: "map", "of": {str(k): to_plain(v) for k, v in value.items()}}
    if is_dataclass(value) and type(value).__name__ in _CLASSES:
        return {TAG: type(value).__name__} | {f.name: to_plain(getattr(value, f.name)) for f in fields(value)}
    raise TypeError(f"{type(value).__name__} has no plain form")


def from_plain(plain: Any) -> Any:
    """The value that `to_plain` wrote down; lists come back as tuples. Raises ValueError for an unknown tag."""
    if isinstance(plain, list):
        return tuple(from_plain(v) for v in plain)
    if not isinstance(plain, dict):
        return plain
    tag = plain.get(TAG)
    if tag == "Resources":
        return Resources(plain["of"])
    if tag == "Limits":
        return Limits(plain["of"])
    if tag == "map":
        return {k: from_plain(v) for k, v in plain["of"].items()}
    cls = _CLASSES.get(str(tag))
    if cls is None:
        raise ValueError(f"a value with the unknown tag {tag!r}: it was written by another version")
    return cls(**{k: from_plain(v) for k, v in plain.items() if k != TAG})
