"""The pod store: how pods are called."""

from __future__ import annotations

from typing import Any
from uuid import NAMESPACE_OID, uuid5

from driven_cluster import Cluster

from fairlead.kubernetes.acts import Explain
from fairlead.kubernetes.explainer import SETTLE_MS, Explainer


def test_a_pod_is_told_the_name_of_the_pod_that_it_waits_for() -> None:
    """Not its identity, which says nothing to whoever describes the pod."""
    cluster = Cluster()
    cluster.node("n1")
    cluster.pod("low", "3", priority=1, uid=str(uuid5(NAMESPACE_OID, "low")))
    cluster.bind_all(cluster.acts())
    cluster.pod("high", "3", priority=9, uid=str(uuid5(NAMESPACE_OID, "high")))
    cluster.acts()
    said: list[Any] = []
    explainer = Explainer(cluster.driver, said.append)
    for now in (0, SETTLE_MS):
        explainer.go_on(now)
    (told,) = (act.message for act in said if isinstance(act, Explain))
    assert told == "space on n1 is held for it; waiting for default/low to stop"
