"""Commands that change jobs, several at a time: hold, release, update, suspend, resume, requeue, rerun.

Decides which jobs are meant, and how it is said what came of each. Never changes anything but through the service.
Invariant: each job is ordered for itself; what is refused for one is said, and the others are done.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fairlead.cli import jobfields, render
from fairlead.cli.app import (
    REFUSED,
    Failure,
    Status,
    command,
    complain,
    connected,
    keys_argument,
    show_output,
    wrong_usage,
)
from fairlead.cli.filters import SHOWN, given, job_filters, jobs_of
from fairlead.cli.jobfields import AFTER
from fairlead.cli.parts import after_order
from fairlead.client.errors import Refused
from fairlead.client.sync import Client

if TYPE_CHECKING:
    from fairlead.wire.jobs import Job

_F = TypeVar("_F", bound=Callable[..., Any])
UPDATED = ("queue", "priority", "cpu", "memory", "gpu", "resources", "name", "time_limit", "begin", *AFTER, "on_never")
"""The fields that can be changed after a job was submitted."""
_CONFLICT = 409
ON_HOLD = "on-hold"
"""The reason of a job that waits to be released."""
_why = click.option("--why", default="", metavar="TEXT", help="The reason, for its history.")


def chosen(name: str, examples: str) -> Callable[[Callable[..., Any]], Any]:
    """A command that gives an order for jobs, by their keys or by filters, with the reason why."""
    keys = keys_argument(f"Keys of the jobs to {name}.", required=False)

    def decorated(function: Callable[..., Any]) -> Any:
        return command(name, examples=examples)(keys(job_filters(_why(show_output(connected(function))))))

    return decorated


def each(
    client: Client,
    name: str,
    keys: tuple[str, ...],
    by: dict[str, Any],
    output: str,
    order: Callable[[str], Job],
    said: Callable[[Job], str],
    state: str = "waiting",
    code: str = "",
) -> Status:
    """Give an order for each of the jobs with these keys, and say what came of it.

    Without keys it is each in this `state`, for the reason with this `code`, that the filters mean; then one that is in
    another state by now is left alone, and that is no failure.
    """
    filtered = given(by)
    if bool(keys) == filtered:
        raise wrong_usage(f"{name}: give keys, or at least one of {SHOWN} (not both)")
    if filtered:
        jobs = jobs_of(client, by, [state])
        keys = tuple(job.key for job in jobs if not code or _is_so(job, code))
        if not keys:
            complain(f"no {state} job {f'with the reason {code} ' if code else ''}is like that; nothing was done")
    done, failed = [], 0
    for key in keys:
        try:
            done.append(order(key))
        except Refused as refused:
            if filtered and refused.status == _CONFLICT:
                continue
            failed += 1
            complain(f"{key}: {refused.message}" if key not in refused.message else refused.message)
    if not render.write_value(done, output):
        for job in done:
            print(render.plain(said(job)))
    return REFUSED if failed else None


def _is_so(job: Job, code: str) -> bool:
    """Whether it waits for this reason, or some part of it may."""
    return job.parts is not None or (job.reason is not None and job.reason.code == code)


@chosen("hold", "fairlead hold 17 18 --why 'the disk is full'\nfairlead hold --queue root.batch --tag stage=2")
def hold(client: Client, keys: tuple[str, ...], why: str, output: str, **chosen_by: Any) -> Status:
    """Keep jobs that wait from starting.

    They wait until `fairlead release`. Exit status 4 if one of them could not be held, such as one that runs; the
    others are. What an administrator has put on hold, its owner does not release.
    """
    order = partial(client.hold, why=why)
    return each(client, "hold", keys, chosen_by, output, order, lambda job: f"{job.key} on hold")


@chosen("release", "fairlead release 17 18\nfairlead release --queue root.batch")
def release(client: Client, keys: tuple[str, ...], why: str, output: str, **chosen_by: Any) -> Status:
    """Let jobs that are on hold start.

    With filters, those that are on hold of the jobs that are meant. What else a job waits for, it goes on waiting for.
    """
    order = partial(client.release, why=why)
    return each(client, "release", keys, chosen_by, output, order, lambda job: f"{job.key} released", code=ON_HOLD)


_UPDATE_EXAMPLES = """
fairlead update 17 --cpu 4 --memory 8Gi --time-limit 2h
fairlead update 17 18 --priority 5 --queue root.batch --why 'the paper is due'
fairlead update 17 --time-limit none --begin now --no-after
fairlead update 17 --after-ok 12,13 --on-never cancel
fairlead update 12 --at-once 16
"""


@command("update", examples=_UPDATE_EXAMPLES)
@keys_argument("Keys of the jobs to change.")
@jobfields.options(*UPDATED)
@click.option("--no-after", is_flag=True, help="Wait for no other job any more.")
@click.option("--at-once", type=click.IntRange(0), metavar="N", help="So many parts of an array at a time; 0: all.")
@_why
@show_output
@connected
def update(
    client: Client, keys: tuple[str, ...], no_after: bool, at_once: int | None, why: str, output: str, **fields: Any
) -> Status:
    """Change jobs.

    What is not given stays as it is; any --after takes the place of all of them. A job that waits can be changed in all
    this; of one that runs the name, the queue and the time limit, which its owner may lower and an administrator of its
    queue raise. Exit status 4 if one could not be changed; the others are.
    """
    from fairlead.cli import values

    try:
        changed = values.changes(jobfields.stated(fields), "update")
    except Failure as failure:
        raise wrong_usage(jobfields.as_options(failure.message.removeprefix("update: "))) from None
    if no_after:
        if "after" in changed:
            raise wrong_usage("update: --no-after and --after contradict each other; give one of them")
        changed["after"] = []
    if at_once is not None:
        changed["at_once"] = at_once
    if not changed:
        raise wrong_usage("update: say what to change, such as --cpu 4 or --time-limit 2h")
    order = partial(client.change, **changed, why=why or None)
    return each(client, "update", keys, {}, output, order, lambda job: f"{job.key} changed")


@chosen("suspend", "fairlead suspend 17 18 --why 'a demo'\nfairlead suspend --queue root.batch")
def suspend(client: Client, keys: tuple[str, ...], why: str, output: str, **chosen_by: Any) -> Status:
    """Let jobs that run stand still.

    All their processes do, until `fairlead resume`. They keep their room, devices and memory included, and their time
    limit stands still too. What an administrator has suspended, its owner does not resume.
    """
    order = partial(client.suspend, why=why)
    return each(client, "suspend", keys, chosen_by, output, order, after_order, "running")


@chosen("resume", "fairlead resume 17 18\nfairlead resume --queue root.batch")
def resume(client: Client, keys: tuple[str, ...], why: str, output: str, **chosen_by: Any) -> Status:
    """Let jobs that are suspended go on."""
    order = partial(client.resume, why=why)
    return each(client, "resume", keys, chosen_by, output, order, after_order, "suspended")


@chosen("requeue", "fairlead requeue 17\nfairlead requeue 17 18 --hold --why 'the disk is full'")
@click.option("--hold", is_flag=True, help="Keep them from starting again until `fairlead release`.")
def requeue(client: Client, keys: tuple[str, ...], hold: bool, why: str, output: str, **chosen_by: Any) -> Status:
    """Stop jobs that run, and let them wait again.

    Each gets SIGTERM, its grace period, then SIGKILL, and starts over from the beginning when its turn comes. That
    counts for no --retry. Exit status 4 if one of them could not be requeued; the others are.
    """
    order = partial(client.requeue, hold=hold, why=why)
    return each(client, "requeue", keys, chosen_by, output, order, after_order, "running")


@command(
    "rerun", examples="fairlead rerun 17 18\nfairlead rerun 12 --failed\nfairlead rerun 19 --env SEED=2 --env API_TOKEN"
)
@keys_argument("Keys of the jobs to submit again.")
@jobfields.options("env")
@click.option("--failed", is_flag=True, help="Of an array only the parts that did not end well.")
@click.option("--script", metavar="FILE", help="The script of a job that ran one.")
@show_output
@connected
def rerun(
    client: Client, keys: tuple[str, ...], failed: bool, script: str | None, output: str, **fields: Any
) -> Status:
    """Submit jobs that have ended once more.

    Each becomes a new job with the same command and needs, and its key is printed; parts of an array become one new
    array with the same indices. It waits for nothing but room, whatever the first one had to wait for. For their owner.
    What was in the environment variables of a job, and its script, are forgotten when it ends; give each variable again
    with --env, and the script with --script.
    """
    from fairlead.cli.submit import read_text

    text = read_text(script) if script is not None else ""
    order = partial(client.rerun, env=jobfields.stated(fields).get("env"), script=text, failed=failed)
    return each(client, "rerun", keys, {}, output, order, lambda job: job.key)
