"""Typed values as JSON bytes, and back: what the journal stores and what decisions are compared by.

Decides the one spelling of each value: every dataclass with its class name under `$` and its fields by name (first
those that must be there, then the others, each in order), no spaces, UTF-8, and no word of a field that may be empty
and is. Never drops or invents anything: an unknown type or field is an error with its place; a field that is absent
takes its default. Invariant: equal values give equal bytes in every process, and what was written can be read, because
it is read once before it is given out.

A new event, decision or reason in `fairlead.core` needs no code here; others call `register`.
"""

from __future__ import annotations

import re
import threading
import typing
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from fairlead.core.model import reasons
from fairlead.core.model.decisions import DECISIONS, Decision
from fairlead.core.model.events import EVENTS, Event
from fairlead.journal.structs import TAG, CodecError, Structs

__all__ = [
    "TAG",
    "CodecError",
    "decode",
    "decode_by_rows",
    "decode_decisions",
    "decode_event",
    "decode_limit",
    "decode_members",
    "decode_plain",
    "encode",
    "encode_all",
    "encode_plain",
    "register",
    "same_decisions",
]

T = TypeVar("T")
C = TypeVar("C", bound=type)

_STRUCTS = Structs()
# Reasons first: decisions hold any of them.
for _cls in vars(reasons).values():
    if isinstance(_cls, type) and issubclass(_cls, reasons.Reason):
        _STRUCTS.register(_cls)
for _cls in (*EVENTS, *DECISIONS):
    _STRUCTS.register(_cls)

_DECODERS: dict[tuple[bool, tuple[type, ...]], msgspec.json.Decoder[Any]] = {}
_MAKING = threading.Lock()


def register(cls: C) -> C:
    """Make a dataclass known (usable as a decorator): its values can be encoded from now on, tagged by its class name.

    Fields may be texts, integers, numbers, booleans, enums, `Resources`, `Limits`, other dataclasses, tuples of one
    type and text-keyed mappings of them, unions with None, or `object` for plain JSON. Raises `CodecError` for other
    types and for a name that another class has already.
    """
    _STRUCTS.register(cls)
    _DECODERS.clear()
    return cls


def encode(value: object) -> bytes:
    """One registered value as bytes. Raises `CodecError` if any part of it could not be read back as its type."""
    return _write(_STRUCTS.lower, value, _decoder(object))


def encode_all(values: Iterable[object]) -> bytes:
    """Registered values in their order, as one array: the form of an outcome."""
    return _write(lambda vs: [_STRUCTS.lower(v) for v in vs], values, _decoder(object, many=True))


def encode_plain(value: object) -> bytes:
    """A JSON value without types (a state, a small payload) in the same canonical form."""
    return _write(lambda v: v, value)


def decode(data: bytes, expect: type[T]) -> T:
    """The value that `encode` wrote; it must be an `expect` (`object`: anything registered). Raises `CodecError`."""
    value = _lifted(_read(data, _decoder(object)))
    if not isinstance(value, expect):
        raise CodecError(f"expected {expect.__name__}, got {type(value).__name__}")
    return value


def decode_event(data: bytes) -> Event:
    """The event that `encode` wrote. Raises `CodecError`, also for a value of another kind."""
    return typing.cast(Event, _lifted(_read(data, _decoder(Event))))


def decode_decisions(data: bytes) -> tuple[Decision, ...]:
    """The decisions that `encode_all` wrote. Raises `CodecError`, also when one of them is something else."""
    return tuple(map(_lifted, _read(data, _decoder(Decision, many=True))))


def decode_plain(data: bytes | msgspec.Raw) -> Any:
    """The JSON value that `encode_plain` wrote. Raises `CodecError`."""
    return _read(data, _ANYTHING)


def decode_members(data: bytes | msgspec.Raw) -> dict[str, msgspec.Raw]:
    """The members of an object that `encode_plain` wrote, each still to be read. Raises `CodecError`."""
    return typing.cast("dict[str, msgspec.Raw]", _read(data, _MEMBERS))


def decode_by_rows(data: bytes | msgspec.Raw) -> dict[str, Any]:
    """As `decode_plain` reads an object, but a list of objects in it is one that is read row by row, once: the whole of
    it takes ten times what is made of it. Raises `CodecError`, also later.
    """
    return {
        name: map(decode_plain, _read(raw, _ROWS)) if bytes(memoryview(raw)[:2]) == b"[{" else decode_plain(raw)
        for name, raw in decode_members(data).items()
    }


def decode_limit(data: bytes) -> int | None:
    """How many asks a scheduling run was to place at most, from its `{"limit": n}`. Raises `CodecError`."""
    return typing.cast(_Run, _read(data, _RUN)).limit


def same_decisions(outcome: bytes, decisions: Sequence[Decision]) -> bool:
    """Whether an outcome says these decisions, be it in the spelling of an older version. Raises `CodecError`."""
    now = encode_all(decisions)
    return now == outcome or encode_all(decode_decisions(outcome)) == now


# --- Bytes -----------------------------------------------------------------------------------------------------------


def _other(value: Any) -> Any:
    """What msgspec does not know by itself: a read-only view of a mapping."""
    if isinstance(value, Mapping):
        return dict(value)
    raise CodecError(f"{type(value).__name__} {value!r:.80} has no JSON form")


class _Tagged(msgspec.Struct):
    """Nothing but the name of the type."""

    tag: str = msgspec.field(name=TAG, default="")


class _Run(msgspec.Struct, forbid_unknown_fields=True):
    """What a record of a scheduling run says."""

    limit: int | None = None


_ENCODER = msgspec.json.Encoder(enc_hook=_other, order="deterministic")
_ANYTHING = msgspec.json.Decoder()
_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ROWS = msgspec.json.Decoder(list[msgspec.Raw])
_RUN = msgspec.json.Decoder(_Run)
_TAGGED = msgspec.json.Decoder(_Tagged)


def _decoder(*bases: type, many: bool = False) -> msgspec.json.Decoder[Any]:
    """Reads the registered types that are one of `bases`, or derived from one; `many`: an array of them."""
    found = _DECODERS.get((many, bases))
    if found is None:
        # By one thread, the writer or one that reads history: what msgspec keeps of types may not be filled by two.
        with _MAKING:
            known = _STRUCTS.known(*bases)
            found = _DECODERS[many, bases] = msgspec.json.Decoder(list[known] if many else known)  # type: ignore[valid-type]
    return found


def _write(lower: Any, value: object, check: msgspec.json.Decoder[Any] | None = None) -> bytes:
    try:
        data = _ENCODER.encode(lower(value))
    except RecursionError:
        raise CodecError("nested too deeply") from None
    except UnicodeEncodeError as e:
        raise CodecError(f"{type(value).__name__}: half of a surrogate pair in {e.object!r:.80}; send text") from None
    except (CodecError, TypeError, AttributeError, OverflowError) as e:
        raise CodecError(f"{type(value).__name__} cannot be written: {e}") from None
    if check is not None:
        _read(data, check)
    return data


def _read(data: bytes | msgspec.Raw, decoder: msgspec.json.Decoder[Any]) -> Any:
    try:
        return decoder.decode(data)
    except RecursionError:
        raise CodecError("nested too deeply") from None
    except msgspec.ValidationError as e:
        raise CodecError(_complaint(str(e), data)) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as e:
        raise CodecError(f"not JSON: {e}") from None


def _lifted(struct: Any) -> Any:
    try:
        return _STRUCTS.lift(struct)
    except (TypeError, ValueError) as e:
        raise CodecError(f"{type(struct).__name__}: refused by its own checks: {e}") from e


def _complaint(said: str, data: bytes) -> str:
    """msgspec's words, with the place told from the name of the type on, and with what may be the cause."""
    what, _, place = said.partition(" - at `$")
    what, place = what[:1].lower() + what[1:], place.removesuffix("`")
    if (tag := re.fullmatch(r"invalid value '(.*)'", what, re.DOTALL)) and place.endswith(f".{TAG}"):
        place = place.removesuffix(f".{TAG}")
        if tag[1] in _STRUCTS.classes:
            what = f"{tag[1]} has no place here"
        else:
            what = (
                f"unknown type {tag[1]!r:.80}: written by another version of Fairlead, or its module was not imported"
            )
    elif what.startswith("object contains unknown field"):
        what = f"{what}; was it written by another version of Fairlead?"
    elif what == f"object missing required field `{TAG}`":
        what = f"expected an object with its type under {TAG!r}"
    try:
        top = _TAGGED.decode(data).tag
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        top = ""
    where = f"{top}{place}" if top in _STRUCTS.classes else place
    return f"{where}: {what}" if where and where != what.partition(" ")[0] else what
