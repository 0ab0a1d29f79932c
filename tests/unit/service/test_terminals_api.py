"""Sitting at the terminals of jobs through the service: with both clients, over the socket and over TCP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from fairlead.client.address import Address
from fairlead.client.asynchronous import AsyncClient
from fairlead.client.errors import Refused
from fairlead.client.sync import Client

if TYPE_CHECKING:
    from conftest import Served

pytestmark = pytest.mark.real
ECHO = "while read line; do echo got $line; done"


def client(served: Served, who: str = "", kind: Any = Client) -> Any:
    if not who:
        return kind(Address(socket=str(served.listening.socket)))
    assert served.listening.url is not None
    host, port = served.listening.url.removeprefix("http://").split(":")
    return kind(Address(scheme="http", host=host, port=int(port), token=served.tokens[who]))


def sees(terminal: Any, text: bytes) -> bytes:
    seen = b""
    terminal.socket.settimeout(10)
    while text not in seen and not terminal.over:
        seen += terminal.receive()
    assert text in seen
    return seen


@pytest.mark.parametrize("who", ["", "alice"])
def test_what_is_typed_and_what_is_written(served: Served, who: str) -> None:
    """Both ways at once, as soon as it has its place, until it ends; much of it too."""
    key = served.submit("/bin/sh", "-c", f"{ECHO}; exit 4", who="alice", terminal=True)
    with client(served, who).terminal(key) as terminal:
        terminal.resize(30, 100)
        terminal.alive()
        terminal.type(b"hello\n")
        sees(terminal, b"got hello")
        for _ in range(30):
            terminal.type(b"x" * 1000 + b"\n")
        sees(terminal, b"got " + b"x" * 1000)
        terminal.type(b"\x04")
        while not terminal.over:
            terminal.receive()
    assert served.wait(key)["exit_code"] == 4
    assert b"got hello" in served.call("GET", f"/api/v1/jobs/{key}/logs").body
    assert served.show(key)["terminal"] is True


async def test_with_an_event_loop(served: Served) -> None:
    """The same calls."""
    key = served.submit("/bin/sh", "-c", ECHO, who="alice", terminal=True)
    seen = b""
    async with client(served, "alice", AsyncClient).terminal(key) as terminal:
        await terminal.resize(30, 100)
        await terminal.type(b"hello\n\x04")
        async for content in terminal.written():
            seen += content
    assert b"got hello" in seen
    assert (await client(served, "alice", AsyncClient).wait(key)).state == "succeeded"


def refused(served: Served, who: str, key: str) -> Refused:
    with pytest.raises(Refused) as found, client(served, who).terminal(key) as terminal:
        sees(terminal, b"never")
    return found.value


def test_who_may_sit_there(served: Served) -> None:
    """Its owner and administrators, while it runs, and only if it has one."""
    key = served.submit("/bin/sh", "-c", ECHO, who="alice", terminal=True)
    plain = served.submit("/bin/sleep", "60", who="alice")
    held = served.submit("/bin/true", who="alice", terminal=True, hold=True)
    served.wait(key, "running")
    served.wait(plain, "running")
    assert refused(served, "bob", key).status == 404
    assert "has no terminal; `fairlead logs -f" in refused(served, "alice", plain).message
    assert "it has a terminal as long as it runs" in refused(served, "alice", held).message
    assert refused(served, "alice", "99999").status == 404
    with client(served, "carol").terminal(key) as terminal:
        terminal.type(b"an administrator\n\x04")
        sees(terminal, b"got an administrator")
    served.wait(key)
    assert "is succeeded" in refused(served, "alice", key).message
    for each in (plain, held):
        served.call("POST", f"/api/v1/jobs/{each}/cancel", {"now": True})


def test_a_user_has_so_many_connections(served: Served) -> None:
    """Those that are closed count no more."""
    key = served.submit("/bin/sh", "-c", ECHO, who="bob", terminal=True)
    bounds = served.place.users.bounds
    import dataclasses

    served.place.users.bounds = dataclasses.replace(bounds, terminals=1)
    try:
        with client(served, "bob").terminal(key) as terminal:
            terminal.type(b"one\n")
            sees(terminal, b"got one")
            more = refused(served, "bob", key)
            assert (more.status, "has 1 terminals open" in more.message) == (429, True)
        served.place.users.bounds = bounds
        with client(served, "bob").terminal(key) as terminal:
            terminal.type(b"two\n\x04")
            sees(terminal, b"got two")
    finally:
        served.place.users.bounds = bounds
    served.wait(key)


def test_a_terminal_and_files_contradict_each_other(served: Served) -> None:
    """One of them."""
    body = {"jobs": [{"command": ["true"], "cwd": "/", "terminal": True, "stdout": "x"}]}
    answered = served.call("POST", "/api/v1/jobs", body)
    assert (answered.status, answered.error["field"]) == (422, "jobs[0].terminal")
