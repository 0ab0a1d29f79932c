"""`fairlead maintenance`: times in which the machine, or a part of it, is kept free.

Decides how they are written on the command line and shown. Never judges one: the service does. Invariant: what is shown
is what is in force.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import click

from fairlead.cli import completion, render
from fairlead.cli.app import Group, connected, list_output, wrong_usage
from fairlead.cli.render import Column, Columns
from fairlead.cli.values import begin, parse_duration
from fairlead.client.sync import Client
from fairlead.times import duration_exactly, duration_ms, moment, parse_begin

if TYPE_CHECKING:
    from fairlead.wire.windows import Window

EVERY = {"day": 86_400_000, "week": 7 * 86_400_000}
_EXAMPLES = """
fairlead maintenance 'Sat 08:00' 4h --why 'new disks'
fairlead maintenance 'Tue 10:00' 2h --every week --group course --name course
fairlead maintenance ls
fairlead maintenance cancel course
"""


def _is_moment(word: str) -> bool:
    """Whether a time, such as `now` or `Sat`, begins with the word."""
    try:
        parse_begin(word, time.time_ns() // 1_000_000)
    except ValueError:
        return False
    return True


class _Maintenance(Group):
    """A group whose first word may be a time: then it is `add` that is meant."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that is meant."""
        first = args[0]
        if first in self.commands:
            return super().resolve_command(ctx, args)
        if first.isalpha() and not _is_moment(first) and (len(args) == 1 or duration_ms(args[1]) is None):
            said = f"{first!r} is neither a time nor one of {', '.join(self.commands)}"
            raise click.UsageError(said, ctx)
        if ":" in "".join(args[1:2]):
            raise click.UsageError(f"a time is one word here: '{first} {args[1]}'", ctx)
        return super().resolve_command(ctx, ["add", *args])

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Both ways to write it."""
        formatter.write_usage(ctx.command_path, "START LENGTH [OPTIONS]")
        formatter.write_usage(ctx.command_path, "COMMAND [ARGS]...")

    def format_epilog(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Examples."""
        formatter.write_paragraph()
        formatter.write("".join(f"{line}\n" for line in ("Examples:", *(f"  {each}" for each in _LINES))))


_LINES = _EXAMPLES.strip().splitlines()
maintenance = _Maintenance(
    "maintenance",
    help="Keep the machine free for a time, or for the jobs of some.\n\n"
    "Nothing starts that would still run when it begins: jobs with a time limit fill the room before, others wait "
    "until it is over. `fairlead maintenance START LENGTH` declares it.",
)


@maintenance.command("add", examples="\n".join(_LINES[:2]))
@click.argument("start", metavar="START", help="When it begins: 'Sat 08:00', 'tomorrow 7:00', now, 2026-03-01T08:00.")
@click.argument("length", metavar="LENGTH", help="How long it takes: 4h, 90m.")
@click.option("--name", default=None, metavar="NAME", help="What it is called [maintenance, maintenance-2, ...].")
@click.option(
    "--node", multiple=True, metavar="NODE", help="Only this node; may be repeated.", shell_complete=completion.nodes
)
@click.option(
    "--queue",
    "-q",
    multiple=True,
    metavar="QUEUE",
    help="Jobs of this queue and those below it may run in it; may be repeated.",
    shell_complete=completion.queues,
)
@click.option("--user", "-u", multiple=True, metavar="USER", help="Jobs of this user may; may be repeated.")
@click.option("--group", "-g", multiple=True, metavar="GROUP", help="Jobs of this group's users may; may be repeated.")
@click.option("--every", metavar="TIME", help="It comes again: day, week, or after a time such as 14d.")
@click.option("--stop-running", is_flag=True, help="Stop, with their grace, jobs that still run when it begins.")
@click.option("--why", default="", metavar="TEXT", help="What it is for: those who wait are told.")
@connected
def add(
    client: Client,
    start: str,
    length: str,
    name: str | None,
    node: tuple[str, ...],
    queue: tuple[str, ...],
    user: tuple[str, ...],
    group: tuple[str, ...],
    every: str | None,
    stop_running: bool,
    why: str,
) -> None:
    """Declare a time that is kept free, or change when it is (administrators).

    What runs already and has no time limit, or one that reaches into it, goes on, and is named; --stop-running ends it
    when the time begins.
    """
    starts_ms, length_ms = begin(start, "START"), parse_duration(length, "LENGTH")
    if not length_ms:
        raise wrong_usage("LENGTH: it has to be longer than nothing, such as 4h")
    every_ms = 0 if every is None else EVERY.get(every) or parse_duration(every, "--every (day, week, or a time)")
    draft = {
        "starts_at_ms": starts_ms,
        "length_ms": length_ms,
        "every_ms": every_ms,
        "nodes": node,
        "queues": queue,
        "users": user,
        "groups": group,
        "stop_running": stop_running,
        "why": why,
    }
    window = client.set_window(name or _free_name(client), draft)
    print(render.plain(f"{window.name}: {when(window)}, {what(window)}{for_whom(window)}"))
    if window.running:
        ends = "will be stopped then" if stop_running else "go on; --stop-running would stop them then"
        print(render.plain(f"note: jobs that run and may not be over by then: {keys(window)}: {ends}"), file=sys.stderr)


def _free_name(client: Client) -> str:
    known = {window.name for window in client.windows()}
    number = 2
    name = "maintenance"
    while name in known:
        name, number = f"maintenance-{number}", number + 1
    return name


def when(window: Window) -> str:
    """Begin and end, and how often it comes."""
    often = {86_400_000: " every day", 7 * 86_400_000: " every week"}
    again = often.get(window.every_ms, f" every {duration_exactly(window.every_ms)}") if window.every_ms else ""
    return f"{moment(window.starts_at_ms)} to {moment(window.ends_at_ms)}{again}"


def what(window: Window) -> str:
    """What is kept free."""
    return ", ".join(window.nodes) or "all nodes"


def for_whom(window: Window) -> str:
    """Whose jobs may run in it, as the end of a sentence."""
    found = [f"queue {each}" for each in window.queues]
    found += [f"user {each}" for each in window.users] + [f"group {each}" for each in window.groups]
    return f", for {', '.join(found)}" if found else ""


def keys(window: Window) -> str:
    """The jobs that run now and may run then; a few of many."""
    more = f" and {len(window.running) - 8} more" if len(window.running) > 8 else ""
    return ", ".join(window.running[:8]) + more


def _from_now(window: Window) -> str:
    if window.open:
        return "open"
    return f"in {render.duration(max(window.starts_at_ms - int(time.time() * 1000), 0))}"


_COLUMNS: Columns[Window] = (
    (Column("NAME", least=12), lambda window: window.name),
    (Column("BEGINS"), _from_now),
    (Column("WHEN", least=20), when),
    (Column("NODES", least=9), what),
    (Column("FOR", least=8, drop=2), lambda window: for_whom(window).removeprefix(", for ")),
    (Column("WAIT", right=True), lambda window: str(window.waiting)),
    (Column("STILL RUN", least=9), lambda window: keys(window) + (" (stopped then)" if window.stop_running else "")),
    (Column("WHY", least=8, drop=1), lambda window: window.why),
)


@maintenance.command("ls")
@list_output
@connected
def ls(client: Client, output: str) -> None:
    """List the times that are kept free, the next one first, and the jobs that they concern.

    WAIT: jobs that wait and would run into it. STILL RUN: jobs that run now and may not be over when it begins.
    """
    found = list(client.windows())
    if not found:
        print("nothing is kept free", file=sys.stderr)
    render.write_list(output, found, _COLUMNS)


@maintenance.command("cancel", examples="fairlead maintenance cancel course")
@click.argument("name", metavar="NAME", help="Its name.")
@connected
def cancel(client: Client, name: str) -> None:
    """Take it back; what waited for it is looked at again (administrators)."""
    client.remove_window(name)
    print(render.plain(f"{name} is cancelled"))
