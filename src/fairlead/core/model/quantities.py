"""Quantities as people write them: `500m`, `2`, `10Gi`, and back; amounts and durations as people read them: `cpu 0.5`.

Decides what a text means as an exact integer and refuses everything else with a sentence, and the words for amounts in
every sentence and table (all else about times: `times`). What is read is never rounded. `vcore` is held in thousandths;
every other name is held in units (bytes for memory). Grammar and limits: YuniKorn's queue file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from fairlead.core.model.resources import INT64_MAX

_GRAMMAR = re.compile(r"\s*(\d+)\s*([kKMGTPE]i?|mi?)?\s*", re.ASCII)
_DIGITS_MAX = 40
"""More digits than any 64-bit amount needs with any suffix; longer texts are not read at all."""
_DECIMAL = {"k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18}
_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
_FACTOR = {"": 1} | _DECIMAL | _BINARY

VCORE = "vcore"


class QuantityError(ValueError):
    """A text that is not a quantity; `kind` is one of the three that YuniKorn knows."""

    def __init__(self, kind: str, name: str, text: str, hint: str) -> None:
        super().__init__(f"{kind}: {text!r} for {name}: {hint}")
        self.kind, self.name, self.text, self.hint = kind, name, text, hint


def parse_quantity(name: str, text: str) -> int:
    """The integer that `text` means for the resource `name`.

    `vcore` in thousandths (`10` is 10000, `500m` is 500); others in units (`1k` is 1000, `1Ki` is 1024). Raises
    `QuantityError` with kind `invalid quantity` (no number, a sign, a decimal point), `invalid suffix` (a suffix
    without a meaning for this resource) or `invalid quantity: overflow` (beyond 64 bits).
    """
    match = _GRAMMAR.fullmatch(text)
    if not match:
        examples = "2 or 500m" if name == VCORE else "10Gi or 512Mi" if is_bytes(name) else "2 or 10k"
        raise QuantityError("invalid quantity", name, text, f"write digits and an optional suffix, such as {examples}")
    digits, suffix = match[1].lstrip("0"), match[2] or ""
    if suffix == "m" and name != VCORE:
        raise QuantityError("invalid suffix", name, text, "m (thousandths) is for vcore only")
    if suffix != "m" and suffix not in _FACTOR:
        raise QuantityError("invalid suffix", name, text, "use one of k M G T P E or Ki Mi Gi Ti Pi Ei")
    factor = 1 if suffix == "m" else _FACTOR[suffix] * (1000 if name == VCORE else 1)
    value = int(digits or "0") * factor if len(digits) <= _DIGITS_MAX else INT64_MAX + 1
    if value > INT64_MAX:
        raise QuantityError("invalid quantity: overflow", name, text, f"the largest is {INT64_MAX}")
    return value


def format_quantity(name: str, value: int) -> str:
    """A short text as a queue file has it, exact: thousandths of `vcore`, binary units for memory."""
    if name == VCORE:
        return str(value // 1000) if value % 1000 == 0 else f"{value}m"
    if is_bytes(name):
        for suffix, size in reversed(_BINARY.items()):
            if value and value % size == 0:
                return f"{value // size}{suffix}"
    return str(value)


def is_bytes(name: str) -> bool:
    """Whether amounts of this resource are bytes."""
    return name in ("memory", "ephemeral-storage") or name.startswith("hugepages-")


def people_call(name: str) -> str:
    """What people call a resource: `vcore` is YuniKorn's word for what all others call `cpu`."""
    return "cpu" if name == VCORE else name


def resource_called(name: str) -> str:
    """The resource that people call so; either word is understood."""
    return VCORE if name == "cpu" else name


def format_amount(name: str, value: int, *, up: bool = False) -> str:
    """A text for people: cores as `2` or `0.5`, bytes with one decimal at most, as `15.7Gi`.

    Bytes are rounded down; `up`: up. So what is needed (up) and what is free (down) never look equal where too little
    is free. Cores and everything else are exact.
    """
    if name == VCORE:
        sign, cores = ("-", -value) if value < 0 else ("", value)
        return sign + f"{cores // 1000}.{cores % 1000:03d}".rstrip("0").rstrip(".")
    return format_bytes(value, up=up) if is_bytes(name) else str(value)


def format_bytes(value: int, *, up: bool = False) -> str:
    """Bytes in the largest binary unit of which there is one, with one decimal at most; rounded down, or `up`."""
    if value < 0:
        return f"-{format_bytes(-value, up=not up)}"
    suffix, size = next(((s, n) for s, n in reversed(_BINARY.items()) if value >= n), ("", 1))
    tenths = value * 10 + size - 1 if up else value * 10
    return f"{tenths // size / 10:.1f}".removesuffix(".0") + suffix


_LONG = (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000))


def duration_exactly(ms: int) -> str:
    """In all units that it needs: `1h 30m`, `90d`, `1m 0.5s`, `500ms`."""
    parts: list[str] = []
    for unit, size in _LONG:
        if ms >= size:
            parts.append(f"{ms // size}{unit}")
            ms %= size
    if not parts and 0 < ms < 1_000:
        return f"{ms}ms"
    if ms or not parts:
        parts.append(f"{ms / 1000:g}s")
    return " ".join(parts)


def format_amounts(amounts: Mapping[str, int], *, up: bool = False) -> str:
    """`cpu 0.5, memory 4Gi`: every amount for people, sorted by name; `nothing` when there is none."""
    return _listed({name: format_amount(name, amount, up=up) for name, amount in amounts.items()})


def format_exactly(amounts: Mapping[str, int]) -> str:
    """The same without rounding, for amounts that are to be typed again: `cpu 0.5, memory 16736Mi`."""
    exact = {n: format_quantity(n, v) if is_bytes(n) else format_amount(n, v) for n, v in amounts.items()}
    return _listed(exact)


def _listed(amounts: Mapping[str, str]) -> str:
    shown = sorted((people_call(name), amount) for name, amount in amounts.items())
    return ", ".join(f"{name} {amount}" for name, amount in shown) or "nothing"
