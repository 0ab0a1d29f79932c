"""Nodes: all nodes of a partition, which one comes first for an ask, and which shapes fit on none.

Decides the order of nodes (emptiest or fullest first, then the id). Never decides for which ask (`policy.place`); how
the order is kept is the matter of `core.books.node_order`. Invariant: a shape that is held to fit on no node fits on
none.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from fairlead.core.books.candidate_nodes import Narrow
from fairlead.core.books.constraints_index import Terrain
from fairlead.core.books.demand import Shape
from fairlead.core.books.images import Images
from fairlead.core.books.node import Node
from fairlead.core.books.node_columns import Columns
from fairlead.core.books.node_order import NodeOrder
from fairlead.core.books.preferences import best_of, first_fit
from fairlead.core.model.constraints import PREFER_NO_SCHEDULE, Taint
from fairlead.core.model.resources import Book, Items, Resources, add_to, fits_in, take_from
from fairlead.core.model.specs import AskSpec, NodeSortSpec

if TYPE_CHECKING:
    from fairlead.core.books.asks import Ask
    from fairlead.core.books.demand import Demand


AT_ONCE = -(2**62)
"""As an age: an ask that requires its node waits for nothing before it is set aside."""


class NodeTable:
    """All nodes of a partition in order, and the memory of what fits nowhere."""

    def __init__(self, sort: NodeSortSpec) -> None:
        self.nodes: dict[str, Node] = {}
        self.sort = sort
        self.total: Book = {}
        self.in_use: Book = {}
        """What the root queue uses: the very book of the root, not a copy (set by the partition)."""
        self.occupied: Book = {}
        """What work of other schedulers uses."""
        self.fitting: dict[Shape, None] = {}
        """Shapes of waiting asks that may fit on some node, as far as is known."""
        self.requiring: dict[str, dict[Shape, None]] = {}
        """Shapes of waiting asks that may run on one node only, by the name of that."""
        self.foreign_on: dict[str, Node] = {}
        """Where each work of another scheduler runs."""
        self.unfit: dict[Shape, None] = {}
        """Those that had room nowhere when last looked."""
        self.seekable: dict[Shape, int] = {}
        """Those of these for which some node may be set aside, and how old the oldest ask is that may have one."""
        self.seekable_ms = 2**62
        """None of those asks is older than this."""
        self.oversize: dict[Shape, None] = {}
        """Shapes that no node could hold even when empty (`core.acts.infeasible`)."""
        self.suspects: dict[Node, None] = {}
        """Where more may run than there is room for (`core.books.nominations`)."""
        self.reserved_again: dict[Ask, None] = {}
        """Asks with a reserved node for which something changed since they were last tried."""
        self.spares_young: dict[Ask, None] = {}
        """Those that require their node and stop nothing there that has only started: tried again once it is older."""
        self.reserved_shapes: dict[Shape, None] = {}
        """Shapes of such asks that may fit on some other node, as far as is known."""
        self.since_search: dict[Node, None] = {}
        """Nodes that changed since preemption by priority last looked at all of them."""
        self.is_tight = False
        """All nodes together lacked room for some shape when last looked: what starts may bring them back to that."""
        self.gains = 0
        """How often some node gained room."""
        self.columns = Columns(self.nodes)
        self.order = NodeOrder(self.nodes, self.columns)
        self.discouraging: dict[Node, None] = {}
        """Nodes that would rather be left alone: while there are some, the order of nodes alone places nothing."""
        self.terrain = Terrain(self)
        self.images = Images(self.columns)
        self.narrow = Narrow()

    # -- membership -----------------------------------------------------------------------------------------------

    def add(self, node: Node) -> None:
        """A node joins."""
        self.nodes[node.id] = node
        self.columns.forget()
        self._note_taints(node)
        node.weigh(self.sort)
        add_to(self.total, tuple(node.total.items()))
        add_to(self.occupied, tuple(node.occupied.items()))
        self.foreign_on |= dict.fromkeys(node.foreign, node)
        self.gained(node)

    def remove(self, node: Node) -> None:
        """A node leaves; its books are the caller's business."""
        del self.nodes[node.id]
        self.since_search.pop(node, None)
        self.suspects.pop(node, None)
        self.narrow.removed(node)
        self.discouraging.pop(node, None)
        node.stamp = 0
        self.order.changed.pop(node, None)
        self.columns.forget()
        self.images.report(node, {})
        take_from(self.total, tuple(node.total.items()))
        self.terrain.domain_lost()

    def resize(self, node: Node, capacity: Resources) -> None:
        """A node's capacity is replaced."""
        take_from(self.total, tuple(node.total.items()))
        node.set_capacity(capacity)
        self.columns.resized()
        self.suspects[node] = None
        node.weigh(self.sort)
        add_to(self.total, tuple(node.total.items()))
        self.gained(node)

    def describe(self, node: Node, attributes: dict[str, str], taints: tuple[Taint, ...]) -> None:
        """A node says something else about itself: everything with constraints is looked at again."""
        node.describe(attributes, taints)
        self._note_taints(node)
        self.columns.forget()
        for shape in list(self.unfit):
            self.clear_unfit(shape)
        self.gained(node)

    def _note_taints(self, node: Node) -> None:
        if any(taint.effect == PREFER_NO_SCHEDULE for taint in node.spec.taints):
            self.discouraging[node] = None
        else:
            self.discouraging.pop(node, None)

    def set_foreign(self, node: Node, spec: AskSpec, now_ms: int) -> None:
        """Work of another scheduler runs here from now on."""
        self.foreign_on[spec.key] = node
        node.foreign[spec.key] = (spec, now_ms)
        node.recount_foreign()
        add_to(self.occupied, spec.resources.items)
        self.terrain.count(spec, node, 1)
        self.gained(node)

    def end_foreign(self, key: str) -> AskSpec | None:
        """That work has ended; what it was, None: it is not known."""
        node = self.foreign_on.pop(key, None)
        if node is None:
            return None
        spec, _ = node.foreign.pop(key)
        node.recount_foreign()
        take_from(self.occupied, spec.resources.items)
        self.terrain.count(spec, node, -1)
        self.gained(node)
        return spec

    def resort(self, sort: NodeSortSpec) -> None:
        """Order nodes by another policy or other weights from now on."""
        self.sort = sort
        for node in self.nodes.values():
            node.weigh(sort)
            self.touch(node)

    # -- changes --------------------------------------------------------------------------------------------------

    def touch(self, node: Node) -> None:
        """The node's score, room or openness changed."""
        self.order.changed[node] = self.columns.stale[node] = self.since_search[node] = None

    def gained(self, node: Node) -> None:
        """The node has more room than before: wake the shapes that fit there now."""
        self.touch(node)
        self.gains += 1
        if self.narrow.room_on:
            self.narrow.gained(node)
        for ask in node.reservations:
            self.reserved_again[ask] = None
        if not self.unfit:
            return
        is_open, left = node.is_open, self.left_of_all()
        for shape in list(self.unfit):
            if shape.blocked_by_root:
                if fits_in(shape.items, left):
                    self.clear_unfit(shape)
            elif shape.required_node:
                if shape.required_node == node.id:
                    self.clear_unfit(shape)
            elif is_open:
                self._wake_for(node, shape)

    def _wake_for(self, node: Node, shape: Shape) -> None:
        """A shape that fitted nowhere may fit on this open node, or have it set aside."""
        misfit = self.terrain.misfit_here
        if not fits_in(shape.items, node.free):
            if shape not in self.seekable and node.fits_total(shape.items) and misfit(shape.where, node) is None:
                self._seek(shape, shape.oldest_ms)
        elif self.only_room_counts(shape):
            if not shape.watched:
                self.narrow.room_on[shape] = {node: None}  # It has room on no node that does not gain from now on.
            self.clear_unfit(shape)
        elif misfit(shape.where, node) is None:
            self.clear_unfit(shape)

    def sum_has_room(self, items: Items) -> bool:
        """Whether all nodes together have this much that no queue uses; a name that no node has is 0."""
        for name, amount in items:
            if self.in_use.get(name, 0) + amount > self.total.get(name, 0):
                return False
        return True

    def left_of_all(self) -> Book:
        """What all nodes together have that no queue uses."""
        return {name: amount - self.in_use.get(name, 0) for name, amount in self.total.items()}

    def lost(self, node: Node) -> None:
        """The node has less room than before: shapes that fitted there only are not looked for again."""
        self.touch(node)
        if self.narrow.room_on and not self.terrain.wary:
            for shape in self.narrow.lost(node):
                self.mark_unfit(shape)
        if self.is_tight:
            self.is_tight = self._mark_all_short()

    def clear_unfit(self, shape: Shape) -> None:
        """`shape` may fit again."""
        self.unfit.pop(shape, None)
        self.seekable.pop(shape, None)
        if shape.watched:
            self.terrain.unwatch(shape)
        shape.unfit = shape.blocked_by_root = False
        self.fitting[shape] = None
        if shape.reserved:
            if shape.required_node or not self.only_room_counts(shape):
                # What runs elsewhere may have changed what suits their own nodes.
                self.reserved_again |= dict.fromkeys([ask for asks in shape.reserved.values() for ask in asks])
            if not shape.required_node:
                self.reserved_shapes[shape] = None

    def mark_unfit(self, shape: Shape, by_root: bool = False) -> None:
        """`shape` has room nowhere until some node gains."""
        self.fitting.pop(shape, None)
        shape.unfit = True
        shape.blocked_by_root = by_root
        self.unfit[shape] = None
        if by_root:
            self.seekable.pop(shape, None)
        else:
            self._seek(shape, shape.oldest_ms if not shape.required_node else AT_ONCE)
        self.narrow.room_on.pop(shape, None)
        if not (by_root or shape.is_plain) or self.terrain.wary:
            self.terrain.watch(shape)

    def mark_short(self, shape: Shape) -> None:
        """All nodes together lack room for `shape`; what else waits and lacks it need not be looked at one by one."""
        self.mark_unfit(shape, by_root=True)
        self._mark_all_short()
        self.is_tight = True

    def _mark_all_short(self) -> bool:
        """Whether there were any that lack it."""
        left = self.left_of_all()
        short = [each for each in self.fitting if not fits_in(each.items, left)]
        for shape in short:
            self.mark_unfit(shape, by_root=True)
        return bool(short)

    def seeks(self, demand: Demand, created_ms: int) -> None:
        """An ask of this demand and age may have a node set aside, if any may; one that requires its node, at once."""
        demand.seek_ms, demand.seeker = 0, None
        shape = demand.shape
        since_ms = created_ms if not shape.required_node else AT_ONCE
        if self.seekable.get(shape, AT_ONCE) > since_ms:
            self._seek(shape, since_ms)

    def _seek(self, shape: Shape, since_ms: int) -> None:
        self.seekable[shape] = since_ms
        if since_ms < self.seekable_ms:
            self.seekable_ms = since_ms

    def meet_shape(self, shape: Shape) -> None:
        """The first ask waits with `shape`."""
        self.fitting[shape] = None
        if shape.required_node:
            self.requiring.setdefault(shape.required_node, {})[shape] = None

    def forget_shape(self, shape: Shape) -> None:
        """Nothing waits with `shape` any longer."""
        if shape.required_node:
            own = self.requiring[shape.required_node]
            del own[shape]
            if not own:
                del self.requiring[shape.required_node]
        for book in (self.fitting, self.unfit, self.seekable, self.oversize, self.reserved_shapes, self.narrow.room_on):
            book.pop(shape, None)

    # -- search ---------------------------------------------------------------------------------------------------

    def first_in_order(self, nodes: list[Node]) -> Node | None:
        """The first of these nodes."""
        if len(nodes) < 2:
            return nodes[0] if nodes else None
        return min(nodes, key=_place)

    def first_for(self, shape: Shape, ask: Ask | None = None) -> Node | None:
        """The first open node in order (score, then id) that suits the shape and has room for it; with one of its asks,
        of those that this ask likes best.
        """
        has_wish = ask is not None and self.has_wish(ask)
        if not has_wish and not self.discouraging and self.only_room_counts(shape):
            if shape in self.narrow.room_on:
                return self.first_in_order(self.narrow.with_room(shape))
            return self.order.first_fit(shape.items)
        return first_fit(self, shape, ask.spec if ask is not None else None, has_wish)

    def required(self, shape: Shape) -> Node | None:
        """The node that the shape requires, if it has room; that it is drained keeps nothing off that requires it."""
        node = self.nodes.get(shape.required_node)
        return node if node is not None and fits_in(shape.items, node.free) and self.lets(shape, node) else None

    def unclaimed(self, shape: Shape, ask: Ask | None = None) -> Node | None:
        """For an ask of the shape: the node that it requires, if that has room and is set aside for nobody; where it
        requires none, the first in order (`first_for`).
        """
        if not shape.required_node:
            return self.first_for(shape, ask)
        node = self.required(shape)
        return node if node is not None and not node.reservations else None

    def with_room(self, ask: Ask, gone: Collection[Ask] = ()) -> list[Node]:
        """The open nodes that suit the ask and have room for it, if the constraints of what is `gone` do not count."""
        return [n for n in self.nodes.values() if n.is_open and fits_in(ask.items, n.free) and self.suits(ask, n, gone)]

    def first_of(self, nodes: list[Node], ask: Ask) -> Node | None:
        """Of these, on each of which the ask may start, the first in order that it likes best."""
        if len(nodes) > 1 and (ask.where.prefers or self.discouraging or self.has_wish(ask)):
            nodes = best_of(self, nodes, ask.where, ask.spec)
        return self.first_in_order(nodes)

    def has_wish(self, ask: Ask) -> bool:
        """Whether what this ask has, and others of its shape may not, tells nodes apart: its labels, or its images."""
        spec = ask.spec
        if spec.images and self.images.by_name and self.images.points(spec.images) is not None:
            return True
        company = self.terrain.company
        return bool(company.wishes.tallies) and company.awaits(spec.labels)

    def know_wishes(self) -> bool:
        """Whether any ask may have a wish (`has_wish`): a look at each of many is spared where none has."""
        return bool(self.images.by_name or self.terrain.company.wishes.tallies)

    def only_room_counts(self, shape: Shape) -> bool:
        """Whether nothing but room keeps the shape off any open node: no constraint of its own, nor of what runs."""
        return shape.is_plain and not self.terrain.wary

    def lets(self, shape: Shape, node: Node) -> bool:
        """Whether the node suits the shape, room apart."""
        return self.terrain.misfit(shape.where, dict(shape.labels), node) is None

    def suits(self, ask: Ask, node: Node, gone: Collection[Ask] = ()) -> bool:
        """Whether the constraints of `ask` and of all that runs let it on the node, room apart, if `gone` were gone."""
        gone = gone if ask.held_on is None else (*gone, ask)  # What is promised to itself is not in its way.
        return self.terrain.misfit(ask.where, ask.spec.labels, node, gone) is None

    def every(self) -> list[Node]:
        """Every node by (score, id), open or not."""
        return sorted(self.nodes.values(), key=_place)


def _place(node: Node) -> tuple[float, str]:
    return node.score(), node.id
