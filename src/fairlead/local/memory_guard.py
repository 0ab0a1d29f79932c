"""The guard of the machine's memory: measures, asks who has to go, and tells it to the books.

Decides what a step of `pressure.Watch` means for the node and the jobs. Never measures in the writer's turn, and never
stops a process itself. Invariant: while memory is short the node takes no new work, and it is opened again only by who
closed it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fairlead.core.model.events import DrainNode, UndrainNode
from fairlead.core.model.quantities import format_bytes
from fairlead.core.model.specs import DEFAULT_PARTITION
from fairlead.local import pressure
from fairlead.local.devices import Hierarchies, read_hierarchies
from fairlead.local.history_records import JobPressed, MemoryShort
from fairlead.local.job_names import run_key
from fairlead.local.job_states import NOT_TOLD_TO_STOP, ON_THE_MACHINE, State
from fairlead.local.pressure import Step, Use, Victim
from fairlead.local.runs import Capability

if TYPE_CHECKING:
    from fairlead.local.job import Job
    from fairlead.local.jobs import Jobs
    from fairlead.local.machine import Machine
    from fairlead.runtime import Turn

GRACE_MAX_MS = 10_000
"""Work that has to go for memory gets its grace, but not more than this: the machine cannot wait."""


@dataclass(frozen=True, slots=True)
class Running:
    """A job on the machine, as the books have it."""

    key: str
    attempt: int
    priority: int
    request: int
    started_ms: int
    grace_ms: int | None
    """The grace with which it was told to stop already; None: it was not."""


class MemoryGuard:
    """Looks at the memory of one machine again and again."""

    def __init__(self, threshold: pressure.Threshold, budget: int | None = None, *, short: bool = False) -> None:
        """`budget`: bytes that are for work, instead of what the machine has. `short`: it was, before a restart."""
        self.threshold, self.budget = threshold, budget
        self._watch = pressure.Watch(threshold, short)
        self._hierarchies: Hierarchies = read_hierarchies()

    def capability(self) -> Capability:
        """What happens when memory runs out, as one sentence."""
        name = "memory pressure"
        if not self.threshold:
            how = "switched off: when memory runs out the kernel chooses what it kills"
            return Capability(name=name, enforced=False, how=how)
        least = (
            f"{self.threshold.per_mille / 10:g} %" if self.threshold.per_mille else format_bytes(self.threshold.amount)
        )
        of = f"a budget of {format_bytes(self.budget)}" if self.budget is not None else "the machine's memory"
        how = f"below {least} of {of} nothing new starts, and work that uses more than it asked for is stopped"
        return Capability(name=name, enforced=True, how=how)

    # --- a look, in three parts: the books, the machine, the books -------------------------------------------------

    def running(self, jobs: Jobs) -> list[Running]:
        """What is on the machine, from the books."""
        return [
            Running(
                job.key,
                job.attempt,
                job.priority,
                job.spec.resources["memory"],
                job.started_at_ms or job.allocated_at_ms or 0,
                _grace_of(job) if job.state is State.STOPPING else None,
            )
            for job in jobs.live()
            if job.state in ON_THE_MACHINE
        ]

    def idle(self, running: Sequence[Running]) -> bool:
        """Whether there is nothing to look after."""
        return not running and not self._watch.short

    def measure(self, machine: Machine, running: Sequence[Running]) -> tuple[pressure.Memory | None, list[Use]]:
        """What is left and what each job uses; takes milliseconds, touches no book."""
        uses, all_used = [], []
        for each in running:
            usage = machine.usage(run_key(each.key, each.attempt))
            if usage is None:
                continue
            all_used.append(usage.memory_bytes)
            uses.append(Use(each.key, each.priority, each.request, usage.memory_bytes, each.started_ms))
        if self.budget is not None:
            return pressure.of_budget(self.budget, all_used), uses
        return pressure.of_machine(self._hierarchies), uses

    def decide(
        self, found: pressure.Memory | None, uses: Sequence[Use], running: Sequence[Running]
    ) -> tuple[Step, Victim | None]:
        """What follows from a measurement. What leaves already, and has long for it, is hurried before others go."""
        if found is None:
            return Step.NOTHING, None
        step = self._watch.look(found, [run_key(each.key, each.attempt) for each in running])
        if step is not Step.CHOOSE:
            return step, None
        leaving = {each.key: each.grace_ms > GRACE_MAX_MS for each in running if each.grace_ms is not None}
        if not all(leaving.values()):
            return Step.NOTHING, None
        least = self.threshold.of(found.total)
        if (victim := pressure.hurry([use for use in uses if use.key in leaving], found, least)) is None:
            victim = pressure.choose([use for use in uses if use.key not in leaving], found, least)
        return step, victim

    def enter(self, turn: Turn, jobs: Jobs, step: Step, victim: Victim | None, node: str) -> str:
        """Enter what was decided into the books; the run that is told to stop, or nothing."""
        if step is Step.BEGIN:
            found = turn.scheduler.cluster.partitions[DEFAULT_PARTITION].nodes.nodes.get(node)
            closes = found is not None and found.schedulable
            turn.note(MemoryShort(short=True, closed_node=node if closes else "", sentence="memory is short"))
            if closes:
                turn.event(DrainNode(node))
        elif step is Step.END:
            closed = jobs.memory_short.closed_node if jobs.memory_short is not None else ""
            turn.note(MemoryShort(short=False, closed_node=closed, sentence="there is enough memory again"))
            if closed:
                turn.event(UndrainNode(closed))
        elif victim is not None:
            job = jobs.get(victim.use.key)
            leaves_late = job is not None and job.state is State.STOPPING and _grace_of(job) > GRACE_MAX_MS
            if job is not None and (leaves_late or job.state in NOT_TOLD_TO_STOP):
                grace_ms = min(job.spec.grace_ms, GRACE_MAX_MS)
                turn.note(JobPressed(key=job.key, grace_ms=grace_ms, sentence=victim.sentence))
                return run_key(job.key, job.attempt)  # Tried again at once, it is not the one that leaves.
        return ""

    def entered(self, told: str) -> None:
        """It is durable; `told` is the run that was told to stop, if one was."""
        if told:
            self._watch.told_to_stop(told)

    def not_entered(self, step: Step) -> None:
        """It could not be recorded: what was decided is decided anew."""
        self._watch.take_back(step)


def _grace_of(job: Job) -> int:
    """The grace with which it is told to stop."""
    return job.spec.grace_ms if job.stop_grace_ms is None else job.stop_grace_ms


def leave_closed(turn: Turn, jobs: Jobs, node: str) -> None:
    """Somebody drains a node: it is not opened when there is enough memory again."""
    short = jobs.memory_short
    if short is not None and short.closed_node == node:
        turn.note(replace(short, closed_node=""))
