"""The volume binder: pods that have a node in the books and wait there until their volumes are made or bound.

Decides what is written on claims and volumes once a pod has a node, when the pod can be bound, and when its place is
given up. Never chooses a node, and sends nothing. Invariants: a pod is bound only when all its claims are bound to
volumes that can be used on its node; no claim is promised to two nodes, and no volume to two claims; nobody waits on a
node for longer than `PATIENCE_MS`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fairlead.core.model.constraints import NODE_NAME, NOT_IN, Requirement
from fairlead.core.model.events import Cause, Event
from fairlead.kubernetes.acts import Bind, DeselectNode, Explain, KeepVolume, ObjectName, SelectNode
from fairlead.kubernetes.pod_store import Books, KnownPod
from fairlead.kubernetes.reflector import Change
from fairlead.kubernetes.storage import Key, Terms, both, suits

if TYPE_CHECKING:
    from fairlead.kubernetes.informer import Informer

PATIENCE_MS = 600_000
"""As long as kube-scheduler waits."""
AVOID_MS = 60_000
"""So long a node on which volumes could not be had is left to others."""
AWAITED = "volume-awaited"
GIVEN_UP = "volume-given-up"


@dataclass(slots=True)
class Promise:
    """What a claim is to get."""

    claim: ObjectName
    volume: str = ""
    """A volume that is there; empty: one is made."""
    seen: bool = False
    """The server has told that the claim's node is chosen."""


@dataclass(slots=True)
class Awaited:
    """A pod that waits on its node."""

    node: str
    promises: dict[Key, Promise] = field(default_factory=dict)


class VolumeBinder:
    """Everything that is promised to the claims of one informer."""

    def __init__(self, informer: Informer) -> None:
        self._informer = informer
        self._awaited: dict[str, Awaited] = {}
        self._fresh: list[str] = []
        """Those whose time does not run yet."""
        self._until: dict[str, int] = {}
        """When each is given up, the earliest first."""
        self._avoiding: dict[str, int] = {}
        """Pods that avoid nodes; until when, the earliest first; 0: their time does not run yet."""
        self.pauses: list[str] = []
        """Pods whose placement was given up; whoever keeps the time has them tried again after a while."""
        self._stale: dict[str, None] = {}
        """Pods without a place for whose volumes something has changed."""

    def place(self, known: KnownPod) -> Iterator[Event]:
        """A pod has a node in the books: bind it, or see to its volumes first."""
        open_claims = [key for key in known.claims if not self._is_bound(key)]
        if not open_claims:
            self._informer.acts.append(Bind(known.name, known.node, self._informer.devices.uses(known)))
            return
        awaited = Awaited(known.node)
        why_not = self._promise(known, awaited, open_claims)
        if why_not:
            # Nothing was sent: another node may do at once.
            yield from self.give_up(known, why_not, pause=not self._avoid(known, open_claims))
            return
        self._awaited[known.name.uid] = awaited
        self._fresh.append(known.name.uid)
        names = ", ".join(str(promise.claim) for promise in awaited.promises.values())
        text = f"it has a place on {known.node} and waits there until a volume is bound to {names}"
        known.obstacle = AWAITED, text
        self._informer.acts.append(Explain(known.name, AWAITED, text))

    def _promise(self, known: KnownPod, awaited: Awaited, open_claims: list[Key]) -> str:
        """Find something for each claim, the largest first, and order it; or say why that cannot be."""
        storage, node = self._informer.storage, self._attributes(awaited.node)
        elsewhere = self._promised()
        taken = {promise.volume for other in self._awaited.values() for promise in other.promises.values()}
        taken.discard("")
        orders: list[SelectNode | KeepVolume] = []
        for key in sorted(open_claims, key=lambda k: -storage.claims[k].size if k in storage.claims else 0):
            claim = storage.claims.get(key)
            why_not = storage.why_not((key,))
            if claim is None or why_not:
                return why_not
            name = ObjectName(*key, claim.uid)
            already = elsewhere.get(key)
            chosen = already[0] if already is not None else claim.selected
            if chosen and chosen != awaited.node:
                return f"its volume claim {name} is promised to node {chosen} for another pod"
            if already is not None:
                awaited.promises[key] = Promise(name, already[1].volume, already[1].seen)
                continue
            volume = storage.volume_for(key, node, taken)
            if volume:
                taken.add(volume)
                if not storage.volumes[volume].claim[2]:
                    orders.append(KeepVolume(name, known.name, awaited.node, volume, storage.volumes[volume].uid))
            elif not storage.makes_on(key, node):
                return f"no free volume that suits its volume claim {name} can be used on {awaited.node}"
            elif not claim.selected:
                orders.append(SelectNode(name, known.name, awaited.node))
            awaited.promises[key] = Promise(name, volume, bool(claim.selected))
        self._informer.acts.extend(orders)
        return ""

    def _avoid(self, known: KnownPod, open_claims: list[Key]) -> bool:
        """Whether the pod may do better on another node than its own; then it avoids this one for a while."""
        if known.node in known.avoids or self._informer.storage.why_not(tuple(open_claims)):
            return False
        known.avoids = (*known.avoids, known.node)
        self._avoiding.pop(known.name.uid, None)
        self._avoiding[known.name.uid] = 0
        return True

    def terms(self, known: KnownPod) -> Terms:
        """The terms on nodes of which one must hold for a pod that waits."""
        found = self._informer.storage.nodes_for(known.claims)
        return both(found, ((Requirement(NODE_NAME, NOT_IN, known.avoids),),)) if known.avoids else found

    def _promised(self) -> dict[Key, tuple[str, Promise]]:
        """By claim: the node it is promised to, and what."""
        return {key: (other.node, p) for other in self._awaited.values() for key, p in other.promises.items()}

    def _is_bound(self, key: Key) -> bool:
        claim = self._informer.storage.claims.get(key)
        return claim is not None and claim.bound

    def _attributes(self, node: str) -> Mapping[str, str]:
        known = self._informer.around.nodes.get(node)
        return known.attributes if known is not None else {}

    # -- what becomes of it ---------------------------------------------------------------------------------------

    def take(self, change: Change) -> Iterator[Event]:
        """A claim, a volume or a class has changed; a free volume may mean something to all pods of its class."""
        for uid in self._informer.storage.take(change):
            known = self._informer.pod_store.by_uid.get(uid)
            if known is None or known.leaving:
                continue
            if known.books is Books.PLACED:
                yield from self._reattach(known)
            if known.books is Books.PLACED and not known.bound:
                yield from self._look(known)
            elif not known.bound:
                self._stale[uid] = None

    def settle(self) -> Iterator[Event]:
        """Before anything is placed: look again, once, at the pods for which something has changed."""
        while self._stale:
            uid = next(iter(self._stale))
            del self._stale[uid]
            known = self._informer.pod_store.by_uid.get(uid)
            if known is None or known.leaving or known.bound:
                continue
            if known.books is Books.WAITING:
                yield from self._reconsider(known)
            elif known.books is Books.OUT and not known.pausing:
                yield from self._informer.try_again(uid)

    def _reconsider(self, known: KnownPod) -> Iterator[Event]:
        """A pod waits in the books: it leaves them if it may not be there now; another wish is a new one."""
        informer = self._informer
        storage = informer.storage
        may = not informer.reader.why_no_volumes(known)
        if may and self.terms(known) == known.terms and storage.attached(known.claims) == known.attached:
            return
        yield from informer.withdraw(known)
        if informer.may_enter(known):
            yield from informer.enter(known)

    def _reattach(self, known: KnownPod) -> Iterator[Event]:
        """A pod has a node, and more is known of its volumes."""
        if self._informer.storage.attached(known.claims) != known.attached:
            yield self._informer.reader.described(known)

    def _look(self, known: KnownPod) -> Iterator[Event]:
        awaited = self._awaited.get(known.name.uid)
        if awaited is None:
            return
        waits = False
        for key, promise in awaited.promises.items():
            is_done, why_not = self._look_at(key, promise, awaited.node)
            if why_not:
                self._avoid(known, [key])
                yield from self.give_up(known, why_not)
                return
            waits = waits or not is_done
        if not waits:
            self.drop(known)
            self._informer.acts.append(Bind(known.name, known.node, self._informer.devices.uses(known)))

    def _look_at(self, key: Key, promise: Promise, node: str) -> tuple[bool, str]:
        """Whether the claim has what it was promised, or why it never will."""
        storage = self._informer.storage
        claim = storage.claims.get(key)
        if claim is None or claim.uid != promise.claim.uid or claim.leaving:
            return False, f"its volume claim {promise.claim} is gone"
        if claim.bound:
            volume = storage.volumes.get(claim.volume)
            if volume is None:
                return False, ""
            if not suits(volume.terms, self._attributes(node)):
                return False, f"volume {claim.volume} of its claim {promise.claim} cannot be used on {node}"
            return True, ""
        if promise.volume:
            kept = storage.volumes.get(promise.volume)
            if kept is None or (kept.claim[2] and kept.claim != (*key, claim.uid)):
                return False, f"volume {promise.volume} is no longer free for its claim {promise.claim}"
        elif claim.selected == node:
            promise.seen = True
        elif claim.selected or (promise.seen and not claim.volume):
            return False, f"no volume could be made on {node} for its claim {promise.claim}"
        return False, ""

    def overdue(self, now_ms: int) -> Iterator[Event]:
        """The time of those that wait runs from now on; those whose time is over have their placement given up."""
        for uid in self._fresh:
            if uid in self._awaited:
                self._until[uid] = now_ms + PATIENCE_MS
        self._fresh.clear()
        yield from self._forgive(now_ms)
        while self._until:
            uid = next(iter(self._until))
            if self._until[uid] > now_ms:
                return
            known, awaited = self._informer.pod_store.by_uid[uid], self._awaited[uid]
            names = ", ".join(str(promise.claim) for promise in awaited.promises.values())
            self._take_back(awaited)
            self._avoid(known, list(awaited.promises))
            yield from self.give_up(known, f"no volume came for {names} on {awaited.node} within 10 minutes")

    def _forgive(self, now_ms: int) -> Iterator[Event]:
        """Who has avoided nodes for long enough may try them again."""
        for uid, until in list(self._avoiding.items()):
            known = self._informer.pod_store.by_uid.get(uid)
            if not until:
                self._avoiding[uid] = now_ms + AVOID_MS
            elif until <= now_ms or known is None:
                del self._avoiding[uid]
                if known is not None:
                    known.avoids = ()
                    if known.books is Books.WAITING:
                        yield from self._reconsider(known)

    def _take_back(self, awaited: Awaited) -> None:
        """Another node may do better: the server need not go on with this one."""
        for key, promise in awaited.promises.items():
            if not promise.volume and not self._is_bound(key):
                self._informer.acts.append(DeselectNode(promise.claim, awaited.node))

    def lost(self, known: KnownPod) -> None:
        """Its node is gone, or nothing may stay there: no volume is to be made there any more."""
        awaited = self._awaited.get(known.name.uid)
        if awaited is not None:
            self._take_back(awaited)

    def waits(self, known: KnownPod) -> bool:
        """Whether the pod waits on its node."""
        return known.name.uid in self._awaited

    def retreat(self, known: KnownPod, why: str) -> Iterator[Event]:
        """A pod that only waits on its node has to go: it has not begun, so nothing is stopped."""
        yield from self.give_up(known, why, Cause(known.stopping))

    def give_up(
        self, known: KnownPod, why: str, cause: Cause = Cause.STOPPED_BY_RM, pause: bool = True
    ) -> Iterator[Event]:
        """The placement is undone; the pod waits again, after a pause or at once."""
        known.pausing = pause
        yield from self._informer.withdraw(known, cause)
        known.stopping = ""
        known.obstacle = GIVEN_UP, f"{why}; it is placed anew after a pause"
        if pause:
            self.pauses.append(known.name.uid)
            self._informer.tell(known.name, *known.obstacle)
        else:
            yield from self._informer.try_again(known.name.uid)

    def drop(self, known: KnownPod) -> None:
        """The pod does not wait on its node any more."""
        if self._awaited.pop(known.name.uid, None) is not None:
            self._until.pop(known.name.uid, None)
            known.obstacle = None

    # -- after a restart ------------------------------------------------------------------------------------------

    def node_before(self, known: KnownPod) -> str:
        """The node that was chosen for a waiting pod before this process began, as its claims tell; or nothing."""
        claims = [self._informer.storage.claims.get(key) for key in known.claims]
        chosen = {claim.selected: None for claim in claims if claim is not None and not claim.bound and claim.selected}
        return next(iter(chosen), "")
