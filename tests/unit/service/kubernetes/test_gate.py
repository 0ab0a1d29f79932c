"""Who may ask the scheduler of a cluster: those on its host, and those whom the cluster lets."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any, cast

import aiohttp
import pytest
from fastapi import Request as HttpRequest
from testbed.cluster_service import serving

from fairlead.kubernetes.client import Answer, Client, Request, Unreachable
from fairlead.local.callers import Caller
from fairlead.runtime import Refusal
from fairlead.service.kubernetes.gate import (
    ACCESS_REVIEWS,
    CALLER,
    LOCALHOST,
    TOKEN_REVIEWS,
    ApiJudge,
    Entrance,
    is_here,
)
from fairlead.service.kubernetes.place import ClusterPlace
from fairlead.service.kubernetes.pods import ANYBODY
from fairlead.service.sessions import Sessions


class Server:
    """An API server that knows one user, who may read the figures."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.away = False

    async def send(self, request: Request, timeout_s: float) -> Answer:
        if self.away:
            raise Unreachable("away")
        self.asked.append(request.path)
        spec = json.loads(request.body)["spec"]
        if request.path == TOKEN_REVIEWS:
            known = spec["token"] == "good"
            return _answer({"authenticated": known, "user": {"username": "ann", "groups": ["ops"]} if known else {}})
        assert request.path == ACCESS_REVIEWS
        assert spec["groups"] == ["ops"]
        return _answer({"allowed": spec["nonResourceAttributes"] == {"path": "/metrics", "verb": "get"}})

    def stream(self, request: Request, idle_s: float) -> Any:
        raise NotImplementedError

    async def close(self) -> None:
        return


def _answer(status: dict[str, Any]) -> Answer:
    return Answer(201, {}, json.dumps({"status": status}).encode())


async def test_whom_the_cluster_lets_may_read() -> None:
    """The token's user and his groups are asked about, once in a while."""
    server = Server()
    judge = ApiJudge(Client(server))
    for _ in range(3):
        caller = await judge.caller("good", "GET", "/metrics")
        assert (caller.user, caller.groups) == ("ann", ("ops",))
    assert server.asked == [TOKEN_REVIEWS, ACCESS_REVIEWS]


@pytest.mark.parametrize(("token", "path", "code"), [("bad", "/metrics", "unauthorized"), ("good", "/ws", "forbidden")])
async def test_others_may_not(token: str, path: str, code: str) -> None:
    """An unknown token, and a path that the user has no right to."""
    with pytest.raises(Refusal) as refused:
        await ApiJudge(Client(Server())).caller(token, "GET", path)
    assert refused.value.code == code


async def test_who_cannot_be_asked_about_is_refused() -> None:
    """Without an API server nobody is let in."""
    server = Server()
    server.away = True
    with pytest.raises(Refusal) as refused:
        await ApiJudge(Client(server)).caller("good", "GET", "/metrics")
    assert refused.value.code == "unavailable"


@pytest.mark.parametrize(
    ("client", "host", "here"),
    [
        ("127.0.0.1", "localhost:9080", True),
        ("127.0.0.1", "127.0.0.1:9080", True),
        ("::1", "[::1]:9080", True),
        ("::ffff:127.0.0.1", "localhost:9080", True),
        ("10.0.0.7", "localhost:9080", False),
        ("::ffff:10.0.0.7", "localhost:9080", False),
        ("127.0.0.1", "evil.example:9080", False),
    ],
)
def test_who_is_here(client: str, host: str, here: bool) -> None:
    """Whoever connects from this host and asks for it by its own name."""
    assert is_here({"client": (client, 1)}, host) is here


@pytest.mark.parametrize(
    ("origin", "here"),
    [
        ("http://localhost:9889", True),
        ("http://127.0.0.1", True),
        ("http://[::1]:9889", True),
        ("https://evil.example", False),
        ("https://localhost.evil.example:80", False),
        ("null", False),
    ],
)
async def test_a_page_of_another_host_is_nobody(origin: str, here: bool) -> None:
    """What is on this host may be asked for by any page that somebody opens in a browser here."""
    found: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        found.append(scope[CALLER])

    headers = [(b"host", b"localhost:9080"), (b"origin", origin.encode())]
    scope = {"type": "http", "path": "/ws/v1/config", "method": "GET", "client": ("127.0.0.1", 1), "headers": headers}
    await Entrance(app, Known(), Sessions(None))(scope, cast("Any", None), cast("Any", None))
    assert found == [LOCALHOST if here else None]


def test_where_everybody_may_read_a_token_still_says_who() -> None:
    """Without one the reader is nobody in particular, and no administrator."""
    place = ClusterPlace(controller=cast("Any", SimpleNamespace()), version="", started_at_ms=0, open_reads=True)
    known = Caller("ann", -1, True, may_submit=False)
    assert place.caller(HttpRequest({"type": "http", CALLER: known})) is known
    unknown = HttpRequest({"type": "http", CALLER: Refusal("unauthorized", "no")})
    assert place.caller(unknown) is ANYBODY
    assert not ANYBODY.is_admin
    place.open_reads = False
    with pytest.raises(Refusal):
        place.caller(unknown)


class Known:
    """Knows one token, which may read all but the nodes."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    async def caller(self, token: str, method: str, path: str) -> Caller:
        self.asked.append((method, path))
        if token != "good":
            raise Refusal("unauthorized", "not known")
        if path.endswith("/nodes"):
            raise Refusal("forbidden", "not the nodes")
        return Caller("ann", -1, True, may_submit=False)


async def test_a_session_is_judged_by_the_token_that_began_it() -> None:
    """It gives no right that the token does not give, for as long as the token is known, and can be ended."""
    judge = Known()
    async with serving(judge=judge) as service, aiohttp.ClientSession(service.url) as asking:

        async def ask(method: str, path: str, credential: str) -> tuple[int, Any]:
            headers = {"Authorization": f"Bearer {credential}"}
            async with asking.request(method, f"/api/v1/{path}", headers=headers) as answer:
                return answer.status, await answer.json()

        assert (await ask("POST", "sessions", "bad"))[0] == 401
        status, begun = await ask("POST", "sessions", "good")
        assert (status, begun["user"]) == (201, "ann")
        assert judge.asked[-1] == ("GET", "/api/v1/info"), "whoever may read that may have a session"
        session = begun["session"]
        assert (await ask("GET", "queues", session))[0] == 200
        assert judge.asked[-1] == ("GET", "/api/v1/queues")
        assert (await ask("GET", "nodes", session))[0] == 403
        assert (await ask("POST", "clean", session))[0] == 405, "nothing is changed here"
        assert (await ask("DELETE", "sessions", session))[0] == 200
        assert (await ask("GET", "queues", session))[0] == 401


async def test_a_ticket_of_this_host_opens_the_pages_as_this_host() -> None:
    """Once: no token is needed here, so none stands behind its session."""
    async with serving() as service, aiohttp.ClientSession(service.url) as asking:
        async with asking.post("/api/v1/tickets") as answer:
            ticket = (await answer.json())["ticket"]
        for status in (201, 401):
            async with asking.post("/api/v1/sessions", headers={"Authorization": f"Bearer {ticket}"}) as answer:
                assert answer.status == status
                found = await answer.json()
                session = found.get("session", "")
                if session:
                    headers = {"Authorization": f"Bearer {session}"}
                    assert (await service.get("/api/v1/info", **headers))["user"] == "localhost"
        async with asking.get("/", allow_redirects=False) as answer:
            assert answer.status == 404
            assert "turned off" in await answer.text()


async def test_a_guest_is_not_this_host() -> None:
    """A session without a token stands for whoever began it: where everybody may read, for nobody in particular."""
    async with serving() as service, aiohttp.ClientSession(service.url) as asking:
        for opened in (False, True):
            service.place.open_reads = opened
            headers = {"Authorization": "Bearer guest"}
            async with asking.post("/api/v1/sessions", headers=headers) as answer:
                assert answer.status == (201 if opened else 401)
                session = (await answer.json()).get("session", "")
        headers = {"Authorization": f"Bearer {session}"}
        assert (await service.get("/api/v1/info", **headers))["user"] == ""
        async with asking.post("/api/v1/whatif", json={"drain": ["n0"]}, headers=headers) as answer:
            assert answer.status == 403, await answer.text()
        service.place.open_reads = False
        await service.get("/api/v1/info", 401, **headers)
