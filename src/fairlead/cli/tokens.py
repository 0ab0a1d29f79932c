"""Commands about access tokens: token create, token list, token revoke.

Decides how they are shown. Never stores one: a new token is printed once and known to nobody afterwards.
Invariant: the token alone is on standard output, so that it can go straight into a file or a variable.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from fairlead.cli import completion, render
from fairlead.cli.app import JsonOption, Status, client_command, group
from fairlead.cli.client import Client
from fairlead.cli.render import Column, Screen


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    tokens = group("token", "Make, list and revoke tokens for access over TCP.")
    client_command(tokens, "create", examples="FAIRLEAD_TOKEN=$(fairlead token create --name laptop)")(create)
    client_command(tokens, "list")(list_tokens)
    client_command(tokens, "revoke", examples="fairlead token revoke 3")(revoke)
    app.add_typer(tokens)


def create(
    client: Client,
    name: Annotated[str, typer.Option("--name", "-n", metavar="NAME", help="What it is for, to find it again.")] = "",
    user: Annotated[
        str | None, typer.Option("--user", "-u", metavar="USER", help="For another user (administrators only).")
    ] = None,
    json: JsonOption = False,
) -> Status:
    """Make a token for yourself and print it, once."""
    answer = client.post("/tokens", {k: v for k, v in (("name", name), ("user", user)) if v})
    if json:
        render.write_json(answer)
    else:
        print(answer["token"])
    return None


def list_tokens(client: Client, json: JsonOption = False) -> Status:
    """List tokens: name, owner, when made and last used."""
    found = client.get("/tokens")["tokens"]
    if json:
        render.write_json(found)
        return None
    columns = (Column("ID"), Column("NAME", least=10), Column("USER", least=8), Column("MADE"), Column("LAST USED"))
    render.table(Screen.of(), columns, [_cells(token) for token in found])
    return None


def _cells(token: dict[str, Any]) -> tuple[str, ...]:
    return (
        str(token["id"]),
        token.get("name") or "",
        token.get("user") or "",
        render.moment(token.get("created_at_ms")),
        render.moment(token.get("used_at_ms") or token.get("last_used_at_ms")),
    )


def revoke(
    client: Client,
    identifier: Annotated[str, typer.Argument(metavar="ID", help="The token's id, as `token list` shows it.")],
) -> Status:
    """Revoke a token; it stops working at once."""
    client.delete(f"/tokens/{completion.quoted(identifier)}")
    print(render.plain(f"{identifier} revoked"))
    return None
