"""The openb trace as a workload."""

from __future__ import annotations

from fairlead.config import load_text
from fairlead.core.model.resources import Resources
from fairlead.sim.engine import Engine
from fairlead.sim.trace import TraceNode, TraceTask
from fairlead.sim.workloads.openb import openb

NODES = [TraceNode("a", 8000, 1024, 8, "A10"), TraceNode("b", 8000, 1024, 1, "V100"), TraceNode("c", 8000, 1024, 0, "")]


def task(name: str, gpu: int = 0, models: tuple[str, ...] = (), qos: str = "LS") -> TraceTask:
    return TraceTask(name, 1000, 64, gpu, models, qos, 0, 10_000)


def placed(*tasks: TraceTask) -> dict[str, tuple[str, int]]:
    """Where each task ran first, and when (seconds)."""
    workload = openb(NODES, tasks)
    engine = Engine(load_text(workload.queues), workload.nodes, workload.jobs)
    engine.run()
    columns = engine.columns
    return {
        columns.names[columns.run_task[i]]: (columns.nodes.values[columns.run_node[i]], columns.run_start_ms[i] // 1000)
        for i in range(len(columns.run_task))
    }


def test_a_task_runs_only_on_the_models_it_names() -> None:
    """Even when another node has room; without a model any node with room will do."""
    found = placed(task("v0", 600, ("P100", "V100")), task("v1", 600, ("P100", "V100")), task("any", 8000))
    assert found == {"v0": ("b", 0), "v1": ("b", 10), "any": ("a", 0)}


def test_amounts_and_capacities_are_in_the_units_of_a_queue_file() -> None:
    """Thousandths of cores and GPUs, bytes."""
    workload = openb(NODES, [task("x", 500)])
    assert workload.nodes[0].capacity == Resources({"vcore": 8000, "memory": 2**30, "gpu-milli": 8000})
    (job,) = workload.jobs
    assert job.tasks[0].ask.resources == Resources({"vcore": 1000, "memory": 64 * 2**20, "gpu-milli": 500})
    assert (job.application.queue, job.tasks[0].ask.priority, workload.tasks) == ("root.ls", 2000, 1)


def test_the_notes_say_what_is_not_modelled() -> None:
    """And how many tasks name models."""
    notes = openb(NODES, [task("x"), task("y", 100, ("A10",))]).notes
    assert "single devices are not modelled" in notes[0]
    assert notes[1].startswith("1 tasks name GPU models")
