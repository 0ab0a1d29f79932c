"""Workloads of one's own: CSV or JSON lines, a task (or several equal ones) a row.

Decides what the columns mean and refuses every row that makes no sense, with file, line, column and value. Never
schedules. Invariant: rows may stand in any order; jobs are handed out in order of time.

Columns: `time` (when it is submitted: seconds from any origin, or a date as ISO 8601 writes it; one of the two in all
rows) and `run` (how long it runs: seconds, or a time such as `90s`, `2h`) must be there, and at least one
`resources.NAME` with a quantity (`resources.vcore`, `resources.memory`, ...). Further: `job` (the application; rows of
one job are its tasks), `user`, `queue`, `priority`, `count` (equal tasks in this row, 1 if not given), `gang` (`yes`:
the tasks of this row start together), `time_limit` (as `run`), `retries`, `idle` (`yes`). In JSON lines the same names
are keys, and `resources` is an object. A name that nearly is one of these was
meant as it: that is an error, or an option would be lost over a typing error. Every other one is passed over and said.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import PRIORITY_MAX, PRIORITY_MIN, ApplicationSpec, AskSpec, NodeSpec, RetrySpec
from fairlead.sim.jobs import PATIENCE_MS, Job, Task, Workload, queue_file, queue_path
from fairlead.sim.rows import Row, TraceError, csv_rows, heading, made_of

RESOURCES = "resources."
COLUMNS = ("time", "run", "job", "user", "queue", "priority", "count", "gang", "time_limit", "retries", "idle")
_AMOUNTS = {"cpu": "vcore", "cpus": "vcore", "vcores": "vcore"} | {
    name: name for name in ("vcore", "memory", "gpu", "pods", "nvidia.com/gpu", "ephemeral-storage")
}
"""Resources that a column is often called by alone, and what they are called here."""
_OTHERWISE = {"retry": "retries", "walltime": "time_limit"}
"""Other words for a column, that no rule of likeness finds."""
_LEAST = 4
"""Letters that the beginning of a name must have to be told for it: `prio`, not `id`."""
_ALIKE = 0.8


def is_known(name: str) -> bool:
    """Whether a column of this name is read."""
    amount = name.removeprefix(RESOURCES)
    return name in COLUMNS or (name != amount != "" and _AMOUNTS.get(amount, amount) == amount)


def meant(name: str, present: Collection[str]) -> str | None:
    """The known name that an unknown one was meant as; None if it is a column of one's own.

    What the table has beside it was not meant: with `queue` and `queues` the second is one's own.
    """
    word = name.strip().casefold()
    amount = word.removeprefix("resources").removeprefix("resource").lstrip("._- ")
    if amount in _AMOUNTS or word.startswith(("resources.", "resources_", "resource.", "resource_")):
        wanted = RESOURCES + (_AMOUNTS.get(amount, amount) or "NAME")
        return wanted if wanted not in present else None
    free = [known for known in COLUMNS if known not in present]
    close = [known for known in free if known == _OTHERWISE.get(word)]
    close += [known for known in free if known.startswith(word) and len(word) >= _LEAST]
    close += difflib.get_close_matches(word.replace("-", "_").replace(" ", "_"), free, n=1, cutoff=_ALIKE)
    return close[0] if close else None


class PassedOver:
    """The columns of one's own, in order of first sight."""

    def __init__(self) -> None:
        self._names: dict[str, None] = {}

    def add(self, name: str) -> None:
        """A column that is not read."""
        self._names[name] = None

    def note(self) -> str | None:
        """One sentence about all of them; None if there are none."""
        if not self._names:
            return None
        names = [repr(name) for name in self._names]
        more = f" and {len(names) - _SAID:,} more" if len(names) > _SAID else ""
        return f"columns that mean nothing here were passed over: {', '.join(names[:_SAID])}{more}"


_SAID = 10


_TRUTH = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False, "": False}
COUNT_MAX = 100_000


def read_table(path: str, nodes: tuple[NodeSpec, ...] = (), bad: list[TraceError] | None = None) -> Workload:
    """The workload in a `.csv` or `.jsonl` file. A bad row raises `TraceError`, or is added to `bad` and left out."""
    other, clock = PassedOver(), _Clock()
    rows = _json_rows(path, other) if path.endswith((".jsonl", ".ndjson", ".json")) else _csv_rows(path, other)
    jobs = list(made_of(rows, lambda row: _job(row, clock), bad))
    if not jobs:
        raise TraceError(path, 1, "", "", "holds no task")
    jobs.sort(key=lambda job: job.at_ms)
    return Workload(
        name=Path(path).name,
        jobs=_distinct(jobs),
        nodes=nodes,
        tasks=sum(len(job.tasks) for job in jobs),
        notes=[note for note in (other.note(), _at_odds(jobs)) if note],
        queues=queue_file(dict.fromkeys(job.application.queue for job in jobs)),
    )


def _at_odds(jobs: Iterable[Job]) -> str | None:
    """One sentence about rows whose queue or user is not that of their job; None if there are none."""
    firsts: dict[str, tuple[str, str]] = {}
    count, example = 0, ""
    for app in (job.application for job in jobs):
        if firsts.setdefault(app.id, (app.queue, app.user)) != (app.queue, app.user):
            count, example = count + 1, example or app.id
    if not count:
        return None
    return (
        f"rows of another queue or user than the first row of their job: {count:,}, such as one of {example}; "
        "a job has those of its first row until it has ended"
    )


def _distinct(jobs: list[Job]) -> Iterator[Job]:
    """The jobs in order, taken off the list, so that what was simulated can be forgotten."""
    jobs.reverse()
    while jobs:
        yield jobs.pop()


def _csv_rows(path: str, other: PassedOver) -> Iterator[Row | TraceError]:
    _check_header(path, heading(path), other)
    return csv_rows(path)


def _check_header(path: str, header: list[str], other: PassedOver) -> None:
    for name in header:
        if not is_known(name):
            if wanted := meant(name, header):
                raise TraceError(path, 1, "", "", f"{name!r} is no column of a table; {_rename(wanted)}")
            other.add(name)
        elif header.count(name) > 1:
            raise TraceError(path, 1, "", "", f"names {name!r} twice: which one is meant?")
    missing = [name for name in ("time", "run") if name not in header]
    if missing or not any(name.startswith(RESOURCES) for name in header):
        wanted = ", ".join(missing) or "resources.NAME, such as resources.vcore"
        hint = (
            f"the first line must name the columns time, run and resources.NAME; not there: {wanted} (`fairlead sim "
            "import` makes a table of what another system wrote)"
        )
        raise TraceError(path, 1, "", "", hint)


def _rename(wanted: str) -> str:
    return f"was {wanted} meant? Rename it, or take it out"


def _json_rows(path: str, other: PassedOver) -> Iterator[Row | TraceError]:
    with Path(path).open(encoding="utf-8-sig", errors="replace") as file:
        for line, text in enumerate(file, 1):
            if text.strip():
                try:
                    row = json.loads(text)
                    if "\\u" in text:
                        json.dumps(row, ensure_ascii=False).encode()  # Half of a letter cannot be written anywhere.
                    yield Row(path, line, _flat(path, line, row, other))
                except TraceError as e:
                    yield e
                except (ValueError, RecursionError) as e:
                    # Not only what JSON calls so: a number may have too many digits, and lists be too deep.
                    yield TraceError(path, line, "", "", f"is not JSON: {e}")


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


def _job(row: Row, clock: _Clock) -> Job:
    """The job of a row."""
    at_ms, run_ms = _moment(row, clock), row.time_ms("run")
    count = row.whole("count", 1, COUNT_MAX, 1)
    retries = row.whole("retries", 0, 1000, 0)
    gang, idle = _truth(row, "gang"), _truth(row, "idle")
    id_ = row.get("job") or f"line-{row.line}"
    first = f"{id_}-{row.line}" if row.get("job") else id_
    if gang:
        # A gang is an application of its own: its size is said when it is submitted.
        id_ = first
    ask = AskSpec(
        application=id_,
        key=first,
        resources=_amount(row),
        priority=row.whole("priority", PRIORITY_MIN, PRIORITY_MAX, 0),
        time_limit_ms=_limit(row),
        retry=RetrySpec(limit=retries) if retries else None,
        idle=idle,
    )
    asks = [ask] if count == 1 else [replace(ask, key=f"{first}-{i}") for i in range(count)]
    gang = gang and count > 1
    application = ApplicationSpec(
        id=id_,
        queue=queue_path(row.get("queue")),
        user=row.get("user") or "nobody",
        placeholder_timeout_ms=PATIENCE_MS if gang else 0,
    )
    return Job(at_ms, application, tuple(Task(ask, run_ms) for ask in asks), gang)


def _limit(row: Row) -> int | None:
    limit_ms = row.time_ms("time_limit") if row.get("time_limit") else None
    if limit_ms == 0:
        raise row.error("time_limit", "must be more than 0, or empty where there is none")
    return limit_ms


def _amount(row: Row) -> Resources:
    named = [(column, column.removeprefix(RESOURCES)) for column in row.cells if column.startswith(RESOURCES)]
    amount = Resources({name: row.quantity(column, name) for column, name in named if row.get(column)})
    if not amount:
        raise TraceError(row.file, row.line, "", "", "asks for no resources: a resources.NAME must be above 0")
    return amount


def _moment(row: Row, clock: _Clock) -> int:
    """When it is: a date, or seconds from any origin."""
    date_ms = _date_ms(row.get("time"))
    kind = "numbers" if date_ms is None else "dates"
    at_ms = row.time_ms("time", "a date such as 2026-05-01T08:00:00Z, ") if date_ms is None else date_ms
    if at_ms < 0:
        raise row.error("time", "is a date before 1970")
    if not clock.takes(kind):
        raise row.error("time", f"the rows before have {clock.kind} here: write all times in one way")
    return at_ms


def _truth(row: Row, column: str) -> bool:
    value = _TRUTH.get(row.get(column).lower())
    if value is None:
        raise row.error(column, "must be yes or no")
    return value
