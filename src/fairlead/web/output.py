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
RUNS = ("running", "suspended", "stopping")


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
        shown, followed = (0, ""), 0
        while True:
            try:
                job = await self._viewer.client.job(self._key)
                now = job.attempts, why_nothing(job)
                if now != shown:
                    self._page.run("output", stream, "", now[0] != shown[0], now[1])
                    shown = now
                if job.attempts and (job.attempts != followed or job.state in RUNS):
                    await self._follow(stream, job.attempts)
                    followed = job.attempts
            except ClientError as error:
                self._page.run("output", stream, "", False, f"[{error.message}]")
            await asyncio.sleep(AGAIN_S)

    async def _follow(self, stream: Stream, attempt: int) -> None:
        """The end of what there is, in place of what was shown, and what comes."""
        decoder, anew = codecs.getincrementaldecoder("utf-8")("replace"), True
        async for piece in self._viewer.client.follow(self._key, stream, offset=-TAIL, attempt=attempt):
            self._page.run("output", stream, decoder.decode(piece), anew)
            anew = False
