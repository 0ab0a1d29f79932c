"""Commands about jobs: ls, show, priority, move, reserve, checkpoint.

Decides which rows and fields are shown, and in which words. Never changes anything but through the service. Invariant:
`--json` prints what the service said, so that scripts do not depend on the layout.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from fairlead.cli import app, completion, render
from fairlead.cli.columns import NAMES, USUAL, JobColumn, chosen, in_order
from fairlead.cli.filters import ENDED_STATES, LIVE_STATES, given, job_filters, jobs_of, state_option
from fairlead.cli.jobfields import details
from fairlead.cli.render import Screen
from fairlead.client.errors import ClientError, Unreachable
from fairlead.client.sync import Client
from fairlead.wire.arrays import order

if TYPE_CHECKING:
    from fairlead.wire.jobs import HistoryItem, Job, JobDetails

_ENDED_SHOWN = 20
_HISTORY_SHOWN = 12


_LS_EXAMPLES = """
fairlead ls
fairlead ls 12 --state failed      (parts of an array)
fairlead ls 12 13 17.4 --no-header --columns key,state
fairlead ls -a --user ann --state failed
fairlead ls --name 'train-*' --tag project=apollo --tag stage
fairlead ls --columns key,name,started,reason --sort -priority,name --interval 5
fairlead ls --json | jq -r '.[] | select(.state == "waiting") | .key + " " + .reason.sentence'
"""


@app.command("ls", examples=_LS_EXAMPLES)
@click.argument("keys", nargs=-1, metavar="[KEY...]", help="Only these jobs, or parts of arrays: 12, 12.5-9.")
@click.option("--parts", is_flag=True, help="Every part of arrays, in place of a line for each array.")
@click.option("--all", "-a", "every", is_flag=True, help=f"All that ended too, not just the last {_ENDED_SHOWN}.")
@state_option(LIVE_STATES + ENDED_STATES)
@job_filters
@click.option("--namespace", "-n", metavar="NS", help="Only pods of this namespace, on a cluster.")
@click.option("--columns", metavar="NAME,...", help=f"These columns, in this order, of {', '.join(NAMES)}.")
@click.option("--sort", metavar="NAME,...", help="By these columns; -NAME: the other way round.")
@click.option("--no-header", is_flag=True, help="No line with the titles of the columns.")
@click.option(
    "--interval",
    "-i",
    type=app.SECONDS_BETWEEN,
    metavar="SECONDS",
    help="Again each time so long has passed, until Ctrl-C.",
)
@app.list_output
@app.connected
def ls(client: Client, keys: tuple[str, ...], interval: float | None, **given: Any) -> None:
    """List jobs: what runs, what waits and why.

    An array is one line, which says how many of its parts are how; with KEY or --parts each part has its own. TIME is
    how long it has waited, or has run. As JSON, YAML or names every job is printed; each has key, name, queue, user,
    priority, state, node, exit_code, signal, reason, submitted_at_ms, started_at_ms, ended_at_ms, resources, parts.
    """
    given["keys"] = keys
    if interval is None:
        _list(client, **given)
    else:
        _list_again_and_again(client, interval, given)


def _list_again_and_again(client: Client, interval: float, given: dict[str, Any]) -> None:
    """Until Ctrl-C, also while a service that was there is away: it may be restarting."""
    was_there = away = False
    while True:
        try:
            _list(client, timed=given["output"] in ("table", "wide"), **given)
            was_there, away = True, False
        except Unreachable as problem:
            if not was_there:
                raise
            if not away:
                app.complain(f"{problem.message} Trying again.")
            away = True
        sys.stdout.flush()
        time.sleep(interval)


def _list(
    client: Client,
    keys: tuple[str, ...],
    every: bool,
    state: tuple[str, ...],
    namespace: str | None,
    columns: str | None,
    sort: str | None,
    no_header: bool,
    output: str,
    timed: bool = False,
    **by: Any,
) -> None:
    """`timed`: the moment stands above it."""
    shown = chosen(columns) if columns is not None else None
    by |= {"namespace": namespace} if namespace is not None else {}
    named = {job.key: job for key in keys or (None,) for job in jobs_of(client, by | {"array": key}, state)}
    found = sorted(named.values(), key=_by_key)
    if timed:
        print(render.moment(render.now_ms()))
    if sort is not None:
        found = in_order(found, sort)
    if render.write_names(found, "key", output) or render.write_value(found, output):
        return
    if not found and (state or keys or given(by)):
        app.complain("no job is like that")
    screen = Screen.of(wide=output == "wide")
    live = [job for job in found if job.state in LIVE_STATES]
    ended = sorted(
        (job for job in found if job.state not in LIVE_STATES), key=lambda job: (job.ended_at_ms or 0, *_by_key(job))
    )
    hidden = 0 if every or state or keys else max(0, len(ended) - _ENDED_SHOWN)
    left_out = {job.key for job in ended[:hidden]}
    if sort is not None or keys:
        rows = [job for job in found if job.key not in left_out]
    else:
        rows = [*ended[hidden:], *live]
    print_jobs(screen, rows, columns=shown, header=not no_header)
    if hidden:
        app.complain(f"{hidden} more that ended earlier are not shown; `fairlead ls -a` shows them.")


def _by_key(job: Job) -> tuple[int, int, str]:
    return order(job.key)


def print_jobs(
    screen: Screen,
    jobs: Sequence[Job],
    now_ms: int | None = None,
    columns: Sequence[JobColumn] | None = None,
    *,
    header: bool = True,
) -> None:
    """A table of jobs; without `columns` the usual ones. Outside a terminal each of them is there, with a dash for what
    is empty; in one those are left out that say the same of all.
    """
    now = render.now_ms() if now_ms is None else now_ms
    same = set()
    if screen.width is not None and columns is None:
        same = {name for name in ("user", "node") if len({getattr(job, name) for job in jobs} - {""}) <= 1}
    shown = [each for each in columns or USUAL if each.name not in same]
    rows = [[each.text(job, now) for each in shown] for job in jobs]
    render.table(screen, [each.column for each in shown], rows, render.STATE_STYLES, header=header)


@app.command("show", examples="fairlead show 17\nfairlead show 17 18 --history\nfairlead show 17 --json")
@app.keys_argument("Keys of the jobs.")
@click.option(
    "--history", is_flag=True, help=f"The whole of its history, instead of the last {_HISTORY_SHOWN} entries."
)
@click.option("--script", is_flag=True, help="The script that it runs, and nothing else; as long as it lives.")
@app.namespace_option
@app.show_output
@app.connected
def show(
    client: Client, keys: tuple[str, ...], history: bool, script: bool, namespace: str | None, output: str
) -> None:
    """Show everything about jobs.

    Command, times, what it used, which limits are really enforced, and the end of its history. With --history: who put
    it where by which rule, what it waited for, who changed or stopped it for whom, and which changes of the queues
    touched it.
    """
    if script:
        for key in keys:
            print(client.script(key).script, end="")
        return
    jobs = [client.job(app.named(client, key, namespace)) for key in keys]
    if render.write_value(jobs if len(jobs) > 1 else jobs[0], output):
        return
    screen = Screen.of()
    for number, job in enumerate(jobs):
        if number:
            screen.line()
        _show(screen, job, history)


def _show(screen: Screen, job: JobDetails, history: bool) -> None:
    if history:
        screen.title(render.plain(f"{job.key} {job.name}: {job.state}"))
        _print_history(screen, job.history)
        if job.parts is not None:
            screen.line(f"  each part has its own: fairlead show --history {job.key}.INDEX")
        return
    render.fields(screen, details(job, render.now_ms()))
    if job.history:
        screen.line()
        hidden = max(0, len(job.history) - _HISTORY_SHOWN)
        screen.title("history" + (f" ({hidden} earlier entries: --history)" if hidden else ""))
        _print_history(screen, job.history[hidden:])


def _print_history(screen: Screen, entries: Sequence[HistoryItem]) -> None:
    wide = max((len(entry.what) for entry in entries), default=0)
    for entry in entries:
        what, at = render.plain(entry.what), render.moment(entry.at_ms)
        screen.line(f"  {at}  {what:<{wide}}  {render.plain(entry.detail)}".rstrip())


@app.command(
    "priority",
    examples="fairlead priority 17 100\nfairlead priority 17 -5",
    context_settings={"ignore_unknown_options": True},
)
@app.key_argument
@click.argument(
    "value", type=click.IntRange(-(2**31), 2**31 - 1), metavar="N", help="The new priority; higher goes first."
)
@click.option("--why", default="", metavar="TEXT", help="The reason, for its history.")
@app.show_output
@app.connected
def priority(client: Client, key: str, value: int, why: str, output: str) -> None:
    """Change the priority of a job."""
    job = client.change(key, priority=value, why=why or None)
    if not render.write_value(job, output):
        # Of an array the priority of a part that runs is shown, which stays as it is.
        said = f"{job.priority}" if job.parts is None else f"{value} for what waits of it"
        print(render.plain(f"{job.key} priority {said}"))


@app.command("move", examples="fairlead move 17 root.batch")
@app.key_argument
@click.argument("queue", metavar="QUEUE", help="The queue to put it into.", shell_complete=completion.queues)
@app.show_output
@app.connected
def move(client: Client, key: str, queue: str, output: str) -> None:
    """Put a job into another queue.

    What runs goes on running, and counts there. Yours goes where you may submit. Administrators of its queue may move
    jobs of others to where their owners may submit, or to queues that they administer too. No queue is taken over
    its maximum by it.
    """
    job = client.change(key, queue=queue)
    if not render.write_value(job, output):
        print(render.plain(f"{job.key} is in {job.queue}"))


@app.command("reserve", examples="fairlead reserve 17 --why 'the demo is at noon'\nfairlead reserve 17 --off")
@app.key_argument
@click.option("--off", is_flag=True, help="Keep nothing for it any longer.")
@click.option("--why", default="", metavar="TEXT", help="The reason, for its history.")
@app.show_output
@app.connected
def reserve(client: Client, key: str, off: bool, why: str, output: str) -> None:
    """Keep the next room for a job that waits.

    Work of a lower priority in its queue waits until it runs; then everything is as before. For administrators of the
    queue. Who switched it, and why, stands in the history of the job.
    """
    job = client.reserve(key, on=not off, why=why)
    if not render.write_value(job, output):
        print(render.plain(f"{job.key}: the next room is {'no longer ' if off else ''}kept for it"))
    if not off and job.state == "waiting":
        _say_that_it_cannot_run(client, job.key, job.queue)


def _say_that_it_cannot_run(client: Client, key: str, queue: str) -> None:
    """What its queue would wait for in vain."""
    with suppress(ClientError):  # What was asked for is done.
        verdict = client.why(key, changes=True, seconds=NEVER_S).verdict
        if verdict is not None and verdict.never is not None:
            vain = f"work of a lower priority in {queue} waits for it in vain until `fairlead reserve {key} --off`"
            app.complain(f"{key} can never run as it is: {verdict.never.sentence}; {vain}")


NEVER_S = 1.0
"""Whether it can run at all is found out with so much time for the rest of the answer."""


@app.command("checkpoint", examples="fairlead checkpoint        (inside a job)\nfairlead checkpoint 17")
@app.key_or_none("Key of the job; inside a job, itself.")
@app.show_output
@app.connected
def checkpoint(client: Client, key: str | None, output: str) -> None:
    """Say that a running job has saved what it did.

    Work is asked to do so from inside: FAIRLEAD_KEY, FAIRLEAD_ATTEMPT and FAIRLEAD_SOCKET are in its environment. When
    somebody has to make room, what loses least goes first; what is saved is not lost.
    """
    own = os.environ.get("FAIRLEAD_KEY")
    if key is None and not own:
        raise app.wrong_usage("checkpoint: FAIRLEAD_KEY is not set, so this is not inside a job; name one")
    attempt = os.environ.get("FAIRLEAD_ATTEMPT", "") if key in (None, own) else ""
    done = client.checkpoint(
        key or own or "", attempt=int(attempt) if attempt.isascii() and attempt.isdecimal() else None
    )
    render.write_value(done, output)
