"""Attempts and gangs: what the engine remembers of a task that waits or runs, and of tasks that start together.

Decides which placeholders stand for the tasks of a gang until all of them have room, and when all of them stand. Never
acts, and never places anything. Invariant: an attempt is one stay of a task in the scheduler under one key; what comes
back is a new one. A gang has one placeholder for each task, of the task's size; tasks of one size are one task group.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TextIO

from fairlead.core.acts.reserve_node import RESERVATION_MS
from fairlead.core.model.events import Cause
from fairlead.core.model.quantities import format_amounts
from fairlead.core.model.reasons import GangTooLarge
from fairlead.core.model.resources import NOTHING, Resources
from fairlead.core.model.specs import ApplicationSpec, AskSpec, NodeSpec
from fairlead.sim.jobs import PATIENCE_MS, Job, Task

if TYPE_CHECKING:
    from fairlead.core.model.reason import Reason
    from fairlead.scheduler import Scheduler
    from fairlead.virtual_time import Due, Recorder


ENDED = frozenset({"Completed", "Failing", "Failed", "Expired", "Removed", "Rejected"})
"""States in which an application takes no further asks."""
FAILED = frozenset({"Failing", "Failed"})
STARTS_MAX = 1_000
"""After so many starts that were all cut short a task is not submitted again: it would never get through."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a simulation runs, beside what is simulated."""

    resubmit: bool = True
    """Work without retries that was stopped or lost is submitted again by its owner."""
    digest: bool = True
    """Compute the digest of all decisions."""
    lines: TextIO | None = None
    """Where to write every decision, a line each."""
    recorder: Recorder | None = None
    """Takes down the whole course."""


REASONS_MAX = 100


class Reasons(dict[str, int]):
    """How often each was given; beyond `REASONS_MAX` different ones all others are counted together."""

    def add(self, sentence: str, *names: str) -> None:
        """Once more; names are left out, as words: `a` is a letter of many others, too."""
        for name in names:
            sentence = re.sub(rf"(?<![\w.-]){re.escape(name)}(?![\w-]|\.\w)", "...", sentence)
        known = sentence if sentence in self or len(self) < REASONS_MAX else "other reasons"
        self[known] = self.get(known, 0) + 1


class Attempt:
    """A task that waits or runs."""

    __slots__ = ("ask", "due", "node", "row", "run", "start_ms", "stopping", "task", "tries")

    def __init__(self, task: Task, row: int) -> None:
        self.task = task
        self.ask: AskSpec = task.ask
        self.row = row
        self.tries = 1
        self.run = -1
        self.node = ""
        self.start_ms = 0
        self.stopping: Cause | None = None
        """It was told to stop and does so when its grace is over."""
        self.due: list[Due] = []
        """What is to come of this run (its end, and that of its grace), unless it ends before."""

    @property
    def id(self) -> tuple[str, str]:
        """Application and key of its ask."""
        return self.ask.application, self.ask.key

    @property
    def cut_off(self) -> bool:
        """Its declared time limit is over before it would end by itself."""
        limit_ms = self.ask.time_limit_ms
        return limit_ms is not None and limit_ms < self.task.run_ms

    @property
    def run_ms(self) -> int:
        """How long it runs when nothing stops it but its time limit."""
        limit_ms, run_ms = self.ask.time_limit_ms, self.task.run_ms
        return run_ms if limit_ms is None or run_ms < limit_ms else limit_ms

    @property
    def stop_ms(self) -> int:
        """How long it takes to stop when it is told to."""
        return (self.ask.grace_ms or 0) if self.task.stop_ms is None else self.task.stop_ms


def sized(job: Job) -> ApplicationSpec:
    """The application of a job; that of a gang says how much the whole gang is."""
    if not job.gang:
        return job.application
    total = NOTHING
    for task in job.tasks:
        total += task.ask.resources
    return replace(job.application, placeholder_ask=total)


class Room:
    """All nodes when they are empty, and whether they could hold a gang."""

    def __init__(self, nodes: Iterable[NodeSpec]) -> None:
        self._capacities = Counter(node.capacity for node in nodes)
        self._total: Counter[str] = Counter()
        for capacity, count in self._capacities.items():
            self._total.update({name: amount * count for name, amount in capacity})

    def too_small_for(self, job: Job) -> str:
        """Why a gang that waits as long as it takes would do so in vain; nothing of any other job."""
        if not job.gang or job.application.placeholder_timeout_ms < PATIENCE_MS:
            return ""
        whole = sized(job).placeholder_ask
        if beyond := {name: amount for name, amount in whole if amount > self._total[name]}:
            return GangTooLarge(beyond, {name: self._total[name] for name in beyond}).sentence()
        for size, count in Counter(task.ask.resources for task in job.tasks).items():
            if (held := self._holds(size)) < count:
                return f"{count:,} tasks of {format_amounts(size.as_dict(), up=True)} together; all nodes hold {held:,}"
        return ""

    def _holds(self, size: Resources) -> int:
        """How many of this size."""
        wanted = [(name, amount) for name, amount in size if amount]
        each = ((min(of[name] // amount for name, amount in wanted), count) for of, count in self._capacities.items())
        return sum(fit * count for fit, count in each)


class Gang:
    """A gang whose placeholders are on their way."""

    __slots__ = ("_awaited", "_made", "application", "asks", "placeholders")

    def __init__(self, job: Job, asks: tuple[AskSpec, ...]) -> None:
        groups: dict[object, str] = {}
        for ask in asks:
            groups.setdefault(ask.resources, f"size-{len(groups) + 1}")
        self.application = job.application.id
        self.asks = tuple(replace(ask, task_group=groups[ask.resources]) for ask in asks)
        """The real asks, each with its task group."""
        self.placeholders = tuple(replace(ask, key=f"{ask.key}~", placeholder=True, retry=None) for ask in self.asks)
        self._awaited = {p.key: p for p in self.placeholders}
        self._made = dict(self._awaited)

    def stands(self, key: str) -> bool:
        """A placeholder has a node; whether all have one now."""
        self._awaited.pop(key, None)
        return not self._awaited

    def told_to_go(self, key: str) -> None:
        """A placeholder is stopped: the gang is not whole, even if the rest of it stands."""
        if key in self._made:
            self._awaited[key] = self._made[key]

    def another(self, key: str) -> AskSpec:
        """The placeholder that comes in the place of this one, which was stopped or lost."""
        self._awaited.pop(key, None)
        old = self._made.pop(key)
        fresh = replace(old, key=f"{key}~")
        self._made[fresh.key] = self._awaited[fresh.key] = fresh
        return fresh

    def comes_back(self, key: str, again: str) -> None:
        """This placeholder was given back, and waits under another key."""
        self._awaited.pop(key, None)
        self._made[again] = self._awaited[again] = replace(self._made.pop(key), key=again)

    def why(self, scheduler: Scheduler) -> Reason | None:
        """Why it is not whole: the reason of the first placeholder that waits."""
        found = (scheduler.why(self.application, key) for key in self._awaited)
        return next((reason for reason in found if reason is not None), None)


RETURNS = 3
"""So often a node is awaited: more than once, since gangs want several at a time."""


class Standstill:
    """The quiet time of a simulation in which nothing runs and nothing comes."""

    def __init__(self) -> None:
        self._decisions = -1
        self._quiet_ms = self._horizon_ms = 0
        self._returns: Counter[str] = Counter()
        """How often each node came back since something started, ended or came."""

    def is_over(self, scheduler: Scheduler, now_ms: int, decisions: int) -> bool:
        """Whether nothing can follow; asked after each moment at which nothing runs or comes."""
        if decisions != self._decisions:
            self._decisions, self._quiet_ms = decisions, now_ms
            # What waits as long as it takes would do so in vain. Of windows only what is next has a timer, and of nodes
            # that are set aside, each of which goes back at the end of an hour of its own, only the first of each job.
            partitions = list(scheduler.cluster.partitions.values())
            ends = [ends_ms for each in partitions for _, ends_ms in each.admission.windows.times(now_ms)]
            ends += [now_ms + RESERVATION_MS] if any(each.reservations for each in partitions) else []
            self._horizon_ms = max(scheduler.last_timer_ms(now_ms + PATIENCE_MS // 2), *ends, 0)
        return now_ms >= self._horizon_ms

    def may_be_broken(self, scheduler: Scheduler) -> bool:
        """Whether what runs may be told to stop though nothing waits: a queue gives back what a lower maximum leaves
        no room for.
        """
        return any(partition.spec.preemption.quota_enabled for partition in scheduler.cluster.partitions.values())

    def ends(self) -> None:
        """Something starts, ends or comes."""
        self._returns.clear()

    def comes_back(self, node: str) -> None:
        """A node that was lost is there again."""
        self._returns[node] += 1

    def may_bring_room(self, away: Iterable[str]) -> bool:
        """Whether one of these nodes may bring room when it comes back: it has not done so in vain already.

        Of many nodes there is always one away; so it would go on for ever.
        """
        return any(self._returns[name] < RETURNS for name in away)

    def began_ms(self, now_ms: int, decisions: int) -> int:
        """When a simulation that ends now came to its end: when it was quiet, what was due in vain does not count."""
        return self._quiet_ms if decisions == self._decisions else now_ms
