"""Suitable nodes: which nodes have left what the claims of waiting pods need together.

Decides that by asking the allocator, for a node only when something about it has changed. Never promises a device.
Invariant: once `settle` is through, a node is marked for exactly those shapes that it could be given now.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fairlead.core.model import constraints as core
from fairlead.core.model.constraints import DEVICES
from fairlead.core.model.matching import tolerates
from fairlead.kubernetes.devices.allocator import Answer, NoAnswer, allocate
from fairlead.kubernetes.devices.claims import Claims
from fairlead.kubernetes.devices.inventory import Device, Inventory, Key, Pool
from fairlead.kubernetes.devices.wishes import NotUnderstood, Option, Shape

if TYPE_CHECKING:
    from fairlead.core.model.events import Event
    from fairlead.kubernetes.cluster_store import ClusterStore

Said = dict[tuple[Shape, tuple[Pool, ...]], bool | str]
"""What was found out at one look, by what a node reaches: of devices that all nodes reach it is the same for each."""
KEPT = 32
"""Shapes that no pod has any more are remembered, with the nodes that suit them: the next pod is like the last."""


@dataclass(slots=True)
class Seat:
    """What some waiting pods need, and the nodes that have it."""

    name: str
    """How nodes that suit are marked."""
    users: dict[str, None] = field(default_factory=dict)
    nodes: dict[str, None] = field(default_factory=dict)
    flaws: dict[str, str] = field(default_factory=dict)
    """Nodes of which it cannot be said, and why."""
    is_new: bool = True

    @property
    def flaw(self) -> str:
        """Why there is no node, where that is for another reason than what is taken; mostly nothing."""
        return next(iter(self.flaws.values()), "") if not self.nodes else ""


class SuitableNodes:
    """All shapes of one cluster."""

    def __init__(self, around: ClusterStore, claims: Claims, taken: Container[Key]) -> None:
        self.inventory = Inventory()
        self._around = around
        self._claims = claims
        self._taken = taken
        self._seats: dict[Shape, Seat] = {}
        self._shape_of: dict[str, Shape] = {}
        """By pod: what it waits with."""
        self._names: Counter[str] = Counter()
        self._stale: dict[str, None] = {}
        """Nodes that are to be looked at anew."""
        self._all_stale = False

    # -- shapes ---------------------------------------------------------------------------------------------------

    def note(self, uid: str, shape: Shape) -> str:
        """The pod waits with this from now on (with nothing, if it is empty); how nodes that suit are marked."""
        if self._shape_of.get(uid) != shape:
            self.forget(uid)
            if not shape:
                return ""
            self._shape_of[uid] = shape
            self._seats.setdefault(shape, Seat("")).users[uid] = None
        seat = self._seats[shape]
        if not seat.name:
            text = "; ".join(map(str, shape))
            self._names[text] += 1
            seat.name = text if self._names[text] == 1 else f"{text} ({self._names[text]})"
        return seat.name

    def forget(self, uid: str) -> None:
        """The pod does not wait with claims any more."""
        shape = self._shape_of.pop(uid, None)
        if shape is not None:
            self._seats[shape].users.pop(uid, None)

    def flaw(self, shape: Shape) -> str:
        """Why no node can be had for it whatever ends; mostly nothing."""
        seat = self._seats.get(shape)
        return seat.flaw if seat is not None else ""

    # -- nodes ----------------------------------------------------------------------------------------------------

    def touch(self, nodes: tuple[str, ...] | None) -> None:
        """Something about these nodes has changed; None: perhaps about every one."""
        if nodes is None:
            self._all_stale = True
        else:
            self._stale |= dict.fromkeys(nodes)

    def node_changed(self, node: str) -> None:
        """A node is new, is gone, or has perhaps other labels."""
        self.inventory.moved(node)
        self._stale[node] = None

    def settle(self, again: list[str]) -> Iterator[Event]:
        """Mark nodes anew where that is due; adds to `again` the pods that may, or may not, wait for a node now."""
        new = any(seat.is_new for seat in self._seats.values())
        if self._seats and (new or self._stale or self._all_stale):
            before = {shape: seat.flaw for shape, seat in self._seats.items()}
            self._drop_unused()
            stale = self._around.nodes if self._all_stale else self._stale
            said: Said = {}
            for node in list({**self._around.nodes, **stale} if new else stale):
                yield from self._look_at(node, node in stale, said)
            for shape, seat in self._seats.items():
                seat.is_new = False
                if seat.flaw != before[shape]:
                    again.extend(seat.users)
        self._stale, self._all_stale = {}, False

    def _drop_unused(self) -> None:
        for shape in [shape for shape, seat in self._seats.items() if not seat.users][:-KEPT]:
            del self._seats[shape]
            self._all_stale = True

    def _look_at(self, node: str, is_stale: bool, said: Said) -> Iterator[Event]:
        is_there = node in self._around.nodes
        for shape, seat in self._seats.items():
            if is_stale or seat.is_new:
                seat.nodes.pop(node, None)
                seat.flaws.pop(node, None)
                has = is_there and self._has(shape, node, said)
                if isinstance(has, str):
                    seat.flaws[node] = has
                elif has:
                    seat.nodes[node] = None
        marks = {DEVICES + seat.name: "" for seat in self._seats.values() if node in seat.nodes}
        yield from self._around.marked(node, DEVICES, marks)

    def _has(self, shape: Shape, node: str, said: Said) -> bool | str:
        """Whether a node has what claims of this shape need; a text: that cannot be said, and why."""
        asked = shape, self.inventory.pools(node, self._around.nodes[node].attributes)
        has = said.get(asked)
        if has is None:
            try:
                has = self.answer(shape, node) is not None
            except NoAnswer as e:
                has = str(e)
            said[asked] = has
        return has

    def answer(self, shape: Shape, node: str) -> Answer | None:
        """What claims of this shape would get on the node now; None: it has too little. Raises `NoAnswer`."""
        pools = self.inventory.pools(node, self._around.nodes[node].attributes)
        return allocate(shape, pools, self._taken, self._suits)

    def _suits(self, option: Option, device: Device) -> bool:
        if not _is_tolerated(option, device):
            return False
        try:
            of_class = self._claims.selectors_of(option.of_class)
        except NotUnderstood as e:
            raise NoAnswer(str(e)) from None
        for expression in (*of_class, *option.selectors):
            said = device.says(expression)
            if isinstance(said, str):
                raise NoAnswer(f"for device {'/'.join(device.key)} the selector {said}")
            if not said:
                return False
        return True


def _is_tolerated(option: Option, device: Device) -> bool:
    """Whether the option puts up with the taints of the device."""
    for taint in device.given.taints or ():
        theirs = core.Taint(taint.key, taint.value or "", taint.effect)
        if taint.effect in (core.NO_SCHEDULE, core.NO_EXECUTE) and not any(
            tolerates(core.Toleration(t.key or "", t.operator or "Equal", t.value or "", t.effect or ""), theirs)
            for t in option.tolerations
        ):
            return False
    return True
