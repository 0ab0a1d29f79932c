"""Typed values as canonical JSON bytes, and back: what the journal stores and what decisions are compared by.

Decides the one spelling of each value: sorted keys, no spaces, ASCII, every dataclass with its class name under `$`.
Never drops or invents anything: an unknown type or field is an error with its place; a field that is absent (written
before it existed) takes its default. Invariant: equal values give equal bytes in every process.

A new event, decision or reason in `fairlead.core` needs no code here; others call `register`.
"""

from __future__ import annotations

import json
import typing
from collections.abc import Iterable
from typing import Any, TypeVar

from fairlead.core import reasons
from fairlead.core.decisions import Decision
from fairlead.core.events import Event
from fairlead.journal.shapes import CodecError, Shape, each, is_plain, plain
from fairlead.journal.vocabulary import Vocabulary

__all__ = [
    "CodecError",
    "decode",
    "decode_all",
    "decode_decisions",
    "decode_event",
    "decode_plain",
    "encode",
    "encode_all",
    "encode_plain",
    "register",
    "tags",
]

T = TypeVar("T")
C = TypeVar("C", bound=type)


def _no_constant(text: str) -> Any:
    raise CodecError(f"{text} is not a JSON number")


# The shapes hand out sorted mappings, so the writer need not sort again.
_WRITER = json.JSONEncoder(separators=(",", ":"), ensure_ascii=True, allow_nan=False, check_circular=False)
_SORTER = json.JSONEncoder(
    separators=(",", ":"), ensure_ascii=True, allow_nan=False, check_circular=False, sort_keys=True
)
_READER = json.JSONDecoder(parse_constant=_no_constant)

_VOCABULARY = Vocabulary()
for _cls in (*typing.get_args(Event), *typing.get_args(Decision)):
    _VOCABULARY.register(_cls)
for _cls in vars(reasons).values():
    if isinstance(_cls, type) and issubclass(_cls, reasons.Reason):
        _VOCABULARY.register(_cls)

_ANY = _VOCABULARY.records(())
_EVENT = _VOCABULARY.records(typing.get_args(Event))
_DECISION = _VOCABULARY.records(typing.get_args(Decision))


def register(cls: C) -> C:
    """Make a dataclass known (usable as a decorator): its values can be encoded from now on, tagged by its class name.

    Fields may be texts, integers, numbers, booleans, enums, `Resources`, `Limits`, other dataclasses, lists, tuples and
    string-keyed mappings of them, unions with None, or `object` for plain JSON. Raises `CodecError` for other types and
    for a name that another class has already.
    """
    _VOCABULARY.register(cls)
    return cls


def tags() -> tuple[str, ...]:
    """The names of all known types, sorted."""
    return tuple(_VOCABULARY)


def encode(value: object) -> bytes:
    """One registered value as bytes. Raises `CodecError` if any part of it does not have its declared type."""
    return _bytes(_ANY.write, value)


def encode_all(values: Iterable[object]) -> bytes:
    """Registered values in their order, as one array: the form of an outcome."""
    return _bytes(_write_all, values)


def encode_plain(value: object) -> bytes:
    """A JSON value without types (a state, a small payload) in the same canonical form."""
    try:
        quick = is_plain(value)
    except RecursionError:
        raise CodecError("nested too deeply") from None
    return _bytes(lambda v: v, value, _SORTER) if quick else _bytes(plain, value)


def decode(data: bytes, expect: type[T]) -> T:
    """The value that `encode` wrote; it must be an `expect` (`object`: anything registered). Raises `CodecError`."""
    value = _ANY.read(_parse(data))
    if not isinstance(value, expect):
        raise CodecError(f"expected {expect.__name__}, got {type(value).__name__}")
    return value


def decode_event(data: bytes) -> Event:
    """The event that `encode` wrote. Raises `CodecError`, also for a value of another kind."""
    return typing.cast(Event, _EVENT.read(_parse(data)))


def decode_all(data: bytes) -> tuple[Any, ...]:
    """The values that `encode_all` wrote. Raises `CodecError`."""
    return _read_all(data, _ANY)


def decode_decisions(data: bytes) -> tuple[Decision, ...]:
    """The decisions that `encode_all` wrote. Raises `CodecError`, also when one of them is something else."""
    return _read_all(data, _DECISION)


def decode_plain(data: bytes) -> Any:
    """The JSON value that `encode_plain` wrote. Raises `CodecError`."""
    return _parse(data)


def _write_all(values: Any) -> list[Any]:
    return each(values, _ANY.write)


def _read_all(data: bytes, shape: Shape) -> tuple[Any, ...]:
    parsed = _parse(data)
    if not isinstance(parsed, list):
        raise CodecError(f"expected an array, got {type(parsed).__name__}")
    return tuple(each(parsed, shape.read))


def _bytes(write: Any, value: object, writer: json.JSONEncoder = _WRITER) -> bytes:
    try:
        return writer.encode(write(value)).encode("ascii")
    except RecursionError:
        raise CodecError("nested too deeply") from None


def _parse(data: bytes) -> Any:
    try:
        return _READER.decode(data.decode("ascii"))
    except CodecError:
        raise
    except RecursionError:
        raise CodecError("nested too deeply") from None
    except ValueError as e:
        raise CodecError(f"not canonical JSON: {e}") from None
