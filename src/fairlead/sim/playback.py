"""Replay a trace: the production scheduler in virtual time, task by task.

Decides when each task comes and ends, and counts what became of it. Never decides who runs. Invariants: each task is in
exactly one of completed, running, waiting and refused; the same trace and queue file give the same decisions, byte for
byte; the work for one event does not depend on how long the trace is.

An event loop over three sources: tasks in order of creation, a heap of ends, and the scheduler's own timers. At one
moment first ends what ends (what is free can be used at once), then comes what comes, then the scheduler runs.

What a trace means here: each task is an application with one ask, in the queue `root.<class of service>`, its priority
by class (`trace.QOS_PRIORITY`). An evicted task comes back at once as a new ask (`NAME#2`, ...) and starts over. The
GPUs of a node are one pool (`gpu-milli`), not single devices. A task that names GPU models is kept on nodes that
have one by a resource of its own (`gpu-model/A|B`), of which every such node has more than could ever be used.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import TextIO

from fairlead.core.decisions import Allocated, ApplicationRejected, AskRejected, Decision, Evict
from fairlead.core.events import AddApplication, AddAsks, AddNode, Cause, Configure, Event, Release
from fairlead.core.resources import Items, Resources, add_to
from fairlead.core.specs import (
    ApplicationSpec,
    AskSpec,
    ClusterSpec,
    NodeSpec,
    PartitionSpec,
    PreemptionSpec,
    QueueSpec,
)
from fairlead.scheduler import Scheduler
from fairlead.sim.lines import decision_line
from fairlead.sim.measure import UseOverTime, Waits
from fairlead.sim.trace import QOS_PRIORITY, TraceNode, TraceTask

GPU = "gpu-milli"
MODEL = "gpu-model/"
_MODEL_SLOTS = 10**9
_MIB = 2**20
PROGRESS_EVERY = 256


def default_cluster() -> ClusterSpec:
    """One queue for each class of service below root, no limits, no preemption."""
    leaves = tuple(QueueSpec(name=name) for name in QOS_PRIORITY)
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=leaves)
    return ClusterSpec(partitions=(PartitionSpec(root=root, preemption=PreemptionSpec(enabled=False)),))


@dataclass(slots=True)
class TaskRun:
    """A task under way: which attempt, where it is, and since when."""

    task: TraceTask
    items: Items
    attempt: int = 1
    since_ms: int = 0
    """Since when it waits, or runs."""

    @property
    def key(self) -> str:
        """The key of its present ask."""
        return self.task.name if self.attempt == 1 else f"{self.task.name}#{self.attempt}"


class Replay:
    """A trace under way."""

    def __init__(
        self,
        nodes: Iterable[TraceNode],
        tasks: list[TraceTask],
        spec: ClusterSpec | None = None,
        lines: TextIO | None = None,
    ) -> None:
        self.tasks = tasks
        self.now_ms = tasks[0].created_ms if tasks else 0
        self.submitted = self.completed = self.evictions = self.lost_ms = 0
        self.waiting: dict[str, TaskRun] = {}
        self.running: dict[str, TaskRun] = {}
        self.refused: dict[str, str] = {}
        self.waits = Waits()
        self.decisions = 0
        self.stopped = False
        """Set it to stop before the next moment."""
        self._digest = hashlib.sha256()
        self._lines = lines
        self._ends: list[tuple[int, int, str, int]] = []
        self._sequence = 0
        self._interned: dict[Resources, Resources] = {}
        self.scheduler = Scheduler(now_ms=self.now_ms)
        self._take(self.scheduler.handle(Configure(spec or default_cluster()), self.now_ms))
        self.use = self._add_nodes(nodes)

    def _add_nodes(self, nodes: Iterable[TraceNode]) -> UseOverTime:
        kinds = sorted({task.models for task in self.tasks if task.models})
        total: dict[str, int] = {}
        for node in nodes:
            capacity = node_capacity(node)
            add_to(total, capacity.items)
            slots = {_model_name(kind): _MODEL_SLOTS for kind in kinds if node.gpus and node.model in kind}
            whole = Resources(capacity.as_dict() | slots)
            spec = NodeSpec(id=node.id, capacity=whole, attributes={"gpu-model": node.model} if node.model else {})
            self._take(self.scheduler.handle(AddNode(spec), self.now_ms))
        return UseOverTime(total, self.now_ms)

    # -- the loop -------------------------------------------------------------------------------------------------

    def run(self, until_ms: int | None = None, progress: Callable[[int], None] | None = None) -> None:
        """Go on until nothing is left to happen, or to `until_ms`; `progress` hears how many tasks came or went."""
        turns = 0
        while not self.stopped:
            at_ms = self._next_ms()
            if at_ms is None or (until_ms is not None and at_ms > until_ms):
                break
            self._turn(at_ms)
            turns += 1
            if progress and turns % PROGRESS_EVERY == 0:
                progress(self.done)
        if until_ms is not None and not self.stopped:
            self.use.advance(max(until_ms, self.use.now_ms))
        if progress:
            progress(self.done)

    @property
    def done(self) -> int:
        """How many tasks came plus how many are through: twice the tasks when all is over."""
        return self.submitted + self.completed + len(self.refused)

    def _next_ms(self) -> int | None:
        """The next moment at which anything happens. Timers count only while there is something to wait for."""
        moments = []
        if self._ends:
            moments.append(self._ends[0][0])
        if self.submitted < len(self.tasks):
            moments.append(self.tasks[self.submitted].created_ms)
        if moments or self.waiting:
            due_ms = self.scheduler.next_wakeup_ms()
            if due_ms is not None and due_ms > self.now_ms:
                moments.append(due_ms)
        return min(moments, default=None)

    def _turn(self, at_ms: int) -> None:
        """One moment: ends, arrivals, scheduling; once more after evictions, which made room at this moment."""
        self.now_ms = at_ms
        self._end_due()
        self._submit_due()
        evictions = -1
        while evictions != self.evictions:
            evictions = self.evictions
            self._take(self.scheduler.schedule(at_ms))

    def _end_due(self) -> None:
        while self._ends and self._ends[0][0] <= self.now_ms:
            _, _, name, attempt = heappop(self._ends)
            run = self.running.get(name)
            if run is None or run.attempt != attempt:
                continue
            del self.running[name]
            self.completed += 1
            self._change_use(run, -1)
            self._handle(Release(name, run.key, Cause.FINISHED))

    def _submit_due(self) -> None:
        while self.submitted < len(self.tasks) and self.tasks[self.submitted].created_ms <= self.now_ms:
            self.use.advance(self.now_ms)
            self._submit(self.tasks[self.submitted])

    def _submit(self, task: TraceTask) -> None:
        self.submitted += 1
        amount = task_amount(task)
        amount = self._interned.setdefault(amount, amount)
        run = TaskRun(task, amount.items, since_ms=self.now_ms)
        self.waiting[task.name] = run
        self._handle(AddApplication(ApplicationSpec(id=task.name, queue=f"root.{task.qos.lower()}", user="trace")))
        if task.name in self.waiting:
            self._handle(self._ask(run, amount))

    def _ask(self, run: TaskRun, amount: Resources) -> AddAsks:
        ask = AskSpec(
            application=run.task.name,
            key=run.key,
            resources=amount,
            priority=QOS_PRIORITY[run.task.qos],
        )
        return AddAsks((ask,))

    # -- what follows ---------------------------------------------------------------------------------------------

    def _handle(self, event: Event) -> None:
        self._take(self.scheduler.handle(event, self.now_ms))

    def _take(self, decisions: list[Decision]) -> None:
        if not decisions:
            return
        text = "".join(decision_line(self.now_ms, d) + "\n" for d in decisions)
        self._digest.update(text.encode())
        self.decisions += len(decisions)
        if self._lines is not None:
            self._lines.write(text)
        for d in decisions:
            match d:
                case Allocated():
                    self._started(d.application)
                case Evict():
                    self._evicted(d)
                case ApplicationRejected():
                    self._refuse(d.id, d.reason.sentence())
                case AskRejected():
                    self._refuse(d.application, d.reason.sentence())

    def _started(self, name: str) -> None:
        run = self.waiting.pop(name)
        self._change_use(run, 1)
        if run.attempt == 1:
            self.waits.add(self.now_ms - run.since_ms)
        run.since_ms = self.now_ms
        self.running[name] = run
        self._sequence += 1
        heappush(self._ends, (self.now_ms + run.task.run_ms, self._sequence, name, run.attempt))

    def _evicted(self, order: Evict) -> None:
        """It is gone at once, what it did is lost, and it comes back as a new ask."""
        run = self.running.pop(order.application)
        self._change_use(run, -1)
        self.evictions += 1
        self.lost_ms += self.now_ms - run.since_ms
        again = TaskRun(run.task, run.items, run.attempt + 1, self.now_ms)
        self.waiting[order.application] = again
        self._handle(Release(order.application, order.key, order.cause))
        self._handle(self._ask(again, Resources(run.items)))

    def _change_use(self, run: TaskRun, sign: int) -> None:
        self.use.advance(self.now_ms)
        self.use.change(run.items, sign)

    def _refuse(self, name: str, sentence: str) -> None:
        if self.waiting.pop(name, None) is not None:
            self.refused[name] = sentence

    @property
    def digest(self) -> str:
        """SHA-256 over the lines of all decisions so far, in hex."""
        return self._digest.hexdigest()


def node_capacity(node: TraceNode) -> Resources:
    """What a machine of the trace offers: `vcore` in thousandths, `memory` in bytes, `gpu-milli`."""
    return Resources({"vcore": node.cpu_milli, "memory": node.memory_mib * _MIB, GPU: node.gpus * 1000})


def task_amount(task: TraceTask) -> Resources:
    """What a task asks for, with one slot of its GPU models where it names them."""
    amounts = {"vcore": task.cpu_milli, "memory": task.memory_mib * _MIB, GPU: task.gpu_milli}
    if task.models:
        amounts[_model_name(task.models)] = 1
    return Resources(amounts)


def _model_name(models: tuple[str, ...]) -> str:
    return MODEL + "|".join(models)
