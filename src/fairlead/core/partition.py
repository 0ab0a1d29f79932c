"""One partition's books: queues, nodes, applications, and the few acts that change them together.

Decides what follows in the books from an act (a wait, a placement, an end, a step of a life) and keeps every total equal
to the sum of its parts. Never chooses what to do: rules live in `fairlead.policy`. Every act reports what became so by
appending decisions to `out`, in order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from fairlead.core.applications import NO_PRIORITY, Application, Ask, line_group
from fairlead.core.decisions import (
    Allocated,
    ApplicationChanged,
    Decision,
    Evict,
    Released,
    Reserved,
    Unreserved,
)
from fairlead.core.demand import Shape, ShapeKey
from fairlead.core.events import Cause
from fairlead.core.lifecycle import ENDED, LIVE, State, Step
from fairlead.core.nodes import Node, NodeTable
from fairlead.core.queues import Queue
from fairlead.core.specs import TAG_STATE_AWARE_DISABLE, AskSpec, PartitionSpec
from fairlead.core.timers import Timers

COMPLETING_MS = 30_000
STARTING_MS = 5 * 60_000
ENDED_KEPT_MS = 72 * 3_600_000
ENDED_KEPT_MAX = 10_000
"""How many ended applications are kept at most, however young (the journal has them all)."""


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
    draining: bool = False
    reservations: int = 0
    holds: dict[Ask, None] = field(default_factory=dict)
    """Asks for which space is held while their victims leave, in the order of their preemptions."""
    allocation_count: int = 0
    released_count: int = 0
    books_version: int = 0
    """Grows with every change of what runs or is held."""
    preempt_tried: tuple[int, int] | None = None
    """The state of things (`change_stamp`) in which preemption last found nothing."""
    ask_version: int = 0
    """Grows with every ask that starts to wait or changes its priority."""

    def __post_init__(self) -> None:
        self.nodes = NodeTable(self.spec.node_sort)

    @property
    def name(self) -> str:
        """The partition's name as in the file."""
        return self.spec.name

    def change_stamp(self) -> tuple[int, int]:
        """Two numbers that stay the same exactly while nothing changes that preemption depends on."""
        return (self.books_version, self.ask_version)

    # -- applications ---------------------------------------------------------------------------------------------

    def admit(self, app: Application) -> None:
        """Take an application into its queue."""
        self.applications[app.id] = app
        app.queue.applications[app.id] = app

    def advance(self, app: Application, step: Step, cause: str = "") -> None:
        """Take one step of an application's life, with what it means for counters and timers."""
        before = app.advance(step, self.now_ms)
        after = app.state
        if after is before:
            return
        queue = app.queue
        if before in LIVE and after not in LIVE:
            queue.count_running(-1)
        elif after in LIVE and before not in LIVE:
            queue.count_running(1)
        if after in LIVE:
            self._leave_accepted(app)
        if after is State.COMPLETING:
            self.timers.set(self.now_ms + COMPLETING_MS, self.name, app.id, app.timer_epoch)
        elif after is State.STARTING:
            self.timers.set(self.now_ms + STARTING_MS, self.name, app.id, app.timer_epoch)
        self.out.append(ApplicationChanged(app.id, str(after), cause or str(step)))
        if after in ENDED:
            self._end(app)
        elif app.pending_count:
            queue.touch_app(app)

    def join_accepted(self, app: Application) -> None:
        """An accepted application got its first (placeholder) allocation: it counts against `maxapplications`."""
        for queue in app.queue.lineage:
            queue.allocating_accepted[app.id] = None

    def _leave_accepted(self, app: Application) -> None:
        for queue in app.queue.lineage:
            queue.allocating_accepted.pop(app.id, None)

    def _end(self, app: Application) -> None:
        for ask in app.waiting_asks():
            self.drop_ask(ask)
        self.forget(app)
        app.finished_ms = self.now_ms
        self.ended[f"{app.id}-{self.now_ms // 1000}"] = app
        self.keep_ended(app)

    def keep_ended(self, app: Application) -> None:
        """Keep an ended application for a while, and not too many of them."""
        for kept in (self.ended, self.rejected):
            while len(kept) > ENDED_KEPT_MAX:
                del kept[next(iter(kept))]
        self.timers.set(self.now_ms + ENDED_KEPT_MS, self.name, app.id, app.timer_epoch, "ended")

    def forget(self, app: Application) -> None:
        """Take an application out of its queue and of the list; its asks and allocations are gone already."""
        del self.applications[app.id]
        del app.queue.applications[app.id]
        self._leave_accepted(app)
        if app.state in LIVE:
            app.queue.count_running(-1)
        app.queue.open_gates()
        app.entry = None
        app.park_stamp += 1

    def is_state_aware(self, app: Application) -> bool:
        """Whether the application takes the older step `Starting`: its tag decides, else the partition."""
        tag = app.spec.tags.get(TAG_STATE_AWARE_DISABLE)
        return self.spec.state_aware if tag is None else tag.lower() == "false"

    def complete_if_idle(self, app: Application) -> None:
        """Nothing waits and nothing runs: the application is about to complete."""
        idle = not app.pending_count and not app.allocations
        if idle and app.state in (State.ACCEPTED, State.STARTING, State.RUNNING):
            self.advance(app, Step.COMPLETE)

    # -- asks -----------------------------------------------------------------------------------------------------

    def shape(self, ask: Ask) -> Shape:
        """The shape of an ask; one object for all equal ones."""
        key = (ask.items, ask.required_node)
        found = self.shapes.get(key)
        if found is None:
            found = self.shapes[key] = Shape(key)
        return found

    def new_ask(self, app: Application, spec: AskSpec) -> Ask:
        """Make an ask and put it in line."""
        ask = Ask(app, spec, self.next_seq(), self.now_ms)
        app.asks[ask.key] = ask
        if ask.created_ms < app.submitted_ms:
            app.submitted_ms = ask.created_ms
        self.enqueue(ask)
        return ask

    def enqueue(self, ask: Ask) -> None:
        """`ask` waits from now on: in its application's line, in the books of its queues, in their priorities."""
        app = ask.app
        queue = app.queue
        shape = self.shape(ask)
        shape.pending += 1
        ask.shape = shape
        self.ask_version += 1
        group = line_group(ask)
        if ask.in_line:
            app.withdraw(ask)
        app.count_pending(ask)
        app.join(ask, queue.demand(shape, (shape, group)), group)
        queue.add_pending(ask.items)
        self._priority_may_have_changed(app)
        queue.touch_app(app)

    def dequeue(self, ask: Ask, withdraw: bool = False) -> None:
        """`ask` waits no longer (its place in the books of the queues is the caller's business)."""
        app = ask.app
        app.uncount_pending(ask)
        if withdraw:
            app.withdraw(ask)
        else:
            app.leave(ask)
        shape = ask.shape
        assert shape is not None
        shape.pending -= 1
        if not shape.pending:
            self.shapes.pop(shape.key, None)
            self.nodes.unfit.pop(shape, None)
        if not app.batches or app.batches[0].key[0] != app.priority:
            self._priority_may_have_changed(app)
        app.queue.touch_app(app)

    def _priority_may_have_changed(self, app: Application) -> None:
        new = app.batches[0].key[0] if app.batches else NO_PRIORITY
        if new != app.priority:
            old, app.priority = app.priority, new
            app.queue.change_priority(old, new)

    def change_priority(self, ask: Ask, priority: int) -> None:
        """Give a waiting ask another priority; the order changes at once."""
        app = ask.app
        app.withdraw(ask)
        self.ask_version += 1
        ask.priority = priority
        assert ask.shape is not None
        group = line_group(ask)
        app.join(ask, app.queue.demand(ask.shape, (ask.shape, group)), group)
        self._priority_may_have_changed(app)
        app.queue.touch_app(app)

    def drop_ask(self, ask: Ask) -> None:
        """A waiting ask is withdrawn by its owner (or its application ended)."""
        self.dequeue(ask, withdraw=True)
        ask.app.queue.take_pending(ask.items)
        self.unhold(ask)
        self.unreserve(ask)
        del ask.app.asks[ask.key]

    # -- allocations ----------------------------------------------------------------------------------------------

    def place(self, ask: Ask, node: Node) -> None:
        """A waiting ask gets this node."""
        self.unhold(ask)
        self.dequeue(ask)
        ask.app.queue.start(ask.items)
        self._settle_on(ask, node)
        self.out.append(Allocated(ask.app.id, ask.key, node.id))
        self.after_allocation(ask)

    def restore(self, ask: Ask, node: Node) -> None:
        """An allocation that exists already is taken into the books, over any limit if need be."""
        app = ask.app
        app.asks[ask.key] = ask
        if ask.pending:
            self.unhold(ask)
            self.unreserve(ask)
            self.dequeue(ask, withdraw=True)
            app.queue.take_pending(ask.items)
        app.queue.add_allocated(ask.items)
        self._settle_on(ask, node)
        self.out.append(Allocated(app.id, ask.key, node.id))
        self.after_allocation(ask)

    def _settle_on(self, ask: Ask, node: Node) -> None:
        ask.node = node
        ask.allocated_ms = self.now_ms
        node.take(ask)
        self.nodes.touch(node)
        ask.app.count_allocated(ask)
        self.allocation_count += 1
        self.books_version += 1

    def after_allocation(self, ask: Ask) -> None:
        """The application's life goes on with its first, second, … allocation."""
        app = ask.app
        if ask.spec.placeholder:
            if app.state is State.ACCEPTED:
                self.join_accepted(app)
            return
        state = app.state
        if state is State.ACCEPTED:
            self.advance(app, Step.START if self.is_state_aware(app) else Step.RUN)
        elif state is State.STARTING or state is State.COMPLETING:
            self.advance(app, Step.RUN)

    def end_allocation(self, ask: Ask) -> None:
        """An allocation is gone: every book gives it back, and whoever waits for the room is woken."""
        node, app = ask.node, ask.app
        assert node is not None
        node.give_back(ask)
        ask.node = None
        if ask.evict_cause is not None:
            if ask.evict_cause is Cause.PREEMPTED_BY_SCHEDULER:
                app.queue.add_preempting(ask.items, -1)
            ask.evict_cause = None
        app.uncount_allocated(ask)
        app.queue.take_allocated(ask.items)
        if app.pending_count:
            app.queue.touch_app(app)
        self.released_count += 1
        self.books_version += 1
        self.nodes.gained(node)
        del app.asks[ask.key]

    def resize(self, ask: Ask, spec: AskSpec) -> None:
        """An ask or allocation changes its size in place; a running one may go over any limit."""
        old, new = ask.items, spec.resources.items
        app, queue = ask.app, ask.app.queue
        # Only the amount can change: what else the report says is not what it was submitted with.
        spec = replace(ask.spec, resources=spec.resources)
        if ask.pending:
            self.dequeue(ask, withdraw=True)
            queue.take_pending(old)
            ask.spec, ask.items = spec, new
            self.enqueue(ask)
            return
        ask.spec, ask.items = spec, new
        assert ask.node is not None
        ask.node.resize(old, new)
        book = app.placeholders if spec.placeholder else app.allocated
        for items, sign in ((old, -1), (new, 1)):
            for name, amount in items:
                book[name] = book.get(name, 0) + sign * amount
        queue.add_allocated(new)
        queue.take_allocated(old)
        self.books_version += 1
        self.nodes.gained(ask.node)

    def evict(self, ask: Ask, cause: Cause, on_behalf_of: str = "", rule: str = "", message: str = "") -> None:
        """Tell the outside to stop an allocation; it stays in the books until that is confirmed."""
        assert ask.node is not None
        ask.evict_cause = cause
        if cause is Cause.PREEMPTED_BY_SCHEDULER:
            ask.app.queue.add_preempting(ask.items)
        self.out.append(Evict(ask.app.id, ask.key, ask.node.id, cause, on_behalf_of, rule, message))
        self.books_version += 1

    def release(self, ask: Ask, cause: Cause, message: str = "", echo: bool = True) -> None:
        """End an allocation and say so."""
        assert ask.node is not None
        node = ask.node.id
        self.end_allocation(ask)
        if echo:
            self.out.append(Released(ask.app.id, ask.key, node, cause, message))

    # -- holds and reservations -----------------------------------------------------------------------------------

    def hold(self, ask: Ask, node: Node, victims: tuple[Ask, ...]) -> None:
        """Keep the space that `victims` leave on `node` for `ask`."""
        node.hold(ask)
        ask.held_on, ask.victims = node, victims
        self.holds[ask] = None
        self.nodes.touch(node)
        self.out.append(Reserved(ask.app.id, ask.key, node.id))

    def unhold(self, ask: Ask) -> None:
        """Keep space for `ask` no longer (it runs, is gone, or somebody more important took the space)."""
        node = ask.held_on
        if node is None:
            return
        node.unhold(ask)
        ask.held_on, ask.victims = None, ()
        del self.holds[ask]
        self.nodes.gained(node)
        self.books_version += 1
        self.out.append(Unreserved(ask.app.id, ask.key, node.id))

    def reserve(self, ask: Ask, node: Node) -> None:
        """Take the node out of the ordinary order for this ask (YuniKorn's reservation)."""
        node.reservations[ask] = None
        ask.reserved_on = node
        self.reservations += 1
        self.nodes.touch(node)
        self.out.append(Reserved(ask.app.id, ask.key, node.id))

    def unreserve(self, ask: Ask) -> None:
        """The node goes back into the ordinary order."""
        node = ask.reserved_on
        if node is None:
            return
        del node.reservations[ask]
        ask.reserved_on = None
        self.reservations -= 1
        self.nodes.gained(node)
        self.out.append(Unreserved(ask.app.id, ask.key, node.id))

    # -- nodes ----------------------------------------------------------------------------------------------------

    def nodes_changed(self) -> None:
        """The sum of the nodes is the root's maximum; every share is measured anew."""
        self.root.max = dict(self.nodes.total) if self.nodes.nodes else None
        self.reshare()
        self.root.loosened()

    def reshare(self) -> None:
        """What shares are measured against has changed: every queue finds its place again."""
        for queue in self.root.walk():
            queue.share_terms = None
            queue.touch()

    def wake_all(self) -> None:
        """Something general changed: look at everything again."""
        for shape in list(self.nodes.unfit):
            self.nodes.clear_unfit(shape)
        for queue in self.root.walk():
            queue.forget_lines()
            for demand in list(queue.waiting):
                del queue.waiting[demand]
                demand.wake()
            if queue.is_leaf:
                for app in queue.applications.values():
                    if app.pending_count:
                        queue.touch_app(app)
