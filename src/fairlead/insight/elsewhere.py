"""Elsewhere: levers on what keeps other work from going somewhere else, where it would leave room for an ask.

Decides which things are worth a trial although they do not touch the ask itself: taints and drains of nodes that other
work may not use, nodes of a kind that only others can use, bounds on waiting and turns in other queues; and each limit
by itself, since a wider one may serve others. Each is a guess that `search` confirms or drops, after everything nearer.
Never tries anything itself. Invariant: every part says truly what is so now; where nothing else waits there are none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairlead.core.model.matching import keeps_away, tolerates
from fairlead.insight.changes import spec_of_queue, text_of
from fairlead.insight.levers import MORE_NODES, Lever, limits, together
from fairlead.insight.parts import Part, What

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fairlead.core.books.asks import Ask
    from fairlead.core.books.partition import Partition
    from fairlead.core.model.constraints import Taint

LIMITS = frozenset({What.QUEUE_MAX, What.QUEUE_APPLICATIONS, What.LIMIT, What.LIMIT_APPLICATIONS})
WAIT_MAX, EASY, POLICY = "-wait.max", "backfill=easy", "-preemption.policy"


@dataclass(frozen=True, slots=True)
class Group:
    """Levers of which the first that helps is enough."""

    kinds: frozenset[What]
    """Where one of these is known to help, nothing here is needed."""
    levers: Iterable[Lever]


def elsewhere(partition: Partition, ask: Ask) -> Iterator[Group]:
    """What would let others go elsewhere, or wait."""
    waiting = [
        other
        for app in partition.applications.values()
        for other in app.asks.values()
        if other.pending and other is not ask
    ]
    if not waiting:
        return
    yield Group(frozenset({What.TAINT, What.ATTRIBUTE, What.DRAIN}), _nodes_opened(partition, waiting))
    yield Group(frozenset({What.NODES}), _nodes_for(partition, waiting))
    yield Group(frozenset({What.PROPERTY, What.TURN}), _orders_of_queues(partition, ask))
    yield Group(LIMITS, (Lever((row,)) for lever in limits(partition, ask)[0][-1:] for row in lever.rows))


def _nodes_opened(partition: Partition, waiting: list[Ask]) -> Iterator[Lever]:
    """Nodes that are not drained any more, and taints that keep some of these away: one of a node, and all of it."""
    for node in partition.nodes.nodes.values():
        if not node.schedulable:
            yield together(Part(What.DRAIN, node.id, 0, 1))
        taints = [taint for taint in node.spec.taints if any(_is_kept_away(other, taint) for other in waiting)]
        parts = [Part(What.TAINT, node.id, 0, 1, text=text_of(taint)) for taint in taints]
        yield from map(together, parts)
        if len(parts) > 1:
            yield together(*parts)


def _is_kept_away(ask: Ask, taint: Taint) -> bool:
    return keeps_away(taint) and not any(tolerates(each, taint) for each in ask.spec.where.tolerations)


def _nodes_for(partition: Partition, waiting: list[Ask]) -> Iterator[Lever]:
    """More nodes like one of each kind that could hold some of these."""
    kinds: dict[tuple[object, ...], str] = {}
    for node in partition.nodes.nodes.values():
        if any(node.fits_total(other.items) for other in waiting):
            labels = tuple(sorted((k, v) for k, v in node.labels.items() if v != node.id))
            kinds.setdefault((tuple(sorted(node.total.items())), labels, node.spec.taints), node.id)
    for node_id in kinds.values():
        yield Lever(((Part(What.NODES, node_id, 0, 1), MORE_NODES, 1),))


def _orders_of_queues(partition: Partition, ask: Ask) -> Iterator[Lever]:
    """Turns that are kept for others lifted; queues without a bound on waiting or a protection, or with backfill."""
    for other, reservation in partition.reserving.every():
        if other is not ask and not reservation.by_itself:
            yield together(Part(What.TURN, f"{other.app.id}/{other.key}", 0, 1))
    for text in (WAIT_MAX, EASY, POLICY):
        for queue in partition.root.walk():
            spec = spec_of_queue(partition.spec.root, queue.path)
            if spec is not None and (text[1:] in spec.properties if text.startswith("-") else queue.is_leaf):
                yield together(Part(What.PROPERTY, queue.path, 0, 1, text=text))
