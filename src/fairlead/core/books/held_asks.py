"""Held asks: what is not in line yet, because its conditions are not met.

Decides which of them are met at a time, and which wait for the same application. Never enters one
(`policy.events.held` does). Invariant: a held ask belongs to a live application, which does not complete while it has
one; it is in no book of what waits, and a timer is set for one that only waits for its time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from fairlead.core.model.conditions import AttemptHeldBack, Conditions
from fairlead.core.model.plain import from_plain, to_brief
from fairlead.core.model.reason import Reason
from fairlead.core.model.specs import AskSpec

Name = tuple[str, str]
"""Application and key."""


@dataclass(slots=True)
class HeldAsk:
    """An ask that enters when its conditions are met."""

    spec: AskSpec
    conditions: Conditions

    def change_priority(self, priority: int) -> int:
        """Give it another priority before it enters; the one it had."""
        old = self.spec.priority
        self.spec = replace(self.spec, priority=priority)
        return old

    def reason(self) -> Reason:
        """Why it is not in line yet."""
        retry = self.spec.retry
        if self.spec.retried and retry is not None and self.conditions.due_ms() is not None:
            most = retry.limit + 1 + self.spec.requeues
            return AttemptHeldBack(self.spec.key, self.spec.attempt, most, self.conditions.begin_ms)
        return self.conditions.reason()


class HeldAsks:
    """Those of one partition, by application and key, in the order in which they were held."""

    def __init__(self) -> None:
        self._of: dict[str, dict[str, HeldAsk]] = {}
        self._awaiting: dict[str, dict[Name, None]] = {}
        """By application those that wait for what may yet become of it."""
        self.version = 0
        """Grows with every one that is added or taken out."""

    def __bool__(self) -> bool:
        return bool(self._of)

    def __iter__(self) -> Iterator[tuple[str, HeldAsk]]:
        return ((app, held) for app, all_ in self._of.items() for held in all_.values())

    def add(self, application: str, spec: AskSpec, conditions: Conditions) -> None:
        """This ask is held."""
        self.version += 1
        self._of.setdefault(application, {})[spec.key] = HeldAsk(spec, conditions)
        self._await((application, spec.key), conditions)

    def change(self, application: str, held: HeldAsk, conditions: Conditions) -> None:
        """Its conditions are these from now on."""
        self._await_no_more((application, held.spec.key), held.conditions)
        held.conditions = conditions
        self._await((application, held.spec.key), conditions)

    def has(self, application: str) -> bool:
        """Whether some of an application are held."""
        return application in self._of

    def get(self, application: str, key: str) -> HeldAsk | None:
        """The held ask of this key."""
        return self._of.get(application, {}).get(key)

    def of(self, application: str) -> list[HeldAsk]:
        """Those of an application."""
        return list(self._of.get(application, {}).values())

    def named(self, application: str, key: str) -> list[HeldAsk]:
        """That of this key; an empty key: all of the application."""
        return [held for held in self.of(application) if key in ("", held.spec.key)]

    def awaiting(self, application: str) -> list[tuple[str, HeldAsk]]:
        """Those that wait for what may yet become of this application, each with its own."""
        return [(app, self._of[app][key]) for app, key in self._awaiting.get(application, ())]

    def next_due_ms(self, application: str) -> int | None:
        """When the first of those enters that only wait for their time; None: none does."""
        times = (held.conditions.due_ms() for held in self.of(application))
        return min((due_ms for due_ms in times if due_ms is not None), default=None)

    def take(self, application: str, key: str) -> HeldAsk | None:
        """That of this key, which is held no more (it enters now, or was withdrawn)."""
        self.version += 1
        own = self._of.get(application)
        found = own.pop(key, None) if own is not None else None
        if found is not None:
            self._await_no_more((application, key), found.conditions)
        if own is not None and not own:
            del self._of[application]
        return found

    def take_met(self, application: str, now_ms: int) -> list[AskSpec]:
        """Those whose conditions are met, taken out."""
        met = [held.spec for held in self.of(application) if held.conditions.met(now_ms)]
        for spec in met:
            self.take(application, spec.key)
        return met

    def drop(self, application: str) -> None:
        """The application has ended, or is ended: nothing more of it is to come."""
        for held in self.of(application):
            self.take(application, held.spec.key)

    def _await(self, name: Name, conditions: Conditions) -> None:
        for each in conditions.after:
            if not each.never:
                self._awaiting.setdefault(each.application, {})[name] = None

    def _await_no_more(self, name: Name, conditions: Conditions) -> None:
        for each in conditions.after:
            waiting = self._awaiting.get(each.application)
            if waiting is not None:
                waiting.pop(name, None)
                if not waiting:
                    del self._awaiting[each.application]

    def dump(self) -> list[Any]:
        """All of it as plain values."""
        return [[app, to_brief(held.conditions), to_brief(held.spec)] for app, held in self]

    @classmethod
    def load(cls, rows: Iterable[Any]) -> HeldAsks:
        """What `dump` wrote down."""
        held = cls()
        for application, conditions, spec in rows:
            held.add(application, from_plain(spec), from_plain(conditions))
        return held
