"""What every shape is made of, and what the single fields of a request may hold.

Decides that answers may gain fields (an older client reads on) and that requests may not (a misspelt field is no
request); which texts, amounts and names are taken in, and with which sentence everything else is refused. Never looks
at more than one field. Invariant: what a request was refused for names the field and says what to write; what passes
can be written down, given to a process, and read back.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

_OWN_NAMES = frozenset({"FAIRLEAD_KEY", "FAIRLEAD_NAME", "FAIRLEAD_QUEUE", "FAIRLEAD_ATTEMPT"})
_RESERVED_TAGS = frozenset(
    {
        "application.create.force",
        "creationtime",
        "namespace.resourceguaranteed",
        "namespace.resourcemaxapps",
        "namespace.resourcequota",
        "yunikorn.apache.org/creationtime",
    }
)
"""In lower case: placement reads names so. With them whoever submits for others says what holds for these."""
_RESOURCE = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_./]*[A-Za-z0-9])?")
_PART = re.compile(r"(100|[0-9]{1,2})%")
_HINTS = {
    "vcore": "the resource is called cpu, in cores (2, or 0.5)",
    "cpus": "the resource is called cpu, in cores (2, or 0.5)",
    "mem": "the resource is called memory, in bytes",
    "ram": "the resource is called memory, in bytes",
    "gpus": "the resource is called gpu",
}

Line = Annotated[str, Meta(max_length=256)]
Name = Annotated[str, Meta(min_length=1, max_length=256)]
Key = Annotated[str, Meta(min_length=1, max_length=400)]
"""A job: its number on a machine, `NAMESPACE/NAME` on a cluster."""
Labels = Annotated[dict[Line, Line], Meta(max_length=64)]
Amounts = Annotated[dict[str, int | float], Meta(description="cpu in cores, memory in bytes, all others in units.")]
"""What is answered of amounts, by resource; `cpu` may be a part of a core."""
LARGEST = 2**63 - 1
Whole = Annotated[int, Meta(ge=0, le=LARGEST)]
AmountsDraft = Annotated[dict[str, Whole | Annotated[float, Meta(ge=0)]], Meta(max_length=64)]
Priority = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1, description="Any 32-bit integer; higher wins.")]


LONGEST_WORD = 131_071
"""Bytes of one argument, or of one environment variable with its name, that Linux gives to a process
(`MAX_ARG_STRLEN`)."""


def said(text: str) -> Meta:
    """What the OpenAPI document says about a field, for `Annotated`."""
    return Meta(description=text)


def clean_text(text: str) -> str:
    """A text that can be written down and read back. Raises `ValueError`."""
    if "\0" in text:
        raise ValueError("must not contain a NUL character")
    if not text.isascii():
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            raise ValueError("must be valid Unicode, without half of a surrogate pair") from None
    return text


def _length(text: str) -> int:
    """In bytes, as a process is given it."""
    return len(text) if text.isascii() else len(text.encode("utf-8"))


_MISLEADING = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""Control characters, also those that a terminal takes for the beginning of an order; marks that turn the direction of
writing; separators of lines."""


def one_line(text: str) -> str:
    """A text without anything that would break a line or a table. Raises `ValueError`."""
    if not text.isprintable() and (found := _MISLEADING.search(text)) is not None:
        if not found[0].isascii():
            said = f"must not contain U+{ord(found[0]):04X}, which shows a text in another order or as other than it is"
            raise ValueError(f"{said}; leave it out")
        raise ValueError("must be one line without control characters")
    return clean_text(text)


def each(check: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The check for every item of a list, and for every name and value of an object; gives the items to keep."""

    def all_of(values: Any) -> Any:
        if isinstance(values, list):
            return [_inside(f"[{at}]", check, value) for at, value in enumerate(values)]
        for name, value in values.items():
            _inside(f".{name}", check, name)
            _inside(f".{name}", check, value)
        return values

    return all_of


def _inside(place: str, check: Callable[[Any], Any], value: Any) -> Any:
    try:
        return check(value)
    except ValueError as problem:
        raise Wrong(place, str(problem)) from None


def absolute(path: str) -> str:
    """An absolute path. Raises `ValueError`."""
    if not posixpath.isabs(path):
        raise ValueError("must be an absolute path, such as /home/ada/project")
    return clean_text(path)


def environment(env: dict[str, str]) -> dict[str, str]:
    """Environment variables that a process can be given. Raises `ValueError`."""
    for name in env:
        if not name or "=" in name:
            raise ValueError(f"{name!r} is no name of an environment variable")
        if name in _OWN_NAMES:
            raise ValueError(f"{name} is set by the service; leave it out")
    each(clean_text)(env)
    for name, value in env.items():
        if _length(name) + _length(value) + 1 > LONGEST_WORD:
            raise Wrong(f".{name}", f"is larger than a process can be given, {LONGEST_WORD} bytes; put it into a file")
    if sum(_length(n) + _length(v) for n, v in env.items()) > 131_072:
        raise ValueError("is larger than 128 KiB in total; put large values into a file")
    return env


def amounts(resources: Amounts | None) -> Amounts | None:
    """Amounts by resource, at least one of them above 0, or None. Raises `ValueError`."""
    if resources is None:
        return None
    if not any(changed_amounts(resources).values()):
        raise ValueError("asks for nothing; ask for some cpu (1 is one core), or leave resources out")
    return resources


def changed_amounts(resources: Amounts) -> Amounts:
    """Amounts by resource that take the place of others. Raises `ValueError`."""
    for name in resources:
        if not _RESOURCE.fullmatch(name) or len(name) > 253:
            raise ValueError(f"{name!r} is no name of a resource; use letters, digits and - _ . /")
    return most(resources)


def most(resources: Amounts) -> Amounts:
    """Amounts by resource, each of which can be counted. Raises `ValueError`, with the name."""
    for name, amount in resources.items():
        clean_text(name)
        if name in _HINTS:
            raise ValueError(f"there is no resource {name!r}: {_HINTS[name]}")
        counted = amount * 1000 if name == CPU else amount
        if counted > LARGEST:
            raise Wrong(f".{name}", f"must be at most {LARGEST // 1000 if name == CPU else LARGEST}")
        if name == CPU and round(counted) / 1000 != amount:
            raise Wrong(".cpu", "has more than three decimals; a thousandth of a core is the least there is")
        if name != CPU and not isinstance(amount, int):
            raise Wrong(f".{name}", "must be a whole number; only cpu has parts")
    return resources


# -- amounts, here and in the books --------------------------------------------------------------------------------

CPU, VCORE = "cpu", "vcore"


def with_cpu(told: Any) -> Any:
    """What the books say, as it is answered: wherever an amount of `vcore` in thousandths stands, `cpu` in cores."""
    if not isinstance(told, Mapping):
        return told
    found = {}
    for name, value in told.items():
        if not isinstance(value, int):
            found[name] = with_cpu(value)
        elif name == VCORE:
            found[CPU] = cores(value)
        else:
            found[name] = value
    return found


def with_vcore(amounts: Mapping[str, int | float]) -> dict[str, int]:
    """Amounts as the books count them: `vcore` in thousandths instead of `cpu` in cores."""
    return {VCORE if name == CPU else name: round(n * 1000) if name == CPU else int(n) for name, n in amounts.items()}


def measured(resource: str, *counted: int) -> tuple[str, tuple[int | float, ...]]:
    """A resource and amounts of it as the books have them, as they are answered."""
    return (CPU, tuple(map(cores, counted))) if resource == VCORE else (resource, counted)


def cores(thousandths: int) -> int | float:
    """Thousandths of a core in cores; a whole number where it is one."""
    return thousandths / 1000 if thousandths % 1000 else thousandths // 1000


def tags(given: dict[str, str]) -> dict[str, str]:
    """Tags that a user may set. Raises `ValueError`."""
    if "" in given:
        raise ValueError("a tag needs a name")
    for name, value in given.items():
        if name.lower() in _RESERVED_TAGS:
            raise ValueError(f"the tag {name!r} is reserved for the service; choose another name")
        one_line(name)
        clean_text(value)
    return given


def labels(given: dict[str, str]) -> dict[str, str]:
    """Labels, each with a name. Raises `ValueError`."""
    if "" in given:
        raise ValueError("a label needs a name")
    each(one_line)(given)
    return given


def command(words: list[str]) -> list[str]:
    """A program with its arguments. Raises `ValueError`."""
    if not words[0]:
        raise ValueError("the program is an empty text; name one, such as /bin/sh")
    each(clean_text)(words)
    for at, word in enumerate(words):
        if _length(word) > LONGEST_WORD:
            said = f"is longer than an argument of a process may be, {LONGEST_WORD} bytes; put the data into a file"
            raise Wrong(f"[{at}]", said)
    if sum(map(_length, words)) > 1_048_576:
        raise ValueError("is longer than 1 MiB in total; put the data into a file")
    return words


def full_port(text: str) -> str:
    """A port as `PROTOCOL/ADDRESS/PORT`, from that, from `PROTOCOL/PORT`, or from the number. Raises `ValueError`."""
    parts = text.split("/")
    protocol, address, port = {1: ["TCP", "0.0.0.0", *parts], 2: [parts[0], "0.0.0.0", *parts[1:]]}.get(
        len(parts), [*parts[:2], "/".join(parts[2:])]
    )
    protocol, address = one_line(protocol).upper(), one_line(address) or "0.0.0.0"
    if protocol not in ("TCP", "UDP", "SCTP") or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ValueError(f"{text!r} is no port; write 8080, UDP/53 or TCP/127.0.0.1/8080")
    return f"{protocol}/{address}/{int(port)}"


def share_or_count(bound: int | str) -> int | str:
    """A number of jobs, or a part of them. Raises `ValueError`."""
    if 0 <= bound < 2**31 if isinstance(bound, int) else _PART.fullmatch(bound):
        return bound
    raise ValueError(f"must be a number of jobs, such as 2, or a part of them from 0% to 100%, not {repr(bound)[:40]}")


# -- what is said -----------------------------------------------------------------------------------------------------

_LONG = re.compile(r"\S{201,}")


def shortened(sentence: str) -> str:
    """Of words with more than 200 characters the two ends: a value that is repeated may be as long as a request."""
    return _LONG.sub(lambda word: f"{word.group()[:80]}...{word.group()[-40:]}", sentence)


# -- what shapes are made of ---------------------------------------------------------------------------------------


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """A resource, or a part of one, as it is answered."""


class Wrong(ValueError):
    """A field of a request has a value that no type could have refused."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field, self.message = field, message


class Request(Shape, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A body of a request: no other fields, no converted types."""

    CHECKS: ClassVar[Mapping[str, Callable[[Any], Any]]] = {}
    """What a field has to pass beyond its type: gives the value to keep, raises `ValueError` with a sentence."""

    def __post_init__(self) -> None:
        """Check the fields. Raises `Wrong`, which msgspec tells with the place."""
        for name, check in self.CHECKS.items():
            value = getattr(self, name)
            if value is not None:
                try:
                    kept = check(value)
                except Wrong as problem:
                    raise Wrong(f"{name}{problem.field}", problem.message) from None
                except ValueError as problem:
                    raise Wrong(name, str(problem)) from None
                if kept is not value:
                    msgspec.structs.force_setattr(self, name, kept)


class Page(Shape, frozen=True, kw_only=True):
    """One page of a list. `next`: give it as `after` to get the page behind. `total`: how many pass the filters."""

    next: str | None = None
    total: int = 0
