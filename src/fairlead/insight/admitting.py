"""Admitting: how wide the quotas by priority class would have to be so that refused work were taken in.

Decides by trial alone: quotas are widened by just what is missing, on copies, until the events are refused by no quota
any more. Never changes the scheduler that it is asked of. Invariant: with one unit less of any part it is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from fairlead.core.model.decisions import ApplicationRejected, AskRejected, MoveRejected
from fairlead.core.model.events import Event
from fairlead.core.model.reasons import QuotaExceeded, Reason
from fairlead.insight.changes import events_of
from fairlead.insight.parts import Part, What, clauses
from fairlead.insight.trial import on_a_copy
from fairlead.wire.questions import Admitted

if TYPE_CHECKING:
    from fairlead.scheduler import Scheduler

QUOTA_TRIALS = 50
REFUSALS = (ApplicationRejected, AskRejected, MoveRejected)


def admitting(scheduler: Scheduler, events: Sequence[Event], *, fork: bool | None = None) -> Admitted | None:
    """The least widening of quotas with which these events are taken in; None: they are, or no quota would help."""
    parts: tuple[Part, ...] = ()
    for _ in range(QUOTA_TRIALS):
        refused = _refusals(scheduler, events, parts, fork)
        if not refused:
            break
        parts = _widened(parts, refused)
        if not parts:
            return None
    else:
        return None
    each_less = [(*parts[:at], part.less(), *parts[at + 1 :]) for at, part in enumerate(parts)]
    if not parts or any(not _refusals(scheduler, events, less, fork) for less in each_less):
        return None
    return Admitted(sentence="taken in if " + " and ".join(clauses(parts)), parts=[part.shown() for part in parts])


def _refusals(
    scheduler: Scheduler, events: Sequence[Event], parts: tuple[Part, ...], fork: bool | None
) -> list[Reason]:
    """Why parts of the events are refused with these quotas."""
    # Quotas hold in all partitions, whichever is named.
    wider = events_of(scheduler, (next(iter(scheduler.cluster.partitions)), "", ""), parts) if parts else []

    def tried(copy: Scheduler) -> list[Reason]:
        now_ms = copy.cluster.now_ms
        for event in wider:
            copy.handle(event, now_ms)
        decided = [each for event in events for each in copy.handle(event, now_ms)]
        return [each.reason for each in decided if isinstance(each, REFUSALS)]

    return on_a_copy(scheduler, tried, fork=fork)


def _widened(parts: tuple[Part, ...], refused: Sequence[Reason]) -> tuple[Part, ...]:
    """The parts with what the first refusal lacks; nothing when something else than a quota is in the way."""
    if not all(isinstance(reason, QuotaExceeded) for reason in refused):
        return ()
    first = refused[0]
    assert isinstance(first, QuotaExceeded)
    found = {(part.text, part.resource): part for part in parts}
    for name, amount in first.needed.items():
        known = found.get((first.quota, name))
        value = first.used.get(name, 0) + amount
        if known is None:
            found[first.quota, name] = Part(What.QUOTA, first.queue, first.max[name], value, name, text=first.quota)
        else:
            found[first.quota, name] = replace(known, value=value)
    return tuple(found.values())
