"""What goes wrong between the product and the fake server, drawn from a seed.

Decides delays, refusals, lost answers, and watches that repeat, reorder or break off. Once `calm` is set everything
goes well, so that a test can ask whether all has come right in the end.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Fault:
    """What happens to one request."""

    delay_s: float = 0.002
    status: int = 0
    retry_after: int | None = None
    lost: str = ""
    """`before`: it never arrives; `after`: it is carried out and the answer is lost."""


class Faults:
    """No faults at all; a base for those that have some."""

    calm = True

    def for_request(self, method: str, path: str) -> Fault:
        return Fault()

    def disturb(self, changes: Sequence[T]) -> Sequence[T]:
        return changes

    def cuts(self) -> bool:
        return False

    def watch_delay(self) -> float:
        return 0.001

    def stopping(self, grace_s: float) -> float:
        """How long a pod takes to stop."""
        return min(grace_s, 0.5)


class SeededFaults(Faults):
    """Faults at random, `rate` of the requests, until `calm`."""

    def __init__(self, seed: int, rate: float = 0.1) -> None:
        self.chance = random.Random(seed)
        self.rate = rate
        self.calm = False

    def for_request(self, method: str, path: str) -> Fault:
        if self.calm:
            return Fault()
        delay = self.chance.choice([0.001, 0.005, 0.02, 0.3])
        if self.chance.random() >= self.rate:
            return Fault(delay)
        kind = self.chance.choice(["429", "500", "503", "409", "before", "after", "slow"])
        if kind in ("before", "after"):
            return Fault(delay, lost=kind)
        if kind == "slow":
            return Fault(self.chance.uniform(1, 40))
        if kind == "409" and method in ("GET", "WATCH"):
            kind = "410" if method == "WATCH" else "500"
        return Fault(delay, int(kind), retry_after=1 if kind == "429" else None)

    def disturb(self, changes: Sequence[T]) -> Sequence[T]:
        if self.calm or not changes:
            return changes
        told = list(changes)
        if self.chance.random() < 0.15:
            told.insert(self.chance.randrange(len(told) + 1), self.chance.choice(told))
        if self.chance.random() < 0.1 and len(told) > 1:
            at = self.chance.randrange(len(told) - 1)
            told[at], told[at + 1] = told[at + 1], told[at]
        return told

    def cuts(self) -> bool:
        return not self.calm and self.chance.random() < 0.02

    def watch_delay(self) -> float:
        return 0.001 if self.calm else self.chance.choice([0.001, 0.01, 0.2, 2.0])

    def stopping(self, grace_s: float) -> float:
        return min(grace_s, self.chance.uniform(0.1, grace_s + 1))
