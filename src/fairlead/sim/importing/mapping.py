"""Mapping: which column of a foreign table is which field of a task, and in which unit.

Decides by the names of columns, by the words in them, and by whether their texts are of that kind; what somebody says
(`FIELD=COLUMN:UNIT`) counts more. Never reads a whole file. Invariant: a field that is mapped can be read in nearly all
rows of the sample; each guess is marked as one.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain
from math import log2

from fairlead.core.model.quantities import resource_called
from fairlead.core.model.specs import PRIORITY_MAX, PRIORITY_MIN
from fairlead.sim.importing.quantities import DURATIONS, Unreadable, part_of
from fairlead.sim.importing.records import Record
from fairlead.sim.importing.units import AS_IT_IS, NONE, UNITS, Kind, Unit, are_read, reader, unit_of, words_of
from fairlead.sim.workloads.table import is_known, meant

CORES, MEMORY, GPU = "resources.vcore", "resources.memory", "resources.gpu"
FIELDS: dict[str, Kind] = {
    "time": Kind.MOMENT,
    "start": Kind.MOMENT,
    "end": Kind.MOMENT,
    "run": Kind.DURATION,
    CORES: Kind.CORES,
    MEMORY: Kind.MEMORY,
    GPU: Kind.WHOLE,
    "nodes": Kind.WHOLE,
    "count": Kind.WHOLE,
    "queue": Kind.TEXT,
    "user": Kind.TEXT,
    "job": Kind.TEXT,
    "priority": Kind.WHOLE,
    "time_limit": Kind.DURATION,
    "state": Kind.TEXT,
}
"""Of a task. `start`, `end`, `nodes` and `state` serve to work out the others."""
_NAMES: dict[str, str] = {
    "time": "submit submittime submitted submission submissiontime submitdate created creationtime creationtimestamp "
    "createdat queued queuedat arrival arrivaltime requesttime qtime qdate qsubtime timestamp time date",
    "start": "start starttime started startedat startdate begin begintime scheduledtime",
    "end": "end endtime ended endedat enddate finished finishtime finishedat finish completed completiontime "
    "deletiontime stop stoptime",
    "run": "elapsedraw elapsed run runtime duration wallclock jobduration executiontime resourcesusedwalltime "
    "walltimeused remotewallclocktime",
    CORES: "alloccpus cpumilli requestedprocessors allocatedprocessors reqcpus cpus ncpus cores cpu vcpus vcore vcores "
    "numcpus numcpu ncpu cpucount procs processors nprocs nproc slots resourcelistncpus corecount numcores ncores "
    "ncore reqcores requestedcores requestedcpus",
    MEMORY: "reqmem memory mem ram memorymib memreq requestedmemory usedmemory memoryrequest resourcelistmem",
    GPU: "gpus gpu ngpus numgpu numgpus reqgpus gpucount resourcelistngpus",
    "nodes": "nnodes allocnodes nodes nodecount reqnodes resourcelistnodect",
    "count": "count replicas instances copies",
    "queue": "queue queuename queueid partition class account accountname project team group groupname "
    "dept department division lab",
    "user": "user username owner uid submitter login userid who",
    "job": "jobid jobidraw job application applicationid appid jobnumber jobno jobnum id",
    "priority": "priority prio",
    "time_limit": "timelimit timelimitraw limit walltime requestedtime reqtime resourcelistwalltime "
    "wallclocklimit maxruntime reqwall reqwalltime requestedwalltime walltimelimit maxwalltime",
    "state": "state applicationstate status jobstate phase jobstatus",
}
"""By field the names that are told for it, the best first, in small letters and without what stands between."""
_WORDS: dict[str, str] = {
    "time": "submit submitted submission created creation queued arrival",
    "start": "start started begin began",
    "end": "end ended finish finished completed completion",
    "run": "elapsed duration runtime runtimes ran",
    CORES: "cpu cpus core cores vcpus vcores slots",
    MEMORY: "mem memory ram",
    GPU: "gpu gpus",
    "queue": "queue partition",
    "user": "user owner",
    "time_limit": "limit walltime",
    "state": "state status",
}
"""A word in the name of a column that is enough, where no name is."""
_USED = frozenset(
    (
        *("used", "usage", "utilization", "utilisation", "avg", "average", "max", "peak", "efficiency", "percent"),
        *("pct", "rss", "hours", "seconds", "time", "id"),
    )
)
"""Words that make something else of `cpu` or `memory`: what was used of it is not what was asked for."""
_INSIDE = {CORES: "cpu", MEMORY: "mem", GPU: "gres/gpu"}
_TRES = ("alloctres", "reqtres")


@dataclass(frozen=True, slots=True)
class Source:
    """Where a field comes from."""

    columns: tuple[str, ...] = ()
    """The first that is not empty in a row counts."""
    unit: Unit = AS_IT_IS
    key: str = ""
    """One of several amounts in a cell."""
    value: str | None = None
    """The same in all rows, instead of a column."""
    each: str = ""
    """Memory: `c` for each core, `n` for each node; empty: in all, where the text does not say so itself."""

    def text(self, cells: Mapping[str, str]) -> str:
        """The text of a row; empty where there is none."""
        if self.value is not None:
            return self.value
        for column in self.columns:
            found = cells.get(column, "")
            if found and (not self.key or (found := part_of(found, self.key))):
                return found
        return ""

    def called(self) -> str:
        """The column as it is typed."""
        if self.value is not None:
            return f"always {self.value}"
        return "|".join(self.columns) + (f"[{self.key}]" if self.key else "")


Mapped = dict[str, Source]


class MappingError(ValueError):
    """What was said of a column makes no sense."""


def guessed(columns: Sequence[str], sample: Sequence[Record]) -> Mapped:
    """What each field most likely is."""
    found: Mapped = {}
    free = dict.fromkeys(columns)
    for field, kind in FIELDS.items():
        source = _best(field, kind, list(free), sample)
        if source is not None:
            found[field] = source
            if not source.key:
                for column in source.columns:
                    free.pop(column, None)
    if not any(field in found for field in _INSIDE):
        found[CORES] = Source(value="1", unit=Unit("cores", known=False))
    in_order = {field: found[field] for field in FIELDS if field in found}
    return by_comparison(_dated_alike(in_order, sample), sample)


def _dated_alike(mapped: Mapped, sample: Sequence[Record]) -> Mapped:
    """Dates whose form is only guessed are written as those whose form is sure: one table has one form."""
    dates = {field: source for field, source in mapped.items() if kind_of(field) is Kind.MOMENT}
    sure = [source.unit for source in dates.values() if source.unit.known and "%" in source.unit.name]
    for field, source in dates.items():
        if not source.unit.known:
            texts = _texts(source, sample)
            form = next((unit for unit in sure if are_read(Kind.MOMENT, unit.name, texts)), source.unit)
            mapped = mapped | {field: replace(source, unit=form)}
    return mapped


def by_comparison(mapped: Mapped, sample: Sequence[Record]) -> Mapped:
    """Units of durations that are only guessed, told by others: a run ends when it ends, and within its time limit."""
    for field in ("run", "time_limit"):
        source = mapped.get(field)
        if source is None or source.unit.known or source.unit.name not in DURATIONS:
            continue
        fits = {unit: _off(mapped | {field: replace(source, unit=Unit(unit))}, field, sample) for unit in DURATIONS}
        best = min(fits, key=lambda unit: fits[unit])
        if fits[best] < FAR:
            is_measured = field == "run" and {"start", "end"} <= mapped.keys()
            mapped = mapped | {field: replace(source, unit=Unit(best, known=is_measured))}
    return mapped


FAR = 1e9


def _off(mapped: Mapped, field: str, sample: Sequence[Record]) -> float:
    """How little a unit agrees with the other columns; `FAR` where it cannot be so, or nothing tells."""
    found = []
    for each in sample:
        run, limit = (_read(mapped, name, each) for name in ("run", "time_limit"))
        start, end = (_read(mapped, name, each) for name in ("start", "end"))
        if field == "run" and run and start and end and end > start:
            found.append(abs(log2(run / (end - start))))
        elif run and limit and not (field == "run" and "start" in mapped and "end" in mapped):
            found.append(abs(log2(run / limit)) if run <= 1.05 * limit else FAR)
    if not found:
        return FAR
    found.sort()
    return found[len(found) // 2] if found[int(0.9 * (len(found) - 1))] < FAR else FAR


def _read(mapped: Mapped, field: str, record: Record) -> float | None:
    source = mapped.get(field)
    text = source.text(record.cells) if source is not None else ""
    if source is None or text.lower() in NONE:
        return None
    try:
        return float(reader(kind_of(field), source.unit.name)(text))
    except Unreadable:
        return None


def _best(field: str, kind: Kind, columns: Sequence[str], sample: Sequence[Record]) -> Source | None:
    if kind is Kind.WHOLE:
        # Thousandths of a GPU are no number of them.
        columns = [column for column in columns if "milli" not in words_of(column)]
    tres = [column for name in _TRES for column in columns if _plain(column) == name] if field in _INSIDE else []
    if tres and any(Source(tuple(tres), key=_INSIDE[field]).text(each.cells) for each in sample):
        tried = Source(tuple(tres), key=_INSIDE[field])
        unit = unit_of(kind, tried.columns[0], _texts(tried, sample))
        if unit is not None:
            return Source(tried.columns, unit, tried.key)
    names = (_plain(field), *_NAMES[field].split())
    named = [column for name in dict.fromkeys(names) for column in columns if _plain(column) == name]
    words = frozenset(_WORDS.get(field, "").split())
    likely = [
        column
        for column in columns
        if column not in named and words & set(words_of(column)) and not _is_about_something_else(field, column)
    ]
    fitting = []
    for column in chain(named, likely):
        texts = _texts(Source((column,)), sample)
        unit = unit_of(kind, column, texts)
        if texts and unit is not None and (field != "priority" or _are_priorities(texts)):
            fitting.append(Source((column,), unit))
    if not fitting:
        return None
    first = fitting[0]
    # What was granted, and where that is not known what was asked for.
    others = [each.columns[0] for each in fitting[1:] if each.unit == first.unit and each.columns[0] in named]
    if field not in _INSIDE:
        return first
    return Source((*first.columns, *others), first.unit, each=_each(first.columns[0]) if field == MEMORY else "")


PRIORITIES_MAX = 50
"""So many different ones people give at most."""


def _are_priorities(texts: Sequence[str]) -> bool:
    """Whether somebody gave them: few, and all within bounds. What a scheduler worked out by itself from age and shares
    (Slurm's has another value for each job, and goes to 2**32) would decide the order under each rule that is tried.
    """
    numbers = {int(text) for text in texts if re.fullmatch(r"-?\d{1,19}", text)}
    return len(numbers) <= PRIORITIES_MAX and all(PRIORITY_MIN <= number <= PRIORITY_MAX for number in numbers)


def _each(column: str) -> str:
    """What memory is counted for, by the name of its column; that of the Standard Workload Format: for each core."""
    words = words_of(column)
    if words in (["requested", "memory"], ["used", "memory"]):
        return "c"
    after = words[words.index("per") + 1 :] if "per" in words else []
    return "c" if {"cpu", "core", "proc"} & set(after) else "n" if "node" in after else ""


def _is_about_something_else(field: str, column: str) -> bool:
    words = set(words_of(column))
    return field in (CORES, MEMORY, GPU) and bool(words & _USED)


def _plain(column: str) -> str:
    """The name in small letters, without its unit."""
    words = words_of(column)
    while len(words) > 1 and words[-1] in _UNIT_WORDS:
        words.pop()
    return "".join(words)


_UNIT_WORDS = frozenset(
    (
        *("s", "sec", "secs", "seconds", "min", "mins", "minutes", "h", "hr", "hrs", "hours", "d", "days", "ms", "us"),
        *("ns", "b", "bytes", "kb", "mb", "gb", "tb", "kib", "mib", "gib", "tib", "utc", "milli"),
    )
)


def _texts(source: Source, sample: Sequence[Record]) -> list[str]:
    return [text for each in sample if (text := source.text(each.cells))]


# -- what is said --------------------------------------------------------------------------------------------------


def said(mapped: Mapped, text: str, columns: Sequence[str], sample: Sequence[Record]) -> Mapped:
    """The mapping with one correction: `FIELD=COLUMN`, `FIELD=COLUMN:UNIT`, `FIELD=COLUMN|COLUMN`, `FIELD=` (not read),
    `FIELD:UNIT` (the same column).

    Raises `MappingError` with what there is.
    """
    field, equals, rest = text.partition("=")
    unit = ""
    if not equals:
        field, _, unit = text.partition(":")
    field = _field(field.strip())
    if not equals:
        if field not in mapped or not unit:
            raise MappingError(f"{text!r}: write FIELD=COLUMN, or FIELD:UNIT for a field that has a column already")
        return mapped | {field: _with_unit(mapped[field], field, unit.strip(), sample)}
    if not rest.strip():
        return {name: source for name, source in mapped.items() if name != field}
    named, unit = _parted(rest.strip(), columns)
    named, _, key = named.partition("[") if named.endswith("]") else (named, "", "")
    source = Source(tuple(_column(name.strip(), columns) for name in named.split("|")), key=key.rstrip("]"))
    changed = _with_unit(source, field, unit.strip(), sample)
    return {name: (mapped | {field: changed})[name] for name in _in_order({**mapped, field: changed})}


def _parted(text: str, columns: Sequence[str]) -> tuple[str, str]:
    """Column and unit. Either may have colons (`Submit: date`, `%H:%M`, `h:mm`): the longest that are columns count."""
    known = {column.lower() for column in columns}
    parts = text.split(":")
    for end in range(len(parts), 0, -1):
        named = ":".join(parts[:end])
        plain = named.partition("[")[0] if named.endswith("]") else named
        if all(name.strip().lower() in known for name in (plain if named.lower() not in known else named).split("|")):
            return named, ":".join(parts[end:])
    named, _, unit = text.partition(":")
    return named, unit


def fixed(mapped: Mapped, text: str) -> Mapped:
    """The mapping with a field that is the same in all rows: `FIELD=VALUE`."""
    field, equals, value = text.partition("=")
    if not equals or not value.strip():
        raise MappingError(f"{text!r}: write FIELD=VALUE, such as queue=root.batch or resources.vcore=1")
    field = _field(field.strip())
    both = mapped | {field: Source(value=value.strip(), unit=unit_of(kind_of(field), "", [value.strip()]) or Unit(""))}
    return {name: both[name] for name in _in_order(both)}


def kind_of(field: str) -> Kind:
    """What a field is; resources that are not named here are whole numbers."""
    return FIELDS.get(field, Kind.WHOLE)


def _in_order(mapped: Mapped) -> Iterator[str]:
    yield from (name for name in FIELDS if name in mapped)
    yield from (name for name in mapped if name not in FIELDS)


def _field(name: str) -> str:
    if name in FIELDS:
        return name
    resource = f"resources.{resource_called(name.removeprefix('resources.'))}"
    if resource in FIELDS:
        return resource
    if name.startswith("resources."):
        if not is_known(name):
            raise MappingError(f"a table has no {name!r}; was {meant(name, ()) or 'resources.NAME'} meant?")
        return name
    like = [field for field, names in _NAMES.items() if "".join(words_of(name)) in names.split()]
    alike = like[0] if like else meant(name, ())
    hint = f"; was {alike} meant? The" if alike else ": the"
    raise MappingError(f"there is no field {name!r}{hint} fields are {', '.join(FIELDS)}, resources.NAME")


def _column(name: str, columns: Sequence[str]) -> str:
    if name in columns:
        return name
    alike = [c for c in columns if c.lower() == name.lower()] or difflib.get_close_matches(name, columns, 1)
    if len(alike) == 1 and alike[0].lower() == name.lower():
        return alike[0]
    hint = f"was {alike[0]!r} meant?" if alike else f"there are {', '.join(columns[:20])}"
    raise MappingError(f"there is no column {name!r}; {hint}")


def _with_unit(source: Source, field: str, unit: str, sample: Sequence[Record]) -> Source:
    kind, texts = kind_of(field), _texts(source, sample)
    if unit:
        known = UNITS.get(kind, ())
        if unit not in known and not (kind is Kind.MOMENT and "%" in unit):
            forms = ", or a form such as %d.%m.%Y %H:%M" if kind is Kind.MOMENT else ""
            raise MappingError(
                f"{field}: {unit!r} is no unit of {kind}; write one of {', '.join(known) or 'none'}{forms}"
            )
        if kind is Kind.MOMENT and "%" in unit and not _is_form(unit):
            raise MappingError(f"{field}: {unit!r} is no form of a date; write one such as %d.%m.%Y %H:%M:%S")
        return replace(source, unit=Unit(unit))
    found = unit_of(kind, source.columns[0] if source.columns else "", texts)
    if found is None:
        shown = ", ".join(repr(text) for text in texts[:3])
        raise MappingError(f"{field}: column {source.called()!r} does not hold {kind}: {shown}")
    return replace(source, unit=found)


def _is_form(unit: str) -> bool:
    """Whether a date that is written so can be read so: `%H:%m` has the month twice, and `%-d` cannot be read."""
    try:
        datetime.strptime(_SOME_DAY.strftime(unit), unit)  # noqa: DTZ007 - only whether it can be read counts
    except (ValueError, re.error):
        return False
    return True


_SOME_DAY = datetime(2026, 5, 17, 13, 45, 1, tzinfo=UTC)
