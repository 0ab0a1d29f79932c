"""Commands about jobs: ls, show, cancel, priority, move.

Decides which rows and fields are shown, and in which words. Never changes anything but through the service. Invariant:
`--json` prints what the service said, so that scripts do not depend on the layout.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from http import HTTPStatus
from typing import Annotated, Any

import typer

from fairlead.cli import completion, render
from fairlead.cli.app import JsonOption, KeyArgument, QueueOption, Status, client_command, complain
from fairlead.cli.client import Client, Refusal
from fairlead.cli.failures import REFUSED, Failure, wrong_usage
from fairlead.cli.keys import NamespaceOption, key_of
from fairlead.cli.render import Column, Screen
from fairlead.core.quantities import format_amount, format_bytes

LIVE_STATES = ("waiting", "running", "stopping")
ENDED_STATES = ("succeeded", "failed", "cancelled", "evicted", "lost", "timed_out", "rejected")
_ENDED_SHOWN = 20
_HISTORY_SHOWN = 12

_COLUMNS = (
    Column("KEY"),
    Column("NAME", least=10),
    Column("QUEUE", least=12, keep_end=True),
    Column("USER", least=6, drop=1),
    Column("PRIORITY", right=True, drop=5),
    Column("STATE"),
    Column("TIME", right=True),
    Column("CPU", right=True, drop=3),
    Column("MEMORY", right=True, drop=2),
    Column("NODE", least=8, drop=4),
    Column("EXIT", right=True, drop=6),
    Column("REASON", least=24),
)


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    client_command(app, "ls", examples=_LS_EXAMPLES)(ls)
    client_command(app, "show", examples="fairlead show 17\nfairlead show 17 --history\nfairlead show 17 --json")(show)
    client_command(app, "cancel", examples="fairlead cancel 17 18\nfairlead cancel --queue root.batch --state waiting")(
        cancel
    )
    client_command(
        app, "priority", examples="fairlead priority 17 100\nfairlead priority 17 -5", ignore_unknown_options=True
    )(priority)
    client_command(app, "move", examples="fairlead move 17 root.batch")(move)


_LS_EXAMPLES = """
fairlead ls
fairlead ls -a --user ann --state failed
fairlead ls --json | jq -r '.[] | select(.state == "waiting") | .key + " " + .reason.sentence'
"""


def ls(
    client: Client,
    every: Annotated[
        bool, typer.Option("--all", "-a", help=f"All that ended too, not just the last {_ENDED_SHOWN}.")
    ] = False,
    queue: QueueOption = None,
    state: Annotated[
        list[str] | None,
        typer.Option(
            "--state",
            "-s",
            metavar="STATE",
            help=f"Only this state; may be repeated. One of {', '.join(LIVE_STATES + ENDED_STATES)}.",
        ),
    ] = None,
    user: Annotated[str | None, typer.Option("--user", "-u", metavar="USER", help="Only this user's jobs.")] = None,
    name: Annotated[str | None, typer.Option("--name", "-n", metavar="NAME", help="Only jobs of this name.")] = None,
    json: JsonOption = False,
) -> Status:
    """List jobs: what runs, what waits and why.

    TIME is how long it has waited, or has run. With --json every row is printed, as one array whose rows have key,
    name, queue, user, priority, state, node, exit_code, reason, submitted_at_ms, started_at_ms, ended_at_ms, resources.
    """
    check_states(state)
    rows = sorted(select(client, state or (), queue=queue, user=user, name=name), key=_by_key)
    if json:
        render.write_json(rows)
        return None
    live = [row for row in rows if row["state"] in LIVE_STATES]
    ended = [row for row in rows if row["state"] not in LIVE_STATES]
    hidden = 0 if every or state else max(0, len(ended) - _ENDED_SHOWN)
    screen = Screen.of()
    print_jobs(screen, [*sorted(ended, key=_by_end)[hidden:], *live])
    if hidden:
        complain(f"{hidden} more that ended earlier are not shown; `fairlead ls -a` shows them.")
    return None


def check_states(states: Iterable[str] | None) -> None:
    """Raise `Failure` (usage) for a state that does not exist."""
    for state in states or ():
        if state not in LIVE_STATES + ENDED_STATES:
            raise wrong_usage(
                f"--state: there is no state {state!r}; write one of {', '.join(LIVE_STATES + ENDED_STATES)}"
            )


def select(client: Client, states: Iterable[str], **filters: str | None) -> list[dict[str, Any]]:
    """All rows that pass the filters; no state means every state."""
    return list(client.jobs({"state": tuple(dict.fromkeys(states)), **filters}))


def _by_key(row: dict[str, Any]) -> tuple[int, str]:
    key = row["key"]
    return (int(key) if key.isdecimal() else 0, key)


def _by_end(row: dict[str, Any]) -> tuple[int, int, str]:
    return (row.get("ended_at_ms") or 0, *_by_key(row))


def print_jobs(screen: Screen, rows: list[dict[str, Any]], now_ms: int | None = None) -> None:
    """A table of jobs. Without a terminal every column is there, with a dash for what is empty."""
    now = int(time.time() * 1000) if now_ms is None else now_ms
    columns = list(_COLUMNS)
    if screen.width is not None:
        same_user, same_node = (len({r.get(k) for r in rows if r.get(k)}) <= 1 for k in ("user", "node"))
        columns = [
            c for c in columns if not (c.title == "USER" and same_user) and not (c.title == "NODE" and same_node)
        ]
    cells = [{c.title: text for c, text in zip(_COLUMNS, job_cells(row, now), strict=True)} for row in rows]
    render.table(screen, columns, [[row[c.title] for c in columns] for row in cells], render.state_styles())


def job_cells(row: dict[str, Any], now_ms: int) -> tuple[str, ...]:
    """One row of text, in the order of the columns."""
    resources = row.get("resources") or {}
    reason = row.get("reason") or {}
    return (
        row["key"],
        row.get("name") or "",
        row.get("queue") or "",
        row.get("user") or "",
        str(row.get("priority", "")),
        row["state"],
        render.duration(elapsed_ms(row, now_ms)),
        format_amount("vcore", resources["vcore"]) if "vcore" in resources else "",
        format_amount("memory", resources["memory"]) if "memory" in resources else "",
        row.get("node") or "",
        exit_text(row),
        reason.get("sentence") or "",
    )


def exit_text(row: dict[str, Any]) -> str:
    """`0`, `3`, `SIGKILL`; empty while there is no end."""
    if row.get("exit_code") is not None:
        return str(row["exit_code"])
    return signal_name(row["signal"]) if row.get("signal") else ""


def signal_name(number: int) -> str:
    """`SIGTERM` for 15; `signal 99` for one without a name."""
    import signal

    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def elapsed_ms(row: dict[str, Any], now_ms: int) -> int | None:
    """How long it has run, or waited if it never ran."""
    begin = row.get("started_at_ms") or row.get("submitted_at_ms")
    return None if begin is None else (row.get("ended_at_ms") or now_ms) - begin


def show(
    client: Client,
    key: KeyArgument,
    history: Annotated[
        bool,
        typer.Option("--history", help=f"The whole of its history, instead of the last {_HISTORY_SHOWN} entries."),
    ] = False,
    namespace: NamespaceOption = None,
    json: JsonOption = False,
) -> Status:
    """Show everything about one job.

    Command, times, what it used, which limits are really enforced, and the end of its history. With --history: who put
    it where by which rule, what it waited for, who changed or stopped it for whom, and which changes of the queues
    touched it.
    """
    job = client.job(key_of(key, namespace))
    if json:
        render.write_json(job)
        return None
    screen = Screen.of()
    if history:
        screen.title(render.plain(f"{job['key']} {job.get('name') or ''}: {job['state']}"))
        _print_history(screen, job.get("history") or [])
        return None
    render.fields(screen, _job_fields(job))
    if entries := job.get("history"):
        screen.line()
        hidden = max(0, len(entries) - _HISTORY_SHOWN)
        screen.title("history" + (f" ({hidden} earlier entries: --history)" if hidden else ""))
        _print_history(screen, entries[hidden:])
    return None


def _print_history(screen: Screen, entries: list[dict[str, Any]]) -> None:
    wide = max((len(entry["what"]) for entry in entries), default=0)
    for entry in entries:
        detail = entry.get("detail") or ""
        what, at = render.plain(entry["what"]), render.moment(entry["at_ms"])
        screen.line(f"  {at}  {what:<{wide}}  {render.plain(_detail(detail))}".rstrip())


def _job_fields(job: dict[str, Any]) -> list[tuple[str, str]]:
    import shlex

    now = int(time.time() * 1000)
    ran = elapsed_ms(job, now) if job.get("started_at_ms") else None
    environment = job.get("env") or ()
    return [
        ("key", job["key"]),
        ("name", job.get("name") or ""),
        ("state", job["state"]),
        ("reason", (job.get("reason") or {}).get("sentence") or ""),
        ("exit", exit_text(job)),
        ("queue", job.get("queue") or ""),
        ("user", job.get("user") or ""),
        ("priority", str(job.get("priority", ""))),
        ("resources", render.amounts(job.get("resources") or {})),
        ("node", job.get("node") or ""),
        ("command", shlex.join(job.get("command") or ())),
        ("directory", job.get("cwd") or ""),
        ("environment", ", ".join(sorted(environment))),
        ("tags", _pairs(job.get("tags"))),
        ("submitted", render.moment(job.get("submitted_at_ms"))),
        ("started", render.moment(job.get("started_at_ms"))),
        ("ended", render.moment(job.get("ended_at_ms"))),
        ("ran", render.duration(ran) if ran is not None else ""),
        ("cpu time", render.duration(job["cpu_ms"]) if job.get("cpu_ms") else ""),
        ("memory now", format_bytes(job["memory_bytes"]) if job.get("memory_bytes") else ""),
        ("peak memory", format_bytes(job["peak_memory_bytes"]) if job.get("peak_memory_bytes") else ""),
        ("grace", render.duration(job["grace_ms"]) if job.get("grace_ms") is not None else ""),
        ("time limit", render.duration(job["time_limit_ms"]) if job.get("time_limit_ms") else ""),
        ("pid", str(job.get("pid") or "") if job["state"] in LIVE_STATES else ""),
        ("idle", "yes, it runs on what others leave over" if job.get("idle") else ""),
        ("class", job.get("priority_class") or ""),
        ("labels", _pairs(job.get("labels"))),
        *((name.replace("_", " "), _pairs(job.get(name))) for name in ("node_selector", "beside", "apart_from")),
        ("ports", ", ".join(job.get("ports") or ())),
        ("reserved", "the next room is kept for it" if job.get("reserved") else ""),
        ("checkpoint", render.moment(job.get("checkpoint_at_ms"))),
        ("retry", _retry(job.get("retry"))),
        ("attempts", _attempts(job)),
        ("error", job.get("error") or ""),
        ("stdout", job.get("stdout") or job.get("stdout_path") or ""),
        ("stderr", job.get("stderr") or job.get("stderr_path") or ""),
        ("enforced", "\n".join(_detail(line) for line in job.get("enforcement") or ())),
    ]


def _attempts(job: dict[str, Any]) -> str:
    """One line for each attempt that is over, with when it began, how long it ran and how it ended."""
    past, count = job.get("past") or (), job.get("attempts") or 0
    lines = []
    for each in past:
        begin, end = each.get("started_at_ms"), each["ended_at_ms"]
        ran = f", ran {render.duration(end - begin)}" if begin else ""
        lines.append(f"{each['attempt']}: {render.moment(begin or end)}{ran}, {_ended(each)}")
    if lines and count > len(past):
        lines.append(f"{count}: {job['state']}")
    return "\n".join(lines)


def _ended(attempt: dict[str, Any]) -> str:
    """How an attempt ended, without saying its state twice."""
    state, how = attempt["state"], attempt["how"]
    return how if how.startswith(state) else f"{state}: {how}"


def _pairs(pairs: dict[str, str] | None) -> str:
    return ", ".join(f"{name}={value}" for name, value in sorted((pairs or {}).items()))


def _retry(retry: dict[str, Any] | None) -> str:
    if not retry:
        return ""
    times = "once" if retry["limit"] == 1 else f"up to {retry['limit']} times"
    wait = f", after {render.duration(retry['backoff_ms'])} and more" if retry["backoff_ms"] else ""
    never = f", not after exit status {', '.join(map(str, retry['never_on']))}" if retry["never_on"] else ""
    return times + wait + never


def _detail(detail: Any) -> str:
    if isinstance(detail, dict):
        if detail.get("sentence"):
            return str(detail["sentence"])
        if "how" in detail:
            return f"{detail.get('name')}: {'yes' if detail.get('enforced') else 'no'}, {detail['how']}"
        return ", ".join(f"{k} {v}" for k, v in sorted(detail.items()) if v not in (None, "", [], {}))
    return str(detail)


def cancel(
    client: Client,
    keys: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KEY...]", help="Keys of the jobs to cancel.", autocompletion=completion.keys),
    ] = None,
    queue: QueueOption = None,
    state: Annotated[
        str | None, typer.Option("--state", "-s", metavar="STATE", help="Only waiting, running or stopping jobs.")
    ] = None,
    name: Annotated[str | None, typer.Option("--name", "-n", metavar="NAME", help="Only jobs of this name.")] = None,
    user: Annotated[
        str | None, typer.Option("--user", "-u", metavar="USER", help="Only this user's jobs (administrators).")
    ] = None,
    json: JsonOption = False,
) -> Status:
    """Cancel jobs.

    What waits is taken back. What runs gets SIGTERM, its grace period, then SIGKILL.
    Give keys, or filters, not both. Exit status 4 if one of the keys could not be cancelled; the others are.
    """
    filtered = any(f is not None for f in (queue, state, name, user))
    if bool(keys) == filtered:
        raise wrong_usage("cancel: give keys, or at least one of --queue, --state, --name, --user (not both)")
    if state is not None and state not in LIVE_STATES:
        raise wrong_usage(f"--state: only {', '.join(LIVE_STATES)} jobs can be cancelled, not {state!r}")
    if filtered:
        keys = [
            row["key"] for row in select(client, [state] if state else LIVE_STATES, queue=queue, name=name, user=user)
        ]
        if not keys:
            complain("no live job is like that; nothing was cancelled")
    rows, failed = [], 0
    for key in keys or ():
        try:
            rows.append(client.post(f"/jobs/{completion.quoted(key)}/cancel", {"state": state} if state else None))
        except Failure as failure:
            if failure.status != REFUSED:
                raise
            if filtered and isinstance(failure, Refusal) and failure.http_status == HTTPStatus.CONFLICT:
                continue  # It ended, or began, after it was selected: the filter does not mean it any more.
            failed += 1
            complain(f"{key}: {failure.message}" if key not in failure.message else failure.message)
    _report_rows(rows, json)
    return REFUSED if failed else None


def _report_rows(rows: list[dict[str, Any]], json: bool) -> None:
    if json:
        render.write_json(rows)
        return
    for row in rows:
        print(render.plain(f"{row['key']} {row['state']}"))


def priority(
    client: Client,
    key: KeyArgument,
    value: Annotated[
        int, typer.Argument(metavar="N", min=-(2**31), max=2**31 - 1, help="The new priority; higher goes first.")
    ],
    why: Annotated[str, typer.Option("--why", metavar="TEXT", help="The reason, for its history.")] = "",
    json: JsonOption = False,
) -> Status:
    """Change the priority of a job."""
    row = client.patch(f"/jobs/{completion.quoted(key)}", {"priority": value} | ({"why": why} if why else {}))
    if json:
        render.write_json(row)
    else:
        print(render.plain(f"{row['key']} priority {row['priority']}"))
    return None


def move(
    client: Client,
    key: KeyArgument,
    queue: Annotated[
        str, typer.Argument(metavar="QUEUE", help="The queue to put it into.", autocompletion=completion.queues)
    ],
    json: JsonOption = False,
) -> Status:
    """Put a job into another queue.

    What runs goes on running, and counts there. Yours goes where you may submit. Administrators of its queue may move
    the work of others to where its owner may submit, or to queues that they administer too. No queue is taken over its
    maximum by it.
    """
    row = client.patch(f"/jobs/{completion.quoted(key)}", {"queue": queue})
    if json:
        render.write_json(row)
    else:
        print(render.plain(f"{row['key']} is in {row['queue']}"))
    return None
