"""Reading a trace, and saying what is wrong with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairlead.sim.trace import TraceError, TraceTask, read_nodes, read_tasks

NODES = "sn,cpu_milli,memory_mib,gpu,model"
TASKS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time"
GOOD = "t,1000,2048,1,500,V100|A10,LS,Running,10,40,20"


def write(path: Path, *lines: str) -> str:
    """A file of these lines."""
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def test_a_task_runs_from_its_start_to_its_end(tmp_path: Path) -> None:
    """Times become milliseconds; GPU models are sorted; shares count for all devices."""
    (task,) = read_tasks(write(tmp_path / "t.csv", TASKS, GOOD))
    assert task == TraceTask("t", 1000, 2048, 500, ("A10", "V100"), "LS", 10_000, 20_000)
    (eight,) = read_tasks(write(tmp_path / "e.csv", TASKS, GOOD.replace("1,500", "8,1000")))
    assert eight.gpu_milli == 8000


def test_a_task_that_never_started_runs_as_long_as_it_was_there(tmp_path: Path) -> None:
    """Without `scheduled_time` the time from creation to deletion is taken."""
    (task,) = read_tasks(write(tmp_path / "t.csv", TASKS, GOOD.removesuffix("20")))
    assert task.run_ms == 30_000


def test_tasks_come_by_creation_then_line(tmp_path: Path) -> None:
    """Ties keep the order of the file."""
    late, second = GOOD.replace("t,", "late,", 1).replace("10,40", "15,40"), GOOD.replace("t,", "second,", 1)
    tasks = read_tasks(write(tmp_path / "t.csv", TASKS, late, GOOD, second))
    assert [t.name for t in tasks] == ["t", "second", "late"]


def test_columns_are_found_by_name(tmp_path: Path) -> None:
    """Another order and more columns are fine, and so is a byte order mark."""
    path = tmp_path / "n.csv"
    path.write_bytes(b"\xef\xbb\xbfmodel,sn,gpu,more,memory_mib,cpu_milli\nT4,n1,2,x,8,4000\n")
    (node,) = read_nodes(str(path))
    assert (node.id, node.cpu_milli, node.memory_mib, node.gpus, node.model) == ("n1", 4000, 8, 2, "T4")


@pytest.mark.parametrize(
    ("row", "place", "hint"),
    [
        (GOOD.replace("1000,2048", "1k,2048"), "2: column cpu_milli: '1k'", "whole number"),
        (GOOD.replace("1000,2048", "-1,2048"), "2: column cpu_milli: '-1'", "whole number"),
        (GOOD.replace("1000,2048", "1000,99999999999999"), "2: column memory_mib", "largest"),
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
    path = write(tmp_path / "t.csv", TASKS, row)
    with pytest.raises(TraceError) as e:
        read_tasks(path)
    assert str(e.value).startswith(f"{path}:{place}")
    assert hint in str(e.value)


def test_bad_rows_can_be_collected_instead(tmp_path: Path) -> None:
    """The good ones are returned, the bad ones listed."""
    bad: list[TraceError] = []
    path = write(tmp_path / "t.csv", TASKS, "x", GOOD, GOOD, GOOD.replace("t,", "u,", 1).replace("LS", ""))
    tasks = read_tasks(path, bad)
    assert [t.name for t in tasks] == ["t"]
    assert [(e.line, e.hint) for e in bad] == [
        (2, "has 1 columns, the first line names 11"),
        (4, "is in line 3 already"),
        (5, "must not be empty"),
    ]


def test_a_file_without_the_columns_is_refused_even_when_bad_rows_are_not(tmp_path: Path) -> None:
    """No row of it could be read."""
    with pytest.raises(TraceError, match="does not name: model"):
        read_nodes(write(tmp_path / "n.csv", NODES.removesuffix(",model"), "a,1,1,0"), [])
    empty = tmp_path / "empty.csv"
    empty.touch()
    with pytest.raises(TraceError, match="is empty"):
        read_nodes(str(empty), [])


def test_gpus_need_a_model(tmp_path: Path) -> None:
    """Otherwise no task could be kept on the right ones."""
    with pytest.raises(TraceError, match="model of its 2 GPUs"):
        read_nodes(write(tmp_path / "n.csv", NODES, "n,1,1,2,"))
