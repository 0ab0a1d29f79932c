"""Random devices: classes, slices, claims that have devices, and pods with claims to be placed, from one number.

Decides what the manifests say; the same number gives the same ones. Never speaks to a server.
"""

from __future__ import annotations

import random
from typing import Any

from testbed.devices import DRIVER, Manifest, claim, claimed, device, device_class, device_slice, request

MINE = f'device.attributes["{DRIVER}"]'
SELECTORS = (
    f'{MINE}.model == "big"',
    f"{MINE}.even",
    f'device.capacity["{DRIVER}"].memory.compareTo(quantity("20Gi")) >= 0',
    f'cel.bind(mine, {MINE}, mine.even || mine.model.startsWith("s"))',
    f'"model" in {MINE} && has({MINE}.even)',
)
CLASSES = (device_class("gpu"), device_class("big", f'device.driver == "{DRIVER}" && {MINE}.model == "big"'))
ZONE = "zone"


class RandomDevices:
    """One cluster of them."""

    def __init__(self, number: int, nodes: int = 5, probes: int = 15, *, updates: bool = True) -> None:
        """`updates`: some pools are being updated; kube-scheduler has our rule for these from 1.36 on."""
        self._chance = random.Random(number)
        self._updates = self._is(0.5) and updates
        """Some pool is incomplete; then nothing asks for all of a node's devices, of which kube-scheduler would make
        an error for every node."""
        names = [f"n{i}" for i in range(nodes)]
        self.nodes = [self._node(name) for name in names]
        self.slices = [self._slice(name) for name in names if self._is(0.9)]
        term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["a"]}]}
        where = {"nodeSelector": {"nodeSelectorTerms": [term]}}
        self.slices.append(device_slice("zone-a", *self._devices("z", 2), **where))
        if self._is(0.5):
            self.slices.append(device_slice("network", *self._devices("w", 1), allNodes=True))
        self.claims = [self._had(f"had{i}") for i in range(3)]
        self.probes: list[Manifest] = []
        for number in range(probes):
            self._probe(f"p{number}")

    def _is(self, chance: float) -> bool:
        return self._chance.random() < chance

    def _of(self, values: Any) -> Any:
        return self._chance.choice(list(values))

    def _node(self, name: str) -> Manifest:
        room = {"cpu": "8", "memory": "8Gi", "pods": "110"}
        labels = {"kubernetes.io/hostname": name, ZONE: self._of("ab")}
        return {"metadata": {"name": name, "labels": labels}, "status": {"allocatable": room, "capacity": room}}

    def _devices(self, prefix: str, most: int) -> list[Manifest]:
        count = self._chance.randint(0, most)
        return [device(f"{prefix}{i}", self._of(["big", "small"]), self._of(["10Gi", "40Gi"])) for i in range(count)]

    def _slice(self, node: str) -> Manifest:
        made = device_slice(node, *self._devices("d", 4))
        if self._updates and self._is(0.3):
            made["spec"]["pool"]["resourceSliceCount"] = 2
        return made

    def _had(self, name: str) -> Manifest:
        """A claim that has a device, and two users."""
        with_some = [s for s in self.slices if s["spec"]["devices"]]
        users = [{"resource": "pods", "name": f"{name}-{i}", "uid": f"{name}-{i}"} for i in range(2)]
        made = claim(name)
        if with_some:
            spec = self._of(with_some)["spec"]
            given = {"driver": DRIVER, "pool": spec["pool"]["name"], "device": self._of(spec["devices"])["name"]}
            allocation: Manifest = {"devices": {"results": [{"request": "gpu", **given}]}}
            if "nodeName" in spec:
                fields = [{"key": "metadata.name", "operator": "In", "values": [spec["nodeName"]]}]
                allocation["nodeSelector"] = {"nodeSelectorTerms": [{"matchFields": fields}]}
            made["status"] = {"allocation": allocation, "reservedFor": users}
        return made

    def _request(self, name: str) -> Manifest:
        count = self._of([1, 1, 1, 2, 3]) if self._updates else self._of([1, 1, 1, 2, 3, 0])
        selectors = [s for s in SELECTORS if self._is(0.15)]
        made = request(name, self._of(["gpu", "gpu", "big"]), count, *selectors)
        if self._is(0.2):
            first = {**made["exactly"], "name": "first"}
            second = {**request("x", "gpu", 1)["exactly"], "name": "second"}
            return {"name": name, "firstAvailable": [first, second]}
        return made

    def _claim(self, name: str) -> Manifest:
        requests = [self._request(f"r{i}") for i in range(self._of([1, 1, 2]))]
        if any("All" in str(each) for each in requests):
            # With a constraint that some node's devices do not keep kube-scheduler would give up on every node.
            return claim(name, *requests)
        same = {"matchAttribute": f"{DRIVER}/{self._of(['model', 'even'])}"}
        only = {"requests": ["r0"]} if self._is(0.3) else {}
        return claim(name, *requests, **({"constraints": [{**same, **only}]} if self._is(0.4) else {}))

    def _probe(self, name: str) -> None:
        own = [self._claim(f"{name}-{i}") for i in range(self._of([1, 1, 2]))]
        self.claims += own
        names = [c["metadata"]["name"] for c in own] + ([f"had{self._of('012')}"] if self._is(0.2) else [])
        spec = {"schedulerName": "kube", "containers": [{"name": "c", "image": "none"}], **claimed(*names)}
        self.probes.append({"metadata": {"name": name, "namespace": "default"}, "spec": spec})
