"""Workloads of one's own: CSV or JSON lines, a task (or several equal ones) a row.

Decides what the columns mean and refuses every row that makes no sense, with file, line, column and value. Never
schedules. Invariant: rows may stand in any order; jobs are handed out in order of time.

Columns: `time` (when it is submitted: seconds from any origin, or a date as ISO 8601 writes it; one of the two in all
rows) and `run` (how long it runs: seconds, or a time such as `90s`, `2h`) must be there, and at least one
`resources.NAME` with a quantity (`resources.vcore`, `resources.memory`, ...). Further: `job` (the application; rows of
one job are its tasks), `user`, `queue`, `priority`, `count` (equal tasks in this row, 1 if not given), `gang` (`yes`:
the tasks of this row start together), `time_limit` (as `run`), `retries`, `idle` (`yes`). In JSON lines the same names
are keys, and `resources` is an object. What becomes of other names says `headings`.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from fairlead.core.model.quantities import QuantityError, parse_quantity
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import PRIORITY_MAX, PRIORITY_MIN, ApplicationSpec, AskSpec, NodeSpec, RetrySpec
from fairlead.sim.jobs import Job, Task, Workload
from fairlead.sim.trace import TraceError
from fairlead.sim.workloads.headings import RESOURCES, PassedOver, is_known, meant
from fairlead.sim.workloads.leaves import queue_file, queue_path
from fairlead.sim.workloads.recipes import duration_ms

_TRUTH = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False, "": False}
COUNT_MAX = 100_000


def read_table(path: str, nodes: tuple[NodeSpec, ...] = (), bad: list[TraceError] | None = None) -> Workload:
    """The workload in a `.csv` or `.jsonl` file. A bad row raises `TraceError`, or is added to `bad` and left out."""
    jobs = []
    other, clock = PassedOver(), _Clock()
    rows = _json_rows(path, other) if path.endswith((".jsonl", ".ndjson", ".json")) else _csv_rows(path, other)
    for line, cells in rows:
        try:
            if isinstance(cells, TraceError):
                raise cells
            jobs.append(_Row(path, line, cells, clock).job())
        except TraceError as e:
            if bad is None:
                raise
            bad.append(e)
    if not jobs:
        raise TraceError(path, 1, "", "", "holds no task")
    jobs.sort(key=lambda job: job.at_ms)
    return Workload(
        name=Path(path).name,
        jobs=_distinct(jobs),
        nodes=nodes,
        tasks=sum(len(job.tasks) for job in jobs),
        notes=[note] if (note := other.note()) else [],
        queues=queue_file(dict.fromkeys(job.application.queue for job in jobs)),
    )


def _distinct(jobs: list[Job]) -> Iterator[Job]:
    """The jobs in order, taken off the list, so that what was simulated can be forgotten."""
    jobs.reverse()
    while jobs:
        yield jobs.pop()


def _csv_rows(path: str, other: PassedOver) -> Iterator[tuple[int, Mapping[str, str] | TraceError]]:
    with Path(path).open(newline="", encoding="utf-8-sig", errors="replace") as file:
        reader = csv.reader(file)
        header = [name.strip() for name in next(reader, [])]
        _check_header(path, header, other)
        try:
            for cells in reader:
                if len(cells) == len(header):
                    yield reader.line_num, dict(zip(header, (c.strip() for c in cells), strict=True))
                elif cells:
                    hint = f"has {len(cells)} columns, the first line names {len(header)}"
                    yield reader.line_num, TraceError(path, reader.line_num, "", "", hint)
        except csv.Error as e:
            raise TraceError(path, reader.line_num, "", "", str(e)) from e


def _check_header(path: str, header: list[str], other: PassedOver) -> None:
    for name in header:
        if not is_known(name):
            if wanted := meant(name, header):
                raise TraceError(path, 1, "", "", f"{name!r} is no column of a table; {_rename(wanted)}")
            other.add(name)
    missing = [name for name in ("time", "run") if name not in header]
    if missing or not any(name.startswith(RESOURCES) for name in header):
        wanted = ", ".join(missing) or "resources.NAME, such as resources.vcore"
        hint = f"the first line must name the columns time, run and resources.NAME; not there: {wanted}"
        raise TraceError(path, 1, "", "", hint)


def _rename(wanted: str) -> str:
    return f"was {wanted} meant? Rename it, or take it out"


def _json_rows(path: str, other: PassedOver) -> Iterator[tuple[int, Mapping[str, str] | TraceError]]:
    with Path(path).open(encoding="utf-8-sig", errors="replace") as file:
        for line, text in enumerate(file, 1):
            if text.strip():
                try:
                    yield line, _flat(path, line, json.loads(text), other)
                except json.JSONDecodeError as e:
                    yield line, TraceError(path, line, "", "", f"is not JSON: {e}")
                except TraceError as e:
                    yield line, e


def _flat(path: str, line: int, row: Any, other: PassedOver) -> dict[str, str]:
    resources = row.get("resources") if isinstance(row, dict) else None
    if not isinstance(resources, dict):
        raise TraceError(path, line, "", "", 'must be an object with time, run and resources: {"vcore": 1}')
    plain = {name: value for name, value in row.items() if name != "resources"}
    plain |= {RESOURCES + name: value for name, value in resources.items()}
    found = {}
    for name, value in plain.items():
        if not is_known(name):
            if wanted := meant(name, plain):
                raise TraceError(path, line, name, "", f"is no key of a task; {_rename(wanted)}")
            other.add(name)
            continue
        if isinstance(value, dict | list):
            raise TraceError(path, line, name, json.dumps(value), "must be a text or a number")
        found[name] = "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    return found


class _Clock:
    """How a table writes its times: the first row says it for all."""

    def __init__(self) -> None:
        self.kind = ""

    def takes(self, kind: str) -> bool:
        """Whether times of this kind (`dates`, `numbers`) are those of this table."""
        self.kind = self.kind or kind
        return kind == self.kind


_BEGIN = datetime(1970, 1, 1, tzinfo=UTC)


def _date_ms(text: str) -> int | None:
    """A date of ISO 8601 in Unix milliseconds, UTC where it names no zone; None if it is none, or a plain number."""
    if "-" not in text[1:]:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return ((at if at.tzinfo else at.replace(tzinfo=UTC)) - _BEGIN) // timedelta(milliseconds=1)


class _Row:
    """One row, read by column name."""

    def __init__(self, path: str, line: int, cells: Mapping[str, str], clock: _Clock) -> None:
        self.path, self.line, self.cells, self.clock = path, line, cells, clock

    def error(self, column: str, hint: str) -> TraceError:
        """An error at this column."""
        return TraceError(self.path, self.line, column, self.cells.get(column, ""), hint)

    def job(self) -> Job:
        """The job of this row."""
        at_ms, run_ms = self._moment("time"), self._time("run")
        count = self._whole("count", 1, COUNT_MAX) if self.cells.get("count") else 1
        retries = self._whole("retries", 0, 1000) if self.cells.get("retries") else 0
        gang, idle = self._truth("gang"), self._truth("idle")
        id_ = self.cells.get("job") or f"line-{self.line}"
        amount = self._amount()
        priority = self._whole("priority", PRIORITY_MIN, PRIORITY_MAX) if self.cells.get("priority") else 0
        limit_ms = self._time("time_limit") if self.cells.get("time_limit") else None
        first = f"{id_}-{self.line}" if self.cells.get("job") else id_
        if gang:
            # A gang is an application of its own: its size is said when it is submitted.
            id_ = first
        ask = AskSpec(
            application=id_,
            key=first,
            resources=amount,
            priority=priority,
            time_limit_ms=limit_ms,
            retry=RetrySpec(limit=retries) if retries else None,
            idle=idle,
        )
        asks = [ask] if count == 1 else [replace(ask, key=f"{first}-{i}") for i in range(count)]
        tasks = tuple(Task(ask, run_ms) for ask in asks)
        application = ApplicationSpec(
            id=id_, queue=queue_path(self.cells.get("queue", "")), user=self.cells.get("user") or "nobody"
        )
        return Job(at_ms, application, tasks, gang and count > 1)

    def _amount(self) -> Resources:
        found = {}
        for column, text in self.cells.items():
            if column.startswith(RESOURCES) and text:
                name = column.removeprefix(RESOURCES)
                try:
                    found[name] = parse_quantity(name, text)
                except QuantityError as e:
                    raise self.error(column, e.hint) from None
        amount = Resources(found)
        if not amount:
            raise TraceError(self.path, self.line, "", "", "asks for no resources: a resources.NAME must be above 0")
        return amount

    def _moment(self, column: str) -> int:
        """When it is: a date, or seconds from any origin."""
        text = self.cells.get(column, "")
        date_ms = _date_ms(text)
        kind = "numbers" if date_ms is None else "dates"
        at_ms = self._time(column, "a date such as 2026-05-01T08:00:00Z, ") if date_ms is None else date_ms
        if at_ms < 0:
            raise self.error(column, "is a date before 1970")
        if not self.clock.takes(kind):
            raise self.error(column, f"the rows before have {self.clock.kind} here: write all times in one way")
        return at_ms

    def _time(self, column: str, further: str = "") -> int:
        text = self.cells.get(column, "")
        try:
            seconds = float(text)
        except ValueError:
            ms = duration_ms(text) if text else None
            if ms is None:
                raise self.error(column, f"must be {further}seconds, or a time such as 90s, 10m or 2h") from None
            return ms
        if not (0 <= seconds < 1e12 and math.isfinite(seconds)):
            raise self.error(column, "must be 0 or more seconds")
        return round(seconds * 1000)

    def _whole(self, column: str, least: int, most: int) -> int:
        try:
            value = int(self.cells[column])
        except ValueError:
            raise self.error(column, "must be a whole number") from None
        if not least <= value <= most:
            raise self.error(column, f"must be {least} to {most}")
        return value

    def _truth(self, column: str) -> bool:
        value = _TRUTH.get(self.cells.get(column, "").lower())
        if value is None:
            raise self.error(column, "must be yes or no")
        return value
