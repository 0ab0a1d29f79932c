"""The check of who is woken when: nobody who may fit is forgotten, and what is known of narrow shapes is so.

Decides nothing and changes nothing; part of `core.checks`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.core.narrow import has_room
from fairlead.core.queues import QueueState

if TYPE_CHECKING:
    from fairlead.core.demand import Demand, Shape
    from fairlead.core.partition import Partition
    from fairlead.core.queues import Queue


def check_waking(partition: Partition) -> None:
    """Assert that parked applications are found when their shape may fit, and that narrow shapes fit nowhere else."""
    nodes = partition.nodes
    for shape, room_on in nodes.narrow.room_on.items():
        assert shape.is_plain, f"{shape.key} is narrow and has constraints"
        assert not shape.unfit, f"{shape.key} is narrow and fits nowhere"
        for node in nodes.nodes.values():
            known = node in room_on or nodes.terrain.wary or not has_room(shape, node)
            assert known, f"{shape.key} has room on {node} and is not looked for there"
    for queue in partition.root.walk():
        dozing: dict[Shape, int] = {}
        for demand in (d for leaf in queue.walk() for d in leaf.demands.values()):
            if demand.shape is not None and demand in demand.shape.waiting:
                dozing[demand.shape] = dozing.get(demand.shape, 0) + 1
        assert queue.dozing == dozing, f"{queue.path}: counts of who waits for a node are wrong"
        assert _is_in_line(partition, queue), f"{queue.path}: asleep, and nobody would find who may fit below"
        for demand in queue.demands.values():
            assert _is_found(partition, queue, demand), f"{queue.path}: {demand.key} may fit and nobody looks"


def _is_found(partition: Partition, leaf: Queue, demand: Demand) -> bool:
    shape = demand.shape
    if shape is None or demand.obstacle is not None or demand in leaf.open_demands:
        return True
    if demand in shape.waiting:
        return shape.unfit or (shape in partition.nodes.dozing.fresh and not partition.root.asleep)
    away = (app for _, stamp, app in demand.parked if app.park_stamp == stamp and app.entry is None)
    return all(app.touched for app in away)


def _is_in_line(partition: Partition, queue: Queue) -> bool:
    """Whether a queue that sleeps above somebody who may fit has its place among its siblings."""
    parent, dozing = queue.parent, partition.nodes.dozing
    if parent is None or not queue.asleep or queue.touched or not queue.has_pending:
        return True
    if queue.state is QueueState.STOPPED or not dozing.concerns(queue):
        return True
    return any(entry is queue.entry for entry in parent.dozers)
