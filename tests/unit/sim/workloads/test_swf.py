"""The Standard Workload Format, good lines and bad ones."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from fairlead.config import load_text
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import NodeSpec
from fairlead.sim.rows import TraceError
from fairlead.sim.workloads.swf import header_nodes, read_log, swf

HEADER = "; Version: 2.2\n; Computer: Small Machine\n; MaxNodes: 4\n; MaxProcs: 10\n; Note: a log\n"


def line(number: int, submit: int = 0, run: int = 60, procs: int = 2, limit: int = -1, **more: int) -> str:
    """One job; what is not said is -1."""
    fields = [number, submit, -1, run, more.get("got", procs), -1, -1, procs, limit, more.get("memory_kb", -1), 1]
    return " ".join(
        map(str, [*fields, more.get("user", 7), -1, -1, more.get("queue", -1), -1, more.get("after", -1), -1])
    )


def log(tmp_path: Path, *lines: str, header: str = HEADER) -> str:
    file = tmp_path / "log.swf"
    file.write_text(header + "\n".join(lines) + "\n")
    return str(file)


def test_the_header_says_which_nodes_there_are(tmp_path: Path) -> None:
    """Ten processors on four nodes."""
    nodes = header_nodes(read_log(log(tmp_path, line(1))))
    assert [n.capacity["vcore"] for n in nodes] == [3000, 3000, 2000, 2000]


def test_a_job_is_an_ask_with_its_limit_and_its_run_time(tmp_path: Path) -> None:
    """In thousandths of cores and milliseconds."""
    workload = swf(read_log(log(tmp_path, line(5, submit=30, run=60, limit=100, queue=2))))
    (job,) = workload.jobs
    assert (job.at_ms, job.gang, job.application.user, job.application.queue) == (
        30_000,
        False,
        "user-7",
        "root.queue-2",
    )
    (task,) = job.tasks
    assert (task.run_ms, task.ask.time_limit_ms, task.ask.resources) == (60_000, 100_000, Resources({"vcore": 2000}))
    assert load_text(workload.queues).partitions[0].root.queues[0].name == "queue-2"


def test_a_job_that_overran_its_limit_ran_as_long_as_it_ran(tmp_path: Path) -> None:
    """The recorded machine let it."""
    (job,) = swf(read_log(log(tmp_path, line(1, run=90, limit=60)))).jobs
    assert job.tasks[0].ask.time_limit_ms == job.tasks[0].run_ms == 90_000


def test_a_job_wider_than_a_node_is_a_gang(tmp_path: Path) -> None:
    """Eight processors on nodes of three."""
    workload = swf(read_log(log(tmp_path, line(1, procs=8))))
    (job,) = workload.jobs
    assert job.gang
    assert [t.ask.resources["vcore"] for t in job.tasks] == [3000, 3000, 2000]
    assert workload.tasks == 3


def test_memory_counts_only_where_nodes_have_some(tmp_path: Path) -> None:
    """The log gives kilobytes for each processor."""
    path = log(tmp_path, line(1, memory_kb=1024))
    assert next(iter(swf(read_log(path)).jobs)).tasks[0].ask.resources["memory"] == 0
    nodes = [NodeSpec(id="n", capacity=Resources({"vcore": 8000, "memory": 2**30}))]
    assert next(iter(swf(read_log(path), nodes).jobs)).tasks[0].ask.resources["memory"] == 2 * 2**20


def test_jobs_come_in_order_of_submission(tmp_path: Path) -> None:
    """Whatever the order of the lines; numbers that occur twice are told apart."""
    workload = swf(read_log(log(tmp_path, line(1, 50), line(2, 10), line(2, 60))))
    assert [(j.at_ms, j.application.id) for j in workload.jobs] == [
        (10_000, "job-2"),
        (50_000, "job-1"),
        (60_000, "job-2-line-3"),
    ]


def test_lines_that_are_no_jobs_are_counted_and_said(tmp_path: Path) -> None:
    """With file, line, field and value; the others are there."""
    bad = [
        line(1),
        "1 2 3",
        line(2).replace(" 60 ", " sixty ", 1),
        line(3, submit=-5),
        line(4, run=-1),
        line(5, after=1),
    ]
    found = read_log(log(tmp_path, *bad))
    assert len(found) == 2
    assert [str(e).split(": ", 1)[1] for e in found.bad] == [
        "has 3 fields, the format has 18",
        "column run time: 'sixty': must be a number, -1 where it is not known",
        "column submit time: '-5': must be 0 or more",
    ]
    assert "log.swf:7" in str(found.bad[0])
    notes = swf(found).notes
    assert "(and 2 more bad lines, left out)" in notes[0]
    assert "1 job of the log never ran" in notes[1]
    assert "jobs that follow another one, taken to come when they came in the log: 1" in notes[2]


def test_a_file_without_jobs_is_refused(tmp_path: Path) -> None:
    """And its first bad line is named."""
    with pytest.raises(TraceError, match=r"holds no job .* the first bad line: .*log\.swf:6: has 2 fields"):
        read_log(log(tmp_path, "a b"))
    other = tmp_path / "sacct.txt"
    other.write_text("JobID|Submit\n")
    with pytest.raises(TraceError, match=r"has 1 fields, .*; `fairlead sim import` makes a table of other forms$"):
        read_log(str(other))


def test_a_log_without_a_machine_needs_nodes(tmp_path: Path) -> None:
    """The error says how to give them."""
    with pytest.raises(TraceError, match=r"MaxProcs.*--nodes"):
        swf(read_log(log(tmp_path, line(1), header="")))


@pytest.mark.parametrize(
    "header",
    [
        f"; MaxProcs: {'1' * 75}",
        f"; MaxProcs: {'1' * 5000}",
        "; MaxNodes: 200001\n; MaxProcs: 200001",
        "; MaxProcs: 3000000",
    ],
)
def test_a_machine_that_no_memory_holds_is_refused(tmp_path: Path, header: str) -> None:
    """Found by fuzzing: a number with many digits took for ever."""
    with pytest.raises(TraceError, match=r"more than 100,000,000 processors or 200,000 nodes in its header: .*--nodes"):
        swf(read_log(log(tmp_path, line(1), header=f"{header}\n")))


def test_a_job_in_more_pieces_than_any_machine_has_nodes_is_refused(tmp_path: Path) -> None:
    """Its tasks are made one by one."""
    with pytest.raises(TraceError, match=r"job 5 asks for 9,000,000,000 processors, which no 200,000 of these nodes"):
        swf(read_log(log(tmp_path, line(1), line(5, procs=9_000_000_000))))


def test_a_packed_log_is_read_too(tmp_path: Path) -> None:
    """As archives have them."""
    file = tmp_path / "log.swf.gz"
    file.write_bytes(gzip.compress((HEADER + line(1) + "\n").encode()))
    assert len(read_log(str(file))) == 1
