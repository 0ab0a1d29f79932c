"""The check of who is woken when: nobody who may fit is forgotten; what is known of narrow and oversize shapes is so.

Decides nothing and changes nothing; part of `core.checks`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.core.narrow import has_room
from fairlead.core.oversize import exceeds

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
    for shape in partition.shapes.values():
        assert not shape.resting or shape in nodes.oversize, f"{shape.key}: some rest and nobody would wake them"
        for batch in shape.resting:
            app = batch.asks[0].app
            assert app.by_key.get(batch.key) is batch, f"{shape.key}: a batch of {app.id} rests, and is gone"
    for shape in nodes.oversize:
        assert shape in partition.shapes.values(), f"{shape.key} is oversize, and nobody waits with it"
        for node in nodes.nodes.values():
            fits = node.schedulable and node.fits_total(shape.items)
            assert not fits, f"{shape.key} is held to fit on no node, and {node} could hold it"
    for queue in partition.root.walk():
        for batch in queue.resting:
            app = batch.asks[0].app
            assert app.queue is queue, f"{queue.path}: a batch of {app.id} rests here, and is in {app.queue.path}"
            assert app.by_key.get(batch.key) is batch, f"{queue.path}: a batch of {app.id} rests, and is gone"
            assert exceeds(batch), f"{queue.path}: a batch of {app.id} rests, and no maximum is too small for it"
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
    if not dozing.concerns(queue):
        return True
    return any(entry[-2] == queue.entry for entry in parent.dozers)
