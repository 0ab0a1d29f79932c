"""A small HTTP server on a Unix socket that answers as a test says, and a runner for the command line."""

from __future__ import annotations

import json
import socketserver
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from typer.testing import CliRunner, Result

from fairlead.cli.address import Address
from fairlead.cli.client import Client
from fairlead.cli.main import app


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
        row = {
            "key": key,
            "name": "job",
            "queue": "root.batch",
            "user": "ann",
            "priority": 0,
            "state": state,
            "node": None,
            "exit_code": None,
            "reason": None,
            "submitted_at_ms": 1000,
            "started_at_ms": None,
            "ended_at_ms": None,
            "resources": {"vcore": 1000},
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
                return said if isinstance(said, Answer) else Answer(body=said)
        return refusal(404, f"no route {request.path}", "not-found")

    def sent(self, method: str, path: str) -> list[Any]:
        """The bodies of the requests to a path."""
        return [r.body for r in self.requests if (r.method, r.path) == (method, f"/api/v1{path}")]


def refusal(status: int, message: str, code: str = "invalid", field: str | None = None, details: Any = ()) -> Answer:
    body = {"error": {"code": code, "message": message, "field": field, "details": list(details)}}
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


Run = Callable[..., Result]


@pytest.fixture
def run(socket_path: str, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command line against the service of the test."""
    for name in ("FAIRLEAD_URL", "FAIRLEAD_QUEUE", "FAIRLEAD_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("FAIRLEAD_SOCKET", socket_path)

    def invoke(*args: str, stdin: str | None = None) -> Result:
        return CliRunner().invoke(app, list(args), input=stdin, prog_name="fairlead")

    return invoke


@pytest.fixture(scope="session")
def refuse() -> Callable[..., Answer]:
    return refusal


@pytest.fixture(scope="session")
def answer() -> type[Answer]:
    return Answer
