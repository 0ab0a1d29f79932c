"""`fairlead sim import`: a table or log of another system, made into one that simulations read.

Decides how what was guessed is shown and asked, and when nothing is written. Never reads a cell itself
(`sim.importing` does). Invariant: nothing is written before somebody agreed, on the terminal or by --yes; what is wrong
is said once for each kind, with counts.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from fairlead.cli import render
from fairlead.cli.app import FAILED, Failure, Status, command, wrong_usage

if TYPE_CHECKING:
    from datetime import tzinfo

    from fairlead.sim.importing.importing import Account
    from fairlead.sim.importing.mapping import Mapped
    from fairlead.sim.importing.records import Record, Records

_EXAMPLES = """
fairlead sim import jobs.csv
sacct -a -S 2026-05-01 -E 2026-06-01 -P -o ALL | fairlead sim import - --zone Europe/Berlin --yes
kubectl get pods -A -o json > pods.json; fairlead sim import pods.json --out tasks.csv --yes
fairlead sim import export.csv --map 'run=Dauer:min' --map 'memory:GB' --set queue=root.batch
"""
_TOO_MANY = 0.1
"""If more of the rows than this are wrong, the mapping most likely is."""
_ROWS = 3


@command("import", examples=_EXAMPLES)
@click.argument(
    "file",
    metavar="FILE",
    help="CSV, JSON, JSON lines, SWF, sacct, PBS, Kubernetes or YuniKorn (.gz too); - is standard input.",
)
@click.option(
    "--out", "-o", default="tasks.csv", metavar="FILE", help="The table (.csv) to write; - is standard output."
)
@click.option(
    "--map",
    "-m",
    "maps",
    multiple=True,
    metavar="FIELD=COLUMN[:UNIT]",
    help="Which column a field is, in which unit; FIELD:UNIT for the unit alone, FIELD= for none. May be repeated.",
)
@click.option("--set", "sets", multiple=True, metavar="FIELD=VALUE", help="A field that is the same in all rows.")
@click.option("--zone", default="UTC", metavar="ZONE", help="Of dates that name none, such as Europe/Berlin.")
@click.option(
    "--queue-file", default="", metavar="FILE", help="Also write a queue file with the queues that there are."
)
@click.option("--skip-bad", is_flag=True, help="Write the table even if more than a tenth of the rows is wrong.")
@click.option("--yes", "-y", is_flag=True, help="Ask nothing: the guess is right.")
def sim_import(
    file: str, out: str, maps: Sequence[str], sets: Sequence[str], zone: str, queue_file: str, skip_bad: bool, yes: bool
) -> Status:
    """Make a table for simulations of whatever another system wrote.

    What the columns are is guessed, with their units, and shown with three rows; a * marks what is less than sure. On a
    terminal you are asked, and can correct it; else nothing is written without --yes. Rows that cannot be used are left
    out and counted by what is wrong with them.
    """
    from fairlead.sim.importing.importing import sample_of
    from fairlead.sim.importing.mapping import MappingError, fixed, guessed, said
    from fairlead.sim.importing.records import opened
    from fairlead.sim.rows import TraceError, sentence

    timezone = _timezone(zone)
    if out != "-" and not out.endswith(".csv"):
        raise wrong_usage(f"--out {out}: the simulator knows a table by its name; give one that ends in .csv, or -")
    try:
        records = opened(_kept(file))
        sample, count = sample_of(records)
        mapped = guessed(records.columns, sample)
        for text in maps:
            mapped = said(mapped, text, records.columns, sample)
        for text in sets:
            mapped = fixed(mapped, text)
        told = sys.stderr if out == "-" else sys.stdout
        print(f"{Path(file).name}: {records.form}, {_counted(count, 'row')}", file=told)
        mapped = _agreed(records, sample, mapped, zone, yes, told)
        return _written(records, mapped, timezone, out, queue_file, skip_bad, told)
    except MappingError as e:
        raise wrong_usage(str(e)) from None
    except (TraceError, OSError) as e:
        raise Failure(f"cannot import: {sentence(e)}") from None


def _kept(file: str) -> str:
    """The file; standard input (`-`) as one that can be read twice, gone with this process."""
    if file != "-":
        return file
    import atexit
    import shutil
    import tempfile

    with tempfile.NamedTemporaryFile(prefix="fairlead-", delete=False) as copy:
        atexit.register(os.unlink, copy.name)
        shutil.copyfileobj(sys.stdin.buffer, copy)
    return copy.name


def _timezone(name: str) -> tzinfo:
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise wrong_usage(f"--zone: there is no zone {name!r}; write UTC, or one such as Europe/Berlin") from None


# -- what is shown and asked ---------------------------------------------------------------------------------------


def _agreed(records: Records, sample: Sequence[Record], mapped: Mapped, zone: str, yes: bool, told: TextIO) -> Mapped:
    """The mapping that somebody agreed to. Raises `Failure` if nobody can be asked, or the answer is no."""
    from fairlead.sim.importing.mapping import MappingError, said

    while True:
        _show(records, sample, mapped, zone, told)
        missing = _missing(mapped)
        if yes and not missing:
            return mapped
        if missing and not _is_terminal():
            raise Failure(f"no column says {missing}: say it by --map FIELD=COLUMN", FAILED)
        if not _is_terminal():
            raise Failure("nothing is written: say --yes if this is right, else --map FIELD=COLUMN:UNIT", FAILED)
        answer = click.prompt("Is this right? yes, no, or a correction such as run=COLUMN:min").strip()
        if answer.lower() in ("n", "no", "q"):
            raise Failure("nothing is written", FAILED)
        if answer.lower() in ("y", "yes") and not missing:
            return mapped
        try:
            mapped = said(mapped, answer, records.columns, sample)
        except MappingError as e:
            print(f"{e}", file=told)


def _is_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def _missing(mapped: Mapped) -> str:
    if "time" not in mapped and "start" not in mapped:
        return "when a task was submitted (time)"
    if "run" not in mapped and not {"start", "end"} <= mapped.keys():
        return "how long a task ran (run, or start and end)"
    return ""


def _show(records: Records, sample: Sequence[Record], mapped: Mapped, zone: str, out: TextIO) -> None:
    """The fields with their columns, units and some rows."""
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("field", "column", "read as", *(f"row {n}" for n in range(1, min(_ROWS, len(sample)) + 1))):
        table.add_column(name, overflow="fold")
    for field, source in mapped.items():
        texts = [source.text(record.cells) for record in sample[:_ROWS]]
        shown = (source.called(), _unit_said(field, mapped, sample, zone), *(_meant(field, mapped, t) for t in texts))
        table.add_row(field, *map(render.plain, shown))
    Console(file=out, width=None if out.isatty() else 140, highlight=False, markup=False).print(table)
    read = {column for source in mapped.values() for column in source.columns}
    if unread := [column for column in records.columns if column not in read]:
        more = f" and {len(unread) - 20} more" if len(unread) > 20 else ""
        print(f"not read: {render.plain(', '.join(unread[:20]))}{more}", file=out)
    if any(not source.unit.known for source in mapped.values()):
        print("* guessed: look at it", file=out)


def _unit_said(field: str, mapped: Mapped, sample: Sequence[Record], zone: str) -> str:
    from fairlead.sim.importing.mapping import kind_of
    from fairlead.sim.importing.units import NONE, Kind

    source = mapped[field]
    words = source.unit.name or "as it is"
    texts = [text for record in sample if (text := source.text(record.cells)).lower() not in NONE]
    if (
        texts
        and not any(text[-1].isdigit() and ":" not in text for text in texts)
        and kind_of(field) in (Kind.DURATION, Kind.MEMORY)
    ):
        words = "as written"
    if kind_of(field) is Kind.MOMENT and ("%" in words or words == "date"):
        words += f", {zone} where it names no zone"
    words += {"c": " for each core", "n": " for each node"}.get(source.each, "")
    return words if source.unit.known else f"{words} *"


def _meant(field: str, mapped: Mapped, text: str) -> str:
    """A cell as it is, and what it is taken for where that is not the same."""
    from fairlead.core.model.quantities import format_amount
    from fairlead.sim.importing.mapping import kind_of
    from fairlead.sim.importing.quantities import Unreadable
    from fairlead.sim.importing.units import NONE, Kind, reader
    from fairlead.times import duration_exactly

    if text.lower() in NONE:
        return text or "-"
    kind = kind_of(field)
    try:
        value = reader(kind, mapped[field].unit.name)(text)
    except Unreadable as e:
        return f"{text} ({e})"
    if kind is Kind.DURATION:
        return f"{text} = {duration_exactly(value)}"
    if kind is Kind.MEMORY:
        return f"{text} = {format_amount('memory', value[0])}"
    if kind is Kind.CORES and mapped[field].unit.name == "milli":
        return f"{text} = {format_amount('vcore', value)}"
    return text


# -- what is written -----------------------------------------------------------------------------------------------


def _written(
    records: Records, mapped: Mapped, zone: tzinfo, out: str, queue_file: str, skip_bad: bool, told: TextIO
) -> Status:
    from fairlead.sim import jobs
    from fairlead.sim.importing.importing import doubts, write
    from fairlead.sim.rows import sentence

    beside = Path(f"{out}.part") if out != "-" else None
    if beside is None:
        account = write(records, mapped, zone, sys.stdout)
    else:
        with beside.open("w", encoding="utf-8") as file:
            account = write(records, mapped, zone, file)
    too_many = account.wrong > _TOO_MANY * (account.rows + account.wrong) and not skip_bad
    if beside is not None:
        if too_many or not account.rows:
            beside.unlink()
        else:
            beside.replace(out)
    _say_errors(account, told)
    if not account.rows:
        raise Failure("no row is a task: nothing is written; is the mapping right? (--map)", FAILED)
    if too_many:
        raise Failure("nothing is written: more than a tenth of the rows is wrong; mend the mapping, or --skip-bad")
    for doubt in doubts(account, mapped):
        print(f"look at this: {doubt}", file=told)
    if queue_file:
        try:
            Path(queue_file).write_text(jobs.queue_file(account.queues), encoding="utf-8")
        except OSError as e:
            raise Failure(f"{out} is written, and its queue file is not: {sentence(e)}") from None
    if beside is not None:
        _say_what_next(account, out, "as recorded" if "start" in mapped else "had each begun when it came")
    return None


def _say_errors(account: Account, out: TextIO) -> None:
    for reason, count in account.left_out.most_common():
        print(f"left out: {count:,} ({reason})", file=out)
    for (column, hint), group in sorted(account.errors.items(), key=lambda each: -each[1].count):
        where = f"{render.plain(column)} " if column else ""
        shown = ", ".join(f"line {line}{f' ({value!r})' if value else ''}" for line, value in group.examples)
        more = ", ..." if group.count > len(group.examples) else ""
        print(f"wrong: {group.count:,} ({where}{hint}): {shown}{more}", file=out)


def _say_what_next(account: Account, out: str, how: str) -> None:
    from fairlead.core.model.quantities import format_amounts
    from fairlead.sim.importing.importing import date, machines_for, peak
    from fairlead.times import duration

    first, last = min(account.at), max(account.at)
    since = (
        f", from {date(first)[:10]} to {date(last)[:10]}" if account.is_dated else f", over {duration(last - first)}"
    )
    tasks, rows = _counted(account.tasks, "task"), _counted(account.rows, "row")
    print(f"{out}: {tasks} in {rows}{since}, in {_counted(len(account.queues), 'queue')}")
    print(f"in use at once, at most, {how}: {format_amounts(peak(account))}")
    print(f"next: fairlead sim run --workload {shlex.quote(out)} --nodes '{machines_for(account)}'")


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
