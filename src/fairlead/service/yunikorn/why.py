"""Why asks wait, looked up once for all that wait for the same reason.

Decides when two asks of one read share an answer. Never keeps an answer beyond the read. Invariant: the answer is the
one that `Scheduler.why` gives for the ask.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairlead.core.books.application_limits import closed_queue
from fairlead.core.model.lifecycle import State
from fairlead.core.model.reasons import NextInLine, Reason
from fairlead.policy.eligibility.limits import closing_ceiling
from fairlead.policy.why.waiting import why_waiting

if TYPE_CHECKING:
    from fairlead.core.books.asks import Ask
    from fairlead.core.books.partition import Partition

ABOUT_NODES = frozenset(
    {"too-big-for-every-node", "no-node-has-room", "required-node-unknown", "reserved-node-too-full", "node-reserved"}
)
"""Reasons that are known only after nodes were looked at."""


class Why:
    """The reasons of one read."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self._found: dict[Any, Reason] = {}

    def of(self, ask: Ask) -> Reason:
        """Why a waiting ask waits."""
        app = ask.app
        if ask.held_on is not None or ask.reserved_on is not None or app.backoff_until_ms is not None:
            return why_waiting(self._partition, ask)
        if app.gives_way_to is not None or app.awaited_by:
            return why_waiting(self._partition, ask)
        if not ask.spec.placeholder and app.stands_in(ask.spec.task_group):
            return why_waiting(self._partition, ask)
        held: object = None
        if app.state is State.ACCEPTED:
            held = closed_queue(app) or closing_ceiling(app)
        key = (app.queue.path, ask.items, ask.required_node, id(app.allowance), id(held) if held is not None else 0)
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = why_waiting(self._partition, ask)
        return found

    def log(self, ask: Ask) -> list[dict[str, Any]]:
        """The allocation log: the reason of this moment, or nothing for what comes next."""
        reason = self.of(ask)
        if isinstance(reason, NextInLine):
            return []
        return [{"message": reason.sentence(), "lastOccurrence": self._partition.now_ms * 1_000_000, "count": 1}]

    def attempted(self, ask: Ask) -> bool:
        """Whether nodes were looked at for it."""
        return ask.attempted or self.of(ask).code in ABOUT_NODES
