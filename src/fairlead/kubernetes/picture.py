"""The picture: what the cluster has, told to the scheduler once and in order, whatever order it came in.

Decides which events follow from a change at the API server, and what the picture learns from the scheduler's decisions.
Never decides who runs, and sends nothing. The contract of its user: every event that it gives is handled at once, and
the decisions that follow are heard (`heard`) before the next change is taken.

Invariants: a pod enters the scheduler's books once, and leaves them once; a pod that is bound to a node we do not know
waits for that node; an older version of an object changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from fairlead.core.decisions import (
    Allocated,
    ApplicationAccepted,
    ApplicationChanged,
    ApplicationRejected,
    AskRejected,
    Decision,
    Evict,
    Released,
    Reserved,
    Unreserved,
)
from fairlead.core.events import AddApplication, AddAsks, Cause, Event, Release
from fairlead.core.specs import DEFAULT_PARTITION, TAG_FORCE_CREATE, TAG_FOREIGN, ApplicationSpec
from fairlead.kubernetes import kinds
from fairlead.kubernetes.acts import Act, Bind, DeletePod, EvictPod, Explain, Nominate, PodName, Record
from fairlead.kubernetes.gangs import Gangs
from fairlead.kubernetes.objects import LabelSelector, Pod
from fairlead.kubernetes.reflector import Change, Changed, Deleted
from fairlead.kubernetes.roster import Books, KnownPod, Roster
from fairlead.kubernetes.surroundings import Surroundings
from fairlead.kubernetes.translate import identity
from fairlead.kubernetes.translate.amounts import AmountError
from fairlead.kubernetes.translate.constraints import ConstraintError
from fairlead.kubernetes.translate.identity import IdentityError
from fairlead.kubernetes.translate.pods import (
    PodContext,
    Standing,
    application_of,
    ask_of,
    foreign_ask,
    standing,
)

TAINT = "taint"
UNREADABLE = (AmountError, ConstraintError, IdentityError)
OVER_STATES = frozenset({"Completed", "Failed", "Expired", "Removed"})


class Picture:
    """Pods, nodes and policies of one cluster, and where each pod stands in the books of one scheduler."""

    def __init__(self, scheduler_name: str = "fairlead", partition: str = DEFAULT_PARTITION) -> None:
        self.scheduler_name = scheduler_name
        self.partition = partition
        self.roster = Roster()
        self.around = Surroundings(partition)
        self.gangs = Gangs()
        self.acts: list[Act] = []
        """What is to be done, in order; whoever carries it out takes it away."""
        self.applications: dict[str, None] = {}
        """In the scheduler's books."""
        self.specs: dict[str, ApplicationSpec] = {}
        """How each application with a pod was declared by the first of them."""
        self.waiting: dict[str, None] = {}
        """Pods that wait in the scheduler's books, by identity."""
        self.live = False
        """Everything that was there at the start has been taken: gangs may be completed from now on."""
        self.refused: dict[str, str] = {}
        """Applications that were rejected or have failed, with the reason; their pods do not enter."""

    # -- changes at the API server --------------------------------------------------------------------------------

    def take(self, change: Change) -> Iterator[Event]:
        """The events that follow from one change. Each must be handled before the next is asked for."""
        if isinstance(change, Changed) and change.kind is kinds.PODS:
            yield from self._pod_changed(change.object)
        elif isinstance(change, Deleted) and change.kind is kinds.PODS:
            known = self.roster.by_uid.get(change.uid)
            if known is not None:
                yield from self._leave(known, Cause.STOPPED_BY_RM)
                yield from self._forget(known)
        else:
            yield from self.around.take(change)
            if change_of_node := _node_that_came(change):
                yield from self._house(change_of_node)

    def _pod_changed(self, pod: Pod) -> Iterator[Event]:
        meta = pod.metadata
        name = PodName(meta.namespace or "default", meta.name, meta.uid or "")
        known = self.roster.by_uid.get(name.uid)
        if known is not None and _is_older(meta.resource_version, known.version):
            return
        stands = standing(pod, self.scheduler_name)
        if known is None:
            if stands in (Standing.ELSEWHERE, Standing.GATED, Standing.OVER):
                return
            earlier = self.roster.named(name.namespace, name.name)
            if earlier is not None:
                # Its end was missed: nobody else can have that name.
                yield from self._leave(earlier, Cause.STOPPED_BY_RM)
                yield from self._forget(earlier)
        elif stands is Standing.OVER:
            yield from self._over(known, pod)
            return
        try:
            spec = foreign_ask(pod) if stands is Standing.FOREIGN else ask_of(pod, self._context())
        except UNREADABLE as e:
            self._unreadable(name, known, str(e))
            return
        if known is None:
            known = KnownPod(name, spec.application, spec, foreign=stands is Standing.FOREIGN)
            self.roster.add(known)
        resized = known.spec.resources != spec.resources
        known.spec, known.version, known.flaw = spec, meta.resource_version or "", ""
        known.leaving = bool(meta.deletion_timestamp)
        known.nominated = (pod.status.nominated_node_name if pod.status is not None else None) or ""
        if known.bound != spec.node:
            self.roster.house(known)
            known.bound = spec.node
        if known.foreign:
            if known.books is Books.OUT or resized:
                yield from self._foreign(known)
        else:
            yield from self._ours(known, pod, resized)

    def _context(self) -> PodContext:
        return PodContext(self.scheduler_name, self._namespaces_of, self.around.classes)

    def _namespaces_of(self, selector: LabelSelector) -> tuple[str, ...]:
        return self.around.namespaces_of(selector)

    def _unreadable(self, name: PodName, known: KnownPod | None, why: str) -> None:
        """A pod that makes no sense does not enter, and is told so; one that is in stays as it was."""
        if known is None:
            self.acts.append(Explain(name, "unreadable", why))
            self.acts.append(Record(name, "FailedScheduling", why, warning=True))

    def _foreign(self, known: KnownPod) -> Iterator[Event]:
        if known.bound not in self.around.nodes:
            self.roster.wait_for_node(known)
            return
        self._stand(known, Books.PLACED, known.bound)
        yield AddAsks((known.spec,), self.partition)

    def _ours(self, known: KnownPod, pod: Pod, resized: bool) -> Iterator[Event]:
        """One of our pods, new or changed."""
        if known.application not in self.specs:
            self._declare(known, pod)
        if known.books is Books.OUT:
            if self._may_enter(known):
                yield from self._enter(known)
            elif self.gangs.holds_back(known):
                # The application comes first: its acceptance has the placeholders made.
                yield from self._introduce(known.application)
            return
        if known.bound and known.books is Books.PLACED and known.bound != known.node:
            # Somebody else bound it, or we did before a restart that we know nothing of: the server is right.
            self._stand(known, Books.OUT)
            yield self._release(known, Cause.STOPPED_BY_RM)
            yield from self._enter(known)
        elif known.bound and known.books is Books.WAITING:
            yield from self._enter(known)
        elif resized:
            yield AddAsks((known.spec,), self.partition)

    def _declare(self, known: KnownPod, pod: Pod) -> None:
        """The first pod of an application says what it is."""
        notes = self.around.namespace_notes(known.name.namespace)
        try:
            application = application_of(pod, notes)
            gang = identity.gang_of(pod)
        except UNREADABLE as e:
            known.flaw = str(e)
            self._tell(known, "unreadable", str(e))
            return
        if known.bound:
            # It runs: whatever the queues say by now, it has to be in the books.
            application = replace(application, tags={**application.tags, TAG_FORCE_CREATE: "true"})
        self.specs[application.id] = application
        if gang is not None:
            self.gangs.declare(application, gang, known.name, pod)

    def _introduce(self, application: str) -> Iterator[Event]:
        """An application enters the books, for the first time or again after it had ended there."""
        if application in self.specs and application not in self.applications and application not in self.refused:
            self.applications[application] = None
            yield AddApplication(self.specs[application])

    def _may_enter(self, known: KnownPod) -> bool:
        if known.bound:
            return True
        if known.flaw:
            return False
        refused = self.refused.get(known.application)
        if refused is not None:
            self._tell(known, "application-refused", refused)
            return False
        return not self.gangs.holds_back(known)

    def _enter(self, known: KnownPod) -> Iterator[Event]:
        if known.bound:
            if known.bound not in self.around.nodes:
                self.roster.wait_for_node(known)
                return
            self._stand(known, Books.PLACED, known.bound)
            yield from self._introduce(known.application)
            if known.flaw or known.application not in self.applications:
                # It cannot be in the books as what it is, but the room that it uses is.
                known.foreign = True
                known.spec = replace(known.spec, application="", tags={**known.spec.tags, TAG_FOREIGN: "default"})
        else:
            yield from self._introduce(known.application)
            if known.application not in self.applications:
                return
            self._stand(known, Books.WAITING)
        yield AddAsks((known.spec,), self.partition)
        if known.books is Books.PLACED:
            yield from self._count_in(known)

    def _count_in(self, known: KnownPod) -> Iterator[Event]:
        """A placeholder has a node: when it was the last one, the members of its gang enter."""
        if known.foreign:
            return
        begins = self.gangs.stands(known) if known.spec.placeholder else self.gangs.has_begun(known)
        if begins:
            yield from self._release_members(known.application)

    def _release_members(self, application: str) -> Iterator[Event]:
        for member in self.roster.members(application):
            if member.books is Books.OUT and self._may_enter(member):
                yield from self._enter(member)

    def _stand(self, known: KnownPod, books: Books, node: str = "") -> None:
        """Note where the pod stands in the scheduler's books from now on."""
        if known.books is Books.WAITING:
            self.waiting.pop(known.name.uid, None)
        elif books is Books.WAITING:
            self.waiting[known.name.uid] = None
        known.books, known.node = books, node

    # -- leaving --------------------------------------------------------------------------------------------------

    def _over(self, known: KnownPod, pod: Pod) -> Iterator[Event]:
        """It ended, or was deleted before it had a node."""
        failed = pod.status is not None and pod.status.phase == "Failed"
        cause = Cause.FINISHED if pod.status is not None and pod.status.phase in ("Succeeded", "Failed") else None
        yield from self._leave(known, cause or Cause.STOPPED_BY_RM, 1 if failed else 0)
        yield from self._forget(known)

    def _leave(self, known: KnownPod, cause: Cause, exit_code: int | None = None) -> Iterator[Event]:
        """A pod uses nothing any more. What the scheduler told to stop is confirmed with its cause."""
        self.roster.house(known)
        if known.books is Books.OUT:
            return
        release = self._release(known, Cause(known.stopping) if known.stopping else cause, exit_code)
        self._stand(known, Books.OUT)
        yield release

    def _release(self, known: KnownPod, cause: Cause, exit_code: int | None = None) -> Release:
        code = exit_code if cause is Cause.FINISHED else None
        application = "" if known.foreign else known.application
        return Release(application, known.name.uid, cause, self.partition, exit_code=code)

    def _forget(self, known: KnownPod) -> Iterator[Event]:
        self.roster.forget(known)
        self.gangs.gone(known)
        if not known.foreign and known.application not in self.roster.by_application:
            # Its name may be used anew by somebody who does better.
            self.refused.pop(known.application, None)
            self.specs.pop(known.application, None)
            self.gangs.forget(known.application)
        return
        yield

    # -- nodes ----------------------------------------------------------------------------------------------------

    def _house(self, node: str) -> Iterator[Event]:
        """A node is known now: what is bound to it enters."""
        for uid in list(self.roster.homeless.get(node, ())):
            known = self.roster.by_uid[uid]
            self.roster.house(known)
            if known.foreign:
                yield from self._foreign(known)
            else:
                yield from self._enter(known)

    # -- what the scheduler decided -------------------------------------------------------------------------------

    def heard(self, decisions: Sequence[Decision]) -> Iterator[Event]:
        """Learn from decisions, and put what they order into `acts`. Events that follow must be handled as well."""
        for decision in decisions:
            if isinstance(decision, Allocated):
                yield from self._allocated(decision)
            elif isinstance(decision, Evict):
                self._evicted(decision)
            elif isinstance(decision, Released):
                yield from self._released(decision)
            elif isinstance(decision, Reserved | Unreserved):
                self._nominated(decision)
            elif isinstance(decision, AskRejected):
                self._ask_refused(decision)
            elif isinstance(decision, ApplicationAccepted):
                self._complete_gang(decision.id)
            elif isinstance(decision, ApplicationRejected):
                self._application_over(decision.id, decision.reason.sentence())
            elif isinstance(decision, ApplicationChanged):
                yield from self._application_changed(decision)

    def begin(self) -> None:
        """Everything that was there at the start has been taken."""
        self.live = True
        for application in self.gangs.declared:
            self._complete_gang(application)

    def _complete_gang(self, application: str) -> None:
        """Create the placeholders that a gang lacks."""
        declared = self.gangs.declared.get(application)
        if not self.live or declared is None or declared.begun:
            return
        for placeholder in declared.placeholders():
            if self.roster.named(placeholder.namespace, placeholder.name) is None:
                self.acts.append(placeholder)

    def _allocated(self, decision: Allocated) -> Iterator[Event]:
        known = self.roster.by_uid.get(decision.key)
        if known is None:
            return
        self._stand(known, Books.PLACED, decision.node)
        known.stopping = ""
        if not known.bound:
            self.acts.append(Bind(known.name, decision.node))
        yield from self._count_in(known)

    def _evicted(self, decision: Evict) -> None:
        known = self.roster.by_uid.get(decision.key)
        if known is None:
            return
        known.stopping = str(decision.cause)
        if decision.rule == TAINT:
            # The cluster's own controller does that, and knows for how long a taint is put up with.
            return
        if known.spec.placeholder:
            self.acts.append(DeletePod(known.name))
            return
        by = self.roster.by_uid.get(decision.on_behalf_of.rpartition("/")[2])
        name = by.name if by is not None else None
        self.acts.append(EvictPod(known.name, decision.node, name, decision.rule, decision.message))
        if by is not None:
            text = f"{known.name} is stopped on {decision.node} to make room (rule {decision.rule})"
            self.acts.append(Record(by.name, "Preempting", text, related=known.name))

    def _released(self, decision: Released) -> Iterator[Event]:
        """It is out of the books; if that was not our doing (its node is gone), it may come back with its node."""
        known = self.roster.by_uid.get(decision.key)
        if known is None or known.books is not Books.PLACED:
            return
        self._stand(known, Books.OUT)
        self.gangs.gone(known)
        if known.bound:
            self.roster.wait_for_node(known)
        elif self._may_enter(known):
            # It was not bound yet: it waits again.
            yield from self._enter(known)

    def _nominated(self, decision: Reserved | Unreserved) -> None:
        known = self.roster.by_uid.get(decision.key)
        if known is None or known.bound:
            return
        node = decision.node if isinstance(decision, Reserved) else ""
        if known.nominated != node and known.books is not Books.PLACED:
            known.nominated = node
            self.acts.append(Nominate(known.name, node))

    def _ask_refused(self, decision: AskRejected) -> None:
        known = self.roster.by_uid.get(decision.key)
        if known is None or known.foreign:
            return
        known.flaw = decision.reason.sentence()
        if not known.bound:
            self._stand(known, Books.OUT)
            self._tell(known, decision.reason.code, known.flaw)

    def _application_changed(self, decision: ApplicationChanged) -> Iterator[Event]:
        if decision.state == "Failing" or (decision.state == "Resuming" and decision.id in self.gangs.declared):
            self.gangs.give_up(decision.id)
            yield from self._release_members(decision.id)
        if decision.state == "Failed":
            self._application_over(decision.id, f"the application has failed: {decision.cause}")
        elif decision.state in OVER_STATES:
            self.applications.pop(decision.id, None)

    def _application_over(self, application: str, why: str) -> None:
        self.applications.pop(application, None)
        self.refused[application] = why
        for known in self.roster.members(application):
            if known.books is not Books.PLACED:
                self._stand(known, Books.OUT)
                self._tell(known, "application-refused", why)

    def configured(self) -> Iterator[Event]:
        """The queue file changed: applications that were rejected may be taken in now."""
        for application in list(self.refused):
            del self.refused[application]
            yield from self._release_members(application)

    # -- what the hands report ------------------------------------------------------------------------------------

    def bind_failed(self, uid: str, node: str) -> Iterator[Event]:
        """The API server refused the placement for good: the pod gives its place back and waits again."""
        known = self.roster.by_uid.get(uid)
        if known is None or known.bound or known.books is not Books.PLACED or known.node != node:
            return
        self._stand(known, Books.OUT)
        self.gangs.gone(known)
        yield self._release(known, Cause.STOPPED_BY_RM)

    def try_again(self, uid: str) -> Iterator[Event]:
        """After a pause: a pod whose placement was refused waits once more."""
        known = self.roster.by_uid.get(uid)
        if known is not None and known.books is Books.OUT and not known.leaving and self._may_enter(known):
            yield from self._enter(known)

    def _tell(self, known: KnownPod, code: str, why: str) -> None:
        self.acts.append(Explain(known.name, code, why))


def _node_that_came(change: Change) -> str:
    if isinstance(change, Changed) and change.kind is kinds.NODES:
        return str(change.object.metadata.name)
    return ""


def _is_older(version: str | None, than: str) -> bool:
    if not version or not than or not (version.isdigit() and than.isdigit()):
        return False
    return int(version) < int(than)
