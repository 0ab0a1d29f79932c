"""A cluster in this process at random: nodes, pods, gangs, groups, jobs, volumes, devices, classes, queues and more.

Decides what happens there, drawn from a seed. What Kubernetes' controllers make of it is `controllers`' business.
"""

from __future__ import annotations

import asyncio
import copy
import json
import random
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any

from testbed import devices as bed
from testbed import provisioner as sea
from testbed.controllers import Controllers
from testbed.fake_server import FakeServer
from testbed.faults import Faults

from fairlead.kubernetes.client import Answer, Request
from fairlead.kubernetes.translate.identity import PARAMETERS, TASK_GROUP_NAME, TASK_GROUPS

NODES, NAMES = 4, 12
CALM_S = 20.0
QUEUES = """
partitions:
  - name: default
    preemption: {rule: %(rule)s}
    placementrules: [{name: provided}, {name: fixed, value: root.default}]
    queues:
      - name: root
        submitacl: "*"
        queues:
          - {name: default}
          - {name: a, resources: {max: {vcore: %(most)s}}}
          - {name: b, resources: {guaranteed: {vcore: 3}}}
"""
GROUPS = "podgroups"


class WholeCluster:
    """What happens on one server."""

    def __init__(self, server: FakeServer, seed: int) -> None:
        self.server, self.chance = server, random.Random(seed)
        self.rule = self.chance.choice(["priority", "priority", "guarantee", "both"])
        self.most = 6
        self.number = 0
        self.story: list[str] = []
        """What happened, for whoever looks into a failure."""
        self.controllers = Controllers(server, self.chance, self.say)
        server.extensions += ["scheduling.x-k8s.io/v1alpha1", "jobset.x-k8s.io/v1alpha2"]
        for name in ("default", "other"):
            server.put("namespaces", {"metadata": {"name": name, "labels": {"name": name}}})
        for name, value in (("low", 1), ("high", 9)):
            self.new_class(name, value)
        server.extensions.append(bed.GROUP)
        self.wide = self.chance.random() < 0.7
        server.put("deviceclasses", bed.device_class())
        server.put("storageclasses", sea.storage_class())
        server.put("storageclasses", sea.storage_class("none", "kubernetes.io/no-provisioner"))
        server.put("storageclasses", sea.storage_class("zoned", "disks.example", "x"))
        for number in range(self.chance.randrange(1, NODES + 1)):
            self.node(f"n{number}")
            if self.wide:
                self.server.put(
                    "resourceslices", bed.device_slice(f"n{number}", *(bed.device(f"d{i}") for i in range(2)))
                )
        for number in range(4 if self.wide else 0):
            server.put(
                "persistentvolumeclaims", sea.claim(f"c{number}", self.chance.choice(["later", "none", "zoned"]))
            )
            server.put("resourceclaims", bed.claim(f"d{number}", bed.request(count=1)))
            server.put("persistentvolumes", sea.volume(f"v{number}", f"n{number}", like={"storageClassName": "none"}))

    @property
    def config(self) -> str:
        return QUEUES % {"rule": self.rule, "most": self.most}

    def patience(self) -> str:
        return f"placeholderTimeoutInSeconds={self.chance.choice([5, 40])}"

    # -- what people do -------------------------------------------------------------------------------------------

    def step(self) -> None:
        acts = [
            (6, self.new_pod), (2, self.new_gang), (2, self.new_group), (3, self.new_job), (2, self.foreign),
            (3, self.change_node), (1, self.drop_node), (2, self.anew_node), (5, self.finish), (3, self.delete),
            (1, self.kill), (2, self.change_job), (1, self.delete_job), (1, self.change_group), (1, self.change_class),
            (1, self.change_namespace), (1, self.change_queues), (1, self.budget), (2, self.change_pod), (1, self.gate),
            (2, self.new_job_set), (1, self.change_job_set), (1, self.drop_namespace),
        ]  # fmt: skip
        if self.wide:
            acts += [
                (1, self.claim),
                (1, self.volume),
                (1, self.class_of_volumes),
                (1, self.device_claim),
                (1, self.devices),
                (4, self.pod_with_claims),
                (1, self.limit_range),
                (1, self.runtime_class),
            ]
        act = self.chance.choices([act for _, act in acts], [weight for weight, _ in acts])[0]
        act()

    def say(self, text: str) -> None:
        now = asyncio.get_running_loop().time()
        self.story.append(f"{now:8.2f} {text}")

    def node(self, name: str, cpu: int = 0, **spec: Any) -> None:
        old = self.server.one("nodes", name, "")
        cpu = cpu or self.chance.randrange(2, 6)
        labels = {"zone": self.chance.choice("xy"), "kubernetes.io/hostname": name}
        if old is not None and self.chance.random() < 0.5:
            labels = old["metadata"]["labels"]
        room = {"cpu": str(cpu), "pods": "110"}
        self.server.put(
            "nodes",
            {
                "metadata": {"name": name, "labels": labels},
                "spec": spec,
                "status": {"allocatable": room},
                "since": self.server._now(),
            },
        )
        self.say(f"node {name} {cpu} {labels} {spec}")

    def change_node(self) -> None:
        name = f"n{self.chance.randrange(NODES)}"
        what = self.chance.random()
        taint = {
            "key": "k",
            "value": "v",
            "effect": self.chance.choice(["NoSchedule", "NoExecute", "PreferNoSchedule"]),
        }
        cordoned = {
            "unschedulable": True,
            "taints": [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}],
        }
        spec: dict[str, Any] = cordoned if what < 0.25 else {"taints": [taint]} if what < 0.5 else {}
        self.node(name, **spec)

    def drop_node(self) -> None:
        name = f"n{self.chance.randrange(NODES)}"
        self.server.remove("nodes", name)
        self.say(f"node {name} gone")

    def anew_node(self) -> None:
        name = f"n{self.chance.randrange(NODES)}"
        self.server.remove("nodes", name)
        self.node(name)

    def pod(self, name: str, namespace: str = "default", cpu: int = 0, klass: str = "", **more: Any) -> dict[str, Any]:
        cpu = cpu or self.chance.randrange(1, 4)
        klass = klass or self.chance.choice(["", "low", "high"])
        found = self.server.one("priorityclasses", klass, "")
        spec: dict[str, Any] = {
            "schedulerName": "fairlead",
            "terminationGracePeriodSeconds": self.chance.choice([0, 1, 5]),
            "containers": [{"name": "c", "resources": {"requests": {"cpu": str(cpu)}}}],
            **more.pop("spec", {}),
        }
        if found is not None:
            spec["priorityClassName"] = klass
        spec |= self.controllers.priority(spec)
        meta = {"name": name, "namespace": namespace, **more.pop("metadata", {})}
        return {"metadata": meta, "spec": spec, "status": {"phase": "Pending"}, **more}

    def put_pod(self, pod: dict[str, Any]) -> None:
        meta = pod["metadata"]
        if self.server.one("namespaces", meta["namespace"], "") is None:
            return
        if self.server.one("pods", meta["name"], meta["namespace"]) is None:
            self.server.put("pods", pod)
            spec = {key: value for key, value in pod["spec"].items() if key not in ("schedulerName",)}
            self.say(f"pod {meta['namespace']}/{meta['name']} {meta.get('labels')} {meta.get('annotations')} {spec}")

    def new_pod(self) -> None:
        self.number += 1
        spec: dict[str, Any] = {}
        draw = self.chance.random
        if draw() < 0.15:
            spec["nodeSelector"] = {"zone": self.chance.choice("xy")}
        if draw() < 0.15:
            spec["tolerations"] = [{"operator": "Exists"}]
        if draw() < 0.1:
            term = {
                "labelSelector": {"matchLabels": {"app": "w"}},
                "topologyKey": self.chance.choice(["zone", "kubernetes.io/hostname"]),
            }
            if draw() < 0.3:
                term["namespaceSelector"] = {"matchLabels": {"name": "other"}}
            spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        if draw() < 0.1:
            spec["schedulingGates"] = [{"name": "g"}]
        app = self.chance.randrange(4)
        labels = {"app": self.chance.choice("wv"), "queue": f"root.{self.chance.choice(['default', 'a', 'b', 'none'])}"}
        if draw() < 0.6:
            # What an application's first pod says of its queue is forgotten with a restart.
            labels |= {"applicationId": f"app{app}", "queue": "root." + ["default", "a", "b", "none"][app]}
        else:
            labels["applicationId"] = f"own{self.number}"
        meta: dict[str, Any] = {"labels": labels}
        if draw() < 0.05:
            meta["annotations"] = {"fairlead.io/idle": "true"}
        # Names are used again.
        name = f"p{self.number % NAMES}"
        self.put_pod(self.pod(name, self.chance.choice(["default", "other"]), spec=spec, metadata=meta))

    def foreign(self) -> None:
        self.number += 1
        nodes = self.server.all("nodes")
        if nodes:
            node = self.chance.choice(nodes)["metadata"]["name"]
            self.stir(node)
            more = {"schedulerName": "default-scheduler", "nodeName": node}
            self.put_pod(self.pod(f"f{self.number % NAMES}", cpu=1, spec=more, metadata={"labels": {"app": "w"}}))

    def stir(self, name: str) -> None:
        """What is bound to a node in this moment may be too much for it: both are heard of apart."""
        if (node := self.server.one("nodes", name, "")) is not None:
            node["since"] = self.server._now()

    def new_gang(self) -> None:
        self.number += 1
        app, size, cpu = f"gang{self.number % 5}", self.chance.randrange(1, 4), self.chance.randrange(1, 4)
        if self.chance.random() < 0.1:
            size = 10  # All nodes together have less.
        style = self.chance.choice(["Hard", "Soft"])
        groups = [{"name": "w", "minMember": size, "minResource": {"cpu": str(cpu)}}]
        notes = {
            TASK_GROUPS: json.dumps(groups),
            TASK_GROUP_NAME: "w",
            PARAMETERS: f"{self.patience()} gangSchedulingStyle={style}",
        }
        labels = {"applicationId": app, "queue": "root." + ["default", "a", "b"][self.number % 5 % 3]}
        klass = self.chance.choice(["", "low", "high"])
        for member in range(size + self.chance.randrange(2)):
            self.put_pod(
                self.pod(f"{app}-{member}", cpu=cpu, klass=klass, metadata={"labels": labels, "annotations": notes})
            )

    def new_group(self) -> None:
        name, size = f"g{self.chance.randrange(3)}", self.chance.randrange(1, 4)
        self.group(name, size)
        labels = {"scheduling.x-k8s.io/pod-group": name}
        for member in range(size + self.chance.randrange(-1, 2)):
            self.put_pod(self.pod(f"{name}-{member}", metadata={"labels": labels}))

    def group(self, name: str, size: int) -> None:
        meta = {"name": name, "namespace": "default"}
        self.server.put(
            GROUPS,
            {"metadata": meta, "spec": {"minMember": size, "scheduleTimeoutSeconds": self.chance.choice([0, 10])}},
        )
        self.say(f"group {name} {size}")

    def change_group(self) -> None:
        name = f"g{self.chance.randrange(3)}"
        if self.server.one(GROUPS, name) is not None:
            if self.chance.random() < 0.5:
                self.server.remove(GROUPS, name, "default")
                self.say(f"group {name} gone")
            else:
                self.group(name, self.chance.randrange(1, 4))

    def new_job(self) -> None:
        self.number += 1
        name = f"j{self.number % 6}"
        if self.server.one("jobs", name) is not None:
            return
        template = self.pod("x")
        del template["metadata"], template["status"]
        for word in ("priority", "preemptionPolicy"):
            template["spec"].pop(word, None)
        size = self.chance.randrange(1, 4)
        meta: dict[str, Any] = {
            "name": name, "namespace": "default",
            "labels": {"fairlead.io/queue": f"root.{self.chance.choice(['default', 'a', 'b'])}"},
            "annotations": {PARAMETERS: self.patience()},
        }  # fmt: skip
        if self.chance.random() < 0.2:
            meta["annotations"]["fairlead.io/min-parallelism"] = "1"
        if is_plain := self.chance.random() < 0.1:
            del meta["labels"]
        spec = {
            "suspend": not is_plain and self.chance.random() < 0.7,
            "parallelism": size,
            "completions": self.chance.choice([None, size, size + 2]),
            "template": {"metadata": {"labels": {"app": "j"}}, **template},
        }
        self.server.put("jobs", {"metadata": meta, "spec": spec, "status": {}})
        self.say(
            f"job {name} {meta.get('labels')} {meta['annotations']} {size} of {spec['completions']} {template['spec']}"
        )

    def new_job_set(self) -> None:
        name = f"s{self.chance.randrange(2)}"
        if self.server.one("jobsets", name) is not None:
            return
        parts = []
        for part in ("a", "b")[: self.chance.randrange(1, 3)]:
            template = self.pod("x")
            del template["metadata"], template["status"]
            for word in ("priority", "preemptionPolicy"):
                template["spec"].pop(word, None)
            size = self.chance.randrange(1, 3)
            of: dict[str, Any] = {"parallelism": size, "completions": self.chance.choice([size, size + 1])}
            of["template"] = {"metadata": {"labels": {"app": "s"}}, **template}
            parts.append({"name": part, "replicas": self.chance.randrange(1, 3), "template": {"spec": of}})
        meta: dict[str, Any] = {"name": name, "namespace": "default", "annotations": {PARAMETERS: self.patience()}}
        if self.chance.random() < 0.9:
            meta["labels"] = {"fairlead.io/queue": f"root.{self.chance.choice(['default', 'a', 'b'])}"}
        spec = {"suspend": self.chance.random() < 0.7, "replicatedJobs": parts}
        self.server.put("jobsets", {"metadata": meta, "spec": spec, "status": {}})
        self.say(f"set {meta} {spec}")

    def change_job_set(self) -> None:
        sets = self.server.all("jobsets")
        if sets:
            thing = copy.deepcopy(self.chance.choice(sets))
            name = thing["metadata"]["name"]
            if self.chance.random() < 0.3:
                self.server.remove("jobsets", name, "default")
                self.say(f"set {name} gone")
            else:
                thing["spec"]["suspend"] = not thing["spec"]["suspend"]
                self.server.put("jobsets", thing)
                self.say(f"set {name} {thing['spec']['suspend']=}")

    def change_job(self) -> None:
        jobs = [job for job in self.server.all("jobs") if not job["metadata"].get("ownerReferences")]
        if jobs:
            job = copy.deepcopy(self.chance.choice(jobs))
            if self.chance.random() < 0.7:
                job["spec"]["suspend"] = not job["spec"]["suspend"]
            else:
                job["spec"]["parallelism"] = self.chance.randrange(0, 4)
            self.server.put("jobs", job)
            self.say(f"job {job['metadata']['name']} {job['spec']['suspend']=} {job['spec']['parallelism']=}")

    def delete_job(self) -> None:
        jobs = self.server.all("jobs")
        if jobs:
            name = self.chance.choice(jobs)["metadata"]["name"]
            self.server.remove("jobs", name, "default")
            self.say(f"job {name} gone")

    def some_pod(self, *, bound: bool | None = None) -> dict[str, Any] | None:
        pods = [p for p in self.server.all("pods") if bound is None or bool(p["spec"].get("nodeName")) is bound]
        return copy.deepcopy(self.chance.choice(pods)) if pods else None

    def finish(self) -> None:
        pod = self.some_pod(bound=True)
        if pod is not None:
            pod["status"]["phase"] = self.chance.choice(["Succeeded", "Succeeded", "Failed"])
            self.server.put("pods", pod)
            self.say(f"pod {pod['metadata']['name']} {pod['status']['phase']}")

    def delete(self) -> None:
        pod = self.some_pod()
        if pod is not None:
            meta = pod["metadata"]
            self.server._delete("pods", pod, {})
            self.say(f"delete {meta['name']}")

    def kill(self) -> None:
        pod = self.some_pod()
        if pod is not None:
            self.server.remove("pods", pod["metadata"]["name"], pod["metadata"]["namespace"])
            self.say(f"kill {pod['metadata']['name']}")

    def change_pod(self) -> None:
        pod = self.some_pod()
        if pod is None:
            return
        if self.chance.random() < 0.4:
            pod["metadata"].setdefault("labels", {})["app"] = self.chance.choice("wv")
        else:
            pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = str(self.chance.randrange(1, 4))
            self.stir(pod["spec"].get("nodeName", ""))
        self.server.put("pods", pod)
        self.say(f"change {pod['metadata']['name']} {pod['spec']['containers']} {pod['metadata']['labels'].get('app')}")

    def gate(self) -> None:
        for pod in self.server.all("pods"):
            if pod["spec"].get("schedulingGates"):
                pod = copy.deepcopy(pod)
                del pod["spec"]["schedulingGates"]
                self.server.put("pods", pod)
                self.say(f"no gate {pod['metadata']['name']}")
                return

    def new_class(self, name: str, value: int) -> None:
        notes = {"yunikorn.apache.org/allow-preemption": "false"} if self.chance.random() < 0.1 else {}
        policy = "Never" if self.chance.random() < 0.2 else "PreemptLowerPriority"
        self.server.put(
            "priorityclasses",
            {"metadata": {"name": name, "annotations": notes}, "value": value, "preemptionPolicy": policy},
        )

    def change_class(self) -> None:
        name = self.chance.choice(["low", "high"])
        value = self.chance.randrange(10)
        self.server.remove("priorityclasses", name)
        self.say(f"class {name} gone, then {value}")
        if self.chance.random() < 0.8:
            self.new_class(name, value)

    def change_namespace(self) -> None:
        notes = {"yunikorn.apache.org/queue": f"root.{self.chance.choice('ab')}"} if self.chance.random() < 0.5 else {}
        labels = {"name": self.chance.choice(["other", "default"])}
        self.server.put("namespaces", {"metadata": {"name": "other", "labels": labels, "annotations": notes}})
        self.say(f"namespace other {labels} {notes}")

    def drop_namespace(self) -> None:
        for pod in self.server.all("pods"):
            if pod["metadata"]["namespace"] == "other":
                self.server.remove("pods", pod["metadata"]["name"], "other")
        self.server.remove("namespaces", "other")
        self.say("namespace other gone")

    def change_queues(self) -> None:
        self.most = self.chance.choice([2, 4, 6, 10])
        self.say(f"queues: a has {self.most}")

    def budget(self) -> None:
        self.server.put("poddisruptionbudgets", {
            "metadata": {"name": "b", "namespace": "default"},
            "spec": {"selector": {"matchLabels": {"app": self.chance.choice("wv")}}, "maxUnavailable": 1},
            "status": {"disruptionsAllowed": self.chance.randrange(2), "observedGeneration": 1},
        })  # fmt: skip
        self.say("budget")

    def claim(self) -> None:
        name = f"c{self.chance.randrange(4)}"
        there = self.server.one("persistentvolumeclaims", name)
        if there is None:
            of = self.chance.choice(["later", "none", "zoned", "missing"])
            self.server.put("persistentvolumeclaims", sea.claim(name, of))
            self.say(f"claim {name} {of}")
        elif self.chance.random() < 0.3 and not any(
            v.get("persistentVolumeClaim", {}).get("claimName") == name
            for p in self.server.all("pods")
            if p["spec"].get("nodeName")
            for v in p["spec"].get("volumes") or ()
        ):
            self.server.remove("persistentvolumeclaims", name, "default")
            for volume in self.server.all("persistentvolumes"):
                if volume["spec"].get("claimRef", {}).get("name") == name:
                    self.server.remove("persistentvolumes", volume["metadata"]["name"])
            self.say(f"claim {name} gone")

    def volume(self) -> None:
        name = f"v{self.chance.randrange(3)}"
        there = self.server.one("persistentvolumes", name, "")
        if there is None:
            made = sea.volume(
                name,
                f"n{self.chance.randrange(NODES)}",
                like={"storageClassName": self.chance.choice(["none", "later"])},
            )
            self.server.put("persistentvolumes", made)
            self.say(f"volume {name} {made['spec']}")
        elif "claimRef" not in there["spec"]:
            self.server.remove("persistentvolumes", name)
            self.say(f"volume {name} gone")

    def class_of_volumes(self) -> None:
        if self.server.one("storageclasses", "zoned", "") is None or self.chance.random() < 0.5:
            self.server.put("storageclasses", sea.storage_class("zoned", "disks.example", self.chance.choice("xy")))
            self.say("class zoned")
        else:
            self.server.remove("storageclasses", "zoned")
            self.say("class zoned gone")

    def device_claim(self) -> None:
        name = f"d{self.chance.randrange(3)}"
        there = self.server.one("resourceclaims", name)
        if there is None:
            self.server.put("resourceclaims", bed.claim(name, bed.request(count=self.chance.randrange(1, 3))))
            self.say(f"devices {name}")
        elif self.chance.random() < 0.3 and not (there.get("status") or {}).get("reservedFor"):
            self.server.remove("resourceclaims", name, "default")
            self.say(f"devices {name} gone")

    def devices(self) -> None:
        node = f"n{self.chance.randrange(NODES)}"
        name = f"s-{node}"
        there = self.server.one("resourceslices", name, "")
        if there is not None and self.chance.random() < 0.3:
            self.server.remove("resourceslices", name)
            self.say(f"slice {name} gone")
        else:
            generation = there["spec"]["pool"]["generation"] + 1 if there is not None else 1
            count = self.chance.randrange(1, 4)
            self.server.put(
                "resourceslices",
                bed.device_slice(node, *(bed.device(f"d{i}") for i in range(count)), generation=generation),
            )
            self.say(f"slice {name} {count}")

    def pod_with_claims(self) -> None:
        self.number += 1
        spec: dict[str, Any] = {}
        if self.chance.random() < 0.6:
            names = {f"c{self.chance.randrange(4)}" for _ in range(self.chance.randrange(1, 3))}
            spec["volumes"] = [{"name": c, "persistentVolumeClaim": {"claimName": c}} for c in sorted(names)]
        if not spec or self.chance.random() < 0.2:
            spec |= (
                bed.claimed(f"d{self.chance.randrange(3)}") if self.chance.random() < 0.4 else bed.claimed(template="t")
            )
        meta: dict[str, Any] = {"labels": {"applicationId": f"claims{self.number}"}}
        if self.chance.random() < 0.2:
            meta["labels"]["scheduling.x-k8s.io/pod-group"] = f"g{self.chance.randrange(3)}"
        self.put_pod(self.pod(f"v{self.number % NAMES}", spec=spec, metadata=meta))

    def limit_range(self) -> None:
        if self.server.one("limitranges", "l") is not None:
            self.server.remove("limitranges", "l", "default")
            self.say("limit range gone")
        else:
            item = {"type": "Container", "defaultRequest": {"memory": "1Gi"}}
            self.server.put(
                "limitranges", {"metadata": {"name": "l", "namespace": "default"}, "spec": {"limits": [item]}}
            )
            self.say("limit range")

    def runtime_class(self) -> None:
        self.server.put(
            "runtimeclasses",
            {"metadata": {"name": "r"}, "overhead": {"podFixed": {"cpu": str(self.chance.randrange(2))}}},
        )


class Server(FakeServer):
    """With what admission does to pods: the priority of their class is theirs."""

    def __init__(self, faults: Faults, *, is_late: bool) -> None:
        """`is_late`: what a process had sent arrives though the process is no more."""
        super().__init__(faults)
        self.is_late = is_late
        self.elsewhere: list[str] = []
        """Pods that were to be bound to another node than they are."""
        self.when_bound: Callable[[str, str, str], object] = lambda namespace, name, node: None
        """Told of each pod that is bound, and to which node."""

    async def send(self, request: Request, timeout_s: float) -> Answer:
        """One request."""
        answer = super().send(request, timeout_s)
        return await (asyncio.shield(asyncio.ensure_future(answer)) if self.is_late else answer)

    def _bind(self, namespace: str, name: str, body: dict[str, Any]) -> dict[str, Any]:
        pod, node = self.one("pods", name, namespace), body["target"]["name"]
        bound = pod["spec"].get("nodeName", node) if pod is not None else node
        if bound != node and self._is_calm(bound):
            self.elsewhere.append(f"{namespace}/{name} runs on {bound} and was to be bound to {node}")
        found = super()._bind(namespace, name, body)
        self.when_bound(namespace, name, node)
        return found

    async def _lines(self, request: Request) -> AsyncGenerator[bytes, None]:
        """Pods may be heard of before their job."""
        async with aclosing(super()._lines(request)) as lines:
            async for line in lines:
                if request.path.endswith(("/jobs", "/jobsets", "/podgroups")):
                    await asyncio.sleep(self.faults.watch_delay())
                yield line

    def _is_calm(self, node: str) -> bool:
        """What was heard of a node a moment ago may be otherwise by now: nodes and pods are watched apart."""
        thing = self.one("nodes", node, "")
        return thing is not None and self._now() - thing.get("since", 0) > CALM_S

    def _check_node(self, node: str) -> None:
        if self._is_calm(node):
            super()._check_node(node)
