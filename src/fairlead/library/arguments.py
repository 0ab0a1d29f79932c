"""Arguments that look right and mean something else: told at once, before anything is taken in.

Decides which of them are refused, and with which words. Never what a request does.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from functools import lru_cache
from numbers import Integral
from operator import attrgetter
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np

from fairlead.core.model.resources import Resources

_ALSO: dict[type, tuple[type, ...]] = {int: (Integral,), bool: (Integral, np.bool_), tuple: (list,)}
"""What does as well as what a field is declared as."""


def check(given: Iterable[object], kind: type) -> None:
    """TypeError for what is none of these, or has something else in a field than it is for: inside it would come to
    grief with a part of the request taken in. Of texts, which are only compared, nothing is said.
    """
    fields = _fields(kind)
    of_each, seen = attrgetter(*(name for name, _ in fields)), set()
    for each in given:
        if not isinstance(each, kind):
            raise TypeError(f"{each!r} is no {kind.__name__}")
        values = of_each(each)
        alike = tuple(map(type, values))
        if alike in seen:
            continue
        for (name, types), value in zip(fields, values, strict=True):
            if not isinstance(value, types):
                raise TypeError(
                    f"{kind.__name__} {_called(each)!r}: {name} is {value!r}, and must be {types[0].__name__}"
                )
        seen.add(alike)


def _called(each: Any) -> object:
    return getattr(each, "key", None) or getattr(each, "id", None)


@lru_cache
def _fields(kind: Any) -> tuple[tuple[str, tuple[type, ...]], ...]:
    """Each field with the types that it may have."""
    found = []
    for name, hint in get_type_hints(kind).items():
        hints = get_args(hint) if isinstance(hint, UnionType) else (hint,)
        types = tuple(get_origin(each) or each for each in hints)
        if name in {field.name for field in dataclasses.fields(kind)} and str not in types:
            found.append((name, (*types, *(also for known in types for also in _ALSO.get(known, ())))))
    return tuple(found)


def check_amounts(every: Iterable[object]) -> None:
    """TypeError for what is no `Resources` of whole numbers.

    Half a core is 500: 0.5 would be taken for half a thousandth, and next to nothing would be counted.
    """
    for each in every:
        if not isinstance(each, Resources):
            raise TypeError(f"{each!r}: amounts are Resources, such as fairlead.Resources({{'vcore': 1000}})")
        amounts: Iterable[tuple[str, object]] = each
        for name, amount in amounts:
            if not isinstance(amount, Integral):
                raise TypeError(f"{name} {amount!r}: amounts are whole numbers; vcore counts in thousandths of a core")


def ids(given: Iterable[str]) -> tuple[str, ...]:
    """The ids. TypeError for one by itself: each of its letters would be taken for one."""
    if isinstance(given, str):
        raise TypeError(f"{given!r}: give a list of ids, such as [{given!r}]")
    return tuple(given)
