"""Jobs and groups of pods as the API server says them: the fields that matter to starting them as a whole.

Decides how they are read and what is left out. Never interprets a field; the invariant of `objects` holds here too.
"""

from __future__ import annotations

from fairlead.kubernetes.objects import Amounts, Condition, Labels, Metadata, Part, PodSpec, Text, Thing, Toleration


class PodTemplate(Part, frozen=True):
    """What the pods of a job are made of."""

    metadata: Metadata = Metadata()
    spec: PodSpec = PodSpec()


class JobSpec(Part, frozen=True):
    """How many pods a job runs, for how long, and whether it may make any."""

    suspend: bool | None = None
    active_deadline_seconds: int | None = None
    parallelism: int | None = None
    completions: int | None = None
    template: PodTemplate = PodTemplate()


class JobStatus(Part, frozen=True):
    """How far a job has come."""

    conditions: list[Condition] | None = None
    succeeded: int | None = None
    failed_indexes: Text = None
    """Of an indexed job: `1,3-5` will never succeed, and get no further pod."""


class Job(Thing, frozen=True):
    """A job."""

    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()


class JobTemplate(Part, frozen=True):
    """What the jobs of a set are made of."""

    metadata: Metadata = Metadata()
    spec: JobSpec = JobSpec()


class ReplicatedJob(Part, frozen=True):
    """So many equal jobs of a set."""

    name: str = ""
    replicas: int | None = None
    template: JobTemplate = JobTemplate()


class JobSetSpec(Part, frozen=True):
    """The jobs of a set, and whether any may be made."""

    suspend: bool | None = None
    replicated_jobs: list[ReplicatedJob] | None = None


class ReplicatedJobStatus(Part, frozen=True):
    """How far the equal jobs of one name have come."""

    name: str = ""
    succeeded: int = 0


class JobSetStatus(Part, frozen=True):
    """How far a set has come."""

    conditions: list[Condition] | None = None
    replicated_jobs_status: list[ReplicatedJobStatus] | None = None


class JobSet(Thing, frozen=True):
    """Several jobs that belong together."""

    spec: JobSetSpec = JobSetSpec()
    status: JobSetStatus = JobSetStatus()


class PodGroupSpec(Part, frozen=True):
    """How many pods of a group must start together."""

    min_member: int | None = None
    queue: Text = None
    """Volcano's: the queue of its pods."""
    schedule_timeout_seconds: int | None = None


class PodGroup(Thing, frozen=True):
    """Pods that start together, as the scheduler-plugins and Volcano declare them."""

    spec: PodGroupSpec = PodGroupSpec()


class LimitRangeItem(Part, frozen=True):
    """What containers, or others, of a namespace get that say nothing."""

    type: str = ""
    default_request: Amounts = None
    """The server has filled in here what follows from its other fields."""


class LimitRangeSpec(Part, frozen=True):
    """All that a limit range says."""

    limits: list[LimitRangeItem] | None = None


class LimitRange(Thing, frozen=True):
    """What pods of a namespace get that say nothing."""

    spec: LimitRangeSpec = LimitRangeSpec()


class Overhead(Part, frozen=True):
    """What a pod needs beside its containers."""

    pod_fixed: Amounts = None


class RuntimeScheduling(Part, frozen=True):
    """Where pods of a runtime may run."""

    node_selector: Labels = None
    tolerations: list[Toleration] | None = None


class RuntimeClass(Thing, frozen=True):
    """How pods are run, and what that costs."""

    overhead: Overhead | None = None
    scheduling: RuntimeScheduling | None = None
