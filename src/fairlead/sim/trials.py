"""Trials: one queue file on one workload, from its first job to the figures.

Decides what a trial is made of and what it yields, as plain values. Never compares two. Invariant: the same trial gives
the same outcome (CPU times apart); one that was stopped early says so and has the figures up to then.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, TextIO

from fairlead.config import ConfigurationError, load_file, load_text
from fairlead.config.unsupported import not_yet
from fairlead.core.model.specs import ClusterSpec
from fairlead.sim.attempts import Settings
from fairlead.sim.collector import rare_collections
from fairlead.sim.columns import Columns, End
from fairlead.sim.engine import Engine
from fairlead.sim.faults import Fault, drawn, known_only, read_faults
from fairlead.sim.figures import courses_of, figures_of, wait_curve
from fairlead.sim.jobs import Workload
from fairlead.sim.pace import Pace
from fairlead.sim.sources import Source

BARS_MAX = 2500
BAR_NODES_MAX = 16
ASKED_MAX = 1000
"""So many of those that still wait are asked why."""
FIRST_MAX = 3
"""So many of those that wait for one reason are named."""
Watch = Callable[[Engine], None]
Tick = Callable[[int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A queue file (empty: one that suits the workload), a workload, faults, and when to stop."""

    name: str
    source: Source
    queues: str = ""
    faults: str = ""
    """A CSV file."""
    mtbf_ms: int | None = None
    """Mean time between failures of each node, instead of a file."""
    mttr_ms: int = 3_600_000
    until_ms: int | None = None
    """Stop so long after the first job; None: when all work is through."""
    resubmit: bool = True
    digest: bool = True


def spec_of(trial: Trial, workload: Workload) -> ClusterSpec:
    """The queue file of a trial; raises `ConfigurationError` for what is wrong with it or would be ignored."""
    if not trial.queues:
        return load_text(workload.queues or _ONE_QUEUE, "the queue file of the workload")
    spec = load_file(trial.queues)
    if missing := not_yet(spec, trial.queues):
        raise ConfigurationError(missing)
    return spec


_ONE_QUEUE = "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: default}]}]}]\n"


def faults_of(trial: Trial, workload: Workload) -> Iterator[Fault]:
    """The faults of a trial; raises `FaultError` or OSError."""
    nodes = [node.id for node in workload.nodes]
    if trial.faults:
        return iter(known_only(read_faults(trial.faults), nodes))
    if trial.mtbf_ms is not None:
        return drawn(nodes, trial.source.seed, trial.mtbf_ms, trial.mttr_ms)
    return iter(())


def run_trial(
    trial: Trial, *, lines: TextIO | None = None, watch: Watch | None = None, tick: Tick | None = None
) -> dict[str, Any]:
    """Run it and return its outcome. `watch` is handed the engine before it starts (to stop it), `tick` hears progress.

    Raises what opening a source, a queue file or a list of faults raises.
    """
    began = time.process_time()
    workload = trial.source.open()
    spec = spec_of(trial, workload)
    engine = Engine(
        spec,
        workload.nodes,
        workload.jobs,
        faults_of(trial, workload),
        Settings(resubmit=trial.resubmit, digest=trial.digest, lines=lines),
    )
    if watch is not None:
        watch(engine)
    until_ms = None if trial.until_ms is None else engine.begin_ms + trial.until_ms
    pace = Pace()

    def sampled(done: int) -> None:
        pace.sample(engine.events, engine.kept)
        if tick is not None:
            tick(done)

    with rare_collections():
        engine.run(until_ms, sampled)
    outcome = outcome_of(engine, spec)
    return (
        {"name": trial.name, "workload": workload.name, "notes": list(workload.notes)}
        | outcome
        | {"cpu_s": round(time.process_time() - began, 2), "pace": pace.figures()}
    )


def outcome_of(engine: Engine, spec: ClusterSpec) -> dict[str, Any]:
    """What came out, as plain values."""
    columns = engine.columns
    return {
        "interrupted": engine.stopped,
        "nodes": len({node for _, node, _, _ in columns.capacity}),
        "figures": figures_of(columns, spec),
        "courses": courses_of(columns),
        "wait_curve": wait_curve(columns),
        "gantt": gantt_of(columns),
        "refused": dict(sorted(engine.refused.items(), key=lambda r: (-r[1], r[0]))[:10]),
        "still_waiting": still_waiting(engine),
        "decisions": engine.decisions,
        "digest": engine.digest,
    }


def still_waiting(engine: Engine) -> list[dict[str, Any]]:
    """What waits at the end, by reason, most tasks first: `why`, how many `tasks`, the `first` of them by name.

    Only `ASKED_MAX` are asked, for each answer is worked out; the last row counts the others, without a reason.
    """
    found: dict[str, list[str]] = {}
    for app, key in islice(engine.waiting, ASKED_MAX):
        reason = engine.why((app, key))
        why = "" if reason is None else reason.sentence()
        found.setdefault(why, []).append(f"{app}/{key}" if app != key else key)
    grouped = sorted(found.items(), key=lambda group: -len(group[1]))
    rows: list[dict[str, Any]] = [{"why": why, "tasks": len(n), "first": n[:FIRST_MAX]} for why, n in grouped]
    if unasked := max(len(engine.waiting) - ASKED_MAX, 0):
        rows.append({"why": None, "tasks": unasked, "first": []})
    return rows


def gantt_of(columns: Columns) -> dict[str, Any]:
    """The runs on the first nodes as bars: node, queue, task, begin and end (seconds from the begin), how it ended.

    Where there are more than can be shown, the longest are, and `left_out` counts the others.
    """
    names = sorted({node for _, node, _, _ in columns.capacity})[:BAR_NODES_MAX]
    shown = {columns.nodes.of(name): number for number, name in enumerate(names)}
    bars = []
    for run, node in enumerate(columns.run_node):
        number = shown.get(node)
        if number is not None:
            begin = columns.run_start_ms[run]
            end = columns.run_end_ms[run]
            how = End(columns.run_how[run])
            bars.append((begin, columns.end_ms if how is End.RUNNING else end, run, number, how))
    left_out = max(len(bars) - BARS_MAX, 0)
    if left_out:
        bars = sorted(bars, key=lambda b: (b[0] - b[1], b[2]))[:BARS_MAX]
    rows = []
    for begin, end, run, number, how in sorted(bars):
        task = columns.run_task[run]
        since, to = (round((at - columns.begin_ms) / 1000, 3) for at in (begin, end))
        rows.append([number, columns.queue[task], columns.names[task], since, to, how.name.lower()])
    return {"nodes": names, "queues": list(columns.queues.values), "bars": rows, "left_out": left_out}
