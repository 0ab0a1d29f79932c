"""The line: what starts next, in order, where its priority comes from, why it waits, when it is expected to start.

Decides what stands in a row. Never the order: that is the scheduler's. Beside it stands what runs, since that is what
is waited for.
"""

from __future__ import annotations

from fastapi import Request

from fairlead.client.errors import ClientError
from fairlead.web.cells import ends
from fairlead.web.colours import Colours, colours_of, trees_of
from fairlead.web.forecasts import line_forecast
from fairlead.web.frame import Page, table
from fairlead.web.html import EMPTY, Child, Html, a, div, element, joined, p, span, strong
from fairlead.web.live import Live
from fairlead.web.running import how_to_submit, running
from fairlead.web.stairs import interval, meter, stairs
from fairlead.web.viewer import Viewer
from fairlead.web.words import amount, amounts, counted, job_link
from fairlead.web.words import time as moment
from fairlead.wire.cluster import Queue
from fairlead.wire.occupancy import Occupant
from fairlead.wire.pages import ExpectedStart, InLine, LinePage

ROWS = 50
RUNNING = 40
HEADS = (
    ("Place", "num"),
    ("Job", "job"),
    ("Queue", ""),
    ("Asks for", ""),
    ("Priority", ""),
    ("Why it waits", "why"),
    ("Expected to start", "expected"),
)


async def show(viewer: Viewer, live: Live, request: Request) -> None:
    """The page."""
    begin = request.query_params.get("after", "")
    after = begin if begin.isascii() and begin.isdecimal() else None
    page = Page(viewer, live, "/line", "The line")

    async def line() -> Html:

        async def ask() -> LinePage:
            return await viewer.client.line(limit=ROWS, after=after)

        found = await live.shared(("line", viewer.rights, after), ask)
        if not found.line:
            return _nothing_waits(viewer)
        colours = await colours_of(viewer, live, (each.queue for each in found.line))
        return await live.derived(("line", viewer.rights, after), _line, found, colours, line_forecast(live, viewer))

    async def runs() -> Html:
        trees, found = await trees_of(viewer, live), await _running(viewer, live)
        colours = await colours_of(viewer, live, (each.queue for each in found or ()))
        return await live.derived(("runs", viewer.rights), _runs, trees, found, colours)

    page.panel("line", "What starts next", line, kind="main")
    page.panel("runs", "What runs", runs, kind="side")
    await page.open()


def _nothing_waits(viewer: Viewer) -> Html:
    return div(
        p(strong("Nothing waits.")),
        p("Whatever is submitted now starts at once, if there is room for it.") if viewer.of != "course" else None,
        p(how_to_submit(viewer)),
        class_="empty",
    )


def _line(found: LinePage, colours: Colours, expected: tuple[int, dict[str, ExpectedStart]] | None) -> Html:
    made_ms, starts = expected or (0, {})
    medians = [at.latest_ms or at.median_ms for at in starts.values()]
    horizon_ms = max([60_000, *(ms - made_ms for ms in medians if ms is not None)])
    rows = [(each.key, _row(each, colours, starts, made_ms, horizon_ms)) for each in found.line]
    first, last = found.line[0].place, found.line[-1].place
    part = f"{first:,} to {last:,} of " if last - first + 1 < found.total else ""
    more = [
        a("To the front", href="/line") if first > 1 else None,
        span(f"{part}{counted(found.total or last, 'job')} in line", class_="quiet"),
        # By their places: an open page does not move to the front with the jobs that it began with.
        a(f"The next {ROWS}", href=f"/line?after={last}") if found.next else None,
    ]
    return joined(
        table(HEADS, rows, "What waits for room, in the order in which it is looked at"), div(more, class_="pager")
    )


def _row(
    each: InLine, colours: Colours, starts: dict[str, ExpectedStart], made_ms: int, horizon_ms: int
) -> list[Child]:
    why = (
        span(each.reason.sentence[:1].upper() + each.reason.sentence[1:])
        if each.reason is not None
        else span("It has just arrived" if each.visible else f"Only {each.user} sees why", class_="quiet")
    )
    return [
        each.place,
        div(job_link(each.key, each.name, visible=each.visible), div(each.user, class_="quiet small")),
        colours.chip(each.queue),
        amounts(each.resources),
        stairs(each.priority, each.steps, owed=each.owed),
        div(why, div("waits ", moment(each.submitted_at_ms, "since"), class_="quiet small")),
        interval(starts.get(each.key), made_ms, horizon_ms) if made_ms else span("is being worked out", class_="quiet"),
    ]


# -- beside ---------------------------------------------------------------------------------------------------------


def _use(trees: list[Queue]) -> Html:
    """How much of everything is in use."""
    if not trees:
        return EMPTY
    root = trees[0]
    rows = []
    for name, whole in sorted((root.max or {}).items()):
        used = root.allocated.get(name, 0)
        words = f"{amount(name, used)} of {amount(name, whole)} {name} in use"
        if whole:
            rows.append(
                div(
                    span(name, class_="name"),
                    meter([("used", used / whole, words)], words),
                    span(f"{amount(name, used)} of {amount(name, whole)}", class_="quiet small number"),
                    class_="use",
                )
            )
    return div(rows, class_="uses")


async def _running(viewer: Viewer, live: Live) -> list[Occupant] | None:
    async def ask() -> list[Occupant]:
        return [each async for each in running(viewer, most=RUNNING)]

    try:
        return await live.shared(("running", viewer.rights), ask)
    except ClientError:
        return None


def _runs(trees: list[Queue], found: list[Occupant] | None, colours: Colours) -> Html:
    if found is None:
        return _use(trees)
    if not found:
        return joined(_use(trees), p("Nothing runs.", class_="empty"))
    rows = [
        element(
            "li",
            div(job_link(each.key, each.name, visible=each.visible), " ", colours.chip(each.queue)),
            div(f"{each.user} · {amounts(each.resources)}", class_="quiet small"),
            div("since ", moment(each.started_at_ms, "since"), " · ", ends(each), class_="quiet small"),
            data_k=each.key,
        )
        for each in found
    ]
    more = a("All on the page Now", href="/now") if len(found) >= RUNNING else None
    return joined(_use(trees), element("ul", rows, class_="runs"), more)
