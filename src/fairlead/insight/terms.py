"""Terms: levers on what an ask says of itself, beyond its size and priority.

Decides which of its own words could be in its way: constraints, that it is idle, that it may stop nobody, that it names
one node, its gang, a time limit that is too long to pass a kept turn. Each is a guess that `unblock` confirms or drops.
Never tries anything itself. Invariant: every part says truly what the ask says now.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from fairlead.core.model.matching import keeps_away, tolerates
from fairlead.insight.changes import text_of
from fairlead.insight.levers import NODES_TRIED, Lever, held_back_by
from fairlead.insight.parts import TOLERATES, Part, What
from fairlead.insight.places import Place
from fairlead.policy.eligibility.start_estimates import expected_start

if TYPE_CHECKING:
    from fairlead.core.books.asks import Ask
    from fairlead.core.books.node import Node
    from fairlead.core.books.partition import Partition
    from fairlead.core.model.constraints import Taint


def one(part: Part) -> Lever:
    """A single part that is or is not, or whose value is the only one to be tried."""
    return Lever((part,), (part.value,), (1,))


def all_of(parts: Sequence[Part]) -> Lever:
    """Several of those together."""
    return Lever(tuple(parts), tuple(part.value for part in parts), tuple(1 for _ in parts))


def terms(partition: Partition, ask: Ask, around: Sequence[Place]) -> Iterator[list[Lever]]:
    """Levers in groups: of each group the first that helps is enough."""
    yield from constraints(ask)
    yield tolerations(ask, around)
    yield [one(Part(What.PLAIN, ask.key, 0, 1))] if ask.spec.idle else []
    yield may_stop_others(partition, ask)
    yield [one(Part(What.ANY_NODE, ask.key, 0, 1, text=ask.required_node))] if ask.required_node else []
    group = ask.app.groups.get(ask.spec.task_group)
    yield [one(Part(What.ALONE, ask.key, 0, 1, text=ask.spec.task_group))] if group is not None else []
    yield shorter(partition, ask)


def constraints(ask: Ask) -> Iterator[list[Lever]]:
    """Each kind of constraint that it has, dropped; and all of them, where it has several."""
    where = ask.spec.where
    has = {
        "selector": where.selector or where.node_terms,
        "affinity": where.affinity,
        "anti-affinity": where.anti_affinity,
        "spread": where.spread,
        "ports": where.ports,
    }
    parts = [Part(What.WHERE, ask.key, 0, 1, text=name) for name, there in has.items() if there]
    for part in parts:
        yield [one(part)]
    if len(parts) > 1:
        yield [all_of(parts)]


def tolerations(ask: Ask, around: Sequence[Place]) -> list[Lever]:
    """The taints of a node that it would have to tolerate, for the nodes that lack least."""
    found: dict[tuple[Part, ...], None] = {}
    for place in around:
        taints = not_tolerated(place.node, ask)
        if taints:
            found[tuple(Part(What.WHERE, ask.key, 0, 1, text=f"{TOLERATES}{text_of(taint)}") for taint in taints)] = (
                None
            )
    return [all_of(parts) for parts in list(found)[:NODES_TRIED]]


def not_tolerated(node: Node, ask: Ask) -> list[Taint]:
    """The taints of a node that keep the ask away."""
    mine = ask.spec.where.tolerations
    return [t for t in node.spec.taints if keeps_away(t) and not any(tolerates(each, t) for each in mine)]


def may_stop_others(partition: Partition, ask: Ask) -> list[Lever]:
    """That others might be stopped for it, where its class or it itself says no."""
    if ask.spec.allow_preempt_other or ask.spec.idle or not partition.spec.preemption.enabled:
        return []
    name = ask.spec.priority_class
    why = f"its priority class {name} says Never" if name else "it says itself that it stops nobody"
    return [one(Part(What.STOPS_OTHERS, ask.key, 0, 1, text=why))]


def shorter(partition: Partition, ask: Ask) -> list[Lever]:
    """A time limit with which it would be over when those start that it has to let pass, where it may pass at all."""
    holders = [holder for holder, _ in held_back_by(partition, ask)]
    if not holders or not ask.app.queue.properties.easy_backfill or ask.spec.idle:
        return []
    starts = [expected_start(partition, holder) for holder in holders]
    ends = [start.start_ms - partition.now_ms for start in starts if start is not None]
    if len(ends) < len(starts) or min(ends) <= 0:
        return []
    return [one(Part(What.SHORTER, ask.key, ask.spec.time_limit_ms or 0, min(ends)))]
