"""The routes about the line: everything that waits for room, everybody's, in the order in which it is looked at.

Decides that each may see how what is before him stands, since that is what he waits for: whose it is, what it asks for,
its priority. What else there is to say of a job is for those whose business it is (`Moment.in_line`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

from fastapi import Query

from fairlead.insight import line
from fairlead.insight.forecast import Forecast
from fairlead.insight.trial import Name
from fairlead.runtime import Refusal
from fairlead.service.forecaster import played
from fairlead.service.http.questions import interval
from fairlead.service.http.shaped import MOST, PagesOf, api
from fairlead.service.place import CallerOf, Moment, PlaceOf, now_ms
from fairlead.wire import pages as wire
from fairlead.wire.fields import with_cpu
from fairlead.wire.questions import SPEND_MAX_S

if TYPE_CHECKING:
    from fairlead.core.books.asks import Ask
    from fairlead.core.books.node import Node
    from fairlead.core.books.partition import Partition
    from fairlead.scheduler import Scheduler

router = api("pages")
MOST_EXPECTED = 200
TOGETHER = 200
"""The line is worked out for so many at once."""
COVERAGE = 0.8
"""Of the intervals that `Forecast.expected` gives."""


def _first(scheduler: Scheduler, partition: Partition, most: int) -> list[Ask]:
    """The first of the line: worked out once for all who look at about as many of them, as pages do."""
    many = -(-min(most, line.waiting(partition)) // TOGETHER) * TOGETHER
    return scheduler.answer(("line", partition.name, many), lambda: line.in_line(partition, many))[:most]


@router.get("/line")
async def list_line(
    place: PlaceOf,
    caller: CallerOf,
    limit: Annotated[int, Query(ge=1, le=MOST, description="At most so many.")] = 100,
    after: Annotated[str | None, Query(max_length=41, description="Go on after `next` of the page before.")] = None,
) -> wire.LinePage | bytes:
    """What waits for room, first what is looked at first. What is held, or waits for its time, is not in line."""
    cursor = re.fullmatch(r"([0-9]{1,20})(?:-([0-9]{1,20}))?", after or "0")
    if cursor is None:
        raise Refusal("invalid", f"{after!r} is no cursor; give `next` of the page before", field="after")
    place_before, last = int(cursor[1]), int(cursor[2] or -1)

    def ask(moment: Moment) -> wire.LinePage:
        partition = moment.scheduler.cluster.partitions.get(moment.partition)
        if partition is None:
            return wire.LinePage(line=[], next=None, total=0)
        total, first = line.waiting(partition), _first(moment.scheduler, partition, place_before + limit)
        # The page goes on behind the last one of the page before, wherever that stands by now.
        begin = next((at for at, each in enumerate(first, 1) if each.seq == last), place_before)
        found = first[begin : begin + limit]
        shown = [_shown(moment, each, begin + at) for at, each in enumerate(found, 1)]
        goes_on = found and total > begin + limit
        return wire.LinePage(line=shown, next=f"{begin + limit}-{found[-1].seq}" if goes_on else None, total=total)

    return await place.shown(ask, caller)


@router.get("/kept")
async def list_kept(place: PlaceOf, caller: CallerOf, page: PagesOf) -> wire.KeptPage | bytes:
    """The nodes with room that is kept for a job that waits, and for which."""

    def ask(moment: Moment) -> wire.KeptPage:
        partition = moment.scheduler.cluster.partitions.get(moment.partition)
        found = line.kept(partition) if partition is not None else ()
        return page.of(
            wire.KeptPage,
            found,
            lambda pair: (pair[1].id, pair[0].app.id, pair[0].key),
            lambda pair: _kept(moment, *pair),
        )

    return await place.shown(ask, caller)


def _kept(moment: Moment, ask: Ask, node: Node) -> wire.Kept:
    key, name, visible = moment.called(ask)
    return wire.Kept(
        node=node.id,
        key=key,
        name=name,
        user=ask.app.user,
        queue=ask.app.queue.path,
        resources=with_cpu(dict(ask.items)),
        visible=visible,
        whole=ask in node.reservations,
        leaving=line.leaving(ask),
    )


@router.get("/line/forecast")
async def forecast_line(
    place: PlaceOf,
    caller: CallerOf,
    limit: Annotated[int, Query(ge=1, le=MOST_EXPECTED, description="Of the first so many.")] = 30,
    seconds: Annotated[float, Query(gt=0, le=SPEND_MAX_S, description="Play futures for so long.")] = 2.0,
) -> wire.LineForecast:
    """When the first of the line are expected to start, seen in the same futures."""

    def ask(moment: Moment) -> Callable[[], tuple[dict[Name, str], Forecast | None]]:
        partition, scheduler = moment.scheduler.cluster.partitions.get(moment.partition), moment.scheduler
        first = _first(scheduler, partition, limit) if partition is not None else []
        keys = {(moment.partition, each.app.id, each.key): moment.called(each)[0] for each in first}

        def question() -> tuple[dict[Name, str], Forecast | None]:
            if not keys:
                return keys, None
            future, arrivals = moment.future(), moment.arrivals()
            return keys, played(scheduler, future, moment.partition, list(keys), seconds, arrivals)

        return question

    keys, told = await place.apart(ask, caller)
    if told is None:
        return wire.LineForecast(made_ms=now_ms(), coverage=COVERAGE, starts=[])
    starts = []
    for name, key in keys.items():
        if name in told.starts:
            at = interval(place, told, name)
            shown = {each: at[each] for each in wire.ExpectedStart.__struct_fields__ if each in at}
            starts.append(wire.ExpectedStart(key=key, **shown))
    return wire.LineForecast(made_ms=told.made_ms, coverage=COVERAGE, starts=starts)


def _shown(moment: Moment, ask: Ask, at: int) -> wire.InLine:
    key, name, reason, visible = moment.in_line(ask)
    return wire.InLine(
        place=at,
        key=key,
        name=name,
        user=ask.app.user,
        queue=ask.app.queue.path,
        resources=with_cpu(dict(ask.items)),
        priority=ask.priority,
        effective=line.effective(ask),
        steps=line.steps(ask),
        owed=line.owed(ask),
        submitted_at_ms=ask.created_ms,
        visible=visible,
        reason=reason,
    )
