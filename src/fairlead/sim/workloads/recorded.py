"""A recorded past as a workload: what was submitted, what it asked for, and how long it really ran.

Decides what events and the decisions that followed mean as jobs. Never reads a journal itself: it is given moments.
Invariant: each ask that came by itself is one task; further attempts of it are not tasks of their own.

A task's run time is that of its last run. What never ran is given the median of its user, else of all, and so is, of
the runs that lasted longer, what was evicted for good (under another queue file it may go on) or ran when the record
ends. Where it is evicted again nobody submits it once more: if its owner did, the record has that,
too. What is told to stop takes as long as it did then, and what was never told to as long as others did. What ran or
waited already at the beginning comes at the beginning: what ran on its node and for the rest of its time. Asks that
were changed come as they were in the end. Asks that came for placeholders are a gang. What administrators did meanwhile
is not repeated. The notes count whatever was not taken as it was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from fairlead.core.books.asks import Ask
from fairlead.core.books.classes import BUILT_IN
from fairlead.core.model import events as e
from fairlead.core.model import specs
from fairlead.core.model.conditions import Conditions
from fairlead.core.model.decisions import (
    Allocated,
    AskChanged,
    Decision,
    DeclarationRejected,
    Evict,
    Released,
    Retried,
)
from fairlead.core.model.events import (
    AddApplication,
    AddAsks,
    AddNode,
    Cause,
    Configure,
    Event,
    Release,
    SetConditions,
    UpdateNode,
)
from fairlead.core.model.resources import NOTHING, Resources
from fairlead.policy.events.admin_objects import CLUSTER_HANDLERS
from fairlead.policy.events.handlers import partition_of
from fairlead.scheduler import Scheduler
from fairlead.sim.jobs import Job, Task, Workload, queue_file
from fairlead.sim.workloads.acts import ACTS, not_repeated
from fairlead.sim.workloads.runs import Run, Usual

Moment = tuple[int, Event | None, Sequence[Decision]]
"""When, what was told (None: a scheduling run), and what was decided."""

HELD_MS = 2**62
"""When what is held until somebody says otherwise is in line."""


class NothingRecorded(ValueError):
    """A record, or a stretch of one, without any work."""


class Recorder:
    """Collects the runs of a record, moment by moment."""

    def __init__(self, from_ms: int | None = None, until_ms: int | None = None) -> None:
        self.from_ms, self.until_ms = from_ms, until_ms
        self.queue_text = ""
        self._apps: dict[str, specs.ApplicationSpec] = {}
        self._nodes: dict[str, specs.NodeSpec] = {}
        self._classes: dict[str, specs.PriorityClassSpec] = {}
        """Declared beside the queue file, as they were in the end; work keeps its class when that goes."""
        self._now: dict[tuple[str, str], Run] = {}
        """What is known and has not ended, by application and present key."""
        self._all: list[Run] = []
        self._placeholders: dict[str, list[int]] = {}
        """By application, when each of its placeholders came."""
        self._acts: Counter[str] = Counter()
        self._begin_ms: int | None = None
        """When the record begins in the middle of things."""
        self.last_ms = 0
        self._elsewhere = 0

    # -- taking in ------------------------------------------------------------------------------------------------

    def begin(self, scheduler: Scheduler) -> None:
        """What there was when the record begins: the state that a pruned journal has there."""
        self._begin_ms = self.last_ms = scheduler.cluster.now_ms
        self.queue_text = scheduler.cluster.text
        classes = scheduler.cluster.admission.classes
        self._classes = {each.name: each for each in classes if not (classes.is_of_file(each.name) or each in BUILT_IN)}
        for name, partition in scheduler.cluster.partitions.items():
            if name != specs.DEFAULT_PARTITION:
                self._elsewhere += sum(len(app.asks) for app in partition.applications.values())
                continue
            nodes = partition.nodes.nodes.values()
            self._nodes = {node.id: replace(node.spec, capacity=Resources(node.total)) for node in nodes}
            for app in partition.applications.values():
                # Where no rule places it, it is in the queue that was named, or that it was moved to since.
                is_named = app.spec.queue and not partition.spec.placement_rules
                self._apps[app.id] = replace(app.spec, queue=app.queue.path) if is_named else app.spec
                for ask in app.asks.values():
                    if ask.spec.placeholder:
                        self._placeholders.setdefault(app.id, []).append(self._begin_ms)
                        continue
                    run = self._come(_as_it_is(ask), self._begin_ms)
                    if ask.node is not None:
                        run.started_ms, run.node = ask.allocated_ms, ask.node.id
                        run.told_ms = self._begin_ms if ask.evict_cause is not None else None
            for _, held in partition.held_asks:
                if not held.spec.placeholder:
                    self._come(replace(held.spec, conditions=held.conditions), self._begin_ms)

    def take(self, at_ms: int, event: Event | None, decisions: Sequence[Decision]) -> None:
        """One moment of the record, in order of time."""
        self.last_ms = max(self.last_ms, at_ms)
        if event is not None and not any(isinstance(d, DeclarationRejected) for d in decisions):
            self._event(at_ms, event)
        for d in decisions:
            match d:
                case Allocated() | AskChanged() | Evict() | Retried() | Released() if (
                    d.partition != specs.DEFAULT_PARTITION
                ):
                    # There may be work with the same names.
                    continue
                case Allocated():
                    run = self._now.get((d.application, d.key))
                    if run is not None:
                        run.started_ms, run.node = at_ms, d.node
                case AskChanged():
                    # So also of what stands still, whose time limit stands still, too.
                    run = self._now.get((d.application, d.key))
                    if run is not None:
                        run.ask = replace(run.ask, resources=d.resources, time_limit_ms=d.time_limit_ms)
                case Retried():
                    run = self._now.pop((d.application, d.key), None)
                    if run is not None:
                        self._now[d.application, d.new_key] = run
                        run.try_again(at_ms)
                case Evict() if (run := self._now.get((d.application, d.key))) is not None:
                    run.told_ms, run.at_wish = at_ms, d.cause is Cause.REQUEUED
                case Released():
                    # Not told by anybody: its node is gone, or its application was removed.
                    self._ended(at_ms, d.application, d.key, stopped=True)

    def _event(self, at_ms: int, event: Event) -> None:
        of_all = isinstance(event, Configure) or type(event) in CLUSTER_HANDLERS
        if not of_all and partition_of(event) != specs.DEFAULT_PARTITION:
            self._elsewhere += len(event.asks) if isinstance(event, AddAsks) else 0
            return
        match event:
            case Configure():
                if self.queue_text and event.spec.text not in ("", self.queue_text):
                    self._acts["changes of the queue file (the last one counts)"] += 1
                self.queue_text = event.spec.text or self.queue_text
            case AddNode():
                self._nodes[event.node.id] = event.node
            case UpdateNode() if event.id in self._nodes:
                self._nodes[event.id] = replace(self._nodes[event.id], capacity=event.capacity)
            case AddApplication():
                self._apps.pop(event.application.id, None)
                self._apps[event.application.id] = event.application
            case AddAsks():
                self._asked(at_ms, event.asks)
            case Release():
                self._released(at_ms, event)
            case SetConditions():
                run = self._now.get((event.application, event.key))
                if run is not None:
                    run.at_ms = _in_line_ms(event.conditions, at_ms)
                    run.awaited |= bool(event.conditions.after)
            case _:
                self._act(event)

    def _act(self, event: Event) -> None:
        """What an administrator did."""
        match event:
            case e.SetPriorityClass():
                self._classes[event.spec.name] = event.spec
            case e.RemovePriorityClass() if event.name in self._classes:
                self._classes[event.name] = replace(self._classes[event.name], global_default=False)
            case e.LabelNode() if event.id in self._nodes:
                node = self._nodes[event.id]
                stay = tuple(taint for taint in node.taints if taint in event.taints)
                self._nodes[event.id] = replace(node, attributes=event.attributes, taints=stay)
                if event.taints == node.taints:
                    return
        act = ACTS.get(type(event))
        if act is not None:
            self._acts[act] += 1

    def _asked(self, at_ms: int, asks: Sequence[specs.AskSpec]) -> None:
        for ask in asks:
            if specs.TAG_FOREIGN in ask.tags or ask.attempt > 1 or ask.application not in self._apps:
                continue
            if ask.placeholder:
                self._placeholders.setdefault(ask.application, []).append(at_ms)
                continue
            known = self._now.get((ask.application, ask.key))
            if known is not None and known.ended_ms is None:
                continue
            run = self._come(ask, at_ms)
            if ask.node:
                run.started_ms, run.node = at_ms, ask.node

    def _come(self, ask: specs.AskSpec, at_ms: int) -> Run:
        tags = {name: value for name, value in ask.tags.items() if name != specs.TAG_CREATION_TIME}
        held = ask.conditions
        in_line_ms = _in_line_ms(held, at_ms) if held is not None else at_ms
        run = Run(self._apps[ask.application], replace(ask, node="", tags=tags, conditions=None), in_line_ms, at_ms)
        run.awaited = held is not None and bool(held.after)
        self._now[ask.application, ask.key] = run
        self._all.append(run)
        return run

    def _released(self, at_ms: int, event: Release) -> None:
        keys = [event.key] if event.key else [key for app, key in self._now if app == event.application]
        # What was stopped has an exit code, too, and did not fail: it would be tried again for that.
        stopped = event.cause is not Cause.FINISHED
        code = 0 if stopped else event.exit_code or 0
        # It may have ended while the service was down, and been told at the restart.
        at_ms = at_ms if event.ended_ms is None else min(event.ended_ms, at_ms)
        for key in keys:
            self._ended(at_ms, event.application, key, stopped, code)

    def _ended(self, at_ms: int, application: str, key: str, stopped: bool, exit_code: int = 0) -> None:
        run = self._now.get((application, key))
        if run is not None and run.ended_ms is None:
            # By a clock that was set back it may have ended before it began.
            at_ms = at_ms if run.started_ms is None else max(at_ms, run.started_ms)
            run.ended_ms, run.stopped, run.exit_code = at_ms, stopped, exit_code
            if run.told_ms is not None:
                took_ms = max(at_ms - run.told_ms, 0)
                # What ended by itself meanwhile would have taken longer to stop.
                run.stop_ms = took_ms if stopped else max(took_ms, run.stop_ms or 0)

    # -- giving out -----------------------------------------------------------------------------------------------

    def workload(self, name: str, nodes: Sequence[specs.NodeSpec] = ()) -> Workload:
        """All of it, or what came between `from_ms` and `until_ms`, on the given nodes or the recorded ones.

        Raises `NothingRecorded` if there is nothing to simulate.
        """
        begin_ms = max((at_ms for at_ms in (self.from_ms, self._begin_ms) if at_ms is not None), default=None)
        chosen = [w for w in map(self._in_line, self._all) if self._counts(w)]
        if not chosen:
            where = "in that stretch of time" if self._all else f"in partition {specs.DEFAULT_PARTITION}"
            other = f"; other partitions have {self._elsewhere:,} submissions" if self._elsewhere else ""
            raise NothingRecorded(f"{name}: nothing was submitted {where}{other}")
        carried = [w for w in chosen if begin_ms is not None and _is_carried(w, begin_ms, self._begin_ms)]
        return Workload(
            name=name,
            jobs=self._jobs(chosen, {id(w) for w in carried}, begin_ms or 0, bool(nodes)),
            nodes=tuple(nodes or self._nodes.values()),
            tasks=len(chosen),
            notes=self._notes(chosen, len(carried)),
            # Quotas are not repeated, and without one that names it nobody could use a limited class.
            classes=tuple(replace(each, limited=False) for each in self._classes.values()),
            queues=self.queue_text or queue_file(dict.fromkeys(a.queue for a in self._apps.values() if a.queue)),
        )

    def _in_line(self, run: Run) -> Run:
        """What was tried again and held to its end was in line only before."""
        is_held = run.at_ms > (self.last_ms if run.ended_ms is None else run.ended_ms)
        return run.before if is_held and run.before is not None else run

    def _counts(self, run: Run) -> bool:
        """Whether it is in line or runs between `from_ms` and `until_ms`."""
        if run.at_ms > (self.last_ms if run.ended_ms is None else run.ended_ms):
            return False
        if self.until_ms is not None and run.at_ms >= self.until_ms:
            return False
        return self.from_ms is None or run.at_ms >= self.from_ms or (run.ended_ms or self.last_ms + 1) > self.from_ms

    def _is_within(self, at_ms: int) -> bool:
        return (self.from_ms or 0) <= at_ms and (self.until_ms is None or at_ms < self.until_ms)

    def _notes(self, chosen: list[Run], carried: int) -> list[str]:
        running = sum(w.ended_ms is None and w.started_ms is not None for w in chosen)
        never = sum(w.last.started_ms is None for w in chosen)
        evicted = sum(w.cut_short for w in chosen)
        stopped = sum(w.stopped and w.started_ms is not None for w in chosen) - evicted
        again, awaited = sum(w.tried_again for w in chosen), sum(w.awaited for w in chosen)
        there = {run.app.id for run in self._all}
        absent = sum(app not in there and self._is_within(came[0]) for app, came in self._placeholders.items())
        counted = [
            (self._elsewhere, f"submissions to other partitions than {specs.DEFAULT_PARTITION}, left out"),
            (carried, "tasks that waited or ran already at the beginning, taken to come then"),
            (running, "tasks that still ran when the record ends, taken to run as long as longer ones of their user"),
            (never, "tasks that never ran, given the median run time of their user"),
            (again, "tasks that were tried again, taken to run as long as the last time"),
            (awaited, "tasks that waited for others, taken to come when these were through then"),
            (stopped, "tasks that were stopped before their end, taken to run as long as they did"),
            (absent, "gangs that never had all of their room, left out: their work had not come"),
            (evicted, "tasks that were evicted for good, taken to run as long as longer ones of their user"),
        ]
        notes = [f"{what}: {count:,}" for count, what in counted if count]
        if self._acts:
            notes.append(not_repeated(self._acts))
        return notes

    def _jobs(self, runs: list[Run], carried: set[int], begin_ms: int, moved: bool) -> Iterator[Job]:
        usual = Usual(runs)
        gangs = self._gangs([run for run in runs if id(run) not in carried])
        in_gang = {id(w) for members in gangs.values() for w in members}
        found, first_ms = [], HELD_MS
        for run in runs:
            at_ms, task = run.at_ms, self._task(run, usual)
            if id(run) in in_gang:
                continue
            if id(run) in carried:
                at_ms = begin_ms
                if run.started_ms is not None and run.started_ms <= begin_ms:
                    left_ms = max(task.run_ms - (begin_ms - run.started_ms), 0)
                    ask = replace(task.ask, node="" if moved else run.node)
                    task = replace(task, ask=ask, run_ms=left_ms, anew_ms=task.run_ms)
            first_ms = min(first_ms, at_ms)
            if run.came_ms < at_ms and id(run) not in carried and run.app.id not in gangs:
                # It is held as it was: its application is as old in line, and its turn among the others its own.
                task = replace(task, ask=replace(task.ask, conditions=Conditions(begin_ms=at_ms)))
                at_ms = run.came_ms
            found.append(Job(at_ms, replace(run.app, placeholder_ask=NOTHING), (task,)))
        for members in gangs.values():
            first = members[0]
            tasks = tuple(self._task(w, usual) for w in members)
            at_ms = min(self._placeholders[first.app.id][0], first.at_ms)
            found.append(Job(max(at_ms, begin_ms), first.app, tasks, gang=True))
            first_ms = min(first_ms, found[-1].at_ms)
        found = [replace(job, at_ms=max(job.at_ms, first_ms)) for job in found]
        # What comes at one moment is in line by the age of its application, as it was then.
        age = {app: number for number, app in enumerate(self._apps)}
        yield from sorted(found, key=lambda job: (job.at_ms, age[job.application.id]))

    def _task(self, run: Run, usual: Usual) -> Task:
        last, ask = run.last, replace(run.ask, task_group="")
        run_ms = last.run_ms
        if run_ms is None and last.started_ms is not None:
            run_ms = usual.beyond(run.app.user, self.last_ms - last.started_ms, ask.time_limit_ms)
        elif run_ms is None:
            run_ms = usual.of(run.app.user)
        elif last.cut_short:
            run_ms = usual.beyond(run.app.user, run_ms, ask.time_limit_ms)
            ask = replace(ask, retry=ask.retry or specs.RetrySpec(limit=0))
        return Task(ask, run_ms, run.exit_code, usual.stop_ms if run.stop_ms is None else run.stop_ms)

    def _gangs(self, runs: list[Run]) -> dict[str, list[Run]]:
        """By application, the asks that came for its placeholders: as many as it had of them."""
        gangs: dict[str, list[Run]] = {}
        for run in runs:
            came = self._placeholders.get(run.app.id, ())
            if run.ask.task_group and len(gangs.get(run.app.id, ())) < len(came):
                gangs.setdefault(run.app.id, []).append(run)
        return gangs


def _as_it_is(ask: Ask) -> specs.AskSpec:
    """What an ask says, with the priority that it was given since; that of a class is the class's."""
    if ask.spec.priority_class or ask.priority == ask.spec.priority:
        return ask.spec
    return replace(ask.spec, priority=ask.priority, priority_resolved=True)


def _in_line_ms(conditions: Conditions, at_ms: int) -> int:
    """When what has these conditions from `at_ms` on is in line: it comes then, and does not ask for them again."""
    due_ms = conditions.due_ms()
    return HELD_MS if due_ms is None else max(at_ms, due_ms)


def _is_carried(run: Run, begin_ms: int, record_begins_ms: int | None) -> bool:
    """Whether it was there before the beginning."""
    return run.at_ms < begin_ms or (run.at_ms == begin_ms == record_begins_ms)


def recorded(
    moments: Iterable[Moment],
    name: str,
    from_ms: int | None = None,
    until_ms: int | None = None,
    nodes: Sequence[specs.NodeSpec] = (),
    state: Scheduler | None = None,
) -> Workload:
    """The workload of a record: what was there between `from_ms` and `until_ms`, or all of it.

    `state` is what there was when the record begins, if it does not begin with nothing. Raises `NothingRecorded`.
    """
    recorder = Recorder(from_ms, until_ms)
    if state is not None:
        recorder.begin(state)
    for at_ms, event, decisions in moments:
        recorder.take(at_ms, event, decisions)
    return recorder.workload(name, nodes)
