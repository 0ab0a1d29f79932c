"""The driver: one scheduler and the informer of one cluster, kept in step.

Decides in which order changes, decisions and acts follow each other. Never waits, reads a clock or sends anything: the
same calls give the same acts. Invariant: between two calls the informer and the scheduler agree on every pod.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from fairlead.core.acts.gangs import TIMED_OUT
from fairlead.core.model.constraints import EXISTS, NO_EXECUTE, Toleration
from fairlead.core.model.decisions import (
    Allocated,
    ApplicationAccepted,
    ApplicationChanged,
    ApplicationRejected,
    AskRejected,
    Decision,
    Evict,
    Released,
    Reserved,
    Retried,
    Unreserved,
)
from fairlead.core.model.events import Cause, Configure, Event, Release
from fairlead.core.model.lifecycle import State
from fairlead.core.model.resources import NOTHING
from fairlead.core.model.specs import ClusterSpec
from fairlead.kubernetes.acts import PLACEMENT_REFUSED, Act, DeletePod, EvictPod, Nominate, ObjectName, Record
from fairlead.kubernetes.informer import Informer
from fairlead.kubernetes.kept_room import not_kept
from fairlead.kubernetes.pod_store import Books, KnownPod
from fairlead.kubernetes.reflector import Change
from fairlead.kubernetes.refused_pods import RefusedPods
from fairlead.kubernetes.workload_sizes import Parts, why_too_large
from fairlead.scheduler import Scheduler
from fairlead.wire.stopped import in_brackets

if TYPE_CHECKING:
    from fairlead.kubernetes.informer import Informer


TAINT = "taint"
ENDURES = Toleration("", EXISTS, effect=NO_EXECUTE)
"""What a pod is said to put up with while only the cluster's own controller does not."""
OVER_STATES = frozenset({"Completed", "Failed", "Expired", "Removed"})


class Orders:
    """Hears decisions for one informer."""

    def __init__(self, informer: Informer, refused_pods: RefusedPods) -> None:
        self._informer = informer
        self._refused_pods = refused_pods

    def heard(self, decisions: Sequence[Decision]) -> Iterator[Event]:
        """Learn from decisions, and put what they order into `acts`. Events that follow must be handled as well."""
        for decision in decisions:
            if isinstance(decision, Allocated):
                yield from self._allocated(decision)
            elif isinstance(decision, Evict):
                yield from self._evicted(decision)
            elif isinstance(decision, Released):
                yield from self._released(decision)
            elif isinstance(decision, Retried):
                # Idle work goes back to its queue, and so do placeholders that were given back. Here the pod is gone:
                # whoever made it makes another one.
                yield Release(decision.application, decision.new_key, Cause.STOPPED_BY_RM, decision.partition)
            elif isinstance(decision, Reserved | Unreserved):
                self._nominated(decision)
            elif isinstance(decision, AskRejected):
                yield from self._ask_refused(decision)
            elif isinstance(decision, ApplicationAccepted):
                self._informer.placeholders.complete(decision.id)
            elif isinstance(decision, ApplicationRejected):
                self._informer.applications.pop(decision.id, None)
                self._refuse(decision.id, decision.reason.sentence())
            elif isinstance(decision, ApplicationChanged):
                yield from self._application_changed(decision)

    def _allocated(self, decision: Allocated) -> Iterator[Event]:
        known = self._informer.pod_store.by_uid.get(decision.key)
        if known is None:
            return
        self._informer.stand(known, Books.PLACED, decision.node)
        known.stopping = ""
        yield from self._informer.placeholders.count_in(known)
        if known.bound:
            return
        why_not = self._informer.devices.place(known) if known.device_claims else ""
        if why_not:
            yield from self._informer.volume_binder.give_up(known, why_not, pause=False)
        else:
            yield from self._informer.volume_binder.place(known)

    def _evicted(self, decision: Evict) -> Iterator[Event]:
        known = self._informer.pod_store.by_uid.get(decision.key)
        if known is None:
            return
        if known.name.stands_for is not None:
            workloads, is_tainted = self._informer.workloads, decision.rule == TAINT
            yield from workloads.lost_room(known) if is_tainted else workloads.told_to_go(known, decision)
            return
        known.stopping = str(decision.cause)
        if self._informer.volume_binder.waits(known):
            why = f"somebody else gets its room on {decision.node}"
            if decision.rule == TAINT:
                self._informer.volume_binder.lost(known)
                why = decision.message
            yield from self._informer.volume_binder.retreat(known, why)
            return
        if known.spec.placeholder:
            self._informer.gangs.gone(known)
            self._informer.acts.append(DeletePod(known.name))
            return
        if decision.rule == TAINT:
            yield from self._stays(known)
            return
        if self._informer.workloads.stops(known, decision):
            return
        by_uid = decision.on_behalf_of.rpartition("/")[2]
        by = self._informer.pod_store.by_uid.get(by_uid)
        name, why = by.name if by is not None else None, self._informer.pod_store.in_names(decision.message, by_uid)
        self._informer.acts.append(EvictPod(known.name, decision.node, name, decision.rule, why))
        if by is not None:
            why = in_brackets(decision.rule, winner="this one")
            text = f"{known.name} is stopped on {decision.node} to make room{why}"
            self._informer.acts.append(Record(by.name, "Preempting", text, related=known.name))

    def _stays(self, known: KnownPod) -> Iterator[Event]:
        """A pod does not put up with a taint of its node: the cluster's own controller deletes it. Until that has, it
        runs: the taint may go first, and nobody would ever hear of its end. One that is not bound yet waits again.
        """
        if known.leaving:
            return
        known.stopping = ""
        if not known.bound:
            yield from self._informer.withdraw(known)
            if self._informer.may_enter(known):
                yield from self._informer.enter(known)
        else:
            where = known.spec.where
            known.spec = replace(known.spec, where=replace(where, tolerations=(*where.tolerations, ENDURES)))
            self._informer.stand(known, Books.OUT)
            yield Release(known.application, known.name.uid, Cause.STOPPED_BY_RM, self._informer.partition)
            yield from self._informer.enter(known)

    def _released(self, decision: Released) -> Iterator[Event]:
        """It is out of the books; if that was not our doing (its node is gone), it may come back with its node.

        What waited, in a gang that did not come together, goes on as a plain pod.
        """
        known = self._informer.pod_store.by_uid.get(decision.key)
        if known is None or known.books is Books.OUT:
            return
        self._informer.volume_binder.lost(known)
        self._informer.stand(known, Books.OUT)
        self._informer.gangs.gone(known)
        if known.bound:
            self._informer.pod_store.wait_for_node(known)
        elif known.name.stands_for is not None:
            yield from self._informer.workloads.lost_room(known)
        elif self._informer.may_enter(known):
            # It was not bound yet: it waits again.
            yield from self._informer.enter(known)

    def _nominated(self, decision: Reserved | Unreserved) -> None:
        known = self._informer.pod_store.by_uid.get(decision.key)
        if known is None or known.bound:
            return
        node = decision.node if isinstance(decision, Reserved) else ""
        if known.nominated != node and known.books is not Books.PLACED:
            known.nominated, known.is_told = node, True
            self._informer.acts.append(Nominate(known.name, node))

    def _ask_refused(self, decision: AskRejected) -> Iterator[Event]:
        known = self._informer.pod_store.by_uid.get(decision.key)
        if known is None or known.foreign:
            return
        if known.application not in self._informer.applications:
            # Its application ended at this very moment, before it came.
            yield from self._informer.withdraw(known)
            yield from self._informer.enter(known)
        elif known.bound:
            known.flaw = decision.reason.sentence()
        else:
            # Of one that waits and has become too large the smaller ask is there still.
            yield from self._informer.withdraw(known)
            self._refused_pods.note(known, decision.reason.code, decision.reason.sentence())

    def _application_changed(self, decision: ApplicationChanged) -> Iterator[Event]:
        if self._informer.workloads.store.of(decision.id) is not None:
            if decision.state == "Failing":
                yield from self._informer.workloads.gave_up(decision.id)
            elif decision.state in OVER_STATES:
                self._informer.applications.pop(decision.id, None)
            return
        if decision.state == "Failing" or (
            decision.state == "Resuming" and decision.id in self._informer.gangs.declared
        ):
            fails = decision.state == "Failing"
            self._informer.gangs.give_up(decision.id, failed=fails and decision.cause == TIMED_OUT)
            self._informer.placeholders.drop(self._informer.gangs.declared.get(decision.id))
            self._end_placeholders(decision.id)
            if fails:
                # From now on: as its placeholders go one by one, no member may take the room of one.
                self._refuse(decision.id, _why_failed(decision))
            else:
                yield from self._informer.placeholders.release_members(decision.id)
        elif decision.state in OVER_STATES:
            self._informer.applications.pop(decision.id, None)

    def refused_in_vain(self, application: str) -> Iterator[Event]:
        """The API server took no placeholder for all of a gang's time, or all nodes could not hold it: its members go
        on as plain pods, or fail.
        """
        informer, spec = self._informer, self._informer.specs[application]
        declared, fails = informer.gangs.declared[application], spec.gang_style == "Hard"
        informer.gangs.give_up(application, failed=fails)
        informer.placeholders.drop(declared)
        self._end_placeholders(application)
        yield from informer.placeholders.expel(application)
        informer.specs[application] = replace(spec, placeholder_ask=NOTHING)
        if fails:
            self._refuse(application, f"{_failed(application)}; {declared.in_its_way}")
        else:
            yield from informer.placeholders.release_members(application)

    def _end_placeholders(self, application: str) -> None:
        """Its gang is given up: placeholders that wait go too; those that have a node are told to one by one."""
        for known in self._informer.pod_store.members(application):
            if known.spec.placeholder and known.books is not Books.PLACED and not known.leaving:
                self._informer.stand(known, Books.OUT)
                known.leaving = True
                self._informer.acts.append(DeletePod(known.name))

    def _refuse(self, application: str, why: str) -> None:
        """None of its pods enters any more, and each that has no node is told why."""
        self._informer.refused[application] = why
        for known in self._informer.pod_store.members(application):
            if known.books is not Books.PLACED:
                self._informer.stand(known, Books.OUT)
                self._informer.tell(known.name, *self._informer.reader.refusal(application))


def _failed(application: str) -> str:
    return f"application {application} has failed: its gang (Hard) did not get all of its room in time"


def _why_failed(decision: ApplicationChanged) -> str:
    if decision.cause == TIMED_OUT:
        return _failed(decision.id)
    return f"application {decision.id} has failed: {decision.cause}"


class Driver:
    """What is known and decided about one cluster. Times in milliseconds, never going back."""

    def __init__(
        self,
        spec: ClusterSpec | None = None,
        now_ms: int = 0,
        scheduler_name: str = "fairlead",
        images: bool = False,
    ) -> None:
        """`images`: nodes that have what a pod runs are better for it."""
        self.scheduler = Scheduler(spec, now_ms)
        self.informer = Informer(scheduler_name, images=images)
        self.informer.workloads.why_too_large = self.informer.placeholders.why_too_large = self._why_too_large
        self.informer.workloads.not_kept = self._not_kept
        self.informer.placeholders.is_empty = self._is_empty
        self._refused_pods = RefusedPods(self.informer)
        self._orders = Orders(self.informer, self._refused_pods)
        self.decided: list[Decision] = []
        """Decisions since the last `acts`, for whoever keeps a record of them."""
        self.entries: list[tuple[Event | None, Sequence[Decision]]] = []
        """The same, with the events that they follow from; None: a run of scheduling."""

    def take(self, change: Change, now_ms: int) -> None:
        """Something changed at the API server."""
        self._feed(self.informer.take(change), now_ms)

    def begin(self, now_ms: int) -> None:
        """All that was there at the start has been taken."""
        for _ in self.beginning(now_ms):
            pass

    def beginning(self, now_ms: int) -> Iterator[None]:
        """The same step by step, since with thousands of jobs it takes seconds. Nothing else is done in between."""
        self._feed(self.informer.volume_binder.settle(), now_ms)
        for event in self.informer.begin():
            self.handle(event, now_ms)
            yield

    def schedule(self, now_ms: int, limit: int | None = None) -> int:
        """Run scheduling; gives back how many decisions were made."""
        self._feed(self.informer.volume_binder.overdue(now_ms), now_ms)
        self._feed(self.informer.volume_binder.settle(), now_ms)
        self._feed(self.informer.devices.settle(now_ms), now_ms)
        self._feed(self.informer.workloads.settle(), now_ms)
        for application in self.informer.gangs.beyond_nodes(now_ms):
            self._feed(self._orders.refused_in_vain(application), now_ms)
        self._feed(self._refused_pods.overdue(now_ms), now_ms)
        decisions = self.scheduler.schedule(now_ms, limit)
        self._hear(decisions, now_ms)
        return len(decisions)

    def configure(self, spec: ClusterSpec, now_ms: int, who: str = "", source: str = "") -> list[Decision]:
        """Another queue file; the decisions say whether it was taken."""
        decisions = self.handle(Configure(spec, who=who, source=source), now_ms)
        self._feed(self.informer.configured(), now_ms)
        self._feed(self._refused_pods.configured(), now_ms)
        return decisions

    def bind_failed(self, uid: str, node: str, why: str, now_ms: int) -> None:
        """The API server refused a placement for good; `why` is its sentence."""
        self._feed(self.informer.bind_failed(uid, node, why), now_ms)

    def bind_delayed(self, uid: str, node: str, why: str) -> None:
        """The API server has failed to bind a pod for long, and is asked on: who looks at it sees why it waits."""
        known = self.informer.pod_store.by_uid.get(uid)
        if known is not None and known.books is Books.PLACED and known.node == node and not known.bound:
            text = f"it has a place on {node}, and the API server fails to bind it there, which is tried on: {why}"
            known.obstacle = PLACEMENT_REFUSED, text
            # Its condition would be written after the binding.
            self.informer.acts.append(Record(known.name, "FailedScheduling", text, warning=True))

    def placeholder_refused(self, application: str, why: str, now_ms: int) -> None:
        """The API server refuses a placeholder of a gang, with this sentence; empty: it has taken one since."""
        if self.informer.gangs.refused(application, why, now_ms):
            self._feed(self._orders.refused_in_vain(application), now_ms)

    def returned(self, claim: ObjectName, version: str, now_ms: int) -> None:
        """The server has taken back what was promised to a resource claim; that is its version since."""
        self._feed(self.informer.devices.returned(claim, version), now_ms)

    def try_again(self, uid: str, now_ms: int) -> None:
        """The pause after a refused placement is over."""
        self._feed(self.informer.try_again(uid), now_ms)

    def handle(self, event: Event, now_ms: int) -> list[Decision]:
        """Another event for the scheduler, such as an administrator's order."""
        decisions = self.scheduler.handle(event, now_ms)
        self._hear(decisions, now_ms, event)
        return decisions

    def acts(self) -> list[Act]:
        """What is to be done now, in order; each is given once."""
        acts = self.informer.acts
        self.informer.acts = []
        return acts

    def _is_empty(self, application: str) -> bool:
        """It was introduced, and nothing of it was ever taken: no timer ends it there."""
        found = self.scheduler.cluster.partitions[self.informer.partition].applications.get(application)
        return found is not None and found.state is State.NEW

    def _why_too_large(self, parts: Parts) -> str:
        return why_too_large(self.scheduler.cluster.partitions[self.informer.partition], parts)

    def _not_kept(self, node: str) -> list[str]:
        return not_kept(self.scheduler.cluster.partitions[self.informer.partition], node)

    def _feed(self, events: Iterable[Event], now_ms: int) -> None:
        for event in events:
            self.handle(event, now_ms)

    def _hear(self, decisions: list[Decision], now_ms: int, event: Event | None = None) -> None:
        if decisions or event is not None:
            self.entries.append((event, decisions))
        if decisions:
            self.decided.extend(decisions)
            self._feed(self._orders.heard(decisions), now_ms)
