"""Storage: the volume claims of pods, as far as they keep a pod from starting or bind it to nodes.

Decides whether a pod has to wait for its claims, and on which nodes its volumes can be used. Never binds a claim to a
volume: that is the business of Kubernetes' own controllers and drivers. Invariant: whoever was told to wait for a claim
is named again when something about that claim has changed.
"""

from __future__ import annotations

from fairlead.core.constraints import Requirement
from fairlead.kubernetes import kinds
from fairlead.kubernetes.objects import PersistentVolume, PersistentVolumeClaim, Pod
from fairlead.kubernetes.reflector import Change, Changed, Deleted
from fairlead.kubernetes.translate.constraints import ConstraintError, node_terms

Key = tuple[str, str]
"""Namespace and name of a claim."""
Terms = tuple[tuple[Requirement, ...], ...]
UNBOUND = "volume-unbound"
DEVICES = "resource-claims"


def claims_of(pod: Pod) -> tuple[Key, ...]:
    """The claims that a pod names, or that are made for it alone."""
    spec, namespace = pod.spec, pod.metadata.namespace or "default"
    found = []
    for volume in (spec.volumes if spec is not None else None) or ():
        if volume.persistent_volume_claim is not None:
            found.append((namespace, volume.persistent_volume_claim.claim_name))
        elif volume.ephemeral is not None:
            found.append((namespace, f"{pod.metadata.name}-{volume.name}"))
    return tuple(found)


def asks_for_devices(pod: Pod) -> bool:
    """Whether the pod needs devices by resource claims, which nobody here can choose."""
    return bool(pod.spec is not None and pod.spec.resource_claims)


class Storage:
    """Claims and volumes of the cluster, and who waits for them."""

    def __init__(self) -> None:
        self._volume_of: dict[Key, str] = {}
        """The volume of each claim; empty: it has none yet."""
        self._terms: dict[str, Terms | None] = {}
        """Of each volume on which nodes it can be used; None: that cannot be read."""
        self._waiting: dict[Key, dict[str, None]] = {}
        """Pods by identity."""

    def take(self, change: Change) -> list[str]:
        """A claim or volume changed; gives back the pods that may have waited for it."""
        if isinstance(change, Changed) and change.kind is kinds.CLAIMS:
            return self._claim(change.object)
        if isinstance(change, Changed) and change.kind is kinds.VOLUMES:
            return self._volume(change.object)
        if isinstance(change, Deleted) and change.kind is kinds.CLAIMS:
            self._volume_of.pop((change.namespace or "default", change.name), None)
        elif isinstance(change, Deleted) and change.kind is kinds.VOLUMES:
            self._terms.pop(change.name, None)
        return []

    def _claim(self, claim: PersistentVolumeClaim) -> list[str]:
        key = claim.metadata.namespace or "default", claim.metadata.name
        is_bound = claim.status is not None and claim.status.phase == "Bound"
        volume = (claim.spec.volume_name if claim.spec is not None else None) or ""
        self._volume_of[key] = volume if is_bound else ""
        return self._rouse(key)

    def _volume(self, volume: PersistentVolume) -> list[str]:
        affinity = volume.spec.node_affinity if volume.spec is not None else None
        terms: Terms | None
        try:
            terms = tuple(node_terms(affinity.required if affinity is not None else None))
        except ConstraintError:
            terms = None
        self._terms[volume.metadata.name] = terms
        keys = [key for key in self._waiting if self._volume_of.get(key) == volume.metadata.name]
        return [uid for key in keys for uid in self._rouse(key)]

    def _rouse(self, key: Key) -> list[str]:
        return list(self._waiting.pop(key, ()))

    def why_not(self, claims: tuple[Key, ...], uid: str) -> str:
        """Why a pod with these claims cannot start yet, as a sentence; empty: nothing is in the way."""
        for key in claims:
            volume, name = self._volume_of.get(key), "/".join(key)
            if volume and self._terms.get(volume) is not None:
                continue
            self._waiting.setdefault(key, {})[uid] = None
            if volume is None:
                return f"its volume claim {name} is not there; it starts when that is there and bound to a volume"
            if volume and volume in self._terms:
                return f"volume {volume} of its claim {name} has a node affinity that cannot be read"
            return (
                f"its volume claim {name} is not bound to a volume; it starts when that is bound, which a class with "
                "volumeBindingMode WaitForFirstConsumer never does here: use one with Immediate"
            )
        return ""

    def nodes_for(self, claims: tuple[Key, ...]) -> Terms:
        """The terms on nodes of which one must hold for all of the claims' volumes; empty: any node will do."""
        found: Terms = ()
        for key in claims:
            terms = self._terms.get(self._volume_of.get(key, "")) or ()
            found = both(found, terms)
        return found


def both(some: Terms, others: Terms) -> Terms:
    """The terms of which one holds where one of each holds; no terms at all hold everywhere."""
    if not some or not others:
        return some or others
    return tuple((*one, *other) for one in some for other in others)
