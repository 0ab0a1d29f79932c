"""Commands about backups: backup, restore.

Decides what is said about them. Never touches a state: `fairlead.service.backup` does. Invariant: neither writes over
anything that is there.
"""

from __future__ import annotations

from pathlib import Path

import click

from fairlead.cli import render
from fairlead.cli.app import FAILED, Failure, command
from fairlead.core.model.quantities import format_bytes
from fairlead.places import default_state_dir
from fairlead.times import moment

_state = click.option(
    "--state", type=click.Path(path_type=Path), metavar="DIR", help="The state directory [the usual one]."
)


@command("backup", examples="fairlead backup /backup/fairlead-monday.tar.gz\nfairlead backup all.tar.gz --with-output")
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE", help="Where to; nothing may be there.")
@_state
@click.option("--with-output", is_flag=True, help="Also what jobs wrote.")
def backup(file: Path, state: Path | None, with_output: bool) -> None:
    """Copy the state of a service into one file.

    The service may run meanwhile: the copy is of one moment. It is checked, and read back, before it is there. It holds
    tokens, and the environments of jobs, so it is for you alone (mode 600).
    """
    from fairlead.service.backup import BackupError, back_up

    try:
        made = back_up(state or Path(default_state_dir()), file.absolute(), with_output=with_output)
    except BackupError as error:
        raise Failure(str(error), FAILED) from None
    size = format_bytes(file.stat().st_size)
    print(render.plain(f"{file}: {len(made.files)} files, the journal up to record {made.last_seq}, {size}"))


@command("restore", examples="fairlead restore /backup/fairlead-monday.tar.gz --state /var/lib/fairlead")
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE", help="What `fairlead backup` made.")
@_state
def restore(file: Path, state: Path | None) -> None:
    """Make a state directory of a backup.

    The directory must not be there, or be empty. Every file is checked before the directory is in its place. Jobs that
    ran when the backup was made are lost for the service that starts on it; those with --retry are tried again.
    """
    from fairlead.service.backup import BackupError
    from fairlead.service.backup import restore as put_back

    directory = (state or Path(default_state_dir())).absolute()
    try:
        made = put_back(file.absolute(), directory)
    except BackupError as error:
        raise Failure(str(error), FAILED) from None
    when = moment(made.made_at_ms)
    print(render.plain(f"{directory}: as of {when}, the journal up to record {made.last_seq}"))
