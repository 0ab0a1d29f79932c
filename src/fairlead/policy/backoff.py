"""Back-off: an application with too many asks that fit on no node rests for a while.

Decides when an application rests (its queue's `application.unschedasks.backoff`) and wakes it when the rest is over.
Never looks at nodes; it counts the asks for which `allocate` found none. Invariant: a resting application has a timer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.policy.headroom import is_held_back

if TYPE_CHECKING:
    from fairlead.core.applications import Application, Batch
    from fairlead.core.partition import Partition

TIMER = "backoff"
LineKey = tuple[int, int, int]


class RunOfMisses:
    """The asks of one visit to an application for which there was no node, in the application's order."""

    __slots__ = ("_app", "_missed", "_threshold")

    def __init__(self, app: Application) -> None:
        self._app = app
        self._threshold = app.queue.properties.backoff_threshold
        self._missed: list[LineKey] = []

    def missed(self, partition: Partition, batch: Batch) -> None:
        """There was no node for any ask of this batch. What is in the way above the nodes does not count.

        It does as soon as only the nodes are in the way, whoever finds that out: the application is looked at then.
        """
        if batch.asks[0].required_node:
            return
        demand, shape = batch.demand, batch.demand.shape
        assert shape is not None
        if is_held_back(partition, demand, batch.asks[0]):
            demand.uncounted = shape.wakes_at_once = True
            return
        seen = 0
        for ask in batch.asks:
            if ask.pending:
                self._missed.append(ask.line_key)
                seen += 1
                if seen == self._threshold:
                    break

    def is_due_before(self, key: LineKey) -> bool:
        """Whether enough asks were missed before the one with this place in line."""
        return len(self._missed) >= self._threshold and sorted(self._missed)[self._threshold - 1] < key

    def is_due(self) -> bool:
        """Whether enough were missed, and the application has some ask (waiting or running) behind the last of them."""
        if len(self._missed) < self._threshold:
            return False
        last = sorted(self._missed)[self._threshold - 1]
        return any(ask.line_key > last for ask in self._app.asks.values())

    def back_off(self, partition: Partition) -> None:
        """Let the application rest from now on."""
        app = self._app
        app.unschedulable = len(self._missed)
        app.backoff_until_ms = partition.now_ms + app.queue.properties.backoff_delay_ms
        partition.timers.set(app.backoff_until_ms, partition.name, app.id, 0, TIMER)
        if app.queue in partition.reserving.of:
            # No room is kept for who rests: the next run gives it back.
            partition.books_version += 1


def on_timer(partition: Partition, app_id: str) -> None:
    """The rest is over: the application is looked at again."""
    app = partition.applications.get(app_id)
    if app is None or app.backoff_until_ms is None or app.backoff_until_ms > partition.now_ms:
        return
    # Others may be stopped for it again, though nothing else has changed.
    partition.books_version += 1
    if app.pending_count:
        app.queue.touch_app(app)
