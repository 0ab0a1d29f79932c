"""What open pages may take of the service's time, and which look is to be next.

Decides when a question may be asked again. Never asks it. Invariant: all looks that nobody waits for take no more than
`SHARE` of the service's time in the long run, however much changes, however many pages are open.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Hashable

SHARE = 0.04
"""Part of the time that the service may spend on looks of open pages."""
BURST_S = 0.05
"""So much may be owed for a question that is asked again."""
SMALL_S = 0.025
"""What costs no more is a small look: a large one that is under way, or owed, keeps nobody from it."""
RESERVE_S = 0.1
"""So much is lent to small looks after a quiet time, whatever is owed for them."""
REMEMBERED = 5


class _Reserve:
    """The name under which is owed what was lent."""


class Costs:
    """What questions cost, by how long the answers to those of the same name took: the shortest of the last is what it
    costs, the rest is what else the machine had to do.
    """

    def __init__(self) -> None:
        self._took: dict[Hashable, deque[float]] = {}

    def of(self, name: Hashable) -> float:
        """In seconds; 0 of what was never asked."""
        return min(self._took.get(name, (0.0,)))

    def took(self, name: Hashable, seconds: float) -> float:
        """It was asked once more; what it costs."""
        self._took.setdefault(name, deque(maxlen=REMEMBERED)).append(seconds)
        return self.of(name)


class Budget:
    """Time of the service that looks may take: the part `share` of it, which what is owed for each question is paid
    from. All that is owed is paid off at the same pace, so that a question that costs little is soon free again,
    however much others cost.
    """

    def __init__(self) -> None:
        self.share = SHARE
        self._owed_s: dict[Hashable, float] = {}
        self._at = time.monotonic()

    def _settle(self) -> None:
        now = time.monotonic()
        left, self._at = (now - self._at) * self.share, now
        owed = sorted(self._owed_s.items(), key=lambda each: each[1])
        self._owed_s = {}
        for at, (question, seconds) in enumerate(owed):
            paid = min(seconds, left / (len(owed) - at))
            left -= paid
            if seconds > paid:
                self._owed_s[question] = seconds - paid

    def due_s(self, question: Hashable) -> float:
        """How long until this may be asked again, if nothing else is paid off sooner; 0: it may."""
        self._settle()
        over = self._owed_s.get(question, 0.0) - BURST_S
        return over * len(self._owed_s) / self.share if over > 0 else 0.0

    def lends(self, seconds: float) -> bool:
        """Whether there is as much in reserve: for a small look, the first after a quiet time; of 0 it is not known."""
        self._settle()
        return 0 < seconds <= min(SMALL_S, RESERVE_S - self._owed_s.get(_Reserve, 0.0))

    def spent(self, question: Hashable, seconds: float, *, lent: bool = False) -> None:
        """So much was. What was asked since somebody came or did something is owed once, however often: what many who
        come cost is no reason to show those who are there less.
        """
        self._settle()
        if lent:
            self._owed_s[_Reserve] = self._owed_s.get(_Reserve, 0.0) + seconds
        else:
            self._owed_s[question] = min(self._owed_s.get(question, 0.0) + seconds, seconds + BURST_S)
