"""What if: what would be otherwise if something happened now.

Decides what a difference is made of: two copies of the state, one left alone and one on which the events happen, both
scheduled until nothing more follows, compared. Never changes the scheduler that it is asked of. Invariant: what it says
would start or stop is what the same events bring about, if nothing else happens.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from fairlead.core.model.decisions import (
    ApplicationRejected,
    AskRejected,
    ConfigurationRejected,
    Evict,
    MoveRejected,
    NodeRejected,
)
from fairlead.core.model.events import Event
from fairlead.core.model.reasons import QuotaExceeded, Reason
from fairlead.core.model.resources import pruned
from fairlead.insight.admitting import admitting
from fairlead.insight.explain import Sees, everything, whom
from fairlead.insight.forecast import KindOf, Shifts, kind_of, shifts
from fairlead.insight.trial import Name, Outcome, on_copies, play
from fairlead.insight.verdict import shown
from fairlead.wire.fields import with_cpu
from fairlead.wire.questions import Fate, Fates, Otherwise, Share, Wait

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairlead.insight.forecast import Share as ForecastShare
    from fairlead.insight.runtimes import Runtimes
    from fairlead.insight.suppositions import Supposition
    from fairlead.scheduler import Scheduler

REFUSALS = (ApplicationRejected, AskRejected, ConfigurationRejected, MoveRejected, NodeRejected)
NAMED = 200
"""Asks named in each part, at most."""


@dataclass(frozen=True, slots=True)
class Picture:
    """What one of the two copies came to."""

    outcome: Outcome
    who: Mapping[tuple[str, str], tuple[str, str]]
    """User and queue of everybody who is named, by partition and application."""
    usage: Mapping[tuple[str, str], Share]
    waits: Mapping[Name, Reason]
    removed: Mapping[Name, str] = field(default_factory=dict)
    """What waited in a partition that is no longer there: by no node."""


def suppose(
    scheduler: Scheduler,
    supposed: Supposition,
    *,
    sees: Sees = everything,
    runtimes: Runtimes | None = None,
    kind: KindOf = kind_of,
    fork: bool | None = None,
    spending: Callable[[], ForecastShare] | None = None,
) -> Otherwise:
    """What would be otherwise if this happened now; with `runtimes` also whose expected start it would move.

    What the asker may not see is counted, not named. `spending`: the time that each of the two forecasts may take
    (`forecast.shifts`).
    """
    events = supposed.events
    without, changed = on_copies(
        scheduler,
        (lambda copy: picture(copy, (), ()), lambda copy: picture(copy, events, supposed.subjects)),
        fork=fork,
    )
    # That work goes with its partition is what the change does, and refuses nothing of it.
    away = changed.removed.keys() | changed.outcome.gone.keys()
    refused = [reason for name, reason in _refused(changed.outcome) if name not in away]
    over_quota = any(isinstance(reason, QuotaExceeded) for reason in refused)
    admitted = admitting(scheduler, events, fork=fork) if over_quota else None
    moved = Shifts()
    if runtimes is not None:
        moved = shifts(scheduler, events, runtimes, kind=kind, fork=fork, spending=spending)
    fates: dict[str, Any] = {part: _fates(found, sees) for part, found in compared(without, changed).items()}
    shares = _shares(without.usage, changed.usage)
    return Otherwise(
        supposed=supposed.sentence,
        empty=not (refused or changed.waits or shares or any(part.count for part in fates.values())),
        refused=[said for reason in refused if (said := shown(reason)) is not None],
        admitted=admitted,
        **fates,
        waits=[
            Wait(application=app, key=key, reason=said)
            for (_, app, key), reason in changed.waits.items()
            if sees(app) and (said := shown(reason)) is not None
        ],
        shares=shares,
        expected=[shift for shift in moved.found if sees(shift.application)][:NAMED],
        unseen=moved.unseen,
        known=runtimes is None or runtimes.ends > 0,
    )


def picture(copy: Scheduler, events: Sequence[Event], subjects: Sequence[Name]) -> Picture:
    """Let the events happen to this very scheduler and say what came of it: call it on a copy only."""
    owners, there = _owners(copy), set(copy.cluster.partitions)
    outcome = play(copy, events)
    owners |= _owners(copy)
    away = there - set(copy.cluster.partitions)
    refused = (name for name, _ in _refused(outcome) if name is not None and name not in outcome.gone)
    removed = {name: "" for name in refused if name[0] in away}
    named = dict.fromkeys([*outcome.started, *outcome.gone, *removed, *(name for name, _ in outcome.evicted)])
    # Only what changed is told: two whole states would be long answers.
    who = {name[:2]: owners[name[:2]] for name in named if name[:2] in owners}
    reasons = ((name, copy.why(name[1], name[2], name[0])) for name in subjects)
    waits = {name: reason for name, reason in reasons if reason is not None}
    return Picture(outcome, who, _usage(copy), waits, removed)


def _refused(outcome: Outcome) -> Iterator[tuple[Name | None, Reason]]:
    """Every refusal with its reason; of an ask with its name."""
    for each in outcome.decisions:
        if isinstance(each, REFUSALS):
            name = (each.partition, each.application, each.key) if isinstance(each, AskRejected) else None
            yield name, each.reason


def _owners(scheduler: Scheduler) -> dict[tuple[str, str], tuple[str, str]]:
    parts = scheduler.cluster.partitions.items()
    return {(name, a.id): (a.user, a.queue.path) for name, part in parts for a in part.applications.values()}


def _usage(scheduler: Scheduler) -> dict[tuple[str, str], Share]:
    return {
        (name, queue.path): Share(
            name,
            queue.path,
            {},
            with_cpu(pruned(queue.allocated)),
            with_cpu(queue.guaranteed),
            with_cpu(queue.max),
        )
        for name, part in scheduler.cluster.partitions.items()
        for queue in part.root.walk()
    }


def compared(without: Picture, changed: Picture) -> dict[str, list[Fate]]:
    """Whose lot is another in two pictures of the same state, by the names of `Otherwise`."""
    old, new, gone = without.outcome.started, changed.outcome.started, changed.outcome.gone
    stopped, told = dict(without.outcome.evicted), dict(changed.outcome.evicted)

    def fates(names: Sequence[Name], of: Picture, nodes: Mapping[Name, str]) -> list[Fate]:
        return [_fate(name, of, nodes.get(name, "")) for name in names]

    return {
        "starts": fates([n for n in new if n not in old], changed, new),
        "starts_not": fates([n for n in old if n not in new], without, old),
        "elsewhere": fates([n for n in new if n in old and old[n] != new[n]], changed, new),
        "evicted": [_stopped(name, evict, changed) for name, evict in told.items() if name not in stopped],
        "spared": [_stopped(name, evict, without) for name, evict in stopped.items() if name not in told],
        "ends": [
            *fates([n for n in gone if n not in without.outcome.gone and n not in told], changed, gone),
            *fates(list(changed.removed), changed, changed.removed),
        ],
    }


def _fate(name: Name, of: Picture, node: str) -> Fate:
    return Fate(*name, *of.who.get(name[:2], ("", "")), node)


def _stopped(name: Name, evict: Evict, of: Picture) -> Fate:
    why = {"on_behalf_of": evict.on_behalf_of, "rule": evict.rule, "violates": list(evict.violates)}
    return replace(_fate(name, of, evict.node), **why)


def _fates(found: Sequence[Fate], sees: Sees) -> Fates:
    seen = [fate for fate in found if sees(fate.application)]
    jobs = [replace(fate, on_behalf_of=whom(fate.on_behalf_of, fate.rule, sees)) for fate in seen[:NAMED]]
    return Fates(count=len(found), hidden=len(found) - len(seen), jobs=jobs)


def _shares(old: Mapping[tuple[str, str], Share], new: Mapping[tuple[str, str], Share]) -> list[Share]:
    changed = []
    for key in dict.fromkeys([*new, *old]):
        before, after = old.get(key), new.get(key)
        used = (before.after if before else {}, after.after if after else {})
        if used[0] != used[1]:
            one = after or before
            assert one is not None
            changed.append(replace(one, before=used[0], after=used[1]))
    return changed
