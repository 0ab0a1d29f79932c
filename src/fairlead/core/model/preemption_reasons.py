"""Why work waits though others could be stopped for it, or although there seems to be room: reasons of preemption.

Decides what can be said of it. They are part of `fairlead.core.model.reasons`, from where everybody takes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from fairlead.core.model.quantities import format_amounts
from fairlead.core.model.reason import Reason


@dataclass(frozen=True, slots=True)
class LimitPromised(Reason):
    """A user or group has room under its limit, but that is promised to asks for which others were told to stop."""

    code: ClassVar[str] = "limit-promised"
    kind: str
    name: str
    queue: str
    needed: Mapping[str, int]
    free: Mapping[str, int]
    promised_to: tuple[str, ...]
    """`application/key` of each ask for which space is held."""

    def sentence(self) -> str:
        """One plain sentence."""
        needed = format_amounts(dict(self.needed), up=True)
        return (
            f"needs {needed}; what {self.kind} {self.name} has left of the limit in "
            f"{self.queue}, {format_amounts(dict(self.free))}, is promised to {', '.join(self.promised_to)}"
        )


@dataclass(frozen=True, slots=True)
class ApplicationsPromised(Reason):
    """One application more could run, but the last places are promised to work for which others were told to stop."""

    code: ClassVar[str] = "applications-promised"
    kind: str
    """`queue`, `user` or `group`: whose number of applications it is."""
    name: str
    """Of the user or group; nothing for a queue."""
    queue: str
    running: int
    max: int
    promised_to: tuple[str, ...]
    """The applications that are to start."""

    def sentence(self) -> str:
        """One plain sentence."""
        where = f"queue {self.queue}" if self.kind == "queue" else f"{self.kind} {self.name} in {self.queue}"
        return (
            f"{where} runs {self.running} of at most {self.max} applications; "
            f"the rest is promised to {', '.join(self.promised_to)}"
        )


@dataclass(frozen=True, slots=True)
class NeverPreempts(Reason):
    """It goes ahead of lower priorities but nobody is stopped for it."""

    code: ClassVar[str] = "never-preempts"

    def sentence(self) -> str:
        """One plain sentence."""
        return "it may not cause other work to stop; it starts when there is room"


@dataclass(frozen=True, slots=True)
class PreemptionDoesNotHelp(Reason):
    """There is no work that may be stopped and whose going would make it fit."""

    code: ClassVar[str] = "preemption-does-not-help"
    priority: int
    below: int
    """How much running work stands below it, as far as it may look for victims."""
    spared: int
    """How much of that may not be stopped now: it has not run for long, or it was stopped for the same ask before."""

    def sentence(self) -> str:
        """One plain sentence."""
        if not self.below:
            return f"no running work that it may stop stands below its priority {self.priority}"
        spared = f", {self.spared} of which are spared for now" if self.spared else ""
        found = "1 allocation stands" if self.below == 1 else f"{self.below} allocations stand"
        return f"{found} below its priority {self.priority}{spared}; stopping them would not make it fit on any node"


@dataclass(frozen=True, slots=True)
class WaitingForVictims(Reason):
    """Others were told to stop for it; the space is held until they are gone."""

    code: ClassVar[str] = "waiting-for-victims"
    node: str
    victims: tuple[str, ...]
    overdue: tuple[str, ...] = ()
    """Those of them that have not left in their time."""

    def sentence(self) -> str:
        """One plain sentence."""
        late = f"; {', '.join(self.overdue)} should have stopped by now" if self.overdue else ""
        return f"space on {self.node} is held for it; waiting for {', '.join(self.victims)} to stop{late}"
