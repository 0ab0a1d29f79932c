"""The control loop in a cluster at random, in which everything happens: what it knows in the end is what is there."""

from __future__ import annotations

import asyncio
import os
import random
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from invariants.books import check_books
from testbed.faults import Faults, SeededFaults
from testbed.restarter import Restarter
from testbed.virtual_time import run_virtually
from testbed.whole_cluster import Server, WholeCluster
from testbed.wider_cluster import WiderCluster

from fairlead.config import load_text
from fairlead.kubernetes.acts import Bind, KeepVolume, SelectNode
from fairlead.kubernetes.control_loop import WATCHED, ControlLoop, _order_of_start
from fairlead.kubernetes.driver import ENDURES, Driver
from fairlead.kubernetes.pod_store import Books, KnownPod
from fairlead.kubernetes.reflector import Changed
from fairlead.service.kubernetes.pods import ClusterMoment

SEEDS = int(os.environ.get("FAIRLEAD_SEEDS", "2"))
"""The first ones are in `make test`. By hand: `FAIRLEAD_SEEDS=300`."""
STEPS = 30
DRAINS = 30
FIELDS = (
    "resources", "priority", "labels", "task_group", "placeholder", "application", "idle", "node", "time_limit_ms",
    "allow_preempt_self", "allow_preempt_other",
)  # fmt: skip


def fresh(server: Server, config: str, now_ms: int, has: Callable[[str], bool] = lambda _: True) -> Driver:
    """What a scheduler that begins now makes of all that is there, or of these pods and all else."""
    driver = Driver(load_text(config), now_ms)
    kinds = [kind for kind in WATCHED if not kind.optional or kind.group_version in server.extensions]
    things = [(kind, each) for kind in kinds for each in server.all(kind.plural)]
    there = [
        Changed(kind, msgspec.convert(each, kind.type))
        for kind, each in things
        if kind.plural != "pods" or has(each["metadata"]["uid"])
    ]
    for change in sorted(there, key=_order_of_start):
        driver.take(change, now_ms)
    return driver


def pods_of(driver: Driver) -> list[KnownPod]:
    return [each for each in driver.informer.pod_store.by_uid.values() if each.name.stands_for is None]


def picture(driver: Driver) -> dict[str, Any]:
    """What is known, as lines that can be compared one by one."""
    found: dict[str, Any] = {}
    for pod in pods_of(driver):
        of = f"pod {pod.name}"
        found[of] = pod.name.uid, pod.application, pod.foreign, pod.bound, pod.leaving, pod.group, pod.queue
        found[f"{of} asks"] = {field: getattr(pod.spec, field) for field in FIELDS}
        endured = tuple(each for each in pod.spec.where.tolerations if each != ENDURES)
        found[f"{of} runs where"] = replace(pod.spec.where, tolerations=endured)
        if pod.bound:
            found[f"{of} stands"] = pod.books, pod.node
    for name, node in driver.informer.around.nodes.items():
        attributes = {key: value for key, value in node.attributes.items() if not key.startswith("devices.")}
        found[f"node {name}"] = node.capacity, attributes, node.taints, node.schedulable
    for job in driver.informer.workloads.store.by_uid.values():
        found[f"workload {job.spec.name}"] = job.spec.shape, job.spec.suspended
    return found


def in_use(driver: Driver) -> dict[str, Any]:
    """What each queue uses."""
    root = driver.scheduler.cluster.partitions["default"].root
    queues = [root, *root.children.values()]
    return {f"queue {queue.path}": {name: n for name, n in queue.allocated.items() if n} for queue in queues}


def differences(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    keys = {**one, **other}
    return [f"{key}: {one.get(key)}; anew {other.get(key)}" for key in keys if one.get(key) != other.get(key)]


def left_behind(driver: Driver, server: Server) -> list[str]:
    """What is remembered of what is no more."""
    informer = driver.informer
    there = {each["metadata"]["uid"] for kind in ("pods", "jobs", "jobsets", "podgroups") for each in server.all(kind)}
    there |= {uid for workload in informer.workloads.store.by_uid.values() for uid in workload.stand_ins}
    tables = {
        "pods": informer.pod_store.by_uid,
        "workloads": informer.workloads.store.by_uid,
        "waiting": informer.waiting,
        "without a node": [uid for uids in informer.pod_store.homeless.values() for uid in uids],
        "asks": [u for a in driver.scheduler.cluster.partitions["default"].applications.values() for u in a.asks],
    }
    names = {(each["metadata"]["namespace"], each["metadata"]["name"]) for each in server.all("pods")}
    found = [f"passed over: {name}" for name in informer.pod_store.passed_over if name not in names]
    found += [f"{name}: {uid}" for name, uids in tables.items() for uid in uids if uid not in there]
    by_application = {"gangs": informer.gangs.declared, "refused": informer.refused, "specs": informer.specs}
    members = informer.pod_store.by_application
    return found + [f"{name}: {app}" for name, apps in by_application.items() for app in apps if app not in members]


def without_numbers(text: str) -> str:
    """A reason as far as it stays the same for a minute: which node comes nearest, and how near, does not."""
    if "on one node" in text or "all nodes together have" in text or "what its queue or a limit has left" in text:
        return "lacks room"
    return re.sub(r"\b[nj]?\d+\b", "#", text)


def said_wrongly(control_loop: ControlLoop, server: Server) -> list[str]:
    """Pods that wait and do not say why, or for another reason; and those with a place that is not theirs. What one is
    about to say, once its reason has come and gone often enough, is not looked at.
    """
    driver, found, held = control_loop.driver, list[str](), control_loop._binder._talk._held
    informer, moment = driver.informer, ClusterMoment(driver)
    for pod in pods_of(driver):
        thing = server.one("pods", pod.name.name, pod.name.namespace)
        if thing is None or pod.bound or pod.leaving or pod.foreign:
            continue
        said = next((c for c in thing["status"].get("conditions", ()) if c["type"] == "PodScheduled"), {})
        reason = driver.scheduler.why(pod.application, pod.name.uid, informer.partition)
        in_its_way = informer.reader.in_its_way(pod)
        why = in_its_way[1] if in_its_way else ""
        if pod.books is Books.WAITING:
            why = informer.pod_store.with_names(reason.sentence()) if reason is not None else ""
        if pod.books is Books.PLACED or not why or said.get("status") != "False":
            found.append(f"{pod.name} is {pod.books} on {pod.node!r} for {why!r} and says {said}")
        elif pod.name.uid not in held and without_numbers(said["message"]) not in ("lacks room", without_numbers(why)):
            found.append(f"{pod.name} says {said['message']!r}, and it is {why!r}")
        asked = informer.pod_store.with_names(moment.why(str(pod.name)).sentence)
        # (Of a gang that waits it is said how many of its placeholders have a node.)
        if without_numbers(asked) not in ("lacks room", without_numbers(why)) and "its gang starts when" not in asked:
            found.append(f"{pod.name} waits for {why!r}, and who asks is told {asked!r}")
        ask = driver.scheduler.cluster.partitions[informer.partition].find_ask(pod.application, pod.name.uid)
        kept = ask and (ask.reserved_on or (ask.nomination and ask.nomination.node))
        held = kept.id if kept else ""
        if not held == pod.nominated == (thing["status"].get("nominatedNodeName") or ""):
            found.append(f"{pod.name} has room on {held!r}, and is nominated for {pod.nominated!r}")
    return found


def gathers(driver: Driver) -> bool:
    """Whether something keeps a part of its room, which is another part after a restart, or has a node set aside, which
    is not kept over one.
    """
    informer = driver.informer
    if any(node.reservations for node in driver.scheduler.cluster.partitions["default"].nodes.nodes.values()):
        return True
    stand_ins = any(p.books is Books.PLACED for p in informer.pod_store.by_uid.values() if p.name.stands_for)
    return stand_ins or any(gang.gang.groups and not gang.begun for gang in informer.gangs.declared.values())


def forgotten(driver: Driver, anew: Driver, now_ms: int) -> list[str]:
    """Pods that wait, and would be placed by a scheduler that begins now."""
    found = differences(in_use(driver), in_use(anew))
    anew.begin(now_ms)
    for _ in range(5):
        anew.schedule(now_ms)
    placed = [act for act in anew.acts() if isinstance(act, Bind | SelectNode | KeepVolume)]
    return found + [f"{act.pod} is forgotten: {act.node}" for act in placed if act.pod.stands_for is None]


def is_alive(pod: dict[str, Any]) -> bool:
    return pod["status"].get("phase") not in ("Succeeded", "Failed") and not pod["metadata"].get("deletionTimestamp")


async def drain(server: Server, restarter: Restarter, config: str) -> list[str]:
    """All that runs ends, again and again: what waits still would not start by itself in an empty cluster either."""
    for _ in range(DRAINS):
        running = [pod for pod in server.all("pods") if pod["spec"].get("nodeName") and is_alive(pod)]
        if not running:
            break
        for pod in running:
            server.put("pods", {**pod, "status": {**pod["status"], "phase": "Succeeded"}})
        await asyncio.sleep(100)
    assert restarter.control_loop is not None
    driver, now_ms = restarter.control_loop.driver, restarter.now_ms()
    if gathers(driver):
        return []
    return [line for name in sorted({pod.application for pod in pods_of(driver) if not pod.bound and not pod.foreign})
            for line in alone(server, driver, name, config, now_ms)]  # fmt: skip


def alone(server: Server, driver: Driver, application: str, config: str, now_ms: int) -> list[str]:
    """What of an application waits, and would start if there were nothing else."""
    own = {pod.name.uid for pod in pods_of(driver) if pod.application == application}
    waits = {pod.name.uid for pod in pods_of(driver) if pod.application == application and not pod.bound}
    anew = fresh(server, config, now_ms, lambda uid: uid in own)
    anew.begin(now_ms)
    for _ in range(5):
        anew.schedule(now_ms)
    placed = [act for act in anew.acts() if isinstance(act, Bind | SelectNode | KeepVolume)]
    return [f"{act.pod} waits, and would start on {act.node}" for act in placed if act.pod.uid in waits]


async def live(seed: int, kind: type[WholeCluster] = WholeCluster) -> list[str]:
    """What is wrong in the end, and what had happened."""
    chance = random.Random(seed)
    rate = chance.choice([0, 0, 0.02, 0.1])
    faults = SeededFaults(seed, rate) if rate else Faults()
    server = Server(faults, is_late=chance.random() < 0.3)
    world, restarter = kind(server, seed), Restarter(server, seed)
    restarter.config = world.config
    restarter.start()
    controllers = asyncio.create_task(world.controllers.run())
    for _ in range(STEPS):
        world.step()
        if restarter.config != world.config and restarter.control_loop is not None:
            restarter.config = world.config
            restarter.control_loop.order(lambda driver, now: driver.configure(load_text(world.config), now) and None)
        what = chance.random()
        if what < 0.03:
            await server.restart(chance.uniform(0.1, 5))
        elif what < 0.06:
            server.compact()
        elif what < 0.09:
            await restarter.kill()
            restarter.start()
        await asyncio.sleep(chance.choice([0.0, 0.01, 0.2, 1, 3, 20]))
    faults.calm = True
    await asyncio.sleep(700)  # No taint is put up with for longer than 600 s.
    assert restarter.control_loop is not None
    driver, now_ms = restarter.control_loop.driver, restarter.now_ms()
    check_books(driver.scheduler)
    anew = fresh(server, world.config, now_ms)
    wrong = differences(picture(driver), picture(anew)) + left_behind(driver, server)
    wrong += said_wrongly(restarter.control_loop, server)
    wrong += [] if gathers(driver) else forgotten(driver, anew, now_ms)
    wrong += [] if rate else server.violations
    wrong += [] if server.is_late else server.elsewhere
    # A restart changes nothing.
    before, gathered = len(server.log.entries), gathers(driver)
    await restarter.kill()
    restarter.start()
    await asyncio.sleep(300)
    done = [entry for entry in server.log.entries[before:] if entry[1] in ("bind", "delete") or '"suspend"' in entry[4]]
    wrong += [f"after a restart: {entry}" for entry in done if not gathered]
    wrong += said_wrongly(restarter.control_loop, server)
    wrong += await drain(server, restarter, world.config)
    # Everything goes.
    for kind in ("jobsets", "jobs", "podgroups", "pods"):
        for thing in server.all(kind):
            server.remove(kind, thing["metadata"]["name"], thing["metadata"]["namespace"])
    await asyncio.sleep(200)
    informer, books = restarter.control_loop.driver.informer, restarter.control_loop.driver.scheduler
    check_books(books)
    tables = [informer.pod_store.by_uid, informer.pod_store.by_name, informer.pod_store.homeless, informer.specs]
    tables += [
        informer.pod_store.passed_over,
        informer.pod_store.by_application,
        informer.gangs.declared,
        informer.refused,
        informer.applications,
    ]
    wrong += [f"is left: {dict(table)}" for table in tables if table]
    controllers.cancel()
    await restarter.kill()
    return [*wrong, *world.story] if wrong else []


@pytest.mark.parametrize("seed", range(SEEDS))
def test_whatever_happens_what_is_known_is_what_is_there(seed: int) -> None:
    """Known anew it is the same; what waits says why, and nothing waits that would fit; nothing is left behind."""
    assert run_virtually(live(seed)) == []


@pytest.mark.parametrize("seed", range(SEEDS // 2))
def test_the_same_where_also_happens_what_is_rare(seed: int) -> None:
    """Ports, spreads, patience with taints, gangs of two groups, and what befalls a pod as it is bound."""
    assert run_virtually(live(seed, WiderCluster)) == []
