"""Stops: why nothing is stopped for what waits, in words.

Decides of which waits that is told, and how. What keeps an ask from it, and what spares work, is the scheduler's own
(`policy.why.spared`). Never changes anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.insight.grounds import says_never
from fairlead.policy.why.spared import Keeps, NothingStopped, Spares, why_nothing_stops
from fairlead.times import duration
from fairlead.wire.verdicts import Stops

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.core.books.asks import Ask
    from fairlead.core.books.partition import Partition
    from fairlead.core.model.reasons import Reason

FOR_ROOM = {"cluster-full", "no-node-has-room", "node-reserved", "queue-full", "queue-promised"}
FOR_ROOM |= {"limit-reached", "limit-promised"}
"""Reasons of what waits for room that something has, by their codes."""

_KEEPS = {
    Keeps.OFF: "preemption is switched off",
    Keeps.IDLE: "it is idle work, which takes what is left over",
    Keeps.LIMIT: "a limit of its user or group is in its way, and for that idle work alone is stopped",
    Keeps.NO_GUARANTEE: "work is stopped for what a queue is guaranteed, and its own is guaranteed nothing",
    Keeps.BEYOND_GUARANTEE: "with it its queue would use more than it is guaranteed",
    Keeps.GANG: "its gang could not start as a whole even if all went that may be stopped",
}
_SPARES = {
    Spares.TOLD: ("was told to stop already", "were told to stop already"),
    Spares.CLOSED: (
        "is kept from it by preemption.policy of a queue",
        "are kept from it by preemption.policy of a queue",
    ),
    Spares.OWN_GANG: ("is of its own gang", "are of its own gang"),
    Spares.OWN_QUEUE: ("is of its own queue", "are of its own queue"),
    Spares.GUARANTEED: ("is within what its queue is guaranteed", "are within what their queues are guaranteed"),
    Spares.LARGE: ("is more than its own queue may take back", "are each more than its own queue may take back"),
    Spares.NODE: ("can run on that node alone", "can run on their nodes alone"),
    Spares.YOUNG: ("started in its turn while it waited", "started in their turn while it waited"),
    Spares.RUNTIME: ("is not yet past its minimum run time", "are not yet past their minimum run times"),
    Spares.AGAIN: ("was stopped for it before", "were stopped for it before"),
    Spares.EVICTIONS: ("is of a queue that lost enough this hour", "are of queues that lost enough this hour"),
    Spares.WINDOW: (
        "would leave too late for it, as a window begins",
        "would leave too late for it, as a window begins",
    ),
    Spares.OTHER: ("has nothing of what it needs", "have nothing of what it needs"),
}
_HIGHER = ("has the same or a higher priority", "have the same or a higher priority")
_HIGHER_ALONE = ("has a higher priority", "have a higher priority")
_TOO_LITTLE = ("could be stopped, but that makes no room for it",) * 2
_TOO_LITTLE_LATELY = ("could be stopped, but that made no room for it when it was tried last",) * 2


def nothing_stops(partition: Partition, ask: Ask, reason: Reason) -> Stops | None:
    """Why nothing is stopped for an ask that waits for this reason; None: it waits for something other than room, some
    work was told to stop for it, or its turn is still to come.
    """
    is_at_rest = partition.rested_at == (partition.news, partition.books_version)
    why = why_nothing_stops(partition, ask) if is_at_rest and reason.code in FOR_ROOM else None
    if why is None:
        return None
    return Stops(
        because=why.because or "",
        queue=why.queue,
        running=why.running,
        spared={str(each): count for each, count in why.spared.items()},
        until_ms=min((ms for ms in (why.until_ms, why.again_ms) if ms is not None), default=None),
        sentence=f"Nothing is stopped for it: {_in_words(partition, ask, why)}.",
    )


def _in_words(partition: Partition, ask: Ask, why: NothingStopped) -> str:
    again = duration(why.until_ms - partition.now_ms) if why.until_ms is not None else ""
    match why.because:
        case None:
            later = f"; for some of it that is over in {again}" if again else ""
            if why.again_ms is not None:
                later += f"; that is tried again in {duration(why.again_ms - partition.now_ms)}"
            return f"{_of_work(partition, why)}{later}"
        case Keeps.NEVER:
            return says_never(partition, ask)
        case Keeps.DELAY:
            return f"it may have work stopped in {again}, once it has waited for the preemption.delay of its queue"
        case other:
            return _KEEPS[other]


def _of_work(partition: Partition, why: NothingStopped) -> str:
    """What spares the work that would make room."""
    where = " on nodes that it could use" if len(partition.nodes.nodes) > 1 else ""
    where = f" in {why.queue}" if why.queue else where
    said = list(_spared(partition, why))
    if len(said) > 1:
        parts = [f"{count} {words[count != 1]}" for count, words in said]
        return f"of {why.running} that run{where}, {', '.join(parts[:-1])} and {parts[-1]}"
    count, words = said[0]
    return f"all {count} that run{where} {words[1]}" if count > 1 else f"the only one that runs{where} {words[0]}"


def _spared(partition: Partition, why: NothingStopped) -> Iterator[tuple[int, tuple[str, str]]]:
    by_guarantee = partition.spec.preemption.rule == "guarantee"
    for each, count in why.spared.items():
        yield count, (_HIGHER_ALONE if by_guarantee else _HIGHER) if each is Spares.PRIORITY else _SPARES[each]
    left = why.running - sum(why.spared.values())
    if left:
        yield left, _TOO_LITTLE if why.again_ms is None else _TOO_LITTLE_LATELY
