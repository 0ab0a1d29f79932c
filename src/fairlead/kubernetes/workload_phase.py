"""How far a job or pod group has come on its way from waiting for room to running.

Decides nothing; `workloads` does. Invariant: the stand-ins of a workload are pods that no API server has.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from uuid import NAMESPACE_OID, uuid5

from fairlead.core.model.specs import AskSpec
from fairlead.kubernetes.acts import ObjectName
from fairlead.kubernetes.pod_store import Books, KnownPod
from fairlead.kubernetes.translate.workloads import WorkloadSpec
from fairlead.kubernetes.workload_sizes import Parts

GROUP_WAITS, GROUP_RESERVES = "group-waits", "group-reserves"
"""The codes of a pod whose pod group is not complete, and of one whose group is and has not all of its room."""
TOO_LARGE = "job-too-large"
"""The code of what would keep the room of a job that all nodes together could not hold."""
SHOWN = 5
"""So many nodes are named."""
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
    parts: Parts = ()
    """The pods with which it starts."""
    too_large: str = ""
    """Why all nodes together could not hold these, as a sentence: it takes no room then."""
    flaw: str = ""
    """Why the API server would take no pod of its template as things are, as a sentence."""
    made: int = 0
    """Stand-ins so far."""
    unready: int = 0
    """Of a group that is complete: so many pods too few have what they need by themselves for it to start."""
    told: int = 0
    """Of a group that is not complete: how many pods it had when all of them were told so."""

    @property
    def begun(self) -> bool:
        """Whether its pods may be placed."""
        return self.phase is not Phase.WAITING

    @property
    def has_room(self) -> str:
        """That there is room for it, and on which nodes, in words."""
        nodes = sorted({stand_in.node for stand_in in self.stand_ins.values()})
        where = ", ".join(nodes) if len(nodes) <= SHOWN else f"{len(nodes)} nodes"
        return f"there is room for {len(self.stand_ins)} of its pods on {where}"

    @property
    def speaker(self) -> KnownPod | None:
        """The first of those that wait."""
        return next((each for each in self.stand_ins.values() if each.books is Books.WAITING), None)

    @property
    def is_too_large(self) -> bool:
        """Whether it waits for nodes, and takes no room meanwhile."""
        return bool(self.too_large and self.stand_ins) and not self.begun

    @property
    def is_sized_anew(self) -> bool:
        """Whether it matters that nodes are other than before: it waits, and is too large, was let go (and goes on in
        parts if it is too large by now), or keeps some of its room already.
        """
        if self.begun or not self.stand_ins:
            return False
        waits_for_nodes = self.too_large or self.spec.suspended is False
        return bool(waits_for_nodes) or any(each.books is Books.PLACED for each in self.stand_ins.values())

    @property
    def why_without_pods(self) -> str:
        """What there is to say of one of which nothing waits or runs, behind its name; empty: nothing."""
        spec = self.spec
        if flaw := spec.flaw or self.flaw:
            return f"is not admitted: {flaw}"
        if self.pausing:
            return "gave its room back, and tries for it again after a pause"
        if spec.suspended is None:
            return ""
        if not spec.pod_sets:
            return "needs no pods: its parallelism is 0, or as many as it wants have succeeded"
        if self.phase is Phase.STOPPING:
            return "is being suspended, and waits for room again then"
        return "may have pods, and none is there yet" if self.begun else "is about to be looked at"

    def stand_in(self, ask: AskSpec) -> KnownPod:
        """One more that keeps room for a pod which asks for this."""
        spec, number = self.spec, self.made
        self.made += 1
        uid = str(uuid5(NAMESPACE_OID, f"{spec.name.uid}/{number}"))
        name = ObjectName(spec.name.namespace, f"{spec.name.name}[{number}]", uid, spec.name.kind, spec.name)
        ask = replace(ask, application=spec.application, key=uid, placeholder=True)
        found = self.stand_ins[uid] = KnownPod(name, spec.application, ask)
        return found

    def obstacle(self, group: str, there: int) -> tuple[str, str]:
        """Why none of so many pods of a group may enter yet: a code and a sentence."""
        size = self.spec.min_member
        if there < size:
            return GROUP_WAITS, f"{there} of the {size} pods are there with which pod group {group} starts"
        if self.unready:
            text = f"{size - self.unready} of the {size} pods with which pod group {group} starts are ready"
            return GROUP_WAITS, f"{text}; each of the others says what it lacks"
        text = f"pod group {group} waits for room for {size} pods"
        return GROUP_RESERVES, f"{text}: {self.too_large}" if self.is_too_large else text

    def is_told(self, there: int) -> bool:
        """Whether all pods of a large group were told that about as many are there."""
        return there > TOLD_EACH and self.told < 2 * there and there < 2 * self.told

    def gathers(self, pods: int) -> bool:
        """Whether a large group of so many pods and stand-ins has too few, and was told so: no pod changes that."""
        there = pods - len(self.stand_ins)
        return there < self.spec.min_member and self.is_told(there)
