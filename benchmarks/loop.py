"""How long is the service's event loop kept by one piece of work? Each route, with 10,000 jobs, one after the other.

    make loop                              all routes
    python -m benchmarks.loop [PART]       only those with PART in their names

Everybody waits while the loop works, so no piece may take more than 20 ms. A piece is one callback, or a task from one
waiting to the next; measured is the processor time of its thread, so that other processes and threads do not count.
Starts a service in this process. Exit status 1 if a piece is longer, with the route that was asked and what ran.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
import tempfile
import threading
import time
from asyncio.events import Handle
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.load import Asked, ask, request_of, routes
from benchmarks.soak import QUEUES
from fairlead.service.serve import Listening, ServeOptions, answer, bring_up

JOBS = 10_000
A_REQUEST = 1000
MOST_MS = 20.0
TRIES = 3
"""The least of so many counts: the first fills what is kept, and a search for garbage belongs to no route."""
JOB = {"command": ["/bin/true"], "cwd": "/", "hold": True}
START_S, SETTLE_S = 60, 0.05


@dataclass
class Pieces:
    """What the loop did since it was last asked: the longest piece, in milliseconds of processor time."""

    longest_ms: float = 0.0
    what: str = ""
    thread: int = 0
    run: Callable[[Any], None] = field(default=Handle._run)

    def watch(self) -> None:
        """Measure every piece of the loop of the calling thread from now on."""
        self.thread = threading.get_ident()
        pieces = self

        def measured(handle: Any) -> None:
            if threading.get_ident() != pieces.thread:
                pieces.run(handle)
                return
            began = time.thread_time()
            pieces.run(handle)
            if (took := (time.thread_time() - began) * 1000) > pieces.longest_ms:
                pieces.longest_ms, pieces.what = took, _name(handle)

        Handle._run = measured  # type: ignore[method-assign, assignment]

    def taken(self) -> tuple[float, str]:
        """The longest piece since the last call."""
        found = self.longest_ms, self.what
        self.longest_ms, self.what = 0.0, ""
        return found


def _name(handle: Any) -> str:
    """What ran: the coroutine of a task, else the function."""
    callback = handle._callback
    task = getattr(callback, "__self__", None)
    if isinstance(task, asyncio.Task):
        return str(getattr(task.get_coro(), "__qualname__", task))
    return str(getattr(callback, "__qualname__", callback))


def serve(directory: Path, pieces: Pieces, stack: ExitStack) -> tuple[str, str]:
    """A service in a thread of this process; its URL and a token."""
    ready, found = threading.Event(), list[Listening]()

    def on_ready(listening: Listening) -> None:
        found.append(listening)
        ready.set()

    (directory / "queues.yaml").write_text(QUEUES)
    options = ServeOptions(
        config=directory / "queues.yaml",
        state_dir=directory / "state",
        socket=directory / "s",
        port=0,
        resources={"vcore": 4000, "memory": 8 * 2**30},
        log_level="error",
        on_ready=on_ready,
        handle_signals=False,
    )
    place, sockets = bring_up(options, stack)

    async def watched() -> None:
        pieces.watch()
        await answer(options, place, sockets)

    thread = threading.Thread(target=lambda: asyncio.run(watched()), daemon=True)
    thread.start()
    if not ready.wait(START_S):
        raise SystemExit("the service did not start")
    stack.callback(thread.join, 30)
    stack.callback(found[0].stop)
    token, _ = place.tokens.create(name="loop", user=place.gate.own_name, uid=os.geteuid())
    return found[0].url or "", token


def measure(part: str, jobs: int = JOBS) -> bool:
    """Whether no piece of a route was longer than it may be."""
    good, pieces, key = True, Pieces(), ""
    directory = Path(tempfile.mkdtemp(prefix="fairlead-loop-"))
    try:
        with ExitStack() as stack:
            url, token = serve(directory, pieces, stack)
            body = json.dumps({"jobs": [JOB] * A_REQUEST}).encode()
            for _ in range(jobs // A_REQUEST):
                status, said = ask(url, token, "POST", "/api/v1/jobs", body)
                if status != 201:
                    raise SystemExit(said.decode())
                key = json.loads(said)["jobs"][0]["key"]
            asked = {" ".join(route): request_of(route, key) for route in routes(url, token)}
            for name, request in (asked | large()).items():
                if part in name:
                    good = _one(pieces, url, token, name, request) and good
    finally:
        Handle._run = pieces.run  # type: ignore[method-assign, assignment]
        shutil.rmtree(directory, ignore_errors=True)
    return good


def large() -> dict[str, Asked]:
    """Requests that bring or ask for as much as one may."""
    queues = "".join(f"          - {{name: q{i}}}\n" for i in range(2000))
    config = json.dumps({"text": QUEUES.rstrip("\n") + "\n" + queues}).encode()
    broken = json.dumps({"jobs": [JOB] * 10_000 + [{"command": 3}]}).encode()
    all_events, array = "/api/v1/events?from=1", JOB | {"array": "1-10000"}
    return {
        "GET 1,000 jobs": ("GET", "/api/v1/jobs?limit=1000", None),
        "GET all events since the first": ("GET", all_events, None),
        "GET 10,000 records": ("GET", "/ws/v1/events/batch?count=10000", None),
        "POST 10,000 jobs": ("POST", "/api/v1/jobs", json.dumps({"jobs": [JOB] * 10_000}).encode()),
        "POST 10,000 jobs and one that is wrong": ("POST", "/api/v1/jobs", broken),
        "POST an array of 10,000": ("POST", "/api/v1/jobs", json.dumps({"jobs": [array]}).encode()),
        "POST a body of 8 MiB": ("POST", "/api/v1/jobs", b" " * (8 * 2**20 - 1)),
        "POST a queue file with 2,000 queues to check": ("POST", "/api/v1/config/check", config),
        "POST a queue file with 2,000 queues to compare": ("POST", "/api/v1/config/diff", config),
    }


def _one(pieces: Pieces, url: str, token: str, name: str, request: Asked) -> bool:
    method, path, body = request
    found, status = [], 0
    for _ in range(TRIES):
        pieces.taken()
        status, _ = ask(url, token, method, path, body)
        time.sleep(SETTLE_S)
        found.append(pieces.taken())
    took, what = min(found)
    ok = took <= MOST_MS
    print(f"{'ok  ' if ok else 'BAD '} {took:5.1f} ms  {name} ({status})  {what}", flush=True)
    return ok


def main() -> int:
    """Measure all; 1 if a piece is too long."""
    return 0 if measure(sys.argv[1] if len(sys.argv) > 1 else "") else 1


if __name__ == "__main__":
    sys.exit(main())
