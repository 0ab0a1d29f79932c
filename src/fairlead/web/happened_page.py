"""What happened in a recorded course up to its moment: each thing that was decided, for whom, and by which rule.

Decides the words. Never what was decided: that is what the journal says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fastapi import Request

from fairlead import times
from fairlead.web.frame import Page, Row, table
from fairlead.web.html import Child, Html, div, joined, p, span
from fairlead.web.live import Live
from fairlead.web.viewer import Viewer
from fairlead.web.words import amounts, job_link
from fairlead.wire.cluster import Event, EventPage
from fairlead.wire.stopped import in_brackets

SHOWN = 200
HEADS = (("At", ""), ("", ""), ("Job", ""), ("", "why"))
SIGNS = {
    "job.submitted": "+",
    "job.placed": "▦",
    "job.allocated": "▶",
    "job.evicting": "↯",
    "job.released": "■",
    "job.ended": "■",
    "job.retried": "↻",
    "job.reserved": "◧",
    "job.unreserved": "◨",
    "job.rejected": "✕",
}


async def show(viewer: Viewer, live: Live, request: Request) -> None:
    """The page."""
    page = Page(viewer, live, "/happened", "What happened")
    key = request.query_params.get("job") or None

    async def events() -> Html:
        found = await live.shared(("happened", key), lambda: viewer.client.course_events(limit=SHOWN, key=key))
        return happened(found)

    page.panel("happened", f"Of job {key}" if key else "", events, kind="wide")
    await page.open()


def happened(found: EventPage) -> Html:
    """All of it, the newest first."""
    if not found.events:
        return p("Nothing had happened yet.", class_="empty")
    newest = found.events[0].seq
    rows: list[Row] = [
        (f"{each.seq}/{at}", _row(each, is_newest=each.seq == newest)) for at, each in enumerate(found.events)
    ]
    more = p(f"The newest {SHOWN} are shown.", class_="quiet small") if len(found.events) == SHOWN else None
    return joined(table(HEADS, rows, "What happened, the newest first"), more)


def _row(event: Event, *, is_newest: bool) -> list[Child]:
    said = sentence(event.type, event.values)
    return [
        div(times.moment(event.at_ms), div(f"record {event.seq:,}", class_="quiet small")),
        span(SIGNS.get(event.type, "·"), aria_hidden="true", class_="sign"),
        job_link(event.key) if event.key else "",
        span(said, class_="newest" if is_newest else None),
    ]


def sentence(kind: str, values: Mapping[str, Any]) -> str:
    """What happened, in words."""
    if (words := WORDS.get(kind)) is not None:
        return words(values)
    told = ", ".join(f"{name} {value}" for name, value in values.items() if value not in ("", None, {}, []))
    return f"{kind.replace('.', ' ').replace('-', ' ')} {told}".strip()


def _submitted(values: Mapping[str, Any]) -> str:
    by = f" by {values['user']}" if values.get("user") else ""
    return f"was submitted{by}: it asks for {amounts(values.get('resources'))}"


def _stopped(values: Mapping[str, Any]) -> str:
    whom, rule = str(values.get("on_behalf_of", "")).rpartition("/")[2], str(values.get("rule", ""))
    said = f"was told to stop on {values.get('node', '')}"
    if whom:
        said += f" to make room for {whom}"
    return f"{said}{in_brackets(rule)}"


WORDS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "job.submitted": _submitted,
    "application.submitted": lambda said: f"was brought by {said['user']}" if said.get("user") else "came",
    "job.placed": lambda said: f"was taken into queue {said['queue']}",
    "job.allocated": lambda said: f"was given room on {said['node']}: it was its turn, and it fits there",
    "job.evicting": _stopped,
    "job.released": lambda said: f"left {said['node']}" if said.get("node") else "left the line",
    "job.retried": lambda said: f"is tried again, attempt {said['attempt']}, from {times.moment(said['due_ms'])} on",
    "job.reserved": lambda said: f"room on {said['node']} is kept for it",
    "job.unreserved": lambda said: f"room on {said['node']} is no longer kept for it",
    "job.overdue": lambda said: f"should have left {said['node']} by now: its room is counted on no more",
    "job.priority": lambda said: f"has priority {said['new']} instead of {said['old']}, by {said['who']}",
    "job.rejected": lambda said: f"was refused: {said['reason'].get('sentence', '')}",
    "node.added": lambda said: f"node {said['node']} came",
    "node.removed": lambda said: f"node {said['node']} is gone",
    "node.draining": lambda said: f"node {said['node']} takes no new work",
    "node.open": lambda said: f"node {said['node']} takes work again",
    "config.applied": lambda _: "a queue file came into force",
}
