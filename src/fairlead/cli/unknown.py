"""`fairlead unknown`: runs that go on and are not in the journal.

Decides how they are shown. Never ends one without being told which.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import click

from fairlead.cli import render
from fairlead.cli.app import command, connected, list_output
from fairlead.cli.render import NONE, Column, Columns
from fairlead.cli.values import parse_duration
from fairlead.client.sync import Client

if TYPE_CHECKING:
    from fairlead.wire.unknown_runs import UnknownRun

_COLUMNS: Columns[UnknownRun] = (
    (Column("RUN"), lambda each: each.run),
    (Column("USER"), lambda each: each.user),
    (Column("PID", right=True), lambda each: str(each.pid or NONE)),
    (Column("SINCE"), lambda each: render.moment(each.started_at_ms)),
    (Column("HOLDS", least=10), lambda each: render.amounts(each.resources) or NONE),
    (Column("GPUS", drop=1), lambda each: ",".join(map(str, each.gpus)) or NONE),
    (Column("COMMAND", least=16), lambda each: shlex.join(each.command) or NONE),
)


_EXAMPLES = """
fairlead unknown
fairlead unknown --stop 12-1 13-1
fairlead unknown --stop 12-1 --grace 0
"""


@command("unknown", examples=_EXAMPLES)
@click.argument("runs", nargs=-1, metavar="[RUN...]", help="Only these.")
@click.option("--stop", is_flag=True, help="End these runs.")
@click.option("--grace", default="30s", metavar="TIME", help="From SIGTERM to SIGKILL.")
@list_output
@connected
def unknown(client: Client, runs: tuple[str, ...], stop: bool, grace: str, output: str) -> None:
    """List runs that go on and are not in the journal, or end them.

    There are such runs only where records of the journal were given up (`fairlead up --accept-loss`), or an older copy
    of it was put back. They are left alone, and what they hold is given to nobody else, until they are over or somebody
    ends them with --stop. What they write is in the state directory, in runs/RUN.
    """
    if stop:
        if not runs:
            raise click.UsageError("name the runs to stop; `fairlead unknown` lists them")
        for run in runs:
            client.stop_unknown_run(run, grace_ms=parse_duration(grace, "--grace"))
        return
    found = [each for each in client.unknown_runs() if not runs or each.run in runs]
    render.write_list(output, found, _COLUMNS, name="run")
