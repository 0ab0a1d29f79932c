"""Images: which nodes have what an ask runs already, so that it need not be fetched there.

Decides the points that a node gets for that, from 0 to 100, as kube-scheduler does: the size of each image that the
node has counts by the part of all nodes that have it (so that not everything goes where an image happened to come
first), and the sum by where it lies between 23 MiB and 1,000 MiB for each image that is wanted. Never keeps an ask off
a node. Names are kept once, however many nodes report them; the size is what was reported first. Invariant: an image
is known as long as some node has it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from fairlead.core.books.topology_counts import Counts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairlead.core.books.node import Node
    from fairlead.core.books.node_columns import Columns, Mask

MIB = 1024**2
LEAST = 23 * MIB
"""Bytes: less than this is fetched soon enough to be worth nothing."""
MOST = 1000 * MIB
"""Bytes for each image that is wanted: more than this is worth no more."""
WISHES_KEPT = 512
"""So many different sets of images are remembered with their points."""

Wish = tuple[str, ...]
"""Names of images, one as often as it is wanted."""


@dataclass(slots=True, eq=False)
class Image:
    """One image by one of its names."""

    name: str
    size: int
    """In bytes."""
    nodes: dict[Node, None] = field(default_factory=dict)
    _rows: Mask | None = None
    _version: int = 0

    def turn(self, node: Node, has: bool, version: int) -> None:
        """The node has it from now on, or no longer."""
        if has:
            self.nodes[node] = None
        else:
            del self.nodes[node]
        if self._rows is not None and self._version == version:
            self._rows[node.row] = has
        else:
            self._rows = None

    def rows(self, columns: Columns) -> Mask:
        """The rows that have it."""
        if self._rows is None or self._version != columns.version:
            self._rows, self._version = np.zeros(len(columns.rows), dtype=np.bool_), columns.version
            self._rows[[node.row for node in self.nodes]] = True
        return self._rows


class Images:
    """The images of the nodes of one table."""

    def __init__(self, columns: Columns) -> None:
        self.by_name: dict[str, Image] = {}
        self.of_node: dict[Node, tuple[Image, ...]] = {}
        self._columns = columns
        self._points: dict[Wish, Counts | None] = {}
        self._version = 0
        """The version of the columns for which these points hold."""

    def report(self, node: Node, images: Mapping[str, int]) -> None:
        """The node has these images, by name and size in bytes, and no others."""
        before = self.of_node.get(node, ())
        now = {self.by_name.setdefault(name, Image(name, size)): None for name, size in images.items()}
        after = tuple(now)
        if after == before:
            return
        version = self._columns.version
        for image in before:
            if image not in now:
                image.turn(node, False, version)
                if not image.nodes:
                    del self.by_name[image.name]
        for image in after:
            if node not in image.nodes:
                image.turn(node, True, version)
        if after:
            self.of_node[node] = after
        else:
            del self.of_node[node]
        self._points.clear()

    def points(self, wish: Wish) -> Counts | None:
        """For each row its points; None: no node has more than another."""
        if self._version != self._columns.version:
            self._points.clear()
            self._version = self._columns.version
        if wish not in self._points:
            if len(self._points) >= WISHES_KEPT:
                self._points.clear()
            self._points[wish] = self._work_out(wish)
        return self._points[wish]

    def _work_out(self, wish: Wish) -> Counts | None:
        found = [image for name in wish if (image := self.by_name.get(name)) is not None]
        if not found:
            return None
        columns = self._columns
        columns.sync()
        most = MOST * len(wish)
        total: Counts = np.zeros(len(columns.rows), dtype=np.int64)
        for image in found:
            # No more than is worth something: the size is what somebody reported.
            total += image.rows(columns) * min(image.size * len(image.nodes) // len(columns.rows), most)
        points: Counts = (np.clip(total, LEAST, most) - LEAST) * 100 // (most - LEAST)
        return points if points.min() != points.max() else None
