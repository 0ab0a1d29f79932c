"""Early pods: those of jobs that are not known yet, since jobs and pods are watched apart.

Decides which pods wait for news of their job before they are looked at. Never decides where they go then. Invariant: a
pod that is known already, or has a node, is never held back here.
"""

from __future__ import annotations

from collections.abc import Iterator

from fairlead.kubernetes import kinds
from fairlead.kubernetes.objects import Pod
from fairlead.kubernetes.pod_store import PodStore
from fairlead.kubernetes.reflector import Change, Changed, Deleted
from fairlead.kubernetes.translate.pods import Standing, standing


class EarlyPods:
    """The early pods of one informer."""

    def __init__(self, pod_store: PodStore, scheduler_name: str) -> None:
        self._pod_store, self._scheduler_name = pod_store, scheduler_name
        self._jobs: dict[str, None] = {}
        """All that are there, by identity, with our label or without."""
        self._pods: dict[str, Pod] = {}
        """Their latest versions, by identity, in the order in which they came."""

    def holds(self, pod: Pod) -> bool:
        """Whether a pod, as it is now, waits for its job: that says its queue, and whether it starts as a whole."""
        meta = pod.metadata
        self._pods.pop(meta.uid or "", None)
        job = _job_of(pod)
        ours = standing(pod, self._scheduler_name) is Standing.OURS and not pod.spec.node_name
        if not job or job in self._jobs or not ours or meta.uid in self._pod_store.by_uid:
            return False
        self._pods[meta.uid or ""] = pod
        self._pod_store.passed_over[meta.namespace or "default", meta.name] = "its job is not known yet"
        return True

    def take(self, change: Change) -> Iterator[Pod]:
        """The pods that may be looked at, after a change of a pod or a job."""
        if isinstance(change, Deleted):
            self._pods.pop(change.uid, None)
            self._jobs.pop(change.uid, None)
        elif isinstance(change, Changed) and change.kind is kinds.JOBS:
            uid = change.object.metadata.uid or ""
            if uid not in self._jobs:
                self._jobs[uid] = None
                for pod in [each for each in self._pods.values() if _job_of(each) == uid]:
                    del self._pods[pod.metadata.uid or ""]
                    yield pod


def _job_of(pod: Pod) -> str:
    """The identity of the job that made it; nothing: none of Kubernetes' own did."""
    owners = pod.metadata.owner_references or ()
    made_by = (o.uid for o in owners if o.controller and o.kind == kinds.JOBS.name and o.api_version == "batch/v1")
    return next(made_by, None) or ""
