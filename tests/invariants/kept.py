"""What a scheduler keeps between runs, compared with the same worked out afresh.

Every order, mark, obstacle and timer that is kept so that a run need not look at all that waits has a check here that
looks at all that waits. Decides nothing and changes nothing. It is meant for a scheduler that has come to rest:
whatever could be done then, and is in no line, on no list and behind no timer, has lost its wake-up. Part of
`invariants.books`, which otherwise says whether the books agree with each other; what is here needs the orders and the
rules of the policy.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from fairlead.core.acts import quota_clocks, reserve_node, reserve_turn, terminating
from fairlead.core.books.applications import Application
from fairlead.core.books.nominations import limit_short_of_kept, queue_short_of_kept
from fairlead.core.books.timers import ATTEMPT, BACKOFF, HELD, OF_APPLICATIONS, PLACEHOLDERS, RESERVATION
from fairlead.core.model.events import Cause
from fairlead.core.model.resources import fits_in
from fairlead.policy.eligibility import attempt_times
from fairlead.policy.eligibility.limits import may_run
from fairlead.policy.order import pick
from fairlead.policy.order.keys import batch_key, queue_key
from fairlead.policy.order.victim_index import Stoppable

if TYPE_CHECKING:
    from fairlead.core.books.demand import Demand
    from fairlead.core.books.node import Node
    from fairlead.core.books.partition import Partition
    from fairlead.core.books.queues import Queue
    from fairlead.policy.order.pick import Lines


def check_kept(partition: Partition, lines: Lines) -> None:
    """Assert all of it, for a partition whose last run found nothing to do."""
    for queue in partition.root.walk():
        _check_children(partition, queue)
        for app in queue.applications.values():
            _check_application(partition, lines, app)
        for demand in queue.every_demand():
            _check_obstacle(partition, demand)
    _check_marks(partition)
    _check_timers(partition)
    _check_stoppable(partition, lines.stoppable)


# -- what may be stopped --------------------------------------------------------------------------------------------


def _check_stoppable(partition: Partition, table: Stoppable) -> None:
    """What is known of each node is what a table that is made anew says of it, but for nodes that are marked."""
    nodes = partition.nodes
    marked = dict(nodes.since_search)
    if len(table._row) != len(nodes.nodes) or any(node not in table._row for node in nodes.nodes.values()):
        return  # It is made anew with the next search.
    fresh = Stoppable()
    fresh.keep_up(partition)
    nodes.since_search |= marked
    for node in nodes.nodes.values():
        if node not in marked:
            known, there = _row(table, node), _row(fresh, node)
            assert known == there, f"of {node} it is known that {known} may be stopped, there is {there}"


def _row(table: Stoppable, node: Node) -> tuple[object, ...]:
    row = table._row[node]
    room = {name: column[row] for name, column in table._room.items() if column[row]}
    work = Counter(
        (table.groups[table._entry_group[at]], *sorted((n, c[at]) for n, c in table._amounts.items() if c[at]))
        for at in range(*table._spans[row])
    )
    return (bool(table.open[row]), room, work)


# -- orders ---------------------------------------------------------------------------------------------------------


def _check_children(partition: Partition, queue: Queue) -> None:
    """The entry of each child that has something to offer has the key that the child has now."""
    if queue.is_leaf:
        for *_, stamp, app in queue.apps_heap:
            assert isinstance(app, Application)
            assert app.stamp != stamp or app.id in queue.applications, f"{app.id} is gone, and in line for ever"
        for demand in queue.every_demand():
            if demand.live and demand.obstacle is None:
                own = [e for e in queue.heap if e[1] == demand.stamp and e[2] is demand]
                batches = [b for app in queue.applications.values() for b in app.batches.values()]
                in_line = [b for b in batches if b.stamp and b.demand is demand and b not in demand.improved]
                assert own, f"{queue.path}: {demand.key} is ready, and in no line"
                assert not demand.improved or demand in queue.improved, f"{demand.key} would not be put anew"
                assert not in_line or own[0][0] <= min(map(batch_key, in_line)), (
                    f"{queue.path}: {demand.key} stands behind its place"
                )
        return
    for child in queue.children.values():
        if (child.ready or child.due_below) and child.pending_sum and not child.touched and not partition.shares_stale:
            own = [e for e in queue.child_heap if e[4] == child.stamp and e[5] is child]
            assert own, f"{child.path} has something to offer, and is in no line"
            assert own[0][:4] == queue_key(child), (
                f"{child.path} stands by {own[0][:4]}, and its key is {queue_key(child)}"
            )


def _check_application(partition: Partition, lines: Lines, app: Application) -> None:
    """Its kept key is the one it has now, it stands among those of its leaf, and none of its batches that may start is
    out of line.
    """
    if app.touched or not app.batches or app.rests(partition.now_ms):
        return
    leaf = app.queue
    in_line = [batch for batch in app.batches.values() if batch.stamp]
    if in_line:
        key = pick.application_key(app)  # As it is used there, also where a test changes it.
        assert app.order_key == key, f"{app.id} stands by {app.order_key}, now {key}"
    if in_line and not leaf.by_rank:
        assert app.stamp, f"{app.id} waits, and is in no line of {leaf.path}"
        found = any(e == (*app.order_key, app.stamp, app) for e in leaf.apps_heap)
        assert found, f"{app.id} waits, and is in no line of {leaf.path}"
    for batch in app.batches.values():
        assert batch.stamp or not lines.is_eligible(batch), f"{app.id}: {batch.head} may start, and is out of line"
        if batch.stamp and leaf.by_rank:
            assert batch.demand in batch.demand.shape.demands_in_line(), f"{batch.head} would stop nothing"
        if batch.stamp and not leaf.by_rank:
            _check_attempt(partition, batch.demand, app)


def _check_attempt(partition: Partition, demand: Demand, app: Application) -> None:
    """What may have others stopped by guarantee is on a list now, or behind a timer."""
    for batch in app.batches.values():
        if batch.demand is not demand or not batch.stamp or batch.attempt_ms >= attempt_times.NEVER_MS:
            continue
        if not attempt_times.may_try(partition, batch) or batch in demand.leaf.due:
            continue
        if batch in demand.deferred:
            assert demand.obstacle is not None, f"{batch.head} waits to try for what is in its way, and nothing is"
            continue
        due_ms = partition.timers.due_ms(partition.name, app.id, ATTEMPT)
        assert due_ms is not None, f"{batch.head} may try from {batch.attempt_ms} on, and would not"
        assert due_ms <= max(batch.attempt_ms, partition.now_ms), f"{batch.head} would try late, at {due_ms}"


# -- what is in the way ---------------------------------------------------------------------------------------------


def _check_obstacle(partition: Partition, demand: Demand) -> None:
    """What it is blocked by, or held to find full, is in the way of its first ask, and it is in no other way."""
    first = demand.first()
    known = demand.obstacle
    if first is None or first[2].head.nomination is not None:
        return
    ask = first[2].head
    if known is not None and demand in known.gated:
        waits = ask.app.gives_way_to is not None or not may_run(ask.app)
        assert waits, f"{ask} waits for a place to run in {known}, and may run"
    elif known is not None:
        short = known.lacks(ask.items) or queue_short_of_kept(partition, ask.app.queue, ask.items, (ask,)) is not None
        short = short or limit_short_of_kept(partition, ask) is not None
        assert short, f"{ask} waits for room in {known}, which has it"
    for queue in demand.leaf.lineage:
        if known is None and demand.shape in queue.full:
            short = queue.lacks(ask.items) or queue_short_of_kept(partition, queue, ask.items, (ask,)) is not None
            assert short, f"{ask} waits for room in {queue.path}, which has it"


def _check_marks(partition: Partition) -> None:
    """No node has room for a shape that is held to fit nowhere, whatever its constraints are."""
    nodes = partition.nodes
    for shape in nodes.unfit:
        if shape.blocked_by_root:
            assert not nodes.sum_has_room(shape.items), f"{shape.key} waits for the sum of all nodes, which has room"
            continue
        for node in nodes.nodes.values():
            if shape.required_node not in ("", node.id) or not node.is_open or not fits_in(shape.items, node.free):
                continue
            assert not nodes.lets(shape, node), f"{shape.key} fits on {node}, and is held to fit nowhere"


# -- time -----------------------------------------------------------------------------------------------------------


def _check_timers(partition: Partition) -> None:
    """Whatever is to happen at some time has a timer that is not later; no timer is for something that is gone."""
    _check_timers_of_applications(partition)
    now, name = partition.now_ms, partition.name

    def due(at_ms: int, subject: str, kind: str) -> None:
        set_ms = partition.timers.due_ms(name, subject, kind)
        assert set_ms is not None, f"{subject or name}: {kind} is due at {at_ms}, and has no timer"
        assert set_ms <= max(at_ms, now), f"{subject or name}: {kind} is due at {at_ms}, and set for {set_ms}"

    asks = (ask for app in partition.applications.values() for ask in app.asks.values())
    others = (None, Cause.PREEMPTED_BY_SCHEDULER)
    going = {ask for ask in asks if ask.evict_cause not in others and ask.replaces is None}
    assert set(partition.disruption.going) == going, "told to go for another reason than others: not as it stands"
    if partition.disruption.leave_by:
        due(min(partition.disruption.leave_by.values()), "", terminating.TIMER)
    elif (set_ms := partition.timers.due_ms(name, "", terminating.TIMER)) is not None:
        raise AssertionError(f"nothing leaves, and a timer for that is set for {set_ms}")
    for queue in partition.root.walk():
        if queue.quota_due_ms is not None and partition.spec.preemption.quota_enabled and queue.quota_due_ms > now:
            due(queue.quota_due_ms, "", quota_clocks.TIMER)
        bound_ms = queue.properties.wait_max_ms if queue.is_leaf else None
        waiting = [a for app in queue.applications.values() for a in app.asks.values() if a.pending and not a.spec.idle]
        coming = [a.created_ms + bound_ms for a in waiting if bound_ms and a.created_ms + bound_ms > now]
        if coming and queue not in partition.reserving.of:
            due(min(coming), queue.path, reserve_turn.TIMER)
    for timer in partition.timers.pending():
        if timer.partition == name and timer.kind in OF_APPLICATIONS:
            assert timer.subject in partition.applications, f"{timer.subject} is gone, and has a timer ({timer.kind})"


def _check_timers_of_applications(partition: Partition) -> None:
    now, name = partition.now_ms, partition.name
    for app in partition.applications.values():
        wanted = {
            BACKOFF: app.backoff_until_ms,
            HELD: partition.held_asks.next_due_ms(app.id, now),
            RESERVATION: min(
                (
                    ask.reserved_on.reservations[ask] + reserve_node.RESERVATION_MS
                    for ask in app.asks.values()
                    if ask.reserved_on is not None
                ),
                default=None,
            ),
        }
        for kind, at_ms in wanted.items():
            if at_ms is None or at_ms <= now:
                continue
            set_ms = partition.timers.due_ms(name, app.id, kind)
            assert set_ms is not None, f"{app.id}: {kind} is due at {at_ms}, and has no timer"
            assert set_ms <= at_ms, f"{app.id}: {kind} is due at {at_ms}, and set for {set_ms}"
        gang_ms = partition.timers.due_ms(name, app.id, PLACEHOLDERS)
        assert gang_ms is not None or not app.standing(), f"{app.id}: its placeholders wait for ever"
        assert gang_ms is None or app.placeholder_count, f"{app.id} waits for placeholders it has not"
        if app.state in ("Completing", "Starting") and not app.closing:
            assert partition.timers.due_ms(name, app.id, "application") is not None, f"{app.id} stays {app.state}"
