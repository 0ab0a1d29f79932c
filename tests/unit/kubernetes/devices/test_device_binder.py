"""Pods with resource claims: they get a node with the devices, these are written on the claims, then they are bound."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from typing import Any

import msgspec
import pytest
from invariants.books import check_books
from seeds import seeds
from testbed import devices as bed
from testbed.devices import ClaimController, claim, claimed, device, device_class, device_slice, request
from testbed.fake_server import FakeServer
from testbed.faults import Fault, Faults, SeededFaults
from testbed.virtual_time import run_virtually

from fairlead.config import load_text
from fairlead.kubernetes.binder import Binder
from fairlead.kubernetes.client import Client
from fairlead.kubernetes.control_loop import ControlLoop
from fairlead.kubernetes.devices.allocator import allocate
from fairlead.kubernetes.devices.device_binder import PATIENCE_MS
from fairlead.service.kubernetes.pods import ClusterMoment

QUEUES = """
partitions:
  - name: default
    preemption: {rule: priority}
    placementrules: [{name: provided}, {name: fixed, value: root.default}]
    queues: [{name: root, submitacl: "*", queues: [{name: default}]}]
"""
BIG = f'device.attributes["{bed.DRIVER}"].model == "big"'


class NoBinding(Faults):
    """Every binding is refused for good, until it is told otherwise."""

    refuses, refused = True, 0

    def for_request(self, method: str, path: str) -> Fault:
        if not self.refuses or not path.endswith("/binding"):
            return Fault()
        self.refused += 1
        return Fault(status=403)


class Cluster:
    """A server with nodes that have devices, a controller of claims, and one scheduler at a time."""

    def __init__(self, faults: SeededFaults | None = None, nodes: int = 2, each: int = 2) -> None:
        self.server = FakeServer(faults)
        self.server.extensions = [bed.GROUP]
        self.server.put("deviceclasses", device_class())
        for number in range(nodes):
            self.node(f"n{number}")
            self.server.put("resourceslices", device_slice(f"n{number}", *(device(f"d{i}") for i in range(each))))
        self.claims = ClaimController(self.server)
        self.control_loop: ControlLoop
        self._serving: asyncio.Task[None] | None = None
        self._chance = random.Random(1)

    def node(self, name: str, **labels: str) -> None:
        room = {"allocatable": {"cpu": "8", "pods": "110"}}
        self.server.put("nodes", {"metadata": {"name": name, "labels": labels}, "spec": {}, "status": room})

    def pod(self, name: str, *claims: str, template: str = "", cpu: int = 1, priority: int = 0) -> None:
        containers = [{"name": "c", "resources": {"requests": {"cpu": str(cpu)}}}]
        asked = claimed(*claims, template=template)
        spec = {"schedulerName": "fairlead", "priority": priority, "containers": containers, **asked}
        self.server.put(
            "pods", {"metadata": {"name": name, "namespace": "default"}, "spec": spec, "status": {"phase": "Pending"}}
        )

    def put(self, *claims: dict[str, Any]) -> None:
        for each in claims:
            self.server.put("resourceclaims", each)

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

    async def end(self, name: str, phase: str = "Succeeded") -> None:
        there = self.server.one("pods", name)
        assert there is not None
        self.server.put("pods", {**there, "status": {**there["status"], "phase": phase}})

    # -- what there is --------------------------------------------------------------------------------------------

    def places(self, *names: str) -> list[str]:
        return [str((self.server.one("pods", name) or {"spec": {}})["spec"].get("nodeName") or "") for name in names]

    def runs(self, name: str) -> bool:
        return bool((self.server.one("pods", name) or {"status": {}})["status"].get("phase") == "Running")

    def status(self, name: str) -> dict[str, Any]:
        found = self.server.one("resourceclaims", name)
        assert found is not None
        return found.get("status") or {}

    def has(self, name: str) -> list[str]:
        """Pool and device of what a claim has."""
        results = self.status(name).get("allocation", {}).get("devices", {}).get("results", ())
        return [f"{result['pool']}/{result['device']}" for result in results]

    def why(self, name: str) -> str:
        return str(msgspec.to_builtins(ClusterMoment(self.control_loop.driver).why(f"default/{name}"))["sentence"])

    def check(self) -> None:
        """No device is two claims', and what is bound may use its claims, all of whose devices its node reaches."""
        check_books(self.control_loop.driver.scheduler)
        assert self.server.violations == []
        by_device: Counter[str] = Counter()
        for one in self.server.all("resourceclaims"):
            by_device.update(self.has(one["metadata"]["name"]))
        assert [name for name, count in by_device.items() if count > 1] == []
        for pod in self.server.all("pods"):
            node, meta = pod["spec"].get("nodeName"), pod["metadata"]
            if not node or pod["status"].get("phase") == "Succeeded" or meta.get("deletionTimestamp"):
                continue
            made = {s["name"]: s["resourceClaimName"] for s in pod["status"].get("resourceClaimStatuses", ())}
            for given in pod["spec"].get("resourceClaims", ()):
                name = given.get("resourceClaimName") or made[given["name"]]
                assert meta["uid"] in [user["uid"] for user in self.status(name)["reservedFor"]], meta["name"]
                assert {d.partition("/")[0] for d in self.has(name)} == {node}, meta["name"]


def test_the_claim_has_its_device_before_the_pod_is_bound() -> None:
    """With what class and claim tell the driver, where it can be used, and who uses it."""

    async def main() -> None:
        cluster = Cluster(nodes=1)
        opaque = {"driver": bed.DRIVER, "parameters": {"apiVersion": "x/v1", "kind": "Sharing", "way": "exclusive"}}
        of_class = device_class()
        of_class["spec"]["config"] = [{"opaque": opaque}]
        cluster.server.put("deviceclasses", of_class)
        cluster.put(claim("one", config=[{"requests": ["gpu"], "opaque": opaque}]))
        cluster.pod("p", "one")
        cluster.start()
        await asyncio.sleep(3)
        cluster.check()
        assert cluster.places("p") == ["n0"]
        status = cluster.status("one")
        pod = cluster.server.one("pods", "p")
        assert pod is not None
        assert status["reservedFor"] == [{"resource": "pods", "name": "p", "uid": pod["metadata"]["uid"]}]
        (result,) = status["allocation"]["devices"]["results"]
        assert result == {"request": "gpu", "driver": bed.DRIVER, "pool": "n0", "device": "d0"}
        assert [(c["source"], c["requests"], c["opaque"]) for c in status["allocation"]["devices"]["config"]] == [
            ("FromClass", ["gpu"], opaque), ("FromClaim", ["gpu"], opaque),
        ]  # fmt: skip
        fields = [{"key": "metadata.name", "operator": "In", "values": ["n0"]}]
        assert status["allocation"]["nodeSelector"] == {"nodeSelectorTerms": [{"matchFields": fields}]}
        one = cluster.server.one("resourceclaims", "one")
        assert one is not None
        assert one["metadata"]["finalizers"] == ["resource.kubernetes.io/delete-protection"]
        verbs = [(verb, plural) for _, verb, plural, _, _ in cluster.server.log.entries if verb in ("patch", "bind")]
        assert verbs.index(("bind", "pods")) > max(i for i, v in enumerate(verbs) if v == ("patch", "resourceclaims"))
        await cluster.kill()

    run_virtually(main())


def test_what_a_claim_tolerates_is_written_with_its_devices() -> None:
    """Else Kubernetes' controller of device taints would delete its pod at once, and whatever is made in its place."""
    tolerations = [{"key": "worn", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}]

    async def main() -> None:
        cluster = Cluster(nodes=1, each=0)
        worn = device("d0", taints=[{"key": "worn", "effect": "NoExecute"}])
        cluster.server.put("resourceslices", device_slice("n0", worn))
        cluster.put(claim("one", request(tolerations=tolerations)))
        cluster.pod("p", "one")
        cluster.start()
        await asyncio.sleep(3)
        assert cluster.places("p") == ["n0"]
        (result,) = cluster.status("one")["allocation"]["devices"]["results"]
        assert result["tolerations"] == tolerations
        await cluster.kill()

    run_virtually(main())


def test_who_finds_no_device_waits_in_line_and_says_so() -> None:
    """Until one is given back, or a slice brings more; the node's other room is no help."""

    async def main() -> None:
        cluster = Cluster(nodes=1, each=2)
        cluster.claims.templates["gpu"] = claim("gpu")
        cluster.start()
        for number in range(4):
            cluster.pod(f"p{number}", template="gpu")
        await asyncio.sleep(5)
        cluster.check()
        waiting = [name for name in ("p0", "p1", "p2", "p3") if cluster.places(name) == [""]]
        assert len(waiting) == 2
        assert "1 without the devices that it claims" in cluster.why(waiting[0])
        pod = cluster.server.one("pods", waiting[0])
        assert pod is not None
        assert "devices" in str(pod["status"]["conditions"])
        await cluster.end(next(name for name in ("p0", "p1", "p2", "p3") if name not in waiting))
        await asyncio.sleep(5)
        assert sorted(cluster.places(*waiting)) == ["", "n0"]
        cluster.server.put("resourceslices", device_slice("n0", *(device(f"d{i}") for i in range(3))))
        await asyncio.sleep(3)
        assert cluster.places(*waiting) == ["n0", "n0"]
        cluster.check()
        await cluster.kill()

    run_virtually(main())


def test_many_at_once_are_spread_over_what_there_is() -> None:
    """They are placed in one turn; who comes too late for a node goes to another one."""

    async def main() -> None:
        cluster = Cluster(nodes=6, each=3)
        cluster.claims.templates["gpu"] = claim("gpu")
        for number in range(20):
            cluster.pod(f"p{number}", template="gpu")
        await asyncio.sleep(1)
        cluster.start()
        await asyncio.sleep(20)
        cluster.check()
        placed = Counter(cluster.places(*(f"p{number}" for number in range(20))))
        assert placed == {**{f"n{i}": 3 for i in range(6)}, "": 2}
        await cluster.kill()

    run_virtually(main())


def test_pods_that_share_a_claim_share_its_node() -> None:
    """And the devices go back when the last of them is gone."""

    async def main() -> None:
        cluster = Cluster(nodes=3, each=1)
        cluster.put(claim("both"), claim("other"))
        for name in ("a", "b", "c"):
            cluster.pod(name, "both")
        cluster.start()
        await asyncio.sleep(3)
        cluster.check()
        (node,) = set(cluster.places("a", "b", "c"))
        assert node
        assert len(cluster.status("both")["reservedFor"]) == 3
        for name in ("a", "b", "c"):
            await cluster.end(name)
        await asyncio.sleep(1)
        assert cluster.status("both") == {}
        await cluster.kill()

    run_virtually(main())


def test_what_the_claims_lack_is_said() -> None:
    """Claim, class, template, a field that is not understood, a selector that fails; each until it is mended."""

    async def main() -> None:
        cluster = Cluster(nodes=1)
        cluster.put(
            claim("classless", request("x", "fast")),
            claim("part", request(capacity={"requests": {"memory": "1Gi"}})),
            claim("wrong", request("x", "gpu", 1, "device.attributes['gpu.example.com'].modell == 'big'")),
        )
        for name in ("missing", "classless", "part", "wrong"):
            cluster.pod(name, name)
        cluster.pod("unmade", template="later")
        cluster.start()
        await asyncio.sleep(3)
        assert cluster.places("missing", "classless", "part", "wrong", "unmade") == [""] * 5
        assert "resource claim default/missing is not there" in cluster.why("missing")
        assert "device class fast of resource claim default/classless is not there" in cluster.why("classless")
        assert "asks for capacity" in cluster.why("part")
        assert "there is no 'modell'" in cluster.why("wrong")
        assert "makes it from template later" in cluster.why("unmade")
        cluster.put(claim("missing"))
        cluster.server.put("deviceclasses", device_class("fast"))
        await asyncio.sleep(3)
        assert cluster.places("missing", "classless") == ["n0", "n0"]
        cluster.claims.templates["later"] = claim("later")
        cluster.node("n1")
        cluster.server.put(
            "resourceslices", device_slice("n1", {**device("d0"), "attributes": {"modell": {"string": "big"}}})
        )
        await asyncio.sleep(3)
        assert cluster.places("wrong") == ["n1"]
        cluster.check()
        await cluster.kill()

    run_virtually(main())


def test_other_schedulers_claims_count() -> None:
    """A device that a claim has, whoever gave it, is nobody else's; nor is one that the claim's own pod cannot use."""

    async def main() -> None:
        cluster = Cluster(nodes=2, each=1)
        result = {"request": "gpu", "driver": bed.DRIVER, "pool": "n0", "device": "d0"}
        cluster.put({**claim("theirs"), "status": {"allocation": {"devices": {"results": [result]}}}}, claim("mine"))
        cluster.pod("p", "mine")
        cluster.start()
        await asyncio.sleep(3)
        assert cluster.has("mine") == ["n1/d0"]
        cluster.check()
        await cluster.kill()

    run_virtually(main())


def test_a_binding_that_is_refused_gives_the_devices_back() -> None:
    """The pod waits again, and could have any other one."""

    async def main() -> None:
        cluster = Cluster(nodes=1, each=1)
        cluster.server.faults = faults = NoBinding()
        cluster.put(claim("one"))
        cluster.pod("p", "one")
        cluster.start()
        await asyncio.sleep(0.5)
        assert cluster.places("p") == [""]
        assert faults.refused == 1
        assert cluster.status("one") == {}
        faults.refuses = False
        await asyncio.sleep(5)
        assert cluster.places("p") == ["n0"]
        cluster.check()
        await cluster.kill()

    run_virtually(main())


def test_devices_that_tie_a_pod_to_a_full_node_are_given_back() -> None:
    """As after a death between the devices and the binding: first it waits for that node, then for any."""

    async def main() -> None:
        cluster = Cluster(nodes=2, each=1)
        cluster.put(claim("one"))
        cluster.pod("p", "one", cpu=4)
        cluster.start()
        await asyncio.sleep(3)
        (node,) = cluster.places("p")
        there = cluster.server.one("pods", "p")
        assert there is not None
        await cluster.kill()
        del there["spec"]["nodeName"]
        cluster.server.put("pods", {**there, "status": {"phase": "Pending"}})
        container = {"name": "c", "resources": {"requests": {"cpu": "6"}}}
        spec = {"schedulerName": "theirs", "nodeName": node, "containers": [container]}
        cluster.server.put("pods", {"metadata": {"name": "full", "namespace": "default"}, "spec": spec, "status": {}})
        cluster.start()
        await asyncio.sleep(3)
        assert cluster.places("p") == [""]
        assert cluster.has("one") == [f"{node}/d0"]
        await asyncio.sleep(PATIENCE_MS / 1000 + 10)
        assert cluster.places("p") == ["n1" if node == "n0" else "n0"]
        cluster.check()
        await cluster.kill()

    run_virtually(main())


@pytest.mark.parametrize("seed", seeds(3, 100))
def test_whatever_goes_wrong_no_device_is_given_twice(seed: int) -> None:
    """Faults of the server, our own death at any moment, pods that end, slices that go: in the end all run that can."""
    chance = random.Random(seed)

    async def main() -> None:
        faults = SeededFaults(seed, chance.choice([0.05, 0.2]))
        cluster = Cluster(faults, nodes=3)
        cluster.claims.templates["gpu"] = claim("gpu")
        cluster.claims.templates["two"] = claim("two", request("x", "gpu", 2))
        cluster.put(claim("shared"))
        cluster.start()
        for number in range(12):
            if number < 10:
                named = ("shared",) if number % 4 == 0 else ()
                cluster.pod(f"p{number}", *named, template="" if named else chance.choice(["gpu", "gpu", "two"]))
            await asyncio.sleep(chance.choice([0.0, 0.05, 0.3, 2.0]))
            if chance.random() < 0.3:
                cluster.server.put("resourceslices", device_slice("n0", device("d0")))
            running = [name for name in (f"p{i}" for i in range(number)) if cluster.runs(name)]
            if running and chance.random() < 0.4:
                await cluster.end(chance.choice(running))
            if chance.random() < 0.4:
                await cluster.kill()
                cluster.start()
        faults.calm = True
        cluster.server.put("resourceslices", device_slice("n0", device("d0"), device("d1")))
        for _ in range(12):
            await asyncio.sleep(40)
            cluster.check()
            for name in (f"p{number}" for number in range(10)):
                if cluster.runs(name):
                    await cluster.end(name)
        assert "" not in cluster.places(*(f"p{number}" for number in range(10)))
        await cluster.kill()

    run_virtually(main())


def test_devices_that_all_nodes_reach_are_searched_once_for_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """With 5,000 nodes each pod that got one held the scheduler up for a second."""
    searches: list[str] = []
    monkeypatch.setattr(
        "fairlead.kubernetes.devices.suitable_nodes.allocate", lambda *asked: searches.append("") or allocate(*asked)
    )

    async def main() -> None:
        cluster = Cluster(nodes=0)
        for number in range(30):
            cluster.node(f"n{number}")
        cluster.server.put("resourceslices", device_slice("net", device("d0"), device("d1"), allNodes=True))
        cluster.start()
        await asyncio.sleep(1)
        for number in range(3):
            cluster.put(claim(f"c{number}"))
            cluster.pod(f"p{number}", f"c{number}")
            await asyncio.sleep(2)
        assert [bool(place) for place in cluster.places("p0", "p1", "p2")] == [True, True, False]
        assert len(searches) < 20
        await cluster.kill()

    run_virtually(main())
