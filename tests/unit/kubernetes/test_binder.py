"""What the binder sends when: what is done before what is told of it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any

import pytest
from testbed.fake_server import FakeServer
from testbed.faults import Fault, Faults
from testbed.virtual_time import run_virtually

from fairlead.kubernetes import acts, bodies, event_queue
from fairlead.kubernetes.binder import Binder, BindFailed, Bound
from fairlead.kubernetes.client import Client
from fairlead.kubernetes.connection import Answer, Request
from fairlead.kubernetes.kinds import JOBS, PODS
from fairlead.kubernetes.translate.identity import TaskGroup

TAKES_S = 0.1


class Slow(FakeServer):
    """Each request takes a while; it notes in which order they came, and how many were in flight at most."""

    def __init__(self) -> None:
        super().__init__(kubelet=False)
        self.came: list[str] = []
        self.flying: dict[str, int] = {}
        self.most: dict[str, int] = {}

    async def send(self, request: Request, timeout_s: float) -> Answer:
        what = "event" if "/events" in request.path else "bind"
        self.came.append(what)
        self.flying[what] = self.flying.get(what, 0) + 1
        self.most[what] = max(self.most.get(what, 0), self.flying[what])
        await asyncio.sleep(TAKES_S)
        try:
            return await super().send(request, timeout_s)
        finally:
            self.flying[what] -= 1


def ordered(server: Slow, pods: int, at_once: int = 10, report: Callable[[Any], None] = lambda report: None) -> Binder:
    """Pods that wait, and the order to bind all of them."""
    for name in "nm":
        server.put("nodes", {"metadata": {"name": name}, "status": {"allocatable": {"cpu": "1000", "pods": "1000"}}})
    made: list[dict[str, Any]] = [
        server.put("pods", {"metadata": {"name": f"p{i}", "namespace": "default"}, "spec": {"containers": []}})
        for i in range(pods)
    ]
    binder = Binder(Client(server), report, stamp=lambda: "2026-01-01T00:00:00.000000Z", at_once=at_once)
    for pod in made:
        meta = pod["metadata"]
        binder.do(acts.Bind(acts.ObjectName("default", meta["name"], meta["uid"], PODS), "n"))
    return binder


def test_what_is_told_holds_up_nothing_that_is_done() -> None:
    """While pods are bound a few events are sent beside; the others follow, none is lost."""

    async def course() -> None:
        server = Slow()
        binder = ordered(server, 100)
        await asyncio.sleep(TAKES_S * 10.5)
        assert (server.came.count("bind"), server.most) == (100, {"bind": 10, "event": event_queue.AT_ONCE})
        assert server.came.count("event") <= 10 * event_queue.AT_ONCE
        assert binder.busy == 0
        await binder.settle()
        assert len(server.all("events")) == 100

    run_virtually(course())


def test_what_is_told_does_not_count_as_placements_under_way() -> None:
    """Else so many pods that wait would keep the next ones from being placed until each of them was told why."""

    async def course() -> None:
        server = Slow()
        binder = ordered(server, 10)
        for pod in server.all("pods"):
            meta = pod["metadata"]
            binder.do(acts.Explain(acts.ObjectName("default", meta["name"], meta["uid"], PODS), "code", "why"))
        assert binder.busy == 10
        await asyncio.sleep(TAKES_S * 1.5)
        assert (binder.busy, server.flying["bind"]) == (0, 10)
        await binder.settle()

    run_virtually(course())


def test_what_the_server_fails_to_bind_for_long_does_not_count_as_placements_under_way() -> None:
    """Else two thousand pods of a namespace that some webhook refuses keep all others from being placed, for ever."""

    class Failing(Faults):
        calm = False

        def for_request(self, method: str, path: str) -> Fault:
            return Fault(status=500) if path.endswith("/binding") and not self.calm else Fault()

    async def course() -> None:
        server = Slow()
        server.faults = faults = Failing()
        binder = ordered(server, 20)
        await asyncio.sleep(5)
        assert binder.busy == 20
        await asyncio.sleep(200)
        assert binder.busy == 0
        faults.calm = True
        await binder.settle()
        assert binder.busy == 0
        assert all(pod["spec"]["nodeName"] == "n" for pod in server.all("pods"))

    run_virtually(course())


def test_with_too_many_waiting_further_events_are_let_go(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """They are counted, and the log says so once."""
    monkeypatch.setattr(event_queue, "MOST", 20)

    async def course() -> None:
        server = Slow()
        binder = ordered(server, 200)
        await binder.settle()
        assert len(server.all("events")) + binder.events.let_go == 200
        assert binder.events.let_go > 50

    run_virtually(course())
    (said,) = [record.message for record in caplog.records if "events were not sent" in record.message]
    assert said.startswith("1 events were not sent so far")


def test_an_event_that_fails_is_tried_three_times_and_says_when_it_happened() -> None:
    """Others go on meanwhile; after the end nothing is sent."""

    async def course() -> None:
        server = Slow()
        tries = 0

        class Failing(Faults):
            def for_request(self, method: str, path: str) -> Fault:
                nonlocal tries
                tries += method == "POST" and "/events" in path
                return Fault(status=500) if "/events" in path else Fault()

        server.faults = Failing()
        binder = ordered(server, 1)
        await binder.settle()
        assert (tries, server.all("events")) == (3, [])
        server.faults = Faults()
        name = acts.ObjectName("default", "p0", "uid-2", PODS)
        for number in range(10):
            binder.do(acts.Record(name, "Scheduled", str(number)))
        await asyncio.sleep(TAKES_S * 1.5)
        await binder.stop()
        sent = server.all("events")
        assert [each["note"] for each in sent] == ["0", "1", "2", "3"]
        assert {each["eventTime"] for each in sent} == {"2026-01-01T00:00:00.000000Z"}

    run_virtually(course())


def test_a_binding_that_another_one_follows_is_not_tried_again() -> None:
    """The node is gone, and the pod has its place on another one: it is not bound to that which is not there."""

    class Failing(Faults):
        calm = False

        def for_request(self, method: str, path: str) -> Fault:
            return Fault(status=500) if path.endswith("/binding") and not self.calm else Fault()

    async def course() -> None:
        server = Slow()
        server.faults = faults = Failing()
        reports: list[Any] = []
        binder = ordered(server, 1, report=reports.append)
        await asyncio.sleep(1)
        while server.flying["bind"]:  # What is on its way when the server calms down would be done.
            await asyncio.sleep(TAKES_S / 10)
        meta = server.all("pods")[0]["metadata"]
        binder.do(acts.Bind(acts.ObjectName("default", meta["name"], meta["uid"], PODS), "m"))
        faults.calm = True
        await binder.settle()
        assert [each["spec"]["nodeName"] for each in server.all("pods")] == ["m"]
        assert reports == [Bound(meta["uid"], "m")]

    run_virtually(course())


def test_a_pod_that_never_came_to_its_node_is_not_deleted_there() -> None:
    """Its place went to another pod while the server was asked to bind it, and refused that for good."""

    class Refusing(Faults):
        def for_request(self, method: str, path: str) -> Fault:
            return Fault(status=422) if path.endswith("/binding") else Fault()

    async def course() -> None:
        server = Slow()
        server.faults = Refusing()
        reports: list[Any] = []
        binder = ordered(server, 1, report=reports.append)
        uid = server.all("pods")[0]["metadata"]["uid"]
        binder.do(acts.EvictPod(acts.ObjectName("default", "p0", uid, PODS), "n", None, "priority", "why"))
        assert binder.busy == 2
        await binder.settle()
        assert [type(each) for each in reports] == [BindFailed]
        assert (len(server.all("pods")), binder.busy) == (1, 0)
        assert not server.all("pods")[0]["metadata"].get("deletionTimestamp")

    run_virtually(course())


@pytest.mark.parametrize("status", [403, 422])
def test_whoever_declared_a_gang_is_told_that_a_placeholder_is_refused(status: int) -> None:
    """By a quota, say: else its pods would wait, and nothing would say for what."""

    class Refusing(Faults):
        def for_request(self, method: str, path: str) -> Fault:
            return Fault(status=status) if method == "POST" and path.endswith("/pods") else Fault()

    async def course() -> None:
        server = FakeServer(Refusing())
        binder = Binder(Client(server), lambda report: None, stamp=lambda: "2026-01-01T00:00:00.000000Z")
        owner = acts.ObjectName("default", "first", "u", PODS)
        group = TaskGroup("w", 1, {"cpu": "1"})
        binder.do(acts.CreatePlaceholder("default", "tg-job-w-0", "job", "", group, owner, "", ""))
        await asyncio.sleep(5)
        await binder.stop()
        (event,) = server.all("events")
        assert (event["regarding"]["name"], event["reason"], event["type"]) == ("first", "FailedCreate", "Warning")
        assert event["note"] == "placeholder tg-job-w-0 of its gang is refused: a fault of the test"

    run_virtually(course())


def test_placeholders_that_are_refused_do_not_flood_the_server() -> None:
    """One of them is tried for all: by a quota all are refused alike. Once it is made, so are the others."""

    class Refusing(Faults):
        tries = 0
        calm = False

        def for_request(self, method: str, path: str) -> Fault:
            refuses = method == "POST" and path.endswith("/pods") and not self.calm
            self.tries += refuses
            return Fault(status=403) if refuses else Fault()

    async def course() -> None:
        faults, many, other = Refusing(), 200, 10
        server = FakeServer(faults)
        binder = Binder(Client(server), lambda report: None, stamp=lambda: "2026-01-01T00:00:00.000000Z")
        owner = acts.ObjectName("default", "first", "u", PODS)
        for name, size in (("w", many), ("x", other)):
            for number in range(size):
                group = TaskGroup(name, size, {"cpu": "1"})
                at = f"tg-job-{name}-{number}"
                binder.do(acts.CreatePlaceholder("default", at, "job", "", group, owner, "", ""))
        await asyncio.sleep(60)
        before, faults.tries = faults.tries, 0
        assert before < 150, "some were on their way when the first was refused"
        await asyncio.sleep(60)
        assert faults.tries <= 12, "one of each group, every ten seconds at most"
        binder.do(acts.DropPlaceholder("default", "tg-job-w-0"))
        faults.calm = True
        await asyncio.sleep(41)
        assert len(server.all("pods")) == many - 1 + other
        await binder.stop()

    run_virtually(course())


@pytest.mark.parametrize("of", ["pod", "job"])
def test_what_the_server_will_never_do_is_said(of: str, caplog: pytest.LogCaptureFixture) -> None:
    """A webhook of others may deny it like that: a victim stays, or a job that has its room never goes on."""

    class Denied(Faults):
        def for_request(self, method: str, path: str) -> Fault:
            return Fault(status=422) if method in ("DELETE", "PATCH") else Fault()

    async def course() -> None:
        server = FakeServer(Denied())
        name = acts.ObjectName("default", "it", "u", PODS if of == "pod" else JOBS)
        binder = Binder(Client(server), lambda report: None, stamp=lambda: "2026-01-01T00:00:00.000000Z")
        binder.do(acts.EvictPod(name, "n", None, "quota", "why") if of == "pod" else acts.Suspend(name, suspend=False))
        await binder.settle()
        assert binder.failed == 1

    run_virtually(course())
    said = caplog.messages[-1]
    assert (
        said == f"{'EvictPod' if of == 'pod' else 'Suspend'} of default/it was refused: 422 Fault: a fault of the test"
    )


def test_an_event_has_a_name_that_the_api_takes_however_long_its_pod_is_called() -> None:
    """Cut off behind a dash or a dot it was refused, and lost."""
    for name in ("a" * 229 + "-bcd", "a" * 228 + ".-bcd", "p"):
        pod = acts.ObjectName("default", name, "u", PODS)
        made = bodies.event(acts.Record(pod, "Scheduled", "there"), 31, "2026-01-01T00:00:00.000000Z", "fairlead")
        part = "[a-z0-9]([a-z0-9-]*[a-z0-9])?"
        assert re.fullmatch(rf"{part}(\.{part})*", made["metadata"]["name"])
