"""What a process on a cluster answers before it knows the cluster."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from fairlead.kubernetes.access import Access
from fairlead.kubernetes.controller import Controller, ControllerOptions
from fairlead.service.kubernetes.place import ClusterPlace


@pytest.mark.parametrize(
    ("problems", "said"),
    [
        ([], "the cluster is being read; try again in some seconds"),
        (["nodes cannot be listed"], "the cluster is being read; nodes cannot be listed"),
    ],
)
def test_whoever_asks_is_told_what_keeps_the_cluster_from_being_known(problems: list[str], said: str) -> None:
    """Without a right it was to be tried again in some seconds, for ever."""
    controller: Any = Controller(Access("http://127.0.0.1:1"), ControllerOptions())
    controller.control_loop = SimpleNamespace(ready=False, problems=lambda: iter(problems))
    place = ClusterPlace(controller=cast(Controller, controller), version="test", started_at_ms=0)
    assert place.standing() == said
