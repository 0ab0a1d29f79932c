"""The past: who ran where, what each queue and user used, how long things waited, and whether forecasts came true.

Decides over which time. Everything is made of the events that the service tells this viewer: those of jobs that are its
business.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from math import ceil
from statistics import median

from fastapi import Request

from fairlead import times
from fairlead.client.errors import ClientError
from fairlead.web.colours import colours_of
from fairlead.web.courses import Course, Told, at_moment, began_before, courses
from fairlead.web.frame import Given, Page, Row, act_button, table
from fairlead.web.gantt import gantt, legend
from fairlead.web.html import EMPTY, Child, Html, a, div, element, joined, p, strong
from fairlead.web.live import Live
from fairlead.web.running import running
from fairlead.web.stairs import meter
from fairlead.web.viewer import Viewer
from fairlead.web.words import counted, duration, job_link, short_queue
from fairlead.wire.cluster import Event
from fairlead.wire.course import Course as Recorded
from fairlead.wire.fields import with_cpu
from fairlead.wire.jobs import Job
from fairlead.wire.occupancy import Occupant

SPANS = {"15m": 900_000, "1h": 3_600_000, "6h": 21_600_000, "1d": 86_400_000, "7d": 604_800_000}
RECORDED, A_PAGE = 5_000, 1_000
"""Of a recorded course so many events are looked at, and so many at once."""
RECORDS = 20_000
"""So many records are looked at, at most."""
GO_ON = 2_000
"""So many jobs are shown, at most, that began before these records and still run."""
DRAW_S = 0.5
MOST_ROWS = 400
MARGIN_MS = 5_000
"""So long before the first run the chart begins, where nothing ran earlier in the time."""
PANELS = ("gantt", "at", "queues", "users", "score")
USE = (
    ("", "whole"),
    ("Jobs", "num"),
    ("Core hours", "num"),
    ("", "bar"),
    ("Half waited at most", "num"),
    ("Nine of ten at most", "num"),
)


async def show(viewer: Viewer, live: Live, request: Request) -> None:
    """The page."""
    page = Page(viewer, live, "/past", "The past")
    asked = request.query_params.get("span", "1h")
    if viewer.of == "course":
        recorded = RecordedPast(viewer, live, page, asked if asked in SPANS else "7d")
        page.panel("gantt", "Who ran where, up to this moment", recorded.chart, kind="wide")
        page.panel("queues", "Use by queue", recorded.by_queue)
        page.panel("users", "Use by user", recorded.by_user)
        await page.open()
        return
    past = _Past(viewer, live, page, asked if asked in SPANS else "1h")
    page.panel("gantt", "Who ran where", past.chart, kind="wide", live=False)
    page.panel("at", "As it was", past.at, kind="wide", live=False)
    page.panel("queues", "Use by queue", past.by_queue, live=False)
    page.panel("users", "Use by user", past.by_user, live=False)
    page.panel("score", "Did forecasts come true?", past.score, kind="wide", live=False)
    page.besides.append(past.read)
    page.acts |= {"at": past.look_at, "again": past.again}
    await page.open()


class _Past:
    """What one page shows."""

    def __init__(self, viewer: Viewer, live: Live, page: Page, span_: str) -> None:
        self.viewer, self.live, self.page, self.span = viewer, live, page, span_
        self._events: list[Told] = []
        self._named: Mapping[str, Job | Occupant] = {}
        self._is_read = False
        self._why_not = ""
        """Why not all of it could be read."""
        self._since_ms: int | None = None
        """The first moment of which the records were looked at; None: they reach back to the beginning."""
        self._shown: Html = EMPTY
        self._set_window()

    def _set_window(self) -> None:
        self.end_ms = time.time_ns() // 1_000_000
        self.begin_ms = self.end_ms - SPANS[self.span]

    def found(self) -> list[Course]:
        """The courses of the window, as far as they are read."""
        found = courses(self._events)
        for key, known in self._named.items():
            if key in found and not found[key].user:
                course = found[key]
                course.user, course.name, course.queue, course.resources = (
                    known.user,
                    known.name,
                    known.queue,
                    known.resources,
                )
                if isinstance(known, Job):
                    course.submitted_after_all(known.submitted_at_ms)
        return [course for course in found.values() if self._within(course)]

    def _within(self, course: Course) -> bool:
        if any(run.begin_ms < self.end_ms and (run.end_ms or self.end_ms) > self.begin_ms for run in course.runs):
            return True
        waits = course.waits_since_ms is not None and (course.waits_until_ms or self.end_ms) >= self.begin_ms
        return waits or (course.submitted_ms is not None and course.submitted_ms >= self.begin_ms)

    async def read(self) -> None:
        """Read what happened, and draw it as it comes; where that cannot be done, it is said."""
        self._why_not = ""
        try:
            await self._read()
        except ClientError as error:
            self._why_not = f"What happened could not be read: {error.message}"
        self._is_read = True
        await self.page.redraw(*PANELS)

    async def _read(self) -> None:
        seq = (await self.viewer.client.changes()).seq
        drawing = asyncio.create_task(self._draw())
        try:
            await self._take(seq)
            if seq > RECORDS:
                await self._add_what_goes_on()
            if not all(course.user or key in self._named for key, course in courses(self._events).items()):
                jobs = {job.key: job async for job in self.viewer.client.jobs(parts=True, limit=5000)}
                self._named = {**jobs, **self._named}
                seen = courses(self._events)
                ended = [job for key, job in jobs.items() if key in seen and not seen[key].runs]
                self._events = [*began_before(ended, self._since_ms or 0), *self._events]
        finally:
            drawing.cancel()

    async def _draw(self) -> None:
        drawn = 0
        while True:
            await asyncio.sleep(DRAW_S)
            if len(self._events) != drawn:
                drawn = len(self._events)
                await self.page.redraw(*PANELS)

    async def _take(self, seq: int) -> None:
        """The events up to this record."""
        async for event in self.viewer.client.events(since=max(0, seq - RECORDS), timeout_s=30.0):
            if event.type in ("caught-up", "cut-off"):
                return
            if isinstance(event.data, dict) and event.type.startswith("job."):
                told = event.data
                self._events.append((told["at_ms"], event.type, told.get("key", ""), told.get("values", {})))

    async def _add_what_goes_on(self) -> None:
        """What began before the records that are looked at, and still runs: else a full machine would look empty."""
        self._since_ms = since_ms = self._events[0][0] if self._events else self.end_ms
        there = [each async for each in running(self.viewer, most=GO_ON)]
        self._named = {each.key: each for each in there if (each.started_at_ms or since_ms) < since_ms}
        self._events = [*began_before(there, since_ms), *self._events]

    def _said_why_not(self) -> Child:
        return p(self._why_not, class_="failed") if self._why_not else None

    def _reach(self) -> Child:
        """What is not shown, where more happened than is looked at."""
        if self._since_ms is None or self._since_ms <= self.begin_ms:
            return None
        what = f"the newest {RECORDS:,} records, from {times.moment(self._since_ms)} on"
        return p(f"Looked at: {what}, and {GO_ON:,} jobs at most that began before and run.", class_="quiet small")

    # -- panels -------------------------------------------------------------------------------------------------------

    async def chart(self) -> Html:
        """The Gantt chart, with the choice of the time."""
        choice = div(
            [
                a(words, href=f"/past?span={words}", class_="chip", aria_current=words == self.span and "true")
                for words in SPANS
            ],
            act_button("Again", "again") if self.viewer.of != "course" else None,
            class_="row",
        )
        found = self.found()
        colours = await colours_of(self.viewer, self.live)
        ran = [course for course in found if course.runs]
        begin_ms = max(
            self.begin_ms, min((run.begin_ms for course in ran for run in course.runs), default=0) - MARGIN_MS
        )
        if not ran:
            nothing = "Nothing that you may see ran in this time." if self._is_read else "What happened is being read …"
            return joined(choice, self._said_why_not(), p(nothing, class_="empty"), self._reach())
        more = (
            p(f"The newest {MOST_ROWS} of {counted(len(ran), 'job')} are drawn.", class_="quiet small")
            if len(ran) > MOST_ROWS
            else None
        )
        return joined(
            choice,
            self._said_why_not(),
            gantt(ran[-MOST_ROWS:], begin_ms, self.end_ms, colours.of),
            legend(),
            more,
            self._reach(),
        )

    async def again(self, given: Given) -> str:
        """Up to now."""
        del given
        self._set_window()
        self._events, self._is_read, self._since_ms = [], False, None
        await self.read()
        return ""

    async def at(self) -> Html:
        """A slider through the time, and what was so then."""
        slider = element(
            "input",
            id="s-at",
            type="range",
            min=self.begin_ms,
            max=self.end_ms,
            step=1000,
            value=self.end_ms,
            data_act="at",
            data_resource="moment",
        )
        return joined(
            div(
                element("label", "Moment", for_="s-at"),
                slider,
                element("output", "now", for_="s-at"),
                class_="slider long",
            ),
            div(
                self._shown
                or p(
                    "Drag to a moment: who ran and who waited then. For why, ask ",
                    element("code", "fairlead journal at"),
                    ".",
                    class_="quiet",
                ),
                aria_live="polite",
            ),
        )

    async def look_at(self, given: Given) -> str:
        """What was so at a moment."""
        at_ms = int(float(given["value"]))
        ran, waited = at_moment(self.found(), at_ms)
        colours = await colours_of(self.viewer, self.live)
        rows: list[Row] = [
            (
                course.key,
                [
                    job_link(course.key, course.name),
                    course.user,
                    colours.chip(course.queue),
                    run.node,
                    duration(at_ms - run.begin_ms),
                ],
            )
            for course, run in sorted(ran, key=lambda pair: pair[1].begin_ms)
        ]
        heads = (("Ran", ""), ("User", ""), ("Queue", ""), ("On", ""), ("For", "num"))
        names: list[Child] = []
        for course in waited[:40]:
            names += [job_link(course.key, course.name), "  "]
        self._shown = joined(
            p(strong(times.moment(at_ms)), f": {counted(len(ran), 'job')} ran, {len(waited)} waited."),
            table(heads, rows, "What ran then") if rows else None,
            p("Waited: ", names) if names else None,
        )
        await self.page.redraw("at")
        return ""

    async def by_queue(self) -> Html:
        """Core hours and waits of each queue."""
        return await self._use(lambda course: short_queue(course.queue) or "–")

    async def by_user(self) -> Html:
        """The same of each user."""
        return await self._use(lambda course: course.user or "–")

    async def _use(self, part: Callable[[Course], str]) -> Html:
        groups: dict[str, list[Course]] = {}
        for course in self.found():
            groups.setdefault(part(course), []).append(course)
        if not groups:
            return p("Nothing yet.", class_="empty")
        hours = {name: sum(self._core_hours(each) for each in mine) for name, mine in groups.items()}
        most = max(hours.values()) or 1
        rows: list[Row] = []
        for name in sorted(groups, key=lambda each: -hours[each]):
            waits = sorted(each.waited_ms for each in groups[name] if each.runs and each.submitted_ms is not None)
            middle = duration(int(median(waits))) if waits else "–"
            late = duration(waits[ceil(0.9 * len(waits)) - 1]) if waits else "–"
            words = f"{hours[name]:,.1f} core hours"
            rows.append(
                (
                    name,
                    [
                        name,
                        len(groups[name]),
                        f"{hours[name]:,.2f}",
                        meter([("used", hours[name] / most, words)], words),
                        middle,
                        late,
                    ],
                )
            )
        return table(USE, rows, "Use and waiting times")

    def _core_hours(self, course: Course) -> float:
        cores = with_cpu(dict(course.resources)).get("cpu", course.resources.get("cpu", 0)) if course.resources else 0
        ran_ms = sum(
            max(0, min(run.end_ms or self.end_ms, self.end_ms) - max(run.begin_ms, self.begin_ms))
            for run in course.runs
        )
        return float(cores) * ran_ms / 3_600_000

    async def score(self) -> Html:
        """How often forecasts were right."""
        try:
            score = await self.viewer.client.score()
        except ClientError as error:
            return p(error.message, class_="quiet")
        if score.observed is None:
            return p(f"No job of which a start was forecast has started yet. {_open(score.open)}", class_="quiet")
        parts = [
            ("used", score.inside / max(1, score.scored), f"{score.inside} when expected"),
            ("wanted", score.early / max(1, score.scored), f"{score.early} earlier"),
            ("over", score.late / max(1, score.scored), f"{score.late} later"),
        ]
        inside = (
            f"{score.observed:.0%} of {counted(score.scored, 'start')} came when expected ({score.promised:.0%} should)"
        )
        words = f"{inside}; {score.early} came earlier, {score.late} later"
        return joined(meter(parts, words, mark=score.promised), p(f"{words}. {_open(score.open)}"))


def _open(count: int) -> str:
    """Of how many forecasts it is not known yet."""
    return f"{counted(count, 'job')} with a forecast {'has' if count == 1 else 'have'} yet to start."


class RecordedPast(_Past):
    """The same of a recorded course, up to the moment that one has gone to: read again whenever that is another one."""

    async def chart(self) -> Html:
        """Who ran where."""
        await self._catch_up()
        return await _Past.chart(self)

    async def by_queue(self) -> Html:
        """Core hours and waits of each queue."""
        await self._catch_up()
        return await _Past.by_queue(self)

    async def by_user(self) -> Html:
        """The same of each user."""
        await self._catch_up()
        return await _Past.by_user(self)

    async def _catch_up(self) -> None:
        where, found, named = await self.live.shared(("past", self.span), self._recorded)
        self.end_ms, self.begin_ms = where.at_ms, max(where.begin_ms, where.at_ms - SPANS[self.span])
        if len(found) >= RECORDED:
            # What is older was not looked at: it did not stand still then.
            self.begin_ms = max(self.begin_ms, found[0].at_ms)
        told: list[Told] = [(each.at_ms, each.type, each.key, each.values) for each in found]
        self._events = [*began_before(named.values(), told[0][0] if told else where.at_ms), *told]
        self._named, self._is_read = named, True

    async def _recorded(self) -> tuple[Recorded, list[Event], dict[str, Job]]:
        """Where one is, the events before that (what ended in the time looked at began earlier), and what is there."""
        client = self.viewer.client
        where, found, after = await client.recorded(), list[Event](), ""
        while len(found) < RECORDED:
            page = await client.course_events(limit=A_PAGE, after=after or None)
            found += page.events
            after = page.next or ""
            if not after:
                break
        return where, found[::-1], {job.key: job async for job in client.jobs(limit=RECORDED)}
