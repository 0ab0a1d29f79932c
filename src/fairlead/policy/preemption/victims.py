"""Victims: which running work may be stopped at all so that one ask may run, and how it is told.

Decides how far an ask may look for victims (fences), what it outranks there (priorities, with the offsets and fences
of queues), and in which order victims are preferred. Never decides which of them go. Invariant: nothing in the
ask's own queue and nothing above the ask's priority is ever a candidate (idle work apart: it goes first, wherever it
is), nor is anything that leaves already.
"""

from __future__ import annotations

from collections.abc import Iterable

from fairlead.core.acts import allocations
from fairlead.core.books.asks import Ask, Batch
from fairlead.core.books.idle_work import payer
from fairlead.core.books.node import Node
from fairlead.core.books.partition import Partition
from fairlead.core.books.queues import Queue
from fairlead.core.model.events import Cause
from fairlead.core.model.resources import Book, lacks
from fairlead.policy.order.effective_priority import below, standing_by_queue
from fairlead.policy.order.effective_priority import search_root as below_fence
from fairlead.policy.preemption.queue_snapshot import QueueSnapshots


class Survey:
    """What all attempts to make room by guarantee would look up again, listed once for a partition as it is, until
    `books_version` changes. Hundreds of asks may try at the same moment, and mostly nothing can be done for any of
    them: each is to cost what concerns it alone.
    """

    def __init__(self, partition: Partition) -> None:
        self.partition, self.version = partition, partition.books_version
        self.to_come = [n.ask for n in partition.nominations.of.values() if not n.gathers]
        """Waiting asks for which work was stopped."""
        for node in partition.nodes.nodes.values() if partition.reservations else ():
            self.to_come += [holder for holder in node.reservations if holder.preempt_triggered]
        self._of_leaf: dict[tuple[Queue, int], list[Ask]] = {}

    def stoppable(self, leaf: Queue, least_spared: int) -> list[Ask]:
        """What runs in this leaf with a lower priority than that and may be told to stop, idle work apart: application
        by application, in order of arrival.
        """
        found = self._of_leaf.get((leaf, least_spared))
        if found is None:
            apps = [app for app in leaf.applications.values() if app.allocations]
            work = (a for app in apps for a in app.asks.values() if not a.spec.idle and a.priority < least_spared)
            found = self._of_leaf[leaf, least_spared] = [a for a in work if may_be_told(a)]
        return found


def may_be_told(running: Ask) -> bool:
    """Whether it runs, was not told to stop yet, and is not bound to its node."""
    return running.node is not None and running.evict_cause is None and not running.required_node


def preference(victim: Ask) -> tuple[bool, bool, bool, int, int]:
    """Order of victims: 1. idle, 2. agreed to be preempted, 3. not the originator of its application, 4. the newest."""
    spec = victim.spec
    return (not spec.idle, not spec.allow_preempt_self, spec.originator, -victim.created_ms, -victim.seq)


def taint(victim: Ask) -> int:
    """How much a victim is to be avoided: 2 when it did not agree, plus 1 when it is an originator; 0 is best, idle."""
    return 0 if victim.spec.idle else 2 * (not victim.spec.allow_preempt_self) + victim.spec.originator


def reluctance(victim: Ask) -> tuple[int, int, int, int]:
    """Order of victims that go for a reason other than a guarantee: 1. those that agreed to be preempted and are not
    originators, then those that did not agree, then originators; 2. lower priority; 3. the newest.
    """
    protected = 2 if victim.spec.originator else int(not victim.spec.allow_preempt_self)
    return (protected, victim.priority, -victim.created_ms, -victim.seq)


def by_node(work: Iterable[Ask]) -> dict[Node, list[Ask]]:
    """Asks by the node on which they run, or room is kept for them."""
    found: dict[Node, list[Ask]] = {}
    for ask in work:
        node = ask.node or ask.held_on
        assert node is not None
        found.setdefault(node, []).append(ask)
    return found


def missing_on(node: Node, ask: Ask, gone: Iterable[Ask] = ()) -> Book:
    """What the node is short of for the ask, beside what is held there for others, once some work has gone."""
    free = node.free_for(ask, gone)
    return {name: amount - free.get(name, 0) for name, amount in ask.items if amount > free.get(name, 0)}


def fewest(missing: Book, work: Iterable[Ask]) -> int:
    """No fewer of these than so many give back all that is missing: of each resource, so many of the largest. 0: not
    even all of them do.
    """
    found = 1
    sizes = [dict(each.items) for each in work]
    for name, lack in missing.items():
        for count, amount in enumerate(sorted((size.get(name, 0) for size in sizes), reverse=True), 1):
            lack -= amount
            if lack <= 0:
                found = max(found, count)
                break
        else:
            return 0
    return found


def with_own_node(partition: Partition, work: Iterable[Ask]) -> dict[Batch, list[Ask]]:
    """Asks with a node set aside that has room for them, or where some of this work may be enough, by batch: those of
    their like may not use it.
    """
    if not partition.reservations:
        return {}
    there, found = by_node(work), dict[Batch, list[Ask]]()
    for node in partition.nodes.nodes.values():
        here = there.get(node, [])
        for ask in node.reservations:
            if ask.batch is not None and (here or node.room_for(ask)) and fewest(missing_on(node, ask), here):
                found.setdefault(ask.batch, []).append(ask)
    return found


def search_root(ask: Ask) -> Queue:
    """The queue below which victims are looked for.

    Going up from the ask's leaf: the first with `preemption.policy: fence`, or whose own use together with the ask is
    more than its maximum or one above (stopping work elsewhere would not help there), else the root.
    """
    top = below_fence(ask.app.queue)
    return next(queue for queue in ask.app.queue.lineage if queue is top or _is_full(queue, ask))


def _is_full(queue: Queue, ask: Ask) -> bool:
    """Whether what is used there together with the ask is more than its maximum or one above."""
    return any(lacks(above.max, queue.allocated, ask.items) for above in queue.lineage[:-1])


def candidates(survey: Survey, ask: Ask, snapshots: QueueSnapshots) -> list[Ask]:
    """Every allocation that may be stopped for `ask`, by queue and application in order of arrival."""
    # Equals may go too, other than by priority.
    seen = {queue: standing + 1 for queue, standing in standing_by_queue(ask.app.queue, ask.priority).items()}
    names = {name for name, _ in ask.items}
    found: list[Ask] = []
    for leaf in search_root(ask).walk():
        if not leaf.is_leaf or leaf is ask.app.queue or not leaf.allocated:
            continue
        left = snapshots.of(leaf).remaining()
        if leaf.properties.preemption_policy != "disabled" and (not left or any(v < 0 for v in left.values())):
            found += (a for a in survey.stoppable(leaf, below(seen, leaf)) if _helps(survey.partition, a, ask, names))
    return found


def idle_candidates(partition: Partition, ask: Ask) -> list[Ask]:
    """Idle work that may be stopped for `ask`, in its own queue too, whatever its priority: a fence keeps in what runs
    below it, a full queue what counts there.
    """
    top = search_root(ask)
    where = payer if _is_full(top, ask) else _leaf
    names = {name for name, _ in ask.items}
    return [
        running
        for running in partition.idle.by_arrival()
        if top in where(running).lineage
        and running.app.queue.properties.preemption_policy != "disabled"
        and may_be_told(running)
        and _helps(partition, running, ask, names)
    ]


def _leaf(ask: Ask) -> Queue:
    return ask.app.queue


def _helps(partition: Partition, running: Ask, ask: Ask, names: set[str]) -> bool:
    """Whether it is not young, and has some of these resources."""
    return not partition.is_young(running, ask) and any(name in names for name, _ in running.items)


def stop_for(
    partition: Partition, ask: Ask, victim: Ask, rule: str, message: str, violates: tuple[str, ...] = ()
) -> None:
    """Tell a victim to stop so that `ask` can run. What goes by guarantee or by priority is remembered: as a loop that
    must not come again, and of the queue as lost within the hour.
    """
    if rule in ("guarantee", "priority"):
        partition.disruption.note(ask, victim, partition.now_ms)
    cause = Cause.PREEMPTED_BY_SCHEDULER
    allocations.evict(partition, victim, cause, on_behalf_of(ask), rule, message, violates)


def on_behalf_of(ask: Ask) -> str:
    """How an eviction names the ask that it makes room for."""
    return f"{ask.app.id}/{ask.key}" if ask.key != ask.app.id else ask.key
