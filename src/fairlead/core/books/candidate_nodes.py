"""Narrow: shapes that fitted on no node a moment ago, so that only the nodes that gained since can have room.

Decides where to look for such a shape: on those few nodes instead of on all. Never decides which shape may fit
(`core.books.nodes`). Invariant: a node outside `room_on` has no room for the shape, or has not been open since.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.core.model.resources import fits_in

if TYPE_CHECKING:
    from fairlead.core.books.demand import Shape
    from fairlead.core.books.node import Node

MANY = 8
"""A shape for which so many nodes gained is searched as any other."""


class Narrow:
    """Where each narrow shape may have room."""

    def __init__(self) -> None:
        self.room_on: dict[Shape, dict[Node, None]] = {}
        """A shape comes in when no node had room for it and one gained; when it is absent, nothing is known."""

    def gained(self, node: Node) -> None:
        """The node may have room for more."""
        for shape, nodes in list(self.room_on.items()):
            if has_room(shape, node):
                nodes[node] = None
                if len(nodes) > MANY:
                    del self.room_on[shape]

    def removed(self, node: Node) -> None:
        """The node has left."""
        for nodes in self.room_on.values():
            nodes.pop(node, None)

    def lost(self, node: Node) -> list[Shape]:
        """The node has less room than before: the shapes that fit nowhere any longer."""
        gone = []
        for shape, nodes in list(self.room_on.items()):
            if node in nodes and not has_room(shape, node):
                del nodes[node]
                if not nodes:
                    del self.room_on[shape]
                    gone.append(shape)
        return gone

    def with_room(self, shape: Shape) -> list[Node]:
        """The nodes with room for a narrow shape."""
        return [node for node in self.room_on[shape] if has_room(shape, node)]


def has_room(shape: Shape, node: Node) -> bool:
    """Whether a shape without constraints could start on the node."""
    return node.is_common and fits_in(shape.items, node.free)
