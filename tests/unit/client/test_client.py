"""The client of the HTTP interface."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fairlead.client import Address, Client, Misconfigured, Refused, ServiceFailed, Unreachable, http, paging, sync
from fairlead.client.errors import NoService
from fairlead.client.http import EventReader, ServerEvent
from fairlead.wire.cluster import Problem
from fairlead.wire.jobs import Done


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sync, "PAUSES_S", (0.0, 0.0, 0.0))


def test_a_missing_socket_says_what_to_do(tmp_path: Path) -> None:
    """Place, cause, and two ways out."""
    path = tmp_path / "none.sock"
    with pytest.raises(Unreachable) as caught:
        Client(Address(socket=str(path))).service()
    assert caught.value.message == (
        f"cannot reach the service at {path}: it does not exist. Start it with `fairlead up`, or set FAIRLEAD_SOCKET."
    )


def test_a_socket_that_nobody_serves_is_told_from_a_missing_one(socket_path: str) -> None:
    """Left behind by a service that was killed."""
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(socket_path)
    with pytest.raises(Unreachable, match="nobody listens there"):
        Client(Address(socket=socket_path)).service()


def test_a_path_too_long_for_a_socket_is_named_as_the_cause() -> None:
    """The kernel's own words would not help."""
    with pytest.raises(Unreachable, match="at most 107 bytes"):
        Client(Address(socket="/tmp/" + "x" * 200)).service()


def test_a_port_that_nobody_serves_names_the_url() -> None:
    """And the variable for URLs."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(Unreachable, match=f"http://127.0.0.1:{port}: nobody listens there.*FAIRLEAD_URL"):
        Client(Address.of_url(f"http://127.0.0.1:{port}")).service()


def test_an_error_of_the_service_becomes_one_sentence(service: Any, client: Client, refuse: Callable[..., Any]) -> None:
    """With the field in front and the details below."""
    details = [{"line": 3, "column": 5, "path": "queues[0]", "message": "twice"}, {"message": "more"}]
    service.on("GET", "/info", refuse(422, "must be a number", field="jobs.0.priority", details=details))
    with pytest.raises(Refused) as caught:
        client.service()
    assert caught.value.message == "jobs.0.priority: must be a number"
    assert caught.value.details == ("3:5: queues[0]: twice", "more")
    assert (caught.value.status, caught.value.problem.code) == (422, "invalid")


def test_a_fault_of_the_service_has_its_own_status(service: Any, client: Client, refuse: Callable[..., Any]) -> None:
    """5xx is not the caller's mistake."""
    service.on("GET", "/info", refuse(503, "the disk is full"))
    with pytest.raises(ServiceFailed, match="the disk is full") as caught:
        client.service()
    assert caught.value.status == 503


def test_an_answer_that_makes_no_sense_is_said_to_be_no_service(service: Any, client: Client, answer: Any) -> None:
    """Something else listens there."""
    service.on("GET", "/info", answer(200, raw=b"<html>"))
    service.on("GET", "/nodes", answer(404, raw=b"not here"))
    for ask in (client.service, lambda: list(client.nodes())):
        with pytest.raises(NoService, match="Fairlead service"):
            ask()


def test_an_answer_of_another_shape_is_said_to_be_of_another_version(service: Any, client: Client, answer: Any) -> None:
    """What is missing is named."""
    service.on("GET", "/nodes", answer(200, {"nodes": [{"id": "n"}]}))
    with pytest.raises(NoService, match=r"of another version.*capacity"):
        list(client.nodes())


def test_connecting_has_an_end_also_where_what_comes_has_none() -> None:
    """As where a service stands still: nobody answers there, and who follows output waited for ever."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        client = Client(Address.of_url(f"https://127.0.0.1:{silent.getsockname()[1]}"), timeout_s=0.2)
        for ask in (lambda: next(client.follow("1")), lambda: next(client.events()), client.terminal("1").__enter__):
            with pytest.raises(Unreachable, match="no answer"):
                ask()


def _broken_first(times: int, answer: Any) -> Callable[[Any], Any]:
    left = [times]

    def reply(_request: Any) -> Any:
        left[0] -= 1
        return answer(200, raw=b'{"queues": []', broken=True) if left[0] >= 0 else {"queues": []}

    return reply


def test_a_read_is_repeated_when_the_connection_breaks(service: Any, client: Client, answer: Any) -> None:
    """Three times at most."""
    service.on("GET", "/queues", _broken_first(3, answer))
    assert list(client.queues()) == []
    service.on("GET", "/queues", _broken_first(4, answer))
    with pytest.raises(Unreachable, match="broke"):
        list(client.queues())


def test_a_submission_is_repeated_under_the_same_key(service: Any, client: Client, answer: Any) -> None:
    """So that the service can see that it is the same one."""
    service.on("POST", "/jobs", _twice(answer))
    assert client.submit([{"command": ["true"]}], idempotency_key="abc").jobs == []
    assert [r.headers["Idempotency-Key"] for r in service.requests] == ["abc", "abc"]
    client.submit([{"command": ["true"]}])
    client.submit([{"command": ["true"]}])
    assert len({r.headers["Idempotency-Key"] for r in service.requests}) == 3


def _gone_after(path: str, answer: Any, seen: list[Any]) -> Callable[[Any], Any]:
    """The connection breaks, and nobody listens any more, as where the service is started anew."""

    def reply(request: Any) -> Any:
        seen.append(request)
        if len(seen) == 1:
            Path(path).rename(f"{path}.away")
            return answer(200, raw=b'{"jobs"', broken=True)
        return {"jobs": []}

    return reply


def test_what_may_have_arrived_before_nothing_answered_is_said(service: Any, socket_path: str, answer: Any) -> None:
    """Who submits it once more would have it twice."""
    service.on("POST", "/jobs", _gone_after(socket_path, answer, []))
    with pytest.raises(Unreachable, match="does not exist") as caught:
        Client(Address(socket=socket_path)).submit([{"command": ["true"]}])
    assert caught.value.started


def test_a_call_that_broke_is_repeated_where_nothing_answers_for_a_while(
    service: Any, socket_path: str, answer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it is when the service is started anew."""
    left = [1, 1]

    def back_then(_pause: float) -> None:
        if not left:
            Path(f"{socket_path}.away").rename(socket_path)
        else:
            left.pop()

    service.on("POST", "/jobs", _gone_after(socket_path, answer, []))
    monkeypatch.setattr("fairlead.client.sync.time.sleep", back_then)
    assert Client(Address(socket=socket_path)).submit([{"command": ["true"]}]).jobs == []


def _twice(answer: Any) -> Callable[[Any], Any]:
    """Broken the first time."""
    seen: list[Any] = []

    def reply(request: Any) -> Any:
        seen.append(request)
        return answer(200, raw=b'{"jobs"', broken=True) if len(seen) == 1 else {"jobs": []}

    return reply


def test_a_post_without_a_key_is_never_repeated(service: Any, client: Client, answer: Any) -> None:
    """It may have arrived."""
    service.on("POST", "/tokens", _broken_first(1, answer))
    with pytest.raises(Unreachable):
        client.create_token()
    assert len(service.requests) == 1


def test_jobs_are_read_page_by_page(service: Any, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until there are no more, or the limit is reached."""
    monkeypatch.setattr(paging, "PAGE", 2)
    for key in "12345":
        service.add(key)
    assert [job.key for job in client.jobs()] == list("12345")
    assert [job.key for job in client.jobs(limit=3)] == list("123")
    assert [job.key for job in client.jobs(state="running")] == []


def test_the_token_is_sent_as_bearer(service: Any, socket_path: str) -> None:
    """As TCP needs it."""
    list(Client(Address(socket=socket_path, token="t0")).jobs())
    assert service.requests[0].headers["Authorization"] == "Bearer t0"


def test_a_key_cannot_leave_its_place_in_the_path(service: Any, client: Client) -> None:
    """Slashes and question marks are quoted."""
    with pytest.raises(Refused):
        client.job("../info?x")
    assert service.requests[0].path == "/api/v1/jobs/..%2Finfo%3Fx"


def test_server_sent_events_are_read_by_the_standard() -> None:
    """Comments are skipped, data lines joined, the id stays until there is another; however it is cut in pieces."""
    text = b': heartbeat\n\nid: 7\nevent: job\ndata: {"key":\ndata: "1"}\n\ndata: plain\r\n\r\nid: 8\n\ndata: cut off'
    for size in (1, 7, 1000):
        reader = EventReader()
        found = [e for at in range(0, len(text), size) for e in reader.feed(text[at : at + size])]
        assert found == [ServerEvent("7", "job", {"key": "1"}), ServerEvent("7", "message", "plain")]


def test_events_resume_after_the_last_id(service: Any, client: Client, answer: Any) -> None:
    """The id goes out as a header."""
    service.on("GET", "/events", answer(200, raw=b"id: 4\ndata: {}\n\n"))
    opened: list[str] = []
    events: Iterator[ServerEvent] = client.events(after="3", opened=lambda: opened.append("once"))
    assert [e.id for e in events] == ["4"]
    assert opened == ["once"]
    assert service.requests[0].headers["Last-Event-ID"] == "3"


def test_without_a_token_a_401_says_where_to_get_one(
    refuse: Callable[..., Any],
) -> None:
    """Over TCP, where a token is needed."""
    refused = refuse(401, "a token is needed.")
    failure = http.failure(401, json.dumps(refused.body).encode(), Address.of_url("http://h"))
    assert failure.message == "a token is needed. Set FAIRLEAD_TOKEN to a token made with `fairlead token create`."
    refused = refuse(401, "make a token and set FAIRLEAD_TOKEN")
    failure = http.failure(401, json.dumps(refused.body).encode(), Address.of_url("http://h"))
    assert failure.message == "make a token and set FAIRLEAD_TOKEN"


def test_what_reads_an_answer_is_made_by_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """`submit --wait` reads two streams at once; msgspec ends the process when two threads look at a type first."""
    made: list[type] = []
    making, real = threading.Lock(), msgspec.json.Decoder

    def decoder(shape: type) -> Any:
        assert making.acquire(blocking=False), "two threads make a decoder at once"
        time.sleep(0.02)
        made.append(shape)
        making.release()
        return real(shape)

    monkeypatch.setattr(http, "_DECODERS", {})
    monkeypatch.setattr(msgspec.json, "Decoder", decoder)
    address = Address(socket="/nowhere")
    problem = msgspec.json.encode(Problem(type="t", title="x", status=503, detail="stopping", code="unavailable"))
    done = msgspec.json.encode(Done(ok=True))
    with ThreadPoolExecutor(8) as threads:
        failed = [threads.submit(http.failure, 503, problem, address) for _ in range(4)]
        read = [threads.submit(http.decoded, done, Done, address) for _ in range(4)]
    assert {str(each.result()) for each in failed} == {"stopping"}
    assert {each.result() for each in read} == {Done(ok=True)}
    assert sorted(shape.__name__ for shape in made) == ["Done", "Problem"]


def test_what_is_worked_out_apart_is_waited_for_longer(service: Any, socket_path: str) -> None:
    """`when --spend 1m` may take a minute; any other answer that takes so long does not come."""

    def slowly(_: Any) -> dict[str, Any]:
        time.sleep(0.6)
        return {"since_ms": 0, "tasks": 0, "sentences": [], "queues": [], "users": [], "notes": []}

    service.on("POST", "/config/compare", slowly)
    service.on("GET", "/config/status", slowly)
    client = Client(Address(socket=socket_path), timeout_s=0.2)
    assert client.compare_config(text="", days=1).tasks == 0
    with pytest.raises(Unreachable, match=r"did not answer in 0\.2 s"):
        client.config_status()


@pytest.mark.parametrize("text", ["a\r\nHost: evil", "a\nb", "a\0", "a\udcff"])
def test_what_would_be_more_than_one_header_is_not_sent(text: str) -> None:
    """A token of two lines, for one: the service would be told something else, or refuse it without a reason."""
    with pytest.raises(Misconfigured, match="the token has a control character"):
        http.request(http.Call("GET", "/jobs"), Address(socket="/a", token=text))
    with pytest.raises(Misconfigured, match="Idempotency-Key has a control character"):
        http.request(http.Call("POST", "/jobs", headers={"Idempotency-Key": text}), Address(socket="/a"))


def test_text_that_is_no_unicode_is_no_fault_of_the_client(client: Client, service: Any) -> None:
    """A byte on a command line that is no UTF-8 comes as half of a surrogate pair: no job is called so, none can be."""
    with pytest.raises(Refused):
        client.job("\udcff")
    assert list(client.jobs(name="\udcff")) == []
    for ask in (lambda: client.change("1", name="\udcff"), lambda: client.submit([{"command": ["a", "\ud800"]}])):
        with pytest.raises(Misconfigured, match="half of a surrogate pair"):
            ask()


def test_what_json_cannot_say_is_named(client: Client, service: Any) -> None:
    """Such as a path as it comes."""
    for draft, named in ({"cwd": Path("/")}, "PosixPath"), ({"tags": 1j}, "complex"):
        with pytest.raises(Misconfigured, match=f"{named}.*; what is sent is made of texts"):
            client.submit([{"command": ["true"], **draft}])
    assert service.requests == []
