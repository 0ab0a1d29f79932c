"""Commands about access tokens: token create, token list, token revoke.

Decides how they are shown. Never stores one: a new token is printed once and known to nobody afterwards.
Invariant: the token alone is on standard output, so that it can go straight into a file or a variable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fairlead.cli import render
from fairlead.cli.app import Group, connected, list_output, show_output
from fairlead.cli.render import Column, Columns
from fairlead.client.sync import Client

if TYPE_CHECKING:
    from fairlead.wire.declarations import Token

_TOKENS: Columns[Token] = (
    (Column("ID"), lambda each: each.id),
    (Column("NAME", least=10), lambda each: each.name),
    (Column("USER", least=8), lambda each: each.user),
    (Column("MADE"), lambda each: render.moment(each.created_at_ms)),
    (Column("LAST USED"), lambda each: render.moment(each.used_at_ms)),
)
token = Group("token", help="Make, list and revoke tokens for access over TCP.")


@token.command("create", examples="FAIRLEAD_TOKEN=$(fairlead token create --name laptop)")
@click.option("--name", default="", metavar="NAME", help="What it is for, to find it again.")
@click.option("--user", "-u", metavar="USER", help="For another user (administrators only).")
@show_output
@connected
def create(client: Client, name: str, user: str | None, output: str) -> None:
    """Make a token for yourself and print it, once."""
    made = client.create_token(name=name, user=user or "")
    if not render.write_value(made, output):
        print(made.token)


@token.command("list")
@list_output
@connected
def list_tokens(client: Client, output: str) -> None:
    """List tokens: name, owner, when made and last used."""
    render.write_list(output, client.tokens(), _TOKENS, name="id")


@token.command("revoke", examples="fairlead token revoke 3")
@click.argument("identifier", metavar="ID", help="The token's id, as `token list` shows it.")
@connected
def revoke(client: Client, identifier: str) -> None:
    """Revoke a token; it stops working at once."""
    client.revoke_token(identifier)
    print(render.plain(f"{identifier} revoked"))
