"""Declaring: what an administrator's order about priority classes, quotas, budgets and windows means for the cluster.

Decides whether the order makes sense, refuses it with a reason when it does not, and carries it out. Never touches what
runs: classes and quotas count for what is submitted from then on, and because of a window what waits is looked at anew.
Invariant: a refused order changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fairlead.core.acts import windows
from fairlead.core.acts.reconfigure import budgets_changed
from fairlead.core.books.admission import BUDGET, CLASS, QUOTA, WINDOW
from fairlead.core.books.cluster import Cluster
from fairlead.core.model import events
from fairlead.core.model.decisions import DeclarationChanged, DeclarationRejected

Declaration = events.SetPriorityClass | events.SetQuota | events.SetBudget | events.SetWindow
Withdrawal = events.RemovePriorityClass | events.RemoveQuota | events.RemoveBudget | events.RemoveWindow
_ABOUT: dict[str, tuple[type[Declaration], type[Withdrawal]]] = {
    CLASS: (events.SetPriorityClass, events.RemovePriorityClass),
    QUOTA: (events.SetQuota, events.RemoveQuota),
    BUDGET: (events.SetBudget, events.RemoveBudget),
    WINDOW: (events.SetWindow, events.RemoveWindow),
}
_KINDS: dict[type[Any], str] = {event: kind for kind, both in _ABOUT.items() for event in both}


def declare(cluster: Cluster, event: Declaration) -> None:
    """A thing is made or changed."""
    kind, name = _KINDS[type(event)], event.spec.name
    book = cluster.admission.of(kind)
    refused = book.why_not_set(event.spec)
    if refused is not None:
        cluster.out.append(DeclarationRejected(kind, name, refused))
    elif change := book.set(event.spec):
        _changed(cluster, kind, name, change, event.who)


def withdraw(cluster: Cluster, event: Withdrawal) -> None:
    """A thing holds no longer."""
    kind = _KINDS[type(event)]
    book = cluster.admission.of(kind)
    refused = book.why_not_remove(event.name)
    if refused is not None:
        cluster.out.append(DeclarationRejected(kind, event.name, refused))
    else:
        book.remove(event.name)
        _changed(cluster, kind, event.name, "removed", event.who)


def _changed(cluster: Cluster, kind: str, name: str, change: str, who: str) -> None:
    cluster.out.append(DeclarationChanged(kind, name, change, who))
    if kind == WINDOW:
        for partition in cluster.partitions.values():
            windows.look(partition)
    elif kind == BUDGET:
        budgets_changed(cluster)


CLUSTER_HANDLERS: dict[type[Any], Callable[[Cluster, Any], None]] = {
    **{sets: declare for sets, _ in _ABOUT.values()},
    **{removes: withdraw for _, removes in _ABOUT.values()},
}
"""Which event is for the cluster as a whole, and what it means."""
