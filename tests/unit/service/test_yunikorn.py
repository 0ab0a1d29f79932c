"""The reads of /ws/v1 as Apache YuniKorn answers them."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from fairlead.service.yunikorn.shapes import go_duration

pytestmark = pytest.mark.real


def get(served: Any, path: str, who: str = "", **headers: str) -> Any:
    answer = served.call("GET", f"/ws/v1{path}", who=who, **headers)
    assert answer.status == 200, answer.body
    assert answer.headers["content-type"] == "application/json; charset=UTF-8"
    assert answer.body.endswith(b"\n")
    return answer.json


def test_clusters_and_partitions(served: Any) -> None:
    """One entry a partition; times in nanoseconds."""
    cluster = get(served, "/clusters")[0]
    assert (cluster["partition"], cluster["clusterName"]) == ("default", "kubernetes")
    assert cluster["rmBuildInformation"][0]["rmId"]
    assert len(str(cluster["startTime"])) == 19
    partition = get(served, "/partitions")[0]
    assert (partition["name"], partition["state"], partition["totalNodes"]) == ("default", "Active", 1)
    assert partition["capacity"]["capacity"]["vcore"] == 4000
    counts = partition["applications"]
    assert counts["total"] == sum(n for state, n in counts.items() if state != "total")


def test_queues_with_work_in_them(served: Any) -> None:
    """What is empty is left out; no priority is the smallest 32-bit integer."""
    key = served.submit("/bin/sleep", "20", queue="root.small", resources={"cpu": 0.25}, grace_ms=50)
    served.wait(key, "running")
    root = get(served, "/partition/default/queues")
    assert (root["queuename"], root["partition"], root["isLeaf"], root["isManaged"]) == ("root", "default", False, True)
    assert "parent" not in root
    small = next(child for child in root["children"] if child["queuename"] == "root.small")
    assert (small["partition"], small["parent"], small["currentPriority"]) == ("", "root", -2147483648)
    assert (small["maxResource"], small["allocatedResource"]) == ({"vcore": 1000}, {"vcore": 250})
    assert (small["absUsedCapacity"], small["runningApps"]) == ({"vcore": 25}, 1)
    assert "pendingResource" not in small
    served.call("POST", f"/api/v1/jobs/{key}/cancel", {})
    served.wait(key)


def test_nodes_and_applications_show_allocations(served: Any) -> None:
    """To administrators all, to others their own."""
    key = served.submit("/bin/sleep", "20", who="alice", priority=3, grace_ms=50)
    served.wait(key, "running")
    node = get(served, "/partition/default/nodes")[0]
    mine = next(a for a in node["allocations"] if a["allocationKey"] == key)
    assert (mine["applicationId"], mine["priority"], mine["nodeId"]) == (key, "3", node["nodeID"])
    assert node["schedulable"] is True
    assert node["attributes"]["si/node-partition"].endswith("]default")
    assert "allocations" not in get(served, "/partition/default/nodes", "bob")[0]
    found = {a["applicationID"]: a for a in get(served, "/partition/default/applications/active?status=running")}
    assert (found[key]["applicationState"], found[key]["user"], found[key]["queueName"]) == (
        "Running",
        "alice",
        "root.default",
    )
    assert get(served, "/partition/default/applications/active", "bob") == []
    assert key in [a["applicationID"] for a in get(served, "/partition/default/applications/ACTIVE", "alice")]
    served.call("POST", f"/api/v1/jobs/{key}/cancel", {})
    served.wait(key)


@pytest.mark.parametrize(
    ("path", "status", "message"),
    [
        ("/partition/other/queues", 404, "Partition not found"),
        ("/partition/other/nodes", 404, "Partition not found"),
        (
            "/partition/default/applications/new",
            400,
            "Only following application states are allowed: active, rejected, completed",
        ),
        ("/partition/default/applications/active?status=x", 400, "Only following active statuses are allowed: "),
    ],
)
def test_errors_have_yunikorns_shape(served: Any, path: str, status: int, message: str) -> None:
    """Status, message and description."""
    answer = served.call("GET", f"/ws/v1{path}")
    assert answer.status == status
    assert answer.json["status_code"] == status
    assert answer.json["message"].startswith(message)
    assert answer.json["message"] == answer.json["description"]


def test_long_answers_are_compressed_when_asked(served: Any) -> None:
    """From 1,400 bytes on, and only for who names gzip."""
    plain = served.call("GET", "/ws/v1/partition/default/queues")
    packed = served.call("GET", "/ws/v1/partition/default/queues", **{"Accept-Encoding": "deflate, gzip"})
    assert "content-encoding" not in plain.headers
    assert (packed.headers["content-encoding"], "Accept-Encoding" in packed.headers["vary"]) == ("gzip", True)
    assert set(json.loads(gzip.decompress(packed.body))) == set(plain.json)
    short = served.call("GET", "/ws/v1/clusters", **{"Accept-Encoding": "gzip"})
    assert "content-encoding" not in short.headers


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [(0, "0s"), (500, "500ms"), (1500, "1.5s"), (30_000, "30s"), (90_000, "1m30s"), (3_600_000, "1h0m0s")],
)
def test_durations_are_written_as_go_does(milliseconds: int, text: str) -> None:
    """The form that YuniKorn's page reads."""
    assert go_duration(milliseconds) == text
