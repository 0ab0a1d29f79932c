"""The openb trace as a workload, and what is said of rows that are wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairlead.config import load_text
from fairlead.core.model.constraints import ANYWHERE
from fairlead.core.model.resources import Resources
from fairlead.sim.engine import Engine
from fairlead.sim.jobs import Job, Workload
from fairlead.sim.rows import TraceError
from fairlead.sim.workloads.openb import openb

NODES = "sn,cpu_milli,memory_mib,gpu,model"
TASKS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time"
MACHINES = ("a,8000,1024,8,A10", "b,8000,1024,1,V100", "c,8000,1024,0,")
GOOD = "t,1000,2048,1,500,V100|A10,LS,Running,10,40,20"


def write(path: Path, *lines: str) -> str:
    """A file of these lines."""
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def read(folder: Path, *tasks: str, nodes: tuple[str, ...] = MACHINES, bad: list[TraceError] | None = None) -> Workload:
    return openb(write(folder / "n.csv", NODES, *nodes), write(folder / "t.csv", TASKS, *tasks), bad)


def jobs(folder: Path, *tasks: str) -> list[Job]:
    return list(read(folder, *tasks).jobs)


def task(name: str, devices: int = 0, share: int = 0, models: str = "") -> str:
    """One that runs for ten seconds from the beginning on."""
    return f"{name},1000,64,{devices},{share},{models},LS,Running,0,10,0"


def placed(folder: Path, *tasks: str) -> dict[str, tuple[str, int]]:
    """Where each task ran first, and when (seconds)."""
    workload = read(folder, *tasks)
    engine = Engine(load_text(workload.queues), workload.nodes, workload.jobs)
    engine.run()
    columns = engine.columns
    return {
        columns.names[columns.run_task[i]]: (columns.nodes.values[columns.run_node[i]], columns.run_start_ms[i] // 1000)
        for i in range(len(columns.run_task))
    }


def test_a_task_runs_only_on_the_models_it_names(tmp_path: Path) -> None:
    """Even when another node has room; without a model any node with room will do."""
    v0, v1 = task("v0", 1, 600, "P100|V100"), task("v1", 1, 600, "P100|V100")
    found = placed(tmp_path, v0, v1, task("any", 8, 1000))
    assert found == {"v0": ("b", 0), "v1": ("b", 10), "any": ("a", 0)}


def test_amounts_and_capacities_are_in_the_units_of_a_queue_file(tmp_path: Path) -> None:
    """Thousandths of cores and GPUs, bytes."""
    workload = read(tmp_path, task("x", 1, 500))
    assert workload.nodes[0].capacity == Resources({"vcore": 8000, "memory": 2**30, "gpu-milli": 8000})
    assert [node.attributes for node in workload.nodes] == [{"gpu-model": "A10"}, {"gpu-model": "V100"}, {}]
    (job,) = workload.jobs
    assert job.tasks[0].ask.resources == Resources({"vcore": 1000, "memory": 64 * 2**20, "gpu-milli": 500})
    assert (job.application.queue, job.tasks[0].ask.priority, workload.tasks) == ("root.ls", 2000, 1)
    assert job.tasks[0].ask.where is ANYWHERE


def test_the_notes_say_what_is_not_modelled(tmp_path: Path) -> None:
    """And how many tasks name models."""
    notes = read(tmp_path, task("x"), task("y", 1, 100, "A10")).notes
    assert "single devices are not modelled" in notes[0]
    assert notes[1] == "Tasks that name GPU models, which ran on nodes that have one of these: 1."


def test_a_task_runs_from_its_start_to_its_end(tmp_path: Path) -> None:
    """Times become milliseconds; GPU models are sorted; shares count for all devices."""
    (job,) = jobs(tmp_path, GOOD)
    ask = job.tasks[0].ask
    assert (ask.key, job.at_ms, job.tasks[0].run_ms) == ("t", 10_000, 20_000)
    assert [r.values for r in ask.where.selector] == [("A10", "V100")]
    (eight,) = jobs(tmp_path, GOOD.replace("1,500", "8,1000"))
    assert eight.tasks[0].ask.resources["gpu-milli"] == 8000


def test_a_task_that_never_started_runs_as_long_as_it_was_there(tmp_path: Path) -> None:
    """Without `scheduled_time` the time from creation to deletion is taken."""
    (job,) = jobs(tmp_path, GOOD.removesuffix("20"))
    assert job.tasks[0].run_ms == 30_000


def test_tasks_come_by_creation_then_line(tmp_path: Path) -> None:
    """Ties keep the order of the file."""
    late, second = GOOD.replace("t,", "late,", 1).replace("10,40", "15,40"), GOOD.replace("t,", "second,", 1)
    assert [job.application.id for job in jobs(tmp_path, late, GOOD, second)] == ["t", "second", "late"]


def test_columns_are_found_by_name(tmp_path: Path) -> None:
    """Another order and more columns are fine, and so is a byte order mark."""
    path = tmp_path / "n.csv"
    path.write_bytes(b"\xef\xbb\xbfmodel,sn,gpu,more,memory_mib,cpu_milli\nT4,n1,2,x,8,4000\n")
    (node,) = openb(str(path), write(tmp_path / "t.csv", TASKS)).nodes
    assert (node.id, node.attributes) == ("n1", {"gpu-model": "T4"})
    assert node.capacity == Resources({"vcore": 4000, "memory": 8 * 2**20, "gpu-milli": 2000})


@pytest.mark.parametrize(
    ("row", "place", "hint"),
    [
        (GOOD.replace("1000,2048", "1k,2048"), "2: column cpu_milli: '1k'", "whole number"),
        (GOOD.replace("1000,2048", "-1,2048"), "2: column cpu_milli: '-1'", "must be 0 to"),
        (GOOD.replace("1000,2048", "1000,99999999999999"), "2: column memory_mib", "must be 0 to"),
        (GOOD.replace("LS", "VIP"), "2: column qos: 'VIP'", "one of Guaranteed, LS"),
        (GOOD.replace("1,500", "1,1500"), "2: column gpu_milli: '1500'", "1 to 1000"),
        (GOOD.replace("1,500", "0,500"), "2: column gpu_milli: '500'", "num_gpu is 0"),
        (GOOD.replace("10,40,20", "10,15,20"), "2: column deletion_time: '15'", "before the task began at 20"),
        (GOOD.replace("10,40,20", "10,40,5"), "2: column scheduled_time: '5'", "before creation_time 10"),
        (GOOD.replace("t,", ",", 1), "2: column name: ''", "must not be empty"),
        (GOOD + ",surplus", "2", "has 12 columns, the first line names 11"),
    ],
)
def test_a_bad_row_is_an_error_with_its_place(tmp_path: Path, row: str, place: str, hint: str) -> None:
    """File, line, column, value, and what is wanted."""
    with pytest.raises(TraceError) as e:
        read(tmp_path, row)
    assert str(e.value).startswith(f"{tmp_path / 't.csv'}:{place}")
    assert hint in str(e.value)


def test_bad_rows_can_be_collected_instead(tmp_path: Path) -> None:
    """The good ones are returned, the bad ones listed."""
    bad: list[TraceError] = []
    workload = read(tmp_path, "x", GOOD, GOOD, GOOD.replace("t,", "u,", 1).replace("LS", ""), bad=bad)
    assert [job.application.id for job in workload.jobs] == ["t"]
    assert [(e.line, e.hint) for e in bad] == [
        (2, "has 1 columns, the first line names 11"),
        (4, "is in line 3 already"),
        (5, "must not be empty"),
    ]


def test_a_file_without_the_columns_is_refused_even_when_bad_rows_are_not(tmp_path: Path) -> None:
    """No row of it could be read."""
    tasks = write(tmp_path / "t.csv", TASKS)
    with pytest.raises(TraceError, match="does not name: model"):
        openb(write(tmp_path / "n.csv", NODES.removesuffix(",model"), "a,1,1,0"), tasks, [])
    empty = tmp_path / "empty.csv"
    empty.touch()
    with pytest.raises(TraceError, match="is empty"):
        openb(str(empty), tasks, [])


def test_gpus_need_a_model(tmp_path: Path) -> None:
    """Otherwise no task could be kept on the right ones."""
    with pytest.raises(TraceError, match="model of its 2 GPUs"):
        read(tmp_path, nodes=("n,1,1,2,",))
