"""Commands for batch work: a reservation for one job, and a checkpoint from inside a job.

Decides which words go to the service and come back. Never decides what a reservation holds back, nor what a checkpoint
is worth. Invariant: as for all commands about jobs, `--json` prints what the service said.
"""

from __future__ import annotations

import os
from typing import Annotated, Any

import typer

from fairlead.cli import completion, render
from fairlead.cli.app import JsonOption, KeyArgument, Status, client_command
from fairlead.cli.client import Client
from fairlead.cli.failures import wrong_usage


def register(app: typer.Typer) -> None:
    """Add the commands."""
    client_command(
        app, "reserve", examples="fairlead reserve 17 --why 'the demo is at noon'\nfairlead reserve 17 --off"
    )(reserve)
    client_command(app, "checkpoint", examples="fairlead checkpoint        (inside a job)\nfairlead checkpoint 17")(
        checkpoint
    )


def reserve(
    client: Client,
    key: KeyArgument,
    off: Annotated[bool, typer.Option("--off", help="Keep nothing for it any longer.")] = False,
    why: Annotated[str, typer.Option("--why", metavar="TEXT", help="The reason, for its history.")] = "",
    json: JsonOption = False,
) -> Status:
    """Keep the next room for a job that waits.

    Work of a lower priority in its queue waits until it runs; then everything is as before. For administrators of the
    queue. Who switched it, and why, stands in the history of the job.
    """
    row = client.post(f"/jobs/{completion.quoted(key)}/reserve", {"on": not off, "why": why})
    if json:
        render.write_json(row)
    else:
        print(render.plain(f"{row['key']}: the next room is {'no longer ' if off else ''}kept for it"))
    return None


def checkpoint(
    client: Client,
    key: Annotated[
        str | None,
        typer.Argument(metavar="[KEY]", help="Key of the job; inside a job, itself.", autocompletion=completion.keys),
    ] = None,
    json: JsonOption = False,
) -> Status:
    """Say that a running job has saved what it did.

    Work is asked to do so from inside: FAIRLEAD_KEY, FAIRLEAD_ATTEMPT and FAIRLEAD_SOCKET are in its environment. When
    somebody has to make room, that who loses least goes first; what is saved is not lost.
    """
    own = os.environ.get("FAIRLEAD_KEY")
    if key is None and not own:
        raise wrong_usage("checkpoint: FAIRLEAD_KEY is not set, so this is not inside a job; name one")
    body: dict[str, Any] = {}
    if key is None or key == own:
        attempt = os.environ.get("FAIRLEAD_ATTEMPT", "")
        body = {"attempt": int(attempt)} if attempt.isascii() and attempt.isdecimal() else {}
    answer = client.post(f"/jobs/{completion.quoted(key or own or '')}/checkpoint", body)
    if json:
        render.write_json(answer)
    return None
