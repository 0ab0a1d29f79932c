"""Waiting for jobs and reading their output: `logs`, `logs -f`, `wait`, `submit --wait`.

Decides how output is passed on and what exit status an ended job stands for. Never stops a job that nobody cancelled.
Invariant: every byte of output is passed on once, in order, even if the service restarts in between.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fairlead.cli import app, render
from fairlead.cli.filters import LIVE_STATES, SHOWN, given, job_filters, jobs_of, keys_of
from fairlead.cli.interrupts import Interrupt, all_at_once
from fairlead.cli.outputs import Out, Prefixed, Source, is_read, last_lines, so_far, target, write
from fairlead.cli.parts import counted
from fairlead.client.errors import Refused, Unreachable
from fairlead.client.sync import Client
from fairlead.wire import statuses
from fairlead.wire.statuses import signal_name

if TYPE_CHECKING:
    from fairlead.client.routes import Stream
    from fairlead.wire.jobs import Job, JobDetails

PATIENCE_S = 120.0
"""How long a command that waits puts up with a service that does not answer (it may be restarting)."""
_POLL_S = (0.05, 0.1, 0.2, 0.4)
_saying = threading.Lock()
"""Held by who has said that the service cannot be reached, until it can."""
_T = TypeVar("_T")


_WAIT_EXAMPLES = """
fairlead wait 17 18
fairlead wait 17 && fairlead submit -- ./evaluate.sh
fairlead wait $(fairlead submit --file jobs.jsonl)
fairlead wait --bell --name 'sweep-*'
"""


_LOGS_EXAMPLES = """
fairlead logs 17 > out.txt
fairlead logs -f 17 18 19
fairlead logs --stderr --tail 20 17
"""


@app.command("logs", examples=_LOGS_EXAMPLES)
@app.keys_argument("Keys of the jobs.")
@click.option("--follow", "-f", is_flag=True, help="Go on until the job has ended (Ctrl-C leaves it running).")
@click.option("--stdout", is_flag=True, help="Only what it wrote to standard output.")
@click.option("--stderr", is_flag=True, help="Only what it wrote to standard error.")
@click.option("--tail", type=click.IntRange(0), metavar="N", help="Only the last N lines so far of each.")
@click.option("--attempt", type=click.IntRange(1), metavar="N", help="Of attempt N alone; the newest one if not given.")
@app.connected
def logs(
    client: Client,
    keys: tuple[str, ...],
    follow: bool,
    stdout: bool,
    stderr: bool,
    tail: int | None,
    attempt: int | None,
) -> app.Status:
    """Print what jobs wrote.

    Standard output to standard output, standard error to standard error; of several jobs, and of several parts of an
    array (12, or 12.5-9), each line begins with its key. Each attempt of a job that is tried again has its own output.
    """
    if stdout and stderr:
        raise app.wrong_usage("logs: give --stdout or --stderr; without either, both are printed")
    if attempt is not None and len(keys) > 1:
        raise app.wrong_usage("logs: --attempt is about one job; name one")
    names: list[Stream] = ["stdout"] if stdout else ["stderr"] if stderr else ["stdout", "stderr"]
    known = list(dict.fromkeys(app.named(client, key) for key in keys))
    from fairlead.cli import follow_parts

    arrays = [key for key in known if follow_parts.is_several(client, key)]
    if arrays and attempt is not None:
        raise app.wrong_usage(f"logs: --attempt is of one part; name one, such as {arrays[0].partition('.')[0]}.1")
    if arrays and follow and len(known) > 1:
        raise app.wrong_usage(f"logs: follow the parts of {arrays[0]} by themselves, without other jobs")
    if arrays and follow:
        unread: list[str] = []
        call = partial(follow_parts.follow_parts, client, known[0], names, unread)
        all_at_once(client, [call], Interrupt(()), is_read=is_read)
        return app.REFUSED if unread else None
    alone = len(known) == 1 and not arrays
    known = [part for key in known for part in (follow_parts.begun(client, key) if key in arrays else [key])]
    return _print_logs(client, known, names, tail, attempt, alone=alone, follow=follow)


def _print_logs(
    client: Client,
    keys: Sequence[str],
    names: Sequence[Stream],
    tail: int | None,
    attempt: int | None,
    *,
    alone: bool,
    follow: bool,
) -> app.Status:
    """What these jobs wrote so far, and with `follow` what they go on to write; `alone`: without the key before it."""
    sources: list[Source] = []
    status: app.Status = None
    for key in keys:
        begin = attempt or (int(client.job(key).attempts or 1) if follow else None)
        for name in names:
            out = target(name) if alone else Prefixed(key, target(name))
            try:
                offset = _print_so_far(client, key, name, out, tail, begin)
            except Refused as problem:
                if alone:
                    raise
                app.complain(f"{key}: {problem.message}")
                status = app.REFUSED
                continue
            if not follow:
                write(out, b"")  # Where it goes on, a line that is half written is ended by what comes.
            sources.append(Source(key, name, out, offset, begin or 1))
        _say_what_there_is_not(client.job(key), names, attempt)
    if follow and attempt is not None:
        for source in sources:
            for chunk in client.follow(source.key, source.stream, offset=source.offset, attempt=attempt):
                write(source.out, chunk)
    elif follow:
        try:
            _follow_all(client, sources, is_read=is_read)
        finally:
            for source in sources:
                write(source.out, b"")
    return status


def _say_what_there_is_not(job: JobDetails, names: Sequence[str], attempt: int | None) -> None:
    """Why nothing of it may be shown."""
    if job.stdout == job.stderr and job.own_files and names == ["stderr"]:
        app.complain(f"{job.key} writes its standard error to {job.stdout}, with its standard output")
    if job.state == "waiting" and attempt is None:
        sentence = (job.reason.sentence if job.reason else "") or "it has not been looked at yet"
        app.complain(f"{job.key} waits: {sentence}")


@app.command("wait", examples=_WAIT_EXAMPLES)
@app.keys_argument("Keys.", required=False)
@job_filters
@click.option("--started", is_flag=True, help="Only until they run, or have ended without.")
@click.option("--bell", is_flag=True, help="Ring the bell of this terminal when the waiting is over.")
@app.show_output
@app.connected
def wait(client: Client, keys: tuple[str, ...], started: bool, bell: bool, output: str, **by: Any) -> app.Status:
    """Wait until jobs have ended.

    Give keys, or filters for all that wait or run now. Ctrl-C asks whether to cancel them. The exit status is the job's
    own, of several the highest; 128+N if signal N ended it, 124 if its time limit did, 1 if it is lost, 4 if it was
    rejected or taken back before it ran.
    """
    if bool(keys) == given(by):
        raise app.wrong_usage(f"wait: give keys, or at least one of {SHOWN} (not both)")
    known = [app.named(client, key) for key in keys] or [*keys_of(client, jobs_of(client, by, LIVE_STATES))]
    if not known:
        app.complain("no live job is like that; there is nothing to wait for")
        return None
    for key in known:
        client.job(key)  # A key that nothing has is said at once, not after the wait for those before it.
    try:
        if started:
            return _wait_for_starts(client, known, output)
        return wait_for(client, known, copy=False, output=output, name_failures=True)
    finally:
        if bell:
            print("\a", end="", file=sys.stderr, flush=True)


def _print_so_far(
    client: Client, key: str, stream: Stream, out: Out, tail: int | None, attempt: int | None = None
) -> int:
    offset = 0

    def written() -> Iterator[bytes]:
        nonlocal offset
        for content in so_far(client, key, stream, attempt):
            offset += len(content)
            yield content

    for content in written() if tail is None else last_lines(written(), tail):
        write(out, content)
    return offset


def _follow_all(
    client: Client,
    sources: Sequence[Source],
    asked: Interrupt | None = None,
    *,
    is_read: Callable[[], bool] | None = None,
) -> None:
    """Pass on all of them at once, each in its own thread; an error in one is raised here.

    `asked`: who waits for the jobs themselves. What cannot be read, as of /dev/null, is only said then.
    """

    def follow(source: Source) -> None:
        try:
            for chunk in patient_log(client, source.key, source.stream, source.offset, source.attempt):
                write(source.out, chunk)
        except Refused as problem:
            if asked is None:
                raise
            app.complain(problem.message)

    all_at_once(client, [partial(follow, source) for source in sources], asked or Interrupt(()), is_read=is_read)


def patient_log(client: Client, key: str, stream: Stream, offset: int, attempt: int = 1) -> Iterator[bytes]:
    """The rest of an attempt's output and that of all attempts after it, until the job has ended.

    Goes on where it was after the service restarted.
    """
    while True:
        waits = False
        try:
            for chunk in client.follow(key, stream, offset=offset, attempt=attempt):
                offset += len(chunk)
                yield chunk
            job = patiently(lambda: client.job(key))
            # All attempts write to a file of the user's own: there is no other one to go on with.
            further, waits = int(job.attempts) > attempt and stream not in job.own_files, job.state == "waiting"
            if further or job.state not in LIVE_STATES:
                content = patiently(partial(client.log, key, stream, offset=offset, attempt=attempt))
                offset += len(content)
                yield content
                if not content and not further:
                    return
                if not content:
                    attempt, offset = attempt + 1, 0
        except Unreachable:
            patiently(lambda: client.job(key))
        time.sleep(_POLL_S[-1 if waits else 0])


def patiently(call: Callable[[], _T]) -> _T:
    """The result of a call that may be repeated, tried for `PATIENCE_S` while the service cannot be reached.

    Of several threads that meet with that one says it.
    """
    deadline = time.monotonic() + PATIENCE_S
    told = False
    try:
        while True:
            try:
                return call()
            except Unreachable as problem:
                if time.monotonic() > deadline:
                    raise
                if not told and (told := _saying.acquire(blocking=False)):
                    app.complain(f"{problem.message} Trying for {PATIENCE_S:.0f} s.")
                time.sleep(0.5)
    finally:
        if told:
            _saying.release()


def wait_for(client: Client, keys: Sequence[str], *, copy: bool, output: str, name_failures: bool = False) -> int:
    """Wait until all have ended, one after the other; the exit status of the worst.

    `copy`: pass on their output. `output`: as JSON or YAML say how they ended. `name_failures`: also say of what only
    ended with an exit status which one it was.
    """
    statuses, rows = [], []
    asked = Interrupt(keys)
    for key in keys:
        if copy:
            until_it_runs(client, key, asked)
            _copy(client, key, asked)
        job = _ended(client, key, asked)
        rows.append(job)
        statuses.append(exit_status(job))
        text = how_it_ended(job)
        if not text and name_failures and job.state == "failed":
            text = f"exit status {job.exit_code}"
        if text and output == "text":
            app.complain(f"{key} {job.state}: {text}")
    render.write_value(rows if len(rows) != 1 else rows[0], output)
    return max(statuses, default=0)


def _wait_for_starts(client: Client, keys: Sequence[str], output: str) -> int:
    """Wait until all have begun, one after the other; the status of the worst that ended before it did."""
    rows, asked = [], Interrupt(keys)
    for key in keys:
        until_it_runs(client, key, asked)
        rows.append(patiently(partial(client.job, key)))
    render.write_value(rows if len(rows) != 1 else rows[0], output)
    return max((exit_status(job) for job in rows if not job.started_at_ms and job.state not in LIVE_STATES), default=0)


def _copy(client: Client, key: str, asked: Interrupt) -> None:
    from fairlead.cli import follow_parts

    if follow_parts.is_several(client, key):
        all_at_once(client, [lambda: follow_parts.follow_parts(client, key, ("stdout", "stderr"), [])], asked)
    else:
        streams: tuple[Stream, Stream] = ("stdout", "stderr")
        _follow_all(client, [Source(key, name, target(name)) for name in streams], asked)


_IN_VAIN = ("never-runs", "on-hold", "suspended")
"""Reasons for which nothing happens until somebody does something: who waits for the end is told."""


def _ended(client: Client, key: str, asked: Interrupt) -> JobDetails:
    pauses, told = iter(_POLL_S), ""
    while True:
        try:
            job = patiently(lambda: client.job(key))
            if job.state not in LIVE_STATES:
                return job
            if job.reason is not None and job.reason.code in _IN_VAIN and job.reason.code != told:
                told = job.reason.code
                app.complain(f"{key} {job.reason.sentence}; waiting until somebody changes that")
            time.sleep(next(pauses, 0.5))
        except KeyboardInterrupt:
            asked.ask(client)


def until_it_runs(client: Client, key: str, asked: Interrupt | None = None) -> None:
    """Wait until a job has its place, or has ended without; say what it waits for, each time that is something else."""
    asked = asked or Interrupt([key])
    pauses, told = iter(_POLL_S), ""
    while True:
        try:
            job = patiently(lambda: client.job(key))
            if job.state != "waiting":
                if told and job.node:
                    app.complain(f"{key} begins on {job.node}")
                return
            if job.reason is not None and job.reason.code != told:
                told = job.reason.code
                app.complain(f"{key} waits: {job.reason.sentence}")
            time.sleep(next(pauses, 0.5))
        except KeyboardInterrupt:
            asked.ask(client)


def exit_status(job: JobDetails) -> int:
    """The exit status that stands for how a job ended, of an array the highest of its parts."""
    if job.parts is not None:
        return job.parts.exit_status
    return statuses.exit_status(job.state, started=bool(job.started_at_ms), exit_code=job.exit_code, signal=job.signal)


def how_it_ended(job: Job) -> str:
    """What there is to say about an end beside the command's own exit status; empty if nothing."""
    if job.parts is not None:
        return "" if job.state == "succeeded" else counted(job.parts)
    if job.reason is not None and job.reason.sentence:
        return job.reason.sentence
    if job.state == "failed" and job.signal:
        return f"ended by {signal_name(job.signal)}"
    return str(getattr(job, "error", ""))  # What a list shows of a job has none.
