"""Retries: when work gets a further attempt, and the attempts that wait for their time.

Decides whether an end is followed by a further attempt, what that attempt asks for, and how long it is held back. Never
enters it (`policy.events.retry` does). Invariant: an attempt that is to come belongs to a live application, which does
not complete while it has one, and a timer is set for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from fairlead.core.model.events import Cause
from fairlead.core.model.plain import from_plain, to_plain
from fairlead.core.model.reasons import AttemptHeldBack
from fairlead.core.model.specs import TAG_CREATION_TIME, AskSpec

BACKOFF_MAX_MS = 3_600_000
"""No attempt is held back for longer, however many failed before it."""
GAVE_WAY = "gang-deadlock"
"""The rule by which placeholders are told to go so that another gang gets through: they come back."""
BROKEN_OFF = frozenset({Cause.INTERRUPTED, Cause.PREEMPTED_BY_SCHEDULER})
"""Ends that say nothing against the work: it was stopped from outside."""


def why_final(spec: AskSpec, cause: Cause, exit_code: int | None = None) -> str:
    """Why this end is not followed by a further attempt, as part of a sentence; nothing: it is.

    `exit_code` counts where the work ended by itself (`FINISHED`); work that a signal N ended has 128 + N.
    """
    if spec.retry is None:
        # Idle work gives back what it borrowed and goes back to its queue, as often as that happens.
        if spec.idle and cause is Cause.PREEMPTED_BY_SCHEDULER:
            return ""
        return "it was submitted without retry"
    if spec.placeholder:
        return "it is a placeholder"
    if cause is Cause.FINISHED:
        if exit_code is None:
            return "how it ended is not known"
        if exit_code == 0:
            return "it ended well"
        if exit_code in spec.retry.never_on:
            return f"exit status {exit_code} is one after which it is not tried again"
    elif cause is Cause.STOPPED_BY_RM:
        return "it was ended on request"
    elif cause not in BROKEN_OFF:
        return f"an end by {cause} is not tried again"
    if spec.attempt > spec.retry.limit:
        return f"it had all its {spec.retry.limit + 1} attempts"
    return ""


def backoff_ms(spec: AskSpec) -> int:
    """How long the attempt after this one is held back: the stated time, doubled for each further one, at most 1 h.

    Idle work without retry is not held back.
    """
    if spec.retry is None:
        return 0
    return min(spec.retry.backoff_ms << min(spec.attempt - 1, 32), BACKOFF_MAX_MS)


def next_spec(spec: AskSpec, priority: int) -> AskSpec:
    """What the attempt after this one asks for: the same, with the priority that the ask has now.

    It is created when it enters. A member of a gang comes back as a plain ask: the placeholder that kept room for it is
    used up, and one that still stands keeps room for another member.
    """
    first = spec.first_key or spec.key
    attempt = spec.attempt + 1
    tags = {name: value for name, value in spec.tags.items() if name != TAG_CREATION_TIME}
    return replace(
        spec,
        key=f"{first}#{attempt}",
        first_key=first,
        attempt=attempt,
        priority=priority,
        tags=tags,
        node="",
        task_group="",
    )


def next_placeholder(spec: AskSpec, priority: int) -> AskSpec:
    """What a placeholder asks for that was given back so that another gang gets through: all as before, its age too."""
    return replace(next_spec(spec, priority), task_group=spec.task_group, tags=spec.tags)


@dataclass(slots=True)
class Coming:
    """An attempt that enters at `due_ms`."""

    spec: AskSpec
    due_ms: int

    def change_priority(self, priority: int) -> int:
        """Give it another priority before it enters; the one it had."""
        old = self.spec.priority
        self.spec = replace(self.spec, priority=priority)
        return old

    def held_back(self) -> AttemptHeldBack:
        """Why it is not in line yet."""
        retry = self.spec.retry
        assert retry is not None
        return AttemptHeldBack(self.spec.key, self.spec.attempt, retry.limit + 1, self.due_ms)


class Retries:
    """The attempts of one partition that wait for their time, by application and key, in the order of their making."""

    def __init__(self) -> None:
        self._of: dict[str, dict[str, Coming]] = {}
        self.version = 0
        """Grows with every attempt that is added or taken out."""

    def __bool__(self) -> bool:
        return bool(self._of)

    def __iter__(self) -> Iterator[tuple[str, Coming]]:
        return ((app, coming) for app, all_ in self._of.items() for coming in all_.values())

    def add(self, application: str, spec: AskSpec, due_ms: int) -> None:
        """This attempt is to come."""
        self.version += 1
        self._of.setdefault(application, {})[spec.key] = Coming(spec, due_ms)

    def has(self, application: str) -> bool:
        """Whether the application has attempts to come."""
        return application in self._of

    def get(self, application: str, key: str) -> Coming | None:
        """The attempt to come of this key."""
        return self._of.get(application, {}).get(key)

    def of(self, application: str) -> list[Coming]:
        """The attempts to come of an application."""
        return list(self._of.get(application, {}).values())

    def named(self, application: str, key: str) -> list[Coming]:
        """The attempts to come of this key; an empty key: all of the application."""
        return [coming for coming in self.of(application) if key in ("", coming.spec.key)]

    def take(self, application: str, key: str) -> Coming | None:
        """The attempt of this key, which is not to come any more (it enters now, or was withdrawn)."""
        self.version += 1
        own = self._of.get(application)
        found = own.pop(key, None) if own is not None else None
        if own is not None and not own:
            del self._of[application]
        return found

    def take_due(self, application: str, now_ms: int) -> list[AskSpec]:
        """The attempts whose time has come, taken out."""
        due = [coming.spec for coming in self.of(application) if coming.due_ms <= now_ms]
        for spec in due:
            self.take(application, spec.key)
        return due

    def drop(self, application: str) -> None:
        """The application has ended, or is ended: nothing more of it is to come."""
        self.version += self._of.pop(application, None) is not None

    def dump(self) -> list[Any]:
        """All of it as plain values."""
        return [[app, coming.due_ms, to_plain(coming.spec)] for app, coming in self]

    @classmethod
    def load(cls, rows: list[Any]) -> Retries:
        """What `dump` wrote down."""
        retries = cls()
        for application, due_ms, spec in rows:
            retries.add(application, from_plain(spec), due_ms)
        return retries
