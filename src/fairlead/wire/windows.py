"""Windows: times in which nodes are kept free, for maintenance or for the jobs of some.

Decides the fields. Never whether a window makes sense: the scheduler and the service do. Invariant: when a window
begins or ends can be written as a date.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Meta

from fairlead.wire import fields
from fairlead.wire.fields import Line, Page, Request, Shape, said
from fairlead.wire.jobs import BEGIN_MAX_MS, LONGEST_MS

Names = Annotated[list[Line], Meta(max_length=1000)]
Moment = Annotated[int, Meta(ge=0, le=BEGIN_MAX_MS, description="In milliseconds since 1970.")]


class WindowDraft(Request, frozen=True, kw_only=True):
    """A time in which nothing runs but what it is for: what would still run when it begins does not start."""

    CHECKS: ClassVar = {
        "nodes": fields.each(fields.one_line),
        "queues": fields.each(fields.one_line),
        "users": fields.each(fields.one_line),
        "groups": fields.each(fields.one_line),
        "why": fields.one_line,
    }

    starts_at_ms: Moment
    length_ms: Annotated[int, Meta(gt=0, le=LONGEST_MS)]
    every_ms: Annotated[
        int,
        Meta(
            ge=0,
            le=LONGEST_MS,
            description="It begins again so long after it began; whole days by the clock. 0: never.",
        ),
    ] = 0
    nodes: Annotated[Names, said("Only these; none: all.")] = []
    queues: Annotated[Names, said("Jobs of these queues, and of those below, may run in it.")] = []
    users: Annotated[Names, said("Jobs of these users may run in it.")] = []
    groups: Annotated[Names, said("Jobs of the users of these groups may run in it.")] = []
    stop_running: Annotated[bool, said("Jobs that still run when it begins are stopped, with their grace.")] = False
    why: Annotated[Line, said("What it is for: those who wait are told.")] = ""


class Window(Shape, frozen=True, kw_only=True):
    """A window: `starts_at_ms` and `ends_at_ms` are of this time if it is open, else of the next."""

    name: str
    starts_at_ms: int
    ends_at_ms: int
    open: bool
    every_ms: int
    nodes: list[str]
    queues: list[str]
    users: list[str]
    groups: list[str]
    stop_running: bool
    why: str
    waiting: Annotated[int, said("Jobs that wait and would run into it.")]
    running: Annotated[list[str], said("Keys of jobs that run now and may still run when it begins.")]


class WindowPage(Page, frozen=True, kw_only=True):
    """Windows, the next one first."""

    windows: list[Window]
