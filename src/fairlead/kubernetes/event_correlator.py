"""The event correlator: what is told about pods and jobs, held back where it was told lately or too often.

Decides whether an event or a reason is news. Never sends it. Invariants: no event is sent twice within `AGAIN_S`, and
no object takes more of the server's events than its budget; what was said last of why a pod waits is what stands there,
at the latest `CHANGE_S` later: a reason that comes and goes would be a write to the server each time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from fairlead.kubernetes import acts

AGAIN_S = 300.0
BURST = 25
REFILL_S = 300.0
"""A pod gets one more event after this time."""
CHANGES = 5
CHANGE_S = 60.0
"""So often a pod is told something else at once; then it is told one more after this time."""
KEPT = 20_000
"""So many pods are remembered; the oldest are forgotten first."""


class EventCorrelator:
    """What was said lately."""

    def __init__(self, again: Callable[[acts.Explain], object]) -> None:
        """`again` is called, in the running loop, with a reason that was held back, once it may be said."""
        self._again = again
        self._held: dict[str, acts.Explain] = {}
        self._said: dict[tuple[str, str, str], tuple[str, float]] = {}
        """The text, and when: of each event by itself, of a pod's reason to wait the last."""
        self._left: dict[str, tuple[float, float]] = {}
        self._changes: dict[str, tuple[float, float]] = {}

    def is_news(self, act: acts.Explain | acts.Record, now_s: float) -> bool:
        """Whether this is to be said now; then it counts as said."""
        key = _key(act)
        last, at = self._said.get(key, ("", -AGAIN_S))
        if isinstance(act, acts.Explain):
            self.overtaken(act.pod.uid)
        if last == act.message and now_s - at < AGAIN_S:
            return False
        if isinstance(act, acts.Record):
            if _spend(self._left, act.pod.uid, now_s, BURST, REFILL_S):
                return False
        elif wait_s := _spend(self._changes, act.pod.uid, now_s, CHANGES, CHANGE_S):
            self._held[act.pod.uid] = act
            asyncio.get_running_loop().call_later(wait_s, self._release, act)
            return False
        self._said.pop(key, None)
        self._said[key] = act.message, now_s
        if len(self._said) > KEPT:
            del self._said[next(iter(self._said))]
        return True

    def unsaid(self, act: acts.Explain | acts.Record) -> None:
        """It did not come to the server: it does not count as said."""
        if self._said.get(_key(act), ("", 0.0))[0] == act.message:
            del self._said[_key(act)]
        if isinstance(act, acts.Explain):
            self._changes.pop(act.pod.uid, None)

    def overtaken(self, uid: str) -> None:
        """Something else becomes of the pod: what was held back is not said any more."""
        self._held.pop(uid, None)

    def _release(self, act: acts.Explain) -> None:
        if self._held.get(act.pod.uid) is act:
            self._again(act)


def _spend(budget: dict[str, tuple[float, float]], uid: str, now_s: float, burst: int, refill_s: float) -> float:
    """Take one of what a pod may have; else say after how many seconds there is one."""
    left, at = budget.pop(uid, (float(burst), now_s))
    left = min(float(burst), left + (now_s - at) / refill_s)
    allowed = left >= 1
    budget[uid] = (left - allowed, now_s)
    if len(budget) > KEPT:
        del budget[next(iter(budget))]
    return 0.0 if allowed else (1 - left) * refill_s + 0.001


def _key(act: acts.Explain | acts.Record) -> tuple[str, str, str]:
    return (act.pod.uid, act.reason, act.message) if isinstance(act, acts.Record) else (act.pod.uid, "", "")
