"""What pods prefer, beside kube-scheduler: in random clusters on the real API server both give the same points.

Compared are the points of preferred nodes, of image locality and of affinity between pods, those of running pods for a
newcomer included.
`FAIRLEAD_TEST_CLUSTERS` says how many clusters of 12 pods each (10); `FAIRLEAD_TEST_FIRST` with which it begins.
"""

from __future__ import annotations

import asyncio
import os

import pytest
from testbed.control_plane import ControlPlane
from testbed.kube_scores import KubeScores, Points
from testbed.load import client_of
from testbed.random_cluster import NAMESPACES as TEAMS
from testbed.random_cluster import Manifest
from testbed.random_wishes import OURS, RandomWishes
from testbed.same_nodes import NOW, bare, clear, create, fed, make_namespaces

from fairlead.core.books.preferences import OF_IMAGES, OF_NODES, OF_WORK, company, nodes_liked, scaled
from fairlead.kubernetes.client import Client
from fairlead.kubernetes.kinds import NODES, PODS

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(300)]
COUNT, FIRST = int(os.environ.get("FAIRLEAD_TEST_CLUSTERS", "10")), int(os.environ.get("FAIRLEAD_TEST_FIRST", "0"))
WEIGHTS = {"ImageLocality": OF_IMAGES, "InterPodAffinity": OF_WORK, "NodeAffinity": OF_NODES}
"""One point of a plugin may differ: kube-scheduler works with fractions, and cuts off 57.99."""
__all__ = ["bare"]


async def theirs(client: Client, scores: KubeScores, probe: Manifest, name: str) -> Points:
    """kube-scheduler's points for a pod that is made for that and is gone afterwards."""
    (pod,) = await create(client, PODS, [{**probe, "metadata": {**probe["metadata"], "name": name}}])
    for _ in range(400):
        await asyncio.sleep(0.02)
        if pod.metadata.uid in scores.refused:
            break
        now = await client.get(PODS, name, pod.metadata.namespace)
        if any(c.type == "PodScheduled" and c.status == "False" for c in now.status.conditions or ()):
            break
    else:
        raise AssertionError(f"kube-scheduler has not looked at {name}")
    await client.send("DELETE", PODS.path(pod.metadata.namespace, name), body=NOW)
    await asyncio.sleep(0.1)
    return scores.points(f"{pod.metadata.namespace}/{name}")


def with_scheduler(pod: Manifest, name: str) -> Manifest:
    return {**pod, "spec": {**pod["spec"], "schedulerName": name}}


async def ours(client: Client) -> dict[str, Points]:
    """By name of a pod that waits: our points."""
    driver = await fed(client, OURS, images=True)
    partition = driver.scheduler.cluster.partitions["default"]
    table, found = partition.nodes, {}
    table.columns.sync()
    rows = table.columns.rows
    for known in driver.informer.pod_store.by_uid.values():
        app = partition.applications.get(known.application)
        ask = app.asks.get(known.name.uid) if app is not None and not known.foreign and not known.bound else None
        if ask is None or ask.shape is None:
            continue
        mask = table.columns.has_room(table.columns.open & table.terrain.allowed(ask.shape), ask.items)
        images = table.images.points(ask.spec.images)
        given = {
            "ImageLocality": images * OF_IMAGES if images is not None else None,
            "InterPodAffinity": OF_WORK * scaled(company(table, ask.where, ask.spec.labels), mask),
            "NodeAffinity": OF_NODES * nodes_liked(table, ask.where, mask),
        }
        found[known.name.name] = {
            plugin: {n.id: 0 if points is None else int(points[n.row]) for n in rows if mask[n.row]}
            for plugin, points in given.items()
        }
    return found


def differences(said: Points, mine: Points) -> list[str]:
    """Where they differ, beyond what is the same for all nodes."""
    nodes = said.get("ImageLocality", {}).keys()
    found = []
    if len(nodes) > 1 and nodes != mine["ImageLocality"].keys():
        found.append(f"nodes {sorted(nodes)}, ours {sorted(mine['ImageLocality'])}")
    for plugin, weight in WEIGHTS.items() if nodes and not found else ():
        raw, own = {n: said.get(plugin, {}).get(n, 0) for n in nodes}, mine[plugin]
        # Points that are the same for every node choose nothing, and are none here.
        alike = len(set(raw.values())) == len(set(own.values())) == 1
        if not alike and any(abs(raw[n] - own[n]) > weight for n in nodes):
            found.append(f"{plugin} {raw}, ours {own}")
    return found


async def compare(plane: ControlPlane, numbers: range) -> tuple[int, int, list[str]]:
    """How many pods were compared, for how many something was preferred, and what differs."""
    client, compared, chosen, found = client_of(plane, 16), 0, 0, []
    try:
        await make_namespaces(client, TEAMS)
        with KubeScores(plane) as scores:
            for number in numbers:
                cluster = RandomWishes(number)
                await create(client, NODES, cluster.nodes)
                await create(client, PODS, cluster.running)
                await asyncio.sleep(0.7)
                told = {
                    name: await theirs(client, scores, pod, f"{name}-{number}") for name, pod in cluster.probes.items()
                }
                await create(client, PODS, [with_scheduler(pod, OURS) for pod in cluster.probes.values()])
                mine = await ours(client)
                for name, probe in cluster.probes.items():
                    if differences(told[name], mine[name]):
                        # It may have looked before it knew all: it is asked once more.
                        told[name] = await theirs(client, scores, probe, f"{name}-{number}-again")
                    found += [f"cluster {number}: {name}: {each}" for each in differences(told[name], mine[name])]
                    compared += bool(told[name])
                    chosen += any(len(set(of.values())) > 1 for of in mine[name].values())
                await clear(client, NODES, namespaces=TEAMS)
    finally:
        await client.transport.close()
    return compared, chosen, found


def test_the_same_points(bare: ControlPlane) -> None:
    """For nodes, for images, and for the company of other pods."""
    compared, chosen, found = asyncio.run(compare(bare, range(FIRST, FIRST + COUNT)))
    print(f"{compared} pods were compared, {chosen} of them with points that differ by node")
    assert not found, "\n".join(found)
    assert compared > 5 * COUNT
    assert chosen > 4 * COUNT
