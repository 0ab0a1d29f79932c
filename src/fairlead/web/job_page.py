"""A job: why it waits and when it starts, its story, what it writes, and all that may be done with it.

Decides which question is answered in which panel. Never whether the viewer may do a thing: the service says that when
it is tried, and here what came of it.
"""

from __future__ import annotations

import asyncio
import shlex
from urllib.parse import unquote

from fastapi import Request

from fairlead.client.errors import ClientError, Refused
from fairlead.web.changes import ways
from fairlead.web.colours import colours_of
from fairlead.web.frame import Given, Gone, Page, act_button, found, table
from fairlead.web.happened_page import happened
from fairlead.web.html import EMPTY, Html, a, button, code, dd, div, dl, dt, element, h3, joined, p, span, strong
from fairlead.web.job_acts import add_acts, buttons
from fairlead.web.live import Live
from fairlead.web.output import Output
from fairlead.web.parts import parts
from fairlead.web.stairs import NOT_FARTHER, UNKNOWN, interval
from fairlead.web.story import story
from fairlead.web.verdict import details, verdict
from fairlead.web.viewer import Viewer
from fairlead.web.words import amount, amounts, counted, duration, job_link, state
from fairlead.web.words import time as moment
from fairlead.wire.jobs import JobDetails
from fairlead.wire.pages import ExpectedStart
from fairlead.wire.questions import When
from fairlead.wire.verdicts import Why

NOT_FOUND = 404
FORECAST_S = 2.0
AGAIN_S, SOONEST_S = 60.0, 10.0
ENOUGH = 10
"""From so many checked forecasts on it is said how many were right."""


async def show(viewer: Viewer, live: Live, request: Request) -> None:
    """The page."""
    key = unquote(request.path_params["key"])
    page = Page(viewer, live, "/line", f"Job {key}")
    one = _Job(viewer, live, key, page)
    if await one.is_missing():
        page.panel("head", "", one.missing, kind="wide", live=False)
        await page.open()
        return
    page.panel("head", "", one.head, kind="wide")
    page.panel("why", "Why", one.why, kind="wide")
    if viewer.of == "machine":
        page.panel("parts", "", one.parts, kind="wide")
        page.panel("output", "What it writes", one.output.frame, kind="wide", live=False)
        page.besides.append(one.output.follow)
    if viewer.of == "cluster":
        page.panel("elsewhere", "What the cluster knows of it", one.elsewhere, live=False)
    elif viewer.of == "course":
        page.panel("happened", "What happened to it", one.happened)
    else:
        page.panel("story", "Its story", one.story)
    page.panel("facts", "What it asked for, what it used", one.facts)
    page.besides.append(one.forecast)
    add_acts(page, key)
    page.acts["changes"] = one.find_changes
    page.acts["again"] = one.forecast_again
    await page.open()


class _Job:
    """One job on one page."""

    def __init__(self, viewer: Viewer, live: Live, key: str, page: Page) -> None:
        self.viewer, self.live, self.key, self.page = viewer, live, key, page
        self.output = Output(viewer, key, page)
        self._when: When | str | None = None
        self._ways: Html = EMPTY

    async def _details(self) -> JobDetails:
        with found(f"Job {self.key}"):
            return await self.live.shared(
                ("job", self.viewer.rights, self.key), lambda: self.viewer.client.job(self.key)
            )

    async def is_missing(self) -> bool:
        """Whether there is no such job for this viewer."""
        try:
            await self._details()
        except Gone as gone:
            return isinstance(gone.__cause__, Refused) and gone.__cause__.status == NOT_FOUND
        except ClientError:
            pass  # Each panel says so in its place.
        return False

    async def missing(self) -> Html:
        """That there is none, and where to look."""
        return div(
            p(strong(f"There is no job {self.key} that you may see.")),
            p("All that you may see are on the page ", a("Jobs", href="/jobs"), "."),
            class_="empty",
        )

    # -- panels -------------------------------------------------------------------------------------------------------

    async def head(self) -> Html:
        """What it is and where it stands, and what may be done."""
        job = await self._details()
        colours = await colours_of(self.viewer, self.live, (job.queue,))
        times = [span("submitted ", moment(job.submitted_at_ms, "ago"))]
        if job.started_at_ms is not None:
            times.append(span("started ", moment(job.started_at_ms, "ago")))
        if job.ended_at_ms is not None:
            times.append(span("ended ", moment(job.ended_at_ms, "ago")))
        where = f"on {job.node}" if job.node else ""
        status = f"exit status {job.exit_code}" if job.exit_code is not None else ""
        return joined(
            div(
                state(job.state),
                strong(job.name or "without a name"),
                colours.chip(job.queue),
                span(job.user),
                span(amounts(job.resources), class_="number"),
                span(where) if where else None,
                span(status) if status else None,
                class_="facts",
            ),
            div(
                *((each, " · ") if at < len(times) - 1 else each for at, each in enumerate(times)), class_="quiet small"
            ),
            buttons(job, self.viewer) if self.viewer.acts else None,
        )

    async def why(self) -> Html:
        """Why it is in its state, when it starts, and what would start it."""

        async def ask() -> Why:
            return await self.viewer.client.why(self.key)

        with found(f"Job {self.key}"):
            told = await self.live.shared(("why", self.viewer.rights, self.key), ask)
        sentence = told.sentence[:1].upper() + told.sentence[1:]
        head = p(strong(sentence.rstrip("."), "."), class_="answer")
        if told.state != "waiting":
            return joined(head, self._parts(told))
        return joined(
            head,
            details(told.verdict),
            self._parts(told),
            self._expected(),
            verdict(told.verdict),
            self._ways_part(),
        )

    def _parts(self, told: Why) -> Html:
        rows = [
            (each.indices, [each.indices, counted(each.count, "part"), state(each.state), each.sentence])
            for each in told.parts
        ]
        heads = (("Parts", ""), ("How many", ""), ("State", ""), ("Why", ""))
        return table(heads, rows, "Parts of the array by reason") if rows else EMPTY

    def _expected(self) -> Html:
        if self._when is None:
            return p(span("When it starts is being worked out …", class_="quiet"))
        if isinstance(self._when, str):
            return p(self._when, class_="quiet")
        at = self._when
        horizon_ms = max(60_000, int(1.15 * ((at.latest_ms or at.median_ms or at.made_ms) - at.made_ms)))
        bar = interval(
            ExpectedStart(
                key=self.key,
                median_ms=at.median_ms,
                earliest_ms=at.earliest_ms,
                latest_ms=at.latest_ms,
                known=at.known,
            ),
            at.made_ms,
            horizon_ms,
        )
        return div(
            h3("When it starts"),
            bar,
            p(_rests_on(at), class_="quiet small"),
            element(
                "details",
                element("summary", "What this rests on"),
                element("ul", [element("li", each) for each in at.assumptions]),
            ),
        )

    def _ways_part(self) -> Html:
        return div(
            h3("What would start it"),
            self._ways
            or p(
                act_button("Find the smallest changes", "changes"),
                span(" takes up to ten seconds", class_="quiet small"),
            ),
        )

    async def parts(self) -> Html:
        """Of an array."""
        return await parts(self.viewer, self.live, self.key) if (await self._details()).parts is not None else EMPTY

    async def story(self) -> Html:
        """What happened to it."""
        return story(await self._details())

    async def happened(self) -> Html:
        """In a recorded course, up to its moment."""
        return happened(await self.viewer.client.course_events(limit=100, key=self.key))

    async def elsewhere(self) -> Html:
        """How to ask the API server for what only that knows of a pod."""
        namespace, _, name = self.key.rpartition("/")
        asked = f"{name} -n {namespace or 'default'}"
        rows = (("What it writes", f"kubectl logs {asked}"), ("What happened to it", f"kubectl describe pod {asked}"))
        return dl(
            [(dt(what), dd(code(words), " ", button("Copy", data_copy=words))) for what, words in rows], class_="pairs"
        )

    async def facts(self) -> Html:
        """What it is made of."""
        job = await self._details()
        rows: list[tuple[str, object]] = [
            ("command", code(shlex.join(job.command)) if job.command else ""),
            ("directory", job.cwd),
            ("asked for", amounts(job.resources)),
            ("has", ", ".join(f"GPU {number}" for number in job.gpus)),
            ("priority", f"{job.priority}" + (f" (class {job.priority_class})" if job.priority_class else "")),
            ("time limit", duration(job.time_limit_ms) if job.time_limit_ms else "none"),
            ("signal before that", job.limit_signal),
            ("grace", duration(job.grace_ms) if job.grace_ms is not None else ""),
            ("tried again", f"at most {counted(job.retry.limit, 'time')}" if job.retry and job.retry.limit else ""),
            ("waits for", ", ".join(f"{each.key} ({each.awaited})" for each in job.after)),
            ("begins", moment(job.begin_at_ms, "date") if job.begin_at_ms else ""),
            ("held by", job.held_by),
            ("processor time", duration(job.cpu_ms) if job.cpu_ms else ""),
            ("memory now", amount("memory", job.memory_bytes) if job.memory_bytes is not None else ""),
            ("memory at most", amount("memory", job.peak_memory_bytes) if job.peak_memory_bytes else ""),
            ("tags", ", ".join(f"{name}={value}" for name, value in job.tags.items())),
            ("labels", ", ".join(f"{name}={value}" for name, value in job.labels.items())),
            ("repeats", job_link(job.rerun_of) if job.rerun_of else ""),
            ("application", job.application),
        ]
        return dl([(dt(name), dd(value)) for name, value in rows if value], class_="pairs")  # type: ignore[arg-type]

    # -- questions ----------------------------------------------------------------------------------------------------

    async def forecast(self) -> None:
        """Work out when it starts, as long as it waits, not too often."""
        while True:
            try:
                job = await self._details()
                if job.state == "waiting":
                    self._when = await self.viewer.client.when(self.key, seconds=FORECAST_S)
                    await self.page.redraw("why")
            except Refused as no:
                self._when = no.message[:1].upper() + no.message[1:] + "."
                await self.page.redraw("why")
            except ClientError:
                self._when = self._when or "When it starts cannot be said at the moment."
                await self.page.redraw("why")
            except Gone:
                return
            await asyncio.sleep(self._until_next())

    def _until_next(self) -> float:
        """Seconds until the next forecast: a minute, less where this one is overtaken before."""
        if not isinstance(self._when, When) or self._when.latest_ms is None:
            return AGAIN_S
        return min(AGAIN_S, max(SOONEST_S, (self._when.latest_ms - self._when.made_ms) / 1000))

    async def forecast_again(self, given: Given) -> str:
        """At once."""
        del given
        self._when = await self.viewer.client.when(self.key, seconds=FORECAST_S)
        await self.page.redraw("why")
        return ""

    async def find_changes(self, given: Given) -> str:
        """What would start it."""
        del given
        told = await self.viewer.client.why(self.key, changes=True)
        self._ways = ways(told, self.viewer)
        await self.page.redraw("why")
        return ""


def _rests_on(at: When) -> str:
    """How sure a forecast is, in a sentence or three."""
    if not at.known:
        return UNKNOWN
    if at.never >= 1:
        return "However what runs may go on, it did not start: something has to change (see below)."
    if at.median_ms is None:
        return (
            NOT_FARTHER
            if at.broken_off
            else f"It did not start in {at.never:.0%} of the ways in which what runs may go on."
        )
    ahead = f"{counted(at.ahead, 'job') if at.ahead else 'No job'} ahead of it."
    score = at.score
    right = (
        f"So far {score.observed:.0%} of {counted(score.scored, 'forecast')} were right."
        if score.observed is not None and score.scored >= ENOUGH
        else "How often that is right cannot be said yet: too few jobs have started since."
    )
    return f"{ahead} Four of five starts should be inside the bar. {right}"
