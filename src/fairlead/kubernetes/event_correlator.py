"""The event correlator: what is told about pods and jobs, held back where it was told lately or too often.

Decides whether an event or a reason is news. Never sends it. Invariants: no event is sent twice within `AGAIN_S`, and
no object takes more of the server's events than its budget; what was said last of why a pod waits is what stands there.
"""

from __future__ import annotations

from fairlead.kubernetes import acts

AGAIN_S = 300.0
BURST = 25
REFILL_S = 300.0
"""A pod gets one more event after this time."""
KEPT = 20_000
"""So many pods are remembered; the oldest are forgotten first."""


class EventCorrelator:
    """What was said lately."""

    def __init__(self) -> None:
        self._said: dict[tuple[str, str, str], tuple[str, float]] = {}
        """The text, and when: of each event by itself, of a pod's reason to wait the last."""
        self._left: dict[str, tuple[float, float]] = {}

    def is_news(self, act: acts.Explain | acts.Record, now_s: float) -> bool:
        """Whether this is to be said now; then it counts as said."""
        key = _key(act)
        last, at = self._said.get(key, ("", -AGAIN_S))
        if last == act.message and now_s - at < AGAIN_S:
            return False
        if isinstance(act, acts.Record) and not self._has_budget(act.pod.uid, now_s):
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

    def _has_budget(self, uid: str, now_s: float) -> bool:
        left, at = self._left.pop(uid, (float(BURST), now_s))
        left = min(float(BURST), left + (now_s - at) / REFILL_S)
        allowed = left >= 1
        self._left[uid] = (left - allowed, now_s)
        if len(self._left) > KEPT:
            del self._left[next(iter(self._left))]
        return allowed


def _key(act: acts.Explain | acts.Record) -> tuple[str, str, str]:
    return (act.pod.uid, act.reason, act.message) if isinstance(act, acts.Record) else (act.pod.uid, "", "")
