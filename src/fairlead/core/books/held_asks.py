"""Held asks: what is not in line yet, because its conditions are not met, or enough of its application are.

Decides which of them are met at a time, which wait for the same application, and which is next where an application
has a bound. Never enters one (`policy.events.held` does). Invariant: a held ask belongs to a live application, which
does not complete while it has one; it is in no book of what waits, and a timer is set for one that only waits for its
time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

from fairlead.core.model.conditions import MET, AttemptHeldBack, Conditions, EnoughAtOnce
from fairlead.core.model.plain import from_plain, to_brief
from fairlead.core.model.reason import Reason
from fairlead.core.model.specs import AskSpec

if TYPE_CHECKING:
    from fairlead.core.books.applications import Application

Name = tuple[str, str]
"""Application and key."""
Turn = tuple[bool, int, int]
"""What comes first: what is tried again, then a higher priority, then what was held earlier."""


@dataclass(slots=True)
class HeldAsk:
    """An ask that enters when its conditions are met."""

    spec: AskSpec
    conditions: Conditions
    seq: int
    """Grows with each that is held."""

    @property
    def turn(self) -> Turn:
        """Its place among those of its application that wait for nothing but their turn."""
        return (not self.spec.retried, -self.spec.priority, self.seq)

    def change_priority(self, priority: int) -> int:
        """Give it another priority before it enters; the one it had."""
        old = self.spec.priority
        self.spec = replace(self.spec, priority=priority)
        return old

    def reason(self, app: Application, now_ms: int) -> Reason:
        """Why it is not in line yet."""
        if self.conditions.met(now_ms):
            return EnoughAtOnce(app.id, app.allocations, app.pending_count, app.spec.at_once)
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
        self._turns: dict[str, list[tuple[Turn, str]]] = {}
        """By application a heap of those that wait for nothing but their turn. What changed since counts no longer."""
        self._due: dict[str, list[tuple[int, str]]] = {}
        """By application a heap of the times that held asks only wait for. What changed since counts no longer."""
        self.freed: dict[str, None] = {}
        """Applications with a bound of which something ended since somebody last looked (and emptied this)."""
        self.version = 0
        """Grows with every one that is added, taken out, or gets other labels."""

    def __bool__(self) -> bool:
        return bool(self._of)

    def __iter__(self) -> Iterator[tuple[str, HeldAsk]]:
        return ((app, held) for app, all_ in self._of.items() for held in all_.values())

    def add(self, application: str, spec: AskSpec, conditions: Conditions) -> None:
        """This ask is held."""
        self.version += 1
        held = self._of.setdefault(application, {})[spec.key] = HeldAsk(spec, conditions, self.version)
        self._await((application, spec.key), conditions)
        self._note_due(application, held)

    def add_ahead(self, application: str, specs: list[AskSpec]) -> None:
        """These wait for nothing but their turn, ahead of all others of their application that have their priority."""
        self.version += 1
        others = self._of.get(application, {})
        first = min((held.seq for held in others.values()), default=0) - len(specs)
        ahead = {spec.key: HeldAsk(spec, MET, first + n) for n, spec in enumerate(specs)}
        if ahead:
            self._of[application] = ahead | others
        for held in ahead.values():
            self.await_turn(application, held)

    def change(self, application: str, held: HeldAsk, conditions: Conditions) -> None:
        """Its conditions are these from now on."""
        self._await_no_more((application, held.spec.key), held.conditions)
        held.conditions = conditions
        self._await((application, held.spec.key), conditions)
        self._note_due(application, held)

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
        if not key:
            return self.of(application)
        held = self.get(application, key)
        return [] if held is None else [held]

    def awaiting(self, application: str) -> list[tuple[str, HeldAsk]]:
        """Those that wait for what may yet become of this application, each with its own."""
        return [(app, self._of[app][key]) for app, key in self._awaiting.get(application, ())]

    def next_due_ms(self, application: str, now_ms: int) -> int | None:
        """When the first of those is due that only wait for a time that is to come; None: none does."""
        times = self._due.get(application)
        while times:
            due_ms, key = times[0]
            held = self.get(application, key)
            if due_ms > now_ms and held is not None and held.conditions.due_ms() == due_ms:
                return due_ms
            heappop(times)
        self._due.pop(application, None)
        return None

    def take_due(self, application: str, now_ms: int) -> list[HeldAsk]:
        """Those whose time has come since this, or `next_due_ms`, was asked last, as they were held; none is taken."""
        found: dict[str, HeldAsk] = {}
        times = self._due.get(application)
        while times and times[0][0] <= now_ms:
            due_ms, key = heappop(times)
            held = self.get(application, key)
            if held is not None and held.conditions.due_ms() == due_ms:
                found[key] = held
        return sorted(found.values(), key=lambda held: held.seq)

    def await_turn(self, application: str, held: HeldAsk) -> None:
        """It waits for nothing but its turn, or for another one than before."""
        turns = self._turns.setdefault(application, [])
        heappush(turns, (held.turn, held.spec.key))
        own = self._of[application]
        if len(turns) > 2 * len(own) + 8:
            # Priorities that change again and again must not make it long.
            counts = {entry: None for entry in turns if entry[1] in own and own[entry[1]].turn == entry[0]}
            self._turns[application] = sorted(counts)

    def next_in_turn(self, application: str, now_ms: int) -> HeldAsk | None:
        """The one whose turn it is of those that wait for nothing else, or None. It stays until it is taken."""
        turns = self._turns.get(application)
        while turns:
            turn, key = turns[0]
            held = self.get(application, key)
            if held is not None and held.turn == turn and held.conditions.met(now_ms):
                return held
            heappop(turns)
        self._turns.pop(application, None)
        return None

    def take(self, application: str, key: str) -> HeldAsk | None:
        """That of this key, which is held no more (it enters now, or was withdrawn)."""
        self.version += 1
        own = self._of.get(application, {})
        found = own.pop(key, None)
        if found is not None:
            self._await_no_more((application, key), found.conditions)
            if not own:
                del self._of[application]
                self._turns.pop(application, None)
                self._due.pop(application, None)
        return found

    def drop(self, application: str) -> None:
        """The application has ended, or is ended: nothing more of it is to come."""
        for held in self.of(application):
            self.take(application, held.spec.key)

    def _note_due(self, application: str, held: HeldAsk) -> None:
        due_ms = held.conditions.due_ms()
        if not due_ms:
            return
        times = self._due.setdefault(application, [])
        heappush(times, (due_ms, held.spec.key))
        if len(times) > 2 * len(self._of[application]) + 8:
            # Conditions that change again and again must not make it long.
            own = ((each.conditions.due_ms(), key) for key, each in self._of[application].items())
            self._due[application] = sorted((due_ms, key) for due_ms, key in own if due_ms)

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
    def load(cls, rows: Iterable[Any], now_ms: int) -> HeldAsks:
        """What `dump` wrote down. What waits for nothing waits for its turn."""
        held_asks = cls()
        for application, conditions, spec in rows:
            held_asks.add(application, from_plain(spec), from_plain(conditions))
        for application, held in held_asks:
            if held.conditions.met(now_ms):
                held_asks.await_turn(application, held)
        return held_asks
