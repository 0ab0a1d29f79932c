"""Image locality: nodes that have what a pod runs are better for it, where that was asked for."""

from __future__ import annotations

from typing import Any

import msgspec
from driven_cluster import Cluster, binds

from fairlead.kubernetes.kinds import NODES
from fairlead.kubernetes.node_objects import NodeWithImages
from fairlead.kubernetes.objects import Pod
from fairlead.kubernetes.translate.cluster import NAMES_KEPT, images_of
from fairlead.kubernetes.translate.pods import pod_images

GIB = 1024**3
TOOL = {"names": ["registry.example.com:5000/tool@sha256:1234", "registry.example.com:5000/tool:latest"]}


def node(cluster: Cluster, name: str, *images: dict[str, Any]) -> None:
    status = {"allocatable": {"cpu": "4", "pods": "110"}, "images": list(images)}
    cluster.put(NODES, {"metadata": {"name": name, "uid": f"u-{name}"}, "status": status})


def runs(image: str) -> dict[str, Any]:
    return {"containers": [{"name": "c", "image": image, "resources": {"requests": {"cpu": "1"}}}]}


def cluster(**more: bool) -> Cluster:
    found = Cluster(**more)
    node(found, "n1")
    node(found, "n2", TOOL | {"sizeBytes": 2 * GIB})
    return found


def test_a_pod_goes_where_its_image_is() -> None:
    """By whichever name; without tag or digest it is the latest."""
    for name in ("tool", "tool:latest", "tool@sha256:1234"):
        c = cluster(images=True)
        c.pod("p", spec=runs(f"registry.example.com:5000/{name}"))
        assert binds(c.acts()) == {"p": "n2"}


def test_it_is_not_looked_at_unless_asked_for() -> None:
    c = cluster()
    c.pod("p", spec=runs("registry.example.com:5000/tool"))
    assert binds(c.acts()) == {"p": "n1"}
    assert not c.driver.scheduler.cluster.partitions["default"].nodes.images.by_name


def test_what_a_node_fetched_and_removed_counts() -> None:
    c = cluster(images=True)
    node(c, "n1", TOOL | {"sizeBytes": 2 * GIB})
    node(c, "n2")
    c.pod("p", "2", spec=runs("registry.example.com:5000/tool"))
    assert binds(c.acts()) == {"p": "n1"}


def test_another_image_while_it_waits() -> None:
    c = cluster(images=True)
    c.pod("p", spec=runs("else"))
    c.pod("p", spec=runs("registry.example.com:5000/tool"))
    assert binds(c.acts()) == {"p": "n2"}


def test_a_pod_that_is_bound_is_not_described_anew() -> None:
    c = cluster(images=True)
    c.pod("p", spec=runs("registry.example.com:5000/tool"))
    acts = c.acts()
    before = c.driver.scheduler.cluster.partitions["default"].books_version
    c.bind_all(acts)
    assert c.driver.scheduler.cluster.partitions["default"].books_version == before


def test_names_of_images_as_nodes_say_them() -> None:
    containers = [{"name": n, "image": n} for n in ("b", "a:1", "host:5000/c", "d@sha256:12")]
    pod = {"spec": {"containers": containers, "initContainers": [{"name": "i", "image": "b"}, {"name": "j"}]}}
    found = pod_images(msgspec.convert(pod, Pod))
    assert found == (":latest", "a:1", "b:latest", "b:latest", "d@sha256:12", "host:5000/c:latest")
    assert pod_images(msgspec.convert(pod, Pod)) is found


def test_a_node_says_so_many_names_at_most() -> None:
    """The first ones: nodes say the largest images first."""
    images = [{"names": [f"i{i}:1", f"i{i}:2", f"i{i}:1"], "sizeBytes": 1000 - i} for i in range(NAMES_KEPT)]
    found = images_of(msgspec.convert({"status": {"images": images}}, NodeWithImages))
    assert len(found) == NAMES_KEPT
    assert found["i0:2"] == 1000
    assert list(found)[-1] == f"i{NAMES_KEPT // 2 - 1}:2"
    assert images_of(
        msgspec.convert({"status": {"images": [{"names": None}, {"names": ["x"], "sizeBytes": -5}]}}, NodeWithImages)
    ) == {"x": 0}
