"""Expressions about devices, in Kubernetes' dialect of CEL."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from fairlead.kubernetes.device_objects import Device
from fairlead.kubernetes.devices import selectors
from fairlead.kubernetes.devices.selectors import Looks, SelectorError, looked_at, without_bind

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


def test_devices_that_are_alike_in_what_is_asked_are_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """40,000 devices of one model, each with a serial number of its own, took longer than a lease lasts."""
    asked: list[str] = []
    execute = Looks._execute
    monkeypatch.setattr(selectors, "_ANSWERS", {})
    monkeypatch.setattr(Looks, "_execute", lambda self, text: asked.append(text) or execute(self, text))
    found = {}
    for number in range(30):
        model = {"model": {"string": f"m{number % 2}"}, "serial": {"int": number}}
        given = {"name": f"d{number}", "attributes": model, "capacity": {"memory": {"value": "40Gi"}}}
        device = Looks("gpu.example.com", msgspec.convert(given, Device))
        about = f'device.driver == "gpu.example.com" && {OWN}["model"] == "m1" && has({OWN}.model)'
        with pytest.raises(SelectorError, match="other"):
            device.matches(f"{OWN}.other == 1")
        found[number] = device.matches(about), device.matches(f"{OWN}.serial > 14")
    assert found == {number: (number % 2 == 1, number > 14) for number in range(30)}
    assert len(asked) == 2 + 1 + 30


@pytest.mark.parametrize(
    "expression",
    [
        'MINE.exists(name, name == "x")',
        '"slots" in MINE && device.driver == "x"',
        "cel.bind(mine, MINE, mine.slots == 3)",
        "[1].exists(device, device == 1)",
        "device == device",
        'MINE.model == "A100" // it\'s one',
        'MINE.model == r"\\" && size(MINE) > 1 || MINE.model == "x"',
        '"""device.driver" == "" """ == MINE && true',
        'MINE[device.driver] == "x"',
    ],
)
def test_what_may_look_at_all_of_a_device_is_asked_of_each(expression: str) -> None:
    """Or is written so that it is not sure what it looks at."""
    assert looked_at(expression.replace("MINE", OWN)) is None


def test_what_an_expression_looks_at() -> None:
    """Each once, in whatever way it is written; words within quotes are none of it."""
    text = (
        'MINE.model == "device.driver" && MINE["model"] != device.attributes[\'net\'][ "rack" ] '
        '&& device . capacity["gpu.example.com"] .memory.isGreaterThan(quantity("1")) && device.driver != MINE.model'
    )
    own = "gpu.example.com"
    used = ("attributes", own, "model"), ("attributes", "net", "rack"), ("capacity", own, "memory")
    assert looked_at(text.replace("MINE", OWN)) == used
