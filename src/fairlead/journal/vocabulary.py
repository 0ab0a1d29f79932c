"""Which dataclasses may be written, and how: compiled once from their type hints.

Decides that a dataclass is an object with its class name under `$` and its fields in alphabetical order. Never lets a
type in that could be written but not read. Invariant: one name, one class.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import Enum
from typing import Any, Literal, Union

from fairlead.core.resources import Limits, Resources
from fairlead.journal.shapes import (
    SCALARS,
    Act,
    CodecError,
    Shape,
    amounts,
    choice,
    enum,
    list_of,
    mapping_of,
    one_of,
    optional,
    tuple_of,
    wrong,
)

TAG = "$"


@dataclass(frozen=True, slots=True)
class Plan:
    """One dataclass, compiled: its fields in the order they are written, and those that must be there."""

    cls: type
    writers: tuple[tuple[str, Act], ...]
    readers: Mapping[str, Act]
    required: frozenset[str]


class Vocabulary:
    """The dataclasses that may be written, by tag, each compiled when it is registered."""

    def __init__(self) -> None:
        self.classes: dict[str, type] = {}
        self._plans: dict[type, Plan] = {}

    def register(self, cls: type) -> None:
        """Take in a frozen dataclass and every dataclass its fields mention.

        Raises `CodecError` if it is not one, if a field has a type without a plain form, or if another class has its
        name already.
        """
        if not is_dataclass(cls):
            raise CodecError(f"{cls!r} is not a dataclass; only dataclasses can be registered")
        other = self.classes.get(cls.__name__)
        if other is cls:
            return
        if other is not None:
            raise CodecError(f"the name {cls.__name__} is taken: by {other.__module__}; wanted by {cls.__module__}")
        # In the book before its fields are looked at: a class may contain itself.
        self.classes[cls.__name__] = cls
        try:
            self._plans[cls] = self._plan(cls)
        except CodecError as e:
            del self.classes[cls.__name__]
            raise e.inside(cls.__name__) from None

    def _plan(self, cls: type) -> Plan:
        try:
            hints = typing.get_type_hints(cls)
        except NameError as e:
            raise CodecError(f"{e}: its types must be importable at run time") from None
        writers, readers, required = [], {}, set()
        for f in sorted(fields(cls), key=lambda f: f.name):
            if not f.init:
                raise CodecError(f"field {f.name} is not set by the constructor; it cannot be read back")
            try:
                shape = self._shape(hints[f.name])
            except CodecError as e:
                raise e.inside(f.name) from None
            writers.append((f.name, shape.write))
            readers[f.name] = shape.read
            if f.default is MISSING and f.default_factory is MISSING:
                required.add(f.name)
        return Plan(cls, tuple(writers), readers, frozenset(required))

    def _shape(self, hint: Any) -> Shape:
        if hint in SCALARS:
            return SCALARS[hint]
        origin, args = typing.get_origin(hint), typing.get_args(hint)
        if origin in (Union, types.UnionType):
            return self._union(args)
        if origin is Literal:
            known = {a: a for a in args}
            return Shape(choice(known, "known value"), choice(known, "known value"))
        if origin is tuple:
            if len(args) == 2 and args[1] is Ellipsis:
                return list_of(self._shape(args[0]), tuple)
            return tuple_of(tuple(self._shape(a) for a in args))
        if origin is list:
            return list_of(self._shape(args[0]), list)
        if isinstance(origin, type) and issubclass(origin, Mapping) and args[0] is str:
            return mapping_of(self._shape(args[1]))
        if isinstance(hint, type):
            return self._class(hint)
        raise CodecError(f"the type {hint} has no plain form")

    def _class(self, hint: type) -> Shape:
        if hint in (Resources, Limits):
            return amounts(hint)
        if issubclass(hint, Enum):
            return enum(hint)
        if is_dataclass(hint):
            self.register(hint)
            return self.records((hint,))
        raise CodecError(f"the type {hint.__name__} has no plain form")

    def _union(self, args: tuple[Any, ...]) -> Shape:
        classes = [a for a in args if isinstance(a, type) and is_dataclass(a)]
        for cls in classes:
            self.register(cls)
        others = [a for a in args if a not in classes and a is not type(None)]
        if sum(map(_is_untagged_object, others)) + bool(classes) > 1:
            raise CodecError(f"the objects among {args} could not be told apart when read")
        shapes = [self._shape(a) for a in others]
        if classes:
            shapes.append(self.records(tuple(classes)))
        return optional(one_of(shapes)) if type(None) in args else one_of(shapes)

    def records(self, allowed: tuple[type, ...]) -> Shape:
        """Any registered dataclass that is one of `allowed` or derived from one; nothing in `allowed`: any at all."""

        def write(value: Any) -> dict[str, Any]:
            plan = self._plans.get(value.__class__)
            if plan is None or (allowed and not isinstance(value, allowed)):
                raise self._unknown(value, allowed)
            return _write_fields(plan, value)

        def read(value: Any) -> Any:
            if value.__class__ is not dict or TAG not in value:
                raise wrong(f"an object with its type under {TAG!r}", value)
            tag = value[TAG]
            cls = self.classes.get(tag) if isinstance(tag, str) else None
            if cls is None:
                raise CodecError(f"unknown type {tag!r}: written by a newer Fairlead, or its module was not imported")
            if allowed and not issubclass(cls, allowed):
                raise CodecError(f"expected {_names(allowed)}, got {tag}")
            return _read_fields(self._plans[cls], value)

        return Shape(write, read)

    def _unknown(self, value: object, allowed: tuple[type, ...]) -> CodecError:
        if allowed and not isinstance(value, allowed):
            return wrong(_names(allowed), value)
        return CodecError(f"{type(value).__name__} is not registered; call register({type(value).__name__}) once")

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self.classes))


def _is_untagged_object(hint: Any) -> bool:
    origin = typing.get_origin(hint)
    return hint in (Resources, Limits, Any, object) or (isinstance(origin, type) and issubclass(origin, Mapping))


def _names(classes: tuple[type, ...]) -> str:
    return " or ".join(c.__name__ for c in classes) if len(classes) <= 4 else "another type"


def _write_fields(plan: Plan, value: object) -> dict[str, Any]:
    done: dict[str, Any] = {TAG: plan.cls.__name__}
    name = ""
    try:
        for name, write in plan.writers:
            done[name] = write(getattr(value, name))
    except CodecError as e:
        raise e.inside(name).inside(plan.cls.__name__) from None
    return done


def _read_fields(plan: Plan, value: dict[str, Any]) -> Any:
    name, given = "", {}
    try:
        for name, part in value.items():
            if name == TAG:
                continue
            read = plan.readers.get(name)
            if read is None:
                raise CodecError(f"unknown field; {plan.cls.__name__} has {', '.join(plan.readers) or 'none'}")
            given[name] = read(part)
    except CodecError as e:
        raise e.inside(name).inside(plan.cls.__name__) from None
    if missing := plan.required - given.keys():
        raise CodecError(f"missing field {', '.join(sorted(missing))}", plan.cls.__name__)
    try:
        return plan.cls(**given)
    except (TypeError, ValueError) as e:
        raise CodecError(f"refused by its own checks: {e}", plan.cls.__name__) from e
