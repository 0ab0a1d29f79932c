"""Sources: which workload and which machines the words of a command mean.

Decides by the form of what is given: a name (`poisson`, ...), a recipe (`.yaml`), a log (`.swf`), a table (`.csv`,
`.jsonl`) or the openb trace (known by its columns); for machines a CSV file, or `100x cpu=32,memory=128Gi`. Never opens
a journal: that is handed in. Invariant: a workload can be opened again and again, and gives the same jobs each time;
every machine has a name of its own and a capacity.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fairlead.core.model.quantities import QuantityError, parse_quantity, resource_called
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import NodeSpec
from fairlead.sim.jobs import Job, Workload
from fairlead.sim.rows import Row, TraceError, csv_rows, heading, made_of, only_once
from fairlead.sim.workloads.generate import PRESETS, RecipeError, generate, read_recipe
from fairlead.sim.workloads.openb import NODE_COLUMNS, TASK_COLUMNS, is_openb, openb
from fairlead.sim.workloads.swf import read_log, swf
from fairlead.sim.workloads.table import read_table
from fairlead.times import duration_ms

_WORDS = re.compile(r"(\d+) *x *(.+)")
COUNT_MAX = 1_000_000


class MachineError(ValueError):
    """Nodes that make no sense."""


_AS_WORDS = "write COUNT x RESOURCE=QUANTITY,..., such as 100x cpu=32,memory=128Gi"


def machines(text: str) -> tuple[NodeSpec, ...]:
    """The nodes of a CSV file (`id`, then a column for each resource), or of words.

    Words: `COUNT x NAME=QUANTITY,NAME=QUANTITY`, several kinds with `;` between them. Raises `MachineError`,
    `TraceError` or OSError.
    """
    if "=" not in text:
        if text.strip().isdecimal():
            raise MachineError(
                f"nodes {text!r}: a number is for made-up work; write {text.strip()}x RESOURCE=QUANTITY,..."
            )
        try:
            return _read(text)
        except FileNotFoundError:
            if text.endswith(".csv"):
                raise
            raise MachineError(f"nodes {text!r}: there is no such file; {_AS_WORDS}") from None
    found: list[NodeSpec] = []
    for kind in filter(None, (part.strip() for part in text.split(";"))):
        match = _WORDS.fullmatch(kind)
        if not match or not 0 < int(match[1]) <= COUNT_MAX:
            raise MachineError(f"nodes {kind!r}: {_AS_WORDS}")
        amounts = {}
        for part in match[2].split(","):
            name, equals, quantity = (word.strip() for word in part.partition("="))
            if not (name and equals):
                raise MachineError(f"nodes {kind!r}: {part!r} must be RESOURCE=QUANTITY")
            if resource_called(name) in amounts:
                raise MachineError(f"nodes {kind!r}: {name} is said twice")
            try:
                amounts[resource_called(name)] = parse_quantity(resource_called(name), quantity)
            except QuantityError as e:
                raise MachineError(f"nodes {kind!r}: {e}") from e
        capacity = Resources(amounts)
        if not capacity:
            raise MachineError(f"nodes {kind!r}: have nothing to offer")
        first = len(found)
        found += [NodeSpec(id=f"node-{first + i:05}", capacity=capacity) for i in range(int(match[1]))]
    return tuple(found)


def _read(path: str) -> tuple[NodeSpec, ...]:
    header = heading(path)
    if "id" not in header or len(header) < 2:
        raise TraceError(path, 1, "", "", "the first line must name id and at least one resource, such as id,vcore")
    called = [resource_called(column) for column in header]
    if twice := next((each for each in called if called.count(each) > 1), ""):
        raise TraceError(path, 1, "", "", f"names {twice} twice: which one is meant?")
    name = only_once("id")

    def node(row: Row) -> NodeSpec:
        resources = [(column, resource_called(column)) for column in header if column != "id"]
        amounts = {resource: row.quantity(column, resource) for column, resource in resources}
        return NodeSpec(id=name(row), capacity=Resources(amounts))

    found = tuple(made_of(csv_rows(path), node))
    if not found:
        raise TraceError(path, 1, "", "", "names no node")
    return found


def _first(jobs: Iterable[Job], first_ms: int) -> Iterator[Job]:
    """The jobs of so long a time."""
    begin_ms = None
    for job in jobs:
        begin_ms = job.at_ms if begin_ms is None else begin_ms
        if job.at_ms >= begin_ms + first_ms:
            return
        yield job


class SourceError(ValueError):
    """A workload that cannot be had; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What was asked for."""

    workload: str
    nodes: str = ""
    seed: int = 1
    tasks: int | None = None
    lasts: str | None = None
    load: float | None = None
    skip_bad: bool = False
    since: int | None = None
    """For a journal: only what was submitted from this time on, Unix milliseconds; None: from its begin."""
    until: int | None = None
    now: int = 0
    """For a journal that is written on: Unix milliseconds at which what runs by it still ran; 0: to its last record."""
    last_seq: int | None = None
    """For a journal: its last record that counts, however many are written while it is read; None: all do."""
    first_ms: int | None = None
    """Only what comes so long from the first job on; None: all of it."""
    journal: Callable[[Source], Workload] | None = None
    """Opens the journal that `workload` is."""

    @property
    def is_journal(self) -> bool:
        """Whether it is a state directory: what it holds is in no unit that could be mistaken."""
        return Path(self.workload).is_dir()

    def open(self) -> Workload:
        """The workload. Raises `SourceError` with a sentence, or OSError."""
        try:
            found = self._open()
            return (
                found if self.first_ms is None else replace(found, jobs=_first(found.jobs, self.first_ms), tasks=None)
            )
        except (TraceError, MachineError, RecipeError) as e:
            raise SourceError(str(e)) from e

    def _open(self) -> Workload:
        name = self.workload
        path = Path(name)
        if self.is_journal:
            return self._journal()
        if self.since is not None or self.until is not None:
            raise SourceError(f"--since and --before are for journals; {name} is none")
        if name in PRESETS and not path.exists():
            return self._made(PRESETS[name], name)
        self._only_for_recipes()
        if name.endswith((".yaml", ".yml")):
            return self._made(path.read_text(encoding="utf-8"), path.name)
        if name.endswith((".swf", ".swf.gz", ".txt", ".gz")):
            return swf(read_log(name), machines(self.nodes) if self.nodes else ())
        if name.endswith((".csv", ".jsonl", ".ndjson", ".json")):
            return self._table(name)
        is_there = path.exists()
        what = "" if is_there else "there is no such file; "
        told = f"; `fairlead sim import {name}` makes a table of what another system wrote" if is_there else ""
        raise SourceError(
            f"workload {name!r}: {what}give a file (.swf, .csv, .jsonl, .yaml), the folder of a journal, or one of "
            f"{', '.join(PRESETS)}{told}"
        )

    def _only_for_recipes(self) -> None:
        if self.workload.endswith((".yaml", ".yml")):
            return
        given = (("--tasks-max", self.tasks), ("--lasts", self.lasts), ("--load", self.load))
        for option, value in given:
            if value is not None:
                raise SourceError(f"{option} is for made-up workloads; {self.workload} says itself what it holds")

    def _made(self, text: str, name: str) -> Workload:
        if self.lasts is not None and duration_ms(self.lasts) is None:
            raise SourceError(f"--lasts {self.lasts!r} must be a time, such as 12h or 7d")
        recipe = read_recipe(text, name, tasks=self.tasks, lasts=self.lasts, load=self.load)
        given = self.nodes.strip()
        nodes: Sequence[NodeSpec]
        if given and not given.isdigit():
            nodes = machines(given)
        else:
            count = int(given) if given else recipe.nodes.count
            if not 0 < count <= 1_000_000:
                raise SourceError(f"--nodes {given}: must be 1 to 1,000,000")
            nodes = [NodeSpec(id=f"node-{i:05}", capacity=recipe.nodes.each) for i in range(count)]
        try:
            return generate(recipe, self.seed, nodes, name)
        except ValueError as e:
            raise SourceError(str(e)) from e

    def _journal(self) -> Workload:
        self._only_for_recipes()
        if self.journal is None:
            raise SourceError(f"workload {self.workload!r} is a folder; journals cannot be read here")
        if self.since is not None and self.until is not None and self.since >= self.until:
            raise SourceError("--since must be earlier than --before")
        return self.journal(self)

    def _table(self, name: str) -> Workload:
        bad: list[TraceError] | None = [] if self.skip_bad else None
        if name.endswith(".csv") and is_openb(name, TASK_COLUMNS):
            if not self.nodes or "=" in self.nodes or not is_openb(self.nodes, NODE_COLUMNS):
                raise SourceError(f"{name} is an openb trace: give the file of its nodes with --nodes")
            workload = openb(self.nodes, name, bad)
        else:
            # The table first: whoever has to mend its columns is told so before anything is asked of him.
            workload = read_table(name, machines(self.nodes) if self.nodes else (), bad)
            if not self.nodes:
                raise SourceError(f"{name} names no nodes: say --nodes '10x cpu=32,memory=128Gi' or a CSV file")
        if bad:
            workload.notes.append(f"bad rows left out: {len(bad):,}; the first: {bad[0]}")
        return workload
