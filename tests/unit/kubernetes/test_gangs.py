"""Gangs on a cluster: given up while placeholders are still being made, and known again after a restart."""

from __future__ import annotations

import asyncio
import copy
import json
import random
import re
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from driven_cluster import Cluster, binds
from invariants.books import check_books
from testbed.fake_server import FakeServer
from testbed.faults import Fault, Faults
from testbed.virtual_time import run_virtually

from fairlead.config import load_text
from fairlead.core.model.events import SetWindow
from fairlead.core.model.specs import WindowSpec
from fairlead.kubernetes import gangs
from fairlead.kubernetes.acts import CreatePlaceholder, DeletePod, Explain, ObjectName
from fairlead.kubernetes.binder import Binder
from fairlead.kubernetes.bodies import placeholder
from fairlead.kubernetes.client import Client
from fairlead.kubernetes.control_loop import ControlLoop
from fairlead.kubernetes.gangs import placeholder_name
from fairlead.kubernetes.kinds import NODES, PODS
from fairlead.kubernetes.objects import Pod
from fairlead.kubernetes.translate import identity

QUEUES = """
partitions:
  - name: default
    placementrules: [{name: provided}, {name: fixed, value: root.default}]
    queues: [{name: root, submitacl: "*", queues: [{name: default}]}]
"""
GROUPS = json.dumps([{"name": "w", "minMember": 2, "minResource": {"cpu": "2"}}])
FIRST, SECOND = (placeholder_name("job", "w", number) for number in range(2))


def pod(name: str, cpu: int = 2, **notes: str) -> dict[str, Any]:
    return {
        "metadata": {
            "name": name, "namespace": "default", "labels": {"applicationId": "job"}, "annotations": notes,
        },
        "spec": {
            "schedulerName": "fairlead", "containers": [{"name": "c", "resources": {"requests": {"cpu": str(cpu)}}}],
        },
        "status": {"phase": "Pending"},
    }  # fmt: skip


def member(name: str, words: str = "placeholderTimeoutInSeconds=3 gangSchedulingStyle=Soft") -> dict[str, Any]:
    notes = {identity.TASK_GROUP_NAME: "w", identity.TASK_GROUPS: GROUPS, identity.PARAMETERS: words}
    return pod(name, **notes)


def node(name: str, cpu: int) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {}, "status": {"allocatable": {"cpu": str(cpu), "pods": "110"}}}


class Creation(Faults):
    """The creation of the second placeholder, or of the `first`, fails or takes long, from when on is said."""

    def __init__(self, fault: Fault, first: int = 1) -> None:
        self.fault, self.first = fault, first
        self.tries = 0
        self.fails = True

    def for_request(self, method: str, path: str) -> Fault:
        # The first creation of a pod is that of the first placeholder.
        if method != "POST" or not path.endswith("/pods"):
            return Fault()
        self.tries += 1
        return self.fault if self.tries > self.first and self.fails else Fault()


async def _serve(server: FakeServer, during: Callable[[], Any], seconds: float) -> ControlLoop:
    client = Client(server)
    binder = Binder(
        client, lambda r: control_loop.report(r), stamp=lambda: "2026-01-01T00:00:00.000000Z", chance=random.Random(1)
    )
    control_loop = ControlLoop(client, binder, load_text(QUEUES), now_ms=server.now_ms, chance=random.Random(2))
    serving = asyncio.create_task(control_loop.run())
    await asyncio.sleep(1)
    during()
    await asyncio.sleep(seconds)
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)
    check_books(control_loop.driver.scheduler)
    return control_loop


def test_placeholders_that_are_refused_keep_nothing_else_from_being_placed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A large gang beyond a quota of its namespace: each of its placeholders is tried again for as long as it waits."""
    monkeypatch.setattr("fairlead.kubernetes.control_loop.IN_FLIGHT", 1)
    server = FakeServer(Creation(Fault(status=403)))
    server.put("nodes", node("n1", 8))
    groups = json.dumps([{"name": "w", "minMember": 5, "minResource": {"cpu": "1"}}])

    async def main() -> None:
        begin = lambda: server.put("pods", pod("m0", **{identity.TASK_GROUPS: groups}))  # noqa: E731
        other = pod("other")
        other["metadata"]["labels"] = {"applicationId": "other"}
        asyncio.get_running_loop().call_later(20, lambda: server.put("pods", other))
        await _serve(server, begin, 60)

    run_virtually(main())
    assert _names(server)["other"] == "n1"


def test_members_are_told_that_a_placeholder_of_their_gang_is_refused() -> None:
    """They were told that two of two were still to come, and one event on the first of them said why."""
    faults = Creation(Fault(status=403))
    server = FakeServer(faults)
    server.put("nodes", node("n1", 8))

    def begin() -> None:
        server.put("pods", member("m0", "placeholderTimeoutInSeconds=600"))
        server.put("pods", member("m1", "placeholderTimeoutInSeconds=600"))

    def said(name: str) -> str:
        found = server.one("pods", name)
        assert found is not None
        return next(str(each["message"]) for each in found["status"]["conditions"] if each["type"] == "PodScheduled")

    async def main() -> None:
        serving = asyncio.create_task(_serve(server, begin, 90))
        await asyncio.sleep(20)
        for name in ("m0", "m1"):
            assert "1 of 2 have it; placeholder tg-job-w-1 of its gang is refused: a fault of the test" in said(name)
        faults.fails = False
        control_loop = await serving
        assert control_loop.driver.informer.gangs.declared["job"].refused == ""

    run_virtually(main())
    assert _names(server)["m1"] == "n1"


@pytest.mark.parametrize("style", ["Soft", "Hard"])
def test_a_gang_whose_placeholders_are_refused_for_all_of_its_time_is_given_up(style: str) -> None:
    """None of them has a node, so that no time ran: it waited for ever. A word that all is well again comes in vain."""
    server = FakeServer(Creation(Fault(status=403), first=0))
    server.put("nodes", node("n1", 8))

    def begin() -> None:
        for name in ("m0", "m1"):
            server.put("pods", member(name, f"placeholderTimeoutInSeconds=60 gangSchedulingStyle={style}"))

    async def main() -> ControlLoop:
        serving = asyncio.create_task(_serve(server, begin, 200))
        await asyncio.sleep(50)
        assert list(_names(server).values()) == ["", ""]
        return await serving

    run_virtually(main())
    assert list(_names(server).values()) == (["n1", "n1"] if style == "Soft" else ["", ""])
    if style == "Hard":
        said = server.one("pods", "m1")["status"]["conditions"][0]["message"]  # type: ignore[index]
        assert said.startswith(
            "application job has failed: its gang (Hard) did not get all of its room in time; placeh"
        )


def test_a_gang_that_all_nodes_could_not_hold_waits_for_one_and_takes_nothing_before() -> None:
    """Its placeholder took the only node from other work, for as long as a gang is waited for."""
    server = FakeServer()
    server.put("nodes", node("n1", 3))

    def begin() -> None:
        for name in ("m0", "m1"):
            server.put("pods", member(name, "placeholderTimeoutInSeconds=600"))

    async def main() -> None:
        serving = asyncio.create_task(_serve(server, begin, 60))
        await asyncio.sleep(20)
        server.put("pods", pod("other", 3) | {"metadata": {"name": "other", "namespace": "default"}})
        await asyncio.sleep(10)
        assert _names(server) == {FIRST: "", SECOND: "", "m0": "", "m1": "", "other": "n1"}
        found = server.one("pods", FIRST)
        assert found is not None
        said = next(each for each in found["status"]["conditions"] if each["type"] == "PodScheduled")
        assert said["reason"] == "Unschedulable"
        assert "0 of 2 have it; its 2 pods need cpu 4 together; all nodes together have cpu 3" in said["message"]
        server.put("nodes", node("n2", 4))
        await serving

    run_virtually(main())
    assert _names(server) == {"m0": "n2", "m1": "n2", "other": "n1"}


def test_a_gang_whose_first_pod_is_deleted_goes_on_with_the_others() -> None:
    """The cluster deletes its placeholders with it; they are made anew, and go with another pod of the gang."""
    server = FakeServer()
    server.put("nodes", node("n1", 2))

    def begin() -> None:
        server.put("pods", member("m0", ""))
        server.put("pods", member("m1", ""))

    def replace() -> None:
        for name in ("m0", FIRST, SECOND):
            server.remove("pods", name, "default")
        server.put("pods", member("m2", ""))

    async def main() -> None:
        asyncio.get_running_loop().call_later(20, replace)
        asyncio.get_running_loop().call_later(40, lambda: server.put("nodes", node("n2", 2)))
        await _serve(server, begin, 100)

    run_virtually(main())
    assert {_names(server)["m1"], _names(server)["m2"]} == {"n1", "n2"}


def _names(server: FakeServer) -> dict[str, str]:
    return {p["metadata"]["name"]: p["spec"].get("nodeName", "") for p in server.all("pods")}


@pytest.mark.parametrize(
    "fault", [Fault(status=403), Fault(status=500), Fault(8.0)], ids=["refused", "failing", "on its way"]
)
def test_a_placeholder_that_is_being_made_when_its_soft_gang_is_given_up(fault: Fault) -> None:
    """It is not made any more, or deleted as soon as it is there; it never takes the room of anybody."""
    faults = Creation(fault)

    async def main() -> FakeServer:
        server = FakeServer(faults)
        server.put("nodes", node("n1", 4))

        def begin() -> None:
            server.put("pods", member("m0"))
            server.put("pods", member("m1"))

        def better() -> None:
            faults.fails = False

        asyncio.get_running_loop().call_later(12, better)
        await _serve(server, begin, 60)
        return server

    server = run_virtually(main())
    assert _names(server) == {"m0": "n1", "m1": "n1"}
    assert not [entry for entry in server.log.of("bind") if SECOND in entry[3]]
    if fault.status:
        assert not [entry for entry in server.log.of("create") if entry[3].endswith(SECOND)]


def test_a_placeholder_of_nobody_is_deleted() -> None:
    """The last pod of its application went while it was on its way."""
    faults = Creation(Fault(8.0))

    async def main() -> FakeServer:
        server = FakeServer(faults)
        server.put("nodes", node("n1", 3))

        def begin() -> None:
            server.put("pods", member("m0"))
            asyncio.get_running_loop().call_later(2, lambda: server.remove("pods", "m0", "default"))
            asyncio.get_running_loop().call_later(2, lambda: server.remove("pods", FIRST, "default"))

        await _serve(server, begin, 60)
        return server

    server = run_virtually(main())
    assert _names(server) == {}
    assert not [entry for entry in server.log.of("bind") if SECOND in entry[3]]


def test_a_gang_is_known_again_after_a_restart_within_the_second_in_which_it_was_made() -> None:
    """A list is in the order of names, and `tg-job` comes before `w`: the owner has to come first."""

    async def main() -> tuple[FakeServer, ControlLoop]:
        server = FakeServer()
        for name in ("n1", "n2"):
            server.put("nodes", node(name, 2))
        other = pod("other")
        other["spec"] |= {"schedulerName": "another", "nodeName": "n2"}
        server.put("pods", other)
        held = pod(FIRST, **{identity.TASK_GROUP_NAME: "w", identity.PLACEHOLDER: "true"})
        held["spec"]["nodeName"] = "n1"
        for one in (held, member("w0"), member("w1")):
            one["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
            server.put("pods", one)
        control_loop = await _serve(server, lambda: None, 1)
        return server, control_loop

    server, control_loop = run_virtually(main())
    assert "job" in control_loop.driver.informer.gangs.declared
    assert _names(server) == {"other": "n2", FIRST: "n1", SECOND: "", "w0": "", "w1": ""}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("Job", "w"), ("job", "w")),
        (("a_b", "w"), ("a-b", "w")),
        (("job", "a.b"), ("job", "a-b")),
        (("j" * 60 + "-1", "w"), ("j" * 60 + "-2", "w")),
        (("job", "w" * 70), ("job", "w" * 69 + "x")),
        (("grün", "w"), ("gr/n", "w")),
        (("a", "b-c"), ("a-b", "c")),
    ],
)
def test_placeholders_of_two_gangs_have_two_names(one: tuple[str, str], other: tuple[str, str]) -> None:
    """However they differ; and each is a name that the API takes. A plain one can be read."""
    names = [placeholder_name(*each, 0) for each in (one, other)]
    assert len(set(names)) == 2
    assert all(re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", name) for name in names)
    assert placeholder_name("job", "w", 3) == "tg-job-w-3"


@pytest.mark.parametrize("application", ["job", "j" * 70, "a/b"])
@pytest.mark.parametrize("queue", ["root.a", "root." + "long." * 20 + "a", "root.a@b", ""])
def test_placeholders_belong_to_the_queue_and_application_of_their_gang(application: str, queue: str) -> None:
    """Whatever these are called: the API takes the pod, and it is read as it was meant."""
    group = identity.TaskGroup("w", 1, {"cpu": "1"}, labels={"applicationId": "other"})
    owner = ObjectName("default", "p", "u")
    made = placeholder(CreatePlaceholder("default", "tg", application, queue, group, owner, "", ""), "fairlead")
    assert all(identity.LABEL_VALUE.fullmatch(value) for value in made["metadata"]["labels"].values())
    read = msgspec.convert(made, Pod)
    assert (identity.application_id(read), identity.queue_of(read)) == (application, queue)


def test_placeholders_may_run_where_their_group_says() -> None:
    """Word for word: a spread without its `maxSkew` of 1 was refused by the server, and the gang waited for ever."""
    selector = {"matchLabels": {"app": "a"}}
    where: dict[str, Any] = {
        "nodeSelector": {"zone": "a"},
        "tolerations": [{"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0}],
        "affinity": {
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"topologyKey": "kubernetes.io/hostname", "labelSelector": selector, "namespaceSelector": {}}
                ]
            },
            "nodeAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 1, "preference": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}
                ]
            },
        },
        "topologySpreadConstraints": [
            {
                "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": selector, "minDomains": 2,
            }
        ],
    }  # fmt: skip
    text = json.dumps([{"name": "w", "minMember": 1, "minResource": {"cpu": 1}, **where}])
    gang = identity.gang_of(msgspec.convert(pod("m", **{identity.TASK_GROUPS: text}), Pod))
    assert gang is not None
    owner = ObjectName("default", "p", "u")
    made = placeholder(CreatePlaceholder("default", "tg", "job", "", gang.groups[0], owner, "", ""), "fairlead")
    assert {name: made["spec"][name] for name in where} == where


@pytest.mark.parametrize("restarted", [False, True])
def test_a_placeholder_that_failed_is_made_again(restarted: bool) -> None:
    """By its kubelet, for one: the pod stays with its name, and its gang waited for ever for another one."""

    async def main() -> FakeServer:
        server = FakeServer()
        server.put("nodes", node("n1", 2))

        def begin() -> None:
            for name in ("m0", "m1"):
                server.put("pods", member(name, "gangSchedulingStyle=Hard"))

        def fail() -> None:
            failed = copy.deepcopy(server.one("pods", FIRST))
            assert failed is not None
            server.put("pods", failed | {"status": {"phase": "Failed", "reason": "Evicted"}})

        def more() -> None:
            server.put("nodes", node("n2", 2))

        if restarted:
            await _serve(server, begin, 5)
            fail()
            await _serve(server, more, 60)
        else:
            asyncio.get_running_loop().call_later(6, fail)
            asyncio.get_running_loop().call_later(20, more)
            await _serve(server, begin, 60)
        return server

    assert sorted(_names(run_virtually(main())).items()) == [("m0", "n1"), ("m1", "n2")]


@pytest.mark.parametrize(("gone", "owner"), [((), "driver"), (("driver",), "m1"), (("driver", "m1"), "")])
def test_a_placeholder_that_somebody_deletes_is_made_again(gone: tuple[str, ...], owner: str) -> None:
    """Its gang would never begin without it. When its owner is gone another pod owns it; with the last all go."""
    cluster = Cluster()
    notes = {
        identity.TASK_GROUP_NAME: "w",
        identity.TASK_GROUPS: '[{"name": "w", "minMember": 2, "minResource": {"cpu": "1"}}]',
    }
    for name in ("driver", "m1"):
        cluster.pod(name, labels={"applicationId": "job"}, annotations=notes)
    cluster.acts()
    cluster.node("n1", "1")
    for name in (FIRST, SECOND):
        cluster.pod(name, labels={"applicationId": "job"}, annotations={**notes, identity.PLACEHOLDER: "true"})
    cluster.bind_all(cluster.acts())
    for name in (*gone, FIRST, SECOND):
        cluster.gone(name)
    made = [(act.name, act.owner.name) for act in cluster.acts() if isinstance(act, CreatePlaceholder)]
    assert made == ([(FIRST, owner), (SECOND, owner)] if owner else [])


def test_a_large_gang_is_not_gone_through_for_each_placeholder_that_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    """As when all pods of its namespace are deleted, its owner last."""
    named: list[str] = []

    def counted(application: str, group: str, number: int) -> str:
        named.append(placeholder_name(application, group, number))
        return named[-1]

    cluster = Cluster()
    notes = {identity.TASK_GROUPS: '[{"name": "w", "minMember": 100, "minResource": {"cpu": "1"}}]'}
    cluster.pod("driver", labels={"applicationId": "job"}, annotations=notes)
    made = [act.name for act in cluster.acts() if isinstance(act, CreatePlaceholder)]
    notes = {identity.TASK_GROUP_NAME: "w", identity.PLACEHOLDER: "true"}
    for name in made:
        cluster.pod(name, labels={"applicationId": "job"}, annotations=notes)
    monkeypatch.setattr(gangs, "placeholder_name", counted)
    for name in made:
        cluster.gone(name)
    assert [act.name for act in cluster.acts() if isinstance(act, CreatePlaceholder)] == made
    assert len(named) == 100


def test_what_waits_in_a_soft_gang_whose_time_is_over_goes_on_as_a_plain_pod() -> None:
    """Defaults of the namespace made its placeholders larger than it had said, so that it was never quite whole."""
    cluster = Cluster(QUEUES)
    room = {"cpu": "4", "pods": "110", "example.com/default": "2"}
    cluster.put(NODES, {"metadata": {"name": "n1", "uid": "u-n1"}, "status": {"allocatable": room}})
    first = member("m1", "placeholderTimeoutInSeconds=60 gangSchedulingStyle=Soft")
    first["metadata"]["uid"], first["spec"]["nodeSelector"] = "u-m1", {"disk": "ssd"}
    cluster.put(PODS, first)
    for act in cluster.acts():
        if isinstance(act, CreatePlaceholder):
            made = placeholder(act, "fairlead")
            made["metadata"]["uid"] = f"u-{act.name}"
            made["spec"]["containers"][0]["resources"]["requests"]["example.com/default"] = "1"
            cluster.put(PODS, made)
    cluster.bind_all(cluster.acts())
    cluster.acts()
    cluster.now = 61_000
    for act in cluster.acts():
        if isinstance(act, DeletePod):
            cluster.gone(act.pod.name)
    cluster.node("n2", labels={"disk": "ssd"})
    assert binds(cluster.acts()) == {"m1": "n2"}


@pytest.mark.parametrize("deadline_s", [600, None])
def test_a_gang_with_a_deadline_starts_beside_a_window_that_comes_again(deadline_s: int | None) -> None:
    """Its placeholders, which have none themselves, stand for the wait and the deadline of what takes their places."""
    cluster, minute = Cluster(QUEUES), 60_000
    cluster.node("n1", "4")
    window = WindowSpec(name="w", starts_ms=21 * minute, length_ms=minute, every_ms=21 * minute)
    cluster.driver.scheduler.handle(SetWindow(window), 0)
    for name in ("m1", "m2"):
        one = member(name, "placeholderTimeoutInSeconds=600")
        one["metadata"]["uid"], one["spec"]["activeDeadlineSeconds"] = f"u-{name}", deadline_s
        cluster.put(PODS, one)
    for act in cluster.acts():
        if isinstance(act, CreatePlaceholder):
            made = placeholder(act, "fairlead")
            assert "activeDeadlineSeconds" not in made["spec"]
            made["metadata"]["uid"] = f"u-{act.name}"
            cluster.put(PODS, made)
    placed = cluster.acts()
    assert sorted(binds(placed)) == ([FIRST, SECOND] if deadline_s else [])
    cluster.bind_all(placed)
    for act in cluster.acts():
        if isinstance(act, DeletePod):
            cluster.gone(act.pod.name)
    assert sorted(binds(cluster.acts())) == (["m1", "m2"] if deadline_s else [])


def test_a_gang_whose_application_was_refused_begins_with_a_queue_file_that_takes_it() -> None:
    """It said that the gang reserves its room, and no placeholder was ever made."""
    strict = "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: a}]}]}]"
    cluster = Cluster(strict)
    notes = {identity.TASK_GROUP_NAME: "w", identity.TASK_GROUPS: GROUPS}
    cluster.pod("m", labels={"queue": "root.b"}, annotations=notes)
    assert not [act for act in cluster.acts() if isinstance(act, CreatePlaceholder)]
    cluster.driver.configure(load_text(strict.replace("name: a", "name: b")), 5)
    assert [act.queue for act in cluster.driver.acts() if isinstance(act, CreatePlaceholder)] == ["root.b"] * 2


def test_a_gang_that_is_made_again_as_the_one_before_has_just_ended_has_its_placeholders_made() -> None:
    """The application is completing for half a minute yet; no placeholder was made, and its pods waited for ever."""
    cluster = Cluster(QUEUES)
    cluster.node("n1", "9")
    notes = {identity.TASK_GROUP_NAME: "w", identity.TASK_GROUPS: GROUPS}
    for attempt in ("first", "second"):
        cluster.pod(attempt, "2", labels={"applicationId": "job"}, annotations=notes)
        made = [act for act in cluster.acts() if isinstance(act, CreatePlaceholder)]
        assert [act.name for act in made] == [FIRST, SECOND]
        for act in made:
            words = {identity.TASK_GROUP_NAME: "w", identity.PLACEHOLDER: "true"}
            cluster.pod(act.name, "2", labels={"applicationId": "job"}, annotations=words)
        cluster.bind_all(cluster.acts())
        cluster.acts()
        for act in made:
            cluster.gone(act.name)
        cluster.bind_all(cluster.acts())
        assert cluster.used("n1") == 2000
        cluster.gone(attempt)
        cluster.now += 1000


def test_a_gang_that_goes_before_a_placeholder_of_it_is_there_is_forgotten() -> None:
    """No timer of the scheduler ends an application of which nothing was ever in line."""
    cluster = Cluster(QUEUES)
    cluster.pod("m", "2", annotations={identity.TASK_GROUP_NAME: "w", identity.TASK_GROUPS: GROUPS})
    assert len([act for act in cluster.acts() if isinstance(act, CreatePlaceholder)]) == 2
    cluster.gone("m")
    cluster.acts()
    assert not cluster.driver.scheduler.cluster.partitions["default"].applications
    assert not cluster.driver.informer.applications


def test_idle_work_makes_no_gang() -> None:
    """Its placeholders kept room for all of the gang's time, and each of its pods was refused once they had it."""
    cluster = Cluster()
    cluster.node("n1", "8")
    for name in ("a", "b"):
        notes = {identity.TASK_GROUP_NAME: "w", identity.TASK_GROUPS: GROUPS, identity.IDLE: "true"}
        cluster.pod(name, "2", labels={"applicationId": "job"}, annotations=notes)
    acts = cluster.acts()
    assert [act for act in acts if isinstance(act, CreatePlaceholder)] == []
    said = {act.pod.name: act.message for act in acts if isinstance(act, Explain)}
    assert said == dict.fromkeys("ab", "idle work starts with no gang: leave out fairlead.io/idle, or the group")


@pytest.mark.parametrize("change", [{"spec": {"unschedulable": True}}, {"status": {"allocatable": {"cpu": "1"}}}])
def test_a_placeholder_on_a_node_that_would_not_take_its_member_is_made_anew(change: dict[str, Any]) -> None:
    """The gang began, and the member could not use that room, for as long as its placeholder stood there."""
    cluster = Cluster()
    cluster.node("n1", "2")
    for name in ("n2", "n3"):
        cluster.full_node(name, "2")
    made: dict[str, CreatePlaceholder] = {}

    def acts() -> list[Any]:
        found = cluster.acts()
        made.update({act.name: act for act in found if isinstance(act, CreatePlaceholder)})
        return found

    notes = {identity.TASK_GROUP_NAME: "w", identity.TASK_GROUPS: GROUPS}
    for name in ("a", "b"):
        cluster.pod(name, "2", labels={"applicationId": "job"}, annotations=notes)
    acts()
    for name, act in made.items():
        body = placeholder(act, "fairlead")
        cluster.put(PODS, {**body, "metadata": {**body["metadata"], "uid": f"u-{name}"}, "status": {}})
    cluster.bind_all(acts())
    acts()
    made.clear()
    cluster.put(NODES, cluster.things["nodes", "n1"] | change)
    assert [act.pod.name for act in acts() if isinstance(act, DeletePod)] == [FIRST]
    assert [act for act in acts() if isinstance(act, DeletePod)] == []
    cluster.gone(FIRST)
    acts()
    assert list(made) == [FIRST]
