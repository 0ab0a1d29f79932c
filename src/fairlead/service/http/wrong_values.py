"""What is wrong with the body of a request, in words: the place, what is there, and what to write.

Decides the sentences. Never reads a body that is right. Invariant: the place is a path from the top of the body, such
as `jobs[3].resources`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from inspect import isclass
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec

from fairlead.runtime import Refusal
from fairlead.wire.shape import Shape, Wrong

_PLACE = re.compile(r"(?P<what>.*?)(?: - at (?:`key` in )?`\$(?P<path>.*)`)?", re.DOTALL)
_STEP = re.compile(r"\.(?P<name>[^.\[]+)|\[(?P<index>\d+)\]")
_BOUND = re.compile(r"Expected `(?P<kind>\w+)` (?P<length>of length )?(?P<sign>[<>]=?) (?P<bound>.+)")
_TYPE = re.compile(r"Expected `(?P<wanted>.+)`, got `(?P<got>.+)`")
_FIELD = re.compile(r"Object (?P<which>contains unknown|missing required) field `(?P<name>.*)`", re.DOTALL)
_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
}
_UNITS = {"str": "characters", "array": "items", "object": "entries"}
_SIGNS = {"<=": "at most", ">=": "at least", "<": "less than", ">": "more than"}
UNKNOWN = "there is no such field; look for a spelling mistake, or see /api/v1/openapi.json"


def read_otherwise(raw: bytes, shape: type[Shape], error: msgspec.DecodeError) -> Shape:
    """A body that msgspec could not read, if it is only unusual JSON. Raises `Refusal`, which names the place."""
    try:
        body = json.loads(raw, parse_constant=_no_number)
    except RecursionError:
        raise Refusal("malformed", "the body is nested too deeply") from None
    except ValueError as problem:
        raise Refusal("malformed", f"the body is not valid JSON: {problem}") from None
    if not isinstance(error, msgspec.ValidationError):
        # Python reads what msgspec does not, half of a surrogate pair for one; then the place can be told.
        try:
            return msgspec.convert(body, shape)
        except msgspec.ValidationError as found:
            error = found
        except RecursionError:
            raise Refusal("malformed", "the body is nested too deeply") from None
    field, message = _told(body, shape, error)
    place = f"{field}: " if field else ""
    details = [{"field": field, "message": message}]
    raise Refusal("invalid", f"{place}{message}", field=field or None, details=details) from None


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is no number")


def _told(body: Any, shape: type[Shape], error: msgspec.ValidationError) -> tuple[str, str]:
    split = _PLACE.fullmatch(str(error))
    assert split is not None
    what, path = split["what"], split["path"] or ""
    if "[...]" in path or "`key` in" in str(error):
        path = _with_name(body, shape, path)
    if isinstance(error.__cause__, Wrong):
        return _joined(path, error.__cause__.field), error.__cause__.message
    if found := _FIELD.fullmatch(what):
        return _joined(path, found["name"]), UNKNOWN if found["which"] == "contains unknown" else "is required"
    if found := _BOUND.fullmatch(what):
        unit = f" {_UNITS[found['kind']]}" if found["length"] else ""
        return path.removeprefix("."), f"must {'have' if unit else 'be'} {_SIGNS[found['sign']]} {found['bound']}{unit}"
    there = shown(_at(body, path))
    if found := _TYPE.fullmatch(what):
        wanted = " or ".join(_KINDS.get(kind, kind) for kind in found["wanted"].split(" | "))
        return path.removeprefix("."), f"must be {wanted}, not {there}"
    if what.startswith("Invalid enum value"):
        choices = ", ".join(str(choice) for offer in _offers(_type_at(shape, path)) for choice in get_args(offer))
        return path.removeprefix("."), f"must be one of {choices}, not {there}"
    return path.removeprefix("."), what[:1].lower() + what[1:]


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}".strip(".")


def _steps(path: str) -> Iterator[str | int]:
    for step in _STEP.finditer(path):
        yield step["name"] if step["name"] is not None else int(step["index"])


def _at(body: Any, path: str) -> Any:
    for step in _steps(path):
        body = body[step]
    return body


def _with_name(body: Any, shape: type[Shape], path: str) -> str:
    """The path with the name of the first wrong entry of an object; msgspec says only which object it is in."""
    begin, _, end = path.partition("[...]")
    kinds = get_args(next(each for each in _offers(_type_at(shape, begin)) if get_origin(each) is dict))
    for name, value in _at(body, begin).items():
        try:
            msgspec.convert([name, value], tuple[kinds[0], kinds[1]])  # type: ignore[valid-type]
        except msgspec.ValidationError:
            return f"{begin}.{name}{end}"
    return begin


def _type_at(shape: Any, path: str) -> Any:
    """What a place of a shape may hold."""
    for step in _steps(path):
        shape = next(inside for each in _offers(shape) if (inside := _inside(each, step)) is not None)
    return shape


def _inside(offer: Any, step: str | int) -> Any:
    if isinstance(step, int):
        return get_args(offer)[0] if get_origin(offer) is list else None
    if isclass(offer) and issubclass(offer, msgspec.Struct):
        return get_type_hints(offer, include_extras=True).get(step)
    return get_args(offer)[1] if get_origin(offer) is dict else None


def _offers(kind: Any) -> Iterator[Any]:
    """The members of a union, without what is said about them."""
    if get_origin(kind) is Annotated:
        yield from _offers(get_args(kind)[0])
    elif get_origin(kind) in (Union, UnionType):
        for each in get_args(kind):
            yield from _offers(each)
    else:
        yield kind


def shown(value: Any) -> str:
    """A value in a sentence."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
