"""The simulator held against one that shares no code with it: `make compare-simulators`.

    python tests/reference/compared_simulators.py 40 --first 255000

Random workloads with gangs (of one size, or of two), maximums and limits of users, some of them with guarantees
(`both`), offsets, fences, grace, idle work and work that stops nothing: every run of every task has to be on the same
node, from the same time to the same time, and end by itself or stopped in both.

The thousands of a workload's number say what else is in it, as a sum: 1 zones, 2 least run times, 4 lost nodes,
8 budgets and bounds on evictions, 16 bounds on jobs that run, 32 orders of an administrator (queues, drained nodes,
priorities), 64 more of those (rules, sizes of nodes, moved jobs), 128 retries, 256 ports and work that keeps apart,
512 kept turns without gangs, and 1024 with them (not with 32 and 64), 2048 limits of users beside kept turns, 4096
work that wants to be with other work, 8192 work that is spread, 16384 work that is put on hold and released, 32768
windows, 65536 work that begins later, 131072 (beside 512) backfill, 1048576 bounds of memory beside those of cores,
limits above leaves, and more nodes, 2097152 work for one node alone, 4194304 idle work that borrows in a queue below
the root, 8388608 queues in which jobs share, 16777216 work that would rather be on some nodes than on others.

Numbers from 10**12 on are by the rule `guarantee` (not with 64): in YuniKorn's walk, with fair and other
leaves, nodes that are set aside, and preemption off. There the thousands of what is left say the same up to 16384;
with 262144 preemption is on, with 524288 some work requires one node, and with 1048576 maximums change, and queues give
back what they have too much. With 2097152 (without that) one queue alone is guaranteed anything, and its work is
small; with 33554432 some work is idle.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from dataclasses import dataclass, replace
from functools import partial
from io import StringIO

from reference.compared_company import in_company, where, zones_of
from reference.compared_ends import SLOWER, with_bounds, with_faults, with_least, with_retries
from reference.compared_holds import held_or_released, holds
from reference.compared_queues import queues_of, with_guarantees
from reference.compared_walk import (
    daemons,
    idle_beside,
    jobs_of_walk,
    lower,
    properties_of_walk,
    small_beside_large,
    walked,
    with_quotas,
)
from reference.compared_wider import with_more
from reference.compared_windows import begins, declared, easy, ends, limited, windows
from reference.compared_wishes import taints, wished, wishing
from reference.compared_world import LEAVES, World
from reference.plain_guarantee import ByGuarantee
from reference.plain_line import Amount, Job, Queue, Task
from reference.plain_quota import Quotas
from reference.plain_simulator import Order, PlainSimulator, Ran
from reference.plain_windows import PATIENCE_MS

from fairlead.config import load_text
from fairlead.core.model.conditions import Conditions
from fairlead.core.model.constraints import AffinityTerm, Constraints, Requirement
from fairlead.core.model.events import (
    Configure,
    DrainNode,
    MoveApplication,
    SetPriority,
    UndrainNode,
    UpdateNode,
)
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import TAG_REQUIRED_NODE, ApplicationSpec, AskSpec, NodeSpec, RetrySpec
from fairlead.sim import jobs as ours
from fairlead.sim.attempts import Settings
from fairlead.sim.columns import End
from fairlead.sim.engine import Engine

GANGS = 0.5
"""How likely a job of several tasks is a gang, where all of it could stand at once."""
BY_GUARANTEE = 10**12
"""Worlds from this number on are by that rule."""


def world(seed: int) -> World:
    """The world of this number; from 1,000 on with more in it."""
    is_by_guarantee, seed = divmod(seed, BY_GUARANTEE)
    chance = random.Random(seed)
    numbers = range(chance.randint(1, 4))
    nodes = {f"n{i}": {"vcore": 1000 * chance.randint(3, 6), "memory": chance.randint(4, 10)} for i in numbers}
    is_owed, is_shifted = seed % 4 >= 2, seed % 2 == 1
    queues = queues_of(chance, is_owed=is_owed, is_shifted=is_shifted)
    jobs, at_ms = [], 0
    for number in range(chance.randint(10, 60)):
        at_ms += 1000 * chance.choice([0, 1, 3, 10, 20])
        job = _job(chance, f"j{number}", at_ms, nodes, queues, mixed=seed % 8 >= 4)
        is_meek = is_shifted and chance.random() < 0.15
        is_idle = not job.gang and seed % 16 >= 8 and chance.random() < 0.3
        grace_ms = chance.choice([0, 1_000, 5_000, 20_000]) if seed % 32 >= 16 else 0
        tasks = (replace(task, meek=is_meek, idle=is_idle, grace_ms=grace_ms) for task in job.tasks)
        jobs.append(replace(job, tasks=tuple(tasks)))
    made = World(nodes, queues, jobs, pack=chance.random() < 0.5, rule="both" if is_owed else "priority")
    more = seed // 1000
    made = _with_zones(chance, made) if more & 1 else made
    made = with_least(chance, made) if more & 2 else made
    made = with_faults(chance, made) if more & 4 else made
    made = with_bounds(chance, made) if more & 8 else made
    made = _with_jobs(chance, made) if more & 16 else made
    made = with_retries(chance, made) if more & 128 else made
    made = _with_neighbours(chance, made) if more & 256 else made
    made = _with_turns(chance, made, gangs=bool(more & 1024), limits=bool(more & 2048)) if more & 512 else made
    made = _with_company(chance, made, more) if more & 12288 else made
    if more & 96:
        made = _with_orders(chance, made, is_owed=is_owed, is_shifted=is_shifted, has_more=bool(more & 64))
    if more & 96 and more & 512:
        made = _with_other_turns(chance, made, limits=bool(more & 2048))
    if is_by_guarantee:
        made = _with_walk(chance, made, seed, stops=bool(more & 262144), lowered=bool(more & 1048576))
        if more & 2097152:
            made.queues, made.jobs = small_beside_large(chance, made.queues, made.jobs)
        made = replace(made, jobs=daemons(chance, made.jobs, list(made.nodes))) if more & 524288 else made
    if is_by_guarantee and more & 33554432:
        made.queues, made.jobs = idle_beside(chance, made.queues, made.jobs)
    if more & 16384:
        orders = [*made.orders, *holds(chance, made.jobs)]
        made.orders = tuple(sorted(orders, key=lambda order: order.at_ms))
    made = made if is_by_guarantee else _with_more(chance, made, more, is_owed=is_owed)
    return wishing(chance, made) if more & 16777216 else made


def _with_more(chance: random.Random, made: World, more: int, *, is_owed: bool) -> World:
    """Time limits and what needs them, and queues and work of other kinds."""
    if more & 131072:
        made = easy(chance, made)
    if more & (32768 | 131072):
        made.jobs = limited(chance, made.jobs)
    if more & 32768:
        orders = [*made.orders, *windows(chance, made, SLOWER if more & 8 else 1)]
        made.orders = tuple(sorted(orders, key=lambda order: order.at_ms))
    if more & 65536:
        made.jobs = begins(chance, made.jobs)
    return with_more(chance, made, more, is_owed=is_owed)


def _with_walk(chance: random.Random, made: World, seed: int, *, stops: bool, lowered: bool) -> World:
    """By the rule `guarantee`; `lowered`: maximums change, and some queues give back what they have too much."""
    queues, orders = with_guarantees(chance, made.queues) if stops else made.queues, list(made.orders)
    for _ in range(chance.randint(3, 10) if lowered else 0):
        at_ms = chance.randrange(made.jobs[0].at_ms + 1, made.jobs[-1].at_ms + 60_000, 500)
        others = queues_of(chance, is_owed=seed % 4 >= 2, is_shifted=seed % 2 == 1)
        orders.append(Order(at_ms, queues=lower(chance, others, LEAVES), pack=made.pack))
    orders.sort(key=lambda order: order.at_ms)
    files = [queues, *(order.queues for order in orders)]
    files = [walked(chance, each, LEAVES, stops=stops) if each else None for each in files]
    files = [with_quotas(chance, each) if lowered and each else each for each in files]
    orders = [replace(order, queues=each, rule="guarantee") for order, each in zip(orders, files[1:], strict=True)]
    jobs = jobs_of_walk(chance, made.jobs, [each for each in files if each], stops=stops)
    return replace(made, rule="guarantee", stops=stops, queues=files[0] or {}, orders=tuple(orders), jobs=jobs)


def _with_other_turns(chance: random.Random, made: World, *, limits: bool) -> World:
    """Where queues change they keep turns after another time, or do not any more."""
    changed = [_waiting(chance, each.queues, limits=limits) if each.queues else None for each in made.orders]
    orders = zip(made.orders, changed, strict=True)
    return replace(made, orders=tuple(replace(order, queues=queues) for order, queues in orders))


def _with_neighbours(chance: random.Random, made: World) -> World:
    """Some work needs a port, or keeps apart from its like."""
    return replace(made, jobs=[_choosy(chance, made, job) if chance.random() < 0.4 else job for job in made.jobs])


def _choosy(chance: random.Random, made: World, job: Job) -> Job:
    if job.gang and len(job.tasks) > len(made.nodes):
        return job
    port, apart = (chance.randint(1, 2), "") if chance.random() < 0.5 else (0, chance.choice([job.name, "x", "y"]))
    return replace(job, tasks=tuple(replace(task, port=port, apart=apart) for task in job.tasks))


def _with_company(chance: random.Random, made: World, more: int) -> World:
    """Some work wants to be with other work, or is spread."""
    zones = made.zones or zones_of(chance, made.nodes)
    jobs = in_company(chance, made.jobs, beside=bool(more & 4096), spread=bool(more & 8192))
    return replace(made, zones=zones, jobs=jobs)


def _with_turns(chance: random.Random, made: World, *, gangs: bool, limits: bool) -> World:
    """What waits too long has its turn kept."""
    queues = _waiting(chance, made.queues, limits=limits)
    return replace(made, queues=queues, jobs=[replace(job, gang=job.gang and gangs) for job in made.jobs])


def _waiting(chance: random.Random, queues: dict[str, Queue], *, limits: bool) -> dict[str, Queue]:
    waits = {path: 1000 * chance.choice([5, 20, 60, 120]) if chance.random() < 0.6 else 0 for path in LEAVES}
    queues = {path: replace(queue, wait_ms=waits.get(path, 0)) for path, queue in queues.items()}
    if limits:
        return queues
    return {path: replace(queue, users=None, user_jobs=0) for path, queue in queues.items()}


def _further_order(chance: random.Random, made: World, at_ms: int, *, is_owed: bool, is_shifted: bool) -> Order:
    """Other rules, a node of another size, or a job in another queue."""
    kind = chance.random()
    if kind < 0.3:
        queues = queues_of(chance, is_owed=is_owed, is_shifted=is_shifted)
        rule = chance.choice(["priority", "both"])
        return Order(at_ms, queues=queues, pack=chance.random() < 0.5, rule=rule)
    if kind < 0.6:
        node = chance.choice(list(made.nodes))
        size = {"vcore": 1000 * chance.randint(2, 6), "memory": chance.randint(3, 10)}
        if any(job.gang for job in made.jobs):
            # Where a member goes whose placeholder is on a node that is too small by then is not known here.
            size = {name: max(amount, made.nodes[node][name]) for name, amount in size.items()}
        return Order(at_ms, node=node, size=size)
    return Order(at_ms, job=chance.choice(made.jobs).name, queue=chance.choice(LEAVES))


def _with_orders(chance: random.Random, made: World, *, is_owed: bool, is_shifted: bool, has_more: bool) -> World:
    """Queues change, nodes are drained for a while, and jobs get other priorities."""
    if has_more and chance.random() < 0.5:
        made.jobs = [replace(job, gang=False) for job in made.jobs]
    begin_ms, end_ms = made.jobs[0].at_ms + 1, made.jobs[-1].at_ms + 60_000
    orders = []
    for _ in range(chance.randint(1, 8)):
        at_ms = chance.randrange(begin_ms, end_ms, 500)
        kind = chance.random()
        if has_more and chance.random() < 0.5:
            orders.append(_further_order(chance, made, at_ms, is_owed=is_owed, is_shifted=is_shifted))
        elif kind < 0.4:
            queues = queues_of(chance, is_owed=is_owed, is_shifted=is_shifted)
            orders.append(Order(at_ms, queues=queues, pack=made.pack, rule=made.rule))
        elif kind < 0.7:
            node = chance.choice(list(made.nodes))
            orders += [Order(at_ms, node=node), Order(at_ms + 1000 * chance.choice([1, 10, 60]), node=node)]
        else:
            orders.append(Order(at_ms, job=chance.choice(made.jobs).name, priority=chance.randint(0, 4)))
    made.orders = tuple(sorted(orders, key=lambda order: order.at_ms))
    return made


def _with_jobs(chance: random.Random, made: World) -> World:
    """Queues, and users there, that run so many jobs at a time: none more than the one above it."""
    some = chance.random
    made.queues = {
        path: replace(
            queue,
            jobs=chance.randint(1, 2 if "." in path[5:] else 4) if some() < 0.3 else 0,
            user_jobs=chance.randint(1, 2) if path in LEAVES and some() < 0.2 else 0,
        )
        for path, queue in made.queues.items()
    }
    if most := made.queues["root.c"].jobs:
        made.queues |= {
            path: replace(queue, jobs=min(queue.jobs or chance.randint(1, 4), most))
            for path, queue in made.queues.items()
            if path.startswith("root.c.")
        }
    made.queues = {
        path: replace(queue, user_jobs=min(queue.user_jobs, queue.jobs or queue.user_jobs))
        for path, queue in made.queues.items()
    }
    return made


def _with_zones(chance: random.Random, made: World) -> World:
    """Some work runs in one of two zones alone."""
    made.zones = {node: chance.choice("pq") for node in made.nodes}
    made.jobs = [_in_zone(made, job, chance.choice("pq")) if chance.random() < 0.4 else job for job in made.jobs]
    return made


def _in_zone(made: World, job: Job, zone: str) -> Job:
    nodes = {node: amount for node, amount in made.nodes.items() if made.zones[node] == zone}
    sizes = [dict(task.amount) for task in job.tasks]
    most = {name: max(size[name] for size in sizes) for name in sizes[0]}
    if job.gang and not _stands(most, len(sizes), job.queue, nodes, made.queues):
        return job
    return replace(job, tasks=tuple(replace(task, zone=zone) for task in job.tasks))


def _job(
    chance: random.Random, name: str, at_ms: int, nodes: dict[str, Amount], queues: dict[str, Queue], *, mixed: bool
) -> Job:
    queue, count = chance.choice(LEAVES), chance.randint(1, 4)
    size = _size(chance)
    is_gang = count > 1 and _stands(size, count, queue, nodes, queues) and chance.random() < GANGS
    priority = chance.randint(0, 3)
    smaller = {name: amount - amount // 2 for name, amount in size.items()}
    sizes = [(smaller if mixed and chance.random() < 0.5 else size) if is_gang else _size(chance) for _ in range(count)]
    tasks = [
        Task(f"{name}-{i}", tuple(sorted(each.items())), priority, 1000 * chance.randint(1, 60))
        for i, each in enumerate(sizes)
    ]
    return Job(at_ms, name, queue, chance.choice("uvw"), tuple(tasks), is_gang)


def _size(chance: random.Random) -> Amount:
    return {"memory": chance.randint(1, 3), "vcore": 1000 * chance.randint(1, 3)}


def _stands(size: Amount, count: int, leaf: str, nodes: dict[str, Amount], queues: dict[str, Queue]) -> bool:
    """Whether so many of this size could stand at once: a gang that never could waits for ever."""
    above = [queue for path, queue in queues.items() if f"{leaf}.".startswith(f"{path}.")]
    bounds = [bound["vcore"] for queue in above for bound in (queue.most, queue.users) if bound]
    places = sum(min(node[name] // amount for name, amount in size.items()) for node in nodes.values())
    return count <= places and all(count * size["vcore"] <= bound for bound in bounds)


def file_of(made: World) -> str:
    """Its queue file."""

    def entry(path: str) -> dict[str, object]:
        queue = made.queues[path]
        more: dict[str, object] = {"name": path.rpartition(".")[2]}
        bounds = {"max": queue.most, "guaranteed": queue.due}
        if amounts := {name: _said(bound) for name, bound in bounds.items() if bound}:
            more["resources"] = amounts
        if queue.jobs:
            more["maxapplications"] = queue.jobs
        if queue.users or queue.user_jobs:
            most = {"maxresources": _said(queue.users)} if queue.users else {}
            more["limits"] = [{"limit": "each", "users": ["*"]} | most | {"maxapplications": queue.user_jobs}]
        properties = {
            "priority.offset": str(queue.offset) if queue.offset else "",
            "priority.policy": "fence" if queue.is_fence else "",
            "preemption.policy": queue.stays,
            "preemption.min.runtime": f"{queue.least_ms}ms" if queue.least_ms else "",
            "wait.max": f"{queue.wait_ms}ms" if queue.wait_ms else "",
            "application.sort.policy": "fair" if queue.is_fair else "",
            "resource.group": "true" if queue.is_group else "",
            "backfill": "easy" if queue.is_easy else "",
            "preemption.evictions.max": "" if queue.losses is None else str(queue.losses),
        }
        properties |= properties_of_walk(queue) if made.rule == "guarantee" else {}
        if kept := {name: value for name, value in properties.items() if value}:
            more["properties"] = kept
        if below := [entry(each) for each in made.queues if each.rpartition(".")[0] == path]:
            more["queues"] = below
        return more

    below = [entry(path) for path in made.queues if path.count(".") == 1]
    root: dict[str, object] = {"name": "root", "submitacl": "*", "queues": below}
    if "root" in made.queues:
        root["properties"] = entry("root")["properties"]
    sort = {"type": "binpacking" if made.pack else "fair"}
    rule = {"rule": made.rule, "enabled": made.stops, "quotapreemptionenabled": made.rule == "guarantee"}
    partition = {"name": "default", "preemption": rule, "nodesortpolicy": sort, "queues": [root]}
    budgets = [
        {"name": each.team, "selector": {"team": each.team}}
        | ({"minAvailable": each.stay} if each.away is None else {"maxUnavailable": each.away})
        for each in made.budgets
    ]
    return json.dumps({"partitions": [partition]} | ({"budgets": budgets} if budgets else {}))


def _said(amount: Amount) -> dict[str, str]:
    return {name: f"{value}m" if name == "vcore" else str(value) for name, value in amount.items()}


def kind_of(made: World) -> type[PlainSimulator]:
    """The plain simulator that knows its rule."""
    if made.rule != "guarantee":
        return PlainSimulator
    return ByGuarantee if made.stops else Quotas


def plain(made: World) -> list[Ran]:
    """What runs by the plain simulator."""
    simulator = kind_of(made)(
        made.nodes,
        made.queues,
        made.jobs,
        pack=made.pack,
        zones=made.zones,
        budgets=made.budgets,
        faults=made.faults,
        orders=made.orders,
    )
    simulator.disliked = made.disliked
    simulator.counts_dues = made.rule == "both"
    simulator.run()
    return sorted(simulator.ran, key=_order)


class Driven(Engine):
    """It also does what an administrator says."""

    def is_to_do(self, made: World) -> None:
        """All orders, each at its time."""
        for order in made.orders:
            self.later(order.at_ms, partial(self._obeys, made, order))
        for at_ms in ends(made.orders):
            self.later(at_ms, partial(self.follow))

    def _obeys(self, made: World, order: Order) -> None:
        nodes = self.scheduler.cluster.partitions["default"].nodes.nodes
        if order.is_hold is not None:
            for event in held_or_released(self.scheduler.cluster.partitions["default"], order):
                self.handle(event)
        elif order.window is not None or order.withdrawn:
            for event in declared(order):
                self.handle(event)
        elif order.queue:
            self.handle(MoveApplication(order.job, order.queue))
        elif order.job:
            self.handle(SetPriority(order.job, "", order.priority))
        elif order.queues is not None:
            later = replace(made, queues=order.queues, pack=order.pack, rule=order.rule)
            self.handle(Configure(load_text(file_of(later))))
        elif order.node in nodes and order.size:
            self.handle(UpdateNode(order.node, Resources(order.size)))
        elif order.node in nodes:
            is_open = nodes[order.node].schedulable
            self.handle(DrainNode(order.node) if is_open else UndrainNode(order.node))


def ours_of(made: World) -> tuple[list[NodeSpec], list[ours.Job]]:
    """Its nodes and jobs, as the simulator has them."""
    jobs = []
    for job in made.jobs:
        patience_ms = PATIENCE_MS if job.gang else 0
        spec = ApplicationSpec(id=job.name, queue=job.queue, user=job.user, placeholder_timeout_ms=patience_ms)
        asks = [
            AskSpec(
                application=job.name,
                key=task.key,
                resources=Resources(dict(task.amount)),
                priority=task.priority,
                allow_preempt_other=not task.meek,
                allow_preempt_self=not task.unwilling,
                idle=task.idle,
                grace_ms=task.grace_ms,
                min_runtime_ms=task.least_ms,
                time_limit_ms=task.limit_ms,
                conditions=Conditions(begin_ms=task.begin_ms) if task.begin_ms else None,
                retry=None if task.retries is None else RetrySpec(limit=task.retries, backoff_ms=task.backoff_ms),
                tags={TAG_REQUIRED_NODE: task.required} if task.required else {},
                labels={name: said for name in ("team", "apart", "kind") if (said := getattr(task, name))},
                where=wished(task, where(task, _where(task))),
            )
            for task in job.tasks
        ]
        tasks = tuple(ours.Task(ask, t.run_ms, int(t.fails)) for ask, t in zip(asks, job.tasks, strict=True))
        jobs.append(ours.Job(job.at_ms, spec, tasks, job.gang))
    zones = {name: {"zone": zone} for name, zone in made.zones.items() if zone}
    nodes = [
        NodeSpec(
            id=name,
            capacity=Resources(amount),
            attributes=zones.get(name, {}),
            taints=taints(name, made.disliked),
        )
        for name, amount in made.nodes.items()
    ]
    return nodes, jobs


def production(made: World) -> list[Ran]:
    """What runs by the simulator that `fairlead sim` has."""
    nodes, jobs = ours_of(made)
    # The engine counts from the first job on.
    begin_ms, away, faults = made.jobs[0].at_ms, set[str](), list[ours.Fault]()
    for at_ms, name in made.faults:
        faults.append(ours.Fault(at_ms - begin_ms, name, ours.BACK if name in away else ours.LOST))
        away ^= {name}
    engine = Driven(load_text(file_of(made)), nodes, jobs, faults, settings=Settings(lines=StringIO()))
    engine.is_to_do(made)
    engine.run()
    columns = engine.columns
    runs = [
        Ran(
            columns.names[columns.run_task[i]].rpartition("/")[2],
            columns.nodes.values[columns.run_node[i]],
            columns.run_start_ms[i],
            columns.run_end_ms[i],
            columns.run_how[i] == End.EVICTED,
        )
        for i in range(len(columns.run_task))
    ]
    return sorted(runs, key=_order)


def _where(task: Task) -> Constraints:
    return Constraints(
        selector=(Requirement("zone", "In", (task.zone,)),) if task.zone else (),
        ports=(f"TCP/0.0.0.0/{task.port}",) if task.port else (),
        anti_affinity=(AffinityTerm((Requirement("apart", "In", (task.apart,)),)),) if task.apart else (),
    )


def _order(run: Ran) -> tuple[object, ...]:
    return (run.start_ms, run.key, run.node, run.end_ms, run.evicted)


@dataclass
class Tally:
    """What was compared."""

    worlds: int = 0
    runs: int = 0
    evicted: int = 0
    gangs: int = 0
    different: tuple[str, ...] = ()

    def line(self) -> str:
        """For people."""
        head = f"{self.worlds} workloads, {self.gangs} gangs, {self.runs} runs, {self.evicted} evictions"
        return f"{head}: {len(self.different)} different"


def compared(numbers: range) -> Tally:
    """These worlds, in both."""
    tally = Tally()
    for number in numbers:
        made = world(number)
        expected, found = plain(made), production(made)
        tally.worlds += 1
        tally.runs += len(expected)
        tally.evicted += sum(run.evicted for run in expected)
        tally.gangs += sum(job.gang for job in made.jobs)
        if expected != found:
            first = next(pair for pair in zip([*expected, None], [*found, None], strict=False) if pair[0] != pair[1])
            tally.different += (f"{number}: {first[0]}, and not {first[1]}",)
    return tally


def main() -> int:
    """So many worlds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("worlds", type=int, nargs="?", default=40)
    parser.add_argument("--first", type=int, default=0, help="the number of the first (its thousands: see above)")
    given = parser.parse_args()
    if given.worlds < 1:
        parser.error("there has to be one workload at least")
    tally = compared(range(given.first, given.first + given.worlds))
    print(tally.line(), *tally.different, sep="\n")
    return int(bool(tally.different))


if __name__ == "__main__":
    sys.exit(main())
