"""One scrape for Prometheus: the service's own figures, and the same moment under the names of Apache YuniKorn.

Decides nothing. Invariant: both halves show one moment of the books.
"""

from __future__ import annotations

from starlette.concurrency import run_in_threadpool

from fairlead.service import metrics
from fairlead.service.desk import Desk
from fairlead.service.yunikorn import figures

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


async def scrape(desk: Desk) -> bytes:
    """The text of one scrape. Raises `Refusal` when the service is stopping."""
    runtime = desk.runtime
    books, also, measures, seq = await desk.read(
        lambda s, w: (
            metrics.gather(s, w),
            figures.gather(s, desk.history_records),
            runtime.measures.copy(),
            runtime.journal.committed_seq,
        )
    )
    healthy = not (runtime.sick or runtime.halted)

    def text() -> bytes:
        own = metrics.render(books, measures, journal_seq=seq, readers=desk.hub.readers, healthy=healthy)
        return own + figures.render(also, measures)

    return await run_in_threadpool(text)
