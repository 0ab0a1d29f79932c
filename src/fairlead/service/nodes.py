"""Routes that change a node of a machine: drain, undrain, label.

Decides who may (administrators). Never decides what has to go: the scheduler does.
"""

from __future__ import annotations

from fairlead.core.model.constraints import Taint
from fairlead.core.model.events import DrainNode, LabelNode, UndrainNode
from fairlead.core.model.specs import DEFAULT_PARTITION
from fairlead.local.memory_guard import leave_closed
from fairlead.runtime import Refusal, Turn
from fairlead.service import views
from fairlead.service.http.errors import documented
from fairlead.service.http.shaped import api
from fairlead.service.machine import MachineOf, MachinePlace
from fairlead.service.place import CallerOf
from fairlead.wire import cluster as wire

router = api("cluster")


@router.post("/nodes/{node_id}/drain", responses=documented(404))
async def drain_node(node_id: str, place: MachineOf, caller: CallerOf, body: wire.Nothing | None = None) -> wire.Node:
    """Take no new work on a node; what runs there goes on (administrators)."""
    del body
    caller.require_admin("drain nodes")
    return await _turn_node(place, node_id, DrainNode(node_id))


@router.post("/nodes/{node_id}/undrain", responses=documented(404))
async def undrain_node(node_id: str, place: MachineOf, caller: CallerOf, body: wire.Nothing | None = None) -> wire.Node:
    """Let a drained node take work again (administrators)."""
    del body
    caller.require_admin("undrain nodes")
    return await _turn_node(place, node_id, UndrainNode(node_id))


@router.put("/nodes/{node_id}/labels", responses=documented(404))
async def label_node(node_id: str, place: MachineOf, caller: CallerOf, body: wire.NodeLabels) -> wire.Node:
    """Replace the attributes and taints of a node; work that must not run there any more is evicted (administrators).

    What does not tolerate a `NoExecute` taint has to go; everything else goes on.
    """
    caller.require_admin("label nodes")
    taints = tuple(Taint(t.key, t.value, t.effect) for t in body.taints)
    return await _turn_node(place, node_id, LabelNode(node_id, body.attributes, taints))


async def _turn_node(place: MachinePlace, node_id: str, event: DrainNode | UndrainNode | LabelNode) -> wire.Node:
    def act(turn: Turn) -> None:
        node = turn.scheduler.cluster.partitions[DEFAULT_PARTITION].nodes.nodes.get(node_id)
        if node is None:
            raise Refusal("not-found", f"there is no node {node_id!r}; `fairlead nodes` lists them")
        if isinstance(event, DrainNode):
            leave_closed(turn, place.local.jobs, node_id)
        if isinstance(event, LabelNode) or node.schedulable == isinstance(event, DrainNode):
            turn.event(event)

    await place.do(act)
    return await place.look(lambda s, _: views.node_view(s.cluster.partitions[DEFAULT_PARTITION].nodes.nodes[node_id]))
