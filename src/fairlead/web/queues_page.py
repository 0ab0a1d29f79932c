"""Queues: the tree with what each uses of what it may, who waits there, and what would follow from another limit.

Decides how a queue is drawn. Never changes one: another limit is supposed here, and put in force on the page of the
queue file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from urllib.parse import urlencode

from fastapi import Request

from fairlead.client.errors import ClientError
from fairlead.web.colours import Colours, trees_of
from fairlead.web.frame import Given, Page, Row, act_button, table
from fairlead.web.html import EMPTY, Child, Html, a, div, element, joined, p, span
from fairlead.web.live import Live
from fairlead.web.otherwise import otherwise
from fairlead.web.queue_edit import value_of, with_value
from fairlead.web.stairs import meter
from fairlead.web.viewer import Viewer
from fairlead.web.words import amount, amounts, counted, short_queue
from fairlead.wire.cluster import Queue
from fairlead.wire.declarations import Limit, Use

LIMITS = (("Queue", ""), ("Who", ""), ("Of what", ""), ("May use", ""), ("Uses", ""))
USES = (("Who", ""), ("Uses", ""), ("May use", ""), ("Runs", "num"))
OFFSET = ("properties", "priority.offset")
OFFSET_REACH = 100


async def show(viewer: Viewer, live: Live, request: Request) -> None:
    """The page."""
    page = Page(viewer, live, "/queues", "Queues")
    one = _Queues(viewer, live, page, request.query_params.get("queue", ""))
    page.panel("tree", "What each queue uses", one.tree, kind="wide")
    if viewer.acts:
        page.panel("try", "What if a queue had another limit or priority?", one.form, kind="wide", live=False)
    page.panel("use", "Who uses what", one.use)
    page.panel("limits", "Limits of users and groups", one.limits)
    page.acts |= {"choose": one.choose, "suppose": one.suppose}
    await page.open()


class _Queues:
    """What one page shows."""

    def __init__(self, viewer: Viewer, live: Live, page: Page, chosen: str) -> None:
        self.viewer, self.live, self.page, self.chosen = viewer, live, page, chosen
        self._answer: Html = EMPTY
        self._tried: dict[str, tuple[str, float]] = {}
        """What the sliders that were dragged suppose, all of it together: by name, of which resource, and the value."""

    async def tree(self) -> Html:
        """All queues, those below others further in."""
        trees = await trees_of(self.viewer, self.live)
        return await self.live.derived(("tree", self.viewer.acts), self._tree, trees)

    def _tree(self, trees: Sequence[Queue]) -> Html:
        colours = Colours(trees)
        whole = _whole(trees)
        heads = [("Queue", "")] + [(name, "bar") for name in whole]
        heads += [("Run", "num"), ("Wait", "num"), ("Priority", "num"), ("Room left", ""), ("", "num")]
        rows: list[Row] = [(queue.path, self._row(queue, depth, whole, colours)) for queue, depth in _walk(trees)]
        legend = div(
            span("", class_="swatch used"),
            "in use",
            span("", class_="swatch borrowed"),
            "in use beyond its guarantee (borrowed)",
            span("", class_="swatch idle"),
            "in use by its idle work beside that",
            span("", class_="swatch waits"),
            "asked for by what waits",
            span("", class_="swatch mark"),
            "its maximum",
            class_="legend quiet small",
        )
        return joined(table(heads, rows, "Queues with what they use"), legend)

    def _row(self, queue: Queue, depth: int, whole: dict[str, int | float], colours: Colours) -> list[Child]:
        name = queue.path.rpartition(".")[2]
        dot = span("", class_=f"dot q{colours.of(queue.path)}", aria_hidden="true") if queue.leaf else None
        title = div(
            dot,
            span(name, class_="key" if not queue.leaf else None),
            style=f"padding-left:{depth * 18}px",
            class_="queue",
        )
        running = (
            f"{queue.running_applications} of {queue.max_applications}"
            if queue.max_applications
            else f"{queue.running_applications:,}"
        )
        choose = (
            act_button("Try", "choose", queue=queue.path, label=f"Try another limit of {queue.path}")
            if depth and self.viewer.acts
            else None
        )
        return [
            title,
            *(_bar(queue, name, most) for name, most in whole.items()),
            running,
            f"{queue.waiting:,}",
            "–" if queue.priority is None else queue.priority,
            # Where more is used than it may, as after its maximum was lowered, nothing is left.
            amounts({resource: max(left, 0) for resource, left in queue.headroom.items()})
            if queue.headroom
            else span("unlimited", class_="quiet"),
            choose,
        ]

    # -- supposing ----------------------------------------------------------------------------------------------------

    async def choose(self, given: Given) -> str:
        """Show the sliders of a queue."""
        self.chosen, self._answer, self._tried = str(given["queue"]), EMPTY, {}
        await self.page.redraw("try")
        self.page.run("reveal", "p-try")
        return ""

    async def form(self) -> Html:
        """The sliders of the queue that was chosen."""
        trees = await trees_of(self.viewer, self.live)
        queue = next((each for each, _ in _walk(trees) if each.path == self.chosen), None)
        if queue is None:
            return p(
                "Press Try beside a queue, then drag: what would follow is said before anything is done.",
                class_="empty",
            )
        whole = _whole(trees)
        fields = [
            self._slider(f"Maximum of {name}", f"max-{name}", (queue.max or {}).get(name, most), most, name)
            for name, most in whole.items()
        ]
        if (offset := await self._offset()) is not None:
            reach = max(OFFSET_REACH, abs(offset))
            fields.append(self._slider("Priority offset", "offset", offset, reach, "", least=-reach))
        return joined(
            p("Queue ", element("strong", short_queue(queue.path)), " as it is now; drag one, or several, and let go."),
            div(fields, class_="sliders"),
            div(self._answer, aria_live="polite"),
        )

    async def _offset(self) -> int | None:
        """The priority offset in the queue file; None: whoever looks may not read that."""
        try:
            current = await self.viewer.client.config()
        except ClientError:
            return None
        try:
            return int(value_of(current.text, self.chosen, OFFSET))
        except ValueError:
            return 0

    def _slider(
        self, words: str, name: str, value: int | float, most: int | float, resource: str, *, least: float | None = None
    ) -> Html:
        shown = self._tried[name][1] if name in self._tried else float(value)
        step = max(1, int(most) // 64) if resource == "memory" else 0.5 if resource == "cpu" and most <= 64 else 1
        if least is None:
            # A maximum of nothing but 0 counts as not set: with it everything would be allowed.
            least = step if value else 0
        at = int(shown) if shown.is_integer() else shown
        said = amount(resource, at) if resource else str(at)
        field = element(
            "input",
            id=f"s-{name}",
            type="range",
            min=least,
            max=most,
            step=step,
            value=at,
            data_act="suppose",
            data_what=name,
            data_resource=resource,
        )
        return div(
            element("label", words, for_=f"s-{name}"), field, element("output", said, for_=f"s-{name}"), class_="slider"
        )

    async def suppose(self, given: Given) -> str:
        """Ask what would follow."""
        self._tried[str(given["what"])] = (str(given["resource"]), float(given["value"]))
        changes = [_change(what, *tried) for what, tried in self._tried.items()]
        changed = (await self.viewer.client.config()).text
        for keys, text in changes:
            changed = with_value(changed, self.chosen, keys, text)
        answer = await self.viewer.client.what_if(config=changed, forecast=True, seconds=3.0)
        asked = [("queue", self.chosen)]
        for keys, text in changes:
            asked += [("keys", "/".join(keys)), ("value", text)]
        self._answer = joined(
            otherwise(answer), p(a("To the queue file, with this change", href=f"/policy?{urlencode(asked)}"))
        )
        await self.page.redraw("try")
        return ""

    # -- beside -------------------------------------------------------------------------------------------------------

    async def use(self) -> Html:
        """Who uses what, at the root."""

        async def ask() -> list[Use]:
            return [each async for each in self.viewer.client.usage()]

        found = [each for each in await self.live.shared(("usage",), ask) if each.queue == "root"]
        if not found:
            return p("Nobody uses anything.", class_="empty")
        rows: list[Row] = [
            (
                f"{each.kind}/{each.name}",
                [f"{each.kind} {each.name}", amounts(each.used), amounts(each.max), f"{each.running:,}"],
            )
            for each in found
        ]
        return table(USES, rows, "Who uses what")

    async def limits(self) -> Html:
        """Limits of the queue file."""

        async def ask() -> list[Limit]:
            return [each async for each in self.viewer.client.limits()]

        found = await self.live.shared(("limits",), ask)
        if not found:
            return p("The queue file limits no user and no group.", class_="empty")
        rows: list[Row] = [
            (
                f"{each.queue}/{each.kind}/{each.name}/{at}",
                [
                    short_queue(each.queue),
                    f"{each.kind} {'(each)' if each.name == '*' else each.name}",
                    each.limit,
                    joined(amounts(each.max), f", {counted(each.max_running, 'job')}" if each.max_running else ""),
                    ", ".join(f"{use.name} {amounts(use.used)}" for use in each.using) or "–",
                ],
            )
            for at, each in enumerate(found)
        ]
        return table(LIMITS, rows, "Limits of users and groups")


def _change(what: str, resource: str, value: float) -> tuple[Sequence[str], str]:
    """What a slider sets in the queue file: under which keys, and what is written there."""
    if what == "offset":
        return OFFSET, f"{int(value)}"
    keys = ("resources", "max", "vcore" if resource == "cpu" else resource)
    return keys, f"{round(value * 1000)}m" if resource == "cpu" else str(int(value))


def _walk(trees: Sequence[Queue], depth: int = 0) -> Iterator[tuple[Queue, int]]:
    for queue in trees:
        yield queue, depth
        yield from _walk(queue.children, depth + 1)


def _whole(trees: Sequence[Queue]) -> dict[str, int | float]:
    """What there is of each resource that queues are measured by."""
    root = trees[0] if trees else None
    most = (root.max or root.allocated) if root is not None else {}
    return {name: value for name, value in sorted(most.items()) if value and name not in ("pods", "ephemeral-storage")}


def _bar(queue: Queue, name: str, whole: int | float) -> Html:
    """What it uses of everything, what of that beyond its guarantee, its idle work beside that, and what waits; its
    maximum as a line.
    """
    used, due = queue.allocated.get(name, 0), (queue.guaranteed or {}).get(name, 0)
    most, pending, idle = (queue.max or {}).get(name), queue.pending.get(name, 0), queue.idle.get(name, 0)
    within = min(used, due) if due else used
    words = [f"{amount(name, used)} used"]
    words += [f"{amount(name, idle)} by idle work"] if idle else []
    words += [f"{amount(name, due)} guaranteed"] if due else []
    words += [f"at most {amount(name, most)}"] if most is not None else []
    words += [f"{amount(name, pending)} asked for"] if pending else []
    parts = [
        ("used", within / whole, words[0]),
        ("borrowed", (used - within) / whole, f"{amount(name, used - within)} borrowed"),
        ("idle", idle / whole, f"{amount(name, idle)} used by idle work"),
        ("waits", min(pending, whole - used - idle) / whole, f"{amount(name, pending)} asked for"),
    ]
    said = f"{name}: {', '.join(words)}"
    return div(
        meter(parts, said, mark=most / whole if most is not None else None),
        span(", ".join(words), class_="quiet small"),
    )
