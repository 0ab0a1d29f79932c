"""How scalars and containers look as plain JSON values.

Decides, for each type that a record may hold except dataclasses, how it is written and how it is read back. Never
guesses: a value that does not fit its declared type is refused on the way out as well as on the way in, so that what
was written can always be read. Invariant: `read(write(value)) == value`, and a mapping is written in the order of its
keys. Dataclasses are the matter of `fairlead.journal.vocabulary`.
"""

from __future__ import annotations

import math
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from fairlead.core.resources import Limits, Resources


class CodecError(ValueError):
    """A value cannot be written, or bytes cannot be read; `where` is the place in it (`AddAsks.asks[2].priority`)."""

    def __init__(self, what: str, where: str = "") -> None:
        super().__init__(f"{where}: {what}" if where else what)
        self.what, self.where = what, where

    def inside(self, step: str) -> CodecError:
        """The same complaint seen from one level further out."""
        joint = "." if self.where and not self.where.startswith("[") else ""
        return CodecError(self.what, f"{step}{joint}{self.where}")


Act = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Shape:
    """The two ways of one type: `write` to plain JSON values, `read` back. Both raise `CodecError`."""

    write: Act
    read: Act


def wrong(expected: str, value: object) -> CodecError:
    """The complaint that `value` is not `expected`."""
    return CodecError(f"expected {expected}, got {type(value).__name__} {value!r:.80}")


# --- Scalars ---------------------------------------------------------------------------------------------------------


def _text(value: Any) -> Any:
    """A text as it is. A lone surrogate from a file name (`surrogateescape`) is kept; half a pair would not survive."""
    if value.__class__ is not str:
        if not isinstance(value, str) or isinstance(value, Enum):
            raise wrong("a text", value)
        value = str.__str__(value)
    if not value.isascii():
        try:
            value.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            raise CodecError(f"half of a surrogate pair in {value!r:.80}; send whole characters") from None
    return value


def _integer(value: Any) -> Any:
    if value.__class__ is not int:
        raise wrong("an integer", value)
    return value


def _number(value: Any) -> Any:
    if value.__class__ is float and math.isfinite(value):
        return value
    if value.__class__ is int:
        return value
    raise wrong("a finite number", value)


def _boolean(value: Any) -> Any:
    if value.__class__ is not bool:
        raise wrong("true or false", value)
    return value


def _nothing(value: Any) -> None:
    if value is not None:
        raise wrong("null", value)


def plain(value: Any) -> Any:
    """A JSON value of any shape, checked and with sorted keys: texts, numbers, true, false, null, lists, mappings."""
    kind = value.__class__
    if value is None or kind is bool or kind is int:
        return value
    if kind is float:
        return _number(value)
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Mapping):
        return _write_mapping(value, plain)
    if isinstance(value, list | tuple):
        return each(value, plain)
    raise wrong("a JSON value", value)


def is_plain(value: Any) -> bool:
    """Whether a value is already made of exact JSON types alone: a quick look, since a whole state has many parts.

    Raises `RecursionError` for one that is nested too deeply.
    """
    kind = value.__class__
    if kind is int or kind is bool or value is None:
        return True
    if kind is str:
        return typing.cast(str, value).isascii()
    if kind is dict:
        return all(key.__class__ is str and key.isascii() for key in value) and all(map(is_plain, value.values()))
    return (kind is list or kind is tuple) and all(map(is_plain, value))


SCALARS: dict[Any, Shape] = {
    str: Shape(_text, _text),
    int: Shape(_integer, _integer),
    float: Shape(_number, _number),
    bool: Shape(_boolean, _boolean),
    None: Shape(_nothing, _nothing),
    type(None): Shape(_nothing, _nothing),
    Any: Shape(plain, plain),
    object: Shape(plain, plain),
}


# --- Containers ------------------------------------------------------------------------------------------------------


def each(values: Any, act: Act) -> list[Any]:
    """`act` done to each value; a complaint names the position."""
    done: list[Any] = []
    try:
        for value in values:
            done.append(act(value))  # noqa: PERF401 (a comprehension would not know which one failed)
    except CodecError as e:
        raise e.inside(f"[{len(done)}]") from None
    return done


def _entries(pairs: Any, act: Act) -> dict[str, Any]:
    done: dict[str, Any] = {}
    for key, value in pairs:
        try:
            done[_text(key)] = act(value)
        except CodecError as e:
            raise e.inside(f"[{key!r}]") from None
    return done


def _write_mapping(value: Any, act: Act) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise wrong("a mapping", value)
    for key in value:
        if not isinstance(key, str):
            raise wrong("a text as key", key)
    return _entries(((key, value[key]) for key in sorted(value)), act)


def _read_mapping(value: Any, act: Act) -> dict[str, Any]:
    if value.__class__ is not dict:
        raise wrong("an object", value)
    return _entries(value.items(), act)


def mapping_of(item: Shape) -> Shape:
    """`Mapping[str, X]`: an object, in the order of its keys."""
    return Shape(lambda v: _write_mapping(v, item.write), lambda v: _read_mapping(v, item.read))


def list_of(item: Shape, make: type) -> Shape:
    """`list[X]` and `tuple[X, ...]`: an array, read back as the type it was."""

    def write(value: Any) -> list[Any]:
        if not isinstance(value, make):
            raise wrong(f"a {make.__name__}", value)
        return each(value, item.write)

    def read(value: Any) -> Any:
        if value.__class__ is not list:
            raise wrong("an array", value)
        return make(each(value, item.read))

    return Shape(write, read)


def tuple_of(items: tuple[Shape, ...]) -> Shape:
    """`tuple[X, Y]`: an array of exactly that length."""

    def checked(value: Any, kind: type[list[Any]] | type[tuple[Any, ...]], acts: list[Act]) -> list[Any]:
        if not isinstance(value, kind) or len(value) != len(acts):
            raise wrong(f"{len(acts)} values", value)
        following = iter(acts)
        return each(value, lambda v: next(following)(v))

    writes, reads = [i.write for i in items], [i.read for i in items]
    return Shape(lambda v: checked(v, tuple, writes), lambda v: tuple(checked(v, list, reads)))


def amounts(cls: type[Resources] | type[Limits]) -> Shape:
    """`Resources` and `Limits`: an object of integers, sorted by name as they already are."""

    def write(value: Any) -> dict[str, int]:
        if value.__class__ is not cls:
            raise wrong(cls.__name__, value)
        return _entries(value.items, _integer)

    return Shape(write, lambda v: cls(_read_mapping(v, _integer)))


def enum(cls: type[Enum]) -> Shape:
    """An enum: the value of its member."""
    members = {m.value: m for m in cls}
    if not all(isinstance(v, str | int) for v in members):
        raise CodecError(f"the values of {cls.__name__} must be texts or integers")

    def write(value: Any) -> Any:
        if value.__class__ is not cls:
            raise wrong(f"a {cls.__name__}", value)
        return value.value

    return Shape(write, choice(members, cls.__name__))


def choice(known: Mapping[Any, Any], name: str) -> Act:
    """Reads one of the `known` texts or integers as what it stands for."""

    def read(value: Any) -> Any:
        if value.__class__ not in (str, int) or value not in known:
            raise CodecError(f"{value!r:.80} is not a {name}; known: {', '.join(str(k) for k in known)}")
        return known[value]

    return read


def optional(inner: Shape) -> Shape:
    """`X | None`: null, or what the other one is."""
    write, read = inner.write, inner.read
    return Shape(lambda v: None if v is None else write(v), lambda v: None if v is None else read(v))


def one_of(shapes: list[Shape]) -> Shape:
    """A union of what JSON itself tells apart (`int | str`): the first that accepts the value."""
    if len(shapes) == 1:
        return shapes[0]
    return Shape(_first([s.write for s in shapes]), _first([s.read for s in shapes]))


def _first(acts: list[Act]) -> Act:
    def act(value: Any) -> Any:
        complaints = []
        for candidate in acts:
            try:
                return candidate(value)
            except CodecError as e:
                complaints.append(e)
        # The deepest complaint is about the alternative that was meant.
        raise max(complaints, key=lambda e: len(e.where))

    return act
