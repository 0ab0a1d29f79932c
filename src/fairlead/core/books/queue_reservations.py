"""Turns kept for single asks: while an ask has a reservation in its queue, those behind it wait until it runs.

Decides which ask is held back by which. Not to be mixed up with a node that is set aside (`core.acts.reserve_node`).
Never gives a reservation (`policy.eligibility.max_wait` does). Invariant: an ask with a reservation waits, in the leaf
under which it is listed.

An administrator's reservation holds back what has a lower priority, but a further attempt that its own application has
put first. One that came of waiting too long holds back what comes later in the order and has the same priority too:
otherwise small work could pass it for ever. Of higher ones none: a retried ask stands before them, and one of these may
have a turn that holds this one back. While a limit of its user or group is in the way of such an ask, it holds back
only what counts under that limit: other work would make no room for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairlead.core.books import Ask, Ceiling, Queue


@dataclass(slots=True)
class Reservation:
    """Since when, and by whose order, an ask has its turn kept."""

    since_ms: int
    who: str
    why: str
    by_itself: bool
    """It waited as long as its queue allows (`wait.max`)."""
    limit: Ceiling | None = None
    """The limit of its user or group that was in its way when the last run began, where it waited too long."""

    def concerns(self, other: Ask) -> bool:
        """Whether its ask could use what `other` would take."""
        return self.limit is None or self.limit in other.app.ceilings

    def holds_back(self, holder: Ask, other: Ask) -> bool:
        """Whether `other`, of the same leaf, waits until `holder` runs: not what its own application puts before it,
        nor the placeholders of its gang, for which it waits.
        """
        if not self.concerns(other):
            return False
        if other.app is holder.app:
            stands_in = other.spec.placeholder and not holder.spec.placeholder
            if stands_in or other.line_key < holder.line_key:
                return False
        if other.priority != holder.priority:
            return other.priority < holder.priority
        return self.by_itself and other.line_key > holder.line_key


class Reserving:
    """The reservations of one partition, by leaf, each in the order in which they were given."""

    def __init__(self) -> None:
        self.of: dict[Queue, dict[Ask, Reservation]] = {}
        self.overdue: dict[Queue, None] = {}
        """Leaves in which some ask may have waited as long as it may."""
        self.bounded: dict[Queue, None] = {}
        """Leaves with `wait.max` in which something has waited."""
        self.places_made: tuple[int, int, list[Queue | Ceiling | None]] | None = None
        """The state of things in which places to run were last made for turns; never needed, only quicker."""

    def get(self, ask: Ask) -> Reservation | None:
        """The reservation of this ask."""
        return self.of.get(ask.app.queue, {}).get(ask)

    def holder(self, ask: Ask) -> Ask | None:
        """The first ask with a reservation that holds this one back."""
        own = self.of.get(ask.app.queue)
        for holder, reservation in own.items() if own is not None else ():
            if holder is not ask and reservation.holds_back(holder, ask):
                return holder
        return None

    def holds_back_under_limit(self, ask: Ask) -> bool:
        """Whether something holds it back that waits for a limit of its user or group."""
        own = self.of.get(ask.app.queue, {}).items()
        return any(r.limit is not None and h is not ask and r.holds_back(h, ask) for h, r in own)

    def every(self) -> Iterator[tuple[Ask, Reservation]]:
        """All of them, leaf by leaf."""
        for own in self.of.values():
            yield from own.items()

    def within(self, group: Queue, idle: Ask) -> Ask | None:
        """The first ask with a reservation in this queue or below for which an idle ask there has to wait."""
        for holder, reservation in self.every():
            if group in holder.app.queue.lineage and reservation.concerns(idle):
                return holder
        return None

    def put(self, ask: Ask, reservation: Reservation) -> None:
        """`ask` has this reservation from now on."""
        self.of.setdefault(ask.app.queue, {})[ask] = reservation

    def take(self, ask: Ask) -> Reservation | None:
        """`ask` has none any longer."""
        own = self.of.get(ask.app.queue, {})
        reservation = own.pop(ask, None)
        if reservation is not None and not own:
            del self.of[ask.app.queue]
        return reservation

    def look_again(self) -> None:
        """What a node could hold may be another now: so may be what could ever run, and what a turn is kept for."""
        self.overdue |= self.bounded

    def forget(self, leaf: Queue) -> None:
        """A queue is removed, or has no `wait.max` any more: nothing waits too long in it."""
        self.overdue.pop(leaf, None)
        self.bounded.pop(leaf, None)

    def dump(self) -> dict[str, Any]:
        """All of it as plain values."""
        return {
            "of": [
                [a.app.id, a.key, r.since_ms, r.who, r.why, r.by_itself, r.limit.key if r.limit is not None else None]
                for a, r in self.every()
            ],
            "overdue": [leaf.path for leaf in sorted(self.overdue, key=lambda leaf: leaf.seq)],
            "bounded": [leaf.path for leaf in sorted(self.bounded, key=lambda leaf: leaf.seq)],
        }
