"""Verdicts: why an ask is where it is, in words.

Decides the sentences that an answer is told in. Never looks anything up: `explain` does. Invariant: what the words say
is in the values (`wire.verdicts`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from msgspec.structs import replace

from fairlead.core.model import reasons
from fairlead.core.model.matching import AFFINITY
from fairlead.core.model.quantities import format_amounts
from fairlead.insight.advice import By
from fairlead.insight.parts import What
from fairlead.times import duration
from fairlead.wire import jobs
from fairlead.wire.fields import with_vcore
from fairlead.wire.stopped import in_brackets
from fairlead.wire.verdicts import Stopped, Verdict

if TYPE_CHECKING:
    from fairlead.insight.unblock import Ways
    from fairlead.wire.verdicts import Level, Never, Way

OF_THE_ASK = ("needs", "may", "takes", "waits", "fits", "stops", "would", "was", "is", "can")
"""First words of reasons that say something of the ask itself."""

APPLICATIONS = "applications"
"""What a level counts that is no amount."""
NAMING = ("queue-full", "limit-reached", "applications-at-max", "limit-applications", "applications-promised")
"""Reasons that name a level."""
VICTIMS = "waiting-for-victims"
ROOM_IS_KEPT = ("waiting-for-placeholder", VICTIMS)
"""Reasons of what will take room that counts as used."""
GANG_TOO_LARGE = ("gang-too-large", "task-group-too-large")
"""Reasons of what could not start together, however empty all nodes were."""


def shown(reason: reasons.Reason | None) -> jobs.Reason | None:
    """A reason of the scheduler as it is answered."""
    return jobs.reason(reason.as_dict()) if reason is not None else None


def how_stopped(stopped: Stopped) -> str:
    """That it was told to stop, as part of a sentence."""
    room = f" to make room for {stopped.for_whom.rpartition('/')[2]}" if stopped.for_whom else ""
    return f"{room}{in_brackets(stopped.rule) or f' ({stopped.cause})'}"


@dataclass(frozen=True, slots=True)
class Room:
    """When a waiting ask has room, since work that runs is gone by its time limit, which is not over yet."""

    at_ms: int
    is_its_own: bool
    """Nothing else waits, or comes back, that could take it."""


def told(verdict: Verdict, found: Ways | None = None, now_ms: int = 0, room: Room | None = None) -> Verdict:
    """The verdict with its words. `found`: what would change it from `now_ms` on; None: that was not asked for.
    `room`: None where nobody can know.
    """
    details = list(_details(verdict, found))
    advice = list(_advice(verdict, found, now_ms, room)) if found is not None else []
    said = f"waits: {_of_it(verdict.sentence)}" if verdict.state == "waiting" else verdict.sentence
    head = f"{verdict.key} {said}."
    return replace(verdict, details=details, advice=advice, paragraph=" ".join([head, *advice, *details]))


def _of_it(sentence: str) -> str:
    """A reason as a clause: it begins with what the ask does ("needs ..."), or with whatever is in its way."""
    return f"it {sentence}" if sentence.partition(" ")[0] in OF_THE_ASK else sentence


def _details(verdict: Verdict, found: Ways | None) -> Iterator[str]:
    """Everything beyond the verdict itself."""
    if verdict.state != "waiting":
        yield from _before_neighbours(verdict)
        return
    if verdict.refusal is not None:
        yield f"If it came into line now it would be refused: {_of_it(verdict.refusal.sentence)}."
    if verdict.position and verdict.waiting_in_queue > 1:
        place = f"number {verdict.position} of {verdict.waiting_in_queue} that wait in {verdict.queue}"
        yield f"It is {place}{_ahead(verdict)}."
    yield from _about_levels(verdict)
    yield from _about_nodes(verdict)
    if verdict.holders:
        named = ", ".join(f"{h.key} of {h.user} ({format_amounts(with_vcore(h.amounts))})" for h in verdict.holders[:3])
        count = len(verdict.holders) + verdict.hidden_holders
        yield f"Held by {named}{f' and {count - 3} more' if count > 3 else ''}."
    elif verdict.hidden_holders:
        yield f"Held by work of others ({verdict.hidden_holders})."
    if verdict.stops is not None:
        yield verdict.stops.sentence
    if found is not None:
        yield from _about_ways(found)


def _before_neighbours(verdict: Verdict) -> Iterator[str]:
    for each in verdict.passed_over:
        than = "lower" if each.priority < verdict.priority else "higher" if each.priority > verdict.priority else "same"
        yield f"{each.key} came earlier and waits (priority {each.priority}, {than}): {each.reason}."


def in_the_way(levels: Iterable[Level]) -> list[Level]:
    """The levels above the nodes that have no room: what the root may use is what all nodes have."""
    return [
        level
        for level in levels
        if level.blocks and (level.queue != "root" or level.who or level.resource == APPLICATIONS)
    ]


def is_named(level: Level, reason: jobs.Reason | None) -> bool:
    """Whether the reason is that this level has no room."""
    if reason is None or reason.code not in NAMING or reason.values["queue"] != level.queue:
        return False
    who = f"{reason.values['kind']} {reason.values['name']}" if reason.values.get("kind", "queue") != "queue" else ""
    return who == level.who and level.resource in reason.values.get("needed", (APPLICATIONS,))


def _about_levels(verdict: Verdict) -> Iterator[str]:
    """What else has no room, beside what the reason names."""
    if verdict.reason is not None and verdict.reason.code in ROOM_IS_KEPT:
        return
    for level in in_the_way(verdict.levels):
        if is_named(level, verdict.reason):
            continue
        who, there = (level.who, f" in {level.queue}") if level.who else (f"queue {level.queue}", "")
        if level.resource == APPLICATIONS:
            yield f"Also {who} runs {level.used} of at most {level.max} applications{there}."
        else:
            left, most = (with_vcore({level.resource: n}) for n in (max(level.max - level.used, 0), level.max))
            yield f"Also {who} has {format_amounts(left)} left of {format_amounts(most)}{there}."


def _about_nodes(verdict: Verdict) -> Iterator[str]:
    nodes = verdict.nodes
    if nodes is None or not nodes.total:
        return
    ruled_out = ", ".join(f"{count} {why}" for why, count in nodes.closed.items())
    of = f" ({ruled_out})" if ruled_out else ""
    if nodes.total == 1:
        # Of one that is closed to it nobody looked for room.
        has = "is not large enough" if not nodes.large_enough else "has room" if nodes.with_room else "has no room"
        room = f" and {has}" if nodes.open else ""
        yield f"The only node {'is' if nodes.open else 'is not'} open to it{of}{room}."
    else:
        is_open, has_room = ("is", "are")[nodes.open != 1], ("has", "have")[nodes.with_room != 1]
        large = f", {nodes.large_enough} of them large enough," if nodes.large_enough < nodes.open else ""
        room = f"{nodes.with_room} {has_room} room"
        yield f"Of {nodes.total} nodes {nodes.open} {is_open} open to it{of}{large} and {room}."
    is_promised = (
        verdict.reason is not None and verdict.reason.code == VICTIMS
    )  # It has a node, whichever comes closest.
    near = verdict.closest[0] if verdict.closest and not is_promised else None
    if nodes.large_enough and not nodes.with_room and near is not None and near.missing and not near.closed:
        least = " least" if nodes.total > 1 else ""
        yield f"{near.node} lacks{least}: {format_amounts(with_vcore(near.missing), up=True)}."


def _ahead(verdict: Verdict) -> str:
    """Which come before it, as part of a sentence."""
    if not verdict.ahead:
        return ""
    rest = verdict.position - 1 - len(verdict.ahead)
    return f": {', '.join(verdict.ahead)}{f' and {rest} more' if rest else ''} before it"


def _about_ways(found: Ways) -> Iterator[str]:
    if found.by_itself is not None:
        return
    if found.changes:
        yield f"It {'; or it '.join(change.sentence for change in found.changes)}."
    elif found.hidden:
        return
    elif found.is_complete:
        yield "No change that was tried would start it now."
    if not found.is_complete:
        yield "Not everything was tried: there may be more."


# -- advice -------------------------------------------------------------------------------------------------------

_CAN = {
    By.ASKER: "You can",
    By.QUEUE: "An administrator of the queue can",
    By.MACHINE: "An administrator can",
}


def _advice(verdict: Verdict, found: Ways, now_ms: int, room: Room | None) -> Iterator[str]:
    """What to do, in one or two sentences: the recommended change, and else what the asker can do without others."""
    if found.by_itself is not None:
        stops = ", ".join(key for _, _, key in found.by_itself.evicted[:3])
        yield f"It starts on {found.by_itself.node} without any change{f' once {stops} stopped' if stops else ''}."
        return
    if verdict.reason is not None and verdict.reason.code in GANG_TOO_LARGE:
        # What starts this part of it alone is no help.
        suit = " that suit it" if verdict.reason.values.get("excluded") else ""
        yield f"Its gang starts with more nodes{suit}, or a smaller gang."
        return
    if verdict.never is not None:
        yield _never(verdict, verdict.never)
        yield from (_told_to_do(each, verdict) for each in found.changes[:1])
        return
    first, enters = found.changes[0] if found.changes else None, found.first
    if first is not None and first.by == By.ASKER and not first.stops:
        yield _told_to_do(first, verdict)
        return
    if first is not None and first.dimension == What.TIME:
        # It comes by itself, and nobody has to do anything for it.
        yield _told_to_do(first, verdict)
        return
    if found.waits:
        until = f"when enough of what runs and comes before it has ended{_until(verdict, now_ms, room)}"
        yield f"{_CAN[enters.by]} {enters.action}; it starts {until}." if enters else f"Wait: it starts {until}."
    if first is not None:
        yield _told_to_do(first, verdict, sooner=found.waits)


def _never(verdict: Verdict, never: Never) -> str:
    """That it can never run, and why, where that is not what it waits for anyway."""
    why = _of_it(never.sentence) if never.sentence != verdict.sentence else ""
    comes = _that_may_come(never.reason) if never.reason is not None else ""
    if comes:
        return f"It cannot run as it is, whatever ends, unless {comes} comes{why and f': {why}'}."
    if not why:
        return "It can never run as it is, even if nothing else ran."
    return f"It can never run as it is: even if nothing else ran, {why}."


def _that_may_come(reason: jobs.Reason) -> str:
    """What is missing that nothing needs to be otherwise for; empty: something does."""
    if AFFINITY in reason.values.get("excluded", ()):
        return "work that it wants to be with"
    return {"no-nodes": "a node", "required-node-unknown": "that node"}.get(reason.code, "")


def _until(verdict: Verdict, now_ms: int, room: Room | None) -> str:
    """When time limits end enough of what runs, as part of a sentence; nothing where others come first."""
    if room is None or verdict.position != 1:
        return ""
    until = f", by time limits in {duration(room.at_ms - now_ms)}"
    return f"{until} at the latest" if room.is_its_own else f"{until} unless others take the room"


def _told_to_do(change: Way, verdict: Verdict, *, sooner: bool = False) -> str:
    when = "; it starts then" if change.at_once else "; it can run then"
    when = "" if sooner else when
    if verdict.gang_lacks and change.at_once:
        others = f"{verdict.gang_lacks} more {'has' if verdict.gang_lacks == 1 else 'have'} theirs, too"
        when = f"; it has its room then, and its gang starts when {others}"
    stops = ", ".join(each.key for each in change.evicts[:3])
    more = f" and {len(change.evicts) - 3} more" if len(change.evicts) > 3 else ""
    stops = f" (that stops {stops}{more})" if stops else ""
    if change.by == By.NOBODY:
        return f"{'Sooner it' if sooner else 'It'} starts only if somebody could {change.action}{stops}."
    can = f"{_CAN[By(change.by)]} " if change.dimension != What.TIME else ""
    said = f"{can}{change.action}{when}{stops}."
    return f"Sooner: {said[0].lower()}{said[1:]}" if sooner else f"{said[0].upper()}{said[1:]}"
