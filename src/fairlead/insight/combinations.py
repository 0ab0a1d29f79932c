"""Combinations: several levers pulled together, where none of them helps alone.

Decides which are worth a trial: some pairs that often are the answer; everything that moves a limit, a rank or a node
at once; any two things; and what the asker can do at once. What is not needed of them is left out by
`search`. Never tries anything itself. Invariant: a lever of many parts has each thing once.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations as pairs_of
from itertools import islice
from typing import TYPE_CHECKING

from fairlead.insight import levers
from fairlead.insight.grounds import grounds, guarantees, terms, turns
from fairlead.insight.levers import Lever, together
from fairlead.insight.parts import Part, What
from fairlead.insight.places import places

if TYPE_CHECKING:
    from fairlead.core.books.asks import Ask
    from fairlead.core.books.partition import Partition
    from fairlead.insight.advice import Asker

NODES_TRIED = 3
"""Of more room on a node together with something else, those nodes alone that lack least."""


def pairs(partition: Partition, ask: Ask) -> Iterator[list[Lever]]:
    """Two dimensions: of limits above the nodes, room on them, more of them, priority, and turns that are kept."""
    limits = levers.limits_in_the_way(partition, ask)
    first = levers.first_in_line(partition, ask)
    room = list(islice(levers.room_on_nodes(partition, ask), NODES_TRIED))
    more = list(levers.more_nodes(partition, ask))
    if limits is not None:
        yield [limits + each for each in room]
        yield [limits + each for each in more]
        yield [first + limits] if first is not None else []
    elif first is not None:
        yield [first + each for each in room]
        yield [first + each for each in more]
    freed = [lever for group in turns(partition, ask) for lever in group]
    also = [limits] if limits is not None else room
    yield [each + other for each in freed for other in also]


def everything(partition: Partition, ask: Ask) -> Iterator[list[Lever]]:
    """All limits, the highest rank, kept turns lifted and more nodes together; in two ways: preempting and not."""
    base = list(_above_nodes(partition, ask))
    first = levers.first_in_line(partition, ask)
    more = next(iter(levers.more_nodes(partition, ask)), None)
    freed = next((lever for group in turns(partition, ask) for lever in group), None)
    promised = guarantees(partition, ask)
    for extra in ([first, freed, more], [first, freed, promised[-1] if promised else None], [first, more]):
        parts = [lever for lever in (*base, *extra) if lever is not None]
        if len(parts) > 1:
            yield [joined(parts)]


def single(partition: Partition, ask: Ask, asker: Asker) -> Iterator[Lever]:
    """Every lever by itself, those that cost least first: of which two together may help."""
    around = places(partition, ask)
    few = (levers.first_in_line(partition, ask), levers.least_request(ask))
    yield from (lever for lever in few if lever is not None)
    for group in terms(partition, ask, around):
        yield from group
    yield from levers.other_queues(partition, ask)
    for limits in levers.limits(partition, ask):
        yield from limits
    for group in grounds(partition, ask, around):
        yield from group
    yield from levers.room_on_nodes(partition, ask)
    yield from levers.more_nodes(partition, ask)
    for ends in levers.cancels(partition, ask, asker.may_act):
        yield from ends


def of_the_asker(partition: Partition, ask: Ask, asker: Asker) -> Iterator[list[Lever]]:
    """What whoever asks can do: another queue, the highest rank, the smallest size, the end of all own work, and what
    it says of itself.
    """
    first = levers.first_in_line(partition, ask)
    least = levers.least_request(ask)
    own = levers.all_own_work(partition, ask, asker.may_act)
    queues = [lever for lever in levers.other_queues(partition, ask) if asker.may_move(lever.parts[0].subject)]
    single = [lever for lever in (first, least, own) if lever is not None]
    yield [joined([each, other]) for at, each in enumerate(single) for other in single[at + 1 :]]
    yield [joined([queue, other]) for other in single for queue in queues]
    words = [lever for group in terms(partition, ask, places(partition, ask)) for lever in group]
    yield [joined([word, other]) for word in words for other in (*single, *queues)]
    yield [joined([one, other]) for one, other in pairs_of(words, 2)]
    if len(single) > 2:
        yield [joined(single)]
    if own is not None and len(own.rows) > 1:
        yield [own]


def _above_nodes(partition: Partition, ask: Ask) -> Iterator[Lever]:
    for group in levers.limits(partition, ask):
        yield from group[-1:]
        return


def joined(parts: list[Lever]) -> Lever:
    """All of them, each thing once: the one that comes first."""
    rows: dict[tuple[What, str, str, str, str], tuple[Part, int, int]] = {}
    for lever in parts:
        for row in lever.rows:
            part = row[0]
            rows.setdefault((part.what, part.subject, part.resource, part.who, part.text), row)
    return Lever(tuple(rows.values())) if rows else together()
