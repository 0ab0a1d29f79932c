"""The fields of a job: how each is written as an option and in a file, what it means, and how `ls` shows it.

Decides which fields a description may have and refuses what has no meaning, with its place. Never submits. Invariant: a
field is said here once; `submit`, files of jobs and `ls` take it from here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from fairlead.cli import completion, render
from fairlead.cli.app import wrong_usage
from fairlead.cli.field import Field
from fairlead.cli.parts import counted
from fairlead.cli.streams import STREAMS
from fairlead.client.sync import LIVE
from fairlead.core.model.quantities import format_bytes
from fairlead.wire import limit_signals
from fairlead.wire.statuses import signal_name

if TYPE_CHECKING:
    from fairlead.wire.jobs import Job, JobDetails, PastAttempt, Retry

_F = TypeVar("_F", bound=Callable[..., Any])


def _pairs(name: str, flag: str, example: str, text: str, metavar: str = "NAME=VALUE") -> Field:
    return Field(name, flag, metavar, f"{text}; may be repeated.", "many_texts", pair=example)


def _after(name: str, flag: str, text: str) -> Field:
    return Field(name, flag, "KEY", f"{text}; may be repeated.", settings={"multiple": True})


_QUEUE = {"envvar": "FAIRLEAD_QUEUE", "show_envvar": True, "shell_complete": completion.queues}
_PRIORITY = {"type": click.IntRange(-(2**31), 2**31 - 1)}
_COUNT = {"type": click.IntRange(0)}
_STATUSES = 255

FIELDS: Final = (
    Field("command"),
    Field("queue", "--queue -q", "QUEUE", "Full path of the queue.", "one_text", settings=_QUEUE),
    Field("priority", "--priority -p", "N", "Higher goes first.", "priority", absent="0", settings=_PRIORITY),
    Field("cpu", "--cpu -c", "CORES", "Cores, such as 2, 0.5 or 500m.", absent="what the queue says, else 1,"),
    Field(
        "memory",
        "--memory -m",
        "SIZE",
        "Memory, such as 512Mi or 4Gi.",
        absent="what the queue says, else no limit,",
    ),
    Field("gpu", "--gpu -g", "N", "GPU devices.", absent="none", settings=_COUNT),
    Field(
        "resources",
        "--resource",
        "NAME=N",
        "Any other resource that the node declares; may be repeated.",
        pair="licence=1",
    ),
    Field("name", "--name", "NAME", "A name to find it by.", "one_text", absent="the command's name"),
    _pairs("env", "--env -e", "SEED=1", "Environment variable; without =VALUE, yours is passed on", "NAME[=VALUE]"),
    Field("cwd", "--cwd", "DIR", "Directory to run in.", "one_text", absent="this one"),
    _pairs("tags", "--tag", "project=apollo", "A note for people and scripts"),
    Field(
        "grace",
        "--grace",
        "TIME",
        "From being asked to stop (SIGTERM) to being killed: seconds, or 90s, 2m.",
        "duration",
        "grace_ms",
        absent="30s",
    ),
    Field(
        "time_limit",
        "--time-limit -t",
        "TIME",
        "Longest time to run: seconds, or 10m, 2h, 1h30m.",
        "time_limit",
        "time_limit_ms",
        absent="what the queue says, else unlimited,",
    ),
    Field(
        "signal",
        "--signal",
        "SIG@TIME",
        "A signal so long before its time limit: USR1@5m; B:USR1@5m: to its first process alone, A: to all.",
        "limit_signal",
        "limit_signal",
    ),
    Field(
        "retry",
        "--retry",
        "N",
        "Try it again up to N times when it is broken off or fails.",
        absent="what the queue says, else 0,",
        settings=_COUNT,
    ),
    Field(
        "retry_backoff",
        "--retry-backoff",
        "TIME",
        "Wait so long before trying again, twice as long each time; at most 1h.",
    ),
    Field(
        "no_retry_on",
        "--no-retry-on",
        "STATUS,...",
        "Exit statuses after which it is not tried again; 128+N: signal N; any: only what is broken off is.",
    ),
    Field(
        "idle",
        "--idle",
        None,
        "Run on what others leave over, beyond the queue's maximum, and give it back.",
        "yes_or_no",
        settings={"is_flag": True},
    ),
    Field("priority_class", "--priority-class", "NAME", "A priority by its name, not --priority.", "one_text"),
    Field(
        "hold",
        "--hold",
        None,
        "Keep it from starting until `fairlead release`.",
        "yes_or_no",
        settings={"is_flag": True},
    ),
    Field(
        "begin",
        "--begin",
        "TIME",
        "Not before: now+1h, 16:00, tomorrow, 2026-03-01T08:00.",
        "begin",
        "begin_at_ms",
    ),
    Field(
        "array",
        "--array -a",
        "INDICES",
        "Run it once for each index, as parts of one job: 0-15, 1,3,5-7, 1-7:2; 1-200%8: 8 at a time.",
        "array",
    ),
    _after("after", "--after", "Start once this job has started (or ended without)"),
    _after("after_ok", "--after-ok", "Start once this job has ended well"),
    _after("after_any", "--after-any", "Start once this job has ended"),
    _after("after_not_ok", "--after-not-ok", "Start once this job has ended otherwise than well"),
    Field(
        "on_never",
        "--on-never",
        "WHAT",
        "When that can never be: wait on and say so, or cancel.",
        "on_never",
        absent="wait",
        settings={"type": click.Choice(["wait", "cancel"])},
    ),
    *STREAMS,
    _pairs("labels", "--label", "app=train", "What disruption budgets, affinity and spread select by"),
    _pairs("node_selector", "--node-selector", "disk=ssd", "An attribute its node must have"),
    Field(
        "ports",
        "--port",
        "PORT",
        "A port that it listens on, such as 8080 or UDP/53: never two jobs at once. May be repeated.",
        "ports",
    ),
    _pairs("beside", "--beside", "app=db", "Start only while a job with this label runs"),
    _pairs("apart_from", "--apart-from", "app=train", "Never run with a job with this label"),
)
NAMES: Final = tuple(each.name for each in FIELDS)


def options(*names: str) -> Callable[[_F], _F]:
    """The options of all fields, for a new job, or of these, to change one."""

    def declare(function: _F) -> _F:
        for each in reversed(FIELDS):
            if each.flag and (not names or each.name in names):
                function = each.option(function, new=not names)
        return function

    return declare


def stated(given: Mapping[str, Any]) -> dict[str, Any]:
    """What options say, as a file would say it; nothing of what was not given. Raises `Failure` (usage)."""
    values = {each.name: each.given(given[each.name]) for each in FIELDS if given.get(each.name) is not None}
    return {name: value for name, value in values.items() if value is not False and value not in ({}, ())}


def as_options(message: str) -> str:
    """A message about a field of `stated`, with the option that the user wrote in its place, unless it is there."""
    if message.startswith("--"):
        return message
    name, colon, rest = message.partition(":")
    return f"{flag_of(name)}{colon}{rest}"


def flag_of(name: str) -> str:
    """The option for a field of `stated`."""
    return next((each.flag.split()[0] for each in FIELDS if each.flag and each.name == name), f"--{name}")


_SENT_AS: Final = {
    "after": "",
    "resources.memory": "--memory",
    "resources.cpu": "--cpu",
    "resources.gpu": "--gpu",
    "retry.limit": "--retry",
    "retry.backoff_ms": "--retry-backoff",
    "retry.never_on": "--no-retry-on",
    "terminal": "--pty",
}


def option_of(field: str) -> str:
    """The option for a field of what is sent, such as `time_limit_ms`; the field itself where it has none.

    Nothing for `after`, which comes of several: what is said of it names the job.
    """
    name = field.partition("[")[0]
    found = next((each for each in FIELDS if each.flag and name in (each.sent_as or each.name, each.name)), None)
    return _SENT_AS.get(name, found.flag.split()[0] if found is not None else field)


AFTER: Final = {"after": "started", "after_ok": "ok", "after_any": "any", "after_not_ok": "not-ok"}
"""The fields that name other jobs to wait for, and what each waits for of them."""


def meant(entry: Mapping[str, Any], where: str) -> dict[str, Any]:
    """What is sent for those of these fields that mean something alone, and for the jobs to wait for."""
    from fairlead.cli import values

    body: dict[str, Any] = {}
    for each in FIELDS:
        value = entry.get(each.name)
        if each.meaning and value not in (None, {}, [], ()):
            body[each.sent_as or each.name] = getattr(values, each.meaning)(value, f"{where}: {each.name}")
    if after := values.after(entry, where):
        body["after"] = after
    return body


def described(entry: Mapping[str, Any], where: str) -> dict[str, Any]:
    """What the service takes for a job of these fields. Raises `Failure` (usage) naming the field."""
    from fairlead.cli import values

    body: dict[str, Any] = {"command": values.command(entry.get("command"), where), **meant(entry, where)}
    if (retry := values.retry(entry, where)) is not None:
        body["retry"] = retry
    if notices := values.notices(entry, where):
        body["notify"] = notices
    if resources := values.resources(entry, where):
        body["resources"] = resources
    if resources and not any(resources.values()):
        raise wrong_usage(f"{where}: cpu: the job asks for nothing; ask for a little, such as 0.1")
    body.setdefault("name", os.path.basename(body["command"][0]))
    return body


AWAITED: Final = {"started": "start", "ok": "end well", "any": "end", "not-ok": "end otherwise than well"}
"""What is waited for of another job, in words."""


# -- how they are shown -------------------------------------------------------------------------------------------


def exit_text(job: Job | JobDetails) -> str:
    """`0`, `3`, `SIGKILL`; empty while there is no end."""
    if job.exit_code is not None:
        return str(job.exit_code)
    return signal_name(job.signal) if job.signal else ""


def elapsed_ms(job: Job, now_ms: int) -> int:
    """How long it has run, what it stood still not counted, or waited if it never ran."""
    until_ms = job.suspended_at_ms or job.ended_at_ms or now_ms
    # It may have been told to stand still before it began.
    return max(until_ms - (job.started_at_ms or job.submitted_at_ms) - job.suspended_ms, 0)


def limit_signal(job: JobDetails) -> str:
    """`SIGUSR1 5m before its time limit, to all its processes`; empty: it wants none."""
    if not job.limit_signal:
        return ""
    number, before_s, _ = limit_signals.parse(job.limit_signal)
    before = render.duration(before_s * 1000)
    return f"{signal_name(number)} {before} before its time limit, {limit_signals.to_whom(job.limit_signal)}"


def details(job: JobDetails, now_ms: int) -> list[tuple[str, str]]:
    """Titles and texts of everything about a job; what is empty is not shown."""
    import shlex

    ran = elapsed_ms(job, now_ms) if job.started_at_ms else None
    return [
        ("key", job.key),
        ("name", job.name),
        ("state", job.state),
        ("parts", counted(job.parts) if job.parts else ""),
        ("reason", job.reason.sentence if job.reason else ""),
        ("exit", exit_text(job)),
        ("queue", job.queue),
        ("user", job.user),
        ("priority", str(job.priority)),
        ("resources", render.amounts(job.resources)),
        ("node", job.node),
        ("command", shlex.join(job.command)),
        ("directory", job.cwd),
        ("environment", ", ".join(sorted(job.env))),
        ("tags", _joined(job.tags)),
        ("submitted", render.moment(job.submitted_at_ms)),
        ("started", render.moment(job.started_at_ms)),
        ("ended", render.moment(job.ended_at_ms)),
        ("ran", render.duration(ran) if ran is not None else ""),
        ("cpu time", render.duration(job.cpu_ms) if job.cpu_ms else ""),
        ("memory now", format_bytes(job.memory_bytes) if job.memory_bytes else ""),
        ("peak memory", format_bytes(job.peak_memory_bytes) if job.peak_memory_bytes else ""),
        ("grace", render.duration(job.grace_ms)),
        ("time limit", render.duration(job.time_limit_ms) if job.time_limit_ms else ""),
        ("signal", limit_signal(job)),
        ("pid", str(job.pid) if job.pid and job.state in LIVE else ""),
        ("idle", "yes, it runs on what others leave over" if job.idle else ""),
        ("class", job.priority_class),
        ("labels", _joined(job.labels)),
        *((name.replace("_", " "), _joined(getattr(job, name))) for name in ("node_selector", "beside", "apart_from")),
        ("ports", ", ".join(job.ports)),
        ("rerun of", job.rerun_of),
        ("on hold", f"by {job.held_by}" if job.held_by else ""),
        ("begins", render.moment(job.begin_at_ms) if job.begin_at_ms else ""),
        ("waits for", ", ".join(f"{each.key} ({AWAITED[each.awaited]})" for each in job.after)),
        ("reserved", "the next room is kept for it" if job.reserved else ""),
        ("messages", ", ".join(f"{each.to} ({', '.join(each.on)})" for each in job.notify)),
        ("checkpoint", render.moment(job.checkpoint_at_ms)),
        ("retry", _retry(job.retry)),
        ("attempts", _attempts(job)),
        ("error", job.error),
        ("stdin", job.stdin),
        ("stdout", job.stdout or ""),
        ("stderr", job.stderr or ""),
        ("umask", job.umask),
        (
            "enforced",
            "\n".join(f"{each.name}: {'yes' if each.enforced else 'no'}, {each.how}" for each in job.enforcement),
        ),
    ]


def _attempts(job: JobDetails) -> str:
    """One line for each attempt that is over, with when it began, how long it ran and how it ended."""
    past, count = job.past, job.attempts
    lines = []
    for each in past:
        begin, end = each.started_at_ms, each.ended_at_ms
        ran = f", ran {render.duration(max(end - begin - each.suspended_ms, 0))}" if begin else ""
        lines.append(f"{each.attempt}: {render.moment(begin or end)}{ran}, {_ended(each)}")
    if lines and count > len(past):
        lines.append(f"{count}: {job.state}")
    return "\n".join(lines)


def _ended(attempt: PastAttempt) -> str:
    """How an attempt ended, without saying its state twice."""
    state, how = attempt.state, attempt.how
    return how if how.startswith(state) else f"{state}: {how}"


def _joined(pairs: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in sorted(pairs.items()))


def _retry(retry: Retry | None) -> str:
    if not retry:
        return ""
    if not retry.limit:
        return "never"
    times = "once" if retry.limit == 1 else f"up to {retry.limit} times"
    wait = f", after {render.duration(retry.backoff_ms)} and more" if retry.backoff_ms else ""
    which = "any" if len(retry.never_on) == _STATUSES else ", ".join(map(str, retry.never_on))
    never = f", not after exit status {which}" if retry.never_on else ""
    return times + wait + never
