"""The openb trace as a workload.

Decides what its rows mean to the scheduler. Never reads the files (`sim.trace` does). Each task is an application with
one ask in the queue `root.<class of service>`, its priority by class (`trace.QOS_PRIORITY`). The GPUs of a node are one
pool (`gpu-milli`), not single devices. A task that names GPU models runs on nodes whose attribute `gpu-model` is one of
them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from fairlead.core.model.constraints import ANYWHERE, IN, Constraints, Requirement
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import ApplicationSpec, AskSpec, NodeSpec
from fairlead.sim.jobs import Job, Task, Workload
from fairlead.sim.trace import QOS_PRIORITY, TraceNode, TraceTask
from fairlead.sim.workloads.leaves import queue_file

GPU = "gpu-milli"
MODEL = "gpu-model"
"""The attribute of a node that says which GPUs it has."""
_MIB = 2**20
_QUEUES = {qos: f"root.{qos.lower()}" for qos in QOS_PRIORITY}


def openb(nodes: Sequence[TraceNode], tasks: Sequence[TraceTask]) -> Workload:
    """Nodes and tasks, in order of creation, as a workload."""
    named = sum(bool(t.models) for t in tasks)
    notes = [f"GPU shares count as one pool per node ({GPU}, thousandths); single devices are not modelled."]
    if named:
        notes.append(f"{named:,} tasks name GPU models; they ran on nodes that have one of these.")
    return Workload(
        name="openb",
        jobs=_jobs(tasks),
        nodes=tuple(_node(node) for node in nodes),
        tasks=len(tasks),
        notes=notes,
        queues=queue_file(_QUEUES.values(), preemption=False),
    )


def _node(node: TraceNode) -> NodeSpec:
    attributes = {MODEL: node.model} if node.model and node.gpus else {}
    return NodeSpec(id=node.id, capacity=node_capacity(node), attributes=attributes)


def _jobs(tasks: Iterable[TraceTask]) -> Iterator[Job]:
    interned: dict[Resources, Resources] = {}
    places: dict[tuple[str, ...], Constraints] = {(): ANYWHERE}
    for task in tasks:
        amount = task_amount(task)
        amount = interned.setdefault(amount, amount)
        where = places.get(task.models)
        if where is None:
            where = places[task.models] = Constraints(selector=(Requirement(MODEL, IN, task.models),))
        ask = AskSpec(
            application=task.name, key=task.name, resources=amount, priority=QOS_PRIORITY[task.qos], where=where
        )
        application = ApplicationSpec(id=task.name, queue=_QUEUES[task.qos], user="trace")
        yield Job(task.created_ms, application, (Task(ask, task.run_ms),))


def node_capacity(node: TraceNode) -> Resources:
    """What a machine of the trace offers: `vcore` in thousandths, `memory` in bytes, `gpu-milli`."""
    return Resources({"vcore": node.cpu_milli, "memory": node.memory_mib * _MIB, GPU: node.gpus * 1000})


def task_amount(task: TraceTask) -> Resources:
    """What a task asks for."""
    return Resources({"vcore": task.cpu_milli, "memory": task.memory_mib * _MIB, GPU: task.gpu_milli})
