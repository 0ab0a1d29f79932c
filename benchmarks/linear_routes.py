"""Each route of the service with much in its request, and each that reads with much in the books; for `linear`.

The measures are made from the service's own description: of each body every list, mapping and text that may be long,
whatever it stands in; parameters without a bound; orders about an array of N parts; and what is read, with twice the
jobs there. So a new route or field is measured by itself. What makes an input that is taken is in `linear_bodies`, and
one that is refused says so in its line. Work is processor time of the service; no job of a measure ever starts.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import shutil
import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.linear_bodies import (
    BODIES,
    ENDED,
    JOB,
    KNOWN,
    LAST,
    VARIABLES,
    WAITING,
    Described,
    Long,
)
from benchmarks.linear_rounds import Growth, growth
from benchmarks.soak import QUEUES
from fairlead.service.http.app import make_app
from fairlead.service.serve import ServeOptions, bring_up

LEAST_S = 0.05
"""Beyond what is there in any case: what is long in a request grows until it takes so much, or may not be longer."""
FIRST = 200
PARTS = 500
"""Of an array that is submitted, or that orders are about; and twice as many."""
ONCE = 3000
"""Jobs in the books for what is read; and twice as many."""
Request = tuple[str, str, bytes]
"""Method, target and body."""
Ask = Callable[[int], Request]
"""The request of a size."""


# -- asking -------------------------------------------------------------------------------------------------------


class Asking:
    """A service in this process, asked without a socket."""

    def __init__(self, stack: ExitStack) -> None:
        folder = Path(tempfile.mkdtemp(prefix="fairlead-linear-"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        (folder / "queues.yaml").write_text(QUEUES)
        options = ServeOptions(
            config=folder / "queues.yaml",
            state_dir=folder / "state",
            socket=folder / "s",
            port=None,
            resources={"vcore": 4000, "memory": 8 * 2**30},
            log_level="error",
        )
        self.place, sockets = bring_up(options, stack)
        for each in sockets:
            stack.callback(each.close)
        self._app = make_app(self.place)
        self._loop = asyncio.new_event_loop()
        stack.callback(self._loop.close)
        self._token, _ = self.place.tokens.create(name="", user=self.place.gate.own_name, uid=os.geteuid())
        self.described = Described(self._app.openapi())

    def ask(self, method: str, target: str, body: bytes = b"") -> tuple[int, bytes]:
        """Status and content of one request."""
        status, pieces = [0], list[bytes]()
        path, _, query = target.partition("?")
        headers = [(b"authorization", f"Bearer {self._token}".encode()), (b"content-type", b"application/json")]
        scope: dict[str, Any] = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "scheme": "http",
            "root_path": "",
        }
        scope |= {"method": method, "path": path, "raw_path": path.encode(), "query_string": query.encode()}
        scope |= {"headers": headers, "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 2)}
        messages = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def receive() -> Any:
            if (message := next(messages, None)) is None:
                await asyncio.Event().wait()
            return message

        async def send(message: Any) -> None:
            status[0] = message.get("status", status[0])
            pieces.append(message.get("body", b""))

        self._loop.run_until_complete(self._app(scope, receive, send))
        return status[0], b"".join(pieces)

    def submit(self, *jobs: Mapping[str, Any]) -> str:
        """The key of the first of these jobs."""
        status, content = self.ask("POST", "/api/v1/jobs", json.dumps({"jobs": jobs}).encode())
        if status != 201:
            raise SystemExit(f"{status}: {content.decode()[:500]}")
        return str(json.loads(content)["jobs"][0]["key"])


def used() -> float:
    """Seconds of processor time of this process and of the children that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


# -- measuring ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ratio:
    """What twice the size costs, and how the last request was answered."""

    name: str
    size: int
    took: Growth
    status: int


def seconds(asking: Asking, given: Request) -> tuple[float, int]:
    """What such a request took, and its status. What prepares it is not measured: it has been done."""
    began = used()
    status, _ = asking.ask(*given)
    return used() - began, status


def ratio(asking: Asking, name: str, size: int, request: Ask, least: Callable[[], float] = lambda: 0.0) -> Ratio:
    """Of this size and twice that. `least`: what such a request takes that is not long."""
    status = 0

    def twice() -> float:
        nonlocal status
        took, status = seconds(asking, request(2 * size))
        return took

    took = growth(lambda: seconds(asking, request(size))[0], twice, least)
    return Ratio(name, size, took, status)


def of_requests(asking: Asking, part: str) -> Iterator[Ratio]:
    """Each thing that may be long in a request: its size grows until it costs something, or may not be larger."""
    said = {(method, path): each for method, path, each in asking.described.operations()}
    wanted = [long for long in asking.described.long() if part in long.name]
    if wanted:
        prepare(asking)
    for long in wanted:

        def request(count: int, long: Long = long) -> Request:
            path = _filled(long.path, _job_for(asking, long))
            if long.is_parameter:
                return long.method, f"{path}?{str(long.at[0])[1:]}={'x' * count}", b""
            return long.method, path, asking.described.filled(long, said[long.method, long.path], count)

        size = max(1, min(FIRST, long.most // 2))

        def least(request: Ask = request) -> float:
            return seconds(asking, request(1))[0]

        while size * 4 <= long.most and seconds(asking, request(size))[0] < least() + LEAST_S:
            size *= 2
        yield ratio(asking, long.name, size, request, least)


def prepare(asking: Asking) -> None:
    """The jobs that bodies name."""
    asking.submit(*[JOB] * KNOWN)
    assert asking.submit(JOB) == ENDED
    assert asking.submit(JOB) == LAST
    asking.ask("POST", f"/api/v1/jobs/{ENDED}/cancel")


def _job_for(asking: Asking, long: Long) -> str:
    """The key of a job of which the request makes sense: with variables to remove, ended, or on hold."""
    if long.at[0] == "unset_env":
        return asking.submit(JOB | {"env": {f"K{each}": "v" for each in range(VARIABLES)}})
    return ENDED if long.path.endswith("/rerun") else LAST if long.at[0] == "after" else "1"


def _filled(path: str, key: str = "1") -> str:
    path = path.replace("{key}", key).replace("{partition}", "default").replace("{queue}", "root.default")
    path = path.replace("{node_id}", socket.gethostname())
    while "{" in path:
        path = f"{path[: path.index('{')]}none{path[path.index('}') + 1 :]}"
    return path


def of_arrays(asking: Asking, part: str) -> Iterator[Ratio]:
    """An array of so many parts is submitted; each order and question about one whose parts are on hold, wait or have
    ended. Each try has an array of its own, and each measure a service, whose books have no other.
    """
    for name, request in about_arrays(asking.described):
        if part in name:
            with ExitStack() as stack:
                yield ratio(own := Asking(stack), name, PARTS, partial(request, own))


def about_arrays(described: Described) -> Iterator[tuple[str, Callable[[Asking, int], Request]]]:
    """Name and request of each; what the request is about is made with it."""

    def whole(_asking: Asking, count: int) -> Request:
        return "POST", "/api/v1/jobs", json.dumps({"jobs": [JOB | {"array": f"1-{count}"}]}).encode()

    yield "POST /api/v1/jobs of an array", whole
    for method, path, said in described.operations():
        schema = described.body(said)
        body = json.dumps(BODIES.get(path) or described.least(schema)).encode() if schema else b""
        for state in ("on hold", "in line", "ended") if "/jobs/{key}" in path else ():
            yield f"{method} {path} of an array {state}", partial(_about_one, state, method, path, body)


def _about_one(state: str, method: str, path: str, body: bytes, asking: Asking, count: int) -> Request:
    key = asking.submit((WAITING if state == "in line" else JOB) | {"array": f"1-{count}"})
    if state == "ended":
        asking.ask("POST", f"/api/v1/jobs/{key}/cancel")
    return method, _filled(path, key), body


def of_reads(asking: Asking, part: str) -> Iterator[Ratio]:
    """Each route that reads, with so many jobs in the books, and of another service with twice as many."""
    routes = [(path, f"GET {path}") for method, path, _ in asking.described.operations() if method == "GET"]
    routes = [(path, name) for path, name in routes if part in name]
    if not routes:
        return
    with ExitStack() as stack:
        larger = Asking(stack)
        key = asking.submit(*[WAITING] * ONCE)
        assert larger.submit(*[WAITING] * ONCE) == key
        larger.submit(*[WAITING] * ONCE)
        for path, name in routes:
            yield _of_read(asking, larger, _filled(path, key), f"{name} with twice the jobs")


def _of_read(asking: Asking, larger: Asking, target: str, name: str) -> Ratio:
    given = ("GET", target, b"")
    _, status = seconds(larger, given)  # The first fills what is kept.
    seconds(asking, given)
    return Ratio(name, ONCE, growth(lambda: seconds(asking, given)[0], lambda: seconds(larger, given)[0]), status)


def ratios(part: str) -> Iterator[Ratio]:
    """All of them."""
    for measures in (of_reads, of_arrays, of_requests):
        with ExitStack() as stack:
            yield from measures(Asking(stack), part)
