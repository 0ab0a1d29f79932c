"""What may be long in requests is found in the service's own description, so a new route is measured by itself."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import Any

import pytest
from benchmarks.linear_bodies import Described
from benchmarks.linear_routes import Asking, prepare, ratios

DOCUMENT: dict[str, Any] = {
    "paths": {
        "/new/{key}": {
            "post": {
                "parameters": [
                    {"in": "query", "name": "where", "schema": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
                    {"in": "query", "name": "short", "schema": {"type": "string", "maxLength": 64}},
                ],
                "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/New"}}}},
            }
        }
    },
    "components": {
        "schemas": {
            "New": {
                "type": "object",
                "required": ["things", "kind"],
                "properties": {
                    "kind": {"enum": ["a", "b"], "type": "string"},
                    "things": {"type": "array", "maxItems": 10_000, "items": {"$ref": "#/components/schemas/Thing"}},
                    "few": {"type": "array", "maxItems": 10, "items": {"type": "string", "maxLength": 8}},
                },
            },
            "Thing": {
                "type": "object",
                "required": ["name"],
                "properties": {
                    "name": {"type": "string", "maxLength": 64},
                    "tags": {"type": "object", "maxProperties": 4096, "additionalProperties": {"type": "string"}},
                },
            },
        }
    },
}


def test_what_may_be_long_is_found_wherever_it_stands() -> None:
    """In lists of mappings, and in parameters; of these what is bounded by a few characters is left out."""
    described = Described(DOCUMENT)
    found = {long.name: long for long in described.long()}
    assert {name: long.most for name, long in found.items()} == {
        "POST /new/{key} ?where": 60_000,
        "POST /new/{key} things": 10_000,
        "POST /new/{key} things[].name": 64,
        "POST /new/{key} things[].tags": 4096,
        "POST /new/{key} few": 10,
        "POST /new/{key} few[]": 8,
    }
    said = DOCUMENT["paths"]["/new/{key}"]["post"]
    body = json.loads(described.filled(found["POST /new/{key} things[].tags"], said, 3))
    assert body == {"kind": "a", "things": [{"name": "x", "tags": {"K0": "x", "K1": "x", "K2": "x"}}]}
    assert len(json.loads(described.filled(found["POST /new/{key} things"], said, 5))["things"]) == 5


@pytest.mark.thorough
@pytest.mark.real
@pytest.mark.timeout(180)
def test_every_long_thing_of_the_service_can_be_made() -> None:
    """A body with so much there is JSON, and the service has an answer to it that is no fault."""
    with ExitStack() as stack:
        asking = Asking(stack)
        said = {(method, path): each for method, path, each in asking.described.operations()}
        prepare(asking)
        for long in asking.described.long():
            if not long.is_parameter:
                path = long.path.replace("{key}", "999999").replace("{name}", "n")
                body = asking.described.filled(long, said[long.method, long.path], min(20, long.most))
                assert asking.ask(long.method, path, body)[0] < 500, long.name
        assert len(list(asking.described.long())) > 100


@pytest.mark.slow
@pytest.mark.real
@pytest.mark.timeout(180)
def test_a_route_has_a_figure() -> None:
    """How good it is depends on the machine that this runs on."""
    [found] = ratios("POST /api/v1/config/check text")
    assert (found.status, found.size > 100, found.took.times > 0) == (200, True, True)
