"""`fairlead submit`: hand jobs to the service, and wait for it if asked.

Decides how options and files become one submission, where each description in a file stands, and which exit status a
waited-for job gives. Never submits twice: each request has its own idempotency key. Invariant: a description that
passes is complete (command, directory and resources are all said); what is printed on standard output is keys alone,
one a line (or the job's own output with --wait).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any

import click
import msgspec

from fairlead.cli import app, foreign_scripts, jobfields, named_jobs, render, scripts
from fairlead.cli.app import REFUSED, USAGE, Failure, Status, command, complain, connected, key_output, wrong_usage
from fairlead.cli.environment import environment_options
from fairlead.cli.jobfields import NAMES, described
from fairlead.cli.jobyaml import TOO_DEEP, load_yaml
from fairlead.cli.singleton import NAME, behind_its_like, singleton_option
from fairlead.cli.submitted import say_what_cannot_start, say_when_signals_come, say_where
from fairlead.cli.surroundings import as_here
from fairlead.client.errors import ClientError, Misconfigured, Refused
from fairlead.client.http import encoded
from fairlead.client.sync import Client

if TYPE_CHECKING:
    from fairlead.wire.jobs import SubmittedJob

_LARGEST_FILE = 256 * 2**20
_WRONG_SHOWN = 50
_TYPED = "submit"
"""Where a job stands that is described by options."""


class Described(msgspec.Struct, frozen=True):
    """One job as the service takes it, and where its description stands (for messages)."""

    where: str
    body: dict[str, Any] = {}
    places: dict[str, str] = {}
    """Where the lines of a script say an option."""


def read_jobs(path: str, text: str, defaults: Mapping[str, Any]) -> list[Described]:
    """All jobs of a file: `.json` (one array or one object), `.yaml`/`.yml` (the same), else one JSON object a line.

    `defaults` are fields, as in the file, for jobs that do not say. Raises `Failure` (usage) with the place of every
    job that has a mistake.
    """
    jobs: list[Described] = []
    wrong: list[str] = []
    for where, load in _entries(path, text):
        try:
            jobs.append(describe({**defaults, **_checked(load(), where)}, where))
        except Failure as failure:
            wrong.append(failure.message)
    if len(wrong) > 1:
        more = [f"and {len(wrong) - _WRONG_SHOWN} more"] if len(wrong) > _WRONG_SHOWN else []
        said = f"{path}: {len(wrong)} of {len(wrong) + len(jobs)} jobs make no sense; nothing was submitted"
        raise Failure(said, USAGE, [*wrong[:_WRONG_SHOWN], *more])
    if wrong:
        raise wrong_usage(wrong[0])
    if not jobs:
        raise wrong_usage(f"{path}: there is no job in it")
    return jobs


def read_text(path: str, *, ends_of_lines: bool = False) -> str:
    """The content of a file without a byte order mark, or of standard input for `-`; `ends_of_lines`: with those that
    the file has. Raises `Failure` (usage) if it cannot be read.
    """
    try:
        if path == "-":
            return sys.stdin.read()
        if os.stat(path).st_size > _LARGEST_FILE:
            raise wrong_usage(f"{path}: larger than {_LARGEST_FILE} bytes; split it")
        with open(path, encoding="utf-8-sig", newline="" if ends_of_lines else None) as file:
            return file.read()
    except UnicodeDecodeError as error:
        raise wrong_usage(f"{path}: is not UTF-8 text (byte {error.start})") from None
    except OSError as error:
        raise wrong_usage(f"{path}: cannot be read: {error.strerror}") from None


def _entries(path: str, text: str) -> Iterator[tuple[str, Callable[[], Any]]]:
    """The place of each job, and what reads it. Raises `Failure` where the file is no list of jobs at all."""
    suffix = os.path.splitext(path)[1].lower()
    if suffix in (".yaml", ".yml"):
        yield from _numbered(path, load_yaml(path, text))
    elif suffix == ".json":
        yield from _numbered(path, _load_json(text, path, 0))
    else:
        # Not `splitlines`: a text in JSON may have in it what else counts as the end of a line.
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip():
                yield f"{path}:{number}", partial(_load_json, line, path, number)


def _numbered(path: str, loaded: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    if isinstance(loaded, dict) and set(loaded) == {"jobs"}:
        loaded = loaded["jobs"]
    if isinstance(loaded, list):
        yield from ((f"{path}: job {number}", partial(copy, entry)) for number, entry in enumerate(loaded, 1))
    elif loaded is not None:
        yield path, partial(copy, loaded)


def _load_json(text: str, path: str, line: int) -> Any:
    import json

    try:
        return json.loads(text, object_pairs_hook=_without_repeats)
    except json.JSONDecodeError as error:
        raise wrong_usage(f"{path}:{line or error.lineno}:{error.colno}: is not JSON: {error.msg}") from None
    except _Repeated as error:
        raise wrong_usage(f"{path}{f':{line}' if line else ''}: {error.args[0]} is given twice; give it once") from None
    except RecursionError:
        raise wrong_usage(f"{path}{f':{line}' if line else ''}: {TOO_DEEP}") from None
    except ValueError:
        raise wrong_usage(f"{path}{f':{line}' if line else ''}: has a number of thousands of digits") from None


class _Repeated(Exception):
    """A key that stands twice in one object."""


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise _Repeated(name)
        found[name] = value
    return found


def _checked(entry: Any, where: str) -> dict[str, Any]:
    if not isinstance(entry, dict):
        raise wrong_usage(f"{where}: a job is an object with a command, not {str(entry)[:60]}")
    for name in entry:
        if name not in NAMES:
            raise wrong_usage(
                f"{where}: there is no field {name!r}{_close(str(name))}; the fields are {', '.join(NAMES)}"
            )
    return entry


def _close(name: str) -> str:
    import difflib

    found = difflib.get_close_matches(name, NAMES, 1)
    return f" (did you mean {found[0]!r}?)" if found else ""


def describe(entry: Mapping[str, Any], where: str) -> Described:
    """What the service takes, for one described job. Raises `Failure` (usage) naming the field."""
    body = described(entry, where)
    for name, value in body.items():
        try:
            encoded(value)
        except Misconfigured:
            raise wrong_usage(f"{where}: {name}: has half of a surrogate pair; only UTF-8 text can be sent") from None
    return Described(where, body)


def as_failure_of(jobs: list[Described], refused: Refused, taken: Sequence[str]) -> Failure:
    """The service's refusal with the place in the file instead of the place in the request."""
    import re

    match = re.match(r"(?:body\.)?jobs[.\[](\d+)\]?\.?(.*)", refused.field or "")
    if not match or int(match[1]) >= len(jobs):
        message = refused.message
    else:
        text, job = refused.message.removeprefix(f"{refused.field}: "), jobs[int(match[1])]
        option = jobfields.option_of(match[2]) if job.where == _TYPED else match[2]
        place = _place_of_after(job, refused) if match[2] == "after" else job.places.get(option, "")
        where = [place if job.where == _TYPED and match[2] else job.where, option]
        message = ": ".join([*filter(None, where), text])
    return Failure(message + _taken_before(taken), REFUSED, refused.details)


def _place_of_after(job: Described, refused: Refused) -> str:
    """Where the script says what is refused of what the job waits for; empty: it was typed."""
    flags = {awaited: jobfields.flag_of(name) for name, awaited in jobfields.AFTER.items()}
    said = (flags.get(each.get("awaited", ""), "") for each in refused.problem.details)
    return next((job.places[flag] for flag in said if flag in job.places), "")


# -- files of jobs ----------------------------------------------------------------------------------------------------


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
fairlead submit --begin now+1h --after-ok 17,18 -- ./report.sh
fairlead submit --array 1-200%8 -- sh -c './part.sh $FAIRLEAD_ARRAY_INDEX'
fairlead submit --output runs/%x-%j.txt --env-file settings.env -- ./train.sh
fairlead submit job.sh 3        (a script with lines such as #FAIRLEAD --cpu 4, or #SBATCH -c 4)
fairlead submit < job.sh

A file has one JSON object a line, or one array as .json or .yaml; the fields are
command, name, queue, priority, cpu, memory, gpu, resources, env, cwd, grace, time_limit, signal, tags,
labels, node_selector, ports, beside, apart_from, retry, retry_backoff, no_retry_on, idle,
priority_class, hold, begin, array, after, after_ok, after_any, after_not_ok, on_never,
stdout, stderr, stdin, open_mode, umask, notify, notify_on. What follows after in it are keys, or
names of other jobs in the file.

With --wait the exit status is the job's own; 128+N if signal N ended it, 124 if its time limit did,
1 if it is lost, 4 if it was rejected or taken back before it ran.
"""

command_argument = click.argument(
    "command", nargs=-1, metavar="[COMMAND [ARG...]]", help="The command to run, best written after --."
)


@command("submit", cls=scripts.ScriptCommand, examples=_EXAMPLES, context_settings={"allow_interspersed_args": False})
@command_argument
@jobfields.options()
@environment_options
@click.option(
    "--file", "-f", metavar="FILE", help="Submit all jobs of a .jsonl, .json or .yaml file; - is standard input."
)
@click.option(
    "--wait", "-w", is_flag=True, help="Wait for the end, pass on its output, and leave with its exit status."
)
@singleton_option
@click.option("--quiet", is_flag=True, help="Print nothing; with --wait, not the output of the job either.")
@click.option(
    "--ignore-directives",
    is_flag=True,
    help="Read no lines of a script that begin with #FAIRLEAD, #SBATCH, #PBS, #BSUB or #$.",
)
@key_output
@connected
def submit(
    client: Client,
    file: str | None,
    wait: bool,
    singleton: bool,
    quiet: bool,
    ignore_directives: bool,
    output: str,
    **given: Any,
) -> Status:
    """Submit a command or a script as a job, and print its key.

    The job runs in this directory, as you, with a small clean environment (PATH, HOME, USER, LANG, SHELL and what
    --env, --env-file and --export give). All options come before the command. Beside --file they say what holds for
    jobs that do not say.

    A file that begins with #! and does not follow -- is a script: it is kept with the job as it is now, and lines such
    as #FAIRLEAD --cpu 4 before its first command are options; those that are typed count more. For - the script is what
    is piped in, and so it is where nothing is named.
    """
    if not (given["command"] or file or scripts.has_dashes(click.get_current_context()) or sys.stdin.isatty()):
        given["command"] = (scripts.INPUT,)
    if bool(given["command"]) == bool(file):
        raise wrong_usage("submit: give either a command (after --), a script, or --file FILE")
    if file and singleton:
        raise wrong_usage("submit: --singleton is about one job; in a file after_any names the others")
    if file:
        jobs = read_jobs(file, read_text(file), as_here(scripts.fields_of(given)))
    else:
        job, others = described_by(click.get_current_context(), given, directives=not ignore_directives)
        if singleton or others.get(NAME):
            job = Described(job.where, behind_its_like(client, job.body), job.places)
        jobs, wait = [job], wait or others.get("wait", False)
    rows = send(client, jobs) if not file else _send_file(client, jobs)
    keys = [row.key for row in rows]
    told = not quiet and output == "text"
    if told:
        say_what_cannot_start(rows)
        say_when_signals_come(jobs, rows)
    if not wait and not render.write_value(rows, output) and not quiet:
        print("\n".join(keys), flush=True)
        say_where(jobs, rows)
    if not wait:
        return None
    from fairlead.cli.follow import wait_for

    return wait_for(client, keys, copy=told, output=output)


def described_by(ctx: click.Context, given: dict[str, Any], *, directives: bool) -> tuple[Described, dict[str, Any]]:
    """The job of a command line, and the options of its script that are no fields. Raises `Failure` (usage)."""
    words = given["command"]
    script = scripts.read_script(ctx, words, directives=directives)
    if script is None:
        check_command(words)
        return from_options(as_here(scripts.fields_of(given))), {}
    usual = scripts.fields_of(scripts.by_source(ctx, given, typed=False))
    typed = scripts.fields_of(scripts.by_source(ctx, given, typed=True)) | {"command": script.words}
    stated = scripts.joined(scripts.joined(usual, script.stated), typed)
    places = {jobfields.flag_of(name): where for name, where in script.places.items() if name not in typed}
    try:
        job = from_options(as_here(stated))
    except Failure as wrong:
        if where := places.get(wrong.message.partition(":")[0]):
            raise wrong_usage(f"{where}: {wrong.message}") from None
        raise
    if directives and (found := foreign_scripts.submitted_in(script.text, os.getcwd())):
        job.body["env"] = found | job.body.get("env", {})
    if directives and (commands := foreign_scripts.called_by(script.text)):
        complain(f"{script.words[0]} calls commands that are not on this machine:", commands)
    if directives and (variables := foreign_scripts.read_by(script.text, job.body.get("env", {}))):
        complain(f"{script.words[0]} reads variables of other schedulers, which are not set here:", variables)
    return Described(job.where, job.body | {"script": script.text}, places), script.others


def from_options(stated: dict[str, Any]) -> Described:
    """The job that options describe. Raises `Failure` (usage) that names the option at fault."""
    try:
        return describe(stated, _TYPED)
    except Failure as failure:
        said = failure.message.removeprefix(f"{_TYPED}: ")
        if said.startswith("command: is empty"):  # It was no option.
            raise wrong_usage(f"{_TYPED}: the command is empty; write it behind --") from None
        if said.startswith("command: "):
            raise wrong_usage(f"{_TYPED}: the {said.replace(':', '', 1)}") from None
        raise wrong_usage(jobfields.as_options(said)) from None


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


def _send_file(client: Client, jobs: list[Described]) -> list[SubmittedJob]:
    """The jobs of a file, which may wait for each other by name; in the order of the file."""
    order = named_jobs.in_order(jobs)
    sent = send(client, [jobs[number] for number in order])
    return [row for _, row in sorted(zip(order, sent, strict=True), key=lambda pair: pair[0])]


def send(client: Client, jobs: list[Described]) -> list[SubmittedJob]:
    """Submit in requests that the service takes; each of them is accepted as a whole or not at all."""
    rows: list[SubmittedJob] = []
    for batch in batches(jobs):
        keys = [row.key for row in rows]
        try:
            rows += client.submit([named_jobs.with_keys(job.body, keys) for job in batch]).jobs
        except Refused as refused:
            raise as_failure_of(batch, refused, keys) from None
        except ClientError as error:
            if not keys:
                raise
            raise Failure(error.message + _taken_before(keys), app.status_of(error), error.details) from None
    return rows


def _taken_before(keys: Sequence[str]) -> str:
    """What is said of jobs of earlier requests, where a later one went wrong."""
    return f" ({len(keys)} jobs before it are submitted already: {keys[0]} to {keys[-1]})" if keys else ""


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
