"""The page of the past, where more happened than it looks at."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest
from testbed.answering import made

from fairlead.client.errors import Unreachable
from fairlead.client.http import ServerEvent
from fairlead.web import past_page
from fairlead.web.colours import Colours
from fairlead.web.courses import Run
from fairlead.web.frame import Page
from fairlead.web.live import Live
from fairlead.web.past_page import RecordedPast, _Past
from fairlead.web.viewer import Viewer
from fairlead.wire.cluster import Event, EventPage, Queue
from fairlead.wire.course import Course as Recorded
from fairlead.wire.jobs import Job
from fairlead.wire.occupancy import Occupant

MINUTE = 60_000


def event(at_ms: int, what: str, key: str, **values: Any) -> ServerEvent:
    told = {"seq": 1, "at_ms": at_ms, "type": what, "key": key, "values": values}
    return ServerEvent("1.0", what, told)


def happened(at_ms: int, what: str, key: str, **values: Any) -> Event:
    return made(Event, at_ms=at_ms, type=what, key=key, values=values)


async def read(
    past: _Past, seq: int, events: list[ServerEvent], occupants: list[Occupant], known: Sequence[Job] = ()
) -> list[str]:
    """The jobs that it asks the names of."""
    asked: list[str] = []

    async def told(**_: Any) -> AsyncIterator[ServerEvent]:
        for each in events:
            yield each

    async def there(**_: Any) -> AsyncIterator[Occupant]:
        for each in occupants:
            yield each

    async def jobs(**_: Any) -> AsyncIterator[Any]:
        asked.append("jobs")
        for each in known:
            yield each

    async def changes() -> Any:
        return SimpleNamespace(seq=seq)

    async def redraw(*_: str) -> None:
        return

    client = SimpleNamespace(changes=changes, events=told, occupants=there, jobs=jobs)
    past.viewer = cast(Viewer, SimpleNamespace(of="machine", client=client))
    past.page = cast(Page, SimpleNamespace(redraw=redraw))
    await past.read()
    return asked


@pytest.fixture
def past() -> _Past:
    viewer = cast(Viewer, SimpleNamespace(of="machine", client=None))
    return _Past(viewer, Live(), cast(Page, None), "1h")


async def test_what_began_before_the_records_that_are_looked_at_and_runs_is_shown(past: _Past) -> None:
    """Else a machine on which much happens, and long jobs run, would look as if nothing did."""
    since = past.end_ms - 10 * MINUTE
    old = made(Occupant, key="7", user="ann", name="train", queue="root.a", node="vm", started_at_ms=since - MINUTE)
    new = made(Occupant, key="8", user="ben", name="short", queue="root.a", node="vm", started_at_ms=since + MINUTE)
    events = [
        event(since, "job.submitted", "8", user="ben", name="short", queue="root.a"),
        event(since + MINUTE, "job.allocated", "8", node="vm"),
    ]
    assert await read(past, past_page.RECORDS + 1, events, [new, old]) == []
    shown = {course.key: course for course in past.found()}
    assert {key: (course.user, course.name) for key, course in shown.items()} == {
        "7": ("ann", "train"),
        "8": ("ben", "short"),
    }
    assert [(run.node, run.begin_ms, run.end_ms) for run in shown["7"].runs] == [("vm", since - MINUTE, None)]
    assert shown["7"].submitted_ms is None, "when it was submitted is not known: it counts for no waiting time"
    assert [run.begin_ms for run in shown["8"].runs] == [since + MINUTE]
    assert f"the newest {past_page.RECORDS:,} records" in str(past._reach())


async def test_what_began_before_the_records_that_are_looked_at_and_ended_in_them_is_shown(past: _Past) -> None:
    """What ran for long has most of the core hours; what waited all the time has none."""
    since = past.end_ms - 30 * MINUTE
    events = [
        event(since, "job.waits", "9"),
        event(since, "job.ended", "7", state="succeeded"),
        event(since + 15 * MINUTE, "job.ended", "6", state="failed"),
    ]
    told = {"user": "ann", "queue": "root.a", "node": "vm", "resources": {"cpu": 2}}
    known = [
        made(Job, key="6", started_at_ms=since - 600 * MINUTE, **told),
        made(Job, key="7", started_at_ms=since - MINUTE, **told),
        made(Job, key="8", started_at_ms=since - MINUTE, **told),
        made(Job, key="9", started_at_ms=None, **told),
    ]
    await read(past, past_page.RECORDS + 1, events, [], known)
    shown = {course.key: course for course in past.found()}
    assert shown["6"].runs == [Run("6", "vm", since - 600 * MINUTE, since + 15 * MINUTE, "failed")]
    assert past._core_hours(shown["6"]) == 2 * 45 / 60, "of the hour that is looked at"
    assert {key for key, course in shown.items() if course.runs} == {"6", "7"}


async def test_where_all_is_looked_at_nothing_is_said_to_be_missing(past: _Past) -> None:
    events = [event(past.end_ms - MINUTE, "job.submitted", "8", user="ben", name="short", queue="root.a")]
    await read(past, past_page.RECORDS, events, [])
    assert past._reach() is None


async def test_where_what_happened_cannot_be_read_it_is_said(past: _Past) -> None:
    """Instead of being read for ever."""

    async def changes() -> Any:
        raise Unreachable("the service is gone")

    redrawn = list[str]()

    async def redraw(*ids: str) -> None:
        redrawn.extend(ids)

    trees = [made(Queue, path="root")]
    past.live.notes["colours"] = Colours(trees)
    past.viewer = cast(Viewer, SimpleNamespace(of="machine", client=SimpleNamespace(changes=changes)))
    past.page = cast(Page, SimpleNamespace(redraw=redraw))
    await past.read()
    assert "gantt" in redrawn
    assert "the service is gone" in await past.chart()
    assert "being read" not in await past.chart()


async def test_nine_of_ten_waited_as_long_as_is_said(past: _Past) -> None:
    """Of two that waited 0 s and 100 s nine of ten had waited 0 s at most, less than half of them."""
    for key, waited_ms in (("1", 0), ("2", 100_000)):
        at_ms = past.end_ms - 5 * MINUTE
        past._events.append((at_ms, "job.submitted", key, {"user": "ann", "queue": "root.a", "resources": {"cpu": 1}}))
        past._events.append((at_ms + waited_ms, "job.allocated", key, {"node": "n1"}))
    shown = str(await past.by_user())
    assert "1m 40s" in shown
    assert shown.index("50") < shown.index("1m 40s")


async def test_what_began_before_the_time_that_is_looked_at_ran_in_it() -> None:
    """In a recorded course: what ended in the last hour, and what has run since before the oldest event."""
    now_ms = 600 * MINUTE
    events = [
        happened(now_ms - 90 * MINUTE, "job.submitted", "1", user="ann", queue="root.a", resources={"cpu": 2}),
        happened(now_ms - 90 * MINUTE, "job.allocated", "1", node="n1"),
        happened(now_ms - 30 * MINUTE, "job.released", "1", cause="FINISHED"),
    ]
    running = made(
        Job, key="2", user="ben", queue="root.a", node="n1", started_at_ms=now_ms - 200 * MINUTE, resources={"cpu": 4}
    )

    async def recorded() -> Any:
        return made(Recorded, at_ms=now_ms)

    async def course_events(*, limit: int, after: str | None) -> Any:
        """A page has one event."""
        del limit
        at = int(after or len(events))
        return made(EventPage, events=[events[at - 1]], next=str(at - 1) if at > 1 else None)

    async def jobs(**_: Any) -> AsyncIterator[Job]:
        yield running

    client = SimpleNamespace(recorded=recorded, course_events=course_events, jobs=jobs)
    past = RecordedPast(cast(Viewer, SimpleNamespace(of="course", client=client)), Live(), cast(Page, None), "1h")
    await past._catch_up()
    hours = {course.key: past._core_hours(course) for course in past.found()}
    assert hours == {"1": 1.0, "2": 4.0}
