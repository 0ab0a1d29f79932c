"""Nothing for strangers, nothing from other sites, and what a browser is told of it."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.websockets import WebSocket, WebSocketDisconnect

from fairlead.web.guard import POLICY, Guard, cookie_of
from fairlead.web.viewer import COOKIE

SESSION = {"Cookie": f"{COOKIE}=fls_abc"}
HERE = {"Origin": "http://testserver"}


async def answer(_: Any) -> PlainTextResponse:
    return PlainTextResponse("shown")


async def connect(socket: WebSocket) -> None:
    await socket.accept()
    await socket.close()


@pytest.fixture
def client() -> TestClient:
    every = Route("/{path:path}", answer, methods=["GET", "POST"])
    app = Starlette(routes=[WebSocketRoute("/{path:path}", connect), every])
    return TestClient(Guard(app), follow_redirects=False)


@pytest.mark.parametrize("path", ["/line", "/job/1", "/", "/_nicegui_ws/socket.io/", "/sign-input", "/enterprise"])
def test_a_stranger_sees_nothing(client: TestClient, path: str) -> None:
    assert client.get(path).status_code in (303, 401)
    assert client.get(path, headers={"Cookie": f"{COOKIE}=other"}).status_code in (303, 401)
    assert client.get(path, headers=SESSION).text == "shown"


def test_the_way_in_is_open_to_all(client: TestClient) -> None:
    for path in ("/sign-in", "/enter?ticket=x", "/static/fairlead.css", "/_nicegui/3/static/vue.js"):
        assert client.get(path).text == "shown"


def test_another_site_changes_nothing_and_gets_no_connection(client: TestClient) -> None:
    for headers in ({}, {"Origin": "http://evil.example"}, {"Origin": "http://testserver:81"}, {"Origin": "null"}):
        assert client.post("/sign-out", headers={**SESSION, **headers}).status_code == 403
        with pytest.raises(WebSocketDisconnect), client.websocket_connect("/x", headers={**SESSION, **headers}):
            pass
    assert client.post("/sign-out", headers={**SESSION, **HERE}).text == "shown"
    with client.websocket_connect("/x", headers={**SESSION, **HERE}):
        pass


def test_a_stranger_gets_no_connection(client: TestClient) -> None:
    with pytest.raises(WebSocketDisconnect), client.websocket_connect("/x", headers=HERE):
        pass


def test_every_answer_says_what_a_browser_may_do_with_it(client: TestClient) -> None:
    for answered in (client.get("/line", headers=SESSION), client.get("/line"), client.post("/line")):
        headers = answered.headers
        assert headers["content-security-policy"] == POLICY
        assert headers["x-frame-options"] == "DENY"
        assert headers["cache-control"] == "no-store"
    assert "frame-ancestors 'none'" in POLICY
    assert "http" not in POLICY


def test_cookies_of_other_programs_of_this_host_are_passed_over(client: TestClient) -> None:
    """A browser sends those of all ports, whatever is in them."""
    for other in ('seen={"a": 1}', "a b=c", "x", 'q="', "a=b c,d"):
        for cookies in (f"{other}; {COOKIE}=fls_abc", f"{COOKIE}=fls_abc; {other}"):
            assert client.get("/line", headers={"Cookie": cookies}).text == "shown", cookies


def test_services_of_one_host_do_not_take_each_others_session(client: TestClient) -> None:
    """A browser sends the cookies of a host to all its ports: who signed in to one was signed out of another."""
    one, other = {"Host": "localhost:9081"}, {"Host": "localhost:9083"}
    both = {"Cookie": f"{COOKIE}_9083=fls_abc; {COOKIE}_9081=other"}
    assert client.get("/line", headers=one | both).status_code == 303
    assert client.get("/line", headers=other | both).text == "shown"


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("h", COOKIE),
        ("h:9081", f"{COOKIE}_9081"),
        ("[::1]", COOKIE),
        ("[::1]:81", f"{COOKIE}_81"),
        ("h:\u00b2", COOKIE),
    ],
)
def test_the_port_is_the_one_that_the_browser_knows(host: str, name: str) -> None:
    """Behind `ssh -L` it is another one than the service's."""
    assert cookie_of({"type": "http", "headers": [(b"host", host.encode("latin-1"))]}) == name
