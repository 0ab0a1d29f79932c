"""The check of what waits: whatever may be placeable is looked at, and what is known to be in the way is so.

Decides nothing and changes nothing; part of `invariants.books`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.core.acts.infeasible import exceeds
from fairlead.core.books.application_limits import has_to_enter
from fairlead.core.books.candidate_nodes import has_room
from fairlead.policy.eligibility.attempt_times import RESERVE_AFTER_MS

if TYPE_CHECKING:
    from fairlead.core.books import Demand, Partition, Queue, Shape
    from fairlead.core.books.nodes import NodeTable


def check_waking(partition: Partition) -> None:
    """Assert that every obstacle that is remembered is there, and that all else is in line."""
    _check_shapes(partition)
    _check_seeking(partition)
    _check_columns(partition.nodes)
    for queue in partition.root.walk():
        ready: dict[Shape, int] = {}
        for demand in (d for leaf in queue.walk() for d in leaf.every_demand()):
            if demand.live and demand.obstacle is None:
                ready[demand.shape] = ready.get(demand.shape, 0) + 1
        assert queue.ready == ready, f"{queue.path}: counts of what is ready are wrong"
        due = sum(1 for leaf in queue.walk() if leaf.due)
        assert queue.due_below == due, f"{queue.path}: {queue.due_below} leaves have attempts due, {due} do"
        for shape in queue.full:
            assert _is_short(partition, queue, shape), f"{queue.path} is held to be full for {shape.key} and is not"
        for demand in queue.every_demand():
            _check_demand(partition, queue, demand)
        for batch in queue.resting:
            assert batch.app.batches.get(batch.key) is batch, f"{queue.path}: a batch rests, and is gone"
            assert exceeds(batch), f"{queue.path}: a batch of {batch.app.id} rests, and no maximum is too small for it"
        _check_in_heap(queue)


def _check_shapes(partition: Partition) -> None:
    nodes = partition.nodes
    shapes = list(partition.shapes.values())
    assert set(nodes.fitting) == {s for s in shapes if not s.unfit}, "shapes that may fit are not known"
    assert set(nodes.unfit) == {s for s in shapes if s.unfit}, "shapes that fit nowhere are not known"
    for shape in nodes.seekable:
        assert shape.unfit, f"{shape.key} may fit and seeks a node to be set aside"
    for shape in nodes.unfit:
        assert (
            shape.blocked_by_root
            or nodes.terrain.wary
            or not any(has_room(shape, n) for n in nodes.nodes.values() if shape.is_plain and not shape.required_node)
        ), f"{shape.key} fits and is held to fit nowhere"
    for shape, room_on in nodes.narrow.room_on.items():
        assert shape.is_plain, f"{shape.key} is narrow and has constraints"
        assert not shape.unfit, f"{shape.key} is narrow and fits nowhere"
        for node in nodes.nodes.values():
            known = node in room_on or nodes.terrain.wary or not has_room(shape, node)
            assert known, f"{shape.key} has room on {node} and is not looked for there"
    for shape in shapes:
        assert not shape.resting or shape in nodes.oversize, f"{shape.key}: some rest and nothing would wake them"
        for batch in shape.resting:
            assert batch.app.batches.get(batch.key) is batch, f"{shape.key}: a batch rests, and is gone"
    for shape in nodes.oversize:
        assert shape in shapes, f"{shape.key} is oversize, and nothing waits with it"
        for node in nodes.nodes.values():
            fits = node.schedulable and node.fits_total(shape.items)
            assert not fits, f"{shape.key} is held to fit on no node, and {node} could hold it"


def _check_seeking(partition: Partition) -> None:
    """What may have a node set aside is looked at when it has waited so long (where no turn is kept, outside gangs)."""
    for shape, since_ms in partition.nodes.seekable.items() if not partition.reserving.of else ():
        for demand in shape.demands_in_line():
            batches = [b for app in demand.leaf.applications.values() for b in app.batches.values()]
            own = [b for b in batches if b.demand is demand and b.stamp and not b.task_group]
            # What is put in its place anew is looked at anew.
            waiting = [a for b in own if b not in b.app.out_of_line for a in b.asks]
            waits = [a.created_ms for a in waiting if a.reserved_on is None and a.nomination is None]
            if waits and demand.obstacle is None and not shape.required_node:
                name = f"{demand.leaf.path}: {demand.key}"
                assert demand.seek_ms <= min(waits) + RESERVE_AFTER_MS, f"{name} is looked at too late"
                assert since_ms <= max(min(waits), demand.seek_ms - RESERVE_AFTER_MS), f"{name} is not looked at"


def _check_columns(nodes: NodeTable) -> None:
    """Every row that is not marked says what its node says."""
    columns = nodes.columns
    for node in columns.rows if columns._valid else ():
        if node not in columns.stale:
            known = {name: int(column[node.row]) for name, column in columns.amounts.items()}
            free = {name: node.free.get(name, 0) for name in known}
            assert known == free, f"{node} has {free}, and {known} is known"
            assert bool(columns.open[node.row]) == node.is_open, f"{node} is known to take work, or not, by mistake"


def _is_short(partition: Partition, queue: Queue, shape: Shape) -> bool:
    """Whether a queue above a leaf has no room for a shape, or only what is kept for nominated asks."""
    return queue.lacks(shape.items) or bool(partition.nominations)


def _check_demand(partition: Partition, leaf: Queue, demand: Demand) -> None:
    batches = [b for app in leaf.applications.values() for b in app.batches.values() if b.demand is demand]
    assert demand.pending == len(batches) > 0, f"{leaf.path}: {demand.key} counts {demand.pending}, {len(batches)} wait"
    in_line = [b for b in batches if b.stamp]
    assert demand.live == len(in_line), f"{leaf.path}: {demand.key} counts {demand.live} in line, {len(in_line)} are"
    for batch in in_line:
        assert any(e[1] == batch.stamp for e in demand.line), f"{leaf.path}: a batch of {batch.app.id} is not in line"
        app = batch.app
        assert app.touched or demand.enters == has_to_enter(app), f"{app.id} waits at a gate, or passes it, by mistake"
    for batch in batches:
        is_known = batch.stamp or batch in batch.app.out_of_line
        assert is_known, f"{leaf.path}: a batch of {batch.app.id} is out of line, and would not come back"
    known = demand.obstacle
    is_full = any(demand.shape in queue.full for queue in leaf.lineage)
    marked = demand.shape.held_up or (known is None and not is_full)
    assert marked, f"{leaf.path}: something above is in the way of {demand.key}, and nothing would be stopped for it"
    if known is not None:
        assert demand in known.waiting or demand in known.gated, f"{leaf.path}: {demand.key} would not be woken"
        if demand in known.waiting and not partition.nominations:
            assert known.lacks(demand.shape.items), f"{leaf.path}: {demand.key} waits for {known}, which has room"


def _check_in_heap(queue: Queue) -> None:
    if queue.is_leaf:
        for demand in queue.every_demand():
            if demand.live and demand.obstacle is None:
                found = any(e[1] == demand.stamp and e[2] is demand for e in queue.heap)
                assert found, f"{queue.path}: {demand.key} is ready, and it would not be found"
    for child in queue.children.values():
        if (child.ready or child.due_below) and child.pending_sum and not child.touched:
            found = any(e[4] == child.stamp and e[5] is child for e in queue.child_heap)
            assert found, f"{child.path} has something to offer, and it would not be found"
