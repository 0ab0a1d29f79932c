"""Commands about limits of users and groups: usage, limits.

Decides how they are laid out. Never decides who may use what. Invariant: numbers shown are the service's.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from fairlead.cli import render
from fairlead.cli.app import JsonOption, Status, client_command
from fairlead.cli.client import Client
from fairlead.cli.render import Column, Screen


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    client_command(app, "usage", examples="fairlead usage\nfairlead usage --user ann")(usage)
    client_command(app, "limits")(limits)


def usage(
    client: Client,
    user: Annotated[str | None, typer.Option("--user", "-u", metavar="USER", help="Only this user.")] = None,
    group: Annotated[str | None, typer.Option("--group", "-g", metavar="GROUP", help="Only this group.")] = None,
    json: JsonOption = False,
) -> Status:
    """Show who uses what, beside what each may use.

    Queue by queue: users who have work or limits, and groups that have limits. A dash under MAX: no limit of theirs in
    that queue.
    """
    rows = client.get("/usage", user=user, group=group)["usage"]
    if json:
        render.write_json(rows)
        return None
    columns = (
        Column("WHO", least=8),
        Column("QUEUE", least=12, keep_end=True),
        Column("RUNNING", right=True),
        Column("USED", least=16),
        Column("MAX", least=16),
    )
    render.table(Screen.of(), columns, [_usage_cells(row) for row in rows])
    return None


def _usage_cells(row: dict[str, Any]) -> tuple[str, ...]:
    return (
        f"{row['kind']} {row['name']}",
        row["queue"],
        _of(row["running"], row["max_running"]),
        render.amounts(row["used"]),
        render.amounts(row["max"] or {}),
    )


def _of(running: int, most: int | None) -> str:
    return f"{running}/{most}" if most else str(running)


def limits(client: Client, json: JsonOption = False) -> Status:
    """Show the limits of users and groups.

    All that the queue file sets, and who uses some of each now. `user *` is a limit that each user without one of his
    own has for himself; `group *` is one that all other groups share.
    """
    rows = client.get("/limits")["limits"]
    if json:
        render.write_json(rows)
        return None
    columns = (
        Column("QUEUE", least=12, keep_end=True),
        Column("FOR", least=8),
        Column("RUNNING", right=True),
        Column("MAX", least=16),
        Column("IN USE BY", least=16),
    )
    cells = [
        (
            row["queue"],
            f"{row['kind']} {row['name']}",
            str(row["max_running"] or ""),
            render.amounts(row["max"] or {}),
            "; ".join(
                f"{each['name']}: {each['running']} with {render.amounts(each['used'])}" for each in row["using"]
            ),
        )
        for row in rows
    ]
    render.table(Screen.of(), columns, cells)
    return None
