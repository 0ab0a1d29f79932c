"""Arrivals at a full cluster: so many pods a second come and are bound, and as many that run end.

Decides how the stand-in for the API server answers: as little as does, so that what is measured is ours. Client,
binder, reflectors and control loop are the real ones. Seconds are those of a core of its own, whatever else the machine
has to do. `make bench-arrivals`; `--help` says the options.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import resource
import selectors
import time
from array import array
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from reflector_bench import template
from testbed.control_plane import node_manifest

from fairlead.config import load_text
from fairlead.kubernetes.binder import Binder
from fairlead.kubernetes.client import Answer, Client, Request
from fairlead.kubernetes.control_loop import ControlLoop
from fairlead.kubernetes.queue_file import DEFAULT_QUEUES

SECOND = 1_000
AT_ONCE = 2_000
"""While it fills up, so many pods wait at once."""
POPULAR, IMAGES = 20, 2_000
"""So many images pods run, and so many there are."""
LOOKS = 10
"""So often its memory is looked at."""
LATE_S = 10.0
"""What is bound later than so long after it came has not been kept up with."""


class OwnCore(selectors.DefaultSelector):  # type: ignore[misc, valid-type]
    """Time as it would pass on a core of its own: what the process used, and what it waited with nothing to do."""

    idle = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        began = time.monotonic()
        found: list[tuple[selectors.SelectorKey, int]] = super().select(timeout)
        self.idle += min(time.monotonic() - began, timeout or 0.0)
        return found

    def now(self) -> float:
        return time.process_time() + self.idle


class Arrivals:
    """A server on which pods arrive and end."""

    def __init__(self, nodes: int, core: OwnCore, images: int = 0) -> None:
        self.nodes, self.core, self.images = nodes, core, images
        self.came: dict[int, float] = {}
        """Pods that wait, and since when."""
        self.waited = array("d")
        self.runs: deque[tuple[int, str]] = deque()
        self.bound = self.most_waiting = 0
        self._template = template()
        self._lines: deque[bytes] = deque()
        self._news = asyncio.Event()
        self._version = 10

    def pod(self, number: int, node: str = "") -> bytes:
        self._version += 1
        made = self._template.replace(b'"NAME"', b'"pod-%d"' % number).replace(b"UIDUIDUIDUID", b"%012x" % number)
        made = made.replace(b'"resourceVersion":"1000"', b'"resourceVersion":"%d"' % self._version)
        if self.images:
            made = made.replace(b'"busybox:stable"', b'"registry.example.com/image-%d:1"' % (number % POPULAR))
        return made.replace(b'"NODE"', b'"%s"' % node.encode() if node else b"null")

    def _node(self, number: int) -> dict[str, object]:
        made = node_manifest(f"n{number}", "16", "64Gi")
        made["metadata"]["uid"] = f"node-{number}"
        made["status"]["images"] = images_of(number, self.images)
        return made

    def say(self, kind: bytes, pod: bytes) -> None:
        self._lines.append(b'{"type":"%s","object":%s}' % (kind, pod))
        self._news.set()

    def arrive(self, number: int) -> None:
        self.came[number] = self.core.now()
        self.most_waiting = max(self.most_waiting, len(self.came))
        self.say(b"ADDED", self.pod(number))

    def end_oldest(self) -> None:
        if self.runs:
            self.say(b"DELETED", self.pod(*self.runs.popleft()))

    async def send(self, request: Request, timeout_s: float) -> Answer:
        """The nodes, or a binding; everything else is answered with nothing."""
        if request.method == "GET":
            made = [self._node(number) for number in range(self.nodes)] if request.path.endswith("/nodes") else []
            there = {"metadata": {"resourceVersion": "1"}, "items": made, "groups": []}
            return Answer(200, {}, json.dumps(there).encode())
        if request.path.endswith("/binding"):
            number = int(request.path.split("/")[-2].removeprefix("pod-"))
            node = json.loads(request.body)["target"]["name"]
            self.waited.append(self.core.now() - self.came.pop(number))
            self.bound += 1
            self.runs.append((number, node))
            self.say(b"MODIFIED", self.pod(number, node))
        return Answer(201, {}, b"{}")

    @asynccontextmanager
    async def stream(self, request: Request, idle_s: float) -> AsyncIterator[AsyncIterator[bytes]]:
        """What happens."""

        async def lines() -> AsyncIterator[bytes]:
            while True:
                while request.path.endswith("/pods") and self._lines:
                    yield self._lines.popleft()
                self._news.clear()
                if request.path.endswith("/pods"):
                    await self._news.wait()
                else:
                    await asyncio.sleep(3600)

        yield lines()

    async def close(self) -> None:
        """Nothing is open."""


def images_of(node: int, count: int) -> list[dict[str, object]]:
    """So many images of a node, each of them on other nodes as well: the popular ones on a third of all."""
    chance = random.Random(node)
    chosen = [n for n in range(POPULAR) if chance.random() < 1 / 3][:count]
    chosen += chance.sample(range(POPULAR, IMAGES), count - len(chosen))
    return [
        {
            "names": [f"registry.example.com/image-{n}@sha256:{n:064x}", f"registry.example.com/image-{n}:1"],
            "sizeBytes": (n % 40 + 1) * 100 * 2**20,
        }
        for n in chosen
    ]


def rss_mib() -> float:
    """How large this process is, the stand-in in it included."""
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize() / 2**20  # noqa: PTH123


async def measure(
    core: OwnCore, nodes: int, pods: int, rate: int, seconds: float, images: int, image_locality: bool
) -> None:
    """Fill up as fast as it goes, then have pods come and go for so long; print what it cost."""
    server = Arrivals(nodes, core, images)
    client = Client(server)
    now_ms = lambda: int(core.now() * SECOND)  # noqa: E731
    stamp = lambda: "2026-01-01T00:00:00.000000Z"  # noqa: E731
    binder = Binder(client, lambda report: loop.report(report), stamp=stamp)
    queues = load_text(DEFAULT_QUEUES, source="the built-in queues")
    loop = ControlLoop(client, binder, queues, now_ms=now_ms, images=image_locality)
    serving = asyncio.create_task(loop.run())
    while not loop.ready:
        await asyncio.sleep(0.05)
    cpu, arrived = time.process_time(), 0
    while server.bound < pods:
        while arrived < pods and len(server.came) < AT_ONCE:
            server.arrive(arrived)
            arrived += 1
        await asyncio.sleep(0.01)
    filling = time.process_time() - cpu
    server.waited = array("d")
    server.most_waiting = 0
    began, cpu, first = core.now(), time.process_time(), arrived
    sizes = [rss_mib()]
    while (passed := core.now() - began) < seconds:
        if passed >= len(sizes) * seconds / LOOKS:
            sizes.append(rss_mib())
        while arrived < first + int(passed * rate):
            server.arrive(arrived)
            server.end_oldest()
            arrived += 1
        await asyncio.sleep(0.01)
    used, bound = time.process_time() - cpu, server.bound - pods
    waits = sorted(server.waited) or [0.0]
    print(f"{nodes} nodes, {len(server.runs)} pods run, {arrived - first} came ({rate} a second)")
    print(f"{passed:.0f} s: {bound / passed:.0f} bound a second, {used / max(bound, 1) * 1e3:.2f} ms of CPU each")
    print(f"CPU {used / passed * 100:.0f} % of a core, with the stand-in's; filling took {filling:.0f} s of CPU")
    print(
        f"from arrival to binding: half {waits[len(waits) // 2]:.2f} s, 99 of 100 {waits[len(waits) * 99 // 100]:.2f} s"
    )
    print(f"at most {server.most_waiting} waited at once")
    print(f"MiB, at the begin and then in equal steps: {', '.join(f'{size:.0f}' for size in (*sizes, rss_mib()))}")
    if waits[-1] > LATE_S or len(server.came) > rate * LATE_S:
        print(f"it did not keep up: {len(server.came)} wait, the longest waited {waits[-1]:.0f} s")
    serving.cancel()
    with suppress(asyncio.CancelledError):
        await serving


def main() -> None:
    """One run."""
    asked = argparse.ArgumentParser(description="What arrivals at a full cluster cost.")
    asked.add_argument("--nodes", type=int, default=5_000)
    asked.add_argument("--pods", type=int, default=50_000, help="that run at once")
    asked.add_argument("--rate", type=int, default=1_000, help="arrivals a second")
    asked.add_argument("--seconds", type=float, default=300, help="measured, after it has filled up")
    asked.add_argument("--images", type=int, default=0, help="of each node; the pods run twenty of them")
    asked.add_argument("--image-locality", action="store_true", help="nodes that have a pod's image are better")
    given = asked.parse_args()
    core = OwnCore()
    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(core)) as runner:
        runner.run(measure(core, **vars(given)))


if __name__ == "__main__":
    main()
