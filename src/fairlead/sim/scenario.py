"""Run a scenario: the production scheduler in virtual time, and what it did.

Decides in which order a scenario's steps reach the scheduler, when time moves, and what is timed (the scheduling calls
alone). Never decides who runs. Invariant: the same scenario gives the same result, whether asks are placed in one call
or one call each.

While a scheduling call is timed the cycle collector is off: what a call allocates is bounded by what it places, and
the collector runs again before the next step.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TextIO

import msgspec

from fairlead.config import ConfigurationError, load_text
from fairlead.config.unsupported import not_yet
from fairlead.core.decisions import Decision, Evict
from fairlead.core.events import Configure, Event, Release
from fairlead.core.specs import ClusterSpec
from fairlead.scheduler import Scheduler
from fairlead.sim.outcome import final_state
from fairlead.sim.record import Record
from fairlead.sim.steps import (
    AnyStep,
    ConfigStep,
    Scenario,
    ScenarioError,
    ScheduleStep,
    SleepStep,
    as_scenario,
    events_of,
    read_scenarios,
)

EPOCH_MS = 1_700_000_000_000
"""When virtual time begins (November 2023), so that creation times given in tags lie before it."""


class ConfigurationRefused(Exception):
    """The queue file of a scenario was refused; ends the scenario with a verdict."""


def run_scenario(scenario: dict[str, Any]) -> dict[str, Any]:
    """Run one scenario given as plain values: `{"name", "result", "timings": [{"runs", "seconds"}]}`.

    `result` has the shape of an exact expectation, or is `{"rejected": reason}` when a queue file was refused. Raises
    `ScenarioError` when the scenario itself makes no sense.
    """
    return run_steps(as_scenario(scenario))


def run_steps(scenario: Scenario, one_by_one: bool = False) -> dict[str, Any]:
    """Run one scenario; `one_by_one` makes a scheduling call for every single run, which must not change the result."""
    try:
        course = Course(scenario.config, one_by_one)
        for step in scenario.steps:
            course.advance(step)
    except ConfigurationRefused as refusal:
        return {"name": scenario.name, "result": {"rejected": str(refusal)}, "timings": []}
    result = course.record.as_result() | final_state(course.scheduler)
    return {"name": scenario.name, "result": result, "timings": course.timings}


class Course:
    """A scenario under way: the scheduler, the virtual time and what happened so far."""

    def __init__(self, config: str, one_by_one: bool = False) -> None:
        self.now_ms = EPOCH_MS
        self.record = Record()
        self.timings: list[dict[str, Any]] = []
        self.step = 0
        self.one_by_one = one_by_one
        self.scheduler = Scheduler(read_config(config, at_start=True), self.now_ms)

    def advance(self, step: AnyStep) -> None:
        """Do one step of the scenario."""
        match step:
            case ScheduleStep():
                self._schedule(step)
            case SleepStep():
                self._sleep(step.millis)
            case ConfigStep():
                self._configure(step.config)
            case _:
                for event in events_of(step):
                    self._handle(event)
        self.step += 1

    def _configure(self, text: str) -> None:
        self._handle(Configure(read_config(text)))
        if self.record.configuration_rejected is not None:
            raise ConfigurationRefused(self.record.configuration_rejected)

    def _handle(self, event: Event) -> None:
        self._take(self.scheduler.handle(event, self.now_ms))
        self._confirm()

    def _take(self, decisions: list[Decision], confirming: Evict | None = None) -> int:
        return self.record.take(decisions, self.step, confirming)

    def _confirm(self) -> None:
        """The resource manager does at once what it was told to stop, and says so; that may lead to more of it."""
        while self.record.evicted:
            orders, self.record.evicted = self.record.evicted, []
            for order in orders:
                confirmation = Release(order.application, order.key, order.cause)
                self._take(self.scheduler.handle(confirmation, self.now_ms), order)

    def _sleep(self, millis: int) -> None:
        """Time passes, and every timer that comes due on the way fires at its own moment."""
        until, fired_ms = self.now_ms + millis, -1
        while (due := self.scheduler.next_wakeup_ms()) is not None and fired_ms < due <= until:
            fired_ms = self.now_ms = max(due, self.now_ms)
            self._take(self.scheduler.schedule(self.now_ms, limit=0))
            self._confirm()
        self.now_ms = until
        self._take(self.scheduler.schedule(self.now_ms, limit=0))
        self._confirm()

    def _schedule(self, step: ScheduleStep) -> None:
        settle = step.action == "settle"
        if settle or self.one_by_one:
            runs, seconds = self._run_each(step.steps, settle)
        else:
            runs, seconds = self._run_batch(step.steps)
        self.timings.append({"runs": runs, "seconds": seconds})

    def _run_batch(self, steps: int) -> tuple[int, float]:
        decisions, seconds = self._timed(steps)
        placed = self._take(decisions)
        self._confirm()
        return (placed if placed >= steps else placed + 1), seconds

    def _run_each(self, steps: int, settle: bool) -> tuple[int, float]:
        """Single runs: `settle` does all of them and confirms after each; otherwise the first empty one is the last."""
        total, runs = 0.0, 0
        while runs < steps:
            decisions, seconds = self._timed(1)
            total += seconds
            runs += 1
            placed = self._take(decisions)
            if settle:
                self._confirm()
            elif not placed:
                break
        self._confirm()
        return runs, total

    def _timed(self, limit: int) -> tuple[list[Decision], float]:
        with collector_off():
            began = time.perf_counter()
            decisions = self.scheduler.schedule(self.now_ms, limit=limit, stop_when_empty=True)
            return decisions, time.perf_counter() - began


def read_config(text: str, at_start: bool = False) -> ClusterSpec:
    """A queue file; raises `ConfigurationRefused` with all its problems, or with what would be ignored.

    A scenario starts even with placement rules that cannot be built: then every application is rejected.
    """
    try:
        spec = load_text(text, keep_broken_rules=at_start)
    except ConfigurationError as e:
        raise ConfigurationRefused("; ".join(str(p) for p in e.problems)) from None
    if missing := not_yet(spec):
        raise ConfigurationRefused("; ".join(str(p) for p in missing))
    return spec


@contextmanager
def collector_off() -> Iterator[None]:
    """The cycle collector is off inside and as before outside."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def run_file(path: str, out: TextIO, err: TextIO | None = None) -> int:
    """Run every scenario of a file of JSON lines (`-`: standard input); a line of JSON on `out` for each.

    Returns 0, or 2 after a sentence on `err` when the file cannot be read or is not a file of scenarios; results before
    that place have been written.
    """
    try:
        with open_lines(path) as lines:
            for scenario in read_scenarios(iter(lines), path):
                out.write(msgspec.json.encode(run_steps(scenario)).decode() + "\n")
                out.flush()
    except (OSError, ScenarioError) as e:
        print(f"cannot run the scenarios: {e}", file=err or sys.stderr)
        return 2
    return 0


@contextmanager
def open_lines(path: str) -> Iterator[BinaryIO]:
    """The file as lines of bytes; `-` is standard input."""
    if path == "-":
        yield sys.stdin.buffer
        return
    with Path(path).open("rb") as f:
        yield f
