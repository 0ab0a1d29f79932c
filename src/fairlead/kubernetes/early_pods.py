"""Early pods: those of jobs, or of sets of jobs, that are not known yet, since these and pods are watched apart.

Decides which pods wait for news of their job before they are looked at. Never decides where they go then. Invariant: a
pod that is known already, or has a node, is never held back here; none waits for a set where no set can be heard of.
"""

from __future__ import annotations

from collections.abc import Iterator

from fairlead.kubernetes import kinds
from fairlead.kubernetes.kinds import Kind
from fairlead.kubernetes.objects import Metadata, Pod
from fairlead.kubernetes.pod_store import PodStore
from fairlead.kubernetes.reflector import Change, Changed, Deleted, Synced
from fairlead.kubernetes.translate.pods import Standing, standing


class EarlyPods:
    """The early pods of one informer."""

    def __init__(self, pod_store: PodStore, scheduler_name: str) -> None:
        self._pod_store, self._scheduler_name = pod_store, scheduler_name
        self._jobs: dict[str, str] = {}
        """All that are there, by identity, with our label or without; and the identity of the set that made each."""
        self._sets: dict[str, None] = {}
        """All sets that are there, by identity."""
        self._hears_of_sets = False
        self._pods: dict[str, Pod] = {}
        """Their latest versions, by identity, in the order in which they came."""

    def holds(self, pod: Pod) -> bool:
        """Whether a pod, as it is now, waits for its job: that says its queue, and whether it starts as a whole."""
        meta = pod.metadata
        self._pods.pop(meta.uid or "", None)
        lacks = self._lacks(pod)
        ours = standing(pod, self._scheduler_name) is Standing.OURS and not pod.spec.node_name
        if not lacks or not ours or meta.uid in self._pod_store.by_uid:
            return False
        self._pods[meta.uid or ""] = pod
        self._note(pod, lacks)
        return True

    def _note(self, pod: Pod, lacks: str) -> None:
        meta = pod.metadata
        self._pod_store.passed_over[meta.namespace or "default", meta.name] = f"{lacks} is not known yet"

    def _lacks(self, pod: Pod) -> str:
        """What is not known yet of what the pod is part of, in words."""
        job = _made_by(pod.metadata, kinds.JOBS)
        if job and job not in self._jobs:
            return "its job"
        of = self._jobs.get(job, "")
        return "the JobSet of its job" if of and self._hears_of_sets and of not in self._sets else ""

    def take(self, change: Change) -> Iterator[Pod]:
        """The pods that may be looked at, after a change of a pod, a job or a set."""
        if isinstance(change, Deleted):
            self._pods.pop(change.uid, None)
            self._jobs.pop(change.uid, None)
            self._sets.pop(change.uid, None)
        elif isinstance(change, Synced) and change.kind is kinds.JOB_SETS:
            self._hears_of_sets = change.served
        elif isinstance(change, Changed) and change.kind in (kinds.JOBS, kinds.JOB_SETS):
            meta = change.object.metadata
            uid, of = meta.uid or "", _made_by(meta, kinds.JOB_SETS)
            if change.kind is kinds.JOB_SETS and uid not in self._sets:
                self._sets[uid] = None
            elif change.kind is kinds.JOBS and self._jobs.get(uid) != of:
                self._jobs[uid] = of
            else:
                return
            for pod in list(self._pods.values()):
                if lacks := self._lacks(pod):
                    self._note(pod, lacks)
                else:
                    del self._pods[pod.metadata.uid or ""]
                    yield pod


def _made_by(meta: Metadata, kind: Kind) -> str:
    """The identity of the thing of this kind that made it; nothing: none did."""
    owners = meta.owner_references or ()
    made_by = (o.uid for o in owners if o.controller and o.kind == kind.name and _is_of(kind, o.api_version))
    return next(made_by, None) or ""


def _is_of(kind: Kind, version: str | None) -> bool:
    """Whether a version of an API is one of the group of this kind; other kinds may have its name."""
    return (version or "").rpartition("/")[0] == kind.group_version.rpartition("/")[0]
