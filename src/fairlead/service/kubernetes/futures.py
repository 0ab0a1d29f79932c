"""Futures of a cluster: what its pods are taken to do when a start is forecast.

Decides what is known about the run time of a pod: what alike pods took since this process began, its limit, and that a
pod which is started again whenever it ends never ends. Never decides what the scheduler would do. Invariant: called
on a copy only (a process of its own), since begins are put right there.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from fairlead.insight.forecast import HORIZON_MS
from fairlead.insight.runtimes import Kind, Runtimes, Sample
from fairlead.service.kubernetes import pods

if TYPE_CHECKING:
    from fairlead.core.books.asks import Ask
    from fairlead.kubernetes.driver import Driver

NEVER_MS = 2 * HORIZON_MS


@dataclass(frozen=True, slots=True)
class PodKind(Kind):
    """What pods are alike."""

    endless: bool = False


class Future(Runtimes):
    """Run times of the pods of one cluster."""

    def __init__(self, driver: Driver, learned: Runtimes) -> None:
        """Put the begins of pods right that ran before this process did."""
        super().__init__()
        self._samples, self.ends = learned._samples, learned.ends
        self._pods = driver.informer.pod_store.by_uid
        for known in pods.our_pods(driver.informer):
            _, ask = pods.entry_of(driver.scheduler, driver.informer, known)
            if ask is not None and ask.allocated_ms is not None and known.since_ms:
                ask.allocated_ms = min(ask.allocated_ms, known.since_ms)

    def kind_of(self, ask: Ask) -> PodKind:
        """User, application and queue; and whether it never ends."""
        known = self._pods.get(ask.key)
        return PodKind(ask.app.user, ask.app.id, ask.app.queue.path, known is not None and known.endless)

    def basis(self, kind: Kind) -> tuple[str, Sample | None]:
        """What a guess for this kind rests on."""
        if isinstance(kind, PodKind) and kind.endless:
            return "restarted for ever, so that they never end (restartPolicy Always)", Sample()
        return super().basis(kind)

    def draw(self, kind: Kind, chance: Random, elapsed_ms: int = 0, limit_ms: int | None = None) -> int:
        """A run time; beyond all that is looked at for what never ends."""
        if isinstance(kind, PodKind) and kind.endless:
            return max(limit_ms, elapsed_ms + 1) if limit_ms is not None else elapsed_ms + NEVER_MS
        return super().draw(kind, chance, elapsed_ms, limit_ms)
