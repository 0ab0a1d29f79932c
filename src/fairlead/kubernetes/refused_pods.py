"""Refused pods: those that the scheduler would not take, by a quota for example, and that are asked about again.

Decides when a refused pod is tried again, and how often it is told why. Never judges it, and sends nothing. Invariant:
what a pod was refused for may change without a word about the pod, so each is tried again until it is taken or gone.
"""

from __future__ import annotations

import heapq
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

from fairlead.core.model.events import Event
from fairlead.kubernetes.acts import Explain, Record
from fairlead.kubernetes.pod_store import Books, KnownPod

if TYPE_CHECKING:
    from fairlead.kubernetes.informer import Informer

AGAIN_MS = (1_000, 60_000)
"""The first and the longest pause between two tries of a pod."""


class RefusedPods:
    """The refused pods of one informer. Times in milliseconds."""

    def __init__(self, informer: Informer) -> None:
        self._informer = informer
        self._tries: dict[str, int] = {}
        """By identity: how often each was tried in vain at its time; the one that was refused first comes first."""
        self._fresh: list[str] = []
        """Those whose pause does not run yet."""
        self._due: list[tuple[int, str]] = []
        """A heap: when each is tried again."""

    def note(self, known: KnownPod, code: str, why: str) -> None:
        """The scheduler refuses a pod that has no node. New numbers change what it says; another reason is an event."""
        before, known.refused = known.refused, (code, why)
        if before != known.refused:
            self._informer.acts.append(Explain(known.name, code, why))
        if before is None or before[0] != code:
            self._informer.acts.append(Record(known.name, "FailedScheduling", why, warning=True))
        if known.name.uid not in self._tries:
            self._tries[known.name.uid] = 0
            self._fresh.append(known.name.uid)

    def overdue(self, now_ms: int) -> Iterator[Event]:
        """Pauses run from now on; those whose pause is over are tried, the one that was refused first comes first."""
        for uid in self._fresh:
            wait = min(AGAIN_MS[1], AGAIN_MS[0] * 2 ** min(self._tries[uid], 10))
            heapq.heappush(self._due, (now_ms + wait, uid))
        self._fresh.clear()
        due = set()
        while self._due and self._due[0][0] <= now_ms:
            due.add(heapq.heappop(self._due)[1])
        for uid in [uid for uid in self._tries if uid in due] if due else ():
            known = self._informer.pod_store.by_uid.get(uid)
            if known is not None and (yield from self._try(known)):
                self._tries[uid] += 1
                self._fresh.append(uid)
            else:
                del self._tries[uid]

    def configured(self) -> Iterator[Event]:
        """The queue file changed: all are tried at once, the one that was refused first comes first."""
        for uid in list(self._tries):
            known = self._informer.pod_store.by_uid.get(uid)
            if known is not None:
                yield from self._try(known)

    def _try(self, known: KnownPod) -> Generator[Event, None, bool]:
        """Have a pod enter the books once more; whether it was refused again."""
        enters = known.books is Books.OUT and not known.leaving and self._informer.may_enter(known)
        if enters:
            yield from self._informer.enter(known)
            if known.books is Books.OUT and known.application not in self._informer.refused:
                return True
        # It is in, or waits for something else, with whose end it enters.
        known.refused = None
        return False
