"""The informer: what the cluster has, told to the scheduler once and in order, whatever order it came in.

Decides which events follow from a change at the API server, and what it learns from the scheduler's decisions. Never
decides what runs, and sends nothing. The contract of its user: every event that it gives is handled at once, and the
decisions that follow are heard (`heard`) before the next change is taken.

Invariants: a pod enters the scheduler's books once, and leaves them once; a pod that is bound to a node we do not know
waits for that node. What comes is the truth, whatever its version: the reflectors pass over late words.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

from fairlead.core.model.events import AddApplication, AddAsks, Cause, Event, Leaving, Nominated, Release
from fairlead.core.model.specs import DEFAULT_PARTITION, ApplicationSpec, AskSpec
from fairlead.kubernetes import kinds, storage, workloads
from fairlead.kubernetes.acts import PLACEMENT_REFUSED, Act, DeletePod, Explain, Nominate, ObjectName, Record
from fairlead.kubernetes.cluster_store import ClusterStore
from fairlead.kubernetes.devices import device_binder
from fairlead.kubernetes.early_pods import EarlyPods
from fairlead.kubernetes.gangs import Gangs
from fairlead.kubernetes.objects import Pod
from fairlead.kubernetes.placeholders import Placeholders
from fairlead.kubernetes.pod_reader import UNREADABLE, PodReader
from fairlead.kubernetes.pod_store import Books, KnownPod, News, PodStore
from fairlead.kubernetes.reflector import Change, Changed, Deleted
from fairlead.kubernetes.storage import Storage
from fairlead.kubernetes.translate import identity
from fairlead.kubernetes.translate.pods import Standing, application_of, how_ended, standing
from fairlead.kubernetes.volume_binder import VolumeBinder

log = logging.getLogger("fairlead.kubernetes")


class Informer:
    """Pods, nodes and policies of one cluster, and where each pod stands in the books of one scheduler."""

    def __init__(
        self, scheduler_name: str = "fairlead", partition: str = DEFAULT_PARTITION, images: bool = False
    ) -> None:
        self.scheduler_name, self.partition = scheduler_name, partition
        self.images = images
        """Nodes that have what a pod runs are better for it."""
        self.pod_store = PodStore()
        self.early_pods = EarlyPods(self.pod_store, scheduler_name)
        self.around = ClusterStore(partition, self.pod_store.lose_node)
        self.storage = Storage()
        self.volume_binder = VolumeBinder(self)
        self.devices = device_binder.DeviceBinder(self)
        self.reader = PodReader(self)
        self.gangs = Gangs()
        self.placeholders = Placeholders(self)
        self.workloads = workloads.Workloads(self)
        self.acts: list[Act] = []
        """What is to be done, in order; whoever carries it out takes it away."""
        self.news: list[News] = []
        """Which of our pods came and left, in order; whoever tells others takes it away."""
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
            if not self.early_pods.holds(change.object):
                yield from self._pod_changed(change.object)
        elif isinstance(change, Deleted) and change.kind is kinds.PODS:
            self.pod_store.passed_over.pop((change.namespace, change.name), None)
            yield from self.remove(self.pod_store.by_uid.get(change.uid))
        elif change.kind in storage.WATCHED:
            yield from self.volume_binder.take(change)
        elif change.kind in device_binder.WATCHED:
            yield from self.devices.take(change)
        elif change.kind in workloads.WATCHED:
            yield from self.workloads.take(change)
        else:
            yield from self.around.take(change)
            if change.kind is kinds.NODES:
                self.devices.node_changed(change)
                self.workloads.nodes.take(change)
                if isinstance(change, Changed):
                    yield from self._house(change.object.metadata.name)
            elif change.kind is kinds.NAMESPACES:
                yield from self._reread()
            elif change.kind is kinds.PRIORITY_CLASSES:
                yield from self.reader.reclassed()
                yield from self.workloads.reclassed()
        for pod in self.early_pods.take(change):
            yield from self._pod_changed(pod)

    def _pod_changed(self, pod: Pod) -> Iterator[Event]:
        meta = pod.metadata
        name = ObjectName(meta.namespace or "default", meta.name, meta.uid or "", arrival=identity.arrival_of(pod))
        known = self.pod_store.by_uid.get(name.uid)
        stands = standing(pod, self.scheduler_name)
        if known is not None and stands is not Standing.OVER and self.reader.begins_anew(known, pod):
            yield from self.remove(known)
            known = None
        if known is None:
            if stands in (Standing.ELSEWHERE, Standing.GATED, Standing.OVER):
                self.pod_store.gated(name, (pod.spec.scheduling_gates or ()) if stands is Standing.GATED else ())
                return
            # An earlier one of this name is gone: its end was missed.
            yield from self.remove(self.pod_store.named(name.namespace, name.name))
        elif stands is Standing.OVER:
            yield from self._over(known, pod)
            return
        try:
            spec = self.reader.spec_of(pod, known, stands is Standing.FOREIGN)
        except UNREADABLE as e:
            if known is None and stands is Standing.FOREIGN:
                log.warning("pod %s of another scheduler is passed over: %s", name, e)
            elif known is None:  # one that is in stays as it was
                self.tell(name, "unreadable", str(e))
                self.pod_store.passed_over[name.namespace, name.name] = str(e)
            return
        if known is None:
            known = KnownPod(name, spec.application, spec, foreign=stands is Standing.FOREIGN)
            self.pod_store.add(known)
            self._tell_of(known, "came")
        before = known.spec
        known.update(pod, spec)
        if known.bound != spec.node:
            self.pod_store.house(known)
            known.bound = spec.node
            self.volume_binder.drop(known)
        self.storage.use(known.claims, name.uid)
        self.devices.use(known)
        if known.foreign:
            if known.books is Books.OUT or known.spec != before:
                yield from self._foreign(known)
        else:
            yield from self._ours(known, pod, before)
            yield from self.workloads.came(known)

    def _reread(self) -> Iterator[Event]:
        """A namespace is there or has other labels: pods that select namespaces by labels, or came before it."""
        for known, pod in [(k, k.pod) for k in self.pod_store.by_uid.values() if k.pod is not None]:
            before, known.spec = known.spec, self.reader.spec_of(pod, known, known.foreign)
            if known.books is not Books.OUT and known.spec != before:
                yield self.reader.described(known)
            elif not known.foreign and (known.flaw or known.application not in self.specs):
                known.flaw = ""
                yield from self._ours(known, pod, before)
                yield from self.workloads.came(known)
        yield from self.reader.renoted()
        yield from self.workloads.reclassed(by_namespaces=True)

    def _house(self, node: str) -> Iterator[Event]:
        """A node is known now: what is bound to it enters."""
        for uid in list(self.pod_store.homeless.get(node, ())):
            known = self.pod_store.by_uid[uid]
            self.pod_store.house(known)
            yield from self._foreign(known) if known.foreign else self.enter(known)

    def _foreign(self, known: KnownPod) -> Iterator[Event]:
        if known.bound not in self.around.nodes:
            self.pod_store.wait_for_node(known)
            return
        self.stand(known, Books.PLACED, known.bound)
        yield self.reader.described(known)

    def _ours(self, known: KnownPod, pod: Pod, before: AskSpec) -> Iterator[Event]:
        """One of our pods, new or changed; `before`: what it asked for."""
        if known.spec.placeholder and not known.bound and known.books is Books.OUT and self._is_useless(known):
            if not known.leaving:
                self.acts.append(DeletePod(known.name))
            return
        if known.application not in self.specs:
            yield from self._declare(known, pod)
        yield from self.placeholders.decided_before(known, pod)
        if known.books is Books.OUT:
            if self.may_enter(known):
                yield from self.enter(known)
            elif self.gangs.holds_back(known):
                # The application comes first: its acceptance has the placeholders made.
                yield from self.introduce(known.application)
            return
        if known.bound and known.bound != known.node:
            if known.books is Books.PLACED or known.bound not in self.around.nodes:
                # Somebody else bound it, or we did before a restart, or to a node that is gone: the server is right.
                self.stand(known, Books.OUT)
                yield self._release(known, Cause.STOPPED_BY_RM)
            yield from self.enter(known)
        else:
            yield from self.reader.changed(known, before)
            yield from self._note_leaving(known)

    def _is_useless(self, placeholder: KnownPod) -> bool:
        """Whether a placeholder was still on its way when its gang was given up, or when the last pod of it went."""
        return self.gangs.is_late(placeholder) or placeholder.application not in self.specs

    def _declare(self, known: KnownPod, pod: Pod) -> Iterator[Event]:
        """The first pod of an application says what it is, together with its namespace."""
        if not known.bound and self.around.lacks_namespace(known.name.namespace):
            known.pod, known.flaw = pod, f"its namespace {known.name.namespace} is not known yet"
            return
        notes = self.around.namespace_notes(known.name.namespace)
        try:
            application = self.workloads.declared_by(application_of(pod, notes), known.application)
            gang = identity.gang_of(pod)
        except UNREADABLE as e:
            known.flaw = str(e)
            if known.bound:
                log.warning("pod %s runs, and its application is passed over: %s", known.name, e)
            else:
                self.tell(known.name, "unreadable", str(e))
            return
        self.specs[application.id] = application
        if gang is not None and self.workloads.store.of(application.id) is None:
            self.gangs.declare(application, gang, known.name, pod)
            yield from self.placeholders.expel(application.id)

    def introduce(self, application: str) -> Iterator[Event]:
        """An application enters the books, for the first time or again after it had ended there."""
        if application in self.specs and application not in self.applications and application not in self.refused:
            self.applications[application] = None
            yield AddApplication(self.specs[application])

    def may_enter(self, known: KnownPod) -> bool:
        """Whether a pod may go into the books: it runs, or nothing about it and its application is in the way."""
        if known.bound:
            return True
        if known.flaw or known.pausing:
            return False
        known.obstacle = None
        if known.application in self.refused:
            self.tell(known.name, *self.reader.refusal(known.application))
            return False
        obstacle = self.workloads.obstacle(known)
        if obstacle is None and self.gangs.holds_back(known):
            obstacle = self.gangs.obstacle(known)
        if obstacle is not None:
            self.tell(known.name, *obstacle)
            return False
        return self.reader.has_claims(known)

    def enter(self, known: KnownPod) -> Iterator[Event]:
        """A pod goes into the books, with its node if it is bound; it waits for its node if that is not known."""
        if known.bound:
            if known.bound not in self.around.nodes:
                self.pod_store.wait_for_node(known)
                return
            self.stand(known, Books.PLACED, known.bound)
            yield from self.introduce(known.application)
            if known.application in self.refused:
                yield from self.placeholders.force(known)
            if known.flaw or known.application not in self.applications:
                known.only_uses_room()
        else:
            yield from self.introduce(known.application)
            if known.application not in self.applications:
                return
            self.stand(known, Books.WAITING)
        yield AddAsks((self.reader.ask(known),), self.partition)
        if known.books is not Books.OUT:
            known.refused = None
        if known.books is Books.PLACED:
            if known.flaw and not known.foreign:  # it was refused
                known.only_uses_room()
                yield AddAsks((self.reader.ask(known),), self.partition)
            yield from self.placeholders.count_in(known)
            yield from self._note_leaving(known)

    def _note_leaving(self, known: KnownPod) -> Iterator[Event]:
        """A pod with a node is being deleted, and not because the scheduler said so just now."""
        if known.leaving and not known.stopping and not known.foreign and known.books is Books.PLACED:
            cause = Cause.PREEMPTED_BY_SCHEDULER if known.disrupted else Cause.STOPPED_BY_RM
            known.stopping = str(cause)
            yield Leaving(known.application, known.name.uid, cause, self.partition)

    def stand(self, known: KnownPod, books: Books, node: str = "") -> None:
        """Note where the pod stands in the scheduler's books from now on."""
        if books is not Books.PLACED:
            self.volume_binder.drop(known)
            self.devices.drop(known)
        if known.books is Books.WAITING:
            self.waiting.pop(known.name.uid, None)
        elif books is Books.WAITING:
            self.waiting[known.name.uid] = None
        known.books, known.node = books, node

    # -- leaving --------------------------------------------------------------------------------------------------

    def _over(self, known: KnownPod, pod: Pod) -> Iterator[Event]:
        """It ended, or was deleted before it had a node."""
        how = how_ended(pod)
        cause = Cause.STOPPED_BY_RM if how == "deleted" else Cause.FINISHED
        yield from self.remove(known, how, cause, int(how == "failed"))

    def remove(
        self, known: KnownPod | None, how: str = "deleted", cause: Cause = Cause.STOPPED_BY_RM, exit_code: int = 0
    ) -> Iterator[Event]:
        """A pod is no more: it leaves the books, and nothing of it is remembered."""
        if known is not None:
            yield from self._leave(known, cause, exit_code)
            yield from self.workloads.ended(known, how)
            self._forget(known, how)
            yield from self.workloads.left(known)
            yield from self.placeholders.expel_empty(known.application)

    def _leave(self, known: KnownPod, cause: Cause, exit_code: int = 0) -> Iterator[Event]:
        """A pod uses nothing any more. What the scheduler told to stop is confirmed with its cause."""
        self.pod_store.house(known)
        if known.books is Books.OUT:
            return
        release = self._release(known, Cause(known.stopping) if known.stopping else cause, exit_code)
        self.stand(known, Books.OUT)
        yield release

    def _release(self, known: KnownPod, cause: Cause, exit_code: int | None = None) -> Release:
        code = exit_code if cause is Cause.FINISHED else None
        return Release("" if known.foreign else known.application, known.name.uid, cause, self.partition, code)

    def _forget(self, known: KnownPod, how: str) -> None:
        self._tell_of(known, how)
        self.storage.leave(known.claims, known.name.uid)
        self.devices.leave(known)
        self.pod_store.forget(known)
        self.gangs.gone(known)
        if known.spec.placeholder:
            # Whoever deleted it: its gang cannot begin without it.
            self.placeholders.complete(known.application, known.name.name)
        if known.application not in self.pod_store.by_application:
            # Its name may be used anew by somebody who does better.
            self.refused.pop(known.application, None)
            self.specs.pop(known.application, None)
            self.placeholders.drop(self.gangs.forget(known.application))

    # -- the whole of it ------------------------------------------------------------------------------------------

    def begin(self) -> Iterator[Event]:
        """Everything that was there at the start has been taken: what was under way is held again, gangs completed."""
        self.live = True
        for application in self.gangs.declared:
            self.placeholders.complete(application)
        yield from self.workloads.begin()  # members of what had begun wait as of now
        for known in sorted(self.pod_store.by_uid.values(), key=lambda k: -k.spec.priority):
            if known.foreign or known.bound or known.books is Books.PLACED:
                continue
            told, known.nominated = known.nominated, ""
            if known.books is Books.WAITING and (node := told or self.volume_binder.node_before(known)):
                yield Nominated(known.application, known.name.uid, node, self.partition)
            if told and known.nominated == told:
                self.acts.remove(Nominate(known.name, told))  # the server has it so
            elif told and not known.nominated:
                self.acts.append(Nominate(known.name, ""))

    def configured(self) -> Iterator[Event]:
        """The queue file changed: applications that were rejected may be taken in now."""
        for application in [each for each in self.refused if not self.gangs.has_failed(each)]:
            yield from self.placeholders.try_again(application)

    # -- what the binder reports ------------------------------------------------------------------------------------

    def bind_failed(self, uid: str, node: str, why: str) -> Iterator[Event]:
        """The API server refused the placement for good: the pod gives its place back, is told why, and waits again."""
        known = self.pod_store.by_uid.get(uid)
        if known is None or known.bound or known.books is not Books.PLACED or known.node != node:
            return
        known.pausing = True
        yield from self.withdraw(known)
        known.obstacle = PLACEMENT_REFUSED, f"a place on {node} was refused, and it is tried again after a pause: {why}"
        self.tell(known.name, *known.obstacle)

    def withdraw(self, known: KnownPod, cause: Cause = Cause.STOPPED_BY_RM) -> Iterator[Event]:
        """A pod without a node at the API server leaves the books for now."""
        self.stand(known, Books.OUT)
        self.gangs.gone(known)
        yield self._release(known, cause)

    def try_again(self, uid: str) -> Iterator[Event]:
        """After a pause: a pod whose placement was refused, or a workload, waits once more."""
        if (known := self.pod_store.by_uid.get(uid)) is None:
            yield from self.workloads.try_again(uid)
            return
        known.pausing = False
        if known.books is Books.OUT and not known.leaving and self.may_enter(known):
            yield from self.enter(known)
        yield from self.workloads.came(known)

    def _tell_of(self, known: KnownPod, what: str) -> None:
        if not known.foreign and known.name.stands_for is None:
            self.news.append(News(known, what))

    def tell(self, name: ObjectName, code: str, why: str) -> None:
        """Say why a pod is not in the books."""
        self.pod_store.says_otherwise(name.uid)
        self.acts += [Explain(name, code, why), Record(name, "FailedScheduling", why, warning=True)]
