"""Which jobs a command means, where it names no keys: the same options everywhere.

Decides what they are and what is said when they mean no job. Never orders anything. Invariant: a queue that is not
there is said, and so is a filter that nothing is like; neither is taken for "all".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from fairlead.cli import app, completion
from fairlead.client.sync import Client

if TYPE_CHECKING:
    from fairlead.wire.jobs import Job

_F = TypeVar("_F", bound=Callable[..., Any])
LIVE_STATES: Final = ("waiting", "running", "suspended", "stopping")
ENDED_STATES: Final = ("succeeded", "failed", "cancelled", "evicted", "lost", "timed_out", "rejected")
NAMES: Final = ("queue", "user", "name", "tag")
"""The filters beside the state."""
SHOWN: Final = "--queue, --name, --user, --me, --tag"


class State(click.Choice[str]):
    """One of some states."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """As it is called here. Raises `click.BadParameter`."""
        from fairlead.cli import foreign

        if said := foreign.about_state(str(value)):
            self.fail(said, param, ctx)
        if "," in str(value):
            one_by_one = " ".join(f"-s {each.strip()}" for each in str(value).split(","))
            self.fail(f"one state each: {one_by_one}", param, ctx)
        return super().convert(value, param, ctx)


def job_filters(function: _F) -> _F:
    """The options --queue, --user, --me, --name and --tag; all but --me may be repeated."""
    for option in (
        click.option("--tag", metavar="NAME[=VALUE]", multiple=True, help="Only with this tag; * stands for anything."),
        click.option("--name", metavar="NAME", multiple=True, help="Only of this name; * stands for anything."),
        click.option("--me", is_flag=True, help="Only your own jobs."),
        click.option("--user", "-u", metavar="USER", multiple=True, help="Only this user's jobs."),
        click.option(
            "--queue",
            "-q",
            metavar="QUEUE",
            multiple=True,
            help="Only this queue and those below it; each of these may be repeated.",
            shell_complete=completion.queues,
        ),
    ):
        function = option(function)
    return function


def state_option(states: Sequence[str]) -> Callable[[_F], _F]:
    """The option --state, for some of them."""
    shown = ", ".join(states)
    return click.option(
        "--state",
        "-s",
        type=State(states, case_sensitive=False),
        multiple=True,
        metavar="STATE",
        help=f"Only this state; may be repeated. One of {shown}.",
    )


def given(by: Mapping[str, Any]) -> bool:
    """Whether any filter was."""
    return any(by.values())


def jobs_of(client: Client, by: Mapping[str, Any], states: Sequence[str]) -> list[Job]:
    """The jobs that are meant. Raises `Failure` where a queue is not there at all."""
    chosen = {name: value for name, value in by.items() if name not in ("me", "state")}
    if by.get("me"):
        chosen["user"] = (*chosen.get("user", ()), client.service().user)
    found = list(client.jobs(state=tuple(dict.fromkeys(states)), **chosen))
    if not found:
        for queue in by.get("queue") or ():
            require_queue(client, queue)
    return found


def keys_of(client: Client, jobs: Iterable[Job]) -> tuple[str, ...]:
    """How the jobs that filters mean are named: of an array the parts that they mean, and no others."""
    return tuple(_key_of(client, job) for job in jobs)


def _key_of(client: Client, job: Job) -> str:
    if job.parts is None:
        return job.key
    whole = client.job(job.key).parts
    is_whole = whole is not None and whole.count == job.parts.count
    return job.key if is_whole else f"{job.key}.{job.parts.indices}"


def is_within(queue: str, path: str) -> bool:
    """Whether a path is that queue or one below it, as the service has it: the root may be left out."""
    from fnmatch import fnmatchcase

    named = queue.lower()
    whole = named if named.partition(".")[0] == "root" else f"root.{named}"
    return fnmatchcase(path, whole) or fnmatchcase(path, f"{whole}.*")


def require_queue(client: Client, queue: str) -> None:
    """Raises `Failure` where there is no such queue."""
    from difflib import get_close_matches

    if "*" in queue or "?" in queue:
        return
    waiting, paths = list(client.queues()), []
    while waiting:
        there = waiting.pop()
        paths.append(there.path)
        waiting += there.children
    wanted = queue.lower()
    if wanted not in paths and f"root.{wanted}" not in paths:
        close = get_close_matches(wanted, paths, 3, 0.6)
        meant = f"did you mean {' or '.join(close)}? " if close else ""
        raise app.Failure(f"there is no queue {queue}; {meant}`fairlead queues` lists them", app.REFUSED)
