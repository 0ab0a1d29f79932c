"""The openb trace as a workload: nodes and tasks of a real GPU cluster, from two CSV files.

Decides what the columns mean to the scheduler and refuses every row that makes no sense. Never schedules. Invariant:
tasks come in order of their creation, then of their lines.

Columns (times in seconds): nodes `sn, cpu_milli, memory_mib, gpu, model`; tasks `name, cpu_milli, memory_mib, num_gpu,
gpu_milli, gpu_spec, qos, pod_phase, creation_time, deletion_time, scheduled_time`. A task runs from `scheduled_time` to
`deletion_time`; where the recorded cluster never started it (`scheduled_time` is empty) the time from `creation_time`
to `deletion_time` is taken instead. `gpu_milli` is the share of each of its `num_gpu` devices in thousandths.

Each task is an application with one ask in the queue `root.<class of service>`, its priority by class. The GPUs of a
node are one pool (`gpu-milli`), not single devices. A task that names GPU models in `gpu_spec` runs on nodes whose
attribute `gpu-model` is one of them.
"""

from __future__ import annotations

from collections.abc import Callable

from fairlead.core.model.constraints import ANYWHERE, IN, Constraints, Requirement
from fairlead.core.model.resources import INT64_MAX, Resources
from fairlead.core.model.specs import ApplicationSpec, AskSpec, NodeSpec
from fairlead.sim.jobs import Job, Task, Workload, queue_file
from fairlead.sim.rows import Row, TraceError, csv_rows, heading, made_of, only_once

QOS_PRIORITY = {"Guaranteed": 3000, "LS": 2000, "Burstable": 1000, "BE": 0}
"""The priority that a task gets from its class of service: guaranteed, latency sensitive, burstable, best effort."""
NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
TASK_COLUMNS = (
    *("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec", "qos", "pod_phase"),
    *("creation_time", "deletion_time", "scheduled_time"),
)
GPU = "gpu-milli"
MODEL = "gpu-model"
"""The attribute of a node that says which GPUs it has."""
_MIB = 2**20
_LARGEST = INT64_MAX // 2**30
"""Of a number: small enough to be counted in bytes."""
_QUEUES = {qos: f"root.{qos.lower()}" for qos in QOS_PRIORITY}


def is_openb(path: str, columns: tuple[str, ...]) -> bool:
    """Whether a CSV file has these columns of the trace."""
    return set(columns) <= set(heading(path))


def openb(nodes: str, tasks: str, bad: list[TraceError] | None = None) -> Workload:
    """The workload in the files of nodes and tasks. A bad row raises `TraceError`, or is added to `bad`."""
    machines = tuple(made_of(csv_rows(nodes, NODE_COLUMNS), _node_reader(), bad))
    jobs = sorted(made_of(csv_rows(tasks, TASK_COLUMNS), _job_reader(), bad), key=lambda job: job.at_ms)
    notes = [f"GPU shares count as one pool per node ({GPU}, thousandths); single devices are not modelled."]
    if named := sum(bool(job.tasks[0].ask.where.selector) for job in jobs):
        notes.append(f"Tasks that name GPU models, which ran on nodes that have one of these: {named:,}.")
    return Workload(
        name="openb",
        jobs=jobs,
        nodes=machines,
        tasks=len(jobs),
        notes=notes,
        queues=queue_file(_QUEUES.values(), preemption=False),
    )


def _amount(row: Row, gpus: int) -> Resources:
    """`vcore` in thousandths, `memory` in bytes, `gpu-milli`."""
    cpu, mib = (row.whole(name, 0, _LARGEST) for name in ("cpu_milli", "memory_mib"))
    return Resources({"vcore": cpu, "memory": mib * _MIB, GPU: gpus})


def _node_reader() -> Callable[[Row], NodeSpec]:
    name = only_once("sn")

    def read(row: Row) -> NodeSpec:
        gpus, model = row.whole("gpu", 0, _LARGEST), row.get("model")
        if gpus and not model:
            raise row.error("model", f"must name the model of its {gpus} GPUs")
        return NodeSpec(
            id=name(row), capacity=_amount(row, gpus * 1000), attributes={MODEL: model} if model and gpus else {}
        )

    return read


def _job_reader() -> Callable[[Row], Job]:
    name = only_once("name")
    interned: dict[Resources, Resources] = {}
    places: dict[tuple[str, ...], Constraints] = {(): ANYWHERE}

    def read(row: Row) -> Job:
        qos = row.text("qos")
        if qos not in QOS_PRIORITY:
            raise row.error("qos", f"must be one of {', '.join(QOS_PRIORITY)}")
        amount = _amount(row, _gpus(row))
        created_s, run_s = _times(row)
        models = tuple(sorted(m for m in row.get("gpu_spec").split("|") if m))
        if models not in places:
            places[models] = Constraints(selector=(Requirement(MODEL, IN, models),))
        id_ = name(row)
        ask = AskSpec(
            application=id_,
            key=id_,
            resources=interned.setdefault(amount, amount),
            priority=QOS_PRIORITY[qos],
            where=places[models],
        )
        application = ApplicationSpec(id=id_, queue=_QUEUES[qos], user="trace")
        return Job(created_s * 1000, application, (Task(ask, run_s * 1000),))

    return read


def _gpus(row: Row) -> int:
    """Thousandths of all its devices together."""
    devices, share = row.whole("num_gpu", 0, _LARGEST), row.whole("gpu_milli", 0, _LARGEST)
    if devices and not 1 <= share <= 1000:
        raise row.error("gpu_milli", "must be 1 to 1000, the share of each GPU in thousandths")
    if share and not devices:
        raise row.error("gpu_milli", "must be 0 where num_gpu is 0")
    return devices * share


def _times(row: Row) -> tuple[int, int]:
    """When it came, and how long it runs."""
    created, ended = row.whole("creation_time", 0, _LARGEST), row.whole("deletion_time", 0, _LARGEST)
    started = row.whole("scheduled_time", 0, _LARGEST, created)
    if started < created:
        raise row.error("scheduled_time", f"lies before creation_time {created}")
    if ended < started:
        raise row.error("deletion_time", f"lies before the task began at {started}")
    return created, ended - started
