"""Workloads: jobs that are suspended until all their pods have room, and pod groups that start together.

Decides when a workload's room is reserved, when it starts, and when a job is suspended again because it loses room.
Never chooses a node: room is kept by stand-ins, which are placeholders of a gang without a pod at the API server.
Invariants: a job has pods or stand-ins that wait, never both; a stand-in that is told to go is gone at once; room that
does not come together in time is given back, and tried for again after a pause.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from fairlead.core.model.decisions import Evict
from fairlead.core.model.events import AddAsks, Cause, Event
from fairlead.core.model.specs import ApplicationSpec, AskSpec
from fairlead.kubernetes import job_templates
from fairlead.kubernetes.acts import EvictPod, Record, Suspend, preempted
from fairlead.kubernetes.kept_room import ChangedNodes
from fairlead.kubernetes.pod_reader import UNREADABLE
from fairlead.kubernetes.pod_store import Books, KnownPod
from fairlead.kubernetes.reflector import Change, Changed, Deleted
from fairlead.kubernetes.translate.workloads import WorkloadSpec, as_gang, as_one, workload_of
from fairlead.kubernetes.workload_phase import GROUP_WAITS, TOO_LARGE, Phase, Workload
from fairlead.kubernetes.workload_sizes import Parts, asked_once, parts_of
from fairlead.kubernetes.workload_store import KINDS, WorkloadStore

if TYPE_CHECKING:
    from fairlead.kubernetes.informer import Informer

WATCHED = (*KINDS, *job_templates.WATCHED)


class Workloads:
    """The workloads of one informer."""

    def __init__(self, informer: Informer) -> None:
        self._informer = informer
        self._templates = job_templates.JobTemplates(informer)
        self.store = WorkloadStore()
        self.pauses: list[str] = []
        """Workloads that gave their room back; whoever keeps the time has them tried again after a while."""
        self.why_too_large: Callable[[Parts], str] = lambda _: ""
        """Whoever has the books of the nodes says why all of them could not hold so many at once."""
        self.not_kept: Callable[[str], list[str]] = lambda _: []
        """The same: of which stand-ins a node would not take the pods any more, by identity."""
        self.nodes = ChangedNodes(informer.around)

    # -- jobs and groups change ---------------------------------------------------------------------------------------

    def take(self, change: Change) -> Iterator[Event]:
        """The events that follow from a change of a job or pod group."""
        if change.kind in job_templates.WATCHED:
            self._templates.take(change)
            yield from self.reclassed()
        elif isinstance(change, Deleted):
            yield from self._end(self.store.by_uid.get(change.uid))
        elif isinstance(change, Changed):
            spec = workload_of(change.object, change.kind, self._informer.scheduler_name)
            known = self.store.by_uid.get(change.object.metadata.uid or "")
            if spec is None:
                yield from self._end(known)
            elif known is None:
                yield from self._consider(self._add(spec))
            else:
                yield from self._changed(known, spec)

    def _add(self, spec: WorkloadSpec) -> Workload:
        return self.store.add(Workload(spec, Phase.RUNNING if spec.suspended is False else Phase.WAITING))

    def _changed(self, known: Workload, spec: WorkloadSpec) -> Iterator[Event]:
        before, known.spec, known.flaw = known.spec, spec, ""
        if spec.suspended is False and before.suspended and known.phase in (Phase.WAITING, Phase.STARTING):
            yield from self._goes_on(known)
        elif spec.suspended and (known.phase in (Phase.RUNNING, Phase.STOPPING) or not before.suspended):
            known.phase = Phase.WAITING
            yield from self._drop(known)
        elif before.shape != spec.shape and known.phase in (Phase.WAITING, Phase.STARTING):
            if known.phase is Phase.STARTING:
                self._suspend(known)
            yield from self._drop(known)
        elif known.begun and spec.least < before.least and known.stand_ins:  # it is nearly done
            placed = sum(member.books is Books.PLACED for member in self._members(known))
            yield from self._drop(known, list(known.stand_ins.values())[max(spec.least - placed, 0) :])
        yield from self._consider(known)

    def _goes_on(self, known: Workload) -> Iterator[Event]:
        """A job may have pods, whoever let it go on. What has room already keeps it for the pods to come."""
        yield from self._drop(known, [s for s in known.stand_ins.values() if s.books is not Books.PLACED])
        known.phase = Phase.RUNNING
        yield from self._informer.placeholders.begin(known.spec.application)

    def _end(self, known: Workload | None) -> Iterator[Event]:
        if known is None:
            return
        spec = known.spec
        self.store.forget(known)
        yield from self._drop(known)
        was_stopped = spec.suspended is not None and known.phase in (Phase.STOPPING, Phase.WAITING)
        for member in self._members(known):
            # Of a group that is no more: they wait, and are told so.
            if spec.suspended is None and member.books is Books.WAITING:
                yield from self._informer.withdraw(member)
            if member.books is Books.OUT:
                self._informer.may_enter(member)
            elif was_stopped and member.stopping and not member.leaving:
                # It was to go with its job, and may have been left behind (an orphan).
                why = f"{spec.name} was suspended, and is no more"
                self._informer.acts.append(EvictPod(member.name, member.node, None, "", why))

    # -- reserving ----------------------------------------------------------------------------------------------------

    def begin(self) -> Iterator[Event]:
        """All that was there is taken. A job that was let go, and of which nothing has a node, starts as a whole."""
        for known in sorted(self.store.by_uid.values(), key=lambda w: (w.spec.created, w.spec.version)):
            has_node = known.stand_ins or any(m.bound for m in self._members(known))
            if starts_anew := known.spec.suspended is False and not has_node:
                known.phase = Phase.WAITING
            yield from self._consider(known)
            if starts_anew:
                application, placeholders = known.spec.application, self._informer.placeholders
                never = not known.stand_ins or application in self._informer.refused
                yield from self._goes_on(known) if never else placeholders.release_members(application)

    def try_again(self, uid: str) -> Iterator[Event]:
        """The pause of a workload is over."""
        known = self.store.by_uid.get(uid)
        if known is None:
            return
        known.pausing = False
        if known.phase is Phase.STOPPING and known.spec.suspended:
            known.phase = Phase.WAITING
            yield from self._drop(known)
        yield from self._consider(known)

    def _consider(self, known: Workload) -> Iterator[Event]:
        """Reserve the room of a workload if it is time for that."""
        informer, spec = self._informer, known.spec
        if not informer.live or known.begun or known.stand_ins or known.pausing:
            return
        members = list(self._members(known))
        if spec.suspended is None:
            yield from self._consider_group(known, members)
        elif spec.flaw and not spec.is_theirs:
            informer.acts.append(Record(spec.name, "NotAdmitted", spec.flaw, warning=True))
        elif spec.pod_sets and not (spec.flaw or (members and spec.suspended)):
            try:
                application = self._templates.application(spec)
                asks = [ask for ask, count in self._templates.asks(spec) for _ in range(count)]
            except UNREADABLE as e:
                known.flaw = str(e)
                informer.acts.append(Record(spec.name, "NotAdmitted", known.flaw, warning=True))
                return
            known.flaw = ""
            yield from informer.placeholders.hold_back(members)
            yield from self._reserve(known, asks, application)

    def _consider_group(self, known: Workload, members: Sequence[KnownPod]) -> Iterator[Event]:
        informer, spec = self._informer, known.spec
        if any(member.bound or member.books is Books.PLACED for member in members):
            known.phase = Phase.RUNNING
            yield from informer.placeholders.release_members(spec.application)
            return
        # An earlier group of this name had begun.
        yield from informer.placeholders.hold_back(members)
        ready = [m for m in members if not (m.leaving or m.flaw or informer.reader.lacks(m))]
        known.unready = max(spec.min_member - len(ready), 0) if len(members) >= spec.min_member else 0
        if len(ready) >= spec.min_member:
            asks = as_one(informer.reader.ask(member) for member in ready[: spec.min_member])
            yield from self._reserve(known, asks, informer.specs[spec.application])
        elif known.is_told(len(members)):
            return
        else:
            known.told = len(members)
        for member in members:
            if member.books is Books.OUT and not known.begun:
                informer.may_enter(member)

    def _reserve(self, known: Workload, asks: Sequence[AskSpec], application: ApplicationSpec) -> Iterator[Event]:
        informer, spec = self._informer, known.spec
        yield from informer.placeholders.expel(application.id)
        application = as_gang(application, spec, asks)
        informer.refused.pop(application.id, None)
        informer.specs[application.id] = application
        known.parts = parts_of(asks)
        known.too_large = self.why_too_large(known.parts)
        informer.gangs.reserve(application, len(asks), spec.name, known.too_large)
        for ask in asks:
            self._stand_in(known, ask)
        if known.too_large and spec.suspended is not None:
            informer.acts.append(Record(spec.name, "FailedScheduling", known.too_large, warning=True))
        if known.too_large and spec.suspended is False:  # It was let go, and could not start as a whole.
            yield from self._goes_on(known)
        for stand_in in [] if known.too_large else list(known.stand_ins.values()):
            if informer.may_enter(stand_in):
                yield from informer.enter(stand_in)

    def settle(self) -> Iterator[Event]:
        """Nodes may be other than before: room on one that would not give it anew is looked for elsewhere. What was
        larger than all nodes together may be so no more, and what waits for its room may be so now.
        """
        if not (changed := self.nodes.take_changed()):
            return
        for uid in [uid for name in changed for uid in self.not_kept(name)]:
            known = self._informer.pod_store.by_uid.get(uid)
            if known is not None and known.name.stands_for is not None:
                yield from self.lost_room(known)
            elif known is not None:
                self._informer.placeholders.lost_room(known)
        why_too_large = asked_once(self.why_too_large)
        for workload in [w for w in self.store.by_uid.values() if w.is_sized_anew]:
            before, workload.too_large = workload.too_large, why_too_large(workload.parts)
            if bool(before) is not bool(workload.too_large):
                yield from self._drop(workload)
                yield from self._consider(workload)
            else:
                self._informer.gangs.too_large(workload.spec.application, workload.too_large)
        yield from self._informer.placeholders.settle()

    def _stand_in(self, known: Workload, ask: AskSpec) -> KnownPod:
        return self._informer.pod_store.add(known.stand_in(ask))

    def _drop(self, known: Workload, stand_ins: Sequence[KnownPod] | None = None) -> Iterator[Event]:
        """Take stand-ins back: these, or all."""
        for stand_in in list(known.stand_ins.values()) if stand_ins is None else stand_ins:
            yield from self._gone(known, stand_in)

    def _gone(self, known: Workload, stand_in: KnownPod) -> Iterator[Event]:
        if known.stand_ins.pop(stand_in.name.uid, None) is not None:
            yield from self._informer.remove(stand_in)

    # -- what the scheduler says --------------------------------------------------------------------------------------

    def has_room(self, application: str) -> None:
        """All of a workload has a node: a job goes on, the pods of a group may enter."""
        known = self.store.of(application)
        if known is None or known.begun:
            return
        spec, informer = known.spec, self._informer
        known.phase = Phase.RUNNING
        if spec.suspended:
            known.phase = Phase.STARTING
            informer.acts.append(Suspend(spec.name, suspend=False))
            informer.acts.append(Record(spec.name, "Admitted", known.has_room))

    def told_to_go(self, stand_in: KnownPod, decision: Evict) -> Iterator[Event]:
        """A stand-in makes place: for its pod, or for something else; then the workload needs that room anew."""
        known = self.store.of(stand_in.application)
        if known is None:
            yield from self._informer.remove(stand_in)
            return
        stand_in.stopping = str(decision.cause)
        yield from self._gone(known, stand_in)
        is_last = not known.stand_ins and next(self._members(known), None) is None
        if decision.cause is Cause.TIMEOUT and known.phase is Phase.STARTING and is_last:
            # It was told to go on and never did, or was suspended again before anybody heard that it had.
            known.phase, known.pausing = Phase.WAITING, True
            self.pauses.append(known.spec.name.uid)
        if decision.cause in (Cause.PLACEHOLDER_REPLACED, Cause.TIMEOUT):
            return
        if known.begun:
            self._stop(known, decision)
        else:
            yield from self._informer.enter(self._stand_in(known, stand_in.spec))

    def lost_room(self, stand_in: KnownPod) -> Iterator[Event]:
        """The node of a stand-in is gone, or would not take it any more: it looks for another place, unless the pods
        themselves do so by now.
        """
        if stand_in.books is Books.PLACED:
            yield from self._informer.withdraw(stand_in)
        known, informer = self.store.of(stand_in.application), self._informer
        if known is None or known.phase in (Phase.RUNNING, Phase.STOPPING):
            yield from self._gone(known, stand_in) if known is not None else informer.remove(stand_in)
        elif informer.may_enter(stand_in):
            yield from informer.enter(stand_in)

    def stops(self, pod: KnownPod, decision: Evict) -> bool:
        """Whether a pod that loses its room takes its whole job along; then the job is told to suspend."""
        known = self.store.of(pod.application)
        if known is None or known.spec.suspended is None:
            return False
        if known.phase in (Phase.STARTING, Phase.RUNNING):
            stay = [m for m in self._members(known) if m.books is Books.PLACED and not m.stopping and not m.leaving]
            if len(stay) >= known.spec.least:
                return False
            self._stop(known, decision)
        elif known.phase is Phase.STOPPING:
            # It may have stopped and gone on again, unheard.
            self._informer.acts.append(Suspend(known.spec.name, suspend=True))
        return True

    def _stop(self, known: Workload, decision: Evict) -> None:
        name = known.spec.name
        if known.spec.suspended is None or known.phase is Phase.STOPPING:
            return
        self._suspend(known)
        by_uid = decision.on_behalf_of.rpartition("/")[2]
        by = self._informer.pod_store.by_uid.get(by_uid)
        winner = (by.name.stands_for or by.name) if by is not None else None
        why = self._informer.pod_store.in_names(decision.message, by_uid)
        text = preempted(winner, decision.node, decision.rule, why)
        self._informer.acts.append(Record(name, "Preempted", text, related=by.name if by is not None else None))

    def _suspend(self, known: Workload) -> None:
        if known.phase is Phase.STARTING:
            # It may never have gone on; then the API server has no news of it.
            self.pauses.append(known.spec.name.uid)
        known.phase = Phase.STOPPING
        self._informer.acts.append(Suspend(known.spec.name, suspend=True))

    def gave_up(self, application: str) -> Iterator[Event]:
        """The room of a workload did not come together in time."""
        known = self.store.of(application)
        if known is None or known.begun:
            return
        has = len(self._informer.gangs.declared[application].standing)
        known.pausing = True
        self.pauses.append(known.spec.name.uid)
        text = f"only {has} of {len(known.stand_ins)} pods had room in time; it is given back and tried for again"
        self._informer.acts.append(Record(known.spec.name, "GaveUp", text, warning=True))
        yield from self._drop(known)

    def reclassed(self, *, by_namespaces: bool = False) -> Iterator[Event]:
        """What completes templates is other than before: jobs that wait with what it made of them do so anew."""
        for known in [each for each in self.store.by_uid.values() if (each.stand_ins or each.flaw) and not each.begun]:
            if self._templates.differ(known, by_namespaces=by_namespaces):
                yield from self._drop(known)
                yield from self._consider(known)

    def speaks(self, stand_in: KnownPod) -> bool:
        """Whether this is the one of several that wait alike whose reason its job is told."""
        return (known := self.store.of(stand_in.application)) is not None and known.speaker is stand_in

    def representative(self, known: Workload) -> KnownPod | None:
        """What stands for a workload when somebody asks for it: what waits comes first."""
        members = self._informer.pod_store.members(known.spec.application)
        return min(members, key=lambda m: m.books is Books.PLACED, default=None)

    # -- pods ---------------------------------------------------------------------------------------------------------

    def declared_by(self, application: ApplicationSpec, name: str) -> ApplicationSpec:
        """How a pod declares the application of this name, with what its workload says of it."""
        known = self.store.of(name)
        queue, tags = (known.spec.queue, known.spec.tags) if known is not None else ("", {})
        return replace(application, id=name, queue=queue or application.queue, tags={**application.tags, **tags})

    def obstacle(self, pod: KnownPod) -> tuple[str, str] | None:
        """Why a pod of a group may not enter yet: a code and a sentence."""
        known = self.store.of(pod.application)
        if pod.name.stands_for is not None:
            return (TOO_LARGE, known.too_large) if known is not None and known.is_too_large else None
        if not pod.group or (known is not None and known.spec.suspended is not None):
            return None
        if known is None:
            return GROUP_WAITS, f"there is no PodGroup {pod.group} in namespace {pod.name.namespace}"
        if known.begun:
            return None
        own = self._informer.reader.lacks(pod) if known.unready else None
        there = self._informer.pod_store.size(pod.application) - len(known.stand_ins)
        return own or known.obstacle(pod.group, there)

    def came(self, pod: KnownPod) -> Iterator[Event]:
        """A pod of a group is there, or another one than before."""
        known = self.store.of(pod.application) if pod.group else None
        size = self._informer.pod_store.size(pod.application)
        if known is not None and (pod.bound or pod.books is not Books.OUT or not known.gathers(size)):
            yield from self._consider(known)

    def ended(self, pod: KnownPod, how: str) -> Iterator[Event]:
        """A pod of a job is no more: where it ended by itself, and the next one is to come, the job keeps its room."""
        known, informer = self.store.of(pod.application), self._informer
        if known is None or known.phase is not Phase.RUNNING or how == "deleted" or pod.stopping:
            return
        is_short = informer.pod_store.size(pod.application) <= known.spec.least
        if is_short and known.spec.is_followed(pod.spec.task_group, how) and informer.around.is_open(pod.bound):
            keeps = self._stand_in(known, replace(pod.spec, node=""))
            informer.stand(keeps, Books.PLACED, pod.bound)
            yield AddAsks((replace(keeps.spec, node=pod.bound),), informer.partition)

    def left(self, pod: KnownPod) -> Iterator[Event]:
        """A pod is no more: a job that was suspended waits again with the last of them, and so does a group."""
        known = self.store.of(pod.application)
        if known is None or pod.name.stands_for is not None:
            return
        if known.spec.suspended is None:
            if not any(True for _ in self._members(known)):
                known.phase = Phase.WAITING
            if not known.begun:
                yield from self._drop(known)
        if not known.gathers(self._informer.pod_store.size(pod.application)):
            yield from self._consider(known)

    def _members(self, known: Workload) -> Iterator[KnownPod]:
        """The pods of a workload that are there."""
        members = self._informer.pod_store.members(known.spec.application)
        return (member for member in members if member.name.stands_for is None)
