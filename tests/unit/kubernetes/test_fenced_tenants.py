"""A tour of preemption by guarantee behind a fence, as YuniKorn's users know it: who runs after each step.

A parent has room for ten; beside the fence five run that nobody may touch. Within it each of two tenants is guaranteed
three, one nothing.
"""

from __future__ import annotations

import msgspec

from fairlead.config import load_text
from fairlead.kubernetes.acts import Bind, EvictPod
from fairlead.kubernetes.driver import Driver
from fairlead.kubernetes.kinds import NODES, PODS
from fairlead.kubernetes.reflector import Changed, Deleted

QUEUES = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: box
            resources: {max: {vcore: 1000m, memory: 1000Mi}}
            queues:
              - name: fenced
                properties: {preemption.policy: fence, preemption.delay: 10s}
                queues:
                  - name: usual
                    resources: {guaranteed: {vcore: 300m, memory: 300Mi}}
                  - name: dear
                    resources: {guaranteed: {vcore: 300m, memory: 300Mi}}
                    properties: {priority.offset: "1000"}
                  - name: cheap
                    properties: {priority.offset: "-1000"}
              - name: outside
                properties: {priority.offset: "-9999"}
"""


class Tour:
    """Pods of equal size, by job."""

    def __init__(self) -> None:
        self.driver, self.now = Driver(load_text(QUEUES)), 0
        self.driver.begin(0)
        self.runs: dict[str, str] = {}
        self.version = 1
        room = {"allocatable": {"cpu": "8", "memory": "64Gi", "pods": "110"}}
        node = {"metadata": {"name": "n", "uid": "n"}, "status": room}
        self.driver.take(Changed(NODES, msgspec.convert(node, NODES.type)), 0)

    def put(self, name: str, queue: str, node: str = "", priority: int = 0) -> None:
        self.version += 1
        meta = {
            "name": name, "namespace": "default", "uid": name, "resourceVersion": str(self.version),
            "labels": {"applicationId": name.split("-")[0], "queue": queue},
        }  # fmt: skip
        needs = {"requests": {"cpu": "100m", "memory": "100Mi"}}
        spec = {
            "schedulerName": "fairlead", "nodeName": node or None, "priority": priority,
            "containers": [{"name": "c", "resources": needs}],
        }  # fmt: skip
        self.driver.take(Changed(PODS, msgspec.convert({"metadata": meta, "spec": spec}, PODS.type)), self.now)

    def job(self, name: str, queue: str, count: int, priority: int = 0) -> dict[str, int]:
        for number in range(count):
            self.runs[f"{name}-{number}"] = queue
            self.put(f"{name}-{number}", queue, priority=priority)
        return self.after_a_minute()

    def delete(self, job: str) -> dict[str, int]:
        for name in [name for name in self.runs if name.startswith(job)]:
            self.gone(name)
        return self.after_a_minute()

    def gone(self, name: str) -> None:
        self.driver.take(Deleted(PODS, "default", name, name), self.now)

    def after_a_minute(self) -> dict[str, int]:
        for _ in range(60):
            self.now += 1000
            self.driver.schedule(self.now)
            for act in self.driver.acts():
                if isinstance(act, Bind):
                    self.put(act.pod.name, self.runs[act.pod.name], act.node)
                elif isinstance(act, EvictPod):
                    self.gone(act.pod.name)
        found: dict[str, int] = {}
        for known in self.driver.informer.pod_store.by_uid.values():
            if known.bound:
                found[known.application] = found.get(known.application, 0) + 1
        return found


def test_guarantees_are_filled_within_the_fence_and_no_further() -> None:
    """Nobody outside goes; nobody falls below his guarantee; the rest is first come, by priority."""
    tour = Tour()
    tour.job("outside", "root.box.outside", 5)
    assert tour.job("cheap", "root.box.fenced.cheap", 5) == {"outside": 5, "cheap": 5}
    assert tour.job("usual", "root.box.fenced.usual", 10) == {"outside": 5, "cheap": 2, "usual": 3}
    assert tour.delete("cheap") == {"outside": 5, "usual": 5}
    assert tour.job("dear", "root.box.fenced.dear", 10) == {"outside": 5, "usual": 3, "dear": 2}
    assert tour.delete("usual") == {"outside": 5, "dear": 5}
    urgent = tour.job("urgent", "root.box.fenced.usual", 10, priority=9999)
    assert urgent == {"outside": 5, "dear": 3, "urgent": 2}
