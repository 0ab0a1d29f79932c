"""Devices on a real API server, with Kubernetes' own controller of claims; and beside kube-scheduler.

`FAIRLEAD_TEST_DEVICES` says how many random clusters of 15 pods each are compared (6).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from typing import Any

import pytest
from testbed.binaries import MINOR, VERSION
from testbed.cluster import Cluster, Manifest, pod
from testbed.control_plane import ControlPlane
from testbed.devices import DRIVER, claim, claimed, device, device_class, device_slice
from testbed.kube_filters import KubeFilters
from testbed.load import client_of
from testbed.random_devices import CLASSES, RandomDevices
from testbed.same_nodes import bare, clear, create, ours, theirs

from fairlead.kubernetes.client import Client
from fairlead.kubernetes.kinds import DEVICE_CLASSES, NODES, RESOURCE_CLAIMS, RESOURCE_SLICES

pytestmark = [
    pytest.mark.kubernetes, pytest.mark.timeout(240),
    pytest.mark.skipif(VERSION == "1.33", reason="resource.k8s.io/v1 is served from 1.34 on"),
]  # fmt: skip
COUNT = int(os.environ.get("FAIRLEAD_TEST_DEVICES", "6"))
__all__ = ["bare"]


@pytest.fixture
def claims(cluster: Cluster) -> Iterator[Cluster]:
    """A cluster in which pods get their claims."""
    cluster.plane.start_job_controller()
    try:
        yield cluster
    finally:
        cluster.plane.running.pop("job-controller").stop()
        cluster.end()
        cluster.plane.kubectl("delete", "pods", "--all", "--force", "--grace-period=0")
        for each in cluster.plane.get("resourceclaims")["items"]:
            off = '{"metadata": {"finalizers": null}}'
            cluster.plane.kubectl("patch", "resourceclaim", each["metadata"]["name"], "--type=merge", "-p", off)
        for what in ("resourceclaims", "resourceclaimtemplates", "resourceslices", "deviceclasses"):
            cluster.plane.kubectl("delete", what, "--all", "--wait=false")


def template(name: str) -> Manifest:
    of = claim(name)
    return {**of, "kind": "ResourceClaimTemplate", "spec": {"spec": of["spec"]}}


def allocation(cluster: Cluster, name: str) -> Any:
    return cluster.plane.get("resourceclaim", name).get("status", {}).get("allocation")


def test_devices_by_template_and_by_a_shared_claim(claims: Cluster) -> None:
    """Each pod of a template gets a device of its own; what finds none waits until one is given back."""
    claims.nodes(2, cpu="8")
    told = [{"opaque": {"driver": DRIVER, "parameters": {"mode": mode}}} for mode in ("class", "claim")]
    of_class = device_class()
    of_class["spec"]["config"] = told[:1]
    claims.apply(
        of_class, template("gpu"), claim("shared", config=told[1:]),
        device_slice("n0", device("d0")), device_slice("n1", device("d0"), device("d1")),
    )  # fmt: skip
    running = claims.schedule()
    of_template = {f"t{i}": pod(f"t{i}", **claimed(template="gpu")) for i in range(2)}
    claims.apply(*of_template.values(), pod("a", **claimed("shared")), pod("b", **claimed("shared")))
    placed = claims.until_placed("t0", "t1", "a", "b")
    assert placed["a"] == placed["b"]
    assert sorted([placed["t0"], placed["t1"], placed["a"]]) == ["n0", "n1", "n1"]
    users = claims.plane.get("resourceclaim", "shared")["status"]["reservedFor"]
    assert sorted(user["name"] for user in users) == ["a", "b"]
    given = allocation(claims, "shared")["devices"]
    assert given["results"][0]["pool"] == placed["a"]
    passed_on = [(each["source"], each["opaque"]["parameters"]["mode"]) for each in given["config"]]
    assert passed_on == [("FromClass", "class"), ("FromClaim", "claim")]
    claims.apply(pod("late", **claimed(template="gpu")))
    said = claims.until_told("late", "without the devices that it claims")
    assert said in claims.fairlead(running, "why", "pod/late").replace("\n", " ")
    claims.plane.kubectl("delete", "pod", "t0", "--grace-period=0", "--force")
    assert claims.until_placed("late")["late"] == placed["t0"]
    claims.apply(pod("wrong", **claimed("missing")))
    claims.until_told("wrong", "its resource claim default/missing is not there")


async def put(client: Client, cluster: RandomDevices) -> None:
    await create(client, DEVICE_CLASSES, CLASSES)
    await create(client, NODES, cluster.nodes)
    await create(client, RESOURCE_SLICES, cluster.slices)
    await create(client, RESOURCE_CLAIMS, cluster.claims)
    for each in cluster.claims:
        if "status" in each:
            name = each["metadata"]["name"]
            await client.patch(RESOURCE_CLAIMS, name, {"status": each["status"]}, "default", sub="status")


def test_the_same_nodes_have_devices(bare: ControlPlane) -> None:
    """Beside kube-scheduler, in random clusters."""

    async def compare() -> list[str]:
        client, differences = client_of(bare, 16), []
        try:
            with KubeFilters(bare) as filters:
                for number in range(COUNT):
                    cluster = RandomDevices(number, updates=MINOR >= 36)
                    await put(client, cluster)
                    await asyncio.sleep(0.5)
                    said, mine = await theirs(client, filters, cluster.probes), await ours(client)
                    assert any(said.values())
                    assert not all(said.values())
                    differences += [
                        f"cluster {number}: {name} may run on {nodes}, ours says {mine.get(name)}"
                        for name, nodes in said.items()
                        if nodes != (mine.get(name) or [])
                    ]
                    await clear(client, NODES, RESOURCE_SLICES, RESOURCE_CLAIMS, DEVICE_CLASSES)
        finally:
            await client.transport.close()
        return differences

    differences = asyncio.run(compare())
    assert not differences, "\n".join(differences)
