"""Declaring: what an administrator's order about priority classes and quotas means for the whole cluster.

Decides whether the order makes sense, refuses it with a reason when it does not, and carries it out. Never touches
work: classes and quotas count for what is submitted from then on. Invariant: a refused order changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fairlead.core.books.admission import BUDGET, CLASS, QUOTA, every_ask
from fairlead.core.model import events
from fairlead.core.model.decisions import DeclarationChanged, DeclarationRejected

if TYPE_CHECKING:
    from fairlead.core.books.cluster import Cluster
    from fairlead.core.model.reasons import Reason


def set_class(cluster: Cluster, event: events.SetPriorityClass) -> None:
    """A priority class is made or changed."""
    classes = cluster.admission.classes
    if not _refused(cluster, CLASS, event.spec.name, classes.why_not_set(event.spec)):
        _changed(cluster, CLASS, event.spec.name, classes.set(event.spec), event.who)


def remove_class(cluster: Cluster, event: events.RemovePriorityClass) -> None:
    """New work cannot name the class any more."""
    classes = cluster.admission.classes
    if not _refused(cluster, CLASS, event.name, classes.why_not_remove(event.name)):
        classes.remove(event.name)
        _changed(cluster, CLASS, event.name, "removed", event.who)


def set_quota(cluster: Cluster, event: events.SetQuota) -> None:
    """A quota is made or changed; what was admitted counts at once."""
    quotas = cluster.admission.quotas
    if not _refused(cluster, QUOTA, event.spec.name, quotas.why_not_set(event.spec)):
        change = quotas.set(event.spec, every_ask(cluster.partitions.values()))
        _changed(cluster, QUOTA, event.spec.name, change, event.who)


def remove_quota(cluster: Cluster, event: events.RemoveQuota) -> None:
    """The quota holds no longer."""
    quotas = cluster.admission.quotas
    if not _refused(cluster, QUOTA, event.name, quotas.why_not_remove(event.name)):
        quotas.remove(event.name)
        _changed(cluster, QUOTA, event.name, "removed", event.who)


def set_budget(cluster: Cluster, event: events.SetBudget) -> None:
    """A disruption budget is made or changed."""
    budgets = cluster.admission.budgets
    if not _refused(cluster, BUDGET, event.spec.name, budgets.why_not_set(event.spec)):
        _changed(cluster, BUDGET, event.spec.name, budgets.set(event.spec), event.who)


def remove_budget(cluster: Cluster, event: events.RemoveBudget) -> None:
    """The disruption budget protects nothing any more."""
    budgets = cluster.admission.budgets
    if not _refused(cluster, BUDGET, event.name, budgets.why_not_remove(event.name)):
        budgets.remove(event.name)
        _changed(cluster, BUDGET, event.name, "removed", event.who)


def _refused(cluster: Cluster, kind: str, name: str, reason: Reason | None) -> bool:
    if reason is None:
        return False
    cluster.out.append(DeclarationRejected(kind, name, reason))
    return True


def _changed(cluster: Cluster, kind: str, name: str, change: str, who: str) -> None:
    if change:
        cluster.out.append(DeclarationChanged(kind, name, change, who))


CLUSTER_HANDLERS: dict[type[Any], Callable[[Cluster, Any], None]] = {
    events.SetPriorityClass: set_class,
    events.RemovePriorityClass: remove_class,
    events.SetQuota: set_quota,
    events.RemoveQuota: remove_quota,
    events.SetBudget: set_budget,
    events.RemoveBudget: remove_budget,
}
"""Which event is for the cluster as a whole, and what it means."""
