"""Commands about the journal: journal verify, replay, events, show, cut.

Decides how its records look to people. Never changes a journal, `cut` apart. Invariant: they read the file itself, so
they work with and without a running service.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairlead.cli import past, render
from fairlead.cli.app import FAILED, Failure, Group, Status, complain, report_output, show_output
from fairlead.core.model.quantities import format_bytes
from fairlead.core.model.resources import INT64_MAX
from fairlead.places import journal_file

if TYPE_CHECKING:
    from fairlead.journal.format import Record


path_argument = click.argument(
    "path",
    type=click.Path(path_type=Path),
    required=False,
    metavar="[PATH]",
    help="The journal file, or the state directory it is in; the usual state directory if left out.",
)

_SEQ = click.IntRange(1, INT64_MAX)
"""What a journal can count."""

journal = Group("journal", help="Check, replay and read the journal of a service.")


@contextmanager
def _plainly() -> Iterator[None]:
    """Turn what the journal complains about into a failed command."""
    from fairlead.journal.format import JournalError

    try:
        yield
    except JournalError as error:
        raise Failure(str(error)) from None


@journal.command("verify", examples="fairlead journal verify\nfairlead journal verify .fairlead")
@path_argument
@show_output
def verify(path: Path | None, output: str) -> Status:
    """Check that a journal is what was written.

    Every checksum, the chain of records, gaps, snapshots and the file itself. It may be in use. Exit status 1 if
    anything is wrong.
    """
    from dataclasses import asdict

    from fairlead.journal.verify import verify as check

    with _plainly():
        result = check(journal_file(path))
    if render.write_value(asdict(result) | {"ok": result.ok, "notes": result.notes()}, output):
        return None if result.ok else FAILED
    for problem in result.problems:
        print(render.plain(f"{f'record {problem.seq} ' if problem.seq else ''}{problem.what}"))
    if not result.ok:
        recovery = (
            "recovery would fail" if result.recovery_from is None else f"recovery begins after {result.recovery_from}"
        )
        complain(f"{result.path} is damaged: {_count(len(result.problems))}; {recovery}")
        return FAILED
    sizes = result.sizes
    if sizes is not None:
        render.fields(
            render.Screen.of(),
            [
                ("journal", result.path),
                ("records", f"{sizes.records} ({sizes.first_seq} to {sizes.last_seq}), all good"),
                ("snapshots", ", ".join(f"after {seq}" for seq in result.snapshots) or "none"),
                ("size", format_bytes(sizes.database_bytes + sizes.wal_bytes)),
                ("recovery", f"begins after record {result.recovery_from}"),
                ("SQLite", f"{result.sqlite_version}, {result.journal_mode}, format {result.format}"),
                ("notes", "\n".join(result.notes())),
            ],
        )
    return None


def _count(problems: int) -> str:
    return "1 problem" if problems == 1 else f"{problems} problems"


@journal.command("replay", examples="fairlead journal replay\nfairlead journal replay --from-snapshot")
@path_argument
@click.option("--from-snapshot", is_flag=True, help="Begin with the newest snapshot instead of the start.")
@click.option("--to", type=_SEQ, metavar="SEQ", help="End with this record.")
@show_output
def replay(path: Path | None, from_snapshot: bool, to: int | None, output: str) -> Status:
    """Decide everything again and compare with what was decided.

    Exit status 1 at the first decision or state that differs.
    """
    from dataclasses import asdict

    from fairlead.journal.reader import Reader
    from fairlead.journal.replay import replay as again
    from fairlead.scheduler import Scheduler

    with _plainly(), Reader(journal_file(path)) as reader, _progress(reader.last_seq) as progress:
        result = again(
            reader,
            lambda state: Scheduler.load(dict(state)) if state else Scheduler(),
            from_snapshot=from_snapshot,
            to_seq=to,
            progress=progress,
        )
    if render.write_value(asdict(result) | {"ok": result.ok}, output):
        pass
    elif result.difference is not None:
        print(render.plain(result.difference.sentence()))
    else:
        same = (
            f"; equal to the snapshots after {', '.join(map(str, result.snapshots_equal))}"
            if result.snapshots_equal
            else ""
        )
        print(
            f"{result.decisions} decisions of {result.events} events and {result.schedules} scheduling runs are as "
            f"recorded{same}"
        )
        print(f"records {result.first_seq} to {result.last_seq}, state {result.state_digest}")
    return None if result.ok else FAILED


@contextmanager
def _progress(last: int) -> Iterator[Callable[[int], None] | None]:
    """A progress bar on standard error, if that is a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("replaying", total=last)
        yield lambda seq: bar.update(task, completed=seq) if seq % 64 == 0 or seq == last else None


@journal.command("events", examples="fairlead journal events --from 100 --to 120\nfairlead journal events --json")
@path_argument
@click.option("--from", "first", type=_SEQ, default=1, metavar="SEQ", help="Begin with this record.")
@click.option("--to", "last", type=_SEQ, metavar="SEQ", help="End with this record.")
@click.option(
    "--kind",
    "-k",
    type=click.Choice(["event", "schedule", "note"]),
    multiple=True,
    metavar="KIND",
    help="Only event, schedule or note; may be repeated.",
)
@report_output
def events(path: Path | None, first: int, last: int | None, kind: tuple[str, ...], output: str) -> None:
    """Print the records: what happened, and what was decided.

    A line for each record, and one for each decision that followed from it. With --json one JSON object a line.
    """
    from fairlead.journal.reader import Reader

    with _plainly(), Reader(journal_file(path)) as reader:
        for record in reader.records(first, last, kinds=kind or None):
            _print_record(record, output == "json")


def _print_record(record: Record, as_json: bool) -> None:
    import json

    payload, outcome = _decoded(record.payload), _decoded(record.outcome)
    if as_json:
        shown = {"seq": record.seq, "at_ms": record.at_ms, "kind": record.kind, "payload": payload, "outcome": outcome}
        print(json.dumps(shown, sort_keys=True, ensure_ascii=False))
        return
    print(render.plain(f"{record.seq}  {render.moment(record.at_ms)}  {record.kind}  {_short(payload)}"))
    for decision in outcome if isinstance(outcome, list) else ():
        print(render.plain(f"    {_short(decision)}"))


def _decoded(content: bytes) -> Any:
    import json

    try:
        return json.loads(content) if content else None
    except ValueError:
        return content.decode("utf-8", "backslashreplace")


def _short(value: Any) -> str:
    """`Tag name=value …` for a tagged object, without what is empty."""
    from fairlead.journal.codec import TAG

    if not isinstance(value, dict):
        return render.NONE if value is None else str(value)
    tag = str(value.get(TAG, ""))
    rest = " ".join(f"{k}={_value(v)}" for k, v in value.items() if v not in (None, "", [], {}) and k != TAG)
    return f"{tag} {rest}".strip()


def _value(value: Any) -> str:
    import json

    text = (
        value
        if isinstance(value, str) and value.isprintable() and " " not in value
        else json.dumps(value, sort_keys=True)
    )
    return render.cut(text, 200)


@journal.command("cut", examples="fairlead journal cut --from 812")
@click.option("--from", "first", type=_SEQ, required=True, metavar="SEQ", help="The first record to put aside.")
@path_argument
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
def cut(first: int, path: Path | None, yes: bool) -> None:
    """Put records aside from one on, to save a damaged journal.

    They stay in the file, but are history no longer. The service must not be running.
    """
    from fairlead.journal.store import cut_off

    file = journal_file(path)
    if not yes and not click.confirm(f"Give up all that happened from record {first} of {file} on?"):
        raise Failure("nothing was changed")
    with _plainly():
        count = cut_off(file, first)
    print(f"{count} records put aside; history ends with record {first - 1}")


journal.add_command(past.at)
