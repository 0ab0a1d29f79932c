"""Preempt by priority: make room for a waiting ask by stopping strictly less important work on one node.

Decides which work goes so that one ask that fits nowhere fits on one node and in its queues; the space is held for it
until the work is gone. Never takes work of equal or higher standing, never more than needed, and never work without the
placement it pays for. For partitions with `preemption.rule: priority`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairlead.core import claims
from fairlead.core.events import Cause
from fairlead.core.resources import fits_in
from fairlead.policy.limits import full_ceiling, may_run
from fairlead.policy.ordering import application_key, queue_key

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.core.applications import Ask
    from fairlead.core.demand import Shape
    from fairlead.core.nodes import Node
    from fairlead.core.partition import Partition
    from fairlead.core.queues import Queue


@dataclass(frozen=True, slots=True)
class Plan:
    """Victims on one node and the ask they pay for."""

    ask: Ask
    node: Node
    victims: tuple[Ask, ...]

    @property
    def harm(self) -> tuple[object, ...]:
        """Order of plans: 1. fewest victims, 2. lowest highest victim, 3. lower sum, 4. latest start, 5. node id."""
        standing = [v.priority for v in self.victims]
        latest = min(v.allocated_ms or 0 for v in self.victims)
        return (len(standing), max(standing), sum(standing), -latest, self.node.id)


def preempt_one(partition: Partition) -> Plan | None:
    """Carry out the plan for the first waiting ask in order for which there is one; None when there is none.

    Equal asks of one leaf stand for each other, and nobody searches who stands above nothing that runs: so many asks
    that cannot be helped cost little and keep nobody else from being looked at.
    """
    rules = partition.spec.preemption
    if rules.rule != "priority" or not rules.enabled or not partition.allocation_count:
        return None
    if partition.preempt_tried == partition.change_stamp():
        return None
    weakest = weakest_by_leaf(partition)
    looked_at: dict[tuple[Queue, int, Shape | None], None] = {}
    for ask in preemptors(partition):
        equals = (ask.app.queue, ask.priority, ask.shape)
        if equals in looked_at:
            continue
        looked_at[equals] = None
        seen = standing_by_queue(ask)
        if not any(outranks(seen, victim) for victim in weakest):
            continue
        plan = cheapest_plan(partition, ask, seen)
        if plan is not None:
            carry_out(partition, plan)
            return plan
    partition.preempt_tried = partition.change_stamp()
    return None


def weakest_by_leaf(partition: Partition) -> list[Ask]:
    """Of each leaf the running work of the lowest priority: who does not stand above one of these stands above none."""
    weakest: dict[Queue, Ask] = {}
    for node in partition.nodes.nodes.values():
        for ask in node.allocations:
            known = weakest.get(ask.app.queue)
            if known is None or ask.priority < known.priority:
                weakest[ask.app.queue] = ask
    return list(weakest.values())


def preemptors(partition: Partition) -> Iterator[Ask]:
    """Waiting asks that may preempt, in scheduling order; of equal asks of one application only the first."""
    for leaf in leaves_in_order(partition.root):
        for app in sorted((a for a in leaf.applications.values() if a.pending_count), key=application_key):
            if not may_run(app):
                continue
            for batch in app.batches:
                ask = batch.asks[0]
                if ask.held_on is not None or not ask.spec.allow_preempt_other or batch.task_group:
                    continue
                if full_ceiling(app, ask.items) is None:
                    yield ask


def leaves_in_order(queue: Queue) -> Iterator[Queue]:
    """Leaves with waiting work in scheduling order."""
    if queue.is_leaf:
        yield queue
        return
    for child in sorted((c for c in queue.children.values() if c.has_pending), key=queue_key):
        yield from leaves_in_order(child)


def standing_by_queue(ask: Ask) -> dict[Queue, int]:
    """For each queue from the ask's leaf to the root, the ask's priority as seen there (before that queue's offset)."""
    seen: dict[Queue, int] = {}
    standing = ask.priority
    for queue in ask.app.queue.lineage:
        seen[queue] = standing
        rules = queue.properties
        standing = rules.priority_offset if rules.priority_fence else standing + rules.priority_offset
    return seen


def outranks(seen: dict[Queue, int], victim: Ask) -> bool:
    """Whether the ask stands strictly above `victim` where their queues meet, after offsets and fences on both ways."""
    standing = victim.priority
    for queue in victim.app.queue.lineage:
        if queue in seen:
            return seen[queue] > standing
        rules = queue.properties
        standing = rules.priority_offset if rules.priority_fence else standing + rules.priority_offset
    return False


def search_root(ask: Ask) -> Queue:
    """The highest queue below which victims may be taken: the first with `preemption.policy: fence`, else the root."""
    for queue in ask.app.queue.lineage:
        if queue.parent is None or queue.properties.preemption_policy == "fence":
            return queue
    raise AssertionError("a lineage ends with the root")


def cheapest_plan(partition: Partition, ask: Ask, seen: dict[Queue, int]) -> Plan | None:
    """The plan with the least harm over all nodes, or None; `seen` is the ask's `standing_by_queue`."""
    fence = search_root(ask)
    plans = []
    for node in partition.nodes.nodes.values():
        if not node.is_open or not node.fits_total(ask.items):
            continue
        if ask.required_node and ask.required_node != node.id:
            continue
        victims = _victims_on(node, ask, seen, fence)
        if victims:
            plans.append(Plan(ask, node, victims))
    return min(plans, key=lambda plan: plan.harm, default=None)


def _victims_on(node: Node, ask: Ask, seen: dict[Queue, int], fence: Queue) -> tuple[Ask, ...]:
    """The fewest, lowest victims on this node: take all candidates, then give back whoever is not needed.

    Given back first: 1. higher priority, 2. started earlier, 3. arrived earlier.
    """
    candidates = [
        a
        for a in node.allocations
        if a.evict_cause is None
        and a.app.queue.properties.preemption_policy != "disabled"
        and fence in a.app.queue.lineage
        and outranks(seen, a)
    ]
    chosen = dict.fromkeys(candidates)
    if not chosen or not _fits_without(node, ask, chosen):
        return ()
    for spared in sorted(candidates, key=lambda a: (-a.priority, a.allocated_ms or 0, a.seq)):
        del chosen[spared]
        if not _fits_without(node, ask, chosen):
            chosen[spared] = None
    return tuple(sorted(chosen, key=lambda a: (a.priority, -(a.allocated_ms or 0), -a.seq)))


def _fits_without(node: Node, ask: Ask, gone: dict[Ask, None]) -> bool:
    free = dict(node.free)
    for victim in gone:
        for name, amount in victim.items:
            free[name] = free.get(name, 0) + amount
    if not fits_in(ask.items, free):
        return False
    for queue in ask.app.queue.lineage:
        if queue.max is None:
            continue
        for name, amount in ask.items:
            if name not in queue.max:
                continue
            back = sum(dict(v.items).get(name, 0) for v in gone if queue in v.app.queue.lineage)
            if queue.allocated.get(name, 0) - back + amount > queue.max[name]:
                return False
    return True


def carry_out(partition: Partition, plan: Plan) -> None:
    """Tell the victims to stop and hold the space they leave."""
    ask = plan.ask
    for victim in plan.victims:
        partition.evict(
            victim,
            Cause.PREEMPTED_BY_SCHEDULER,
            on_behalf_of=f"{ask.app.id}/{ask.key}" if ask.key != ask.app.id else ask.key,
            rule="priority",
            message=f"makes room on {plan.node.id} for {ask.key} (priority {ask.priority} over {victim.priority})",
        )
    ask.preempt_triggered = True
    claims.hold(partition, ask, plan.node, plan.victims)
