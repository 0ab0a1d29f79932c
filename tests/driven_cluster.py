"""A driver with its scheduler, given objects of an API server as changes, for tests that play what happens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from invariants.books import check_books

from fairlead.config import load_text
from fairlead.kubernetes.acts import Bind
from fairlead.kubernetes.control_loop import _order_of_start
from fairlead.kubernetes.driver import Driver
from fairlead.kubernetes.kinds import NODES, PODS, Kind
from fairlead.kubernetes.reflector import Changed, Deleted

PRIORITY = """
partitions:
  - name: default
    preemption: {rule: priority}
    placementrules: [{name: provided}, {name: fixed, value: root.default}]
    queues: [{name: root, submitacl: "*", queues: [{name: default}]}]
"""


class Cluster:
    """Objects of an API server, given to a driver as changes."""

    def __init__(self, config: str = PRIORITY, *, images: bool = False) -> None:
        self.driver, self.images = Driver(load_text(config), images=images), images
        self.driver.begin(0)
        self.now = 0
        self.version = 1
        self.things: dict[tuple[str, str], dict[str, Any]] = {}
        self._kinds: dict[tuple[str, str], Kind] = {}

    def put(self, kind: Kind, manifest: dict[str, Any]) -> None:
        self.version += 1
        manifest["metadata"]["resourceVersion"] = str(self.version)
        of = kind.plural, manifest["metadata"]["name"]
        self.things[of], self._kinds[of] = manifest, kind
        self.driver.take(Changed(kind, msgspec.convert(manifest, kind.type_with(self.images))), self.now)

    def node(self, name: str, cpu: str = "4", **more: Any) -> None:
        room = {"cpu": cpu, "pods": "110"}
        more["labels"] = {"kubernetes.io/hostname": name, **more.get("labels", {})}
        self.put(NODES, {"metadata": {"name": name, "uid": f"u-{name}", **more}, "status": {"allocatable": room}})

    def full_node(self, name: str, cpu: str) -> None:
        """One on which a pod of another scheduler, `on-NAME`, takes all of it."""
        self.node(name, cpu)
        self.pod(f"on-{name}", cpu, node=name, spec={"schedulerName": "another"})

    def pod(self, name: str, cpu: str = "1", priority: int = 0, node: str = "", **more: Any) -> None:
        spec = {
            "schedulerName": "fairlead", "priority": priority, "nodeName": node or None,
            "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}], **more.pop("spec", {}),
        }  # fmt: skip
        status = more.pop("status", {})
        meta = {"name": name, "namespace": "default", "uid": f"u-{name}", **more}
        self.put(PODS, {"metadata": meta, "spec": spec, "status": status})

    def gone(self, name: str) -> None:
        del self.things["pods", name]
        self.driver.take(Deleted(PODS, "default", name, f"u-{name}"), self.now)

    def acts(self) -> list[Any]:
        self.driver.schedule(self.now)
        check_books(self.driver.scheduler)
        return self.driver.acts()

    def bind_all(self, acts: list[Any]) -> None:
        for act in acts:
            if isinstance(act, Bind):
                pod = self.things["pods", act.pod.name]
                pod["spec"]["nodeName"] = act.node
                self.put(PODS, pod)

    def restarted(self, config: str = PRIORITY, meanwhile: Callable[[], object] = lambda: None) -> None:
        """Another scheduler begins with all that is there, and with what happens before it has heard all of it."""
        self.driver = Driver(load_text(config), self.now, images=self.images)
        there = [(self._kinds[of], thing) for of, thing in self.things.items()]
        changes = [Changed(kind, msgspec.convert(thing, kind.type_with(self.images))) for kind, thing in there]
        for change in sorted(changes, key=_order_of_start):
            self.driver.take(change, self.now)
        meanwhile()
        self.driver.begin(self.now)

    def used(self, node: str) -> int:
        return self.driver.scheduler.cluster.partitions["default"].nodes.nodes[node].allocated.get("vcore", 0)


def binds(acts: list[Any]) -> dict[str, str]:
    return {act.pod.name: act.node for act in acts if isinstance(act, Bind)}
