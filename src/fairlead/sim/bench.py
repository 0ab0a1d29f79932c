"""The project's own benchmarks: how fast the core places, idles and restarts.

Decides sizes and shapes of the workloads, drawn once with a fixed seed, and how rounds become one figure: the median of
all rounds, each on a freshly built state. Never compares with anything. Invariant: only the calls named by a case are
timed, building its state is not; a round that did not do the work it is named for is an error, not a fast one.
"""

from __future__ import annotations

import gc
import os
import platform
import random
import statistics
import sys
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TextIO

import msgspec

from fairlead.collector import collector_off
from fairlead.core.model.decisions import Allocated, Evict, Reserved
from fairlead.core.model.events import AddApplication, AddAsks, AddNode, Cause, Configure, Release
from fairlead.core.model.reasons import NextInLine
from fairlead.core.model.resources import Limits, Resources
from fairlead.core.model.specs import (
    ApplicationSpec,
    AskSpec,
    ClusterSpec,
    NodeSortSpec,
    NodeSpec,
    PartitionSpec,
    PreemptionSpec,
    QueueSpec,
)
from fairlead.policy.eligibility.attempt_times import RESERVE_AFTER_MS
from fairlead.scheduler import Scheduler
from fairlead.version import build, version_and_build

SIZES = tuple(Resources({"vcore": v, "memory": m}) for v in (500, 1000, 2000) for m in (1000, 2000, 4000))
MANY_SIZES = tuple(Resources({"vcore": 500 + 10 * i, "memory": 1000 + 37 * i}) for i in range(200))
ONE = Resources({"vcore": 1000, "memory": 10})


@dataclass(frozen=True, slots=True)
class Sample:
    """One timed part: how many units of work in how many seconds."""

    count: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Case:
    """A benchmark: `prepare` builds the state (not timed), `measure` does and times the work."""

    name: str
    about: str
    unit: str
    prepare: Callable[[], Scheduler]
    measure: Callable[[Scheduler], Sample]


# -- clusters -----------------------------------------------------------------------------------------------------


def cluster(queues: Iterable[QueueSpec], node_policy: str = "fair", rule: str = "") -> Scheduler:
    """A scheduler with these queues below root, and no preemption but by the rule."""
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=tuple(queues))
    partition = PartitionSpec(
        root=root,
        node_sort=NodeSortSpec(policy=node_policy),
        preemption=PreemptionSpec(rule=rule) if rule else PreemptionSpec(enabled=False),
    )
    scheduler = Scheduler()
    scheduler.handle(Configure(ClusterSpec(partitions=(partition,))), 0)
    return scheduler


def add_nodes(scheduler: Scheduler, count: int, vcore: int, memory: int) -> None:
    """That many equal nodes."""
    capacity = Resources({"vcore": vcore, "memory": memory})
    for i in range(count):
        scheduler.handle(AddNode(NodeSpec(id=f"node-{i:05d}", capacity=capacity)), 0)


def add_work(scheduler: Scheduler, app: str, queue: str, sizes: Iterable[tuple[Resources, int]]) -> None:
    """An application with one ask for each `(size, priority)`, in one request."""
    scheduler.handle(AddApplication(ApplicationSpec(id=app, queue=queue)), 0)
    asks = tuple(
        AskSpec(application=app, key=f"{app}-{i}", resources=size, priority=priority)
        for i, (size, priority) in enumerate(sizes)
    )
    scheduler.handle(AddAsks(asks), 0)


def tree_of_64() -> list[QueueSpec]:
    """Four by four by four leaves with guarantees at two levels and fair applications."""

    def leaves() -> tuple[QueueSpec, ...]:
        fair = {"application.sort.policy": "fair"}
        return tuple(QueueSpec(name=f"c{k}", properties=fair, guaranteed=Limits({"vcore": 5000})) for k in range(4))

    def inner() -> tuple[QueueSpec, ...]:
        return tuple(QueueSpec(name=f"b{j}", parent=True, queues=leaves()) for j in range(4))

    share = Limits({"vcore": 100_000, "memory": 1_000_000})
    return [QueueSpec(name=f"a{i}", parent=True, guaranteed=share, queues=inner()) for i in range(4)]


def mixed(rng: random.Random, count: int, sizes: tuple[Resources, ...] = SIZES) -> list[tuple[Resources, int]]:
    """Sizes and priorities drawn at random."""
    return [(rng.choice(sizes), rng.randint(0, 3)) for _ in range(count)]


def built(
    queues: Iterable[QueueSpec],
    nodes: tuple[int, int, int],
    work: Iterable[tuple[str, str, Iterable[tuple[Resources, int]]]],
    node_policy: str = "fair",
    rule: str = "",
) -> Scheduler:
    """A cluster with so many nodes of so much (`vcore`, `memory`), and applications: name, queue, sizes."""
    scheduler = cluster(queues, node_policy, rule)
    add_nodes(scheduler, *nodes)
    for each in work:
        add_work(scheduler, *each)
    return scheduler


def flat() -> Scheduler:
    """Two queues, 5,000 equal nodes, 10,000 equal asks."""
    amounts = {"a": 10**5, "b": 10**6}
    queues = [QueueSpec(name=n, guaranteed=Limits({"vcore": 10_000_000, "memory": m})) for n, m in amounts.items()]
    return built(queues, (5000, 3000, 30), [(f"app-{name}", f"root.{name}", [(ONE, 0)] * 5000) for name in amounts])


def tree(per_app: int = 10, vcore: int = 64_000, memory: int = 256_000, rule: str = "") -> Scheduler:
    """64 leaves, 1,000 nodes, 1,000 applications with mixed asks."""
    rng = random.Random(1)
    paths = [f"root.a{n % 4}.b{n // 4 % 4}.c{n // 16 % 4}" for n in range(1000)]
    work = [(f"app-{n:04d}", path, mixed(rng, per_app)) for n, path in enumerate(paths)]
    return built(tree_of_64(), (1000, vcore, memory), work, rule=rule)


def full(rule: str = "") -> Scheduler:
    """The tree with twice as much asked for as there is."""
    return tree(20, 10_000, 40_000, rule)


def filled(rule: str = "") -> Scheduler:
    """The full tree after everything that fits has been placed."""
    scheduler = full(rule)
    scheduler.schedule(0)
    return scheduler


def many_leaves() -> Scheduler:
    """1,000 leaves below 10 parents, an application of 10 asks in each."""
    rng = random.Random(2)
    leaves = tuple(QueueSpec(name=f"l{j:02d}") for j in range(100))
    parents = [QueueSpec(name=f"p{i}", parent=True, queues=leaves) for i in range(10)]
    work = [(f"app-{n:04d}", f"root.p{n // 100}.l{n % 100:02d}", mixed(rng, 10)) for n in range(1000)]
    return built(parents, (1000, 64_000, 256_000), work)


def one_queue() -> Scheduler:
    """One leaf in which 100 applications ask for 1,000 each."""
    rng = random.Random(3)
    work = [(f"app-{n:03d}", "root.leaf", mixed(rng, 1000)) for n in range(100)]
    return built([QueueSpec(name="leaf")], (2000, 96_000, 512_000), work)


def at_maximum() -> Scheduler:
    """A department of 20 leaves that uses all it may, with room on the nodes; work of 200 sizes waits there."""
    rng = random.Random(6)
    leaves = tuple(QueueSpec(name=f"l{i:02d}", properties={"application.sort.policy": "fair"}) for i in range(20))
    department = QueueSpec(name="d", parent=True, max=Limits({"vcore": 9_000_000}), queues=leaves)
    work = [(f"app-{n:04d}", f"root.d.l{n % 20:02d}", mixed(rng, 20, MANY_SIZES)) for n in range(1000)]
    scheduler = built([department], (1000, 10_000, 40_000), work)
    scheduler.schedule(0)
    return scheduler


def crowded() -> Scheduler:
    """Nodes of which none has room, together they have, and work of 200 sizes that waits for one to be set aside."""
    rng = random.Random(7)
    work = [(f"app-{n:03d}", "root.leaf", mixed(rng, 100, MANY_SIZES)) for n in range(200)]
    scheduler = built(
        [QueueSpec(name="leaf", properties={"application.sort.policy": "fair"})], (1000, 9_999, 40_000), work
    )
    scheduler.schedule(0)
    return scheduler


def binpacking() -> Scheduler:
    """5,000 nodes filled one after the other with 20,000 mixed asks."""
    rng = random.Random(4)
    work = [(f"app-{n:02d}", "root.leaf", mixed(rng, 1000)) for n in range(20)]
    return built([QueueSpec(name="leaf")], (5000, 32_000, 128_000), work, "binpacking")


# -- what is timed ------------------------------------------------------------------------------------------------


def place_all(scheduler: Scheduler) -> Sample:
    """Place everything that fits."""
    with collector_off():
        began = time.perf_counter()
        decisions = scheduler.schedule(0)
        seconds = time.perf_counter() - began
    return Sample(sum(isinstance(d, Allocated) for d in decisions), seconds)


def set_aside(scheduler: Scheduler) -> Sample:
    """All that waits has waited long enough to have a node set aside."""
    with collector_off():
        began = time.perf_counter()
        decisions = scheduler.schedule(RESERVE_AFTER_MS + 1)
        seconds = time.perf_counter() - began
    return Sample(sum(isinstance(d, Reserved) for d in decisions), seconds)


def idle_cycles(scheduler: Scheduler) -> Sample:
    """Scheduling calls that find nothing to place, while thousands wait."""
    calls = 2000
    began = time.perf_counter()
    placed = sum(len(scheduler.schedule(0)) for _ in range(calls))
    seconds = time.perf_counter() - began
    if placed:
        raise RuntimeError("the idle benchmark is not idle: something was placed")
    return Sample(calls, seconds)


def answers(scheduler: Scheduler) -> Sample:
    """Why work of each application that waits does not run."""
    applications = scheduler.cluster.partitions["default"].applications.values()
    waiting = [(app.id, app.waiting_asks()[-1].key) for app in applications if app.waiting_asks()]
    began = time.perf_counter()
    reasons = [scheduler.why(*names) for names in waiting]
    seconds = time.perf_counter() - began
    if not reasons or any(isinstance(reason, NextInLine) for reason in reasons):
        raise RuntimeError("the why benchmark is not of a full cluster: something could start")
    return Sample(len(reasons), seconds)


def restart(scheduler: Scheduler) -> Sample:
    """Save the whole state, load it, and place what the loaded one can."""
    asks = sum(len(app.asks) for app in scheduler.cluster.partitions["default"].applications.values())
    with collector_off():
        began = time.perf_counter()
        loaded = Scheduler.load(scheduler.dump())
        loaded.schedule(0)
        seconds = time.perf_counter() - began
    return Sample(asks, seconds)


def turnover(
    scheduler: Scheduler, turns: int = 5000, sizes: tuple[Resources, ...] = SIZES, every_ms: int = 0
) -> Sample:
    """Work of changing priorities comes and goes on a full cluster: one ends, one comes, one starts. What is told to
    stop is gone before the next turn, which is `every_ms` later.
    """
    rng = random.Random(5)
    applications = scheduler.cluster.partitions["default"].applications.values()
    running = [(ask.spec.application, ask.key) for app in applications for ask in app.allocated_asks()]
    placed = 0
    with collector_off():
        began = time.perf_counter()
        for i in range(turns):
            now_ms = i * every_ms
            at = rng.randrange(len(running))
            running[at], running[-1] = running[-1], running[at]
            app, key = running.pop()
            scheduler.handle(Release(app, key, Cause.FINISHED), now_ms)
            new = AskSpec(application=app, key=f"new-{i}", resources=rng.choice(sizes), priority=rng.randint(-5, 5))
            scheduler.handle(AddAsks((new,)), now_ms)
            for d in scheduler.schedule(now_ms):
                if isinstance(d, Allocated):
                    running.append((d.application, d.key))
                    placed += 1
                elif isinstance(d, Evict):
                    running.remove((d.application, d.key))
                    scheduler.handle(Release(d.application, d.key, d.cause), now_ms)
        seconds = time.perf_counter() - began
    if placed < turns // 4:
        raise RuntimeError(f"the churn benchmark placed only {placed} in {turns} turns")
    return Sample(turns, seconds)


CASES = (
    Case("flat", "2 queues, 5,000 nodes, 10,000 equal asks", "allocation", flat, place_all),
    Case("tree", "64 leaves, 1,000 nodes, 10,000 mixed asks", "allocation", tree, place_all),
    Case("full", "the tree with twice as much asked for as there is", "allocation", full, place_all),
    Case("leaves", "1,000 leaves, 1,000 nodes, 10,000 mixed asks", "allocation", many_leaves, place_all),
    Case("one-queue", "1 leaf, 2,000 nodes, 100,000 mixed asks", "allocation", one_queue, place_all),
    Case("binpacking", "5,000 nodes, 20,000 mixed asks, fullest node first", "allocation", binpacking, place_all),
    Case("churn", "a full cluster: one ends, one of any priority comes, one starts", "turn", filled, turnover),
    Case("timed-churn", "churn, 10 ms from turn to turn", "turn", filled, partial(turnover, every_ms=10)),
    Case(
        "at-maximum",
        "churn in a department that has all it may, 200 sizes",
        "turn",
        at_maximum,
        partial(turnover, turns=1000, sizes=MANY_SIZES),
    ),
    Case("set-aside", "1,000 nodes set aside for work of 200 sizes that waits", "node", crowded, set_aside),
    Case("ranked", "the full tree, preemption.rule: both", "allocation", partial(full, "both"), place_all),
    Case("ranked-churn", "churn, preemption.rule: both", "turn", partial(filled, "both"), partial(turnover, turns=200)),
    Case("idle", "a full cluster: a call that places nothing", "call", filled, idle_cycles),
    Case("why", "a full cluster: why one that waits does not run", "answer", filled, answers),
    Case("restart", "a full cluster: save, load, first call", "ask", filled, restart),
)


def run(
    out: TextIO | None = None,
    err: TextIO | None = None,
    *,
    only: Collection[str] = (),
    rounds: int = 3,
    as_json: bool = False,
) -> int:
    """Run the benchmarks (or `only` those), and print the build and a line for each.

    Returns 0, or 2 after a sentence on `err`.
    """
    out, err = out or sys.stdout, err or sys.stderr
    known = [c.name for c in CASES]
    unknown = sorted(set(only) - set(known))
    if unknown or rounds < 1:
        names = ", ".join(known)
        problem = (
            f"there is no benchmark {', '.join(unknown)}; there are {names}" if unknown else "rounds must be 1 or more"
        )
        print(f"cannot run the benchmarks: {problem}", file=err)
        return 2
    measured = (measure(case, rounds) for case in CASES if not only or case.name in only)
    print_rows(((row, row_text(row)) for row in measured), out, as_json=as_json)
    return 0


def print_rows(rows: Iterable[tuple[dict[str, Any], str]], out: TextIO, *, as_json: bool = False) -> None:
    """Print the build and the line of each row as it is measured, or all rows as JSON, each with the build."""
    if as_json:
        print(msgspec.json.encode([{"build": build()} | row for row, _ in rows]).decode(), file=out)
        return
    print(f"fairlead {version_and_build()}, Python {platform.python_version()}", file=out, flush=True)
    for _, line in rows:
        print(line, file=out, flush=True)


def measure(case: Case, rounds: int) -> dict[str, Any]:
    """All rounds of one case: `rate` (units a second, the median), `micros` for each unit, `memory_mb` grown by."""
    rates, count, grown = [], 0, 0.0
    for _ in range(rounds):
        gc.collect()
        before = resident_mb()
        state = case.prepare()
        sample = case.measure(state)
        grown = max(grown, resident_mb() - before)
        count = sample.count
        rates.append(sample.count / sample.seconds)
        del state
    rate = statistics.median(rates)
    return {
        "name": case.name,
        "about": case.about,
        "unit": case.unit,
        "count": count,
        "rate": round(rate, 1),
        "micros": round(1e6 / rate, 2),
        "rounds": [round(r, 1) for r in rates],
        "memory_mb": round(grown, 1),
    }


def resident_mb() -> float:
    """The memory of this process that is in RAM, in MB; 0 where the system does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def row_text(row: dict[str, Any]) -> str:
    """One benchmark as one line."""
    return (
        f"{row['name']:10} {row['rate']:11,.0f} {row['unit'] + 's/s':14} {row['micros']:9,.2f} µs each"
        f"  {row['count']:7,} of them  {row['memory_mb']:7.1f} MB   {row['about']}"
    )
