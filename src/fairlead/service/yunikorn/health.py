"""The health check: whether the books are in order, as Apache YuniKorn's /ws/v1/scheduler/healthcheck shows it.

Decides which figures must agree. Never changes anything. Invariant: the checks are made anew for each request, from the
parts, and name what is wrong.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from fairlead.core.model.resources import Book, add_to, pruned

if TYPE_CHECKING:
    from fairlead.core.books.node import Node
    from fairlead.core.books.partition import Partition
    from fairlead.scheduler import Scheduler

Check = dict[str, Any]


def health(scheduler: Scheduler, *, faults: int, problems: Iterable[str]) -> dict[str, Any]:
    """All checks. `faults`: faults in the program so far; `problems`: what is wrong with the service now."""
    partitions = list(scheduler.cluster.partitions.values())
    wrong = "; ".join(problems)
    checks = [
        _check("Scheduling errors", "no fault stopped a request or a run", f"{faults} faults so far", not faults),
        _check("Service", "records can be written and scheduling runs", f"problems: [{wrong}]", not wrong),
        *_amounts(partitions),
        _reservations(partitions),
        *_orphans(partitions),
    ]
    return {"Healthy": all(check["Succeeded"] for check in checks), "HealthChecks": checks}


def _amounts(partitions: list[Partition]) -> Iterable[Check]:
    """Whether amounts are possible, and the sums of their parts."""
    nodes = [node for part in partitions for node in _nodes(part)]
    queues = [queue for part in partitions for queue in part.root.walk()]
    negative, consistent = "Negative resources", "Consistency of data"
    below = [queue.path for queue in queues if any(v < 0 for v in queue.allocated.values())]
    yield _names(negative, "nothing in use in a queue is below zero", "queues", below)
    below = [node.id for node in nodes if any(v < 0 for v in node.allocated.values())]
    yield _names(negative, "nothing in use on a node is below zero", "nodes", below)
    over = [node.id for node in nodes if any(v > node.total.get(n, 0) for n, v in node.allocated.items())]
    yield _names(consistent, "no more is in use on a node than it has", "nodes", over)
    off = [part.name for part in partitions if pruned(part.nodes.total) != _sum(n.total for n in _nodes(part))]
    yield _names(consistent, "a partition has what its nodes have together", "partitions", off)
    off = [n.id for n in nodes if pruned(n.allocated) != _sum(dict(a.items) for a in n.allocations)]
    yield _names(consistent, "what is in use on a node is the sum of its allocations", "nodes", off)


def _orphans(partitions: list[Partition]) -> Iterable[Check]:
    """Whether nodes and applications agree on what runs."""
    on_nodes, of_apps = [], []
    for part in partitions:
        for node in _nodes(part):
            lost = [ask for ask in node.allocations if part.applications.get(ask.app.id) is not ask.app]
            on_nodes += [f"{node.id}: {ask.key}" for ask in lost]
        for app in part.applications.values():
            for ask in app.allocated_asks():
                home = part.nodes.nodes.get(ask.node.id) if ask.node is not None else None
                if home is not ask.node or home is None or ask not in home.allocations:
                    of_apps.append(f"{app.id}: {ask.key}")
    text = "every allocation on a node belongs to an application that lives"
    yield _names("Orphan allocation on node check", text, "allocations", on_nodes)
    text = "every allocation of an application is on a node that is there"
    yield _names("Orphan allocation on app check", text, "allocations", of_apps)


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


def _reservations(partitions: list[Partition]) -> Check:
    ratios = [part.reservations / max(len(part.nodes.nodes), 1) for part in partitions]
    text = f"reserved per node: [{', '.join(f'{ratio:f}' for ratio in ratios)}]"
    return _check(
        "Reservation check", "no more asks have a node reserved than there are nodes", text, max(ratios, default=0) <= 1
    )
