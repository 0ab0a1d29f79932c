"""Throughput on a real API server on this machine: ours beside kube-scheduler, and a restart on a full cluster.

`make bench-kubernetes` runs 500 nodes and 3,000 pods; `--large` 5,000 nodes and 20,000 pods, and the restart.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import yaml
from testbed.binaries import binary
from testbed.cluster import pod
from testbed.control_plane import ControlPlane, free_ports, node_manifest

from fairlead.kubernetes.access import find_access
from fairlead.kubernetes.client import Client
from fairlead.kubernetes.connection import Connection
from fairlead.kubernetes.kinds import NODES, PODS, Kind

PATIENCE_S = 600.0


@dataclass
class Result:
    """One run."""

    who: str
    nodes: int
    pods: int
    rate: float
    first_s: float
    all_s: float
    rss_mib: float
    start: dict[str, Any]


async def _create(plane: ControlPlane, kind: Kind, manifests: Iterable[dict[str, Any]], namespace: str = "") -> None:
    client = Client(Connection(find_access(str(plane.kubeconfig)), 64))
    free = asyncio.Semaphore(48)

    async def one(manifest: dict[str, Any]) -> None:
        async with free:
            await client.create(kind, manifest, namespace)

    await asyncio.gather(*(one(manifest) for manifest in manifests))
    await client.transport.close()


def fill(plane: ControlPlane, nodes: int, pods: int, scheduler: str, prefix: str = "p", running: bool = False) -> None:
    """Nodes of 32 cores and small pods; `running`: already bound, as after a long time."""
    if nodes:
        asyncio.run(_create(plane, NODES, (node_manifest(f"n{i}", "32", "256Gi") for i in range(nodes))))
    where = (lambda i: {"nodeName": f"n{i % 5000}"}) if running else (lambda _: {})
    made = (pod(f"{prefix}{i}", "100m", schedulerName=scheduler, **where(i)) for i in range(pods))
    asyncio.run(_create(plane, PODS, made, "default"))


def ours(plane: ControlPlane) -> tuple[list[str], int]:
    """Our command, and where it says how its start went."""
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "fairlead.cli.main", "kubernetes", "run", "--kubeconfig", str(plane.kubeconfig)]
    return [*command, "--listen", f"127.0.0.1:{port}", "--log-level", "warning"], port


def kube(plane: ControlPlane) -> tuple[list[str], int]:
    """kube-scheduler without limits of its client."""
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"kubeconfig": str(plane.kubeconfig), "qps": 5000, "burst": 5000},
    }
    file = plane.folder / "scheduler.yaml"
    file.write_text(yaml.safe_dump(config))
    return [str(binary("kube-scheduler")), f"--config={file}", "--secure-port=0"], 0


def measure(plane: ControlPlane, who: str, nodes: int, pods: int, prefix: str = "p") -> Result:
    """Start a scheduler, watch from outside how pods are bound, and stop it."""
    command, port = (ours if who == "fairlead" else kube)(plane)
    with (plane.folder / f"{who}.log").open("ab") as log:
        began = time.monotonic()
        process = subprocess.Popen(
            command, stdout=log, stderr=log, env={**os.environ, "KUBE_FEATURE_WatchListClient": "false"}
        )
        try:
            times, rss, start = asyncio.run(_watch(plane, process, pods, prefix, port))
        finally:
            process.terminate()
            process.wait(20)
    low, high = times[len(times) // 10], times[len(times) * 9 // 10 - 1]
    rate = len(times) * 0.8 / max(high - low, 1e-9)
    return Result(who, nodes, pods, rate, times[0] - began, times[-1] - began, rss, start)


async def _watch(
    plane: ControlPlane, process: subprocess.Popen[bytes], pods: int, prefix: str, port: int
) -> tuple[list[float], float, dict[str, Any]]:
    """When each pod was seen bound; the most memory; and what the scheduler says of its start."""
    client = Client(Connection(find_access(str(plane.kubeconfig)), 4))
    seen: dict[str, float] = {}
    most, end = 0.0, time.monotonic() + PATIENCE_S
    about = psutil.Process(process.pid)
    query = {"fieldSelector": "status.phase=Pending,spec.nodeName!=", "watch": "true", "resourceVersion": "0"}
    path = PODS.path("default")

    async def follow() -> None:
        from fairlead.kubernetes.client import Request

        async with client.transport.stream(Request("GET", path, query), 600.0) as lines:
            async for line in lines:
                at = line.find(b'"name":"')
                name = line[at + 8 : line.index(b'"', at + 8)].decode()
                if name.startswith(prefix):
                    seen.setdefault(name, time.monotonic())

    following = asyncio.create_task(follow())
    while len(seen) < pods and time.monotonic() < end:
        if process.poll() is not None:
            raise SystemExit(f"the scheduler ended: {(plane.folder / 'fairlead.log').read_text()[-2000:]}")
        most = max(most, about.memory_info().rss / 2**20)
        if following.done():
            following.result()
        await asyncio.sleep(0.1)
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)
    start = {}
    if port:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/info", timeout=30) as answer:
            start = json.load(answer)["start_ms"]
    await client.transport.close()
    if len(seen) < pods:
        raise SystemExit(f"only {len(seen)} of {pods} were bound within {PATIENCE_S:.0f} s")
    return sorted(seen.values()), most, start


def show(results: list[Result]) -> None:
    """A table."""
    print(f"{'scheduler':<15} {'nodes':>6} {'pods':>7} {'pods/s':>8} {'first s':>8} {'all s':>7} {'RSS MiB':>8}")
    for r in results:
        print(
            f"{r.who:<15} {r.nodes:>6} {r.pods:>7} {r.rate:>8.0f} {r.first_s:>8.2f} {r.all_s:>7.1f} {r.rss_mib:>8.0f}"
            + (f"  {json.dumps(r.start)}" if r.start else "")
        )
    sys.stdout.flush()


def run(who: str, nodes: int, pods: int) -> Result:
    """One scheduler on a fresh control plane."""
    name = "fairlead" if who == "fairlead" else "default-scheduler"
    with tempfile.TemporaryDirectory() as folder, ControlPlane(Path(folder), fast=True, kwok=False) as plane:
        fill(plane, nodes, pods, name)
        return measure(plane, who, nodes, pods)


def restart(nodes: int, running: int) -> Result:
    """A start on a cluster on which that much runs, to the first bind."""
    with tempfile.TemporaryDirectory() as folder, ControlPlane(Path(folder), fast=True, kwok=False) as plane:
        fill(plane, nodes, running, "fairlead", prefix="old", running=True)
        fill(plane, 0, 10, "fairlead", prefix="new")
        return measure(plane, "fairlead", nodes, 10, prefix="new")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--pods", type=int, default=3000)
    parser.add_argument("--large", action="store_true", help="5,000 nodes and 20,000 pods, and the restart there")
    parser.add_argument("--only", choices=["fairlead", "kube-scheduler", "restart"], help="one of them")
    given = parser.parse_args()
    nodes, pods = (5000, 20_000) if given.large else (given.nodes, given.pods)
    results = []
    if given.only in (None, "fairlead"):
        results.append(run("fairlead", nodes, pods))
        show(results)
    if given.only in (None, "kube-scheduler") and not (given.large and given.only is None):
        results.append(run("kube-scheduler", nodes, pods))
        show(results)
    if given.only == "restart" or (given.large and given.only is None):
        print(f"\nrestart with {nodes} nodes and {pods} running pods, to the first of 10 new ones:")
        show([restart(nodes, pods)])


if __name__ == "__main__":
    main()
