"""Workloads of one's own, as CSV and JSON lines."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from fairlead.config import load_text
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import RetrySpec
from fairlead.sim.rows import TraceError
from fairlead.sim.sources import Source
from fairlead.sim.trials import Trial, run_trial
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


def test_a_gang_waits_as_long_as_it_takes(tmp_path: Path) -> None:
    """Its tasks start together or not at all: after a quarter of an hour they started one by one."""
    path = table(tmp_path, "time,run,resources.vcore,count,gang\n0,1h,1,1,no\n10,10m,1,2,yes\n")
    source = Source(workload=path, nodes="1x cpu=2")
    waits = run_trial(Trial(name="t", source=source))["figures"]["waits"]["started"]
    assert (waits["p50"], waits["max"]) == (3590.0, 3590.0)


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
        ("x,9,1", ":2: column time: 'x': must be a date such as 2026-05-01T08:00:00Z, seconds, or a time such as 90s"),
        ("2026-13-01,9,1", ":2: column time: '2026-13-01': must be a date such as"),
        ("1969-12-31,9,1", ":2: column time: '1969-12-31': is a date before 1970"),
        ("1,2026-05-01,1", ":2: column run: '2026-05-01': must be seconds, or a time such as"),
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
        ("time_limit", "0", "must be more than 0, or empty where there is none"),
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
        ("time,run,resources.vcore,prio", "csv:1: 'prio' is no column of a table; was priority meant?"),
        ("time,run,resources.vcore,prioritty", "was priority meant? Rename it, or take it out"),
        ("time,run,resources.vcore,Time-Limit", "'Time-Limit' is no column of a table; was time_limit meant?"),
        ("time,run,resources.vcore,retry", "was retries meant?"),
        ("time,run,resources.vcore,memory", "'memory' is no column of a table; was resources.memory meant?"),
        ("time,run,resource.vcore,queue", "was resources.vcore meant?"),
        ("time,run,cpu,queue", "was resources.vcore meant?"),
        ("time,run,resources.cpu,queue", "was resources.vcore meant?"),
        ("time,run,resources.", "was resources.NAME meant?"),
        ("time,runs,resources.vcore", "was run meant?"),
        ("", "not there: time, run"),
    ],
)
def test_the_first_line_must_name_the_columns(tmp_path: Path, head: str, says: str) -> None:
    """A typing error in a name would be an option that is ignored."""
    with pytest.raises(TraceError, match=re.escape(says)):
        read_table(table(tmp_path, f"{head}\n1,1,1,1\n"))


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ("{", "is not JSON"),
        ("[1]", "must be an object"),
        ('{"time":1,"run":1}', "must be an object with time, run and resources"),
        ('{"time":1,"run":1,"resources":{"vcore":1},"prio":1}', "column prio: '': is no key of a task; was priority"),
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


@pytest.mark.parametrize(
    ("times", "wanted"),
    [
        # 1 May 2026 is day 20,574 after the beginning of 1970.
        (("2026-05-01T08:00:00Z", "2026-05-01T08:00:01.500Z"), (1_777_622_400_000, 1_777_622_401_500)),
        (("2026-05-01 08:00", "2026-05-01T10:00:00+02:00"), (1_777_622_400_000, 1_777_622_400_000)),
        (("2026-05-01", "2026-05-02"), (1_777_593_600_000, 1_777_680_000_000)),
        (("1e2", "2h"), (100_000, 7_200_000)),
    ],
)
def test_a_time_is_a_date_or_a_number(tmp_path: Path, times: tuple[str, ...], wanted: tuple[int, ...]) -> None:
    """As logs have it; where no zone is named it is UTC, so that the same table is the same everywhere."""
    rows = "".join(f"{time},1,1\n" for time in times)
    assert tuple(j.at_ms for j in read_table(table(tmp_path, f"time,run,resources.vcore\n{rows}")).jobs) == wanted
    lines = "".join(json.dumps({"time": time, "run": 1, "resources": {"vcore": 1}}) + "\n" for time in times)
    assert tuple(j.at_ms for j in read_table(table(tmp_path, lines, "tasks.jsonl")).jobs) == wanted


@pytest.mark.parametrize(
    ("times", "kind"), [(("2026-05-01", "60"), "dates"), (("60", "2026-05-01"), "numbers"), (("2h", "2026-05-01"), "n")]
)
def test_dates_and_numbers_do_not_mix(tmp_path: Path, times: tuple[str, str], kind: str) -> None:
    """They have no origin in common: work would come in another order than it did."""
    rows = "".join(f"{time},1,1\n" for time in times)
    with pytest.raises(TraceError, match=f":3: column time: '{times[1]}': the rows before have {kind}"):
        read_table(table(tmp_path, f"time,run,resources.vcore\n{rows}"))


def test_columns_of_ones_own_are_passed_over_and_said(tmp_path: Path) -> None:
    """A log has many; which are not read is said once, and what the rows say in them is nothing."""
    path = table(tmp_path, "id,time,run,resources.vcore,cpu_hours,users,user\n7,1,1,1,x,y,ann\n8,2,1,1,x,y,ann\n")
    workload = read_table(path)
    assert workload.notes == ["columns that mean nothing here were passed over: 'id', 'cpu_hours', 'users'"]
    assert [j.application.user for j in workload.jobs] == ["ann", "ann"]
    row = {"time": 1, "run": 1, "resources": {"vcore": 1}, "id": 7}
    path = table(tmp_path, (json.dumps(row) + "\n") * 2, "tasks.jsonl")
    assert read_table(path).notes == ["columns that mean nothing here were passed over: 'id'"]
    many = ",".join(f"x{i}" for i in range(12))
    path = table(tmp_path, f"time,run,resources.vcore,{many}\n1,1,1,{many}\n")
    assert read_table(path).notes[0].endswith("'x9' and 2 more")


def test_names_of_columns_that_cannot_be_read_are_said(tmp_path: Path) -> None:
    """A quote that is not closed; and one that stands there twice."""
    with pytest.raises(TraceError, match=r"tasks\.csv:1: the names of the columns cannot be read"):
        read_table(table(tmp_path, 'time,run,"resources.vcore\n' + "0,10,1\n" * 20_000))
    with pytest.raises(TraceError, match=r"tasks\.csv:1: names 'resources.vcore' twice"):
        read_table(table(tmp_path, "time,run,resources.vcore,note,note,resources.vcore\n0,10,1,,,3\n"))


def test_a_line_that_no_reader_takes_is_one_bad_row(tmp_path: Path) -> None:
    """Numbers of thousands of digits, and lists in lists."""
    good = '{"time": 1, "run": 1, "resources": {"vcore": 1}}\n'
    bad: list[TraceError] = []
    text = good + good.replace("1,", "1" * 5_000 + ",", 1) + "[" * 100_000 + "\n" + good
    assert len(list(read_table(table(tmp_path, text, "tasks.jsonl"), bad=bad).jobs)) == 2
    assert [(each.line, each.hint[:11]) for each in bad] == [(2, "is not JSON"), (3, "is not JSON")]


@pytest.mark.parametrize("text", ["100000000000d", "1e13", "1e300"])
def test_times_that_cannot_be_added_to_a_moment_are_refused(tmp_path: Path, text: str) -> None:
    """They ended the simulation in a traceback."""
    with pytest.raises(TraceError, match="must be less than 30,000 years"):
        read_table(table(tmp_path, f"time,run,resources.vcore\n0,{text},1\n"))


def test_work_of_a_queue_that_has_others_below_it_is_not_refused(tmp_path: Path) -> None:
    """It goes to a leaf of its own there."""
    file = tmp_path / "jobs.csv"
    file.write_text("time,run,resources.vcore,queue\n0,1,1,a\n0,1,1,a.b\n0,1,1,c\n")
    outcome = run_trial(Trial(name="one", source=Source(workload=str(file), nodes="1x cpu=4")))
    assert outcome["refused"] == {}
    assert sorted(outcome["figures"]["waits_by"]["queue"]) == ["root.a.b", "root.a.default", "root.c"]


def test_rows_of_one_job_that_name_different_queues_are_said(tmp_path: Path) -> None:
    """The first counts; a gang is a job of its own."""
    file = tmp_path / "jobs.csv"
    head = "time,run,resources.vcore,job,queue,user,gang\n"
    file.write_text(f"{head}5,1,1,j,b,ann,\n0,1,1,j,a,ann,\n6,1,1,j,a,ann,\n7,1,1,j,c,ann,yes\n8,1,1,j,a,bob,\n")
    assert read_table(str(file)).notes == [
        "rows of another queue or user than the first row of their job: 2, such as one of j; a job has "
        "those of its first row until it has ended"
    ]
    file.write_text(f"{head}5,1,1,j,a,ann,\n0,1,1,j,a,ann,\n6,1,1,,b,ann,\n")
    assert read_table(str(file)).notes == []


@pytest.mark.parametrize("part", ['"job": "a\\ud800"', '"user": "\\udfff"', '"queue": "\\ud800"'])
def test_half_of_a_letter_is_no_json(tmp_path: Path, part: str) -> None:
    """It was taken, and what was to be printed or written of it broke off."""
    row = '{"time": 0, "run": 1, "resources": {"vcore": 1}, %s}\n'
    path = table(tmp_path, row % '"user": "\\u00fc"' + row % part, "tasks.jsonl")
    with pytest.raises(TraceError, match=r"tasks\.jsonl:2: is not JSON: .*surrogates not allowed"):
        read_table(path)
