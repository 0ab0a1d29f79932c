"""How long do others wait while one user floods a route? Each route of the service, one after the other.

    make load                                   5 seconds each
    python -m benchmarks.load SECONDS [PART]    only routes with PART in their names

Starts a service for this purpose alone, with some jobs, and takes its routes from its own OpenAPI document, so that a
new one joins by itself. A user with a token floods each: twelve requests at a time, as fast as they are answered.
Another user reads meanwhile, and also from a server that does nothing: what that takes is the machine's part. Where
others waited too long it is flooded twice more: of a hundred reads the machine may hold two up. Prints all figures of
each route; exit status 1 if others waited too long for one in most of its looks.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import shutil
import tempfile
import threading
import time
from collections import Counter
from contextlib import ExitStack, suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks.soak import QUEUES, Course, free_url, listening, url_of
from benchmarks.soak_judgement import BOUND_S, p99
from benchmarks.soak_users import ABUSE, OVER, QUIET, Phase, Wait, answer_alike, read_on

AT_ONCE = 12
AGAIN = 2
JOBS = 300
MOST_JOBS = 100_000
"""That a user may have: a flood of submissions is to be one, not of refusals."""
SETTLE_S = 0.5
PAUSE_S = 0.005
"""Between two reads: there are to be a hundred, so that one that the machine held up says nothing."""
JOB = {"command": ["/bin/true"], "cwd": "/", "hold": True}
BODIES: dict[str, Any] = {
    "POST /api/v1/jobs": {"jobs": [JOB] * 20},
    "POST /api/v1/jobs/{key}/rerun": {"hold": True},
    "POST /api/v1/whatif": {"submit": JOB, "forecast": True},
    "POST /api/v1/config/check": {"text": QUEUES},
    "POST /api/v1/config/diff": {"text": QUEUES},
    "POST /api/v1/config/compare": {"text": QUEUES},
}
"""What makes a request cost something; the others are refused for what they ask, which costs, too. Jobs are held: what
they do to the machine, once they run, is no matter of requests."""
Route: TypeAlias = tuple[str, str]
Asked: TypeAlias = tuple[str, str, bytes | None]
Number: TypeAlias = "Synchronized[int]"


def routes(url: str, token: str) -> list[Route]:
    """Method and path of each operation."""
    paths = json.loads(ask(url, token, "GET", "/api/v1/openapi.json")[1])["paths"]
    return sorted((method.upper(), path) for path, methods in paths.items() for method in methods)


def ask(url: str, token: str, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
    """One request; a stream is left after its beginning."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=30)
    try:
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        is_stream = "event-stream" in response.headers.get("content-type", "") or path.startswith(
            "/ws/v1/events/stream"
        )
        return response.status, response.read(1) if is_stream else response.read()
    finally:
        connection.close()


def flood(
    url: str, token: str, asked: list[tuple[str, str, bytes | None]], now: Synchronized[int], out: Connection
) -> None:
    """Ask the route of that number, many at a time, until it is another; a negative number: nothing."""
    counts: dict[int, Counter[int]] = {}

    def go_on() -> None:
        while (number := now.value) != len(asked):
            if number < 0:
                time.sleep(0.02)
                continue
            status = 0
            with suppress(OSError, http.client.HTTPException):
                status, _ = ask(url, token, *asked[number])
            counts.setdefault(number, Counter())[status] += 1

    threads = [threading.Thread(target=go_on) for _ in range(AT_ONCE)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    out.send(counts)


def request_of(route: Route, key: str) -> Asked:
    """A request to it; names in its path are those of something that is there, or of nothing."""
    method, path = route
    body = None if method in ("GET", "DELETE") else json.dumps(BODIES.get(f"{method} {path}", {})).encode()
    for name, value in (("{key}", key), ("{partition}", "default"), ("{queue}", "root.default")):
        path = path.replace(name, value)
    while "{" in path:
        path = f"{path[: path.index('{')]}none{path[path.index('}') + 1 :]}"
    return method, path, body


def measure(seconds: float, part: str) -> bool:
    """Whether others waited for no route longer than they may. Raises `LookupError` if there is none."""
    directory = Path(tempfile.mkdtemp(prefix="fairlead-load-"))
    directory.chmod(0o755)
    (directory / "queues.yaml").write_text(QUEUES)
    (directory / "disk").mkdir()
    processes = get_context("fork")
    phase: Phase = processes.Value("i", QUIET)
    now = processes.Value("i", -1)
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, directory, ignore_errors=True)
        course = Course(directory, seconds, free_url(), phase, stack, most_jobs=MOST_JOBS)
        course.start()
        stack.callback(course.end)
        users = ("daemon", "bin") if os.geteuid() == 0 else (course.client.service().user,) * 2
        mine, others = (course.client.create_token(name="load", user=user).token for user in users)
        key = json.loads(ask(course.url, mine, "POST", "/api/v1/jobs", json.dumps({"jobs": [JOB] * JOBS}).encode())[1])
        all_routes = [route for route in routes(course.url, mine) if part in " ".join(route)]
        if not all_routes:
            raise LookupError(f"no route has {part!r} in its name; one is {' '.join(routes(course.url, mine)[0])}")
        asked = [request_of(route, key["jobs"][0]["key"]) for route in all_routes]
        control = listening()
        stack.callback(control.close)
        standing = processes.Process(target=answer_alike, args=(control,), daemon=True)
        standing.start()
        stack.callback(standing.kill)
        here, there = processes.Pipe(duplex=False)
        flooding = processes.Process(target=flood, args=(course.url, mine, asked, now, there), daemon=True)
        flooding.start()
        found: list[list[Waits]] = [[] for _ in asked]

        def look(number: int) -> None:
            now.value = number
            time.sleep(SETTLE_S)
            found[number].append(Waits(_read(course.url, others, url_of(control), seconds, processes)))
            now.value = -1
            time.sleep(SETTLE_S)

        for number in range(len(asked)):
            look(number)
        for number in [number for number, (first,) in enumerate(found) if not first.ok] * AGAIN:
            look(number)
        now.value = len(asked)
        counts = here.recv()
        flooding.join(60)
    print(f"load of the machine {os.getloadavg()[0]:.1f}; p99 of others' reads, and of a server that does nothing:")
    good = True
    for number, (route, looks) in enumerate(zip(all_routes, found, strict=True)):
        ok = sum(waits.ok for waits in looks) > len(looks) / 2
        good = good and ok
        figures = ", ".join(waits.figures for waits in looks)
        answers = ", ".join(f"{count} x {status or 'none'}" for status, count in sorted(counts[number].items()))
        print(f"{'ok  ' if ok else 'BAD '} {figures}  {' '.join(route)}  ({answers})")
    return good


class Waits:
    """How long reads took while one route was flooded, and what the machine's part of it was."""

    def __init__(self, waits: list[Wait]) -> None:
        took, alike = ([s for is_control, _, s in waits if is_control == wanted] for wanted in (False, True))
        there = bool(took and alike)
        self.ok = there and p99(sorted(took)) - p99(sorted(alike)) < BOUND_S
        self.figures = (
            f"{p99(sorted(took)) * 1000:4.0f} {p99(sorted(alike)) * 1000:4.0f} ms" if there else "no reads at all"
        )


def _read(url: str, token: str, control: str, seconds: float, processes: Any) -> list[Wait]:
    """What another user, in a process of its own, waits for meanwhile."""
    phase = processes.Value("i", ABUSE)
    here, there = processes.Pipe(duplex=False)
    reading = processes.Process(target=read_on, args=(url, token, control, phase, there, PAUSE_S), daemon=True)
    reading.start()
    time.sleep(seconds)
    phase.value = OVER
    waits: list[Wait] = here.recv()
    reading.join(60)
    return waits


def main() -> None:
    """Measure once; exit status 1 if something is bad, 2 if there is nothing to measure."""
    asked = argparse.ArgumentParser(description="How long do others wait while one user floods a route?")
    asked.add_argument("seconds", nargs="?", type=float, default=5.0, help="each route is flooded for so long; 5")
    asked.add_argument("part", nargs="?", default="", help="only routes with this in their names")
    given = asked.parse_args()
    if not given.seconds > 0:
        asked.error(f"{given.seconds:g} seconds are too few to read anything")
    try:
        raise SystemExit(0 if measure(given.seconds, given.part) else 1)
    except LookupError as nothing:
        asked.error(str(nothing))


if __name__ == "__main__":
    main()
