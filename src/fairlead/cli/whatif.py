"""`fairlead whatif`: what would be otherwise if something were done that is not.

Decides which change each of its commands supposes. Never does it: the service works the answer out on a copy of its
state. Invariant: what a change would be is said in the words of `wire.questions.Supposed`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from fairlead.cli import completion, jobfields, submit
from fairlead.cli.app import (
    Group,
    Status,
    connected,
    key_argument,
    keys_argument,
    named,
    namespace_option,
    show_output,
    wrong_usage,
)
from fairlead.cli.questions import difference_lines, seconds, tell
from fairlead.client.errors import Refused
from fairlead.client.sync import Client

whatif = Group("whatif", help="Say what would be otherwise, without doing it.")


def _asked(suppose: Callable[..., dict[str, Any]]) -> Callable[..., Status]:
    """Make a command of a function that gives the change to suppose, as `wire.questions.Supposed` has it."""

    @click.option("--forecast", is_flag=True, help="Also say whose expected start would move; takes longer.")
    @click.option(
        "--spend",
        default="",
        metavar="TIME",
        help="With --forecast: look ahead for so long; 5 s if left out, 1m at most.",
    )
    @show_output
    @connected
    @wraps(suppose)
    def ask(client: Client, *, forecast: bool, spend: str, output: str, **given: Any) -> None:
        if spend and not forecast:
            raise wrong_usage("whatif: --spend goes with --forecast: only a forecast takes time to look ahead")
        more = {"seconds": seconds(spend)} if spend else {}
        supposed = suppose(client, **given)
        try:
            answer = client.what_if(**supposed, forecast=forecast, **more)
        except Refused as refused:
            raise submit.as_failure_of([submit.Described("submit")], refused, ()) from None
        tell(answer, output, lambda: difference_lines(answer, forecast))

    return ask


@whatif.command(
    "submit",
    examples="fairlead whatif submit --queue root.batch --gpu 2 -- python train.py",
    context_settings={"allow_interspersed_args": False},
)
@submit.command_argument
@jobfields.options("queue", "priority", "cpu", "memory", "gpu", "resources", "name", "time_limit")
@_asked
def if_submitted(_client: Client, **given: Any) -> dict[str, Any]:
    """If this were submitted: whether it starts, and whom it would stop."""
    # Where it would run changes nothing of the answer.
    given |= {"command": given["command"] or ("true",), "cwd": "/"}
    return {"submit": submit.from_options(jobfields.stated(given)).body}


@whatif.command("cancel", examples="fairlead whatif cancel 17 18")
@keys_argument("Keys.")
@namespace_option
@_asked
def if_cancelled(client: Client, keys: tuple[str, ...], namespace: str | None) -> dict[str, Any]:
    """If these were cancelled: who would start."""
    return {"cancel": [named(client, key, namespace) for key in keys]}


@whatif.command(
    "priority", examples="fairlead whatif priority 17 100", context_settings={"ignore_unknown_options": True}
)
@key_argument
@click.argument("value", type=click.IntRange(-(2**31), 2**31 - 1), metavar="N", help="The new priority.")
@namespace_option
@_asked
def if_prioritised(client: Client, key: str, value: int, namespace: str | None) -> dict[str, Any]:
    """If it had another priority: whether it starts, and who would stop for it."""
    return {"priority": {"key": named(client, key, namespace), "priority": value}}


@whatif.command("move", examples="fairlead whatif move 17 root.batch")
@key_argument
@click.argument("queue", metavar="QUEUE", help="Full path of the queue.", shell_complete=completion.queues)
@namespace_option
@_asked
def if_moved(client: Client, key: str, queue: str, namespace: str | None) -> dict[str, Any]:
    """If it were in another queue."""
    return {"move": {"key": named(client, key, namespace), "queue": queue}}


@whatif.command("config", examples="fairlead whatif config queues.yaml --forecast")
@click.argument("file", metavar="FILE", help="A queue file; - is standard input.")
@_asked
def if_configured(_client: Client, file: str) -> dict[str, Any]:
    """If this queue file were in force (administrators)."""
    from fairlead.cli.submit import read_text

    return {"config": read_text(file)}


@whatif.command("drain", examples="fairlead whatif drain node-3")
@click.argument("nodes", nargs=-1, required=True, metavar="NODE...", help="Nodes.", shell_complete=completion.nodes)
@_asked
def if_drained(_client: Client, nodes: tuple[str, ...]) -> dict[str, Any]:
    """If these nodes took no new work (administrators)."""
    return {"drain": nodes}


@whatif.command("add-nodes", examples="fairlead whatif add-nodes node-3 10")
@click.argument("like", metavar="NODE", help="Which they are like.", shell_complete=completion.nodes)
@click.argument("count", type=click.IntRange(1, 10000), metavar="N", help="How many.")
@_asked
def if_nodes_added(_client: Client, like: str, count: int) -> dict[str, Any]:
    """If there were more nodes like one that is there (administrators)."""
    return {"add_nodes": {"like": like, "count": count}}
