"""Nodes: what it means when one registers, changes what it says about itself, is drained, or goes.

Decides whether a report about a node makes sense, and which work on it has to go: all of it with the node, and what
does not tolerate a `NoExecute` taint. All else that runs goes on, even where it could not start any more; what was
only under way to a node (nominated, or about to take a placeholder's place) waits again if it could not. Never makes
room for anything. Invariant: a refused event changes nothing but what it says, and work that leaves already is not told
again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from fairlead.core.acts import allocations, application_steps, foreign, gangs, nominate, reserve_node, room_changes
from fairlead.core.acts.infeasible import widened
from fairlead.core.books.asks import Ask
from fairlead.core.books.node import Node
from fairlead.core.books.partition import Partition
from fairlead.core.model import events
from fairlead.core.model.constraints import NO_EXECUTE, Taint
from fairlead.core.model.decisions import NodeAccepted, NodeRejected
from fairlead.core.model.events import Cause
from fairlead.core.model.matching import must_leave, taint_flaw
from fairlead.core.model.reasons import Refused
from fairlead.core.model.resources import amount_flaw
from fairlead.policy.events import held, retry


def add_node(partition: Partition, event: events.AddNode) -> None:
    """A node registers; a known id is refused."""
    spec = event.node
    bad = "a node has no id" if not spec.id else amount_flaw(spec.capacity) or _taints_flaw(spec.taints)
    if spec.id in partition.nodes.nodes:
        bad = f"failed to add node {spec.id} to partition {partition.name}, error: node already exists"
    if bad:
        _refuse_node(partition, spec.id, bad)
        return
    node = Node(spec, partition.next_seq())
    node.set_capacity(spec.capacity)
    partition.nodes.add(node)
    widened(partition.nodes, node, partition.now_ms)
    room_changes.nodes_changed(partition)
    partition.out.append(NodeAccepted(spec.id, partition.name))


def _update_node(partition: Partition, node: Node, event: events.UpdateNode) -> None:
    if bad := amount_flaw(event.capacity):
        _refuse_node(partition, node.id, bad)
        return
    if event.capacity.as_dict() == node.total:
        return  # What is reported again is no change: what was stopped in vain is no better for it.
    partition.nodes.resize(node, event.capacity)
    for ask in [a for a in node.held if a.held_on is node and not node.fits_total(a.items)]:
        nominate.lose(partition, ask)
    widened(partition.nodes, node, partition.now_ms)
    room_changes.nodes_changed(partition)


def _drain_node(partition: Partition, node: Node, _: events.DrainNode) -> None:
    if node.schedulable:
        node.schedulable = False
        room_changes.nodes_differ(partition)
        partition.nodes.touch(node)
        for ask in list(node.held):
            nominate.lose(partition, ask)
            if ask.bound_for is node and not ask.required_node:
                gangs.wait_again(partition, ask)
        for ask in [a for a in node.reservations if not a.required_node]:
            reserve_node.unreserve(partition, ask)


def _undrain_node(partition: Partition, node: Node, _: events.UndrainNode) -> None:
    if not node.schedulable:
        node.schedulable = True
        room_changes.nodes_differ(partition)
        widened(partition.nodes, node, partition.now_ms)
        partition.nodes.gained(node)


def _remove_node(partition: Partition, node: Node, _: events.RemoveNode) -> None:
    """The node is gone: what ran there is lost, its capacity leaves last."""
    for ask in [*node.held, *node.reservations]:
        nominate.lose(partition, ask)
        reserve_node.unreserve(partition, ask)
    gangs.leave_node(partition, node)
    for key in list(node.foreign):
        foreign.end(partition, key)
    for ask in list(node.allocations):
        app, real = ask.app, not ask.spec.placeholder
        # Idle work that was told to stop comes back, as it would have if it had stopped in time.
        again = retry.try_again(partition, ask, ask.evict_cause or Cause.INTERRUPTED)
        allocations.release(partition, ask, Cause.STOPPED_BY_RM, f"Node {node.id} Removed")
        if again is not None:
            held.enter_if_met(partition, app, again.key)
        if app.spec.at_once:
            held.enter_next(partition, app)  # In the place of its application, as where work ends.
        application_steps.complete_if_idle(partition, app, real)
    partition.nodes.remove(node)
    room_changes.nodes_changed(partition)


def _label_node(partition: Partition, node: Node, event: events.LabelNode) -> None:
    """A node's attributes and taints are replaced; taints without meaning are refused."""
    if bad := _taints_flaw(event.taints):
        _refuse_node(partition, node.id, bad)
        return
    attributes = dict(event.attributes)
    if attributes == node.spec.attributes and event.taints == node.spec.taints:
        return
    partition.nodes.describe(node, attributes, event.taints)
    room_changes.nodes_differ(partition)
    for ask in [a for a in node.held if a.held_on is node and not partition.nodes.suits(a, node, a.victims)]:
        nominate.lose(partition, ask)
    for ask in gangs.under_way_to(node):
        if not gangs.may_go_on(partition, ask):
            gangs.wait_again(partition, ask)
    evict_intolerant(partition, node, node.allocations)


def _report_images(partition: Partition, node: Node, event: events.ReportImages) -> None:
    """A node has these images from now on; sizes below 0 are refused. It makes nothing fit."""
    bad = next((name for name, size in event.images.items() if size < 0), None)
    if bad is not None:
        _refuse_node(partition, node.id, f"the image {bad} has a size below 0")
        return
    partition.nodes.images.report(node, event.images)


def _taints_flaw(taints: Iterable[Taint]) -> str:
    """What is wrong with the first bad one of some taints; nothing when all make sense."""
    return next((bad for bad in map(taint_flaw, taints) if bad), "")


def evict_intolerant(partition: Partition, node: Node, work: Iterable[Ask]) -> None:
    """Tell those of some work on a node to go that do not tolerate a `NoExecute` taint that it has."""
    taints = node.spec.taints
    named = ", ".join(f"{t.key}={t.value}" if t.value else t.key for t in taints if t.effect == NO_EXECUTE)
    if not named:
        return
    for ask in list(work):
        if ask.evict_cause is None and must_leave(taints, ask.spec.where.tolerations):
            message = f"node {node.id} has a {NO_EXECUTE} taint that it does not tolerate: {named}"
            allocations.evict(partition, ask, Cause.PREEMPTED_BY_SCHEDULER, rule="taint", message=message)


def _refuse_node(partition: Partition, node_id: str, why: str) -> None:
    partition.out.append(NodeRejected(node_id, Refused(why), partition.name))


ABOUT_NODES: dict[type[Any], Callable[[Partition, Node, Any], None]] = {
    events.UpdateNode: _update_node,
    events.LabelNode: _label_node,
    events.ReportImages: _report_images,
    events.DrainNode: _drain_node,
    events.UndrainNode: _undrain_node,
    events.RemoveNode: _remove_node,
}
"""What each event about a node that is there means."""


def about_node(partition: Partition, event: Any) -> None:
    """An event about a node; one about an unknown node is refused."""
    node = partition.nodes.nodes.get(event.id)
    if node is None:
        _refuse_node(partition, event.id, f"failed to find node {event.id}")
    else:
        ABOUT_NODES[type(event)](partition, node, event)
