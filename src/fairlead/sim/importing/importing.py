"""Importing: a foreign file made into a table for simulations, with all that was wrong with it.

Decides what is shown before anything is written, how errors are counted together, and what looks wrong although it can
be read. Never keeps the rows: a file is read twice, once for a sample of all of it, once to be written. Invariant: each
record is written, left out for a reason that is counted, or counted among the errors.
"""

from __future__ import annotations

import csv
from array import array
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from random import Random
from typing import TextIO

import numpy as np

from fairlead.sim.importing.mapping import MEMORY, Mapped
from fairlead.sim.importing.records import Broken, Record, Records
from fairlead.sim.importing.tasks import Imported, LeftOut, Reader, Wrong
from fairlead.sim.jobs import queue_path
from fairlead.times import duration

SAMPLE = 2_000
EXAMPLES = 3
TEXTS = ("queue", "user", "job", "priority")


def sample_of(records: Records) -> tuple[list[Record], int]:
    """Some records of all of it in their order, and how many there are (those that cannot be taken apart too)."""
    chance = Random(0)
    kept: list[Record] = []
    count = 0
    for count, each in enumerate(records.read(), 1):
        if isinstance(each, Broken):
            continue
        if len(kept) < SAMPLE:
            kept.append(each)
        elif (place := chance.randrange(count)) < SAMPLE // 2:
            # The first half stays: what is shown is the begin of the file.
            kept[SAMPLE // 2 + place] = each
    kept.sort(key=lambda record: record.line)
    return kept, count


@dataclass(slots=True)
class Group:
    """Errors of one kind."""

    count: int = 0
    examples: list[tuple[int, str]] = field(default_factory=list)
    """Line and value."""


@dataclass(slots=True)
class Account:
    """What became of the records."""

    tasks: int = 0
    rows: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    errors: dict[tuple[str, str], Group] = field(default_factory=dict)
    """By column and what is wrong."""
    queues: dict[str, None] = field(default_factory=dict)
    at: array[int] = field(default_factory=lambda: array("q"))
    begin: array[int] = field(default_factory=lambda: array("q"))
    """When it started, as far as that is known, else when it came."""
    run: array[int] = field(default_factory=lambda: array("q"))
    limit: array[int] = field(default_factory=lambda: array("q"))
    amounts: dict[str, array[int]] = field(default_factory=dict)
    """By resource, of each row in all."""
    largest: dict[str, int] = field(default_factory=dict)
    """By resource, the most that one task asks for."""
    gangs: dict[tuple[tuple[str, int], ...], int] = field(default_factory=dict)
    """By what one task asks for, how many start together at most."""
    is_dated: bool = False
    early: int = 0
    """Rows that started before they came."""
    running: int = 0
    """Rows that had not ended."""

    @property
    def wrong(self) -> int:
        """Rows with an error."""
        return sum(group.count for group in self.errors.values())

    def add_error(self, line: int, column: str, value: str, hint: str) -> None:
        """One row that cannot be used."""
        group = self.errors.setdefault((column, hint), Group())
        group.count += 1
        if len(group.examples) < EXAMPLES:
            group.examples.append((line, value))

    def add(self, task: Imported) -> None:
        """One row that can."""
        self.at.append(task.at_ms)
        self.begin.append(task.at_ms if task.start_ms is None else task.start_ms)
        self.run.append(task.run_ms)
        self.limit.append(task.limit_ms or 0)
        for name in [name for name in task.amounts if name not in self.amounts]:
            self.amounts[name] = array("q", [0]) * self.rows
        for name, amounts in self.amounts.items():
            amount = task.amounts.get(name, 0)
            amounts.append(amount * task.count)
            self.largest[name] = max(amount, self.largest.get(name, 0))
        if task.is_gang:
            each = tuple(task.amounts.items())
            self.gangs[each] = max(task.count, self.gangs.get(each, 0))
        self.rows += 1
        self.tasks += task.count
        self.running += task.still_runs
        self.early += task.start_ms is not None and task.start_ms < task.at_ms
        self.queues[queue_path(task.texts.get("queue", ""))] = None


def tasks_of(records: Iterator[Record | Broken], reader: Reader, account: Account) -> Iterator[Imported]:
    """The tasks in the records; all else is counted in the account, and so are they."""
    for each in records:
        if isinstance(each, Broken):
            account.add_error(each.line, "", "", each.hint)
            continue
        try:
            task = reader.task(each.cells)
        except LeftOut as e:
            account.left_out[str(e)] += 1
        except Wrong as e:
            account.add_error(each.line, e.column, e.value, e.hint)
        else:
            account.add(task)
            yield task


def write(records: Records, mapped: Mapped, zone: tzinfo, out: TextIO) -> Account:
    """Write the table and return what became of the records."""
    account, reader = Account(), Reader(mapped, zone)
    resources = [name.removeprefix("resources.") for name in mapped if name.startswith("resources.")]
    texts = [name for name in TEXTS if name in mapped]
    has_count = "nodes" in mapped or "count" in mapped
    names = ["time", "run", *(f"resources.{name}" for name in resources), *texts]
    names += (["count", "gang"] if has_count else []) + (["time_limit"] if "time_limit" in mapped else [])
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    for task in tasks_of(records.read(), reader, account):
        if account.rows == 1:
            account.is_dated = reader.is_dated(task.at_ms)
        row = [date(task.at_ms) if account.is_dated else seconds(task.at_ms), seconds(task.run_ms)]
        row += [quantity(name, task.amounts.get(name, 0)) for name in resources]
        row += [task.texts.get(name, "") for name in texts]
        row += [str(task.count), "yes" if task.is_gang else "no"] if has_count else []
        # What ran on beyond its limit was not cut off there, and is not to be.
        limit_ms = max(task.limit_ms, task.run_ms) if task.limit_ms else None
        row += [seconds(limit_ms) if limit_ms else ""] if "time_limit" in mapped else []
        writer.writerow(row)
    return account


def date(at_ms: int) -> str:
    """As ISO 8601 writes it, in UTC."""
    text = datetime.fromtimestamp(at_ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{text}.{at_ms % 1000:03}Z" if at_ms % 1000 else f"{text}Z"


def seconds(ms: int) -> str:
    """Whole where they are."""
    return str(ms // 1000) if ms % 1000 == 0 else f"{ms / 1000:.3f}"


def quantity(name: str, amount: int) -> str:
    """As a table has it, exact."""
    if name == "vcore" and amount % 1000:
        return f"{amount}m"
    return str(amount // 1000 if name == "vcore" else amount)


# -- what looks wrong ----------------------------------------------------------------------------------------------

MANY = 0.05
LEAST_BYTES, MOST_BYTES = 2**20, 2**43
SHORT_MS, LONG_MS = 2_000, 30 * 86_400_000
YEAR_MS = 365 * 86_400_000


def doubts(account: Account, mapped: Mapped) -> Iterator[str]:
    """What could be read and most likely is not meant so; each with what to do."""
    if not account.rows:
        return
    memory = np.array(account.amounts.get("memory", ()), dtype=np.int64)
    if len(memory := memory[memory > 0]):
        middle = int(np.median(memory))
        if middle < LEAST_BYTES or middle > MOST_BYTES:
            size = f"{middle:,} bytes" if middle < LEAST_BYTES else f"{middle / 2**40:,.0f} TiB"
            unit = mapped[MEMORY].unit.name
            yield f"half of all rows ask for {size} of memory or less: is {unit} its unit? (--map memory:GB)"
    run, limit = np.array(account.run, dtype=np.int64), np.array(account.limit, dtype=np.int64)
    middle = int(np.median(run))
    if middle < SHORT_MS or middle > LONG_MS:
        yield f"half of all runs last {duration(middle)} or less: is that so? (--map run:min)"
    over = int(np.sum((limit > 0) & (run > 1.05 * limit)))
    if over > MANY * len(run):
        said = "1 run is longer than its" if over == 1 else f"{over:,} runs are longer than their"
        yield f"{said} time limit: is one in another unit? (--map run:s)"
    if account.early > MANY * account.rows:
        said = "1 row" if account.early == 1 else f"{account.early:,} rows"
        yield f"{said} started before submission: are both read as they are meant?"
    first, last = min(account.at), max(account.at)
    if "time" not in mapped:
        yield "nothing says when they were submitted: all come when they started, no waits are left (--map time=COLUMN)"
    if account.running:
        had = "1 row had" if account.running == 1 else f"{account.running:,} rows had"
        yield f"{had} not ended: what still ran is taken to run as long as it had so far"
    if account.rows > 1 and first == last:
        yield "all came at the same moment: is that the column of their submission? (--map time=COLUMN)"
    if last - first > 5 * YEAR_MS:
        yield f"they come over {(last - first) / YEAR_MS:.0f} years: are days, months and years where they belong?"
    if account.is_dated and first < 20 * YEAR_MS:
        yield f"the first came on {date(first)[:10]}: are the times in the unit that is shown? (--map time:s)"


# -- which machines ------------------------------------------------------------------------------------------------

WIDTH_MILLI = 32_000


def peak(account: Account) -> dict[str, int]:
    """The most of each resource that was in use at once, as recorded."""
    begin, run = np.array(account.begin, dtype=np.int64), np.array(account.run, dtype=np.int64)
    at = np.concatenate((begin + run, begin))  # What ends goes before what begins at the same moment.
    order = np.argsort(at, kind="stable")
    found = {}
    for name, amounts in account.amounts.items():
        amount = np.array(amounts, dtype=np.float64)
        found[name] = int(np.max(np.cumsum(np.concatenate((-amount, amount))[order]), initial=0))
    return found


def machines_for(account: Account) -> str:
    """Nodes that hold what was in use at once, and each gang, all alike, as words for `--nodes`."""
    most = peak(account)
    width = max(WIDTH_MILLI, _power_of_two(account.largest.get("vcore", 0) // -1000 * -1000, 1000))
    count = max(-(-most.get("vcore", 0) // width), 1)
    each = {name: max(-(-amount // count), account.largest[name]) for name, amount in most.items()}
    each |= {"vcore": width} if "vcore" in each else {}
    each |= {"memory": _power_of_two(each["memory"], 2**30)} if each.get("memory") else {}
    for task, together in account.gangs.items():
        fit = min(each[name] // amount for name, amount in task)
        count = max(count, -(-together // fit))
    words = [f"cpu={width // 1000}"] if "vcore" in each else []
    words += [
        f"{name}={f'{amount // 2**30}Gi' if name == 'memory' else amount}"
        for name, amount in each.items()
        if name != "vcore" and amount
    ]
    return f"{count}x {','.join(words)}"


def _power_of_two(amount: int, unit: int) -> int:
    while unit < amount:
        unit *= 2
    return unit
