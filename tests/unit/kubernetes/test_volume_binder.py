"""Volumes that wait for their consumer: a pod gets its node, then its volume is made there, then it is bound."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import msgspec
import pytest
from invariants.books import check_books
from testbed.fake_server import FakeServer
from testbed.faults import SeededFaults
from testbed.provisioner import SELECTED, Provisioner, claim, storage_class, volume
from testbed.virtual_time import run_virtually

from fairlead.config import load_text
from fairlead.kubernetes.binder import Binder
from fairlead.kubernetes.client import Client
from fairlead.kubernetes.control_loop import ControlLoop
from fairlead.kubernetes.storage import NOBODY, Storage
from fairlead.kubernetes.volume_binder import PATIENCE_MS
from fairlead.service.kubernetes.pods import ClusterMoment

QUEUES = """
partitions:
  - name: default
    preemption: {rule: priority}
    placementrules: [{name: provided}, {name: fixed, value: root.default}]
    queues: [{name: root, submitacl: "*", queues: [{name: default}]}]
"""


class Sea:
    """A server with nodes of four cores, a provisioner, and one scheduler at a time."""

    def __init__(self, faults: SeededFaults | None = None, nodes: int = 2) -> None:
        self.server = FakeServer(faults)
        self.server.put("storageclasses", storage_class())
        for number in range(nodes):
            self.node(f"n{number}")
        self.maker = Provisioner(self.server)
        self.control_loop: ControlLoop
        self._serving: asyncio.Task[None] | None = None
        self._chance = random.Random(1)

    def node(self, name: str) -> None:
        labels = {"kubernetes.io/hostname": name, "zone": f"z{name[1:]}"}
        room = {"allocatable": {"cpu": "4", "pods": "110"}}
        self.server.put("nodes", {"metadata": {"name": name, "labels": labels}, "spec": {}, "status": room})

    def pod(self, name: str, *claims: str, cpu: int = 1, priority: int = 0, created: str = "") -> None:
        volumes = [{"name": c, "persistentVolumeClaim": {"claimName": c}} for c in claims]
        containers = [{"name": "c", "resources": {"requests": {"cpu": str(cpu)}}}]
        spec = {"schedulerName": "fairlead", "priority": priority, "containers": containers, "volumes": volumes}
        meta = {"name": name, "namespace": "default", **({"creationTimestamp": created} if created else {})}
        self.server.put("pods", {"metadata": meta, "spec": spec, "status": {"phase": "Pending"}})

    def start(self) -> None:
        client = Client(self.server)
        stamp = lambda: "2026-01-01T00:00:00.000000Z"  # noqa: E731
        binder = Binder(client, lambda r: control_loop.report(r), stamp=stamp, chance=self._chance)
        now_ms = self.server.now_ms
        control_loop = ControlLoop(client, binder, load_text(QUEUES), now_ms=now_ms, chance=self._chance)
        self.control_loop, self._serving = control_loop, asyncio.create_task(control_loop.run())

    async def kill(self) -> None:
        assert self._serving is not None
        assert not self._serving.done(), self._serving
        self._serving.cancel()
        await asyncio.gather(self._serving, return_exceptions=True)

    # -- what there is --------------------------------------------------------------------------------------------

    def place(self, name: str) -> str:
        pod = self.server.one("pods", name)
        assert pod is not None
        return str(pod["spec"].get("nodeName", ""))

    def selected(self, name: str = "disk") -> str:
        found = self.server.one("persistentvolumeclaims", name)
        assert found is not None
        return str(found["metadata"].get("annotations", {}).get(SELECTED, ""))

    def condition(self, name: str) -> dict[str, Any]:
        pod = self.server.one("pods", name)
        assert pod is not None
        return next((c for c in pod["status"].get("conditions", ()) if c["type"] == "PodScheduled"), {})

    def why(self, name: str) -> dict[str, Any]:
        return dict(msgspec.to_builtins(ClusterMoment(self.control_loop.driver).why(f"default/{name}")))

    def check(self) -> None:
        """Whatever is bound has its volumes, all of which can be used there; no volume is two claims'."""
        check_books(self.control_loop.driver.scheduler)
        assert self.server.violations == []
        claims = {c["metadata"]["name"]: c for c in self.server.all("persistentvolumeclaims")}
        volumes = {v["metadata"]["name"]: v for v in self.server.all("persistentvolumes")}
        owned = [c["spec"]["volumeName"] for c in claims.values() if c["spec"].get("volumeName")]
        assert len(owned) == len(set(owned))
        for pod in self.server.all("pods"):
            node = pod["spec"].get("nodeName")
            for used in pod["spec"]["volumes"] if node else ():
                its = claims[used["persistentVolumeClaim"]["claimName"]]
                assert its["status"]["phase"] == "Bound", pod["metadata"]["name"]
                terms = volumes[its["spec"]["volumeName"]]["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
                assert terms[0]["matchExpressions"][0]["values"] == [node]


def test_the_claim_names_the_node_and_the_pod_waits_for_the_volume() -> None:
    """Not bound before; the condition and `why` say for what it waits, and no autoscaler is called."""

    async def main() -> None:
        sea = Sea()
        sea.maker.takes_s = 30
        sea.server.put("persistentvolumeclaims", claim("disk"))
        sea.pod("p", "disk")
        sea.pod("q")
        sea.start()
        await asyncio.sleep(3)
        assert (sea.place("p"), sea.place("q") != "") == ("", True)
        assert sea.selected() in ("n0", "n1")
        told = sea.condition("p")
        assert told["reason"] == "WaitingForVolumes"
        assert f"a place on {sea.selected()}" in told["message"]
        assert "default/disk" in told["message"]
        assert (sea.why("p")["state"], sea.why("p")["reason"]["code"]) == ("waiting", "volume-awaited")
        await asyncio.sleep(30)
        assert sea.place("p") == sea.selected()
        sea.check()
        assert sea.why("p")["state"] == "running"
        assert len([e for e in sea.server.log.of("patch") if e[2] == "persistentvolumeclaims"]) == 1
        await sea.kill()

    run_virtually(main())


def test_a_pod_that_waits_says_no_more_that_its_volume_is_not_there() -> None:
    """Claims and volumes are heard of apart, so a volume may be missing for a moment; then it waits as before."""

    async def main() -> None:
        sea = Sea(nodes=1)
        sea.server.put("persistentvolumeclaims", claim("disk"))
        sea.pod("first", "disk", cpu=3)
        sea.start()
        await asyncio.sleep(5)
        assert sea.place("first")
        sea.pod("p", "disk", cpu=3)
        await asyncio.sleep(5)
        reason = "needs cpu 3; all nodes together have cpu 1 free of cpu 4"
        assert sea.condition("p")["message"] == reason
        (volume,) = sea.server.all("persistentvolumes")
        sea.server.remove("persistentvolumes", volume["metadata"]["name"])
        await asyncio.sleep(0.2)
        assert "which is not there" in sea.condition("p")["message"]
        del volume["metadata"]["uid"]
        sea.server.put("persistentvolumes", volume)
        await asyncio.sleep(5)
        assert sea.condition("p")["message"] == reason
        await sea.kill()

    run_virtually(main())


def test_the_class_says_where_volumes_can_be_made() -> None:
    """Only nodes of its topology count; without one the pod waits and says so."""

    async def main() -> None:
        sea = Sea()
        sea.server.put("storageclasses", storage_class("east", "disks.example", "z1"))
        sea.server.put("storageclasses", storage_class("west", "disks.example", "z9"))
        for name in ("east", "west"):
            sea.server.put("persistentvolumeclaims", claim(name, name))
        sea.pod("p", "east", cpu=4)
        sea.pod("q", "west")
        sea.start()
        await asyncio.sleep(5)
        assert (sea.place("p"), sea.place("q")) == ("n1", "")
        assert sea.why("q")["state"] == "waiting"
        sea.node("n9")
        await asyncio.sleep(5)
        assert sea.place("q") == "n9"
        sea.check()
        await sea.kill()

    run_virtually(main())


def test_a_node_that_is_given_back_is_left() -> None:
    """The provisioner takes the node off the claim: the pod goes to another one; meanwhile its room is free."""

    async def main() -> None:
        sea = Sea(nodes=2)
        sea.server.put("persistentvolumeclaims", claim("disk"))
        sea.pod("p", "disk", cpu=3)
        sea.start()
        await asyncio.sleep(1)
        first = sea.selected()
        sea.maker.refuses = {first: None}
        await asyncio.sleep(10)
        assert sea.place("p") not in ("", first)
        sea.pod("q", cpu=4)
        await asyncio.sleep(2)
        assert sea.place("q") == first
        sea.check()
        await sea.kill()

    run_virtually(main())


def test_no_volume_within_ten_minutes() -> None:
    """The placement is undone, the node taken off the claim, and the pod tried again; it says so meanwhile."""

    async def main() -> None:
        sea = Sea(nodes=1)
        sea.maker.asleep = True
        sea.server.put("persistentvolumeclaims", claim("disk"))
        sea.pod("p", "disk")
        sea.start()
        await asyncio.sleep(PATIENCE_MS / 1000 - 1)
        assert sea.selected() == "n0"
        assert "waits there" in sea.condition("p")["message"]
        selections = lambda: [e for e in sea.server.log.of("patch") if e[2] == "persistentvolumeclaims"]  # noqa: E731
        assert len(selections()) == 1
        await asyncio.sleep(90)
        assert [SELECTED in e[4] and '"n0"' in e[4] for e in selections()] == [True, False, True]
        events = [e["note"] for e in sea.server.all("events")]
        assert any("no volume came for default/disk on n0 within 10 minutes" in note for note in events)
        sea.maker.asleep = False
        await asyncio.sleep(10)
        assert sea.place("p") == "n0"
        sea.check()
        await sea.kill()

    run_virtually(main())


def test_killed_between_the_choice_and_the_binding() -> None:
    """The next process finds the node on the claim, and keeps it for the pod before work that is older."""

    async def main() -> None:
        sea = Sea(nodes=1)
        sea.maker.asleep = True
        sea.server.put("persistentvolumeclaims", claim("disk"))
        sea.pod("z", "disk", cpu=3)
        sea.start()
        await asyncio.sleep(2)
        assert sea.selected() == "n0"
        await sea.kill()
        sea.pod("a", cpu=3, created="2025-01-01T00:00:00Z")
        sea.start()
        await asyncio.sleep(5)
        assert (sea.place("a"), sea.place("z")) == ("", "")
        assert sea.why("z")["reason"]["code"] == "volume-awaited"
        sea.maker.asleep = False
        await asyncio.sleep(5)
        assert (sea.place("a"), sea.place("z")) == ("", "n0")
        sea.check()
        await sea.kill()

    run_virtually(main())


def test_a_volume_that_came_elsewhere() -> None:
    """It is not bound where its volume cannot be used; it follows the volume."""

    async def main() -> None:
        sea = Sea()
        sea.server.put("persistentvolumeclaims", claim("disk"))
        sea.pod("p", "disk")
        sea.start()
        await asyncio.sleep(0.5)
        sea.maker.elsewhere = {"n0": "n1", "n1": "n0"}[sea.selected()]
        await asyncio.sleep(10)
        assert sea.place("p") == sea.maker.elsewhere
        sea.check()
        await sea.kill()

    run_virtually(main())


def test_two_pods_share_a_claim() -> None:
    """The second goes where the first does, however both were placed at the same moment."""

    async def main() -> None:
        sea = Sea(nodes=4)
        sea.server.put("persistentvolumeclaims", claim("disk"))
        for name in ("p", "q", "r"):
            sea.pod(name, "disk", cpu=1)
        sea.start()
        await asyncio.sleep(30)
        assert len({sea.place(name) for name in ("p", "q", "r")}) == 1
        assert sea.place("p")
        # Nothing was asked of the server that it had to refuse.
        assert sea.control_loop.refused == 0
        sea.check()
        await sea.kill()

    run_virtually(main())


def test_the_node_goes_and_the_pod_goes() -> None:
    """A node that is lost is taken off the claim; a pod that is deleted leaves nothing in the books."""

    async def main() -> None:
        sea = Sea(nodes=2)
        sea.maker.asleep = True
        sea.server.put("persistentvolumeclaims", claim("disk"))
        sea.pod("p", "disk")
        sea.start()
        await asyncio.sleep(2)
        first = sea.selected()
        sea.server.remove("nodes", first)
        await asyncio.sleep(5)
        second = sea.selected()
        assert second not in ("", first)
        sea.server.remove("pods", "p", "default")
        sea.pod("q", cpu=4)
        await asyncio.sleep(3)
        assert sea.place("q") == second
        sea.check()
        await sea.kill()

    run_virtually(main())


@pytest.mark.parametrize("provisioner", [NOBODY, "disks.example"])
def test_a_volume_that_somebody_keeps_for_a_claim_by_its_name(provisioner: str) -> None:
    """As for the claims that a set of pods makes: it is the one, and none is made beside it. One too small is not."""

    async def main() -> None:
        sea = Sea(nodes=3)
        sea.server.put("storageclasses", storage_class("kept", provisioner))
        for name, node, size in (("small", "n1", "1Mi"), ("mine", "n2", "1Gi")):
            its = volume(name, node)
            its["spec"] |= {"claimRef": {"namespace": "default", "name": "disk"}, "storageClassName": "kept"}
            its["spec"]["capacity"]["storage"] = size
            sea.server.put("persistentvolumes", its)
        sea.server.put("persistentvolumeclaims", claim("disk", "kept"))
        sea.pod("p", "disk")
        sea.start()
        await asyncio.sleep(20)
        assert (sea.place("p"), sea.selected()) == ("n2", "")
        assert [v["metadata"]["name"] for v in sea.server.all("persistentvolumes")] == ["mine", "small"]
        sea.check()
        await sea.kill()

    run_virtually(main())


def test_who_waits_for_a_volume_leaves_a_node_on_which_nothing_may_stay() -> None:
    """As when that is unreachable: the taint controller sees to pods that are bound, and to no others."""

    async def main() -> None:
        sea = Sea(nodes=2)
        sea.maker.takes_s = 60
        sea.server.put("persistentvolumeclaims", claim("disk"))
        sea.pod("p", "disk")
        sea.start()
        await asyncio.sleep(2)
        first = sea.selected()
        node = sea.server.one("nodes", first, "")
        assert node is not None
        sea.server.put("nodes", {**node, "spec": {"taints": [{"key": "broken", "effect": "NoExecute"}]}})
        await asyncio.sleep(1)
        assert "NoExecute taint that it does not tolerate: broken" in sea.why("p")["reason"]["sentence"]
        await asyncio.sleep(5)
        assert sea.selected() not in ("", first)
        await asyncio.sleep(90)
        assert sea.place("p") == sea.selected()
        sea.check()
        await sea.kill()

    run_virtually(main())


def test_who_waits_for_a_volume_makes_room_without_being_deleted() -> None:
    """Higher priority takes its room; it has not begun, so it waits again and is no victim of the server's."""

    async def main() -> None:
        sea = Sea(nodes=1)
        sea.maker.takes_s = 60
        sea.server.put("persistentvolumeclaims", claim("disk"))
        sea.pod("low", "disk", cpu=4)
        sea.start()
        await asyncio.sleep(2)
        sea.pod("high", cpu=4, priority=9)
        await asyncio.sleep(5)
        assert sea.place("high") == "n0"
        assert sea.server.log.of("delete") == []
        sea.server.remove("pods", "high", "default")
        await asyncio.sleep(150)
        assert sea.place("low") == "n0"
        sea.check()
        await sea.kill()

    run_virtually(main())


def test_local_volumes_are_chosen_and_kept() -> None:
    """A class without a provisioner: the smallest free volume that does, on a node with room; each for one claim."""

    async def main() -> None:
        sea = Sea(nodes=3)
        sea.server.put("storageclasses", storage_class("local", NOBODY))
        sea.server.put("persistentvolumeclaims", claim("a", "local", "2Gi"))
        sea.server.put("persistentvolumeclaims", claim("b", "local", "1Gi"))
        sea.pod("p", "a", "b")
        sea.start()
        await asyncio.sleep(3)
        assert "no free volume of class local" in sea.why("p")["sentence"]
        # Only n1 has two that suit; one of n0 is enough for one claim alone, those of n2 belong to another class.
        for name, node, size, of_class in (
            ("v0", "n0", "9Gi", "local"), ("v1", "n1", "3Gi", "local"), ("v2", "n1", "2Gi", "local"),
            ("v3", "n1", "50Gi", "local"), ("v4", "n2", "5Gi", "other"), ("v5", "n2", "5Gi", "other"),
        ):  # fmt: skip
            made = volume(name, node, like={"storageClassName": of_class})
            made["spec"]["capacity"]["storage"] = size
            sea.server.put("persistentvolumes", made)
        await asyncio.sleep(5)
        assert sea.place("p") == "n1"
        owned = {c["metadata"]["name"]: c["spec"]["volumeName"] for c in sea.server.all("persistentvolumeclaims")}
        assert owned == {"a": "v2", "b": "v1"}
        sea.check()
        await sea.kill()

    run_virtually(main())


def test_volumes_that_come_at_once_have_pods_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """800 pods that waited for one of 800 local volumes were each looked at 800 times, in minutes."""
    looks: list[str] = []
    why_not = Storage.why_not
    monkeypatch.setattr(Storage, "why_not", lambda *asked: looks.append("") or why_not(*asked))

    async def main() -> None:
        sea = Sea(nodes=3)
        sea.server.put("storageclasses", storage_class("local", NOBODY))
        for number in range(12):
            sea.server.put("persistentvolumeclaims", claim(f"c{number}", "local"))
            sea.pod(f"p{number}", f"c{number}")
        sea.start()
        await asyncio.sleep(3)
        looks.clear()
        for number in range(24):
            sea.server.put(
                "persistentvolumes", volume(f"v{number}", f"n{number % 3}", like={"storageClassName": "local"})
            )
        await asyncio.sleep(0.04)
        assert 12 <= len(looks) <= 100
        await asyncio.sleep(5)
        assert all(sea.place(f"p{number}") for number in range(12))
        sea.check()
        await sea.kill()

    run_virtually(main())


@pytest.mark.parametrize("seed", range(6))
def test_whatever_goes_wrong_no_pod_is_bound_without_its_volume(seed: int) -> None:
    """Faults of the server, a provisioner that refuses, our own death at any moment: in the end all run."""
    chance = random.Random(seed)

    async def main() -> None:
        faults = SeededFaults(seed, chance.choice([0.05, 0.2]))
        sea = Sea(faults, nodes=3)
        sea.server.put("storageclasses", storage_class("local", NOBODY))
        for number in range(4):
            made = volume(f"v{number}", f"n{number % 3}", like={"storageClassName": "local"})
            sea.server.put("persistentvolumes", made)
        sea.start()
        for number in range(10):
            if number < 9:
                kind = "local" if number % 3 == 0 else "later"
                sea.server.put("persistentvolumeclaims", claim(f"c{number}", kind))
                sea.pod(f"p{number}", f"c{number}", priority=chance.randrange(2))
            await asyncio.sleep(chance.choice([0.0, 0.3, 2.0, 6.0]))
            sea.maker.refuses = {f"n{chance.randrange(3)}": None} if chance.random() < 0.5 else {}
            if chance.random() < 0.4:
                await sea.kill()
                sea.start()
        faults.calm, sea.maker.refuses = True, {}
        await asyncio.sleep(900)
        sea.check()
        assert [name for number in range(9) if not sea.place(name := f"p{number}")] == []
        await sea.kill()

    run_virtually(main())
