"""Commands about limits of users and groups: usage, limits.

Decides how they are laid out. Never decides who may use what. Invariant: numbers shown are the service's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fairlead.cli import render
from fairlead.cli.app import command, connected, list_output
from fairlead.cli.render import Column, Columns
from fairlead.client.sync import Client

if TYPE_CHECKING:
    from fairlead.wire.declarations import Limit, Use


_USES: Columns[Use] = (
    (Column("WHO", least=8), lambda use: f"{use.kind} {use.name}"),
    (Column("QUEUE", least=12, keep_end=True), lambda use: use.queue),
    (Column("RUNNING", right=True), lambda use: f"{use.running}" + (f"/{use.max_running}" if use.max_running else "")),
    (Column("USED", least=16), lambda use: render.amounts(use.used)),
    (Column("MAX", least=16), lambda use: render.amounts(use.max)),
)
_LIMITS: Columns[Limit] = (
    (Column("QUEUE", least=12, keep_end=True), lambda limit: limit.queue),
    (Column("FOR", least=8), lambda limit: f"{limit.kind} {limit.name}"),
    (Column("RUNNING", right=True), lambda limit: str(limit.max_running or "")),
    (Column("MAX", least=16), lambda limit: render.amounts(limit.max)),
    (
        Column("IN USE BY", least=16),
        lambda limit: "; ".join(f"{u.name}: {u.running} with {render.amounts(u.used)}" for u in limit.using),
    ),
)


@command("usage", examples="fairlead usage\nfairlead usage --user ann")
@click.option("--user", "-u", metavar="USER", help="Only this user.")
@click.option("--group", "-g", metavar="GROUP", help="Only this group.")
@list_output
@connected
def usage(client: Client, user: str | None, group: str | None, output: str) -> None:
    """Show who uses what, beside what each may use.

    Queue by queue: users who have work or limits, and groups that have limits. A dash under MAX: no limit of theirs in
    that queue.
    """
    render.write_list(output, client.usage(user=user, group=group), _USES)


@command("limits")
@list_output
@connected
def limits(client: Client, output: str) -> None:
    """Show the limits of users and groups.

    All that the queue file sets, and who uses some of each now. `user *` is a limit that each user without one of his
    own has for himself; `group *` is one that all other groups share.
    """
    render.write_list(output, client.limits(), _LIMITS)
