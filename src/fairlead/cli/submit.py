"""`fairlead submit`: hand jobs to the service, and wait for it if asked.

Decides how options and files become one submission, and which exit status a waited-for job gives. Never submits twice:
each request has its own idempotency key. Invariant: what is printed on standard output is keys alone, one a line (or
the job's own output with --wait).
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from fairlead.cli import completion, render
from fairlead.cli.app import JsonOption, Status, client_command, complain
from fairlead.cli.client import Client
from fairlead.cli.failures import Failure, wrong_usage
from fairlead.cli.jobfile import Described, as_failure_of, describe, read_jobs, read_text
from fairlead.cli.values import parse_pairs

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

Command = Annotated[
    list[str] | None, typer.Argument(metavar="COMMAND [ARG...]", help="The command to run, best written after --.")
]
Queue = Annotated[
    str | None,
    typer.Option(
        "--queue",
        "-q",
        envvar="FAIRLEAD_QUEUE",
        metavar="QUEUE",
        help="Full path of the queue.",
        autocompletion=completion.queues,
    ),
]
Priority = Annotated[
    int | None,
    typer.Option(
        "--priority",
        "-p",
        metavar="N",
        min=-(2**31),
        max=2**31 - 1,
        help="Higher goes first; 0 if not given.",
        show_default=False,
    ),
]
Cpu = Annotated[
    str | None, typer.Option("--cpu", "-c", metavar="CORES", help="Cores, such as 2, 0.5 or 500m; 1 if not given.")
]
Memory = Annotated[
    str | None,
    typer.Option(
        "--memory", "-m", metavar="SIZE", help="Memory, such as 512Mi or 4Gi; none counted and no limit if not given."
    ),
]
Gpu = Annotated[int | None, typer.Option("--gpu", "-g", metavar="N", min=0, help="GPU devices; none if not given.")]
Resource = Annotated[
    list[str] | None,
    typer.Option("--resource", metavar="NAME=N", help="Any other resource that the node declares; may be repeated."),
]
Name = Annotated[
    str | None,
    typer.Option("--name", "-n", metavar="NAME", help="A name to find it by; the command's name if not given."),
]
Env = Annotated[
    list[str] | None,
    typer.Option(
        "--env",
        "-e",
        metavar="NAME[=VALUE]",
        help="Environment variable; without =VALUE, yours is passed on. May be repeated.",
    ),
]
Cwd = Annotated[str | None, typer.Option("--cwd", metavar="DIR", help="Directory to run in; this one if not given.")]
Tag = Annotated[
    list[str] | None,
    typer.Option("--tag", metavar="NAME=VALUE", help="A note for people and scripts; may be repeated."),
]
Grace = Annotated[
    str | None,
    typer.Option(
        "--grace",
        metavar="TIME",
        help="From being asked to stop (SIGTERM) to being killed: seconds, or 90s, 2m; 30s if not given.",
    ),
]
TimeLimit = Annotated[
    str | None,
    typer.Option(
        "--time-limit",
        "-t",
        metavar="TIME",
        help="Longest time to run: seconds, or 10m, 2h, 1h30m; unlimited if not given.",
    ),
]
Retry = Annotated[
    int | None,
    typer.Option(
        "--retry", metavar="N", min=0, help="Try it again up to N times when it is broken off or fails; 0 if not given."
    ),
]
RetryBackoff = Annotated[
    str | None,
    typer.Option(
        "--retry-backoff", metavar="TIME", help="Wait so long before trying again, twice as long each time; at most 1h."
    ),
]
NoRetryOn = Annotated[
    str | None,
    typer.Option(
        "--no-retry-on", metavar="STATUS,...", help="Exit statuses after which it is not tried again; 128+N: signal N."
    ),
]
Idle = Annotated[
    bool, typer.Option("--idle", help="Run on what others leave over, beyond the queue's maximum, and give it back.")
]
PriorityClass = Annotated[
    str | None, typer.Option("--priority-class", metavar="NAME", help="A priority by its name, instead of --priority.")
]
Label = Annotated[
    list[str] | None,
    typer.Option(
        "--label",
        metavar="NAME=VALUE",
        help="What disruption budgets, affinity and spread select by; may be repeated.",
    ),
]
NodeSelector = Annotated[
    list[str] | None,
    typer.Option("--node-selector", metavar="NAME=VALUE", help="An attribute its node must have; may be repeated."),
]
Port = Annotated[
    list[str] | None,
    typer.Option(
        "--port",
        metavar="PORT",
        help="A port that it listens on, such as 8080 or UDP/53: never two jobs at once. May be repeated.",
    ),
]
Beside = Annotated[
    list[str] | None,
    typer.Option(
        "--beside", metavar="NAME=VALUE", help="Start only while a job with this label runs; may be repeated."
    ),
]
ApartFrom = Annotated[
    list[str] | None,
    typer.Option("--apart-from", metavar="NAME=VALUE", help="Never run with a job with this label; may be repeated."),
]
File = Annotated[
    str | None,
    typer.Option(
        "--file", "-f", metavar="FILE", help="Submit all jobs of a .jsonl, .json or .yaml file; - is standard input."
    ),
]
Wait = Annotated[
    bool, typer.Option("--wait", "-w", help="Wait for the end, pass on its output, and leave with its exit status.")
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print nothing; with --wait, not the output of the job either.")]


def register(app: typer.Typer) -> None:
    """Add the command."""
    client_command(app, "submit", examples=_EXAMPLES, allow_interspersed_args=False)(submit)


def submit(
    client: Client,
    command: Command = None,
    queue: Queue = None,
    priority: Priority = None,
    cpu: Cpu = None,
    memory: Memory = None,
    gpu: Gpu = None,
    resource: Resource = None,
    name: Name = None,
    env: Env = None,
    cwd: Cwd = None,
    tag: Tag = None,
    grace: Grace = None,
    time_limit: TimeLimit = None,
    retry: Retry = None,
    retry_backoff: RetryBackoff = None,
    no_retry_on: NoRetryOn = None,
    idle: Idle = False,
    priority_class: PriorityClass = None,
    label: Label = None,
    node_selector: NodeSelector = None,
    port: Port = None,
    beside: Beside = None,
    apart_from: ApartFrom = None,
    file: File = None,
    wait: Wait = False,
    quiet: Quiet = False,
    json: JsonOption = False,
) -> Status:
    """Submit a command as a job, and print its key.

    The job runs in this directory, as you, with a small clean environment (PATH, HOME, USER, LANG, SHELL and what
    --env gives). All options come before the command. Beside --file they say what holds for jobs that do not say.
    """
    if bool(command) == bool(file):
        raise wrong_usage("submit: give either a command (after --) or --file FILE")
    given: dict[str, Any] = {
        "queue": queue,
        "priority": priority,
        "cpu": cpu,
        "memory": memory,
        "gpu": gpu,
        "name": name,
        "grace": grace,
        "time_limit": time_limit,
        "cwd": str(Path(cwd or ".").absolute()),
        "env": environment(env or ()),
        "resources": parse_pairs(resource or (), "--resource", "licence=1"),
        "tags": parse_pairs(tag or (), "--tag", "project=apollo"),
        "labels": parse_pairs(label or (), "--label", "app=train"),
        "node_selector": parse_pairs(node_selector or (), "--node-selector", "disk=ssd"),
        "ports": port or None,
        "beside": parse_pairs(beside or (), "--beside", "app=db"),
        "apart_from": parse_pairs(apart_from or (), "--apart-from", "app=train"),
        "retry": retry,
        "retry_backoff": retry_backoff,
        "no_retry_on": no_retry_on,
        "idle": idle or None,
        "priority_class": priority_class,
    }
    stated = {field: value for field, value in given.items() if value not in (None, {})}
    if file:
        jobs = read_jobs(file, read_text(file), stated)
    else:
        check_command(command or [])
        jobs = [from_options(stated | {"command": command})]
    rows = send(client, jobs)
    keys = [row["key"] for row in rows]
    if not quiet and not json:
        _say_what_cannot_start(rows)
    if json and not wait:
        render.write_json(rows)
    elif not quiet and not wait:
        print("\n".join(keys), flush=True)
        _say_where(jobs, rows)
    if not wait:
        return None
    from fairlead.cli.follow import wait_for

    return wait_for(client, keys, output=not quiet and not json, as_json=json)


def _say_where(jobs: list[Described], rows: list[dict[str, Any]]) -> None:
    """On standard error, the queue of each job that names none or was placed elsewhere; to a person only."""
    if not sys.stderr.isatty():
        return
    for job, row in zip(jobs, rows, strict=True):
        asked = job.body.get("queue") or ""
        if row["queue"] not in (asked, f"root.{asked}"):
            complain(f"{row['key']} is in {row['queue']}")


_HOPELESS = ("no-nodes", "too-big-for-every-node", "required-node-unknown")
"""Reasons to wait that no end of other work takes away."""


def _say_what_cannot_start(rows: list[dict[str, Any]]) -> None:
    """On standard error, the first job that waits for what there is not, and how many more do."""
    found = [row for row in rows if (row.get("reason") or {}).get("code") in _HOPELESS]
    if found:
        more = f"; likewise {len(found) - 1} more" if len(found) > 1 else ""
        complain(f"{found[0]['key']} cannot start as things are: {found[0]['reason']['sentence']}{more}")


def from_options(entry: dict[str, Any]) -> Described:
    """The job that options describe. Raises `Failure` (usage) that names the option at fault."""
    try:
        return describe(entry, "submit")
    except Failure as failure:
        message = failure.message.replace("submit: ", "--", 1).replace("--ports:", "--port:", 1)
        for name in ("time_limit", "retry_backoff", "no_retry_on", "priority_class"):
            message = message.replace(f"--{name}:", f"--{name.replace('_', '-')}:")
        raise wrong_usage(message) from None


def environment(texts: tuple[str, ...] | list[str]) -> dict[str, str]:
    """`NAME=VALUE`, or `NAME` for the value it has here. Raises `Failure` (usage) for a name without a value."""
    complete = []
    for text in texts:
        if "=" not in text and text not in os.environ:
            raise wrong_usage(f"--env: {text!r} is not set here; write {text}=VALUE")
        complete.append(text if "=" in text else f"{text}={os.environ[text]}")
    return parse_pairs(complete, "--env", "SEED=1")


def check_command(command: list[str]) -> None:
    """Catch a shell line given as one word: it would be looked for as a program of that name."""
    first = command[0]
    if len(command) == 1 and any(c.isspace() for c in first) and not shutil.which(first) and not Path(first).exists():
        import shlex

        raise wrong_usage(
            f"there is no program named {first!r}; to run a shell line write: -- sh -c {shlex.quote(first)}"
        )


def send(client: Client, jobs: list[Described]) -> list[dict[str, Any]]:
    """Submit in requests that the service takes; each of them is accepted as a whole or not at all."""
    rows: list[dict[str, Any]] = []
    for batch in batches(jobs):
        try:
            answer = client.post("/jobs", {"jobs": [job.body for job in batch]}, idempotency_key=os.urandom(16).hex())
        except Failure as failure:
            raise as_failure_of(batch, failure, len(rows)) from None
        rows += answer["jobs"]
    return rows


def batches(jobs: list[Described]) -> list[list[Described]]:
    """The jobs in order, cut where a request would grow too large."""
    import json

    found: list[list[Described]] = [[]]
    size = 0
    for job in jobs:
        length = len(json.dumps(job.body))
        if found[-1] and (len(found[-1]) >= _BATCH or size + length > _BATCH_BYTES):
            found.append([])
            size = 0
        found[-1].append(job)
        size += length
    return found
