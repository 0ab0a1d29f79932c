"""Queues, nodes, configuration, figures, and what the service says of itself."""

from __future__ import annotations

import os
import re
from typing import Any

import pytest

from fairlead.local.pressure import Step

pytestmark = pytest.mark.real


def flat(queue: dict[str, Any]) -> dict[str, dict[str, Any]]:
    found = {queue["path"]: queue}
    for child in queue["children"]:
        found |= flat(child)
    return found


def test_queues_show_what_they_may_use_and_use(served: Any) -> None:
    """The tree, with sums at the parent."""
    key = served.submit("/bin/sleep", "20", queue="root.small", resources={"cpu": 0.6}, priority=5, grace_ms=100)
    waits = served.submit("/bin/sleep", "20", queue="root.small", resources={"cpu": 0.6}, priority=4)
    served.wait(key, "running")
    queues = flat(served.call("GET", "/api/v1/queues", who="bob").json["queues"][0])
    small, root = queues["root.small"], queues["root"]
    assert (small["leaf"], small["state"], small["max"]) == (True, "active", {"cpu": 1})
    assert (small["allocated"], small["pending"], small["headroom"]["cpu"]) == ({"cpu": 0.6}, {"cpu": 0.6}, 0.4)
    assert (small["waiting"], small["running_applications"], small["priority"]) == (1, 1, 4)
    assert root["allocated"]["cpu"] >= 0.6
    assert root["waiting"] >= 1
    for each in (waits, key):
        served.call("POST", f"/api/v1/jobs/{each}/cancel", {})
    served.wait(key)
    assert flat(served.call("GET", "/api/v1/queues").json["queues"][0])["root.small"]["priority"] is None


def test_the_case_of_a_queues_name_does_not_count(served: Any) -> None:
    """As in the list of jobs and wherever else a queue is named."""
    for route in ("queues", "usage", "limits"):
        written = [served.call("GET", f"/api/v1/{route}?queue={each}").json for each in ("root.small", "ROOT.Small")]
        assert written[0] == written[1], route
    assert served.call("GET", "/api/v1/queues?queue=Root.SMALL").json["total"] == 1


def test_idle_work_is_shown_where_it_comes_from_and_where_it_counts(served: Any) -> None:
    """Beside the books of its queue, in those of its resource group."""
    key = served.submit("/bin/sleep", "20", queue="root.small", resources={"cpu": 1.2}, idle=True, grace_ms=100)
    served.wait(key, "running")
    queues = flat(served.call("GET", "/api/v1/queues").json["queues"][0])
    small, root = queues["root.small"], queues["root"]
    assert (small["allocated"], small["idle"]) == ({}, {"cpu": 1.2})
    assert (root["allocated"]["cpu"] >= 1.2, root["idle"]) == (True, {})
    served.call("POST", f"/api/v1/jobs/{key}/cancel", {})
    served.wait(key)


def test_the_machine_is_a_node_and_can_be_drained(served: Any) -> None:
    """By administrators; drained, it takes no new work."""
    node = served.call("GET", "/api/v1/nodes").json["nodes"][0]
    assert node["capacity"] == {"gpu": 2, "memory": 8 * 2**30, "cpu": 4}
    assert node["schedulable"] is True
    assert served.call("POST", f"/api/v1/nodes/{node['id']}/drain", {}, "bob").status == 403
    assert served.call("POST", f"/api/v1/nodes/{node['id']}/drain", {}).json["schedulable"] is False
    key = served.submit("/bin/true")
    assert served.show(key)["state"] == "waiting"
    assert served.call("POST", f"/api/v1/nodes/{node['id']}/undrain", {}).json["schedulable"] is True
    assert served.wait(key)["state"] == "succeeded"
    assert served.call("POST", "/api/v1/nodes/nowhere/drain", {}).error["code"] == "not-found"


def test_what_was_drained_while_memory_was_short_stays_drained(served: Any) -> None:
    """The node was closed already, and is opened when there is enough again only where nobody wants it drained."""
    node = served.call("GET", "/api/v1/nodes").json["nodes"][0]["id"]

    def memory(step: Step) -> None:
        guard, jobs = served.place.memory_guard, served.place.local.jobs
        served.place.runtime.do(lambda turn: guard.enter(turn, jobs, step, None, node)).result(10)

    for act, is_open in ((None, True), ("drain", False)):
        memory(Step.BEGIN)
        if act is not None:
            served.call("POST", f"/api/v1/nodes/{node}/{act}", {})
        memory(Step.END)
        assert served.call("GET", "/api/v1/nodes").json["nodes"][0]["schedulable"] is is_open
    served.call("POST", f"/api/v1/nodes/{node}/undrain", {})


def test_the_service_says_what_it_is_and_what_it_enforces(served: Any) -> None:
    """Each capability with a sentence."""
    info = served.call("GET", "/api/v1/info", who="bob").json
    machine = info["machine"]
    assert (info["user"], info["is_admin"], info["cluster"]) == ("bob", False, None)
    assert (machine["serves"], machine["pid"]) == ("everyone", os.getpid())
    assert info["partition_total"]["cpu"] == 4
    assert machine["journal"]["last_seq"] > 0
    assert machine["journal"]["size_bytes"] > 0
    assert info["problems"] == []
    assert {"from_snapshot", "records", "milliseconds", "notes"} == set(machine["recovery"])
    assert all(set(c) == {"name", "enforced", "how"} and c["how"] for c in machine["capabilities"])


def test_a_queue_file_is_checked_with_all_its_problems(served: Any) -> None:
    """Line, column, path; and nothing changes."""
    bad = "partitions:\n  - name: default\n    queues:\n      - name: root\n        queues:\n          - nome: x\n"
    verdict = served.call("POST", "/api/v1/config/check", {"text": bad}, "bob").json
    assert verdict["ok"] is False
    assert verdict["errors"][0]["line"] == 6
    good = served.call("GET", "/api/v1/config", who="bob").json["text"]
    assert served.call("POST", "/api/v1/config/check", {"text": good}).json["ok"] is True


def test_a_queue_file_is_put_in_force_by_administrators(served: Any) -> None:
    """As one step; a bad one changes nothing, and is answered with everything that is wrong."""
    before = served.call("GET", "/api/v1/config").json
    grown = before["text"].replace("- name: batch", "- name: batch\n          - name: extra")
    assert served.call("PUT", "/api/v1/config", {"text": grown}, "bob").status == 403
    applied = served.call("PUT", "/api/v1/config", {"text": grown}).json
    assert applied["checksum"] != before["checksum"]
    assert served.wait(served.submit("/bin/true", queue="root.extra"))["state"] == "succeeded"
    refused = served.call("PUT", "/api/v1/config", {"text": grown.replace("vcore: 1}", "vcore: -1}")})
    assert refused.status == 422
    assert refused.error["details"]
    other = "partitions: [{name: gpu, queues: [{name: root, submitacl: '*'}]}]"
    assert "no partition is named default" in served.call("PUT", "/api/v1/config", {"text": other}).error["detail"]
    assert applied.pop("changed") is True
    assert served.call("GET", "/api/v1/config").json == applied
    again = served.call("PUT", "/api/v1/config", {"text": before["text"]}).json
    assert (again["text"], again["version"]) == (before["text"], applied["version"] + 1)


def test_figures_for_prometheus_add_up(served: Any) -> None:
    """Parsed by the library that reads them; no series a job."""
    from prometheus_client.parser import text_string_to_metric_families

    served.wait(served.submit("/bin/true"))
    text = served.call("GET", "/metrics").body.decode()
    samples = {
        (s.name, tuple(sorted(s.labels.items()))): s.value
        for f in text_string_to_metric_families(text)
        for s in f.samples
    }
    assert samples["fairlead_healthy", ()] == 1
    assert samples["fairlead_allocations_total", ()] >= 1
    assert samples["fairlead_jobs", (("state", "succeeded"),)] >= 1
    assert samples["fairlead_turn_seconds_count", ()] == samples["fairlead_turn_seconds_bucket", (("le", "+Inf"),)] > 0
    node = served.place.local.node
    assert samples["fairlead_node_resource", (("kind", "capacity"), ("node", node), ("resource", "cpu"))] == 4


def test_the_description_is_openapi_3_1_and_names_every_route(served: Any) -> None:
    """With the shape of errors; and no page asks another host for anything."""
    described = served.call("GET", "/api/v1/openapi.json").json
    assert described["openapi"].startswith("3.1")
    submit = described["paths"]["/api/v1/jobs"]["post"]
    assert {"201", "401", "409", "413", "422", "503"} <= set(submit["responses"])
    assert submit["responses"]["422"]["content"]["application/problem+json"]["schema"]["$ref"].endswith("/Problem")
    for path, operations in described["paths"].items():
        for operation in operations.values() if path.startswith("/api/v1/") else ():
            assert {"408", "413", "429", "431"} <= set(operation["responses"]), "by how it is sent, and how often"
    assert "415" in described["paths"]["/api/v1/whatif"]["post"]["responses"]
    assert "415" not in described["paths"]["/api/v1/jobs"]["get"]["responses"]
    assert {"/ws/v1/partitions", "/metrics", "/healthz", "/api/v1/events"} <= set(described["paths"])
    assert "HTTPValidationError" not in described["components"]["schemas"]
    assert served.call("GET", "/docs").status == served.call("GET", "/redoc").status == 404


def test_each_operation_has_a_name_of_its_own_that_a_client_can_bear(served: Any) -> None:
    """`getJob`, not `show_api_v1_jobs__key__get`: generated clients call their functions by it."""
    paths = served.call("GET", "/api/v1/openapi.json").json["paths"]
    found = {operation["operationId"]: path for path, verbs in paths.items() for operation in verbs.values()}
    assert len(found) == sum(len(verbs) for verbs in paths.values())
    assert all(re.fullmatch("[a-z]+([A-Z][a-z0-9]+)*", name) for name in found)
    assert {name for name in found if name.endswith(("Job", "Jobs", "JobLogs"))} == {
        *(
            "attachToJob",
            "submitJobs",
            "listJobs",
            "getJob",
            "changeJob",
            "cancelJob",
            "checkpointJob",
            "reserveForJob",
            "holdJob",
            "releaseJob",
            "requeueJob",
            "signalJob",
            "rerunJob",
            "cleanJobs",
            "suspendJob",
            "resumeJob",
        ),
        *("explainJob", "forecastJob", "getJobLogs"),
    }
    assert found["yunikornQueues"] == "/ws/v1/partition/{partition}/queues"
