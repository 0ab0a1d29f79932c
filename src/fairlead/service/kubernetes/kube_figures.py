"""Figures under kube-scheduler's names, where they mean the same, so that its dashboards and alerts work.

Decides which of our pods is counted as what. Never counts anything itself. Invariant: each pod that waits is counted
once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from fairlead.kubernetes.control_loop import ControlLoop
from fairlead.kubernetes.informer import Informer
from fairlead.kubernetes.pod_store import Books, KnownPod

QUEUES = ("active", "backoff", "gated", "unschedulable")


def kube_figures(control_loop: ControlLoop) -> Iterator[Metric]:
    """Pods that wait, and what came of placements."""
    informer = control_loop.driver.informer
    pending = GaugeMetricFamily(
        "scheduler_pending_pods",
        "Pods that wait: since a moment (active), after a placement was refused (backoff), held back while their "
        "gang reserves its room (gated), or told why they do (unschedulable).",
        labels=("queue",),
    )
    told = control_loop.explainer.told
    counts = Counter(_queue_of(informer, known, told) for known in informer.pod_store.by_uid.values())
    for queue in QUEUES:
        pending.add_metric((queue,), counts[queue])
    yield pending
    attempts = CounterMetricFamily(
        "scheduler_schedule_attempts", "Placements by what came of them.", labels=("profile", "result")
    )
    for result, value in (("scheduled", control_loop.bound), ("error", control_loop.refused)):
        attempts.add_metric((informer.scheduler_name, result), value)
    yield attempts


def _queue_of(informer: Informer, known: KnownPod, told: Collection[str]) -> str:
    """Where kube-scheduler would keep the pod; nothing for one that does not wait."""
    if known.foreign or known.bound or known.leaving or known.books is Books.PLACED:
        return ""
    if known.pausing:
        return "backoff"
    if known.books is Books.OUT:
        return "gated" if informer.gangs.holds_back(known) else "unschedulable"
    return "unschedulable" if known.name.uid in told else "active"
