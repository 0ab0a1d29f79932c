"""The signal that comes some time before a run's time limit.

Decides when it is due and which processes get it. Never ends a run. Invariant: it is sent once in the life of a run,
whatever becomes of the time limit after that; not in the run's first moment, before a script could have set its trap.
"""

from __future__ import annotations

from . import cgroups, tree
from .run_files import Record

BEGINS_S = 1.0
"""A run is given so long to get ready for it, where it would be due before that."""


class LimitSignal:
    """That of one run."""

    def __init__(self, said: Record | None, began: float) -> None:
        """`said`: its `number`, `before_ms`, and `to` whom: `first`, `others` or `all`; None: there is none."""
        self._said, self._began = said, began

    def due(self, limit: float | None) -> float | None:
        """When, for a time limit at this moment; None: never, or not as things are."""
        if self._said is None or limit is None:
            return None
        before_s: float = self._said["before_ms"] / 1000
        return max(limit - before_s, self._began + BEGINS_S)

    def send(self, supervisor: int, command: int, plan: cgroups.Plan) -> None:
        """To those who are to get it, and from now on no more."""
        said, self._said = self._said, None
        if said is None:
            return
        if said["to"] == "first":
            tree.send([command], said["number"])
        else:
            tree.tell(supervisor, plan, said["number"], but=command if said["to"] == "others" else 0)
