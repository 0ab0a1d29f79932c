"""Applications and their asks: what was submitted, what is allocated, what waits.

Decides how asks of one application are kept in order (priority, then age, then arrival) and what its totals are. Never
looks at nodes or other applications. Invariant: `pending` is the sum of its waiting asks, `allocated` plus
`placeholders` the sum of its allocations, and `priority` the highest priority that waits.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import TYPE_CHECKING

from fairlead.core.books.application_limits import has_to_enter
from fairlead.core.books.asks import Ask, Batch, BatchKey, line_group, line_order
from fairlead.core.books.task_groups import TaskGroup
from fairlead.core.model.lifecycle import State, Step, next_state
from fairlead.core.model.reasons import Reason
from fairlead.core.model.resources import Book, add_to, take_from
from fairlead.core.model.specs import ApplicationSpec

if TYPE_CHECKING:
    from fairlead.core.books.demand import Demand, Shape
    from fairlead.core.books.queues import Queue
    from fairlead.core.books.usage_history import Consumption
    from fairlead.core.books.user_limits import Allowance, Ceiling

NO_PRIORITY = -(2**62)
"""Nothing outstanding: less than any priority, offsets included. In YuniKorn's API the smallest 32-bit integer."""

STATE_LOG_MAX = 64


class Application:
    """What a user submitted, while it lives."""

    __slots__ = (
        "allocated",
        "allocations",
        "allowance",
        "asks",
        "awaited_by",
        "backoff_until_ms",
        "batches",
        "by_priority",
        "closing",
        "consumed",
        "finished_ms",
        "gives_way_to",
        "groups",
        "id",
        "limit_group",
        "line",
        "message",
        "order_key",
        "out_of_line",
        "pending_count",
        "placeholder_count",
        "placeholder_timeout_ms",
        "placeholders",
        "priority",
        "queue",
        "rejected",
        "retried",
        "seq",
        "spec",
        "stamp",
        "start_ms",
        "state",
        "state_log",
        "submitted_ms",
        "submitted_seq",
        "swapping",
        "touched",
        "tracked",
        "unschedulable",
    )

    def __init__(self, spec: ApplicationSpec, queue: Queue, seq: int, now_ms: int) -> None:
        self.id = spec.id
        self.spec = spec
        self.queue = queue
        self.seq = seq
        self.submitted_ms = now_ms
        self.submitted_seq = seq  # Arrival tells moments of one millisecond apart; 0: its age is what a tag says.
        self.state = State.NEW
        self.state_log: list[tuple[int, State]] = []
        self.start_ms: int | None = None
        self.finished_ms: int | None = None
        self.message = ""
        self.rejected: Reason | None = None
        self.asks: dict[str, Ask] = {}
        """Everything known by key, waiting or allocated."""
        self.batches: dict[BatchKey, Batch] = {}
        """What waits, idle work and nominated asks apart."""
        self.line: list[Batch] = []
        """The same, by their first asks."""
        self.by_priority: dict[int, int] = {}
        """How many asks wait with each priority, idle ones apart."""
        self.retried = 0
        """How many of these are further attempts."""
        self.pending_count = 0
        self.allocated: Book = {}  # Real allocations only.
        self.placeholders: Book = {}
        self.allocations = 0  # Placeholders included.
        self.placeholder_count = 0
        self.groups: dict[str, TaskGroup] = {}  # Task groups with placeholders, by name.
        self.swapping = 0  # Asks that are under way to a placeholder's place.
        self.placeholder_timeout_ms = 0
        self.closing = False  # It completes as soon as its last placeholder is gone.
        self.gives_way_to: Application | None = None  # The gang that this one gave its placeholders back for.
        self.awaited_by: list[Application] = []  # The gangs that wait until this one is whole or gone.
        self.priority = NO_PRIORITY
        self.backoff_until_ms: int | None = None
        self.unschedulable = 0
        self.limit_group: str | None = None
        """The group whose limits it counts for (empty: none); None while that is not decided for good."""
        self.tracked = False
        """It had an allocation and has not run empty since: it counts as running for its user and group."""
        self.allowance: Allowance | None = None
        """The limits of its user and group (`core.books.user_limits`); None: no limit holds for it."""
        self.consumed: Consumption | None = None
        """What it has had so far; None until its first allocation ends."""
        # Kept orders (`policy.order.pick`).
        self.order_key: tuple[object, ...] = ()
        """Its place among the applications of its leaf, as of when it was last worked out."""
        self.out_of_line: dict[Batch, None] = {}
        """Its batches that are not in line, or not in the right place there."""
        self.stamp = 0
        """The number of its entry among the applications of its leaf; 0: it has none."""
        self.touched = False

    @property
    def user(self) -> str:
        """Who submitted it."""
        return self.spec.user

    def advance(self, step: Step, now_ms: int) -> State:
        """Take one step of the life cycle. Returns the state before; raises ValueError for a step it does not know."""
        before = self.state
        after = next_state(self.id, before, step)
        if after is before:
            return before
        self.state = after
        self.closing = False
        if len(self.state_log) < STATE_LOG_MAX:
            self.state_log.append((now_ms, after))
        if after is State.RUNNING:
            self.start_ms = now_ms
        return before

    @property
    def is_full(self) -> bool:
        """Whether as many of its asks are in line or run as may be at a time."""
        return 0 < self.spec.at_once <= len(self.asks)

    def rests(self, now_ms: int) -> bool:
        """Whether it is left alone for a while (`policy.eligibility.backoff`): not in a queue that has no back-off."""
        until_ms = self.backoff_until_ms
        return until_ms is not None and until_ms > now_ms and self.queue.properties.backoff_threshold > 0

    def rest_ends_ms(self, now_ms: int) -> int | None:
        """When its rest is over; None: it does not rest."""
        return self.backoff_until_ms if self.rests(now_ms) else None

    def highest_priority(self) -> int:
        """The highest priority that waits, idle work apart."""
        return max(self.by_priority, default=NO_PRIORITY)

    def has_ordinary_work(self) -> bool:
        """Whether something waits that is neither idle nor a further attempt."""
        return sum(self.by_priority.values()) > self.retried

    def first_ask(self) -> Ask | None:
        """The first of its asks that wait in line."""
        return self.line[0].head if self.line else None

    def task_group(self, name: str) -> TaskGroup:
        """The task group of this name, made when it is new."""
        found = self.groups.get(name)
        if found is None:
            found = self.groups[name] = TaskGroup(name)
        return found

    def stands_in(self, name: str) -> bool:
        """Whether real asks of this task group wait for placeholders."""
        found = self.groups.get(name)
        return found is not None and found.stands_in

    @property
    def ceilings(self) -> tuple[Ceiling, ...]:
        """The limits of its user and group, of whatever queues."""
        return self.allowance.ceilings if self.allowance is not None else ()

    def standing(self) -> list[Ask]:
        """Placeholders that have nodes, and that nothing replaces yet."""
        return [ask for group in self.groups.values() for ask in group.standing]

    def under_way(self) -> list[Ask]:
        """Asks that are going to take a placeholder's place: they neither wait nor run."""
        return [a for a in self.asks.values() if a.replaces is not None and a.node is None] if self.swapping else []

    # -- the line of waiting asks ---------------------------------------------------------------------------------

    def demand_for(self, shape: Shape, task_group: str) -> Demand:
        """The demand that its asks of this shape and group wait with: one for all that the same limits hold for."""
        return self.queue.demand(shape, (task_group, self.allowance, has_to_enter(self)))

    def refile(self, batch: Batch) -> Demand:
        """The batch waits with the demand that is right by now; in no line yet, if that is another one."""
        old = batch.demand
        demand = batch.demand = self.demand_for(old.shape, batch.task_group)
        if demand is not old:
            demand.hold(batch)
            old.forget(batch)
        return demand

    def join(self, ask: Ask) -> Batch:
        """Put a waiting ask in line: the batch that it is in from now on."""
        assert ask.shape is not None
        # A kept turn may hold a retried ask back, and not a higher one that its application puts behind that.
        key = (ask.shape, line_group(ask), ask.spec.allow_preempt_other, ask.retried)
        batch = self.batches.get(key)
        if batch is None:
            batch = self.batches[key] = Batch(self, key, self.demand_for(key[0], key[1]))
            batch.demand.hold(batch)
        elif ask.line_key < batch.line_key:
            self._take_from_line(batch)
        batch.add(ask)
        if batch.head is ask:
            insort(self.line, batch, key=line_order)
        attempt_ms = ask.created_ms + self.queue.properties.preemption_delay_ms
        if batch.head is ask or attempt_ms < batch.attempt_ms:
            batch.attempt_ms = min(batch.attempt_ms, attempt_ms)
            self.out_of_line[batch] = None
        batch.demand.tried = -1
        return batch

    def leave(self, ask: Ask) -> None:
        """`ask` is in line no longer."""
        batch = ask.batch
        if batch is None:
            return
        others, demand = len(self.line) > 1, batch.demand
        moves = others and batch.head is ask
        if batch.head is ask:
            demand.tried = -1  # The next one may have a node set aside, or be spared what this one was not.
        if moves:
            self._take_from_line(batch)
        if batch.remove(ask):
            if moves:
                insort(self.line, batch, key=line_order)
            return
        if not others:
            self.line.clear()
        del self.batches[batch.key]
        self.out_of_line.pop(batch, None)
        batch.key[0].resting.pop(batch, None)
        demand.leaf.resting.pop(batch, None)
        demand.forget(batch)

    def _take_from_line(self, batch: Batch) -> None:
        """Its first ask is about to become another one."""
        line = self.line
        if line[0] is batch:
            del line[0]
        else:
            del line[bisect_left(line, batch.line_key, key=line_order)]

    def may_preempt_again(self, ask: Ask) -> None:
        """A waiting ask lost what others were stopped for: it may cause that once more."""
        ask.preempt_triggered = False
        if ask.batch is not None:
            self.forget_attempts(ask.batch)

    def first_attempt_ms(self, batch: Batch) -> int:
        """When the asks of a batch may have others stopped at the earliest."""
        return batch.oldest_ms + self.queue.properties.preemption_delay_ms

    def forget_attempts(self, batch: Batch) -> None:
        """What was known about preemption for the asks of a batch is void (the caller touches the application)."""
        # Not sooner than it may at all: else a restart would set no timer where there was one.
        batch.attempt_ms = self.first_attempt_ms(batch)
        batch.futile = None
        batch.demand.tried = -1
        self.out_of_line[batch] = None

    # -- totals ---------------------------------------------------------------------------------------------------

    @property
    def pending(self) -> Book:
        """What waits, worked out: no decision asks for it."""
        book: Book = {}
        left = self.pending_count
        for batch in self.batches.values():
            left -= len(batch)
            add_to(book, tuple((name, amount * len(batch)) for name, amount in batch.key[0].items))
        for ask in self.asks.values() if left else ():
            if ask.pending and ask.batch is None:
                add_to(book, ask.items)
        return book

    def count_pending(self, ask: Ask) -> None:
        """`ask` waits from now on."""
        ask.pending = True
        self.pending_count += 1
        if not ask.spec.idle:
            self.by_priority[ask.priority] = self.by_priority.get(ask.priority, 0) + 1
            self.retried += ask.retried

    def uncount_pending(self, ask: Ask) -> None:
        """`ask` waits no longer."""
        ask.pending = False
        self.pending_count -= 1
        if not ask.spec.idle:
            self.retried -= ask.retried
            left = self.by_priority[ask.priority] - 1
            if left:
                self.by_priority[ask.priority] = left
            else:
                del self.by_priority[ask.priority]

    def recount_priority(self, ask: Ask, priority: int) -> None:
        """A waiting ask (not in line) has another priority from now on."""
        self.uncount_pending(ask)
        ask.priority = priority
        ask.place_in_line()
        self.count_pending(ask)

    def count_allocated(self, ask: Ask) -> None:
        """`ask` has a node from now on."""
        self.allocations += 1
        self.tracked = True
        if self.allowance is not None:
            self.allowance.add(self.id, ask.items)
        if ask.spec.placeholder:
            self.placeholder_count += 1
            add_to(self.placeholders, ask.items)
        else:
            add_to(self.allocated, ask.items)

    def uncount_allocated(self, ask: Ask) -> None:
        """`ask` has no node any longer."""
        self.allocations -= 1
        if ask.spec.placeholder:
            self.placeholder_count -= 1
            take_from(self.placeholders, ask.items)
        else:
            take_from(self.allocated, ask.items)
        if self.allowance is not None:
            self.allowance.take(ask.items)
        self.untrack_if_empty()

    def untrack_if_empty(self) -> None:
        """With nothing that waits and nothing that runs it no longer counts for its user, nor for its group."""
        if self.tracked and not self.allocations and not self.pending_count:
            self.untrack()
            self.limit_group = None

    def untrack(self) -> None:
        """Nothing of it runs: it does not count for its user and group."""
        self.tracked = False
        if self.allowance is not None:
            self.allowance.strike_off(self.id)

    def waiting_asks(self) -> list[Ask]:
        """Every waiting ask, in the application's own order."""
        return sorted((a for a in self.asks.values() if a.pending), key=line_order)

    def allocated_asks(self) -> list[Ask]:
        """Every allocation, in order of arrival."""
        return [a for a in self.asks.values() if a.node is not None]

    def __repr__(self) -> str:
        return f"<Application {self.id} {self.state} in {self.queue.path}>"
