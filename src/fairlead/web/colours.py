"""Colours of queues: the same queue has the same on every page.

Decides which; colours that the colour-blind tell apart (after Okabe and Ito), in the order of the tree. Never the only
sign: the name of the queue is always beside, or in what is said on hover.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from fairlead.web.html import Html, span
from fairlead.web.live import Live
from fairlead.web.viewer import Viewer
from fairlead.web.words import short_queue
from fairlead.wire.cluster import Queue

COUNT = 8
"""How many there are (`--q0` and so on in `static/fairlead.css`)."""

COLOURS = "colours"
"""The name of the note that pages keep for each other."""


def leaves(trees: Sequence[Queue]) -> Iterator[Queue]:
    """The leaves of all trees, in their order."""
    for queue in trees:
        if queue.leaf:
            yield queue
        yield from leaves(queue.children)


class Colours:
    """Which queue has which colour."""

    def __init__(self, trees: Sequence[Queue]) -> None:
        self._of = {queue.path: at % COUNT for at, queue in enumerate(leaves(trees))}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Colours) and self._of == other._of

    def __hash__(self) -> int:
        return hash(tuple(self._of))

    def __contains__(self, queue: str) -> bool:
        return queue in self._of

    def of(self, queue: str) -> int:
        """Its number."""
        return self._of.get(queue, 0)

    def chip(self, queue: str) -> Html:
        """The queue by name, with its colour before it."""
        dot = span("", class_=f"dot q{self.of(queue)}", aria_hidden="true")
        return span(dot, short_queue(queue), class_="queue")


async def trees_of(viewer: Viewer, live: Live) -> list[Queue]:
    """The queues at present; they are the same for everybody."""

    async def ask() -> list[Queue]:
        return [tree async for tree in viewer.client.queues()]

    trees = await live.shared(("queues",), ask)
    if live.notes.get(COLOURS) != (colours := Colours(trees)):
        live.notes[COLOURS] = colours
    return trees


async def colours_of(viewer: Viewer, live: Live, queues: Iterable[str] = ()) -> Colours:
    """Which queue has which colour: as long as all of these are known nothing is asked, for queues seldom change."""
    known = live.notes.get(COLOURS)
    if isinstance(known, Colours) and all(queue in known for queue in queues):
        return known
    return Colours(await trees_of(viewer, live))
