"""Attempt times: when a waiting ask may have others stopped by guarantee.

Decides that it is at the earliest its queue's `preemption.delay` after it was made, then every 15 seconds until it
succeeded once. Never searches and never stops anything. Invariant: every batch in line that may try later has a timer
for it; one that may try now is on its leaf's list, or on its demand's while a limit or a gate is in the way.
"""

from __future__ import annotations

from fairlead.core.acts.infeasible import ATTEMPT_EVERY_MS
from fairlead.core.books.applications import Application
from fairlead.core.books.asks import NEVER_MS, Ask, Batch
from fairlead.core.books.partition import Partition
from fairlead.core.books.timers import ATTEMPT

RESERVE_AFTER_MS = 2_000
"""An ordinary ask that waits so long may have a node set aside (`reserve`)."""


def due_ms(ask: Ask) -> int:
    """When a waiting ask may try to preempt next; `NEVER_MS` when it may not at all."""
    # What was stopped for it before a restart, or under another rule, may not leave.
    waits_in_vain = ask.nomination is not None and ask.nomination.is_stuck
    if ask.preempt_triggered and not waits_in_vain:
        return NEVER_MS
    if not ask.spec.allow_preempt_other or ask.required_node:
        return NEVER_MS
    due = ask.created_ms + ask.app.queue.properties.preemption_delay_ms
    checked = ask.preempt_checked_ms
    return due if checked is None else max(due, checked + ATTEMPT_EVERY_MS)


def first_to_try(batch: Batch, now_ms: int) -> Ask:
    """The first ask of a batch that may try now: those before it, for which room is made, have nothing to try for."""
    return next((ask for ask in batch.asks if due_ms(ask) <= now_ms), batch.head)


def may_try(partition: Partition, batch: Batch) -> bool:
    """Whether preemption by guarantee is on, some guarantee is on the way to the root, and the work does not rest
    because no node, or no queue above it, could hold it.
    """
    rules = partition.spec.preemption
    if rules.rule != "guarantee" or not rules.enabled or batch.attempt_ms >= NEVER_MS:
        return False
    if batch in batch.key[0].resting or batch in batch.demand.leaf.resting:
        return False
    for queue in batch.demand.leaf.lineage:
        if queue.guaranteed:
            return True
    batch.attempt_ms = NEVER_MS
    return False


def note_attempt(partition: Partition, batch: Batch) -> None:
    """A batch is in line: see to it that it tries when it may."""
    if batch.attempt_ms >= NEVER_MS or not may_try(partition, batch):
        return
    if batch.attempt_ms <= partition.now_ms:
        batch.demand.leaf.note_due(batch)
    else:
        partition.timers.set_earlier(batch.attempt_ms, partition.name, batch.app.id, ATTEMPT)


def on_timer(partition: Partition, app: Application) -> None:
    """Some batch of the application may try: they are lined up anew, in the order in which they are after a restart,
    since what is set on the way has its order, too.
    """
    if any(ask.pending and due_ms(ask) <= partition.now_ms for ask in app.asks.values()):
        partition.note_change()  # Not where what it was set for has started, or tried before.
    for batch in app.batches.values():
        if batch.stamp and may_try(partition, batch):
            app.out_of_line[batch] = None
            app.queue.touch_app(app)
