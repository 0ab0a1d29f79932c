"""One workload for the comparison of two simulators, and where it runs."""

from __future__ import annotations

from dataclasses import dataclass, field

from reference.plain_line import Amount, Budget, Job, Queue
from reference.plain_simulator import Order

LEAVES = ("root.a", "root.b", "root.c.x", "root.c.y")


@dataclass
class World:
    """One workload, and where it runs."""

    nodes: dict[str, Amount]
    queues: dict[str, Queue]
    jobs: list[Job]
    pack: bool
    rule: str = "priority"
    zones: dict[str, str] = field(default_factory=dict)
    """By node; of those that are in one."""
    disliked: frozenset[str] = frozenset()
    """Nodes that nothing goes to where another one does as well."""
    faults: tuple[tuple[int, str], ...] = ()
    """When which node is lost, or back."""
    budgets: tuple[Budget, ...] = ()
    orders: tuple[Order, ...] = ()
    stops: bool = True
    """By guarantee work is stopped for other work."""
