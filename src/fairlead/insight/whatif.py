"""What if: what would be otherwise if something happened now.

Decides what a difference is made of: two copies of the state, one left alone and one on which the events happen, both
scheduled until nothing more follows, compared. Never changes the scheduler that it is asked of. Invariant: what it says
would start or stop is what the same events bring about, if nothing else happens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fairlead.core.model.decisions import (
    ApplicationRejected,
    AskRejected,
    ConfigurationRejected,
    Decision,
    Evict,
    MoveRejected,
    NodeRejected,
)
from fairlead.core.model.events import Event
from fairlead.core.model.reasons import QuotaExceeded, Reason
from fairlead.insight.admitting import Admitted, admitting
from fairlead.insight.forecast import KindOf, Shift, kind_of, shifts
from fairlead.insight.trial import Name, Outcome, on_copies, play

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairlead.insight.forecast import Share as ForecastShare
    from fairlead.insight.runtimes import Runtimes
    from fairlead.insight.suppositions import Supposition
    from fairlead.scheduler import Scheduler

REFUSALS = (ApplicationRejected, AskRejected, ConfigurationRejected, MoveRejected, NodeRejected)


@dataclass(frozen=True, slots=True)
class Fate:
    """One ask whose fate changes."""

    name: Name
    user: str
    queue: str
    node: str = ""
    """Where it starts, ran, or would have started."""
    for_whom: str = ""
    """Whom it has to make room for, as `application/key` or a key."""
    rule: str = ""


@dataclass(frozen=True, slots=True)
class Share:
    """What a queue uses, without and with the change."""

    partition: str
    queue: str
    before: Mapping[str, int]
    after: Mapping[str, int]
    guaranteed: Mapping[str, int] | None
    max: Mapping[str, int] | None


@dataclass(frozen=True, slots=True)
class Waits:
    """An ask of the change itself that would not start, and why."""

    name: Name
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Everything that would be otherwise."""

    refused: tuple[Reason, ...] = ()
    """Why the change, or a part of it, would not be taken in."""
    admitted: Admitted | None = None
    """What quotas would have to be so that it were taken in; None: it is, or no quota would help."""
    starts: tuple[Fate, ...] = ()
    """Who would start with the change and not without it."""
    starts_not: tuple[Fate, ...] = ()
    """Who would start without the change and not with it."""
    elsewhere: tuple[Fate, ...] = ()
    """Who would start either way, with the change on this other node."""
    evicted: tuple[Fate, ...] = ()
    """Who would be told to stop with the change and not without it."""
    spared: tuple[Fate, ...] = ()
    """Who would be told to stop without the change and not with it."""
    ends: tuple[Fate, ...] = ()
    """Who runs and would be gone, without having been told to stop by the scheduler."""
    waits: tuple[Waits, ...] = ()
    """What the change is about, where it would wait."""
    shares: tuple[Share, ...] = ()
    """Queues that would use something else than without the change."""
    expected: tuple[Shift, ...] = ()
    """Starts that would come earlier or later, where a forecast was asked for."""
    unseen: int = 0
    """Of so many that wait the time for the forecast was over before it was known whether theirs would."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing would be otherwise now."""
        return replace(self, expected=(), unseen=0) == Difference()


@dataclass(frozen=True, slots=True)
class Picture:
    """What one of the two copies came to."""

    outcome: Outcome
    who: Mapping[Name, tuple[str, str]]
    """User and queue of everybody who is named."""
    usage: Mapping[tuple[str, str], Share]
    waits: tuple[Waits, ...] = ()


def what_if(
    scheduler: Scheduler, events: Sequence[Event], *, subjects: Sequence[Name] = (), fork: bool | None = None
) -> Difference:
    """What would be otherwise if these events happened now.

    `subjects` are the asks that the change is about: of those that would wait the reason is given.
    """
    without, changed = on_copies(
        scheduler, (lambda copy: picture(copy, (), ()), lambda copy: picture(copy, events, subjects)), fork=fork
    )
    return compared(without, changed)


def picture(copy: Scheduler, events: Sequence[Event], subjects: Sequence[Name]) -> Picture:
    """Let the events happen to this very scheduler and say what came of it: call it on a copy only."""
    owners = _owners(copy)
    outcome = play(copy, events)
    owners |= _owners(copy)
    named = dict.fromkeys([*outcome.started, *outcome.gone, *(name for name, _ in outcome.evicted)])
    # Only what changed is told: two whole states would be long answers.
    who = {name: owners[name[:2]] for name in named if name[:2] in owners}
    waits = tuple(
        Waits(name, reason) for name in subjects if (reason := copy.why(name[1], name[2], name[0])) is not None
    )
    return Picture(outcome, who, _usage(copy), waits)


def _owners(scheduler: Scheduler) -> dict[tuple[str, str], tuple[str, str]]:
    parts = scheduler.cluster.partitions.items()
    return {(name, a.id): (a.user, a.queue.path) for name, part in parts for a in part.applications.values()}


def _usage(scheduler: Scheduler) -> dict[tuple[str, str], Share]:
    return {
        (name, queue.path): Share(
            name,
            queue.path,
            {},
            {r: amount for r, amount in sorted(queue.allocated.items()) if amount},
            dict(queue.guaranteed) if queue.guaranteed is not None else None,
            dict(queue.max) if queue.max is not None else None,
        )
        for name, part in scheduler.cluster.partitions.items()
        for queue in part.root.walk()
    }


def compared(without: Picture, changed: Picture) -> Difference:
    """The difference between two pictures of the same state."""
    old, new, gone = without.outcome.started, changed.outcome.started, changed.outcome.gone
    stopped, told = dict(without.outcome.evicted), dict(changed.outcome.evicted)

    def fates(names: Sequence[Name], of: Picture, nodes: Mapping[Name, str]) -> tuple[Fate, ...]:
        return tuple(_fate(name, of, nodes.get(name, "")) for name in names)

    return Difference(
        refused=tuple(_refusals(changed.outcome.decisions)),
        starts=fates([n for n in new if n not in old], changed, new),
        starts_not=fates([n for n in old if n not in new], without, old),
        elsewhere=fates([n for n in new if n in old and old[n] != new[n]], changed, new),
        evicted=tuple(_stopped(name, evict, changed) for name, evict in told.items() if name not in stopped),
        spared=tuple(_stopped(name, evict, without) for name, evict in stopped.items() if name not in told),
        ends=fates([n for n in gone if n not in without.outcome.gone and n not in told], changed, gone),
        waits=changed.waits,
        shares=tuple(_shares(without.usage, changed.usage)),
    )


def _fate(name: Name, of: Picture, node: str) -> Fate:
    user, queue = of.who.get(name, ("", ""))
    return Fate(name, user, queue, node)


def _stopped(name: Name, evict: Evict, of: Picture) -> Fate:
    return replace(_fate(name, of, evict.node), for_whom=evict.on_behalf_of, rule=evict.rule)


def _refusals(decisions: Sequence[Decision]) -> list[Reason]:
    return [each.reason for each in decisions if isinstance(each, REFUSALS)]


def _shares(old: Mapping[tuple[str, str], Share], new: Mapping[tuple[str, str], Share]) -> list[Share]:
    changed = []
    for key in dict.fromkeys([*new, *old]):
        before, after = old.get(key), new.get(key)
        used = (before.after if before else {}, after.after if after else {})
        if used[0] != used[1]:
            shown = after or before
            assert shown is not None
            changed.append(replace(shown, before=used[0], after=used[1]))
    return changed


def suppose(
    scheduler: Scheduler,
    supposition: Supposition,
    *,
    runtimes: Runtimes | None = None,
    kind: KindOf = kind_of,
    fork: bool | None = None,
    spending: Callable[[], ForecastShare] | None = None,
) -> Difference:
    """`what_if` of a supposition; with `runtimes` also whose expected start it would move.

    `spending`: the time that each of the two forecasts may take (`forecast.shifts`).
    """
    found = what_if(scheduler, supposition.events, subjects=supposition.subjects, fork=fork)
    if any(isinstance(reason, QuotaExceeded) for reason in found.refused):
        found = replace(found, admitted=admitting(scheduler, supposition.events, fork=fork))
    if runtimes is None:
        return found
    moved = shifts(scheduler, supposition.events, runtimes, kind=kind, fork=fork, spending=spending)
    return replace(found, expected=moved.found, unseen=moved.unseen)
