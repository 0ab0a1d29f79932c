"""The frame of every page: navigation, title, panels that stay up to date, and what a viewer does on them.

Decides when a panel is drawn anew (when something changed, and now and then) and that a browser gets only what
differs. Never knows what a panel shows. Invariant: a panel that cannot be drawn says why in its place, and the others
go on; what a viewer does is answered in words, whatever comes of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from nicegui import background_tasks, ui
from nicegui.client import Client
from nicegui.events import GenericEventArguments

from fairlead.client.errors import ClientError, Refused
from fairlead.web.course_bar import CourseBar
from fairlead.web.html import EMPTY, Child, Html, a, button, div, element, h1, joined, p, section, span
from fairlead.web.live import SOMEBODY_WAITS, UNKNOWN, Live
from fairlead.web.rows import changed_rows
from fairlead.web.viewer import Kind, Viewer

log = logging.getLogger("fairlead.web")
PLACES = (
    ("/line", "The line"),
    ("/now", "Now"),
    ("/jobs", "Jobs"),
    ("/queues", "Queues"),
    ("/submit", "Submit"),
    ("/past", "The past"),
    ("/policy", "Policy"),
    ("/happened", "What happened"),
)
NOT_THERE: dict[Kind, dict[str, str]] = {
    "machine": {"/happened": "What happened is a page of recorded courses; of a machine The past shows it."},
    "cluster": {
        "/happened": "What happened is a page of recorded courses; kubectl get events has that of the last hour.",
        "/submit": "Pods are submitted to the API server of the cluster, as with kubectl apply.",
        "/past": "The scheduler of a cluster keeps no events; kubectl get events has those of the last hour.",
        "/policy": "The queue file of a cluster is changed where it is kept, as with kubectl edit configmap.",
    },
    "course": {
        "/submit": "What is over takes in no more jobs.",
        "/policy": "Which queue file would have been better is a question for fairlead sim compare.",
    },
}
"""Pages that what is looked at does not have, and what is there instead."""
NOT_OF_A_GUEST = {
    "/jobs": "Jobs are listed for those whose they are; sign in.",
    "/submit": "Sign in to submit jobs.",
    "/past": "What ran is told to those whose it was; sign in.",
    "/policy": "The queue file is for those who are known here; sign in.",
}
AT_LEAST_EVERY_S = 15.0
Draw = Callable[[], Awaitable[Html]]
Given = Mapping[str, Any]
Act = Callable[[Given], Awaitable[str]]
"""What a viewer does, with what the browser says of it; a sentence about what came of it, or empty."""


Heads = Sequence[tuple[str, str]]
"""Of each column of a table its words and its class."""
Row = tuple[str, Sequence[Child]]
"""What names a row, so that it is known again, and its cells."""


Call = tuple[Any, ...]
"""A function of `static/pages.js`, and what it is given."""
WITH_PANEL: ContextVar[list[Call] | None] = ContextVar("with the panel", default=None)
"""What is called once the panel that is being drawn is shown; None: with the page."""


class Gone(Exception):
    """The page is about something that is not there (any more): one sentence."""


@dataclass(slots=True)
class Panel:
    """A part of a page. `live`: drawn anew when something changes."""

    id: str
    title: str
    draw: Draw
    kind: str = ""
    live: bool = True
    shown: Html = EMPTY


class Page:
    """One open page of one viewer."""

    def __init__(self, viewer: Viewer, live: Live, here: str, title: str) -> None:
        self.viewer, self.live, self.here, self.title = viewer, live, here, title
        self.panels: list[Panel] = []
        self.acts: dict[str, Act] = {}
        self.besides: list[Callable[[], Coroutine[Any, Any, None]]] = []
        """What goes on beside, while the page is open."""
        self._after: list[Call] = []
        self._client: Client | None = None
        self._following: asyncio.Task[None] | None = None
        self._known_until = time.monotonic() + AT_LEAST_EVERY_S
        if viewer.of == "course":
            bar = CourseBar(viewer, live, self.after_showing)
            self.panel("course", "", bar.draw, kind="wide bar")
            self.acts |= bar.acts

    def panel(self, id_: str, title: str, draw: Draw, *, kind: str = "", live: bool = True) -> None:
        """Have one more panel."""
        self.panels.append(Panel(id_, title, draw, kind, live))

    # -- open -----------------------------------------------------------------------------------------------------

    async def open(self, lead: Html = EMPTY) -> None:
        """Draw everything, then keep it up to date while it is open. `lead`: what stands before the panels."""
        await asyncio.gather(*(self._draw(panel) for panel in self.panels))
        drawn = [
            section(
                element("h2", panel.title) if panel.title else None,
                div(panel.shown, id=f"p-{panel.id}", class_="body"),
                class_=f"panel {panel.kind}",
                aria_label=panel.title or self.title,
            )
            for panel in self.panels
        ]
        ui.html(self._shell(joined(lead, div(drawn, class_="panels"))), sanitize=False)
        ui.on("act", self._on_act)
        self._client = ui.context.client
        self._following = background_tasks.create(self._follow(self._client), name=f"page {self.here}")

    def _shell(self, content: Html) -> Html:
        links = [
            a(name, href=path, aria_current=path == self.here and "page")
            for path, name in PLACES
            if path not in not_there(self.viewer)
        ]
        who = div(
            span(self.viewer.user or "a guest", class_="user"),
            span(" administrator", class_="quiet") if self.viewer.is_admin else None,
            element(
                "form",
                button("Sign in" if self.viewer.is_guest else "Sign out", type="submit", class_="plain"),
                method="post",
                action="/sign-out",
            ),
            class_="who",
        )
        theme = button("◐", class_="plain", data_theme_button=True, aria_label="Light or dark", title="Light or dark")
        return div(
            a("Skip to the content", href="#content", class_="skip"),
            element(
                "header",
                a("Fairlead", href="/line", class_="brand"),
                element("nav", links, aria_label="Pages"),
                div(who, theme, class_="corner"),
            ),
            element(
                "main",
                div(h1(self.title), div("", id="p-lost", role="status"), class_="head"),
                content,
                id="content",
                tabindex="-1",
            ),
            div("", id="say", role="status", aria_live="polite"),
            class_="shell",
        )

    async def _draw(self, panel: Panel) -> bool:
        """Draw it; whether it looks different now."""
        try:
            shown = await panel.draw()
        except Gone as gone:
            shown = p(str(gone), class_="empty")
        except ClientError as error:
            shown = p("This cannot be shown at the moment: ", error.message, class_="failed")
        except Exception:
            log.exception("a fault in the panel %s", panel.id)
            shown = p(
                "A fault in the program keeps this from being shown; the log of the service says which.",
                class_="failed",
            )
        changed = shown != panel.shown
        panel.shown = shown
        return changed

    # -- up to date -----------------------------------------------------------------------------------------------

    async def _follow(self, client: Client) -> None:
        SOMEBODY_WAITS.set("")
        try:
            await client.connected(timeout=30)
        except TimeoutError:
            return
        self.live.join(self, self.viewer.client)
        self._run_after()
        besides = [asyncio.create_task(each()) for each in self.besides]
        # Each by itself: what costs much has to wait for its next look, and keeps nothing else from being up to date.
        besides += [asyncio.create_task(self._keep(panel, client)) for panel in self.panels if panel.live]
        seq = -1
        try:
            while client.id in Client.instances:
                seq = await self.live.after(seq, AT_LEAST_EVERY_S)
                if not client.has_socket_connection:
                    continue
                if why_over := await self._is_over():
                    self.run("lost", f"{why_over[:1].upper()}{why_over[1:]}. This is how it was.")
                    return
                lost = self.live.lost
                self.run("lost", lost and f"The service does not answer; this is how it was. {lost}")
        finally:
            self.live.leave(self)
            for each in besides:
                each.cancel()

    async def _keep(self, panel: Panel, client: Client) -> None:
        """Keep a panel up to date."""
        seq = -1
        while True:
            seq = await self.live.after(seq, AT_LEAST_EVERY_S)
            if client.has_socket_connection and not self.live.lost:  # Else nobody looks, or there is nothing to see.
                await self._show(panel)

    async def _is_over(self) -> str:
        """Why the session is, asked now and then, since answers are shared with other sessions; empty: it is not."""
        if time.monotonic() >= self._known_until:
            self._known_until = time.monotonic() + AT_LEAST_EVERY_S
            try:
                await self.viewer.client.changes()
            except ClientError as no:
                # That it does not answer at the moment is said elsewhere.
                return no.message if isinstance(no, Refused) and no.status == UNKNOWN else ""
        return ""

    async def redraw(self, *ids: str) -> None:
        """Draw these now."""
        for panel in self.panels:
            if panel.id in ids:
                await self._show(panel)

    async def _show(self, panel: Panel) -> None:
        before, after = panel.shown, list[Call]()
        outer = WITH_PANEL.set(after)
        try:
            is_other = await self._draw(panel)
        finally:
            WITH_PANEL.reset(outer)
        if is_other:
            rows = changed_rows(before, panel.shown)
            self.run(*(("show", panel.id, panel.shown) if rows is None else ("rows", panel.id, rows)))
        for each in after:
            self.run(*each)

    def after_showing(self, name: str, *given: Any) -> None:
        """Call a function of `static/pages.js` once what is being drawn is there."""
        with_panel = WITH_PANEL.get()
        (self._after if with_panel is None else with_panel).append((name, *given))

    def _run_after(self) -> None:
        """What waited for the page to be there."""
        after, self._after = self._after, []
        for each in after:
            self.run(*each)

    def run(self, name: str, *given: Any) -> None:
        """Call a function of `static/pages.js` in the browser."""
        if self._client is not None:
            told = ", ".join(json.dumps(each).replace("<", "\\u003c") for each in given)
            # Sent at once; nobody waits for an answer, for there is none.
            _ = self._client.run_javascript(f"fairlead.{name}({told})")

    # -- what a viewer does ---------------------------------------------------------------------------------------

    async def _on_act(self, event: GenericEventArguments) -> None:
        SOMEBODY_WAITS.set("acting")
        given = event.args if isinstance(event.args, dict) else {}
        act = self.acts.get(str(given.get("act", "")))
        if act is None:
            return
        try:
            said, failed = await act(given), False
        except (ClientError, Gone, ValueError) as error:
            said, failed = getattr(error, "message", "") or str(error), True
        except Exception:
            log.exception("a fault in %s", given.get("act"))
            said, failed = "A fault in the program kept this from being done; the log of the service says which.", True
        if said:
            self.run("say", said, failed)
        self.run("done", given.get("token", ""), failed)


def act_button(words: str, act: str, *, confirm: str = "", kind: str = "", label: str = "", **given: str | int) -> Html:
    """A button that does something on this page. `confirm`: what is asked before it is done."""
    data = {f"data_{name}": value for name, value in given.items()}
    return button(words, class_=kind, data_act=act, data_confirm=confirm or None, aria_label=label or None, **data)


def table(heads: Heads, rows: Sequence[Row], caption: str) -> Html:
    """A table; on a phone each row is a list."""
    head = element("tr", [element("th", words, scope="col", class_=kind or None) for words, kind in heads])
    body = [
        element(
            "tr",
            [
                element("td", cell, class_=kind or None, data_label=words or None)
                for cell, (words, kind) in zip(cells, heads, strict=True)
            ],
            data_k=key,
        )
        for key, cells in rows
    ]
    return div(
        element("table", element("caption", caption, class_="unseen"), element("thead", head), element("tbody", body)),
        class_="scroll",
        tabindex="0",
        role="region",
        aria_label=caption,
    )


def not_there(viewer: Viewer) -> dict[str, str]:
    """The pages that are not there for a viewer, each with what there is instead."""
    return NOT_THERE[viewer.of] | (NOT_OF_A_GUEST if viewer.is_guest else {})


@contextlib.contextmanager
def found(what: str) -> Any:
    """Turn a refusal of what is looked for into a sentence on the page."""
    try:
        yield
    except ClientError as error:
        raise Gone(f"{what}: {error.message}") from error
