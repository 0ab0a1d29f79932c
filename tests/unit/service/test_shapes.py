"""What is answered is what is declared: on every route, of a machine and of a cluster.

A new route fails here until it has a case.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import aiohttp
import msgspec
import pytest
from fastapi.routing import APIRoute
from testbed.cluster_service import ClusterService, serving

from fairlead.local.runs import RunReport
from fairlead.service.http.app import SHARED
from fairlead.service.http.shaped import ShapedRoute
from fairlead.wire.cluster import Event, Problem
from fairlead.wire.fields import Shape

RAW = {
    *("endSession", "getFront", "getMetrics", "getJobLogs", "attachToJob", "streamEvents"),
    *("notHere", "readElsewhere", "readConfigurationElsewhere"),
}
"""They answer with text, a stream, a problem, or only to a session; the last two have tests of their own below."""
SCOPES = [{"operator": "Exists"}]


def strictly(body: bytes, shape: type[Shape]) -> Any:
    """The answer as its shape; nothing in it is lost, so nothing in it is undeclared, and nothing is left out."""
    found = msgspec.json.decode(body, type=shape)
    assert msgspec.to_builtins(found) == json.loads(body)
    return found


def operations(routers: Any) -> Iterator[tuple[str, str, str, type[Shape] | None]]:
    """Name, method, path and declared shape of every route."""
    for router in routers:
        for route in router.routes:
            assert isinstance(route, APIRoute)
            first, *others = route.name.split("_")
            name = first + "".join(word.capitalize() for word in others)
            shapes = getattr(route.endpoint, "shapes", None) if isinstance(route, ShapedRoute) else None
            for method in route.methods:
                yield name, method, route.path, shapes[0] if shapes else None


Answered = Callable[..., bytes]


def machine_cases(served: Any, key: str) -> dict[str, tuple[str, Any]]:
    """Of each operation what fills the braces of its path (and a query), and a body."""
    node = served.place.local.node
    text = served.call("GET", "/api/v1/config").json["text"]
    waits = served.submit("/bin/true", queue="root.small", resources={"cpu": 3, "gpu": 2})
    ends = served.submit("/bin/sleep", "60", retry={"limit": 1}, time_limit_ms=50_000)
    script = served.submit("x.sh", script="#!/bin/sh\n", hold=True)
    over = served.submit("/bin/true", hold=True)
    served.call("POST", f"/api/v1/jobs/{over}/cancel", {})
    held = served.submit("/bin/true", queue="root.small", after=[{"key": waits}], begin_at_ms=2**47)
    token = served.call("POST", "/api/v1/tokens", {"name": "x"}).json["id"]
    served.place.local.unknown.add(RunReport(key="900-1", pid=1, started_at_ms=1), None)
    job = {"command": ["/bin/true"], "cwd": "/"}
    return {
        "listJobs": ("", None),
        "getJob": (ends, None),
        "getJobScript": (script, None),
        "submitJobs": ("", {"jobs": [job]}),
        "changeJob": (waits, {"priority": 3}),
        "reserveForJob": (waits, {"why": "a test"}),
        "signalJob": (key, {"number": 18}),
        "suspendJob": (ends, {"why": "a test"}),
        "resumeJob": (ends, {}),
        "requeueJob": (ends, {"hold": True, "why": "a test"}),
        "rerunJob": (over, None),
        "holdJob": (held, {"why": "a test"}),
        "releaseJob": (held, {}),
        "checkpointJob": (key, {}),
        "explainJob": (waits + "?changes=true", None),
        "forecastJob": (waits + "?seconds=1", None),
        "whatIf": ("", {"submit": job | {"queue": "root.batch"}, "forecast": True, "seconds": 1.0}),
        "getForecastScore": ("", None),
        "cancelJob": (ends, {}),
        "cleanJobs": ("", {"older_than_ms": 0, "dry_run": True}),
        "listQueues": ("", None),
        "listNodes": ("", None),
        "drainNode": (node, {}),
        "undrainNode": (node, {}),
        "labelNode": (node, {"attributes": {"disk": "ssd"}, "taints": [{"key": "k", "effect": "PreferNoSchedule"}]}),
        "getInfo": ("", None),
        "getHealth": ("", None),
        "listUsage": ("", None),
        "listLimits": ("", None),
        "getConfig": ("", None),
        "listConfigVersions": ("", None),
        "getConfigStatus": ("", None),
        "checkConfig": ("", {"text": "partitions: []"}),
        "diffConfig": ("", {"text": text.replace("- name: batch", "- name: batch\n          - name: more")}),
        "compareConfig": ("", {"text": text, "days": 1}),
        "applyConfig": ("", {"text": text.replace("- name: batch", "- name: batch\n          - name: other")}),
        "rollBackConfig": ("", {}),
        "setPriorityClass": ("high", {"value": 100}),
        "listPriorityClasses": ("", None),
        "removePriorityClass": ("high", None),
        "setQuota": ("q", {"queue": "root.batch", "resources": {"cpu": 8}, "scopes": []}),
        "listQuotas": ("", None),
        "removeQuota": ("q", None),
        "setBudget": ("b", {"selector": [{"key": "app", "values": ["db"]}], "min_available": "50%"}),
        "listBudgets": ("", None),
        "removeBudget": ("b", None),
        "createTicket": ("", {}),
        "createSession": ("", {}),
        "getChanges": ("?after=0&wait=0", None),
        "listLine": ("?limit=5", None),
        "listKept": ("", None),
        "forecastLine": ("?limit=5&seconds=1", None),
        "listOccupants": (f"?node={node}", None),
        "listGpus": ("", None),
        "setWindow": ("w", {"starts_at_ms": 2**47, "length_ms": 1000, "queues": ["batch"], "users": ["root"]}),
        "listWindows": ("", None),
        "removeWindow": ("w", None),
        "listUnknownRuns": ("", None),
        "stopUnknownRun": ("900-1", {"grace_ms": 1}),
        "createToken": ("", {"name": "t"}),
        "listTokens": ("", None),
        "revokeToken": (token, None),
    }


@pytest.mark.thorough
def test_every_answer_of_a_machine_is_what_is_declared(served: Any) -> None:
    """Each operation, in an order in which it can be done."""
    known = {name: rest for name, *rest in operations([*SHARED, *served.place.routers()]) if name not in RAW}
    key = served.submit("/bin/sleep", "60")
    served.wait(key, "running")
    while not served.show(key)["pid"]:
        time.sleep(0.02)
    cases = machine_cases(served, key)
    assert set(cases) == set(known), "a route without a case, or a case without a route"
    for name, (filled, body) in cases.items():
        method, path, shape = known[name]
        assert shape is not None, f"{name} declares no shape"
        value, _, query = filled.partition("?")
        before, brace, after = path.partition("{")
        target = f"{before}{value}{after.partition('}')[2]}" if brace else path
        answer = served.call(method, f"{target}?{query}" if query else target, body)
        assert answer.status < 300, (name, answer.body)
        strictly(answer.body, shape)


def test_a_difference_and_a_refused_file_have_their_shapes_too(served: Any) -> None:
    """The parts of answers that are empty most of the time."""
    from fairlead.wire.configuration import ConfigDifference
    from fairlead.wire.jobs import JobDetails

    text = served.call("GET", "/api/v1/config").json["text"]
    runs = served.submit("/bin/sleep", "60", queue="root.batch")
    served.wait(runs, "running")
    waits = served.submit("/bin/true", queue="root.batch", resources={"gpu": 9})
    smaller = text.replace("- name: batch", "- {name: batch, resources: {max: {vcore: 500m}}}")
    found = strictly(served.call("POST", "/api/v1/config/diff", {"text": smaller}).body, ConfigDifference)
    assert [queue.kind for queue in found.queues] == ["changed"]
    assert found.over[0].jobs[0].key == runs
    ended = served.submit("/bin/false", retry={"limit": 1, "backoff_ms": 0})
    served.wait(ended, "failed")
    details = strictly(served.call("GET", f"/api/v1/jobs/{ended}").body, JobDetails)
    assert [each.attempt for each in details.past] == [1]
    for key in (runs, waits):
        served.call("POST", f"/api/v1/jobs/{key}/cancel", {})


def test_events_and_problems_have_their_shapes(served: Any) -> None:
    """The data of each event; each error."""
    served.wait(served.submit("/bin/true"))
    connection = served.open()
    connection.request("GET", "/api/v1/events?from=1")
    response = connection.getresponse()
    types = set()
    while "job.ended" not in types:
        line = response.readline()
        if line.startswith(b"data: "):
            types.add(strictly(line.removeprefix(b"data: "), Event).type)
    connection.close()
    assert {"job.submitted", "job.allocated", "job.started"} <= types
    for method, path, body in (
        ("GET", "/api/v1/jobs/999999", None),
        ("GET", "/nowhere", None),
        ("POST", "/api/v1/jobs", {"jobs": [{"command": ["x"], "priority": "high"}]}),
        ("GET", "/api/v1/jobs?limit=none", None),
        ("GET", "/api/v1/nodes?after=x", None),
        ("PUT", "/api/v1/config", {"text": "partitions: []"}),
    ):
        answer = served.call(method, path, body)
        assert answer.headers["content-type"] == "application/problem+json"
        assert strictly(answer.body, Problem).status == answer.status


CLUSTER_CASES = {
    "listJobs": "",
    "getJob": "default/waits",
    "explainJob": "default/waits",
    "forecastJob": "default/waits?seconds=1",
    "getForecastScore": "",
    "listQueues": "",
    "listNodes": "",
    "getInfo": "",
    "getHealth": "",
    "getReadiness": "",
    "listUsage": "",
    "listLimits": "",
    "listLine": "?limit=5",
    "listKept": "",
    "forecastLine": "?limit=5&seconds=1",
    "getChanges": "?after=0&wait=0",
}


@pytest.mark.thorough
@pytest.mark.timeout(120)
@pytest.mark.parametrize("large", [False, True])
async def test_every_answer_of_a_cluster_is_what_is_declared(large: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same shapes, also where a copy of everything answers."""
    monkeypatch.setattr("fairlead.service.kubernetes.place.LARGE", 0 if large else 1_000)
    async with serving() as service:
        known = {name: rest for name, *rest in operations([*SHARED, *service.place.routers()]) if name not in RAW}
        assert {name for name, (method, *_) in known.items() if method == "GET"} == set(CLUSTER_CASES)
        service.pod("runs", "3")
        await service.until(lambda: service.node_of("runs"), "a place")
        service.pod("waits", "3")
        await service.until(lambda: service.place.informer.waiting, "the second")
        async with aiohttp.ClientSession() as session:
            for name, filled in CLUSTER_CASES.items():
                _, path, shape = known[name]
                assert shape is not None
                value, _, query = filled.partition("?")
                target = path.replace("{key}", value) + (f"?{query}" if query else "")
                async with session.get(service.url + target) as answer:
                    assert answer.status == 200, (name, await answer.text())
                    strictly(await answer.read(), shape)
            assert known["whatIf"][0] == "POST"
            body = {"cancel": ["default/runs"], "forecast": True, "seconds": 1.0}
            async with session.post(service.url + "/api/v1/whatif", json=body) as answer:
                found = strictly(await answer.read(), known["whatIf"][2])
                assert [fate.key for fate in found.starts.jobs] == ["default/waits"]
            await _refusals(service, session)


async def _refusals(service: ClusterService, session: aiohttp.ClientSession) -> None:
    for method, path, status in (
        ("GET", "/api/v1/jobs/default/nobody", 404),
        ("GET", "/api/v1/jobs/default/runs/logs", 404),
        ("GET", "/api/v1/config", 404),
        ("GET", "/api/v1/quotas", 404),
        ("POST", "/api/v1/jobs", 405),
        ("GET", "/api/v1/jobs?after=x", 422),
    ):
        async with session.request(method, service.url + path) as answer:
            assert (answer.status, answer.content_type) == (status, "application/problem+json")
            assert strictly(await answer.read(), Problem).status == status
