"""Workloads: jobs and groups of pods that start as a whole, as they declare it.

Decides which jobs are ours to admit, of how many pods of which kind they consist, and to which pod group a pod says it
belongs. Never decides when one starts. Invariant: a job without our label is none of our business, suspended or not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import msgspec

from fairlead.core.model.constraints import IN, NOT_IN
from fairlead.core.model.resources import NOTHING
from fairlead.core.model.specs import TAG_GANG_COMES_AGAIN, ApplicationSpec, AskSpec
from fairlead.kubernetes.acts import ObjectName
from fairlead.kubernetes.job_objects import Job, JobSet, JobSpec, LimitRange, PodGroup, RuntimeClass, RuntimeScheduling
from fairlead.kubernetes.kinds import JOB_SETS, JOBS, VOLCANO_GROUPS, Kind
from fairlead.kubernetes.objects import (
    Condition,
    Container,
    Expression,
    Metadata,
    Needs,
    Pod,
    PodAffinity,
    PodTerm,
    PriorityClass,
)
from fairlead.kubernetes.translate import identity
from fairlead.kubernetes.translate.pods import application_of

QUEUE = "fairlead.io/queue"
"""On a job: it is started as a whole, in this queue."""
LEAST = "fairlead.io/min-parallelism"
"""On a job: with so many pods it may start; the others come when there is room."""
JOB_SET_NAME = "jobset.sigs.k8s.io/jobset-name"
REPLICATED_JOB = "jobset.sigs.k8s.io/replicatedjob-name"
DEFAULT_SCHEDULER = "default-scheduler"
OVER = frozenset({"Complete", "Completed", "Failed"})


@dataclass(frozen=True, slots=True)
class PodSet:
    """Equal pods of a workload."""

    name: str
    template: Pod
    count: int
    """So many must have room for the workload to start."""
    goes_on: bool = False
    """More are to succeed than there are at a time: one that does is followed by another."""


@dataclass(frozen=True, slots=True)
class WorkloadSpec:
    """What a workload declares."""

    name: ObjectName
    application: str
    queue: str
    created: str
    """As the API writes it."""
    version: int = 0
    """That of the cluster when something was last said of it: of those of one second the first comes first."""
    suspended: bool | None = None
    """Whether it may have pods; None: a pod group, whose pods are there before it starts."""
    pod_sets: tuple[PodSet, ...] = ()
    min_member: int = 0
    """Of a pod group: so many of its pods start together."""
    timeout_ms: int = 0
    """How long its room may be incomplete; 0: as long as for a gang."""
    flaw: str = ""
    """Why it cannot be admitted, as a sentence."""
    is_theirs: bool = False
    """All its pods name another scheduler, which may be a second one like this: it is for that one to speak."""

    @property
    def least(self) -> int:
        """With fewer pods it cannot run."""
        return self.min_member + sum(pods.count for pods in self.pod_sets)

    @property
    def tags(self) -> dict[str, str]:
        """What forecasts know of its application: it comes again, and a job does so as a whole, with this `least`."""
        return {TAG_GANG_COMES_AGAIN: "true" if self.suspended is None else str(self.least)}

    def is_followed(self, part: str, how: str) -> bool:
        """Whether a pod of this pod set that ended so (`succeeded` or `failed`) may be followed by another one."""
        return any(pods.name == part and (pods.goes_on or how == "failed") for pods in self.pod_sets)

    @property
    def shape(self) -> object:
        """What its reservation depends on."""
        return self.pod_sets, self.queue, self.min_member, self.timeout_ms, self.flaw


def workload_of(thing: Job | JobSet | PodGroup, kind: Kind, scheduler_name: str) -> WorkloadSpec | None:
    """What a job or pod group declares; None when it is over, about to go, or not ours to admit."""
    meta = thing.metadata
    if meta.deletion_timestamp:
        return None
    name = ObjectName(meta.namespace or "default", meta.name, meta.uid or "", kind)
    if isinstance(thing, PodGroup):
        timeout = thing.spec.schedule_timeout_seconds or 0
        return WorkloadSpec(
            name,
            identity.pod_group_application(name.namespace, name.name, of_volcano=kind is VOLCANO_GROUPS),
            queue=_queue(meta) or thing.spec.queue or "",
            created=meta.creation_timestamp or "",
            version=identity.version_of(meta.resource_version),
            min_member=max(thing.spec.min_member or 1, 1),
            timeout_ms=max(timeout, 0) * 1000,
        )
    queue = _queue(meta)
    if not queue or _is_over(thing.status.conditions):
        return None
    pod_sets = tuple(_pod_sets(thing))
    notes = meta.annotations or {}
    return WorkloadSpec(
        name,
        f"{name.namespace}-{name.name}-{name.uid[:8]}",
        queue,
        meta.creation_timestamp or "",
        version=identity.version_of(meta.resource_version),
        suspended=bool(thing.spec.suspend),
        pod_sets=tuple(pods for pods in pod_sets if pods.count),
        timeout_ms=identity.timeout_ms(identity.parameters(notes.get(identity.PARAMETERS, ""))),
        flaw=_flaw(notes, pod_sets, scheduler_name),
        is_theirs=not {*map(_scheduler_of, pod_sets)} & {DEFAULT_SCHEDULER, scheduler_name} and bool(pod_sets),
    )


def as_one(asks: Iterable[AskSpec]) -> list[AskSpec]:
    """What keeps the room of pods that start together: all of it is as important as the least important of them, or
    what is more so would have work stopped whose room is given back, as the others do not get theirs.
    """
    found = list(asks)
    least = min((ask.priority for ask in found), default=0)
    may_stop = all(ask.allow_preempt_other for ask in found)
    return [replace(ask, priority=least, allow_preempt_other=may_stop) for ask in found]


def as_gang(application: ApplicationSpec, spec: WorkloadSpec, asks: Iterable[AskSpec]) -> ApplicationSpec:
    """The application of a workload, once room is kept for all of it or for nothing."""
    total = sum((ask.resources for ask in asks), NOTHING)
    return replace(
        application,
        tags={**application.tags, **spec.tags},
        placeholder_ask=total,
        gang_style="Hard",
        placeholder_timeout_ms=spec.timeout_ms,
    )


def part_of(pod: Pod, spec: WorkloadSpec) -> str:
    """The name of the pod set that a pod of the workload belongs to; of a pod group each pod is one by itself."""
    if spec.name.kind is JOBS:
        return spec.name.name
    if spec.name.kind is JOB_SETS:
        return (pod.metadata.labels or {}).get(REPLICATED_JOB, "")
    return pod.metadata.uid or ""


def limit_ms_of(pod: Pod, spec: WorkloadSpec) -> int | None:
    """How long a pod of a job runs at most, by what the job says of such pods; None: it says nothing."""
    part = part_of(pod, spec)
    deadline_s = next((pods.template.spec.active_deadline_seconds for pods in spec.pod_sets if pods.name == part), None)
    return deadline_s * 1000 if deadline_s else None


def application_spec(spec: WorkloadSpec, pod: Pod, namespace_notes: Mapping[str, str]) -> ApplicationSpec:
    """The application of a workload, one of whose pods (or templates) is this. Raises `IdentityError`."""
    application = application_of(pod, namespace_notes)
    return replace(application, id=spec.application, queue=spec.queue or application.queue)


def _queue(meta: Metadata) -> str:
    return (meta.labels or {}).get(QUEUE) or (meta.annotations or {}).get(QUEUE, "")


def _is_over(conditions: list[Condition] | None) -> bool:
    return any(c.type in OVER and c.status == "True" for c in conditions or ())


def _pod_sets(thing: Job | JobSet) -> Iterator[PodSet]:
    meta = thing.metadata
    if isinstance(thing, Job):
        done, left = (thing.status.succeeded or 0) + _indexes(thing.status.failed_indexes), thing.spec.completions
        count = _parallelism(thing.spec, left - done if left is not None else None)
        least = identity.whole((meta.annotations or {}).get(LEAST, ""))
        count = min(count, max(least, 1)) if least is not None else count
        yield PodSet(meta.name, _template(meta, thing.spec), count, _goes_on(thing.spec))
        return
    over = {status.name: status.succeeded for status in thing.status.replicated_jobs_status or ()}
    for jobs in thing.spec.replicated_jobs or ():
        spec = jobs.template.spec
        replicas = max((1 if jobs.replicas is None else jobs.replicas) - over.get(jobs.name, 0), 0)
        count = replicas * _parallelism(spec, spec.completions)
        yield PodSet(jobs.name, _template(meta, spec), count, _goes_on(spec))


def _indexes(text: str | None) -> int:
    """How many indexes there are in `1,3-5`."""
    ends = (part.partition("-") for part in (text or "").split(","))
    spans = ((identity.whole(first), identity.whole(last or first)) for first, _, last in ends)
    return sum(last - first + 1 for first, last in spans if first is not None and last is not None)


def _parallelism(spec: JobSpec, left: int | None) -> int:
    most = 1 if spec.parallelism is None else spec.parallelism
    return max(most if left is None else min(most, left), 0)


def _goes_on(spec: JobSpec) -> bool:
    return (spec.completions or 0) > (1 if spec.parallelism is None else spec.parallelism)


def _template(meta: Metadata, spec: JobSpec) -> Pod:
    """A pod as the job makes them, but for its identity; it ends with its job."""
    own = spec.template.metadata
    made = Metadata(
        name=meta.name,
        namespace=meta.namespace,
        labels=own.labels,
        annotations=own.annotations,
        creation_timestamp=meta.creation_timestamp,
    )
    deadlines = spec.active_deadline_seconds, spec.template.spec.active_deadline_seconds
    within = min((each for each in deadlines if each), default=None)
    return Pod(metadata=made, spec=msgspec.structs.replace(spec.template.spec, active_deadline_seconds=within))


def with_class(template: Pod, classes: Mapping[str, PriorityClass]) -> Pod:
    """With what its priority class, or else the global default, says, as the API server writes it on its pods."""
    spec = template.spec
    found = classes.get(spec.priority_class_name or "")
    if found is None and not spec.priority_class_name:
        found = next((each for each in classes.values() if each.global_default), None)
    if found is None:
        return template
    resolved = msgspec.structs.replace(
        spec,
        priority_class_name=found.metadata.name,
        priority=found.value if spec.priority is None else spec.priority,
        preemption_policy=spec.preemption_policy or found.preemption_policy,
    )
    return msgspec.structs.replace(template, spec=resolved)


def with_runtime(template: Pod, runtime: RuntimeClass | None) -> Pod:
    """With what its runtime class adds: overhead, a node selector and tolerations."""
    if runtime is None:
        return template
    spec, where = template.spec, runtime.scheduling or RuntimeScheduling()
    completed = msgspec.structs.replace(
        spec,
        overhead=runtime.overhead.pod_fixed if runtime.overhead is not None else spec.overhead,
        node_selector={**(spec.node_selector or {}), **(where.node_selector or {})},
        tolerations=[*(spec.tolerations or ()), *(where.tolerations or ())],
    )
    return msgspec.structs.replace(template, spec=completed)


def with_whole(template: Pod) -> Pod:
    """With the requests of the pod as a whole that follow from its limits, where no container says what it needs."""
    spec, whole = template.spec, template.spec.resources
    if whole is None or not whole.limits:
        return template
    needs = [c.resources or Needs() for c in (*(spec.containers or ()), *(spec.init_containers or ()))]
    said = {name for each in needs for name in (*(each.requests or ()), *(each.limits or ()))}
    asked = {name: most for name, most in whole.limits.items() if name not in said} | (whole.requests or {})
    resources = msgspec.structs.replace(whole, requests=asked)
    return msgspec.structs.replace(template, spec=msgspec.structs.replace(spec, resources=resources))


def with_label_keys(template: Pod) -> Pod:
    """With the labels of its own that `matchLabelKeys` and `mismatchLabelKeys` name, in its selectors of pods."""
    affinity, labels = template.spec.affinity, template.metadata.labels or {}
    if affinity is None:
        return template

    def term(given: PodTerm) -> PodTerm:
        keys = (given.match_label_keys or ()), (given.mismatch_label_keys or ())
        found = [
            Expression(key=key, operator=operator, values=[labels[key]])
            for operator, named in zip((IN, NOT_IN), keys, strict=True)
            for key in named
            if key in labels
        ]
        selector = given.label_selector
        if not found or selector is None:
            return given
        expressions = [*(selector.match_expressions or ()), *found]
        return msgspec.structs.replace(
            given, label_selector=msgspec.structs.replace(selector, match_expressions=expressions)
        )

    def side(given: PodAffinity | None) -> PodAffinity | None:
        if given is None:
            return None
        wishes = [
            msgspec.structs.replace(wish, pod_affinity_term=term(wish.pod_affinity_term))
            for wish in given.preferred or ()
        ]
        return msgspec.structs.replace(given, required=[term(t) for t in given.required or ()], preferred=wishes)

    company = msgspec.structs.replace(
        affinity, pod_affinity=side(affinity.pod_affinity), pod_anti_affinity=side(affinity.pod_anti_affinity)
    )
    return msgspec.structs.replace(template, spec=msgspec.structs.replace(template.spec, affinity=company))


def with_limits(template: Pod, ranges: Iterable[LimitRange]) -> Pod:
    """With the requests of containers that limit ranges of the namespace set where a container says nothing."""
    items = (item for found in ranges for item in found.spec.limits or () if item.type == "Container")
    defaults: dict[str, str | int | float] = {}
    for item in items:
        defaults = {**(item.default_request or {}), **defaults}
    if not defaults:
        return template

    def completed(container: Container) -> Container:
        own = container.resources or Needs()
        requests = {**defaults, **(own.limits or {}), **(own.requests or {})}
        return msgspec.structs.replace(container, resources=Needs(requests=requests, limits=own.limits))

    spec = template.spec
    containers, first = ([completed(c) for c in some or ()] for some in (spec.containers, spec.init_containers))
    return msgspec.structs.replace(
        template, spec=msgspec.structs.replace(spec, containers=containers, init_containers=first)
    )


def _scheduler_of(pods: PodSet) -> str:
    return pods.template.spec.scheduler_name or DEFAULT_SCHEDULER


def _flaw(notes: Mapping[str, str], pod_sets: tuple[PodSet, ...], scheduler_name: str) -> str:
    least = notes.get(LEAST, "")
    if least and not identity.whole(least):
        return f"annotation {LEAST} must be a whole number of at least 1, not {least[:60]!r}"
    size = sum(pods.count for pods in pod_sets)
    if size > identity.MOST_TOGETHER:
        most = identity.MOST_TOGETHER
        return f"{size} pods are to start together; at most {most} can (of a Job {LEAST} can be fewer)"
    for pods in pod_sets:
        named = _scheduler_of(pods)
        if named != scheduler_name:
            return f"its pods name the scheduler {named}: set schedulerName: {scheduler_name} in its pod template"
    return ""
