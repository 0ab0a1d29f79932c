"""A small HTTP server on a Unix socket that answers as a test says: for the client and the command line."""

from __future__ import annotations

import json
import socketserver
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatch
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import msgspec
import msgspec.inspect
import pytest

from fairlead.client import Address, Client
from fairlead.wire import cluster, configuration, declarations, jobs, questions, verdicts


@dataclass
class Request:
    """One request that the server got."""

    method: str
    path: str
    query: dict[str, str]
    lists: dict[str, list[str]]
    headers: dict[str, str]
    body: Any


@dataclass
class Answer:
    """What the server says: JSON, or raw bytes; `broken`: the connection is cut after the content."""

    status: int = 200
    body: Any = None
    raw: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)
    broken: bool = False


Reply = Callable[[Request], Answer | Any]


SHAPES: dict[tuple[str, str], Any] = {
    ("GET", "/jobs"): jobs.JobPage,
    ("POST", "/jobs"): jobs.JobList,
    ("GET", "/jobs/*/why"): verdicts.Why,
    ("GET", "/jobs/*/forecast"): questions.When,
    ("GET", "/jobs/*/script"): jobs.ScriptText,
    ("GET", "/jobs/*"): jobs.JobDetails,
    ("POST", "/jobs/*/checkpoint"): jobs.Done,
    ("POST", "/jobs/*"): jobs.Job,
    ("PATCH", "/jobs/*"): jobs.SubmittedJob,
    ("GET", "/forecasts/score"): questions.Score,
    ("POST", "/whatif"): questions.Otherwise,
    ("GET", "/info"): cluster.Service,
    ("GET", "/queues"): cluster.QueuePage,
    ("GET", "/nodes"): cluster.NodePage,
    ("POST", "/nodes/*"): cluster.Node,
    ("PUT", "/nodes/*"): cluster.Node,
    ("GET", "/usage"): declarations.UsePage,
    ("GET", "/limits"): declarations.LimitPage,
    ("GET", "/priority-classes"): declarations.PriorityClassPage,
    ("PUT", "/priority-classes/*"): declarations.PriorityClass,
    ("GET", "/quotas"): declarations.QuotaPage,
    ("PUT", "/quotas/*"): declarations.Quota,
    ("GET", "/budgets"): declarations.BudgetPage,
    ("PUT", "/budgets/*"): declarations.Budget,
    ("GET", "/config"): configuration.ConfigAnswer,
    ("GET", "/config/status"): configuration.ConfigStatus,
    ("GET", "/config/history"): configuration.ConfigPage,
    ("POST", "/config/diff"): configuration.ConfigDifference,
    ("POST", "/config/compare"): configuration.ConfigPast,
    ("PUT", "/config"): configuration.ConfigApplied,
    ("POST", "/config/rollback"): configuration.ConfigApplied,
    ("POST", "/tokens"): declarations.NewToken,
    ("GET", "/tokens"): declarations.TokenPage,
    ("DELETE", "/*"): jobs.Done,
}
"""What each route answers with; the first that fits counts."""


def shape_of(method: str, path: str) -> Any:
    """The shape of what a route answers with; None: it has none."""
    path = path.removeprefix("/api/v1")
    return next((s for (m, pattern), s in SHAPES.items() if m == method and fnmatch(path, pattern)), None)


def whole(said: Any, shape: Any) -> Any:
    """What a test said, with something for every field that it did not care for."""
    if shape is None:
        return said
    kind = msgspec.inspect.type_info(shape) if not isinstance(shape, msgspec.inspect.Type) else shape
    if isinstance(kind, msgspec.inspect.Metadata):
        return whole(said, kind.type)
    if isinstance(kind, msgspec.inspect.UnionType):
        structs = [t for t in kind.types if isinstance(t, msgspec.inspect.StructType)]
        return whole(said, structs[0]) if structs and isinstance(said, dict) else said
    if isinstance(kind, msgspec.inspect.ListType) and isinstance(said, list):
        return [whole(each, kind.item_type) for each in said]
    if not isinstance(kind, msgspec.inspect.StructType) or not isinstance(said, dict):
        return said
    known = {f.encode_name: f for f in kind.fields}
    assert said.keys() <= known.keys(), f"{sorted(said.keys() - known.keys())} are no fields of {kind.cls.__name__}"
    given = {name: whole(value, known[name].type) for name, value in said.items()}
    return {name: _anything(f.type) for name, f in known.items() if f.required} | given


def made(shape: Any, **said: Any) -> Any:
    """A thing of this shape, with something for every field that a test did not care for."""
    return msgspec.convert(whole(said, shape), shape)


def _anything(kind: Any) -> Any:
    """The least value of a type."""
    types = msgspec.inspect
    if isinstance(kind, types.Metadata):
        return _anything(kind.type)
    if isinstance(kind, types.StrType):
        return "1" * (kind.min_length or 0)
    if isinstance(kind, types.UnionType):
        return None if any(isinstance(t, types.NoneType) for t in kind.types) else _anything(kind.types[0])
    if isinstance(kind, types.LiteralType):
        return kind.values[0]
    if isinstance(kind, types.StructType):
        return whole({}, kind)
    empty = {types.IntType: 0, types.FloatType: 0.0, types.BoolType: False, types.ListType: []}
    return next((value for each, value in empty.items() if isinstance(kind, each)), {})


class Service:
    """Routes by (method, path); a path that ends with `*` stands for all that begin like it."""

    def __init__(self) -> None:
        self.routes: dict[tuple[str, str], Reply] = {}
        self.requests: list[Request] = []
        self.jobs: dict[str, dict[str, Any]] = {}
        self.on("GET", "/jobs", self._list)
        self.on("GET", "/jobs/*", self._show)

    def on(self, method: str, path: str, reply: Reply | Any) -> None:
        self.routes[method, f"/api/v1{path}"] = reply if callable(reply) else lambda _request: reply

    def add(self, key: str, state: str = "waiting", **fields: Any) -> dict[str, Any]:
        row: dict[str, Any] = {
            "key": key,
            "name": "job",
            "queue": "root.batch",
            "user": "ann",
            "priority": 0,
            "state": state,
            "node": "",
            "exit_code": None,
            "reason": None,
            "submitted_at_ms": 1000,
            "started_at_ms": None,
            "ended_at_ms": None,
            "resources": {"cpu": 1},
        }
        self.jobs[key] = row | fields
        return self.jobs[key]

    def _list(self, request: Request) -> Any:
        wanted = {k: v for k, v in request.lists.items() if k in ("state", "queue", "user", "name")}
        rows = [row for row in self.jobs.values() if all(str(row[k]) in v for k, v in wanted.items())]
        keys = [row["key"] for row in rows]
        begin = keys.index(request.query["after"]) + 1 if "after" in request.query else 0
        page = rows[begin : begin + int(request.query["limit"])]
        more = page and page[-1]["key"] != keys[-1]
        return {"jobs": page, "next": page[-1]["key"] if more else None, "total": len(rows)}

    def _show(self, request: Request) -> Any:
        key = unquote(request.path.rsplit("/", 1)[-1])
        if key not in self.jobs:
            return refusal(404, f"there is no job {key}", "not-found")
        return self.jobs[key]

    def answer(self, request: Request) -> Answer:
        self.requests.append(request)
        for (method, path), reply in reversed(self.routes.items()):
            fits = request.path.startswith(path[:-1]) if path.endswith("*") else request.path == path
            if method == request.method and fits:
                said = reply(request)
                return said if isinstance(said, Answer) else Answer(body=whole(said, shape_of(method, request.path)))
        return refusal(404, f"no route {request.path}", "not-found")

    def sent(self, method: str, path: str) -> list[Any]:
        """The bodies of the requests to a path."""
        return [r.body for r in self.requests if (r.method, r.path) == (method, f"/api/v1{path}")]


def refusal(status: int, message: str, code: str = "invalid", field: str | None = None, details: Any = ()) -> Answer:
    body = {"type": f"urn:fairlead:problem:{code}", "title": "", "status": status, "detail": message, "code": code}
    body |= {"field": field, "details": list(details)}
    return Answer(status, body)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def address_string(self) -> str:
        return "local"

    def _serve(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        content = self.rfile.read(length)
        parts = urlsplit(self.path)
        lists = parse_qs(parts.query)
        query = {name: values[0] for name, values in lists.items()}
        body = json.loads(content) if content else None
        answer = self.server.service.answer(  # type: ignore[attr-defined]
            Request(self.command, parts.path, query, lists, dict(self.headers), body)
        )
        raw = answer.raw if answer.raw is not None else json.dumps(answer.body).encode()
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(raw) + (10 if answer.broken else 0)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(raw)
        self.close_connection = True

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve  # noqa: N815


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    service: Service

    def handle_error(self, *_: object) -> None:
        """The client has hung up: its choice."""


@pytest.fixture
def socket_path() -> Iterator[str]:
    """A short path: a socket's is limited to 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="fl") as directory:
        yield str(Path(directory) / "s.sock")


@pytest.fixture
def service(socket_path: str) -> Iterator[Service]:
    fake = Service()
    with _Server(socket_path, _Handler) as server:
        server.service = fake
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield fake
        server.shutdown()
        thread.join()


@pytest.fixture
def client(service: Service, socket_path: str) -> Client:
    return Client(Address(socket=socket_path), timeout_s=5.0)


@pytest.fixture(scope="session")
def refuse() -> Callable[..., Answer]:
    return refusal


@pytest.fixture(scope="session")
def answer() -> type[Answer]:
    return Answer
