"""Allocations: an ask gets its node, is told to stop, and is gone.

Decides what follows in the books of node, application and queues, and says so. Never chooses an ask, a node or a
victim. Invariant: what is on a node is counted once in each book above it, until its end is confirmed.
"""

from __future__ import annotations

from fairlead.core.acts import application_steps, gangs, nominate, quota_clocks, reserve_node, terminating, waiting_asks
from fairlead.core.acts.limit_groups import decide_group
from fairlead.core.books import idle_work
from fairlead.core.books.asks import Ask, creation_ms
from fairlead.core.books.node import Node
from fairlead.core.books.partition import Partition
from fairlead.core.books.usage_history import Consumption
from fairlead.core.model.constraints import ANYWHERE
from fairlead.core.model.decisions import Allocated, Evict, Released
from fairlead.core.model.events import Cause
from fairlead.core.model.lifecycle import State, Step
from fairlead.core.model.specs import TAG_START_TIME

RUNNING = State.RUNNING
CONFIRMS_SILENTLY = frozenset({Cause.TIMEOUT, Cause.PREEMPTED_BY_SCHEDULER, Cause.PLACEHOLDER_REPLACED})


def place(partition: Partition, ask: Ask, node: Node) -> None:
    """A waiting ask gets this node."""
    if (nomination := ask.nomination) is not None:
        if nomination.node is node and not nomination.is_coming:
            partition.tightened += 1  # It had that room already, and nothing is left over.
        nominate.withdraw(partition, ask)
    waiting_asks.dequeue(partition, ask)
    if ask.spec.idle:
        idle_work.start(ask)
    else:
        ask.app.queue.add_allocated(ask.items, waited=True)
    settle_on(partition, ask, node)
    partition.out.append(Allocated(ask.app.id, ask.key, node.id, partition.name))
    if ask.reserved_on is not None:
        reserve_node.unreserve(partition, ask)
    if ask.app.state is not RUNNING or ask.spec.placeholder:
        after_allocation(partition, ask)


def restore(partition: Partition, ask: Ask, node: Node) -> None:
    """An allocation that exists already is taken into the books, over any limit if need be."""
    app = ask.app
    if ask.key not in app.asks:
        waiting_asks.take_in(partition, ask)
    elif ask.replaces is not None:
        gangs.wait_again(partition, ask)  # It was on its way to a placeholder's place.
    if ask.pending:
        waiting_asks.take_out(partition, ask)
    idle_work.payer(ask).add_allocated(ask.items)
    idle_work.count_use(ask, 1)
    quota_clocks.forced(partition, app.queue)
    partition.nodes.suspects[node] = None
    settle_on(partition, ask, node)
    ask.allocated_ms = min(partition.now_ms, creation_ms(ask.spec.tags.get(TAG_START_TIME), partition.now_ms))
    ask.started_seq = 0
    if app.pending_count:
        app.queue.touch_app(app)
    partition.out.append(Allocated(app.id, ask.key, node.id, partition.name))
    after_allocation(partition, ask)


def settle_on(partition: Partition, ask: Ask, node: Node) -> None:
    """The ask is on this node from now on, in the books of node and application (those of queues: the caller)."""
    if ask.app.limit_group is None:
        decide_group(partition, ask.app)
    ask.node = node
    ask.allocated_ms = partition.now_ms
    ask.started_seq = partition.started_seq = partition.next_seq()
    node.take(ask)
    if partition.admission.budgets.counted:
        partition.admission.changed(ask)
    spec, nodes = ask.spec, partition.nodes
    if spec.idle:
        partition.idle.running[ask] = None
    else:
        partition.tightened += 1
    if nodes.terrain.counted or spec.where is not ANYWHERE:
        nodes.terrain.count(spec, node, 1)
    nodes.lost(node)
    ask.app.count_allocated(ask)
    partition.allocation_count += 1
    partition.books_version += 1


def after_allocation(partition: Partition, ask: Ask) -> None:
    """The application's life goes on with its first, second, … allocation."""
    app = ask.app
    if ask.spec.placeholder:
        gangs.placeholder_placed(partition, ask)
        return
    state = app.state
    if state is State.ACCEPTED:
        application_steps.begin(partition, app)
    elif state is State.STARTING or state is State.COMPLETING:
        application_steps.advance(partition, app, Step.RUN)


def end_allocation(partition: Partition, ask: Ask, replaced: bool = False) -> None:
    """An allocation is gone from every book, what waits for its room is woken. `replaced`: its real ask takes over."""
    node, app = ask.node, ask.app
    assert node is not None
    if partition.keeps_history:
        consumed = app.consumed
        if consumed is None:
            consumed = app.consumed = Consumption()
        consumed.note_peak(app.allocated)
        consumed.note_end(ask, node, partition.now_ms)
    node.give_back(ask)
    terrain = partition.nodes.terrain
    if terrain.counted or ask.spec.where is not ANYWHERE:
        terrain.count(ask.spec, node, -1)
    ask.node = None
    if ask.spec.idle:
        del partition.idle.running[ask]
    if ask.spec.idle or ask.evict_cause is not None:
        idle_work.count_use(ask, -1)
    if ask.evict_cause is not None:
        terminating.end(partition, ask)
    app.uncount_allocated(ask)
    idle_work.payer(ask).take_allocated(ask.items)
    if app.pending_count:
        app.queue.touch_app(app)
    partition.released_count += 1
    partition.books_version += 1
    partition.nodes.gained(node)
    waiting_asks.forget_ask(partition, ask)
    if ask.spec.placeholder and not replaced:
        gangs.placeholder_ended(partition, ask)


def change_priority(partition: Partition, ask: Ask, priority: int) -> None:
    """What runs, or is under way, has another priority from now on: more may be stopped on its node, or less."""
    if priority == ask.priority:
        return
    ask.priority = priority
    ask.place_in_line()
    partition.books_version += 1
    if (node := ask.node or ask.bound_for) is not None:
        partition.nodes.gained(node)


def evict(
    partition: Partition,
    ask: Ask,
    cause: Cause,
    on_behalf_of: str = "",
    rule: str = "",
    message: str = "",
    violates: tuple[str, ...] = (),
) -> None:
    """Tell the outside to stop an allocation; it stays in the books until that is confirmed."""
    assert ask.node is not None
    ask.evicted_by = (rule, on_behalf_of)
    partition.admission.budgets.told_to_stop(ask)
    leave(partition, ask, cause)
    where = (ask.app.id, ask.key, ask.node.id)
    partition.out.append(Evict(*where, cause, on_behalf_of, rule, message, violates, partition.name))


def leave(partition: Partition, ask: Ask, cause: Cause) -> None:
    """An allocation was told to stop, or is reported as leaving: from now on it is no victim any more."""
    assert ask.node is not None
    idle_work.count_use(ask, -1)
    ask.evict_cause = cause
    idle_work.count_use(ask, 1)
    partition.admission.changed(ask)
    if ask.spec.placeholder:
        ask.app.task_group(ask.spec.task_group).standing.pop(ask, None)  # It can be replaced no longer.
    if cause is Cause.PREEMPTED_BY_SCHEDULER:
        terminating.begin(partition, ask)
    elif ask.replaces is None:
        partition.disruption.going[ask] = None
    partition.nodes.since_search[ask.node] = None
    partition.books_version += 1


def release(partition: Partition, ask: Ask, cause: Cause, message: str = "") -> None:
    """End an allocation and say so, unless that only confirms what the scheduler ordered itself."""
    assert ask.node is not None
    node = ask.node.id
    end_allocation(partition, ask)
    if cause not in CONFIRMS_SILENTLY:
        partition.out.append(Released(ask.app.id, ask.key, node, cause, message, partition.name))
