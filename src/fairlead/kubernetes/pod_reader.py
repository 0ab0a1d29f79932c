"""The pod reader: what a pod asks for, as things stand around it.

Decides how a pod is read together with its namespace, its priority class, its volumes and devices, and what outside the
books is in its way. Never decides where a pod stands, and changes no book. Invariant: what is read depends on what is
known now; whoever changes that asks again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from fairlead.core.model.events import AddAsks, ChangeAsk, Event, LabelAsk
from fairlead.core.model.specs import TAG_FORCE_CREATE, TAG_GANG_COMES_AGAIN
from fairlead.kubernetes.devices.device_binder import UNMET
from fairlead.kubernetes.gangs import FAILED
from fairlead.kubernetes.pod_store import Books
from fairlead.kubernetes.storage import NOT_UNDERSTOOD, UNBOUND, both
from fairlead.kubernetes.translate.amounts import AmountError
from fairlead.kubernetes.translate.cluster import tags_of
from fairlead.kubernetes.translate.constraints import ConstraintError
from fairlead.kubernetes.translate.identity import IDLE, QUEUE, IdentityError, application_of_group
from fairlead.kubernetes.translate.pods import TAG_NAMESPACE, ask_of, foreign_ask, protection
from fairlead.kubernetes.translate.workloads import limit_ms_of, part_of

if TYPE_CHECKING:
    from fairlead.core.model.constraints import Constraints
    from fairlead.core.model.specs import AskSpec
    from fairlead.kubernetes.informer import Informer
    from fairlead.kubernetes.objects import Pod
    from fairlead.kubernetes.pod_store import KnownPod

UNREADABLE = (AmountError, ConstraintError, IdentityError)
"""What is raised for a pod that makes no sense."""
OWN_TAGS = TAG_NAMESPACE, TAG_FORCE_CREATE, TAG_GANG_COMES_AGAIN
"""Of an application, whatever its namespace says."""
NO_MEMBER = f"idle work starts with no %s: leave out {IDLE}, or the group"


class PodReader:
    """Reads pods for one informer."""

    def __init__(self, informer: Informer) -> None:
        self._informer = informer

    def spec_of(self, pod: Pod, known: KnownPod | None, foreign: bool) -> AskSpec:
        """What a pod means by itself. Raises `UNREADABLE`. It stays in the application and group that it came with,
        and idle or not as it came.
        """
        around = self._informer.around
        if foreign or (known is not None and known.foreign):
            return foreign_ask(pod, around.namespaces_of)
        spec = self._limited(pod, ask_of(pod, around.namespaces_of, around.classes, self._informer.images))
        if known is None:
            return self._joined(pod, spec)
        return replace(spec, application=known.application, task_group=known.spec.task_group, idle=known.spec.idle)

    def _joined(self, pod: Pod, spec: AskSpec) -> AskSpec:
        """The ask of a pod as that of its workload, if it has one; of a job also where it names a pod group, since room
        would be kept for both. Raises `IdentityError`.
        """
        known = self._informer.workloads.store.owner(pod)
        if known is not None:
            return replace(spec, application=known.spec.application, task_group=part_of(pod, known.spec))
        application = application_of_group(pod)
        if spec.idle and not spec.node and (application or spec.task_group):
            # As a member it would be waited for, and refused when its room is reserved.
            raise IdentityError(NO_MEMBER % ("pod group" if application else "gang"))
        if not application:
            return spec
        return replace(spec, application=application, task_group=pod.metadata.uid or "")

    def _limited(self, pod: Pod, spec: AskSpec) -> AskSpec:
        """The ask of a pod, which ends with its job."""
        known = self._informer.workloads.store.owner(pod)
        limit_ms = limit_ms_of(pod, known.spec) if known is not None else None
        if limit_ms is None or (spec.time_limit_ms is not None and spec.time_limit_ms <= limit_ms):
            return spec
        return replace(spec, time_limit_ms=limit_ms)

    def begins_anew(self, known: KnownPod, pod: Pod) -> bool:
        """Whether what is known of a pod without a node is of no use: the server was set back to before it had one; or
        it came before its job was known, jobs and pods being watched apart, and waits as if it had none.
        """
        if pod.spec.node_name or known.bound:
            return not pod.spec.node_name
        job = self._informer.workloads.store.owner(pod) if known.books is not Books.PLACED else None
        return job is not None and job.spec.application != known.application

    def ask(self, known: KnownPod) -> AskSpec:
        """What is asked for with its volumes and devices: where these can be used counts only while it has no node."""
        where = self._with_volumes(known) if known.claims else known.spec.where
        if known.device_claims and not known.bound and not known.foreign:
            known.devices, known.device_terms = self._informer.devices.wanted(known)
            where = replace(where, devices=known.devices, node_terms=both(where.node_terms, known.device_terms))
        return known.spec if where is known.spec.where else replace(known.spec, where=where)

    def _with_volumes(self, known: KnownPod) -> Constraints:
        where, storage = known.spec.where, self._informer.storage
        known.terms, known.attached = (), storage.attached(known.claims)
        where = replace(where, volumes=known.attached)
        if not known.bound:
            known.terms = terms = self._informer.volume_binder.terms(known)
            alone = where.anti_affinity + storage.alone_with(known.claims)
            where = replace(where, node_terms=both(where.node_terms, terms), anti_affinity=alone)
        return where

    def changed(self, known: KnownPod, before: AskSpec) -> Iterator[Event]:
        """The events for a pod in the books that asked for something else `before`. Each must be handled at once."""
        spec, partition = known.spec, self._informer.partition
        if spec.resources != before.resources:
            yield AddAsks((self.ask(known),), partition)
        if _description(spec) != _description(before):
            yield self.described(known)
        # What waits in a gang is as it was when it came.
        may_change = known.books is Books.PLACED or (known.books is Books.WAITING and not spec.task_group)
        if spec.time_limit_ms != before.time_limit_ms and may_change and not spec.placeholder:
            about = known.application, known.name.uid, spec.resources, spec.time_limit_ms
            yield ChangeAsk(*about, partition=partition)

    def described(self, known: KnownPod) -> AddAsks | LabelAsk:
        """The event for a pod in the books that has other labels or constraints, or for another scheduler's pod."""
        ask, partition = self.ask(known), self._informer.partition
        if known.foreign:
            return AddAsks((ask,), partition)
        said = ask.labels, ask.where, partition, ask.images, ask.allow_preempt_self, ask.min_runtime_ms
        return LabelAsk(known.application, known.name.uid, *said)

    def reclassed(self) -> Iterator[Event]:
        """Priority classes are others than before: the events for pods in the books that they protect otherwise."""
        classes, pods = self._informer.around.classes, self._informer.pod_store.by_uid
        for known in [k for k in pods.values() if not (k.foreign or k.name.stands_for)]:
            spec, said = known.spec, protection(known.willing, known.priority_class, classes)
            if (spec.allow_preempt_self, spec.min_runtime_ms) != said:
                known.spec = replace(spec, allow_preempt_self=said[0], min_runtime_ms=said[1])
                if known.books is not Books.OUT:
                    yield self.described(known)

    def renoted(self) -> Iterator[Event]:
        """A namespace says something else: applications that were refused are tried again by what theirs says now."""
        informer = self._informer
        for name in [each for each in informer.refused if not informer.gangs.has_failed(each)]:
            spec, first = informer.specs.get(name), next(informer.pod_store.members(name), None)
            if spec is None or first is None:
                continue
            notes = informer.around.namespace_notes(spec.tags.get(TAG_NAMESPACE, ""))
            tags = {key: spec.tags[key] for key in OWN_TAGS if key in spec.tags} | tags_of(notes)
            said = replace(spec, queue=first.queue or notes.get(QUEUE, ""), tags=tags)
            now = informer.workloads.declared_by(said, name)
            if now != spec:
                informer.specs[name] = now
                informer.gangs.redeclare(now)
                yield from informer.placeholders.try_again(name)

    def why_no_volumes(self, known: KnownPod) -> str:
        """What is wrong with its volume claims, as a sentence; empty: nothing that keeps it out of the books."""
        return self._informer.storage.why_not(known.claims, known.own_claims, known.name.uid)

    def lacks(self, known: KnownPod) -> tuple[str, str] | None:
        """Which of its volumes and claims is not there; what is bound before that would wait on its node, in vain."""
        if known.not_understood:
            return NOT_UNDERSTOOD, known.not_understood
        if known.claims and (why_not := self.why_no_volumes(known)):
            return UNBOUND, why_not
        if known.device_claims and (why_not := self._informer.devices.why_not(known)):
            return UNMET, why_not
        return None

    def has_claims(self, known: KnownPod) -> bool:
        """Whether its volumes and claims are there; if not, it is told so."""
        known.obstacle = self.lacks(known)
        if known.obstacle is not None:
            self._informer.tell(known.name, *known.obstacle)
        return known.obstacle is None

    def refusal(self, application: str) -> tuple[str, str]:
        """Why an application was refused or has failed: a code and a sentence."""
        has_failed = self._informer.gangs.has_failed(application)
        return FAILED if has_failed else "application-refused", self._informer.refused[application]

    def in_its_way(self, known: KnownPod) -> tuple[str, str] | None:
        """Why a pod without a node does not wait in the books: a code and a sentence; None: it does, or is about to."""
        informer = self._informer
        if known.obstacle is not None:
            return known.obstacle
        if known.flaw:
            return "unreadable", known.flaw
        if known.application in informer.refused:
            return self.refusal(known.application)
        if known.refused is not None:
            return known.refused
        if (held := informer.workloads.obstacle(known)) is not None:
            return held
        return informer.gangs.obstacle(known) if informer.gangs.holds_back(known) else None


def _description(spec: AskSpec) -> tuple[object, ...]:
    """What of an ask in the books is described anew when it changes."""
    return spec.labels, spec.where, spec.images, spec.allow_preempt_self, spec.min_runtime_ms
