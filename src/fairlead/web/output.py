"""What a job writes, as it does.

Decides that a page shows the end of it, and no more than a browser bears. Never keeps any of it; the service says who
may read it.
"""

from __future__ import annotations

import asyncio
import codecs

from fairlead.client.errors import ClientError
from fairlead.client.routes import Stream
from fairlead.web.frame import Page
from fairlead.web.html import Html, div, element, span
from fairlead.web.viewer import Viewer
from fairlead.web.words import LIVE
from fairlead.wire.jobs import JobDetails

TAIL = 64 * 1024
STREAMS: tuple[Stream, ...] = ("stdout", "stderr")
AGAIN_S = 2.0


def why_nothing(job: JobDetails) -> str:
    """What is said where it has written nothing."""
    if job.parts is not None:
        return "Each part writes for itself, and its page shows it."
    if job.attempts == 0:
        return "It has not started yet." if job.state in LIVE else "It never ran."
    return "Nothing yet." if job.state in LIVE else "It wrote nothing."


class Output:
    """The output of one job on one page."""

    def __init__(self, viewer: Viewer, key: str, page: Page) -> None:
        self._viewer, self._key, self._page = viewer, key, page

    async def frame(self) -> Html:
        """Where it will be."""
        return div(
            element(
                "pre", span("Being read …", class_="quiet"), id="out-stdout", tabindex="0", aria_label="Standard output"
            ),
            element(
                "details",
                element("summary", "Standard error"),
                element(
                    "pre",
                    span("Being read …", class_="quiet"),
                    id="out-stderr",
                    tabindex="0",
                    aria_label="Standard error",
                ),
                id="err",
                data_keep=True,
            ),
        )

    async def follow(self) -> None:
        """Bring what comes to the page, until it is closed."""
        await asyncio.gather(*(self._stream(stream) for stream in STREAMS))

    async def _stream(self, stream: Stream) -> None:
        offset, attempt, said = -1, 0, ""
        while True:
            try:
                job = await self._viewer.client.job(self._key)
                is_new, nothing = job.attempts != attempt, why_nothing(job)
                if is_new or nothing != said:
                    said = nothing
                    self._page.run("output", stream, "", is_new, nothing)
                if job.attempts == 0:
                    await asyncio.sleep(AGAIN_S)
                    continue
                if is_new:
                    attempt, offset = job.attempts, 0
                decoder = codecs.getincrementaldecoder("utf-8")("replace")
                async for piece in self._viewer.client.follow(self._key, stream, offset=offset, attempt=attempt):
                    offset += len(piece)
                    self._page.run("output", stream, decoder.decode(piece)[-TAIL:], False)
            except ClientError as error:
                self._page.run("output", stream, f"\n[{error.message}]\n" if offset < 0 else "", False)
                offset = max(0, offset)
            await asyncio.sleep(AGAIN_S)
