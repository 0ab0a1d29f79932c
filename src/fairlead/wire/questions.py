"""Questions and their answers: when a job starts, and what would be otherwise; why it waits is in `wire.verdicts`.

Decides the fields. Never asks anything. Invariant: jobs that the asker may not see are counted, not named.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Meta

from fairlead.wire import fields
from fairlead.wire.fields import Amounts, Key, Line, Priority, Request, Shape, Wrong, said
from fairlead.wire.jobs import JobDraft, Reason
from fairlead.wire.verdicts import Named, Part

SPEND_S = 5.0
"""Futures are played for so long; what was not seen by then is said to be later."""
SPEND_MAX_S = 60.0

# -- when -----------------------------------------------------------------------------------------------------------


class Score(Shape, frozen=True, kw_only=True):
    """How often the service's own forecasts came true."""

    promised: Annotated[float, said("The part of starts that should be inside their interval.")]
    observed: Annotated[float | None, said("The part that was; null: none came true yet.")]
    scored: int
    inside: int
    early: int
    late: int
    open: Annotated[int, said("Forecasts that have yet to come true.")]
    dropped: Annotated[int, said("Forecasts for what was cancelled or changed.")]


class Interval(Shape, frozen=True):
    """When a job may start."""

    median_ms: Annotated[int | None, said("Half of the futures have it started by then; null: not in sight.")]
    earliest_ms: int | None
    latest_ms: int | None
    coverage: Annotated[float, said("How often a start should be between the two.")]
    ahead: Annotated[int, said("How many of those that wait start before it.")]
    never: Annotated[float, said("The part of the futures in which it does not start.")]
    broken_off: Annotated[
        int,
        said(
            "Futures that were broken off, for lack of time, before it started: it starts later than "
            "`earliest_ms`, and what could not be seen is null."
        ),
    ] = 0
    known: Annotated[
        bool,
        said(
            "false: nothing has ended here yet; `latest_ms` is when it starts if all takes as long as its time limit: "
            "no bound, for what ends earlier may let others go first; null where not all has one."
        ),
    ] = True


class When(Interval, frozen=True, kw_only=True):
    """When a job that waits is expected to start."""

    key: str
    made_ms: int
    draws: int
    assumptions: list[str]
    score: Score


# -- what if --------------------------------------------------------------------------------------------------------


class NewPriority(Request, frozen=True, kw_only=True):
    """A job that waits gets another priority."""

    CHECKS: ClassVar = {"key": fields.one_line}

    key: Key
    priority: Priority


class NewQueue(Request, frozen=True, kw_only=True):
    """A job goes to another queue."""

    CHECKS: ClassVar = {"key": fields.one_line, "queue": fields.one_line}

    key: Key
    queue: Line


class MoreNodes(Request, frozen=True, kw_only=True):
    """So many nodes like one that is there join."""

    CHECKS: ClassVar = {"like": fields.one_line}

    like: Line
    count: Annotated[int, Meta(ge=1, le=10_000)]


DRAFT = "new"
"""The key of what is not submitted yet."""
CHANGES = ("submit", "cancel", "priority", "move", "config", "drain", "add_nodes")


class Supposed(Request, frozen=True, kw_only=True):
    """One change to suppose; exactly one of them."""

    CHECKS: ClassVar = {
        "cancel": fields.each(fields.one_line),
        "config": fields.clean_text,
        "drain": fields.each(fields.one_line),
    }

    submit: Annotated[JobDraft | None, said("The caller submits this.")] = None
    cancel: Annotated[
        Annotated[list[Key], Meta(min_length=1, max_length=1000)] | None, said("These jobs are gone, at once.")
    ] = None
    priority: NewPriority | None = None
    move: NewQueue | None = None
    config: Annotated[
        Annotated[str, Meta(max_length=4 * 2**20)] | None, said("A queue file takes effect (administrators).")
    ] = None
    drain: Annotated[
        Annotated[list[Line], Meta(min_length=1, max_length=10_000)] | None,
        said("These nodes take no new work (administrators)."),
    ] = None
    add_nodes: Annotated[MoreNodes | None, said("More nodes join (administrators).")] = None
    forecast: Annotated[bool, said("Also say whose expected start would move; takes longer.")] = False
    seconds: Annotated[
        float,
        Meta(
            gt=0,
            le=SPEND_MAX_S,
            description="With `forecast`: play futures for so long; of what is not seen by then nothing is said.",
        ),
    ] = SPEND_S

    def __post_init__(self) -> None:
        """Raises `Wrong` unless it is exactly one change."""
        super().__post_init__()
        if sum(getattr(self, name) is not None for name in CHANGES) != 1:
            raise Wrong("", f"give exactly one of {', '.join(CHANGES)}")


class Fate(Named, frozen=True):
    """A job whose lot would be another."""

    user: str
    queue: str
    node: Annotated[str, said("Where it starts, ran, or would have started.")] = ""
    on_behalf_of: Annotated[str, said("Whom it has to make room for, as `application/key` or a key.")] = ""
    rule: str = ""
    violates: Annotated[list[str], said("Disruption budgets that this goes beyond.")] = []


class Fates(Shape, frozen=True, kw_only=True):
    """Jobs whose lot would be another; not all of many are named."""

    count: int
    hidden: Annotated[int, said("So many of them are not the caller's to see.")]
    jobs: list[Fate]


class Wait(Shape, frozen=True, kw_only=True):
    """Where something would wait, and why."""

    application: str
    key: str
    reason: Reason


class Share(Shape, frozen=True):
    """A queue that would use something else."""

    partition: str
    queue: str
    before: Amounts
    after: Amounts
    guaranteed: Amounts | None
    max: Amounts | None


class Shift(Named, frozen=True):
    """A start that would be expected at another time."""

    before_ms: Annotated[int | None, said("By the middle of the futures; null: not in sight.")]
    after_ms: int | None


class Begin(Interval, frozen=True, kw_only=True):
    """When something that would be submitted is expected to start."""

    key: str
    draws: Annotated[int, said("How many futures it rests on.")]


class Admitted(Shape, frozen=True, kw_only=True):
    """What quotas by class would have to be so that a job were taken in."""

    sentence: str
    parts: list[Part]


class Otherwise(Shape, frozen=True, kw_only=True):
    """What would be otherwise. Jobs that the caller may not see are counted, not named."""

    supposed: Annotated[str, said("The change in words.")]
    empty: Annotated[bool, said("Nothing would be otherwise now.")]
    refused: Annotated[list[Reason], said("Why the change, or a part of it, would not be taken in.")]
    admitted: Annotated[
        Admitted | None, said("What quotas would have to be so that it were taken in; null: it is, or none would help.")
    ]
    starts: Annotated[Fates, said("Who would start, and would not without the change.")]
    starts_not: Annotated[Fates, said("Who would not start, and would without it.")]
    elsewhere: Annotated[Fates, said("Who would start on another node.")]
    evicted: Annotated[Fates, said("Who would be told to stop, and would not without it.")]
    spared: Annotated[Fates, said("Who would not be told to stop, and would without it.")]
    ends: Annotated[Fates, said("Who runs and would be gone; of a partition that would be removed also who waits.")]
    waits: Annotated[list[Wait], said("What the change is about, where it would wait, and why.")]
    shares: Annotated[list[Share], said("Queues that would use something else.")]
    expected: Annotated[list[Shift], said("Starts that would be expected at another time.")]
    unseen: Annotated[
        int,
        said("With `forecast`: of so many that wait it is not known whether their start would move, for lack of time."),
    ]
    begins: Annotated[
        list[Begin], said("With `forecast`: when what would be submitted, and would wait, is expected to start.")
    ] = []
    known: Annotated[
        bool,
        said("With `forecast`: false where nothing has ended here yet, so that how long work takes is guessed."),
    ] = True
