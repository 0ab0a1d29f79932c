"""Now: the machine or cluster as a picture, who has which part of it, since when and until when at most.

Decides when nodes are shown one by one with their cells, and when as a map of shares (from `MANY` on). Never knows more
of others' jobs than whose they are and how long they may last, which everybody may.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from fastapi import Request

from fairlead.web.cells import kept_list, node_card, share_of, shortage
from fairlead.web.colours import Colours, colours_of, leaves, trees_of
from fairlead.web.frame import Given, Page
from fairlead.web.html import EMPTY, Html, a, div, element, h3, joined, p, span, strong
from fairlead.web.live import Live
from fairlead.web.running import how_to_submit, running
from fairlead.web.viewer import Viewer
from fairlead.web.words import amounts, counted
from fairlead.wire.cluster import Node
from fairlead.wire.occupancy import Occupant
from fairlead.wire.pages import Kept

MANY = 40
"""From so many nodes on they are a map."""
FULLEST = 20


@dataclass(slots=True)
class _Now:
    """What one page shows."""

    viewer: Viewer
    live: Live
    page: Page
    chosen: str
    sent: list[list[object]]

    async def nodes(self) -> list[Node]:
        async def ask() -> list[Node]:
            return [node async for node in self.viewer.client.nodes()]

        return await self.live.shared(("nodes",), ask)

    async def occupants(self) -> list[Occupant]:
        async def ask() -> list[Occupant]:
            return [each async for each in running(self.viewer)]

        return await self.live.shared(("occupants", self.viewer.rights), ask)

    async def kept(self) -> list[Kept]:
        async def ask() -> list[Kept]:
            return [each async for each in self.viewer.client.kept()]

        return await self.live.shared(("kept", self.viewer.rights), ask)

    async def first_kept(self) -> list[Kept]:
        """As many as are listed beside a map, and one more."""

        async def ask() -> list[Kept]:
            return [each async for each in self.viewer.client.kept(limit=FULLEST + 1)]

        return await self.live.shared(("first kept", self.viewer.rights), ask)

    async def kept_for_whom(self) -> Html:
        """The jobs for which room is kept; where nodes are shown one by one, these say it."""
        if len(await self.nodes()) < MANY or not (kept := await self.first_kept()):
            return EMPTY
        colours = await colours_of(self.viewer, self.live)
        more = "These are the first; room is kept for more." if len(kept) > FULLEST else ""
        return joined(
            kept_list(kept[:FULLEST], colours, with_node=True), p(more, class_="quiet small") if more else None
        )

    async def summary(self) -> Html:
        """How much of everything is in use, and what is out of it."""
        nodes = await self.nodes()
        if not nodes:
            return div(p(strong("There are no nodes.")), p("Nothing can run before one joins."), class_="empty")
        drained = [node.id for node in nodes if not node.schedulable]
        running = sum(node.running for node in nodes)
        words = f"{counted(len(nodes), 'node')}, {counted(running, 'job')} running"
        out = f"{counted(len(drained), 'node')} drained: {', '.join(drained[:8])}{' …' if len(drained) > 8 else ''}"
        uses = await self.live.derived("shortage", shortage, nodes) if len(nodes) > 1 else None
        return joined(p(words), uses, p(out, class_="warn") if drained else None)

    async def picture(self) -> Html:
        """The nodes."""
        nodes = await self.nodes()
        if len(nodes) >= MANY:
            return await self._map(nodes)
        colours = await colours_of(self.viewer, self.live)
        jobs, kept = await self.occupants(), await self.kept()
        return div([self._card(node, jobs, kept, colours) for node in nodes], class_="nodes")

    def _card(self, node: Node, jobs: Sequence[Occupant], kept: Sequence[Kept], colours: Colours) -> Html:
        mine = [job for job in jobs if job.node == node.id]
        promised = [each for each in kept if each.node == node.id]
        return node_card(node, mine, promised, colours, may_drain=self.viewer.acts and self.viewer.is_admin)

    async def _map(self, nodes: Sequence[Node]) -> Html:
        """As squares, by how much of what is fullest is in use; the squares themselves are drawn in the browser."""
        found = await self.live.derived("squares", _squares, nodes)
        if len(found) != len(self.sent) or any(old[0] != new[0] for old, new in zip(self.sent, found, strict=True)):
            self.page.after_showing("heat", found)
        else:
            changed = {at: new for at, (old, new) in enumerate(zip(self.sent, found, strict=True)) if old != new}
            if changed:
                self.page.after_showing("heatChanged", changed)
        self.sent = found
        words = f"A map of {counted(len(nodes), 'node')}; the fullest are listed below."
        return joined(
            div(
                element("canvas", "", id="heat", role="img", aria_label=words, tabindex="0"),
                div("", id="heat-tip", class_="tip"),
                class_="heat",
            ),
            div(
                span("empty"),
                div("", class_="scale", aria_hidden="true"),
                span("full"),
                span("· crossed out: drained · turn the wheel or pinch to zoom, click a square for its jobs"),
                class_="legend quiet small",
            ),
        )

    async def one(self) -> Html:
        """The node that was chosen, or the fullest ones."""
        nodes = await self.nodes()
        if len(nodes) < MANY:
            return EMPTY
        colours = await colours_of(self.viewer, self.live)
        if self.chosen:
            node = next((node for node in nodes if node.id == self.chosen), None)
            if node is None:
                return p(f"There is no node {self.chosen}.", class_="empty")
            jobs = [each async for each in running(self.viewer, node.id)]
            return joined(
                p(a("All nodes", href="/now")), div(self._card(node, jobs, await self.kept(), colours), class_="nodes")
            )
        fullest = await self.live.derived("fullest", _fullest, nodes)
        items = [
            element(
                "li",
                a(node.id, href=f"/now?node={quote(node.id)}"),
                span(f" {share_of(node):.0%} used, free {amounts(node.free)}", class_="quiet small"),
            )
            for node in fullest
        ]
        find = element(
            "form",
            element("label", "Node", for_="node"),
            element("input", id="node", name="node", required=True),
            element("button", "Show", type="submit"),
            method="get",
            action="/now",
            class_="row",
        )
        return joined(find, h3("The fullest nodes"), element("ul", items, class_="plain-list"))

    async def legend(self) -> Html:
        """Which colour is which queue."""
        colours = Colours(trees := await trees_of(self.viewer, self.live))
        shown = [colours.chip(queue.path) for queue in leaves(trees) if any(queue.allocated.values())]
        if not shown:
            return p("No queue uses anything. ", how_to_submit(self.viewer), class_="empty")
        return div(shown, class_="chips")


def _squares(nodes: Sequence[Node]) -> list[list[object]]:
    """What the map needs to know of each node."""
    return [
        [node.id, round(share_of(node), 2), int(node.schedulable), node.running, amounts(node.free)] for node in nodes
    ]


def _fullest(nodes: Sequence[Node]) -> list[Node]:
    return sorted(nodes, key=lambda node: (-share_of(node), node.id))[:FULLEST]


async def show(viewer: Viewer, live: Live, request: Request) -> None:
    """The page."""
    page = Page(viewer, live, "/now", "Now")
    now = _Now(viewer, live, page, request.query_params.get("node", ""), [])
    page.panel("use", "In use", now.summary, kind="wide")
    page.panel("nodes", "Nodes", now.picture, kind="wide")
    page.panel("kept", "What is kept for whom", now.kept_for_whom, kind="wide")
    page.panel("one", "", now.one, kind="wide bare")
    page.panel("legend", "Queues", now.legend, kind="wide")

    async def undrain(given: Given) -> str:
        node = str(given["node"])
        await (viewer.client.undrain(node) if given.get("on") else viewer.client.drain(node))
        return f"{node} takes {'work again' if given.get('on') else 'no new work'}."

    page.acts["drain"] = undrain
    await page.open()
