"""Held back: what above the nodes keeps an ask from being placed, in the words of event records.

Decides nothing about work: it asks the rules of `policy` and answers in texts and numbers. Never looks at nodes, so
that an answer costs no more than the depth of the queue. Invariant: the first obstacle that the walk would meet is the
one that is named.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fairlead.core.books.application_limits import closed_queue
from fairlead.core.model.lifecycle import State
from fairlead.insight.history_records import Detail, amounts
from fairlead.policy.eligibility.limits import closing_ceiling, full_ceiling

if TYPE_CHECKING:
    from fairlead.core.books.asks import Ask


class Obstacle(NamedTuple):
    """One obstacle. `begins` and `ends` tell it of the application as a whole; `text` and `after` of one ask."""

    stops_application: bool
    begins: int = 0
    ends: int = 0
    text: str = ""
    after: str = ""
    """What is said of the ask when it is out of the way; `{}` stands for its key."""

    def over(self, key: str) -> str:
        """What is said of the ask `key` when the obstacle is out of the way."""
        return self.after.format(key)


AT_MOST_IN_QUEUE = Obstacle(True, Detail.APP_CANNOTRUN_QUEUE, Detail.APP_RUNNABLE_QUEUE)
AT_MOST_OF_USER = Obstacle(True, Detail.APP_CANNOTRUN_QUOTA, Detail.APP_RUNNABLE_QUOTA)


def obstacle_of(ask: Ask) -> Obstacle | None:
    """What holds a waiting ask back above the nodes, or None."""
    app = ask.app
    if app.state is State.ACCEPTED:
        if closed_queue(app) is not None:
            return AT_MOST_IN_QUEUE
        if closing_ceiling(app) is not None:
            return AT_MOST_OF_USER
    ceiling = full_ceiling(app, ask.items)
    if ceiling is not None:
        limit = ceiling.max or {}
        left = tuple((name, limit[name] - ceiling.used.get(name, 0)) for name in sorted(limit))
        text = f"exceeds the available user quota (requested {amounts(ask.items)}, available {amounts(left)})"
        return Obstacle(
            False, text=f"Request '{ask.key}' {text}", after="Request '{}' fits in the available user quota"
        )
    if app.queue.short_of_room(ask.items) is not None:
        room = tuple(sorted((app.queue.headroom() or {}).items()))
        path = app.queue.path
        text = f"does not fit in queue '{path}' (requested {amounts(ask.items)}, available {amounts(room)})"
        after = f"has become schedulable in queue '{path}'".replace("{", "{{").replace("}", "}}")
        return Obstacle(False, text=f"Request '{ask.key}' {text}", after=f"Request '{{}}' {after}")
    return None
