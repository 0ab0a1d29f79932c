"""The event correlator: what is said to people about pods, and how often.

Decides whether a reason or an event is news. Never says anything. Invariant: the same is not said twice within
`AGAIN_S`, and no pod has more than `BURST` events at once, nor the cluster more than `RATE` in a second.
"""

from __future__ import annotations

from fairlead.kubernetes.acts import Explain, Record

AGAIN_S = 300.0
BURST = 25
REFILL_S = 300.0
"""A pod gets one more event after this time."""
RATE = 100
KEPT = 20_000
"""So many pods are remembered; the oldest are forgotten first."""


class EventCorrelator:
    """What was said lately."""

    def __init__(self) -> None:
        self._said: dict[tuple[str, str, str], float] = {}
        self._left: dict[str, tuple[float, float]] = {}
        self._second = 0
        self._in_second = 0

    def is_news(self, act: Explain | Record, now_s: float) -> bool:
        """Whether this is to be said now; then it counts as said."""
        key = (act.pod.uid, act.reason if isinstance(act, Record) else "", act.message)
        last = self._said.get(key)
        if last is not None and now_s - last < AGAIN_S:
            return False
        if isinstance(act, Record) and not self._has_budget(act.pod.uid, now_s):
            return False
        self._said.pop(key, None)
        self._said[key] = now_s
        if len(self._said) > KEPT:
            del self._said[next(iter(self._said))]
        return True

    def _has_budget(self, uid: str, now_s: float) -> bool:
        if int(now_s) != self._second:
            self._second, self._in_second = int(now_s), 0
        left, at = self._left.pop(uid, (float(BURST), now_s))
        left = min(float(BURST), left + (now_s - at) / REFILL_S)
        allowed = left >= 1 and self._in_second < RATE
        if allowed:
            left -= 1
            self._in_second += 1
        self._left[uid] = (left, now_s)
        if len(self._left) > KEPT:
            del self._left[next(iter(self._left))]
        return allowed
