"""Where pods could run on a real API server: as kube-scheduler says, and as our books say that are fed with the same.

Decides how both are asked. Knows nothing of what makes a cluster.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
import pytest
from testbed.control_plane import ControlPlane
from testbed.kube_filters import KubeFilters

from fairlead.config import load_text
from fairlead.kubernetes.client import Client
from fairlead.kubernetes.control_loop import WATCHED
from fairlead.kubernetes.devices import device_binder
from fairlead.kubernetes.driver import Driver
from fairlead.kubernetes.kinds import PODS, Kind
from fairlead.kubernetes.objects import Thing
from fairlead.kubernetes.queue_file import DEFAULT_QUEUES
from fairlead.kubernetes.reflector import Changed

NOW = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}
SPACES = Kind(Thing, "Namespace", "v1", "namespaces", False)
Nodes = dict[str, list[str]]
"""By name of a pod."""


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """An API server without anything that runs pods."""
    with ControlPlane(tmp_path_factory.mktemp("bare"), kwok=False) as plane:
        yield plane


async def make_namespaces(client: Client, teams: dict[str, str]) -> None:
    """Namespaces with their label `team`; `default` is there."""
    for name, team in teams.items():
        if name != "default":
            await client.create(SPACES, {"metadata": {"name": name}})
        await client.patch(SPACES, name, {"metadata": {"labels": {"team": team}}})


async def create(client: Client, kind: Kind, things: Iterable[dict[str, Any]]) -> list[Any]:
    """Make objects, all at once; as the server has them then."""
    return await asyncio.gather(*(client.create(kind, t, t["metadata"].get("namespace", "")) for t in things))


async def clear(client: Client, *kinds: Kind, namespaces: Iterable[str] = ("default",)) -> None:
    """Delete all pods, and all objects of these kinds."""
    for namespace in namespaces:
        for kind in (PODS, *(kind for kind in kinds if kind.namespaced)):
            await client.send("DELETE", kind.path(namespace), body=NOW)
    for kind in (kind for kind in kinds if not kind.namespaced):
        await client.send("DELETE", kind.path(), body=NOW)


async def theirs(client: Client, filters: KubeFilters, probes: list[dict[str, Any]]) -> Nodes:
    """What kube-scheduler says of pods that are made now."""
    waiting = {pod.metadata.uid: pod.metadata for pod in await create(client, PODS, probes)}
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


async def fed(client: Client, name: str = "kube", *, images: bool = False) -> Driver:
    """A driver of the scheduler of this name that was told of all that the server has, and has placed nothing."""
    driver = Driver(load_text(DEFAULT_QUEUES), scheduler_name=name, images=images)
    served = await client.served()
    for kind in (k for k in WATCHED if not k.optional or (k in device_binder.WATCHED and k.group_version in served)):
        for item in json.loads(await client.send("GET", kind.path()))["items"]:
            driver.take(Changed(kind, msgspec.convert(item, kind.type_with(images))), 0)
    for event in driver.informer.devices.settle(0):
        driver.handle(event, 0)
    return driver


async def ours(client: Client) -> Nodes:
    """What our books say, fed with the same objects; pods that do not enter them are missing."""
    driver = await fed(client)
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
