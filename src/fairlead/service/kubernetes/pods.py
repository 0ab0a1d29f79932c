"""Pods in the shapes of the wire, the same as jobs on a machine.

Decides what a pod shows of a job. Never changes anything and hands out no live object. Invariant: a pod goes by
`NAMESPACE/NAME`; its reason to wait is the scheduler's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairlead.core.model.specs import TAG_CREATION_TIME
from fairlead.kubernetes.pod_store import Books, KnownPod
from fairlead.runtime import Refusal
from fairlead.service import views
from fairlead.wire import jobs as wire
from fairlead.wire.questions import Why

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.core.books.applications import Application
    from fairlead.core.books.asks import Ask
    from fairlead.kubernetes.informer import Informer
    from fairlead.scheduler import Scheduler


def pod_of(informer: Informer, key: str) -> KnownPod:
    """The pod that `NAMESPACE/NAME` means; a name alone is one in `default`. Raises `Refusal`."""
    namespace, _, name = key.rpartition("/")
    known = informer.pod_store.named(namespace or "default", name)
    if known is None or known.foreign:
        raise Refusal("not-found", f"no pod {namespace or 'default'}/{name} waits or runs under this scheduler")
    return known


def our_pods(informer: Informer) -> Iterator[KnownPod]:
    """All pods of this scheduler, in the order in which it met them."""
    return (known for known in informer.pod_store.by_uid.values() if not known.foreign)


def state_of(known: KnownPod) -> wire.Stoppable:
    """`waiting`, `running` or `stopping`."""
    if known.leaving or (known.stopping and known.books is Books.PLACED):
        return "stopping"
    placed = known.books is Books.PLACED and known.obstacle is None
    return "running" if placed or known.bound else "waiting"


def entry_of(scheduler: Scheduler, informer: Informer, known: KnownPod) -> tuple[Application | None, Ask | None]:
    """Its application and its ask in the scheduler's books."""
    partition = scheduler.cluster.partitions.get(informer.partition)
    app = partition.applications.get(known.application) if partition is not None else None
    return app, app.asks.get(known.name.uid) if app is not None else None


def submitted_ms(scheduler: Scheduler, informer: Informer, known: KnownPod) -> int:
    """When it was created; where nobody says, when the scheduler met it."""
    created = known.spec.tags.get(TAG_CREATION_TIME, "")
    if created.isdecimal():
        return int(created) * 1000
    _, ask = entry_of(scheduler, informer, known)
    return ask.created_ms if ask is not None else 0


def row(scheduler: Scheduler, informer: Informer, known: KnownPod) -> wire.Job:
    """A pod as a row of a list."""
    return wire.Job(**_row(scheduler, informer, known))


def _row(scheduler: Scheduler, informer: Informer, known: KnownPod) -> dict[str, Any]:
    app, ask = entry_of(scheduler, informer, known)
    declared = informer.specs.get(known.application)
    return {
        "key": str(known.name),
        "name": known.application,
        "queue": app.queue.path if app is not None else (declared.queue if declared is not None else ""),
        "user": declared.user if declared is not None else "",
        "priority": ask.priority if ask is not None else known.spec.priority,
        "state": state_of(known),
        "node": known.node or known.bound,
        "exit_code": None,
        "reason": reason_of(scheduler, informer, known),
        "submitted_at_ms": submitted_ms(scheduler, informer, known),
        "started_at_ms": ask.allocated_ms if ask is not None else None,
        "ended_at_ms": None,
        "resources": known.spec.resources.as_dict(),
    }


def full(scheduler: Scheduler, informer: Informer, known: KnownPod) -> wire.JobDetails:
    """Everything about a pod."""
    spec = known.spec
    return wire.JobDetails(
        **_row(scheduler, informer, known),
        uid=known.name.uid,
        application=known.application,
        labels=dict(spec.labels),
        task_group=spec.task_group,
        placeholder=spec.placeholder,
        idle=spec.idle,
        grace_ms=spec.grace_ms,
        time_limit_ms=spec.time_limit_ms,
        nominated=known.nominated,
        bound=bool(known.bound),
    )


def reason_of(scheduler: Scheduler, informer: Informer, known: KnownPod) -> wire.Reason | None:
    """Why a pod waits, or is told to stop; None where there is nothing to say."""
    state = state_of(known)
    if state == "stopping":
        cause = known.stopping or "deleted"
        how = "the scheduler told it to stop" if known.stopping else "it is being deleted"
        code = "evicted" if known.stopping else "deleted"
        return wire.Reason(code=code, sentence=how, values={"cause": cause})
    if state != "waiting":
        return None
    if known.books is Books.WAITING:
        reason = scheduler.why(known.application, known.name.uid, informer.partition)
        return views.waits_for(reason)
    if known.obstacle is not None:
        return wire.Reason(code=known.obstacle[0], sentence=known.obstacle[1])
    refused = informer.refused.get(known.application)
    if known.flaw or refused is not None:
        code = "unreadable" if known.flaw else "application-refused"
        return wire.Reason(code=code, sentence=known.flaw or refused or "")
    declared = informer.gangs.declared.get(known.application)
    if declared is not None and not declared.begun:
        has, size = len(declared.standing), declared.size
        said = f"its gang starts when all {size} of its placeholders have a node; {has} have one"
        return wire.Reason(code="gang-waits", sentence=said, values={"has": has, "size": size})
    said = "its placement was refused by the API server; it is tried again after a pause"
    return wire.Reason(code="pause", sentence=said)


def why(scheduler: Scheduler, informer: Informer, known: KnownPod) -> Why:
    """Why a pod is where it is, without the verdict."""
    reason, state = reason_of(scheduler, informer, known), state_of(known)
    plainly = f"it runs on {known.node or known.bound}" if state == "running" else "the scheduler has yet to look at it"
    return Why(
        key=str(known.name),
        state=state,
        reason=reason,
        sentence=reason.sentence if reason else plainly,
        queue_position=views.place_in_line(entry_of(scheduler, informer, known)[1]),
        expected_start_ms=scheduler.expected_start_ms(known.application, known.name.uid, informer.partition),
    )
