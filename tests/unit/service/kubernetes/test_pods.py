"""What is shown of a pod, as its condition at the API server says it."""

from __future__ import annotations

from driven_cluster import Cluster

from fairlead.kubernetes.kinds import POD_GROUPS
from fairlead.service.kubernetes.pods import ClusterMoment


def test_who_asks_for_a_pod_of_a_group_that_gathers_hears_what_it_waits_for() -> None:
    """And not that its placement was refused: it was never tried."""
    cluster = Cluster()
    cluster.put(
        POD_GROUPS,
        {"metadata": {"name": "ring", "namespace": "default", "uid": "g-ring"}, "spec": {"minMember": 3}},
    )
    cluster.pod("a", labels={"scheduling.x-k8s.io/pod-group": "ring"})
    said = ClusterMoment(cluster.driver).why("default/a")
    assert said.reason is not None
    assert said.reason.code == "group-waits"
    assert said.sentence == "1 of the 3 pods are there with which pod group ring starts"
