"""Whole control loops on virtual time against a server that fails in every way it can."""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import re
from typing import Any

import pytest
from invariants.books import check_books
from seeds import seeds
from testbed.fake_server import FakeServer
from testbed.faults import Fault, Faults, SeededFaults
from testbed.restarter import CONFIG, Restarter
from testbed.virtual_time import run_virtually

from fairlead.config import load_text
from fairlead.kubernetes import control_loop
from fairlead.kubernetes.binder import Binder
from fairlead.kubernetes.client import Client
from fairlead.kubernetes.control_loop import ControlLoop
from fairlead.kubernetes.kinds import POD_GROUPS
from fairlead.kubernetes.lease import Election
from fairlead.service.kubernetes.pods import ClusterMoment

SECOND = "2026-01-01T00:00:00Z"
SEEDS = int(os.environ.get("FAIRLEAD_SEEDS", "60"))
"""The first ones are in `make test`. 500 and more by hand: `FAIRLEAD_SEEDS=500`."""


def pod(name: str, cpu: int, priority: int = 0, grace: int = 30) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "schedulerName": "fairlead",
            "priority": priority,
            "terminationGracePeriodSeconds": grace,
            "containers": [{"name": "c", "resources": {"requests": {"cpu": str(cpu)}}}],
        },
        "status": {"phase": "Pending"},
    }


def node(name: str, cpu: int) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {}, "status": {"allocatable": {"cpu": str(cpu), "pods": "110"}}}


class Crew(Restarter):
    """Two of a name: one leads by a lease, the other waits; whoever loses the lease starts anew with nothing."""

    def __init__(self, server: FakeServer, seed: int, name: str, leading: list[str]) -> None:
        super().__init__(server, seed)
        self.name = name
        self.leading = leading
        self.terms = 0

    def start(self) -> None:
        self.task = asyncio.create_task(self._stand())

    async def _stand(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            self.terms += 1
            client = Client(self.server)
            stamp = lambda: f"{loop.time():.6f}"  # noqa: E731
            identity = f"{self.name}-{self.terms}"
            one = Election(client, "system", "fairlead", identity, stamp=stamp, chance=self.chance)
            await one.run(self._serve)

    async def _serve(self) -> None:
        assert self.leading == [], f"{self.leading} leads already"
        self.leading.append(self.name)
        super().start()
        serving = self.task
        assert serving is not None
        try:
            await serving
        finally:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)
            self.leading.remove(self.name)


def vain(server: FakeServer) -> list[str]:
    """Evictions that nobody was placed by: the preemptor still waits, and nobody above it took the node since.

    They were decided when the preemptor was nominated; the word may reach the server later than a binding does.
    """
    found = []
    pods = {p["metadata"]["uid"]: p for p in server.all("pods")}
    for at, _, _, victim, body in server.log.of("patch"):
        named = re.findall(r"uid-[0-9]+", body.partition("conditions")[2])
        preemptor = next((pods[uid] for uid in named if uid in pods), None) if "DisruptionTarget" in body else None
        if preemptor is None or preemptor["spec"].get("nodeName"):
            continue
        nominated = [
            when for when, _, _, name, change in server.log.of("patch")
            if when <= at and name.endswith("/" + preemptor["metadata"]["name"]) and '"nominatedNodeName": "' in change
        ]  # fmt: skip
        decided = max(nominated, default=at)
        above = [
            when for when, _, _, name, _ in server.log.of("bind")
            if when >= decided and priority_of(server, name) > preemptor["spec"]["priority"]
        ]  # fmt: skip
        if not above:
            found.append(f"{victim} for {preemptor['metadata']['name']}")
    return found


def priority_of(server: FakeServer, name: str) -> int:
    pod = server.one("pods", name.partition("/")[2])
    return pod["spec"]["priority"] if pod is not None else 99


def waiting(server: FakeServer) -> list[str]:
    return [p["metadata"]["name"] for p in server.all("pods") if not p["spec"].get("nodeName")]


def free(server: FakeServer) -> int:
    """The most that is free on one node, in cores."""
    most = 0
    for one in server.all("nodes"):
        used = sum(
            int(p["spec"]["containers"][0]["resources"]["requests"]["cpu"])
            for p in server.all("pods")
            if p["spec"].get("nodeName") == one["metadata"]["name"]
        )
        most = max(most, int(one["status"]["allocatable"]["cpu"]) - used)
    return most


def test_a_calm_control_loop_binds_all_that_fits() -> None:
    """Ten pods on two nodes with room for eight; when one ends, the next begins."""

    async def main() -> None:
        server = FakeServer()
        for name in ("n1", "n2"):
            server.put("nodes", node(name, 4))
        for number in range(10):
            server.put("pods", pod(f"p{number}", 1))
        restarter = Restarter(server, 1)
        restarter.start()
        await asyncio.sleep(3)
        assert len(waiting(server)) == 2
        told = [c for c in server.one("pods", waiting(server)[0])["status"]["conditions"] if c["status"] == "False"]  # type: ignore[index]
        assert told[0]["reason"] == "Unschedulable"
        assert "cpu" in told[0]["message"]
        bound = next(p for p in server.all("pods") if p["spec"].get("nodeName"))
        server.remove("pods", bound["metadata"]["name"], "default")
        await asyncio.sleep(3)
        assert len(waiting(server)) == 1
        assert restarter.control_loop is not None
        assert restarter.control_loop.timings.rebuilt >= 0
        await restarter.kill()
        assert not server.violations

    run_virtually(main())


def test_with_many_jobs_that_wait_a_start_leaves_time_to_renew_the_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    """Room for 10,000 jobs was asked for in one go, which takes longer than a lease lasts, at each start anew."""
    monkeypatch.setattr(control_loop, "BEGIN_AT_ONCE", 5)

    def job(number: int) -> dict[str, Any]:
        container = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
        template = {"spec": {"schedulerName": "fairlead", "restartPolicy": "Never", "containers": [container]}}
        meta = {"name": f"j{number}", "namespace": "default", "labels": {"fairlead.io/queue": "root.default"}}
        return {
            "metadata": meta,
            "spec": {"suspend": True, "parallelism": 2, "completions": 2, "template": template},
            "status": {},
        }

    async def main() -> None:
        server = FakeServer()
        server.put("nodes", node("n1", 4))
        for number in range(20):
            server.put("jobs", job(number))
        restarter = Restarter(server, 1)
        restarter.start()
        loop = restarter.control_loop
        assert loop is not None
        turns: list[int] = []

        def rebuilt(begun: ControlLoop) -> None:
            turns.append(begun.turns)
            server.remove("jobs", "j19", "default")

        loop.when_rebuilt = rebuilt
        loop.listeners.append(lambda _: turns.append(loop.turns))
        await asyncio.sleep(5)
        assert turns[1] - turns[0] >= 20 * 3 // 5 - 1
        going = [each["metadata"]["name"] for each in server.all("jobs") if not each["spec"]["suspend"]]
        assert len(going) == 2
        assert not [each for each in loop.driver.informer.pod_store.by_uid.values() if "j19[" in each.name.name]
        await restarter.kill()

    run_virtually(main())


def test_changes_that_take_long_leave_time_to_renew_the_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seven jobs of 10,000 pods that came at once kept the scheduler busy for longer than its lease lasts."""
    monkeypatch.setattr(control_loop, "TAKE_S", 0.0)

    async def main() -> None:
        server = FakeServer()
        server.put("nodes", node("n1", 40))
        restarter = Restarter(server, 1)
        restarter.start()
        await asyncio.sleep(5)
        loop = restarter.control_loop
        assert loop is not None
        turns = loop.turns
        for number in range(30):
            server.put("pods", pod(f"p{number}", 1))
        await asyncio.sleep(1)
        assert loop.turns - turns >= 30
        await asyncio.sleep(5)
        assert waiting(server) == []
        await restarter.kill()

    run_virtually(main())


def test_why_a_pod_waits_stands_on_it_also_after_the_server_was_ill() -> None:
    """An autoscaler of the cluster goes by it; the reason itself may stay the same for hours."""

    class Ill(Faults):
        calm = False

        def for_request(self, method: str, path: str) -> Fault:
            return Fault(status=500) if path.endswith("/status") and not self.calm else Fault()

    async def main() -> None:
        faults = Ill()
        server = FakeServer(faults)
        server.put("nodes", node("n1", 4))
        server.put("pods", pod("large", 8))
        alone, claims = pod("alone", 1), pod("claims", 1)
        alone["metadata"]["labels"] = {"scheduling.x-k8s.io/pod-group": "g"}
        claims["spec"]["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]
        server.put("pods", alone)
        server.put("pods", claims)
        restarter = Restarter(server, 1)
        restarter.start()
        await asyncio.sleep(10)
        assert not server.one("pods", "large")["status"].get("conditions")  # type: ignore[index]
        faults.calm = True
        await asyncio.sleep(10)
        for name, reason in (("large", "Unschedulable"), ("alone", "SchedulingSkipped"), ("claims", "Unschedulable")):
            (told,) = server.one("pods", name)["status"]["conditions"]  # type: ignore[index]
            assert (told["status"], told["reason"]) == ("False", reason)
        await restarter.kill()

    run_virtually(main())


def test_a_binding_that_the_server_cannot_carry_out_is_told_of_when_that_lasts() -> None:
    """A webhook in the way that does not answer, for example: the pod waited without a word, and had a place."""

    class Ill(Faults):
        calm = False

        def for_request(self, method: str, path: str) -> Fault:
            return Fault(status=500) if path.endswith("/binding") and not self.calm else Fault()

    async def main() -> None:
        faults = Ill()
        server = FakeServer(faults)
        server.put("nodes", node("n1", 4))
        server.put("pods", pod("web", 1))
        restarter = Restarter(server, 1)
        restarter.start()
        await asyncio.sleep(120)
        (told,) = [e for e in server.all("events") if e["reason"] == "FailedScheduling"]
        assert told["note"].startswith("it has a place on n1, and the API server fails to bind it there")
        assert restarter.control_loop is not None
        moment = ClusterMoment(restarter.control_loop.driver)
        said = moment.why("default/web")
        assert (said.state, said.sentence) == ("waiting", told["note"])
        faults.calm = True
        await asyncio.sleep(30)
        assert moment.why("default/web").state == "running"
        await restarter.kill()

    run_virtually(main())


def test_no_autoscaler_is_called_for_what_its_queue_holds_back() -> None:
    """A further node would stay empty. Where nodes are what is missing, also later on, one is asked for."""

    async def main() -> None:
        server = FakeServer()
        server.put("nodes", node("n1", 4))
        for name, cpu in (("runs", 2), ("waits", 2)):
            server.put("pods", pod(name, cpu))
        restarter = Restarter(server, 1)
        restarter.config = CONFIG.replace("{name: default}]", "{name: default, resources: {max: {vcore: 3}}}]")
        restarter.start()
        await asyncio.sleep(5)

        def told() -> dict[str, str]:
            pods = {name: server.one("pods", name) for name in waiting(server)}
            return {name: found["status"]["conditions"][0]["reason"] for name, found in pods.items() if found}

        assert told() == {"waits": "SchedulingSkipped"}
        server.remove("pods", "runs", "default")
        server.put("pods", pod("large", 3, priority=-1))
        server.remove("nodes", "n1")
        server.put("nodes", node("n2", 1))
        await asyncio.sleep(5)
        assert told() == {"waits": "Unschedulable", "large": "SchedulingSkipped"}, "one node is all that may be used"
        await restarter.kill()

    run_virtually(main())


def test_pods_of_one_second_keep_their_order_over_a_restart() -> None:
    """By arrival, whatever their names: those that were told why they wait, that were bound, and that are new."""

    async def main() -> None:
        server = FakeServer()
        names = ["p7", "p2", "p10", "p1", "p3"]
        for name in names[:4]:
            server.put("pods", {**pod(name, 4), "metadata": {**pod(name, 4)["metadata"], "creationTimestamp": SECOND}})
        restarter = Restarter(server, 1)
        restarter.start()
        await asyncio.sleep(0.5)
        server.put("nodes", node("n1", 4))
        await asyncio.sleep(10)
        assert len(waiting(server)) == 3
        await restarter.kill()
        last = pod(names[4], 4)
        server.put("pods", {**last, "metadata": {**last["metadata"], "creationTimestamp": SECOND}})
        started = []
        for _ in names:
            restarter.start()
            await asyncio.sleep(5)
            (running,) = (p["metadata"]["name"] for p in server.all("pods") if p["spec"].get("nodeName"))
            started.append(running)
            assert restarter.control_loop is not None
            known = restarter.control_loop.driver.informer.pod_store.by_uid.values()
            assert [each.name.name for each in known] == names[len(started) - 1 :]
            await restarter.kill()
            server.remove("pods", running, "default")
        assert started == names

    run_virtually(main())


def test_a_clock_that_moves_within_a_turn() -> None:
    """Each reading is later than the one before; a turn goes by one of them, also the first."""

    async def main() -> None:
        server = FakeServer()
        server.put("nodes", node("n1", 4))
        server.put("pods", pod("p", 1))
        ticks = itertools.count()
        client = Client(server)
        binder = Binder(client, lambda report: None, stamp=lambda: "2026-01-01T00:00:00.000000Z")
        now_ms = lambda: server.now_ms() + 7 * next(ticks)  # noqa: E731
        serving = asyncio.create_task(ControlLoop(client, binder, load_text(CONFIG), now_ms=now_ms).run())
        await asyncio.sleep(5)
        assert not serving.done()
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
        assert waiting(server) == []

    run_virtually(main())


@pytest.mark.parametrize("seed", seeds(20, SEEDS))
def test_whatever_goes_wrong_nothing_is_bound_twice_or_forgotten(seed: int) -> None:
    """Refused, lost and slow requests, stale and repeated changes, restarts of the server, our own sudden death.

    No pod is bound twice or on a full node, none is forgotten, no pod is evicted without the placement it makes room
    for.
    """
    chance = random.Random(seed)

    async def main() -> None:
        faults = SeededFaults(seed, chance.choice([0.02, 0.1, 0.3]))
        server = FakeServer(faults)
        for number in range(3):
            server.put("nodes", node(f"n{number}", chance.randrange(3, 6)))
        restarter = Restarter(server, seed)
        restarter.start()
        for number in range(25):
            act = chance.random()
            if act < 0.6:
                server.put(
                    "pods", pod(f"p{number}", chance.randrange(1, 4), chance.randrange(3), chance.choice([0, 1, 5]))
                )
            elif act < 0.75 and server.all("pods"):
                gone = chance.choice(server.all("pods"))
                server.remove("pods", gone["metadata"]["name"], "default")
            elif act < 0.8:
                await server.restart(chance.uniform(0.1, 5))
            elif act < 0.85:
                server.compact()
            elif act < 0.93:
                await restarter.kill()
                restarter.start()
            else:
                server.put("nodes", node(f"n{chance.randrange(4)}", 5))
            await asyncio.sleep(chance.choice([0.0, 0.01, 0.5, 4]))
        faults.calm = True
        await asyncio.sleep(400)
        assert restarter.task is not None
        assert not restarter.task.done()
        check_books(restarter.control_loop.driver.scheduler)  # type: ignore[union-attr]
        await restarter.kill()
        assert server.violations == []
        most = free(server)
        for name in waiting(server):
            needs = int(server.one("pods", name)["spec"]["containers"][0]["resources"]["requests"]["cpu"])  # type: ignore[index]
            assert needs > most, f"{name} needs {needs} and was forgotten: {most} are free on one node"
        binds = [entry[3] for entry in server.log.of("bind")]
        assert len(binds) == len(dict.fromkeys(binds))
        assert vain(server) == []

    run_virtually(main())


@pytest.mark.parametrize("seed", seeds(8, SEEDS // 3))
def test_two_schedulers_and_a_lease_that_is_lost(seed: int) -> None:
    """The lease is taken away in the middle of everything: never two at work, and the same laws hold."""
    chance = random.Random(seed)

    async def main() -> None:
        faults = SeededFaults(seed, chance.choice([0.05, 0.3]))
        server = FakeServer(faults)
        for number in range(3):
            server.put("nodes", node(f"n{number}", 4))
        leading: list[str] = []
        crews = [Crew(server, seed + 1, "a", leading), Crew(server, seed + 2, "b", leading)]
        stands = []
        for crew in crews:
            crew.start()
            stands.append(crew.task)
        for number in range(20):
            server.put("pods", pod(f"p{number}", chance.randrange(1, 4), chance.randrange(3), chance.choice([0, 1, 5])))
            if chance.random() < 0.3:
                # Somebody else writes the lease: whoever leads has lost it.
                lease = server.one("leases", "fairlead", "system")
                if lease is not None:
                    spec = {**lease["spec"], "holderIdentity": "stranger", "renewTime": f"x{number}"}
                    server.put("leases", {"metadata": {"name": "fairlead", "namespace": "system"}, "spec": spec})
            await asyncio.sleep(chance.choice([0.01, 0.5, 4, 20]))
        faults.calm = True
        await asyncio.sleep(500)
        for stand in stands:
            assert stand is not None
            assert not stand.done(), stand
            stand.cancel()
            await asyncio.gather(stand, return_exceptions=True)
        assert sum(crew.terms for crew in crews) >= 2
        assert server.violations == []
        assert vain(server) == []
        most = free(server)
        for name in waiting(server):
            needs = int(server.one("pods", name)["spec"]["containers"][0]["resources"]["requests"]["cpu"])  # type: ignore[index]
            assert needs > most, f"{name} needs {needs} and was forgotten: {most} are free on one node"

    run_virtually(main())


def test_a_kind_that_its_group_does_not_have_keeps_nothing_from_starting() -> None:
    """The scheduler-plugins' group has elastic quotas too, and each has a definition of its own. It may come later."""

    async def main() -> None:
        server = FakeServer()
        server.extensions.append(POD_GROUPS.group_version)
        server.lacks.append(POD_GROUPS.plural)
        server.put("nodes", node("n1", 4))
        server.put("pods", pod("p", 1))
        crew = Restarter(server, 1)
        crew.start()
        await asyncio.sleep(5)
        assert server.all("pods")[0]["spec"].get("nodeName") == "n1"
        server.lacks.clear()
        group = {"metadata": {"name": "ring", "namespace": "default"}, "spec": {"minMember": 1}}
        server.put(POD_GROUPS.plural, group)
        member = pod("q", 1)
        member["metadata"]["labels"] = {"scheduling.x-k8s.io/pod-group": "ring"}
        server.put("pods", member)
        await asyncio.sleep(60)
        assert server.all("pods")[1]["spec"].get("nodeName") == "n1"
        await crew.kill()

    run_virtually(main())


class Forbidding(Faults):
    """Kinds that our role does not have, by plural."""

    def __init__(self, *plurals: str) -> None:
        self.plurals = list(plurals)

    def for_request(self, method: str, path: str) -> Fault:
        return Fault(status=403) if path.rpartition("/")[2] in self.plurals else Fault()


def test_a_kind_that_we_may_not_list_keeps_nothing_from_starting_where_a_cluster_can_do_without() -> None:
    """It is said, and looked for again; a kind that every cluster has keeps all waiting, and that is said too."""

    async def main() -> None:
        server = FakeServer(Forbidding(POD_GROUPS.plural, "nodes"))
        server.extensions.append(POD_GROUPS.group_version)
        server.put("nodes", node("n1", 4))
        server.put("pods", pod("p", 1))
        crew = Restarter(server, 1)
        crew.start()
        assert crew.control_loop is not None
        await asyncio.sleep(5)
        said = list(crew.control_loop.problems())
        assert [each.partition(":")[0] for each in said] == [
            "nodes cannot be listed, and nothing is scheduled before that",
            "podgroups.scheduling.x-k8s.io cannot be listed, and pods are scheduled as if there were none",
        ]
        server.faults.plurals.remove("nodes")  # type: ignore[attr-defined]
        await asyncio.sleep(60)
        assert server.all("pods")[0]["spec"].get("nodeName") == "n1"
        server.faults.plurals.clear()  # type: ignore[attr-defined]
        await asyncio.sleep(60)
        assert list(crew.control_loop.problems()) == []
        await crew.kill()

    run_virtually(main())


def test_a_kind_that_we_may_list_and_not_watch_is_said() -> None:
    """All went on as if nothing were new, and whoever asked heard that all is well."""

    async def main() -> None:
        server = FakeServer(Forbidding())
        server.put("nodes", node("n1", 4))
        crew = Restarter(server, 1)
        crew.start()
        assert crew.control_loop is not None
        await asyncio.sleep(5)
        assert list(crew.control_loop.problems()) == []
        server.faults.plurals.append("pods")  # type: ignore[attr-defined]
        await asyncio.sleep(1200)
        (said,) = crew.control_loop.problems()
        assert said.startswith("pods cannot be watched, and what was known of them counts: 403")
        server.faults.plurals.clear()  # type: ignore[attr-defined]
        await asyncio.sleep(60)
        assert list(crew.control_loop.problems()) == []
        await crew.kill()

    run_virtually(main())
