"""Explain: why an ask is where it is, with every number that matters, and what would change it.

Decides what belongs to an answer and in which words. The verdict itself is the scheduler's own (`policy.why.waiting`);
the levels, limits and nodes around it are read from the books. Never changes anything; smallest changes are found by
`unblock`, on copies. Invariant: every number is the scheduler's own.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from fairlead.core.books.application_limits import begun
from fairlead.core.books.idle_work import payer
from fairlead.core.model.lifecycle import State
from fairlead.core.model.quantities import resource_called
from fairlead.core.model.reasons import WaitingForVictims
from fairlead.core.model.specs import DEFAULT_PARTITION
from fairlead.insight.line import before, waiting
from fairlead.insight.parts import What
from fairlead.insight.places import Place, Survey, survey
from fairlead.insight.search import Effort
from fairlead.insight.stops import nothing_stops
from fairlead.insight.unblock import Ways, ways
from fairlead.insight.verdict import APPLICATIONS, Room, how_stopped, in_the_way, is_named, shown, told
from fairlead.policy.eligibility.start_estimates import start_to_tell
from fairlead.policy.events.held import why_no_room
from fairlead.policy.order.effective_priority import weaker_than
from fairlead.wire.fields import measured, with_cpu
from fairlead.wire.verdicts import Holder, Level, Never, NodeRoom, PassedOver, Stopped, Verdict, Way

if TYPE_CHECKING:
    from fairlead.core.books.applications import Application
    from fairlead.core.books.asks import Ask
    from fairlead.core.books.held_asks import HeldAsk
    from fairlead.core.books.partition import Partition
    from fairlead.core.books.queues import Queue
    from fairlead.core.model.resources import Items
    from fairlead.insight.advice import Asker
    from fairlead.scheduler import Scheduler

HOLDERS = 5
AHEAD = 3
CLOSEST = 3
PASSED_OVER = 3
NAMED_STOPS = 2
ABOUT_JOB = (What.CANCEL, What.TURN)
"""Changes that are made to other work: they name it."""

OTHERS = "somebody else's work"
PLACEHOLDER = "placeholder"
"""The rule by which a gang's work takes the places that are kept for it."""

Sees = Callable[[str], bool]
"""Whether the asker may know of an application."""


def everything(application: str) -> bool:
    """For whom everything may be named."""
    del application
    return True


def whom(name: str, rule: str, sees: Sees) -> str:
    """Whom something makes room for (`application/key`, or the key where both are equal), as the asker may know it."""
    application, _, key = name.rpartition("/")
    # A placeholder is replaced by work of its own application, which the key alone names.
    return name if not name or rule == PLACEHOLDER or sees(application or key) else OTHERS


def explain(
    scheduler: Scheduler,
    application: str,
    key: str,
    partition: str = DEFAULT_PARTITION,
    *,
    changes: Effort | None = None,
    asker: Asker | None = None,
    sees: Sees = everything,
    fork: bool | None = None,
) -> Verdict:
    """Why this ask waits, or why it runs before its neighbours.

    `changes`: also find the smallest changes that start it, with so much effort, and say which of them `asker` (None:
    its owner) should make. What the asker may not see is counted, not named. Raises KeyError when there is no such ask.
    """
    part = scheduler.cluster.partitions[partition]
    if application not in part.applications and application in part.rejected:
        return _refused(part, part.rejected[application], key)
    app = part.applications[application]
    ask = app.asks.get(key)
    if ask is not None and not ask.pending:
        return told(_running(scheduler, part, ask, sees))
    if ask is not None:
        verdict = _waiting(scheduler, part, ask, sees)
    else:
        held = part.held_asks.get(application, key)
        if held is None:
            raise KeyError(key)
        verdict = _held(part, app, held)
    if changes is None:
        return told(verdict)
    found = ways(scheduler, (partition, application, key), changes, asker=asker, fork=fork)
    found = _without_others(found, sees)
    verdict = replace(
        verdict,
        changes=list(found.changes),
        starts_by_itself=found.by_itself is not None,
        changes_complete=found.is_complete,
        never=Never(shown(found.never), found.never.sentence()) if found.never is not None else None,
    )
    return told(verdict, found, part.now_ms, _room_by_limits(part, ask) if ask is not None else None)


def _waiting(scheduler: Scheduler, part: Partition, ask: Ask, sees: Sees) -> Verdict:
    reason = scheduler.why(ask.app.id, ask.key, part.name)
    assert reason is not None
    levels, ahead = list(_levels(ask)), before(ask)
    around = survey(part, ask, CLOSEST)
    full = sorted(in_the_way(levels), key=lambda level: not is_named(level, shown(reason)))
    held = (
        [victim for victim in ask.victims if victim.node is not None] if isinstance(reason, WaitingForVictims) else []
    )
    held = held or list(_holders(part, ask, full, around))
    seen = [each for each in held if sees(each.app.id)]
    return Verdict(
        **_about(part, ask.app, ask.key, ask.items, ask.priority),
        state="waiting",
        sentence=reason.sentence(),
        reason=shown(reason),
        position=len(ahead) + 1,
        ahead=[other.key for other in ahead if sees(other.app.id)][:AHEAD],
        levels=levels,
        nodes=around.nodes,
        closest=[_room(place) for place in around.closest],
        holders=[_holder(each) for each in seen[:HOLDERS]],
        hidden_holders=len(held) - len(seen),
        stops=nothing_stops(part, ask, reason),
        gang_lacks=_gang_lacks(ask),
    )


def _gang_lacks(ask: Ask) -> int:
    """How many others wait of a gang that is not whole: with its own room alone nothing starts."""
    if not ask.spec.placeholder or ask.app.state is not State.ACCEPTED:
        return 0
    return sum(other.pending and other.spec.placeholder for other in ask.app.asks.values() if other is not ask)


def _room_by_limits(part: Partition, ask: Ask) -> Room | None:
    expected = start_to_tell(part, ask, weaker_than(part, ask), overdue_ends=False)
    if expected is None or not expected.gone:  # It has room already, and something else is in its way.
        return None
    others = waiting(part) > 1 or part.held_asks or part.disruption.leave_by
    return Room(expected.start_ms, not others)


def _about(part: Partition, app: Application, key: str, needed: Items, priority: int) -> dict[str, Any]:
    """What every verdict on an ask of a queue says."""
    return {
        "partition": part.name,
        "application": app.id,
        "key": key,
        "queue": app.queue.path,
        "needed": with_cpu(dict(needed)),
        "priority": priority,
        "waiting_in_queue": sum(other.pending_count for other in app.queue.applications.values()),
    }


def _without_others(found: Ways, sees: Sees) -> Ways:
    """The changes without those that name work which the asker may not see; and a start without its names."""
    kept = tuple(each for change in found.changes if (each := _as_seen(change, sees)) is not None)
    start = found.by_itself
    if start is not None and not all(sees(app) for _, app, _ in start.evicted):
        seen = tuple(name for name in start.evicted if sees(name[1]))
        start = dataclasses.replace(start, evicted=(*seen[:NAMED_STOPS], (start.evicted[0][0], "", OTHERS)))
    return dataclasses.replace(found, by_itself=start, changes=kept, hidden=len(found.changes) - len(kept))


def _as_seen(change: Way, sees: Sees) -> Way | None:
    about = [part.subject.rpartition("/")[0] for part in change.parts if part.what in ABOUT_JOB]
    if all(sees(app) for app in [*about, *(each.application for each in change.evicts)]):
        return change
    if about:
        return None
    text = change.sentence.partition("; that would stop")[0]
    others = "1 other" if len(change.evicts) == 1 else f"{len(change.evicts)} others"
    # `stops` still counts them.
    return replace(change, evicts=[], sentence=f"{text}; that would stop {others}")


# -- what is not in line ------------------------------------------------------------------------------------------


def _refused(partition: Partition, app: Application, key: str) -> Verdict:
    """Its application was not taken in: the reason that it was given then."""
    sentence = f"was refused: {app.rejected.sentence()}" if app.rejected is not None else "was refused"
    verdict = Verdict(
        partition=partition.name,
        application=app.id,
        key=key,
        queue=app.spec.queue,
        state="refused",
        sentence=sentence,
        reason=shown(app.rejected),
    )
    return told(verdict)


def _held(partition: Partition, app: Application, held: HeldAsk) -> Verdict:
    """It is not in line yet."""
    reason, spec = held.reason(app, partition.now_ms), held.spec
    refusal = shown(why_no_room(partition, app, spec))
    about = _about(partition, app, spec.key, spec.resources.items, spec.priority)
    return Verdict(**about, state="waiting", sentence=reason.sentence(), reason=shown(reason), refusal=refusal)


# -- what runs ----------------------------------------------------------------------------------------------------


def _running(scheduler: Scheduler, partition: Partition, ask: Ask, sees: Sees) -> Verdict:
    node, stopped = ask.node.id if ask.node is not None else "", None
    if ask.evict_cause is not None:
        stopped = Stopped(str(ask.evict_cause), *(ask.evicted_by or ("", "")))
        stopped = replace(stopped, for_whom=whom(stopped.for_whom, stopped.rule, sees))
    sentence = f"was told to stop on {node}{how_stopped(stopped)}" if stopped is not None else f"runs on {node}"
    if not node and ask.replaces is not None:
        sentence = f"starts as soon as {ask.replaces.key} has stopped, which kept room for its gang"
    return Verdict(
        **_about(partition, ask.app, ask.key, ask.items, ask.priority),
        state="running",
        sentence=sentence,
        node=node,
        stopped=stopped,
        passed_over=list(_passed_over(scheduler, partition, ask, sees)),
    )


def _passed_over(scheduler: Scheduler, partition: Partition, ask: Ask, sees: Sees) -> Iterator[PassedOver]:
    """Asks of its queue that came before it and wait: the oldest ones, and why each still does."""
    earlier = [
        other
        for app in ask.app.queue.applications.values()
        if app.pending_count and sees(app.id)
        for other in app.asks.values()
        if other.pending and (other.created_ms, other.seq) < (ask.created_ms, ask.seq)
    ]
    earlier.sort(key=lambda other: (other.created_ms, other.seq))
    for other in earlier[:PASSED_OVER]:
        reason = scheduler.why(other.app.id, other.key, partition.name)
        yield PassedOver(other.key, other.priority, reason.sentence() if reason is not None else "")


# -- levels -------------------------------------------------------------------------------------------------------


def _levels(ask: Ask) -> Iterator[Level]:
    """Every maximum that the ask counts against, from its queue up, then the limits of its user and group."""
    app = ask.app
    paid = payer(ask).lineage
    for queue in app.queue.lineage:
        if queue in paid:
            yield from _amounts(queue.path, "", queue.max or {}, queue.allocated, ask)
        if queue.max_applications and app.state is State.ACCEPTED and not queue.counts(app):
            yield _level(queue.path, "", APPLICATIONS, 1, begun(queue, app), queue.max_applications)
    for ceiling in app.ceilings:
        who = f"{ceiling.kind} {ceiling.name}"
        yield from _amounts(ceiling.queue, who, ceiling.max or {}, ceiling.allocated, ask)
        if ceiling.max_applications and app.state is State.ACCEPTED and not ceiling.counts(app):
            yield _level(ceiling.queue, who, APPLICATIONS, 1, begun(ceiling, app), ceiling.max_applications)


def _amounts(queue: str, who: str, most: Mapping[str, int], used: Mapping[str, int], ask: Ask) -> Iterator[Level]:
    for name, amount in ask.items:
        if name in most and amount > 0:
            yield _level(queue, who, name, amount, used.get(name, 0), most[name])


def _level(queue: str, who: str, resource: str, needed: int, used: int, most: int) -> Level:
    name, (wants, has, at_most) = measured(resource, needed, used, most)
    return Level(queue, who, name, wants, has, at_most, used + needed > most)


# -- nodes --------------------------------------------------------------------------------------------------------


def _room(place: Place) -> NodeRoom:
    names = [name for name in place.node.total if name in place.missing] or list(place.node.total)
    return NodeRoom(
        place.node.id,
        # Where more is used than there is, nothing is free.
        with_cpu({name: max(place.node.free.get(name, 0), 0) for name in names}),
        with_cpu(place.missing),
        place.closed,
        _frees_ms(place),
    )


def _frees_ms(place: Place) -> int | None:
    """When the time limits of what runs there have given back what is missing."""
    missing = dict(place.missing)
    if not missing:
        return None
    ends = [(until, ask) for ask in place.node.allocations if (until := _until_ms(ask)) is not None]
    for until, ask in sorted(ends, key=lambda each: (each[0], each[1].seq)):
        back = dict(ask.items)
        missing = {name: lack - back.get(name, 0) for name, lack in missing.items() if lack > back.get(name, 0)}
        if not missing:
            return until
    return None


def _until_ms(ask: Ask) -> int | None:
    limit = ask.limit_ms
    return ask.allocated_ms + limit if limit is not None and ask.allocated_ms is not None else None


# -- holders ------------------------------------------------------------------------------------------------------


def _holders(partition: Partition, ask: Ask, full: Iterable[Level], around: Survey) -> Iterator[Ask]:
    """What has what is short: under the first of the levels that are full, else on the nodes that come closest.

    Nothing has it where the ask is more than the level allows by itself, or more than a whole node.
    """
    level = next(iter(full), None)
    if level is not None and level.needed > level.max:
        return
    if level is not None:
        queue = partition.root.find(level.queue)
        held = [each for q in (queue.walk() if queue is not None else ()) for each in _allocations(q, level, ask)]
        yield from [row[2] for row in sorted(held)]
        return
    for place in around.full:
        if any(amount > place.node.total.get(name, 0) for name, amount in ask.items):
            continue
        having = [a for a in place.node.allocations if any(dict(a.items).get(name) for name in place.missing)]
        yield from sorted(having, key=lambda a: a.seq)


def _allocations(queue: Queue, level: Level, ask: Ask) -> Iterator[tuple[int, int, Ask]]:
    """Who counts under a level, as rows in the order of how much of it each has: most first, then the oldest."""
    kind, _, who = level.who.partition(" ")
    for app in queue.applications.values():
        counts = not kind or (app.user == ask.app.user if kind == "user" else app.limit_group == who)
        if not app.allocations or not counts:
            continue
        for each in app.asks.values():
            pays_here = any(paid.path == level.queue for paid in payer(each).lineage)
            if each.node is None or not (pays_here or kind or level.resource == APPLICATIONS):
                continue
            has = next((amount for name, amount in each.items if name == resource_called(level.resource)), 0)
            if has or level.resource == APPLICATIONS:
                yield (-has, each.seq, each)


def _holder(ask: Ask) -> Holder:
    return Holder(
        ask.app.id,
        ask.key,
        ask.app.user,
        ask.app.queue.path,
        ask.node.id if ask.node is not None else "",
        with_cpu(dict(ask.items)),
        ask.priority,
        ask.allocated_ms,
        _until_ms(ask),
    )
