"""What runs, in the same words for a machine and for a cluster, and how more is submitted to it.

Decides which list of the service that is. Never asks for more of it than a page shows.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from fairlead.web.html import Html, a, code, span
from fairlead.web.viewer import Viewer
from fairlead.wire.jobs import Job
from fairlead.wire.occupancy import Occupant


async def running(viewer: Viewer, node: str | None = None, *, most: int | None = None) -> AsyncIterator[Occupant]:
    """What has room, on one node or all; `most`: no more than so much of all."""
    if viewer.of == "machine":
        async for occupant in viewer.client.occupants(node=node, limit=most):
            yield occupant
        return
    async for job in viewer.client.jobs(state=("running", "stopping"), limit=most):
        if node in (None, job.node):
            yield _as_occupant(job)


def _as_occupant(job: Job) -> Occupant:
    """A pod that runs, in the words for jobs of a machine."""
    said = {
        name: getattr(job, name)
        for name in ("key", "user", "name", "queue", "state", "started_at_ms", "node", "resources")
    }
    return Occupant(**said, ends_at_ms=None, gpus=[])


def how_to_submit(viewer: Viewer) -> Html:
    """A sentence."""
    if viewer.of == "course":
        return span("So it was at this moment; the slider goes to others.")
    if viewer.of == "cluster":
        return span("A pod with ", code("schedulerName: fairlead"), " is scheduled here.")
    if viewer.is_guest:
        return span("Who signs in can submit jobs.")
    return span("Try it: ", code("fairlead submit -- sleep 60"), " or ", a("the form", href="/submit"), ".")
