"""Goals: one figure of an outcome that is to get better, and how much worse others may get.

Decides which words name which figure and in which direction it is better. Never computes a figure (`figures` does).
Invariant: what can be a goal of a whole simulation can be one of each of its periods.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairlead.core.model.quantities import resource_called
from fairlead.sim.verdicts import LESS, MORE, written

Figures = Mapping[str, Any]
_GOAL = re.compile(
    r"(?P<wait>mean|p50|p95|p99|max) wait(?: of (?P<queue>\S+))?|(?P<slow>mean|p95|p99) slowdown"
    r"|use of (?P<use>\S+)|(?P<lost>run time lost)|(?P<evicted>evictions)"
)
WORDS = "mean wait, p95 wait of QUEUE, p95 slowdown, use of cpu, run time lost, evictions"


class GoalError(ValueError):
    """Words that name no figure."""


@dataclass(frozen=True, slots=True)
class Goal:
    """A figure: where it stands, in which direction it is better, how it is written."""

    said: str
    path: tuple[str, ...]
    better: str
    kind: str

    @property
    def queue(self) -> str:
        """The queue that is named; empty: none."""
        return self.path[2] if self.path[0] == "waits_by" else ""

    @property
    def resource(self) -> str:
        """The resource that is named; empty: none."""
        return self.path[1] if self.path[0] == "use" else ""

    def of(self, figures: Figures) -> float | None:
        """Its value; None where there is none (a count is 0 there)."""
        found: Any = figures
        for name in self.path:
            found = None if found is None else found.get(name)
        if found is None:
            return 0.0 if self.kind == "count" else None
        return float(found)

    def text(self, value: float | None) -> str:
        """For people."""
        return "-" if value is None else written(value, self.kind)

    def is_better(self, new: float, old: float) -> bool:
        """Whether one value is better than another."""
        return new < old if self.better == LESS else new > old


def _wait(said: str, which: str, queue: str) -> Goal:
    """A wait of one queue, or (empty) of all."""
    where = ("waits_by", "queue", queue) if queue else ("waits",)
    return Goal(said, (*where, "started", which), LESS, "time")


def read_goal(text: str) -> Goal:
    """Raises `GoalError`."""
    match = _GOAL.fullmatch(" ".join(text.split()))
    if match is None:
        raise GoalError(f"{text!r} is no figure; write one of: {WORDS}")
    said = match[0]
    if match["wait"]:
        return _wait(said, match["wait"], (match["queue"] or "").lower())
    if match["slow"]:
        return Goal(said, ("slowdown", match["slow"]), LESS, "ratio")
    if match["use"]:
        return Goal(said, ("use", resource_called(match["use"]), "while_coming"), MORE, "part")
    return Goal(
        said, ("stops", "lost_run_s" if match["lost"] else "evicted"), LESS, "time" if match["lost"] else "count"
    )


@dataclass(frozen=True, slots=True)
class Bound:
    """A figure that may get worse by a part of what it is at most."""

    goal: Goal
    part: float

    def breach(self, new: Figures, old: Figures) -> float:
        """How far beyond the bound it is, as a part of what it was; 0: it holds."""
        now, before = self.goal.of(new), self.goal.of(old)
        if before is None:
            return 0.0
        if now is None:
            return 1.0
        worse = (now - before) if self.goal.better == LESS else (before - now)
        # Seconds, counts and hundredths do not count where there is next to nothing, unless nothing is allowed.
        least = {"time": 10.0, "count": 1.0}.get(self.goal.kind, 0.01)
        allowed = max(self.part * abs(before), least) if self.part else 0.0
        return max(worse - allowed, 0.0) / max(abs(before), least)


def read_bound(text: str) -> Bound:
    """`FIGURE+PART%`, such as `p95 wait of root.batch+10%`. Raises `GoalError`."""
    words, plus, part = text.rpartition("+")
    match = re.fullmatch(r" *(\d+(?:\.\d+)?) *% *", part)
    if not plus or match is None:
        raise GoalError(f"{text!r}: write FIGURE+PART%, such as 'p95 wait of root.batch+10%'")
    return Bound(read_goal(words), float(match[1]) / 100)


def of_every_queue(figures: Figures, part: float) -> Sequence[Bound]:
    """That no queue waits longer in the mean by more than this part, and that no less starts: what waits for ever and
    what is refused have no wait.
    """
    queues = [_wait(f"mean wait of {name}", "mean", name) for name in figures["waits_by"]["queue"]]
    starts = Goal("tasks that start", ("waits", "started", "count"), MORE, "count")
    return [*(Bound(goal, part) for goal in queues), Bound(starts, 0.0)]
