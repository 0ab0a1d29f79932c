"""One policy, four places: the cluster decides as the simulator does (see `tests/places`)."""

from __future__ import annotations

import pytest
from places import cluster as place
from places import simulator
from places.course import side_by_side
from places.workload import Workload, drawn, read
from testbed.cluster import Cluster

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(300)]


def _compare(cluster: Cluster, workload: Workload) -> None:
    course = simulator.run(workload)
    seen, wanted = side_by_side(place.run(cluster, workload, course), course)
    assert seen == wanted


@pytest.mark.parametrize("name", ["fair_queues", "by_priority", "guarantees", "gang"])
def test_the_cluster_decides_as_the_simulator(cluster: Cluster, name: str) -> None:
    """Queues, limits, priorities, gangs, victims: who gets which node in which order, and who has to go."""
    _compare(cluster, read(name))


def test_the_cluster_decides_as_the_simulator_at_random(cluster: Cluster) -> None:
    """200 tasks of four classes in four queues, with limits, taints, selectors and victims."""
    _compare(cluster, drawn(0))
