"""Nodes with their images, as the API server sends them: by far the most of a node, read only where somebody wants it.

Decides how images are read. Never interprets one. Invariant: what every node says is kept once, however many say it.
"""

from __future__ import annotations

from functools import lru_cache

import msgspec

from fairlead.kubernetes.objects import Node, NodeStatus, Part


class NodeImage(Part, frozen=True):
    """An image that a node has."""

    names: list[str] | None = None
    size_bytes: int = 0

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "names", [_once(name) for name in self.names or ()])


@lru_cache(maxsize=2**14)
def _once(name: str) -> str:
    return name


class StatusWithImages(NodeStatus, frozen=True):
    """What a node has, its images too."""

    images: list[NodeImage] | None = None


class NodeWithImages(Node, frozen=True):
    """A node with its images."""

    status: StatusWithImages = StatusWithImages()
