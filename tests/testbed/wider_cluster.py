"""A cluster at random in which also happens what is rare: ports, spreads and patience with taints, gangs of several
groups, disruption budgets that come and go, and what befalls a pod or its node in the moment of a binding.

Decides what happens there, drawn from a seed, beside all of `whole_cluster`.
"""

from __future__ import annotations

import asyncio
import copy
import json
from typing import Any

from testbed.fake_server import FakeServer
from testbed.whole_cluster import NODES, Server, WholeCluster

from fairlead.kubernetes.translate.identity import PARAMETERS, TASK_GROUP_NAME, TASK_GROUPS

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
HOSTNAME = "kubernetes.io/hostname"


class WiderCluster(WholeCluster):
    """What happens on one server."""

    def __init__(self, server: FakeServer, seed: int) -> None:
        super().__init__(server, seed)
        if isinstance(server, Server):
            server.when_bound = self.bound

    def pod(self, name: str, namespace: str = "default", cpu: int = 0, klass: str = "", **more: Any) -> dict[str, Any]:
        found = super().pod(name, namespace, cpu, klass, **more)
        spec, draw, of = found["spec"], self.chance.random, self.chance.choice
        if spec["schedulerName"] != "fairlead":
            return found
        if draw() < 0.1:
            port = {"containerPort": 80, "hostPort": of([80, 90]), "protocol": of(["TCP", "UDP"])}
            spec["containers"][0]["ports"] = [port]
        if draw() < 0.12:
            spec["topologySpreadConstraints"] = [self._spread()]
        if draw() < 0.12:
            endures = {"key": "k", "operator": "Exists", "effect": "NoExecute"}
            endures["tolerationSeconds"] = of([0, 2, 30, 600])
            plain = {"key": "k", "operator": "Equal", "value": "v", "effect": "NoSchedule"}
            spec.setdefault("tolerations", [endures, *([plain] if draw() < 0.5 else [])])
        if draw() < 0.06:
            term: dict[str, Any] = {"labelSelector": self._app(), "topologyKey": of(["zone", HOSTNAME])}
            spec.setdefault("affinity", {}).setdefault(of(["podAffinity", "podAntiAffinity"]), {REQUIRED: [term]})
        if draw() < 0.05:
            field = {"key": "metadata.name", "operator": "In", "values": [f"n{self.chance.randrange(NODES)}"]}
            terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
            spec.setdefault("affinity", {})["nodeAffinity"] = {REQUIRED: terms}
        if draw() < 0.04:
            spec.setdefault("schedulingGates", [{"name": "g"}, {"name": "h"}])
        if draw() < 0.05:
            spec["activeDeadlineSeconds"] = of([30, 5000])
        return found

    def _app(self) -> dict[str, Any]:
        return {"matchLabels": {"app": self.chance.choice("wvjs")}}

    def _spread(self) -> dict[str, Any]:
        draw, of = self.chance.random, self.chance.choice
        found: dict[str, Any] = {
            "topologyKey": of(["zone", HOSTNAME]),
            "maxSkew": of([1, 2]),
            "whenUnsatisfiable": of(["DoNotSchedule", "ScheduleAnyway"]),
            "labelSelector": self._app(),
        }
        if found["whenUnsatisfiable"] == "DoNotSchedule" and draw() < 0.4:
            found["minDomains"] = of([1, 2, 3])
        if draw() < 0.3:
            found["matchLabelKeys"] = ["applicationId"]
        for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if draw() < 0.3:
                found[policy] = of(["Honor", "Ignore"])
        return found

    def gate(self) -> None:
        """One gate of a pod after the other is taken away."""
        for pod in self.server.all("pods"):
            if gates := pod["spec"].get("schedulingGates"):
                changed = copy.deepcopy(pod)
                changed["spec"]["schedulingGates"] = gates[:-1]
                self.server.put("pods", changed)
                self.say(f"less gates {pod['metadata']['name']}")
                return

    def budget(self) -> None:
        name, of = self.chance.choice("bcd"), self.chance.choice
        if self.server.one("poddisruptionbudgets", name) is not None and self.chance.random() < 0.3:
            self.server.remove("poddisruptionbudgets", name, "default")
            self.say(f"budget {name} gone")
            return
        keeps = of([{"maxUnavailable": 1}, {"minAvailable": 1}, {"minAvailable": "50%"}, {"maxUnavailable": "0%"}])
        whom = of([{}, self._app(), {"matchExpressions": [{"key": "app", "operator": "Exists"}]}])
        status = {"disruptionsAllowed": self.chance.randrange(3), "observedGeneration": 1}
        body = {"metadata": {"name": name, "namespace": "default"}, "spec": {"selector": whom, **keeps}}
        self.server.put("poddisruptionbudgets", {**body, "status": status if self.chance.random() < 0.8 else {}})
        self.say(f"budget {name} {keeps} {whom}")

    def new_gang(self) -> None:
        """Also of two groups, of which one may have a zone of its own."""
        if self.chance.random() < 0.5:
            super().new_gang()
            return
        self.number += 1
        app, draw = f"two{self.number % 4}", self.chance.randrange
        groups: list[dict[str, Any]] = [
            {"name": name, "minMember": draw(1, 4), "minResource": {"cpu": str(draw(1, 4))}} for name in "wv"
        ]
        if self.chance.random() < 0.3:
            groups[0]["nodeSelector"] = {"zone": "x"}
        style, klass = self.chance.choice(["Hard", "Soft"]), self.chance.choice(["", "low", "high"])
        notes = {TASK_GROUPS: json.dumps(groups), PARAMETERS: f"{self.patience()} gangSchedulingStyle={style}"}
        labels = {"applicationId": app, "queue": "root." + ["default", "a", "b"][self.number % 4 % 3]}
        for group in groups:
            meta = {"labels": labels, "annotations": {**notes, TASK_GROUP_NAME: group["name"]}}
            for number in range(group["minMember"] + draw(-1, 2)):
                name, cpu = f"{app}-{group['name']}-{number}", int(group["minResource"]["cpu"])
                self.put_pod(self.pod(name, cpu=cpu, klass=klass, metadata=copy.deepcopy(meta)))

    # -- in the moment of a binding -----------------------------------------------------------------------------------

    def bound(self, namespace: str, name: str, node: str) -> None:
        """A pod is bound to a node: shortly after that one of them may go."""
        fates = [self._deleted, self._killed, self._cordoned, self._lost]
        fate = self.chance.choices([None, *fates], [84, 6, 3, 4, 3])[0]
        after_s = self.chance.choice([0.0, 0.001, 0.05, 0.5])
        if fate is not None:
            asyncio.get_running_loop().call_later(after_s, fate, namespace, name, node)

    def _deleted(self, namespace: str, name: str, node: str) -> None:
        if (pod := self.server.one("pods", name, namespace)) is not None:
            self.say(f"deleted as it is bound to {node}: {name}")
            self.server._delete("pods", copy.deepcopy(pod), {})

    def _killed(self, namespace: str, name: str, node: str) -> None:
        self.say(f"killed as it is bound to {node}: {name}")
        self.server.remove("pods", name, namespace)

    def _cordoned(self, namespace: str, name: str, node: str) -> None:
        if (thing := self.server.one("nodes", node, "")) is not None:
            self.say(f"cordoned as {namespace}/{name} is bound: {node}")
            taint = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
            spec = {"unschedulable": True, "taints": [taint]}
            self.server.put("nodes", {**copy.deepcopy(thing), "spec": spec, "since": self.server._now()})

    def _lost(self, namespace: str, name: str, node: str) -> None:
        self.say(f"gone as {namespace}/{name} is bound: {node}")
        self.server.remove("nodes", node)
