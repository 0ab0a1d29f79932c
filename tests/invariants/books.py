"""The check of the books: everything that must hold after every act, worked out a second time from the parts.

Decides nothing and changes nothing; a violation is an AssertionError that names the place. Tests call it after each
step.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from invariants.admission import check_admission
from invariants.constraints import check_terrain
from invariants.kept import check_kept
from invariants.waking import check_waking

from fairlead.core.books.above_guarantee import AboveGuarantee
from fairlead.core.books.applications import NO_PRIORITY
from fairlead.core.books.asks import counts_as_gone, line_group
from fairlead.core.books.idle_work import group_of, idle_key
from fairlead.core.model.lifecycle import LIVE, State
from fairlead.core.model.resources import Book, add_to, pruned, take_from

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fairlead.core.books import Application, Ask, Node, Partition, Queue
    from fairlead.scheduler import Scheduler


def check_books(scheduler: Scheduler) -> None:
    """Assert every invariant of the books; raises AssertionError with the place."""
    for partition in scheduler.cluster.partitions.values():
        check_partition(partition)
        cycle = scheduler._cycles.get(partition.name)
        at_rest = partition.rested_at == (partition.news, partition.books_version)
        if cycle is not None and cycle.partition is partition and at_rest:
            check_kept(partition, cycle.lines)
    check_admission(scheduler.cluster)


def check_partition(partition: Partition) -> None:
    """Assert every invariant of one partition."""
    for node in partition.nodes.nodes.values():
        _check_node(node)
    assert partition.nodes.in_use is partition.root.allocated, "the nodes look at another book than the root's"
    total: Book = {}
    for node in partition.nodes.nodes.values():
        add_to(total, tuple(node.total.items()))
    _same(partition.nodes.total, total, "sum of the nodes", partition.name)
    occupied: Book = {}
    for node in partition.nodes.nodes.values():
        add_to(occupied, tuple(node.occupied.items()))
    _same(partition.nodes.occupied, occupied, "what other schedulers use", partition.name)
    foreign = {key: node for node in partition.nodes.nodes.values() for key in node.foreign}
    assert partition.nodes.foreign_on == foreign, "foreign work is not looked for where it runs"
    check_idle(partition)
    check_reserving(partition)
    if partition.nodes.nodes:
        _same(partition.root.max or {}, total, "root maximum", partition.name)
    for app in partition.applications.values():
        _check_application(partition, app)
    for queue in partition.root.walk():
        _check_queue(queue, list(partition.idle.running))
    check_guarantees(partition)
    check_limits(partition)
    check_gangs(partition)
    check_reservations(partition)
    check_terrain(partition)
    check_waking(partition)
    shapes = [a.shape for app in partition.applications.values() for a in app.asks.values() if a.pending]
    for shape in partition.shapes.values():
        assert shape.pending == shapes.count(shape), f"shape {shape.key} counts {shape.pending} waiting asks"
    check_nominations(partition)


def check_nominations(partition: Partition) -> None:
    """Assert that nodes, queues and limits keep what the nominated asks need, and nothing else."""
    book = partition.nominations
    want: dict[object, Book] = {}
    for ask, nomination in book.of.items():
        assert ask.pending, f"{ask} is nominated but does not wait"
        assert ask.nomination is nomination, f"{ask} does not know of its nomination"
        assert ask in nomination.node.held, f"{ask} is nominated for {nomination.node}, which does not know of it"
        assert ask.reserved_on is None, f"{ask} is nominated for {nomination.node} and has {ask.reserved_on} reserved"
        assert ask.batch is not None or not nomination.gathers, f"room gathers for {ask}, and it is not in line"
        assert nomination.places[0] is ask.app.queue, f"{ask} is nominated, and its queue does not keep room for it"
        for place in nomination.places:
            add_to(want.setdefault(place, {}), ask.items)
    assert {k: pruned(v) for k, v in book.kept.items()} == {k: pruned(v) for k, v in want.items() if pruned(v)}
    for app in partition.applications.values():
        for ask in app.asks.values():
            assert ask.nomination is None or ask in book, f"{ask} is nominated, and the book does not know"
    for place in (*partition.root.walk(), *partition.trackers.ceilings.values()):
        asks = [a for a, n in book.of.items() if place is partition.root or place in n.places]
        count = {a.app: [other.app for other in asks].count(a.app) for a in asks}
        assert place.promised == count, f"{place} keeps places for {place.promised}, kept for {count}"


def check_guarantees(partition: Partition) -> None:
    """Assert that parents know the children below which waiting work is within each guarantee on its way."""
    counts = partition.spec.preemption.rule == "both"
    owed: dict[str, set[str]] = {}
    for leaf in partition.root.walk():
        is_under_one = any(queue.guaranteed for queue in leaf.lineage)
        if not counts or not is_under_one or all(app.priority == NO_PRIORITY for app in leaf.applications.values()):
            continue
        for queue in leaf.lineage:
            due = queue.guaranteed or {}
            gone, idle = queue.preempting, queue.idle
            left = {n: v + gone.get(n, 0) + idle.get(n, 0) - queue.allocated.get(n, 0) for n, v in due.items()}
            if left and max(left.values()) <= 0:
                break  # All of it is used up.
            if queue.parent is not None:
                owed.setdefault(queue.parent.path, set()).add(queue.path)
    for queue in partition.root.walk():
        kept, due_below = {child.path for child in queue.owed_below}, owed.get(queue.path, set())
        assert kept == due_below, f"{queue.path} keeps {kept} as owed something, and it is {due_below}"
        if queue.guaranteed:
            known, anew = (book.of(partition, queue) for book in (partition.above_guarantee, AboveGuarantee()))
            assert known == anew, f"{queue.path} is known to be above its guarantee by {known}, and it is {anew}"


def check_limits(partition: Partition) -> None:
    """Assert that what the trackers keep is what the applications add up to, and that each is under its limits."""
    trackers = partition.trackers
    apps = list(partition.applications.values())
    for app in apps:
        assert app.tracked or not app.allocations, f"{app.id} has allocations and is not tracked"
        assert not app.tracked or app.allocations or app.pending_count, f"{app.id} is tracked and has nothing"
        assert app not in partition.unseen or app.limit_group is None, f"{app.id} is unseen, but its group is decided"
        decided = app.limit_group is not None or app in partition.unseen
        assert decided or not app.pending_count, f"{app.id} waits, and its group will not be decided"
        for batch in app.batches.values():
            assert batch.demand.allowance is app.allowance, f"{app.id} waits under limits that are not its own"
    for app in partition.unseen:
        assert partition.applications.get(app.id) is app, f"{app.id} is gone and still unseen"
    if not trackers.limits:
        assert not any(app.allowance for app in apps), "an application has limits, and there are none"
        return
    for key, allowance in trackers.allowances.items():
        count = sum(1 for app in apps if app.allowance is allowance)
        assert allowance.applications == count > 0, f"{key} counts {allowance.applications} applications, {count} there"
    for key, ceiling in trackers.ceilings.items():
        holders = [a for a in trackers.allowances.values() if ceiling in a.ceilings]
        assert ceiling.holders == len(holders) > 0, f"{key} counts {ceiling.holders} holders, {len(holders)} there"
        under = [app for app in apps if app.allowance in holders]
        used: Book = {}
        for app in under:
            add_to(used, tuple(app.allocated.items()))
            add_to(used, tuple(app.placeholders.items()))
        _same(ceiling.allocated, used, "use", str(key))
        tracked = sorted(app.id for app in under if app.tracked)
        assert sorted(ceiling.applications) == tracked, f"{key} tracks {sorted(ceiling.applications)}, not {tracked}"


def check_gangs(partition: Partition) -> None:
    """Assert that placeholders and the asks that replace them agree, and that what may be replaced is looked at."""
    for app in partition.applications.values():
        asks = list(app.asks.values())
        under_way = [a for a in asks if a.replaces is not None and not a.spec.placeholder]
        assert app.swapping == len(under_way), f"{app.id}: {app.swapping} swaps counted, {len(under_way)} there"
        for ask in under_way:
            assert ask.replaces is not None
            assert ask.replaces.replaces is ask, f"{ask} replaces {ask.replaces}, which does not know it"
            assert ask.node is None, f"{ask} is under way and runs"
            assert not ask.pending, f"{ask} is under way and waits"
            assert ask.replaces.evict_cause is not None, f"{ask.replaces} is being replaced and was not told to go"
            assert ask.bound_for is None or ask in ask.bound_for.held, f"{ask} has no space on {ask.bound_for}"
        for ask in asks:
            assert ask.pending or ask.node is not None or ask in under_way, f"{ask} neither waits nor runs"
        standing = {a for a in asks if a.spec.placeholder and a.node is not None and a.evict_cause is None}
        named = [a for group in app.groups.values() for a in group.standing]
        assert set(named) == standing, f"{app.id}: {named} stand in its groups"
        assert len(named) == len(standing), f"{app.id}: some placeholder stands in two groups"
        for younger in app.awaited_by:
            assert younger.gives_way_to is app, f"{younger.id} is listed with {app.id} and does not wait for it"
            assert partition.applications.get(younger.id) is younger, f"{younger.id} waits for {app.id} and is gone"
        older = app.gives_way_to
        if older is not None:
            assert older.awaited_by.count(app) == 1, f"{app.id} waits for {older.id}, which would not wake it"
            assert app.state is older.state is State.ACCEPTED, f"{app.id} waits for {older.id}, and one is no gang now"
            assert not standing, f"{app.id} gave way to {older.id} and holds {named}"
            assert app.allocations or app.id not in app.queue.allocating_accepted, f"{app.id} holds a place in vain"


def check_reservations(partition: Partition) -> None:
    """Assert that asks and nodes agree on what is reserved, that no node is reserved for two kinds of asks, nor for
    several of which one had no work stopped.
    """
    count = 0
    for node in partition.nodes.nodes.values():
        count += len(node.reservations)
        ordinary = [a for a in node.reservations if not a.required_node]
        assert len(ordinary) in (0, len(node.reservations)), f"{node} is reserved for {list(node.reservations)}"
        told = [a.preempt_triggered for a in ordinary]
        assert len(told) < 2 or all(told), (
            f"{node} is reserved for {list(node.reservations)}, not all told work to stop"
        )
        for ask in node.reservations:
            assert ask.pending, f"{ask} has {node} reserved and does not wait"
            assert ask.reserved_on is node, f"{ask} does not know that {node} is reserved for it"
            assert ask.watches or ask in partition.nodes.reserved_again, f"{ask} would never try {node} again"
    assert count == partition.reservations, f"{partition.reservations} reservations counted, {count} there"


def check_idle(partition: Partition) -> None:
    """Assert that every idle ask is either in line or among those that run, and that the lines are in order."""
    asks = [a for app in partition.applications.values() for a in app.asks.values() if a.spec.idle]
    lines = partition.idle.lines
    for key, line in lines.items():
        assert line, f"an empty line of idle asks is kept for {key}"
        assert line == sorted(line, key=idle_key), f"idle asks of {key} are out of order"
        assert all((a.app.queue, a.shape) == key for a in line), f"an idle ask is in the line of {key} by mistake"
    in_line = sorted(a.seq for line in lines.values() for a in line)
    assert in_line == sorted(a.seq for a in asks if a.pending), "idle asks are missing in line"
    running = sorted(a.seq for a in partition.idle.running)
    assert running == sorted(a.seq for a in asks if a.node is not None), "idle asks are missing among those that run"


def check_reserving(partition: Partition) -> None:
    """Assert that whose turn is kept waits in that leaf, and is not idle; by waiting there is one for each limit that
    is in the way of some, and one for what none is.
    """
    for leaf, own in partition.reserving.of.items():
        assert own, f"{leaf} is kept among those with a reservation and has none"
        for ask in own:
            assert ask.pending, f"{ask} has a reservation and does not wait"
            assert ask.app.queue is leaf, f"{ask} has a reservation in {leaf}"
            assert not ask.spec.idle, f"{ask} is idle and has a reservation"
        limits = [r.limit.key if r.limit is not None else None for r in own.values() if r.by_itself]
        assert len(limits) == len(set(limits)), f"two asks of {leaf} have reservations by waiting, and alike"


def _sum(asks: Iterable[Ask]) -> Book:
    book: Book = {}
    for ask in asks:
        add_to(book, ask.items)
    return book


def _same(book: Book, want: Book, what: str, where: str) -> None:
    assert pruned(book) == pruned(want), f"{where}: {what} is {pruned(book)}, its parts sum up to {pruned(want)}"


def _check_node(node: Node) -> None:
    _same(node.allocated, _sum(node.allocations), "allocated", node.id)
    available = dict(node.total)
    for book in (node.allocated, node.occupied):
        take_from(available, tuple(book.items()))
    _same(node.available, available, "available", node.id)
    free = dict(available)
    for items in node.held.values():
        take_from(free, items)
    _same(node.free, free, "free", node.id)
    for ask in node.allocations:
        assert ask.node is node, f"{ask} is in the books of {node.id}"
        assert not ask.pending, f"{ask} waits and runs"


def _check_application(partition: Partition, app: Application) -> None:
    waiting = [a for a in app.asks.values() if a.pending]
    running = [a for a in app.asks.values() if a.node is not None]
    _same(app.pending, _sum(waiting), "pending", app.id)
    assert app.pending_count == len(waiting), f"{app.id}: {app.pending_count} asks counted, {len(waiting)} wait"
    _same(app.allocated, _sum(a for a in running if not a.spec.placeholder), "allocated", app.id)
    _same(app.placeholders, _sum(a for a in running if a.spec.placeholder), "placeholders", app.id)
    assert app.allocations == len(running), f"{app.id}: {app.allocations} allocations counted, {len(running)} there"
    in_line = [a for a in waiting if not a.spec.idle]
    assert app.priority == max((a.priority for a in in_line), default=NO_PRIORITY), f"{app.id}: priority {app.priority}"
    by_priority = dict(Counter(ask.priority for ask in in_line))
    assert app.by_priority == by_priority, f"{app.id}: {app.by_priority} wait by priority, {by_priority} are there"
    assert app.retried == sum(a.spec.retried for a in in_line), f"{app.id}: {app.retried} further attempts counted"
    in_batches = sorted(a.seq for batch in app.batches.values() for a in batch.asks)
    apart = [a for a in in_line if a.nomination is not None and a.batch is None]
    assert in_batches == sorted(a.seq for a in in_line if a not in apart), f"{app.id}: asks missing in line"
    heads = sorted(app.batches.values(), key=lambda batch: batch.line_key)
    assert app.line == heads, f"{app.id}: batches out of order"
    for key, batch in app.batches.items():
        assert batch.key == key, f"{app.id}: a batch is listed under another key"
        for ask in batch.asks:
            own = (ask.shape, line_group(ask), ask.spec.allow_preempt_other, ask.retried)
            assert ask.batch is batch, f"{app.id}: {ask} is in a batch that it does not know"
            assert own == key, f"{app.id}: {ask} is in a foreign batch"
        places = [a.line_key for a in batch.asks]
        assert places == sorted(places), f"{app.id}: asks out of order in a batch"
    for ask in running:
        assert ask.node is not None
        assert ask in ask.node.allocations, f"{ask} is not in the books of its node"
        assert partition.nodes.nodes.get(ask.node.id) is ask.node, f"{ask} runs on a node that is gone"


def _check_queue(queue: Queue, idle: list[Ask]) -> None:
    apps = list(queue.applications.values())
    children = list(queue.children.values())
    assert not (apps and children), f"{queue.path} has applications and children"
    allocated: Book = {}
    for app in apps:
        for book in (app.allocated, app.placeholders):
            add_to(allocated, tuple(book.items()))
    for child in children:
        add_to(allocated, tuple(child.allocated.items()))
    idle_here = [a for a in idle if group_of(a.app.queue) is queue]
    for app in apps:
        for ask in app.asks.values():
            if ask.node is not None and ask.spec.idle:
                take_from(allocated, ask.items)
    add_to(allocated, tuple(_sum(idle_here).items()))
    _same(queue.allocated, allocated, "allocated", queue.path)
    waiting = sum(sum(app.pending.values()) for app in apps) + sum(child.pending_sum for child in children)
    assert queue.pending_sum == waiting, f"{queue.path} sums up what waits as {queue.pending_sum}, and it is {waiting}"
    for demand in queue.every_demand():
        behind = [batch for app in apps for batch in app.batches.values() if batch.demand is demand]
        counted, there = (demand.pending, demand.asks), (len(behind), sum(map(len, behind)))
        assert counted == there, f"{queue.path}: {demand.key} counts {counted} batches and asks, there are {there}"
    own = (a for app in apps if app.allocations for a in app.asks.values() if not a.spec.idle)
    leaving = _sum(a for a in (*own, *idle_here) if counts_as_gone(a))
    for child in children:
        add_to(leaving, tuple(child.preempting.items()))
    _same(queue.preempting, leaving, "preempting", queue.path)
    idle = _sum(a for a in idle_here if not counts_as_gone(a))
    for child in children:
        add_to(idle, tuple(child.idle.items()))
    _same(queue.idle, idle, "idle", queue.path)
    assert all(v >= 0 for v in queue.allocated.values()), f"{queue.path}: allocated below zero {queue.allocated}"
    running = sum(1 for a in apps if a.state in LIVE) + sum(c.running for c in children)
    assert queue.running == running, f"{queue.path}: {queue.running} running counted, {running} there"
    below = [a.priority for a in apps] + [c.reported for c in children]
    raw = max(below, default=NO_PRIORITY)
    assert queue.raw_priority == raw, f"{queue.path}: priority {queue.raw_priority}, highest below is {raw}"
    assert queue.reported == queue.adjust(raw), f"{queue.path}: reports {queue.reported}"
