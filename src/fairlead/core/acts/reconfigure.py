"""Reconfiguration: what a queue file makes of the partitions and queues that are there.

Decides which queues are added, changed, drained, restarted and removed, and what becomes of a partition that is gone.
Never judges the file as a whole (`policy.events.reload` does, beforehand), save for one thing that only the books know:
`in_the_way`. Invariant: applications and children are never in the same queue, and a queue that leaves is empty.
"""

from __future__ import annotations

from collections.abc import Iterator

from fairlead.core.acts import (
    allocations,
    application_steps,
    infeasible,
    nominate,
    queue_removal,
    quota_clocks,
    reserve_node,
    reserve_turn,
    room_changes,
    waiting_asks,
    windows,
)
from fairlead.core.acts.application_steps import STAYS_MS
from fairlead.core.acts.limit_groups import limits_changed
from fairlead.core.books.admission import BUDGET
from fairlead.core.books.applications import NO_PRIORITY, Application
from fairlead.core.books.asks import counts_as_gone
from fairlead.core.books.cluster import Cluster
from fairlead.core.books.guarantees import find_guarantees, find_owed, forget_owed
from fairlead.core.books.partition import Partition
from fairlead.core.books.queues import Queue, QueueState
from fairlead.core.model.decisions import AskRejected, Configured, DeclarationChanged
from fairlead.core.model.events import Cause
from fairlead.core.model.lifecycle import ENDED, TRANSITIONS, State, Step
from fairlead.core.model.reasons import Refused
from fairlead.core.model.resources import fits_in
from fairlead.core.model.specs import ClusterSpec, PartitionSpec, QueueSpec

PARTITION_REMOVED = "PartitionRemoved"


def configure(cluster: Cluster, spec: ClusterSpec) -> None:
    """Make partitions and queues what the file says, as one step. The caller made sure that it can be done."""
    for part in spec.partitions:
        partition = cluster.partitions.get(part.name)
        if partition is None:
            _add_partition(cluster, part)
        else:
            _update_partition(partition, part)
    named = {part.name for part in spec.partitions}
    for name in [name for name in cluster.partitions if name not in named]:
        _remove_partition(cluster, cluster.partitions[name])
    for kind, name, change in cluster.admission.configure(spec):
        cluster.out.append(DeclarationChanged(kind, name, change))
        if kind == BUDGET:
            budgets_changed(cluster)
    cluster.checksum, cluster.text = spec.checksum, spec.text
    cluster.out.append(Configured(spec.checksum))


def budgets_changed(cluster: Cluster) -> None:
    """A budget spares other work than before, so that other work may be stopped."""
    for partition in cluster.partitions.values():
        partition.books_version += 1


def in_the_way(cluster: Cluster, spec: ClusterSpec) -> Iterator[str]:
    """What keeps the file from being applied now, as sentences: applications in queues that would become parents."""
    for part in spec.partitions:
        partition = cluster.partitions.get(part.name)
        if partition is not None:
            yield from _occupied_parents(partition.root, part.root)


def _occupied_parents(queue: Queue, spec: QueueSpec) -> Iterator[str]:
    if queue.applications and not says_leaf(spec):
        left = sum(app.state is not State.COMPLETING for app in queue.applications.values())
        what = (
            f"{left} applications are in it; move them to other queues or wait for their end, or give the new queues "
            f"another parent"
            if left
            else f"what ended in it last keeps its place for {STAYS_MS[State.COMPLETING] // 1000} s; try again then"
        )
        yield f"queue {queue.path} would become a parent, and {what}"
    for child in spec.queues:
        known = queue.children.get(child.name.lower())
        if known is not None:
            yield from _occupied_parents(known, child)


def says_leaf(spec: QueueSpec) -> bool:
    """Whether the file declares a leaf."""
    return not spec.parent and not spec.queues


# -- partitions ---------------------------------------------------------------------------------------------------


def _add_partition(cluster: Cluster, spec: PartitionSpec) -> None:
    root = Queue("root", None, cluster.next_seq(), leaf=False, managed=True)
    partition = Partition(spec, root, cluster.timers, cluster.out, cluster.next_seq, cluster.now_ms)
    partition.admission = cluster.admission
    partition.keeps_history = cluster.keeps_history
    cluster.partitions[spec.name] = partition
    queue_removal.queue_changed(partition, root, "added")
    root.configure(spec.root)
    _apply_children(partition, root, spec.root)
    _set_order(partition)
    windows.look(partition)


def _set_order(partition: Partition) -> None:
    """Whether rank decides which ask has its turn, or YuniKorn's walk: what waits is put in line accordingly."""
    by_rank = partition.spec.preemption.rule != "guarantee"
    find_guarantees(partition.root, partition.spec.preemption.rule == "both")
    for app in partition.applications.values():
        forget_owed(app)
    if partition.root.by_rank == by_rank:
        return
    if by_rank and partition.reservations:
        _set_nothing_aside(partition)
    for queue in partition.root.walk():
        queue.by_rank = by_rank
    for app in partition.applications.values():
        in_line = [ask for ask in app.asks.values() if ask.batch is not None]
        for ask in in_line:
            app.leave(ask)
        for ask in app.asks.values():
            ask.place_in_line()
        for ask in in_line:
            waiting_asks.line_up(partition, ask)


def _set_nothing_aside(partition: Partition) -> None:
    """Rank decides from now on: no node is closed to what stands higher. Where work was stopped, the room is kept."""
    reserved = [ask for node in partition.nodes.nodes.values() for ask in node.reservations]
    for ask in sorted(reserved, key=lambda ask: ask.seq):
        node, was_made_room = ask.reserved_on, ask.preempt_triggered
        assert node is not None
        reserve_node.unreserve(partition, ask)
        leaving = tuple(other for other in node.allocations if counts_as_gone(other))
        if was_made_room and fits_in(ask.items, node.free_for(ask, leaving)):
            ask.preempt_triggered = True
            nominate.nominate(partition, ask, node, leaving)


def _update_partition(partition: Partition, spec: PartitionSpec) -> None:
    if spec == partition.spec:
        return  # What is said again is no change.
    partition.books_version += 1
    held_to = quota_clocks.terms(partition)
    partition.spec = spec
    partition.idle.count(-1)
    partition.nodes.resort(spec.node_sort)
    partition.root.configure(spec.root)
    _apply_children(partition, partition.root, spec.root)
    partition.idle.count(1)
    _set_order(partition)
    recount_priorities(partition)
    room_changes.reshare(partition)
    limits_changed(partition)
    reserve_turn.watch_all(partition)
    partition.disruption.capacity_changed()
    partition.nominations.keep_anew()
    quota_clocks.rearm(partition, held_to)
    room_changes.wake_all(partition)
    infeasible.raised(partition.root, partition.now_ms)


def _remove_partition(cluster: Cluster, partition: Partition) -> None:
    """The partition goes at once: what waits is refused, what runs is given up (so it is stopped), all of it fails."""
    for app in list(partition.applications.values()):
        _fail(partition, app)
    cluster.timers.drop(partition.name)
    cluster.admission.windows.forget(partition.name)
    cluster.admission.budgets.counted.pop(partition.name, None)  # One of the same name is counted anew.
    del cluster.partitions[partition.name]


def _fail(partition: Partition, app: Application) -> None:
    reason = Refused(f"partition {partition.name} was removed from the configuration")
    for ask in app.allocated_asks():
        allocations.release(partition, ask, Cause.STOPPED_BY_RM, PARTITION_REMOVED)
    # Among them now what was under way to the place of a placeholder.
    for ask in app.waiting_asks():
        waiting_asks.drop_ask(partition, ask)
        partition.out.append(AskRejected(app.id, ask.key, reason, partition.name))
    for held in partition.held_asks.of(app.id):
        partition.held_asks.take(app.id, held.spec.key)
        partition.out.append(AskRejected(app.id, held.spec.key, reason, partition.name))
    app.message = PARTITION_REMOVED
    while app.state not in ENDED:
        # What starts over is accepted again before; what completes does that.
        step = next(step for step in (Step.FAIL, Step.COMPLETE, Step.RUN) if (app.state, step) in TRANSITIONS)
        application_steps.advance(partition, app, step, PARTITION_REMOVED)


# -- queues -------------------------------------------------------------------------------------------------------


def _apply_children(partition: Partition, queue: Queue, spec: QueueSpec) -> None:
    wanted = {child.name.lower(): child for child in spec.queues}
    for name, child in queue.children.items():
        if name not in wanted:
            _drain(partition, child)
    for name, child_spec in wanted.items():
        _apply(partition, queue, name, child_spec)


def _apply(partition: Partition, parent: Queue, name: str, spec: QueueSpec) -> None:
    leaf = says_leaf(spec)
    queue = parent.children.get(name)
    if queue is None:
        queue = Queue(name, parent, partition.next_seq(), leaf=leaf, managed=True)
        queue_removal.queue_changed(partition, queue, "added")
    elif queue.is_leaf != leaf and not queue.applications and not queue.children:
        queue.is_leaf = leaf
    if queue.state is QueueState.DRAINING:
        queue.state = QueueState.ACTIVE
        queue_removal.queue_changed(partition, queue, "restarted")
    queue.configure(spec)
    _apply_children(partition, queue, spec)
    if leaf and queue.children:
        # What is empty goes now: until then the queue is no leaf, and takes nothing.
        _clean_below(partition, queue)


def _drain(partition: Partition, queue: Queue) -> None:
    """A queue of the file that is no longer in it takes nothing new and leaves when it is empty; so do those below."""
    if not queue.managed:
        _hand_template_on(queue)
        return
    if queue.state is not QueueState.DRAINING:
        queue.state = QueueState.DRAINING
        queue_removal.queue_changed(partition, queue, "draining")
        queue_removal.clean_later(partition)
    for child in queue.children.values():
        _drain(partition, child)


def _hand_template_on(made: Queue) -> None:
    """A parent that placement made has the template of its own parent, which may be another one now."""
    if made.parent is not None and not made.is_leaf:
        made.template = made.parent.template
        for child in made.children.values():
            _hand_template_on(child)


def clean_queues(partition: Partition) -> None:
    """Remove the queues that drain or were made by placement, once they are empty; children before parents."""
    _clean_below(partition, partition.root)


def _clean_below(partition: Partition, top: Queue) -> None:
    for queue in reversed(list(top.walk())):
        parent = queue.parent
        if queue is top or parent is None or not queue.is_leaving or queue.children or queue.applications:
            continue
        del parent.children[queue.name]
        reserve_turn.forget(partition, queue)
        queue.stamp = 0
        queue_removal.queue_changed(partition, queue, "removed")
        if not parent.children:
            _settle_kind(partition, parent)


def _settle_kind(partition: Partition, queue: Queue) -> None:
    """A queue that the file declares a leaf, but that still had children, becomes one when the last of them is gone."""
    spec: QueueSpec | None = partition.spec.root
    for above in reversed(queue.lineage[:-1]):
        spec = next((child for child in spec.queues if child.name.lower() == above.name), None) if spec else None
    if spec is not None and queue.parent is not None and says_leaf(spec):
        queue.is_leaf = True
        queue.child_heap.clear()
        queue.configure(spec)


def recount_priorities(partition: Partition) -> None:
    """Work out from scratch what each queue reports, and what may be owed in it. The caller touches every queue."""
    queues = list(partition.root.walk())
    for queue in queues:
        queue.priority_counts.clear()
        queue.raw_priority = queue.reported = NO_PRIORITY
    for app in partition.applications.values():
        app.queue.change_priority(NO_PRIORITY, app.priority)
    for queue in reversed(queues):
        find_owed(queue)
