"""Commands that ask: why, whatif, when.

Decides in which words an answer is printed. Never changes anything; the service works the answers out on a copy of its
state. Invariant: `--json` prints what the service said.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from fairlead.cli import completion, jobfields, render, submit
from fairlead.cli.answers import difference_lines, expected_lines, score_lines, waiting_line, why_lines
from fairlead.cli.app import (
    Group,
    Status,
    command,
    connected,
    key_argument,
    key_or_none,
    keys_argument,
    show_output,
    wrong_usage,
)
from fairlead.cli.keys import named, namespace_option
from fairlead.cli.render import Screen
from fairlead.cli.values import parse_duration
from fairlead.client.sync import Client

SPEND_MAX_MS = 60_000
"""As the service has it; it is told before one is asked."""
changes_option = click.option(
    "--changes", is_flag=True, help="Also find the smallest changes that would start it; takes up to 10 seconds."
)

WHY_EXAMPLES = """
fairlead why 17
fairlead why 17 --changes
fairlead why            (everything that waits)
fairlead why pod/web-1 -n shop     (on a cluster)
"""
WHEN_EXAMPLES = """
fairlead when 17
fairlead when           (how often it was right)
fairlead when pod/web-1 -n shop     (on a cluster)
"""


whatif = Group("whatif", help="Say what would be otherwise, without doing it.")


# -- why ----------------------------------------------------------------------------------------------------------


@command("why", examples=WHY_EXAMPLES)
@key_or_none("Key of the job; everything that waits if left out.")
@changes_option
@namespace_option
@show_output
@connected
def why(client: Client, key: str | None, changes: bool, namespace: str | None, output: str) -> None:
    """Say why a job waits.

    With the numbers: what it needs, what is free, which queue or limit is in the way, who holds it. With --changes:
    what would start it; each of these was tried on a copy, and one unit less was not enough.
    """
    if key is not None:
        answer = client.why(named(client, key, namespace), changes=changes)
        _tell(answer, output, lambda: why_lines(answer))
        return
    if changes:
        raise wrong_usage("why: --changes needs the key of one job")
    jobs = list(client.jobs(state="waiting", namespace=namespace))
    fields = ("key", "name", "queue", "state", "reason")
    shown = [{name: getattr(job, name) for name in fields} for job in jobs]
    nothing = [] if jobs or Screen.of().width is None else ["Nothing waits."]
    _tell(shown, output, lambda: [*nothing, *(waiting_line(job) for job in jobs)])


# -- when ---------------------------------------------------------------------------------------------------------


@command("when", examples=WHEN_EXAMPLES)
@key_or_none("Key of the job; how often forecasts came true if left out.")
@click.option(
    "--spend", default="", metavar="TIME", help="Look ahead for so long, such as 30s; 5 s if left out, 1m at most."
)
@namespace_option
@show_output
@connected
def when(client: Client, key: str | None, spend: str, namespace: str | None, output: str) -> None:
    """Say when a job that waits is expected to start.

    As an interval in which four of five starts should be, with what it rests on, and how often the service was right.
    Where much waits and the time is not enough to see its start: after which time.
    """
    if spend and key is None:
        raise wrong_usage("when: --spend goes with a KEY: say of which job")
    now_ms = int(time.time() * 1000)
    if key is None:
        score = client.score()
        _tell(score, output, lambda: score_lines(score))
    else:
        answer = client.when(named(client, key, namespace), seconds=_seconds(spend) if spend else None)
        _tell(answer, output, lambda: [*expected_lines(answer, now_ms), *score_lines(answer.score)])


def _tell(answer: Any, output: str, lines: Callable[[], Iterable[str]]) -> None:
    """Print an answer, in lines for people."""
    if not render.write_value(answer, output):
        screen = Screen.of()
        for line in lines():
            screen.line(render.plain(line))


# -- what if ------------------------------------------------------------------------------------------------------


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
        more = {"seconds": _seconds(spend)} if spend else {}
        answer = client.what_if(**suppose(client, **given), forecast=forecast, **more)
        _tell(answer, output, lambda: difference_lines(answer, forecast))

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
    given |= {"command": given["command"] or ("true",), "cwd": str(Path.cwd())}
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
    from fairlead.cli.jobfile import read_text

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


def _seconds(spend: str) -> float:
    """The time of `--spend`."""
    millis = parse_duration(spend, "--spend")
    if not 0 < millis <= SPEND_MAX_MS:
        raise wrong_usage(f"--spend: more than 0 and at most 1m, not '{spend}'")
    return millis / 1000
