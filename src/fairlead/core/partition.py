"""One partition's books: queues, nodes, applications, and the few acts that change them together.

Decides what follows in the books from an act (a wait, a placement, an end, a step of a life) and keeps every total
equal to the sum of its parts. Never chooses what to do: rules live in `fairlead.policy`. Every act reports what became
so by appending decisions to `out`, in order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from fairlead.core import claims, gangs, idle, leaving, lives, quotas, reserving, shaping
from fairlead.core.admission import Admission
from fairlead.core.applications import Application, Ask, line_group
from fairlead.core.constraints import ANYWHERE
from fairlead.core.consumption import Consumption
from fairlead.core.decisions import Allocated, Decision, Evict, QueueChanged, Released
from fairlead.core.demand import Demand, Shape, ShapeKey
from fairlead.core.disruption import Disruption
from fairlead.core.events import Cause
from fairlead.core.idle import IdleWork
from fairlead.core.lifecycle import State, Step
from fairlead.core.nodes import Node, NodeTable
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
    holds: dict[Ask, None] = field(default_factory=dict)
    """Asks for which space is held while their victims leave, in the order of their preemptions."""
    disruption: Disruption = field(default_factory=Disruption)  # What is remembered of work stopped for other work.
    retries: Retries = field(default_factory=Retries)  # Attempts that enter when their back-off is over.
    idle: IdleWork = field(default_factory=IdleWork)  # Asks that run on what others leave over.
    reserving: Reserving = field(default_factory=Reserving)  # Asks whose turn is kept: others of their queue wait.
    swappable: dict[Queue, dict[Application, None]] = field(default_factory=dict)
    """By leaf, applications with placeholders in which some ask may replace one, as far as known."""
    homeless: dict[Application, None] = field(default_factory=dict)
    """Applications with an ask that may replace a placeholder only on another node, and found none with room."""
    homeless_at: int = 0
    """The count of gains (`NodeTable.gains`) up to which that was so."""
    allocation_count: int = 0
    released_count: int = 0
    books_version: int = 0  # Grows with every change of what runs or is held.
    preempt_tried: tuple[int, int] | None = None
    """The state of things (`change_stamp`) in which preemption last found nothing."""
    shares_stale: bool = False
    """Nodes came, went or changed since shares were measured: one look at the tree serves all of them."""
    admission: Admission = field(default_factory=Admission)
    """Priority classes and quotas by class; the cluster gives all its partitions the same."""
    ask_version: int = 0  # Grows with every ask that starts to wait or changes its priority.
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

    def change_stamp(self) -> tuple[int, int]:
        """Two numbers that stay the same exactly while nothing changes that preemption depends on."""
        return (self.books_version, self.ask_version)

    # -- asks -----------------------------------------------------------------------------------------------------

    def demand_for(self, app: Application, shape: Shape, task_group: str) -> Demand:
        """The demand that asks of this shape and task group wait with: one for all to whom the same limits apply."""
        allowance = app.allowance
        key = (shape, task_group) if allowance is None else (shape, task_group, allowance)
        return app.queue.demand(shape, key, allowance)

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
        ask.shape = shape
        if ask.spec.labels:
            self.nodes.terrain.label_keys.waits(ask)
        self.ask_version += 1
        group = line_group(ask)
        if ask.batch is not None:
            app.withdraw(ask)
        if app.limit_group is None:
            come_under_limits(self, app)
            self.unseen[app] = None
        app.count_pending(ask)
        if ask.spec.idle:
            self.idle.join(ask)
        else:
            app.join(ask, self.demand_for(app, shape, group), group)
            if queue.properties.wait_max_ms:
                reserving.watch(self, ask)
        queue.add_pending(ask.items)
        self._priority_may_have_changed(app)
        queue.touch_app(app)

    def dequeue(self, ask: Ask, withdraw: bool = False) -> None:
        """`ask` waits no longer (its place in the books of the queues is the caller's business)."""
        app = ask.app
        if self.reserving.of:
            reserving.end(self, ask, why="it waits no longer")
        app.uncount_pending(ask)
        if ask.spec.idle:
            self.idle.leave(ask)
        elif withdraw:
            app.withdraw(ask)
        else:
            app.leave(ask)
        shape = ask.shape
        assert shape is not None
        shaping.leave_shape(self, shape)
        if ask.spec.labels:
            self.nodes.terrain.label_keys.waits_no_longer(ask)
        if not app.batches or app.batches[0].key[0] != app.priority or app.batches[0].key[3]:
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
        self.ask_version += 1
        if ask.spec.idle:
            self.idle.leave(ask)
            ask.priority = priority
            self.idle.join(ask)
            return
        app.withdraw(ask)
        ask.priority = priority
        if ask.reserved_on is not None:
            self.nodes.reserved_again[ask] = None
        assert ask.shape is not None
        group = line_group(ask)
        app.join(ask, self.demand_for(app, ask.shape, group), group)
        self._priority_may_have_changed(app)
        app.queue.touch_app(app)
        if app.queue in self.reserving.of:
            reserving.reordered(self, app.queue)

    def drop_ask(self, ask: Ask) -> None:
        """A waiting ask is withdrawn by its owner (or its application ended)."""
        self.dequeue(ask, withdraw=True)
        ask.app.queue.take_pending(ask.items)
        claims.unhold(self, ask)
        claims.unreserve(self, ask)
        del ask.app.asks[ask.key]
        self.admission.leave(ask)
        shaping.part(self, ask.spec.where)
        if ask.spec.placeholder:
            gangs.placeholder_withdrawn(ask)

    # -- allocations ----------------------------------------------------------------------------------------------

    def place(self, ask: Ask, node: Node) -> None:
        """A waiting ask gets this node."""
        claims.unhold(self, ask)
        self.dequeue(ask)
        if ask.spec.idle:
            idle.start(ask)
        else:
            ask.app.queue.start(ask.items)
        self.settle_on(ask, node)
        self.out.append(Allocated(ask.app.id, ask.key, node.id, self.name))
        if ask.reserved_on is not None:
            claims.unreserve(self, ask)
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
            claims.unhold(self, ask)
            claims.unreserve(self, ask)
            self.dequeue(ask, withdraw=True)
            app.queue.take_pending(ask.items)
        idle.payer(ask).add_allocated(ask.items)
        quotas.forced(self, app.queue)
        self.nodes.suspects[node] = None
        self.settle_on(ask, node)
        self.out.append(Allocated(app.id, ask.key, node.id, self.name))
        self.after_allocation(ask)

    def settle_on(self, ask: Ask, node: Node) -> None:
        """The ask is on this node from now on, in the books of node and application (those of queues: the caller)."""
        if ask.app.limit_group is None:
            come_under_limits(self, ask.app)
            decide_group(self, ask.app)
        ask.node = node
        ask.allocated_ms = self.now_ms
        node.take(ask)
        self.admission.changed(ask)
        if ask.spec.idle:
            self.idle.settle(ask, node)
        terrain = self.nodes.terrain
        if terrain.counted or ask.spec.where is not ANYWHERE:
            terrain.started(ask, node)
        if self.trackers is None:
            self.nodes.lost(node)
        else:
            self.nodes.touch(node)  # Who waited for a limit has no timer to preempt: it is looked at, fit or not.
        ask.app.count_allocated(ask)
        self.allocation_count += 1
        self.books_version += 1

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

    def resize(self, ask: Ask, spec: AskSpec) -> None:
        """An ask or allocation changes its size in place; a running one may go over any limit."""
        old, new = ask.items, spec.resources.items
        self.admission.resized(ask, old, new)
        app, queue = ask.app, ask.app.queue
        # Only the amount can change: what else the report says is not what it was submitted with.
        spec = replace(ask.spec, resources=spec.resources)
        if ask.pending:
            claims.unhold(self, ask)
            claims.unreserve(self, ask)
            kept = self.reserving.take(ask)
            self.dequeue(ask, withdraw=True)
            queue.take_pending(old)
            ask.spec, ask.items = spec, new
            self.enqueue(ask)
            if kept is not None:
                self.reserving.put(ask, kept)
            if spec.task_group:
                gangs.look_again(self, app)
            return
        if ask.node is None:
            # Under way to a placeholder's place: its new size is looked at from the start.
            ask.spec, ask.items = spec, new
            gangs.wait_again(self, ask)
            return
        ask.spec, ask.items = spec, new
        queue = idle.payer(ask)
        if leaving.counts_as_gone(ask):
            queue.add_preempting(old, -1)
            queue.add_preempting(new)
        assert ask.node is not None
        ask.node.resize(old, new)
        self.nodes.suspects[ask.node] = None
        book = app.placeholders if spec.placeholder else app.allocated
        if app.consumed is None:
            app.consumed = Consumption()
        app.consumed.note_peak(app.allocated)
        for items, sign in ((old, -1), (new, 1)):
            for name, amount in items:
                book[name] = book.get(name, 0) + sign * amount
        if app.allowance is not None:
            app.allowance.add(app.id, new)
            app.allowance.take(old)
        queue.add_allocated(new)
        queue.take_allocated(old)
        quotas.forced(self, queue)
        self.books_version += 1
        self.nodes.gained(ask.node)

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
            self.timers.set(self.clean_due_ms, self.name, "", 0, "queues")

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
        for shape in list(self.nodes.unfit):
            self.nodes.clear_unfit(shape)
        if self.trackers is not None:
            self.trackers.wake_all()
        for node in self.nodes.nodes.values():
            self.nodes.reserved_again |= dict.fromkeys(node.reservations)
        for queue in self.root.walk():
            queue.forget_lines()
            for demand in list(queue.waiting):
                del queue.waiting[demand]
                demand.wake()
            if queue.is_leaf:
                for app in queue.applications.values():
                    for batch in app.batches:
                        batch.forget_attempts()
                    if app.pending_count:
                        queue.touch_app(app)
