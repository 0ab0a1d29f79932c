"""Asks: one request each, and the batches of those that are alike.

Decides the order of asks inside one application (retried, priority, age, arrival) and keeps it. Never looks at nodes or
other applications. Invariant: an ask that waits in line is in one batch, in order; it is an allocation once it has a
node.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from operator import attrgetter
from typing import TYPE_CHECKING

from fairlead.core.model.events import Cause
from fairlead.core.model.resources import Items
from fairlead.core.model.specs import TAG_CREATION_TIME, TAG_REQUIRED_NODE, AskSpec

if TYPE_CHECKING:
    from fairlead.core.books.applications import Application
    from fairlead.core.books.demand import Demand, Obstacle, Shape
    from fairlead.core.books.node import Node
    from fairlead.core.books.nominations import Nomination

BatchKey = tuple["Shape", str, bool, bool]
"""Shape, task group, whether they may have others stopped, and whether they are retried."""
LineKey = tuple[int, int, int]

line_order = attrgetter("line_key")
"""Order of asks inside one application, and of its batches, by their first asks."""
AHEAD = 2**33
"""More than any two priorities differ by: what is retried stands before what is not, whatever the priorities."""


class Ask:
    """One request; an allocation once it has a node."""

    __slots__ = (
        "allocated_ms",
        "app",
        "attempted",
        "batch",
        "bound_for",
        "checkpoint_ms",
        "created_ms",
        "evict_cause",
        "evicted_by",
        "evicted_for",
        "items",
        "key",
        "line_key",
        "node",
        "nomination",
        "overdue",
        "pending",
        "preempt_checked_ms",
        "preempt_triggered",
        "priority",
        "replaces",
        "reserved_on",
        "retried",
        "seq",
        "shape",
        "spec",
        "started_owed",
        "started_seq",
        "stood_in_ms",
        "watches",
        "where",
    )

    def __init__(self, app: Application, spec: AskSpec, seq: int, now_ms: int) -> None:
        self.app = app
        self.spec = spec
        self.key = spec.key
        self.items: Items = spec.resources.items
        self.priority = spec.priority
        self.retried = spec.retried
        self.seq = seq
        self.created_ms = creation_ms(spec.tags.get(TAG_CREATION_TIME), now_ms)
        self.line_key: LineKey = (0, 0, 0)
        self.place_in_line()
        self.where = spec.where
        """Its constraints; while it waits, those of windows that it would run into with them (`core.books.windows`)."""
        self.shape: Shape | None = None
        self.pending = False
        """It waits for a node."""
        self.batch: Batch | None = None
        """The batch of its application that it waits in; None while it is nominated, idle, or does not wait."""
        self.node: Node | None = None
        self.allocated_ms: int | None = None
        self.started_seq = 0
        """When it started, in the numbers that asks get as they come (`seq`); 0: before this scheduler."""
        self.started_owed = False
        """It started within the guarantees of its queues, and these count."""
        self.evict_cause: Cause | None = None
        """It was told to stop, with this cause, and has not confirmed yet."""
        self.evicted_by: tuple[str, str] | None = None
        """By which rule it was told to stop, and for which ask (empty: for none); None: not by this scheduler."""
        self.evicted_for: Ask | None = None  # By guarantee: that ask; it may try again when this one is overdue.
        self.overdue = False  # It should have left by now: its room is not counted on any more.
        self.nomination: Nomination | None = None
        """What is kept for it while it waits (`core.books.nominations`)."""
        self.reserved_on: Node | None = None
        self.watches: list[Obstacle | Shape] = []
        """What is in the way of its use of the node that is reserved for it, or may give it another one."""
        self.replaces: Ask | None = None
        """The placeholder that this ask replaces, or the ask that replaces this placeholder."""
        self.bound_for: Node | None = None
        """The node on which it will replace a placeholder that is on another one; space is kept for it there."""
        self.preempt_triggered = False
        self.preempt_checked_ms: int | None = None
        self.attempted = False
        """Some scheduling run has looked at it."""
        self.stood_in_ms: int | None = None
        """When the placeholder that it replaced was created; None: it replaced none."""
        self.checkpoint_ms: int | None = None  # When it last said that its work is saved; None: never.

    @property
    def required_node(self) -> str:
        """The only node it may run on, or nothing."""
        return self.spec.tags.get(TAG_REQUIRED_NODE, "")

    @property
    def limit_ms(self) -> int | None:
        """How long it has a place at most; None: it is not known. A placeholder's goes on to the work of its gang,
        whose own time begins only then: at the latest when placeholders may wait no longer.
        """
        limit_ms = self.spec.time_limit_ms
        return (
            self.app.placeholder_timeout_ms + limit_ms if limit_ms is not None and self.spec.placeholder else limit_ms
        )

    @property
    def held_on(self) -> Node | None:
        """The node on which space is kept for it."""
        return self.nomination.node if self.nomination is not None else None

    @property
    def victims(self) -> tuple[Ask, ...]:
        """What was told to stop so that it can run."""
        return self.nomination.victims if self.nomination is not None else ()

    def place_in_line(self) -> None:
        """Work out its order inside the application: 1. retried, 2. higher priority, 3. created earlier, 4. arrived
        earlier. Where rank decides (`Queue.by_rank`) the first two change places.
        """
        if self.app.queue.by_rank:
            first = -2 * self.priority - self.retried
        else:
            first = -self.priority - (AHEAD if self.retried else 0)
        self.line_key = (first, self.created_ms, self.seq)

    def __repr__(self) -> str:
        return f"<Ask {self.app.id}/{self.key} p{self.priority} {'on ' + self.node.id if self.node else 'waits'}>"


NEVER_MS = 2**62


class Batch:
    """Waiting asks of one application that are alike for nodes, queues and limits: one look serves all of them."""

    __slots__ = (
        "_start",
        "_waiting",
        "app",
        "attempt_ms",
        "demand",
        "futile",
        "head",
        "key",
        "line_key",
        "newest_seq",
        "oldest_ms",
        "stamp",
        "task_group",
    )

    def __init__(self, app: Application, key: BatchKey, demand: Demand) -> None:
        self.app = app
        self.key = key
        self.task_group = key[1]
        """The task group of its asks, when they are real asks that may replace placeholders."""
        self.demand = demand
        self._waiting: list[Ask] = []
        self._start = 0
        self.head: Ask
        """The first of its asks (a batch without any is gone)."""
        self.line_key: LineKey
        """That of its first ask."""
        self.oldest_ms = NEVER_MS
        """No ask of it was created before this time."""
        self.newest_seq = 0
        """None of its asks came after this one."""
        self.stamp = 0
        """The number of its entry in the line of its demand; 0: it is not in line."""
        self.attempt_ms = NEVER_MS
        """None of its asks may have others stopped by guarantee before this time."""
        self.futile: tuple[int, int, int] | None = None
        """Up to which priority preemption by guarantee found nothing for its asks, at which `books_version`, and from
        which time limit on, in milliseconds, where there are windows.
        """

    @property
    def asks(self) -> list[Ask]:
        """All of them, in order."""
        return self._waiting[self._start :]

    def __len__(self) -> int:
        return len(self._waiting) - self._start

    def add(self, ask: Ask) -> None:
        """An ask joins, in order."""
        waiting = self._waiting
        ask.batch = self
        self.demand.asks += 1
        if ask.created_ms < self.oldest_ms:
            self.oldest_ms = ask.created_ms
        if ask.seq > self.newest_seq:
            self.newest_seq = ask.seq
        if len(waiting) == self._start or waiting[-1].line_key < ask.line_key:
            waiting.append(ask)
        else:
            insort(waiting, ask, lo=self._start, key=line_order)
        self.head = waiting[self._start]
        self.line_key = self.head.line_key

    def remove(self, ask: Ask) -> bool:
        """An ask leaves; whether some are left."""
        waiting, start = self._waiting, self._start
        ask.batch = None
        self.demand.asks -= 1
        if waiting[start] is not ask:
            del waiting[bisect_left(waiting, ask.line_key, lo=start, key=line_order)]
            return True
        start += 1
        if start > 32 and start * 2 > len(waiting):
            del waiting[:start]
            start = 0
        self._start = start
        if start == len(waiting):
            return False
        self.head = waiting[start]
        self.line_key = self.head.line_key
        return True


def line_group(ask: Ask) -> str:
    """The task group that a real ask waits with; placeholders and plain asks have none."""
    return "" if ask.spec.placeholder else ask.spec.task_group


def creation_ms(tag: str | None, now_ms: int) -> int:
    """The creation time that a tag states in Unix seconds, else the time of arrival."""
    if tag is None:
        return now_ms
    try:
        return int(tag) * 1000
    except ValueError:
        return now_ms


def counts_as_gone(ask: Ask) -> bool:
    """Whether it was told to stop for others and its room is counted on."""
    return ask.evict_cause is not None and ask.evict_cause is Cause.PREEMPTED_BY_SCHEDULER and not ask.overdue
