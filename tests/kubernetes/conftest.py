"""One control plane for all tests on a real API server; each test finds it empty."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from testbed.binaries import PACKAGES, BedError, build
from testbed.cluster import Cluster
from testbed.control_plane import ControlPlane


@pytest.fixture(scope="session")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    try:
        build(PACKAGES)
    except BedError as missing:
        pytest.exit(f"tests on Kubernetes cannot run: {missing}", returncode=1)
    with ControlPlane(tmp_path_factory.mktemp("plane")) as plane:
        yield plane


@pytest.fixture
def cluster(plane: ControlPlane, tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(plane, tmp_path)
    try:
        yield cluster
    finally:
        cluster.clear()
