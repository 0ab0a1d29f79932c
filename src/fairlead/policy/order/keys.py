"""What comes before what: every sort key of the scheduler, with its criteria in order.

Decides orders only; keeps nothing and changes nothing. Higher priority wins everywhere; smaller keys come first. Every
key is completed by its user with a sequence number, so that every order is total.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fairlead.core.books.applications import Application
from fairlead.core.books.asks import Ask, Batch
from fairlead.core.books.queue_line import ChildEntry
from fairlead.core.books.queues import Queue
from fairlead.core.model.resources import Book

NOT_AHEAD = 0
"""Greater than what a key with a retried ask begins with, whatever its priority (`Ask.line_key`)."""


def fair_share(queue: Queue) -> float:
    """How much of its due a queue uses: the largest of allocated / guaranteed over all resources.

    Where there is no guarantee for a resource, the fair maximum stands in; where there is neither, it does not count. A
    due of 0 makes any use of it a share of 1. What a share is measured against is worked out once and kept until the
    partition says that it changed (`Partition.reshare`).
    """
    terms = queue.share_terms
    if terms is None:
        terms = queue.share_terms = tuple(sorted((queue.fair_max() | (queue.guaranteed or {})).items()))
    share = 0.0
    allocated = queue.allocated
    for name, due in terms:
        if name in allocated:
            part = allocated[name] / due if due else float(allocated[name] > 0)
            if part > share:
                share = part
    return share


def usage_shares(allocated: Book, guaranteed: Mapping[str, int] | None) -> tuple[float, ...]:
    """The shares of an application, largest first, zeros left out: compared one by one, more entries being more.

    A share is allocated / guaranteed of its queue; without a guarantee for a resource it is the raw quantity.
    """
    if not allocated:
        return ()
    due = guaranteed or {}
    shares = []
    for name, used in allocated.items():
        if used:
            shares.append(used / (due.get(name) or 1))
    shares.sort(reverse=True)
    return tuple(shares)


def queue_key(queue: Queue) -> tuple[object, object, int, int]:
    """Order among siblings.

    With priority (the parent's `application.sort.priority`): 1. higher reported priority, 2. smaller fair share;
    without: the other way round. Then 3. more that waits (by the sum over all resources: what waits for more of one
    and not for less of any other comes first, and the order stays total where neither does), 4. created earlier.

    By rank: as with priority. What of it holds for the ask that is next there is worked out by `place.by_rank`; this is
    the best that can be hoped for.
    """
    return child_entry(queue, 0)[:4]


def child_entry(queue: Queue, stamp: int) -> ChildEntry:
    """The entry of a queue among its siblings: the parts of its key, the stamp, and the queue."""
    parent = queue.parent
    if queue.by_rank or parent is None or parent.properties.priority_sorting:
        return (-queue.reported, fair_share(queue), -queue.pending_sum, queue.seq, stamp, queue)
    return (fair_share(queue), -queue.reported, -queue.pending_sum, queue.seq, stamp, queue)


def batch_key(batch: Batch) -> tuple[object, ...]:
    """Order among the batches of a leaf: 1. the order of applications, 2. in it the order of its asks.

    By rank: 1. higher priority of its first ask, 2. retried, 3. the order of applications, without priorities, 4. age.
    """
    app, first = batch.app, batch.line_key
    return (first[0], app.order_key, first) if app.queue.by_rank else (app.order_key, first)


def ask_key(ask: Ask, of_application: tuple[object, ...]) -> tuple[object, ...]:
    """The same for one ask, given the key of its application."""
    return (ask.line_key[0], of_application, ask.line_key) if ask.app.queue.by_rank else (of_application, ask.line_key)


def first_leaf_in_walk(leaves: Iterable[Queue]) -> Queue:
    """Of these leaves the one to which the walk from the root comes first: level by level, so that no key of a queue is
    worked out where it does not matter.
    """
    left, level = list(leaves), 1
    while len(left) > 1:
        below: dict[Queue, list[Queue]] = {}
        for leaf in left:
            below.setdefault(leaf.lineage[-1 - level], []).append(leaf)
        left = below[min(below, key=queue_key)] if len(below) > 1 else left
        level += 1
    return left[0]


def application_key(app: Application) -> tuple[object, ...]:
    """Order among the applications of a leaf.

    An application stands where its first ask in line stands: one that begins with a retried ask (a nominated one is not
    in line) comes before all that do not, whatever their priorities and shares; among such it goes by the priority of
    that ask, and then by age. Else
    `fifo`: 1. higher priority, 2. submitted earlier; `fair`: 1. higher priority, 2. smaller usage shares. Without
    `application.sort.priority` the two change places. Then 3. submitted earlier, 4. arrived earlier.

    Submitted is when the application came, or when the oldest ask or allocation of it was created, if a tag says that
    this was before. Such times may be equal (they have whole seconds); two that came were never submitted at once.
    """
    queue = app.queue
    properties = queue.properties
    submitted = (app.submitted_ms, app.seq)
    if queue.by_rank:
        is_fair = properties.sort_policy == "fair"
        return (usage_shares(app.allocated, queue.guaranteed), submitted) if is_fair else (submitted,)
    priority, is_ahead = -app.priority, False
    if app.retried and (first := app.first_ask()) is not None and first.spec.retried:
        priority, is_ahead = first.line_key[0], True
    if properties.sort_policy == "fair":
        shares = usage_shares(app.allocated, queue.guaranteed) if not is_ahead else ()
        return (priority, shares, submitted) if properties.priority_sorting else (shares, priority, submitted)
    if properties.priority_sorting:
        return (priority, submitted)
    if is_ahead:
        return (priority, *submitted)
    return (NOT_AHEAD, app.submitted_ms, app.submitted_seq, priority, app.seq)
