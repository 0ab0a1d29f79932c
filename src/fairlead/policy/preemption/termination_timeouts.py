"""Overdue: work that was told to stop, and whose time for that is over.

Decides that its room is counted on no longer, and what may look for room elsewhere because of it. Never tells it to
stop a second time, and never gives up room that has been gained: until there is a better plan the space stays held.
Invariant: one ask moves on at most `FRUITLESS_MAX` times within an hour, as far as no capacity changes.
"""

from __future__ import annotations

from fairlead.core.acts import reserve_node, terminating, waiting_asks
from fairlead.core.books.asks import NEVER_MS, Ask
from fairlead.core.books.eviction_history import FRUITLESS_MAX, HOUR_MS
from fairlead.core.books.node import Node
from fairlead.core.books.partition import Partition
from fairlead.core.model.decisions import LoopBroken, Overdue
from fairlead.policy.preemption.protection import look_again


def on_timer(partition: Partition, _: str) -> None:
    """Some work may be overdue by now."""
    for victim in terminating.late(partition):
        assert victim.node is not None
        terminating.give_up(partition, victim)
        partition.nodes.reserved_again |= dict.fromkeys(victim.node.reservations)
        for_whom = victim.evicted_by[1] if victim.evicted_by is not None else ""
        partition.out.append(Overdue(victim.app.id, victim.key, victim.node.id, for_whom, partition.name))
        for ask in _waiting_for(victim):
            _let_try_again(partition, ask)
    for nomination in partition.nominations.of.values():
        if nomination.is_stuck and nomination.ask.batch is None:
            # It keeps the room until it finds other room: it looks for that in its turn.
            waiting_asks.line_up(partition, nomination.ask)
            nomination.ask.app.queue.touch_app(nomination.ask.app)
    if partition.disruption.leave_by:
        next_ms = min(partition.disruption.leave_by.values())
        partition.timers.set_earlier(next_ms, partition.name, "", terminating.TIMER)


def on_look_again(partition: Partition, _: str) -> None:
    """Some work is spared no longer, and some ask moved on too often an hour ago: what was found out does not count."""
    partition.books_version += 1
    for ask in dict.fromkeys(ask for victim in partition.disruption.overdue for ask in _waiting_for(victim)):
        _let_try_again(partition, ask)


def _waiting_for(victim: Ask) -> list[Ask]:
    """What it was stopped for, and what waits on its node beside that."""
    beside = [ask for ask in victim.node.reservations if not ask.required_node] if victim.node is not None else []
    whom = victim.evicted_for
    return beside if whom is None or whom in beside else [whom, *beside]


def _let_try_again(partition: Partition, ask: Ask) -> None:
    """An ask that had work stopped by guarantee may have other work stopped, if it keeps a node."""
    node = ask.reserved_on
    if node is None or not ask.preempt_triggered:
        return
    if partition.disruption.barred_until(ask, None, partition.now_ms) is not None:
        return
    moves_on(partition, ask, node)
    reserve_node.forget_victims(partition, ask)
    ask.app.may_preempt_again(ask)
    ask.app.queue.touch_app(ask.app)


def may_stop_ms(partition: Partition, ask: Ask) -> int:
    """From when on it may have work stopped, now, or instead of what is late; `NEVER_MS`: what was stopped for it may
    leave in time.
    """
    if ask.nomination is None or not ask.nomination.is_coming:
        return partition.now_ms
    if not ask.nomination.is_stuck:
        return NEVER_MS
    return partition.disruption.barred_until(ask, None, partition.now_ms) or partition.now_ms


def moves_on(partition: Partition, ask: Ask, left: Node) -> None:
    """It gives up room on a node that it did not get in time; that is counted, and reported when it was too often. Then
    it is looked at again when that is over: by a timer that is set here, since what only looks must change nothing.
    """
    if partition.disruption.note_fruitless(ask, None, partition.now_ms):
        partition.out.append(LoopBroken(ask.app.id, ask.key, left.id, "", FRUITLESS_MAX, partition.name))
        look_again(partition, partition.now_ms + HOUR_MS)
