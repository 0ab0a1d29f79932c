"""Declaring: what an administrator's order about priority classes, quotas and budgets means for the whole cluster.

Decides whether the order makes sense, refuses it with a reason when it does not, and carries it out. Never touches
work: classes and quotas count for what is submitted from then on. Invariant: a refused order changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from fairlead.core.books.admission import BUDGET, CLASS, QUOTA, every_ask
from fairlead.core.model import events
from fairlead.core.model.decisions import DeclarationChanged, DeclarationRejected
from fairlead.policy.events import windows

if TYPE_CHECKING:
    from fairlead.core.books.cluster import Cluster

_SETS: dict[type[Any], str] = {events.SetPriorityClass: CLASS, events.SetQuota: QUOTA, events.SetBudget: BUDGET}
_REMOVES: dict[type[Any], str] = {
    events.RemovePriorityClass: CLASS,
    events.RemoveQuota: QUOTA,
    events.RemoveBudget: BUDGET,
}


def declare(cluster: Cluster, event: events.SetPriorityClass | events.SetQuota | events.SetBudget) -> None:
    """A thing is made or changed."""
    kind, name = _SETS[type(event)], event.spec.name
    book = cluster.admission.of(kind)
    refused = book.why_not_set(event.spec)
    if refused is not None:
        cluster.out.append(DeclarationRejected(kind, name, refused))
    elif change := book.set(event.spec, partial(every_ask, cluster.partitions.values())):
        cluster.out.append(DeclarationChanged(kind, name, change, event.who))


def withdraw(cluster: Cluster, event: events.RemovePriorityClass | events.RemoveQuota | events.RemoveBudget) -> None:
    """A thing holds no longer."""
    kind = _REMOVES[type(event)]
    book = cluster.admission.of(kind)
    refused = book.why_not_remove(event.name)
    if refused is not None:
        cluster.out.append(DeclarationRejected(kind, event.name, refused))
    else:
        book.remove(event.name)
        cluster.out.append(DeclarationChanged(kind, event.name, "removed", event.who))


CLUSTER_HANDLERS: dict[type[Any], Callable[[Cluster, Any], None]] = {
    **dict.fromkeys(_SETS, declare),
    **dict.fromkeys(_REMOVES, withdraw),
    events.SetWindow: windows.set_window,
    events.RemoveWindow: windows.remove_window,
}
"""Which event is for the cluster as a whole, and what it means."""
