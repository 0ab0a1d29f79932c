"""Runs of a record: what is known of each task, and which times are usual.

Decides what a run time is and which one is taken where it is not known. Never reads a record. Invariant: of what was
evicted for good nobody knows how long it would have run, so it counts for no usual time.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median_low

from fairlead.core.model import specs

USUAL_MS = 60_000
"""The run time of what never ran, where nothing else ran either."""


@dataclass(slots=True)
class Run:
    """A task, and its last run."""

    app: specs.ApplicationSpec
    ask: specs.AskSpec
    at_ms: int
    """When it was in line."""
    came_ms: int
    """When it was submitted, in line or held."""
    started_ms: int | None = None
    ended_ms: int | None = None
    node: str = ""
    exit_code: int = 0
    stopped: bool = False
    """It ended because it was told to, or with its node."""
    told_ms: int | None = None
    """When the scheduler told its last run to stop."""
    stop_ms: int | None = None
    """How long it took to stop when it was told last; None: it never was."""
    at_wish: bool = False
    """Somebody wished that it stops and waits again: the scheduler alone would not have told it to."""
    before: Run | None = None
    """The run before, where it is to be tried again."""
    tried_again: bool = False
    awaited: bool = False
    """It waited for other work."""

    @property
    def run_ms(self) -> int | None:
        """How long it ran; None where it never did, or still does."""
        if self.ended_ms is None or self.started_ms is None:
            return None
        return self.ended_ms - self.started_ms

    @property
    def cut_short(self) -> bool:
        """Whether it would have run on, had the scheduler let it."""
        return self.stopped and self.told_ms is not None and not self.at_wish

    @property
    def last(self) -> Run:
        """The last one that began; itself where none did."""
        return self if self.started_ms is not None or self.before is None else self.before

    def try_again(self, at_ms: int) -> None:
        """It is over, if that was not told already, and waits again."""
        ended_ms, stopped = (at_ms, True) if self.ended_ms is None else (self.ended_ms, self.stopped)
        self.before = replace(self.last, ended_ms=ended_ms, stopped=stopped, exit_code=0, before=None)
        self.started_ms = self.ended_ms = self.told_ms = None
        self.stopped, self.at_wish, self.exit_code, self.tried_again = False, False, 0, True


class Usual:
    """Run times of each user and of all, in order; and how long stops took."""

    def __init__(self, runs: Sequence[Run]) -> None:
        stops = [run.stop_ms for run in runs if run.stop_ms is not None]
        self.stop_ms = median_low(stops) if stops else None
        """How long it took to stop; None: nobody was told to."""
        self._by_user: dict[str, list[int]] = {}
        self._all = sorted(run.run_ms for run in runs if run.run_ms is not None and not run.cut_short)
        for run in sorted(runs, key=lambda run: run.run_ms or 0):
            if run.run_ms is not None and not run.cut_short:
                self._by_user.setdefault(run.app.user, []).append(run.run_ms)

    def of(self, user: str) -> int:
        """The median of this user, else of all."""
        found = self.longer(user, -1)
        return USUAL_MS if found is None else found

    def beyond(self, user: str, so_far_ms: int, limit_ms: int | None) -> int:
        """How long what has run so long would have run: as long as longer ones, else to its limit, else no longer."""
        found = self.longer(user, so_far_ms)
        return max(so_far_ms, limit_ms or 0) if found is None else found

    def longer(self, user: str, than_ms: int) -> int | None:
        """The median of those of this user that lasted longer, else of all; None: there are none."""
        for times in (self._by_user.get(user, []), self._all):
            first = bisect_right(times, than_ms)
            if first < len(times):
                return times[(first + len(times) - 1) // 2]
        return None
