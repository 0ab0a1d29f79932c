"""Figures under kube-scheduler's names, where they mean the same, so that its dashboards and alerts work.

Decides which of our pods is counted as what. Never counts anything itself. Invariant: each pod that waits is counted
once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from fairlead.kubernetes.control_loop import ControlLoop
from fairlead.kubernetes.informer import Informer
from fairlead.kubernetes.latencies import Histogram
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
    results = {
        "scheduled": control_loop.bound,
        "unschedulable": control_loop.explainer.tellings,
        "error": control_loop.refused,
    }
    for result, value in results.items():
        attempts.add_metric((informer.scheduler_name, result), value)
    yield attempts
    latencies = control_loop.latencies
    yield _histogram(
        "scheduler_pod_scheduling_sli_duration_seconds",
        "From when a pod was seen to its binding.",
        latencies.scheduling,
    )
    yield _histogram(
        "scheduler_preemption_victims", "Pods told to stop for one, each time that happened.", latencies.victims
    )
    attempted = sum(latencies.victims.counts)
    yield CounterMetricFamily("scheduler_preemption_attempts", "How often others were stopped.", value=attempted)


def _histogram(name: str, text: str, values: Histogram) -> Metric:
    total, buckets = 0, []
    for bound, count in zip((*map(str, values.bounds), "+Inf"), values.counts, strict=True):
        total += count
        buckets.append((bound, total))
    family = HistogramMetricFamily(name, text)
    family.add_metric((), buckets, values.total)
    return family


def _queue_of(informer: Informer, known: KnownPod, told: Collection[str]) -> str:
    """Where kube-scheduler would keep the pod; nothing for one that does not wait, or stands for one to come."""
    if known.foreign or known.bound or known.leaving or known.books is Books.PLACED or known.name.stands_for:
        return ""
    if known.pausing:
        return "backoff"
    if known.books is Books.OUT:
        return "gated" if informer.gangs.holds_back(known) else "unschedulable"
    return "unschedulable" if known.name.uid in told else "active"
