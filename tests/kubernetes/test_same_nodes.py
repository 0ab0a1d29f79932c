"""Where a pod could run, beside kube-scheduler: in random clusters on the real API server both name the same nodes.

`FAIRLEAD_TEST_CLUSTERS` says how many clusters of 25 pods each (13); `FAIRLEAD_TEST_FIRST` with which it begins.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from testbed.control_plane import ControlPlane
from testbed.kube_filters import KubeFilters
from testbed.load import client_of
from testbed.random_cluster import NAMESPACES as TEAMS
from testbed.random_cluster import VOLUMES as CLAIMED
from testbed.random_cluster import RandomCluster, claim_and_volume

from fairlead.config import load_text
from fairlead.kubernetes.client import Client
from fairlead.kubernetes.control_loop import WATCHED
from fairlead.kubernetes.driver import Driver
from fairlead.kubernetes.kinds import CLAIMS, NODES, PODS, VOLUMES, Kind
from fairlead.kubernetes.objects import Thing
from fairlead.kubernetes.queue_file import DEFAULT_QUEUES
from fairlead.kubernetes.reflector import Changed

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(300)]
COUNT, FIRST = int(os.environ.get("FAIRLEAD_TEST_CLUSTERS", "13")), int(os.environ.get("FAIRLEAD_TEST_FIRST", "0"))
CSI_NODES = Kind(Thing, "CSINode", "storage.k8s.io/v1", "csinodes", False)
RUNTIMES = Kind(Thing, "RuntimeClass", "node.k8s.io/v1", "runtimeclasses", False)
SPACES = Kind(Thing, "Namespace", "v1", "namespaces", False)
NOW = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}
Nodes = dict[str, list[str]]
"""By name of a pod."""


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    with ControlPlane(tmp_path_factory.mktemp("bare"), kwok=False) as plane:
        yield plane


async def furnish(client: Client) -> None:
    """What all clusters share: namespaces, a class with overhead, claims and volumes."""
    for name, team in TEAMS.items():
        if name != "default":
            await client.create(SPACES, {"metadata": {"name": name}})
        await client.patch(SPACES, name, {"metadata": {"labels": {"team": team}}})
    heavy = {"metadata": {"name": "heavy"}, "handler": "heavy", "overhead": {"podFixed": {"cpu": "300m"}}}
    await client.create(RUNTIMES, heavy)
    for name in CLAIMED:
        claim, volume = claim_and_volume(name)
        await client.create(VOLUMES, volume)
        await client.create(CLAIMS, claim, "default")
        for kind, what, space in ((CLAIMS, name, "default"), (VOLUMES, f"v-{name}", "")):
            await client.patch(kind, what, {"status": {"phase": "Bound"}}, space, sub="status")


async def put(client: Client, cluster: RandomCluster) -> None:
    for kind, things in ((NODES, cluster.nodes), (CSI_NODES, cluster.csi_nodes), (PODS, cluster.running)):
        await asyncio.gather(*(client.create(kind, t, t["metadata"].get("namespace", "")) for t in things))


async def clear(client: Client) -> None:
    for namespace in TEAMS:
        await client.send("DELETE", PODS.path(namespace), body=NOW)
    for kind in (NODES, CSI_NODES):
        await client.send("DELETE", kind.path(), body=NOW)


async def theirs(client: Client, filters: KubeFilters, probes: list[dict[str, Any]]) -> Nodes:
    """What kube-scheduler says of pods that are made now."""
    made = await asyncio.gather(*(client.create(PODS, p, p["metadata"]["namespace"]) for p in probes))
    waiting = {pod.metadata.uid: pod.metadata for pod in made}
    found: Nodes = {}
    for _ in range(300):
        for uid in [uid for uid in waiting if uid in filters.passed]:
            found[waiting.pop(uid).name] = sorted(filters.passed[uid])
        if not waiting:
            return found
        await asyncio.sleep(0.1)
        for uid, meta in list(waiting.items()):
            pod = await client.get(PODS, meta.name, meta.namespace)
            told = any(c.type == "PodScheduled" and c.status == "False" for c in pod.status.conditions or ())
            if told and uid not in filters.passed:
                found[waiting.pop(uid).name] = []
    raise AssertionError(f"kube-scheduler has not looked at {[m.name for m in waiting.values()]}")


async def ours(client: Client) -> Nodes:
    """What our books say, fed with the same objects."""
    driver = Driver(load_text(DEFAULT_QUEUES), scheduler_name="kube")
    for kind in (kind for kind in WATCHED if not kind.optional):
        for item in json.loads(await client.send("GET", kind.path()))["items"]:
            driver.take(Changed(kind, msgspec.convert(item, kind.type)), 0)
    partition = driver.scheduler.cluster.partitions["default"]
    found: Nodes = {}
    for known in driver.informer.pod_store.by_uid.values():
        if known.foreign or known.bound:
            continue
        app = partition.applications.get(known.application)
        ask = app.asks.get(known.name.uid) if app is not None else None
        nodes = partition.nodes.nodes.values() if ask is not None else ()
        found[known.name.name] = sorted(
            n.id for n in nodes if ask and n.schedulable and n.room_for(ask) and partition.nodes.suits(ask, n)
        )
    return found


async def compare(plane: ControlPlane, numbers: range) -> tuple[int, list[str]]:
    """How many pods were compared, and what differs."""
    client, compared, differences = client_of(plane, 16), 0, []
    try:
        await furnish(client)
        with KubeFilters(plane) as filters:
            for number in numbers:
                cluster = RandomCluster(number)
                await put(client, cluster)
                await asyncio.sleep(0.5)
                by_name = {p["metadata"]["name"]: p for p in cluster.probes}
                said, mine = await theirs(client, filters, cluster.probes), await ours(client)
                differ = [name for name in by_name if said[name] != mine.get(name)]
                # It may have looked before it knew all: those that differ are asked about once more.
                again = [{**by_name[n], "metadata": {**by_name[n]["metadata"], "name": f"again-{n}"}} for n in differ]
                said |= await theirs(client, filters, again)
                differences += [
                    f"cluster {number}: {name} may run on {said[f'again-{name}']}, ours says {mine.get(name)}"
                    for name in differ
                    if said[f"again-{name}"] != mine.get(name)
                ]
                compared += len(by_name)
                await clear(client)
    finally:
        await client.transport.close()
    return compared, differences


def test_the_same_nodes_pass(bare: ControlPlane, tmp_path: Path) -> None:
    """Of the filters there is none that both do not agree on."""
    del tmp_path
    compared, differences = asyncio.run(compare(bare, range(FIRST, FIRST + COUNT)))
    assert compared == 25 * COUNT
    assert not differences, "\n".join(differences)
