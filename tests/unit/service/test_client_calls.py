"""Every call of the client is a route of the service, with the answer that it declares."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest

from fairlead.client.calls import pages, route
from fairlead.client.routes import Routes

CALLS = {name: made for name, made in vars(Routes).items() if isinstance(made, route | pages)}


class Described(Routes):
    """Says what would be sent, and the shape that is expected."""

    def send(self, call: Any, shape: Any) -> Any:
        return call, shape

    things = send


def described(name: str) -> Any:
    of_call = list(inspect.signature(CALLS[name]._describe).parameters.values())[1:]
    needed = [p for p in of_call if p.default is p.empty]
    plain = [p for p in needed if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    given = {p.name: {} for p in needed if p.kind is p.KEYWORD_ONLY}
    return getattr(Described(), name)(*("x" for _ in plain), **given)


@pytest.mark.parametrize("name", CALLS)
def test_a_call_is_answered_as_it_expects(name: str, served: Any) -> None:
    """The shape has the name that the OpenAPI document gives it."""
    call, shape = described(name)
    document = served.call("GET", "/api/v1/openapi.json").json
    fits = [
        operations[call.method.lower()]
        for path, operations in document["paths"].items()
        if call.method.lower() in operations and re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", path), f"/api/v1{call.path}")
    ]
    [operation] = fits
    [answer] = [operation["responses"][status] for status in ("200", "201") if status in operation["responses"]]
    assert answer["content"]["application/json"]["schema"]["$ref"].endswith(f"/{shape.__name__}")
