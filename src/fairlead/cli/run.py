"""`fairlead run`: a job with somebody who waits for it.

Decides nothing of its own: it submits as `submit` does, and waits as `submit --wait` does, or sits at the terminal of
the job. Invariant: whoever leaves, the job goes on unless it was said to be cancelled.
"""

from __future__ import annotations

import os
import sys
from contextlib import nullcontext
from typing import Any

import click

from fairlead.cli import jobfields, piped, scripts
from fairlead.cli.app import Status, command, complain, connected, wrong_usage
from fairlead.cli.environment import environment_options
from fairlead.cli.follow import wait_for
from fairlead.cli.singleton import NAME, behind_its_like, singleton_option
from fairlead.cli.submit import Described, command_argument, described_by, send
from fairlead.cli.submitted import say_what_cannot_start, say_when_signals_come
from fairlead.cli.terminal import detach_option, keys_of, stay
from fairlead.client.sync import Client

_EXAMPLES = """
fairlead run --cpu 4 -- make -j4
gunzip -c data.gz | fairlead run --cpu 2 -- ./count.py
fairlead run --pty -- bash
fairlead run --pty --gpu 1 --time-limit 2h -- python
"""


@command("run", cls=scripts.ScriptCommand, examples=_EXAMPLES, context_settings={"allow_interspersed_args": False})
@command_argument
@jobfields.options()
@environment_options
@click.option("--pty", is_flag=True, help="Give it a terminal, and let this one be it.")
@detach_option
@singleton_option
@click.option(
    "--ignore-directives",
    is_flag=True,
    help="Read no lines of a script that begin with #FAIRLEAD, #SBATCH, #PBS, #BSUB or #$.",
)
@connected
def run(client: Client, pty: bool, detach_keys: str, singleton: bool, ignore_directives: bool, **given: Any) -> Status:
    """Run a command as a job, and wait for it.

    As `fairlead submit --wait`: says why it waits, passes on what it writes, and leaves with its exit status. The job
    reads what is piped into this command. Ctrl-C asks whether to leave it running or to cancel it. With --pty it gets a
    terminal of its own, which is there as long as it runs: Ctrl-] leaves it, `fairlead attach` comes back.
    """
    if not given["command"]:
        raise wrong_usage("run: give a command (after --)")
    keys = keys_of(detach_keys)
    job, others = described_by(click.get_current_context(), given, directives=not ignore_directives)
    if singleton or others.get(NAME):
        job = Described(job.where, behind_its_like(client, job.body), job.places)
    if pty:
        env = {"TERM": os.environ.get("TERM") or "xterm", **job.body.get("env", {})}
        job.body.update(terminal=True, env=env)
    source = piped.source_of(client.address, job.body)
    if source is None and not pty and not job.body.get("stdin") and piped.is_left_unread():
        complain(
            "run: the job does not read what is piped in (docs/interactive.md says when); `< /dev/null` if so meant"
        )
    with piped.passed_on(source) if source is not None else nullcontext() as path:
        if path is not None:
            # Its queue may let it come back by itself: then it would read what the first attempt has left.
            job.body.update(stdin=path, retry={"limit": 0})
        [row] = send(client, [job])
        say_what_cannot_start([row])
        say_when_signals_come([job], [row])
        if sys.stderr.isatty():
            complain(f"job {row.key}" + (f"; {detach_keys} leaves its terminal" if pty else ""))
        return stay(client, row.key, keys) if pty else wait_for(client, [row.key], copy=True, output="text")
