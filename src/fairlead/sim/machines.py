"""Machines: the nodes of a simulation, from a file or a few words.

Decides what `100x cpu=32,memory=128Gi` and the rows of a CSV file mean. Never reads a workload. Invariant: every node
has a name of its own and a capacity.
"""

from __future__ import annotations

import re

from fairlead.core.model.quantities import QuantityError, parse_quantity, resource_called
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import NodeSpec
from fairlead.sim.rows import Row, TraceError, csv_rows, heading, made_of, only_once

_WORDS = re.compile(r"(\d+) *x *(.+)")
COUNT_MAX = 1_000_000


class MachineError(ValueError):
    """Nodes that make no sense."""


def machines(text: str) -> tuple[NodeSpec, ...]:
    """The nodes of a CSV file (`id`, then a column for each resource), or of words.

    Words: `COUNT x NAME=QUANTITY,NAME=QUANTITY`, several kinds with `;` between them. Raises `MachineError`,
    `TraceError` or OSError.
    """
    if "=" not in text:
        if text.strip().isdecimal():
            raise MachineError(
                f"nodes {text!r}: a number is for made-up work; write {text.strip()}x RESOURCE=QUANTITY,..."
            )
        return _read(text)
    found: list[NodeSpec] = []
    for kind in filter(None, (part.strip() for part in text.split(";"))):
        match = _WORDS.fullmatch(kind)
        if not match or not 0 < int(match[1]) <= COUNT_MAX:
            raise MachineError(f"nodes {kind!r}: write COUNT x RESOURCE=QUANTITY,..., such as 100x cpu=32,memory=128Gi")
        amounts = {}
        for part in match[2].split(","):
            name, equals, quantity = (word.strip() for word in part.partition("="))
            if not (name and equals):
                raise MachineError(f"nodes {kind!r}: {part!r} must be RESOURCE=QUANTITY")
            try:
                amounts[resource_called(name)] = parse_quantity(resource_called(name), quantity)
            except QuantityError as e:
                raise MachineError(f"nodes {kind!r}: {e}") from e
        capacity = Resources(amounts)
        if not capacity:
            raise MachineError(f"nodes {kind!r}: have nothing to offer")
        first = len(found)
        found += [NodeSpec(id=f"node-{first + i:05}", capacity=capacity) for i in range(int(match[1]))]
    return tuple(found)


def _read(path: str) -> tuple[NodeSpec, ...]:
    header = heading(path)
    if "id" not in header or len(header) < 2:
        raise TraceError(path, 1, "", "", "the first line must name id and at least one resource, such as id,vcore")
    name = only_once("id")

    def node(row: Row) -> NodeSpec:
        resources = [(column, resource_called(column)) for column in header if column != "id"]
        amounts = {resource: row.quantity(column, resource) for column, resource in resources}
        return NodeSpec(id=name(row), capacity=Resources(amounts))

    found = tuple(made_of(csv_rows(path), node))
    if not found:
        raise TraceError(path, 1, "", "", "names no node")
    return found
