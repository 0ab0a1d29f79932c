"""Storage: the volume claims of pods, as far as they keep a pod from starting or bind it to nodes.

Decides whether a pod has to wait for its claims, on which nodes its volumes can be used or made, and which free volume
a claim gets on a node. Never sends anything, and never makes a volume: that is the business of Kubernetes' own
controllers and drivers. Invariant: a pod is named again whenever something has changed that decides about its claims.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from fairlead.core.model.constraints import DOES_NOT_EXIST, IN, NODE_NAME, AffinityTerm, Requirement
from fairlead.core.model.matching import matches
from fairlead.kubernetes import kinds
from fairlead.kubernetes.claim_users import ClaimUsers
from fairlead.kubernetes.objects import Amounts, Metadata
from fairlead.kubernetes.reflector import Change, Changed, Deleted
from fairlead.kubernetes.storage_objects import PersistentVolume, PersistentVolumeClaim, StorageClass
from fairlead.kubernetes.suiting_volumes import SuitingVolumes, Wish
from fairlead.kubernetes.translate import constraints
from fairlead.kubernetes.translate.amounts import AmountError, quantity

Key = tuple[str, str]
"""Namespace and name of a claim."""
Terms = tuple[tuple[Requirement, ...], ...]
"""Conditions on a node of which one must hold; none at all: any node will do."""
WATCHED = (kinds.CLAIMS, kinds.VOLUMES, kinds.STORAGE_CLASSES)
UNBOUND = "volume-unbound"
NOT_UNDERSTOOD = "not-understood"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
"""On a claim: the node of its pod, for whoever makes the volume. Kubernetes' name."""
OLD_CLASS = "volume.beta.kubernetes.io/storage-class"
NOBODY = "kubernetes.io/no-provisioner"
"""As the provisioner of a class: its volumes are there already, or are made by people."""
WAITS = "WaitForFirstConsumer"
ONE_POD = "ReadWriteOncePod"
ZONES = {
    "topology.kubernetes.io/zone": "",
    "topology.kubernetes.io/region": "",
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}
"""Labels of a volume that say where it can be used, each with the newer name that a node may have instead."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim."""

    uid: str
    volume: str
    """It has this volume, or is about to."""
    bound: bool
    of_class: str
    attributes_class: str
    selected: str
    """The node on which its volume is to be made."""
    size: int
    modes: frozenset[str]
    block: bool
    labels: tuple[Requirement, ...]
    """What must hold for the labels of its volume."""
    leaving: bool
    owner: str
    """The identity of what controls it; empty: nothing does."""

    @property
    def wish(self) -> Wish:
        """What it wants of a free volume; many claims want the same."""
        return self.of_class, self.attributes_class, self.block, self.size, self.modes, self.labels


@dataclass(frozen=True, slots=True)
class Volume:
    """A volume."""

    uid: str
    terms: Terms | None
    """On which nodes it can be used; None: that cannot be read."""
    of_class: str
    attributes_class: str
    size: int
    modes: frozenset[str]
    block: bool
    labels: Mapping[str, str]
    claim: tuple[str, str, str]
    """Namespace, name and identity of the claim that it is kept for; empty: nobody's."""
    driver: str
    """Who attaches it; empty: it is not attached by a CSI driver."""
    free: bool


@dataclass(frozen=True, slots=True)
class Class:
    """A storage class."""

    provisioner: str
    waits: bool
    """Volumes come into being only when a pod that wants one has a node."""
    terms: Terms
    """Where volumes may be made."""


class Storage:
    """Claims, volumes and classes of the cluster, and whose claims they are."""

    def __init__(self) -> None:
        self.claims: dict[Key, Claim] = {}
        self._volumes = SuitingVolumes()
        self.volumes: Mapping[str, Volume] = self._volumes.by_name
        self.classes: dict[str, Class] = {}
        self._users = ClaimUsers()
        self._usable: dict[Wish, Terms] = {}
        """On which nodes claims can have volumes, as was found since a volume or a class has changed."""

    def take(self, change: Change) -> list[str]:
        """A claim, volume or class changed; gives back the pods for which that may mean something."""
        thing = change.object if isinstance(change, Changed) else None
        if isinstance(change, Changed):
            meta = change.object.metadata
            space, name = meta.namespace, meta.name
        elif isinstance(change, Deleted):
            space, name = change.namespace, change.name
        else:
            return []
        if change.kind is kinds.CLAIMS:
            return self._claim_changed((space or "default", name), _claim(thing) if thing is not None else None)
        if change.kind is kinds.VOLUMES:
            return self._volume_changed(name, _volume(thing) if thing is not None else None)
        return self._class_changed(name, _class(thing) if thing is not None else None)

    def _claim_changed(self, key: Key, claim: Claim | None) -> list[str]:
        self._users.put(key, claim)
        if claim is not None:
            self.claims[key] = claim
        elif self.claims.pop(key, None) is None:
            return []
        return self._users.of([key])

    def _volume_changed(self, name: str, volume: Volume | None) -> list[str]:
        """One that was made for a claim is nothing to those that wait for a free one."""
        before = self.volumes.get(name)
        self._volumes.put(name, volume)
        if before == volume:
            return []
        keys = dict.fromkeys(self._users.with_volume(name))
        for each in filter(None, (before, volume)):
            keys[each.claim[:2]] = None
            if each.free:
                self._usable.clear()
                keys.update(dict.fromkeys(self._users.of_class(each.of_class)))
        return self._users.of(keys)

    def _class_changed(self, name: str, made: Class | None) -> list[str]:
        if made is not None:
            self.classes[name] = made
        elif self.classes.pop(name, None) is None:
            return []
        self._usable.clear()
        return self._users.of(self._users.of_class(name))

    def use(self, claims: tuple[Key, ...], uid: str) -> None:
        """A pod needs these claims from now on."""
        self._users.use(claims, uid)

    def leave(self, claims: tuple[Key, ...], uid: str) -> None:
        """A pod is no more."""
        self._users.leave(claims, uid)

    # -- questions ------------------------------------------------------------------------------------------------

    def why_not(self, claims: tuple[Key, ...], own: Collection[Key] = (), uid: str = "") -> str:
        """Why a pod with these claims cannot have a node yet, as a sentence; empty: nothing is in the way.

        Those of `own` are to have been made for the pod of this identity: a pod never takes another's.
        """
        return next(filter(None, (self._why_not(key, uid if key in own else "") for key in claims)), "")

    def _why_not(self, key: Key, owner: str) -> str:
        claim, its = self.claims.get(key), f"its volume claim {'/'.join(key)}"
        if claim is None:
            return f"{its} is not there; it starts when that is there and bound to a volume"
        if owner and claim.owner != owner:
            return (
                f"{its} was not made for it, though it has the name of one of its ephemeral volumes; rename one of them"
            )
        if claim.leaving:
            return f"{its} is being deleted; it starts when that is there anew"
        if claim.bound:
            volume = self.volumes.get(claim.volume)
            if volume is None:
                return f"{its} is bound to volume {claim.volume}, which is not there"
            return "" if volume.terms is not None else f"volume {claim.volume} of {its[4:]} cannot be read"
        if claim.volume:
            return f"{its} is not bound to a volume; it is to get {claim.volume}"
        if not claim.of_class:
            return f"{its} is not bound to a volume and names no storage class; it starts when somebody binds it"
        made = self.classes.get(claim.of_class)
        if made is None:
            return f"{its} is not bound to a volume, and its storage class {claim.of_class} is not there"
        if not made.waits:
            return f"{its} is not bound to a volume; it starts when class {claim.of_class} has provided one"
        if not self._has_provisioner(made) and not self._candidates(key, claim):
            return f"{its} is not bound to a volume: no free volume of class {claim.of_class} suits it; add one"
        return ""

    @staticmethod
    def _has_provisioner(made: Class) -> bool:
        return bool(made.provisioner) and made.provisioner != NOBODY

    def alone_with(self, claims: tuple[Key, ...]) -> tuple[AffinityTerm, ...]:
        """That no other pod has those of the claims that only one pod may have."""
        known = ((key, self.claims.get(key)) for key in claims)
        return tuple(constraints.alone_with(*key) for key, c in known if c is not None and ONE_POD in c.modes)

    def attached(self, claims: tuple[Key, ...]) -> tuple[str, ...]:
        """The volumes that are attached to the node of a pod with these claims, each as `name@driver`.

        A volume goes by the name of its claim, so that it has one before it is there.
        """
        named = ((key, self._driver_of(key)) for key in claims)
        return tuple(f"{'/'.join(key)}@{driver}" for key, driver in named if driver)

    def _driver_of(self, key: Key) -> str:
        claim = self.claims.get(key)
        volume = self.volumes.get(claim.volume) if claim is not None else None
        if volume is not None:
            return volume.driver
        made = self.classes.get(claim.of_class) if claim is not None else None
        return made.provisioner if made is not None and self._has_provisioner(made) else ""

    def nodes_for(self, claims: tuple[Key, ...]) -> Terms:
        """The terms on nodes of which one must hold for all of the claims' volumes."""
        found: Terms = ()
        for key in claims:
            found = both(found, self._nodes_for(key))
        return found

    def _nodes_for(self, key: Key) -> Terms:
        claim = self.claims.get(key)
        if claim is None:
            return ()
        if claim.volume:
            volume = self.volumes.get(claim.volume)
            return (volume.terms if volume is not None else None) or ()
        if claim.selected:
            return ((Requirement(NODE_NAME, IN, (claim.selected,)),),)
        kept = self._volumes.kept_for(key, claim)
        if kept:
            return self.volumes[kept].terms or ()
        if claim.wish not in self._usable:
            self._usable[claim.wish] = self._usable_with(claim, self._volumes.free_for(claim))
        return self._usable[claim.wish]

    def _usable_with(self, claim: Claim, volumes: list[str]) -> Terms:
        """Where one of these volumes can be used, or one can be made."""
        made = self.classes.get(claim.of_class)
        found = [self.volumes[name].terms or () for name in volumes]
        if made is not None and self._has_provisioner(made):
            found.append(made.terms)
        return () if any(not terms for terms in found) else either(found)

    def makes_on(self, key: Key, node: Mapping[str, str]) -> str:
        """Who makes the claim's volume for a node with these attributes; empty: nobody."""
        claim = self.claims.get(key)
        made = self.classes.get(claim.of_class) if claim is not None else None
        if made is None or not self._has_provisioner(made) or not suits(made.terms, node):
            return ""
        return made.provisioner

    def volume_for(self, key: Key, node: Mapping[str, str], taken: Collection[str]) -> str:
        """The free volume that the claim gets on a node with these attributes, the smallest that does; or nothing.

        One that is kept for the claim already is the only one that counts.
        """
        claim = self.claims.get(key)
        if claim is None:
            return ""
        names = (name for name in self._candidates(key, claim) if name not in taken)
        return next((name for name in names if suits(self.volumes[name].terms, node)), "")

    def _candidates(self, key: Key, claim: Claim) -> list[str]:
        """Volumes that the claim could have, from the smallest on."""
        kept = self._volumes.kept_for(key, claim)
        return [kept] if kept else self._volumes.free_for(claim)


def suits(terms: Terms | None, node: Mapping[str, str]) -> bool:
    """Whether a node with these attributes keeps one of the terms."""
    return terms is not None and (not terms or any(matches(term, node) for term in terms))


def both(some: Terms, others: Terms) -> Terms:
    """The terms of which one holds where one of each holds; no terms at all hold everywhere."""
    if not some or not others:
        return some or others
    return tuple((*one, *other) for one in some for other in others)


def either(found: list[Terms]) -> Terms:
    """The terms of all together. Those that merely name values of one label become one: thousands of local volumes."""
    values: dict[str, dict[str, None]] = {}
    others: dict[tuple[Requirement, ...], None] = {}
    for term in (term for terms in found for term in terms):
        if len(term) == 1 and term[0].operator == IN:
            values.setdefault(term[0].key, {}).update(dict.fromkeys(term[0].values))
        else:
            others[term] = None
    return (*((Requirement(key, IN, tuple(names)),) for key, names in values.items()), *others)


def _claim(given: PersistentVolumeClaim) -> Claim:
    meta, spec = given.metadata, given.spec
    volume = spec.volume_name or ""
    try:
        labels = constraints.label_conditions(spec.selector) if spec.selector is not None else ()
    except constraints.ConstraintError:
        labels = constraints.NOTHING
    notes = meta.annotations or {}
    return Claim(
        uid=meta.uid or "",
        volume=volume,
        bound=bool(volume) and given.status.phase == "Bound",
        of_class=_class_name(meta, spec.storage_class_name),
        attributes_class=spec.volume_attributes_class_name or "",
        selected=notes.get(SELECTED_NODE, ""),
        size=_size(spec.resources.requests),
        modes=frozenset(spec.access_modes or ()),
        block=spec.volume_mode == "Block",
        labels=labels,
        leaving=bool(meta.deletion_timestamp),
        owner=next((owner.uid or "" for owner in meta.owner_references or () if owner.controller), ""),
    )


def _volume(given: PersistentVolume) -> Volume:
    meta, spec, status = given.metadata, given.spec, given.status
    affinity = spec.node_affinity
    terms: Terms | None
    try:
        terms = tuple(constraints.node_terms(affinity.required if affinity is not None else None))
        terms = both(terms, _zones(meta.labels or {}))
    except constraints.ConstraintError:
        terms = None
    kept = spec.claim_ref
    available = status.phase == "Available"
    return Volume(
        uid=meta.uid or "",
        terms=terms,
        of_class=_class_name(meta, spec.storage_class_name),
        attributes_class=spec.volume_attributes_class_name or "",
        size=_size(spec.capacity),
        modes=frozenset(spec.access_modes or ()),
        block=spec.volume_mode == "Block",
        labels=meta.labels or {},
        claim=(kept.namespace or "", kept.name or "", kept.uid or "") if kept is not None else ("", "", ""),
        driver=spec.csi.driver if spec.csi is not None else "",
        free=available and kept is None and not meta.deletion_timestamp,
    )


def _zones(labels: Mapping[str, str]) -> Terms:
    """Where a volume with these labels can be used: in its zones, and on nodes that name no zone at all."""
    found: Terms = ()
    for name in (name for name in ZONES if name in labels):
        values = tuple(part.strip() for part in labels[name].split("__"))
        inside: Terms = ((Requirement(name, IN, values),),)
        if ZONES[name]:
            inside += ((Requirement(name, DOES_NOT_EXIST), Requirement(ZONES[name], IN, values)),)
        found = both(found, inside)
    return (tuple(Requirement(name, DOES_NOT_EXIST) for name in ZONES), *found) if found else ()


def _class(given: StorageClass) -> Class:
    terms = tuple(
        tuple(Requirement(e.key, IN, tuple(e.values or ())) for e in term.match_label_expressions or ())
        or constraints.NOTHING
        for term in given.allowed_topologies or ()
    )
    return Class(given.provisioner, given.volume_binding_mode == WAITS, terms)


def _class_name(meta: Metadata, named: str | None) -> str:
    return (meta.annotations or {}).get(OLD_CLASS) or named or ""


def _size(given: Amounts) -> int:
    """Bytes; what cannot be read is nothing: the server has let it pass."""
    try:
        return quantity("storage", (given or {}).get("storage", 0))
    except AmountError:
        return 0
