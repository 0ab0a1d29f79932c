"""Verdicts: the answer to the question why a job waits, or runs before others.

Decides the fields. Never asks anything. Invariant: jobs that the asker may not see are counted, not named.
"""

from __future__ import annotations

from typing import Annotated

from fairlead.wire.fields import Amounts, Shape, said
from fairlead.wire.jobs import JobState, Reason


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


class Stops(Shape, frozen=True, kw_only=True):
    """Why nothing is stopped for a job that waits for room."""

    because: Annotated[
        str,
        said(
            "What keeps the job itself from it: `off`, `idle`, `never`, `limit`, `no-guarantee`, `beyond-guarantee`, "
            "`delay` or `gang`; empty: see `spared`."
        ),
    ]
    queue: Annotated[
        str, said("A full queue: what runs there would make room; empty: what runs on nodes that suit it.")
    ]
    running: Annotated[int, said("So much runs there; 0 where it does not matter.")]
    spared: Annotated[
        dict[str, int],
        said(
            "How much of it each thing spares: `told`, `closed`, `priority`, `own-gang`, `own-queue`, `guaranteed`, "
            "`large`, `node`, `young`, `runtime`, `again`, `evictions`, `window` or `other`. The rest "
            "makes no room for it."
        ),
    ]
    until_ms: Annotated[
        int | None, said("When the first of it is otherwise by itself, or is tried again; null: that is not known.")
    ]
    sentence: str


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
    stops: Annotated[
        Stops | None, said("Why nothing is stopped for it; null: it waits for no room, or something is.")
    ] = None
    gang_lacks: Annotated[int, said("As many others of its gang have no room: it starts with the last of them.")] = 0
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
