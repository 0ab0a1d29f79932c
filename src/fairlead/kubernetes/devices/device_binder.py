"""The device binder: what the claims of pods wait for, and what each gets on the node of its pod.

Decides what is promised to a claim once a pod has a node, what is written on it, and when that is taken back. Never
chooses a node, and sends nothing. Invariant: a device is promised to one claim at most, and stays with it until the
server says that the claim has it, or has taken it back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fairlead.kubernetes import kinds
from fairlead.kubernetes.acts import DeviceUse, ObjectName, ReturnDevices
from fairlead.kubernetes.devices.allocation import allocation_of
from fairlead.kubernetes.devices.allocator import Given, NoAnswer
from fairlead.kubernetes.devices.claims import Claim, Claims, Name
from fairlead.kubernetes.devices.inventory import Key, on_node
from fairlead.kubernetes.devices.suitable_nodes import SuitableNodes
from fairlead.kubernetes.devices.wishes import Shape
from fairlead.kubernetes.pod_store import Books, KnownPod
from fairlead.kubernetes.reflector import Change, Changed, Deleted, is_older
from fairlead.kubernetes.storage import Terms, both, suits

if TYPE_CHECKING:
    from fairlead.core.model.events import Event
    from fairlead.kubernetes.informer import Informer

WATCHED = (kinds.DEVICE_CLASSES, kinds.RESOURCE_SLICES, kinds.RESOURCE_CLAIMS)
UNMET = "claim-unmet"
PATIENCE_MS = 60_000
"""So long a waiting pod keeps devices that it was given before, and that tie it to their nodes."""


@dataclass(slots=True)
class Promise:
    """What a claim is to get."""

    claim: ObjectName
    node: str
    devices: tuple[Key, ...]
    allocation: dict[str, Any]
    since: str
    """A version of the claim: what it and older ones say was before the promise."""
    users: dict[str, None] = field(default_factory=dict)
    """Pods by identity."""
    returning: int = 0
    """So many orders to take it back are under way."""

    def is_kept_by(self, claim: Claim) -> bool:
        """Whether the claim has it now."""
        is_later = claim.version != self.since and not is_older(claim.version, self.since)
        return claim.allocated and is_later and set(claim.devices) == set(self.devices)


class DeviceBinder:
    """Everything about the devices of one informer's cluster."""

    def __init__(self, informer: Informer) -> None:
        self._informer = informer
        self._taken: Counter[Key] = Counter()
        """How many claims have a device, or are promised it."""
        self.claims = Claims()
        self.nodes = SuitableNodes(informer.around, self.claims, self._taken)
        self._promised: dict[Name, Promise] = {}
        self._given_back: dict[Name, str] = {}
        """The versions of claims since they gave devices back, where that is not seen yet."""
        self._ordered: dict[str, bool] = {}
        """Pods for which the server was asked to write it down."""
        self._tied: dict[str, int] = {}
        """Waiting pods whose claims have devices already; until when they keep them; 0: their time does not run yet."""

    # -- what changes ---------------------------------------------------------------------------------------------

    def take(self, change: Change) -> Iterator[Event]:
        """A claim, a class or a slice has changed."""
        if isinstance(change, Changed | Deleted):
            for uid in self._take(change):
                yield from self._reconsider(uid)

    def _take(self, change: Changed | Deleted) -> list[str]:
        """Learn it; gives back the pods for which it may mean something at once."""
        thing = change.object if isinstance(change, Changed) else None
        name = thing.metadata.name if thing is not None else change.name  # type: ignore[union-attr]
        if change.kind is kinds.RESOURCE_SLICES:
            inventory = self.nodes.inventory
            self.nodes.touch(inventory.put(thing) if thing is not None else inventory.drop(name))
            return []
        if change.kind is kinds.DEVICE_CLASSES:
            if thing is not None:
                self.claims.classes[name] = thing
            else:
                self.claims.classes.pop(name, None)
            self.nodes.touch(None)
            return self.claims.users_of(self.claims.of_class(name))
        space = thing.metadata.namespace if thing is not None else change.namespace  # type: ignore[union-attr]
        claim = (space or "default", name)
        before = self.claims.known.pop(claim, None)
        if thing is not None:
            self.claims.put(thing)
        self._recount(claim, before)
        return self.claims.users_of((claim,))

    def _recount(self, name: Name, before: Claim | None) -> None:
        """A claim has perhaps other devices than before, and what it was promised."""
        now, promise = self.claims.known.get(name), self._promised.get(name)
        if now is None or not is_older(now.version, self._given_back.get(name, "")):
            self._given_back.pop(name, None)
        old, new = before.devices if before is not None else (), now.devices if now is not None else ()
        if old != new:
            self._count(old, -1)
            self._count(new, 1)
        if promise is not None and (now is None or now.uid != promise.claim.uid or promise.is_kept_by(now)):
            self._void(name, promise)

    def _void(self, name: Name, promise: Promise) -> None:
        del self._promised[name]
        self._count(promise.devices, -1)

    def _count(self, devices: tuple[Key, ...], change: int) -> None:
        for key in devices:
            self._taken[key] += change
            if not self._taken[key]:
                del self._taken[key]
        if devices:
            self.nodes.touch(self.nodes.inventory.reaching(devices))

    def node_changed(self, change: Change) -> None:
        """A node is new, is gone, or has perhaps other labels."""
        if isinstance(change, Changed | Deleted):
            self.nodes.node_changed(change.object.metadata.name if isinstance(change, Changed) else change.name)

    def _reconsider(self, uid: str) -> Iterator[Event]:
        """What is in the pod's way, or what its node must have, may be something else now."""
        informer, known = self._informer, self._informer.pod_store.by_uid.get(uid)
        if known is None or known.leaving or known.bound or known.foreign:
            return
        if known.books is Books.WAITING:
            if not self.why_not(known) and self.wanted(known) == (known.devices, known.device_terms):
                return
            yield from informer.withdraw(known)
            if informer.may_enter(known):
                yield from informer.enter(known)
        elif known.books is Books.OUT and not known.pausing:
            yield from informer.try_again(uid)

    # -- what a pod waits with ------------------------------------------------------------------------------------

    def use(self, known: KnownPod) -> None:
        """A pod needs its claims from now on."""
        self.claims.use(known.device_claims, known.name.uid)

    def leave(self, known: KnownPod) -> None:
        """A pod is no more."""
        self.claims.leave(known.device_claims, known.name.uid)
        self._ordered.pop(known.name.uid, None)
        self.nodes.forget(known.name.uid)

    def why_not(self, known: KnownPod) -> str:
        """Why the pod cannot have a node yet because of its claims, as a sentence; empty: nothing is in the way."""
        why_not = self.claims.why_not(known.device_claims, known.name.uid)
        flaw = self.nodes.flaw(self._shape(known)) if not why_not else ""
        return f"its resource claims cannot be met: {flaw}" if flaw else why_not

    def wanted(self, known: KnownPod) -> tuple[str, Terms]:
        """What its node must be marked with, and the terms of which one must hold there for devices that it has."""
        terms = self.claims.nodes_for(known.device_claims)
        if terms:
            self._tied.setdefault(known.name.uid, 0)
        for name in _names(known):
            if name in self._promised:
                terms = both(terms, on_node(self._promised[name].node))
        return self.nodes.note(known.name.uid, self._shape(known)), terms

    def _shape(self, known: KnownPod) -> Shape:
        claims = (self.claims.known.get(name) for name in _names(known) if name not in self._promised)
        return tuple(c.wish for c in claims if c is not None and not c.allocated and c.wish is not None)

    def settle(self, now_ms: int) -> Iterator[Event]:
        """Before anything is placed: mark the nodes that suit."""
        self._untie(now_ms)
        again: list[str] = []
        yield from self.nodes.settle(again)
        for uid in again:
            yield from self._reconsider(uid)

    def _untie(self, now_ms: int) -> None:
        """What has waited for long with devices that nothing else uses may do better with others."""
        for uid, until in list(self._tied.items()):
            known = self._informer.pod_store.by_uid.get(uid)
            if known is None or known.books is Books.PLACED:
                del self._tied[uid]
            elif not until:
                self._tied[uid] = now_ms + PATIENCE_MS
            elif until <= now_ms:
                del self._tied[uid]
                for name in _names(known):
                    claim = self.claims.known.get(name)
                    if claim is not None and claim.allocated and claim.users <= {uid} and name not in self._promised:
                        self._informer.acts.append(ReturnDevices(known.name, _object(name, claim)))

    # -- what becomes of it ---------------------------------------------------------------------------------------

    def place(self, known: KnownPod) -> str:
        """A pod has a node in the books: promise its claims their devices; or why that cannot be."""
        node = self._informer.around.nodes.get(known.node)
        why_not = self.why_not(known)
        if why_not or node is None:
            return why_not or f"node {known.node} is gone"
        if not suits(self.wanted(known)[1], node.attributes):
            return f"the devices of its resource claims cannot be used on {known.node}"
        shape = self._shape(known)
        try:
            answer = self.nodes.answer(shape, known.node) if shape else ()
        except NoAnswer as e:
            return str(e)
        if answer is None:
            return f"{known.node} has too few devices left for its resource claims"
        self._promise(known, answer)
        self.nodes.forget(known.name.uid)
        return ""

    def _promise(self, known: KnownPod, answer: tuple[tuple[Given, ...], ...]) -> None:
        given_to = iter(answer)
        for name in _names(known):
            claim, promise = self.claims.known[name], self._promised.get(name)
            if promise is None and not claim.allocated:
                given = next(given_to)
                promise = self._promised[name] = Promise(
                    _object(name, claim),
                    known.node,
                    tuple(g.device.key for g in given if not g.option.admin),
                    allocation_of(given, claim.spec, self.claims.classes),
                    self._given_back.get(name, claim.version),
                )
                self._count(promise.devices, 1)
            if promise is not None:
                promise.users[known.name.uid] = None

    def uses(self, known: KnownPod) -> tuple[DeviceUse, ...]:
        """What is written on its claims before the pod is bound."""
        if not known.device_claims:
            return ()
        found = []
        self._ordered[known.name.uid] = True
        for name in _names(known):
            claim, promise = self.claims.known.get(name), self._promised.get(name)
            if promise is not None:
                found.append(DeviceUse(promise.claim, promise.allocation))
            elif claim is not None:
                # Also where it seems to be written down already: that may be about to be taken back.
                found.append(DeviceUse(_object(name, claim)))
        return tuple(found)

    def drop(self, known: KnownPod) -> None:
        """The pod has no place any more; what may have been written on its claims is taken back, unless it is bound."""
        was_ordered = self._ordered.pop(known.name.uid, False)
        if known.bound or known.books is not Books.PLACED:
            return
        for name in _names(known):
            promise, claim = self._promised.get(name), self.claims.known.get(name)
            if promise is not None:
                promise.users.pop(known.name.uid, None)
                promise.returning += was_ordered
                if not promise.users and not promise.returning:
                    self._void(name, promise)
            if was_ordered and claim is not None:
                self._informer.acts.append(ReturnDevices(known.name, _object(name, claim)))

    def returned(self, claim: ObjectName, version: str) -> Iterator[Event]:
        """The server has taken back what a claim was promised, or never had it; that is the claim's version since."""
        name = (claim.namespace, claim.name)
        promise, now = self._promised.get(name), self.claims.known.get(name)
        if now is not None and now.uid == claim.uid and is_older(now.version, version):
            self._given_back[name] = version
        if promise is None or promise.claim.uid != claim.uid or not promise.returning:
            return
        promise.returning -= 1
        if not promise.users and not promise.returning:
            self._void(name, promise)
            for uid in self.claims.users_of((name,)):
                yield from self._reconsider(uid)


def _names(known: KnownPod) -> list[Name]:
    """The claims of a pod that are made, each once."""
    return list(dict.fromkeys(each.claim for each in known.device_claims if each.claim is not None))


def _object(name: Name, claim: Claim) -> ObjectName:
    return ObjectName(*name, claim.uid, kinds.RESOURCE_CLAIMS)
