"""The laws of rank (`rank_courses`) in crowded clusters (`crowd`): each is watched where dozens of applications wait.

    python tests/properties/crowd_laws.py RULE FIRST LAST

takes the courses FIRST to LAST - 1 under a rule of preemption, prints what they broke, and ends with the count.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from properties.crowd_wide import crowd_of
from properties.rank_courses import RankCourse, command_line

from fairlead.core.model.decisions import Decision
from fairlead.core.model.events import Event, Release
from fairlead.core.model.specs import ClusterSpec

READ_BACK = 3
"""The state is read back after one call in so many: that takes as long as all else."""


class CrowdedCourse(RankCourse):
    """A course to which that happens which happens to a crowd."""

    def file(self) -> ClusterSpec:
        self.crowd = crowd_of(self.number, lambda: self.part, self.rule)
        return self.crowd.spec

    def begins(self) -> Iterator[Event]:
        return self.crowd.begins()

    def happens(self) -> Iterator[Event]:
        """Of what was told to stop, some does."""
        self.crowd.now_ms = self.now_ms
        yield from self.crowd.happens()
        for order in self.orders[:]:
            if self.chance.random() < 0.4:
                self.orders.remove(order)
                yield Release(order.application, order.key, order.cause)

    def note(self, decisions: list[Decision]) -> None:
        super().note(decisions)
        self.crowd.take_note(decisions)

    def looking_again_changes_nothing(self) -> None:
        if not self.steps % READ_BACK:
            super().looking_again_changes_nothing()


if __name__ == "__main__":
    sys.exit(command_line(CrowdedCourse, "crowds"))
