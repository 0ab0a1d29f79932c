"""How long do others wait while one request submits many jobs?

    python benchmarks/reads_during_submission.py [JOBS]

Starts a service for this purpose alone, submits so many jobs (5,000) in one request while another client reads, and
prints how long that client waited, and the longest single piece of work of the event loop and of the writer, in
processor time: that is what a reader waits for on an idle machine. Nothing is run: the node is drained.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import shutil
import socket
import sys
import tempfile
import threading
import time
from asyncio.events import Handle
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from fairlead.runtime.writer import Runtime
from fairlead.service.serve import Listening, ServeOptions, answer, bring_up


class Longest:
    """The longest call of a function, in seconds of processor time."""

    def __init__(self) -> None:
        self.seconds, self.total = 0.0, 0.0

    def timing(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """The same function, measured."""

        def timed(*given: Any, **named: Any) -> Any:
            began = time.thread_time()
            try:
                return call(*given, **named)
            finally:
                took = time.thread_time() - began
                self.total += took
                self.seconds = max(self.seconds, took)

        return timed


@contextmanager
def measured(loop: Longest, writer: Longest) -> Iterator[None]:
    """Time every piece of work of any event loop, and every turn of the writer."""
    run, turn, reply = Handle._run, Runtime._turn, Runtime._answer
    Handle._run, Runtime._turn = loop.timing(run), writer.timing(turn)  # type: ignore[method-assign]
    Runtime._answer = writer.timing(reply)  # type: ignore[method-assign]
    try:
        yield
    finally:
        Handle._run, Runtime._turn, Runtime._answer = run, turn, reply  # type: ignore[method-assign]


def call(path: Path, method: str, target: str, body: object = None) -> bytes:
    """One request over the service's socket."""
    connection = http.client.HTTPConnection("localhost", timeout=120)
    connection.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.sock.connect(str(path))
    given = json.dumps(body).encode() if body is not None else None
    connection.request(method, target, given, {"Content-Type": "application/json"} if given else {})
    response = connection.getresponse()
    content = response.read()
    connection.close()
    if response.status >= 300:
        raise SystemExit(f"{method} {target}: {content.decode()}")
    return content


def measure(jobs: int) -> tuple[list[float], float, Longest, Longest]:
    """How long each read took, and the submission; in seconds. Then the longest pieces of loop and writer."""
    directory = Path(tempfile.mkdtemp(prefix="fairlead-"))
    loop, writer, waits, over = Longest(), Longest(), list[float](), threading.Event()
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, directory)
        ready, found = threading.Event(), list[Listening]()

        def on_ready(listening: Listening) -> None:
            found.append(listening)
            ready.set()

        options = ServeOptions(
            state_dir=directory / "state",
            socket=directory / "s",
            port=None,
            resources={"vcore": 4000},
            handle_signals=False,
            log_level="error",
            on_ready=on_ready,
        )
        place, sockets = bring_up(options, stack)
        thread = threading.Thread(target=lambda: asyncio.run(answer(options, place, sockets)), daemon=True)
        thread.start()
        ready.wait(30)
        path = directory / "s"
        call(path, "POST", f"/api/v1/nodes/{place.local.node}/drain", {})

        def read() -> None:
            while not over.is_set():
                began = time.perf_counter()
                call(path, "GET", "/api/v1/nodes")
                waits.append(time.perf_counter() - began)
                time.sleep(0.002)

        reader = threading.Thread(target=read)
        body = {"jobs": [{"command": ["/bin/true", str(n)], "cwd": "/"} for n in range(jobs)]}
        with measured(loop, writer):
            reader.start()
            began = time.perf_counter()
            call(path, "POST", "/api/v1/jobs", body)
            took = time.perf_counter() - began
            over.set()
            reader.join()
        found[0].stop()
        thread.join(60)
    return waits, took, loop, writer


def main() -> None:
    """Measure once and print it."""
    jobs = int(sys.argv[1]) if len(sys.argv) > 1 else 5_000
    waits, took, loop, writer = measure(jobs)
    waits.sort()
    print(f"{jobs} jobs in one request: {took:.1f} s; load of the machine {os.getloadavg()[0]:.1f}")
    middle, longest = waits[len(waits) // 2], waits[-1]
    print(f"{len(waits)} reads meanwhile: median {middle * 1000:.0f} ms, longest {longest * 1000:.0f} ms")
    print(f"longest piece of work: event loop {loop.seconds * 1000:.0f} ms, writer {writer.seconds * 1000:.0f} ms")


if __name__ == "__main__":
    main()
