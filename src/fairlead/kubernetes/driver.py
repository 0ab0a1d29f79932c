"""The driver: one scheduler and the informer of one cluster, kept in step.

Decides in which order changes, decisions and acts follow each other. Never waits, reads a clock or sends anything: the
same calls give the same acts. Invariant: between two calls the informer and the scheduler agree on every pod.
"""

from __future__ import annotations

from collections.abc import Iterable

from fairlead.core.model.decisions import Decision
from fairlead.core.model.events import Configure, Event
from fairlead.core.model.specs import ClusterSpec
from fairlead.kubernetes.acts import Act
from fairlead.kubernetes.informer import Informer
from fairlead.kubernetes.orders import Orders
from fairlead.kubernetes.reflector import Change
from fairlead.scheduler import Scheduler


class Driver:
    """What is known and decided about one cluster. Times in milliseconds, never going back."""

    def __init__(self, spec: ClusterSpec | None = None, now_ms: int = 0, scheduler_name: str = "fairlead") -> None:
        self.scheduler = Scheduler(spec, now_ms)
        self.informer = Informer(scheduler_name)
        self._orders = Orders(self.informer)
        self.decided: list[Decision] = []
        """Decisions since the last `acts`, for whoever keeps a record of them."""

    def take(self, change: Change, now_ms: int) -> None:
        """Something changed at the API server."""
        self._feed(self.informer.take(change), now_ms)

    def begin(self, now_ms: int) -> None:
        """All that was there at the start has been taken."""
        self._feed(self.informer.begin(), now_ms)

    def schedule(self, now_ms: int, limit: int | None = None) -> int:
        """Run scheduling; gives back how many decisions were made."""
        self._feed(self.informer.volume_binder.overdue(now_ms), now_ms)
        decisions = self.scheduler.schedule(now_ms, limit)
        self._hear(decisions, now_ms)
        return len(decisions)

    def configure(self, spec: ClusterSpec, now_ms: int, who: str = "", source: str = "") -> list[Decision]:
        """Another queue file; the decisions say whether it was taken."""
        decisions = self.scheduler.handle(Configure(spec, who=who, source=source), now_ms)
        self._hear(decisions, now_ms)
        self._feed(self.informer.configured(), now_ms)
        return decisions

    def bind_failed(self, uid: str, node: str, now_ms: int) -> None:
        """The API server refused a placement for good."""
        self._feed(self.informer.bind_failed(uid, node), now_ms)

    def try_again(self, uid: str, now_ms: int) -> None:
        """The pause after a refused placement is over."""
        self._feed(self.informer.try_again(uid), now_ms)

    def handle(self, event: Event, now_ms: int) -> list[Decision]:
        """Another event for the scheduler, such as an administrator's order."""
        decisions = self.scheduler.handle(event, now_ms)
        self._hear(decisions, now_ms)
        return decisions

    def acts(self) -> list[Act]:
        """What is to be done now, in order; each is given once."""
        acts = self.informer.acts
        self.informer.acts = []
        return acts

    def _feed(self, events: Iterable[Event], now_ms: int) -> None:
        for event in events:
            self._hear(self.scheduler.handle(event, now_ms), now_ms)

    def _hear(self, decisions: list[Decision], now_ms: int) -> None:
        if decisions:
            self.decided.extend(decisions)
            self._feed(self._orders.heard(decisions), now_ms)
