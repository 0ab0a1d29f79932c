"""Expressions about devices, in Kubernetes' dialect of CEL."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from fairlead.kubernetes.device_objects import Device
from fairlead.kubernetes.devices.selectors import Looks, SelectorError, without_bind

GIVEN: dict[str, Any] = {
    "name": "d",
    "attributes": {
        "model": {"string": "A100"}, "slots": {"int": 3}, "healthy": {"bool": True},
        "driverVersion": {"version": "1.10.0"},
        "net.example.com/rack": {"string": "r1"},
    },
    "capacity": {"memory": {"value": "40Gi"}},
}  # fmt: skip


def matches(expression: str) -> bool:
    return Looks("gpu.example.com", msgspec.convert(GIVEN, Device)).matches(expression.replace("MINE", OWN))


OWN = 'device.attributes["gpu.example.com"]'


@pytest.mark.parametrize(
    "expression",
    [
        'device.driver == "gpu.example.com"',
        'MINE.model == "A100" && MINE.slots > 2',
        'MINE.model in ["H100", "A100"]',
        'has(MINE.model) && "slots" in MINE',
        'MINE.model.lowerAscii().matches("^a[0-9]+$")',
        'MINE.driverVersion.isGreaterThan(semver("1.9.0")) && MINE.driverVersion.major() == 1',
        'MINE.driverVersion.compareTo(semver("1.10.0-rc.1")) > 0',
        'device.capacity["gpu.example.com"].memory.compareTo(quantity("10Gi")) >= 0',
        'device.capacity["gpu.example.com"].memory == quantity("40960Mi")',
        'device.attributes["net.example.com"].rack == "r1"',
        "cel.bind(mine, MINE, mine.healthy && mine.slots == 3)",
        'cel.bind(a, cel.bind(b, "x,(y", b + "z"), a == "x,(yz")',
        'MINE.missing == 1 || device.driver == "gpu.example.com"',
    ],
)
def test_what_is_true(expression: str) -> None:
    assert matches(expression) is True


@pytest.mark.parametrize(
    "expression",
    [
        'MINE.model == "H100"',
        'MINE.driverVersion == "1.10.0"',
        'has(device.attributes["other.example.com"].model)',
        'quantity("1Gi").isGreaterThan(device.capacity["gpu.example.com"].memory)',
        'MINE.missing == 1 && device.driver == "other"',
        "device.allowMultipleAllocations",
    ],
)
def test_what_is_false(expression: str) -> None:
    """A version is no text, and a domain of which there is nothing is empty."""
    assert matches(expression) is False


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("MINE.missing == 1", "there is no 'missing'"),
        ('device.attributes["other.example.com"].model == "x"', "there is no 'model'"),
        ("MINE.model ==", "cannot be read"),
        ("MINE.?model.orValue(1) == 1", "unsupported syntax"),
        ("MINE.slots", "neither true nor false"),
        ('quantity("much") == quantity("1")', "is no quantity"),
        ("cel.bind(a, 1)", "takes three arguments"),
        ("cel.bind(a, 1", "not closed"),
        ("nothing(MINE.model)", "nothing"),
    ],
)
def test_what_fails_is_said(expression: str, why: str) -> None:
    with pytest.raises(SelectorError, match=why.replace("(", r"\(")):
        matches(expression)


def test_what_stands_in_quotes_is_left_alone() -> None:
    assert without_bind("'a' == \"b\"") == "'a' == \"b\""
    assert without_bind('cel.bind(x, ")", x)') == '([")"].map(x, x)[0])'
