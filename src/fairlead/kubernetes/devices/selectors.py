"""Selectors: whether an expression in CEL is true of a device.

Decides how a device looks to an expression, and the words that Kubernetes adds to the language: amounts, versions,
`cel.bind`, texts. The language itself is the library's, which is imported with the first expression. Invariant: an
expression that fails is said, never taken for false.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from fairlead.kubernetes.device_objects import Attribute, Device
from fairlead.kubernetes.translate.amounts import AmountError, exact

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

QUANTITY, VERSION = "quantity", "version"
"""Values that the language does not have are maps with one of these keys, equal where they mean the same."""
ATTRIBUTES = "attributes"
KEPT = 1_000
ANSWERS_KEPT = 20_000
Use = tuple[str, str, str]
"""A part of a device (`attributes`, `capacity`), a domain and a name."""
_ANSWERS: dict[tuple[object, ...], bool | str] = {}
"""By an expression and what it looks at: whether it is true; a text: why it fails."""
_SEMVER = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?")
_DOMAINS = re.compile(r"""\b(attributes|capacity)\s*\[\s*(?:"([^"\\]*)"|'([^'\\]*)')\s*\]""")
_DEVICE = re.compile(r"\bdevice\b")
_QUOTED = r"""\[\s*(?:"([^"\\]*)"|'([^'\\]*)')\s*\]"""
_USE = re.compile(
    r"\bdevice\s*\.\s*(?:(?:driver|allowMultipleAllocations)\b|(attributes|capacity)\s*"
    rf"{_QUOTED}\s*(?:\.\s*([A-Za-z_]\w*)\b(?!\s*\()|{_QUOTED}))"
)
"""Something of a device by its name, and not a question about all that it has of a domain."""
_MISLEADING = re.compile(r"""//|\"{3}|'{3}|\b[rRbB]{1,2}["']""")
"""With comments and such texts it is not told what stands in quotes."""
_BIND = re.compile(r"\bcel\s*\.\s*bind\s*\(")


class SelectorError(ValueError):
    """An expression cannot be read, or not be answered for a device; the sentence says why."""


class Looks:
    """How one device looks to expressions; made once, asked several times.

    Devices that have in common all that an expression looks at have one answer: a cluster has tens of thousands, of a
    few models, and an answer takes a tenth of a millisecond.
    """

    def __init__(self, driver: str, device: Device) -> None:
        self._driver, self._given = driver, device
        self._device: dict[str, Any] = {}
        self._context: Any = None

    def matches(self, expression: str) -> bool:
        """Whether the expression is true of it. Raises `SelectorError`."""
        uses = looked_at(expression)
        if uses is None:
            return self._execute(expression)
        alike = (expression, self._driver, bool(self._given.allow_multiple_allocations), *map(self._said_of, uses))
        known = _ANSWERS.get(alike)
        if known is None:
            try:
                known = self._execute(expression)
            except SelectorError as e:
                known = str(e)
            if len(_ANSWERS) >= ANSWERS_KEPT:
                del _ANSWERS[next(iter(_ANSWERS))]
            _ANSWERS[alike] = known
        if isinstance(known, str):
            raise SelectorError(known)
        return known

    def _said_of(self, use: Use) -> tuple[object, object]:
        """What the device says of something, by its full name, or without the domain, which then is its driver's."""
        part, domain, name = use
        given: dict[str, Any] = (self._given.attributes if part == ATTRIBUTES else self._given.capacity) or {}
        return given.get(f"{domain}/{name}"), given.get(name) if domain == self._driver else None

    def _execute(self, expression: str) -> bool:
        program, domains = compiled(expression)
        if not self._device:
            self._device = _as_expressions_see(self._driver, self._given)
        for part, domain in domains:
            if domain not in self._device[part]:
                # What it has nothing of is empty, not missing.
                self._device[part][domain] = {}
                self._context = None
        if self._context is None:
            from cel import Context

            self._context = Context({"device": self._device}, functions())
        try:
            answer = program.execute(self._context)
        except (KeyError, RuntimeError, TypeError, ValueError, OverflowError) as e:
            raise SelectorError(f"`{expression}` fails: {_said(e)}") from None
        if not isinstance(answer, bool):
            raise SelectorError(f"`{expression}` is neither true nor false, but {type(answer).__name__}")
        return answer


@lru_cache(maxsize=KEPT)
def looked_at(expression: str) -> tuple[Use, ...] | None:
    """What an expression looks at of a device beside its driver; None: perhaps at all of it."""
    if _MISLEADING.search(expression):
        return None
    code = {at for at, _ in _code(expression, 0)}
    used = [found for found in _USE.finditer(expression) if found.start() in code]
    if len(used) != sum(found.start() in code for found in _DEVICE.finditer(expression)):
        return None
    uses = ((f[1], f[2] or f[3] or "", f[4] or f[5] or f[6] or "") for f in used if f[1])
    return tuple(dict.fromkeys(uses))


def _as_expressions_see(driver: str, device: Device) -> dict[str, Any]:
    return {
        "driver": driver,
        ATTRIBUTES: _by_domain(driver, {k: _value(v) for k, v in (device.attributes or {}).items()}),
        "capacity": _by_domain(driver, {k: quantity(v.value) for k, v in (device.capacity or {}).items()}),
        "allowMultipleAllocations": bool(device.allow_multiple_allocations),
    }


@lru_cache(maxsize=KEPT)
def compiled(expression: str) -> tuple[Any, tuple[tuple[str, str], ...]]:
    """The program of an expression, and the domains that it looks into. Raises `SelectorError`."""
    from cel import compile as compile_cel

    domains = dict.fromkeys((part, double or single) for part, double, single in _DOMAINS.findall(expression))
    try:
        return compile_cel(without_bind(expression)), tuple(domains)
    except (ValueError, RuntimeError) as e:
        raise SelectorError(f"`{expression}` cannot be read: {_said(e)}") from None


def without_bind(expression: str) -> str:
    """`cel.bind(name, value, body)` without that macro, which the library does not have. Raises `SelectorError`."""
    found = _BIND.search(expression)
    while found is not None:
        parts, end = _arguments(expression, found.end())
        if len(parts) != 3:
            raise SelectorError(f"`{expression}` cannot be read: cel.bind takes three arguments")
        name, value, body = (part.strip() for part in parts)
        expression = f"{expression[: found.start()]}([{value}].map({name}, {body})[0]){expression[end:]}"
        found = _BIND.search(expression)
    return expression


def _arguments(text: str, start: int) -> tuple[list[str], int]:
    """What stands between commas from `start` on, and where the parenthesis that ends it is over."""
    found: list[str] = []
    depth, begin = 0, start
    for at, character in _code(text, start):
        if character in "([{":
            depth += 1
        elif character in ")]}":
            if not depth:
                return [*found, text[begin:at]], at + 1
            depth -= 1
        elif character == "," and not depth:
            found.append(text[begin:at])
            begin = at + 1
    raise SelectorError(f"`{text}` cannot be read: a parenthesis is not closed")


def _code(text: str, start: int) -> Iterator[tuple[int, str]]:
    """The characters from `start` on that do not stand within quotes."""
    quote, at = "", start
    while at < len(text):
        character = text[at]
        if quote:
            if character == "\\":
                at += 1
            elif character == quote:
                quote = ""
        elif character in "\"'":
            quote = character
        else:
            yield at, character
        at += 1


def _said(e: Exception) -> str:
    if isinstance(e, KeyError):
        return f"there is no {e.args[0]!r}"
    return " ".join(str(e).split("\n", 1)[0].split())[:300]


# -- values -------------------------------------------------------------------------------------------------------


def _by_domain(driver: str, values: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Names without a domain are of the driver's."""
    found: dict[str, dict[str, Any]] = {driver: {}}
    for name, value in values.items():
        domain, _, rest = name.rpartition("/")
        found.setdefault(domain or driver, {})[rest] = value
    return found


def _value(given: Attribute) -> Any:
    if given.version is not None:
        return {VERSION: given.version}
    return next((v for v in (given.string, given.int_, given.bool_) if v is not None), None)


def quantity(given: str | int | float) -> dict[str, str]:
    """An amount such as `10Gi`. Raises `SelectorError`."""
    try:
        return {QUANTITY: str(exact(given))}
    except AmountError as e:
        raise SelectorError(str(e)) from None


def _version(text: str) -> dict[str, str]:
    if not _SEMVER.fullmatch(text):
        raise SelectorError(f"{text!r} is no semantic version such as 1.2.3")
    return {VERSION: text}


def _order(value: Any) -> Any:
    """What amounts and versions are compared by."""
    if QUANTITY in value:
        return Fraction(value[QUANTITY])
    found = _SEMVER.fullmatch(value[VERSION])
    if found is None:
        raise SelectorError(f"{value[VERSION]!r} is no semantic version such as 1.2.3")
    major, minor, patch, before = found.groups()
    # Numbers come before words, and what has a label before what has none.
    labels = [(0, int(p), "") if p.isdecimal() else (1, 0, p) for p in (before or "").split(".") if before]
    return (int(major), int(minor), int(patch)), not labels, labels


def _compare(a: Any, b: Any) -> int:
    return int(_order(a) > _order(b)) - int(_order(a) < _order(b))


def _part(number: int) -> Callable[[Any], int]:
    return lambda value: int(_order(value)[0][number])


def _is(make: Callable[[str], Any]) -> Callable[[str], bool]:
    def holds(text: str) -> bool:
        try:
            make(text)
        except SelectorError:
            return False
        return True

    return holds


def _amount(value: Any) -> Fraction:
    return Fraction(value[QUANTITY])


def _sum(sign: int) -> Callable[[Any, Any], Any]:
    def added(a: Any, b: Any) -> dict[str, str]:
        more = Fraction(b) if isinstance(b, int) else _amount(b)
        return {QUANTITY: str(_amount(a) + sign * more)}

    return added


def _index(text: str, part: str, start: int = 0) -> int:
    return text.find(part, start)


def _last_index(text: str, part: str) -> int:
    return text.rfind(part)


@cache
def functions() -> dict[str, Any]:
    """What Kubernetes adds to the language, by name; the value that a function is called on is its first argument."""
    return {
        "quantity": quantity,
        "isQuantity": _is(quantity),
        "semver": _version,
        "isSemver": _is(_version),
        "compareTo": _compare,
        "isGreaterThan": lambda a, b: _compare(a, b) > 0,
        "isLessThan": lambda a, b: _compare(a, b) < 0,
        "major": _part(0),
        "minor": _part(1),
        "patch": _part(2),
        "isInteger": lambda q: _amount(q).denominator == 1,
        "asInteger": lambda q: int(_amount(q)),
        "asApproximateFloat": lambda q: float(_amount(q)),
        "sign": lambda q: (_amount(q) > 0) - (_amount(q) < 0),
        "add": _sum(1),
        "sub": _sum(-1),
        "lowerAscii": str.lower,
        "upperAscii": str.upper,
        "trim": str.strip,
        "charAt": lambda text, at: text[at] if at < len(text) else "",
        "indexOf": _index,
        "lastIndexOf": _last_index,
        "replace": str.replace,
        "split": str.split,
        "substring": lambda text, start, end=None: text[start:end],
        "join": lambda texts, between="": between.join(texts),
    }
