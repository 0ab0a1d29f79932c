"""Faults on a real API server: our process killed, the server and its store restarted, two schedulers and a lost lease.

Each run is drawn from its seed. What must hold at the end and all the way: no pod bound twice, no node over-full, none
forgotten, nobody evicted without somebody placed for it.
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections import defaultdict
from typing import Any

import pytest
from testbed.cluster import Cluster, pod, priority_class
from testbed.control_plane import ControlPlane
from testbed.watching import Listener

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(300)]

CPU = 4
NODES = 3
WITHIN_S = 90.0
SEEDS = int(os.environ.get("FAIRLEAD_BED_SEEDS", "4"))
"""20 and more by hand: `make test-kubernetes FAIRLEAD_BED_SEEDS=20`."""


class Witness:
    """Watches all pods from outside and notes what must never happen."""

    def __init__(self, plane: ControlPlane) -> None:
        self.bound: dict[str, str] = {}
        self.here: dict[str, dict[str, Any]] = {}
        self.wrong: list[str] = []
        self.evicted: dict[str, str] = {}
        # What goes while the server is away is not told: it begins with an empty cluster.
        self._listener = Listener(plane, self._take, self.here.clear)

    def stop(self) -> None:
        self._listener.stop()
        assert self.bound, "the witness has seen no pod with a node"

    def _take(self, kind: str, item: dict[str, Any]) -> None:
        meta, node = item["metadata"], item["spec"].get("nodeName", "")
        uid = meta["uid"]
        if node and self.bound.setdefault(uid, node) != node:
            self.wrong.append(f"{meta['name']} was bound to {self.bound[uid]} and then to {node}")
        conditions = item.get("status", {}).get("conditions", ())
        if any(c["type"] == "DisruptionTarget" for c in conditions):
            self.evicted[uid] = meta["name"]
        if kind == "DELETED":
            self.here.pop(uid, None)
        else:
            self.here[uid] = {"name": meta["name"], "node": node, "cpu": _cpu(item)}
        used: dict[str, int] = defaultdict(int)
        for known in self.here.values():
            used[known["node"]] += known["cpu"]
        self.wrong += [f"{n} holds {cpu} of {CPU}" for n, cpu in used.items() if n and cpu > CPU]


def _cpu(item: dict[str, Any]) -> int:
    return int(item["spec"]["containers"][0]["resources"]["requests"]["cpu"])


def _stir(cluster: Cluster, chance: random.Random, schedulers: list[Any], options: tuple[str, ...]) -> None:
    """One fault."""
    plane = cluster.plane
    what = chance.choice(["kill", "kill", "kill", "server", "store", "lease"])
    if what == "server":
        plane.kill("kube-apiserver")
        time.sleep(chance.uniform(0.0, 1.0))
        plane.start_server()
    elif what == "store":
        plane.kill("etcd")
        time.sleep(chance.uniform(0.0, 1.0))
        plane.start_etcd()
    elif what == "lease" and len(schedulers) > 1:
        lease = {"spec": {"holderIdentity": "", "leaseDurationSeconds": 1}}
        plane.kubectl("patch", "lease", "fairlead", "--type=merge", "-p", json.dumps(lease), check=False)
    else:
        victim = chance.choice(schedulers)
        victim.process.kill()
        victim.process.wait()
    # What a Deployment does.
    for number, running in enumerate(schedulers):
        if running.process.poll() is not None:
            schedulers[number] = cluster.schedule(None, *options, ready=False)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_no_fault_breaks_a_promise(cluster: Cluster, seed: int) -> None:
    """Pods come in waves of rising priority while things break; in the end every promise was kept."""
    chance = random.Random(seed)
    cluster.nodes(NODES, cpu=str(CPU))
    cluster.apply(priority_class("high", 1000), priority_class("low", 1))
    options = ("--leader-elect",) if chance.random() < 0.5 else ()
    witness = Witness(cluster.plane)
    schedulers = [cluster.schedule(None, *options, ready=False) for _ in range(2 if options else 1)]
    try:
        cluster.apply(*(pod(f"low-{n}", str(chance.choice([1, 1, 2])), priority="low") for n in range(10)))
        time.sleep(chance.uniform(0.5, 3.0))
        _stir(cluster, chance, schedulers, options)
        wave = [pod(f"high-{n}", str(chance.choice([1, 2, 3])), priority="high") for n in range(3)]
        cluster.apply(*wave)
        for _ in range(chance.randrange(1, 3)):
            time.sleep(chance.uniform(0.2, 3.0))
            _stir(cluster, chance, schedulers, options)
        names = {item["metadata"]["name"] for item in wave}
        cluster.until(lambda: names <= set(cluster.places()), "a node for each of high priority", WITHIN_S)
        cluster.until(lambda: not _fits(cluster), "a node for everything that fits", WITHIN_S)
        time.sleep(1.0)
        assert not witness.wrong, witness.wrong[:5]
        _nobody_in_vain(cluster, witness, names)
    finally:
        witness.stop()
        for running in schedulers:
            if running.process.poll() is None:
                running.process.send_signal(signal.SIGKILL)


def _fits(cluster: Cluster) -> set[str]:
    """Pods that wait although a node has room for them: they would be forgotten."""
    pods = cluster.pods()
    free = {f"n{number}": CPU for number in range(NODES)}
    for item in pods.values():
        if item["spec"].get("nodeName"):
            free[item["spec"]["nodeName"]] -= _cpu(item)
    return {
        name
        for name, item in pods.items()
        if not item["spec"].get("nodeName")
        and "deletionTimestamp" not in item["metadata"]
        and _cpu(item) <= max(free.values())
    }


def _nobody_in_vain(cluster: Cluster, witness: Witness, names: set[str]) -> None:
    """Only low priorities were evicted, and without one of them those of high priority would not all have room."""
    assert all(name.startswith("low") for name in witness.evicted.values())
    highs = sum(_cpu(cluster.pods()[name]) for name in names)
    assert len(witness.evicted) <= highs, f"{sorted(witness.evicted.values())} were evicted for {highs} cores"


def test_the_log_of_a_killed_process_says_nothing_wrong(cluster: Cluster) -> None:
    """Killed in the middle of many binds and started again: each of them is bound once, and no node is over-full."""
    cluster.nodes(10, cpu=str(CPU))
    cluster.apply(*(pod(f"p-{n}", "1") for n in range(60)))
    witness = Witness(cluster.plane)
    try:
        for _ in range(4):
            running = cluster.schedule(None, ready=False)
            time.sleep(1.3)
            running.end(signal.SIGKILL)
        cluster.schedule()
        cluster.until(lambda: len(cluster.places()) == 40, "40 places", 60)
        assert not witness.wrong, witness.wrong[:5]
    finally:
        witness.stop()
