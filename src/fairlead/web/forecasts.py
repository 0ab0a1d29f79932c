"""The forecast of the line: made seldom, in the background, for all open pages together.

Decides when it is made anew: when something changed or it is overtaken, and not before it has cost little of the time
since the last. Never keeps a page waiting for it.
"""

from __future__ import annotations

import asyncio
import math
import time

from fairlead.client.errors import ClientError
from fairlead.web.live import Live
from fairlead.web.viewer import Viewer
from fairlead.wire.pages import ExpectedStart

LIMIT = 50
SECONDS = 2.0
LEAST_S = 8.0
REST = 20
"""So many times as long as it took nothing is forecast."""


class _Forecasts:
    """The newest forecast, and the one under way."""

    def __init__(self) -> None:
        self.newest: tuple[int, dict[str, ExpectedStart]] | None = None
        self.seq, self.due, self.good_until = -1, 0.0, math.inf
        self.task: asyncio.Task[None] | None = None

    def is_overtaken(self) -> bool:
        """Whether some job should have started by now: it waits longer than was expected, which is news."""
        return time.monotonic() > self.good_until


def line_forecast(live: Live, viewer: Viewer) -> tuple[int, dict[str, ExpectedStart]] | None:
    """When it was made, and the starts by key; None: not yet. A newer one is seen to if it is due."""
    of = live.notes.setdefault("forecasts", _Forecasts())
    assert isinstance(of, _Forecasts)
    if (of.seq != live.seq or of.is_overtaken()) and time.monotonic() >= of.due and (of.task is None or of.task.done()):
        of.seq = live.seq
        of.task = asyncio.create_task(_make(of, viewer, live))
    return of.newest


async def _make(of: _Forecasts, viewer: Viewer, live: Live) -> None:
    began = time.monotonic()
    try:
        told = await viewer.client.line_forecast(limit=LIMIT, seconds=SECONDS)
        of.newest = (told.made_ms, {each.key: each for each in told.starts})
        latest = [each.latest_ms - told.made_ms for each in told.starts if each.latest_ms is not None]
        of.good_until = time.monotonic() + min(latest, default=math.inf) / 1000
    except ClientError:
        pass  # The next one may be had; until then the old one stands.
    took_s = time.monotonic() - began
    of.due = time.monotonic() + max(LEAST_S, REST * took_s)
    live.look_again()
