"""The pods of a cluster at one moment, in the shapes of the wire: the same as jobs on a machine.

Decides what a pod shows of a job, and what is known about its run time: what alike pods took since this process began,
its limit, and that a pod which is started again whenever it ends never ends. Never changes anything (but `Future`,
which is for a copy) and hands out no live object. Invariant: a pod goes by `NAMESPACE/NAME`; its reason to wait is the
scheduler's own; who may ask at all sees everything.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from fairlead.core.model.specs import TAG_CREATION_TIME
from fairlead.insight.futures import HORIZON_MS
from fairlead.insight.runtimes import Kind, Runtimes
from fairlead.insight.suppositions import Supposition
from fairlead.insight.trial import Name
from fairlead.kubernetes.gangs import LACKS_ROOM, RESERVES
from fairlead.kubernetes.pod_store import Books, KnownPod
from fairlead.kubernetes.translate.amounts import PODS
from fairlead.kubernetes.translate.identity import JOB_NAME
from fairlead.local.callers import Caller
from fairlead.runtime import Refusal
from fairlead.service import views
from fairlead.service.place import JobFilter, drafted
from fairlead.wire import jobs as wire
from fairlead.wire.fields import with_cpu
from fairlead.wire.verdicts import Why

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fairlead.core.books.applications import Application
    from fairlead.core.books.asks import Ask
    from fairlead.core.model.specs import AskSpec
    from fairlead.kubernetes.driver import Driver
    from fairlead.kubernetes.informer import Informer

ANYBODY = Caller("", -1, may_submit=False)
"""Who has shown no token, where everybody may read."""


def our_pods(informer: Informer) -> Iterator[KnownPod]:
    """All pods of this scheduler, in the order in which it met them."""
    return (known for known in informer.pod_store.by_uid.values() if not known.foreign)


def state_of(known: KnownPod) -> wire.Stoppable:
    """`waiting`, `running` or `stopping`."""
    if known.leaving or (known.stopping and known.books is Books.PLACED):
        return "stopping"
    placed = known.books is Books.PLACED and known.obstacle is None and known.name.stands_for is None
    return "running" if placed or known.bound else "waiting"


class ClusterMoment:
    """The books of a cluster between two turns; each pod is a `KnownPod` in them."""

    def __init__(self, driver: Driver, caller: Caller = ANYBODY, learned: Runtimes | None = None) -> None:
        self.scheduler, self.informer, self.caller = driver.scheduler, driver.informer, caller
        self.partition = driver.informer.partition
        self._driver, self._learned = driver, learned or Runtimes()

    # -- which --------------------------------------------------------------------------------------------------------

    def pod(self, key: str) -> KnownPod:
        """The pod that `NAMESPACE/NAME` means, or what stands for the job or pod group of that name. Raises `Refusal`.

        A name alone is one in `default`.
        """
        namespace, _, name = unquote(key).rpartition("/")
        namespace = namespace or "default"
        if why := self.informer.pod_store.passed_over.get((namespace, name)):
            raise Refusal("not-found", f"pod {namespace}/{name} is passed over: {why}")
        workloads = self.informer.workloads
        known, job = self.informer.pod_store.named(namespace, name), workloads.store.named(namespace, name)
        if known is None and job is not None:
            known = workloads.representative(job)
        known = known or self._first_of_job(namespace, name)
        if known is None and job is not None and (why := job.why_without_pods):
            raise Refusal("not-found", f"{job.spec.name} {why}")
        if known is None or known.foreign:
            raise Refusal("not-found", f"no pod {namespace}/{name} waits or runs under this scheduler")
        return known

    def _first_of_job(self, namespace: str, name: str) -> KnownPod | None:
        """A pod of a job without our label; what waits comes first."""
        pods = (k for k in our_pods(self.informer) if k.name.namespace == namespace)
        members = (known for known in pods if known.spec.labels.get(JOB_NAME) == name)
        return min(members, key=lambda known: state_of(known) != "waiting", default=None)

    def entry_of(self, known: KnownPod) -> tuple[Application | None, Ask | None]:
        """Its application and its ask in the scheduler's books."""
        partition = self.scheduler.cluster.partitions.get(self.partition)
        app = partition.applications.get(known.application) if partition is not None else None
        return app, app.asks.get(known.name.uid) if app is not None else None

    def found(self, wanted: JobFilter) -> Iterator[KnownPod]:
        """The pods of this scheduler that pass."""
        if wanted.array is not None:
            raise Refusal("invalid", "pods are in no arrays; leave it out", field="array")
        if wanted.tags:
            raise Refusal("invalid", "pods have labels and no tags; leave it out", field="tag")
        for known in our_pods(self.informer):
            app, _ = self.entry_of(known)
            queue, user = (app.queue.path, app.user) if app is not None else ("", "")
            if wanted.passes(state_of(known), queue, user, known.application, known.name.namespace):
                yield known

    def order(self, known: KnownPod) -> tuple[int, str]:
        """When it was created, then its name."""
        return self._submitted_ms(known), str(known.name)

    def last_waiting(self, key: str) -> str:
        """A pod is in no array."""
        return key

    def name(self, key: str) -> Name:
        """A pod goes by its identity in the books."""
        known = self.pod(key)
        return self.partition, known.application, known.name.uid

    def knows(self, key: str) -> bool:
        """It waits in line, or has a node."""
        _, ask = self.entry_of(self.pod(key))
        return ask is not None and (ask.pending or ask.node is not None)

    def sees(self, application: str) -> bool:
        """Everything."""
        del application
        return True

    def in_line(self, ask: Ask) -> tuple[str, str, wire.Reason | None, bool]:
        """With its reason."""
        known = self.informer.pod_store.by_uid.get(ask.key)
        key, name, visible = self.called(ask)
        return key, name, self._reason(known) if known is not None else None, visible

    def called(self, ask: Ask) -> tuple[str, str, bool]:
        """A pod by its namespace and name."""
        known = self.informer.pod_store.by_uid.get(ask.key)
        if known is None:
            return ask.key, ask.app.id, False
        return str(known.name), known.application, True

    # -- how they are shown -------------------------------------------------------------------------------------------

    def row(self, known: KnownPod) -> wire.Job:
        """A pod as a row of a list."""
        return wire.Job(**self._row(known))

    def _row(self, known: KnownPod) -> dict[str, Any]:
        app, ask = self.entry_of(known)
        declared = self.informer.specs.get(known.application)
        return {
            "key": str(known.name),
            "name": known.application,
            "queue": app.queue.path if app is not None else (declared.queue if declared is not None else ""),
            "user": declared.user if declared is not None else "",
            "priority": ask.priority if ask is not None else known.spec.priority,
            "state": state_of(known),
            "node": known.node or known.bound,
            "exit_code": None,
            "reason": self._reason(known),
            "submitted_at_ms": self._submitted_ms(known),
            "started_at_ms": ask.allocated_ms if ask is not None else None,
            "ended_at_ms": None,
            "resources": with_cpu(known.spec.resources.as_dict()),
            "time_limit_ms": known.spec.time_limit_ms,
        }

    def _submitted_ms(self, known: KnownPod) -> int:
        """When it was created; where nobody says, when the scheduler met it."""
        created = known.spec.tags.get(TAG_CREATION_TIME, "")
        if created.isdecimal():
            return int(created) * 1000
        _, ask = self.entry_of(known)
        return ask.created_ms if ask is not None else 0

    def details(self, key: str) -> wire.JobDetails:
        """What the scheduler knows of a pod."""
        return self.full(self.pod(key))

    def full(self, known: KnownPod) -> wire.JobDetails:
        """Everything about a pod."""
        spec = known.spec
        return wire.JobDetails(
            **self._row(known),
            uid=known.name.uid,
            application=known.application,
            labels=dict(spec.labels),
            task_group=spec.task_group,
            placeholder=spec.placeholder,
            idle=spec.idle,
            grace_ms=spec.grace_ms,
            nominated=known.nominated,
            bound=bool(known.bound),
        )

    def _reason(self, known: KnownPod) -> wire.Reason | None:
        """Why a pod waits, or is told to stop; None where there is nothing to say."""
        informer = self.informer
        state = state_of(known)
        if state == "stopping":
            cause = known.stopping or "deleted"
            how = "the scheduler told it to stop" if known.stopping else "it is being deleted"
            code = "evicted" if known.stopping else "deleted"
            return wire.Reason(code=code, sentence=how, values={"cause": cause})
        if state != "waiting":
            return None
        if known.books is Books.WAITING:
            reason = self.scheduler.why(known.application, known.name.uid, informer.partition)
            return views.waits_for(reason)
        declared = informer.gangs.declared.get(known.application)
        if (
            known.name.stands_for is not None
            and known.books is Books.PLACED
            and declared is not None
            and declared.begun
        ):
            return wire.Reason(code="keeps-room", sentence=f"keeps room on {known.node} for the next pod of its job")
        found = informer.reader.in_its_way(known)
        if found is not None and found[0] not in (RESERVES, LACKS_ROOM):
            return wire.Reason(code=found[0], sentence=found[1])
        if declared is not None and not declared.begun:
            has, size = len(declared.standing), declared.size
            said = f"its gang starts when all {size} of its placeholders have a node; {has} have one"
            said = f"{said}; {declared.in_its_way}" if declared.in_its_way else said
            return wire.Reason(code="gang-waits", sentence=said, values={"has": has, "size": size})
        return wire.Reason(code="pause", sentence="it is tried again after a pause")

    def why(self, key: str) -> Why:
        """Why a pod is where it is, without the verdict."""
        known = self.pod(key)
        reason, state = self._reason(known), state_of(known)
        it = f"it runs on {known.node or known.bound}" if state == "running" else "the scheduler has yet to look at it"
        return Why(
            key=str(known.name),
            state=state,
            reason=reason,
            sentence=reason.sentence if reason else it,
            queue_position=views.place_in_line(self.entry_of(known)[1]),
            expected_start_ms=self.scheduler.expected_start_ms(known.application, known.name.uid, self.partition),
        )

    # -- what is supposed ---------------------------------------------------------------------------------------------

    def submission(self, draft: wire.JobDraft) -> Supposition:
        """A pod like this draft; its command does not matter."""
        return drafted(draft, self.partition, {PODS: 1})

    def target(self, key: str, queue: str) -> str:
        """As it was given."""
        del key
        return queue

    def future(self) -> tuple[Runtimes, Callable[[Ask], Kind]]:
        """Learned from pods that ended."""
        future = Future(self, self._learned)
        return future, future.kind_of

    def arrivals(self) -> None:
        """Nobody remembers which pods came."""
        return


# -- what is known about run times --------------------------------------------------------------------------------

NEVER_MS = 2 * HORIZON_MS


@dataclass(frozen=True, slots=True)
class PodKind(Kind):
    """What pods are alike."""

    endless: bool = False

    def of(self, spec: AskSpec) -> PodKind:
        """The same with limit and size; its application is its name already."""
        return replace(self, limit_ms=spec.time_limit_ms, size=spec.resources.items)


class Future(Runtimes):
    """Run times of the pods of one cluster."""

    def __init__(self, moment: ClusterMoment, learned: Runtimes) -> None:
        """What was `learned`, of the pods that this moment has."""
        super().__init__()
        self._samples, self.ends = learned._samples, learned.ends
        self._pods = moment.informer.pod_store.by_uid

    def kind_of(self, ask: Ask) -> PodKind:
        """User, application and queue; and whether it never ends."""
        known = self._pods.get(ask.key)
        return PodKind(ask.app.user, ask.app.id, ask.app.queue.path, endless=known is not None and known.endless)

    def basis(self, kind: Kind) -> str:
        """What a guess for this kind rests on."""
        if isinstance(kind, PodKind) and kind.endless:
            return "restarted for ever, so that they never end (restartPolicy Always)"
        return super().basis(kind)

    def draw(
        self, kind: Kind, chance: Random, elapsed_ms: int = 0, limit_ms: int | None = None, future: str = ""
    ) -> int:
        """A run time; beyond all that is looked at for what never ends."""
        if isinstance(kind, PodKind) and kind.endless:
            return max(limit_ms, elapsed_ms + 1) if limit_ms is not None else elapsed_ms + NEVER_MS
        return super().draw(kind, chance, elapsed_ms, limit_ms, future)
