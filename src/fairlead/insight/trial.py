"""Trials: what would follow from some events, seen by letting the scheduler itself decide on a copy.

Decides when a trial is over (`settle`) and by which means a copy is had: inside the process, or by a process of its
own (`fairlead.apart`). Never changes the scheduler that it is asked of. Invariant: what a trial says is what the same
events would bring about, if nothing else happened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from fairlead.apart import CAN_FORK, all_answers, answered_apart, ask_apart
from fairlead.core.model.decisions import Allocated, Decision, Evict
from fairlead.core.model.events import Cause, Event, Release
from fairlead.scheduler import Scheduler

T = TypeVar("T")
Name = tuple[str, str, str]
"""Partition, application and key of an ask."""

ROUNDS_MAX = 1_000
"""Times that evictions are confirmed and scheduling is run again in one trial."""
MOMENTS_MAX = 400
"""Moments at which something falls due that are played in one trial, at most."""
COPIED_UP_TO = 50
"""Asks up to which a copy inside the process is faster than a process of its own."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What followed: decisions in order, as values."""

    decisions: tuple[Decision, ...]
    started: dict[Name, str] = field(default_factory=dict)
    """Of each ask that has a node at the end and had none: which."""
    evicted: tuple[tuple[Name, Evict], ...] = ()
    gone: dict[Name, str] = field(default_factory=dict)
    """Of each ask that had a node and has none at the end: which."""


def settle(scheduler: Scheduler, now_ms: int | None = None) -> list[Decision]:
    """Schedule at `now_ms` (default: the scheduler's own time) until nothing more follows.

    Whoever is told to stop, or was told before, stops at once.
    """
    return [each for decided in rounds(scheduler, now_ms) for each in decided]


def rounds(scheduler: Scheduler, now_ms: int | None = None, limit: int | None = None) -> Iterator[list[Decision]]:
    """As `settle`, a part at a time: so that one can stop when one has seen enough. `limit`: placements in a part."""
    now = scheduler.cluster.now_ms if now_ms is None else now_ms
    gone = leaving(scheduler)
    for _ in range(ROUNDS_MAX):
        decided = scheduler.schedule(now, limit)
        gone += confirmations(decided)
        yield decided
        if limit is not None and decided:
            # The portion may be used up by steps that are no placement (a swap begins): it is over with an empty one.
            limit *= 2
            continue
        if not gone:
            return
        told, gone = gone, []
        for event in told:
            followed = scheduler.handle(event, now)
            gone += confirmations(followed)
            yield followed


def confirmations(decisions: Iterable[Decision]) -> list[Release]:
    """What is said when those have stopped who were just told to."""
    return [Release(d.application, d.key, d.cause, d.partition) for d in decisions if isinstance(d, Evict)]


def leaving(scheduler: Scheduler) -> list[Release]:
    """The confirmations that are still to come from those who were told to stop, in order of arrival of their nodes."""
    return [
        Release(ask.app.id, ask.key, ask.evict_cause, name)
        for name, partition in scheduler.cluster.partitions.items()
        for node in partition.nodes.nodes.values()
        for ask in node.allocations
        if ask.evict_cause is not None
    ]


def play(scheduler: Scheduler, events: Iterable[Event]) -> Outcome:
    """Let the events happen now to this very scheduler and settle: call it on a copy only."""
    before = placed(scheduler)
    decisions: list[Decision] = []
    for event in events:
        decisions += scheduler.handle(event, scheduler.cluster.now_ms)
    decisions += settle(scheduler)
    after = placed(scheduler)
    started = {name: node for name, node in after.items() if name not in before}
    gone = {name: node for name, node in before.items() if name not in after}
    return Outcome(tuple(decisions), started, tuple(_evictions(decisions)), gone)


def placed(scheduler: Scheduler) -> dict[Name, str]:
    """Every ask that has a node."""
    return {
        (name, ask.app.id, ask.key): node.id
        for name, partition in scheduler.cluster.partitions.items()
        for node in partition.nodes.nodes.values()
        for ask in node.allocations
    }


def _evictions(decisions: Iterable[Decision]) -> Iterator[tuple[Name, Evict]]:
    for each in decisions:
        if isinstance(each, Evict):
            yield (each.partition, each.application, each.key), each


def on_a_copy(scheduler: Scheduler, question: Callable[[Scheduler], T], *, fork: bool | None = None) -> T:
    """`question(copy)`. It must return values. `fork`: whether by a process of its own (None: what is faster).

    A process with threads that is not prepared for it should say `fork=False`.
    """
    if _by_fork(scheduler, fork):
        return answered_apart(lambda: question(scheduler))
    return question(copy_of(scheduler))


def on_copies(
    scheduler: Scheduler, questions: Sequence[Callable[[Scheduler], T]], *, fork: bool | None = None
) -> list[T]:
    """As `on_a_copy`, each question on a copy of its own; by processes they are answered side by side."""
    if not _by_fork(scheduler, fork):
        return [question(copy_of(scheduler)) for question in questions]
    return all_answers([ask_apart(lambda question=question: question(scheduler)) for question in questions])  # type: ignore[misc]


def copy_of(scheduler: Scheduler) -> Scheduler:
    """One that shares nothing with it: the state is written down and read back."""
    return Scheduler.load(scheduler.dump())


def _by_fork(scheduler: Scheduler, wanted: bool | None) -> bool:
    if wanted is not None:
        return wanted
    asks = sum(len(app.asks) for part in scheduler.cluster.partitions.values() for app in part.applications.values())
    return CAN_FORK and asks > COPIED_UP_TO


@dataclass(frozen=True, slots=True)
class Start:
    """An ask would start: where, and who would be evicted (for whoever)."""

    node: str
    evicted: tuple[Name, ...] = ()
    violates: tuple[str, ...] = ()
    """Disruption budgets that those evictions go beyond."""
    at_ms: int = 0
    """When; later than now only where the clock was to go on."""


def start_of(
    scheduler: Scheduler,
    events: Sequence[Event],
    name: Name,
    until_ms: int | None = None,
    *,
    one_by_one: bool = False,
) -> Start | None:
    """Whether the ask has a node after these events, and at which price; None: it has none. Call it on a copy only.

    `until_ms`: the clock goes on until then, and what falls due by itself happens. `one_by_one`: what is ended ends one
    after another, and each time whoever has its turn may take the room.
    """
    evicted: list[Evict] = []
    for event in events:
        scheduler.handle(event, scheduler.cluster.now_ms)
        if one_by_one and isinstance(event, Release):
            start = _started(scheduler, scheduler.cluster.now_ms, name, evicted)
            if start is not None:
                return start
    starts = (_started(scheduler, at_ms, name, evicted) for at_ms in moments(scheduler, until_ms))
    return next((start for start in starts if start is not None), None)


def _started(scheduler: Scheduler, at_ms: int, name: Name, evicted: list[Evict]) -> Start | None:
    """How the ask starts at this moment, if it does; `evicted`: who was told to stop so far."""
    for decided in rounds(scheduler, at_ms, limit=1):
        for each in decided:
            if isinstance(each, Evict):
                # That a placeholder makes room for its own work is no harm.
                if each.cause is not Cause.PLACEHOLDER_REPLACED:
                    evicted.append(each)
            elif isinstance(each, Allocated) and (each.partition, each.application, each.key) == name:
                names = tuple(name for name, _ in _evictions(evicted))
                broken = dict.fromkeys(budget for evict in evicted for budget in evict.violates)
                return Start(each.node, names, tuple(broken), at_ms)
    return None


def moments(scheduler: Scheduler, until_ms: int | None = None) -> Iterator[int]:
    """Now, and whenever something falls due by itself up to `until_ms`, that moment included."""
    at_ms = scheduler.cluster.now_ms
    yield at_ms
    for _ in range(MOMENTS_MAX if until_ms is not None else 0):
        if until_ms is None or at_ms >= until_ms:
            return
        due_ms = scheduler.next_wakeup_ms()
        at_ms = until_ms if due_ms is None else min(max(due_ms, at_ms + 1), until_ms)
        yield at_ms
