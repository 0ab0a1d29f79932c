"""Unblock: the changes that start a waiting ask, the recommended one first; or that it can never run, and why.

Decides what is asked of `search`: the state as it is, and, where that shows no way, the state in which nothing else
runs or waits. What does not start even there can never run as it is; what would let it is found there. Never changes
the scheduler that it is asked of. Invariant: without a clock in its effort the answer follows from the state alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from msgspec import structs, to_builtins

from fairlead.core.model.conditions import Conditions
from fairlead.core.model.events import Release, ReserveAsk, SetConditions, SetPriority
from fairlead.core.model.matching import NO_DEVICES, all_of, matches
from fairlead.core.model.reasons import NextInLine, NoNodeSuits, WaitingForPlaceholder
from fairlead.insight.advice import Asker, By, owner_of, ranked
from fairlead.insight.grounds import DAY_MS
from fairlead.insight.held import Held
from fairlead.insight.parts import AFTER, HOLD, acts
from fairlead.insight.search import Effort, Search
from fairlead.insight.trial import copy_of, on_a_copy, play, start_of
from fairlead.policy.eligibility.gang_size import is_of_gang_too_large

if TYPE_CHECKING:
    from fairlead.core.books.applications import Application
    from fairlead.core.books.asks import Ask
    from fairlead.core.books.partition import Partition
    from fairlead.core.model.events import Event
    from fairlead.core.model.reasons import Reason
    from fairlead.insight.trial import Name, Start
    from fairlead.scheduler import Scheduler
    from fairlead.wire.verdicts import Way


@dataclass(frozen=True, slots=True)
class Enters:
    """How an ask that is not in line comes there: whose that is to do, and what it is."""

    by: By
    action: str


@dataclass(frozen=True, slots=True)
class Ways:
    """How an ask could start."""

    by_itself: Start | None
    """It starts without any change, as soon as the scheduler runs and whoever is told to stop has stopped."""
    changes: tuple[Way, ...] = ()
    """The recommended one first."""
    is_complete: bool = True
    """False: not everything was tried, for the effort was spent or there was more of a kind than is tried."""
    trials: int = 0
    hidden: int = 0
    """So many more changes are about work that is not the asker's to see."""
    never: Reason | None = None
    """What keeps it from running even when nothing else runs or waits; None: nothing does."""
    waits: bool = False
    """It starts when enough of what is before it and of what runs has ended: no change is needed but time."""
    first: Enters | None = None
    """What has to be done first so that it is in line; None: it is, or comes there by itself."""


def ways(
    scheduler: Scheduler,
    name: Name,
    effort: Effort | None = None,
    *,
    asker: Asker | None = None,
    fork: bool | None = None,
) -> Ways:
    """The smallest changes that start a waiting ask: of each dimension that can help one, combinations where none does.

    `name` is partition, application and key; `asker` whose changes they are to be (None: its owner's). Raises KeyError
    when nothing waits under that name.
    """
    effort = effort or Effort()
    partition = scheduler.cluster.partitions[name[0]]
    app = partition.applications[name[1]]
    ask, asker = app.asks.get(name[2]), asker or owner_of(partition, app)
    if ask is None and partition.held_asks.get(name[1], name[2]) is not None:
        return _of_held(Held(scheduler, partition, name, asker, effort, fork))
    if ask is None or not ask.pending:
        raise KeyError(name)
    search = Search(scheduler, partition, ask, name, asker, effort, fork)
    by_itself = search.run()
    if by_itself is not None:
        return Ways(by_itself, trials=effort.spent)
    found, is_complete = search.found, search.is_complete
    alone = on_a_copy(scheduler, lambda copy: left_alone(copy, name), fork=fork)
    for beside in company(partition, ask):
        # It cannot run alone: what it wants to be with stays, one at a time.
        if alone is None:
            break
        with_it = on_a_copy(scheduler, lambda copy, beside=beside: left_alone(copy, name, beside), fork=fork)  # type: ignore[misc]
        alone = alone if with_it is not None else None
    if isinstance(alone, NoNodeSuits) and NO_DEVICES in alone.excluded:
        # Which nodes have devices left is not ours to know: what has them may end.
        return Ways(None, tuple(ranked(found)), is_complete, effort.spent)
    if alone is not None and all(way.stops or way.by == By.NOBODY for way in found):
        # That others would be stopped, too, is no advice to what could not run without them either.
        more, finished = _once_alone(scheduler, name, asker, effort)
        known = {way.dimension for way in found}
        found, is_complete = found + [way for way in more if way.dimension not in known], is_complete and finished
    # What has ended does not make a gang whole that is larger than all there is.
    waits = alone is None and not is_of_gang_too_large(partition, ask)
    return Ways(None, tuple(ranked(found)), is_complete, effort.spent, never=alone, waits=waits)


def _of_held(held: Held) -> Ways:
    """What starts an ask that is not in line; where no room is left for it, what would once it is there."""
    by_itself, effort = held.run(), held.effort
    alone = Ways(by_itself, tuple(ranked(held.found)), held.is_complete, effort.spent)
    if by_itself is not None or held.found:
        return alone
    entered = held.in_line()
    if entered is None:
        return replace(alone, is_complete=False)
    copy, enters = entered
    # Its turn, and its time, come by themselves.
    first = () if held.comes_by_itself else tuple(part for part in enters if part.text in (HOLD, AFTER))
    found = ways(copy, held.name, effort, asker=held.asker, fork=held.fork)
    if found.by_itself is not None:  # There was no time to find it out.
        return alone
    return replace(
        found,
        changes=tuple(ranked(held.also(enters, change) for change in found.changes)),
        is_complete=found.is_complete and alone.is_complete,
        first=Enters(held.by(first), " and ".join(acts(first))) if first else None,
    )


COMPANY = 12
"""So many that it may want to be with are looked at."""


def company(partition: Partition, ask: Ask) -> list[tuple[str, str]]:
    """What an ask with affinity may be with, whether it runs, waits or is held: application and key."""
    terms = ask.spec.where.affinity
    if not terms:
        return []
    there = ((app.id, other.spec) for app in partition.applications.values() for other in app.asks.values())
    held = ((app, each.spec) for app, each in partition.held_asks)
    theirs = (("", spec) for node in partition.nodes.nodes.values() for spec, _ in node.foreign.values())
    wanted = (
        (app, spec.key)
        for app, spec in chain(there, held, theirs)
        if spec is not ask.spec and matches(all_of(terms), spec.labels)
    )
    return list(islice(wanted, COMPANY))


def others(scheduler: Scheduler, name: Name, beside: tuple[str, str] | None = None) -> list[Release]:
    """The end of all work but this ask, and but what waits or keeps room of the gangs of its application: of what is
    held, lest it enters, of what other schedulers run, and of what is in line or runs. `beside` stays, too. A gang
    without placeholders was given up, or stood: what is left of it waits one by one.
    """
    partition = scheduler.cluster.partitions[name[0]]
    own = partition.applications[name[1]].asks.values()
    held_back = [each.spec for each in partition.held_asks.of(name[1])]
    stays = {name[2]}
    if any(spec.placeholder for spec in (*(ask.spec for ask in own), *held_back)):
        stays |= {ask.key for ask in own if ask.spec.task_group and (ask.pending or ask.spec.placeholder)}
        stays |= {spec.key for spec in held_back if spec.task_group}
    ended = [("", key) for key in partition.nodes.foreign_on]
    ended += [(application, each.spec.key) for application, each in partition.held_asks]
    ended += [(app.id, key) for app in partition.applications.values() for key in app.asks]
    stay = {(name[1], key) for key in stays} | {beside}
    return [Release(*each, partition=name[0]) for each in ended if each not in stay]


def left_alone(scheduler: Scheduler, name: Name, beside: tuple[str, str] | None = None) -> Reason | None:
    """What keeps it from running for a day, and until all windows are over, when all other work (but `beside`, which is
    released where it is held) is gone; None: nothing does. Call it on a copy only.
    """
    partition, now_ms = scheduler.cluster.partitions[name[0]], scheduler.cluster.now_ms
    windows = partition.admission.windows
    until_ms = max([now_ms + DAY_MS, *(ends_ms for _, ends_ms in windows.times(now_ms))])
    events: list[Event] = [*others(scheduler, name, beside)]
    if beside is not None and partition.held_asks.get(*beside) is not None:
        events.append(SetConditions(*beside, Conditions(), partition=name[0]))
    if start_of(scheduler, events, name, until_ms) is not None:
        return None
    members = [each for each in _members(partition, name) if (each.application, each.key) != beside]
    if members and start_of(scheduler, members, name, partition.now_ms + DAY_MS) is not None:
        return None
    # That a window is open keeps nobody for ever: the next one may.
    now_ms = partition.now_ms
    open_ms = [ends_ms for starts_ms, ends_ms in windows.times(now_ms) if starts_ms <= now_ms]
    if open_ms:
        scheduler.schedule(max(open_ms))
    app = partition.applications.get(name[1])
    ask = app.asks.get(name[2]) if app is not None else None
    if app is None or ask is None:
        return None
    reason, key = scheduler.why(*name[1:], name[0]), name[2]
    if isinstance(reason, WaitingForPlaceholder):
        # What keeps one like it from a node keeps it from running.
        places = ((key, each) for key, each in app.asks.items() if each.pending and each.spec.placeholder)
        alike = (key for key, each in places if _stands_for(each, ask))
        key = next(alike, key)
    return _behind(scheduler, app, (*name[:2], key)) or reason


def _members(partition: Partition, name: Name) -> list[Release]:
    """The end of what has become real work of its gang, and of what waits to: a gang that stood, or was given up, runs
    one after another.
    """
    app = partition.applications.get(name[1])
    real = [ask for ask in app.asks.values() if not ask.spec.placeholder] if app is not None else []
    if all(ask.pending for ask in real):
        return []
    return [Release(name[1], ask.key, partition=name[0]) for ask in real if ask.key != name[2]]


def _behind(scheduler: Scheduler, app: Application, name: Name) -> Reason | None:
    """Why it waits when nothing rests and no turn is kept: both pass, and come back for as long as it fits nowhere."""
    partition, now_ms = scheduler.cluster.partitions[name[0]], scheduler.cluster.now_ms
    passing = scheduler.why(*name[1:], name[0])
    for ask, _ in list(partition.reserving.every()):
        scheduler.handle(ReserveAsk(ask.app.id, ask.key, on=False, partition=name[0]), now_ms)
    rest_ends_ms = app.rest_ends_ms(now_ms)
    if rest_ends_ms is not None:
        # What is due by then happens with any event, and without a scheduling run it does not rest anew.
        scheduler.handle(SetPriority(*name[1:], app.asks[name[2]].priority, partition=name[0]), rest_ends_ms)
    lasting = scheduler.why(*name[1:], name[0])
    return passing if isinstance(lasting, NextInLine) else lasting


def _stands_for(place: Ask, ask: Ask) -> bool:
    """Whether a placeholder is for such work, and asks for the same."""
    same = (place.spec.task_group, place.items, place.required_node) == (
        ask.spec.task_group,
        ask.items,
        ask.required_node,
    )
    return same and place.spec.where == ask.spec.where


def _once_alone(scheduler: Scheduler, name: Name, asker: Asker, effort: Effort) -> tuple[list[Way], bool]:
    """What would let it run if nothing else did."""
    copy = copy_of(scheduler)
    play(copy, others(copy, name))
    partition = copy.cluster.partitions[name[0]]
    ask = partition.applications[name[1]].asks.get(name[2])
    if ask is None or not ask.pending:
        return [], True
    search = Search(copy, partition, ask, name, asker, replace(effort, spent=0), fork=None)
    search.run()
    told = [
        structs.replace(way, at_once=False, sentence=way.sentence.replace("runs if", "could run if", 1))
        for way in search.found
    ]
    effort.spent += search.effort.spent
    return told, search.is_complete


def unblock(scheduler: Scheduler, application: str, key: str, partition: str = "default") -> list[dict[str, Any]]:
    """The smallest changes that start a waiting ask, as plain values; empty when nothing is known to help."""
    name = (partition, application, key)
    book = scheduler.cluster.partitions.get(partition)
    app = book.applications.get(application) if book is not None else None
    ask = app.asks.get(key) if app is not None else None
    if ask is None or not ask.pending:
        return []
    return [to_builtins(change) for change in ways(scheduler, name).changes]
