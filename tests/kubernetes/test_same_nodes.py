"""Where a pod could run, beside kube-scheduler: in random clusters on the real API server both name the same nodes.

`FAIRLEAD_TEST_CLUSTERS` says how many clusters of 25 pods each (13); `FAIRLEAD_TEST_FIRST` with which it begins.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from testbed.control_plane import ControlPlane
from testbed.kube_filters import KubeFilters
from testbed.load import client_of
from testbed.random_cluster import NAMESPACES as TEAMS
from testbed.random_cluster import VOLUMES as CLAIMED
from testbed.random_cluster import RandomCluster, claim_and_volume
from testbed.same_nodes import bare, clear, create, make_namespaces, ours, theirs

from fairlead.kubernetes.client import Client
from fairlead.kubernetes.kinds import CLAIMS, NODES, PODS, VOLUMES, Kind
from fairlead.kubernetes.objects import Thing

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(300)]
COUNT, FIRST = int(os.environ.get("FAIRLEAD_TEST_CLUSTERS", "13")), int(os.environ.get("FAIRLEAD_TEST_FIRST", "0"))
CSI_NODES = Kind(Thing, "CSINode", "storage.k8s.io/v1", "csinodes", False)
RUNTIMES = Kind(Thing, "RuntimeClass", "node.k8s.io/v1", "runtimeclasses", False)
__all__ = ["bare"]


async def furnish(client: Client) -> None:
    """What all clusters share: namespaces, a class with overhead, claims and volumes."""
    await make_namespaces(client, TEAMS)
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
        await create(client, kind, things)


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
                await clear(client, NODES, CSI_NODES, namespaces=TEAMS)
    finally:
        await client.transport.close()
    return compared, differences


def test_the_same_nodes_pass(bare: ControlPlane, tmp_path: Path) -> None:
    """Of the filters there is none that both do not agree on."""
    del tmp_path
    compared, differences = asyncio.run(compare(bare, range(FIRST, FIRST + COUNT)))
    assert compared == 25 * COUNT
    assert not differences, "\n".join(differences)
