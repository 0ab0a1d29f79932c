"""The JSON form of dataclasses, worked out from their type hints: a msgspec struct each, and the way there and back.

Decides that a dataclass is an object with its class name under `$` and its fields by name, and that a field which is
empty by default is left out while it is empty. Never reads or writes bytes, and never lets a type in that could be
written but not read. Invariant: one name, one class; `lift(lower(value)) == value`.

Why structs and not the dataclasses themselves: msgspec cannot tell dataclasses apart by a tag, and passes over fields
that it does not know. The dataclasses stay free of all this.
"""

from __future__ import annotations

import sys
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from enum import Enum
from functools import lru_cache, partial
from typing import Annotated, Any, Union

import msgspec

from fairlead.core.model.resources import Items, Limits, Resources

TAG = "$"
_SCALARS = (str, int, bool, float, type(None))
_AS_IT_IS: dict[Any, Any] = {str: str, int: int, bool: bool, None: None, type(None): None, Any: Any, object: Any}
# Neither NaN nor the infinities are JSON numbers; a whole number stays one, so that a state is the same when read back.
_AS_IT_IS[float] = int | Annotated[float, msgspec.Meta(ge=-sys.float_info.max, le=sys.float_info.max)]
_EMPTY = (None, False, 0, "", ())
"""What msgspec leaves out by identity: there is one object of each, so equal values have equal bytes."""


class CodecError(ValueError):
    """A value cannot be written, or bytes cannot be read; the text begins with the place (`AddAsks.asks[2].node`)."""


Act = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class _Form:
    """How a type looks: what msgspec takes it for, and what makes that of a value, and back (None: nothing to do)."""

    type: Any
    lower: Act | None = None
    lift: Act | None = None


class Structs:
    """The dataclasses that may be written, by name, each with its struct; `lower` and `lift` go between the two."""

    def __init__(self) -> None:
        self.classes: dict[str, type] = {}
        self._structs: dict[type, Any] = {}
        self._lower: dict[type, Act] = {}
        self._lift: dict[type, Act] = {}

    def register(self, cls: type) -> None:
        """Take in a dataclass and every dataclass its fields mention; those derived from these must be here before.

        Raises `CodecError` if it is not one, if a field has a type without a JSON form, or if another class has its
        name already.
        """
        before = dict(self.classes)
        try:
            self._enter(cls)
            msgspec.json.Decoder(self._structs[cls])
        except (CodecError, TypeError, NameError) as e:
            self.classes = before
            raise CodecError(f"{getattr(cls, '__name__', cls)} cannot be registered: {e}") from None

    def known(self, *bases: type) -> Any:
        """The structs of all classes that are one of `bases`, or derived from one, as one type."""
        return Union[tuple(self._structs[c] for c in self.classes.values() if issubclass(c, bases))]  # noqa: UP007

    def lower(self, value: Any) -> Any:
        """The struct of a value. Raises `CodecError` for a class that is not registered; checks nothing else."""
        act = self._lower.get(value.__class__)
        if act is None:
            name = type(value).__name__
            raise CodecError(f"{name} is not registered; call register({name}) once")
        return act(value)

    def lift(self, struct: Any) -> Any:
        """The value that a struct stands for."""
        return self._lift[struct.__class__](struct)

    # --- One class ---------------------------------------------------------------------------------------------------

    def _enter(self, cls: type) -> None:
        if not is_dataclass(cls):
            raise CodecError(f"{cls!r} is not a dataclass")
        other = self.classes.get(cls.__name__)
        if other is cls:
            return
        if other is not None:
            raise CodecError(f"the name {cls.__name__} is taken: by {other.__module__}; wanted by {cls.__module__}")
        hints = typing.get_type_hints(cls)
        # What must be there first (so a struct is filled by position, in half the time), each part alphabetical: the
        # order of declaration does not reach the bytes.
        members = sorted(fields(cls), key=lambda f: (not _is_required(f), f.name))
        empty = {f.name: self._empty(f.default) for f in members}
        forms: dict[str, _Form] = {}
        struct = msgspec.defstruct(
            cls.__name__,
            [(f.name, Any, *_default(f, empty[f.name], forms)) for f in members],
            omit_defaults=True,
            forbid_unknown_fields=True,
            tag_field=TAG,
            tag=cls.__name__,
            frozen=True,
            gc=False,
        )
        # In the book before its fields are looked at, and its types filled in after: a class may contain itself.
        self.classes[cls.__name__], self._structs[cls] = cls, struct
        for f in members:
            if not f.init:
                raise CodecError(f"field {f.name} is not set by the constructor; it cannot be read back")
            try:
                form = self._form(hints[f.name])
            except CodecError as e:
                raise CodecError(f"{cls.__name__}.{f.name}: {e}") from None
            forms[f.name] = form if empty[f.name] is None else self._short(form, f.default, empty[f.name])
            struct.__annotations__[f.name] = form.type
        self._lower[cls], self._lift[struct] = _acts(cls, struct, forms)

    def _empty(self, default: Any) -> Any:
        """The struct of a default that is a dataclass with empty fields alone, as are constraints that allow any node.

        None for any other default. msgspec leaves a field out if it holds this very object.
        """
        if not is_dataclass(default) or isinstance(default, type):
            return None
        self._enter(type(default))
        struct = self.lower(default)
        return struct if msgspec.to_builtins(struct) == {TAG: type(default).__name__} else None

    def _short(self, form: _Form, default: Any, empty: Any) -> _Form:
        """The form of a field whose default is `empty` as a struct: one object stands for it on each side."""
        return _Form(
            form.type,
            lambda v: empty if v is default or v == default else self.lower(v),
            lambda s: default if s is empty else self.lift(s),
        )

    # --- One type ----------------------------------------------------------------------------------------------------

    def _form(self, hint: Any) -> _Form:
        origin, args = typing.get_origin(hint), typing.get_args(hint)
        if hint in _AS_IT_IS:
            return _Form(_AS_IT_IS[hint])
        if hint in (Resources, Limits):
            return _amounts(hint)
        if isinstance(hint, type) and issubclass(hint, Enum):
            return _Form(hint)
        if origin in (Union, types.UnionType):
            return _either([self._form(a) for a in args])
        if origin is tuple and args[1:] == (...,):
            return _tuple(self._form(args[0]))
        if isinstance(origin, type) and issubclass(origin, Mapping) and args[0] is str:
            return _mapping(self._form(args[1]))
        if isinstance(hint, type) and is_dataclass(hint):
            self._enter(hint)
            return _Form(self.known(hint), self.lower, self.lift)
        raise CodecError(f"the type {getattr(hint, '__name__', hint)} has no JSON form")


def _same(value: Any) -> Any:
    return value


def _is_required(f: Field[Any]) -> bool:
    return f.default is MISSING and f.default_factory is MISSING


def _default(f: Field[Any], empty: Any, forms: Mapping[str, _Form]) -> tuple[Any, ...]:
    """What an absent field means, as the last part of a struct's field; nothing for one that must be there."""
    if _is_required(f):
        return ()
    default = f.default if f.default_factory is MISSING else f.default_factory()
    if empty is not None:
        return (empty,)
    if any(default is each for each in _EMPTY):
        return (default,)
    if isinstance(default, Mapping | Resources | Limits) and not default:
        return (msgspec.field(default_factory=dict),)
    # Made by a function, so that msgspec never leaves it out: a default that says something may change one day.
    return (msgspec.field(default_factory=lambda: (forms[f.name].lower or _same)(default)),)


def _acts(cls: type, struct: type, forms: Mapping[str, _Form]) -> tuple[Act, Act]:
    """The functions that make a struct of a value and a value of a struct, as straight lines of code.

    A value is filled as `__init__` of a frozen dataclass does it, but without its keyword arguments: an ask has over
    twenty fields, and half of the time to read one would go into these.
    """
    scope: dict[str, Any] = {"cls": cls, "struct": struct, "new": cls.__new__}
    given, puts = [], []
    for name, form in forms.items():
        slot = getattr(cls, name, None)
        put = slot.__set__ if isinstance(slot, types.MemberDescriptorType) else partial(_put, name)
        scope |= {f"put_{name}": put, f"lower_{name}": form.lower, f"lift_{name}": form.lift}
        given.append(f"lower_{name}(v.{name})" if form.lower else f"v.{name}")
        puts.append(f"put_{name}(v, lift_{name}(s.{name}))" if form.lift else f"put_{name}(v, s.{name})")
    checks = ["v.__post_init__()"] if hasattr(cls, "__post_init__") else []
    lines = [f"lower = lambda v: struct({', '.join(given)})", "def lift(s):", " v = new(cls)"]
    exec("\n".join([*lines, *(f" {line}" for line in [*puts, *checks]), " return v"]), scope)
    return scope["lower"], scope["lift"]


def _put(name: str, value: Any, part: Any) -> None:
    object.__setattr__(value, name, part)


def _either(forms: list[_Form]) -> _Form:
    """A union: scalars are what they are, and all that is more goes one way."""
    ways = list(dict.fromkeys((f.lower, f.lift) for f in forms if f.lower or f.lift))
    whole: Any = Union[tuple(f.type for f in forms)]  # noqa: UP007 (the members are only known now)
    if not ways:
        return _Form(whole)
    if len(ways) > 1:
        raise CodecError("the members of this union could not be told apart")
    lower, lift = ways[0]
    return _Form(whole, lower and _unless_scalar(lower), lift and _unless_scalar(lift))


def _unless_scalar(act: Act) -> Act:
    return lambda v: v if v.__class__ in _SCALARS else act(v)


def _tuple(item: _Form) -> _Form:
    lower, lift = item.lower, item.lift
    return _Form(
        tuple[item.type, ...],  # type: ignore[name-defined]
        lower and (lambda vs: tuple([lower(v) for v in vs])),
        lift and (lambda vs: tuple([lift(v) for v in vs])),
    )


def _mapping(item: _Form) -> _Form:
    lower, lift = item.lower, item.lift

    def lowered(value: Any) -> Any:
        if value.__class__ is not dict and isinstance(value, Mapping):
            value = dict(value)
        return {key: lower(part) for key, part in value.items()} if lower else value

    return _Form(dict[str, item.type], lowered, lift and (lambda v: {key: lift(part) for key, part in v.items()}))  # type: ignore[name-defined]


def _amounts(cls: Callable[[Items], Any]) -> _Form:
    # One object for equal amounts: most asks want one of a few.
    made = lru_cache(4096)(cls)
    return _Form(
        dict[str, int],
        lambda v: dict(v.items) if v.__class__ is cls else v,
        lambda read: made(tuple(read.items())),
    )
