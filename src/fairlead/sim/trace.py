"""The openb trace: nodes and tasks of a real GPU cluster, from two CSV files.

Decides what the columns mean and refuses every row that makes no sense, with file, line, column and value. Never
schedules. Invariant: a task that is returned can be submitted as it is.

Columns (times in seconds): nodes `sn, cpu_milli, memory_mib, gpu, model`; tasks `name, cpu_milli, memory_mib, num_gpu,
gpu_milli, gpu_spec, qos, pod_phase, creation_time, deletion_time, scheduled_time`. A task runs from `scheduled_time` to
`deletion_time`; where the recorded cluster never started it (`scheduled_time` is empty) the time from `creation_time`
to `deletion_time` is taken instead. `gpu_milli` is the share of each of its `num_gpu` devices in thousandths.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from fairlead.core.model.resources import INT64_MAX

QOS_PRIORITY = {"Guaranteed": 3000, "LS": 2000, "Burstable": 1000, "BE": 0}
"""The priority that a task gets from its class of service: guaranteed, latency sensitive, burstable, best effort."""

NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
TASK_COLUMNS = (
    "name",
    "cpu_milli",
    "memory_mib",
    "num_gpu",
    "gpu_milli",
    "gpu_spec",
    "qos",
    "pod_phase",
    "creation_time",
    "deletion_time",
    "scheduled_time",
)
_LARGEST = INT64_MAX // 2**30
T = TypeVar("T")


class TraceError(ValueError):
    """A row (or a whole file) that cannot be used."""

    def __init__(self, file: str, line: int, column: str, value: str, hint: str) -> None:
        at = f"{file}:{line}" + (f": column {column}: {value!r}" if column else "")
        super().__init__(f"{at}: {hint}")
        self.file, self.line, self.column, self.value, self.hint = file, line, column, value, hint


@dataclass(frozen=True, slots=True)
class TraceNode:
    """A machine: CPU in thousandths, memory in MiB, whole GPUs and their model (empty: none)."""

    id: str
    cpu_milli: int
    memory_mib: int
    gpus: int
    model: str


@dataclass(frozen=True, slots=True)
class TraceTask:
    """A task: what it asks for, when it comes and how long it runs (milliseconds)."""

    name: str
    cpu_milli: int
    memory_mib: int
    gpu_milli: int
    """Of all its devices together."""
    models: tuple[str, ...]
    """GPU models that it may run on, sorted; empty: any."""
    qos: str
    created_ms: int
    run_ms: int


class Row:
    """One line of a CSV file, read by column name."""

    def __init__(self, file: str, line: int, cells: dict[str, str]) -> None:
        self.file, self.line, self.cells = file, line, cells

    def error(self, column: str, hint: str) -> TraceError:
        """An error at this column."""
        return TraceError(self.file, self.line, column, self.cells.get(column, ""), hint)

    def text(self, column: str) -> str:
        """A text that is not empty."""
        if not self.cells[column]:
            raise self.error(column, "must not be empty")
        return self.cells[column]

    def number(self, column: str) -> int:
        """A whole number, not negative and small enough to be counted in bytes."""
        text = self.cells[column]
        if not (text.isascii() and text.isdigit() and len(text) < 20):
            raise self.error(column, "must be a whole number, 0 or more")
        if int(text) > _LARGEST:
            raise self.error(column, f"the largest is {_LARGEST}")
        return int(text)


def read_nodes(path: str, bad: list[TraceError] | None = None) -> list[TraceNode]:
    """The machines of a file. A bad row raises `TraceError`, or is added to `bad` and left out when that is given."""
    return _read(path, NODE_COLUMNS, _node, lambda n: n.id, bad)


def read_tasks(path: str, bad: list[TraceError] | None = None) -> list[TraceTask]:
    """The tasks of a file by time of creation, then line. Bad rows as in `read_nodes`."""
    tasks = _read(path, TASK_COLUMNS, _task, lambda t: t.name, bad)
    tasks.sort(key=lambda t: t.created_ms)
    return tasks


def _read(
    path: str,
    columns: tuple[str, ...],
    build: Callable[[Row], T],
    name: Callable[[T], str],
    bad: list[TraceError] | None,
) -> list[T]:
    found: list[T] = []
    first_line: dict[str, int] = {}
    for row in _rows(path, columns, bad):
        try:
            item = build(row)
            if name(item) in first_line:
                raise row.error(columns[0], f"is in line {first_line[name(item)]} already")
        except TraceError as e:
            if bad is None:
                raise
            bad.append(e)
            continue
        first_line[name(item)] = row.line
        found.append(item)
    return found


def _rows(path: str, columns: tuple[str, ...], bad: list[TraceError] | None) -> Iterator[Row]:
    with Path(path).open(newline="", encoding="utf-8-sig", errors="replace") as f:
        reader = csv.reader(f)
        header = next(reader, None)
        if header is None:
            raise TraceError(path, 1, "", "", f"is empty; the first line must name the columns {', '.join(columns)}")
        missing = [c for c in columns if c not in header]
        if missing:
            raise TraceError(path, 1, "", "", f"the first line does not name: {', '.join(missing)}")
        while True:
            try:
                cells = next(reader, None)
                if cells is None:
                    return
                if not cells:
                    continue
                if len(cells) != len(header):
                    hint = f"has {len(cells)} columns, the first line names {len(header)}"
                    raise TraceError(path, reader.line_num, "", "", hint)
            except (TraceError, csv.Error) as e:
                problem = e if isinstance(e, TraceError) else TraceError(path, reader.line_num, "", "", str(e))
                if bad is None:
                    raise problem from None
                bad.append(problem)
                continue
            yield Row(path, reader.line_num, {h: c.strip() for h, c in zip(header, cells, strict=True)})


def _node(row: Row) -> TraceNode:
    node = TraceNode(
        id=row.text("sn"),
        cpu_milli=row.number("cpu_milli"),
        memory_mib=row.number("memory_mib"),
        gpus=row.number("gpu"),
        model=row.cells["model"],
    )
    if node.gpus and not node.model:
        raise row.error("model", f"must name the model of its {node.gpus} GPUs")
    return node


def _task(row: Row) -> TraceTask:
    qos = row.text("qos")
    if qos not in QOS_PRIORITY:
        raise row.error("qos", f"must be one of {', '.join(QOS_PRIORITY)}")
    devices, share = row.number("num_gpu"), row.number("gpu_milli")
    if devices and not 1 <= share <= 1000:
        raise row.error("gpu_milli", "must be 1 to 1000, the share of each GPU in thousandths")
    if share and not devices:
        raise row.error("gpu_milli", "must be 0 where num_gpu is 0")
    created, ended = row.number("creation_time"), row.number("deletion_time")
    started = row.number("scheduled_time") if row.cells["scheduled_time"] else created
    if started < created:
        raise row.error("scheduled_time", f"lies before creation_time {created}")
    if ended < started:
        raise row.error("deletion_time", f"lies before the task began at {started}")
    return TraceTask(
        name=row.text("name"),
        cpu_milli=row.number("cpu_milli"),
        memory_mib=row.number("memory_mib"),
        gpu_milli=devices * share,
        models=tuple(sorted(m for m in row.cells["gpu_spec"].split("|") if m)),
        qos=qos,
        created_ms=created * 1000,
        run_ms=(ended - started) * 1000,
    )
