"""Commands that change jobs, several at a time: cancel, hold, release, update, suspend, resume, requeue, rerun.

Decides which jobs are meant, and how it is said what came of each. Never changes anything but through the service.
Invariant: each job is ordered for itself; what is refused for one is said, and the others are done.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
from fairlead.cli.filters import ENDED_STATES, LIVE_STATES, SHOWN, given, job_filters, jobs_of, keys_of, state_option
from fairlead.cli.jobfields import AFTER
from fairlead.cli.parts import after_order
from fairlead.client.errors import Refused
from fairlead.client.sync import Client
from fairlead.wire.statuses import signal_number

if TYPE_CHECKING:
    from fairlead.wire.jobs import Job, JobDetails

_F = TypeVar("_F", bound=Callable[..., Any])
_ASKED = ("queue", "priority", "cpu", "memory", "gpu", "resources", "name", "time_limit", "begin")
UPDATED = (*_ASKED, *AFTER, "on_never", "cwd", "env", "tags")
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
    order: Callable[[str], Job | None],
    said: Callable[[Job], str],
    states: Sequence[str] = ("waiting",),
    code: str = "",
    state: Sequence[str] | None = None,
) -> Status:
    """Give an order for each of the jobs with these keys, and say what came of it (None: it was not given).

    Without keys it is each in one of these `states`, for the reason with this `code`, that the filters mean; then one
    that is in another state by now is left alone, and that is no failure. `state`: what --state says, where that is a
    filter too.
    """
    filtered = given(by) or bool(state)
    if bool(keys) == filtered:
        others = SHOWN if state is None else f"--state, {SHOWN}"
        raise wrong_usage(f"{name}: give keys, or at least one of {others} (not both)")
    if filtered:
        jobs = jobs_of(client, by, state or states)
        keys = keys_of(client, (job for job in jobs if not code or _is_so(job, code)))
        if not keys:
            which = "live" if (state or states) == LIVE_STATES else " or ".join(state or states)
            why = f" with the reason {code}" if code else ""
            complain(f"no {which} job{why} is like that; nothing was done")
    done, failed = [], 0
    try:
        for key in keys:
            try:
                if (job := order(key)) is not None:
                    done.append(job)
            except Refused as refused:
                if filtered and refused.status == _CONFLICT:
                    continue
                failed += 1
                why = refused.message.removeprefix(f"{refused.field}: ")
                complain(why if key in why else f"{key}: {why}")
    finally:  # Also where the service goes in the middle: what was done before is done.
        if not render.write_value(done, output):
            for job in done:
                print(render.plain(said(job)), flush=True)
    return REFUSED if failed else None


def _is_so(job: Job, code: str) -> bool:
    """Whether it waits for this reason, or some part of it may."""
    return job.parts is not None or (job.reason is not None and job.reason.code == code)


@command(
    "cancel",
    examples="fairlead cancel 17 18\nfairlead cancel -s waiting --name 'sweep-*'\nfairlead cancel --now 17",
)
@keys_argument("Keys of the jobs to cancel.", required=False)
@state_option(LIVE_STATES)
@job_filters
@click.option("--now", is_flag=True, help="Kill what runs at once (SIGKILL), also what was told to stop before.")
@click.option("--interactive", "-i", is_flag=True, help="Ask before each of them.")
@show_output
@connected
def cancel(
    client: Client, keys: tuple[str, ...], state: tuple[str, ...], now: bool, interactive: bool, output: str, **by: Any
) -> Status:
    """Cancel jobs.

    What waits is taken back. What runs gets SIGTERM, its grace period, then SIGKILL; with --now SIGKILL at once.
    Give keys, or filters, not both. Exit status 4 if one of the keys could not be cancelled; the others are.
    """

    def order(key: str) -> Job | None:
        if interactive and not _agreed(client.job(key)):
            return None
        return client.cancel(key, states=state, now=now)

    return each(client, "cancel", keys, by, output, order, after_order, LIVE_STATES, state=state)


def _agreed(job: JobDetails) -> bool:
    """Whether who types wants this one cancelled."""
    about = render.plain(f"{job.key} {job.name}, {job.state} in {job.queue}")
    return click.confirm(f"Cancel {about}?", err=True)


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
fairlead update 17 --command 'python train.py --seed 2' --env SEED=2 --no-env DEBUG
"""


@command("update", examples=_UPDATE_EXAMPLES)
@keys_argument("Keys of the jobs to change.")
@jobfields.options(*UPDATED)
@click.option("--command", "line", metavar="LINE", help="Another command: a line of words, quoted as for a shell.")
@click.option("--no-env", multiple=True, metavar="NAME", help="No longer this environment variable; may be repeated.")
@click.option("--no-after", is_flag=True, help="Wait for no other job any more.")
@click.option("--at-once", type=click.IntRange(0), metavar="N", help="So many parts of an array at a time; 0: all.")
@_why
@show_output
@connected
def update(
    client: Client,
    keys: tuple[str, ...],
    line: str | None,
    no_env: tuple[str, ...],
    no_after: bool,
    at_once: int | None,
    why: str,
    output: str,
    **fields: Any,
) -> Status:
    """Change jobs.

    What is not given stays as it is; any --after takes the place of all of them. A job that waits can be changed in all
    this; of one that runs the name, the queue and the time limit, which its owner may lower and an administrator of its
    queue raise (--time-limit none: there is none any more). Exit status 4 if one could not be changed; the others are.
    """
    from fairlead.cli import values
    from fairlead.cli.submitted import say_what_cannot_start
    from fairlead.cli.surroundings import in_directory

    if theirs := [key for key in keys if "=" in key]:
        raise wrong_usage(f"update: {theirs[0]!r} is how scontrol says it; write KEY..., and options: --time-limit 2h")

    try:
        stated = jobfields.stated(fields)
        changed = values.changes(in_directory(stated) if "cwd" in stated else stated, "update")
        if line is not None:
            changed["command"] = values.command(line, "update")
    except Failure as failure:
        raise wrong_usage(jobfields.as_options(failure.message.removeprefix("update: "))) from None
    if no_after:
        if "after" in changed:
            raise wrong_usage("update: --no-after and --after contradict each other; give one of them")
        changed["after"] = []
    if no_env:
        changed["unset_env"] = list(no_env)
    if at_once is not None:
        changed["at_once"] = at_once
    if not changed:
        raise wrong_usage("update: say what to change, such as --cpu 4 or --time-limit 2h")

    def order(key: str) -> Job:
        row = client.change(key, **changed, why=why or None)
        if {"resources", "queue", "after"} & changed.keys():
            say_what_cannot_start([row])
        return row

    return each(client, "update", keys, {}, output, order, lambda job: f"{job.key} changed")


@command(
    "signal",
    examples="fairlead signal USR1 17 18\nfairlead signal TERM --first 17\nfairlead signal USR1 --name 'train-*'",
)
@click.argument("signal_name", metavar="SIGNAL", help="Such as USR1, HUP or 10.")
@keys_argument("Keys of the jobs.", required=False)
@job_filters
@click.option("--first", is_flag=True, help="The first process of each alone: its command, not what that has started.")
@show_output
@connected
def signal(
    client: Client, signal_name: str, keys: tuple[str, ...], first: bool, output: str, **chosen_by: Any
) -> Status:
    """Send a signal to jobs that run.

    To every process of them, once. What becomes of it is up to them: `fairlead cancel` ends a job for sure.
    """
    if signal_name[:1].isdecimal() and keys and not keys[0][:1].isdecimal():
        raise wrong_usage(f"signal: the signal comes first: fairlead signal {keys[0]} {signal_name}")
    order = partial(client.signal, number=_number(signal_name), first=first)
    return each(client, "signal", keys, chosen_by, output, order, lambda job: f"{job.key} {signal_name}", ["running"])


_LONGEST_NUMBER = 40
"""So much is shown of a name that is none."""


def _number(name: str) -> int:
    if not (found := signal_number(name)):
        shown = render.cut(name, _LONGEST_NUMBER)
        raise wrong_usage(f"signal: there is no signal {shown!r}; write USR1, HUP, TERM or a number such as 10")
    return found


@chosen("suspend", "fairlead suspend 17 18 --why 'a demo'\nfairlead suspend --queue root.batch")
def suspend(client: Client, keys: tuple[str, ...], why: str, output: str, **chosen_by: Any) -> Status:
    """Let jobs that run stand still.

    All their processes do, until `fairlead resume`. They keep their room, devices and memory included, and their time
    limit stands still too. What an administrator has suspended, its owner does not resume.
    """
    order = partial(client.suspend, why=why)
    return each(client, "suspend", keys, chosen_by, output, order, after_order, ["running"])


@chosen("resume", "fairlead resume 17 18\nfairlead resume --queue root.batch")
def resume(client: Client, keys: tuple[str, ...], why: str, output: str, **chosen_by: Any) -> Status:
    """Let jobs that are suspended go on."""
    order = partial(client.resume, why=why)
    return each(client, "resume", keys, chosen_by, output, order, after_order, ["suspended"])


@chosen("requeue", "fairlead requeue 17\nfairlead requeue 17 18 --hold --why 'the disk is full'")
@click.option("--hold", is_flag=True, help="Keep them from starting again until `fairlead release`.")
def requeue(client: Client, keys: tuple[str, ...], hold: bool, why: str, output: str, **chosen_by: Any) -> Status:
    """Stop jobs that run, and let them wait again.

    Each gets SIGTERM, its grace period, then SIGKILL, and starts over from the beginning when its turn comes. That
    counts for no --retry. Exit status 4 if one of them could not be requeued; the others are.
    """
    order = partial(client.requeue, hold=hold, why=why)
    return each(client, "requeue", keys, chosen_by, output, order, after_order, ["running"])


_RERUN_EXAMPLES = """
fairlead rerun 17 18
fairlead rerun 12 --failed
fairlead rerun --me --state failed --name 'sweep-*'
fairlead rerun 19 --env SEED=2 --env API_TOKEN
"""
_BAD_ENDS = ("failed", "timed_out", "lost", "evicted")
"""The ends after which something is usually wanted again."""


@command("rerun", examples=_RERUN_EXAMPLES)
@keys_argument("Keys of the jobs to submit again.", required=False)
@state_option(ENDED_STATES)
@job_filters
@jobfields.options("env")
@click.option("--failed", is_flag=True, help="Of an array only the parts that did not end well.")
@click.option("--script", metavar="FILE", help="The script of a job that ran one.")
@click.option("--hold", is_flag=True, help="Keep them from starting until `fairlead release`.")
@show_output
@connected
def rerun(
    client: Client,
    keys: tuple[str, ...],
    state: tuple[str, ...],
    failed: bool,
    script: str | None,
    hold: bool,
    output: str,
    **given: Any,
) -> Status:
    """Submit jobs that have ended once more.

    Each becomes a new job with the same command and needs, and its key is printed; parts of an array become one new
    array with the same indices. It waits for nothing but room, whatever the first one had to wait for. For their owner.
    What was in the environment variables of a job, and its script, are forgotten when it ends; give each variable again
    with --env, and the script with --script. With filters and without --state it is what failed, ran out of time, was
    lost or evicted.
    """
    from fairlead.cli.submit import read_text

    env = jobfields.stated({"env": given.pop("env")}).get("env")

    text = read_text(script) if script is not None else ""
    order = partial(client.rerun, env=env, script=text, failed=failed, hold=hold)
    chosen_by = given | {"state": state}
    return each(client, "rerun", keys, chosen_by, output, order, lambda job: job.key, state or _BAD_ENDS)
