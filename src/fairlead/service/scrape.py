"""One scrape for Prometheus: the service's own figures, and the same moment under the names of Apache YuniKorn.

Decides nothing. Invariant: both halves show one moment of the books.
"""

from __future__ import annotations

from fairlead.service import metrics
from fairlead.service.place import Moment, Place
from fairlead.service.yunikorn import figures

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


async def scrape(place: Place) -> bytes:
    """The text of one scrape. Raises `Refusal` when the service is stopping."""
    if (few := place.before_books()) is not None:
        return metrics.exposed(few)

    def ask(moment: Moment) -> bytes:
        own, measures = place.figures(moment)
        mine = metrics.exposed([*metrics.of_books(moment.scheduler), *metrics.of_scheduling(measures), *own])
        return mine + figures.render(figures.gather(moment.scheduler, place.history_records), measures)

    return await place.shown(ask, encode=bytes)
