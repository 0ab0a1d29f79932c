"""Throughput on a real API server on this machine, ours beside kube-scheduler, and a restart on a full cluster.

Decides what is measured and how it is shown. Each run has a control plane of its own, and sees binds from outside, by a
watch. `make bench-kubernetes` takes 500 nodes and 3,000 pods, twice each in alternation; with `--large` 5,000 nodes and
20,000 pods, once each, and the restart there.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import yaml
from free_ports import free_port
from testbed.asking import Asked, ask
from testbed.binaries import BedError, binary
from testbed.control_plane import ControlPlane
from testbed.load import BindWatcher, fill

PATIENCE_S = 600.0
OURS, KUBE = "fairlead", "kube-scheduler"
NAMES = {OURS: "fairlead", KUBE: "default-scheduler"}
"""Under which name pods ask for each."""
IDLE_S = 10.0
"""After the last bind its processor time is measured for so long, with nothing to do."""
SETTLE_S = 3.0
"""After filling, so that the API server has done what it does afterwards."""


@dataclass
class Result:
    """One run. Times in seconds since the process was started."""

    who: str
    nodes: int
    pods: int
    rate: float
    """Binds a second from the first to the last."""
    first_s: float
    all_s: float
    rss_mib: float
    cpu_s: float
    idle: float = 0.0
    """Processor time a second with nothing to do, in per cent of one core."""
    start: dict[str, Any] = field(default_factory=dict)
    """What our scheduler says of its start, in milliseconds."""
    asked: list[Asked] = field(default_factory=list)


def ours(plane: ControlPlane) -> tuple[list[str], int]:
    """Our command, and where it says how its start went."""
    port = free_port()
    command = [sys.executable, "-m", "fairlead.cli.main", "kubernetes", "run", "--kubeconfig", str(plane.kubeconfig)]
    return [*command, "--listen", f"127.0.0.1:{port}", "--log-level", "warning"], port


def kube(plane: ControlPlane) -> tuple[list[str], int]:
    """kube-scheduler without limits of its client (the standard is 50 requests a second)."""
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"kubeconfig": str(plane.kubeconfig), "qps": 10_000, "burst": 10_000},
    }
    file = plane.folder / "scheduler.yaml"
    file.write_text(yaml.safe_dump(config))
    return [str(binary(KUBE)), f"--config={file}", "--secure-port=0", "--authentication-skip-lookup"], 0


class Run:
    """One scheduler at work on a cluster that is there, watched from outside."""

    def __init__(self, plane: ControlPlane, who: str, pods: int, prefix: str, about: tuple[str, str] | None) -> None:
        self.plane, self.who, self.pods, self.prefix, self.about = plane, who, pods, prefix, about
        self.log = plane.folder / f"{who}.log"
        self.most_rss = 0.0
        self.cpu_s = 0.0
        self.idle = 0.0
        self.began = 0.0
        self.start: dict[str, Any] = {}
        self.asked: list[Asked] = []

    async def measure(self) -> list[float]:
        """Start it, wait until all pods are bound, stop it; when each was, in seconds since its start."""
        watcher = BindWatcher(self.plane, self.prefix)
        await watcher.start()
        command, port = (ours if self.who == OURS else kube)(self.plane)
        with self.log.open("ab") as log:
            self.began = time.monotonic()
            process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            await self._until_all(watcher, process)
            await asyncio.sleep(SETTLE_S)
            before = _used(process.pid)
            await asyncio.sleep(IDLE_S)
            self.idle = 100 * (_used(process.pid) - before) / IDLE_S
            if port:
                self.start = await asyncio.to_thread(_start_of, port)
                if self.about is not None:
                    self.asked = await ask(f"http://127.0.0.1:{port}", *self.about)
        finally:
            _stop(process)
            await watcher.stop()
        return sorted(at - self.began for at in watcher.seen.values())

    async def _until_all(self, watcher: BindWatcher, process: subprocess.Popen[bytes]) -> None:
        about, end = psutil.Process(process.pid), time.monotonic() + PATIENCE_S
        while len(watcher.seen) < self.pods:
            watcher.check()
            if process.poll() is not None:
                raise SystemExit(f"{self.who} ended with {process.returncode}:\n{self._tail()}")
            if time.monotonic() > end:
                there = f"{len(watcher.seen)} of {self.pods}"
                raise SystemExit(f"{self.who}: only {there} were bound within {PATIENCE_S:.0f} s:\n{self._tail()}")
            self.most_rss = max(self.most_rss, about.memory_info().rss / 2**20)
            self.cpu_s = _used(process.pid)
            await asyncio.sleep(0.1)

    def _tail(self) -> str:
        return self.log.read_text(errors="replace")[-2000:]


def _used(pid: int) -> float:
    """Processor time of a process so far, in seconds."""
    used = psutil.Process(pid).cpu_times()
    return float(used.user + used.system)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(50)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _start_of(port: int) -> dict[str, Any]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/info", timeout=50) as answer:
        return dict(json.load(answer)["cluster"]["start_ms"])


def measured(
    plane: ControlPlane, who: str, nodes: int, pods: int, prefix: str = "p", about: tuple[str, str] | None = None
) -> Result:
    """One run on a cluster that is there; with questions about a pod and a node, if given."""
    time.sleep(SETTLE_S)
    run = Run(plane, who, pods, prefix, about)
    times = asyncio.run(run.measure())
    rate = (len(times) - 1) / max(times[-1] - times[0], 1e-9)
    return Result(who, nodes, pods, rate, times[0], times[-1], run.most_rss, run.cpu_s, run.idle, run.start, run.asked)


def throughput(who: str, nodes: int, pods: int) -> Result:
    """One scheduler on a fresh control plane on which everything waits."""
    with tempfile.TemporaryDirectory() as folder, ControlPlane(Path(folder), fast=True, kwok=False) as plane:
        fill(plane, nodes, pods, NAMES[who])
        return measured(plane, who, nodes, pods)


def restart(who: str, nodes: int, running: int) -> Result:
    """A start on a cluster on which that much runs, to the last of ten new pods; then questions."""
    with tempfile.TemporaryDirectory() as folder, ControlPlane(Path(folder), fast=True, kwok=False) as plane:
        fill(plane, nodes, running, NAMES[who], prefix="old", on=nodes)
        fill(plane, 0, 10, NAMES[who], prefix="new")
        fill(plane, 0, 1, NAMES[who], prefix="huge", cpu="100")
        return measured(plane, who, nodes, 10, "new", ("default/huge0", "n0"))


# -- what is shown ------------------------------------------------------------------------------------------------

HEAD = (
    f"{'scheduler':<15} {'nodes':>6} {'pods':>7} {'binds/s':>8} {'first s':>8} {'all s':>7} {'RSS MiB':>8} {'CPU s':>7}"
    f" {'idle %':>7}"
)


def line_of(r: Result) -> str:
    """One run as a row."""
    return (
        f"{r.who:<15} {r.nodes:>6} {r.pods:>7} {r.rate:>8.0f} {r.first_s:>8.2f} {r.all_s:>7.1f} {r.rss_mib:>8.0f}"
        f" {r.cpu_s:>7.1f} {r.idle:>7.1f}"
    )


def comparison(results: Sequence[Result]) -> str:
    """Binds a second of both, over all their runs."""
    rates = {who: [r.rate for r in results if r.who == who] for who in (OURS, KUBE)}
    if not all(rates.values()):
        return ""
    means = {who: sum(of) / len(of) for who, of in rates.items()}
    worst, best = min(rates[OURS]), max(rates[KUBE])
    return (
        f"fairlead binds {means[OURS] / means[KUBE]:.2f} times as many pods a second as kube-scheduler"
        f" (its slowest run against the other's fastest: {worst / best:.2f})"
    )


def parts(r: Result) -> str:
    """A start by its parts, each from the process's start on."""
    start = r.start
    before = r.first_s * 1000 - (start.get("first_bound") or 0)
    rows = [("the process (imports, connections)", before)]
    rows += [(f"  list {kind}", before + at) for kind, at in sorted(start["listed"].items(), key=lambda each: each[1])]
    rows += [("rebuilt", before + start["rebuilt"]), ("first decision", before + (start.get("first_decided") or 0))]
    rows += [("first bind (seen)", r.first_s * 1000), ("last of the new", r.all_s * 1000)]
    return "\n".join(f"  {what:<36} after {at / 1000:>6.2f} s" for what, at in rows)


def show_runs(who: Sequence[str], nodes: int, pods: int, rounds: int) -> None:
    """Throughput, each in turn."""
    print(HEAD, flush=True)
    results = []
    for _ in range(rounds):
        for each in who:
            results.append(throughput(each, nodes, pods))
            print(line_of(results[-1]), flush=True)
    told = comparison(results)
    if told:
        print(told, flush=True)


def show_restart(who: Sequence[str], nodes: int, pods: int) -> None:
    """A restart, ours by its parts."""
    print(f"\na start with {nodes} nodes and {pods} running pods, to 10 new ones:\n{HEAD}", flush=True)
    for each in who:
        found = restart(each, nodes, pods)
        print(line_of(found), flush=True)
        if found.start:
            print(parts(found), flush=True)
        for one in found.asked:
            size = f"{one.size / 1024:.0f} KiB" if one.size else ""
            print(f"  {one.what:<36} {one.took_ms:>7.0f} ms {size:>10}; longest standstill {one.pause_ms:.0f} ms")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, help="instead of 500 (5,000)")
    parser.add_argument("--pods", type=int, help="instead of 3,000 (20,000)")
    parser.add_argument("--rounds", type=int, help="runs of each scheduler, in alternation; 2 (1 if large)")
    parser.add_argument("--large", action="store_true", help="5,000 nodes and 20,000 pods, and the restart there")
    parser.add_argument("--only", choices=[OURS, KUBE], help="one of the schedulers")
    parser.add_argument("--restart", action="store_true", help="the restart alone")
    given = parser.parse_args()
    usual = (5_000, 20_000, 1) if given.large or given.restart else (500, 3_000, 2)
    nodes, pods, rounds = (a or b for a, b in zip((given.nodes, given.pods, given.rounds), usual, strict=True))
    who = [given.only] if given.only else [KUBE, OURS]
    # Ctrl-C and a kill end what was started, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        if not given.restart:
            show_runs(who, nodes, pods, rounds)
        if given.large or given.restart:
            show_restart(who, nodes, pods)
    except BedError as missing:
        raise SystemExit(f"the test bed cannot be made: {missing}") from None


if __name__ == "__main__":
    main()
