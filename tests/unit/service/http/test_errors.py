"""What goes wrong inside: a machine without another thread is asked again, a fault of ours is a fault."""

from __future__ import annotations

import errno
import os
import threading

import pytest
from fastapi import FastAPI, Request
from fastapi.testclient import TestClient
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from fairlead.service.http import errors
from fairlead.service.http.app import given_once


def asked(path: str) -> tuple[int, dict[str, str], str]:
    """The status, the problem and when to ask again."""
    app = FastAPI()
    errors.install(app)

    @app.get("/thread")
    @app.get("/ws/thread")
    async def thread() -> None:
        await run_in_threadpool(lambda: None)

    @app.get("/disk")
    async def disk() -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/dev/null")

    @app.get("/file")
    async def file() -> None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), "/gone")

    @app.get("/fault")
    async def fault() -> None:
        raise RuntimeError("something else")

    said = TestClient(app, raise_server_exceptions=False).get(path)
    return said.status_code, said.json(), said.headers.get("Retry-After", "")


@pytest.fixture
def no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel refuses further worker threads, as Python says it."""
    start = threading.Thread.start

    def refused(self: threading.Thread) -> None:
        if "WorkerThread" in type(self).__name__:
            raise RuntimeError(errors.NO_THREAD)
        start(self)

    monkeypatch.setattr(threading.Thread, "start", refused)


@pytest.mark.usefixtures("no_thread")
def test_where_no_thread_can_be_had_it_is_to_be_asked_again() -> None:
    status, problem, again = asked("/thread")
    assert (status, problem["code"], again) == (503, "unavailable", "1")
    assert "ask again" in problem["detail"]


@pytest.mark.usefixtures("no_thread")
def test_apache_yunikorns_shape_has_it_too() -> None:
    status, problem, again = asked("/ws/thread")
    assert (status, again) == (503, "1")
    assert "thread" in problem["message"]


def test_where_the_machine_gives_nothing_it_is_to_be_asked_again() -> None:
    """An account was looked up while the disk was full: that was told as a fault of the service."""
    status, problem, again = asked("/disk")
    assert (status, problem["code"], again) == (503, "unavailable", "1")
    assert "No space left on device" in problem["detail"]
    assert "/dev/null" not in problem["detail"]


@pytest.mark.parametrize("path", ["/fault", "/file"])
def test_any_other_is_a_fault(path: str) -> None:
    status, problem, _ = asked(path)
    assert (status, problem["code"]) == (500, "internal")


async def test_who_goes_in_the_middle_of_a_body_is_no_fault_of_the_service(caplog: pytest.LogCaptureFixture) -> None:
    """Anybody could fill its log."""
    app, said = FastAPI(), list[dict[str, object]]()
    errors.install(app)

    @app.post("/body")
    async def body(request: Request) -> int:
        return len(await request.body())

    async def receive() -> dict[str, object]:
        return {"type": "http.disconnect"}

    async def send(message: dict[str, object]) -> None:
        said.append(message)

    scope = {"type": "http", "method": "POST", "path": "/body", "query_string": b"", "headers": []}
    await app(scope, receive, send)  # type: ignore[arg-type]
    assert said[0]["status"] == 400
    assert not caplog.records


@pytest.mark.parametrize("code", ["too-many", "unavailable"])
def test_who_may_come_again_is_told_when(code: str) -> None:
    """Also one whose connection is refused, before any route is asked."""
    assert b"retry-after: 1\r\n" in errors.written(errors.answer(code, "not now"))


async def test_the_path_is_what_was_asked_for_whatever_the_service_is_called() -> None:
    """Over a Unix socket, and by a name that is none, the path of the URL began with that of the socket."""
    server, headers = ("/run/fairlead.sock", None), [(b"host", b"[")]
    query = b"state=running&state=waiting"
    asked = {"type": "http", "path": "/api/v1/jobs", "query_string": query, "server": server, "headers": headers}
    await given_once(Request(asked))
    said = errors._from_http(Request({**asked, "path": "/api/v1/no"}), HTTPException(404))
    assert b"there is nothing at /api/v1/no;" in said.body


def test_a_body_that_is_too_large_is_told_in_one_shape() -> None:
    """Whether its length was said at the start or not, below /ws/ too."""
    asked = Request({"type": "http", "path": "/ws/v1/validate-conf", "headers": []})
    assert errors._from_http(asked, HTTPException(413, "too large")).media_type == errors.PROBLEM
