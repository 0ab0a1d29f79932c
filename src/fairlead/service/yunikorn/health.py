"""The health check: whether the books are in order, as Apache YuniKorn's /ws/v1/scheduler/healthcheck shows it.

Decides which figures must agree. Never changes anything. Invariant: the checks are made anew for each request, from the
parts, and name what is wrong.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from fairlead.core.resources import Book, add_to, pruned

if TYPE_CHECKING:
    from fairlead.core.nodes import Node
    from fairlead.core.partition import Partition
    from fairlead.scheduler import Scheduler

Check = dict[str, Any]


def health(scheduler: Scheduler, *, faults: int, problems: Iterable[str]) -> dict[str, Any]:
    """All checks. `faults`: faults in the program so far; `problems`: what is wrong with the service now."""
    partitions = list(scheduler.cluster.partitions.values())
    nodes = [node for part in partitions for node in part.nodes.nodes.values()]
    wrong = list(problems)
    checks = [
        _check("Scheduling errors", "no fault stopped a request or a run", f"{faults} faults so far", not faults),
        _check("Service", "records can be written and scheduling runs", _listed("problems", wrong), not wrong),
        _names(
            "Negative resources",
            "nothing in use in a queue is below zero",
            "queues",
            [q.path for part in partitions for q in part.root.walk() if any(v < 0 for v in q.allocated.values())],
        ),
        _names(
            "Negative resources",
            "nothing in use on a node is below zero",
            "nodes",
            [node.id for node in nodes if any(v < 0 for v in node.allocated.values())],
        ),
        _names(
            "Consistency of data",
            "no more is in use on a node than it has",
            "nodes",
            [node.id for node in nodes if any(v > node.total.get(n, 0) for n, v in node.allocated.items())],
        ),
        _names(
            "Consistency of data",
            "a partition has what its nodes have together",
            "partitions",
            [part.name for part in partitions if pruned(part.nodes.total) != _sum(n.total for n in _nodes(part))],
        ),
        _names(
            "Consistency of data",
            "what a node has is in use, used by others, or available",
            "nodes",
            [node.id for node in nodes if _unbalanced(node)],
        ),
        _names(
            "Consistency of data",
            "what is in use on a node is the sum of its allocations",
            "nodes",
            [node.id for node in nodes if pruned(node.allocated) != _sum(dict(a.items) for a in node.allocations)],
        ),
        _reservations(partitions),
        _names(
            "Orphan allocation on node check",
            "every allocation on a node belongs to an application that lives",
            "allocations",
            [
                f"{node.id}: {ask.key}"
                for part in partitions
                for node in _nodes(part)
                for ask in node.allocations
                if part.applications.get(ask.app.id) is not ask.app or ask.app.asks.get(ask.key) is not ask
            ],
        ),
        _names(
            "Orphan allocation on app check",
            "every allocation of an application is on a node that is there",
            "allocations",
            [
                f"{app.id}: {ask.key}"
                for part in partitions
                for app in part.applications.values()
                for ask in app.allocated_asks()
                if ask.node is None
                or ask not in ask.node.allocations
                or part.nodes.nodes.get(ask.node.id) is not ask.node
            ],
        ),
    ]
    return {"Healthy": all(check["Succeeded"] for check in checks), "HealthChecks": checks}


def _check(name: str, description: str, diagnosis: str, succeeded: bool) -> Check:
    return {"Name": name, "Succeeded": succeeded, "Description": description, "DiagnosisMessage": diagnosis}


def _names(name: str, description: str, what: str, wrong: list[str]) -> Check:
    return _check(name, description, _listed(what, wrong), not wrong)


def _listed(what: str, wrong: list[str]) -> str:
    return f"{what} for which this does not hold: [{', '.join(wrong[:50])}]"


def _nodes(part: Partition) -> Iterable[Node]:
    return part.nodes.nodes.values()


def _sum(books: Iterable[Book]) -> Book:
    total: Book = {}
    for book in books:
        add_to(total, tuple(book.items()))
    return pruned(total)


def _unbalanced(node: Node) -> bool:
    return pruned(node.total) != _sum((node.allocated, node.occupied, node.available))


def _reservations(partitions: list[Partition]) -> Check:
    ratios = [part.reservations / max(len(part.nodes.nodes), 1) for part in partitions]
    text = f"reserved per node: [{', '.join(f'{ratio:f}' for ratio in ratios)}]"
    return _check(
        "Reservation check", "no more asks have a node reserved than there are nodes", text, max(ratios, default=0) <= 1
    )
