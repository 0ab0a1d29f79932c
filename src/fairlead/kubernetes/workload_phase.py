"""How far a job or pod group has come on its way from waiting for room to running.

Decides nothing; `workloads` does. Invariant: the stand-ins of a workload are pods that no API server has.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from uuid import NAMESPACE_OID, uuid5

from fairlead.core.model.specs import AskSpec
from fairlead.kubernetes.acts import ObjectName
from fairlead.kubernetes.pod_store import KnownPod
from fairlead.kubernetes.translate.workloads import WorkloadSpec

TOLD_EACH = 32
"""All pods of a small group are told of each that comes or goes; of a large one at twice or half as many."""


class Phase(Enum):
    """Where a workload is."""

    WAITING = "waiting"
    STARTING = "starting"
    """It was told to go on; the API server has yet to say so."""
    RUNNING = "running"
    STOPPING = "stopping"
    """It was told to suspend; the API server has yet to say so."""


@dataclass(slots=True)
class Workload:
    """One job or pod group."""

    spec: WorkloadSpec
    phase: Phase = Phase.WAITING
    stand_ins: dict[str, KnownPod] = field(default_factory=dict)
    """What keeps its room, by identity."""
    pausing: bool = False
    """Its room was given back, and is tried for again after a while."""
    made: int = 0
    """Stand-ins so far."""
    told: int = 0
    """Of a group that is not complete: how many pods it had when all of them were told so."""

    @property
    def begun(self) -> bool:
        """Whether its pods may be placed."""
        return self.phase is not Phase.WAITING

    def stand_in(self, ask: AskSpec) -> KnownPod:
        """One more that keeps room for a pod which asks for this."""
        spec, number = self.spec, self.made
        self.made += 1
        uid = str(uuid5(NAMESPACE_OID, f"{spec.name.uid}/{number}"))
        name = ObjectName(spec.name.namespace, f"{spec.name.name}[{number}]", uid, spec.name.kind, spec.name)
        ask = replace(ask, application=spec.application, key=uid, placeholder=True)
        found = self.stand_ins[uid] = KnownPod(name, spec.application, ask)
        return found

    def is_told(self, there: int) -> bool:
        """Whether all pods of a large group were told that about as many are there."""
        return there > TOLD_EACH and self.told < 2 * there and there < 2 * self.told

    def gathers(self, pods: int) -> bool:
        """Whether a large group of so many pods and stand-ins has too few, and was told so: no pod changes that."""
        there = pods - len(self.stand_ins)
        return there < self.spec.min_member and self.is_told(there)
