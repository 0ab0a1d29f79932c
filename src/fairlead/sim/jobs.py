"""Jobs and faults: what comes to the scheduler, which nodes are lost and come back, and when.

Decides the form in which every workload (a trace, a journal, a generator) reaches the engine: submissions in order of
time, each task with the time that it will really run, which the scheduler is never told; and a queue file for one that
comes without: work of every queue that it names has a leaf there; and when nodes are lost and back, from a list, or
from a seed with mean times between failures and to repair, counted from the begin of the simulation. Never schedules.
Invariant: times are integers in milliseconds from one origin, and never go back; for one seed always the same faults; a
drawn node is lost only while it is there and comes back only while it is not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from heapq import heapify, heappop, heappush
from random import Random
from typing import Generic, Protocol, TypeAlias, TypeVar

from fairlead.core.model.specs import ApplicationSpec, AskSpec, NodeSpec, PriorityClassSpec
from fairlead.sim.rows import Row, csv_rows, made_of

PATIENCE_MS = 366 * 86_400_000
"""Placeholders of what starts together or not at all wait as long as it takes."""


@dataclass(frozen=True, slots=True)
class Task:
    """One ask and what becomes of it once it runs; held at first, if its conditions say so, by nothing but a time."""

    ask: AskSpec
    run_ms: int
    """How long it runs when nothing stops it."""
    exit_code: int = 0
    """How each of its runs ends; other than 0 it is tried again if its ask has retries left."""
    stop_ms: int | None = None
    """How long it takes to stop when it is told to; None: all of its grace."""
    anew_ms: int | None = None
    """How long it runs when it begins anew; None: as long as the first time. What ran already has less to go then."""

    def anew(self) -> Task:
        """The same when it does not go on, but begins again."""
        return self if self.anew_ms is None else replace(self, run_ms=self.anew_ms, anew_ms=None)


@dataclass(frozen=True, slots=True)
class Job:
    """Tasks that come together at `at_ms`, in one application.

    An application that is known and has not ended gets them as further asks; `application` then only says which one.
    `gang`: all tasks start together or none does, by placeholders of their sizes.
    """

    at_ms: int
    application: ApplicationSpec
    tasks: tuple[Task, ...]
    gang: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Everything a simulation is fed with, beside the queue file: `jobs` is read once, in order."""

    name: str
    jobs: Iterable[Job]
    nodes: tuple[NodeSpec, ...] = ()
    """The machines that the source names; empty: it names none."""
    tasks: int | None = None
    """How many tasks there are, where that is known before."""
    notes: list[str] = field(default_factory=list)
    """What a reader of the results should know; grows while `jobs` is read."""
    queues: str = ""
    """A queue file that suits it, for runs without one; empty: one queue `root.default`."""
    classes: tuple[PriorityClassSpec, ...] = ()
    """Priority classes that its work may name though no queue file has them."""


class OutOfOrder(ValueError):
    """A job that comes before its predecessor."""


def in_order(jobs: Iterable[Job]) -> Iterator[Job]:
    """The jobs as they are; raises `OutOfOrder` where time goes back."""
    last_ms = None
    for job in jobs:
        if last_ms is not None and job.at_ms < last_ms:
            name = job.application.id
            raise OutOfOrder(
                f"job {name} comes at {job.at_ms} ms, after one at {last_ms} ms: sort the workload by time"
            )
        last_ms = job.at_ms
        yield job


class Timed(Protocol):
    """Something that comes at `at_ms`."""

    @property
    def at_ms(self) -> int:
        """When it comes."""


_T = TypeVar("_T", bound=Timed)


class Upcoming(Generic[_T]):
    """What is still to come, given in order of time and read one ahead."""

    def __init__(self, all_of_it: Iterable[_T]) -> None:
        self._behind = iter(all_of_it)
        self._next = next(self._behind, None)

    @property
    def next_ms(self) -> int | None:
        """When the next one comes; None: nothing comes any more."""
        return None if self._next is None else self._next.at_ms

    def until(self, at_ms: int) -> Iterator[_T]:
        """What comes up to then, each taken out as it is given."""
        while (item := self._next) is not None and item.at_ms <= at_ms:
            self._next = next(self._behind, None)
            yield item


# -- a queue file ------------------------------------------------------------------------------------------------

DEFAULT_QUEUE = "root.default"
Tree: TypeAlias = "dict[str, Tree]"
_BAD = re.compile(r"[^a-zA-Z0-9_:#/@-]")


def queue_path(text: str) -> str:
    """A whole path below root, made of any text; nothing gives `root.default`."""
    parts = [part for part in text.strip().split(".") if part.strip()]
    if parts and parts[0].lower() == "root":
        parts = parts[1:]
    names = [_BAD.sub("-", part.strip())[:64].lower() for part in parts]
    return ".".join(["root", *names]) if names else DEFAULT_QUEUE


def queue_file(paths: Iterable[str], *, preemption: bool = True) -> str:
    """The YAML text with a leaf for each path, which begins with `root.`

    Work of a queue that has others below it goes to the leaf `default` there.
    """
    tree: Tree = {}
    paths = list(paths)
    for path in paths:
        level = tree
        for name in path.split(".")[1:]:
            level = level.setdefault(name, {})
    parents = [level for level in (_below(tree, path) for path in paths) if level]
    for level in parents:
        level.setdefault("default", {})
    lines = ["partitions:", "  - name: default"]
    if not preemption:
        lines.append("    preemption: {enabled: false}")
    if parents:
        lines += ["    placementrules:", "      - name: provided"]
        lines += ["      - {name: fixed, value: default, parent: {name: provided}}"]
    lines += ["    queues:", "      - name: root", '        submitacl: "*"']

    def write(level: Tree, indent: str) -> None:
        if level:
            lines.append(f"{indent}queues:")
        for name, below in level.items():
            lines.append(f'{indent}  - name: "{name}"')
            write(below, indent + "    ")

    write(tree, " " * 8)
    return "\n".join(lines) + "\n"


def _below(tree: Tree, path: str) -> Tree:
    for name in path.split(".")[1:]:
        tree = tree[name]
    return tree


# -- nodes that are lost and come back --------------------------------------------------------------------------------


LOST, BACK = "lost", "back"


@dataclass(frozen=True, slots=True, order=True)
class Fault:
    """A node is `lost`, or comes `back` with all its capacity."""

    at_ms: int
    node: str
    what: str


def counted_from(begin_ms: int, faults: Iterable[Fault]) -> Iterator[Fault]:
    """The same faults, their times counted from the origin. A generator also where the caller is compiled."""
    for fault in faults:
        yield replace(fault, at_ms=begin_ms + fault.at_ms)


class FaultError(ValueError):
    """A list of faults that makes no sense."""


def drawn(nodes: Sequence[str], seed: int, mtbf_ms: int, mttr_ms: int) -> Iterator[Fault]:
    """Faults without end: each node by itself works and is away for exponentially distributed times.

    `mtbf_ms` is the mean time from coming (back) to the next loss, `mttr_ms` the mean time away; both at least 1.
    """
    if mtbf_ms < 1 or mttr_ms < 1:
        raise FaultError("the mean times between failures and to repair must be 1 ms or more")
    random = Random(seed)
    due = [(_time(random, mtbf_ms), number, LOST) for number in range(len(nodes))]
    heapify(due)
    while due:
        at_ms, number, what = heappop(due)
        yield Fault(at_ms, nodes[number], what)
        after = (mttr_ms, BACK) if what == LOST else (mtbf_ms, LOST)
        heappush(due, (at_ms + _time(random, after[0]), number, after[1]))


def _time(random: Random, mean_ms: int) -> int:
    return max(1, round(random.expovariate(1 / mean_ms)))


def read_faults(path: str) -> list[Fault]:
    """The faults of a CSV file `time,node,what` (time in seconds, what `lost` or `back`), in order of time.

    What is of one moment stays as it stands there: lost and back is a restart. Raises `TraceError` with file and line.
    """

    def fault(row: Row) -> Fault:
        if row.get("what") not in (LOST, BACK):
            raise row.error("what", f"must be {LOST} or {BACK}")
        return Fault(row.time_ms("time"), row.text("node"), row.get("what"))

    return sorted(made_of(csv_rows(path, ("time", "node", "what")), fault), key=lambda fault: fault.at_ms)


def known_only(faults: Iterable[Fault], nodes: Iterable[str]) -> list[Fault]:
    """The faults as they are; raises `FaultError` for a node that does not exist."""
    names = set(nodes)
    checked = list(faults)
    for fault in checked:
        if fault.node not in names:
            raise FaultError(f"there is no node {fault.node} that could be {fault.what}")
    return checked
