"""Tasks: what the cells of one record say about a task, by a mapping.

Decides how fields that a foreign table has make up those that a simulation needs: the run time from begin and end,
memory in all from memory for each core, one task for each node. Never guesses units. Invariant: a task is complete
(when it came, how long it ran, what it asked for); what is none is left out with a reason that many rows share.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, tzinfo
from typing import Any

from fairlead.core.model.resources import INT64_MAX
from fairlead.core.model.specs import PRIORITY_MAX, PRIORITY_MIN
from fairlead.sim.importing.mapping import CORES, MEMORY, Mapped, Source, kind_of
from fairlead.sim.importing.quantities import DURATIONS, Unreadable, moment_of
from fairlead.sim.importing.units import NONE, NOTHING, Kind, reader
from fairlead.sim.workloads.table import COUNT_MAX


class LeftOut(Exception):
    """A record that is no task, as there are many in such files."""


class Wrong(Exception):
    """A record that should be a task and cannot be."""

    def __init__(self, column: str, value: str, hint: str) -> None:
        super().__init__(hint)
        self.column, self.value, self.hint = column, value, hint


@dataclass(frozen=True, slots=True)
class Imported:
    """One task, or several equal ones."""

    at_ms: int
    run_ms: int
    amounts: dict[str, int]
    """Of each task: by resource."""
    start_ms: int | None
    limit_ms: int | None
    count: int
    is_gang: bool
    texts: dict[str, str]
    """`queue`, `user`, `job`, `priority`; what is not said is not there."""
    still_runs: bool = False
    """Its run time is only that so far."""


class Reader:
    """Reads records of one table."""

    def __init__(self, mapped: Mapped, zone: tzinfo = UTC) -> None:
        """`zone` is that of dates that name none."""
        self.mapped = mapped
        self._read = {field: self._reader(field, source, zone) for field, source in mapped.items()}
        self._amounts = [field for field in mapped if field.startswith("resources.")]

    @staticmethod
    def _reader(field: str, source: Source, zone: tzinfo) -> Any:
        unit = source.unit.name
        if kind_of(field) is Kind.MOMENT:
            return lambda text: moment_of(text, unit, zone)
        return reader(kind_of(field), unit)

    def task(self, cells: Mapping[str, str]) -> Imported:
        """The task in a record. Raises `LeftOut` or `Wrong`."""
        job = self._text("job", cells)
        if _STEP.fullmatch(job):
            raise LeftOut("steps of jobs that have a row of their own")
        start_ms, end_ms = self._value("start", cells), self._value("end", cells)
        run_ms = self._run_ms(cells, start_ms, end_ms)
        at_ms = self._value("time", cells)
        if at_ms is None:
            at_ms = start_ms
        if at_ms is None:
            raise Wrong(self._called("time"), "", "does not say when it was submitted")
        nodes = max(self._value("nodes", cells) or 1, 1)
        count = nodes if nodes > 1 else self._value("count", cells)
        count = 1 if count is None else count
        if not 1 <= count <= COUNT_MAX:
            raise Wrong(self._called("count"), str(count), f"is not 1 to {COUNT_MAX:,} tasks")
        return Imported(
            at_ms,
            run_ms,
            self._asked(cells, nodes, count),
            start_ms,
            self._value("time_limit", cells) or None,
            count,
            nodes > 1,
            self._texts(cells, job),
            end_ms is None and bool(_RUNS.match(self._text("state", cells))),
        )

    def is_dated(self, at_ms: int) -> bool:
        """Whether times are dates, not counted from any begin."""
        source = self.mapped.get("time") or self.mapped.get("start")
        return source is not None and (source.unit.name not in DURATIONS or at_ms >= _EPOCH_LEAST_MS)

    def _run_ms(self, cells: Mapping[str, str], start_ms: int | None, end_ms: int | None) -> int:
        run_ms: int | None = self._value("run", cells)
        if run_ms is None and start_ms is not None and end_ms is not None:
            run_ms = end_ms - start_ms
            if run_ms < 0:
                raise Wrong(self._called("end"), self.mapped["end"].text(cells), "is before the start")
        if run_ms is None or (run_ms == 0 and (start_ms is None or _CANCELLED.match(self._text("state", cells)))):
            raise LeftOut("never ran, or has not ended")
        return run_ms

    def _asked(self, cells: Mapping[str, str], nodes: int, count: int) -> dict[str, int]:
        found = {}
        for field in self._amounts:
            amount = self._value(field, cells)
            if amount is not None:
                found[field.removeprefix("resources.")] = amount
            elif field == CORES and (text := self.mapped[field].text(cells)).lower() not in NOTHING:
                # An empty cell asks for none; `n/a` says that somebody does not know.
                raise Wrong(self._called(field), text, "does not say how much")
        memory = found.get("memory")
        if memory is not None:
            amount, each = memory
            each = each or self.mapped[MEMORY].each
            # In all; it is divided by the nodes below.
            found["memory"] = amount * (-(-found.get("vcore", 1000) // 1000) if each == "c" else nodes if each else 1)
        found = {name: -(-amount // nodes) for name, amount in found.items() if amount > 0}
        if not found:
            raise Wrong(self._called(CORES), "", "asks for nothing")
        if max(found.values()) * count > INT64_MAX:
            raise Wrong(self._called(CORES), "", "asks for more than can be counted")
        return found

    def _texts(self, cells: Mapping[str, str], job: str) -> dict[str, str]:
        texts = {name: text for name in ("queue", "user") if (text := self._text(name, cells))}
        priority = self._value("priority", cells)
        if priority is not None:
            if not PRIORITY_MIN <= priority <= PRIORITY_MAX:
                raise Wrong(self._called("priority"), str(priority), f"is not {PRIORITY_MIN} to {PRIORITY_MAX}")
            texts["priority"] = str(priority)
        if job:
            # Parts of an array belong together.
            texts["job"] = job.partition("_")[0] if re.fullmatch(r"\d+_\d+", job) else job
        return texts

    def _value(self, field: str, cells: Mapping[str, str]) -> Any:
        """The value of a field; None where nothing is said. Raises `Wrong`."""
        source = self.mapped.get(field)
        if source is None:
            return None
        text = source.text(cells)
        if text.lower() in NONE:
            return None
        try:
            return self._read[field](text)
        except Unreadable as e:
            raise Wrong(source.called(), text, str(e)) from None

    def _text(self, field: str, cells: Mapping[str, str]) -> str:
        source = self.mapped.get(field)
        text = source.text(cells) if source is not None else ""
        return "" if text.lower() in NONE else str(self._read[field](text))

    def _called(self, field: str) -> str:
        source = self.mapped.get(field)
        return source.called() if source is not None else field


_STEP = re.compile(r"\d+(_\d+)?(\+\d+)?\.(\d+(\+\d+)?|batch|extern|interactive)")
"""A step of Slurm; `4711.pbs01` is a job of PBS, whose keys name the server."""
_EPOCH_LEAST_MS = 100_000_000_000
_RUNS = re.compile(r"running|suspended", re.IGNORECASE)
_CANCELLED = re.compile(r"cancel|pending|rejected|node_fail|revoked", re.IGNORECASE)
