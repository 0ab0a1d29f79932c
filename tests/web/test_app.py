"""How a page is opened: as what somebody waits for, and not for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi import FastAPI, Request
from starlette.responses import Response
from starlette.testclient import TestClient

from fairlead.client.errors import NoService, Refused
from fairlead.web import app as module
from fairlead.web.live import SOMEBODY_WAITS
from fairlead.wire.cluster import Problem


async def opened(monkeypatch: pytest.MonkeyPatch, viewer: Callable[[str], Awaitable[Any]]) -> Response:
    """What comes of opening a page where the service answers like this about whoever looks."""
    found: list[Callable[[Request], Awaitable[Response]]] = []
    monkeypatch.setattr(module.ui, "page", lambda *_, **__: found.append)
    app = FastAPI()
    app.state.service = SimpleNamespace(viewer=viewer)

    async def show(*_: Any) -> None:
        raise AssertionError("nobody may look")

    module._page(app, "/submit", show)
    scope = {"type": "http", "method": "GET", "path": "/submit", "query_string": b"a=1", "headers": [(b"host", b"h")]}
    return await found[0](Request(scope))


async def test_everything_that_a_page_asks_for_is_asked_by_somebody_who_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some pages ask before they draw: as a look now and then it has to be earned, beside others for long."""
    said = list[str]()

    async def viewer(_: str) -> Any:
        said.append(SOMEBODY_WAITS.get())
        raise Refused(Problem(type="", title="", status=401, detail="no", code="unauthorized"))

    assert (await opened(monkeypatch, viewer)).status_code == 303
    assert said == ["opening"]


async def test_a_service_that_takes_long_is_said_with_a_way_to_ask_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def viewer(_: str) -> Any:
        await asyncio.sleep(50)

    monkeypatch.setattr(module, "PATIENCE_S", 0.01)
    answer = await opened(monkeypatch, viewer)
    assert answer.status_code == 503
    text = bytes(answer.body).decode()
    assert "The service takes long to answer" in text
    assert 'href="/submit?a=1"' in text


async def test_a_service_that_does_not_answer_can_be_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def viewer(_: str) -> Any:
        raise NoService("nothing listens there")

    answer = await opened(monkeypatch, viewer)
    assert answer.status_code == 503
    text = bytes(answer.body).decode()
    assert "nothing listens there" in text
    assert 'href="/submit?a=1"' in text


async def test_whoever_is_refused_for_a_moment_keeps_the_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a session that is over is forgotten: who asked too much is let in again."""

    async def viewer(_: str) -> Any:
        raise Refused(Problem(type="", title="", status=429, detail="too many questions", code="too-many"))

    answer = await opened(monkeypatch, viewer)
    assert answer.status_code == 503
    assert "too many questions" in bytes(answer.body).decode()
    assert "set-cookie" not in answer.headers


def test_a_token_of_a_cluster_is_taken() -> None:
    """What `kubectl create token` prints has a thousand characters and more."""
    given = list[str]()

    async def sign_in(credential: str) -> tuple[str, int]:
        given.append(credential)
        return "fls_a", 2**42

    app = FastAPI()
    app.state.service = SimpleNamespace(sign_in=sign_in)
    app.add_api_route("/sign-in", module.sign_in_with, methods=["POST"], response_class=Response)
    token = f"eyJhbGciOiJSUzI1NiJ9.{'x' * 1300}.{'y' * 342}"
    answer = TestClient(app).post("/sign-in", data={"token": token})
    assert answer.status_code == 200
    assert given == [token]
    app.state.guests = False
    answer = TestClient(app).post("/sign-in", data={"token": "x" * 20_000})
    assert "That is no token" in answer.text
    assert given == [token]


@pytest.mark.parametrize("led", ["cross-site", "same-site"])
def test_another_page_signs_nobody_in_unasked(led: str) -> None:
    """It could have got the ticket as somebody else, and whatever is typed then would be that user's."""
    shown = list[str]()

    async def service(credential: str) -> tuple[str, int]:
        shown.append(credential)
        return "fls_x", 2**45

    app = module.make_app("/nowhere.sock")
    app.state.service = SimpleNamespace(sign_in=service)
    browser = TestClient(app, headers={"Sec-Fetch-Site": led})
    asked = browser.get('/enter?ticket=flt_"a')
    assert (asked.status_code, shown, "set-cookie" in asked.headers) == (200, [], False)
    assert 'name="ticket" value="flt_&quot;a"' in asked.text
    assert browser.post("/enter", data={"ticket": "flt_a"}).status_code == 403
    own = {"Origin": "http://testserver", "Sec-Fetch-Site": "same-origin"}
    assert "fls_x" in browser.post("/enter", data={"ticket": "flt_a"}, headers=own).headers["set-cookie"]
    assert "set-cookie" in browser.get("/enter?ticket=flt_b", headers={"Sec-Fetch-Site": "none"}).headers
    assert shown == ["flt_a", "flt_b"]


@pytest.mark.parametrize(("status", "shown"), [(None, 303), (401, 303), (503, 503)])
def test_a_session_that_is_over_already_is_signed_out_of(status: int | None, shown: int) -> None:
    """It was said that one is still signed in."""

    async def end() -> None:
        if status is not None:
            raise Refused(Problem(type="", title="", status=status, detail="this session is over", code=""))

    app = module.make_app("/nowhere.sock")
    app.state.service = SimpleNamespace(client=lambda _: SimpleNamespace(end_session=end))
    own = {"Origin": "http://testserver", "Cookie": "fairlead_session=fls_x"}
    answer = TestClient(app, headers=own, follow_redirects=False).post("/sign-out")
    assert answer.status_code == shown
    assert ("set-cookie" in answer.headers) is (shown == 303)


def test_signing_out_without_a_session_leads_to_the_way_in() -> None:
    """As in another tab, where one signed out before."""
    browser = TestClient(module.make_app("/nowhere.sock"), headers={"Origin": "http://testserver"})
    answer = browser.post("/sign-out", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in")
