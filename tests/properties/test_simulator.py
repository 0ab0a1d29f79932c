"""Laws of the simulator, over random workloads: gangs, priorities, retries, idle work, kept turns, lost nodes."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from invariants.books import check_books

from fairlead.config import load_text
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import ApplicationSpec, AskSpec, NodeSpec, RetrySpec
from fairlead.sim.attempts import Settings
from fairlead.sim.columns import End, Fate
from fairlead.sim.engine import Engine
from fairlead.sim.jobs import BACK, LOST, Fault, Job, Task

QUEUES = """
partitions:
  - name: default
    preemption: {rule: RULE}
    queues:
      - name: root
        submitacl: "*"
        queues:
          - {name: a, resources: {guaranteed: {vcore: 3}}, properties: {preemption.delay: 5s}}
          - {name: b, resources: {max: {vcore: 5}}, properties: {wait.max: 30s, backfill: easy}}
"""
CORES = {"x": 3, "y": 4}


@st.composite
def jobs(draw: st.DrawFn) -> list[Job]:
    found, at_s = [], 0
    for number in range(draw(st.integers(1, 25))):
        at_s += draw(st.integers(0, 20))
        name, count = f"j{number}", draw(st.integers(1, 3))
        retries = draw(st.sampled_from([None, RetrySpec(limit=2), RetrySpec(limit=1, backoff_ms=4000)]))
        more: dict[str, Any] = {
            "resources": Resources({"vcore": 1000 * draw(st.integers(1, 3))}),
            "priority": draw(st.integers(0, 3)),
            "grace_ms": draw(st.sampled_from([None, 3000])),
            "time_limit_ms": draw(st.sampled_from([None, 25_000])),
            "retry": retries,
            "idle": draw(st.sampled_from([False, False, True])),
        }
        application = ApplicationSpec(id=name, queue=draw(st.sampled_from(["root.a", "root.b"])), user="ann")
        code = draw(st.sampled_from([0, 0, 0, 1]))
        tasks = tuple(
            Task(AskSpec(application=name, key=f"{name}-{i}", **more), draw(st.integers(0, 60)) * 1000, code)
            for i in range(count)
        )
        found.append(Job(at_s * 1000, application, tasks, gang=count > 1 and not more["idle"] and draw(st.booleans())))
    return found


@st.composite
def faults(draw: st.DrawFn) -> list[Fault]:
    """Losses that are all made good in the end."""
    found, at_ms = [], 0
    for _ in range(draw(st.integers(0, 4))):
        at_ms += draw(st.integers(1, 60)) * 1000
        node = draw(st.sampled_from(sorted(CORES)))
        away_ms = draw(st.integers(1, 30)) * 1000
        found += [Fault(at_ms, node, LOST), Fault(at_ms + away_ms, node, BACK)]
        at_ms += away_ms
    return sorted(found)


def over_capacity(engine: Engine) -> list[tuple[int, str]]:
    """When which node had more on it than it has; ends come before starts."""
    columns, changes = engine.columns, []
    for i in range(len(columns.run_task)):
        node = columns.nodes.values[columns.run_node[i]]
        amount = dict(columns.shapes.values[columns.shape[columns.run_task[i]]])["vcore"]
        if columns.run_end_ms[i] > columns.run_start_ms[i]:
            changes.append((columns.run_start_ms[i], 1, amount, node))
            changes.append((columns.run_end_ms[i], 0, -amount, node))
    used: Counter[str] = Counter()
    wrong = []
    for at_ms, _, amount, node in sorted(changes):
        used[node] += amount
        if used[node] > CORES[node] * 1000:
            wrong.append((at_ms, node))
    return wrong


@pytest.mark.thorough
@settings(max_examples=60, deadline=None)
@given(jobs(), faults(), st.sampled_from(["guarantee", "priority"]), st.booleans())
def test_every_task_has_one_fate_and_no_node_is_overfull(
    found: list[Job], struck: list[Fault], rule: str, resubmit: bool
) -> None:
    """When everything is over, nothing is left that could run; and the same again gives the same."""
    spec = load_text(QUEUES.replace("RULE", rule))
    nodes = [NodeSpec(id=name, capacity=Resources({"vcore": 1000 * cores})) for name, cores in CORES.items()]
    engine = Engine(spec, nodes, found, struck, Settings(resubmit=resubmit))
    engine.run()
    check_books(engine.scheduler)
    columns = engine.columns
    fates = Counter(Fate(fate) for fate in columns.fate)
    assert sum(fates.values()) == engine.tasks == sum(len(job.tasks) for job in found)
    assert not fates[Fate.WAITING]
    assert not fates[Fate.RUNNING]
    assert not engine.running
    assert engine.ended == engine.tasks
    assert End.RUNNING not in columns.run_how
    if resubmit:
        assert fates[Fate.COMPLETED] + fates[Fate.REFUSED] + fates[Fate.GIVEN_UP] == engine.tasks
    assert over_capacity(engine) == []
    again = Engine(spec, nodes, found, struck, Settings(resubmit=resubmit))
    again.run()
    assert again.account.digest == engine.account.digest


def test_the_decisions_do_not_depend_on_the_hash_seed(tmp_path: Path) -> None:
    """Made-up work with gangs and lost nodes, in processes that hash differently: the same bytes."""
    (tmp_path / "recipe.yaml").write_text(RECIPE)
    written = []
    for seed in ("1", "77"):
        file = tmp_path / f"decisions-{seed}"
        words = ["--workload", "recipe.yaml", "--mtbf", "6h", "--mttr", "20m", "--decisions", file.name]
        code = "from fairlead.cli.main import run; run()"
        environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, "-c", code, "sim", "run", *words]
        subprocess.run(command, check=True, cwd=tmp_path, env=environment, capture_output=True)
        written.append(file.read_bytes())
    assert written[0] == written[1]
    for kind in (b" allocated ", b" released ", b" evict ", b" retried "):
        assert kind in written[0]


RECIPE = """
tasks: 600
nodes: {count: 6, each: {vcore: 16, memory: 64Gi}}
arrivals: {load: 1.2}
tenants:
  - {user: ann, queue: root.a, tasks: 4, gangs: 0.5, run: {kind: lognormal, median: 20m, spread: 1},
     sizes: [{vcore: 2, memory: 4Gi}]}
  - {user: bob, queue: root.b, retries: 2, run: {kind: exponential, median: 10m}, sizes: [{vcore: 4, memory: 8Gi}]}
  - {user: eve, queue: root.b, idle: true, run: {kind: exponential, median: 30m}, sizes: [{vcore: 1, memory: 1Gi}]}
"""


def test_a_gang_whose_last_placeholder_is_nominated_is_still_waited_for() -> None:
    """Else those that gave way to it take the room again, and give it back, for ever within one moment."""
    chance = random.Random(9)
    chance.choice([1, 2, 3])
    found, at_s = [], 0
    for number in range(chance.randint(1, 40)):
        at_s += chance.randint(0, 20)
        name, count = f"j{number}", chance.randint(1, 3)
        more: dict[str, Any] = {
            "resources": Resources({"vcore": 1000 * chance.randint(1, 3)}),
            "priority": chance.randint(0, 3),
            "grace_ms": chance.choice([None, 3000]),
            "time_limit_ms": chance.choice([None, 25_000]),
            "retry": chance.choice([None, RetrySpec(limit=2), RetrySpec(limit=1, backoff_ms=4000)]),
            "idle": chance.choice([False, False, True]),
        }
        application = ApplicationSpec(id=name, queue=chance.choice(["root.a", "root.b"]), user="ann")
        code = chance.choice([0, 0, 0, 1])
        keys = [f"{name}-{i}" for i in range(count)]
        specs = [AskSpec(application=name, key=key, **more) for key in keys]
        tasks = tuple(Task(spec, chance.randint(0, 60) * 1000, code) for spec in specs)
        is_gang = count > 1 and not more["idle"] and chance.random() < 0.5
        found.append(Job(at_s * 1000, application, tasks, gang=is_gang))
    faults, at_ms = [], 0
    for _ in range(chance.randint(0, 4)):
        at_ms += chance.randint(1, 60) * 1000
        node, away_ms = chance.choice("xy"), chance.randint(1, 30) * 1000
        faults += [Fault(at_ms, node, LOST), Fault(at_ms + away_ms, node, BACK)]
        at_ms += away_ms
    nodes = [NodeSpec(id=name, capacity=Resources({"vcore": 1000 * cores})) for name, cores in CORES.items()]
    settled = Settings(resubmit=chance.random() < 0.5)
    engine = Engine(load_text(QUEUES.replace("RULE", "priority")), nodes, found, sorted(faults), settled)
    engine.run(until_ms=600_000)
    assert engine.now_ms == 600_000
