"""Amounts and durations as people type them.

Decides what `2`, `0.5`, `500m`, `4Gi`, `10m` or `NAME=N` mean, exactly, and refuses the rest with
examples. Never rounds.
Invariant: what is accepted has one meaning; `vcore` is in thousandths, memory in bytes, durations in milliseconds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from fairlead import times
from fairlead.cli.failures import wrong_usage
from fairlead.core.model.quantities import VCORE, QuantityError, parse_quantity, resource_called
from fairlead.core.model.resources import INT64_MAX

_DECIMAL = re.compile(r"\s*(\d+)\.(\d+)\s*([A-Za-z]*)\s*")
_EXAMPLES = {
    VCORE: "write cores or thousandths of a core, such as 2, 0.5 or 500m",
    "memory": "write bytes with a unit, such as 512Mi, 4Gi or 2G (Ki Mi Gi Ti count in 1024, k M G T in 1000)",
}
_LEAST_MEMORY = 2**20


def parse_amount(name: str, text: str, where: str) -> int:
    """The integer that `text` means for resource `name`: thousandths for `vcore`, units (bytes) for all others.

    A bare small number of bytes of memory is refused, because nobody means four. A decimal point is understood as long
    as the result is a whole number. `where` opens the sentence of the `Failure` (usage) that is raised for all else.
    """
    value = _amount(name, text, where)
    if name == "memory" and 0 < value < _LEAST_MEMORY:
        raise wrong_usage(
            f"{where}: {text!r} means {value} bytes, too little to run anything; did you mean {text.strip()}Gi?"
        )
    return value


def _amount(name: str, text: str, where: str) -> int:
    example = _EXAMPLES.get(name, "write a whole number, with k M G or Ki Mi Gi if you like, such as 1 or 4Ki")
    try:
        decimal = _DECIMAL.fullmatch(text)
        if not decimal:
            return parse_quantity(name, text)
        unit = parse_quantity(name, f"1{decimal[3]}")
    except QuantityError as error:
        if "overflow" in error.kind:
            raise wrong_usage(f"{where}: {text!r} is too large; the largest is {INT64_MAX}") from None
        raise wrong_usage(f"{where}: {text!r} is not an amount; {example}") from None
    from fractions import Fraction

    value = Fraction(f"{decimal[1]}.{decimal[2]}") * unit
    if value.denominator != 1:
        raise wrong_usage(f"{where}: {text!r} is not a whole number of the smallest unit; {example}")
    if value > INT64_MAX:
        raise wrong_usage(f"{where}: {text!r} is too large; the largest is {INT64_MAX}")
    return int(value)


def parse_duration(text: str, where: str) -> int:
    """Milliseconds, as `times.parse_duration`; raises `Failure` (usage) for what is none."""
    try:
        return times.parse_duration(text)
    except ValueError as error:
        raise wrong_usage(f"{where}: {error}") from None


def parse_pairs(texts: Iterable[str], where: str, example: str) -> dict[str, str]:
    """`NAME=VALUE` texts as a mapping. Raises `Failure` (usage) without `=` or name, or for a name given twice."""
    pairs: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise wrong_usage(f"{where}: {text!r} is not NAME=VALUE; write for example {example}")
        if name in pairs:
            raise wrong_usage(f"{where}: {name} is given twice; give it once")
        pairs[name] = value
    return pairs


def parse_resources(
    cpu: str | None, memory: str | None, gpu: int | None, others: Iterable[str], prefix: str = "--"
) -> dict[str, int]:
    """All amounts that one job asks for, without zeros. Raises `Failure` (usage) for a resource named twice."""
    amounts: dict[str, int] = {}
    if cpu is not None:
        amounts[VCORE] = parse_amount(VCORE, cpu, f"{prefix}cpu")
    if memory is not None:
        amounts["memory"] = parse_amount("memory", memory, f"{prefix}memory")
    if gpu is not None:
        amounts["gpu"] = gpu
    for name, text in parse_pairs(others, f"{prefix}resource", "licence=1").items():
        resource = resource_called(name)
        if resource in amounts:
            raise wrong_usage(f"{prefix}resource: {name} is given twice; give it once")
        amounts[resource] = parse_amount(resource, text, f"{prefix}resource {name}")
    return {name: value for name, value in amounts.items() if value}
