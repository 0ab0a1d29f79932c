"""Orders: what is to become of jobs that are there.

Decides the fields. Never who may give an order. Invariant: as in `jobs`, durations end in `_ms` and amounts are
`fields.Amounts`.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from fairlead.wire import arrays, fields
from fairlead.wire.fields import AmountsDraft, Line, Priority, Request, Wrong, said
from fairlead.wire.jobs import BEGIN_MAX_MS, LONGEST_MS, Dependencies, Stoppable
from fairlead.wire.streams import Script, script


class Cancellation(Request, frozen=True, kw_only=True):
    """What is meant to end."""

    states: Annotated[list[Stoppable], said("Only while it is in one of these states; empty: in any.")] = []
    now: Annotated[bool, said("What runs is killed at once (SIGKILL), without its grace.")] = False


class SignalOrder(Request, frozen=True, kw_only=True):
    """A signal for the processes of a job that runs."""

    number: Annotated[int, Meta(ge=1, le=64, description="Such as 10 for SIGUSR1.")]
    first: Annotated[bool, said("Its first process alone, not all of them.")] = False


class Rerun(Request, frozen=True, kw_only=True):
    """What a job that is submitted once more is given again."""

    CHECKS: ClassVar = {"env": fields.environment, "script": script}

    env: Annotated[
        Annotated[dict[str, str], Meta(max_length=4096)],
        said("Every environment variable that it had: values are kept no longer than a job lives."),
    ] = {}
    failed: Annotated[bool, said("Of several parts of an array only what ended otherwise than well.")] = False
    script: Annotated[Script, said("Its script, if it ran one: kept no longer either.")] = ""
    hold: Annotated[bool, said("It waits until it is released.")] = False


class JobChange(Request, frozen=True, kw_only=True):
    """What is to be otherwise: all of it of a job that waits; name, queue and time limit also of one that runs."""

    CHECKS: ClassVar = {
        "queue": fields.one_line,
        "why": fields.one_line,
        "name": fields.one_line,
        "resources": fields.changed_amounts,
        "command": fields.command,
        "cwd": fields.absolute,
        "env": fields.environment,
        "tags": fields.tags,
    }

    priority: Priority | None = None
    queue: Annotated[
        Annotated[str, Meta(min_length=1, max_length=1024)] | None, said("The full path of a leaf queue.")
    ] = None
    name: Annotated[Line | None, said("What people call it.")] = None
    resources: Annotated[
        AmountsDraft | None, said("These amounts instead of its own; 0: of that nothing. Others stay as they are.")
    ] = None
    time_limit_ms: Annotated[
        Annotated[int, Meta(ge=0, le=LONGEST_MS)] | None,
        said("0: none. While it runs its owner may lower it, and administrators of its queue raise it."),
    ] = None
    begin_at_ms: Annotated[
        Annotated[int, Meta(ge=0, le=BEGIN_MAX_MS)] | None, said("It does not begin before this moment; 0: at once.")
    ] = None
    after: Annotated[Dependencies | None, said("Instead of all that it waits for of other jobs.")] = None
    on_never: Literal["wait", "cancel"] | None = None
    command: Annotated[
        Annotated[list[str], Meta(min_length=1, max_length=65_536)] | None, said("The program and its arguments.")
    ] = None
    cwd: Annotated[Annotated[str, Meta(max_length=4096)] | None, said("Where it runs.")] = None
    env: Annotated[
        Annotated[dict[str, str], Meta(max_length=4096)] | None, said("These variables; all others stay as they are.")
    ] = None
    unset_env: Annotated[
        Annotated[list[str], Meta(max_length=4096)] | None, said("Variables that it has no longer.")
    ] = None
    tags: Annotated[
        Annotated[dict[Line, Annotated[str, Meta(max_length=4096)]], Meta(max_length=64)] | None,
        said("These tags; all others stay as they are."),
    ] = None
    at_once: Annotated[
        Annotated[int, Meta(ge=0, le=arrays.MOST_PARTS)] | None, said("So many parts of an array at a time; 0: all.")
    ] = None
    why: Annotated[Line, said("Why it changes, for the record.")] = ""

    def __post_init__(self) -> None:
        """Raises `Wrong` for a change that says nothing: that is a mistake."""
        super().__post_init__()
        if all(getattr(self, name) is None for name in self.__struct_fields__ if name != "why"):
            raise Wrong(
                "",
                "says nothing; give at least one of priority, queue, name, resources, time_limit_ms, "
                "begin_at_ms, after, on_never, command, cwd, env, unset_env, tags, at_once",
            )


class Cleaning(Request, frozen=True, kw_only=True):
    """Which ended jobs are no longer wanted."""

    older_than_ms: Annotated[int, Meta(ge=0, le=LONGEST_MS, description="Those that ended longer ago than this.")]
    dry_run: Annotated[bool, said("Only say what would go.")] = False


class Checkpoint(Request, frozen=True, kw_only=True):
    """What a job did so far is saved."""

    attempt: Annotated[Annotated[int, Meta(ge=1)] | None, said("Which attempt says so (FAIRLEAD_ATTEMPT).")] = None


class RequeueOrder(Request, frozen=True, kw_only=True):
    """A job that runs is stopped, and waits again."""

    CHECKS: ClassVar = {"why": fields.one_line}

    hold: Annotated[bool, said("It waits on hold.")] = False
    why: Annotated[Line, said("For the record.")] = ""


class HoldOrder(Request, frozen=True, kw_only=True):
    """A job is put on hold, or released; suspended, or resumed."""

    CHECKS: ClassVar = {"why": fields.one_line}

    why: Annotated[Line, said("For the record.")] = ""


class ReservationOrder(Request, frozen=True, kw_only=True):
    """The next room is kept for a job, or no longer."""

    CHECKS: ClassVar = {"why": fields.one_line}

    on: bool = True
    why: Annotated[Line, said("For the record.")] = ""
