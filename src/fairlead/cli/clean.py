"""`fairlead clean`: remove what ended long ago.

Decides nothing but how the request is made and what is printed. Never removes anything itself. Invariant: with
--dry-run nothing changes.
"""

from __future__ import annotations

import click

from fairlead.cli import render
from fairlead.cli.app import command, connected, show_output
from fairlead.cli.values import parse_duration
from fairlead.client.sync import Client
from fairlead.core.model.quantities import format_bytes


@command("clean", examples="fairlead clean --older-than 7d --dry-run\nfairlead clean --older-than 0")
@click.option(
    "--older-than",
    default="7d",
    metavar="TIME",
    help="What ended longer ago, such as 12h or 30d; 0: all of it.",
)
@click.option("--dry-run", is_flag=True, help="Only say what would go.")
@show_output
@connected
def clean(client: Client, older_than: str, dry_run: bool, output: str) -> None:
    """Remove jobs that ended long ago, with what they wrote.

    Yours; as an administrator everybody's, and with them the older records of the journal that no start needs any more.
    What waits or runs is left alone. The service does the same by itself: `fairlead up --keep-jobs`.
    """
    gone = client.clean(parse_duration(older_than, "--older-than"), dry_run=dry_run)
    if render.write_value(gone, output):
        return
    would = "would be" if dry_run else "are"
    records = f", {gone.records} records of the journal" if gone.records else ""
    jobs = "1 ended job" if gone.jobs == 1 else f"{gone.jobs} ended jobs"
    print(f"{jobs} ({format_bytes(gone.bytes)} of output){records} {would} gone")
