"""Questions and their answers: why a job waits, when it starts, what would be otherwise.

Decides the fields. Never asks anything. Invariant: jobs that the asker may not see are counted, not named.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Meta

from fairlead.wire import fields
from fairlead.wire.fields import Amounts, Key, Line, Priority, Request, Shape, Wrong, said
from fairlead.wire.jobs import JobDraft, JobState, Reason

SPEND_S = 5.0
"""Futures are played for so long; what was not seen by then is said to be later."""
SPEND_MAX_S = 60.0

# -- why ------------------------------------------------------------------------------------------------------------


class Level(Shape, frozen=True):
    """A maximum on the way to the root: a queue's own, or (`who`) a user's or group's; amounts of `resource`."""

    queue: str
    who: str
    resource: str
    needed: int | float
    used: int | float
    max: int | float
    blocks: bool


class NodeCount(Shape, frozen=True):
    """All nodes, as the job sees them."""

    total: int
    open: int
    with_room: int
    large_enough: Annotated[int, said("Open ones that would take it if they were empty.")]
    closed: Annotated[dict[str, int], said("How many are out of the question, by why.")]


class NodeRoom(Shape, frozen=True):
    """A node that comes close."""

    node: str
    free: Amounts
    missing: Amounts
    closed: Annotated[str, said("Why it is out of the question whatever is free; empty: it is not.")]
    frees_ms: Annotated[int | None, said("When time limits have ended enough of what runs; null: they do not say.")]


class Holder(Shape, frozen=True):
    """A job that has what is short."""

    application: str
    key: str
    user: str
    queue: str
    node: str
    amounts: Amounts
    priority: int
    since_ms: int | None
    until_ms: Annotated[int | None, said("When its time limit ends it; null: it declared none.")]


class Stopped(Shape, frozen=True):
    """That a running job was told to stop, and has not yet."""

    cause: str
    rule: Annotated[str, said("Of the scheduler; empty: somebody else told it, or it was before a restart.")]
    for_whom: Annotated[str, said("Whom it makes room for, as `application/key` or a key; empty: nobody.")]


class PassedOver(Shape, frozen=True):
    """A job that came earlier to the same queue and still waits, while this one runs."""

    key: str
    priority: int
    reason: str


class Part(Shape, frozen=True):
    """One thing that would have to be otherwise."""

    what: str
    subject: Annotated[str, said("The queue, the node, the job, or the node that new ones would be like.")]
    now: int | float
    value: Annotated[int | float, said("Of `resource`, if there is one: cpu in cores, memory in bytes.")]
    resource: str = ""
    who: Annotated[str, said("For limits: `user NAME` or `group NAME`, as the entry of the file names it.")] = ""
    text: Annotated[str, said("What it is about where that is no number.")] = ""


class Named(Shape, frozen=True):
    """A job by its full name."""

    partition: str
    application: str
    key: str


class Way(Shape, frozen=True, kw_only=True):
    """A change that would start a job."""

    dimension: Annotated[str, said("What would be otherwise; `+` where several things would have to be.")]
    sentence: Annotated[str, said("One plain clause: `runs if ...`.")]
    action: Annotated[str, said("The same as something to do: it completes the words `you can`.")]
    parts: list[Part]
    node: Annotated[str | None, said("Where it would run.")]
    evicts: Annotated[list[Named], said("Who would be told to stop on the way.")]
    violates: Annotated[list[str], said("Disruption budgets that those go beyond.")]
    smallest: Annotated[bool, said("Every smaller value was tried too; else only the next smaller one.")]
    by: Annotated[str, said("Whose it is: `asker`, `queue-administrator`, `administrator`, or `nobody`.")]
    price: Annotated[int, said("What it gives up, as a rank from 0: a wait comes before a purchase.")]
    stops: Annotated[int, said("How much running work would be told to stop, or ended by it.")]
    at_once: Annotated[bool, said("false: it could never run as it is; with this it can once there is room.")] = True
    difference: Annotated[str, said("Of the queue file, as `diff -u` writes it; empty: the file stays.")] = ""


class Never(Shape, frozen=True):
    """A job that could not run even if nothing else ran or waited."""

    reason: Annotated[Reason | None, said("What would be in the way then.")]
    sentence: str


class Verdict(Shape, frozen=True, kw_only=True):
    """What a job needs, who holds it, every limit on its way, the nodes, and changes that would start it."""

    partition: str
    application: str
    key: str
    queue: str
    state: Annotated[str, said("`waiting`, `running`, or `refused` (its application was not taken in).")]
    sentence: str
    paragraph: Annotated[str, said("The whole of it for people.")] = ""
    details: Annotated[list[str], said("What the paragraph says beyond the sentence.")] = []
    reason: Reason | None = None
    needed: Amounts = {}
    priority: int = 0
    node: str = ""
    position: Annotated[int, said("Its place among what waits in its queue, from 1; 0: it does not wait.")] = 0
    waiting_in_queue: int = 0
    ahead: Annotated[list[str], said("Keys of those that come before it in its queue, the first ones.")] = []
    levels: list[Level] = []
    nodes: NodeCount | None = None
    closest: list[NodeRoom] = []
    holders: list[Holder] = []
    hidden_holders: Annotated[int, said("So many more have what is short that the asker may not see.")] = 0
    refusal: Annotated[Reason | None, said("A quota that would refuse it if it came into line now.")] = None
    stopped: Annotated[Stopped | None, said("It runs still and was told to stop.")] = None
    passed_over: list[PassedOver] = []
    advice: Annotated[list[str], said("What to do, in one or two sentences; empty: it was not asked for.")] = []
    changes: Annotated[list[Way] | None, said("The recommended one first; null: they were not asked for.")] = None
    never: Annotated[Never | None, said("It cannot run as it is; null: it can, or that was not asked for.")] = None
    starts_by_itself: bool | None = None
    changes_complete: bool | None = None


class PartsWhy(Shape, frozen=True, kw_only=True):
    """Parts of an array that are in the same state for the same reason."""

    indices: str
    count: int
    state: JobState
    reason: Reason | None
    sentence: str


class Why(Shape, frozen=True, kw_only=True):
    """Why a job is in its state."""

    key: str
    state: JobState
    reason: Reason | None
    sentence: str
    queue_position: int | None
    expected_start_ms: Annotated[int | None, said("When its kept turn comes; null: none is kept.")]
    verdict: Verdict | None = None
    parts: Annotated[list[PartsWhy], said("Of an array, what is so for which of its parts.")] = []


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
            "false: nothing has ended here yet; `latest_ms` is a bound by declared limits, if nothing new comes first."
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
