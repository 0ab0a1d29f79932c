"""Laws of the scheduler, each worked out from the books in the plainest way.

Nothing here is taken from the policy: a law that used the code it watches would watch nothing.
"""

from __future__ import annotations

from fairlead.core.books.asks import Ask
from fairlead.core.books.node import Node
from fairlead.core.books.partition import Partition
from fairlead.core.books.queues import Queue
from fairlead.core.model.decisions import Decision, Evict, Reserved
from fairlead.core.model.reasons import NextInLine, Reason
from fairlead.core.model.resources import fits_in
from fairlead.policy.why.waiting import look_at_all, look_at_each, reserved_with_room, why_waiting
from fairlead.scheduler import Scheduler

Use = dict[tuple[str, str], int]


class Before:
    """What was in use when a scheduling call began."""

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.use = _over(partition)

    def nothing_grew_beyond(self) -> None:
        """Whatever is above its maximum now was there before (forced, or the maximum was lowered), and did not grow."""
        for place, excess in _over(self.partition).items():
            assert excess <= self.use.get(place, 0), f"{place} is {excess} above its maximum: scheduling did that"


def _over(partition: Partition) -> Use:
    """How much each queue and node is above what it may have, where it is."""
    over: Use = {}
    for queue in partition.root.walk():
        for name, most in (queue.max or {}).items():
            if queue.allocated.get(name, 0) > most:
                over[queue.path, name] = queue.allocated[name] - most
        begun = queue.running + len(queue.allocating_accepted)
        if queue.max_applications and begun > queue.max_applications:
            over[queue.path, "applications"] = begun - queue.max_applications
    for node in partition.nodes.nodes.values():
        for name, left in node.available.items():
            if left < 0:
                over[node.id, name] = -left
    return over


def every_wait_has_a_reason(scheduler: Scheduler, partition: Partition, settled: bool) -> None:
    """Each waiting ask has a reason, nothing else has one; when nothing more is decided, none of them would fit."""
    for app in partition.applications.values():
        for ask in app.asks.values():
            reason = scheduler.why(app.id, ask.key)
            if not ask.pending:
                assert reason is None, f"{ask} runs and has a reason to wait: {reason}"
                continue
            assert isinstance(reason, Reason), f"{ask} waits for no reason"
            assert reason.sentence(), f"{ask} waits for a reason without words"
            assert reason == why_waiting(partition, ask), f"{ask} waits for what something like it waits for"
            assert list(reserved_with_room(partition, ask)) == _reserved_with_room(partition, ask), f"{ask}: set aside"
            if ask.shape is not None and ask.shape.is_plain and not (ask.required_node or ask.held_on):
                wary = partition.nodes.terrain.wary
                assert wary or look_at_all(partition, ask) == look_at_each(partition, ask), f"{ask}: nodes seen at once"
            assert not (settled and isinstance(reason, NextInLine)), f"{ask} would fit and is left waiting"


def _reserved_with_room(partition: Partition, ask: Ask) -> list[Node]:
    """As the product finds them, node by node."""
    nodes = partition.nodes
    found = [n for n in nodes.nodes.values() if n.schedulable and n.reservations and fits_in(ask.items, n.free)]
    return sorted(found, key=lambda node: (node.score(), node.id))


def evictions_pay_for_a_placement(partition: Partition, decisions: list[Decision]) -> None:
    """By priority: whoever is told to stop makes room for an ask strictly above it, which is given the room."""
    held = {(d.application, d.key, d.node) for d in decisions if isinstance(d, Reserved)}
    for order in decisions:
        if not isinstance(order, Evict) or order.rule != "priority":
            continue
        preemptor = _ask(partition, order.on_behalf_of)
        victim = partition.applications[order.application].asks[order.key]
        if (preemptor.app.id, preemptor.key, order.node) not in held:
            # It goes for a maximum that both are under, not for room on a node.
            assert any(app == preemptor.app.id and key == preemptor.key for app, key, _ in held), f"{order}: no space"
            shared = set(preemptor.app.queue.lineage) & set(victim.app.queue.lineage)
            assert any(q.max is not None and q.parent is not None for q in shared), f"{order} frees nothing it lacks"
        mine, theirs = _standing(preemptor, victim)
        assert mine > theirs, f"{preemptor} stands at {mine}, its victim {victim} at {theirs}"


def _ask(partition: Partition, name: str) -> Ask:
    app, _, key = name.rpartition("/")
    return partition.applications[app or key].asks[key]


def _standing(left: Ask, right: Ask) -> tuple[int, int]:
    """Both priorities as seen in the lowest queue that both are in."""
    ways = [_up(left), _up(right)]
    common = next(path for path, _ in ways[0] if path in dict(ways[1]))
    return dict(ways[0])[common], dict(ways[1])[common]


def _up(ask: Ask) -> list[tuple[str, int]]:
    """(queue, priority as it arrives there) from the leaf to the root."""
    way, seen = [], ask.priority
    queue: Queue | None = ask.app.queue
    while queue is not None:
        way.append((queue.path, seen))
        rules = queue.properties
        seen = rules.priority_offset if rules.priority_fence else seen + rules.priority_offset
        queue = queue.parent
    return way
