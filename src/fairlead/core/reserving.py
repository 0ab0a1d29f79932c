"""Turns kept for single asks: while an ask has a reservation in its queue, those behind it wait until it runs.

Decides who is held back by whom, and what follows in the books when a reservation begins or ends. Never gives one by
itself (`fairlead.policy.turns` does). Not to be mixed up with a node that is set aside (`core.claims`). Invariant: an
ask with a reservation waits, in the leaf under which it is listed.

An administrator's reservation holds back what has a lower priority. One that came of waiting too long holds back all
that comes later in the order too: otherwise small work of the same priority could pass it for ever.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairlead.core import node_reservations, nominations
from fairlead.core.decisions import ReservationSwitched

if TYPE_CHECKING:
    from fairlead.core.asks import Ask
    from fairlead.core.partition import Partition
    from fairlead.core.queues import Queue


@dataclass(slots=True)
class Reservation:
    """Since when, and through whom, an ask has its turn kept."""

    since_ms: int
    who: str
    why: str
    by_itself: bool
    """It waited as long as its queue allows (`wait.max`)."""

    def holds_back(self, holder: Ask, other: Ask) -> bool:
        """Whether `other`, of the same leaf, waits until `holder` runs."""
        if other.priority < holder.priority:
            return True
        return self.by_itself and other.line_key > holder.line_key


class Reserving:
    """The reservations of one partition, by leaf, each in the order in which they were given."""

    __slots__ = ("bounded", "of", "overdue")

    def __init__(self) -> None:
        self.of: dict[Queue, dict[Ask, Reservation]] = {}
        self.overdue: dict[Queue, None] = {}
        """Leaves in which some ask may have waited as long as it may."""
        self.bounded: dict[Queue, None] = {}
        """Leaves with `wait.max` in which something has waited."""

    def get(self, ask: Ask) -> Reservation | None:
        """The reservation of this ask."""
        own = self.of.get(ask.app.queue)
        return own.get(ask) if own is not None else None

    def holder(self, ask: Ask) -> Ask | None:
        """The first ask with a reservation that holds this one back."""
        for holder, reservation in self.of.get(ask.app.queue, _NOBODY).items():
            if holder is not ask and reservation.holds_back(holder, ask):
                return holder
        return None

    def every(self) -> Iterator[tuple[Ask, Reservation]]:
        """All of them, leaf by leaf."""
        for own in self.of.values():
            yield from own.items()

    def within(self, group: Queue) -> Ask | None:
        """The first ask with a reservation in this queue or below."""
        for leaf, own in self.of.items():
            if group in leaf.lineage:
                return next(iter(own))
        return None

    def put(self, ask: Ask, reservation: Reservation) -> None:
        """`ask` has this reservation from now on."""
        self.of.setdefault(ask.app.queue, {})[ask] = reservation

    def take(self, ask: Ask) -> Reservation | None:
        """`ask` has none any longer."""
        own = self.of.get(ask.app.queue)
        if own is None or ask not in own:
            return None
        reservation = own.pop(ask)
        if not own:
            del self.of[ask.app.queue]
        return reservation

    def forget(self, leaf: Queue) -> None:
        """A queue is removed, or has no `wait.max` any more: nobody waits too long in it."""
        self.overdue.pop(leaf, None)
        self.bounded.pop(leaf, None)

    def dump(self) -> dict[str, Any]:
        """All of it as plain values."""
        return {
            "of": [[a.app.id, a.key, r.since_ms, r.who, r.why, r.by_itself] for a, r in self.every()],
            "overdue": [leaf.path for leaf in sorted(self.overdue, key=_seq)],
            "bounded": [leaf.path for leaf in sorted(self.bounded, key=_seq)],
        }


_NOBODY: dict[Ask, Reservation] = {}


def _seq(leaf: Queue) -> int:
    return leaf.seq


# -- acts on a partition ------------------------------------------------------------------------------------------


def begin(partition: Partition, ask: Ask, who: str, why: str, *, by_itself: bool = False) -> None:
    """Keep the turn of a waiting ask. Nodes that are set aside for those who wait for it now are given back."""
    reservation = Reservation(partition.now_ms, who, why, by_itself)
    partition.reserving.put(ask, reservation)
    partition.books_version += 1
    partition.out.append(ReservationSwitched(ask.app.id, ask.key, True, who, why, partition.name))
    if not partition.reservations:
        return
    for app in ask.app.queue.applications.values():
        for other in app.asks.values():
            if other.reserved_on is not None and other is not ask and reservation.holds_back(ask, other):
                node_reservations.unreserve(partition, other)


def end(partition: Partition, ask: Ask, who: str = "", why: str = "") -> None:
    """The turn of `ask` is kept no longer: all that was held back is looked at again."""
    leaf = ask.app.queue
    reservation = partition.reserving.take(ask)
    if reservation is None:
        return
    partition.books_version += 1
    if ask.nomination is not None and not ask.nomination.is_coming:
        nominations.withdraw(partition, ask)
    partition.out.append(ReservationSwitched(ask.app.id, ask.key, False, who, why, partition.name))
    wake(leaf)
    if leaf.properties.wait_max_ms:
        partition.reserving.overdue[leaf] = None


def reordered(partition: Partition, leaf: Queue) -> None:
    """A priority in this leaf has changed: who is held back now gives back the node that was set aside for it."""
    if partition.reservations:
        for app in leaf.applications.values():
            for ask in app.asks.values():
                if ask.reserved_on is not None and partition.reserving.holder(ask) is not None:
                    node_reservations.unreserve(partition, ask)
    wake(leaf)


def wake(leaf: Queue) -> None:
    """Who is held back in this leaf may have changed: asks that nobody looked at are looked at now."""
    for app in leaf.applications.values():
        for batch in app.batches.values():
            app.forget_attempts(batch)
        if app.pending_count:
            leaf.touch_app(app)


TIMER = "wait"


def watch(partition: Partition, ask: Ask) -> None:
    """An ask begins to wait in a leaf with `wait.max`: look at the leaf when it has waited so long."""
    partition.reserving.bounded[ask.app.queue] = None
    due_ms = ask.created_ms + ask.app.queue.properties.wait_max_ms
    partition.timers.set_earlier(max(due_ms, partition.now_ms), partition.name, ask.app.queue.path, TIMER)


def watch_all(partition: Partition) -> None:
    """The file has changed: reservations by waiting end where there is no bound now; where there is one, it counts."""
    for ask, reservation in list(partition.reserving.every()):
        if reservation.by_itself and not ask.app.queue.properties.wait_max_ms:
            end(partition, ask, why="its queue has no wait.max any more")
    for leaf in list(partition.reserving.bounded):
        if not leaf.properties.wait_max_ms:
            partition.reserving.forget(leaf)
    for app in partition.applications.values():
        if app.pending_count and app.queue.properties.wait_max_ms:
            for ask in app.waiting_asks():
                if not ask.spec.idle:
                    watch(partition, ask)


def on_timer(partition: Partition, path: str) -> None:
    """Some ask of this leaf may have waited as long as it may: the next run looks at it."""
    leaf = partition.root.find(path)
    if leaf is not None and leaf.is_leaf:
        partition.reserving.overdue[leaf] = None


def load(partition: Partition, state: dict[str, Any]) -> None:
    """What `Reserving.dump` wrote down."""
    for app, key, since_ms, who, why, by_itself in state["of"]:
        ask = partition.applications[app].asks[key]
        partition.reserving.put(ask, Reservation(since_ms, who, why, by_itself))
    if "bounded" not in state:  # Versions before it was kept did not write it.
        partition.reserving.bounded = {q: None for q in partition.root.walk() if q.properties.wait_max_ms}
    for name in ("overdue", "bounded"):
        found = (partition.root.find(path) for path in state.get(name, ()))
        getattr(partition.reserving, name).update({leaf: None for leaf in found if leaf is not None})
