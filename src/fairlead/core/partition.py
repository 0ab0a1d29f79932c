"""One partition's books: queues, nodes, applications, and the few acts that change them together.

Decides what follows in the books from an act (a wait, a placement, an end, a step of a life) and keeps every total
equal to the sum of its parts. Never chooses what to do: rules live in `fairlead.policy`. Every act reports what became
so by appending decisions to `out`, in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from fairlead.core import gangs, gates, idle, leaving, lives, node_reservations, nominations, quotas, reserving, shaping
from fairlead.core.admission import Admission
from fairlead.core.applications import Application
from fairlead.core.asks import Ask, line_group
from fairlead.core.constraints import ANYWHERE
from fairlead.core.consumption import Consumption
from fairlead.core.decisions import Allocated, Decision, Evict, QueueChanged, Released
from fairlead.core.demand import Demand, Shape, ShapeKey
from fairlead.core.disruption import Disruption
from fairlead.core.events import Cause
from fairlead.core.idle import IdleWork
from fairlead.core.lifecycle import State, Step
from fairlead.core.nodes import Node, NodeTable
from fairlead.core.nominations import Nominations
from fairlead.core.queues import Queue
from fairlead.core.reserving import Reserving
from fairlead.core.retries import Retries
from fairlead.core.specs import AskSpec, PartitionSpec
from fairlead.core.timers import Timers
from fairlead.core.trackers import Trackers, come_under_limits, decide_group

CLEAN_QUEUES_MS = 10_000
"""Queues that leave are removed at whole multiples of this, once they are empty."""


@dataclass(slots=True)
class Partition:
    """The books of one partition. `now_ms` is set by the front door before every act."""

    spec: PartitionSpec
    root: Queue
    timers: Timers
    out: list[Decision]
    next_seq: Callable[[], int]
    now_ms: int = 0
    nodes: NodeTable = field(init=False)
    applications: dict[str, Application] = field(default_factory=dict)
    ended: dict[str, Application] = field(default_factory=dict)
    """Completed and failed applications by `id-<seconds of their end>`, oldest first."""
    rejected: dict[str, Application] = field(default_factory=dict)
    shapes: dict[ShapeKey, Shape] = field(default_factory=dict)
    draining: bool = False  # It is being removed: nothing new is taken in.
    clean_due_ms: int = 0
    """When empty queues that leave are removed next; in the past: nothing to remove."""
    reservations: int = 0
    nominations: Nominations = field(default_factory=Nominations)
    """What is kept for asks for which work was stopped, or that waited too long."""
    disruption: Disruption = field(default_factory=Disruption)
    """What is remembered of work that was stopped for other work."""
    retries: Retries = field(default_factory=Retries)
    """Attempts that enter when their back-off is over."""
    idle: IdleWork = field(default_factory=IdleWork)
    """Asks that run on what others leave over."""
    reserving: Reserving = field(default_factory=Reserving)
    """Asks whose turn is kept, so that others of their queue wait."""
    uncounted: dict[Application, None] = field(default_factory=dict)
    """Applications in queues where they may have to rest (`policy.backoff`)."""
    rested_at: tuple[int, int] | None = None
    """The state of things in which a run found nothing to do; never needed, only quicker."""
    counted_at: tuple[int, int] | None = None
    """The state of things in which those were last looked at; never needed, only quicker."""
    swappable: dict[Queue, dict[Application, None]] = field(default_factory=dict)
    """By leaf, applications with placeholders in which some ask may replace one, as far as known."""
    homeless: dict[Application, None] = field(default_factory=dict)
    """Applications with an ask that may replace a placeholder only on another node, and found none with room."""
    homeless_at: int = 0
    """The count of gains (`NodeTable.gains`) up to which that was so."""
    allocation_count: int = 0
    released_count: int = 0
    books_version: int = 0
    """Grows with every change of what runs or is held."""
    news: int = 0
    """How many events and timers there were: what started since the last of them is nobody's victim."""
    shares_stale: bool = False
    """Nodes came, went or changed since shares were measured: one look at the tree serves all of them."""
    admission: Admission = field(default_factory=Admission)
    """Priority classes and quotas by class; the cluster gives all its partitions the same."""
    tightened: int = 0
    """How many of these changes took room and made none."""
    keeps_history: bool = True
    """Ended applications, and what each consumed, are kept for a while; a simulation has its own record."""

    trackers: Trackers | None = field(init=False)  # The limits of users and groups; None when there are none.
    unseen: dict[Application, None] = field(default_factory=dict)
    """Applications that wait and that no scheduling run has come to yet: their group is not decided for good."""

    def __post_init__(self) -> None:
        self.nodes = NodeTable(self.spec.node_sort)
        self.nodes.in_use = self.root.allocated
        self.trackers = Trackers.of(self.spec.root)

    @property
    def name(self) -> str:
        """The partition's name as in the file."""
        return self.spec.name

    @property
    def room_stamp(self) -> int:
        """A number that changes whenever room is made, or work comes that others may take room from: not when ordinary
        work starts, which only makes things tighter.
        """
        return self.books_version - self.tightened

    # -- asks -----------------------------------------------------------------------------------------------------

    def demand_for(self, app: Application, shape: Shape, task_group: str) -> Demand:
        """The demand that asks of this shape and task group wait with: one for all to whom the same limits apply."""
        allowance, enters = app.allowance, gates.has_to_enter(app)
        key = (task_group, allowance, enters)
        return app.queue.demand(shape, key, allowance, enters)

    def demands_of(self, shape: Shape) -> Iterator[Demand]:
        """Every demand that waits with this shape and may be looked at."""
        for queue in self.root.walk():
            for demand in queue.demands.get(shape, {}).values():
                if demand.live:
                    yield demand

    def line_up(self, ask: Ask) -> None:
        """A waiting ask (not idle, not nominated) takes its place in line."""
        app, shape, group = ask.app, ask.shape, line_group(ask)
        assert shape is not None
        batch = app.batches.get((shape, group, ask.spec.allow_preempt_other))
        app.join(ask, self.demand_for(app, shape, group) if batch is None else batch.demand, group)

    def new_ask(self, app: Application, spec: AskSpec) -> Ask:
        """Make an ask and put it in line."""
        shaping.meet(self, spec.where)
        ask = Ask(app, spec, self.next_seq(), self.now_ms)
        self.disruption.news += spec.attempt == 1
        app.asks[ask.key] = ask
        self.admission.enter(ask)
        lives.grow_as_old_as(app, ask)
        if spec.placeholder:
            gangs.placeholder_asked(ask)
        self.enqueue(ask)
        if spec.task_group:
            gangs.look_again(self, app)
        return ask

    def enqueue(self, ask: Ask) -> None:
        """`ask` waits from now on: in its application's line, in the books of its queues, in their priorities."""
        app = ask.app
        queue = app.queue
        shape = shaping.shape_of(self, ask)
        shape.pending += 1
        if ask.created_ms < shape.oldest_ms:
            shape.oldest_ms = ask.created_ms
        ask.shape = shape
        if ask.spec.labels:
            self.nodes.terrain.label_keys.waits(ask)
        if app.limit_group is None:
            come_under_limits(self, app)
            self.unseen[app] = None
        app.count_pending(ask)
        if ask.spec.idle:
            self.idle.join(ask)
        else:
            self.line_up(ask)
            if queue.properties.wait_max_ms:
                reserving.watch(self, ask)
        queue.add_pending(ask.items)
        self._priority_may_have_changed(app)
        queue.touch_app(app)

    def dequeue(self, ask: Ask) -> None:
        """`ask` waits no longer (its place in the books of the queues is the caller's business)."""
        app = ask.app
        if self.reserving.of:
            reserving.end(self, ask, why="it waits no longer")
        app.uncount_pending(ask)
        if ask.spec.idle:
            self.idle.leave(ask)
        else:
            app.leave(ask)
        shape = ask.shape
        assert shape is not None
        shaping.leave_shape(self, shape)
        if ask.spec.labels:
            self.nodes.terrain.label_keys.waits_no_longer(ask)
        if app.priority not in app.by_priority:
            self._priority_may_have_changed(app)
        app.queue.touch_app(app)

    def _priority_may_have_changed(self, app: Application) -> None:
        new = app.highest_priority()
        if new != app.priority:
            old, app.priority = app.priority, new
            app.queue.change_priority(old, new)

    def change_priority(self, ask: Ask, priority: int) -> None:
        """Give a waiting ask another priority; the order changes at once."""
        app = ask.app
        if ask.spec.idle:
            self.idle.leave(ask)
            ask.priority = priority
            ask.place_in_line()
            self.idle.join(ask)
            return
        in_line = ask.batch is not None
        app.leave(ask)
        app.recount_priority(ask, priority)
        if ask.reserved_on is not None:
            self.nodes.reserved_again[ask] = None
        if in_line:
            self.line_up(ask)
        if ask.nomination is not None:
            self.books_version += 1  # What stands above it may be something else now.
        self._priority_may_have_changed(app)
        app.queue.touch_app(app)
        if app.queue in self.reserving.of:
            reserving.reordered(self, app.queue)

    def drop_ask(self, ask: Ask) -> None:
        """A waiting ask is withdrawn by its owner (or its application ended)."""
        self.dequeue(ask)
        ask.app.queue.take_pending(ask.items)
        nominations.withdraw(self, ask)
        node_reservations.unreserve(self, ask)
        del ask.app.asks[ask.key]
        self.admission.leave(ask)
        shaping.part(self, ask.spec.where)
        if ask.spec.placeholder:
            gangs.placeholder_withdrawn(ask)

    # -- allocations ----------------------------------------------------------------------------------------------

    def place(self, ask: Ask, node: Node) -> None:
        """A waiting ask gets this node."""
        nominations.withdraw(self, ask)
        self.dequeue(ask)
        if ask.spec.idle:
            idle.start(ask)
        else:
            ask.app.queue.start(ask.items)
        self.settle_on(ask, node)
        self.out.append(Allocated(ask.app.id, ask.key, node.id, self.name))
        if ask.reserved_on is not None:
            node_reservations.unreserve(self, ask)
        self.after_allocation(ask)

    def restore(self, ask: Ask, node: Node) -> None:
        """An allocation that exists already is taken into the books, over any limit if need be."""
        app = ask.app
        if ask.key not in app.asks:
            shaping.meet(self, ask.spec.where)
            self.disruption.news += ask.spec.attempt == 1
            self.admission.enter(ask)
            if ask.spec.placeholder:
                gangs.placeholder_asked(ask)
        app.asks[ask.key] = ask
        lives.grow_as_old_as(app, ask)
        if ask.pending:
            nominations.withdraw(self, ask)
            node_reservations.unreserve(self, ask)
            self.dequeue(ask)
            app.queue.take_pending(ask.items)
        idle.payer(ask).add_allocated(ask.items)
        quotas.forced(self, app.queue)
        self.nodes.suspects[node] = None
        self.settle_on(ask, node)
        ask.started_at = -1
        if app.pending_count:
            app.queue.touch_app(app)
        self.out.append(Allocated(app.id, ask.key, node.id, self.name))
        self.after_allocation(ask)

    def settle_on(self, ask: Ask, node: Node) -> None:
        """The ask is on this node from now on, in the books of node and application (those of queues: the caller)."""
        if ask.app.limit_group is None:
            come_under_limits(self, ask.app)
            decide_group(self, ask.app)
        ask.node = node
        ask.allocated_ms = self.now_ms
        ask.started_at = self.news
        node.take(ask)
        self.admission.changed(ask)
        if ask.spec.idle:
            self.idle.settle(ask, node)
        terrain = self.nodes.terrain
        if terrain.counted or ask.spec.where is not ANYWHERE:
            terrain.started(ask, node)
        self.nodes.lost(node)
        ask.app.count_allocated(ask)
        self.allocation_count += 1
        self.books_version += 1
        self.tightened += not ask.spec.idle

    def after_allocation(self, ask: Ask) -> None:
        """The application's life goes on with its first, second, … allocation."""
        app = ask.app
        if ask.spec.placeholder:
            gangs.placeholder_placed(self, ask)
            return
        state = app.state
        if state is State.ACCEPTED:
            lives.advance(self, app, Step.START if lives.is_state_aware(self, app) else Step.RUN)
        elif state is State.STARTING or state is State.COMPLETING:
            lives.advance(self, app, Step.RUN)

    def end_allocation(self, ask: Ask, replaced: bool = False) -> None:
        """An allocation is gone: every book gives it back, and whoever waits for the room is woken.

        `replaced`: it is a placeholder and its real ask takes over.
        """
        node, app = ask.node, ask.app
        assert node is not None
        if self.keeps_history:
            consumed = app.consumed
            if consumed is None:
                consumed = app.consumed = Consumption()
            consumed.note_peak(app.allocated)
            consumed.note_end(ask, node, self.now_ms)
        node.give_back(ask)
        terrain = self.nodes.terrain
        if terrain.counted or ask.spec.where is not ANYWHERE:
            terrain.ended(ask, node)
        ask.node = None
        pays = app.queue
        if ask.spec.idle:
            self.idle.end(ask, node)
            pays = idle.payer(ask)
        if ask.evict_cause is not None:
            leaving.end(self, ask, pays)
        app.uncount_allocated(ask)
        pays.take_allocated(ask.items)
        if app.pending_count:
            app.queue.touch_app(app)
        self.released_count += 1
        self.books_version += 1
        self.nodes.gained(node)
        del app.asks[ask.key]
        self.admission.leave(ask)
        shaping.part(self, ask.spec.where)
        if ask.spec.placeholder and not replaced:
            gangs.placeholder_ended(self, ask)

    def evict(
        self,
        ask: Ask,
        cause: Cause,
        on_behalf_of: str = "",
        rule: str = "",
        message: str = "",
        violates: tuple[str, ...] = (),
    ) -> None:
        """Tell the outside to stop an allocation; it stays in the books until that is confirmed."""
        assert ask.node is not None
        ask.evict_cause, ask.evicted_by = cause, (rule, on_behalf_of)
        self.admission.changed(ask)
        if ask.spec.placeholder:
            gangs.placeholder_told_to_go(ask)
        if cause is Cause.PREEMPTED_BY_SCHEDULER:
            leaving.begin(self, ask, idle.payer(ask))
        where = (ask.app.id, ask.key, ask.node.id)
        self.out.append(Evict(*where, cause, on_behalf_of, rule, message, violates, self.name))
        self.nodes.since_search[ask.node] = None
        self.books_version += 1

    def release(self, ask: Ask, cause: Cause, message: str = "", echo: bool = True) -> None:
        """End an allocation and say so."""
        assert ask.node is not None
        node = ask.node.id
        self.end_allocation(ask)
        if echo:
            self.out.append(Released(ask.app.id, ask.key, node, cause, message, self.name))

    # -- queues ---------------------------------------------------------------------------------------------------

    def queue_changed(self, queue: Queue, change: str) -> None:
        """Say that a queue was added, removed, drains or was restarted."""
        self.out.append(QueueChanged(queue.path, change, self.name))

    def clean_if_leaving(self, queue: Queue) -> None:
        """See to it that a queue that leaves is removed, if it is empty by then."""
        if queue.is_leaving and not queue.applications:
            self.clean_later()

    def clean_later(self) -> None:
        """Have the empty queues that leave removed at the next whole multiple of ten seconds."""
        if self.clean_due_ms <= self.now_ms:
            self.clean_due_ms = (self.now_ms // CLEAN_QUEUES_MS + 1) * CLEAN_QUEUES_MS
            self.timers.set(self.clean_due_ms, self.name, "", "queues")

    # -- nodes ----------------------------------------------------------------------------------------------------

    def nodes_changed(self) -> None:
        """The sum of the nodes is the root's maximum; every share is measured anew before it is next compared."""
        self.root.max = dict(self.nodes.total) if self.nodes.nodes else None
        self.shares_stale = True
        self.disruption.capacity_changed()
        self.root.loosened()
        self.reserving.overdue |= self.reserving.bounded

    def reshare(self) -> None:
        """What shares are measured against has changed: every queue finds its place again."""
        self.shares_stale = False
        for queue in self.root.walk():
            queue.share_terms = None
            queue.touch()

    def wake_all(self) -> None:
        """Something general changed: look at everything again."""
        self.rested_at = self.counted_at = None
        for shape in list(self.nodes.unfit):
            self.nodes.clear_unfit(shape)
        if self.trackers is not None:
            self.trackers.wake_all()
        for node in self.nodes.nodes.values():
            self.nodes.reserved_again |= dict.fromkeys(node.reservations)
        for queue in self.root.walk():
            queue.full.clear()
            queue.forget_lines()
            for demand in (*queue.waiting, *queue.gated):
                demand.wake()
            queue.touch()
            for app in queue.applications.values():
                for batch in app.batches.values():
                    app.forget_attempts(batch)
                if app.pending_count:
                    queue.touch_app(app)
