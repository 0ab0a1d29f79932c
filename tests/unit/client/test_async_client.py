"""The client with an event loop does what the other one does."""

from __future__ import annotations

import inspect
import socket
from pathlib import Path
from typing import Any

import pytest

from fairlead.client import Address, AsyncClient, Client, Refused, Unreachable, paging, sync
from fairlead.client.errors import NoService


@pytest.fixture
def loop_client(service: Any, socket_path: str) -> AsyncClient:
    return AsyncClient(Address(socket=socket_path), timeout_s=5.0)


def test_it_has_the_same_methods() -> None:
    """None that the other one lacks, with the same arguments."""

    def methods(kind: type) -> dict[str, list[str]]:
        named = {n: getattr(kind, n) for n in dir(kind) if not n.startswith("_")}
        return {n: list(inspect.signature(f).parameters) for n, f in named.items() if inspect.isfunction(f)}

    assert methods(AsyncClient) == methods(Client)
    assert {n for n in dir(AsyncClient) if not n.startswith("_")} == {n for n in dir(Client) if not n.startswith("_")}


async def test_lists_are_read_page_by_page(
    service: Any, loop_client: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until there are no more, or the limit is reached."""
    monkeypatch.setattr(paging, "PAGE", 2)
    for key in "12345":
        service.add(key)
    assert [job.key async for job in loop_client.jobs()] == list("12345")
    assert [job.key async for job in loop_client.jobs(limit=3)] == list("123")


async def test_a_read_is_repeated_when_the_connection_breaks(
    service: Any, loop_client: AsyncClient, answer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What may have arrived and could do harm is not."""
    monkeypatch.setattr("fairlead.client.asynchronous.PAUSES_S", (0.0,))
    said = [answer(200, raw=b'{"nodes"', broken=True), {"nodes": []}]
    service.on("GET", "/nodes", lambda _request: said.pop(0))
    assert [node async for node in loop_client.nodes()] == []
    service.on("POST", "/tokens", answer(200, raw=b"{", broken=True))
    with pytest.raises(Unreachable, match="broke") as caught:
        await loop_client.create_token()
    assert caught.value.started
    assert len(service.sent("POST", "/tokens")) == 1


async def test_what_may_have_arrived_before_nothing_answered_is_said(
    service: Any, loop_client: AsyncClient, answer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who submits it once more would have it twice."""
    monkeypatch.setattr("fairlead.client.asynchronous.PAUSES_S", (0.0,))
    place = Path(loop_client.address.socket)

    def gone(_request: Any) -> Any:
        place.unlink()
        return answer(200, raw=b'{"jobs"', broken=True)

    service.on("POST", "/jobs", gone)
    with pytest.raises(Unreachable, match="does not exist") as caught:
        await loop_client.submit([{"command": ["true"]}])
    assert caught.value.started


async def test_connecting_has_an_end_also_where_what_comes_has_none() -> None:
    """As where a service stands still."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        client = AsyncClient(Address.of_url(f"https://127.0.0.1:{silent.getsockname()[1]}"), timeout_s=0.2)
        with pytest.raises(Unreachable, match="no answer"):
            await anext(client.follow("1"))


async def test_errors_are_those_of_the_other_client(service: Any, loop_client: AsyncClient, answer: Any) -> None:
    """With the problem, the address, or what answers there."""
    with pytest.raises(Refused) as caught:
        await loop_client.job("7")
    assert (caught.value.status, caught.value.problem.code) == (404, "not-found")
    service.on("GET", "/info", answer(200, raw=b"<html>"))
    with pytest.raises(NoService, match="not JSON"):
        await loop_client.service()
    with pytest.raises(Unreachable, match="it does not exist"):
        await AsyncClient(Address(socket="/nowhere")).service()


async def test_output_and_events_come_as_they_are_sent(service: Any, loop_client: AsyncClient, answer: Any) -> None:
    """From where one was."""
    service.on("GET", "/jobs/7/logs", lambda request: answer(200, raw=b"abcdef"[int(request.query["offset"]) :]))
    assert await loop_client.log("7", offset=2) == b"cdef"
    assert b"".join([piece async for piece in loop_client.follow("7", "stderr", offset=3)]) == b"def"
    assert service.requests[-1].query["follow"] == "true"
    service.on("GET", "/events", answer(200, raw=b'id: 4.0\nevent: x\ndata: {"key": "7"}\n\n'))
    opened: list[int] = []
    events = loop_client.events(after="3.0", opened=lambda: opened.append(len(service.requests)))
    assert opened == []
    assert [event.data async for event in events] == [{"key": "7"}]
    assert opened == [len(service.requests)]
    assert service.requests[-1].headers["Last-Event-ID"] == "3.0"


async def test_waiting_has_an_end(service: Any, loop_client: AsyncClient) -> None:
    """The job's, or that of patience."""
    service.add("7", "running", started_at_ms=1)
    with pytest.raises(TimeoutError, match="7 is running after 0 s"):
        await loop_client.wait("7", timeout_s=0)
    with pytest.raises(TimeoutError, match="7 is running"):
        sync.Client(loop_client.address).wait("7", timeout_s=0)
    service.jobs["7"].update(state="succeeded")
    assert (await loop_client.wait("7")).state == "succeeded"
