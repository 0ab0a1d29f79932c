"""Each route of the service with much in its request, and each that reads with much in the books; for `linear`.

The measures are made from the service's own description: of each body every list, mapping and text that may be long,
whatever it stands in; parameters without a bound; orders about an array of N parts; and what is read, with twice the
jobs there. So a new route or field is measured by itself. What makes an input that is taken is in `VALUES`, and one
that is refused says so in its line. Work is processor time of the service, with that of the processes it starts.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import resource
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.soak import QUEUES
from fairlead.service.http.app import make_app
from fairlead.service.serve import ServeOptions, bring_up

SHORT = 256
"""What is bounded by so many is not long."""
MOST_CHARACTERS = 60_000
"""In a line of a request, which is bounded as a whole."""
JOB = {"command": ["/bin/true"], "cwd": "/", "hold": True, "queue": "root.default"}
WAITING = {"command": ["/bin/true"], "cwd": "/", "queue": "root.default", "resources": {"gpu": 1}}
"""It is in line, and there is nothing of what it asks for."""
ENDLESS = ("/api/v1/events", "/ws/v1/events/stream", "/api/v1/jobs/{key}/terminal")
"""Streams: their pieces are measured as readers."""
TRIES, MOST_TRIES, LEAST_S, DOUBTFUL = 3, 15, 0.05, 2.0
NEXT_TO_NOTHING_S = 0.01
FIRST = 200
PARTS = 200
"""Of an array that orders are about; and twice as many."""
ONCE = 3000
"""Jobs in the books for what is read; and twice as many."""
Schema = Mapping[str, Any]
Ask = Callable[[int], tuple[str, str, bytes]]
"""Of a size: method, target and body of a request."""
Path_ = tuple[str | int, ...]


# -- what may be long, by the description ---------------------------------------------------------------------------


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
        inside = ".".join(str(each) for each in self.at if each != 0)
        return f"{self.method} {self.path} {inside}"


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
                if parameter["in"] == "query" and schema.get("type") == "string" and self._is_long(schema):
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
        if self._is_long(schema) and (kind in ("array", "string") or schema.get("additionalProperties")):
            yield at, kind, min(most, 25_000)
        if depth < 4:
            for name, inner in schema.get("properties", {}).items():
                yield from self._within(self.plain(inner), (*at, name), depth + 1)
            if kind == "array" and "items" in schema:
                yield from self._within(self.plain(schema["items"]), (*at, 0), depth + 1)

    def _is_long(self, schema: Schema) -> bool:
        bounds = [schema[name] for name in ("maxItems", "maxProperties", "maxLength") if name in schema]
        return not schema.get("enum") and all(bound > SHORT for bound in bounds)

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
        body = self.least(schema)
        here, inner = body, schema
        for step, following in zip(long.at, long.at[1:], strict=False):
            inner = self.plain(inner["items"] if step == 0 else inner["properties"][step])
            if step == 0:
                here[0:] = here[0:1] or [self.least(inner)]
            elif not here.get(step):
                here[step] = [] if following == 0 else self.least(inner, str(step))
            here = here[step]
        last, name = long.at[-1], str(next(each for each in reversed(long.at) if each != 0))
        inner = self.plain(inner["items"] if last == 0 else inner["properties"][last])
        value = (VALUES.get(name) or (lambda n: self._many(inner, n)))(count)
        if last == 0:
            here[0:] = [value]
        else:
            here[last] = value
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


BASES: dict[str, Any] = {
    "jobs": [JOB],
    "submit": JOB,
    "command": ["/bin/true"],
    "cwd": "/",
    "queue": "root.default",
    "script": "#!/bin/sh\n",
    "key": "1",
}
"""What stands in a request where something is required, or is given though it is not."""
VALUES: dict[str, Callable[[int], Any]] = {
    "jobs": lambda n: [JOB] * n,
    "array": lambda n: ",".join(str(2 * each) for each in range(n // 5)),
    "text": _queues,
    "script": lambda n: "#!/bin/sh\n" + "true\n" * (n // 5),
    "env": lambda n: {f"K{each}": "v" for each in range(n)},
    "resources": lambda n: {f"r{each}": 1 for each in range(n)},
    "after": lambda n: [{"key": "1", "awaited": "end"}] * n,
}
"""By the name of a field: what is taken, of this size."""


# -- asking -------------------------------------------------------------------------------------------------------


class Asking:
    """A service in this process, asked without a socket."""

    def __init__(self, stack: ExitStack) -> None:
        folder = Path(tempfile.mkdtemp(prefix="fairlead-linear-"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        (folder / "queues.yaml").write_text(QUEUES)
        options = ServeOptions(
            config=folder / "queues.yaml",
            state_dir=folder / "state",
            socket=folder / "s",
            port=None,
            resources={"vcore": 4000, "memory": 8 * 2**30},
            log_level="error",
        )
        self.place, sockets = bring_up(options, stack)
        for each in sockets:
            stack.callback(each.close)
        self._app = make_app(self.place)
        self._loop = asyncio.new_event_loop()
        stack.callback(self._loop.close)
        self._token, _ = self.place.tokens.create(name="", user=self.place.gate.own_name, uid=os.geteuid())
        self.described = Described(self._app.openapi())

    def ask(self, method: str, target: str, body: bytes = b"") -> tuple[int, bytes]:
        """Status and content of one request."""
        status, pieces = [0], list[bytes]()
        path, _, query = target.partition("?")
        headers = [(b"authorization", f"Bearer {self._token}".encode()), (b"content-type", b"application/json")]
        scope: dict[str, Any] = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "scheme": "http",
            "root_path": "",
        }
        scope |= {"method": method, "path": path, "raw_path": path.encode(), "query_string": query.encode()}
        scope |= {"headers": headers, "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 2)}
        messages = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def receive() -> Any:
            if (message := next(messages, None)) is None:
                await asyncio.Event().wait()
            return message

        async def send(message: Any) -> None:
            status[0] = message.get("status", status[0])
            pieces.append(message.get("body", b""))

        self._loop.run_until_complete(self._app(scope, receive, send))
        return status[0], b"".join(pieces)

    def submit(self, *jobs: Mapping[str, Any]) -> str:
        """The key of the first of these jobs."""
        status, content = self.ask("POST", "/api/v1/jobs", json.dumps({"jobs": jobs}).encode())
        if status != 201:
            raise SystemExit(f"{status}: {content.decode()[:500]}")
        return str(json.loads(content)["jobs"][0]["key"])


def used() -> float:
    """Seconds of processor time of this process and of the children that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


# -- measuring ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ratio:
    """What twice the size costs."""

    name: str
    size: int
    seconds: float
    twice: float
    status: int

    @property
    def times(self) -> float:
        """As much as once; of what takes next to nothing, as that."""
        return self.twice / max(self.seconds, NEXT_TO_NOTHING_S)


def _least(asking: Asking, request: Ask, size: int, most: int = MOST_TRIES) -> tuple[float, int]:
    """The least that such a request took of several, and the status of the last."""
    found, status = list[float](), 0
    while len(found) < TRIES or (len(found) < most and sum(found) < LEAST_S * TRIES):
        given = request(size)
        gc.collect()
        gc.disable()
        began = used()
        status, _ = asking.ask(*given)
        found.append(used() - began)
        gc.enable()
    return min(found), status


def ratio(asking: Asking, name: str, size: int, request: Ask, most: int = MOST_TRIES) -> Ratio:
    """Of this size and twice that; measured once more where it is in doubt."""
    took, _ = _least(asking, request, size, most)
    twice, status = _least(asking, request, 2 * size, most)
    if twice > DOUBTFUL * took:
        took = min(took, _least(asking, request, size, most)[0])
        twice = min(twice, _least(asking, request, 2 * size, most)[0])
    return Ratio(name, size, took, twice, status)


def of_requests(asking: Asking, part: str) -> Iterator[Ratio]:
    """Each thing that may be long in a request: its size grows until it costs something, or may not be larger."""
    said = {(method, path): each for method, path, each in asking.described.operations()}
    for long in asking.described.long():
        if part not in long.name:
            continue

        def request(count: int, long: Long = long) -> tuple[str, str, bytes]:
            if long.is_parameter:
                return long.method, f"{_filled(long.path)}?{str(long.at[0])[1:]}={'x' * count}", b""
            return long.method, _filled(long.path), asking.described.filled(long, said[long.method, long.path], count)

        size = min(FIRST, long.most // 2)
        while size * 4 <= long.most and _least(asking, request, size)[0] < LEAST_S:
            size *= 2
        yield ratio(asking, long.name, size, request)


def _filled(path: str, key: str = "1") -> str:
    path = path.replace("{key}", key).replace("{partition}", "default").replace("{queue}", "root.default")
    while "{" in path:
        path = f"{path[: path.index('{')]}none{path[path.index('}') + 1 :]}"
    return path


def of_arrays(asking: Asking, part: str) -> Iterator[Ratio]:
    """Each order and question about a job, where that is an array of so many parts; each try has one of its own."""
    for method, path, said in asking.described.operations():
        if "/jobs/{key}" not in path or part not in (name := f"{method} {path} of an array"):
            continue
        schema = asking.described.body(said)
        body = json.dumps(BODIES.get(path) or asking.described.least(schema)).encode() if schema else b""

        def request(count: int, method: str = method, path: str = path, body: bytes = body) -> tuple[str, str, bytes]:
            return method, _filled(path, asking.submit(JOB | {"array": f"1-{count}"})), body

        yield ratio(asking, name, PARTS, request, TRIES)


BODIES = {"/api/v1/jobs/{key}": {"priority": 3}}


def of_reads(asking: Asking, part: str) -> Iterator[Ratio]:
    """Each route that reads, with so many jobs in the books, and with twice as many."""
    routes = [(path, f"GET {path}") for method, path, _ in asking.described.operations() if method == "GET"]
    routes = [(path, name) for path, name in routes if part in name]
    took = dict[str, float]()
    if not routes:
        return
    key = asking.submit(*[WAITING] * ONCE)
    for path, _ in routes:
        took[path], _ = _least(asking, lambda _, path=path: ("GET", _filled(path, key), b""), ONCE)  # type: ignore[misc]
    asking.submit(*[WAITING] * ONCE)
    for path, name in routes:
        twice, status = _least(asking, lambda _, path=path: ("GET", _filled(path, key), b""), ONCE)  # type: ignore[misc]
        yield Ratio(f"{name} with twice the jobs", ONCE, took[path], twice, status)


def ratios(part: str) -> Iterator[Ratio]:
    """All of them."""
    with ExitStack() as stack:
        asking = Asking(stack)
        yield from of_reads(asking, part)
        yield from of_arrays(asking, part)
        yield from of_requests(asking, part)
