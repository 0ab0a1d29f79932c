"""Random clusters: nodes, pods that run, and pods to be placed, with everything that filters nodes, from one number.

Decides what the manifests say; the same number gives the same ones. Never speaks to a server.
"""

from __future__ import annotations

import random
from typing import Any

Manifest = dict[str, Any]
NAMESPACES = {"default": "a", "second": "a", "third": "b"}
"""Each with its label `team`."""
APPS, TIERS = ("web", "db"), ("x", "y")
TOPOLOGIES = ("kubernetes.io/hostname", "zone", "rack")
ZONE = "topology.kubernetes.io/zone"
DRIVER = "csi.example.com"
VOLUMES: dict[str, Manifest] = {
    "anywhere": {},
    "in-zone-a": {"affinity": "a"},
    "label-b": {"labels": {ZONE: "b"}},
    "label-ab": {"labels": {"failure-domain.beta.kubernetes.io/zone": "a__b"}},
    "alone": {"modes": ["ReadWriteOncePod"]},
    "shared": {},
    "third": {},
}
"""By name of the claim and of its volume: what is special about them."""


def claim_and_volume(name: str) -> tuple[Manifest, Manifest]:
    """A claim of namespace `default` and the volume that it is bound to."""
    special = VOLUMES[name]
    common = {"accessModes": special.get("modes", ["ReadWriteOnce"]), "storageClassName": ""}
    spec: Manifest = {**common, "capacity": {"storage": "1Gi"}, "csi": {"driver": DRIVER, "volumeHandle": name}}
    spec["claimRef"] = {"namespace": "default", "name": name}
    if "affinity" in special:
        term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": [special["affinity"]]}]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [term]}}
    volume = {"metadata": {"name": f"v-{name}", "labels": special.get("labels", {})}, "spec": spec}
    claim = {
        "metadata": {"name": name, "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
        "spec": {**common, "volumeName": f"v-{name}", "resources": {"requests": {"storage": "1Gi"}}},
    }
    return claim, volume


class RandomCluster:
    """One of them."""

    def __init__(self, number: int, nodes: int = 6, running: int = 14, probes: int = 25) -> None:
        self._chance = random.Random(number)
        self.nodes = [self._node(f"n{i}") for i in range(nodes)]
        self.csi_nodes = [self._csi_node(f"n{i}") for i in range(nodes) if self._is(0.7)]
        self.running = [self._pod(f"r{i}", f"n{self._chance.randrange(nodes)}") for i in range(running)]
        self.probes = [self._pod(f"p{i}") for i in range(probes)]

    def _is(self, chance: float) -> bool:
        return self._chance.random() < chance

    def _of(self, values: Any) -> Any:
        return self._chance.choice(list(values))

    # -- nodes ----------------------------------------------------------------------------------------------------

    def _node(self, name: str) -> Manifest:
        drawn = {
            "zone": self._of("abc"),
            "rack": self._of("rs"),
            "size": self._of(["1", "5", "many"]),
            ZONE: self._of("ab"),
        }
        labels = {key: value for key, value in drawn.items() if self._is(0.8)}
        if self._is(0.9):
            labels["kubernetes.io/hostname"] = name
        room = {"cpu": self._of(["2", "4"]), "memory": self._of(["2Gi", "4Gi"]), "pods": self._of(["3", "6", "20"])}
        if self._is(0.5):
            room |= {"example.com/gpu": self._of("12"), "ephemeral-storage": "10Gi", "hugepages-2Mi": "64Mi"}
        spec: Manifest = {"taints": [self._taint() for _ in range(self._of([0, 0, 1, 2]))]}
        if self._is(0.1):
            spec["unschedulable"] = True
        return {
            "metadata": {"name": name, "labels": labels},
            "spec": {**spec, "taints": list({(t["key"], t["effect"]): t for t in spec["taints"]}.values())},
            "status": {"allocatable": room, "capacity": room},
        }

    def _csi_node(self, name: str) -> Manifest:
        driver = {"name": DRIVER, "nodeID": name, "topologyKeys": [], "allocatable": {"count": self._of([1, 2, 3])}}
        return {"metadata": {"name": name}, "spec": {"drivers": [driver]}}

    def _taint(self) -> Manifest:
        return {
            "key": self._of("pq"),
            "value": self._of(["", "v"]),
            "effect": self._of(["NoSchedule", "PreferNoSchedule"]),
        }

    # -- pods -----------------------------------------------------------------------------------------------------

    def _pod(self, name: str, node: str = "") -> Manifest:
        volumes = [name for name in VOLUMES if self._is(0.06)]
        namespace = "default" if volumes else self._of(NAMESPACES)
        spec: Manifest = {
            "schedulerName": "kube",
            "terminationGracePeriodSeconds": 0,
            "containers": [self._container(f"c{i}", ports=not i) for i in range(self._of([1, 1, 2]))],
            "initContainers": [self._container(f"i{i}", init=True) for i in range(self._of([0, 0, 0, 1, 2]))],
            "tolerations": [self._toleration() for _ in range(self._of([0, 1, 1, 2]))],
            "affinity": self._affinity(),
            "topologySpreadConstraints": self._spreads(),
            "volumes": [{"name": v, "persistentVolumeClaim": {"claimName": v}} for v in volumes],
            "priorityClassName": "",
        }
        if self._is(0.1):
            spec["resources"] = {"requests": {"cpu": self._of(["2", "3"])}}
        if self._is(0.1):
            spec["runtimeClassName"] = "heavy"
        if self._is(0.15):
            spec["nodeSelector"] = {"zone": self._of("ab")}
        if self._is(0.1):
            spec["hostNetwork"] = True
            for container in spec["containers"] + spec["initContainers"]:
                for port in container.get("ports", ()):
                    port["hostPort"] = port["containerPort"]
        if node:
            spec["nodeName"] = node
            for container in spec["containers"]:
                container["resources"] = {"requests": {"cpu": self._of(["100m", "500m"])}}
            spec.pop("resources", None)
        labels = {"app": self._of(APPS), "tier": self._of(TIERS)}
        labels = {key: value for key, value in labels.items() if self._is(0.8)}
        return {"metadata": {"name": name, "namespace": namespace, "labels": labels}, "spec": spec}

    def _container(self, name: str, *, init: bool = False, ports: bool = False) -> Manifest:
        requests = {"cpu": self._of(["0", "100m", "500m", "1"]), "memory": self._of(["64Mi", "1Gi"])}
        needs = {key: value for key, value in requests.items() if self._is(0.7)}
        limits: Manifest = {}
        if self._is(0.1):
            limits = {"example.com/gpu": "1"}
        elif self._is(0.08):
            needs, limits = {"cpu": "100m", "memory": "64Mi"}, {"hugepages-2Mi": "32Mi"}
        elif self._is(0.05):
            needs["ephemeral-storage"] = self._of(["1Gi", "20Gi"])
        found: Manifest = {
            "name": name,
            "image": "none",
            "resources": {"requests": {**needs, **limits}, "limits": limits},
        }
        if init and self._is(0.5):
            found["restartPolicy"] = "Always"
        if (ports or found.get("restartPolicy")) and self._is(0.25):
            port = self._of([80, 90])
            found["ports"] = [{"containerPort": port, "hostPort": port, "protocol": self._of(["TCP", "TCP", "UDP"])}]
            if self._is(0.4):
                found["ports"][0]["hostIP"] = self._of(["127.0.0.1", "10.0.0.1", "0.0.0.0"])
        return found

    def _toleration(self) -> Manifest:
        effect = self._of(["", "", "NoSchedule", "PreferNoSchedule"])
        if self._is(0.3):
            return {"key": self._of(["", "p"]), "operator": "Exists", "effect": effect}
        return {"key": self._of("pq"), "operator": "Equal", "value": self._of(["", "v"]), "effect": effect}

    def _expression(self, keys: tuple[str, ...], values: str) -> Manifest:
        key, operator = self._of(keys), self._of(["In", "In", "NotIn", "Exists", "DoesNotExist"])
        if operator in ("In", "NotIn"):
            return {"key": key, "operator": operator, "values": self._chance.sample(values, self._of([1, 2]))}
        return {"key": key, "operator": operator}

    def _node_term(self) -> Manifest:
        if self._is(0.15):
            return {"matchFields": [{"key": "metadata.name", "operator": self._of(["In", "NotIn"]), "values": ["n1"]}]}
        if self._is(0.2):
            return {
                "matchExpressions": [{"key": "size", "operator": self._of(["Gt", "Lt"]), "values": [self._of("135")]}]
            }
        return {"matchExpressions": [self._expression(("zone", "rack"), "abrs") for _ in range(self._of([1, 1, 2]))]}

    def _selector(self) -> Manifest:
        if self._is(0.5):
            return {"matchLabels": {"app": self._of(APPS)}}
        return {"matchExpressions": [self._expression(("app", "tier"), "xy") for _ in range(self._of([0, 1, 1]))]}

    def _term(self) -> Manifest:
        term: Manifest = {"topologyKey": self._of(TOPOLOGIES), "labelSelector": self._selector()}
        if self._is(0.2):
            term["namespaces"] = [self._of(NAMESPACES)]
        if self._is(0.2):
            term["namespaceSelector"] = self._of([{}, {"matchLabels": {"team": self._of("abc")}}])
        if self._is(0.15):
            term[self._of(["matchLabelKeys", "mismatchLabelKeys"])] = ["tier"]
            term["labelSelector"] = {"matchLabels": {"app": self._of(APPS)}}
        return term

    def _affinity(self) -> Manifest:
        found: Manifest = {}
        required, preferred = (f"{kind}DuringSchedulingIgnoredDuringExecution" for kind in ("required", "preferred"))
        if self._is(0.25):
            terms = {"nodeSelectorTerms": [self._node_term() for _ in range(self._of([1, 1, 2]))]}
            found["nodeAffinity"] = {required: terms}
        if self._is(0.15):
            weighted = [{"weight": 10, "preference": self._node_term()}]
            found.setdefault("nodeAffinity", {})[preferred] = weighted
        for kind in ("podAffinity", "podAntiAffinity"):
            if self._is(0.2):
                found[kind] = {required: [self._term() for _ in range(self._of([1, 1, 2]))]}
        return found

    def _spreads(self) -> list[Manifest]:
        found: dict[Any, Manifest] = {}
        for _ in range(self._of([0, 0, 0, 1, 1, 2])):
            hard = self._is(0.8)
            term: Manifest = {
                "topologyKey": self._of(TOPOLOGIES),
                "maxSkew": self._of([1, 1, 2]),
                "whenUnsatisfiable": "DoNotSchedule" if hard else "ScheduleAnyway",
                "labelSelector": self._selector(),
            }
            for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
                if self._is(0.5):
                    term[policy] = self._of(["Honor", "Ignore"])
            if hard and self._is(0.3):
                term["minDomains"] = self._of([1, 2, 4])
            if self._is(0.2):
                term["matchLabelKeys"] = ["tier"]
                term["labelSelector"] = {"matchLabels": {"app": self._of(APPS)}}
            found[term["topologyKey"], hard] = term
        return list(found.values())
