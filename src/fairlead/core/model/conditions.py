"""Conditions: what has to come about before an ask is in line, and why it is not in line yet.

Decides when conditions are met, and what the start or the end of another application means for them. Never says how an
application ended: who runs the work knows that, and says so. Invariant: conditions that are met stay met, unless they
are replaced.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from fairlead.core.model.reason import Reason


class Outcome(StrEnum):
    """What became of an application that others wait for."""

    STARTED = "started"
    OK = "ok"
    NOT_OK = "not-ok"
    """It ended, and not well: it failed, was stopped, or never ran."""


class Awaited(StrEnum):
    """What is waited for."""

    STARTED = "started"
    """That it has started, or has ended without."""
    OK = "ok"
    ANY = "any"
    """That it has ended, however."""
    NOT_OK = "not-ok"


_MET: dict[Awaited, frozenset[Outcome]] = {
    Awaited.STARTED: frozenset(Outcome),
    Awaited.OK: frozenset({Outcome.OK}),
    Awaited.ANY: frozenset({Outcome.OK, Outcome.NOT_OK}),
    Awaited.NOT_OK: frozenset({Outcome.NOT_OK}),
}
IN_WORDS: dict[Awaited, str] = {
    Awaited.STARTED: "to start",
    Awaited.OK: "to end well",
    Awaited.ANY: "to end",
    Awaited.NOT_OK: "to end otherwise than well",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependency:
    """Another application, and what is waited for of it."""

    application: str
    awaited: Awaited = Awaited.OK
    never: str = ""
    """Why that can never come about any more, as part of a sentence, such as `failed`; empty: it can."""

    def after(self, outcome: Outcome, how: str) -> Dependency | None:
        """What is left of it when this became of the application; None: it is met."""
        if outcome in _MET[Awaited(self.awaited)]:
            return None
        return self if outcome is Outcome.STARTED else replace(self, never=how)


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """All of these have to be met before an ask is in line."""

    held_by: str = ""
    """Who put it on hold; it waits until it is released. Empty: it is not on hold."""
    begin_ms: int = 0
    """It is not in line before this time."""
    after: tuple[Dependency, ...] = ()
    """What is waited for of others."""

    def due_ms(self) -> int | None:
        """From when on they are met if nothing but time passes; None: that is not enough."""
        return None if self.held_by or self.after else self.begin_ms

    def met(self, now_ms: int) -> bool:
        """Whether nothing is in the way."""
        due_ms = self.due_ms()
        return due_ms is not None and due_ms <= now_ms

    def when(self, application: str, outcome: Outcome, how: str) -> Conditions:
        """What they are when this became of an application."""
        left = [each.after(outcome, how) if each.application == application else each for each in self.after]
        return replace(self, after=tuple(each for each in left if each is not None))

    def reason(self) -> Reason:
        """Why the ask is not in line: the first of these that takes longest as a rule."""
        lost = tuple(each for each in self.after if each.never)
        if lost:
            return NeverRuns(tuple(each.application for each in lost), tuple(_lost(each) for each in lost))
        if self.held_by:
            return OnHold(self.held_by)
        if self.after:
            return WaitsForOthers(*(tuple(d.application for d in self.after if d.awaited == kind) for kind in Awaited))
        return BeginsAt(self.begin_ms)


MET = Conditions()


def _lost(dependency: Dependency) -> str:
    return f"{dependency.application} was {IN_WORDS[Awaited(dependency.awaited)]}, and it {dependency.never}"


# -- reasons ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OnHold(Reason):
    """Somebody put it on hold."""

    template = "was put on hold by {who} and waits until it is released"
    who: str


@dataclass(frozen=True, slots=True)
class BeginsAt(Reason):
    """It was asked to begin at a time that has not come."""

    template = "waits for the time it is to begin at"
    due_ms: int


@dataclass(frozen=True, slots=True)
class WaitsForOthers(Reason):
    """Others have to start or to end before."""

    started: tuple[str, ...]
    """These have to start."""
    ok: tuple[str, ...]
    """These have to end well."""
    any: tuple[str, ...]
    """These have to end."""
    not_ok: tuple[str, ...]
    """These have to end otherwise than well."""

    def _sentence(self) -> str:
        by = zip(Awaited, (self.started, self.ok, self.any, self.not_ok), strict=True)
        return f"waits for {', for '.join(f'{_listed(names)} {IN_WORDS[kind]}' for kind, names in by if names)}"


@dataclass(frozen=True, slots=True)
class EnoughAtOnce(Reason):
    """As many of its application are in line or run as may be at a time."""

    application: str
    running: int
    in_line: int
    at_once: int

    def _sentence(self) -> str:
        run = "runs" if self.running == 1 else "run"
        if not self.in_line:
            return f"is part of {self.application}, of which {self.running} of at most {self.at_once} {run}"
        count = f"{self.in_line} {'waits' if self.in_line == 1 else 'wait'} in line"
        both = f"{self.running} {run} and {count}" if self.running else count
        return f"is part of {self.application}, of which at most {self.at_once} may run at a time: {both}"


@dataclass(frozen=True, slots=True)
class NeverRuns(Reason):
    """What it waits for can never come about any more."""

    applications: tuple[str, ...]
    lost: tuple[str, ...]
    """For each of these what was waited for and what came of it, as part of a sentence."""

    def _sentence(self) -> str:
        return f"can never run: {_listed(self.lost, '; ')}"


@dataclass(frozen=True, slots=True)
class AttemptHeldBack(Reason):
    """The attempt before it was broken off or failed; it enters when its back-off is over."""

    template = "attempt {attempt} of at most {most} enters after its back-off"
    key: str
    attempt: int
    most: int
    """Attempts at most, the first one included."""
    due_ms: int


_SHOWN = 8


def _listed(texts: tuple[str, ...], between: str = ", ") -> str:
    """At most a few of them by name."""
    more = f" and {len(texts) - _SHOWN} more" if len(texts) > _SHOWN else ""
    return between.join(texts[:_SHOWN]) + more
