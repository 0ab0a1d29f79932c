"""`fairlead submit`: hand jobs to the service, and wait for it if asked.

Decides how options and files become one submission, and which exit status a waited-for job gives. Never submits twice:
each request has its own idempotency key. Invariant: what is printed on standard output is keys alone, one a line (or
the job's own output with --wait).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click
import msgspec

from fairlead.cli import jobfields, render
from fairlead.cli.app import Failure, Status, command, complain, connected, show_output, wrong_usage
from fairlead.cli.jobfile import Described, as_failure_of, describe, read_jobs, read_text
from fairlead.client.errors import Refused
from fairlead.client.sync import Client

if TYPE_CHECKING:
    from fairlead.wire.jobs import Job

_BATCH = 5_000
"""Jobs in one request; the service takes at most 10,000 and 8 MiB."""
_BATCH_BYTES = 4 * 2**20

_EXAMPLES = """
fairlead submit --queue root.batch --cpu 2 --memory 4Gi -- python train.py --epochs 3
fairlead submit -q root.batch --time-limit 2h --env SEED=1 -- sh -c 'make && ./run > out.txt'
fairlead submit --file jobs.jsonl --queue root.batch
fairlead submit --wait -- ./check.sh && echo passed
fairlead submit --retry 3 --retry-backoff 30s --no-retry-on 2 -- ./fetch.sh
fairlead submit --idle --retry 100 -- python sweep.py

A file has one JSON object a line, or one array as .json or .yaml; the fields are
command, name, queue, priority, cpu, memory, gpu, resources, env, cwd, grace, time_limit, tags,
labels, node_selector, ports, beside, apart_from, retry, retry_backoff, no_retry_on, idle,
priority_class.

With --wait the exit status is the job's own; 128+N if signal N ended it, 124 if its time limit did,
1 if it is lost, 4 if it was rejected or taken back before it ran.
"""

command_argument = click.argument(
    "command", nargs=-1, metavar="[COMMAND [ARG...]]", help="The command to run, best written after --."
)


@command("submit", examples=_EXAMPLES, context_settings={"allow_interspersed_args": False})
@command_argument
@jobfields.options()
@click.option(
    "--file", "-f", metavar="FILE", help="Submit all jobs of a .jsonl, .json or .yaml file; - is standard input."
)
@click.option(
    "--wait", "-w", is_flag=True, help="Wait for the end, pass on its output, and leave with its exit status."
)
@click.option("--quiet", is_flag=True, help="Print nothing; with --wait, not the output of the job either.")
@show_output
@connected
def submit(client: Client, file: str | None, wait: bool, quiet: bool, output: str, **given: Any) -> Status:
    """Submit a command as a job, and print its key.

    The job runs in this directory, as you, with a small clean environment (PATH, HOME, USER, LANG, SHELL and what
    --env gives). All options come before the command. Beside --file they say what holds for jobs that do not say.
    """
    words = given["command"]
    if bool(words) == bool(file):
        raise wrong_usage("submit: give either a command (after --) or --file FILE")
    given["cwd"] = os.path.join(os.getcwd(), given["cwd"]) if given["cwd"] else os.getcwd()
    stated = jobfields.stated(given)
    if file:
        jobs = read_jobs(file, read_text(file), stated)
    else:
        check_command(words)
        jobs = [from_options(stated)]
    rows = send(client, jobs)
    keys = [row.key for row in rows]
    told = not quiet and output == "text"
    if told:
        _say_what_cannot_start(rows)
    if not wait and not render.write_value(rows, output) and not quiet:
        print("\n".join(keys), flush=True)
        _say_where(jobs, rows)
    if not wait:
        return None
    from fairlead.cli.follow import wait_for

    return wait_for(client, keys, copy=told, output=output)


def _say_where(jobs: Sequence[Described], rows: Sequence[Job]) -> None:
    """On standard error, the queue of each job that names none or was placed elsewhere; to a person only."""
    if not sys.stderr.isatty():
        return
    for job, row in zip(jobs, rows, strict=True):
        asked = job.body.get("queue") or ""
        if row.queue not in (asked, f"root.{asked}"):
            complain(f"{row.key} is in {row.queue}")


_HOPELESS = ("no-nodes", "too-big-for-every-node", "required-node-unknown")
"""Reasons to wait that no end of other work takes away."""


def _say_what_cannot_start(rows: list[Job]) -> None:
    """On standard error, the first job that waits for what there is not, and how many more do."""
    found = [row for row in rows if row.reason is not None and row.reason.code in _HOPELESS]
    if found:
        more = f"; likewise {len(found) - 1} more" if len(found) > 1 else ""
        complain(
            f"{found[0].key} cannot start as things are: {found[0].reason.sentence if found[0].reason else ''}{more}"
        )


def from_options(stated: dict[str, Any]) -> Described:
    """The job that options describe. Raises `Failure` (usage) that names the option at fault."""
    try:
        return describe(stated, "submit")
    except Failure as failure:
        raise wrong_usage(jobfields.as_options(failure.message.removeprefix("submit: "))) from None


def check_command(command: Sequence[str]) -> None:
    """Catch a shell line given as one word: it would be looked for as a program of that name."""
    first = command[0]
    if len(command) > 1 or not any(c.isspace() for c in first) or os.path.exists(first):
        return
    import shlex
    import shutil

    if not shutil.which(first):
        raise wrong_usage(
            f"there is no program named {first!r}; to run a shell line write: -- sh -c {shlex.quote(first)}"
        )


def send(client: Client, jobs: list[Described]) -> list[Job]:
    """Submit in requests that the service takes; each of them is accepted as a whole or not at all."""
    rows: list[Job] = []
    for batch in batches(jobs):
        try:
            rows += client.submit([job.body for job in batch]).jobs
        except Refused as refused:
            raise as_failure_of(batch, refused, len(rows)) from None
    return rows


def batches(jobs: list[Described]) -> list[list[Described]]:
    """The jobs in order, cut where a request would grow too large."""
    found: list[list[Described]] = [[]]
    size = 0
    for job in jobs:
        length = len(msgspec.json.encode(job.body))
        if found[-1] and (len(found[-1]) >= _BATCH or size + length > _BATCH_BYTES):
            found.append([])
            size = 0
        found[-1].append(job)
        size += length
    return found
