"""Questions to a scheduler on a cluster: when, what if with forecasts, views of much, and pods that ended."""

from __future__ import annotations

import json
import re
import time
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from testbed.cluster_service import ClusterService, serving
from testbed.fake_server import FakeServer

from fairlead.insight.runtimes import Runtimes
from fairlead.service.kubernetes import place as place_module

pytestmark = pytest.mark.timeout(120)


async def _two_of_which_one_waits(service: ClusterService, **first: Any) -> None:
    service.pod("first", "3", **first)
    await service.until(lambda: service.node_of("first"), "a place")
    service.pod("second", "3")
    await service.until(lambda: "second" in {k.name.name for k in _waiting(service)}, "the second")


def _waiting(service: ClusterService) -> list[Any]:
    informer = service.place.informer
    return [informer.pod_store.by_uid[uid] for uid in informer.waiting]


@pytest.mark.thorough
async def test_when_rests_on_what_alike_pods_took_and_is_scored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five that ended make an experience; the start that follows is held against what was said. Each is taken to have
    run for half a minute: as short as they ran, a busy machine makes the next one outlast all of them.
    """
    learn = Runtimes.learn
    monkeypatch.setattr(Runtimes, "learn", lambda self, kind, _: learn(self, kind, 30_000))
    async with serving() as service:
        for number in range(5):
            service.pod(f"early{number}", "3")
            await service.until(lambda n=number: service.node_of(f"early{n}"), "a place")  # type: ignore[misc]
            await service.ends(f"early{number}")
        await service.until(lambda: service.place.pod_history.runtimes.ends == 5, "five ends")
        await _two_of_which_one_waits(service)
        told = await service.get("/api/v1/jobs/default/second/forecast?seconds=60")
        assert told["key"] == "default/second"
        assert told["made_ms"] <= told["median_ms"] < told["made_ms"] + 60_000
        assert "5 ends, mostly by: user, name, limit and size (1)" in " ".join(told["assumptions"])
        assert told["score"]["open"] == 1
        assert "default/second: 80 %: " in await service.cli("when", "pod/second")
        await service.ends("first")
        await service.until(lambda: service.node_of("second"), "its start")
        await service.until(lambda: service.place.pod_history.card.scored == 2, "the score of both answers")
        assert (await service.get("/api/v1/forecasts/score"))["open"] == 0


@pytest.mark.thorough
async def test_a_name_alone_is_one_in_the_namespace_default_whatever_is_asked_about_it() -> None:
    """Also for a pod that is called as what is asked."""
    async with serving() as service:
        for name in ("web", "why"):
            service.pod(name, "9")
        await service.until(lambda: len(_waiting(service)) == 2, "the pods")
        for name in ("web", "default/web", "default/why"):
            assert "waiting" in await service.cli("why", name)
            assert "waiting" in await service.cli("show", name)
        assert (await service.get("/api/v1/jobs/web/why"))["key"] == "default/web"
        assert (await service.get("/api/v1/jobs/default/web/why"))["key"] == "default/web"


@pytest.mark.thorough
async def test_what_is_restarted_for_ever_never_ends() -> None:
    """So no start is in sight, and the answer says why; a deadline ends it all the same."""
    async with serving() as service:
        await _two_of_which_one_waits(service, restartPolicy="Always")
        told = await service.get("/api/v1/jobs/default/second/forecast?seconds=60")
        assert (told["median_ms"], told["never"]) == (None, 1.0)
        assert "restartPolicy Always" in " ".join(told["assumptions"])
        assert "no start in sight" in await service.cli("when", "pod/second")
    async with serving() as service:
        await _two_of_which_one_waits(service, restartPolicy="Always", activeDeadlineSeconds=600)
        told = await service.get("/api/v1/jobs/default/second/forecast?seconds=60")
        assert told["made_ms"] + 500_000 < told["latest_ms"] <= told["made_ms"] + 600_000
        assert (told["known"], told["median_ms"]) == (False, None), "nothing has ended here yet"
        assert "it is not known yet when" in await service.cli("when", "pod/second")


async def test_what_ran_before_the_start_is_not_taken_for_young() -> None:
    """A pod with a deadline of an hour that has run for 59 minutes ends within one."""
    server = FakeServer()
    began = datetime.fromtimestamp(time.time() - 59 * 60, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    spec = {"schedulerName": "fairlead", "nodeName": "n0", "activeDeadlineSeconds": 3600}
    spec["containers"] = [{"name": "c", "resources": {"requests": {"cpu": "3"}}}]
    meta = {"name": "old", "namespace": "default", "uid": str(uuid.uuid4())}
    server.put("pods", {"metadata": meta, "spec": spec, "status": {"phase": "Running", "startTime": began}})
    async with serving(server=server) as service:
        service.pod("second", "3")
        await service.until(lambda: _waiting(service), "the second")
        told = await service.get("/api/v1/jobs/default/second/forecast?seconds=60")
        assert told["latest_ms"] <= told["made_ms"] + 61_000
        known = service.place.informer.pod_store.named("default", "old")
        assert known is not None
        app = service.place.scheduler.cluster.partitions["default"].applications[known.application]
        assert app.asks[known.name.uid].allocated_ms == datetime.fromisoformat(began).timestamp() * 1000


async def test_only_what_is_in_line_has_a_forecast() -> None:
    """One sentence for the others."""
    async with serving() as service:
        service.pod("first", "3")
        await service.until(lambda: service.node_of("first"), "a place")
        said = await service.cli("when", "pod/first", status=4)
        assert "job default/first is running and not in line" in said
        assert "no pod default/nobody" in await service.cli("when", "pod/nobody", status=4)


async def test_what_if_says_whose_start_would_move() -> None:
    """With --forecast."""
    async with serving() as service:
        await _two_of_which_one_waits(service, restartPolicy="Always", activeDeadlineSeconds=600)
        answer = await service.cli("whatif", "cancel", "pod/first", "--forecast")
        assert "would start: default/second" in answer
        assert "default/second" in answer.split("would start", 1)[1].split("\n", 1)[1], answer


async def test_a_pod_that_ended_is_shown_until_its_name_is_taken_again() -> None:
    """How it ended, where and how long it ran."""
    async with serving() as service:
        service.pod("job", "3", labels={"applicationId": "app-1"})
        await service.until(lambda: service.node_of("job"), "a place")
        await service.ends("job", "Failed")
        await service.until(lambda: "default/job" in service.place.pod_history.ended, "its end")
        row = await service.get("/api/v1/jobs/default/job")
        assert (row["state"], row["node"], row["queue"]) == ("failed", "n0", "root.default")
        assert row["started_at_ms"] <= row["ended_at_ms"]
        assert await service.get("/api/v1/jobs/job") == row, "a name alone is one in default, when it has ended, too"
        service.server.remove("pods", "job", "default")
        service.pod("job", "1")
        await service.until(lambda: service.node_of("job"), "a place")
        assert (await service.get("/api/v1/jobs/default/job"))["state"] == "running"


async def test_pods_are_listed_by_namespace() -> None:
    """Each namespace alone, or all of them; the total counts what passes."""
    async with serving(nodes=3) as service:
        for namespace in ("shop", "lab"):
            service.pod(f"in-{namespace}", "1", namespace=namespace)
        everything = await service.until_get("/api/v1/jobs", lambda page: page["total"] == 2)
        assert {row["key"] for row in everything["jobs"]} == {"shop/in-shop", "lab/in-lab"}
        shop = await service.get("/api/v1/jobs?namespace=shop")
        assert ([row["key"] for row in shop["jobs"]], shop["total"]) == (["shop/in-shop"], 1)
        assert (await service.get("/api/v1/jobs?namespace=sho"))["jobs"] == []


CHART = Path(__file__).resolve().parents[4] / "deploy" / "helm" / "fairlead"


def unknown_figures(figures: str) -> set[str]:
    """The figures that the chart's alerts and dashboard name, and that are not among these."""
    named = (CHART / "dashboards" / "fairlead.json").read_text() + (CHART / "templates" / "monitoring.yaml").read_text()
    found = set(re.findall(r"\b(?:scheduler|fairlead)_[a-z_]+", named)) - {"fairlead_kubernetes"}
    assert len(found) > 8
    return {name for name in found if not re.search(rf"^{name}[{{ ]", figures, re.MULTILINE)}


@pytest.mark.parametrize("large", [False, True])
async def test_views_of_much_are_the_same_from_a_copy(large: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """And errors are; nothing is shown by a pod's identity."""
    monkeypatch.setattr(place_module, "LARGE", 0 if large else 1_000)
    async with serving(nodes=3) as service:
        service.pod("first", "3")
        service.pod("second", "3")
        await service.until(lambda: service.node_of("first") and service.node_of("second"), "places")
        service.pod("huge", "9")
        await service.until(lambda: _waiting(service), "the huge one")
        assert service.place.is_large() is large
        # In which order depends on the seconds they were created in.
        rows = {row["key"]: row for row in (await service.get("/api/v1/jobs"))["jobs"]}
        first, second, _ = rows
        assert (rows["default/first"]["state"], rows["default/huge"]["state"]) == ("running", "waiting")
        assert "cpu" in rows["default/huge"]["reason"]["sentence"]
        begin = await service.get("/api/v1/jobs?limit=1")
        assert [row["key"] for row in begin["jobs"]] == [first]
        page = await service.get(f"/api/v1/jobs?limit=1&after={quote(begin['next'])}")
        assert ([row["key"] for row in page["jobs"]], page["total"]) == ([second], 3)
        assert len((await service.get("/api/v1/nodes"))["nodes"]) == 3
        assert "root.default" in json.dumps(await service.get("/api/v1/queues"))
        figures = await service.until_get("/metrics", lambda text: 'queue="unschedulable"} 1.0' in text)
        assert 'fairlead_kubernetes_pods{state="waiting"} 1.0' in figures
        for name, value in (("active", 0), ("backoff", 0), ("gated", 0), ("unschedulable", 1)):
            assert f'scheduler_pending_pods{{queue="{name}"}} {value}.0' in figures
        assert 'scheduler_schedule_attempts_total{profile="fairlead",result="scheduled"} 2.0' in figures
        assert 'scheduler_schedule_attempts_total{profile="fairlead",result="unschedulable"} 1.0' in figures
        assert "scheduler_pod_scheduling_sli_duration_seconds_count 2.0" in figures
        assert "scheduler_preemption_victims_count 0.0" in figures
        assert 'yunikorn_root_default_queue_container{state="allocated"} 2.0' in figures
        assert 'yunikorn_scheduler_application_submission_total{result="new"} 1.0' in figures
        records = (await service.get("/ws/v1/events/batch"))["EventRecords"]
        assert len({each["referenceID"] for each in records if each.get("eventChangeDetail") == 201}) == 3
        assert unknown_figures(figures) == set(), "the chart names figures that are not there"
        assert len(await service.get("/ws/v1/partition/default/nodes")) == 3
        assert (await service.get("/ws/v1/scheduler/healthcheck"))["Healthy"] is True
        missing = await service.get("/ws/v1/partition/none/nodes", status=404)
        assert missing["message"] == "Partition not found"
        dumped = await service.get("/debug/fullstatedump")
        assert [len(one["nodesInfo"]) for one in dumped["nodes"]] == [3]
        assert dumped["config"]["Partitions"][0]["Name"] == "default"


async def test_at_the_start_pods_of_one_second_stand_as_they_came() -> None:
    """Whatever their names; one that came first and says a later second stands later."""
    server = FakeServer()
    for name in ("a100", "p10", "p9", "p2"):
        container = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
        meta = {"name": name, "namespace": "default", "uid": str(uuid.uuid4())}
        meta["creationTimestamp"] = f"2026-01-01T00:00:0{2 if name == 'a100' else 1}Z"
        spec = {"schedulerName": "fairlead", "restartPolicy": "Never", "containers": [container]}
        server.put("pods", {"metadata": meta, "spec": spec, "status": {"phase": "Pending"}})
    async with serving(cpu="1", server=server) as service:
        for name in ("p10", "p9", "p2", "a100"):
            await service.until(lambda n=name: service.node_of(n), f"a place for {name}")  # type: ignore[misc]
            await service.ends(name)
        bound = [what for _, verb, _, what, _ in server.log.entries if verb == "bind"]
        assert [name.partition("/")[2] for name in bound] == ["p10", "p9", "p2", "a100"]


@pytest.mark.parametrize(
    "words", [("cancel", "pod/first"), ("submit", "--", "true"), ("drain", "n0"), ("priority", "pod/first", "5")]
)
async def test_what_would_change_a_cluster_is_kubectls_business(words: tuple[str, ...]) -> None:
    """Every such command says so."""
    async with serving() as service:
        assert "a cluster is changed through its API server, not here: kubectl" in await service.cli(*words, status=4)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("config", "show"), "the queues here come from the built-in queues, and from objects (`kubectl get queues."),
        (("config", "history"), "`fairlead queues` shows what is in force"),
        (("priority-class", "list"), "`kubectl get priorityclasses`"),
        (("quota", "list"), "`kubectl get resourcequotas -A`"),
        (("budget", "list"), "`kubectl get poddisruptionbudgets -A`"),
        (("maintenance", "ls"), "`kubectl cordon NODE`"),
        (("token", "list"), "`kubectl create token ACCOUNT`"),
        (("gpus",), "`fairlead nodes`"),
        (("unknown",), "`kubectl get pods -A`"),
    ],
)
async def test_what_a_cluster_keeps_itself_is_asked_there(words: tuple[str, ...], said: str) -> None:
    """It was told that other methods are possible at that path, and none was."""
    async with serving() as service:
        assert said in await service.cli(*words, status=4)


async def test_what_is_nowhere_is_not_there() -> None:
    async with serving() as service:
        assert "nothing can be read at /api/v1/nothing" in (await service.get("/api/v1/nothing", status=404))["detail"]


async def test_what_a_pod_wrote_is_with_the_cluster() -> None:
    """And the sentence says how to see it: of a pod that runs, of one that is long gone, and of another namespace."""
    async with serving() as service:
        assert "`kubectl logs first` shows it" in await service.cli("logs", "pod/first", status=4)
        assert "`kubectl logs web -n shop` shows it" in await service.cli("logs", "pod/shop/web", status=4)
        service.pod("first", "3")
        await service.until(lambda: service.node_of("first"), "a place")
        assert "`kubectl logs first` shows it" in await service.cli("logs", "-f", "pod/first", status=4)


async def test_operations_are_called_as_on_a_machine() -> None:
    """So that one generated client serves both."""
    async with serving() as service:
        paths = (await service.get("/api/v1/openapi.json"))["paths"]
        found = [operation["operationId"] for verbs in paths.values() for operation in verbs.values()]
        assert len(set(found)) == len(found)
        assert {"listJobs", "getJob", "explainJob", "forecastJob", "listQueues", "getInfo", "whatIf"} <= set(found)


async def test_an_object_that_cannot_be_read_is_a_problem_and_no_other_one_waits_for_it() -> None:
    """Also when it is there at the start: all other pods are scheduled meanwhile."""
    server = FakeServer()
    server.put("pods", {"metadata": {"name": "odd", "namespace": "shop"}, "spec": {"containers": "none"}})
    async with serving(server=server) as service:
        service.pod("first", "3")
        await service.until(lambda: service.node_of("first"), "a place")
        (problem,) = (await service.get("/api/v1/info"))["problems"]
        assert problem.startswith("shop/odd of pods cannot be read, and what was known of it counts: ")
        server.remove("pods", "odd", "shop")
        await service.until(lambda: not service.place.problems(), "its end")


async def test_what_would_help_is_told_as_it_is_done_on_a_cluster() -> None:
    """A pod's priority, queue and size are those of its manifest: nobody can raise them, or move it."""
    async with serving() as service:
        await _two_of_which_one_waits(service, priority=5)
        told = await service.get("/api/v1/jobs/default/second/why?changes=true&seconds=20")
        can = {way["dimension"]: way["action"] for way in told["verdict"]["changes"]}
        assert can["smaller-request"] == "make it anew with requests of cpu 1 at most (now cpu 3)"
        assert can["priority"] == "make it anew with a priority class of value 6 (now 0)"
