"""Queues as objects: refused by the API server where they make no sense, in force, and seen with kubectl."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from testbed.cluster import Cluster, Manifest, pod
from testbed.control_plane import ControlPlane
from testbed.deployment import kustomized

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(240)]


@pytest.fixture
def definition(plane: ControlPlane) -> Iterator[None]:
    """The server has queues, by the manifest that is installed."""
    plane.define(kustomized("base")["CustomResourceDefinition", "", "queues.fairlead.io"])
    yield
    plane.kubectl("delete", "crd", "queues.fairlead.io")


def queue(name: str, **spec: Any) -> Manifest:
    return {"apiVersion": "fairlead.io/v1alpha1", "kind": "Queue", "metadata": {"name": name}, "spec": spec}


@pytest.mark.parametrize(
    ("name", "spec", "word"),
    [
        ("a.b", {}, "no dots"),
        ("root", {}, "always there"),
        ("a", {"parent": "team"}, "spec.parent"),
        ("a", {"max": {"cpu": "much"}}, "quantity"),
        ("a", {"max": {"cpu": "-1"}}, "at least 0"),
        ("a", {"max": {"cpu": "2"}, "guaranteed": {"cpu": "2500m"}}, "must not be above max"),
        ("a", {"maxApplications": 0}, "maxApplications"),
    ],
)
def test_the_server_refuses_what_makes_no_sense(
    plane: ControlPlane, definition: None, name: str, spec: dict[str, Any], word: str
) -> None:
    """With a sentence that says what is wrong."""
    said = plane.kubectl("create", "--dry-run=server", "-f", "-", manifest=queue(name, **spec), check=False)
    assert word in said


def test_a_queue_is_in_force_and_kubectl_shows_what_it_uses(cluster: Cluster, definition: None) -> None:
    """Two of three pods run in it; one that is not accepted says why; a new maximum counts at once."""
    cluster.nodes(1, cpu="16")
    cluster.apply(queue("team", max={"cpu": "2"}), queue("lost", parent="root.nowhere"))
    labels = {"applicationId": "a", "queue": "root.team"}
    cluster.apply(*(pod(f"p{n}", labels=labels) for n in range(3)))
    cluster.schedule()

    def row(name: str) -> list[str]:
        lines = cluster.plane.kubectl("get", "queues.fairlead.io", "--no-headers").splitlines()
        return next(line.split() for line in lines if line.startswith(f"{name} "))

    cluster.until(
        lambda: row("team")[1:3] == ["root.team", "2"] and row("team")[5:9] == ["1", "1", "0", "True"], "team"
    )
    cluster.until(lambda: "False" in row("lost"), "lost is not accepted")
    described = cluster.plane.kubectl("describe", "queues.fairlead.io", "lost")
    assert "there is no queue root.nowhere" in described
    said = cluster.plane.kubectl(
        "patch", "queues.fairlead.io", "team", "--type=merge", "-p", '{"spec":{"parent":"root.x"}}', check=False
    )
    assert "stays where it is" in said
    cluster.plane.kubectl("patch", "queues.fairlead.io", "team", "--type=merge", "-p", '{"spec":{"max":{"cpu":"3"}}}')
    cluster.until(lambda: len(cluster.places()) == 3, "the third")
