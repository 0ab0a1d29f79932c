"""Run a scenario: the production scheduler in virtual time, and what it did.

Decides in which order a scenario's steps reach the scheduler, when time moves and evicted work is gone, and what is
timed (the scheduling calls alone). Never decides who runs. Invariant: the same scenario gives the same result, whether
asks are placed in one call or one call each.

While a scheduling call is timed the cycle collector is off: what a call allocates is bounded by what it places, and
the collector runs again before the next step.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, TextIO

import msgspec

from fairlead.collector import collector_off
from fairlead.config import ConfigurationError, load_text
from fairlead.config.load import not_yet
from fairlead.core.model.decisions import Decision, Evict, Released
from fairlead.core.model.events import Cause, Configure, Event, Release
from fairlead.core.model.specs import DEFAULT_PARTITION, ClusterSpec
from fairlead.scheduler import Scheduler
from fairlead.sim.additions import EPOCH_MS, ConfirmStep, KeyStep, ScenarioError, event_of, key_of
from fairlead.sim.outcome import ADDED, Record, Unblock, aftermath, final_state
from fairlead.sim.rows import sentence
from fairlead.sim.steps import (
    AnyStep,
    ConfigStep,
    Scenario,
    ScheduleStep,
    SleepStep,
    config_goes_beyond,
    events_of,
    goes_beyond,
    read_scenarios,
)
from fairlead.virtual_time import Due, VirtualTime


class ConfigurationRefused(Exception):
    """The queue file of a scenario was refused; ends the scenario with a verdict."""


def run_steps(scenario: Scenario, one_by_one: bool = False, unblock: Unblock | None = None) -> dict[str, Any]:
    """Run one scenario: `{"name", "result", "timings": [{"runs", "seconds"}]}`.

    `result` has the shape of an exact expectation, or is `{"rejected": reason}` when a queue file was refused. One that
    goes beyond YuniKorn's words also has what was evicted, what is nominated and what waits; `unblock` works out what
    would start the latter. `one_by_one` makes a scheduling call for every single run, which must not change the result.
    Raises `ScenarioError` when the scenario itself makes no sense.
    """
    try:
        course = Course(scenario.config, one_by_one)
        for step in scenario.steps:
            course.advance(step)
    except ConfigurationRefused as refusal:
        return {"name": scenario.name, "result": {"rejected": str(refusal)}, "timings": []}
    except ScenarioError as e:
        raise ScenarioError(f"{scenario.name}: {e}" if scenario.name else str(e)) from None
    result = course.record.as_result() | final_state(course.scheduler)
    is_expected = not ADDED.isdisjoint(scenario.expect or ())
    if is_expected or course.goes_beyond or any(map(goes_beyond, scenario.steps)):
        result |= course.record.additions() | aftermath(course.scheduler, unblock)
    return {"name": scenario.name, "result": result, "timings": course.timings}


class Course(VirtualTime):
    """A scenario under way: the scheduler, the virtual time and what happened so far."""

    def __init__(self, config: str, one_by_one: bool = False) -> None:
        self.record = Record()
        self.timings: list[dict[str, Any]] = []
        self.step = 0
        self.one_by_one = one_by_one
        self.confirms = True
        """What was preempted is gone after its grace; False: when the scenario says so."""
        self.leaving: dict[tuple[str, str], Due | None] = {}
        """What was preempted and is not gone yet, and when it will be; None: only the scenario knows."""
        spec = read_config(config, at_start=True)
        self.goes_beyond = config_goes_beyond(spec)
        """Whether some queue file says what YuniKorn does not know."""
        super().__init__(Scheduler(spec, EPOCH_MS), EPOCH_MS)

    def advance(self, step: AnyStep) -> None:
        """Do one step of the scenario. Raises `ScenarioError` with its number when it names what is not there."""
        match step:
            case ScheduleStep():
                self._schedule(step)
            case SleepStep():
                self._sleep(step.millis)
            case ConfigStep():
                self._configure(step.config)
            case ConfirmStep():
                self.confirms = step.mode == "auto"
            case KeyStep():
                self._about_a_key(step)
            case _:
                for event in events_of(step):
                    self._happens(event)
        self.step += 1

    def _about_a_key(self, step: KeyStep) -> None:
        try:
            event = event_of(self.scheduler, step)
        except ScenarioError as e:
            raise ScenarioError(f"step {self.step}: {e}") from None
        self._happens(event)

    def _configure(self, text: str) -> None:
        spec = read_config(text)
        self.goes_beyond = self.goes_beyond or config_goes_beyond(spec)
        self._happens(Configure(spec))
        if self.record.configuration_rejected is not None:
            raise ConfigurationRefused(self.record.configuration_rejected)

    def _happens(self, event: Event) -> None:
        self.handle(event)
        if isinstance(event, Release):
            self._is_gone(event.application, event.key)
        self.follow()

    def take(self, decisions: list[Decision]) -> None:
        """Add the rows that they are."""
        self.record.take(decisions, self.step, self.leaving)
        for d in decisions:
            if isinstance(d, Evict):
                self.record.add_eviction(d, key_of(self.scheduler, d.on_behalf_of), self.step)
                self.then(partial(self.stop, d))
            elif isinstance(d, Released):
                self._is_gone(d.application, d.key)

    def stop(self, order: Evict) -> None:
        """At once, after its grace, or when the scenario says so; the scheduler's own affairs (placeholders that are
        replaced or out of time) at once in any case.
        """
        name = (order.application, order.key)
        self.leaving[name] = None
        if order.cause is Cause.PREEMPTED_BY_SCHEDULER and not self.confirms:
            return
        grace_ms = self._grace_ms(order) if order.cause is Cause.PREEMPTED_BY_SCHEDULER else 0
        if grace_ms:
            self.leaving[name] = self.later(self.now_ms + grace_ms, partial(self.confirm, order))
        else:
            self.confirm(order)

    def confirm(self, order: Evict) -> None:
        """It has stopped; that may lead to more orders."""
        super().confirm(order)
        self._is_gone(order.application, order.key)

    def _is_gone(self, application: str, key: str) -> None:
        """However it went: nothing is to come of it."""
        due = self.leaving.pop((application, key), None)
        if due is not None:
            due.call_off()

    def _grace_ms(self, order: Evict) -> int:
        """How long it has between being told and being gone."""
        partition = self.scheduler.cluster.partitions.get(DEFAULT_PARTITION)
        app = partition.applications.get(order.application) if partition is not None else None
        ask = app.asks.get(order.key) if app is not None else None
        return (ask.spec.grace_ms or 0) if ask is not None else 0

    def _sleep(self, millis: int) -> None:
        """Time passes; every timer that comes due on the way fires, and all grace ends, each at its own moment."""
        until, fired_ms = self.now_ms + millis, -1
        while (due_ms := self._next_ms(fired_ms)) is not None and due_ms <= until:
            self.now_ms = max(due_ms, self.now_ms)
            if self.scheduler.next_wakeup_ms() == due_ms:
                fired_ms = due_ms
            self._fire_timers()
            self.happen(self.now_ms)
            self.follow()
        self.now_ms = until
        self._fire_timers()
        self.follow()

    def _fire_timers(self) -> None:
        self.schedule(0)

    def _next_ms(self, fired_ms: int) -> int | None:
        """When something happens next. A timer that has been fired and is still there does not count again."""
        timer_ms = self.scheduler.next_wakeup_ms()
        moments = [timer_ms if timer_ms is not None and timer_ms > fired_ms else None, self.due_ms]
        return min((moment for moment in moments if moment is not None), default=None)

    def _schedule(self, step: ScheduleStep) -> None:
        settle = step.action == "settle"
        if settle or self.one_by_one:
            runs, seconds = self._run_each(step.steps, settle)
        else:
            runs, seconds = self._run_batch(step.steps)
        self.timings.append({"runs": runs, "seconds": seconds})

    def _run_batch(self, steps: int) -> tuple[int, float]:
        placed, seconds = self._timed(steps)
        self.follow()
        return (placed if placed >= steps else placed + 1), seconds

    def _run_each(self, steps: int, settle: bool) -> tuple[int, float]:
        """Single runs: `settle` does all of them and confirms after each; otherwise the first empty one is the last."""
        total, runs = 0.0, 0
        while runs < steps:
            placed, seconds = self._timed(1)
            total += seconds
            runs += 1
            if settle:
                self.follow()
            elif not placed:
                break
        self.follow()
        return runs, total

    def _timed(self, limit: int) -> tuple[int, float]:
        """Schedule; how many asks were allocated or replaced, and how long the call took."""
        before = self.record.placed
        with collector_off():
            began = time.perf_counter()
            decisions = self.scheduler.schedule(self.now_ms, limit=limit, stop_when_empty=True)
            seconds = time.perf_counter() - began
        if self.recorder is not None:
            self.recorder.run(self.now_ms, limit, decisions)
        self.take(decisions)
        return self.record.placed - before, seconds


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


def run_file(path: str, out: TextIO, err: TextIO | None = None, unblock: Unblock | None = None) -> int:
    """Run every scenario of a file of JSON lines (`-`: standard input); a line of JSON on `out` for each.

    Returns 0, or 2 after a sentence on `err` when the file cannot be read or is not a file of scenarios; results before
    that place have been written.
    """
    try:
        with open_lines(path) as lines:
            for scenario in read_scenarios(iter(lines), path):
                out.write(msgspec.json.encode(run_steps(scenario, unblock=unblock)).decode() + "\n")
                out.flush()
    except (OSError, ScenarioError) as e:
        print(f"cannot run the scenarios: {sentence(e)}", file=err or sys.stderr)
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
