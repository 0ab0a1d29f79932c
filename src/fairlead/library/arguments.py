"""Arguments that look right and mean something else: told at once, before anything is taken in.

Decides which of them are refused, and with which words. Never what a request does.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from numbers import Integral
from operator import attrgetter
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np

from fairlead.core.model.constraints import ANYWHERE
from fairlead.core.model.resources import Resources

_ALSO: dict[type, tuple[type, ...]] = {int: (Integral,), bool: (Integral, np.bool_), tuple: (list,)}
"""What does as well as what a field is declared as."""


def check(given: Sequence[object], kind: type) -> None:
    """TypeError for what is none of these, or has something else in a field, or inside of one, than it is for: within
    it would come to grief with a part of the request taken in, or break off a turn.
    """
    hints = _hints(kind)
    of_each = attrgetter(*hints)
    holders = [name for name, hint in hints.items() if _holds_others(hint)]
    seen: set[tuple[type, ...]] = set()
    looked_into = {id(ANYWHERE)}
    for each in given:
        if not isinstance(each, kind):
            raise TypeError(f"{each!r} is no {kind.__name__}")
        alike = tuple(map(type, of_each(each)))
        for name in holders if alike in seen else hints:
            value = getattr(each, name)
            if alike in seen and (not value or id(value) in looked_into):
                continue
            if wrong := _wrong(name, value, hints[name]):
                raise TypeError(f"{kind.__name__} {_called(each)!r}: {wrong}")
            if name in holders:
                looked_into.add(id(value))
        seen.add(alike)


def _called(each: Any) -> object:
    return getattr(each, "key", None) or getattr(each, "id", None)


@lru_cache
def _hints(kind: Any) -> dict[str, Any]:
    """Each field with what it is declared as."""
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


@lru_cache
def _types(hint: Any) -> tuple[type, ...]:
    """What a value may be."""
    hints = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    types = tuple(get_origin(each) or each for each in hints)
    return (*types, *(also for known in types for also in _ALSO.get(known, ())))


def _holds_others(hint: Any) -> bool:
    types = _types(hint)
    return tuple in types or Mapping in types or any(map(dataclasses.is_dataclass, types))


def _wrong(name: str, value: object, hint: Any, within: bool = False) -> str:
    """What is wrong with a value, or with something inside of it; nothing when all is well. `within` a value that work
    is compared and found by, a list does not do for a tuple.
    """
    types = _types(hint)
    if not isinstance(value, types) or (within and isinstance(value, list)):
        return f"{name} is {value!r}, and must be {types[0].__name__}"
    return next(filter(None, (_wrong(*part) for part in _parts(name, value, hint))), "")


def _parts(name: str, value: object, hint: Any) -> Iterator[tuple[str, object, Any, bool]]:
    """What is inside of a value: how it is called, itself, what it must be, and whether it is within such a value."""
    inside = get_args(hint)
    if dataclasses.is_dataclass(value):
        kind: Any = type(value)
        for part, its_hint in _hints(kind).items():
            yield f"{name}.{part}", getattr(value, part), its_hint, True
    elif isinstance(value, Mapping) and inside:
        for key, each in value.items():
            yield f"a name in {name}", key, inside[0], False
            yield f"{name}[{key!r}]", each, inside[1], False
    elif isinstance(value, tuple | list) and inside:
        for i, each in enumerate(value):
            yield f"{name}[{i}]", each, inside[0], False


def check_amounts(every: Iterable[object]) -> None:
    """TypeError for what is no `Resources` of whole numbers.

    Half a core is 500: 0.5 would be taken for half a thousandth, and next to nothing would be counted.
    """
    for each in every:
        if not isinstance(each, Resources):
            raise TypeError(f"{each!r}: amounts are Resources, such as fairlead.Resources({{'vcore': 1000}})")
        amounts: Iterable[tuple[str, object]] = each
        for name, amount in amounts:
            if not isinstance(name, str):
                raise TypeError(f"{name!r} is no name of a resource: names are texts, such as 'vcore'")
            if not isinstance(amount, Integral):
                raise TypeError(f"{name} {amount!r}: amounts are whole numbers; vcore counts in thousandths of a core")


def ids(given: Iterable[str], partition: str) -> tuple[str, ...]:
    """The ids of what is in a partition. TypeError for one by itself (each of its letters would be taken for one), and
    for what is no text.
    """
    if isinstance(given, str):
        raise TypeError(f"{given!r}: give a list of ids, such as [{given!r}]")
    found = tuple(given)
    check_texts(*found, partition)
    return found


def check_texts(*every: object) -> None:
    """TypeError for what is no text, and is to name something."""
    for each in every:
        if not isinstance(each, str):
            raise TypeError(f"{each!r} is no name: ids, and names of partitions, are texts")
