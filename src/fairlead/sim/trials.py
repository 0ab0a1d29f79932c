"""Trials: one queue file on one workload, from its first job to the figures; and several of them at a time.

Decides what a trial is made of and what it yields, as plain values. Never compares two. Invariant: the same trial gives
the same outcome (CPU times apart), in whichever process; one that was stopped early says so and has the figures up to
then.
"""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from types import FrameType
from typing import Any, TextIO

from fairlead.collector import rare_collections
from fairlead.config import ConfigurationError, load_file, load_text
from fairlead.config.load import not_yet
from fairlead.core.model.quantities import is_bytes, people_call
from fairlead.core.model.specs import ClusterSpec
from fairlead.sim.attempts import STARTS_MAX, Settings
from fairlead.sim.columns import Columns, End
from fairlead.sim.engine import Engine
from fairlead.sim.figures import courses_of, figures_of, wait_curve
from fairlead.sim.jobs import Fault, Workload, drawn, known_only, read_faults
from fairlead.sim.periods import by_period
from fairlead.sim.rows import sentence
from fairlead.sim.sources import Source, SourceError
from fairlead.virtual_time import Recorder

BARS_MAX = 2500
BAR_NODES_MAX = 16
ASKED_MAX = 1000
"""So many of those that still wait are asked why."""
FIRST_MAX = 3
"""So many of those that wait for one reason are named."""
Watch = Callable[[Engine], None]
Tick = Callable[[int], None]
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A queue file (empty: one that suits the workload), a workload, faults, and when to stop."""

    name: str
    source: Source
    queues: str = ""
    text: str = ""
    """The queue file itself, where it is none on a disk."""
    faults: str = ""
    """A CSV file."""
    mtbf_ms: int | None = None
    """Mean time between failures of each node, instead of a file."""
    mttr_ms: int = 3_600_000
    until_ms: int | None = None
    """Stop so long after the first job; None: when all work is through."""
    resubmit: bool = True
    digest: bool = True
    period_ms: int | None = None
    """Also the figures of each period of this length."""


def spec_of(trial: Trial, workload: Workload) -> ClusterSpec:
    """The queue file of a trial, with those classes of the workload that it does not have itself.

    Raises `ConfigurationError` for what is wrong with it or would be ignored.
    """
    spec = _file_of(trial, workload)
    names = {known.name for known in spec.priority_classes}
    has_default = any(known.global_default for known in spec.priority_classes)
    more = [
        replace(each, global_default=each.global_default and not has_default)
        for each in workload.classes
        if each.name not in names
    ]
    return replace(spec, priority_classes=(*spec.priority_classes, *more)) if more else spec


def _file_of(trial: Trial, workload: Workload) -> ClusterSpec:
    if trial.text:
        return load_text(trial.text, trial.name)
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
    trial: Trial,
    *,
    lines: TextIO | None = None,
    watch: Watch | None = None,
    tick: Tick | None = None,
    recorder: Recorder | None = None,
) -> dict[str, Any]:
    """Run it and return its outcome. `watch` is handed the engine before it starts (to stop it), `tick` hears progress,
    `recorder` all that the scheduler is told and decides.

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
        Settings(resubmit=trial.resubmit, digest=trial.digest, lines=lines, recorder=recorder),
    )
    if watch is not None:
        watch(engine)
    until_ms = None if trial.until_ms is None else engine.begin_ms + trial.until_ms
    with rare_collections():
        engine.run(until_ms, tick)
    outcome = outcome_of(engine, spec)
    doubts = [*(() if trial.source.is_journal else _hardly_used(outcome)), *_never_through(engine.columns)]
    return (
        {"name": trial.name, "workload": workload.name, "notes": [*workload.notes, *doubts]}
        | outcome
        | ({"periods": by_period(engine.columns, trial.period_ms)} if trial.period_ms is not None else {})
        | {"cpu_s": round(time.process_time() - began, 2)}
    )


def _never_through(columns: Columns) -> Iterator[str]:
    count = sum(1 for starts in Counter(columns.run_task).values() if starts >= STARTS_MAX)
    if count:
        tasks = "task" if count == 1 else "tasks"
        yield f"given up after {STARTS_MAX:,} starts: {count:,} {tasks}; nodes go, or work is stopped, before the end"


HARDLY = 0.001
"""Of a resource: what never more of is in use was most likely written in another unit."""


def _hardly_used(outcome: dict[str, Any]) -> Iterator[str]:
    for name, use in outcome["figures"]["use"].items():
        if use["peak"] < HARDLY and outcome["figures"]["waits"]["started"] is not None:
            unit = "; 4 means 4 bytes: write 4Gi" if is_bytes(name) else ""
            yield f"{people_call(name)} is in use to {use['peak']:.1%} at most: is the workload in its unit{unit}?"


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
        "digest": engine.account.digest,
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


# -- several at a time --------------------------------------------------------------------------------------------


class TrialFailed(Exception):
    """A trial could not be run; the text is a sentence."""


class _Stop:
    """Stops a trial between two moments, also one whose engine is yet to be made."""

    def __init__(self) -> None:
        self._wanted = False
        self._engine: Engine | None = None

    def watch(self, engine: Engine) -> None:
        """This is the engine of the trial."""
        self._engine = engine
        engine.stopped = self._wanted

    def now(self) -> None:
        """It is to stop."""
        self._wanted = True
        if self._engine is not None:
            self._engine.stopped = True

    def when_told(self, by: Connection) -> None:
        """It is to stop when something comes, or nothing can come any more; waits for that."""
        with suppress(EOFError, OSError):
            by.recv()
        self.now()


@contextmanager
def on_ctrl_c(stop: Callable[[], None]) -> Iterator[None]:
    """The first Ctrl-C calls `stop`, the second one breaks off."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)

    def first(_number: int, _frame: FrameType | None) -> None:
        stop()
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, first)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def run_alone(
    trial: Trial, lines: TextIO | None = None, tick: Tick | None = None, recorder: Recorder | None = None
) -> dict[str, Any]:
    """The outcome of one trial, run here; Ctrl-C stops it and gives what there is. Raises what `run_trial` raises."""
    stop = _Stop()
    with on_ctrl_c(stop.now):
        return run_trial(trial, lines=lines, watch=stop.watch, tick=tick, recorder=recorder)


def run_trials(trials: Sequence[Trial], processes: int = 1, progress: Progress | None = None) -> list[dict[str, Any]]:
    """The outcomes in the order of the trials, several at a time, each in a process of its own.

    `progress` hears the number of a trial and how far it is. The first Ctrl-C lets every trial stop between two moments
    and hand over what it has, and leaves out those not begun; the second one ends all at once. Raises what `run_trial`
    raises with one process, `TrialFailed` with several.
    """
    progress = progress or (lambda _number, _done: None)
    if min(processes, len(trials)) > 1:
        return _Fleet(trials, processes, progress).run()
    outcomes: list[dict[str, Any]] = []
    for number, trial in enumerate(trials):
        outcomes.append(run_alone(trial, tick=partial(progress, number)))
        if outcomes[-1]["interrupted"]:
            break
    return outcomes


class _Fleet:
    def __init__(self, trials: Sequence[Trial], processes: int, progress: Progress) -> None:
        self.trials, self.processes, self.progress = trials, processes, progress
        self.outcomes: dict[int, dict[str, Any]] = {}
        self.under_way: dict[Connection, tuple[int, SpawnProcess]] = {}
        self.stopped = False

    def run(self) -> list[dict[str, Any]]:
        coming = iter(range(len(self.trials)))
        try:
            with on_ctrl_c(self._stop):
                self._start(coming)
                while self.under_way:
                    for ready in wait(list(self.under_way), timeout=1.0):
                        assert isinstance(ready, Connection)
                        if self._hear(ready):
                            self._start(coming)
        finally:
            for _, process in self.under_way.values():
                process.kill()
                process.join()
        return [self.outcomes[number] for number in sorted(self.outcomes)]

    def _start(self, coming: Iterator[int]) -> None:
        context = get_context("spawn")
        while len(self.under_way) < self.processes and not self.stopped:
            number = next(coming, None)
            if number is None:
                return
            mine, theirs = context.Pipe()
            process = context.Process(target=_in_process, args=(self.trials[number], theirs), daemon=True)
            process.start()
            theirs.close()
            self.under_way[mine] = (number, process)
        if self.stopped:
            # Ctrl-C may have come while one was being started.
            self._stop()

    def _stop(self) -> None:
        self.stopped = True
        for connection in list(self.under_way):
            with suppress(OSError):
                connection.send("stop")

    def _hear(self, connection: Connection) -> bool:
        """Take what a trial says; whether it is over."""
        number, process = self.under_way[connection]
        try:
            kind, said = connection.recv()
        except EOFError:
            process.join()
            raise TrialFailed(f"{self.trials[number].name}: its process ended with {process.exitcode}") from None
        if kind == "failed":
            raise TrialFailed(said)
        if kind == "done":
            self.progress(number, said)
            return False
        self.outcomes[number] = said
        del self.under_way[connection]
        process.join()
        return True


def _in_process(trial: Trial, told: Connection) -> None:
    """One trial in a process of its own: stopped when it is told so, not by the terminal."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    stop = _Stop()
    threading.Thread(target=stop.when_told, args=(told,), daemon=True).start()
    try:
        outcome = run_trial(trial, watch=stop.watch, tick=lambda done: told.send(("done", done)))
    except (OSError, ValueError) as e:
        said = sentence(e)
        named = isinstance(e, OSError | SourceError) or said.startswith(trial.name)
        told.send(("failed", said if named else f"{trial.name}: {said}"))
    else:
        told.send(("outcome", outcome))
