"""Work that is on hold: not in line until somebody releases it.

Written from the rules in the plainest way, as a base for the simulator of `plain_simulator`.
"""

from __future__ import annotations

from reference.plain_line import Work
from reference.plain_turns import Turns


class Held(Turns):
    """What waits in line may be put on hold. Its job keeps its age."""

    def __init__(self, *given: object, **more: object) -> None:
        super().__init__(*given, **more)
        self.on_hold: list[Work] = []

    def _enter(self, work: Work) -> None:
        raise NotImplementedError

    def _puts_on_hold(self, job: str) -> None:
        """What waits of it gives up what is kept for it, and its turn."""
        for work in [w for w in self.waiting if w.gang.job.name == job]:
            self._ends_turn(work)
            self.waiting.remove(work)
            work.kept_on, work.gathers = "", False
            self.on_hold.append(work)

    def _releases(self, job: str) -> None:
        """What was put on hold of it is in line again."""
        for work in [w for w in self.on_hold if w.gang.job.name == job]:
            self.on_hold.remove(work)
            self.news += 1
            self._enter(work)
