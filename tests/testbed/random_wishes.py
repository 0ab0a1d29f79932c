"""Random clusters in which pods prefer: nodes, images on them, and pods, those that run and those to be placed.

Decides what is added to the manifests of a random cluster; the same number gives the same. What is to be placed may run
nearly everywhere, so that there is something to choose from.
"""

from __future__ import annotations

import random
from typing import Any

from testbed.random_cluster import APPS, NAMESPACES, TIERS, TOPOLOGIES, Manifest, RandomCluster

MIB = 1024**2
OURS = "ours"
"""The name of the other scheduler: some of what runs is its own."""
IMAGES = {
    "tiny:1": 2,
    "registry.example.com:5000/small:latest": 90,
    "middle:latest": 400,
    "middle@sha256:" + "a" * 64: 400,
    "large:2": 1_500,
    "team/huge:latest": 7_000,
}
"""By name on a node: the size in MiB."""
WANTED = (
    "tiny:1",
    "registry.example.com:5000/small",
    "middle",
    "middle@sha256:" + "a" * 64,
    "large:2",
    "team/huge",
    "x",
)
"""As pods call them; one is nowhere."""
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


class RandomWishes:
    """A random cluster with wishes."""

    def __init__(self, number: int, nodes: int = 7, running: int = 12, probes: int = 12) -> None:
        self._chance = random.Random(f"wishes {number}")
        cluster = RandomCluster(number, nodes, running, 0)
        self.nodes, self.running = cluster.nodes, cluster.running
        for node in self.nodes:
            node["status"]["allocatable"]["pods"] = node["status"]["capacity"]["pods"] = "110"
            node["status"]["images"] = self._images()
        for pod in self.running:
            pod["spec"]["affinity"] = {**(pod["spec"].get("affinity") or {}), **self._wishes(pod["spec"])}
            pod["spec"].pop("runtimeClassName", None)
            pod["spec"] |= {"volumes": [], "schedulerName": self._of(["kube", OURS])}
        self.probes = {f"p{i}": self._probe(f"p{i}") for i in range(probes)}

    def _is(self, chance: float) -> bool:
        return self._chance.random() < chance

    def _of(self, values: Any) -> Any:
        return self._chance.choice(list(values))

    def _images(self) -> list[Manifest]:
        return [{"names": [name], "sizeBytes": size * MIB + 7} for name, size in IMAGES.items() if self._is(0.45)]

    def _probe(self, name: str) -> Manifest:
        images = [self._of(WANTED) for _ in range(self._of([1, 1, 2, 3]))]
        containers = [
            {"name": f"c{i}", "image": image, "resources": {"requests": {"cpu": "10m"}}}
            for i, image in enumerate(images)
        ]
        spec: Manifest = {
            "schedulerName": "kube",
            "terminationGracePeriodSeconds": 0,
            "containers": containers,
            "tolerations": [{"operator": "Exists"}],
        }
        if len(containers) > 1 and self._is(0.5):
            spec["initContainers"] = [containers.pop()]
        spec["affinity"] = self._wishes(spec)
        labels = {"app": self._of(APPS), "tier": self._of(TIERS)}
        labels = {key: value for key, value in labels.items() if self._is(0.8)}
        return {"metadata": {"name": name, "namespace": self._of(NAMESPACES), "labels": labels}, "spec": spec}

    def _wishes(self, spec: Manifest) -> Manifest:
        """Preferred terms beside what the pod requires."""
        found: Manifest = {}
        if self._is(0.4):
            found["nodeAffinity"] = {PREFERRED: [self._of_nodes() for _ in range(self._of([1, 2, 3]))]}
        required = spec.get("affinity") or {}
        for kind in ("podAffinity", "podAntiAffinity"):
            if self._is(0.4):
                terms = [
                    {"weight": self._of(range(1, 101)), "podAffinityTerm": self._term()}
                    for _ in range(self._of([1, 2]))
                ]
                found[kind] = {**required.get(kind, {}), PREFERRED: terms}
        return found

    def _of_nodes(self) -> Manifest:
        operator = self._of(["In", "NotIn", "Exists"])
        values = {} if operator == "Exists" else {"values": [self._of("abrs")]}
        matched = {"key": self._of(["zone", "rack"]), "operator": operator, **values}
        return {"weight": self._of(range(1, 101)), "preference": {"matchExpressions": [matched]}}

    def _term(self) -> Manifest:
        labels = self._of([{"app": self._of(APPS)}, {"tier": self._of(TIERS)}, {"app": "web", "tier": "x"}])
        term: Manifest = {"topologyKey": self._of(TOPOLOGIES), "labelSelector": {"matchLabels": labels}}
        if self._is(0.2):
            term["labelSelector"] = self._of([{}, {"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}])
        if self._is(0.2):
            term["namespaces"] = [self._of(NAMESPACES)]
        if self._is(0.3):
            term["namespaceSelector"] = self._of([{}, {"matchLabels": {"team": self._of("abc")}}])
        return term
