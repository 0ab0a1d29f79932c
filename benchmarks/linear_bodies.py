"""What may be long in the body of a request, by a service's own description, and how it is made long; for `linear`.

Decides which field is doubled, and what stands around it so that the request is taken. Never asks anything. Invariant:
each list, mapping and text of each body is one of them, whatever it stands in, so a new field is found by itself.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from benchmarks.soak import QUEUES

SHORT = 256
"""A parameter that is bounded by so many characters is not long."""
MOST_CHARACTERS = 60_000
"""In a line of a request, which is bounded as a whole."""
JOB = {
    "command": ["/bin/true"],
    "cwd": "/",
    "hold": True,
    "queue": "root.default",
    "resources": {"gpu": 1},
}
"""On hold, and when it is released there is nothing of what it asks for: what runs would be counted, too."""
WAITING = {name: value for name, value in JOB.items() if name != "hold"}
"""The same, in line."""
KNOWN = 1000
"""Jobs that are there, on hold, by the keys 1, 2 and so on, when a body is sent."""
ENDED, LAST = str(KNOWN + 1), str(KNOWN + 2)
"""A job that has ended, and one on hold that may wait for those."""
VARIABLES = 4096
"""In the environment of a job, at most."""
DEPTH = 6
"""So deep fields are looked for in bodies."""
ENDLESS = ("/api/v1/events", "/ws/v1/events/stream", "/api/v1/jobs/{key}/terminal")
"""Streams: their pieces are measured as readers."""
Schema = Mapping[str, Any]
Path_ = tuple[str | int, ...]


@dataclass(frozen=True)
class Long:
    """One thing that may be long in the requests of a route: `at` in its body, or its parameter."""

    method: str
    path: str
    at: Path_
    most: int
    kind: str

    @property
    def is_parameter(self) -> bool:
        """Not in the body."""
        return self.at != () and str(self.at[0]).startswith("?")

    @property
    def name(self) -> str:
        """What its line says."""
        inside = "".join("[]" if each == 0 else f".{each}" for each in self.at).removeprefix(".")
        return f"{self.method} {self.path} {inside}"

    @property
    def field(self) -> str:
        """The name of the field that it is, or is one text of."""
        return str(next((each for each in reversed(self.at) if each != 0), ""))


@dataclass(frozen=True)
class Described:
    """What a service says of itself."""

    document: Schema

    def operations(self) -> Iterator[tuple[str, str, Schema]]:
        """Method, path, and what is said of it."""
        for path, methods in self.document["paths"].items():
            for method, said in methods.items():
                if path not in ENDLESS:
                    yield method.upper(), path, said

    def long(self) -> Iterator[Long]:
        """Everything that may be long in any request."""
        for method, path, said in self.operations():
            for parameter in said.get("parameters", ()):
                schema = self.plain(parameter["schema"])
                if parameter["in"] == "query" and schema.get("type") == "string" and self._is_long(schema, SHORT):
                    yield Long(method, path, (f"?{parameter['name']}",), MOST_CHARACTERS, "string")
            if (body := self.body(said)) is not None:
                for at, kind, most in self._within(body, ()):
                    yield Long(method, path, at, most, kind)

    def body(self, said: Schema) -> Schema | None:
        """The schema of the body of an operation."""
        content = said.get("requestBody", {}).get("content", {}).get("application/json")
        return self.plain(content["schema"]) if content else None

    def plain(self, schema: Schema) -> Schema:
        """What a reference, or one choice of several, stands for: that with the most room."""
        while "$ref" in schema:
            schema = self.document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        options = [self.plain(each) for each in (*schema.get("anyOf", ()), *schema.get("allOf", ()))]
        options = [each for each in options if each.get("type") != "null"]
        return max(options, key=lambda each: each.get("type") in ("array", "object", "string")) if options else schema

    def _within(self, schema: Schema, at: Path_, depth: int = 0) -> Iterator[tuple[Path_, str, int]]:
        kind = schema.get("type", "object" if "properties" in schema else "")
        most = next((schema[name] for name in ("maxItems", "maxProperties", "maxLength") if name in schema), 25_000)
        if self._is_long(schema, 1) and (kind in ("array", "string") or schema.get("additionalProperties")):
            yield at, kind, min(most, 25_000)
        if depth < DEPTH:
            for name, inner in schema.get("properties", {}).items():
                yield from self._within(self.plain(inner), (*at, name), depth + 1)
            if kind == "array" and "items" in schema:
                yield from self._within(self.plain(schema["items"]), (*at, 0), depth + 1)

    def _is_long(self, schema: Schema, short: int) -> bool:
        bounds = [schema[name] for name in ("maxItems", "maxProperties", "maxLength") if name in schema]
        return not schema.get("enum") and all(bound > short for bound in bounds)

    def least(self, schema: Schema, name: str = "") -> Any:
        """A value with what is required, and nothing else."""
        schema = self.plain(schema)
        if name in BASES:
            return deepcopy(BASES[name])
        if "enum" in schema:
            return schema["enum"][0]
        kind = schema.get("type", "object")
        if kind == "array":
            return [self.least(schema["items"], name)] if schema.get("minItems") else []
        if kind == "object":
            properties = schema.get("properties", {})
            return {each: self.least(properties[each], each) for each in schema.get("required", ())}
        return {"string": "x", "boolean": True, "integer": schema.get("minimum", 1), "number": 1}[kind]

    def filled(self, long: Long, said: Schema, count: int) -> bytes:
        """A body with so much there."""
        schema = self.body(said)
        assert schema is not None
        if not long.at:
            return json.dumps(self._many(schema, count)).encode()
        body = deepcopy(BODIES[long.path]) if long.path in BODIES else self.least(schema)
        body.pop(INSTEAD.get(long.field, ""), None)
        here, inner, within = body, schema, ""
        for step, following in zip(long.at, long.at[1:], strict=False):
            inner = self.plain(inner["items"] if step == 0 else inner["properties"][step])
            if step == 0:
                here[0:] = here[0:1] or [deepcopy(ITEMS[within]) if within in ITEMS else self.least(inner)]
            elif not here.get(step):
                here[step] = [] if following == 0 else self.least(inner, str(step))
            here, within = here[step], str(step)
        last = long.at[-1]
        inner = self.plain(inner["items"] if last == 0 else inner["properties"][last])
        # A text in a list is as long as wanted, whatever is in the list as a rule.
        value = (VALUES.get(long.field) if last != 0 else None) or (lambda n: self._many(inner, n))
        if last == 0:
            here[0:] = [value(count)]
        else:
            here[last] = value(count)
        return json.dumps(body).encode()

    def _many(self, schema: Schema, count: int) -> Any:
        kind = schema.get("type")
        if kind == "array":
            item = self.plain(schema["items"])
            one = self.least(item)
            return [f"v{n}" if item.get("type") == "string" and "enum" not in item else one for n in range(count)]
        if kind == "string":
            return "x" * count
        one = schema.get("additionalProperties")
        return {f"K{n}": self.least(one) if isinstance(one, Mapping) else "v" for n in range(count)}


def _queues(count: int) -> str:
    return QUEUES.rstrip("\n") + "\n" + "".join(f"          - {{name: q{n}}}\n" for n in range(count // 20))


BODIES: dict[str, Any] = {
    "/api/v1/jobs/{key}": {"priority": 3},
    "/api/v1/budgets/{name}": {"selector": [{"key": "k", "values": ["v"]}], "max_unavailable": 1},
    "/api/v1/quotas/{name}": {"queue": "root.default", "scopes": []},
    "/api/v1/windows/{name}": {"starts_at_ms": 4 * 10**12, "length_ms": 3_600_000},
}
"""Of routes where what is required alone makes no sense."""
INSTEAD = {"min_available": "max_unavailable"}
"""Of these fields a body has one or the other."""
ITEMS: dict[str, Any] = {
    "selector": {"key": "k", "values": ["v"]},
    "scopes": {"operator": "In", "values": ["v"]},
}
"""One of a list, where what is required alone makes no sense."""
BASES: dict[str, Any] = {
    "jobs": [JOB],
    "submit": JOB,
    "command": ["/bin/true"],
    "cwd": "/",
    "queue": "root.default",
    "script": "#!/bin/sh\n",
    "key": "1",
    "text": QUEUES,
    "like": socket.gethostname(),
}
"""What stands in a request where something is required, or is given though it is not."""
VALUES: dict[str, Callable[[int], Any]] = {
    "jobs": lambda n: [JOB] * n,
    "array": lambda n: ",".join(str(2 * each) for each in range(n // 5)),
    "text": _queues,
    "config": _queues,
    "script": lambda n: "#!/bin/sh\n" + "true\n" * (n // 5),
    "cwd": lambda n: "/" + "x" * (n - 1),
    "env": lambda n: {f"K{each}": "v" for each in range(n)},
    "unset_env": lambda n: [f"K{each}" for each in range(n)],
    "resources": lambda n: {f"r{each}": 1 for each in range(n)},
    "after": lambda n: [{"key": str(each + 1), "awaited": "any"} for each in range(n)],
    "cancel": lambda n: [str(each + 1) for each in range(n)],
    "ports": lambda n: [str(1024 + each) for each in range(n)],
    "notify": lambda n: [{"to": f"mail:a{each}@example.org"} for each in range(n)],
    "drain": lambda n: [socket.gethostname()] * n,
    "scopes": lambda n: [{"operator": "Exists"}] * n,
    "selector": lambda n: [{"key": f"k{each}", "operator": "Exists"} for each in range(n)],
    "taints": lambda n: [{"key": f"k{each}", "effect": "NoSchedule"} for each in range(n)],
    "nodes": lambda n: [socket.gethostname()] * n,
    "queues": lambda n: ["root.default"] * n,
    "users": lambda n: ["root"] * n,
    "groups": lambda n: ["root"] * n,
}
"""By the name of a field: what is taken, of this size."""
