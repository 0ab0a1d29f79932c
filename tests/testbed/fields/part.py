"""A part of a cluster that is there for one field: nodes that no other part's pods can reach, and one pod to be placed.

Decides how parts are kept apart, so that all of them can be in one cluster at the same time. Never speaks to a server.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fairlead.kubernetes.kinds import NODES, PODS, Kind

Manifest = dict[str, Any]
IGNORED_DURING = "DuringSchedulingIgnoredDuringExecution"
REQUIRED, PREFERRED = f"required{IGNORED_DURING}", f"preferred{IGNORED_DURING}"
HOST = "kubernetes.io/hostname"


def container(cpu: str = "1", name: str = "c", **more: Any) -> Manifest:
    """A container that requests so much; `more`: fields of it."""
    return {"name": name, "image": "none", "resources": {"requests": {"cpu": cpu}}, **more}


@dataclass
class Part:
    """One of them."""

    name: str
    things: list[tuple[Kind, Manifest]] = field(default_factory=list)
    """What is made before the pod, in this order; a `status` is written where the server takes it."""
    probe: Manifest = field(default_factory=dict)
    """The pod that is to be placed."""

    @property
    def zone(self) -> str:
        """The key of a label that no other part's nodes have."""
        return f"zone-{self.name}"

    @property
    def alike(self) -> Manifest:
        """Labels that no other part's pods have."""
        return {"app": self.name}

    def on(self, node: str) -> str:
        """The whole name of a node."""
        return f"{self.name}-{node}"

    def put(self, kind: Kind, manifest: Manifest) -> None:
        """Have it there as well."""
        self.things.append((kind, manifest))

    def node(self, name: str, cpu: str = "4", *, labels: Manifest | None = None, **more: Any) -> None:
        """A node; `more`: `taints`, other fields of its spec, and `status`, which replaces its amounts."""
        room = {"cpu": cpu, "memory": "4Gi", "pods": "20"}
        status = more.pop("status", {"allocatable": room, "capacity": room})
        names = {HOST: self.on(name), "part": self.name, **(labels or {})}
        self.put(NODES, {"metadata": {"name": self.on(name), "labels": names}, "spec": more, "status": status})

    def nodes(self, *names: str) -> None:
        """Some that are alike, each a zone of its own."""
        for name in names or ("a", "b"):
            self.node(name, labels={self.zone: name})

    def runs(self, node: str, cpu: str = "1", **more: Any) -> None:
        """A pod that another scheduler has placed; `more` as for `pod`."""
        made = self._pod(f"{self.name}-r{len(self.things)}", cpu, **more)
        made["spec"] |= {"nodeName": self.on(node)} if node else {}
        made["spec"]["schedulerName"] = "other"
        self.put(PODS, made)

    def pod(self, cpu: str = "1", **more: Any) -> None:
        """The pod that is to be placed; `more`: `labels`, `namespace`, `status`, and fields of its spec."""
        made = self._pod(f"{self.name}-p", cpu, **more)
        made["spec"]["nodeSelector"] = {"part": self.name, **made["spec"].get("nodeSelector", {})}
        self.probe = made

    def _pod(self, name: str, cpu: str, **more: Any) -> Manifest:
        meta = {"name": name, "namespace": more.pop("namespace", "default"), "labels": more.pop("labels", {})}
        status = {"status": more.pop("status")} if "status" in more else {}
        spec = {"schedulerName": "kube", "terminationGracePeriodSeconds": 0, "containers": [container(cpu)], **more}
        return {"metadata": meta, "spec": spec, **status}


Build = Callable[[Part, bool], None]


@dataclass(frozen=True)
class Case:
    """What is built with a field (True) and without it (False); between the two its pod's nodes differ."""

    fields: tuple[str, ...]
    build: Build
    since: int
    """The minor version of Kubernetes from which on a server keeps the field."""

    @property
    def name(self) -> str:
        return self.build.__name__.replace("_", "-").strip("-")

    def parts(self) -> tuple[Part, Part]:
        """With the field, and without it."""
        both = Part(f"{self.name}-with"), Part(f"{self.name}-none")
        for part, there in zip(both, (True, False), strict=True):
            self.build(part, there)
        return both


CASES: list[Case] = []


def obeys(*fields: str, since: int = 33) -> Callable[[Build], Build]:
    """This is the case of these fields (`Type.field`)."""

    def note(build: Build) -> Build:
        CASES.append(Case(fields, build, since))
        return build

    return note
