"""What many pods cost a reflector, and the whole scheduler behind it: processor time and memory, without a cluster.

Decides how large a pod is (about 5 KB of JSON, as API servers send them, with what owns it and who wrote it). The
server is a stand-in, so that what is measured is ours. Each case runs in a process of its own.
`PYTHONPATH=tests:src .venv/bin/python tests/kubernetes/reflector_bench.py [PODS]`
"""

from __future__ import annotations

import asyncio
import json
import resource
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from testbed.cluster import pod
from testbed.control_plane import node_manifest
from testbed.load import RUNS

from fairlead.config import load_text
from fairlead.kubernetes import kinds
from fairlead.kubernetes.client import Answer, Client, Request
from fairlead.kubernetes.driver import Driver
from fairlead.kubernetes.queue_file import DEFAULT_QUEUES
from fairlead.kubernetes.reflector import Change, Changed, Reflector, Synced

NODES = 5_000
CASES = ("nothing", "reflector", "scheduler")


def template() -> bytes:
    """A pod as the server sends it, with NAME, NODE and UIDUIDUIDUID to be replaced."""
    made = pod("NAME", "100m", nodeName="NODE")
    written = {f"f:field-{number}": {"f:value": {}, "f:other": {"f:more": {}}} for number in range(60)}
    made["metadata"] |= {
        "uid": "00000000-0000-4000-8000-UIDUIDUIDUID",
        "resourceVersion": "1000",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "job", "uid": "0", "controller": True}],
        "managedFields": [{"manager": "kubelet", "operation": "Update", "fieldsV1": written}],
    }
    made["spec"]["priority"] = 0
    made["spec"]["volumes"] = [{"name": "token", "projected": {"sources": [{"configMap": {"name": "root-ca"}}] * 8}}]
    made["status"] = RUNS
    return json.dumps(made, separators=(",", ":")).encode()


class Ready:
    """A server that has so many pods, and makes each when it is asked for."""

    def __init__(self, pods: int) -> None:
        self.pods = pods
        self._template = template()
        self.size = len(self._template)

    def _pod(self, number: int) -> bytes:
        made = self._template.replace(b'"NAME"', b'"pod-%d"' % number)
        return made.replace(b'"NODE"', b'"n%d"' % (number % NODES)).replace(b"UIDUIDUIDUID", b"%012x" % number)

    async def send(self, request: Request, timeout_s: float) -> Answer:
        """A page."""
        begin = int(request.query.get("continue") or 0)
        end = min(begin + int(request.query["limit"]), self.pods)
        more = f'"continue":"{end}",' if end < self.pods else ""
        items = b",".join(self._pod(number) for number in range(begin, end))
        return Answer(200, {}, b'{"metadata":{%s"resourceVersion":"1000"},"items":[%s]}' % (more.encode(), items))

    @asynccontextmanager
    async def stream(self, request: Request, idle_s: float) -> AsyncIterator[AsyncIterator[bytes]]:
        """Nothing changes."""

        async def lines() -> AsyncIterator[bytes]:
            await asyncio.sleep(3600)
            yield b""

        yield lines()

    async def close(self) -> None:
        """Nothing is open."""


async def _one(case: str, pods: int) -> None:
    server = Ready(pods)
    driver = Driver(load_text(DEFAULT_QUEUES, source="the built-in queues"), 0)
    if case == "scheduler":
        for number in range(NODES):
            manifest = node_manifest(f"n{number}", "32", "256Gi")
            manifest["metadata"]["uid"] = f"node-{number}"
            node = kinds.NODES.type
            driver.take(Changed(kinds.NODES, _decoded(manifest, node)), 0)
    synced, longest = asyncio.Event(), 0.0

    def take(change: Change) -> None:
        nonlocal longest
        if isinstance(change, Synced):
            synced.set()
        elif case == "scheduler":
            began = time.perf_counter()
            driver.take(change, 1)
            longest = max(longest, time.perf_counter() - began)

    if case == "nothing":
        for number in range(pods):
            server._pod(number)
    else:
        reflector = Reflector(Client(server), kinds.PODS, take)
        began = time.process_time()
        running = asyncio.create_task(reflector.run())
        await synced.wait()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        if case == "scheduler":
            driver.begin(1)
        print(f"took {time.process_time() - began:.2f}")
    rss = int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize() / 2**20  # noqa: SIM115, PTH123
    print(f"rss {rss:.1f}")
    print(f"size {server.size}")


def _decoded(manifest: object, kind: type) -> object:
    import msgspec

    return msgspec.json.decode(json.dumps(manifest).encode(), type=kind)


def main() -> None:
    """Each case in a process of its own, then a table."""
    if len(sys.argv) == 3:
        asyncio.run(_one(sys.argv[1], int(sys.argv[2])))
        return
    pods = int(sys.argv[1]) if len(sys.argv) > 1 else 50_000
    found = {}
    for case in CASES:
        said = subprocess.run([sys.executable, __file__, case, str(pods)], capture_output=True, text=True, check=False)
        if said.returncode:
            raise SystemExit(said.stderr)
        found[case] = {name: float(value) for name, value in (line.split() for line in said.stdout.splitlines())}
    base, making = found["nothing"]["rss"], found["nothing"]["size"]
    print(f"{pods} pods of {making:.0f} bytes; a process that has none: {base:.0f} MiB")
    print(f"{'':<34} {'CPU s':>7} {'MiB more':>9} {'bytes a pod':>12}")
    for case, what in (
        ("reflector", "reflector"),
        ("scheduler", f"with informer and books, {NODES} nodes"),
    ):
        more = found[case]["rss"] - base
        print(f"{what:<34} {found[case]['took']:>7.2f} {more:>9.0f} {more * 2**20 / pods:>12.0f}")


if __name__ == "__main__":
    main()
