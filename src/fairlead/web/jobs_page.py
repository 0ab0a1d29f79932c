"""All jobs that a viewer may see, page by page, the newest first, with the filters of `fairlead ls`.

Decides which filters there are. Never filters or counts: the service does, and gives one page.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode

from fastapi import Request

from fairlead.web.colours import Colours, colours_of, leaves, trees_of
from fairlead.web.frame import Page, Row, table
from fairlead.web.html import Child, Html, a, div, element, joined, p, span
from fairlead.web.live import Live
from fairlead.web.running import how_to_submit
from fairlead.web.viewer import Kind, Viewer
from fairlead.web.words import STATES, amounts, counted, job_link, state
from fairlead.web.words import time as moment
from fairlead.wire.jobs import Job, JobPage

ROWS = 50
HEADS = (("Job", "job"), ("State", ""), ("Queue", ""), ("Asks for", ""), ("On", ""), ("Submitted", ""), ("Why", "why"))
FIELDS: dict[Kind, tuple[tuple[str, str, str], ...]] = {
    "machine": (("user", "User", ""), ("name", "Name", "train-*"), ("tag", "Tag", "NAME=VALUE")),
    "cluster": (("namespace", "Namespace", ""), ("user", "User", ""), ("name", "Application", "")),
    "course": (("user", "User", ""), ("name", "Name", "")),
}
"""What is asked beside the state and the queue: the name of the filter, its words, and an example."""
STATES_OF: dict[Kind, tuple[str, ...]] = {
    "machine": tuple(each for each in STATES if each != "deleted"),
    "cluster": ("waiting", "running", "stopping"),
    "course": ("waiting", "running", "stopping"),
}
"""The states of what is listed: a cluster and a course list nothing that has ended."""


async def show(viewer: Viewer, live: Live, request: Request) -> None:
    """The page."""
    names = ("state", "queue", *(name for name, *_ in FIELDS[viewer.of]))
    asked = {name: value for name in names if (value := request.query_params.get(name, "").strip())}
    after = request.query_params.get("after") or None
    page = Page(viewer, live, "/jobs", "Jobs")

    async def filters() -> Html:
        return _filters(viewer, asked, [queue.path for queue in leaves(await trees_of(viewer, live))])

    async def jobs() -> Html:
        key = ("jobs", viewer.rights, after, tuple(asked.items()))
        found = await live.shared(key, lambda: viewer.client.newest_jobs(asked, limit=ROWS, after=after))
        colours = await colours_of(viewer, live, (job.queue for job in found.jobs))
        return _jobs(found, colours, viewer, asked, is_first=after is None)

    page.panel("filters", "", filters, kind="wide", live=False)
    page.panel("jobs", "", jobs, kind="wide")
    await page.open()


def _filters(viewer: Viewer, asked: Mapping[str, str], queues: list[str]) -> Html:
    def choice(name: str, words: str, values: list[str]) -> Html:
        options = [element("option", "any", value="")]
        options += [element("option", each, value=each, selected=each == asked.get(name)) for each in values]
        return _field(name, words, element("select", options, id=f"f-{name}", name=name))

    texts = [
        _field(
            name,
            words,
            element("input", id=f"f-{name}", name=name, value=asked.get(name, ""), placeholder=example or None),
        )
        for name, words, example in FIELDS[viewer.of]
    ]
    states = list(STATES_OF[viewer.of])
    return element(
        "form",
        div(choice("state", "State", states), choice("queue", "Queue", queues), texts, class_="fields"),
        div(
            element("button", "Show", type="submit", class_="main"),
            a("All of them", href="/jobs") if asked else None,
            span("* stands for any text", class_="quiet small"),
            class_="row",
        ),
        method="get",
        action="/jobs",
        class_="big",
    )


def _field(name: str, words: str, field: Html) -> Html:
    return div(element("label", words, for_=f"f-{name}"), field, class_="labelled")


def _jobs(found: JobPage, colours: Colours, viewer: Viewer, asked: Mapping[str, str], *, is_first: bool) -> Html:
    if not found.jobs:
        nothing = "No job that you may see is like this." if asked else "There are no jobs yet."
        return div(p(nothing), p(how_to_submit(viewer)) if not asked else None, class_="empty")
    rows: list[Row] = [(job.key, _row(job, colours)) for job in found.jobs]
    onward = urlencode({**asked, "after": found.next or ""})
    more = [
        a("To the newest", href=f"/jobs?{urlencode(asked)}") if not is_first else None,
        span(f"{counted(found.total, 'job')} in all, the newest first", class_="quiet"),
        a("Older ones", href=f"/jobs?{onward}") if found.next else None,
    ]
    return joined(table(HEADS, rows, "Jobs, the newest first"), div(more, class_="pager"))


def _row(job: Job, colours: Colours) -> list[Child]:
    because = job.reason.sentence if job.reason is not None else ""
    ended = span("ended ", moment(job.ended_at_ms, "ago")) if job.ended_at_ms else ""
    parts = counted(job.parts.count, "part") if job.parts is not None else ""
    return [
        div(
            job_link(job.key, job.name),
            div(" · ".join(each for each in (job.user, parts) if each), class_="quiet small"),
        ),
        state(job.state),
        colours.chip(job.queue) if job.queue else "",
        amounts(job.resources),
        job.node,
        div(moment(job.submitted_at_ms, "ago"), div(ended, class_="quiet small") if ended else None),
        because[:1].upper() + because[1:],
    ]
