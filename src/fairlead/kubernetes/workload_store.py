"""The workload store: every job and pod group that starts as a whole, by identity, name and application.

Decides nothing. Invariant: of two workloads of one name, or of one application, the later one is found.
"""

from __future__ import annotations

from fairlead.kubernetes.kinds import JOB_SETS, JOBS, POD_GROUPS, VOLCANO_GROUPS, Kind
from fairlead.kubernetes.objects import Pod
from fairlead.kubernetes.translate.workloads import JOB_SET_NAME
from fairlead.kubernetes.workload_phase import Workload

KINDS: tuple[Kind, ...] = (JOBS, JOB_SETS, POD_GROUPS, VOLCANO_GROUPS)


class WorkloadStore:
    """All workloads."""

    def __init__(self) -> None:
        self.by_uid: dict[str, Workload] = {}
        self._by_name: dict[tuple[Kind, str, str], Workload] = {}
        self._by_application: dict[str, Workload] = {}

    def add(self, workload: Workload) -> Workload:
        """A workload is known from now on; it is given back."""
        spec = workload.spec
        self.by_uid[spec.name.uid] = workload
        self._by_name[spec.name.kind, spec.name.namespace, spec.name.name] = workload
        self._by_application[spec.application] = workload
        return workload

    def forget(self, workload: Workload) -> None:
        """A workload is no more."""
        spec = workload.spec
        name = spec.name.kind, spec.name.namespace, spec.name.name
        del self.by_uid[spec.name.uid]
        if self._by_name.get(name) is workload:
            del self._by_name[name]
        if self._by_application.get(spec.application) is workload:
            del self._by_application[spec.application]

    def of(self, application: str) -> Workload | None:
        """The workload of this application."""
        return self._by_application.get(application)

    def named(self, namespace: str, name: str) -> Workload | None:
        """The job or pod group of this name."""
        found = (self._by_name.get((kind, namespace, name)) for kind in KINDS)
        return next(filter(None, found), None)

    def owner(self, pod: Pod) -> Workload | None:
        """The job or set of jobs that a pod is part of, where it is one that starts as a whole."""
        for owner in pod.metadata.owner_references or ():
            if owner.controller and owner.uid in self.by_uid:
                return self.by_uid[owner.uid]
        name = (pod.metadata.labels or {}).get(JOB_SET_NAME)
        return self._by_name.get((JOB_SETS, pod.metadata.namespace or "default", name)) if name else None
