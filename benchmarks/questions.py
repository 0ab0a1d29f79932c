"""The benchmark of questions: how long answers take on a large state, and what they cost the scheduler meanwhile.

Decides the state (1,000 nodes, about 9,000 running and 10,000 waiting asks, once under each rule of preemption) and
what is measured: the time from a question to its answer while work comes and goes, how long the writer stands still for
it, and how fast scheduling is with and without questions. Never answers anything itself. Invariant: the state is at
rest before the first question, and something waits in every row.
"""

from __future__ import annotations

import gc
import random
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from fairlead.apart import Asked, ask_apart
from fairlead.core.model.decisions import Allocated, Evict
from fairlead.core.model.events import AddAsks, Cause, Configure, Release
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import ApplicationSpec, AskSpec, ClusterSpec, PartitionSpec, PreemptionSpec, QueueSpec
from fairlead.insight.explain import explain
from fairlead.insight.suppositions import submitted
from fairlead.insight.trial import settle
from fairlead.insight.whatif import suppose
from fairlead.scheduler import Scheduler
from fairlead.sim.bench import SIZES, add_nodes, add_work, mixed, print_rows, tree_of_64

NAME = "questions"
RULES = ("guarantee", "priority")
WHY_MAX_MS, WHATIF_MAX_MS = 50.0, 1000.0
TURNS = 400
"""Turns of scheduling without questions, for comparison."""
WHYS = 100
"""Asks that are explained in each round."""
MOMENTS = (0, 60_000, 120_000)
"""When the state is scheduled until nothing follows: preemption by guarantee begins after its delay."""


@dataclass(frozen=True, slots=True)
class Size:
    """How large the state is, and how much is asked of it."""

    nodes: int = 1000
    applications: int = 1000
    """Of 20 asks each: with as many as there are nodes about twice as much is asked for as there is."""
    turns: int = TURNS
    whys: int = WHYS


FULL = Size()


def state(rule: str, size: Size = FULL) -> Scheduler:
    """64 leaves with guarantees, nodes, twice as much asked for as there is; at rest."""
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=tuple(tree_of_64()))
    partition = PartitionSpec(root=root, preemption=PreemptionSpec(enabled=True, rule=rule))
    scheduler = Scheduler()
    scheduler.handle(Configure(ClusterSpec(partitions=(partition,))), 0)
    add_nodes(scheduler, size.nodes, 10_000, 40_000)
    rng = random.Random(1)
    for n in range(size.applications):
        add_work(scheduler, f"app-{n:04d}", f"root.a{n % 4}.b{n // 4 % 4}.c{n // 16 % 4}", mixed(rng, 20))
    for at_ms in MOMENTS:
        settle(scheduler, at_ms)
    return scheduler


class Going:
    """Scheduling that goes on: in each turn one job ends, one of any priority comes, and the scheduler runs."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler, self.now_ms = scheduler, MOMENTS[-1]
        self._chance = random.Random(5)
        asks = [
            ask for app in scheduler.cluster.partitions["default"].applications.values() for ask in app.asks.values()
        ]
        self._running = [(ask.app.id, ask.key) for ask in asks if not ask.pending]
        self.waiting = [(ask.app.id, ask.key) for ask in asks if ask.pending]
        self.turns = 0

    def turn(self) -> None:
        """One turn."""
        chance, running = self._chance, self._running
        self.turns += 1
        self.now_ms += 10
        at = chance.randrange(len(running))
        running[at], running[-1] = running[-1], running[at]
        app, key = running.pop()
        decisions = self.scheduler.handle(Release(app, key, Cause.FINISHED), self.now_ms)
        size, priority = chance.choice(SIZES), chance.randint(-5, 5)
        ask = AskSpec(application=app, key=f"new-{self.turns}", resources=size, priority=priority)
        decisions += self.scheduler.handle(AddAsks((ask,)), self.now_ms)
        decisions += self.scheduler.schedule(self.now_ms)
        for d in decisions:
            if isinstance(d, Allocated):
                running.append((d.application, d.key))
            elif isinstance(d, Evict):
                self.scheduler.handle(Release(d.application, d.key, d.cause), self.now_ms)
                if (d.application, d.key) in running:
                    running.remove((d.application, d.key))

    def one_waiting(self) -> tuple[str, str]:
        """An ask that waits, drawn by chance."""
        applications = self.scheduler.cluster.partitions["default"].applications
        while True:
            app, key = self._chance.choice(self.waiting)
            ask = applications[app].asks.get(key) if app in applications else None
            if ask is not None and ask.pending:
                return app, key


@dataclass(slots=True)
class Timed:
    """What was measured under one rule. Milliseconds."""

    rule: str
    running: int
    waiting: int
    why: list[float] = field(default_factory=list)
    why_cpu: list[float] = field(default_factory=list)
    """The same in time on a processor: what a quiet machine would need."""
    whatif: list[float] = field(default_factory=list)
    held: list[float] = field(default_factory=list)
    """How long the writer stood still to bring a what-if on its way."""
    alone: float = 0.0
    """Turns a second without questions."""
    meanwhile: float = 0.0
    """Turns a second while what-ifs were being answered."""


def measure(rule: str, rounds: int, size: Size = FULL) -> Timed:
    """Both questions under one rule: `rounds` times so many explanations, and what-ifs of all of `_submissions`."""
    going = Going(state(rule, size))
    partition = going.scheduler.cluster.partitions["default"]
    running = sum(len(node.allocations) for node in partition.nodes.nodes.values())
    timed = Timed(rule, running, len(going.waiting))
    gc.collect()
    gc.freeze()
    began = time.perf_counter()
    for _ in range(size.turns):
        going.turn()
    timed.alone = size.turns / (time.perf_counter() - began)
    turns, seconds = 0, 0.0
    for number in range(rounds):
        for _ in range(size.whys):
            going.turn()
            app, key = going.one_waiting()
            began, on_cpu = time.perf_counter(), time.thread_time()
            explain(going.scheduler, app, key)
            timed.why_cpu.append(1e3 * (time.thread_time() - on_cpu))
            timed.why.append(1e3 * (time.perf_counter() - began))
        for ask in _submissions(number):
            done, took = _whatif(going, ask, timed)
            turns, seconds = turns + done, seconds + took
    timed.meanwhile = turns / seconds if seconds else 0.0
    gc.unfreeze()
    return timed


def _submissions(number: int) -> list[AskSpec]:
    """New work of different priorities and sizes: it would wait, fit, or make others stop."""
    return [
        AskSpec(application="supposed", key=f"supposed-{number}", resources=size, priority=priority)
        for priority, size in ((0, SIZES[0]), (9, SIZES[-1]), (9, Resources({"vcore": 10_000, "memory": 1000})))
    ]


def _whatif(going: Going, ask: AskSpec, timed: Timed) -> tuple[int, float]:
    """Ask, and go on scheduling until the answer is there; how many turns in how many seconds that was."""
    application = ApplicationSpec(id=ask.application, queue="root.a0.b0.c0", user="ann")
    supposed = submitted(application, [ask])
    began = time.perf_counter()
    asked = ask_apart(lambda: suppose(going.scheduler, supposed, fork=True))
    timed.held.append(1e3 * (time.perf_counter() - began))
    answered = _when_answered(asked)
    turns = going.turns
    while answered() is None:
        going.turn()
    at = answered()
    assert at is not None
    timed.whatif.append(1e3 * (at - began))
    return going.turns - turns, time.perf_counter() - began


def _when_answered(asked: Asked) -> Callable[[], float | None]:
    """When the answer came, on the clock of `perf_counter`; None: not yet. Raises `NoAnswer` if there is none."""
    found: list[float | BaseException] = []

    def wait() -> None:
        try:
            asked.answer()
            found.append(time.perf_counter())
        except BaseException as fault:
            found.append(fault)

    threading.Thread(target=wait, daemon=True).start()

    def answered() -> float | None:
        if found and isinstance(found[0], BaseException):
            raise found[0]
        return found[0] if found else None  # type: ignore[return-value]

    return answered


# -- telling ------------------------------------------------------------------------------------------------------


def rows(rounds: int, size: Size = FULL) -> list[tuple[dict[str, Any], str]]:
    """A row for each question under each rule, as values and as a line."""
    found = []
    for rule in RULES:
        timed = measure(rule, rounds, size)
        for question, took, most in (("why", timed.why, WHY_MAX_MS), ("whatif", timed.whatif, WHATIF_MAX_MS)):
            found.append(_row(timed, question, took, most, size.nodes))
    return found


def _row(timed: Timed, question: str, took: Sequence[float], most: float, nodes: int) -> tuple[dict[str, Any], str]:
    row: dict[str, Any] = {
        "name": f"{NAME}: {question}, rule {timed.rule}",
        "about": f"{nodes:,} nodes, {timed.running:,} running, {timed.waiting:,} waiting",
        "asked": len(took),
        "p50_ms": round(median(took), 1),
        "max_ms": round(max(took), 1),
        "limit_ms": most,
        "within": max(took) <= most,
    }
    line = (
        f"{question:7} {timed.rule:10} half within {row['p50_ms']:6,.1f} ms, all {len(took)} within "
        f"{row['max_ms']:6,.1f} ms (limit {most:,.0f})"
    )
    if question == "whatif":
        row |= {
            "writer_held_ms": round(max(timed.held), 1),
            "turns_a_second_alone": round(timed.alone),
            "turns_a_second_meanwhile": round(timed.meanwhile),
        }
        line += (
            f"; the writer stands still for {row['writer_held_ms']} ms at most; scheduling goes on at "
            f"{timed.meanwhile:,.0f} turns/s (alone {timed.alone:,.0f})"
        )
    else:
        row["cpu_max_ms"] = round(max(timed.why_cpu), 1)
        line += f", {row['cpu_max_ms']} ms of CPU; {row['about']}"
    return row, line


if __name__ == "__main__":
    print_rows(rows(3), sys.stdout, as_json="--json" in sys.argv)
