"""The parts of an array as a grid of squares, each in the state of its part.

Decides how many are drawn. Never asks for one of them alone.
"""

from __future__ import annotations

from itertools import islice

from fairlead.web.html import EMPTY, Html, a, div, joined, span
from fairlead.web.live import Live
from fairlead.web.viewer import Viewer
from fairlead.web.words import STATES, job_path
from fairlead.wire.jobs import Job

MOST = 2000


async def parts(viewer: Viewer, live: Live, key: str) -> Html:
    """The parts of an array, with how many of those that are shown are in which state."""

    async def ask() -> list[Job]:
        return [job async for job in viewer.client.jobs(array=key, limit=MOST)]

    found = await live.shared(("parts", viewer.rights, key), ask)
    if not found:
        return EMPTY
    counts: dict[str, int] = {}
    for job in found:
        counts[job.state] = counts.get(job.state, 0) + 1
    summary = [
        span(f"{STATES.get(name, '•')} {number:,} {name.replace('_', ' ')}", class_=f"state {name}")
        for name, number in counts.items()
    ]
    # How many of all are how is said by the array itself.
    which = span(f"of the first {MOST:,} parts:", class_="quiet small") if len(found) == MOST else None
    squares = [_square(job) for job in islice(found, MOST)]
    label = ", ".join(f"{number} {name}" for name, number in counts.items())
    return joined(div(which, summary, class_="chips"), div(squares, class_="squares", role="group", aria_label=label))


def _square(job: Job) -> Html:
    index = job.key.rpartition(".")[2]
    because = f": {job.reason.sentence}" if job.reason is not None else ""
    words = f"{job.key} {job.state}{because}"
    sign = STATES.get(job.state, "•")
    return a(
        span(sign, aria_hidden="true"),
        span(words, class_="unseen"),
        href=job_path(job.key),
        class_=f"square {job.state}",
        title=words,
        data_k=index,
    )
