"""A copy of living books: every object once, with all that is remembered about what is worth looking at.

Decides what of a state is shared between the original and the copy (values that never change) and what is made anew
(everything else). Never looks at what the objects mean, so that it stays right when the books grow an attribute.
Invariant: the original and the copy have no object in common that either of them could change.

It visits each object once, with a list of those whose insides are still to be filled instead of recursion: books point
to each other in circles and in long chains.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import is_dataclass
from enum import Enum
from types import BuiltinFunctionType, FunctionType, MappingProxyType, MethodType
from typing import Any, TypeVar, cast

import numpy as np

from fairlead.core.model.resources import Limits, Resources

T = TypeVar("T")

VALUES: frozenset[type] = frozenset(
    {
        int,
        str,
        float,
        bool,
        bytes,
        type(None),
        type,
        FunctionType,
        BuiltinFunctionType,
        MappingProxyType,
        range,
        Resources,
        Limits,
    }
)
"""Types whose values never change. Functions are the same for every copy, bound methods are not."""


def copied(root: T) -> T:
    """A copy of `root` with everything it reaches. Raises TypeError for a kind of object that nobody can copy."""
    return cast(T, _Copier().copy(root))


class _Copier:
    """One copy being made."""

    __slots__ = ("_kinds", "_made", "_to_fill", "_values")

    def __init__(self) -> None:
        self._values: set[type] = set(VALUES)
        self._kinds: dict[type, Callable[[Any], Any]] = {}
        self._made: dict[int, Any] = {}
        self._to_fill: list[tuple[Any, Any, tuple[str, ...]]] = []

    def copy(self, root: Any) -> Any:
        made = self._of(root)
        todo, values, of = self._to_fill, self._values, self._of
        while todo:
            old, new, names = todo.pop()
            if names:
                for name in names:
                    value = getattr(old, name, _ABSENT)
                    if value is not _ABSENT:
                        setattr(new, name, value if type(value) in values else of(value))
            elif type(old) is dict:
                for key, value in old.items():
                    new[key if type(key) in values else of(key)] = value if type(value) in values else of(value)
            elif type(old) is set:
                new.update(of(value) for value in old)
            else:
                new.extend(value if type(value) in values else of(value) for value in old)
        return made

    def _of(self, old: Any) -> Any:
        """The copy of one object; its insides may still have to be filled."""
        kind = type(old)
        if kind in self._values:
            return old
        found = self._made.get(id(old))
        if found is not None:
            return found
        make = self._kinds.get(kind)
        if make is None:
            make = self._kinds[kind] = self._maker(kind)
            if kind in self._values:
                return old
        new = self._made[id(old)] = make(old)
        return new

    def _maker(self, kind: type) -> Callable[[Any], Any]:
        """How objects of this type are copied; types of values are remembered as such."""
        if kind in (dict, list, deque, set):
            return self._container
        if kind is tuple:
            return self._tuple
        if issubclass(kind, tuple) and hasattr(kind, "_make"):
            return lambda old: self._tuple(old, kind._make)
        if kind is frozenset:
            return lambda old: frozenset(self._of(each) for each in old)
        if kind is MethodType:
            return lambda old: MethodType(old.__func__, self._of(old.__self__))
        if kind is np.ndarray:
            return lambda old: old.copy()
        if issubclass(kind, Enum | BaseException) or _is_frozen(kind):
            self._values.add(kind)
            return lambda old: old
        if kind is object:
            return lambda _: object()
        names = _attributes(kind)
        return lambda old: self._object(old, names)

    def _container(self, old: Any) -> Any:
        new = type(old)()
        if old:
            self._to_fill.append((old, new, ()))
        return new

    def _tuple(self, old: tuple[Any, ...], make: Callable[[Any], Any] = tuple) -> tuple[Any, ...]:
        values = self._values
        for each in old:
            if type(each) not in values:
                break
        else:
            return old
        parts = [self._of(each) for each in old]
        if all(a is b for a, b in zip(old, parts, strict=True)):
            return old
        return cast(tuple[Any, ...], make(parts))

    def _object(self, old: Any, names: tuple[str, ...]) -> Any:
        new = object.__new__(type(old))
        self._to_fill.append((old, new, names or tuple(vars(old)) or ("__dict__",)))
        return new


_ABSENT = object()


def _is_frozen(kind: type) -> bool:
    return is_dataclass(kind) and bool(getattr(kind, "__dataclass_params__").frozen)  # noqa: B009 - unknown to mypy


def _attributes(kind: type) -> tuple[str, ...]:
    """The slots of a class with those above it; nothing when its objects have a dictionary instead."""
    names: dict[str, None] = {}
    for each in kind.__mro__:
        slots = each.__dict__.get("__slots__", ())
        names |= dict.fromkeys((slots,) if isinstance(slots, str) else slots)
    if hasattr(kind, "__dictoffset__") and kind.__dictoffset__:
        if names:
            raise TypeError(f"{kind.__name__} has slots and a dictionary; write one of them")
        return ()
    if not names or kind.__module__.partition(".")[0] != "fairlead":
        raise TypeError(f"cannot copy a {kind.__module__}.{kind.__name__}")
    return tuple(names)
