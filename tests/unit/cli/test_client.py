"""The client of the HTTP interface."""

from __future__ import annotations

import io
import json
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fairlead.cli import client as module
from fairlead.cli.address import Address, address_of_url
from fairlead.cli.client import Client, Refusal, ServerEvent, Unreachable, read_events
from fairlead.cli.failures import REFUSED, SERVICE_ERROR, UNREACHABLE, Failure


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PAUSES_S", (0.0, 0.0, 0.0))


def test_a_missing_socket_says_what_to_do(tmp_path: Path) -> None:
    """Place, cause, and two ways out."""
    path = tmp_path / "none.sock"
    with pytest.raises(Unreachable) as caught:
        Client(Address(socket=str(path))).get("/info")
    assert caught.value.status == UNREACHABLE
    assert caught.value.message == (
        f"cannot reach the service at {path}: it does not exist. Start it with `fairlead up`, or set FAIRLEAD_SOCKET."
    )


def test_a_socket_that_nobody_serves_is_told_from_a_missing_one(socket_path: str) -> None:
    """Left behind by a service that was killed."""
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(socket_path)
    with pytest.raises(Unreachable, match="nobody listens there"):
        Client(Address(socket=socket_path)).get("/info")


def test_a_path_too_long_for_a_socket_is_named_as_the_cause() -> None:
    """The kernel's own words would not help."""
    with pytest.raises(Unreachable, match="at most 107 bytes"):
        Client(Address(socket="/tmp/" + "x" * 200)).get("/info")


def test_a_port_that_nobody_serves_names_the_url() -> None:
    """And the variable for URLs."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(Unreachable, match=f"http://127.0.0.1:{port}: nobody listens there.*FAIRLEAD_URL"):
        Client(address_of_url(f"http://127.0.0.1:{port}")).get("/info")


def test_an_error_of_the_service_becomes_one_sentence(service: Any, client: Client, refuse: Callable[..., Any]) -> None:
    """With the field in front and the details below."""
    details = [{"line": 3, "column": 5, "path": "queues[0]", "message": "twice"}, "more"]
    service.on("GET", "/info", refuse(422, "must be a number", field="jobs.0.priority", details=details))
    with pytest.raises(Refusal) as caught:
        client.get("/info")
    assert caught.value.message == "jobs.0.priority: must be a number"
    assert caught.value.details == ("3:5: queues[0]: twice", "more")
    assert (caught.value.status, caught.value.http_status) == (REFUSED, 422)


def test_a_fault_of_the_service_has_its_own_status(service: Any, client: Client, refuse: Callable[..., Any]) -> None:
    """5xx is not the caller's mistake."""
    service.on("GET", "/info", refuse(503, "the disk is full"))
    with pytest.raises(Refusal, match="the disk is full") as caught:
        client.get("/info")
    assert caught.value.status == SERVICE_ERROR


def test_an_answer_that_makes_no_sense_is_said_to_be_no_service(service: Any, client: Client, answer: Any) -> None:
    """Something else listens there."""
    service.on("GET", "/info", answer(200, raw=b"<html>"))
    service.on("GET", "/nodes", answer(404, raw=b"not here"))
    for path in ("/info", "/nodes"):
        with pytest.raises(Failure, match="Fairlead service") as caught:
            client.get(path)
        assert caught.value.status == SERVICE_ERROR


def _broken_first(times: int, answer: Any) -> Callable[[Any], Any]:
    left = [times]

    def reply(_request: Any) -> Any:
        left[0] -= 1
        return answer(200, raw=b'{"jobs": []', broken=True) if left[0] >= 0 else {"jobs": []}

    return reply


def test_a_read_is_repeated_when_the_connection_breaks(service: Any, client: Client, answer: Any) -> None:
    """Three times at most."""
    service.on("GET", "/queues", _broken_first(3, answer))
    assert client.get("/queues") == {"jobs": []}
    service.on("GET", "/queues", _broken_first(4, answer))
    with pytest.raises(Unreachable, match="broke"):
        client.get("/queues")


def test_a_submission_is_repeated_under_the_same_key(service: Any, client: Client, answer: Any) -> None:
    """So that the service can see that it is the same one."""
    service.on("POST", "/jobs", _broken_first(1, answer))
    client.post("/jobs", {"jobs": [{}]}, idempotency_key="abc")
    assert [r.headers["Idempotency-Key"] for r in service.requests] == ["abc", "abc"]


def test_a_post_without_a_key_is_never_repeated(service: Any, client: Client, answer: Any) -> None:
    """It may have arrived."""
    service.on("POST", "/tokens", _broken_first(1, answer))
    with pytest.raises(Unreachable):
        client.post("/tokens")
    assert len(service.requests) == 1


def test_jobs_are_read_page_by_page(service: Any, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until there are no more, or the limit is reached."""
    monkeypatch.setattr(module, "_PAGE", 2)
    for key in "12345":
        service.add(key)
    assert [w["key"] for w in client.jobs()] == list("12345")
    assert [w["key"] for w in client.jobs(limit=3)] == list("123")
    assert [w["key"] for w in client.jobs({"state": "running"})] == []


def test_the_token_is_sent_as_bearer(service: Any, socket_path: str) -> None:
    """As TCP needs it."""
    list(Client(Address(socket=socket_path, token="t0")).jobs())
    assert service.requests[0].headers["Authorization"] == "Bearer t0"


def test_a_key_cannot_leave_its_place_in_the_path(service: Any, client: Client) -> None:
    """Slashes and question marks are quoted."""
    with pytest.raises(Refusal):
        client.job("../info?x")
    assert service.requests[0].path == "/api/v1/jobs/..%2Finfo%3Fx"


def lines(text: str) -> Callable[[], bytes]:
    return io.BytesIO(text.encode()).readline


def test_server_sent_events_are_read_by_the_standard() -> None:
    """Comments are skipped, data lines joined, the id stays until there is another."""
    text = ': heartbeat\n\nid: 7\nevent: job\ndata: {"key":\ndata: "1"}\n\ndata: plain\r\n\r\nid: 8\n\ndata: cut off'
    assert list(read_events(lines(text))) == [
        ServerEvent("7", "job", {"key": "1"}),
        ServerEvent("7", "message", "plain"),
    ]


def test_events_resume_after_the_last_id(service: Any, client: Client, answer: Any) -> None:
    """The id goes out as a header."""
    service.on("GET", "/events", answer(200, raw=b"id: 4\ndata: {}\n\n"))
    events: Iterator[ServerEvent] = client.events(last_id="3")
    assert [e.id for e in events] == ["4"]
    assert service.requests[0].headers["Last-Event-ID"] == "3"


def test_without_a_token_a_401_says_where_to_get_one(
    refuse: Callable[..., Any],
) -> None:
    """Over TCP, where a token is needed."""
    refused = refuse(401, "a token is needed.")
    failure = module._refusal(401, json.dumps(refused.body).encode(), address_of_url("http://h"))
    assert failure.message == "a token is needed. Set FAIRLEAD_TOKEN to a token made with `fairlead token create`."
    refused = refuse(401, "make a token and set FAIRLEAD_TOKEN")
    failure = module._refusal(401, json.dumps(refused.body).encode(), address_of_url("http://h"))
    assert failure.message == "make a token and set FAIRLEAD_TOKEN"
