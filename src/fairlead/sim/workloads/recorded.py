"""A recorded past as a workload: what was submitted, what it asked for, and how long it really ran.

Decides what events and the decisions that followed mean as jobs. Never reads a journal itself: it is given moments.
Invariant: each ask that came by itself is one task; further attempts of it are not tasks of their own.

A task's run time is that of its last run. What ran when the record ends is taken to end then (it is counted in the
notes); what never ran is given the median of its user, else of all. Gangs come as their real asks do; what an
administrator did meanwhile (priorities, moves, nodes drained or removed) is not repeated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median_low

from fairlead.core.decisions import Allocated, Decision, Retried
from fairlead.core.events import AddApplication, AddAsks, AddNode, Configure, Event, Release, UpdateNode
from fairlead.core.specs import (
    DEFAULT_PARTITION,
    TAG_CREATION_TIME,
    TAG_FOREIGN,
    ApplicationSpec,
    AskSpec,
    NodeSpec,
)
from fairlead.policy.intake import partition_of
from fairlead.sim.jobs import Job, Task, Workload
from fairlead.sim.workloads.leaves import queue_file

Moment = tuple[int, Event | None, Sequence[Decision]]
"""When, what was told (None: a scheduling run), and what was decided."""


@dataclass(slots=True)
class _Work:
    ask: AskSpec
    at_ms: int
    started_ms: int | None = None
    run_ms: int | None = None
    exit_code: int = 0
    over: bool = False


class Recorder:
    """Collects the works of a record, moment by moment."""

    def __init__(self, from_ms: int | None = None, until_ms: int | None = None) -> None:
        self.from_ms, self.until_ms = from_ms, until_ms
        self.queue_text = ""
        self._apps: dict[str, ApplicationSpec] = {}
        self._nodes: dict[str, NodeSpec] = {}
        self._now: dict[tuple[str, str], _Work] = {}
        """What is known and has not ended, by application and present key."""
        self._all: list[_Work] = []
        self.last_ms = 0
        self._elsewhere = 0

    def take(self, at_ms: int, event: Event | None, decisions: Sequence[Decision]) -> None:
        """One moment of the record, in order of time."""
        self.last_ms = max(self.last_ms, at_ms)
        if event is not None:
            self._event(at_ms, event)
        for d in decisions:
            match d:
                case Allocated():
                    work = self._now.get((d.application, d.key))
                    if work is not None:
                        work.started_ms = at_ms
                case Retried():
                    work = self._now.pop((d.application, d.key), None)
                    if work is not None:
                        self._now[d.application, d.new_key] = work
                        work.started_ms, work.over = None, False

    def _event(self, at_ms: int, event: Event) -> None:
        if not isinstance(event, Configure) and partition_of(event) != DEFAULT_PARTITION:
            self._elsewhere += isinstance(event, AddAsks)
            return
        match event:
            case Configure():
                self.queue_text = event.spec.text or self.queue_text
            case AddNode():
                self._nodes[event.node.id] = event.node
            case UpdateNode() if event.id in self._nodes:
                self._nodes[event.id] = replace(self._nodes[event.id], capacity=event.capacity)
            case AddApplication():
                self._apps[event.application.id] = event.application
            case AddAsks():
                self._asked(at_ms, event.asks)
            case Release():
                self._released(at_ms, event)
            case _:
                pass

    def _asked(self, at_ms: int, asks: Sequence[AskSpec]) -> None:
        for ask in asks:
            id_ = (ask.application, ask.key)
            if ask.placeholder or TAG_FOREIGN in ask.tags or ask.attempt > 1 or ask.application not in self._apps:
                continue
            if id_ in self._now and not self._now[id_].over:
                continue
            tags = {name: value for name, value in ask.tags.items() if name != TAG_CREATION_TIME}
            work = _Work(replace(ask, node="", task_group="", tags=tags), at_ms)
            if ask.node:
                work.started_ms = at_ms
            self._now[id_] = work
            self._all.append(work)

    def _released(self, at_ms: int, event: Release) -> None:
        keys = [event.key] if event.key else [key for app, key in self._now if app == event.application]
        for key in keys:
            work = self._now.get((event.application, key))
            if work is not None and not work.over:
                work.over = True
                work.exit_code = event.exit_code or 0
                if work.started_ms is not None:
                    work.run_ms = at_ms - work.started_ms

    def workload(self, name: str, nodes: Sequence[NodeSpec] = ()) -> Workload:
        """All of it, or what came between `from_ms` and `until_ms`, on the given nodes or the recorded ones."""
        chosen = [
            work
            for work in self._all
            if (self.from_ms is None or work.at_ms >= self.from_ms)
            and (self.until_ms is None or work.at_ms < self.until_ms)
        ]
        running = sum(w.run_ms is None and w.started_ms is not None for w in chosen)
        never = sum(w.run_ms is None and w.started_ms is None for w in chosen)
        notes = []
        if self._elsewhere:
            notes.append(f"{self._elsewhere:,} submissions to other partitions than {DEFAULT_PARTITION} are left out")
        if running:
            notes.append(f"{running:,} tasks still ran when the record ends; they are taken to end then")
        if never:
            notes.append(f"{never:,} tasks never ran; they are given the median run time of their user")
        return Workload(
            name=name,
            jobs=self._jobs(chosen),
            nodes=tuple(nodes or self._nodes.values()),
            tasks=len(chosen),
            notes=notes,
            queues=self.queue_text or queue_file(dict.fromkeys(a.queue for a in self._apps.values() if a.queue)),
        )

    def _jobs(self, works: list[_Work]) -> Iterator[Job]:
        usual = self._medians(works)
        for work in works:
            app = self._apps[work.ask.application]
            run_ms = work.run_ms
            if run_ms is None and work.started_ms is not None:
                run_ms = self.last_ms - work.started_ms
            if run_ms is None:
                run_ms = usual.get(app.user, usual[""])
            # Its gang is over: real asks come by themselves.
            plain = replace(app, placeholder_ask=ApplicationSpec(id="").placeholder_ask)
            yield Job(work.at_ms, plain, (Task(work.ask, run_ms, work.exit_code),))

    def _medians(self, works: list[_Work]) -> dict[str, int]:
        by_user: dict[str, list[int]] = {"": []}
        for work in works:
            if work.run_ms is not None:
                by_user[""].append(work.run_ms)
                by_user.setdefault(self._apps[work.ask.application].user, []).append(work.run_ms)
        return {user: median_low(times) for user, times in by_user.items() if times} | (
            {} if by_user[""] else {"": 60_000}
        )


def recorded(
    moments: Iterable[Moment],
    name: str,
    from_ms: int | None = None,
    until_ms: int | None = None,
    nodes: Sequence[NodeSpec] = (),
) -> Workload:
    """The workload of a record; `from_ms` and `until_ms` choose by time of submission."""
    recorder = Recorder(from_ms, until_ms)
    for at_ms, event, decisions in moments:
        recorder.take(at_ms, event, decisions)
    return recorder.workload(name, nodes)
