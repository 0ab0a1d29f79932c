"""The Standard Workload Format: logs of parallel machines, one job a line of 18 numbers.

Decides what the fields mean to the scheduler. Never guesses: a line that cannot be a job is left out, counted and
reported with its number. Invariant: jobs are handed out in order of submission.

A job asks for its requested processors (else those it got), as `vcore`; for memory only where the nodes say how much
they have (the log gives it for each processor). It runs as long as it ran; the requested time is its time limit, or its
run time where it ran longer. A job wider than a node is a gang of tasks, each as wide as a node at most. User 3 is
`user-3`, queue 2 is `root.queue-2`, no queue is `root.default`. Nodes are those of the header (`MaxNodes`, `MaxProcs`)
unless given. That a job waited for another one (fields 17 and 18) shows in its recorded submission and is not redone.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import ApplicationSpec, AskSpec, NodeSpec
from fairlead.sim.jobs import DEFAULT_QUEUE, PATIENCE_MS, Job, Task, Workload, queue_file
from fairlead.sim.rows import TraceError, text_of
from fairlead.sim.verdicts import counted

FIELDS = (
    "job number",
    "submit time",
    "wait time",
    "run time",
    "allocated processors",
    "average CPU time",
    "used memory",
    "requested processors",
    "requested time",
    "requested memory",
    "status",
    "user",
    "group",
    "executable",
    "queue",
    "partition",
    "preceding job",
    "think time",
)
_NUMBER, _SUBMIT, _RUN, _GOT, _USED_KB, _PROCS, _LIMIT, _KB = 0, 1, 3, 4, 6, 7, 8, 9
_USER, _QUEUE, _BEFORE = 11, 14, 16
_KEPT = (_NUMBER, _SUBMIT, _RUN, _GOT, _USED_KB, _PROCS, _LIMIT, _KB, _USER, _QUEUE)
_WIDTH = len(_KEPT)
_LARGEST = 10**12
MOST_PROCESSORS, MOST_NODES = 100_000_000, 200_000
"""No machine has more; a number in a file is quickly longer than any memory."""


@dataclass(slots=True)
class Log:
    """A log that was read: its header, its jobs as rows of ten numbers each, and the lines that were left out."""

    path: str
    header: dict[str, str] = field(default_factory=dict)
    rows: array[int] = field(default_factory=lambda: array("q"))
    bad: list[TraceError] = field(default_factory=list)
    never_ran: int = 0
    dependent: int = 0

    def __len__(self) -> int:
        return len(self.rows) // _WIDTH

    def row(self, number: int) -> array[int]:
        """One job."""
        return self.rows[number * _WIDTH : (number + 1) * _WIDTH]

    def number_of(self, key: str) -> int:
        """A number of the header; 0 when it is not there. Of one that is too long only how large it is counts."""
        text = self.header.get(key.lower(), "").split(maxsplit=1)
        return int(text[0][:20]) if text and text[0].isascii() and text[0].isdigit() else 0


def read_log(path: str) -> Log:
    """A log from a file (`.gz` too). Raises `TraceError` if it holds no job that ran, OSError if it cannot be read."""
    log = Log(path)
    with text_of(path, "utf-8") as file:
        for number, line in enumerate(file, 1):
            text = line.strip()
            if text.startswith(";"):
                key, colon, value = text.lstrip("; \t").partition(":")
                if colon:
                    log.header.setdefault(key.strip().lower(), value.strip())
            elif text:
                _add(log, number, text)
    if not log.rows:
        first = f"; the first bad line: {log.bad[0]}" if log.bad else ""
        other = "" if path.endswith((".swf", ".swf.gz")) else "; `fairlead sim import` makes a table of other forms"
        raise TraceError(path, 1, "", "", f"holds no job of the Standard Workload Format that ran{first}{other}")
    return log


def _add(log: Log, number: int, text: str) -> None:
    cells = text.split()
    if len(cells) != len(FIELDS):
        hint = f"has {len(cells)} fields, the format has {len(FIELDS)}"
        log.bad.append(TraceError(log.path, number, "", "", hint))
        return
    values = []
    for name, cell in zip(FIELDS, cells, strict=True):
        try:
            value = float(cell)
        except ValueError:
            value = float("nan")
        if not -_LARGEST < value < _LARGEST:
            log.bad.append(TraceError(log.path, number, name, cell, "must be a number, -1 where it is not known"))
            return
        values.append(int(value))
    if values[_SUBMIT] < 0:
        log.bad.append(TraceError(log.path, number, FIELDS[_SUBMIT], cells[_SUBMIT], "must be 0 or more"))
    elif values[_RUN] < 0 or max(values[_PROCS], values[_GOT]) <= 0:
        log.never_ran += 1
    else:
        log.rows.extend(values[i] for i in _KEPT)
        log.dependent += values[_BEFORE] > 0


def swf(log: Log, nodes: Sequence[NodeSpec] = ()) -> Workload:
    """A log as a workload, on the given nodes or those of its header. Raises `TraceError` where none could run it."""
    machines = tuple(nodes) or header_nodes(log)
    order = sorted(range(len(log)), key=lambda i: log.rows[i * _WIDTH + 1])
    queues = sorted({log.rows[i * _WIDTH + 9] for i in range(len(log))})
    notes = []
    if log.bad:
        more = f" (and {counted(len(log.bad) - 1, 'more bad line')}, left out)" if len(log.bad) > 1 else " (left out)"
        notes.append(f"{log.bad[0]}{more}")
    if log.never_ran:
        notes.append(
            f"{counted(log.never_ran, 'job')} of the log never ran (cancelled, or without processors); left out"
        )
    if log.dependent:
        notes.append(f"jobs that follow another one, taken to come when they came in the log: {log.dependent:,}")
    jobs = _jobs(log, order, machines)
    widest = max((n.capacity["vcore"] for n in machines), default=0) // 1000
    widths = [-(-_processors(log.row(i)) // max(widest, 1)) for i in order]
    if max(widths) > MOST_NODES:
        job = log.row(order[widths.index(max(widths))])
        said = f"job {job[0]} asks for {_processors(job):,} processors, which no {MOST_NODES:,} of these nodes have"
        raise TraceError(log.path, 1, "", "", f"{said}: say which nodes it ran on (--nodes)")
    return Workload(
        name=Path(log.path).name,
        jobs=jobs,
        nodes=machines,
        tasks=sum(widths),
        notes=notes,
        queues=queue_file(_queue(q) for q in queues),
    )


def header_nodes(log: Log) -> tuple[NodeSpec, ...]:
    """The machine of the header as nodes; raises `TraceError` when it does not say how many processors it has."""
    processors = log.number_of("MaxProcs") or log.number_of("MaxNodes")
    if not processors:
        raise TraceError(log.path, 1, "", "", "has no header line `; MaxProcs:`: say which nodes it ran on (--nodes)")
    count = min(log.number_of("MaxNodes") or processors, processors)
    if processors > MOST_PROCESSORS or count > MOST_NODES:
        too_many = f"more than {MOST_PROCESSORS:,} processors or {MOST_NODES:,} nodes"
        raise TraceError(log.path, 1, "", "", f"has {too_many} in its header: say which nodes it ran on (--nodes)")
    share, more = divmod(processors, count)
    smaller, larger = (Resources({"vcore": 1000 * each}) for each in (share, share + 1))
    return tuple(NodeSpec(id=f"node-{i:05}", capacity=larger if i < more else smaller) for i in range(count))


def _processors(row: Sequence[int]) -> int:
    got, asked = row[3], row[5]
    return asked if asked > 0 else got


def _queue(number: int) -> str:
    return f"root.queue-{number}" if number >= 0 else DEFAULT_QUEUE


def _jobs(log: Log, order: Sequence[int], nodes: Sequence[NodeSpec]) -> Iterator[Job]:
    widest = max(max(n.capacity["vcore"] for n in nodes) // 1000, 1)
    with_memory = all(n.capacity["memory"] for n in nodes)
    interned: dict[tuple[int, int], Resources] = {}
    seen: set[int] = set()
    for position in order:
        number, submit, run, _got, used_kb, _asked, limit, kb, user, queue = log.row(position)
        name = f"job-{number}" if number not in seen else f"job-{number}-line-{position + 1}"
        seen.add(number)
        processors = _processors(log.row(position))
        memory = max(kb if kb > 0 else used_kb, 0) * 1024 if with_memory else 0
        widths = _split(processors, widest)
        limit_ms = max(limit, run) * 1000 if limit > 0 else None
        tasks = []
        for part, width in enumerate(widths):
            amount = interned.setdefault(
                (width, memory),
                Resources({"vcore": width * 1000, "memory": memory * width} if memory else {"vcore": width * 1000}),
            )
            key = name if len(widths) == 1 else f"{name}-{part}"
            ask = AskSpec(application=name, key=key, resources=amount, time_limit_ms=limit_ms)
            tasks.append(Task(ask, run * 1000))
        application = ApplicationSpec(
            id=name,
            queue=_queue(queue),
            user=f"user-{user}" if user >= 0 else "nobody",
            placeholder_timeout_ms=PATIENCE_MS if len(widths) > 1 else 0,
        )
        yield Job(submit * 1000, application, tuple(tasks), gang=len(widths) > 1)


def _split(processors: int, widest: int) -> list[int]:
    whole, rest = divmod(processors, widest)
    return [widest] * whole + ([rest] if rest else [])
