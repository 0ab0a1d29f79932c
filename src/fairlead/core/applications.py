"""Applications and their asks: what was submitted, what is allocated, what waits.

Decides how asks of one application are kept in order (priority, then age, then arrival) and what its totals are. Never
looks at nodes or other applications. Invariant: `pending` is the sum of its waiting asks, `allocated` plus
`placeholders` the sum of its allocations, and `priority` the highest priority that waits.
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from typing import TYPE_CHECKING

from fairlead.core.lifecycle import State, Step, next_state
from fairlead.core.reasons import Reason
from fairlead.core.resources import Book, Items, add_to, take_from
from fairlead.core.specs import TAG_CREATION_TIME, TAG_REQUIRED_NODE, ApplicationSpec, AskSpec
from fairlead.core.task_groups import TaskGroup

if TYPE_CHECKING:
    from fairlead.core.consumption import Consumption
    from fairlead.core.demand import Demand, Shape
    from fairlead.core.events import Cause
    from fairlead.core.nodes import Node
    from fairlead.core.queues import Queue
    from fairlead.core.trackers import Allowance

NO_PRIORITY = -(2**31)
"""Nothing outstanding; on the wire the smallest 32-bit integer."""

STATE_LOG_MAX = 64
BatchKey = tuple[int, "Shape", str, bool]

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
        "held_on",
        "items",
        "key",
        "node",
        "overdue",
        "pending",
        "preempt_checked_ms",
        "preempt_triggered",
        "priority",
        "replaces",
        "reserved_on",
        "scale_up_reported",
        "seq",
        "shape",
        "spec",
        "stood_in_ms",
        "took_back",
        "victims",
        "watches",
    )

    def __init__(self, app: Application, spec: AskSpec, seq: int, now_ms: int) -> None:
        self.app = app
        self.spec = spec
        self.key = spec.key
        self.items: Items = spec.resources.items
        self.priority = spec.priority
        self.seq = seq
        self.created_ms = creation_ms(spec.tags.get(TAG_CREATION_TIME), now_ms)
        self.shape: Shape | None = None
        self.pending = False
        """It waits for a node."""
        self.batch: Batch | None = None
        """The batch of its application that it is in (possibly as a left-over that is skipped)."""
        self.node: Node | None = None
        self.allocated_ms: int | None = None
        self.evict_cause: Cause | None = None
        """It was told to stop, with this cause, and has not confirmed yet."""
        self.evicted_by: tuple[str, str] | None = None
        """By which rule it was told to stop, and for whom (empty: for nobody); None: not by this scheduler."""
        self.evicted_for: Ask | None = None  # By guarantee: that ask; it may try again when this one is overdue.
        self.overdue = False  # It should have left by now: nobody counts on its room any more.
        self.held_on: Node | None = None
        """Space on this node is held for it while its victims leave."""
        self.victims: tuple[Ask, ...] = ()
        self.took_back = False  # The space that is held for it is what idle work left to it: that is for nobody else.
        self.reserved_on: Node | None = None
        self.watches: tuple[Demand, ...] = ()
        """Demands that have it tried again on the node that is reserved for it when they are woken."""
        self.replaces: Ask | None = None
        """The placeholder that this ask replaces, or the ask that replaces this placeholder."""
        self.bound_for: Node | None = None
        """The node on which it will replace a placeholder that is on another one; space is held for it there."""
        self.preempt_triggered = self.scale_up_reported = False
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
    def line_key(self) -> tuple[int, int, int]:
        """Order inside the application: 1. retried, 2. higher priority, 3. created earlier, 4. arrived earlier."""
        ahead = AHEAD if self.spec.retried else 0
        return (-self.priority - ahead, self.created_ms, self.seq)

    def __repr__(self) -> str:
        return f"<Ask {self.app.id}/{self.key} p{self.priority} {'on ' + self.node.id if self.node else 'waits'}>"


class Batch:
    """Asks of one application that differ in nothing but age: one look serves all of them."""

    __slots__ = ("asks", "attempt_ms", "demand", "futile_at", "key", "line_key")

    def __init__(self, key: BatchKey, demand: Demand, first: Ask) -> None:
        self.key = key
        self.demand = demand
        self.asks: deque[Ask] = deque((first,))
        self.line_key = first.line_key
        self.attempt_ms = 0
        """None of its asks may cause others to be preempted before this time."""
        self.futile_at = -1
        """The version of the partition's books in which preemption last found nothing for its asks."""

    def forget_attempts(self) -> None:
        """What was known about preemption for its asks is void."""
        self.attempt_ms, self.futile_at = 0, -1

    @property
    def task_group(self) -> str:
        """The task group of its asks, when they are real asks that may replace placeholders."""
        return self.key[2]

    def waiting(self) -> list[Ask]:
        """Its asks that wait, in order."""
        return [a for a in self.asks if a.pending]


def _batch_order(batch: Batch) -> tuple[int, int, int]:
    return batch.line_key


class Application:
    """What a user submitted, while it lives."""

    __slots__ = (
        "allocated",
        "allocations",
        "allowance",
        "asks",
        "attempt_timer_ms",
        "awaited_by",
        "backoff_until_ms",
        "batches",
        "by_key",
        "closing",
        "consumed",
        "entry",
        "finished_ms",
        "gives_way_to",
        "groups",
        "id",
        "let_out_by",
        "limit_group",
        "message",
        "order_key",
        "park_stamp",
        "pending",
        "pending_count",
        "placeholder_count",
        "placeholder_due_ms",
        "placeholder_timeout_ms",
        "placeholders",
        "priority",
        "queue",
        "rejected",
        "reserve_due_ms",
        "seq",
        "spec",
        "start_ms",
        "state",
        "state_log",
        "submitted_ms",
        "submitted_seq",
        "swapping",
        "timer_epoch",
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
        self.batches: list[Batch] = []
        self.by_key: dict[BatchKey, Batch] = {}
        self.pending: Book = {}
        self.pending_count = 0
        self.allocated: Book = {}  # Real allocations only.
        self.placeholders: Book = {}
        self.allocations = 0  # Placeholders included.
        self.placeholder_count = 0
        self.groups: dict[str, TaskGroup] = {}  # Task groups with placeholders, by name.
        self.swapping = 0  # Asks that are under way to a placeholder's place.
        self.placeholder_timeout_ms = 0
        self.placeholder_due_ms: int | None = None
        """When its placeholders have waited long enough; None while it has none."""
        self.closing = False  # It completes as soon as its last placeholder is gone.
        self.gives_way_to: Application | None = None  # The gang that this one gave its placeholders back for.
        self.awaited_by: list[Application] = []  # The gangs that wait until this one is whole or gone.
        self.reserve_due_ms: int | None = None
        """When to look at it again because an ask may reserve a node by then; None: no such timer is set."""
        self.priority = NO_PRIORITY
        self.timer_epoch = 0
        """Timers of an older epoch are void; every change of state starts a new one."""
        self.backoff_until_ms: int | None = None
        self.unschedulable = 0
        self.limit_group: str | None = None
        """The group whose limits it counts for (empty: none); None while that is not decided for good."""
        self.tracked = False
        """It had an allocation and has not run empty since: it counts as running for its user and group."""
        self.allowance: Allowance | None = None
        """The limits of its user and group (`core.trackers`); None: no limit holds for it."""
        self.consumed: Consumption | None = None
        """What it has had so far; None until its first allocation ends."""
        self.attempt_timer_ms: int | None = None  # When it is woken next because an ask of it may preempt.
        # Kept orders (see policy.line): the entry in the leaf's heap, or the stamp it is parked under.
        self.order_key: tuple[object, ...] = ()
        self.entry: int | None = None
        self.park_stamp = 0
        self.touched = False
        self.let_out_by: list[Demand] = []
        """Demands that let it out of those parked there, when nothing else has happened to it since."""

    @property
    def user(self) -> str:
        """Who submitted it."""
        return self.spec.user

    def advance(self, step: Step, now_ms: int) -> State:
        """Take one step of the life cycle; `IllegalTransition` changes nothing. Returns the state before."""
        before = self.state
        after = next_state(self.id, before, step)
        if after is before:
            return before
        self.state = after
        self.closing = False
        self.timer_epoch += 1
        if len(self.state_log) < STATE_LOG_MAX:
            self.state_log.append((now_ms, after))
        if after is State.RUNNING:
            self.start_ms = now_ms
        return before

    def highest_priority(self) -> int:
        """The highest priority that waits, idle work apart. What is retried stands first whatever its priority."""
        batches = self.batches
        if not batches:
            return NO_PRIORITY
        return max(batch.key[0] for batch in batches) if batches[0].key[3] else batches[0].key[0]

    def demand_of(self, ask: Ask) -> Demand:
        """The demand that a waiting ask waits with."""
        assert ask.batch is not None, f"{ask} is in no line"
        return ask.batch.demand

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

    # -- the line of waiting asks ---------------------------------------------------------------------------------

    def join(self, ask: Ask, demand: Demand, task_group: str) -> None:
        """Put a waiting ask in line behind `demand`."""
        assert ask.shape is not None
        key = (ask.priority, ask.shape, task_group, ask.spec.retried)
        batch = self.by_key.get(key)
        if batch is None:
            batch = ask.batch = Batch(key, demand, ask)
            self.by_key[key] = batch
            demand.pending += 1
            insort(self.batches, batch, key=_batch_order)
            return
        ask.batch = batch
        batch.attempt_ms = min(batch.attempt_ms, ask.created_ms + self.queue.properties.preemption_delay_ms)
        last = batch.asks[-1]
        if (last.created_ms, last.seq) < (ask.created_ms, ask.seq):
            batch.asks.append(ask)
            return
        # Whoever comes late is seldom much older than the last ones: the place is looked for from the end.
        place, age = len(batch.asks) - 1, (ask.created_ms, ask.seq)
        while place and (batch.asks[place - 1].created_ms, batch.asks[place - 1].seq) > age:
            place -= 1
        batch.asks.insert(place, ask)
        self._refresh_head(batch)

    def leave(self, ask: Ask) -> None:
        """`ask` no longer waits: drop it from its batch (lazily unless it is the head)."""
        batch = ask.batch
        if batch is not None and batch.asks[0] is ask:
            self._refresh_head(batch)

    def may_preempt_again(self, ask: Ask) -> None:
        """A waiting ask lost what others were stopped for: it may cause that once more."""
        ask.preempt_triggered = False
        if ask.batch is not None:
            ask.batch.forget_attempts()

    def withdraw(self, ask: Ask) -> None:
        """Take `ask` out of its batch for good (before it changes its place in line, or comes back into it)."""
        batch = ask.batch
        if batch is not None:
            batch.asks.remove(ask)
            ask.batch = None
            self._refresh_head(batch)

    def _refresh_head(self, batch: Batch) -> None:
        asks = batch.asks
        while asks and not asks[0].pending:
            asks.popleft().batch = None
        batches = self.batches
        if not asks:
            batches.remove(batch)
            del self.by_key[batch.key]
            batch.key[1].resting.pop(batch, None)
            batch.demand.leaf.resting.pop(batch, None)
            batch.demand.pending -= 1
            if not batch.demand.pending:
                batch.demand.leaf.drop_demand(batch.demand)
            return
        head = asks[0]
        key = head.line_key
        if key == batch.line_key:
            return
        batch.line_key = key
        if len(batches) > 1:
            at = batches.index(batch)
            if (at + 1 < len(batches) and batches[at + 1].line_key < key) or (at and batches[at - 1].line_key > key):
                batches.pop(at)
                insort(batches, batch, key=_batch_order)

    # -- totals ---------------------------------------------------------------------------------------------------

    def count_pending(self, ask: Ask) -> None:
        """`ask` waits from now on."""
        ask.pending = True
        self.pending_count += 1
        add_to(self.pending, ask.items)

    def uncount_pending(self, ask: Ask) -> None:
        """`ask` waits no longer."""
        ask.pending = False
        self.pending_count -= 1
        take_from(self.pending, ask.items)

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
            self.tracked = False
            self.limit_group = None
            if self.allowance is not None:
                self.allowance.strike_off(self.id)

    def waiting_asks(self) -> list[Ask]:
        """Every waiting ask, in the application's own order."""
        return sorted((a for a in self.asks.values() if a.pending), key=lambda a: a.line_key)

    def allocated_asks(self) -> list[Ask]:
        """Every allocation, in order of arrival."""
        return [a for a in self.asks.values() if a.node is not None]

    def __repr__(self) -> str:
        return f"<Application {self.id} {self.state} in {self.queue.path}>"


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
