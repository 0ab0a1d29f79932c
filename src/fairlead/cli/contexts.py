"""`fairlead context`: services by name in the user's own configuration; `fairlead token`: what gives access over TCP.

Decides how they are listed. Never shows a token but the one that was just made, once; `context` never reaches a
service. Invariant: what the file says otherwise stays as it is; a new token is alone on standard output, so that it can
go straight into a file or a variable.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fairlead import places
from fairlead.cli import completion, render
from fairlead.cli.app import Group, connected, list_output, show_output
from fairlead.cli.render import Column, Columns
from fairlead.client.contexts import Context, Contexts, read_contexts
from fairlead.client.sync import Client

if TYPE_CHECKING:
    from fairlead.wire.declarations import Token, TokenScope

_ADD_EXAMPLES = """
fairlead context add lab --socket /run/fairlead.sock
fairlead context add shop --url https://fairlead.example --namespace shop --token-stdin < token
fairlead context add big --url https://big.example:9080 --ca big.pem
"""
context = Group("context", help="Name the services that you use, and choose one.")
_name = click.argument("name", metavar="NAME", help="Its name.", shell_complete=completion.contexts)


def _read() -> Contexts:
    return read_contexts(Path(places.client_config()))


def _shown(each: Context, current: str) -> dict[str, object]:
    """What may be shown of a context."""
    said = {"name": each.name, "current": each.name == current, "address": str(each.address())}
    return said | {"namespace": each.namespace, "token": bool(each.token), "ca": each.ca}


@context.command("ls")
@list_output
def ls(output: str) -> None:
    """List the services that have a name."""
    found = _read()
    named = [found.named[name] for name in sorted(found.named)]
    if render.write_value([_shown(each, found.current) for each in named], output):
        return
    columns: Columns[Context] = (
        (Column(""), lambda each: "*" if each.name == found.current else ""),
        (Column("NAME"), lambda each: each.name),
        (Column("ADDRESS", least=20), lambda each: str(each.address())),
        (Column("NAMESPACE"), lambda each: each.namespace),
        (Column("TOKEN"), lambda each: "yes" if each.token else ""),
    )
    render.write_list(output, named, columns)


@context.command("use", examples="fairlead context use shop")
@_name
def use(name: str) -> None:
    """Use a service from now on, where nothing else is said."""
    _read().use(name)
    print(render.plain(f"{name} is used from now on"))


@context.command("show")
@click.argument(
    "name",
    required=False,
    metavar="[NAME]",
    help="Its name; the one in use if left out.",
    shell_complete=completion.contexts,
)
@show_output
def show(name: str | None, output: str) -> None:
    """Show where a service is."""
    found = _read()
    chosen = found.chosen(name or "")
    if chosen is None:
        print(f"no context is in use; {found.file} names {len(found.named)}", file=sys.stderr)
        return
    shown = _shown(chosen, found.current)
    if not render.write_value(shown, output):
        pairs = [(key, "yes" if value is True else str(value or "")) for key, value in shown.items()]
        render.fields(render.Screen.of(), pairs)


@context.command("add", examples=_ADD_EXAMPLES)
@click.argument("name", metavar="NAME", help="Its name.")
@click.option("--socket", default="", metavar="PATH", help="Unix socket of a machine's service.")
@click.option("--url", default="", metavar="URL", help="Address of a service over TCP.")
@click.option("--namespace", "-n", default="", metavar="NS", help="Of pods that are named without one, on a cluster.")
@click.option("--ca", default="", metavar="FILE", help="Certificates to believe of an https address.")
@click.option("--token-stdin", is_flag=True, help="Read a token from standard input, and keep it with the context.")
def add(name: str, socket: str, url: str, namespace: str, ca: str, token_stdin: bool) -> None:
    """Give a service a name; the first one is used from now on."""
    token = sys.stdin.read().strip() if token_stdin else ""
    found = _read()
    kept = str(Path(ca).expanduser().absolute()) if ca else ""
    found.add(Context(name, socket=socket, url=url, token=token, namespace=namespace, ca=kept))
    print(render.plain(f"{name} is added" + ("" if found.current else ", and used from now on")))


@context.command("rm", examples="fairlead context rm lab")
@_name
def rm(name: str) -> None:
    """Forget a service; it goes on."""
    _read().remove(name)
    print(render.plain(f"{name} is removed"))


# -- tokens -------------------------------------------------------------------------------------------------------


_TOKENS: Columns[Token] = (
    (Column("ID"), lambda each: each.id),
    (Column("NAME", least=10), lambda each: each.name),
    (Column("USER", least=8), lambda each: each.user),
    (Column("FOR"), lambda each: each.scope),
    (Column("QUEUE"), lambda each: each.queue),
    (Column("MADE"), lambda each: render.moment(each.created_at_ms)),
    (Column("UNTIL"), lambda each: render.moment(each.expires_at_ms)),
    (Column("LAST USED"), lambda each: render.moment(each.used_at_ms)),
)
token = Group("token", help="Make, list and revoke tokens for access over TCP.")


_TOKEN_EXAMPLES = """
FAIRLEAD_TOKEN=$(fairlead token create --name page --scope read --expires 30d)
fairlead token create --name nightly --scope submit --queue root.batch
"""


@token.command("create", examples=_TOKEN_EXAMPLES)
@click.option("--name", default="", metavar="NAME", help="What it is for, to find it again.")
@click.option("--user", "-u", metavar="USER", help="For another user (administrators only).")
@click.option(
    "--scope",
    type=click.Choice(["read", "submit", "administer"]),
    default="administer",
    help="What it is for: read; submit (also all that is about jobs, as no administrator); administer: all you may do.",
)
@click.option(
    "--queue",
    "-q",
    default="",
    metavar="QUEUE",
    help="For jobs in this queue and those below it alone: no other exists for it, nor what is about all of them.",
    shell_complete=completion.queues,
)
@click.option("--expires", metavar="TIME", help="It is accepted for so long, such as 30d; else until it is revoked.")
@show_output
@connected
def create(
    client: Client, name: str, user: str | None, scope: TokenScope, queue: str, expires: str | None, output: str
) -> None:
    """Make a token for yourself and print it, once."""
    from fairlead.cli.values import parse_duration

    lifetime_ms = parse_duration(expires, "--expires") if expires else None
    made = client.create_token(name=name, user=user or "", scope=scope, queue=queue, lifetime_ms=lifetime_ms)
    if not render.write_value(made, output):
        print(made.token)


@token.command("list")
@list_output
@connected
def list_tokens(client: Client, output: str) -> None:
    """List tokens: name, owner, what for, when made, until when, and when last used."""
    render.write_list(output, client.tokens(), _TOKENS, name="id")


@token.command("revoke", examples="fairlead token revoke 3")
@click.argument("identifier", metavar="ID", help="The token's id, as `token list` shows it.")
@connected
def revoke(client: Client, identifier: str) -> None:
    """Revoke a token; it stops working at once."""
    client.revoke_token(identifier)
    print(render.plain(f"{identifier} revoked"))
