"""Queues as objects: put into the tree of the queue file, which comes first."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from testbed.fake_server import FakeServer
from testbed.virtual_time import run_virtually

from fairlead.config import ConfigurationError
from fairlead.core.model.specs import QueueSpec
from fairlead.kubernetes.binder import Binder
from fairlead.kubernetes.client import Client
from fairlead.kubernetes.control_loop import ControlLoop
from fairlead.kubernetes.kinds import QUEUES
from fairlead.kubernetes.queue_file import DEFAULT_QUEUES, QueueFile
from fairlead.kubernetes.queue_status import status_of, write_statuses
from fairlead.kubernetes.translate.queues import QueueObject, queues_of, with_queues

FILE = """
partitions:
  - name: default
    placementrules: [{name: provided}]
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: lab
            resources: {max: {vcore: 10}}  # of all of it
"""


def queue(name: str, parent: str = "root", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"parent": parent, **spec}}


def merged(*queues: dict[str, Any], text: str = FILE) -> tuple[dict[str, QueueSpec], dict[str, str]]:
    """The queues by path, and what is left out."""
    spec, flaws = with_queues(text, "test", [msgspec.convert(each, QueueObject) for each in queues])
    found: dict[str, QueueSpec] = {}

    def enter(queue: QueueSpec, before: str) -> None:
        found[before + queue.name] = queue
        for child in queue.queues:
            enter(child, f"{before}{queue.name}.")

    enter(spec.partitions[0].root, "")
    return found, dict(flaws)


def test_objects_stand_in_the_tree_with_all_they_say() -> None:
    """A child of a child, whatever order they come in."""
    found, flaws = merged(
        queue("deep", "root.team.sub", maxApplications=2),
        queue("sub", "root.team", maxApplications=3, properties={"priority.offset": "7"}),
        queue("team", max={"cpu": "4", "memory": "8Gi"}, guaranteed={"cpu": "500m"}, submitACL="ada", adminACL="bob"),
    )
    assert flaws == {}
    team, sub = found["root.team"], found["root.team.sub"]
    assert team.max is not None
    assert team.guaranteed is not None
    assert team.max.as_dict() == {"vcore": 4000, "memory": 8 * 2**30}
    assert team.guaranteed.as_dict() == {"vcore": 500}
    assert (team.submit_acl, team.admin_acl) == ("ada", "bob")
    assert (sub.max_applications, sub.properties["priority.offset"]) == (3, "7")
    assert "root.team.sub.deep" in found


@pytest.mark.parametrize(
    ("name", "amount", "limit"),
    [
        ("cpu", "0.5", {"vcore": 500}),
        ("cpu", "100m", {"vcore": 100}),
        ("cpu", "1e3", {"vcore": 1_000_000}),
        ("memory", "1.5Gi", {"memory": 3 * 2**29}),
        ("memory", "1Ki", {"memory": 1024}),
        ("memory", "128974848000m", {"memory": 128974848}),
        ("nvidia.com/gpu", "8", {"nvidia.com/gpu": 8}),
    ],
)
def test_amounts_are_quantities_of_kubernetes(name: str, amount: str, limit: dict[str, int]) -> None:
    """Whatever the API server takes; the queue file itself has YuniKorn's, which are whole numbers with a suffix."""
    found, flaws = merged(queue("a", max={name: amount}))
    assert flaws == {}
    given = found["root.a"].max
    assert given is not None
    assert given.as_dict() == limit


def test_an_amount_that_is_none_is_said() -> None:
    """The API server takes none, where the definition is that of the chart."""
    found, flaws = merged(queue("a", max={"cpu": "many"}), queue("b", max={"cpu": "-1"}))
    assert sorted(found) == ["root", "root.lab"]
    assert "'many'" in flaws["a"]
    assert "'-1'" in flaws["b"]


def test_a_queue_without_a_parent_in_the_file_may_be_below_a_leaf_of_it() -> None:
    """That becomes a parent, as it would in the file."""
    found, _ = merged(queue("a", "root.lab"))
    assert "root.lab.a" in found


def test_the_file_comes_first_and_one_wrong_object_keeps_no_other_out() -> None:
    """Each says why it is left out."""
    found, flaws = merged(
        queue("lab", max={"cpu": "1"}),
        queue("lost", "root.nowhere"),
        queue("large", "root.lab", max={"cpu": "11"}),
        queue("below", "root.lab.large"),
        queue("good", "root.lab", max={"cpu": "9"}),
    )
    assert found["root.lab"].max is not None
    assert found["root.lab"].max.as_dict() == {"vcore": 10_000}
    assert "root.lab.good" in found
    assert sorted(flaws) == ["below", "lab", "large", "lost"]
    assert "comes first" in flaws["lab"]
    assert "no queue root.nowhere" in flaws["lost"]
    assert "root.lab.large is not accepted" in flaws["below"]


def test_a_file_without_a_root_of_its_own_and_one_that_is_wrong() -> None:
    """The first is one with the root left out; the second is said as it is without objects."""
    bare = "partitions:\n  - name: default\n    queues: [{name: a}, {name: b}]\n"
    found, _ = merged(queue("c", "root.a"), queue("d"), text=bare)
    assert {"root.a", "root.a.c", "root.b", "root.d"} <= set(found)
    with pytest.raises(ConfigurationError, match="queues"):
        merged(queue("c"), text="partitions:\n  - name: default\n    queues: 7\n")


QUEUES_OF = "partitions:\n- name: default\n  queues:\n  - name: root\n    queues:\n"


@pytest.mark.parametrize(
    ("text", "parent", "paths"),
    [
        ('partitions:\n- queues: [{name: root, submitacl: "*"}]\n', "root", ["root", "root.c"]),
        ('partitions:\n- {name: "", queues: [{name: root}]}\n', "root", ["root", "root.c"]),
        ("partitions:\n- {name: ~, queues: [~, {name: root}]}\n", "root", ["root", "root.c"]),
        (QUEUES_OF, "root", ["root", "root.c"]),
        (
            QUEUES_OF + "    - &t {name: a, parent: true, queues: [{name: x}]}\n    - {<<: *t, name: b}\n",
            "root.b",
            ["root", "root.a", "root.a.x", "root.b", "root.b.x", "root.b.c"],
        ),
        (
            QUEUES_OF + "    - {name: a, queues: &s [{name: x}]}\n    - {name: b, queues: *s}\n",
            "root.a",
            ["root", "root.a", "root.a.x", "root.a.c", "root.b", "root.b.x"],
        ),
    ],
    ids=["no name", "empty name", "empty entries", "empty queues", "merged", "alias"],
)
def test_a_queue_is_added_in_one_place_however_the_file_says_its_parent(
    text: str, parent: str, paths: list[str]
) -> None:
    """What the file itself says stays: the default partition by no name, an empty list, merges and aliases."""
    found, flaws = merged(queue("c", parent), text=text)
    assert (list(found), flaws) == (paths, {})


async def _serve(server: FakeServer, during: Callable[[QueueFile, ControlLoop], Any], config_map: str = "") -> None:
    client = Client(server)
    file = QueueFile(client, config_map)
    binder = Binder(client, lambda r: control_loop.report(r), stamp=lambda: "2026-01-01T00:00:00.0Z")
    control_loop = ControlLoop(client, binder, await file.first(), now_ms=server.now_ms, chance=random.Random(2))
    stamp = lambda: "2026-01-01T00:00:00.000000Z"  # noqa: E731
    tasks = [
        asyncio.create_task(control_loop.run()),
        asyncio.create_task(file.watch(control_loop)),
        asyncio.create_task(write_statuses(client, file, control_loop, stamp)),
    ]
    try:
        await asyncio.sleep(3)
        await during(file, control_loop)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


ROOM = {"cpu": "8", "memory": "8Gi", "pods": "9"}


def _pod(name: str, path: str, cpu: str = "1", **more: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "default", "labels": {"applicationId": name, "queue": path}},
        "spec": {
            "schedulerName": "fairlead",
            "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu, **more}}}],
        },
        "status": {"phase": "Pending"},
    }


def test_objects_are_in_force_at_the_start_and_when_they_change_and_say_what_they_use() -> None:
    """Used, running, waiting; a queue that comes later counts within seconds; one that goes takes nothing new."""
    server = FakeServer()
    server.extensions.append(QUEUES.group_version)
    server.put("nodes", {"metadata": {"name": "n"}, "spec": {}, "status": {"allocatable": ROOM}})
    server.put("queues", {**queue("team", max={"cpu": "2"}), "kind": "Queue"})
    for name in "abc":
        server.put("pods", _pod(name, "root.team", memory="32Mi"))

    def status(name: str) -> dict[str, Any]:
        found = server.one("queues", name, "")
        assert found is not None
        return dict(found["status"])

    async def during(file: QueueFile, control_loop: ControlLoop) -> None:
        said = status("team")
        assert (said["path"], said["running"], said["waiting"]) == ("root.team", 2, 1)
        assert said["used"] == {"cpu": "2", "memory": "64Mi", "pods": "2"}, "not memory 67108864, as nobody writes it"
        assert said["priority"] == 0
        assert said["conditions"][0]["status"] == "True"
        writes = len(server.log.of("patch"))
        await asyncio.sleep(20)
        assert len(server.log.of("patch")) == writes, "nothing new, nothing written"
        server.put("queues", {**server.one("queues", "team", "") | queue("team", max={"cpu": "3"})})  # type: ignore[operator]
        server.put("queues", queue("lost", "root.nowhere"))
        await asyncio.sleep(5)
        assert status("team")["waiting"] == 0
        assert status("lost")["conditions"][0]["message"] == "there is no queue root.nowhere to be its parent"
        assert status_of(file.objects["lost"], file, control_loop)["conditions"][0]["reason"] == "LeftOut"
        server.remove("queues", "lost")
        await asyncio.sleep(5)
        assert sorted(file.objects) == ["team"]

    run_virtually(_serve(server, during))


def test_an_object_that_what_runs_keeps_out_keeps_no_other_out() -> None:
    """Who may make queues could keep every change of the queue file from being taken. It counts when it can be."""
    server = FakeServer()
    server.extensions.append(QUEUES.group_version)
    server.put("nodes", {"metadata": {"name": "n"}, "spec": {}, "status": {"allocatable": {"cpu": "8", "pods": "9"}}})
    server.put("queues", queue("team"))
    server.put("pods", _pod("runs", "root.team"))

    async def during(file: QueueFile, control_loop: ControlLoop) -> None:
        server.put("queues", queue("kid", "root.team"))
        server.put("queues", queue("grandkid", "root.team.kid"))
        server.put("queues", queue("other"))
        await asyncio.sleep(5)
        server.put("queues", queue("last"))
        server.put("queues", {**server.one("queues", "team", "") | queue("team", max={"cpu": "2"})})  # type: ignore[operator]
        await asyncio.sleep(5)
        said = {name: status_of(each, file, control_loop)["conditions"][0] for name, each in file.objects.items()}
        accepted = {name for name, condition in said.items() if condition["status"] == "True"}
        assert accepted == {"team", "other", "last"}
        assert "queue root.team would become a parent, and 1 applications are in it" in said["kid"]["message"]
        assert said["grandkid"]["message"] == "there is no queue root.team.kid to be its parent"
        assert file.error == ""
        server.remove("pods", "runs", "default")
        await asyncio.sleep(120)
        assert file.flaws == {}
        assert status_of(file.objects["grandkid"], file, control_loop)["conditions"][0]["status"] == "True"

    run_virtually(_serve(server, during))


def test_hundreds_beside_an_object_that_what_runs_keeps_out_are_read_a_few_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Once for each the scheduler stood still for nine seconds, every minute."""
    server = FakeServer()
    server.extensions.append(QUEUES.group_version)
    server.put("nodes", {"metadata": {"name": "n"}, "spec": {}, "status": {"allocatable": {"cpu": "8", "pods": "9"}}})
    for name in ["team", *(f"old{number}" for number in range(40))]:
        server.put("queues", queue(name))
    server.put("pods", _pod("runs", "root.team"))
    reads: list[str] = []
    monkeypatch.setattr(
        "fairlead.kubernetes.queue_file.with_queues", lambda *asked: reads.append("") or with_queues(*asked)
    )

    async def during(file: QueueFile, control_loop: ControlLoop) -> None:
        reads.clear()
        for number in range(40):
            server.put("queues", queue(f"new{number:02}", "root.team" if number == 30 else "root"))
        await asyncio.sleep(5)
        assert list(file.flaws) == ["new30"]
        assert len(reads) < 20

    run_virtually(_serve(server, during))


@pytest.mark.parametrize("config_map", ["", "system/queues"])
def test_an_object_that_was_left_out_is_so_over_a_restart(config_map: str) -> None:
    """A new process does not know yet what runs: the queue would be a parent, and its applications refused.

    A file in a ConfigMap is told anew before that, too, when it begins to be watched.
    """
    server = FakeServer()
    meta = {"name": "queues", "namespace": "system"}
    server.put("configmaps", {"metadata": meta, "data": {"queues.yaml": DEFAULT_QUEUES}})
    server.extensions.append(QUEUES.group_version)
    server.put("nodes", {"metadata": {"name": "n"}, "spec": {}, "status": {"allocatable": {"cpu": "8", "pods": "9"}}})
    server.put("queues", queue("team"))
    left_out = {"conditions": [{"type": "Accepted", "status": "False", "reason": "LeftOut"}]}
    server.put("queues", {**queue("kid", "root.team"), "status": left_out})
    server.put("pods", _pod("runs", "root.team"))

    async def during(file: QueueFile, control_loop: ControlLoop) -> None:
        pod = server.one("pods", "runs")
        assert pod is not None
        assert pod["spec"]["nodeName"] == "n"
        assert status_of(file.objects["kid"], file, control_loop)["conditions"][0]["reason"] == "LeftOut"
        await asyncio.sleep(100)
        assert "would become a parent" in status_of(file.objects["kid"], file, control_loop)["conditions"][0]["message"]
        server.remove("pods", "runs", "default")
        await asyncio.sleep(120)
        assert file.flaws == {}

    run_virtually(_serve(server, during, config_map))


def test_an_object_that_is_made_anew_has_a_status_too() -> None:
    """Also when nothing of it differs from the one before."""
    server = FakeServer()
    server.extensions.append(QUEUES.group_version)
    server.put("queues", {**queue("team"), "kind": "Queue"})

    async def during(file: QueueFile, control_loop: ControlLoop) -> None:
        server.remove("queues", "team")
        server.put("queues", {**queue("team"), "kind": "Queue"})
        await asyncio.sleep(5)
        found = server.one("queues", "team", "")
        assert found is not None
        assert found["status"]["conditions"][0]["status"] == "True"

    run_virtually(_serve(server, during))


def test_many_objects_are_read_a_few_times_when_some_of_them_are_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not once for each: the others are the same as if each had been tried by itself."""
    reads = 0

    def counted(text: str, source: str) -> Any:
        nonlocal reads
        reads += 1
        return queues_of(text, source)

    monkeypatch.setattr("fairlead.kubernetes.translate.queues.queues_of", counted)
    some = [queue(f"q{number:03}", guaranteed={"cpu": "1"}, max={"cpu": "2"}) for number in range(60)]
    wrong = queue("q030x", guaranteed={"cpu": "9"}, max={"cpu": "2"})
    below = queue("below", "root.q030x")
    found, flaws = merged(*some, wrong, below)
    assert sorted(flaws) == ["below", "q030x"]
    assert flaws["below"] == "its parent root.q030x is not accepted"
    assert all(f"root.q{number:03}" in found for number in range(60))
    assert reads < 25


@pytest.mark.parametrize("wrong", [{"max": {"cpu": "9"}}, {"guaranteed": {"cpu": "1"}}], ids=["max", "sum"])
def test_hundreds_that_are_wrong_are_read_a_few_times_too(wrong: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once their parent has a lower maximum, or guarantees less: 500 held the scheduler up for more than a minute."""
    reads: list[str] = []
    monkeypatch.setattr(
        "fairlead.kubernetes.translate.queues.queues_of", lambda *asked: reads.append("") or queues_of(*asked)
    )
    team = queue("team", max={"cpu": "8"}, guaranteed={"cpu": "8"})
    found, flaws = merged(team, *(queue(f"q{number:03}", "root.team", **wrong) for number in range(60)))
    fits = 8 if "guaranteed" in wrong else 0
    assert [path for path in found if ".q" in path] == [f"root.team.q{number:03}" for number in range(fits)]
    assert len(flaws) == 60 - fits
    assert len(reads) < 20


@pytest.mark.parametrize("seed", range(12))
def test_those_are_taken_that_can_be_one_after_the_other(seed: int) -> None:
    """In however many readings that is found out."""
    chance = random.Random(seed)
    names = [f"q{number}" for number in range(9)]
    made = []
    for number, name in enumerate(names):
        parent = chance.choice(["root", "root.lab", *(each["path"] for each in made[:4])])
        limits = {kind: {"cpu": str(chance.randint(1, 6))} for kind in ("max", "guaranteed") if chance.random() < 0.6}
        odd = {"properties": {"application.sort.policy": "odd"}} if chance.random() < 0.1 else {}
        made.append({**queue(name, parent, **limits, **odd), "path": f"{parent}.{name}", "number": number})
    taken: list[dict[str, Any]] = []
    for each in sorted(made, key=lambda q: (q["path"].count("."), q["path"])):
        if each["path"] in merged(*taken, each)[0]:
            taken.append(each)
    found, flaws = merged(*made)
    assert [path for path in found if path not in ("root", "root.lab")] == [
        path for path in merged(*taken)[0] if path not in ("root", "root.lab")
    ]
    assert set(flaws) == set(names) - {each["metadata"]["name"] for each in taken}


def test_each_sign_of_a_property_is_kept() -> None:
    """One beyond the 65,536th stopped the scheduler, and kept each new process from starting."""
    note = "a\N{GRINNING FACE}b\x7fc\x00d\u2028"
    found, flaws = merged(queue("a", properties={"note": note, "yes": "no"}), queue("b", max={"cpu": "many"}))
    assert found["root.a"].properties == {"note": note, "yes": "no"}
    assert list(flaws) == ["b"]


def test_a_queue_that_a_placement_rule_cannot_do_with_is_left_out() -> None:
    """Alone: the others, right or wrong, are said of as they are."""
    rules = "[{name: fixed, value: root.x.y, create: true}, {name: fixed, value: root.a}]"
    text = f"partitions:\n- name: default\n  placementrules: {rules}\n  queues: [{{name: a}}]\n"
    found, flaws = merged(queue("x"), queue("b"), queue("c", "root.b", max={"cpu": "-1"}), text=text)
    assert list(found) == ["root", "root.a", "root.b"]
    assert "root.x.y cannot be made, because root.x is a leaf" in flaws["x"]
    assert sorted(flaws) == ["c", "x"]


def test_one_that_says_more_than_a_text_can_hold_is_left_out_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """It cannot be read even by itself."""
    monkeypatch.setattr("fairlead.config.yamltree.MAX_NODES", 150)
    large = queue("a", properties={str(number): "" for number in range(90)})
    found, flaws = merged(large, queue("b"))
    assert "root.b" in found
    assert list(flaws) == ["a"]
    assert "more than 150 values" in flaws["a"]


def test_of_more_than_a_text_can_hold_the_last_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """And say so."""
    monkeypatch.setattr("fairlead.config.yamltree.MAX_NODES", 150)
    found, flaws = merged(*(queue(f"q{number:02}") for number in range(60)))
    assert "root.q09" in found
    assert sorted(found)[2:] == [f"root.q{number:02}" for number in range(60 - len(flaws))]
    assert "more than 150 values" in flaws["q59"]


def test_hundreds_that_are_wrong_by_their_sums_each_say_why() -> None:
    """Also when no two of them are alike."""
    team = queue("team", max={"cpu": "8"}, guaranteed={"cpu": "8"})
    wrong = [queue(f"q{number:03}", "root.team.sub", guaranteed={"cpu": f"{number + 5}"}) for number in range(100)]
    found, flaws = merged(team, queue("sub", "root.team"), *wrong)
    assert "root.team.sub.q000" in found
    assert len(flaws) == 99
    assert "the children of root.team are guaranteed vcore 109 together, more than its own 8" in flaws["q099"]
