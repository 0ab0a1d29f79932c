"""Placeholders: when those of a gang are made, wait in line, and go."""

from __future__ import annotations

import json
from typing import Any

from driven_cluster import Cluster

from fairlead.kubernetes.acts import CreatePlaceholder, DeletePod
from fairlead.kubernetes.translate import identity


def groups(members: int, cpu: str, **more: Any) -> str:
    return json.dumps([{"name": "w", "minMember": members, "minResource": {"cpu": cpu}, **more}])


def member(cluster: Cluster, name: str, gang: str, style: str = "Soft", cpu: str = "2", **more: Any) -> None:
    words = f"gangSchedulingStyle={style} placeholderTimeoutInSeconds=60"
    notes = {identity.TASK_GROUP_NAME: "w", identity.TASK_GROUPS: gang, identity.PARAMETERS: words}
    cluster.pod(name, cpu, labels={"applicationId": "job"}, annotations={**notes, **more})


def make(cluster: Cluster, acts: list[Any], gang: str, cpu: str = "2") -> list[str]:
    """The API server makes the placeholders that are wanted; their names."""
    made = [act.name for act in acts if isinstance(act, CreatePlaceholder)]
    for name in made:
        member(cluster, name, gang, cpu=cpu, **{identity.PLACEHOLDER: "true"})
    return made


def test_what_waits_of_a_gang_that_is_given_up_is_in_line_no_more() -> None:
    """It was told to go, went back into the line with the members, and was told to go again once it had their room."""
    cluster, gang = Cluster(), groups(2, "2")
    cluster.node("n1", "3")
    cluster.node("n2", "2")
    cluster.pod("other", "2", node="n2")
    member(cluster, "m0", gang)
    made = make(cluster, cluster.acts(), gang)
    cluster.bind_all(cluster.acts())
    cluster.now = 60_000
    gone = [act.pod.name for act in [*cluster.acts(), *cluster.acts()] if isinstance(act, DeletePod)]
    assert sorted(gone) == sorted(made)
    assert list(cluster.driver.informer.waiting) == ["u-m0"]
