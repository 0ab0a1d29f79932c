"""The queues of one partition with their places in the text: one root above all, made where the file has none.

Decides what the root is (exactly one top queue named root; otherwise one is put above the list) and whose limits it
has, and finds the places of a loaded configuration again, for those who report about it. Never judges a queue.
Invariant: every placed queue points at the place it was written at; a spec without a text has made-up places.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from fairlead.config.declare import PartitionDeclaration, declared
from fairlead.config.decode import Findings
from fairlead.config.yamltree import compose
from fairlead.core.model.specs import ClusterSpec, PartitionSpec, QueueSpec

ROOT = "root"


@dataclass(frozen=True, slots=True)
class PlacedQueue:
    """A queue, where it was written, and what is below it."""

    spec: QueueSpec
    path: str
    """Its place in the text; for a root that the file does not have, the place of the list of queues."""
    full_name: str
    """Names from the root down, as written."""
    limits_path: str
    level: int
    """The root is 0."""
    children: tuple[PlacedQueue, ...]

    def walk(self) -> Iterator[PlacedQueue]:
        """This queue and all below it, parents first, in the order of the file."""
        yield self
        for child in self.children:
            yield from child.walk()


def root_of(declaration: PartitionDeclaration) -> PlacedQueue | None:
    """The root queue of a partition; None where it has no list of queues."""
    if declaration.queues is None:
        return None
    at = f"{declaration.path}.queues"
    tops = declaration.queues
    if len(tops) == 1 and tops[0].name.lower() == ROOT:
        root = placed(replace(tops[0], parent=True), f"{at}[0]")
    else:
        spec = QueueSpec(name=ROOT, parent=True, queues=tops)
        children = tuple(placed(top, f"{at}[{index}]", ROOT, 1) for index, top in enumerate(tops))
        root = PlacedQueue(spec, at, ROOT, f"{at}.limits", 0, children)
    if declaration.limits and not root.spec.limits:
        own = replace(root.spec, limits=declaration.limits)
        root = replace(root, spec=own, limits_path=f"{declaration.path}.limits")
    return root


def placed(spec: QueueSpec, path: str, above: str = "", level: int = 0) -> PlacedQueue:
    """A queue and all below it, written at `path`; `above` is the full name of its parent."""
    full_name = f"{above}.{spec.name}" if above else spec.name
    children = tuple(
        placed(child, f"{path}.queues[{index}]", full_name, level + 1) for index, child in enumerate(spec.queues)
    )
    return PlacedQueue(spec, path, full_name, f"{path}.limits", level, children)


@dataclass(frozen=True, slots=True)
class PlacedPartition:
    """One partition, its place, and its placed queues."""

    spec: PartitionSpec
    path: str
    root: PlacedQueue


def places_of(spec: ClusterSpec, source: str = "<text>") -> tuple[Findings, tuple[PlacedPartition, ...]]:
    """Fresh findings that know the places of the spec's text, and its partitions with theirs."""
    found = Findings(source)
    node = compose(spec.text).root if spec.text else None
    if node is None:
        made_up = [
            PlacedPartition(p, f"partitions[{i}]", placed(p.root, f"partitions[{i}].queues[0]"))
            for i, p in enumerate(spec.partitions)
        ]
        return found, tuple(made_up)
    declaration = declared(found, node)
    found.forget()
    pairs = zip(spec.partitions, declaration.partitions, strict=True)
    return found, tuple(
        PlacedPartition(partition, written.path, root_of(written) or placed(partition.root, f"{written.path}.queues"))
        for partition, written in pairs
    )
