"""Preempt by quota: a queue whose maximum was lowered gives work back until it is within it, some time later.

Decides, when a queue's clock has run out (`core.acts.quota_clocks`), how much is taken back, from which leaves below
it, and which work. Never takes work that needs its node, that leaves already, or that is by itself larger than what is
to be taken back; it is done once for each change. Invariant: every victim gives back something of which its leaf, or in
the end the whole queue, still owes some.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain

from fairlead.core.acts import allocations, quota_clocks
from fairlead.core.books.asks import Ask
from fairlead.core.books.idle_work import payer
from fairlead.core.books.partition import Partition
from fairlead.core.books.queues import Queue
from fairlead.core.model.decisions import QuotaEnforced
from fairlead.core.model.events import Cause
from fairlead.core.model.resources import Book, Resources, take_from
from fairlead.policy.preemption.bound import Bound, all_let
from fairlead.policy.preemption.victims import may_be_told, reluctance

ROUND_MS = 1_000
"""A queue below one that is at work has its turn in the next round, so long after this one."""


def on_timer(partition: Partition, _: str) -> None:
    """Some clock has run out: work through the tree from the root down, and set the next timer.

    What is below a queue that gives back in this round waits for the next one, when it may be within its maximum.
    """
    if partition.spec.preemption.quota_enabled:
        _round(partition, partition.root)
        quota_clocks.set_timer(partition, partition.now_ms + ROUND_MS)


def _round(partition: Partition, queue: Queue) -> None:
    due = queue.quota_due_ms
    if due is not None and not quota_clocks.is_over(queue):
        queue.quota_due_ms = due = None
    if due is not None and due <= partition.now_ms:
        queue.quota_due_ms = None
        _enforce(partition, queue)
        return
    for child in queue.children.values():
        _round(partition, child)


def _enforce(partition: Partition, queue: Queue) -> None:
    over, told = excess(partition, queue), _stop_idle(partition, queue)
    message = f"preempting allocations to enforce new max quota for queue : {queue.path}"
    shares = _shares(partition, queue, excess(partition, queue))
    for leaf, share in chain(list(shares), _rest(partition, queue)):
        for victim in _victims(partition, queue, leaf, share):
            told += 1
            allocations.evict(partition, victim, Cause.PREEMPTED_BY_SCHEDULER, rule="quota", message=message)
    partition.out.append(QuotaEnforced(queue.path, partition.name, Resources(over), told))


def _stop_idle(partition: Partition, queue: Queue) -> int:
    """Idle work that counts in the queue's books goes first, as much as is needed; how many were told to stop."""
    told, message = 0, f"idle work makes queue {queue.path} fit under its new maximum"
    found = [a for a in partition.idle.running if a.evict_cause is None and queue in payer(a).lineage]
    for victim in sorted(found, key=reluctance):
        over = excess(partition, queue)
        if any(name in over for name, _ in victim.items):
            told += 1
            allocations.evict(partition, victim, Cause.PREEMPTED_BY_SCHEDULER, rule="quota", message=message)
    return told


# -- how much -----------------------------------------------------------------------------------------------------


def excess(partition: Partition, queue: Queue) -> Book:
    """What the queue uses above its maximum, not counting what leaves already. Guarantees do not lessen it."""
    used = _staying(partition, queue)
    return {name: used[name] - most for name, most in (queue.max or {}).items() if used.get(name, 0) > most}


def _staying(partition: Partition, queue: Queue) -> Book:
    """What is in use in a queue, but for what was told to go, by whomever."""
    used = dict(queue.allocated)
    take_from(used, tuple(queue.preempting.items()))
    for ask in partition.disruption.going:
        if queue in payer(ask).lineage:
            take_from(used, ask.items)
    return used


def _shares(partition: Partition, queue: Queue, amount: Mapping[str, int]) -> Iterator[tuple[Queue, Mapping[str, int]]]:
    """The leaves below a queue, each with its part of the amount.

    The parts are in proportion to what each child uses above its guarantee, and whole at every level.
    """
    if not amount:
        return
    if queue.is_leaf:
        yield queue, amount
        return
    weights = {child: _weight(partition, child) for child in queue.children.values()}
    parts: dict[Queue, Book] = {child: {} for child in weights}
    for name, whole in amount.items():
        for child, part in _whole_parts(whole, {each: weight.get(name, 0) for each, weight in weights.items()}).items():
            parts[child][name] = part
    for child, share in parts.items():
        yield from _shares(partition, child, share)


def _whole_parts(whole: int, weights: Mapping[Queue, int]) -> dict[Queue, int]:
    """The whole in proportion to the weights, in whole numbers that add up to it: those that lose most by rounding
    down have one more. (Each rounded by itself, ten equal ones would give all they have, or nothing.)
    """
    total = sum(weights.values())
    parts = {each: weight * whole // total for each, weight in weights.items() if weight}
    left = whole - sum(parts.values())
    for each in sorted(parts, key=lambda each: -(weights[each] * whole % total))[:left]:
        parts[each] += 1
    return {each: part for each, part in parts.items() if part}


def _rest(partition: Partition, queue: Queue) -> Iterator[tuple[Queue, Mapping[str, int]]]:
    """What is too much still, leaf by leaf, once each has given its part: all its work may be larger than that."""
    for leaf in [each for each in queue.walk() if each.is_leaf]:
        if over := excess(partition, queue):
            yield leaf, over


def _weight(partition: Partition, queue: Queue) -> Book:
    """What is in use there above its guarantee; of what that does not name, such a part as may go of all that it names:
    what goes mostly gives back both.
    """
    used = _staying(partition, queue)
    above = {n: max(used[n] - v, 0) for n, v in (queue.guaranteed or {}).items() if used.get(n, 0) > 0}
    return {n: above.get(n, min((v * a // used[m] for m, a in above.items()), default=v)) for n, v in used.items()}


# -- which work ---------------------------------------------------------------------------------------------------


def _victims(partition: Partition, queue: Queue, leaf: Queue, share: Mapping[str, int]) -> list[Ask]:
    """Work of a leaf, taken in order until its share is covered; none of it is by itself larger than the share.

    What only gives what is covered already, and what would bring the leaf, or one above it up to the queue that gives
    back, below its guarantee, is passed over.
    """
    found = [
        a
        for app in leaf.applications.values()
        for a in app.asks.values()
        if may_be_told(a) and not a.spec.idle and all(v <= share[n] for n, v in a.items if n in share)
    ]
    found.sort(key=reluctance)
    guarantees = [Bound(each, dict(partition.above_guarantee.of(partition, each))) for each in _guaranteed(queue, leaf)]
    short = dict(share)
    taken: list[Ask] = []
    for victim in found:
        helps = any(short.get(name, 0) > 0 for name, _ in victim.items)
        if helps and all_let(guarantees, victim):
            for bound in guarantees:
                bound.add(victim, -1)
            take_from(short, victim.items)
            taken.append(victim)
    return taken


def _guaranteed(queue: Queue, leaf: Queue) -> list[Queue]:
    """The queues with a guarantee from a leaf up to the queue that gives back."""
    return [each for each in leaf.lineage[: leaf.lineage.index(queue) + 1] if each.guaranteed]
