"""Every route of /ws/v1, asked over real sockets of a real service."""

from __future__ import annotations

import gzip
import http.client
import json
from typing import Any

import pytest

pytestmark = pytest.mark.real

JSON = "application/json; charset=UTF-8"


def get(served: Any, path: str, who: str = "", **headers: str) -> Any:
    answer = served.call("GET", path, who=who, **headers)
    assert answer.status == 200, answer.body
    assert answer.headers["content-type"] == JSON
    assert answer.body.endswith(b"\n")
    return answer.json


@pytest.fixture
def job(served: Any) -> Any:
    """One of alice's jobs that runs."""
    key = served.submit("/bin/sleep", "30", who="alice", queue="root.batch", resources={"cpu": 0.25}, grace_ms=50)
    served.wait(key, "running")
    yield key
    served.call("POST", f"/api/v1/jobs/{key}/cancel", {})
    served.wait(key)


# -- the front ----------------------------------------------------------------------------------------------------


def test_headers_for_pages_of_other_origins(served: Any) -> None:
    """On answers and on errors, below /ws/ alone."""
    for path in ("/ws/v1/clusters", "/ws/v1/partition/none/queues", "/ws/v1/nothing", "/ws/v1/clusters/"):
        answer = served.call("GET", path, Origin="http://page.example")
        assert answer.headers["access-control-allow-origin"] == "*"
    assert "access-control-allow-origin" not in served.call("GET", "/api/v1/jobs", Origin="http://page.example").headers


@pytest.mark.parametrize(
    ("path", "method"), [("/ws/v1/partition/default/queues", "GET"), ("/ws/v1/validate-conf", "POST")]
)
def test_a_browser_that_asks_first_is_asked_for_nothing(served: Any, path: str, method: str) -> None:
    """200 with what is possible, without a token."""
    headers = {"Origin": "http://page.example", "Access-Control-Request-Method": method}
    answer = served.call("OPTIONS", path, who="nobody", **headers)
    assert answer.status == 200
    assert method in answer.headers["access-control-allow-methods"]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/ws/v1/clusters"),
        ("HEAD", "/ws/v1/clusters"),
        ("DELETE", "/debug/stack"),
        ("GET", "/ws/v1/validate-conf"),
    ],
)
def test_wrong_methods(served: Any, method: str, path: str) -> None:
    """405, with what is possible."""
    answer = served.call(method, path)
    assert answer.status == 405
    assert answer.headers["allow"] in ("GET", "POST")
    assert answer.headers["content-type"] == JSON


def test_options_say_what_is_possible(served: Any) -> None:
    """As YuniKorn's router; they need no token and read nothing."""
    answer = served.call("OPTIONS", "/ws/v1/partition/none/queues")
    assert (answer.status, answer.headers["allow"], answer.body) == (200, "GET, OPTIONS", b"")
    assert served.call("OPTIONS", "/ws/v1/validate-conf").headers["allow"] == "OPTIONS, POST"
    assert served.call("OPTIONS", "/ws/v1/nothing").status == 404


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("/ws/v1/clusters/", "/ws/v1/clusters"),
        ("/WS/V1/Clusters", "/ws/v1/clusters"),
        ("/ws//v1/partition/default/Queue/root.small/?subtree", "/ws/v1/partition/default/queue/root.small?subtree"),
        ("/ws/v1/stack", "/debug/stack"),
        ("/ws/v1/fullstatedump", "/debug/fullstatedump"),
    ],
)
def test_other_spellings_lead_to_the_path(served: Any, path: str, target: str) -> None:
    """301."""
    answer = served.call("GET", path)
    assert (answer.status, answer.headers["location"]) == (301, target)


def test_a_post_is_led_without_losing_its_method(served: Any) -> None:
    """308."""
    answer = served.raw("POST", "/ws/v1/validate-conf/", b"")
    assert (answer.status, answer.headers["location"]) == (308, "/ws/v1/validate-conf")


@pytest.mark.parametrize("path", ["/ws/v1/nothing", "/ws/v2/clusters", "/debug/pprof/heap", "/ws/v1/partition//queues"])
def test_unknown_paths(served: Any, path: str) -> None:
    """404, in the shape of all errors there."""
    answer = served.call("GET", path)
    assert (answer.status, answer.json["status_code"]) == (404, 404)
    assert answer.headers["content-type"] == JSON


# -- errors -------------------------------------------------------------------------------------------------------

PART = "/ws/v1/partition/default"
NO_NAME = "invalid queue name, max 64 characters"


@pytest.mark.parametrize(
    ("path", "status", "message"),
    [
        ("/ws/v1/partition/none/placementrules", 404, "Partition not found"),
        ("/ws/v1/partition/DEFAULT/queues", 404, "Partition not found"),
        ("/ws/v1/partition/none/queue/root.a%20b", 404, "Partition not found"),
        ("/ws/v1/partition/none/queue/root.a%20b/applications", 400, NO_NAME),
        (f"{PART}/queue/root.none", 404, "Queue not found"),
        (f"{PART}/queue/root.a%20b", 400, NO_NAME),
        (f"{PART}/queue/root.%25Zc", 400, 'invalid URL escape "%Zc"'),
        (f"{PART}/queue/root.none/applications", 404, "Queue not found"),
        (
            f"{PART}/queue/root.batch/applications/completed",
            400,
            "Only following application states are allowed: active",
        ),
        (f"{PART}/queue/root.batch/applications/active?status=x", 400, "Only following active statuses are allowed: "),
        (f"{PART}/queue/root.batch/application/none", 404, "Application not found"),
        (f"{PART}/application/none", 404, "Application not found"),
        (f"{PART}/node/none", 404, "Node not found"),
        (f"{PART}/usage/user/none", 404, "User not found"),
        (f"{PART}/usage/user/%3F", 400, "Invalid user name"),
        (f"{PART}/usage/group/none", 404, "Group not found"),
        (f"{PART}/usage/group/*", 400, "Invalid group name"),
        ("/ws/v1/events/batch?count=0", 400, '0 is not a valid value for "count"'),
        ("/ws/v1/events/batch?count=-1", 400, "count: '-1' is no whole number"),
        ("/ws/v1/events/batch?start=x", 400, "start: 'x' is no whole number"),
        ("/ws/v1/events/stream?count=x", 400, "count: 'x' is no whole number"),
    ],
)
def test_errors(served: Any, path: str, status: int, message: str) -> None:
    """Status and text, twice, in YuniKorn's shape."""
    answer = served.call("GET", path)
    assert answer.status == status
    assert set(answer.json) == {"status_code", "message", "description"}
    assert answer.json["status_code"] == status
    assert answer.json["message"].startswith(message)
    assert answer.json["message"] == answer.json["description"]


def test_who_is_unknown_gets_the_same_shape(served: Any) -> None:
    """401 with a sentence that says what to do."""
    answer = served.call("GET", "/ws/v1/partitions", who="nobody")
    assert (answer.status, answer.json["status_code"]) == (401, 401)
    assert "token" in answer.json["message"]


# -- queues, applications, nodes ----------------------------------------------------------------------------------


def test_one_queue_with_and_without_what_is_below(served: Any) -> None:
    """`subtree` counts by being there; the path may have any case."""
    alone = get(served, f"{PART}/queue/ROOT")
    whole = get(served, f"{PART}/queue/root?subtree=false")
    assert "children" not in alone
    assert alone["childNames"] == [child["queuename"] for child in whole["children"]]
    assert alone["partition"] == whole["partition"] == ""
    assert get(served, f"{PART}/queues")["partition"] == "default"


def test_an_application_wherever_it_can_be_found(served: Any, job: str) -> None:
    """The same in every list and alone."""
    one = get(served, f"{PART}/application/{job}")
    assert (one["applicationState"], one["usedResource"], one["queueName"]) == ("Running", {"vcore": 250}, "root.batch")
    assert get(served, f"{PART}/queue/root.batch/application/{job}") == one
    assert one in get(served, f"{PART}/queue/root.batch/applications")
    assert one in get(served, f"{PART}/queue/root.batch/applications/Active")
    assert one in get(served, f"{PART}/queue/root.batch/applications/active?status=RUNNING")
    assert one not in get(served, f"{PART}/queue/root.batch/applications/active?status=accepted")
    assert get(served, f"{PART}/queue/root/applications") == []
    assert served.call("GET", f"{PART}/queue/root.small/application/{job}").status == 404


def test_an_application_that_ended_is_among_the_completed(served: Any, job: str) -> None:
    """And not among the active ones; the status is not looked at there."""
    assert job not in [a["applicationID"] for a in get(served, f"{PART}/applications/completed?status=nonsense")]
    assert get(served, f"{PART}/applications/rejected") == []


def test_others_applications_do_not_exist(served: Any, job: str) -> None:
    """Not in lists, not alone, not on nodes, not in usage."""
    assert job in [a["applicationID"] for a in get(served, f"{PART}/queue/root.batch/applications", "alice")]
    assert get(served, f"{PART}/queue/root.batch/applications", "bob") == []
    assert served.call("GET", f"{PART}/application/{job}", who="bob").status == 404
    node = served.place.local.node
    assert job in [a["allocationKey"] for a in get(served, f"{PART}/node/{node}", "alice")["allocations"]]
    assert "allocations" not in get(served, f"{PART}/node/{node}", "bob")
    assert [row["userName"] for row in get(served, f"{PART}/usage/users", "alice")] == ["alice"]
    assert get(served, f"{PART}/usage/users", "bob") == []
    assert served.call("GET", f"{PART}/usage/user/alice", who="bob").status == 404
    assert get(served, f"{PART}/usage/user/alice", "alice")["queues"]["queuePath"] == "root"
    assert get(served, f"{PART}/usage/groups", "bob") == []


def test_a_name_with_a_slash_is_one_value(served: Any) -> None:
    """Escaped it does not end the segment."""
    assert served.call("GET", f"{PART}/queue/root.a%2Fb").json["message"] == "Queue not found"
    assert served.call("GET", f"{PART}/node/a%2Fb").json["message"] == "Node not found"


def test_open_reads_show_everything_but_the_dumps(served: Any, job: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """To anybody over TCP, without a token."""
    monkeypatch.setattr(served.place, "open_reads", True)
    assert get(served, f"{PART}/application/{job}", "nobody")["user"] == "alice"
    assert "alice" in [row["userName"] for row in get(served, f"{PART}/usage/users", "nobody")]
    records = get(served, "/ws/v1/events/batch", "nobody")["EventRecords"]
    assert job in {r.get("objectID") for r in records}
    answer = served.call("GET", "/debug/stack", who="nobody")
    assert (answer.status, answer.json["status_code"]) == (401, 401)


# -- configuration ------------------------------------------------------------------------------------------------


def test_the_configuration_as_yaml_and_as_json(served: Any) -> None:
    """JSON for exactly that type."""
    text = served.call("GET", "/ws/v1/config", Accept="application/json, text/plain")
    assert text.headers["content-type"] == "application/x-yaml; charset=UTF-8"
    assert b"partitions:" in text.body
    found = get(served, "/ws/v1/config", Accept="application/json")
    assert found["Partitions"][0]["Queues"][0]["Name"] == "root"
    assert found["Checksum"] == served.place.runtime.read(lambda s: s.cluster.checksum).result(10)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"partitions: [{name: default, queues: [{name: root}]}]", ""),
        (b"", "line 1: the text is empty"),
        (b"partitions: [{name: default, queues: [{name: root, max: 3}]}]", "line 1: partitions[0].queues[0]"),
        (b"partitions: [{name: other, queues: [{name: root}]}]", "line 1: partitions[0].name: no partition is named"),
        (b"\xff", "no valid UTF-8"),
    ],
)
def test_a_configuration_is_judged_and_nothing_changes(served: Any, text: bytes, reason: str) -> None:
    """Always 200; the first reason when it is not allowed."""
    before = served.call("GET", "/ws/v1/config").body
    answer = served.raw("POST", "/ws/v1/validate-conf", text, **{"Content-Type": "application/x-yaml"})
    assert answer.status == 200
    assert answer.json["allowed"] is (not reason)
    assert answer.json.get("reason", "").startswith(reason)
    assert ("reason" in answer.json) is bool(reason)
    assert served.call("GET", "/ws/v1/config").body == before


# -- watching -----------------------------------------------------------------------------------------------------


def test_history_has_a_sample_from_the_start(served: Any) -> None:
    """Figures are texts, times nanoseconds."""
    for path, name in (("apps", "totalApplications"), ("containers", "totalContainers")):
        sample = get(served, f"/ws/v1/history/{path}")[0]
        assert set(sample) == {"timestamp", name}
        assert sample[name].isdigit()
        assert len(str(sample["timestamp"])) == 19


def test_a_service_whose_books_are_in_order_is_healthy(served: Any, job: str) -> None:
    """Every check names itself and says what it found."""
    found = get(served, "/ws/v1/scheduler/healthcheck")
    assert found["Healthy"] is True, found
    assert {"Scheduling errors", "Consistency of data", "Reservation check"} <= {
        c["Name"] for c in found["HealthChecks"]
    }
    assert all(c["Succeeded"] and c["Description"] and c["DiagnosisMessage"] for c in found["HealthChecks"])


def test_metrics_have_both_names(served: Any, job: str) -> None:
    """In both places."""
    for path in ("/ws/v1/metrics", "/metrics"):
        text = served.call("GET", path).body.decode()
        assert "\nfairlead_queue_running_applications" in text
        assert 'yunikorn_scheduler_application_total{state="running"}' in text
        assert 'yunikorn_queue_app{queue="root.batch",state="running"} 1.0\n' in text
        assert 'yunikorn_queue_resource{queue="root.batch",resource="vcore",state="allocated"} 250.0\n' in text
        assert 'yunikorn_root_batch_queue_container{state="allocated"}' in text


def test_everything_at_once_is_for_administrators(served: Any, job: str) -> None:
    """Pretty printed; what is empty is left out."""
    answer = served.call("GET", "/debug/fullstatedump")
    assert answer.body.startswith(b"{\n  ")
    found = answer.json
    assert job in [a["applicationID"] for a in found["applications"]]
    assert found["nodes"][0]["partitionName"] == "default"
    assert found["placementRules"][0]["rules"][-1]["name"] == "recovery"
    assert found["rmDiagnostics"]
    assert found["config"]["Partitions"]
    assert found["queues"][0]["queuename"] == "root"
    for path in ("/debug/fullstatedump", "/debug/stack"):
        assert served.call("GET", path, who="alice").status == 403
        assert served.call("GET", path, who="carol").status == 200


def test_the_stack_names_the_writer(served: Any) -> None:
    """Each thread with its lines."""
    answer = served.call("GET", "/debug/stack")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert "fairlead-writer:" in answer.body.decode()


def test_compression_for_text_too(served: Any) -> None:
    """Metrics are long."""
    packed = served.call("GET", "/ws/v1/metrics", **{"Accept-Encoding": "gzip"})
    assert (packed.headers["content-encoding"], "Accept-Encoding" in packed.headers["vary"]) == ("gzip", True)
    assert b"yunikorn_" in gzip.decompress(packed.body)


# -- what YuniKorn's web page reads -------------------------------------------------------------------------------


def test_the_web_page_finds_what_it_reads(served: Any, job: str) -> None:
    """Field by field."""
    cluster = get(served, "/ws/v1/clusters")[0]
    assert {"startTime", "partition", "clusterName"} <= set(cluster)
    assert {"buildDate", "buildVersion", "rmId"} <= set(cluster["rmBuildInformation"][0])
    partition = get(served, "/ws/v1/partitions")[0]
    assert {"name", "totalNodes", "totalContainers", "state", "capacity", "clusterId"} <= set(partition)
    assert partition["nodeSortingPolicy"]["type"] in ("fair", "binpacking")
    assert partition["applications"]["total"] >= partition["applications"]["Running"] >= 1
    root = get(served, f"{PART}/queues")
    queue = next(child for child in root["children"] if child["queuename"] == "root.batch")
    assert {"queuename", "status", "partition", "isLeaf", "isManaged", "allocatedResource"} <= set(queue)
    app = next(a for a in get(served, f"{PART}/queue/root.batch/applications") if a["applicationID"] == job)
    assert {"applicationID", "usedResource", "maxUsedResource", "submissionTime", "applicationState"} <= set(app)
    assert all(isinstance(step["time"], int) for step in app["stateLog"])
    assert {"allocationKey", "resource", "priority", "nodeId", "applicationId"} <= set(app["allocations"][0])
    node = get(served, f"{PART}/nodes")[0]
    assert {"nodeID", "hostName", "capacity", "allocated", "available", "utilized", "attributes", "allocations"} <= set(
        node
    )
    utilised = get(served, "/ws/v1/scheduler/node-utilizations")[0]
    assert utilised["partition"] == "default"
    assert {"bucketName", "numOfNodes", "nodeNames"} in [set(b) for b in utilised["utilizations"][0]["utilization"]]


# -- event records ------------------------------------------------------------------------------------------------


def test_records_in_batches(served: Any, job: str) -> None:
    """Numbers go on from page to page; a start beyond the end gives none."""
    whole = get(served, "/ws/v1/events/batch")
    assert set(whole) == {"InstanceUUID", "LowestID", "HighestID", "EventRecords"}
    assert (whole["LowestID"], len(whole["EventRecords"])) == (0, whole["HighestID"] + 1)
    assert get(served, "/ws/v1/events/batch?count=3&start=2")["EventRecords"] == whole["EventRecords"][2:5]
    beyond = get(served, f"/ws/v1/events/batch?start={whole['HighestID'] + 10**6}")
    assert beyond["EventRecords"] is None
    assert beyond["InstanceUUID"] == whole["InstanceUUID"]
    mine = [r for r in whole["EventRecords"] if r.get("objectID") == job]
    assert [r["eventChangeDetail"] for r in mine] == [203, 204, 201, 200, 206]
    allocated = next(r for r in mine if r["eventChangeDetail"] == 200)
    assert allocated["resource"] == {"resources": {"vcore": {"value": 250}}}
    assert allocated["referenceID"] == job


def test_records_about_others_are_left_out(served: Any, job: str) -> None:
    """What concerns everybody is there."""
    seen = get(served, "/ws/v1/events/batch", "bob")
    assert job not in {r.get("objectID") for r in seen["EventRecords"] if r["type"] == 2}
    assert not [r for r in seen["EventRecords"] if r.get("referenceID") == job]
    assert {3, 4} <= {r["type"] for r in seen["EventRecords"]}
    assert job in {r.get("objectID") for r in get(served, "/ws/v1/events/batch", "alice")["EventRecords"]}


class Tail:
    """One open stream."""

    def __init__(self, served: Any, query: str = "", who: str = "", host: str = "") -> None:
        self.connection: http.client.HTTPConnection = served.open(who)
        headers = served.headers(who) | ({"Host": host} if host else {})
        self.connection.request("GET", f"/ws/v1/events/stream{query}", headers=headers)
        self.response = self.connection.getresponse()

    def line(self) -> Any:
        return json.loads(self.response.readline())

    def until(self, **wanted: Any) -> list[Any]:
        found = []
        while True:
            found.append(self.line())
            if wanted.items() <= found[-1].items():
                return found

    def close(self) -> None:
        self.response.close()
        self.connection.close()


def test_a_stream_begins_with_who_tells_and_goes_on(served: Any) -> None:
    """Without a count only what is new, in order."""
    tail = Tail(served, who="carol")
    assert tail.response.status == 200
    assert tail.response.getheader("Content-Type") == JSON
    assert tail.line() == {"InstanceUUID": served.place.history_records.instance}
    key = served.submit("/bin/true", who="alice")
    records = tail.until(objectID=key, eventChangeDetail=207)
    tail.close()
    assert [r["eventChangeDetail"] for r in records if r.get("objectID") == key] == [203, 204, 201, 200, 206, 500, 207]


def test_a_stream_joins_history_and_what_is_new(served: Any) -> None:
    """Every record once, as the batches have them."""
    key = served.submit("/bin/true")
    served.wait(key)
    tail = Tail(served, "?count=5")
    tail.line()
    later = served.submit("/bin/true")
    records = tail.until(objectID=later, eventChangeDetail=207)
    tail.close()
    whole = get(served, "/ws/v1/events/batch")["EventRecords"]
    first = len(whole) - 1 - whole[::-1].index(records[0])
    assert records == whole[first : first + len(records)]
    assert [r["eventChangeDetail"] for r in records if r.get("objectID") == key][-1] == 207


def test_a_stream_leaves_out_others(served: Any) -> None:
    """Live and from history."""
    hidden = served.submit("/bin/true", who="alice")
    tail = Tail(served, "?count=100000", who="bob")
    tail.line()
    also = served.submit("/bin/true", who="alice")
    mine = served.submit("/bin/true", who="bob")
    records = tail.until(objectID=mine, eventChangeDetail=207)
    tail.close()
    assert not {hidden, also} & {r.get("objectID") for r in records if r["type"] == 2}


def test_too_many_streams_of_one_host(served: Any) -> None:
    """The sixteenth is refused; another host is not, and who leaves makes room."""
    tails = [Tail(served, host="crowded") for _ in range(15)]
    for tail in tails:
        tail.line()
    refused = Tail(served, host="crowded")
    assert refused.response.status == 503
    assert json.loads(refused.response.read())["message"] == "Too many streaming connections"
    other = Tail(served, host="elsewhere")
    assert other.response.status == 200
    for tail in [*tails, refused, other]:
        tail.close()
