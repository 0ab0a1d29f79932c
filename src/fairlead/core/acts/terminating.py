"""Leaving: work that was told to stop so that its room gets free, and how long one counts on that.

Decides until when it should have left (its grace and a margin) and what it means in the books when it has not: its room
no longer counts as gone, and it is not told again. Never decides what those do that wait for it
(`policy.preemption.termination_timeouts`). Invariant: what a queue shows as about to leave is the sum of what was told
to stop for others and is not overdue.
"""

from __future__ import annotations

from fairlead.core.books.asks import Ask
from fairlead.core.books.idle_work import count_use, payer
from fairlead.core.books.partition import Partition

GRACE_MS = 30_000
"""How long work has to stop where it does not say."""
MARGIN_MS = 60_000
"""How much longer one waits for it to be gone: killing, cleaning up and telling take their time too."""
TIMER = "leaving"


def grace_of(ask: Ask) -> int:
    """How long it has to stop once it is told to."""
    return ask.spec.grace_ms if ask.spec.grace_ms is not None else GRACE_MS


def grace_left(partition: Partition, ask: Ask) -> int:
    """The same, from now on: of what was told already, what is left of that."""
    due_ms = partition.disruption.leave_by.get(ask)
    return grace_of(ask) if due_ms is None else max(due_ms - MARGIN_MS - partition.now_ms, 0)


def begin(partition: Partition, ask: Ask) -> None:
    """It was told to stop: its room counts as gone, until it is overdue."""
    if partition.nominations:
        payer(ask).loosened()  # What leaves counts as gone where room is promised to others.
    due_ms = partition.now_ms + grace_of(ask) + MARGIN_MS
    partition.disruption.leave_by[ask] = due_ms
    partition.timers.set_earlier(due_ms, partition.name, "", TIMER)


def end(partition: Partition, ask: Ask) -> None:
    """It is gone."""
    leave_by, timers = partition.disruption.leave_by, partition.timers
    due_ms = leave_by.pop(ask, None)
    if not leave_by:
        timers.cancel(partition.name, "", TIMER)
    elif due_ms is not None and due_ms == timers.due_ms(partition.name, "", TIMER):
        # A timer for nothing would be news, and what is young no longer be spared.
        timers.set(min(leave_by.values()), partition.name, "", TIMER)
    partition.disruption.overdue.pop(ask, None)
    partition.disruption.going.pop(ask, None)
    ask.evict_cause = ask.evicted_by = ask.evicted_for = None
    ask.overdue = False


def late(partition: Partition) -> list[Ask]:
    """What should have left by now and has not, in the order in which it was told."""
    return [ask for ask, due_ms in partition.disruption.leave_by.items() if due_ms <= partition.now_ms]


def give_up(partition: Partition, ask: Ask) -> None:
    """It has not left in its time: its room is counted on no more."""
    assert ask.node is not None
    count_use(ask, -1)
    ask.overdue = True
    count_use(ask, 1)
    del partition.disruption.leave_by[ask]
    partition.disruption.overdue[ask] = None
    partition.nodes.since_search[ask.node] = None
    partition.books_version += 1
