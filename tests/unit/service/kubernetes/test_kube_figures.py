"""Figures under kube-scheduler's names."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from driven_jobs import QUEUES, Jobs

from fairlead.service.kubernetes.kube_figures import kube_figures


def pending(cluster: Jobs) -> dict[str, float]:
    """`scheduler_pending_pods`, by queue, where there are some."""
    none: Any = SimpleNamespace(counts=[0], bounds=(), total=0.0)
    latencies = SimpleNamespace(scheduling=none, victims=none)
    explainer = SimpleNamespace(told=(), tellings=0)
    loop: Any = SimpleNamespace(driver=cluster.driver, explainer=explainer, latencies=latencies, bound=0, refused=0)
    first = next(iter(kube_figures(cast(Any, loop))))
    return {sample.labels["queue"]: sample.value for sample in first.samples if sample.value}


def test_what_keeps_room_for_pods_that_are_not_there_is_no_pod_that_waits() -> None:
    """A suspended job would be a hundred pods that wait for ever, and set off everybody's alerts."""
    cluster = Jobs(QUEUES)
    cluster.node("n1", "201")
    cluster.pod("before", "200", node="n1")
    cluster.job("train", 100)
    cluster.pod("p", "2")
    cluster.acts()
    assert cluster.waiting() == 101
    assert pending(cluster) == {"active": 1}
