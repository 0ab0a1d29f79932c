"""Workloads of one's own, as CSV and JSON lines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fairlead.config import load_text
from fairlead.core.resources import Resources
from fairlead.core.specs import RetrySpec
from fairlead.sim.trace import TraceError
from fairlead.sim.workloads.table import read_table

HEAD = "time,run,resources.vcore,resources.memory,job,user,queue,priority,count,gang,time_limit,retries,idle"


def table(tmp_path: Path, text: str, name: str = "tasks.csv") -> str:
    file = tmp_path / name
    file.write_text(text)
    return str(file)


def test_a_row_is_a_task(tmp_path: Path) -> None:
    """With all columns."""
    path = table(tmp_path, f"{HEAD}\n5,2h,500m,1Gi,sim,ann,root.x.Y,7,1,no,3h,2,yes\n")
    workload = read_table(path)
    (job,) = workload.jobs
    (task,) = job.tasks
    assert (job.at_ms, job.gang, task.run_ms) == (5000, False, 7_200_000)
    assert (job.application.id, job.application.user, job.application.queue) == ("sim", "ann", "root.x.y")
    assert task.ask.resources == Resources({"vcore": 500, "memory": 2**30})
    assert (task.ask.priority, task.ask.time_limit_ms, task.ask.idle) == (7, 10_800_000, True)
    assert task.ask.retry == RetrySpec(limit=2)
    assert load_text(workload.queues).partitions[0].root.queues[0].queues[0].name == "y"


def test_little_is_enough(tmp_path: Path) -> None:
    """Time, run and a resource; the rest is usual."""
    (job,) = read_table(table(tmp_path, "time,run,resources.vcore\n0,90,2\n")).jobs
    assert (job.application.queue, job.application.user, job.tasks[0].ask.key) == ("root.default", "nobody", "line-2")
    assert job.tasks[0].run_ms == 90_000


def test_count_makes_equal_tasks_and_gang_binds_them(tmp_path: Path) -> None:
    """A gang is an application of its own, even within a job."""
    path = table(tmp_path, "time,run,resources.vcore,count,gang,job\n0,9,1,3,no,a\n1,9,1,2,yes,a\n2,9,1,1,,a\n")
    three, two, one = read_table(path).jobs
    assert [t.ask.key for t in three.tasks] == ["a-2-0", "a-2-1", "a-2-2"]
    assert (two.gang, two.application.id, {t.ask.application for t in two.tasks}) == (True, "a-3", {"a-3"})
    assert (one.application.id, one.tasks[0].ask.key) == ("a", "a-4")


def test_rows_may_stand_in_any_order(tmp_path: Path) -> None:
    """Jobs come by time."""
    workload = read_table(table(tmp_path, "time,run,resources.vcore\n9,1,1\n3,1,1\n"))
    assert [j.at_ms for j in workload.jobs] == [3000, 9000]


def test_json_lines_say_the_same(tmp_path: Path) -> None:
    """Numbers and truth values as JSON has them."""
    row = {"time": 1.5, "run": "90s", "resources": {"vcore": 2}, "user": "ann", "gang": True, "count": 2}
    (job,) = read_table(table(tmp_path, json.dumps(row) + "\n\n", "tasks.jsonl")).jobs
    assert (job.at_ms, job.gang, len(job.tasks), job.tasks[0].run_ms) == (1500, True, 2, 90_000)


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ("x,9,1", ":2: column time: 'x': must be seconds, or a time such as 90s"),
        ("-1,9,1", ":2: column time: '-1': must be 0 or more seconds"),
        ("nan,9,1", ":2: column time: 'nan': must be 0 or more seconds"),
        ("1,,1", ":2: column run: '': must be seconds"),
        ("1,9,1.5", ":2: column resources.vcore: '1.5': write digits"),
        ("1,9,0", ":2: asks for no resources"),
        ("1,9", ":2: has 2 columns, the first line names 3"),
    ],
)
def test_a_bad_row_is_refused_or_counted(tmp_path: Path, row: str, says: str) -> None:
    """With file, line, column and value."""
    path = table(tmp_path, f"time,run,resources.vcore\n{row}\n3,1,1\n")
    with pytest.raises(TraceError, match=r"tasks\.csv") as e:
        read_table(path)
    assert says in str(e.value)
    bad: list[TraceError] = []
    assert read_table(path, (), bad).tasks == 1
    assert len(bad) == 1


@pytest.mark.parametrize(
    ("column", "value", "says"),
    [
        ("count", "0", "must be 1 to 100000"),
        ("priority", "high", "must be a whole number"),
        ("gang", "perhaps", "must be yes or no"),
        ("time_limit", "soon", "must be seconds"),
        ("retries", "-1", "must be 0 to 1000"),
    ],
)
def test_every_column_is_checked(tmp_path: Path, column: str, value: str, says: str) -> None:
    """Nothing is guessed."""
    with pytest.raises(TraceError, match=f"column {column}: '{value}': {says}"):
        read_table(table(tmp_path, f"time,run,resources.vcore,{column}\n1,1,1,{value}\n"))


@pytest.mark.parametrize(
    ("head", "says"),
    [
        ("time,resources.vcore", "not there: run"),
        ("time,run", "not there: resources.NAME"),
        (
            "time,run,resources.vcore,prio",
            "csv:1: 'prio' is no column of a table; take it out, or rename it to one of time",
        ),
        ("", "not there: time, run"),
    ],
)
def test_the_first_line_must_name_the_columns(tmp_path: Path, head: str, says: str) -> None:
    """A typing error in a name would be an option that is ignored."""
    with pytest.raises(TraceError, match=says):
        read_table(table(tmp_path, f"{head}\n1,1,1,1\n"))


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ("{", "is not JSON"),
        ("[1]", "must be an object"),
        ('{"time":1,"run":1}', "must be an object with time, run and resources"),
        ('{"time":1,"run":1,"resources":{"vcore":1},"prio":1}', "column prio: '': is no key"),
        ('{"time":1,"run":[1],"resources":{"vcore":1}}', "must be a text or a number"),
    ],
)
def test_a_bad_line_of_json_is_refused(tmp_path: Path, row: str, says: str) -> None:
    """With its place."""
    with pytest.raises(TraceError, match=r"tasks\.jsonl:1") as e:
        read_table(table(tmp_path, row + "\n", "tasks.jsonl"))
    assert says in str(e.value)


def test_a_table_without_rows_is_refused(tmp_path: Path) -> None:
    """There would be nothing to simulate."""
    with pytest.raises(TraceError, match="holds no task"):
        read_table(table(tmp_path, "time,run,resources.vcore\n"))
