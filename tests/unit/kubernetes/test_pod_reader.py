"""What a pod that changes asks for from then on."""

from __future__ import annotations

import pytest
from driven_cluster import PRIORITY, Cluster, binds

from fairlead.core.model.events import SetWindow
from fairlead.core.model.specs import WindowSpec
from fairlead.kubernetes.acts import EvictPod

MINUTE = 60_000


@pytest.mark.parametrize("cpu", ["1", "2"])
def test_a_pod_that_gets_a_deadline_while_it_waits_may_run_before_a_window(cpu: str) -> None:
    """The reason that it is told says which deadline would do; the API lets it be set on a pod."""
    cluster = Cluster()
    cluster.node("n1")
    window = WindowSpec(name="w", starts_ms=20 * MINUTE, length_ms=MINUTE)
    cluster.driver.scheduler.handle(SetWindow(window), 0)
    cluster.pod("a")
    assert binds(cluster.acts()) == {}
    cluster.pod("a", cpu, spec={"activeDeadlineSeconds": 600})
    acts = cluster.acts()
    assert binds(acts) == {"a": "n1"}
    cluster.bind_all(acts)
    cluster.pod("a", cpu, node="n1", spec={"activeDeadlineSeconds": 300})
    cluster.acts()
    ask = cluster.driver.scheduler.cluster.partitions["default"].find_ask("yunikorn-default-autogen", "u-a")
    assert ask is not None
    assert ask.spec.time_limit_ms == 5 * MINUTE
    assert cluster.used("n1") == 1000 * int(cpu)


def test_a_member_of_a_gang_that_gets_a_deadline_while_it_waits_stays_in_line() -> None:
    """It is as it was when it came, and is not refused for that."""
    cluster = Cluster()
    group = {"yunikorn.apache.org/task-group-name": "w"}
    cluster.pod("a", annotations=group)
    cluster.acts()
    cluster.pod("a", annotations=group, spec={"activeDeadlineSeconds": 600})
    cluster.node("n1")
    assert binds(cluster.acts()) == {"a": "n1"}


@pytest.mark.parametrize(
    ("began", "goes"), [("1970-01-01T00:30:00Z", True), ("1970-01-01T00:55:00Z", False), (None, False)]
)
def test_what_ran_before_this_process_is_as_old_as_its_node_says(began: str | None, goes: bool) -> None:
    """Else a restart, or another replica that leads, would spare all of it anew."""
    cluster = Cluster(PRIORITY.replace("{name: default}", "{name: default, properties: {preemption.min.runtime: 10m}}"))
    cluster.now = 60 * MINUTE
    cluster.node("n1", "1")
    cluster.pod("low", node="n1", status={"startTime": began})
    cluster.pod("high", priority=9)
    assert [act.pod.name for act in cluster.acts() if isinstance(act, EvictPod)] == (["low"] if goes else [])
