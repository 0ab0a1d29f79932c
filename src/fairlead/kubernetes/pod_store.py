"""The pod store: every pod we know, and where it stands in the scheduler's books.

Decides nothing. Invariant: a pod is in at most one of waiting and placed, and one that is placed has a node.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import Enum
from sys import intern

from fairlead.core.model.constraints import Requirement
from fairlead.core.model.specs import TAG_FOREIGN, AskSpec
from fairlead.kubernetes.acts import ObjectName
from fairlead.kubernetes.objects import Gate, Pod
from fairlead.kubernetes.translate.constraints import selects_namespaces
from fairlead.kubernetes.translate.identity import pod_group_of, preemption_word, queue_of
from fairlead.kubernetes.translate.pods import (
    PodClaim,
    claims_of,
    device_claims_of,
    is_disrupted,
    not_understood,
    own_claims_of,
    seconds,
)

_IDENTITY = re.compile(
    r"(?:([A-Za-z0-9][A-Za-z0-9._-]*)/)?([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})"
)


class Books(Enum):
    """Where a pod stands in the scheduler's books."""

    OUT = "out"
    """Not there: it has not entered yet, may not, or has left."""
    WAITING = "waiting"
    PLACED = "placed"
    """It has a node there; at the API server it may not be bound yet."""


@dataclass(slots=True)
class KnownPod:
    """One pod."""

    name: ObjectName
    application: str
    spec: AskSpec
    """As its latest version says."""
    foreign: bool = False
    books: Books = Books.OUT
    node: str = ""
    """In the books."""
    bound: str = ""
    """At the API server."""
    stopping: str = ""
    """The cause for which the scheduler told it to stop; empty: it did not."""
    leaving: bool = False
    """It is being deleted at the API server."""
    disrupted: bool = False
    """It was marked by a scheduler as stopped to make room."""
    nominated: str = ""
    """As the API server has it, or was told to have it."""
    is_told: bool = False
    """The API server was told: what it says may be of before."""
    flaw: str = ""
    """Why it cannot enter, as a sentence."""
    refused: tuple[str, str] | None = None
    """Why the scheduler does not take it: a code and a sentence; it is asked again."""
    claims: tuple[tuple[str, str], ...] = ()
    """The volume claims that it needs, by namespace and name."""
    own_claims: tuple[tuple[str, str], ...] = ()
    """Those of them that are made for it alone."""
    terms: tuple[tuple[Requirement, ...], ...] = ()
    """What its volumes asked of its node when it entered the books."""
    attached: tuple[str, ...] = ()
    """Its volumes that are attached to its node, as the books have them."""
    device_claims: tuple[PodClaim, ...] = ()
    """The resource claims that it needs."""
    devices: str = ""
    """What its node was to be marked with for them when it entered the books, ..."""
    device_terms: tuple[tuple[Requirement, ...], ...] = ()
    """... and the terms of which one had to hold."""
    obstacle: tuple[str, str] | None = None
    """What is in its way outside the books: a code and a sentence."""
    avoids: tuple[str, ...] = ()
    """Nodes on which its volumes could not be had lately."""
    pausing: bool = False
    """Its placement came to nothing, and it is tried again after a while."""
    not_understood: str = ""
    """What it asks for by a field that is not understood, as a sentence that names it."""
    endless: bool = False
    """It is started again whenever it ends, and nothing limits it."""
    group: str = ""
    """The pod group that it says it belongs to."""
    queue: str = ""
    """The queue that it names itself."""
    pod: Pod | None = None
    """Its latest version, where what that means depends on the labels of namespaces."""
    priority_class: str = ""
    willing: str | None = None
    """Its own word on whether it may be a victim; None: its class decides."""
    since_ms: int = 0
    """When its node began with it, as the API server has it; 0: not yet, or nobody said."""

    def update(self, pod: Pod, spec: AskSpec) -> None:
        """It has another version, which means this ask."""
        meta, status = pod.metadata, pod.status
        self.spec, self.flaw = spec, ""
        self.claims, self.own_claims, self.not_understood = claims_of(pod), own_claims_of(pod), not_understood(pod)
        self.device_claims = device_claims_of(pod)
        self.pod = pod if selects_namespaces(pod) else None
        self.group, self.queue = pod_group_of(pod), intern(queue_of(pod))
        self.leaving, self.disrupted = bool(meta.deletion_timestamp), is_disrupted(pod)
        if spec.node or not self.is_told:
            self.nominated = status.nominated_node_name or ""
        self.endless = (pod.spec.restart_policy or "Always") == "Always"
        self.priority_class, self.willing = intern(pod.spec.priority_class_name or ""), preemption_word(pod)
        self.since_ms = (seconds(status.start_time) or 0) * 1000

    def only_uses_room(self) -> None:
        """It runs and cannot be in the books as what it is, but the room that it uses is."""
        self.foreign = True
        self.spec = replace(self.spec, application="", tags={**self.spec.tags, TAG_FOREIGN: "default"})


@dataclass(frozen=True, slots=True)
class News:
    """A pod of ours came, or left."""

    pod: KnownPod
    what: str
    """`came`, `succeeded`, `failed` or `deleted`."""


@dataclass(slots=True)
class PodStore:
    """All pods, by identity."""

    by_uid: dict[str, KnownPod] = field(default_factory=dict)
    by_name: dict[tuple[str, str], str] = field(default_factory=dict)
    by_application: dict[str, dict[str, None]] = field(default_factory=dict)
    homeless: dict[str, dict[str, None]] = field(default_factory=dict)
    """By node: pods that are bound to a node we do not know (yet, or any more)."""
    passed_over: dict[tuple[str, str], str] = field(default_factory=dict)
    """By namespace and name: why a pod of ours is not known here, as a sentence: it is unreadable, or has gates."""

    def add(self, pod: KnownPod) -> KnownPod:
        """A pod is known from now on; it is given back."""
        self.by_uid[pod.name.uid] = pod
        self.by_name[pod.name.namespace, pod.name.name] = pod.name.uid
        self.passed_over.pop((pod.name.namespace, pod.name.name), None)
        if not pod.foreign:
            self.by_application.setdefault(pod.application, {})[pod.name.uid] = None
        return pod

    def gated(self, name: ObjectName, gates: Iterable[Gate]) -> None:
        """What keeps a pod out that is not to be scheduled yet; none: it is over, or not ours."""
        if named := ", ".join(gate.name for gate in gates):
            why = f"it has scheduling gates ({named}), and is not looked at before whoever set them takes them away"
            self.passed_over[name.namespace, name.name] = why
        else:
            self.passed_over.pop((name.namespace, name.name), None)

    def forget(self, pod: KnownPod) -> None:
        """A pod is no more."""
        self.by_uid.pop(pod.name.uid, None)
        name = (pod.name.namespace, pod.name.name)
        if self.by_name.get(name) == pod.name.uid:
            del self.by_name[name]
        members = self.by_application.get(pod.application)
        if members is not None:
            members.pop(pod.name.uid, None)
            if not members:
                del self.by_application[pod.application]
        self.house(pod)

    def named(self, namespace: str, name: str) -> KnownPod | None:
        """The pod of this name, or None."""
        return self.by_uid.get(self.by_name.get((namespace, name), ""))

    def says_otherwise(self, uid: str) -> None:
        """A pod is told something else than that the scheduler refuses it: that is said anew, should it be so again."""
        if (known := self.by_uid.get(uid)) is not None:
            known.refused = None

    def in_names(self, text: str, uid: str) -> str:
        """A text about a pod with its name, or its job's, in place of its identity."""
        known = self.by_uid.get(uid)
        return text.replace(uid, str(known.name.stands_for or known.name)) if known is not None else text

    def with_names(self, text: str) -> str:
        """A text with the names of all pods in place of their identities, and of these after their applications."""

        def name(found: re.Match[str]) -> str:
            known = self.by_uid.get(found[2])
            if known is None:
                return found[0]
            before = "" if not found[1] or found[1] == known.application else f"{found[1]}/"
            return before + str(known.name)

        return _IDENTITY.sub(name, text)

    def size(self, application: str) -> int:
        """How many pods an application has, stand-ins among them."""
        return len(self.by_application.get(application, ()))

    def members(self, application: str) -> Iterator[KnownPod]:
        """The pods of an application, in the order in which they came."""
        for uid in list(self.by_application.get(application, ())):
            yield self.by_uid[uid]

    def wait_for_node(self, pod: KnownPod) -> None:
        """The pod's node is not known."""
        self.homeless.setdefault(pod.bound, {})[pod.name.uid] = None

    def lose_node(self, node: str) -> None:
        """A node is gone: what others have placed there is not in the books any more, and waits for it."""
        for pod in self.by_uid.values():
            if pod.foreign and pod.books is Books.PLACED and pod.node == node:
                pod.books, pod.node = Books.OUT, ""
                self.wait_for_node(pod)

    def house(self, pod: KnownPod) -> None:
        """The pod waits for its node no longer."""
        waiting = self.homeless.get(pod.bound)
        if waiting is not None:
            waiting.pop(pod.name.uid, None)
            if not waiting:
                del self.homeless[pod.bound]
